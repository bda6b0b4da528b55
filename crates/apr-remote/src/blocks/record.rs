//! What is known of the version of an object: lines of text with a hash.

use core::fmt::Write as _;
use std::fs;

use super::disk::{self, Unread, Use};
use super::{Key, Store};
use crate::cache::COMMIT_LEN;
use crate::declared::Declared;
use crate::pin::{Pin, is_hex};

const TITLE: &str = "apr-block-cache 1";
/// Longest record.
pub(super) const LEN_MAX: u64 = 16 << 10;
/// Records of other commits that are read.
const COMMITS_MAX: usize = 64;

/// The version of an object, as it was when it was last opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) pin: Pin,
    pub(crate) declared: Declared,
}

impl Known {
    /// What stands for the bytes: the SHA-256 that the hub declares, else a strong ETag.
    pub(super) fn validator(&self) -> Option<String> {
        let sha256 = self.declared.sha256.as_ref().map(|digits| format!("sha256 {digits}"));
        sha256.or_else(|| self.pin.etag.as_ref().map(|tag| format!("etag {tag}")))
    }

    fn lines(&self, key: &Key) -> String {
        let mut text = format!("{TITLE}\nurl {}\nlen {}\n", key.shown(), self.pin.len);
        for (name, value) in [
            ("etag", &self.pin.etag),
            ("modified", &self.pin.modified),
            ("sha256", &self.declared.sha256),
            ("commit", &self.declared.commit),
        ] {
            if let Some(value) = value {
                let _ = writeln!(text, "{name} {value}");
            }
        }
        text
    }

    fn parsed(text: &str) -> Option<Self> {
        let given = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let hex = |name, len| given(name).filter(|text| is_hex(text, len)).map(str::to_owned);
        let etag = given("etag").filter(|tag| tag.starts_with('"')).map(str::to_owned);
        let pin =
            Pin { len: given("len")?.parse().ok()?, etag, modified: given("modified").map(str::to_owned) };
        let declared = Declared { commit: hex("commit", COMMIT_LEN), sha256: hex("sha256", 64), size: None };
        Some(Self { pin, declared })
    }

    /// Whether it may be what the hub declares.
    pub(crate) fn is_of(&self, declared: &Declared) -> bool {
        let Declared { commit: _, sha256, size } = declared;
        size.is_none_or(|size| size == self.pin.len) && (sha256.is_none() || *sha256 == self.declared.sha256)
    }

    /// Of an object, if it is there and whole.
    pub(crate) fn read(store: &Store, key: &Key) -> Option<Self> {
        Self::read_named(store, key, &key.record())
    }

    /// Of any commit with the SHA-256 that the hub declares, which becomes the one of the key.
    pub(crate) fn read_with_sha256(store: &Store, key: &Key, declared: &Declared) -> Option<Self> {
        declared.sha256.as_ref()?;
        let folder = store.folder_of(key);
        let names =
            fs::read_dir(&folder).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut records = names.filter(|name| name.starts_with("pin-")).take(COMMITS_MAX);
        let known = records
            .find_map(|name| Self::read_named(store, key, &name).filter(|known| known.is_of(declared)))?;
        Some(Self { declared: Declared { commit: declared.commit.clone(), ..known.declared }, ..known })
    }

    fn read_named(store: &Store, key: &Key, name: &str) -> Option<Self> {
        let folder = store.folder_of(key);
        if !disk::is_own_folder(&folder) {
            return None;
        }
        let path = folder.join(name);
        let known = match disk::read(&path, LEN_MAX, Use::Marked) {
            Err(Unread::Missing) => return None,
            Err(Unread::Foreign) => None,
            Ok(bytes) => text_of(&bytes, Some((key, name))).and_then(Self::parsed),
        };
        if known.is_none() {
            store.discard(&path);
        }
        known
    }

    pub(crate) fn write(&self, store: &Store, key: &Key) {
        let text = self.lines(key);
        let name = key.record();
        let line = format!("blake3 {}\n", hash(key, &name, &text).to_hex());
        store.write(&store.folder_of(key), &name, &[text.as_bytes(), line.as_bytes()]);
    }
}

fn hash(key: &Key, name: &str, text: &str) -> blake3::Hash {
    let mut hash = blake3::Hasher::new_derive_key("apr block cache 1: record");
    hash.update(key.digest()).update(name.as_bytes()).update(text.as_bytes());
    hash.finalize()
}

/// The lines of a record, whose hash is right if it is known what it is of.
fn text_of<'b>(bytes: &'b [u8], of: Option<(&Key, &str)>) -> Option<&'b str> {
    let text = core::str::from_utf8(bytes).ok()?;
    let (lines, end) = text.split_at(text.rfind("blake3 ")?);
    let is_right = |(key, name)| end.trim_end() == format!("blake3 {}", hash(key, name, lines).to_hex());
    (lines.starts_with(TITLE) && of.is_none_or(is_right)).then_some(lines)
}

/// The URL in a record, to be shown.
pub(super) fn url_of(bytes: &[u8]) -> Option<&str> {
    text_of(bytes, None)?.lines().find_map(|line| line.strip_prefix("url "))
}
