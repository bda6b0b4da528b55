//! The list of files and their digests.

use alloc::collections::BTreeMap;

use json_scan::{Check, Escape, Scanner, Writer};

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
    // First of all it is JSON, whatever else is wrong with it.
    let (value, _) = json_scan::value(text, Check::Values).map_err(|_| bad("not JSON"))?;
    let mut scanner = Scanner::new(value, Check::Values);
    if scanner.peek() != Some(b'{') {
        return Err(bad("not an object"));
    }
    let mut manifest = Manifest::new();
    let read = scanner.members(|scanner, name, _| {
        let name = name.unescape().into_owned();
        let bad = |problem| Fault(Some((problem, name.clone())));
        if !is_plain(&name) {
            return Err(bad("not a plain file name"));
        }
        let digest = scanner.string().ok().and_then(|digest| from_hex(&digest.unescape()));
        let digest = digest.ok_or_else(|| bad("not a SHA-256 digest"))?;
        match manifest.insert(name.clone(), digest) {
            Some(_) => Err(bad("listed twice")),
            None => Ok(()),
        }
    });
    match read {
        Ok(()) => {}
        Err(Fault(Some((problem, name)))) => {
            return Err(ErrorKind::BadManifest { problem, entry: Some(name) });
        }
        Err(Fault(None)) => return Err(bad("not JSON")),
    }
    manifest.remove(NAME);
    Ok(manifest)
}

/// What is wrong with an entry; nothing for an error of the syntax.
struct Fault(Option<(&'static str, String)>);

impl From<json_scan::Error> for Fault {
    fn from(_: json_scan::Error) -> Self {
        Self(None)
    }
}

pub(super) fn render(manifest: &Manifest) -> String {
    let mut out = Writer::indented(Escape::Minimal);
    out.begin_object();
    for (name, digest) in manifest {
        out.key(name).string(&base16ct::lower::encode_string(digest));
    }
    out.end_object();
    out.finish()
}

/// Whether a name can only mean an entry of the folder itself, on any platform.
fn is_plain(name: &str) -> bool {
    let special = |c: char| matches!(c, '/' | '\\' | ':') || c.is_control();
    !matches!(name, "" | "." | "..") && !name.contains(special)
}

fn from_hex(text: &str) -> Option<Digest> {
    base16ct::mixed::decode_vec(text).ok()?.try_into().ok()
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
