//! Values that are no tensors, as JSON.

use core::fmt;

use alloc::format;
use alloc::string::String;

use json_scan::{Escape, Writer};
use pickle_core::{Value, ValueId};
use tensor_dtype::Dtype;

use crate::error::Error;
use crate::options::Options;
use crate::pickled::Pickle;
use crate::tensor::ElementType;

/// Bytes of the longest integer that is written in decimal.
const MAX_INTEGER: u64 = 16;

impl Pickle<'_> {
    /// Writes a value without parts. Returns whether it has a form in JSON.
    pub(crate) fn write_scalar(
        &self,
        id: ValueId,
        json: &mut Writer,
        options: &Options,
    ) -> Result<bool, Error> {
        match self.tree.value(id) {
            Value::None => drop(json.null()),
            Value::Bool(value) => drop(json.plain(value)),
            Value::Int(value) => drop(json.plain(value)),
            Value::Float(value) => write_float(value, json),
            Value::BigInt(span) if span.len() <= MAX_INTEGER => {
                let bytes = self.bytes(span, MAX_INTEGER)?;
                let sign = if bytes.last().is_some_and(|byte| *byte >= 0x80) { 0xff } else { 0 };
                let mut wide = [sign; 16];
                wide.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
                // A string: not every reader of JSON has integers of more than 64 bits.
                json.string(&format!("{}", i128::from_le_bytes(wide)));
            }
            Value::Str(_) | Value::Str2(_) => match self.text(id, options.limits.text_bytes)? {
                Some(text) => drop(json.string(&text)),
                None => return Ok(false),
            },
            Value::Global(_) | Value::Persistent(_) => match self.global(id) {
                Some((module, name)) => drop(json.string(&format!("{module}.{name}"))),
                None => return Ok(false),
            },
            Value::Object(_) => return self.write_object(id, json, options),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn write_object(&self, id: ValueId, json: &mut Writer, options: &Options) -> Result<bool, Error> {
        match (self.callee(id), self.args(id)) {
            (Some(("numpy.core.multiarray" | "numpy._core.multiarray", "scalar")), [dtype, bytes]) => {
                let (Ok((dtype, is_big)), Some(mut bytes)) =
                    (self.dtype(*dtype, options)?, self.raw_bytes(*bytes, 64)?)
                else {
                    return Ok(false);
                };
                if is_big {
                    bytes.reverse();
                }
                Ok(write_number(dtype, &bytes, json))
            }
            (Some(("torch", "device")), args) => {
                let mut text = String::new();
                for &arg in args {
                    if !text.is_empty() {
                        text.push(':');
                    }
                    match (self.text(arg, 64)?, self.int(arg)) {
                        (Some(part), _) => text.push_str(&part),
                        (None, Some(number)) => text.push_str(&format!("{number}")),
                        _ => return Ok(false),
                    }
                }
                json.string(&text);
                Ok(true)
            }
            (Some(("pathlib" | "pathlib._local", _)), parts) => {
                let mut path = String::new();
                for &part in parts {
                    let Some(part) = self.text(part, 4096)? else { return Ok(false) };
                    if !path.is_empty() && !path.ends_with('/') {
                        path.push('/');
                    }
                    path.push_str(&part);
                }
                json.string(&path);
                Ok(true)
            }
            (Some(("torch", "Size")), _) => {
                let Some(sizes) = self.ints(id) else { return Ok(false) };
                json.begin_array();
                for size in sizes {
                    json.plain(size);
                }
                json.end_array();
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// A float; what JSON has no number for is a string, as Python spells it.
fn write_float(value: f64, json: &mut Writer) {
    if value.is_finite() {
        write_finite(value, json);
    } else if value.is_nan() {
        json.string("nan");
    } else {
        json.string(if value > 0.0 { "inf" } else { "-inf" });
    }
}

fn write_finite(value: impl fmt::Debug + fmt::LowerExp, json: &mut Writer) {
    if cfg!(apr_small) {
        // The modules of the npm package print nothing for `Debug`.
        json.plain(format_args!("{value:e}"));
    } else {
        json.plain(format_args!("{value:?}"));
    }
}

fn write_number(dtype: ElementType, bytes: &[u8], json: &mut Writer) -> bool {
    let mut wide = [0; 8];
    wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let unsigned = u64::from_le_bytes(wide);
    let shift = 64_u32.saturating_sub(bytes.len() as u32 * 8);
    let ElementType::Known(known) = dtype else { return false };
    if bytes.len() != dtype.width() || bytes.is_empty() {
        return false;
    }
    match known {
        Dtype::Bool => drop(json.plain(unsigned != 0)),
        Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => drop(json.plain(unsigned)),
        Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => {
            json.plain((unsigned << shift).cast_signed() >> shift);
        }
        Dtype::F64 => write_float(f64::from_bits(unsigned), json),
        Dtype::F32 => {
            let value = f32::from_bits(unsigned as u32);
            if value.is_finite() {
                write_finite(value, json);
            } else {
                write_float(value.into(), json);
            }
        }
        _ => return false,
    }
    true
}

/// A writer of a value.
pub(crate) fn writer() -> Writer {
    Writer::compact(Escape::Minimal)
}
