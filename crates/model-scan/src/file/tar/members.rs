//! Members one after the other, with what extended headers say of them, as `tarfile` of Python reads them.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use pickle_core::Error;
use read_at::ReadAt;

use super::header::{is_tar, number, text};
use crate::problem::Problem;

const BLOCK: u64 = 512;

/// Bytes of an extended header that are read.
const MAX_EXTENDED: u64 = 1 << 20;

/// The largest size that the field of a header can hold in octal digits: of larger members, writers of PAX leave it empty.
const MAX_OCTAL: u64 = (1 << 33) - 1;

/// A member.
pub(super) struct Member {
    pub(super) name: Vec<u8>,
    /// The byte of its type.
    pub(super) kind: u8,
    /// Offset of its data, and how many bytes of them are in the archive.
    pub(super) data: u64,
    pub(super) len: u64,
    pub(super) problems: Vec<Problem>,
}

/// Values of extended headers for the next member. If several headers set a value, the first one wins, as in `tarfile`. Two values in one header
/// are a problem: readers differ in which one they use.
#[derive(Default)]
struct Extended {
    name: Option<Vec<u8>>,
    size: Option<Vec<u8>>,
    problems: Vec<Problem>,
}

/// The members of an archive.
pub(super) struct Members<'s> {
    source: &'s dyn ReadAt,
    at: u64,
    /// Why no more members are read, and where that is.
    pub(super) end: Option<(u64, Problem)>,
}

impl<'s> Members<'s> {
    pub(super) const fn new(source: &'s dyn ReadAt) -> Self {
        Self { source, at: 0, end: None }
    }

    pub(super) fn next(&mut self) -> Result<Option<Member>, Error> {
        let mut extended = Extended::default();
        while self.end.is_none() && self.at < self.source.total_len() {
            let (at, block) = (self.at, self.block()?);
            if block.iter().all(|byte| *byte == 0) {
                continue; // The end; some readers go on.
            }
            if !is_tar(&block) {
                self.end = Some((at, tar("an invalid member header")));
                break;
            }
            let kind = block.get(156).copied().unwrap_or_default();
            let Some(size) = number(field(&block, 124, 136)).and_then(|size| u64::try_from(size).ok()) else {
                self.end = Some((at, Problem::Unopened { reason: "tar header without a length" }));
                break;
            };
            match kind {
                b'x' | b'X' | b'g' => {
                    let records = self.data(size)?;
                    extended.pax(&records, kind == b'g');
                }
                b'L' => {
                    let name = self.data(size)?;
                    extended.name.get_or_insert_with(|| text(&name).to_owned());
                }
                // The target of a link: links are a problem anyway.
                b'K' => drop(self.data(size)?),
                _ => return self.member(&block, kind, size, extended).map(Some),
            }
        }
        Ok(None)
    }

    /// The member whose header is `block`.
    fn member(&mut self, block: &[u8], mut kind: u8, size: u64, extended: Extended) -> Result<Member, Error> {
        let Extended { name, size: other, mut problems } = extended;
        let (stored, prefix) = (text(field(block, 0, 100)), text(field(block, 345, 500)));
        if kind == 0 && stored.ends_with(b"/") {
            kind = b'5';
        }
        let stored = if prefix.is_empty() || kind == b'S' {
            stored.to_owned()
        } else {
            [prefix, b"/", stored].concat()
        };
        let mut len = size;
        if let Some(other) = other {
            // Python takes signs, white space and underscores as well, other readers do not.
            let plain = decimal(&other);
            len = plain.unwrap_or(0);
            if plain.is_none() || (len != size && len <= MAX_OCTAL) {
                problems.push(tar("an extended header with another size"));
            }
        }
        match kind {
            b'1' | b'2' => problems.push(tar("a link")),
            b'3' | b'4' | b'6' => problems.push(tar("a device or pipe")),
            b'S' => {
                problems.push(tar("a sparse member"));
                self.pass_map(block)?;
            }
            _ => {}
        }
        if matches!(kind, b'1'..=b'6') {
            len = 0; // Regardless of the size.
        }
        let data = self.at;
        let left = self.source.total_len() - data;
        if len > left {
            problems.push(Problem::Unopened { reason: "tar header without a length" });
            len = left;
        }
        self.pass(len);
        Ok(Member { name: name.unwrap_or(stored), kind, data, len, problems })
    }

    /// The map of a sparse member goes on in blocks of its own.
    fn pass_map(&mut self, block: &[u8]) -> Result<(), Error> {
        let mut goes_on = block.get(482) != Some(&0);
        while goes_on && self.at < self.source.total_len() {
            goes_on = self.block()?.get(504) != Some(&0);
        }
        Ok(())
    }

    /// The next block: with zeros, if the source ends in it.
    fn block(&mut self) -> Result<[u8; BLOCK as usize], Error> {
        let mut block = [0; BLOCK as usize];
        let len = (self.source.total_len() - self.at).min(BLOCK);
        let stored = block.get_mut(..usize::try_from(len).unwrap_or_default()).unwrap_or_default();
        self.source.read_exact_at(self.at, stored)?;
        self.at += len;
        Ok(block)
    }

    /// The data of an extended header.
    fn data(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        let (at, left) = (self.at, self.source.total_len() - self.at);
        if size > left || size > MAX_EXTENDED {
            self.end = Some((at, Problem::Unopened { reason: "an extended header of more than 1 MiB" }));
            return Ok(Vec::new());
        }
        let mut data = alloc::vec![0; usize::try_from(size).unwrap_or_default()];
        self.source.read_exact_at(at, &mut data)?;
        self.pass(size);
        Ok(data)
    }

    /// Passes data and what fills their last block.
    fn pass(&mut self, len: u64) {
        self.at = self.at.saturating_add(len).checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX);
        self.at = self.at.min(self.source.total_len());
    }
}

impl Extended {
    /// The records of an extended header: `17 path=weights\n`.
    fn pax(&mut self, mut records: &[u8], is_global: bool) {
        let (mut name, mut size) = (None, None);
        while !records.is_empty() {
            let Some((key, value, rest)) = record(records) else {
                self.problems.push(tar("a malformed extended header"));
                return;
            };
            records = rest;
            let place = match key {
                b"path" => Some(&mut name),
                b"size" => Some(&mut size),
                _ => None,
            };
            let is_sparse = key.starts_with(b"GNU.sparse");
            if is_sparse {
                self.problems.push(tar("a sparse member"));
            }
            if is_global && (place.is_some() || is_sparse) {
                self.problems.push(tar("a global extended header that changes members"));
            } else if let Some(place) = place
                && place.replace(value).is_some_and(|other| other != value)
            {
                self.problems.push(tar("an extended header with two values of a member"));
            }
        }
        // `tarfile` takes slashes from the end of a path, and leaves its type as it is.
        let name = name.map(|name| {
            name.iter().rposition(|byte| *byte != b'/').and_then(|last| name.get(..=last)).unwrap_or_default()
        });
        self.name = self.name.take().or_else(|| name.map(<[u8]>::to_owned));
        self.size = self.size.take().or_else(|| size.map(<[u8]>::to_owned));
    }
}

/// Key and value of the first record, and what follows it.
fn record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let len = usize::try_from(decimal(records.get(..space)?)?).ok()?;
    let body = records.get(space + 1..len)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    Some((body.get(..equals)?, body.get(equals + 1..)?, records.get(len..)?))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    core::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

fn field(block: &[u8], from: usize, to: usize) -> &[u8] {
    block.get(from..to).unwrap_or_default()
}

const fn tar(reason: &'static str) -> Problem {
    Problem::Tar { reason }
}
