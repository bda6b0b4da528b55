//! The flags of a header of version 1.

use core::fmt;

/// Eight flags; a reader of this crate acts on [`ENCRYPTED`](Self::ENCRYPTED) and [`SIGNED`](Self::SIGNED) and reports
/// the rest.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Flags {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*

            const NAMES: &'static [(Self, &'static str)] = &[$((Self::$name, stringify!($name))),*];
        }
    };
}

flags! {
    /// The payload is encrypted.
    ENCRYPTED = 0;
    /// A signature follows the payload.
    SIGNED = 1;
    /// A hint without effect: meant to be read in pieces.
    STREAMING = 2;
    /// The metadata has a license.
    LICENSED = 3;
    /// A hint without effect: aligned for native use.
    TRUENO_NATIVE = 4;
    /// A hint without effect: quantized weights.
    QUANTIZED = 5;
    /// The metadata has a model card.
    HAS_MODEL_CARD = 6;
}

impl Flags {
    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// With these set as well.
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// Names of the set flags, lowest bit first; the reserved bit has none.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| *name)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02X}", self.0)?;
        f.debug_set().entries(self.names()).finish()
    }
}
