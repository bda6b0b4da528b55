//! Two crates' errors, one of which wraps the other's.

use core::error::Error as _;
use std::path::Path;

use located_error::{AnyCause, Category, Located, Subject, problems};

mod lower {
    const REMEDY: &str = "fetch the file again";

    located_error::errors! {
        /// Of the lower crate.
        #[derive(Clone, PartialEq, Eq)]
        pub struct Error;

        /// Kinds of the lower crate.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum ErrorKind {
            /// The format calls for more bytes. They are missing at the end of the file,
            /// as after an interrupted download.
            Truncated {
                /// Bytes needed.
                expected: u64,
                /// Bytes present.
                found: u64,
            } = "lo-truncated" (Invalid), "expected {expected} bytes, found {found}" => REMEDY;
            /// The name occurs twice.
            Duplicate {
                /// The name.
                name: Box<str>,
            } = "lo-duplicate" (Invalid) if "std", "duplicate name of {} bytes", name.len() => REMEDY;
        }
    }
}

mod upper {
    use super::AnyCause;

    located_error::errors! {
        /// Of the upper crate.
        pub struct Error caused by AnyCause, with path;

        /// Kinds of the upper crate.
        #[derive(Debug)]
        pub enum ErrorKind {
            /// The operating system reported an error.
            Io {
                /// What was attempted.
                operation: &'static str,
            } = "up-io" (Io), "cannot {operation}" => "check the path";
            /// A message could not be written.
            Format {
                /// What was attempted.
                operation: &'static str,
                /// The reason.
                error: core::fmt::Error,
            } = "up-format" (Internal) from error, "cannot {operation} the message" => "report it";
        }

        wrapped {
            /// The bytes are malformed.
            Lower(super::lower::Error);
        }
    }

    impl Error {
        pub(crate) fn caused_by(mut self, cause: impl Into<AnyCause>) -> Self {
            self.0.cause = Some(cause.into());
            self
        }
    }
}

#[test]
fn tables_are_in_order() {
    assert!(problems(lower::ErrorKind::TABLE, "lo-").is_empty());
    assert_eq!(lower::ErrorKind::CODES, ["lo-truncated", "lo-duplicate"]);
    let [truncated, duplicate] = lower::ErrorKind::TABLE else { panic!("two kinds are compiled") };
    assert_eq!(truncated.message, "expected {expected} bytes, found {found}");
    assert_eq!(
        truncated.meaning,
        "The format calls for more bytes. They are missing at the end of the file, as after an interrupted download."
    );
    assert_eq!((duplicate.code, duplicate.category), ("lo-duplicate", Category::Invalid));
}

#[test]
fn the_innermost_place_stays() {
    let error = lower::Error::from(lower::ErrorKind::Duplicate { name: "abc".into() });
    let error = error.at(1).at(2).shifted(8).of(Subject::tensor("a")).of(Subject::key("b"));
    assert_eq!(error.to_string(), "duplicate name of 3 bytes, tensor \"a\", at byte 9");
    assert_eq!(
        format!("{error:?}"),
        "Error { kind: Duplicate { name: \"abc\" }, offset: 9, subject: Tensor(\"a\") }"
    );
    assert_eq!(error.clone(), error);
}

#[test]
fn a_wrapped_error_keeps_code_message_and_location() {
    let inner = lower::Error::from(lower::ErrorKind::Truncated { expected: 44, found: 0 }).at(8);
    let entry = inner.entry();
    let error = upper::Error::from(inner).in_file(Path::new("a\n.bin"));
    assert_eq!((error.code(), error.offset(), error.entry()), ("lo-truncated", Some(8), entry));
    assert_eq!(error.message().to_string(), "expected 44 bytes, found 0");
    assert_eq!(error.to_string(), "a\\n.bin: expected 44 bytes, found 0, at byte 8");
    assert_eq!(error.location().path, Some(Path::new("a\n.bin")));
    assert!(error.source().is_none(), "its text is part of the message");
    // The same through a box and through a trait object.
    let boxed: Box<dyn Located> = Box::new(Box::new(error));
    assert_eq!((boxed.code(), boxed.location().offset), ("lo-truncated", Some(8)));
}

#[test]
fn a_cause_is_the_source() {
    let error = upper::Error::from(upper::ErrorKind::Io { operation: "read" }).caused_by(core::fmt::Error);
    assert_eq!(error.to_string(), "cannot read");
    assert!(error.source().is_some_and(<dyn core::error::Error>::is::<core::fmt::Error>));
    assert_eq!(error.entry().map(|entry| entry.category), Some(Category::Io));
    let error = upper::Error::from(upper::ErrorKind::Format { operation: "write", error: core::fmt::Error });
    assert_eq!(error.to_string(), "cannot write the message");
    assert!(error.source().is_some_and(<dyn core::error::Error>::is::<core::fmt::Error>));
}

#[test]
fn the_innermost_location_is_kept() {
    let inner =
        lower::Error::from(lower::ErrorKind::Truncated { expected: 1, found: 0 }).of(Subject::tensor("a"));
    let error =
        upper::Error::from(inner).of(Subject::tensor("b")).in_file(Path::new("c")).in_file(Path::new("d"));
    assert_eq!(error.to_string(), "c: expected 1 bytes, found 0, tensor \"a\"");
    assert_eq!((error.subject().map(Subject::name), error.path()), (Some("a"), Some(Path::new("c"))));
}
