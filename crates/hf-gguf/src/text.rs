//! Texts of files.

use alloc::borrow::Cow;

use crate::error::{Error, ErrorKind};

/// The text of a file.
pub(crate) fn utf8<'b>(file: &str, bytes: &'b [u8]) -> Result<&'b str, Error> {
    core::str::from_utf8(bytes)
        .map_err(|error| Error::from(ErrorKind::NotUtf8 { file: file.into() }).at(error.valid_up_to() as u64))
}

/// The text of a file as Python reads it: every end of a line is a line feed.
pub(crate) fn python_text<'b>(file: &str, bytes: &'b [u8]) -> Result<Cow<'b, str>, Error> {
    let text = utf8(file, bytes)?;
    if !text.contains('\r') {
        return Ok(text.into());
    }
    Ok(text.replace("\r\n", "\n").replace('\r', "\n").into())
}
