//! Code shared by the payload layouts of several models.

pub(crate) mod fields;
pub(crate) mod header;
pub(crate) mod values;

/// Gives the alternatives of an enum their numbers in files, which count them as they are declared.
macro_rules! variants {
    ($name:ident: $($variant:ident)*) => {
        impl $name {
            pub(crate) const fn variant(self) -> u32 {
                self as u32
            }

            pub(crate) fn of_variant(variant: u64) -> Option<Self> {
                [$(Self::$variant),*].into_iter().find(|known| u64::from(known.variant()) == variant)
            }
        }
    };
}
pub(crate) use variants;
