//! Payload layouts of the releases of aprender.

use core::fmt;

/// A layout of payloads. The first implementation changed some of them twice without changing the container's version;
/// its version in the metadata tells which layout a file has.
///
/// Only logistic regressions, trees and forests differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PayloadLayout {
    /// As aprender 0.10.
    V0_10,
    /// As aprender 0.15 to 0.25.
    V0_15,
    /// As aprender-core 0.72. The default.
    #[default]
    V0_72,
}

impl PayloadLayout {
    /// All, oldest first.
    pub const ALL: [Self; 3] = [Self::V0_10, Self::V0_15, Self::V0_72];

    /// The version in the metadata of files with this layout.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::V0_10 => "0.10.0",
            Self::V0_15 => "0.15.0",
            Self::V0_72 => "0.72.3",
        }
    }

    /// The layout that the given version writes, `None` for versions whose layout is not known.
    #[must_use]
    pub fn from_version(version: &str) -> Option<Self> {
        let mut parts = version.split('.');
        let (major, minor) = (parts.next()?, parts.next()?);
        match (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?) {
            (0, 10) => Some(Self::V0_10),
            (0, 15..=25) => Some(Self::V0_15),
            (0, 72) => Some(Self::V0_72),
            _ => None,
        }
    }
}

/// The version: `0.72.3`.
impl fmt::Display for PayloadLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_layouts_convert_to_each_other() {
        for layout in PayloadLayout::ALL {
            assert_eq!(PayloadLayout::from_version(layout.version()), Some(layout));
        }
        assert_eq!(PayloadLayout::from_version("0.20.0"), Some(PayloadLayout::V0_15));
        for unknown in ["", "0", "0.9.1", "0.50.0", "1.0.0", "x.y"] {
            assert_eq!(PayloadLayout::from_version(unknown), None, "{unknown}");
        }
    }
}
