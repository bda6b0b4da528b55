//! What answers of the hub declare.

use crate::cache::COMMIT_LEN;
use crate::error::{Error, ErrorKind};
use crate::pin::{is_hex, text};
use crate::transport::Answer;

/// What an answer of the hub declares about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) commit: Option<String>,
    /// SHA-256 of the content, in lower case.
    pub(crate) sha256: Option<String>,
    pub(crate) size: Option<u64>,
}

impl Declared {
    pub(crate) fn add(&mut self, answer: &Answer) {
        let given = |name| text(&answer.headers, name);
        let commit = given("x-repo-commit").filter(|commit| is_hex(commit, COMMIT_LEN));
        let sha256 =
            given("x-linked-etag").map(|tag| tag.trim_matches('"')).filter(|digits| is_hex(digits, 64));
        let size = given("x-linked-size").and_then(|size| size.parse().ok());
        self.commit = commit.map(str::to_owned).or(self.commit.take());
        self.sha256 = sha256.map(str::to_owned).or(self.sha256.take());
        self.size = size.or(self.size);
    }

    /// # Errors
    ///
    /// [`ErrorKind::Range`] if another length is declared.
    pub(crate) fn check_len(&self, len: u64) -> Result<(), Error> {
        match self.size {
            Some(size) if size != len => {
                Err(ErrorKind::Range { problem: "its length is not the one that the hub declares" }.into())
            }
            _ => Ok(()),
        }
    }
}
