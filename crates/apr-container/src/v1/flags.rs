//! The flags of a header of version 1.

use crate::flags::flags;

/// Eight flags; a reader of this crate acts on [`ENCRYPTED`](Self::ENCRYPTED) and [`SIGNED`](Self::SIGNED) and reports
/// the rest.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

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
