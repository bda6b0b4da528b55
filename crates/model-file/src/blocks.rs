//! Blocks of quantized values: offsets of their scales, conversion of the byte order and of the format, decoding.

use alloc::vec;
use alloc::vec::Vec;

use apr_quant::{Dtype, Quantizer, dequantize, repack};

use crate::error::{Error, ErrorKind};

/// Offsets of the half-precision scales and minima in a block; `None` for formats without any.
#[must_use]
pub const fn halves(format: Dtype) -> Option<&'static [usize]> {
    use Dtype as F;
    Some(match format {
        F::Q4_0 | F::Q5_0 | F::Q8_0 | F::Q1_0 | F::Q2_0 | F::AprQ4 => &[0],
        F::IQ1_S | F::IQ2_XXS | F::IQ2_XS | F::IQ2_S | F::IQ3_XXS | F::IQ3_S | F::IQ4_NL | F::IQ4_XS => &[0],
        F::Q4_1 | F::Q5_1 | F::Q8_1 | F::Q4_K | F::Q5_K => &[0, 2],
        F::Q2_K => &[80, 82],
        F::Q3_K => &[108],
        F::Q6_K => &[208],
        F::TQ1_0 => &[52],
        F::TQ2_0 => &[64],
        _ => return None,
    })
}

/// Numbers of several bytes that are turned round when a file of the other byte order is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Swap {
    /// Bytes after which everything repeats.
    period: u64,
    /// Bytes of a number.
    width: usize,
    /// Where numbers begin.
    places: &'static [usize],
}

impl Swap {
    /// Of plain numbers.
    pub(crate) const fn plain(width: usize) -> Self {
        Self { period: width as u64, width, places: &[0] }
    }

    /// Of blocks in which nothing but the scales has more than one byte: those that other programs write in this order
    /// too. `None` for the others.
    pub(crate) const fn blocks(format: Dtype) -> Option<Self> {
        use Dtype as F;
        let places = match format {
            F::MXFP4 | F::NVFP4 => &[],
            F::Q4_0
            | F::Q4_1
            | F::Q5_0
            | F::Q5_1
            | F::Q8_0
            | F::Q2_K
            | F::Q3_K
            | F::Q4_K
            | F::Q5_K
            | F::Q6_K => match halves(format) {
                Some(places) => places,
                None => return None,
            },
            _ => return None,
        };
        Some(Self { period: format.block_bytes() as u64, width: 2, places })
    }

    /// Reads bytes from `offset` on, of `byte_len` in all, as the other order has them.
    pub(crate) fn read(
        self,
        offset: u64,
        buf: &mut [u8],
        byte_len: u64,
        read: impl FnOnce(u64, &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        read_changed(self.period, offset, buf, byte_len, read, |whole| {
            for block in whole.chunks_exact_mut(self.period as usize) {
                for &place in self.places {
                    block[place..place + self.width].reverse();
                }
            }
        })
    }
}

/// Reads bytes from `offset` on, of `byte_len` in all, of which `change` makes others: it is given whole periods.
fn read_changed(
    period: u64,
    offset: u64,
    buf: &mut [u8],
    byte_len: u64,
    read: impl FnOnce(u64, &mut [u8]) -> Result<(), Error>,
    change: impl FnOnce(&mut [u8]),
) -> Result<(), Error> {
    let begin = offset - offset % period;
    let end = (offset + buf.len() as u64).next_multiple_of(period).min(byte_len);
    // Little more than `buf`, which is in memory.
    let mut whole = vec![0; (end - begin) as usize];
    read(begin, &mut whole)?;
    change(&mut whole);
    let skipped = (offset - begin) as usize;
    buf.copy_from_slice(&whole[skipped..skipped + buf.len()]);
    Ok(())
}

/// Stored blocks shown as something else.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    /// As plain numbers.
    Plain(Decoded),
    /// As blocks of the same length with the same values.
    Repacked { from: Dtype, to: Dtype },
    /// The bytes of `AprQ8` as blocks of `Q8_0`, each with this scale.
    Scaled([u8; 2]),
}

/// Bytes of a block of `Q8_0`, and of its codes.
const Q8_0: u64 = Dtype::Q8_0.block_bytes() as u64;
const Q8_0_CODES: u64 = Dtype::Q8_0.block_len() as u64;
/// Bytes of the scale in front of `AprQ8`.
pub(crate) const APR_Q8_SCALE: u64 = 4;

impl Shown {
    /// Reads bytes from `offset` on, of `byte_len` in all, taking stored ones from `read`.
    ///
    /// # Errors
    ///
    /// Those of `read`; if a number does not fit a half.
    pub(crate) fn read(
        self,
        offset: u64,
        buf: &mut [u8],
        byte_len: u64,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Self::Plain(decoded) => decoded.read(offset, buf, read),
            Self::Repacked { from, to } => {
                read_changed(from.block_bytes() as u64, offset, buf, byte_len, read, |blocks| {
                    repack(from, to).into_iter().for_each(|change| change(blocks));
                })
            }
            Self::Scaled(scale) => read_scaled(scale, offset, buf, read),
        }
    }
}

fn read_scaled(
    scale: [u8; 2],
    offset: u64,
    buf: &mut [u8],
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let (first, last) = (offset / Q8_0, (offset + buf.len() as u64).div_ceil(Q8_0));
    // Less than `buf` and a block, which is in memory.
    let mut codes = vec![0; ((last - first) * Q8_0_CODES) as usize];
    read(APR_Q8_SCALE + first * Q8_0_CODES, &mut codes)?;
    let blocks = codes.chunks_exact(Q8_0_CODES as usize).flat_map(|codes| scale.iter().chain(codes));
    let bytes = blocks.skip((offset - first * Q8_0) as usize);
    buf.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    Ok(())
}

/// Packed numbers shown as plain ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) from: Dtype,
    /// `F32` or `F16`.
    pub(crate) to: Dtype,
    pub(crate) elements: u64,
}

impl Decoded {
    /// Reads plain numbers from byte `offset` on, taking packed bytes from `read`.
    ///
    /// # Errors
    ///
    /// Those of `read`; if a number does not fit a half.
    pub(crate) fn read(
        self,
        offset: u64,
        buf: &mut [u8],
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if buf.is_empty() {
            return Ok(());
        }
        let width = u64::from(self.to.bits() / 8);
        let (first, last) = (offset / width, (offset + buf.len() as u64).div_ceil(width));
        let (block_len, block_bytes) = (self.from.block_len() as u64, self.from.block_bytes() as u64);
        let (begin, end) = (first / block_len, last.div_ceil(block_len));
        // One scale for the whole tensor precedes everything else.
        let head = if self.from == Dtype::AprQ8 { 4 } else { 0 };
        // Little more than `buf`, which is in memory.
        let mut packed = vec![0; head + ((end - begin) * block_bytes) as usize];
        let (scale, blocks) = packed.split_at_mut(head);
        if head > 0 {
            read(0, scale)?;
        }
        read(head as u64 + begin * block_bytes, blocks)?;
        let mut values = vec![0.0; ((end - begin) * block_len) as usize];
        let begin = begin * block_len;
        let wrong = |element, value| ErrorKind::NotRepresentable {
            from: self.from.into(),
            to: self.to.into(),
            element,
            value,
        };
        let undecodable = |_: apr_quant::Error| wrong(None, 0.0);
        dequantize(self.from, &packed, &mut values).map_err(undecodable)?;
        // What fills up the last block is no number of the tensor.
        values.truncate((self.elements - begin) as usize);
        let plain: Vec<u8> = if self.to == Dtype::F16 {
            // From here on, rounding leads to infinity.
            if let Some(idx) = values.iter().position(|value| value.is_nan() || value.abs() >= 65_520.0) {
                return Err(wrong(Some(begin + idx as u64), values[idx]).into());
            }
            let mut plain = vec![0; 2 * values.len()];
            let halves = Quantizer::new(Dtype::F16).map_err(undecodable)?;
            halves.quantize(&values, values.len(), &mut plain).map_err(undecodable)?;
            plain
        } else {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        let skipped = (offset - begin * width) as usize;
        buf.copy_from_slice(&plain[skipped..skipped + buf.len()]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn scales_lie_within_their_blocks() {
        for format in apr_quant::dtypes() {
            for place in halves(format).into_iter().flatten() {
                assert!(place + 2 <= format.block_bytes(), "{format}");
            }
        }
    }

    /// A block of ones, its scale turned round: found by the numbers that come out.
    #[test]
    fn scales_stand_where_the_decoder_takes_them() {
        for format in apr_quant::dtypes() {
            let Some(places) = halves(format) else { continue };
            let mut block = vec![0x11; format.block_bytes()];
            for &place in places {
                block[place..place + 2].copy_from_slice(&0x7c00_u16.to_le_bytes());
            }
            let mut values = vec![0.0; format.block_len()];
            dequantize(format, &block, &mut values).unwrap();
            assert!(values.iter().all(|value: &f32| !value.is_finite() || *value == 0.0), "{format}");
        }
    }

    #[test]
    fn any_range_is_turned_round() {
        let stored: Vec<u8> = (0..36).collect();
        let swap = Swap::blocks(Dtype::Q4_0).unwrap();
        let mut whole = [0; 36];
        let read = |offset: u64, buf: &mut [u8]| {
            buf.copy_from_slice(&stored[offset as usize..][..buf.len()]);
            Ok(())
        };
        swap.read(0, &mut whole, 36, read).unwrap();
        assert_eq!((whole[0], whole[1], whole[18], whole[19]), (1, 0, 19, 18));
        for begin in 0..36 {
            for end in begin..=36 {
                let mut part = vec![0; end - begin];
                swap.read(begin as u64, &mut part, 36, read).unwrap();
                assert_eq!(part, whole[begin..end]);
            }
        }
    }

    #[test]
    fn a_number_that_no_half_holds_is_named() {
        let mut stored = [1; 68];
        stored[34..36].copy_from_slice(&0x7bff_u16.to_le_bytes());
        stored[40] = 2;
        let read = |offset: u64, buf: &mut [u8]| {
            buf.copy_from_slice(&stored[offset as usize..][..buf.len()]);
            Ok(())
        };
        let decoded = Decoded { from: Dtype::Q8_0, to: Dtype::F16, elements: 64 };
        assert!(decoded.read(0, &mut [0; 64], read).is_ok());
        let error = decoded.read(64, &mut [0; 64], read).unwrap_err();
        assert_eq!(error.code(), "mo-not-representable");
        assert!(error.to_string().contains("element 36 is 131008"), "{error}");
    }

    #[test]
    fn any_range_is_decoded() {
        let values: Vec<f32> = (0..96).map(|idx| idx as f32 - 40.0).collect();
        let mut stored = [0; 102];
        Quantizer::new(Dtype::Q8_0).unwrap().quantize(&values, 96, &mut stored).unwrap();
        let read = |offset: u64, buf: &mut [u8]| {
            buf.copy_from_slice(&stored[offset as usize..][..buf.len()]);
            Ok(())
        };
        for to in [Dtype::F32, Dtype::F16] {
            let decoded = Decoded { from: Dtype::Q8_0, to, elements: 96 };
            let mut whole = vec![0; 96 * to.bits() as usize / 8];
            decoded.read(0, &mut whole, read).unwrap();
            for (begin, end) in [(0, 0), (0, 1), (3, 130), (64, 66), (127, 192), (191, 192)] {
                let mut part = vec![0; end - begin];
                decoded.read(begin as u64, &mut part, read).unwrap();
                assert_eq!(part, whole[begin..end]);
            }
        }
    }
}
