//! Containers of version 1: header, metadata, payload, `inspect`, signature.

use apr_container::v1::{Container, Header, Payload};
use apr_container::{
    Compression, Metadata, ReadOptions, UncheckedSignature, inspect_bytes_with, inspect_prefix,
};
use serde_json::Value;

use super::vectors::{self, Content, File, HeaderFacts, Protection, V1File, Vectors};
use crate::digest::sha256_hex;
use crate::matrix::{Outcome, Suite};
use crate::vectors::Error;

const COLUMNS: &[&str] = &["header", "metadata", "`inspect`", "payload", "signature"];

const ABOUT: &str = "\
Files of three releases of aprender, by the compression they really have. The header has to say what its sidecar says; the metadata, read and
written again by us, have to be what the peers' own library reads there, value by value; `inspect` has to
give the same without reading a byte of the payload; the payload, decompressed, has to have the recorded
digest, an encrypted one has to stay encrypted, and a signature block has to lie where it was put.";

/// Runs every container of version 1.
///
/// # Errors
///
/// A vector that cannot be read from disk.
pub fn suite(vectors: &Vectors) -> Result<Suite, Error> {
    let mut suite = Suite::new("apr, version 1: containers", ABOUT, COLUMNS);
    for file in &vectors.files {
        let Content::V1(facts) = &file.content else { continue };
        let bytes = vectors::read(&file.name)?;
        let row = format!("{}: {}", file.peer, Compression(facts.header.compression));
        let payload = vectors.payload(&facts.payload)?;
        let options = ReadOptions::STRICT.with_unchecked_signature(UncheckedSignature::Allow);
        let outcomes = match Container::from_bytes_with(&bytes, &options) {
            Ok(container) => [
                Outcome::from_failure(
                    "equal",
                    header_differs(container.header(), facts, container.checksum()),
                ),
                Outcome::from_failure("equal", metadata_differ(&container, &facts.metadata)),
                Outcome::from_failure("equal", inspect_differs(&bytes, file, facts)),
                payload_outcome(&container, facts.protection, payload),
                signature_outcome(&container, &bytes, facts.protection),
            ],
            Err(error) => [(); 5].map(|()| Outcome::Wrong(error.to_string())),
        };
        suite.record(&row, &file.name, outcomes);
    }
    Ok(suite)
}

fn header_differs(header: &Header, facts: &V1File, checksum: u32) -> Option<String> {
    let found = HeaderFacts {
        version: header.version,
        model_type: header.model_type.0,
        metadata_size: header.metadata_len,
        payload_size: header.payload_len,
        uncompressed_size: header.uncompressed_len,
        compression: header.compression.0,
        flags: header.flags.0,
        quality: header.quality,
        crc32: checksum,
    };
    let encrypted = facts.protection.is_encrypted();
    let signed = facts.protection == Protection::Signed;
    let flags = (header.is_encrypted(), header.is_signed()) == (encrypted, signed);
    (found != facts.header || header.reserved != [0; 9] || !flags).then(|| format!("{header:?}"))
}

/// What the library of the peers makes of metadata, in JSON.
///
/// # Errors
///
/// What it says.
pub fn peer_metadata(bytes: &[u8]) -> Result<Value, String> {
    rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
}

fn metadata_differ(container: &Container<'_>, expected: &Value) -> Option<String> {
    let read = match container.metadata() {
        Ok(read) => read,
        Err(error) => return Some(error.to_string()),
    };
    let stored = peer_metadata(container.metadata_bytes());
    if stored.as_ref() != Ok(expected) {
        return Some(format!("the file's metadata are not the recorded ones: {stored:?}"));
    }
    rewritten_differ(&read, expected)
}

/// Says how metadata written by us are not what they were.
fn rewritten_differ(metadata: &Metadata, expected: &Value) -> Option<String> {
    let written = metadata.to_msgpack().map_err(|error| error.to_string());
    let again = written.as_deref().map_err(Clone::clone).and_then(peer_metadata);
    (again.as_ref() != Ok(expected)).then(|| format!("written again they are {again:?}"))
}

fn inspect_differs(bytes: &[u8], file: &File, facts: &V1File) -> Option<String> {
    let header = &facts.header;
    // The bytes of the payload are not there.
    let prefix = bytes.get(..32 + header.metadata_size as usize).unwrap_or_default();
    let info = match inspect_prefix(prefix, file.size, &ReadOptions::STRICT) {
        Ok(info) => info,
        Err(error) => return Some(error.to_string()),
    };
    let found = (info.model_type.0, info.format_version, info.flags.0, info.compression.0, info.file_size);
    let expected = (header.model_type, header.version, header.flags, header.compression, file.size);
    let sizes = [info.metadata_size, info.payload_size, info.uncompressed_size];
    let expected_sizes = [header.metadata_size, header.payload_size, header.uncompressed_size].map(u64::from);
    let quality = Some(header.quality).filter(|score| *score != 0);
    let protection = (info.encrypted, info.signed);
    let expected_protection = (facts.protection.is_encrypted(), facts.protection == Protection::Signed);
    if (found, sizes, info.quality, protection) != (expected, expected_sizes, quality, expected_protection) {
        return Some(format!("{info:?}"));
    }
    match inspect_bytes_with(bytes, &ReadOptions::STRICT) {
        Ok(again) if again == info => rewritten_differ(&info.metadata, &facts.metadata),
        again => Some(format!("from the whole file: {again:?}")),
    }
}

fn payload_outcome(container: &Container<'_>, protection: Protection, facts: &vectors::Payload) -> Outcome {
    match container.payload() {
        Payload::Plain(payload) if !protection.is_encrypted() => Outcome::from_failure(
            "equal",
            match payload.to_vec() {
                Ok(bytes) if sha256_hex(&bytes) != facts.sha256 => Some("the digest differs".to_owned()),
                Ok(bytes) if facts.bytes.as_ref().is_some_and(|expected| *expected != bytes) => {
                    Some("the bytes differ".to_owned())
                }
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            },
        ),
        Payload::Encrypted(payload) if protection.is_encrypted() => {
            // The salt or the recipient's key, the nonce, the tag.
            let around = if protection == Protection::Password { 16 + 12 + 16 } else { 32 + 8 + 12 + 16 };
            match payload.stored().len() > around {
                true if protection == Protection::Password => Outcome::Expected("under a password"),
                true => Outcome::Expected("for a recipient"),
                false => Outcome::Wrong(format!("{} bytes", payload.stored().len())),
            }
        }
        payload => Outcome::Wrong(format!("{payload:?}")),
    }
}

fn signature_outcome(container: &Container<'_>, file: &[u8], protection: Protection) -> Outcome {
    match (container.signature(), protection) {
        (None, Protection::Signed) => Outcome::Wrong("not found".to_owned()),
        (None, _) => Outcome::NotApplicable,
        (Some(_), Protection::Signed) => {
            let block = file.len().checked_sub(96 + 4).and_then(|at| file.get(at..));
            match block.is_some() && container.unowned().is_empty() {
                true => Outcome::Expected("found"),
                false => Outcome::Wrong("elsewhere".to_owned()),
            }
        }
        (Some(_), _) => Outcome::Wrong("found one".to_owned()),
    }
}
