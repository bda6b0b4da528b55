//! What happened to an input.

use core::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::error::Exit;

/// The result of an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outcome {
    pub(crate) input: String,
    pub(crate) exit: u8,
    /// Of what is wrong with it.
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    /// Of a scan.
    pub(crate) verdict: Option<String>,
    pub(crate) outputs: Vec<OutputFile>,
}

/// A file that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputFile {
    /// Below the folder of the outputs, with `/`.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// In lower-case hexadecimal digits.
    pub(crate) sha256: String,
}

/// The worst of some exit codes.
pub(crate) fn worst(exits: impl IntoIterator<Item = u8>) -> Exit {
    const ORDER: [Exit; 8] = [
        Exit::Internal,
        Exit::Io,
        Exit::Refused,
        Exit::Invalid,
        Exit::Unsupported,
        Exit::Usage,
        Exit::Different,
        Exit::Success,
    ];
    let rank = |exit: u8| ORDER.iter().position(|known| *known as u8 == exit).unwrap_or(0);
    let worst = exits.into_iter().map(rank).max_by_key(|rank| Reverse(*rank));
    worst.and_then(|rank| ORDER.get(rank).copied()).unwrap_or(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_exit_code_counts() {
        assert_eq!(worst([]), Exit::Success);
        assert_eq!(worst([0, 6, 0]), Exit::Unsupported);
        assert_eq!(worst([3, 6, 4, 2]), Exit::Refused);
        assert_eq!(worst([0, 5, 4]), Exit::Io);
        assert_eq!(worst([99, 5]), Exit::Internal);
    }
}
