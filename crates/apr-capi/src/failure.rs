//! Errors as C gets them: a status, and the last error of the thread.

use alloc::ffi::CString;
use core::cell::RefCell;

use located_error::{Category, Located};

/// Result of a call: 0 for success, otherwise a group of errors. The numbers are the exit codes of the program `apr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// An argument is not valid: a null pointer, an index beyond the end, a buffer of another length, text that is not UTF-8.
    Usage = 2,
    /// The file is malformed, or its content is not what was asked for.
    Invalid = 3,
    /// A checksum, a signature, a key or a password does not match.
    Verification = 4,
    /// The operating system reported an error, or memory ran out.
    Io = 5,
    /// The file is of a format or version that is not read.
    Unsupported = 6,
    /// A defect of this library: the call was abandoned.
    Internal = 7,
}

/// Why a call failed.
#[derive(Debug)]
pub struct Failure {
    /// The group.
    pub status: Status,
    /// Stable identifier, for example `st-offsets`.
    pub code: &'static str,
    /// What is wrong and where, in one line.
    pub message: String,
    /// What to do next; empty where nothing can be said.
    pub help: &'static str,
    /// Bytes from the start of the file, where it is known.
    pub offset: Option<u64>,
}

/// A call with arguments that cannot be used.
pub(crate) fn usage(message: &str) -> Failure {
    Failure {
        status: Status::Usage,
        code: "api-usage",
        message: message.to_owned(),
        help: "see docs/c.md for what the function expects",
        offset: None,
    }
}

impl<E: Located> From<E> for Failure {
    fn from(error: E) -> Self {
        let entry = error.entry();
        let status = match entry.map_or(Category::Internal, |entry| entry.category) {
            Category::Usage => Status::Usage,
            Category::Invalid => Status::Invalid,
            Category::Verification => Status::Verification,
            Category::Io | Category::Stopped => Status::Io,
            Category::Unsupported => Status::Unsupported,
            _ => Status::Internal,
        };
        Self {
            status,
            code: error.code(),
            message: error.to_string(),
            help: entry.map_or("", |entry| entry.remedy),
            offset: error.location().offset,
        }
    }
}

/// The last error of a thread, with texts that end in a zero byte.
#[derive(Debug)]
pub(crate) struct Last {
    pub(crate) status: Status,
    pub(crate) code: CString,
    pub(crate) message: CString,
    pub(crate) help: CString,
    pub(crate) offset: u64,
}

std::thread_local! {
    static LAST: RefCell<Option<Box<Last>>> = const { RefCell::new(None) };
}

/// Keeps the error for [`with_last`] and returns its status.
pub(crate) fn keep(failure: Failure) -> Status {
    let status = failure.status;
    let last = Last {
        status,
        code: terminated(failure.code),
        message: terminated(&failure.message),
        help: terminated(failure.help),
        offset: failure.offset.unwrap_or(u64::MAX),
    };
    // A thread that ends has no last error any more, while destructors of its other variables may still call.
    let _ = LAST.try_with(|slot| *slot.borrow_mut() = Some(Box::new(last)));
    status
}

/// Runs `read` on the last error of this thread, if there was one.
pub(crate) fn with_last<T>(read: impl FnOnce(&Last) -> T) -> Option<T> {
    LAST.try_with(|slot| slot.borrow().as_deref().map(read)).ok().flatten()
}

/// The text with a zero byte at its end; one inside it becomes a replacement character.
pub(crate) fn terminated(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default())
}
