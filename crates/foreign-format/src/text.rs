//! Formats of text: web pages, JSON, models as text, tables.

use crate::format::NAMES_TOOLS;
use crate::{Format, PREFIX};

/// Longest JSON in which the first file of an index is looked for after [`PREFIX`].
const MAX_INDEX: u64 = 16 << 20;

/// The format of a text file, by its first words.
pub(crate) fn text(readable: &str) -> Format {
    let text = readable.trim_ascii_start();
    let root = if NAMES_TOOLS { xml_root(text) } else { text };
    let begins = |word: &str| {
        text.as_bytes().get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
    };
    if begins("<!doctype html") || begins("<html") || begins("<head") || begins("<!--") {
        Format::WebPage
    } else if NAMES_TOOLS
        && root.strip_prefix("<net").is_some_and(|rest| rest.trim_ascii_start().starts_with("name="))
    {
        Format::OpenVino
    } else if root.get(..6).is_some_and(|begin| begin.eq_ignore_ascii_case("<error")) {
        Format::ErrorReply
    } else if begins("<?xml") {
        Format::Xml
    } else if NAMES_TOOLS && (text.starts_with("tree\nversion=v") || text.starts_with("tree\r\nversion=v")) {
        Format::LightGbm
    } else if NAMES_TOOLS && let Some(format) = boosted_trees(text) {
        format
    } else if let Some(json) = text.strip_prefix('{') {
        let first_key_is = |keys: &[&str]| {
            let key = json.trim_ascii_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
            key.is_some_and(|key| keys.contains(&key))
        };
        let mut scan = FirstShard::default();
        if scan.feed(readable.as_bytes()) == Some(true) {
            Format::TorchIndex
        } else if scan.strings.is_some() || first_key_is(&["metadata"]) {
            Format::ShardIndex
        } else if first_key_is(&["error", "errors", "message", "detail", "code", "status"]) {
            Format::ErrorReply
        } else {
            Format::Json
        }
    } else if begins("[{") || begins("[\n") {
        Format::Json
    } else if is_table(readable) {
        Format::Csv
    } else {
        Format::Text
    }
}

/// The root of XML, after its declaration.
fn xml_root(text: &str) -> &str {
    match text.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")) {
        Some((_, root)) => root.trim_ascii_start(),
        None => text,
    }
}

/// The library of trees that wrote JSON with these first keys, with or without white space.
fn boosted_trees(text: &str) -> Option<Format> {
    let mut begin = [0; 32];
    let bytes = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    begin.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    if begin.starts_with(b"{\"learner\":{") {
        Some(Format::XgBoost)
    } else if begin.starts_with(b"{\"features_info\":{") || begin.starts_with(b"{\"ctr_data\":{") {
        Some(Format::CatBoost)
    } else if begin.starts_with(b"{\"name\":\"tree\",\"version\":\"v") && text.contains("\"num_class\"") {
        Some(Format::LightGbmDump)
    } else {
        None
    }
}

/// Endings of files of PyTorch.
const TORCH: [&str; 4] = [".bin", ".pt", ".pth", ".ckpt"];

/// Looks in JSON for the first file that an index of shards names, byte by byte.
#[derive(Default)]
struct FirstShard {
    /// Strings since `weight_map`: a tensor, then its file. `None` before it.
    strings: Option<u8>,
    is_open: bool,
    is_escaped: bool,
    /// The last bytes of the string, after zeros.
    last: u128,
}

impl FirstShard {
    const KEY: u128 = u128::from_be_bytes(*b"\0\0\0\0\0\0weight_map");

    /// Whether the first file is one of PyTorch; `None` as long as that is not known.
    fn feed(&mut self, bytes: &[u8]) -> Option<bool> {
        bytes.iter().find_map(|byte| self.step(*byte))
    }

    fn step(&mut self, byte: u8) -> Option<bool> {
        if !self.is_open {
            self.is_open = byte == b'"';
            self.last = 0;
            return (self.strings == Some(0) && byte == b'}').then_some(false);
        }
        if byte == b'"' && !self.is_escaped {
            self.is_open = false;
            self.strings = match self.strings {
                None => (self.last == Self::KEY).then_some(0),
                Some(0) => Some(1),
                Some(_) => {
                    let last = self.last.to_be_bytes();
                    return Some(TORCH.iter().any(|ending| last.ends_with(ending.as_bytes())));
                }
            };
            return None;
        }
        self.is_escaped = byte == b'\\' && !self.is_escaped;
        self.last = self.last << 8 | u128::from(byte);
        None
    }
}

/// The format of JSON whose first file may be named after its first bytes, from which it looks like `format`.
pub(crate) fn index<E>(
    format: Format,
    len: u64,
    first: &[u8],
    read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Format, E> {
    let mut scan = FirstShard::default();
    let mut found = scan.feed(first);
    let (mut at, mut piece) = (first.len() as u64, [0; PREFIX]);
    while found.is_none() && at < len && len <= MAX_INDEX {
        let take = usize::try_from(len - at).map_or(PREFIX, |left| left.min(PREFIX));
        read(at, &mut piece[..take])?;
        found = scan.feed(&piece[..take]);
        at += take as u64;
    }
    Ok(match found {
        Some(true) => Format::TorchIndex,
        Some(false) => Format::ShardIndex,
        None => format,
    })
}

/// Whether the first lines have equally many fields, and more than one.
fn is_table(text: &str) -> bool {
    let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).take(2);
    let (Some(head), Some(row)) = (lines.next(), lines.next()) else { return false };
    [',', ';', '\t'].iter().any(|&separator| {
        let fields = |line: &str| line.matches(separator).count();
        fields(head) > 0 && fields(head) == fields(row)
    })
}
