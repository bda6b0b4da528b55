//! Results for GGUF files: header, offsets, and values that are not finite.

use apr_quant::Dtype;

use super::{Content, Sound};
use crate::architecture::{note_on_header, note_on_part};
use crate::error::{CODE_INTERNAL, Failure};
use tensor_dtype::TensorType;

use crate::input::{self, Contents, Model, Rules, Source, Tensor};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{self, grouped, plural};

/// Most tensors that are named.
const NAMED: usize = 20;
/// Bytes read at once, about.
const CHUNK: u64 = 1 << 20;

/// Judges a file: everything.
///
/// # Errors
///
/// If it cannot be read or is invalid.
pub(super) fn tensors(source: Source, rules: &Rules, console: &Console) -> Result<Sound, Failure> {
    let model = Model::from_source(source, rules)?;
    let Contents::Gguf(file) = model.contents() else {
        return Err(Failure::new(CODE_INTERNAL, "a GGUF file became something else"));
    };
    let header = file.header()?;
    let version = header.version();
    let tensors = model.tensors()?;
    let (mut warnings, mut more) = (Vec::new(), 0);
    let mut zeros = Zeros::default();
    let mut progress = console.progress("checking", tensors.iter().map(|tensor| tensor.byte_len()).sum());
    for tensor in &tensors {
        progress.item(tensor.name());
        let fault = Fault::of(tensor, &mut zeros, |len| progress.advance(len))?;
        let Some(fault) = fault else { continue };
        if warnings.len() < NAMED {
            warnings.push(fault.message(tensor.name()));
        } else {
            more += 1;
        }
    }
    if more > 0 {
        warnings.push(format!("{} more of this kind", plural(more, "tensor")));
    }
    warnings.extend(zeros.warning());
    warnings.extend(header.key_problems().iter().map(ToString::to_string));
    warnings.extend(note_on_part(&header));
    warnings.extend(note_on_header(&header));
    let (count, bytes) = (tensors.len() as u64, tensors.iter().map(|tensor| tensor.byte_len()).sum());
    Ok(Sound { warnings, ..Sound::new(Content::Gguf { tensors: count, bytes, version }) })
}

/// Zeros at the end of a file, as a program leaves them that reserves the space of a download and stops.
#[derive(Clone, Debug, Default)]
struct Zeros {
    /// Bytes of all tensors so far.
    bytes: u64,
    /// Bytes after the last one that is not zero.
    at_end: u64,
    /// Matrices within those bytes.
    matrices: u64,
}

impl Zeros {
    /// Begins a tensor.
    fn begin(&mut self, is_matrix: bool) {
        self.matrices += u64::from(is_matrix);
    }

    /// Adds bytes of the tensor.
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        match bytes.iter().rposition(|byte| *byte != 0) {
            None => self.at_end += bytes.len() as u64,
            Some(last) => {
                self.at_end = (bytes.len() - last - 1) as u64;
                self.matrices = 0;
            }
        }
    }

    /// A model does not end in a matrix of zeros.
    fn warning(&self) -> Option<String> {
        (self.matrices > 0).then(|| {
            format!(
                "the last {} of the file's tensors are zeros ({}): a download that was not finished? Compare its SHA-256 with the publisher's",
                human::bytes(self.at_end),
                human::percent(self.at_end, self.bytes),
            )
        })
    }
}

/// Scales or values of a tensor that are infinite or NaN, which ggml refuses when it validates data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fault {
    /// `scales` or `numbers`.
    what: &'static str,
    count: u64,
    /// The block or the element.
    first: u64,
}

impl Fault {
    /// Reads a tensor to its end.
    fn of(
        tensor: &Tensor<'_>,
        zeros: &mut Zeros,
        mut advance: impl FnMut(usize),
    ) -> Result<Option<Self>, Failure> {
        // Values of a type that cannot be byte-swapped are not checked.
        if tensor.check_order().is_err() {
            return Ok(None);
        }
        let probe = Probe::of(tensor.dtype());
        let period = probe.as_ref().map_or(1, |probe| probe.period as u64);
        zeros.begin(tensor.shape().len() > 1);
        let step = CHUNK - CHUNK % period;
        let (mut buf, mut offset, mut found) = (Vec::new(), 0, None::<Self>);
        while offset < tensor.byte_len() {
            let len = step.min(tensor.byte_len() - offset);
            // At most CHUNK, which fits any usize.
            buf.resize(len as usize, 0);
            tensor.read(offset, &mut buf)?;
            advance(buf.len());
            zeros.add(&buf);
            let Some(probe) = &probe else {
                offset += len;
                continue;
            };
            for (idx, block) in buf.chunks_exact(probe.period).enumerate() {
                if (probe.is_finite)(block) {
                    continue;
                }
                let first = offset / period + idx as u64;
                found.get_or_insert(Self { what: probe.what, count: 0, first }).count += 1;
            }
            offset += len;
        }
        Ok(found)
    }

    fn message(self, tensor: &str) -> String {
        let Self { what, count, first } = self;
        let (place, count) = (if what == "scales" { "block" } else { "element" }, grouped(count));
        let tensor = escape::cut(tensor, 60);
        format!("tensor `{tensor}`: {what} that are not finite: {count}, the first in {place} {first}")
    }
}

/// Whether everything in one period of a tensor's bytes is finite.
type IsFinite = Box<dyn Fn(&[u8]) -> bool>;

/// The values of a tensor that are checked.
struct Probe {
    what: &'static str,
    /// Bytes after which everything repeats.
    period: usize,
    is_finite: IsFinite,
}

impl Probe {
    /// Of a type; `None` if all its bytes are good.
    fn of(dtype: TensorType) -> Option<Self> {
        let format = input::decodable(dtype)?;
        let numbers = |is_finite: fn(&[u8]) -> bool| Some(("numbers", Box::new(is_finite) as IsFinite));
        let scales = |is_finite: fn(&[u8]) -> bool| Some(("scales", Box::new(is_finite) as IsFinite));
        let found = match format {
            Dtype::F16 => numbers(|bytes| is_finite_half(bytes, 0)),
            Dtype::Bf16 => numbers(|bytes| !matches!(bytes, [lo, hi] if hi & 0x7f == 0x7f && lo & 0x80 != 0)),
            Dtype::F32 => numbers(|bytes| {
                bytes.first_chunk().is_none_or(|bytes| f32::from_le_bytes(*bytes).is_finite())
            }),
            Dtype::F64 => numbers(|bytes| {
                bytes.first_chunk().is_none_or(|bytes| f64::from_le_bytes(*bytes).is_finite())
            }),
            Dtype::Q8_K => {
                scales(|bytes| bytes.first_chunk().is_none_or(|bytes| f32::from_le_bytes(*bytes).is_finite()))
            }
            Dtype::MXFP4 => scales(|bytes| bytes.first() != Some(&0xff)),
            // One half in the upper bits of four words.
            Dtype::IQ1_M => scales(|bytes| {
                let upper = |at: usize| bytes.get(at).map_or(0, |byte| byte >> 4);
                !(upper(55) & 7 == 7 && upper(53) & 0xc == 0xc)
            }),
            _ => input::halves(format).map(|places| {
                let is_finite = move |bytes: &[u8]| places.iter().all(|&place| is_finite_half(bytes, place));
                ("scales", Box::new(is_finite) as IsFinite)
            }),
        };
        let (what, is_finite) = found?;
        Some(Self { what, period: format.block_bytes(), is_finite })
    }
}

/// Whether not all bits of the exponent are set.
fn is_finite_half(bytes: &[u8], place: usize) -> bool {
    bytes.get(place + 1).is_none_or(|byte| byte & 0x7c != 0x7c)
}

#[cfg(test)]
mod tests {
    use apr_quant::dequantize;

    use super::*;

    /// The decoded values: those that are not finite are faults.
    #[test]
    fn what_decodes_to_no_number_is_found() {
        for format in apr_quant::dtypes() {
            let Some(probe) = Probe::of(TensorType::from(format)) else { continue };
            let mut seed = 1_u32;
            for _ in 0..2000 {
                let block: Vec<u8> = (0..format.block_bytes())
                    .map(|_| {
                        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        if seed >> 30 == 0 { 0xff } else { (seed >> 16) as u8 }
                    })
                    .collect();
                let mut values = vec![0.0_f32; format.block_len()];
                dequantize(format, &block, &mut values).unwrap();
                let is_finite = values.iter().all(|value| value.is_finite());
                // Doubles that no single holds, and scales of 8 or 32 bits times a number, decode to infinity all the same.
                assert!(
                    is_finite
                        || !(probe.is_finite)(&block)
                        || matches!(format, Dtype::F64 | Dtype::Q8_K | Dtype::MXFP4),
                    "{format} {block:?}"
                );
            }
        }
    }
}
