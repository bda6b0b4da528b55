//! Media types of bodies and answers.

use hyper::StatusCode;
use hyper::header::{self, HeaderMap};

use crate::csv::Header;
use crate::refusal::Refusal;
use crate::request::{AnswerForm, Form};

pub(crate) const JSON: &str = "application/json";
pub(crate) const FLOATS: &str = "application/vnd.apr.f32";
pub(crate) const CLASSES: &str = "application/vnd.apr.u32";
#[cfg(feature = "msgpack")]
pub(crate) const MESSAGE_PACK: &str = "application/msgpack";
#[cfg(feature = "arrow")]
pub(crate) const ARROW: &str = "application/vnd.apache.arrow.stream";

/// What bodies may be.
pub(crate) fn accepted() -> String {
    let always = ["application/json", "text/csv", "application/octet-stream", FLOATS];
    let more = [
        #[cfg(feature = "msgpack")]
        MESSAGE_PACK,
        #[cfg(feature = "arrow")]
        ARROW,
    ];
    let all: Vec<&str> = always.into_iter().chain(more).collect();
    all.join(", ")
}

/// A body of a type that is not read.
pub(crate) fn refused(what: &str) -> Refusal {
    let help = "the field Accept of this answer lists the types";
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "sv-media-type", what, help)
}

/// Refuses a compressed body.
pub(crate) fn check_plain(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(value) if !value.as_bytes().eq_ignore_ascii_case(b"identity") => {
            Err(refused("the body is compressed"))
        }
        _ => Ok(()),
    }
}

/// The format of a body, by its media type.
pub(crate) fn form(media_type: &str, n_columns: Option<usize>) -> Result<Form, Refusal> {
    let essence = media_type.split_once(';').map_or(media_type, |(essence, _)| essence).trim();
    let is = |name: &str| essence.eq_ignore_ascii_case(name);
    if is(JSON) {
        Ok(Form::Json)
    } else if is(FLOATS) || is("application/octet-stream") {
        Ok(Form::Raw { n_columns })
    } else if is("text/csv") {
        Ok(Form::Csv { header: header_of(media_type) })
    } else {
        binary(essence)
            .map(|(form, _)| form)
            .ok_or_else(|| refused(&format!("media type `{essence}` is not supported")))
    }
}

/// The format of an answer: of those that values of `Accept` name, the one with the highest quality, the first among equals (RFC 9110,
/// section 12.5.1). JSON where none is.
pub(crate) fn answer_form<'v>(values: impl IntoIterator<Item = &'v str>) -> AnswerForm {
    let mut best = (AnswerForm::Json, 0.0);
    for range in values.into_iter().flat_map(|value| value.split(',')) {
        let mut parts = range.split(';');
        let essence = parts.next().unwrap_or_default().trim();
        let is_json = [JSON, "application/*", "*/*"].iter().any(|name| essence.eq_ignore_ascii_case(name));
        let form = if is_json { Some(AnswerForm::Json) } else { binary(essence).map(|(_, form)| form) };
        let Some(form) = form else { continue };
        let quality = parts
            .filter_map(|part| part.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
            .map_or(1.0, |(_, value)| value.trim().parse().unwrap_or(0.0));
        if quality > best.1 {
            best = (form, quality);
        }
    }
    best.0
}

/// MessagePack, under its registered name and older ones, and Arrow IPC.
fn binary(essence: &str) -> Option<(Form, AnswerForm)> {
    match essence.to_ascii_lowercase().as_str() {
        #[cfg(feature = "msgpack")]
        MESSAGE_PACK | "application/x-msgpack" | "application/vnd.msgpack" => {
            Some((Form::MessagePack, AnswerForm::MessagePack))
        }
        #[cfg(feature = "arrow")]
        ARROW => Some((Form::Arrow, AnswerForm::Arrow)),
        _ => None,
    }
}

/// Whether a table has a header line, by the parameter of its media type (RFC 4180, section 3).
fn header_of(media_type: &str) -> Header {
    let of = |parameter: &str| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        match name.trim().eq_ignore_ascii_case("header") {
            true if value.eq_ignore_ascii_case("present") => Some(Header::Present),
            true if value.eq_ignore_ascii_case("absent") => Some(Header::Absent),
            _ => None,
        }
    };
    media_type.split(';').skip(1).find_map(of).unwrap_or(Header::Auto)
}
