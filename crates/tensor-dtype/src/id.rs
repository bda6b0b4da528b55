//! Identifiers of data types as files store them, unassigned numbers included.

use core::fmt;

use crate::dtype::Dtype;

/// Identifier of a tensor's data type in a GGUF file.
///
/// ```
/// use tensor_dtype::{Dtype, GgmlType};
///
/// assert_eq!(GgmlType(12).known(), Some(Dtype::Q4_K));
/// assert_eq!(GgmlType(4).removed().map(|removed| (removed.name, removed.instead)), Some(("Q4_2", "Q4_0")));
/// assert_eq!(GgmlType(99).to_string(), "type 99");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GgmlType(pub u32);

/// A type that ggml has removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedType {
    /// Its name.
    pub name: &'static str,
    /// Name of the type that replaces it.
    pub instead: &'static str,
}

/// Types that ggml has removed: identifier, name, replacement (`ggml.h`, `enum ggml_type`).
const REMOVED: [(u32, &str, &str); 8] = [
    (4, "Q4_2", "Q4_0"),
    (5, "Q4_3", "Q4_1"),
    (31, "Q4_0_4_4", "Q4_0"),
    (32, "Q4_0_4_8", "Q4_0"),
    (33, "Q4_0_8_8", "Q4_0"),
    (36, "IQ4_NL_4_4", "IQ4_NL"),
    (37, "IQ4_NL_4_8", "IQ4_NL"),
    (38, "IQ4_NL_8_8", "IQ4_NL"),
];

impl GgmlType {
    /// The removed type that had this identifier.
    #[must_use]
    pub fn removed(self) -> Option<RemovedType> {
        let (_, name, instead) = *REMOVED.iter().find(|(id, _, _)| *id == self.0)?;
        Some(RemovedType { name, instead })
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(self.known(), self.0, f)
    }
}

/// Identifier of a tensor's data type in an `.apr` file of version 2.
///
/// Identifiers below 128 are ggml's where it has the type and assigned it before the format did; the others are the format's
/// own. Three types had other identifiers in files of 2025, which [`from_stored`](Self::from_stored) translates.
///
/// | identifier | type | size |
/// |---|---|---|
/// | 0 | `F32` | 4 bytes per element |
/// | 1 | `F16` | 2 bytes per element |
/// | 3 | `F64` | 8 bytes per element |
/// | 4, 5, 6 | `I32`, `I64`, `I8` | 4, 8, 1 bytes per element |
/// | 7 | `U8` | 1 byte per element |
/// | 12, 14 | `Q4_K`, `Q6_K` | super-blocks of 256 elements, as in ggml |
/// | 30 (was 2) | `BF16` | 2 bytes per element |
/// | 128 (was 8) | `AprQ4` | blocks of 32 elements: a half-precision scale, 32 4-bit codes |
/// | 129 (was 9) | `AprQ8` | one single-precision scale per tensor, then 1 byte per element; no bytes without elements |
///
/// ```
/// use tensor_dtype::{AprType, Dtype};
///
/// assert_eq!(AprType::from_stored(2), AprType::Bf16);
/// assert_eq!(AprType(12).known(), Some(Dtype::Q4_K));
/// assert_eq!(AprType(200).name(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AprType(pub u8);

impl AprType {
    /// The type with an identifier found in a file: the three former identifiers become today's.
    #[must_use]
    pub const fn from_stored(id: u8) -> Self {
        match id {
            2 => Self::Bf16,
            8 => Self::AprQ4,
            9 => Self::AprQ8,
            _ => Self(id),
        }
    }

    /// Name in the specification; `None` for unassigned identifiers.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self.known() {
            Some(dtype) => Some(dtype.name()),
            None => None,
        }
    }
}

impl fmt::Display for AprType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(self.known(), self.0.into(), f)
    }
}

impl fmt::Debug for AprType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn display(known: Option<Dtype>, id: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match known {
        Some(dtype) => f.pad(dtype.name()),
        None => write!(f, "type {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ggml_identifier_is_known_or_removed() {
        for id in (0..=42).map(GgmlType) {
            assert!(id.known().is_some() != id.removed().is_some(), "{id}");
            assert!(id.known().is_none_or(|dtype| dtype.ggml_type() == Some(id)));
        }
        for id in [43, u32::MAX].map(GgmlType) {
            assert!(id.known().is_none() && id.removed().is_none());
        }
    }

    #[test]
    fn former_apr_identifiers_are_translated() {
        for dtype in Dtype::ALL.iter().filter_map(|dtype| dtype.apr_type()) {
            assert_eq!(AprType::from_stored(dtype.0), dtype);
            assert!(dtype.name().is_some());
        }
        let former = [2, 8, 9].map(AprType::from_stored);
        assert_eq!(former, [AprType::Bf16, AprType::AprQ4, AprType::AprQ8]);
        let shown = alloc::format!("{} {:?} {:>5}|", AprType(77), AprType::Q4_K, AprType::U8);
        assert_eq!(shown, "type 77 Q4_K    U8|");
    }
}
