//! The list of files and their digests.

use alloc::collections::BTreeMap;
use core::fmt::Write as _;

use serde_json::Value;

use super::json;
use crate::error::ErrorKind;

/// Its own file name, which it does not list.
pub(super) const NAME: &str = "manifest.json";

/// Longest manifest that is read: some ten thousand files.
pub(super) const MAX_LEN: u64 = 1 << 20;

/// A SHA-256 digest.
pub(super) type Digest = [u8; 32];

/// File name to digest, sorted by name.
pub(super) type Manifest = BTreeMap<String, Digest>;

pub(super) fn parse(bytes: &[u8]) -> Result<Manifest, ErrorKind> {
    let bad = |problem| ErrorKind::BadManifest { problem, entry: None };
    let text = core::str::from_utf8(bytes).map_err(|_| bad("not UTF-8"))?;
    let value: Value = serde_json::from_str(text).map_err(|_| bad("not JSON"))?;
    let Value::Object(entries) = value else {
        return Err(bad("not an object"));
    };
    let mut manifest = Manifest::new();
    let n_entries = entries.len();
    for (name, digest) in entries {
        let bad = |problem| ErrorKind::BadManifest { problem, entry: Some(name.clone()) };
        if !is_plain(&name) {
            return Err(bad("not a plain file name"));
        }
        let digest = digest.as_str().and_then(from_hex).ok_or_else(|| bad("not a SHA-256 digest"))?;
        if name != NAME {
            manifest.insert(name, digest);
        }
    }
    // All values are strings, so every member is one of the object's own.
    if json::count_members(text) != n_entries {
        return Err(bad("a file is listed twice"));
    }
    Ok(manifest)
}

pub(super) fn render(manifest: &Manifest) -> String {
    let mut out = String::from("{");
    let mut separator = "";
    for (name, digest) in manifest {
        out.push_str(separator);
        out.push_str("\n  ");
        json::push_string(&mut out, name);
        out.push_str(": \"");
        out.push_str(&to_hex(digest));
        out.push('"');
        separator = ",";
    }
    out.push_str("\n}");
    out
}

/// Whether a name can only mean an entry of the folder itself, on any platform.
fn is_plain(name: &str) -> bool {
    let special = |c: char| matches!(c, '/' | '\\' | ':') || c.is_control();
    !matches!(name, "" | "." | "..") && !name.contains(special)
}

pub(super) fn to_hex(digest: &Digest) -> String {
    let mut out = String::with_capacity(64);
    for byte in digest {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

fn from_hex(text: &str) -> Option<Digest> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let nibble = |byte: u8| char::from(byte).to_digit(16);
    let mut digest = [0; 32];
    if pairs.len() != digest.len() {
        return None;
    }
    for (byte, [high, low]) in digest.iter_mut().zip(pairs) {
        *byte = (nibble(*high)? << 4 | nibble(*low)?) as u8;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let manifest = Manifest::from([("b".to_owned(), [0xAB; 32]), ("a \"é\"".to_owned(), [1; 32])]);
        let text = render(&manifest);
        assert!(text.starts_with("{\n  \"a \\\"é\\\"\": \"0101"), "{text}");
        assert_eq!(parse(text.as_bytes()).unwrap(), manifest);
        assert_eq!(parse(text.to_uppercase().replace("B\"", "b\"").as_bytes()).unwrap()["b"], [0xAB; 32]);
        assert_eq!(parse(render(&Manifest::new()).as_bytes()).unwrap(), Manifest::new());
    }

    #[test]
    fn its_own_name_is_skipped() {
        let text = format!("{{\"manifest.json\": \"{0}\", \"a\": \"{0}\"}}", "00".repeat(32));
        assert_eq!(parse(text.as_bytes()).unwrap().into_keys().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn anything_else_is_refused() {
        let digest = "0".repeat(64);
        let entry = |name: &str| format!("{{\"{name}\": \"{digest}\"}}");
        let mut texts: Vec<String> =
            ["", "[]", "{", "null", "{\"a\": 1}", "{\"a\": \"00\"}", "{\"a\": {\"b\": \"c\"}}"]
                .map(str::to_owned)
                .into();
        for name in ["", ".", "..", "../a", "a/b", "/a", "a\\\\b", "c:", "a\\u0000", "a\\n", "a\\u007f"] {
            texts.push(entry(name));
        }
        texts.push(format!("{{\"a\": \"{digest}\", \"a\": \"{digest}\"}}"));
        texts.push(format!("{{\"a\": \"{digest}\", \"\\u0061\": \"{digest}\"}}"));
        texts.push(format!("{{\"a\": \"{}g\"}}", &digest[1..]));
        texts.push(format!("{{\"a\": \"{digest}0\"}}"));
        for text in texts {
            let refused = parse(text.as_bytes());
            assert!(matches!(refused, Err(ErrorKind::BadManifest { .. })), "{text} {refused:?}");
        }
        assert!(parse(b"{\"\xff\": 1}").is_err());
    }
}
