//! Numbers in text.

use core::fmt;

/// A float in as few digits as give it back, with an exponent where there would be many zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// Of 32 bits.
    F32(f32),
    /// Of 64 bits.
    F64(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |size: f64| size == 0.0 || (1e-5..1e16).contains(&size) || !size.is_finite();
        match *self {
            Self::F32(value) if is_plain(value.abs().into()) => write!(f, "{value}"),
            Self::F32(value) => write!(f, "{value:e}"),
            Self::F64(value) if is_plain(value.abs()) => write!(f, "{value}"),
            Self::F64(value) => write!(f, "{value:e}"),
        }
    }
}
