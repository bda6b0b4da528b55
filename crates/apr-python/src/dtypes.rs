//! The names under which Python's frameworks know the format's element types.

use st_core::Dtype;

/// Element type, name in Python, and the letters by which buffers name it.
const NAMES: [(Dtype, &str); 22] = [
    (Dtype::Bool, "bool"),
    (Dtype::I8, "int8"),
    (Dtype::U8, "uint8"),
    (Dtype::I16, "int16"),
    (Dtype::U16, "uint16"),
    (Dtype::I32, "int32"),
    (Dtype::U32, "uint32"),
    (Dtype::I64, "int64"),
    (Dtype::U64, "uint64"),
    (Dtype::F16, "float16"),
    (Dtype::F32, "float32"),
    (Dtype::F64, "float64"),
    (Dtype::C64, "complex64"),
    (Dtype::Bf16, "bfloat16"),
    (Dtype::F8E4M3, "float8_e4m3fn"),
    (Dtype::F8E4M3Fnuz, "float8_e4m3fnuz"),
    (Dtype::F8E5M2, "float8_e5m2"),
    (Dtype::F8E5M2Fnuz, "float8_e5m2fnuz"),
    (Dtype::F8E8M0, "float8_e8m0fnu"),
    (Dtype::F4, "float4_e2m1fn"),
    (Dtype::F6E2M3, "float6_e2m3fn"),
    (Dtype::F6E3M2, "float6_e3m2fn"),
];

/// Two elements of [`Dtype::F4`] in a byte.
pub(crate) const PACKED_F4: &str = "float4_e2m1fn_x2";

/// How many of [`NAMES`] numpy knows without help.
const NATIVE: usize = 13;

/// What messages list.
pub(crate) const SUPPORTED: &str = "bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, \
    float32, float64, bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, \
    float4_e2m1fn_x2, complex64";

/// Place of a type in the table.
pub(crate) fn place(dtype: Dtype) -> usize {
    NAMES.iter().position(|&(known, _)| known == dtype).unwrap_or_default()
}

/// Whether numpy has it without `ml_dtypes`.
pub(crate) fn is_native(dtype: Dtype) -> bool {
    place(dtype) < NATIVE
}

/// Name of the type in numpy and `ml_dtypes`.
pub(crate) fn python_name(dtype: Dtype) -> &'static str {
    NAMES[place(dtype)].1
}

/// The type with this name.
pub(crate) fn from_python_name(name: &str) -> Option<Dtype> {
    NAMES.iter().find(|&&(_, known)| known == name).map(|&(dtype, _)| dtype)
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
