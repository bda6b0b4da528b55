//! Names of the element types in Python's frameworks.

use st_core::Dtype;

/// Two elements of [`Dtype::F4`] in a byte.
pub(crate) const PACKED_F4: &str = "float4_e2m1fn_x2";

/// What messages list.
pub(crate) const SUPPORTED: &str = "bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, \
    float32, float64, bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, \
    float4_e2m1fn_x2, complex64";

/// Whether numpy has it without `ml_dtypes`: floats of at most 8 bits and `bfloat16` are not there.
pub(crate) fn is_native(dtype: Dtype) -> bool {
    dtype != Dtype::Bf16 && (dtype.bits() > 8 || matches!(dtype, Dtype::Bool | Dtype::I8 | Dtype::U8))
}

/// Name of an element type in numpy and `ml_dtypes`.
pub(crate) fn python_name(dtype: Dtype) -> &'static str {
    dtype.numpy_name().unwrap_or(dtype.name())
}

/// The type of a buffer's elements and whether their bytes are in the order of files.
pub(crate) fn from_format(format: &str, item_len: usize) -> Option<(Dtype, bool)> {
    let native = cfg!(target_endian = "little");
    let (is_little, letters) = match format.as_bytes() {
        [b'<', letters @ ..] => (true, letters),
        [b'>' | b'!', letters @ ..] => (false, letters),
        [b'@' | b'=', letters @ ..] | letters => (native, letters),
    };
    let dtype = match (letters, item_len) {
        (b"?", 1) => Dtype::Bool,
        (b"b", 1) => Dtype::I8,
        (b"B", 1) => Dtype::U8,
        (b"h", 2) => Dtype::I16,
        (b"H", 2) => Dtype::U16,
        (b"i" | b"l", 4) => Dtype::I32,
        (b"I" | b"L", 4) => Dtype::U32,
        (b"q" | b"l" | b"n", 8) => Dtype::I64,
        (b"Q" | b"L" | b"N", 8) => Dtype::U64,
        (b"e", 2) => Dtype::F16,
        (b"f", 4) => Dtype::F32,
        (b"d", 8) => Dtype::F64,
        (b"Zf", 8) => Dtype::C64,
        _ => return None,
    };
    Some((dtype, is_little || item_len == 1))
}
