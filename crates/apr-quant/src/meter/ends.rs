//! The lowest and the highest codes of the formats: blocks in which every code is one of them.

use crate::format::BlockFormat;

/// Bytes of as many blocks as a piece has, and of one scale before them.
pub(super) const ROOM: usize = 256 * 8 + 4;

/// One end of the range of codes.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Low,
    High,
}

/// Where the codes of a block are, and the bytes that hold only the lowest and only the highest of them.
#[derive(Clone, Copy, Debug)]
struct Codes {
    start: usize,
    end: usize,
    low: u8,
    high: u8,
}

const fn codes(start: usize, end: usize, low: u8, high: u8) -> Option<Codes> {
    Some(Codes { start, end, low, high })
}

/// The reference writes -128 in no format of 8 bits, nor do writers of `.apr` files write -8 into four: the ends are those
/// that are written.
const fn codes_of(format: BlockFormat) -> Option<Codes> {
    match format {
        BlockFormat::Q4_0 | BlockFormat::IQ4_NL => codes(2, 18, 0x00, 0xff),
        BlockFormat::Q4_1 => codes(4, 20, 0x00, 0xff),
        BlockFormat::Q5_0 => codes(2, 22, 0x00, 0xff),
        BlockFormat::Q5_1 => codes(4, 24, 0x00, 0xff),
        BlockFormat::Q8_0 => codes(2, 34, 0x81, 0x7f),
        BlockFormat::Q8_1 => codes(4, 36, 0x81, 0x7f),
        BlockFormat::Q2_K => codes(16, 80, 0x00, 0xff),
        BlockFormat::Q3_K => codes(0, 96, 0x00, 0xff),
        BlockFormat::Q4_K => codes(16, 144, 0x00, 0xff),
        BlockFormat::Q5_K => codes(16, 176, 0x00, 0xff),
        BlockFormat::Q6_K => codes(0, 192, 0x00, 0xff),
        BlockFormat::Q8_K => codes(4, 260, 0x81, 0x7f),
        BlockFormat::IQ4_XS => codes(8, 136, 0x00, 0xff),
        BlockFormat::TQ1_0 => codes(0, 52, 0x00, 0xff),
        // Four times the digits 0 and 2: nobody writes the fourth code.
        BlockFormat::TQ2_0 => codes(0, 64, 0x00, 0xaa),
        BlockFormat::Q2_0 => codes(2, 18, 0x00, 0xaa),
        BlockFormat::Q1_0 => codes(2, 18, 0x00, 0xff),
        BlockFormat::MXFP4 => codes(1, 17, 0xff, 0x77),
        BlockFormat::NVFP4 => codes(4, 36, 0xff, 0x77),
        BlockFormat::AprQ4 => codes(2, 18, 0x11, 0xff),
        BlockFormat::AprQ8 => codes(0, 1, 0x81, 0x7f),
        _ => None,
    }
}

/// Whether the codes of a format have an order.
pub(super) const fn has(format: BlockFormat) -> bool {
    codes_of(format).is_some()
}

/// Puts the code of one end in place of every code of whole blocks.
pub(super) fn set_codes(format: BlockFormat, blocks: &mut [u8], end: End) {
    let Some(codes) = codes_of(format) else { return };
    let code = match end {
        End::Low => codes.low,
        End::High => codes.high,
    };
    for block in blocks.chunks_exact_mut(format.block_bytes()) {
        block[codes.start..codes.end].fill(code);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::PIECE;
    use crate::quantizer::dequantize;

    #[test]
    fn every_format_fits_into_the_room() {
        for format in BlockFormat::ALL {
            assert_eq!(PIECE % format.block_len(), 0);
            assert!(PIECE / format.block_len() * format.block_bytes() + 4 <= ROOM);
            if let Some(codes) = codes_of(*format) {
                assert!(codes.start < codes.end && codes.end <= format.block_bytes(), "{format}");
            }
        }
    }

    /// Whatever the codes, nothing that a block of small scales holds lies beyond its ends.
    #[test]
    fn no_code_reaches_beyond_the_ends() {
        let mut state = 7u32;
        for &format in BlockFormat::ALL {
            let Some(codes) = codes_of(format) else { continue };
            let (len, bytes) = (format.block_len().max(2), format.block_bytes());
            let head = if format == BlockFormat::AprQ8 { 4 } else { 0 };
            let mut blocks = [0; 300];
            let blocks = &mut blocks[..head + len / format.block_len() * bytes];
            // One byte over and over is a small scale in every kind of float.
            blocks.fill(0x2f);
            let mut values = [[0.0; 256]; 3];
            let [low, some, high] = &mut values;
            set_codes(format, &mut blocks[head..], End::Low);
            dequantize(format, blocks, &mut low[..len]).unwrap();
            set_codes(format, &mut blocks[head..], End::High);
            dequantize(format, blocks, &mut high[..len]).unwrap();
            assert!(low[..len].iter().zip(&high[..len]).all(|(low, high)| low != high), "{format}");
            for _ in 0..200 {
                for block in blocks[head..].chunks_exact_mut(bytes) {
                    for byte in &mut block[codes.start..codes.end] {
                        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                        *byte = (state >> 24) as u8;
                        if matches!(format, BlockFormat::TQ2_0 | BlockFormat::Q2_0) {
                            *byte &= 0xaa;
                        } else if format == BlockFormat::AprQ4 {
                            *byte |= 0x11;
                        } else if *byte == 0x80 {
                            *byte = 0x81;
                        }
                    }
                }
                dequantize(format, blocks, &mut some[..len]).unwrap();
                for ((low, some), high) in low.iter().zip(&*some).zip(&*high) {
                    let (low, high) = if low < high { (low, high) } else { (high, low) };
                    assert!(low <= some && some <= high, "{format}: {low} {some} {high}");
                }
            }
        }
    }
}
