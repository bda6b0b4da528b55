//! How kinds of errors are declared.

/// Writes a text with the fields that it names, or with arguments of its own. The fields are references: dereferenced, or each argument
/// would be a reference to one.
macro_rules! text {
    ($f:ident, $text:literal, [$($field:ident)*]) => {
        write!($f, $text, $($field = *$field),*)
    };
    ($f:ident, $text:literal, [$($field:ident)*] $($arg:expr),+) => {
        write!($f, $text, $($arg),+)
    };
}

pub(super) use text;

/// Declares the kinds of errors, each once, with its code and its text.
///
/// A kind behind whose code a feature is named is met only by what that feature adds.
macro_rules! error_kinds {
    ($($(#[$doc:meta])* $variant:ident $({ $($(#[$field_doc:meta])* $field:ident: $ty:ty),* $(,)? })?
        => $code:literal $(if $feature:literal)?, $text:literal $(, $arg:expr)*;)*) => {
        /// What was wrong. Quantities are bytes unless the field says otherwise.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $(#[cfg(feature = $feature)])? $variant $({ $($(#[$field_doc])* $field: $ty),* })?,)*
            /// A model's constructor refuses the decoded parts.
            Model(ModelError),
            /// No randomness, no memory, or a key that protects nothing.
            #[cfg(feature = "crypto")]
            Crypto(Box<apr_crypto::Error>),
            /// The file cannot be opened or replaced.
            #[cfg(feature = "std")]
            File(durable_file::Error),
            /// The file cannot be read or written.
            #[cfg(feature = "std")]
            Io(std::io::Error),
        }

        /// Where in the list of identifiers that of a kind stands.
        enum Place {
            $($(#[cfg(feature = $feature)])? $variant,)*
        }

        impl ErrorKind {
            /// Every identifier [`Error::code`] can return, but for those of wrapped errors.
            pub const CODES: &'static [&'static str] = &[$($(#[cfg(feature = $feature)])? $code,)* "ac-io"];

            /// Stable identifier of the kind.
            #[must_use]
            pub fn code(&self) -> &'static str {
                let place = match self {
                    $($(#[cfg(feature = $feature)])? Self::$variant $({ $($field: _),* })? => Place::$variant,)*
                    Self::Model(error) => return error.code,
                    #[cfg(feature = "crypto")]
                    Self::Crypto(error) => return error.code(),
                    #[cfg(feature = "std")]
                    Self::File(error) => return error.code(),
                    #[cfg(feature = "std")]
                    Self::Io(_) => return "ac-io",
                };
                Self::CODES.get(place as usize).copied().unwrap_or_default()
            }
        }

        impl fmt::Display for ErrorKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$variant $({ $($field),* })? => {
                        $crate::error::kinds::text!(f, $text, [$($($field)*)?] $($arg),*)
                    })*
                    Self::Model(error) => error.source.fmt(f),
                    #[cfg(feature = "crypto")]
                    Self::Crypto(error) => error.fmt(f),
                    #[cfg(feature = "std")]
                    Self::File(error) => error.fmt(f),
                    #[cfg(feature = "std")]
                    Self::Io(error) => write!(f, "cannot read or write the file: {error}"),
                }
            }
        }
    };
}
pub(super) use error_kinds;
