//! Sealed files: parts of another file, encrypted and signed, of which any range can be read.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use apr_crypto::VerifyingKey;
use apr_sealed::{Error, SealedHeader, SealedLimits, SealedReader, StanzaKind};
use read_at::{CachedPages, ReadAt as _};

use super::whole;
use crate::failure::Failure;
use crate::json::Json;
use crate::keys::{Keys, signer_json};
use crate::values;
use crate::wire::{Arguments, Outcome};

pub(super) type Reader = SealedReader<'static, Rc<RefCell<CachedPages>>>;

/// Fewest bytes asked for at once, if the file has so many.
const LEAST: u64 = 64 << 10;

/// What a failed reader needs, or why it failed.
fn outcome(pages: &CachedPages, error: Error) -> Outcome {
    match read_at::missing_range(&error) {
        Some(range) => {
            let len = (range.end - range.start).max(LEAST).min(pages.total_len() - range.start);
            Outcome::Need { offset: range.start, len }
        }
        None => error.into(),
    }
}

pub(super) fn describe(pages: &Rc<RefCell<CachedPages>>, json: &mut Json) -> Result<(), Outcome> {
    let header = SealedHeader::read(pages, &SealedLimits::default());
    let header = header.map_err(|error| outcome(&pages.borrow(), error))?;
    let mut metadata = Json::object();
    for (key, value) in header.public_declared() {
        metadata.foreign_key(key);
        metadata.bare_text(value);
    }
    json.raw("metadata", &metadata.finish());
    json.raw("tensors", "[]");
    json.raw("model", "null");
    json.raw("warnings", "[]");
    json.truth("encrypted", header.is_encrypted());
    json.truth("signed", header.is_signed());
    let has = |kind: StanzaKind| header.stanzas().contains(&kind);
    let lock = match header.is_encrypted() {
        true if has(StanzaKind::Password) && !has(StanzaKind::Recipient) => Some("password"),
        true => Some("recipient"),
        false => None,
    };
    json.optional("lock", lock);
    let declared = header.signer_declared().and_then(|key| VerifyingKey::from_bytes(&key).ok());
    let declared = declared.map(|key| signer_json(&key, false));
    json.raw("declaredSigner", declared.as_deref().unwrap_or("null"));
    Ok(())
}

/// The keys.
pub(super) fn verify(
    pages: &Rc<RefCell<CachedPages>>,
    args: &mut Arguments<'_>,
    json: &mut Json,
) -> Result<(), Outcome> {
    let keys = Keys::read(args)?;
    whole(&pages.borrow())?;
    let signer = apr_sealed::verify(pages, keys.trust(), &SealedLimits::default())?;
    json.raw("signer", keys.signer(signer).as_deref().unwrap_or("null"));
    Ok(())
}

/// The keys.
pub(super) fn open(
    pages: &Rc<RefCell<CachedPages>>,
    args: &mut Arguments<'_>,
    json: &mut Json,
) -> Result<Reader, Outcome> {
    let keys = Keys::read(args)?;
    let reader = SealedReader::open(Rc::clone(pages), &keys.access(), &SealedLimits::default());
    let reader = reader.map_err(|error| outcome(&pages.borrow(), error))?;
    let signer = reader.signer().and_then(|signer| keys.signer(signer));
    json.raw("signer", signer.as_deref().unwrap_or("null"));
    json.number("contentLength", reader.content_len());
    let mut private = Json::object();
    for (key, value) in reader.private_metadata() {
        private.foreign_key(key);
        private.bare_text(value);
    }
    json.raw("privateMetadata", &private.finish());
    Ok(reader.forget_names())
}

/// Bytes of the original file.
pub(super) fn content(
    pages: &Rc<RefCell<CachedPages>>,
    reader: &Reader,
    from: u64,
    len: u64,
) -> Result<Vec<u8>, Outcome> {
    let beyond = || Failure::new("aw-range", "bytes beyond the end of the file");
    let end = from.checked_add(len).filter(|&end| end <= reader.content_len()).ok_or_else(beyond)?;
    let mut out = Vec::new();
    let len = usize::try_from(len).map_err(|_| values::too_many())?;
    out.try_reserve_exact(len).map_err(|_| values::too_many())?;
    out.resize(len, 0);
    let mut begin = 0_u64;
    for (idx, part) in reader.parts().iter().enumerate() {
        let part_end = begin + part.len();
        if part_end > from && begin < end {
            let (first, last) = (from.max(begin), end.min(part_end));
            let place = out.get_mut((first - from) as usize..(last - from) as usize).ok_or_else(beyond)?;
            let done = reader.read_part(idx, first - begin, place);
            done.map_err(|error| outcome(&pages.borrow(), error))?;
        }
        begin = part_end;
    }
    Ok(out)
}
