//! Numbers that rows are made of.

use crate::batch::Problem;

/// Which cells a number may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Whether nulls and NaN are values that are missing: NaN.
    pub missing: bool,
    /// Whether infinities are values.
    pub infinite: bool,
}

impl Accepted {
    /// Finite numbers alone.
    pub const FINITE: Self = Self { missing: false, infinite: false };

    /// The accepted number that a float is.
    ///
    /// # Errors
    ///
    /// If it is NaN or infinite and that is not accepted, or beyond what `T` can hold.
    pub fn float<T: Value>(self, value: f64) -> Result<T, Problem> {
        let narrow = T::of_f64(value);
        let is_accepted = match value {
            _ if value.is_nan() => self.missing,
            _ if value.is_infinite() => self.infinite,
            _ if narrow.is_infinite() => return Err(Problem::TooLarge(value, T::N_BITS)),
            _ => true,
        };
        if is_accepted { Ok(narrow) } else { Err(Problem::NotFinite(value)) }
    }
}

/// `f32` or `f64`. Conversions round to nearest, ties to even.
pub trait Value: Copy + Default + 'static {
    /// A value that is missing.
    const NAN: Self;
    /// Bits of the type.
    const N_BITS: u32;
    #[doc(hidden)]
    fn of_i64(value: i64) -> Self;
    #[doc(hidden)]
    fn of_u64(value: u64) -> Self;
    #[doc(hidden)]
    fn of_f64(value: f64) -> Self;
    #[doc(hidden)]
    fn is_infinite(self) -> bool;
}

macro_rules! value {
    ($type:ty, $bits:literal) => {
        #[allow(clippy::cast_possible_truncation, reason = "it rounds, and is one of two widths")]
        impl Value for $type {
            const NAN: Self = <$type>::NAN;
            const N_BITS: u32 = $bits;

            fn of_i64(value: i64) -> Self {
                value as Self
            }

            fn of_u64(value: u64) -> Self {
                value as Self
            }

            fn of_f64(value: f64) -> Self {
                value as Self
            }

            fn is_infinite(self) -> bool {
                <$type>::is_infinite(self)
            }
        }
    };
}

value!(f32, 32);
value!(f64, 64);
