//! The first eight bytes of a payload layout of our own: its version and which form of the model type follows
//! (`docs/payloads.md`, section 1).

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::ErrorKind;

/// The version written, and the only one there is.
const LAYOUT: u32 = 1;

/// What a payload begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// A layout of our own, in this form.
    Form(u32),
    /// The count of a bare list of `f32`, which other writers store under the same model types.
    Numbers(u64),
}

/// Reads the first eight bytes.
fn read_head(input: &mut PayloadReader<'_>) -> Result<Head, apr_container::Error> {
    let head = input.u64()?;
    let (layout, form) = (head as u32, (head >> 32) as u32);
    if form == 0 {
        return Ok(Head::Numbers(head));
    }
    if layout != LAYOUT {
        return Err(refusal(ErrorKind::Layout { found: layout, known: LAYOUT }));
    }
    Ok(Head::Form(form))
}

/// Reads the first eight bytes of a model type that has forms 1 to `n_forms`.
pub(crate) fn read_form(input: &mut PayloadReader<'_>, n_forms: u32) -> Result<u32, apr_container::Error> {
    match read_head(input)? {
        Head::Form(form) if form <= n_forms => Ok(form),
        Head::Form(found) => Err(unknown_form(found, n_forms)),
        Head::Numbers(count) => Err(refusal(ErrorKind::BareNumbers { count })),
    }
}

/// Reads the first eight bytes of a model that has the one form `expected` of the `n_forms` of its type.
pub(crate) fn expect_form(
    input: &mut PayloadReader<'_>,
    expected: u32,
    n_forms: u32,
) -> Result<(), apr_container::Error> {
    match read_form(input, n_forms)? {
        form if form == expected => Ok(()),
        found => Err(refusal(ErrorKind::OtherForm { found, expected })),
    }
}

fn unknown_form(found: u32, known: u32) -> apr_container::Error {
    refusal(ErrorKind::Form { found, known })
}

/// Writes the first eight bytes.
pub(crate) fn write_head(out: &mut PayloadWriter<'_>, form: u32) -> Result<(), apr_container::Error> {
    out.u32(LAYOUT)?;
    out.u32(form)
}

fn refusal(kind: ErrorKind) -> apr_container::Error {
    crate::error::Error::from(kind).into()
}
