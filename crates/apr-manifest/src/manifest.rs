//! The list of signed files with their digests.

use core::num::NonZeroU64;
use core::ops::Range;

use sha2::{Digest as _, Sha256};

use crate::digest::{Digest, HashAlgorithm};
use crate::error::{Error, ErrorKind};
use crate::name::{by_components, is_canonical, is_within, split_shard};

/// How files become entries of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// One entry for each file.
    #[default]
    Files,
    /// One entry for each so many bytes of a file. Files without a byte have no entry, and are not signed.
    Shards(NonZeroU64),
}

/// A list of files and their digests: of files just read ([`Manifest::of`]), or signed by a key that was checked
/// ([`Bundle::verify`](crate::Bundle::verify)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub(crate) name: String,
    pub(crate) method: Method,
    pub(crate) algorithm: HashAlgorithm,
    pub(crate) ignored: Vec<String>,
    pub(crate) follows_symlinks: bool,
    /// Sorted by name.
    pub(crate) files: Vec<FileEntry>,
}

/// A file on a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    pub(crate) name: String,
    pub(crate) parts: Vec<Part>,
}

/// A run of bytes of a file, and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub(crate) range: Option<Range<u64>>,
    pub(crate) digest: Digest,
}

impl Manifest {
    /// What its maker called the folder or file: see [`model_name`](crate::model_name). No check depends on it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How files became entries.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The hash.
    #[must_use]
    pub const fn algorithm(&self) -> HashAlgorithm {
        self.algorithm
    }

    /// Names the list does not speak of, with what is below them.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// The files, sorted by name. A list of one file that is no folder's calls it `.`, or by its name.
    #[must_use]
    pub fn files(&self) -> &[FileEntry] {
        &self.files
    }

    /// SHA-256 over the digests of all entries, in their order: a short name for the whole.
    #[must_use]
    pub fn root(&self) -> Digest {
        root_of(self.entries().iter().map(|(_, digest)| *digest))
    }

    /// Name and digest of each entry, sorted by name (section 5.2.1).
    pub(crate) fn entries(&self) -> Vec<(String, &Digest)> {
        let named = |file: &FileEntry, part: &Part| match &part.range {
            None => file.name.clone(),
            Some(range) => format!("{}:{}:{}", file.name, range.start, range.end),
        };
        let parts = self.files.iter().flat_map(|file| file.parts.iter().map(move |part| (file, part)));
        let mut entries: Vec<_> = parts.map(|(file, part)| (named(file, part), &part.digest)).collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        entries
    }
}

impl FileEntry {
    /// Path below the folder, with `/` between its components.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file in one part, or in its shards one after the other, without gaps.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Length in bytes, if the list has it.
    #[must_use]
    pub fn len_declared(&self) -> Option<u64> {
        self.parts.last().and_then(|part| part.range.as_ref()).map(|range| range.end)
    }
}

impl Part {
    /// The bytes of the file; none: all of them.
    #[must_use]
    pub const fn range(&self) -> Option<&Range<u64>> {
        self.range.as_ref()
    }

    /// Their digest.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }
}

pub(crate) fn root_of<'a>(digests: impl Iterator<Item = &'a Digest>) -> Digest {
    let mut hasher = Sha256::new();
    digests.for_each(|digest| hasher.update(digest.as_bytes()));
    Digest::from_bytes(&hasher.finalize())
}

/// The files that the entries of a statement speak of, if each is there once, whole, and in order.
pub(crate) fn files_of(
    entries: Vec<(String, Digest)>,
    method: Method,
    ignored: &[String],
) -> Result<Vec<FileEntry>, Error> {
    let statement = |what, name: &str| Error::from(ErrorKind::Statement { what }).of_name(name);
    // Sorted by name, as the specification demands, or by component and offset, as its first implementation writes.
    let split = |name: &str| match method {
        Method::Files => Some((name.len(), 0, 0)),
        Method::Shards(_) => split_shard(name).map(|(path, start, end)| (path.len(), start, end)),
    };
    let mut places = Vec::with_capacity(entries.len());
    for (name, _) in &entries {
        let place = split(name).ok_or_else(|| statement("a shard is named path:start:end", name))?;
        let path = name.get(..place.0).unwrap_or_default();
        if path != "." && !is_canonical(path) {
            return Err(Error::from(ErrorKind::Name).of_name(name));
        }
        if ignored.iter().any(|folder| is_within(path, folder)) {
            return Err(statement("it lists a file that it says it ignores", name));
        }
        places.push(place);
    }
    let pairs = || entries.iter().zip(&places).zip(entries.iter().zip(&places).skip(1));
    let path = |(name, _): &(String, Digest), len: usize| name.get(..len).unwrap_or_default().to_owned();
    let by_name = pairs().all(|((a, _), (b, _))| a.0 < b.0);
    let by_parts = pairs().all(|((a, at), (b, bt))| {
        by_components(&path(a, at.0), &path(b, bt.0)).then(at.1.cmp(&bt.1)).then(at.2.cmp(&bt.2)).is_lt()
    });
    if !by_name && !by_parts {
        return Err(ErrorKind::Statement { what: "its entries are not sorted, or one is there twice" }.into());
    }

    let mut parts: Vec<(String, Part)> = Vec::with_capacity(entries.len());
    for ((mut name, digest), (len, start, end)) in entries.into_iter().zip(places) {
        let range = matches!(method, Method::Shards(_)).then_some(start..end);
        name.truncate(len);
        parts.push((name, Part { range, digest }));
    }
    let start = |part: &Part| part.range.as_ref().map_or(0, |range| range.start);
    parts.sort_by(|a, b| a.0.cmp(&b.0).then(start(&a.1).cmp(&start(&b.1))));
    let mut files: Vec<FileEntry> = Vec::new();
    for (name, part) in parts {
        match files.last_mut().filter(|file| file.name == name) {
            Some(file) => file.parts.push(part),
            None => files.push(FileEntry { name, parts: vec![part] }),
        }
    }
    if let Method::Shards(size) = method {
        for file in &files {
            check_shards(file, size.get()).map_err(|what| statement(what, &file.name))?;
        }
    }
    match &files[..] {
        [] => Err(ErrorKind::Statement { what: "it lists no file" }.into()),
        [_] => Ok(files),
        many if many.iter().any(|file| file.name == ".") => Err(Error::from(ErrorKind::Name).of_name(".")),
        _ => Ok(files),
    }
}

/// Shards are contiguous from the first byte; all have the same length, only the last may be shorter.
fn check_shards(file: &FileEntry, size: u64) -> Result<(), &'static str> {
    let mut at = 0;
    let last = file.parts.len() - 1;
    for (idx, part) in file.parts.iter().enumerate() {
        let range = part.range.clone().unwrap_or_default();
        let len = range.end.checked_sub(range.start).ok_or("a shard ends before it begins")?;
        if range.start != at {
            return Err("the shards of a file leave a gap or overlap");
        }
        if len == 0 || len > size || (idx != last && len != size) {
            return Err("a shard has another length than it should");
        }
        at = range.end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(byte: u8) -> Digest {
        Digest::from_hex(&format!("{byte:02x}").repeat(32), 32).unwrap()
    }

    fn files(names: &[&str], method: Method) -> Result<Vec<FileEntry>, Error> {
        let entries = names.iter().zip(0..).map(|(name, byte)| ((*name).to_owned(), digest(byte))).collect();
        files_of(entries, method, &[".git".to_owned(), "c/d".to_owned()])
    }

    fn shards(size: u64) -> Method {
        Method::Shards(NonZeroU64::new(size).unwrap())
    }

    #[test]
    fn both_orders_are_read_and_become_one() {
        let spec = files(&["a", "sub.txt", "sub/b"], Method::Files).unwrap();
        let tool = files(&["a", "sub/b", "sub.txt"], Method::Files).unwrap();
        let names = |files: &[FileEntry]| files.iter().map(|file| file.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&spec), names(&tool));
        // As strings, 10 comes before 9; as numbers, after it.
        for order in [["a:0:9", "a:18:20", "a:9:18"], ["a:0:9", "a:9:18", "a:18:20"]] {
            let files = files(&order, shards(9)).unwrap();
            assert_eq!((files.len(), files[0].parts.len(), files[0].len_declared()), (1, 3, Some(20)));
            assert!(
                files[0]
                    .parts
                    .windows(2)
                    .all(|pair| pair[0].range.as_ref().unwrap().end == pair[1].range.as_ref().unwrap().start)
            );
        }
    }

    #[test]
    fn lists_that_contradict_themselves_are_refused() {
        let code = |names: &[&str], method| files(names, method).unwrap_err().code();
        for names in [&["b", "a"][..], &["a", "a"], &["a", "b", "a"], &["sub/b", "a", "sub.txt"], &[]] {
            assert_eq!(code(names, Method::Files), "mf-statement", "{names:?}");
        }
        for names in [&["/a"][..], &["../a"], &["a/./b"], &["a//b"], &["a/"], &[""], &[".", "a"]] {
            assert_eq!(code(names, Method::Files), "mf-name", "{names:?}");
        }
        for names in [&[".git/config"][..], &[".git"], &["c/d"], &["c/d/e"]] {
            assert_eq!(code(names, Method::Files), "mf-statement", "{names:?}");
        }
        files(&["."], Method::Files).unwrap();
        files(&[".gitx", "c/dx", "git"], Method::Files).unwrap();
    }

    #[test]
    fn shards_cover_their_file() {
        let code = |names: &[&str]| files(names, shards(4)).unwrap_err().code();
        files(&["a:0:4", "a:4:8"], shards(4)).unwrap();
        files(&["a:0:3"], shards(4)).unwrap();
        files(&[".:0:4", ".:4:5"], shards(4)).unwrap();
        for names in [
            &["a:4:8"][..],
            &["a:0:4", "a:5:8"],
            &["a:0:4", "a:3:8"],
            &["a:0:5"],
            &["a:0:3", "a:3:7"],
            &["a:0:0"],
            &["a:4:0"],
            &["a:0:4", "a:4:4"],
            &["a"],
            &["a:0"],
            &["a:0:04"],
            &["a:0:4", "a:0:4"],
        ] {
            assert_eq!(code(names), "mf-statement", "{names:?}");
        }
        assert_eq!(code(&["../a:0:4"]), "mf-name");
        assert_eq!(code(&[".:0:4", "a:0:4"]), "mf-name");
    }
}
