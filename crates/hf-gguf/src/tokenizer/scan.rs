//! Large JSON files: their large parts are read from the scanner, the others as trees of bounded size.

use alloc::boxed::Box;

use json_scan::{RawStr, Scanner};

use crate::error::{Error, ErrorKind};
use crate::json::Json;

/// Most bytes of a file that become trees.
const MAX_TREE: usize = 16 << 20;
/// Arrays and objects within one another.
const MAX_DEPTH: usize = 64;

/// An error while a file is scanned.
pub(super) enum Stop {
    Scan(json_scan::Error),
    Own(Error),
}

/// Reads values as trees, and counts their bytes.
#[derive(Debug)]
pub(super) struct Trees {
    file: &'static str,
    used: usize,
}

impl From<json_scan::Error> for Stop {
    fn from(error: json_scan::Error) -> Self {
        Self::Scan(error)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Own(error)
    }
}

impl Stop {
    /// The error, of this file.
    pub(super) fn in_file(self, file: &str) -> Error {
        match self {
            Self::Own(error) => error,
            Self::Scan(error) => {
                let kind = ErrorKind::Json { file: file.into(), what: error.kind() };
                Error::from(kind).at(error.offset() as u64)
            }
        }
    }
}

impl Trees {
    pub(super) const fn of(file: &'static str) -> Self {
        Self { file, used: 0 }
    }

    /// A member of an object, with the white space after it.
    pub(super) fn member(
        &mut self,
        scanner: &mut Scanner<'_>,
        name: RawStr<'_>,
    ) -> Result<(Box<str>, Json), Stop> {
        let name: Box<str> = name.unescape().into();
        let begin = scanner.pos();
        scanner.skip_value(MAX_DEPTH)?;
        let text = scanner.text_from(begin);
        self.used += name.len() + text.len();
        if self.used > MAX_TREE {
            return Err(ErrorKind::limit(self.file, "bytes besides its vocabulary", MAX_TREE).into());
        }
        let value =
            Json::from_bytes(self.file, text.as_bytes()).map_err(|error| error.shifted(begin as u64))?;
        scanner.skip_white_space();
        Ok((name, value))
    }
}
