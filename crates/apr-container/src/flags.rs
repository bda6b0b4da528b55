//! The flags of headers.

/// Declares the named flags of `Flags`, a newtype of an integer, and its methods.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Flags {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*

            const NAMES: &'static [(Self, &'static str)] = &[$((Self::$name, stringify!($name))),*];

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

            /// Names of the set flags, lowest bit first; reserved bits have none.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::NAMES.iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| *name)
            }
        }

        impl core::fmt::Debug for Flags {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "0x{:0width$X}{{", self.0, width = 2 * size_of::<Self>())?;
                for (idx, name) in self.names().enumerate() {
                    write!(f, "{}\"{name}\"", if idx > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    };
}

pub(crate) use flags;
