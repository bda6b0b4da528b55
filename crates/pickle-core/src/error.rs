//! Kinds of errors.

use crate::opcode::Opcode;

const DOWNLOAD: &str =
    "the file is damaged or cut short: fetch it again and compare its SHA-256 with the publisher's";
const REFUSED: &str = "do not load this file: no program that writes pickles produces it";
const BUG: &str = "this is a defect in the calling program, not in the file: please report it";

located_error::errors! {
    /// Why a pickle was refused. Offsets count from the start of the source and are those of the opcode.
    pub struct Error caused by located_error::AnyCause;

    /// What was wrong. Quantities are bytes unless the field says otherwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// The stream ends inside an opcode or before STOP. A loader has executed everything up to here.
        Truncated {
            /// The opcode, or `STOP` if one was expected.
            opcode: Opcode,
        } = "pk-truncated" (Invalid),
            "truncated pickle: {opcode} expected more bytes"
            => DOWNLOAD;
        /// The byte is none of the opcodes of protocols 0 to 5. Unpicklers stop here.
        Opcode {
            /// The byte.
            opcode: Opcode,
        } = "pk-opcode" (Invalid),
            "invalid opcode {opcode}"
            => DOWNLOAD;
        /// Protocols go from 0 to 5. Unpicklers refuse others.
        Protocol {
            /// The version in the file.
            found: u8,
        } = "pk-protocol" (Unsupported),
            "unsupported pickle protocol {found}"
            => "check that this is a pickle";
        /// The opcode takes more values than there are above the last MARK.
        Stack {
            /// The opcode.
            opcode: Opcode,
        } = "pk-stack" (Invalid),
            "stack underflow in {opcode}"
            => REFUSED;
        /// The opcode takes the values above a MARK, and there is none.
        Mark {
            /// The opcode.
            opcode: Opcode,
        } = "pk-mark" (Invalid),
            "{opcode} without MARK"
            => REFUSED;
        /// The memo has no entry at the index.
        Memo {
            /// The opcode.
            opcode: Opcode,
            /// The index.
            index: u64,
        } = "pk-memo" (Invalid),
            "{opcode} of memo entry {index}, which does not exist"
            => REFUSED;
        /// The index is not a number from 0 to 2^63 - 1.
        MemoIndex {
            /// The opcode.
            opcode: Opcode,
        } = "pk-memo-index" (Invalid),
            "{opcode} with an invalid memo index"
            => REFUSED;
        /// A string or a number in text that no unpickler decodes.
        Text {
            /// The opcode.
            opcode: Opcode,
        } = "pk-text" (Invalid),
            "invalid text in {opcode}"
            => REFUSED;
        /// An operand has a type that every unpickler refuses, or the number of operands is odd where pairs are expected.
        Operand {
            /// The opcode.
            opcode: Opcode,
        } = "pk-operand" (Invalid),
            "invalid operand of {opcode}"
            => REFUSED;
        /// Codes of the extension registry begin at 1.
        Extension {
            /// The code in the file.
            code: i32,
        } = "pk-extension" (Invalid),
            "extension code {code} is below 1"
            => REFUSED;
        /// The length is above 2^63 - 1.
        Length {
            /// The opcode.
            opcode: Opcode,
        } = "pk-length" (Invalid),
            "length in {opcode} is above 2^63 - 1"
            => REFUSED;
        /// Bytes between opcodes were expected inside a frame. The Python unpickler has read the whole frame by then and takes them from
        /// its end, others take them from here: the file has two meanings.
        RawInFrame {
            /// Bytes of the frame that are left.
            rest: u64,
        } = "pk-raw-in-frame" (Invalid),
            "array bytes are expected inside a frame that has {rest} bytes left"
            => REFUSED;
        /// The state of a joblib array does not say how many bytes follow.
        Array {} = "pk-array" (Invalid),
            "the length of a joblib array cannot be computed"
            => "the array is of a kind that joblib does not store as raw bytes: load it in a sandbox and save it again";
        /// A limit was reached. The rest of the file was not read.
        Limit {
            /// The field of `Limits`.
            limit: &'static str,
            /// Its value.
            allowed: u64,
        } = "pk-limit" (Invalid),
            "more than the limit `{limit}` of {allowed}"
            => "if you trust the file, raise the limit";
        /// Memory for the tree could not be allocated.
        OutOfMemory {} = "pk-memory" (Io),
            "cannot allocate memory for the values of the pickle"
            => "close other programs, or lower the limits";
        /// The source failed.
        Read {} = "pk-read" (Io),
            "cannot read the pickle"
            => "check that the file can be read";
        /// The machine was used after the end of a pickle or after an error.
        Ended {} = "pk-ended" (Internal),
            "the pickle has ended"
            => BUG;
    }
}

impl From<read_at::Error> for Error {
    fn from(cause: read_at::Error) -> Self {
        let mut error = Self::from(ErrorKind::Read {});
        error.0.cause = Some(alloc::boxed::Box::new(cause));
        error
    }
}

/// What a helper below the machine found; the machine knows the opcode.
#[derive(Debug)]
pub(crate) enum Fault {
    Truncated,
    Text,
    Stack,
    Mark,
    Operand,
    Length,
    MemoIndex,
    Memo(u64),
    Limit(&'static str, u64),
    Memory,
    Read(read_at::Error),
    Kind(ErrorKind),
}

impl Fault {
    pub(crate) fn of(self, opcode: Opcode) -> Error {
        match self {
            Self::Truncated => ErrorKind::Truncated { opcode }.into(),
            Self::Text => ErrorKind::Text { opcode }.into(),
            Self::Stack => ErrorKind::Stack { opcode }.into(),
            Self::Mark => ErrorKind::Mark { opcode }.into(),
            Self::Operand => ErrorKind::Operand { opcode }.into(),
            Self::Length => ErrorKind::Length { opcode }.into(),
            Self::MemoIndex => ErrorKind::MemoIndex { opcode }.into(),
            Self::Memo(index) => ErrorKind::Memo { opcode, index }.into(),
            Self::Limit(limit, allowed) => ErrorKind::Limit { limit, allowed }.into(),
            Self::Memory => ErrorKind::OutOfMemory {}.into(),
            Self::Read(error) => error.into(),
            Self::Kind(kind) => kind.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(located_error::problems(ErrorKind::TABLE, "pk-"), [""; 0]);
    }
}
