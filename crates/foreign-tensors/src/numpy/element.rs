//! Types of elements, as NumPy spells them.

use alloc::format;
use alloc::string::String;

use tensor_dtype::Dtype;

use crate::tensor::ElementType;

/// The type of a code as `<f4`, and whether elements are big-endian. Without a sign for the order they are little-endian.
///
/// # Errors
///
/// Why there is no such type here, as a noun.
pub(crate) fn element(code: &str, void_is_bf16: bool) -> Result<(ElementType, bool), String> {
    let (big, kind) = match code.split_at_checked(1) {
        Some((">", kind)) => (true, kind),
        Some(("<" | "|" | "=", kind)) => (false, kind),
        _ => (false, code),
    };
    let dtype = match kind {
        "b1" | "?" => Dtype::Bool,
        "i1" => Dtype::I8,
        "i2" => Dtype::I16,
        "i4" => Dtype::I32,
        "i8" => Dtype::I64,
        "u1" => Dtype::U8,
        "u2" => Dtype::U16,
        "u4" => Dtype::U32,
        "u8" => Dtype::U64,
        "f2" => Dtype::F16,
        "f4" => Dtype::F32,
        "f8" => Dtype::F64,
        "c8" => Dtype::C64,
        "c16" => return Ok((ElementType::C128, big)),
        "V2" if void_is_bf16 => Dtype::Bf16,
        _ => return Err(other(code, kind)),
    };
    Ok((ElementType::Known(dtype), big))
}

fn other(code: &str, kind: &str) -> String {
    let what = match kind.split_at_checked(1).map_or("", |(kind, _)| kind) {
        "O" => "an array of Python objects",
        "S" | "a" => "an array of byte strings",
        "U" => "an array of strings",
        "M" | "m" => "an array of dates or times",
        "V" if kind == "V2" => {
            "an array of two-byte void elements, which may be bfloat16 (--void-as-bf16 reads them as that),"
        }
        "V" => "an array of void elements, whose type is not in the file,",
        "f" => "an array of extended-precision floats",
        "c" => "an array of extended-precision complex numbers",
        _ => "an array of an unknown type",
    };
    format!("{what} ({})", located_error::cut(code, 32).escape_debug())
}

/// The type with a name of NumPy or `ml_dtypes`.
#[cfg(feature = "torch")]
pub(crate) fn by_name(name: &str) -> Option<ElementType> {
    let known = Dtype::ELEMENTS.into_iter().find(|dtype| dtype.numpy_name() == Some(name));
    known.map(ElementType::Known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_numbers_are_types() {
        let name = |code| element(code, false).map(|(dtype, big)| (dtype.name(), big));
        assert_eq!(name("<f4"), Ok(("F32", false)));
        assert_eq!(name(">i8"), Ok(("I64", true)));
        assert_eq!(name("|b1"), Ok(("BOOL", false)));
        assert_eq!(name("=u2"), Ok(("U16", false)));
        assert_eq!(name("c16"), Ok(("C128", false)));
        for code in ["", "<", "<f16", "|O", "<U3", "|S1", "<V2", "|V1", "<M8[ns]", "é4", "<f3"] {
            assert!(element(code, false).is_err(), "{code}");
        }
        assert_eq!(element("<V2", true).unwrap().0, ElementType::Known(Dtype::Bf16));
    }
}
