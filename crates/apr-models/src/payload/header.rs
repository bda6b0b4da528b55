//! The payload header of the layouts that this project defines (`docs/payloads.md`, section 1), little-endian:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | version of the layout |
//! | 4 | 4 | form: which model of the model type follows, from 1 |

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::ErrorKind;

/// The version written, and the only one there is.
const VERSION: u32 = 1;

/// The first eight bytes of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    /// The header of a layout of this project, with its form.
    Form(u32),
    /// The count of a bare list of `f32`, which other writers store under the same model types.
    BareNumbers(u64),
}

fn read(input: &mut PayloadReader<'_>) -> Result<Header, apr_container::Error> {
    let header = input.u64()?;
    let (version, form) = (header as u32, (header >> 32) as u32);
    if form == 0 {
        return Ok(Header::BareNumbers(header));
    }
    if version != VERSION {
        return Err(error(ErrorKind::Layout { found: version, known: VERSION }));
    }
    Ok(Header::Form(form))
}

/// Reads the header of a model type that has forms 1 to `n_forms`.
pub(crate) fn read_form(input: &mut PayloadReader<'_>, n_forms: u32) -> Result<u32, apr_container::Error> {
    match read(input)? {
        Header::Form(form) if form <= n_forms => Ok(form),
        Header::Form(found) => Err(error(ErrorKind::Form { found, known: n_forms })),
        Header::BareNumbers(count) => Err(error(ErrorKind::BareNumbers { count })),
    }
}

/// Reads the header of a model that has the form `expected` of the `n_forms` of its type.
pub(crate) fn expect_form(
    input: &mut PayloadReader<'_>,
    expected: u32,
    n_forms: u32,
) -> Result<(), apr_container::Error> {
    match read_form(input, n_forms)? {
        form if form == expected => Ok(()),
        found => Err(error(ErrorKind::OtherForm { found, expected })),
    }
}

/// Writes the header.
pub(crate) fn write(out: &mut PayloadWriter<'_>, form: u32) -> Result<(), apr_container::Error> {
    out.u32(VERSION)?;
    out.u32(form)
}

fn error(kind: ErrorKind) -> apr_container::Error {
    crate::error::Error::from(kind).into()
}
