//! Adapter that implements serde's error traits.

use alloc::string::String;
use core::fmt::{self, Write};

use crate::error::{Error, ErrorKind};

/// Bytes of a type's message that are kept: it may quote the file.
const KEPT: usize = 512;

/// Why a value was refused.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) Error);

impl Refusal {
    fn custom(message: &dyn fmt::Display) -> Self {
        let mut kept = Message(String::new());
        // Fails when the message is longer than what is kept.
        let _ = write!(kept, "{message}");
        Self(ErrorKind::Custom { message: kept.0.into() }.into())
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<ErrorKind> for Refusal {
    fn from(kind: ErrorKind) -> Self {
        Self(kind.into())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl core::error::Error for Refusal {}

impl serde::ser::Error for Refusal {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::custom(&message)
    }
}

impl serde::de::Error for Refusal {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::custom(&message)
    }
}

/// The beginning of a text.
struct Message(String);

impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let space = KEPT - self.0.len();
        let kept = text.get(..text.floor_char_boundary(space)).unwrap_or_default();
        self.0.push_str(kept);
        if kept.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_between_characters() {
        let refusal = <Refusal as serde::de::Error>::custom(format_args!("a{}b", "é".repeat(1 << 20)));
        let ErrorKind::Custom { message } = refusal.0.kind() else { panic!("{refusal}") };
        assert_eq!(message.len(), 511);
        assert!(message.starts_with("aéé") && message.ends_with('é'));
        let refusal = <Refusal as serde::ser::Error>::custom("short");
        assert_eq!((alloc::format!("{refusal}").as_str(), refusal.0.code()), ("short", "ac-custom"));
    }
}
