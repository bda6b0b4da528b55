//! An open archive.

use alloc::vec::Vec;

use read_at::ReadAt;

use crate::checks;
use crate::end;
use crate::entry::{self, CENTRAL_LEN, Entry, Method};
use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::member::Member;
use crate::problem::{Finding, Problem};

/// The directory of an archive, compared with everything else that describes its members.
#[derive(Debug)]
pub struct Archive<R> {
    source: R,
    entries: Vec<Entry>,
}

/// Findings, up to a number.
pub(crate) struct Findings {
    list: Vec<Finding>,
    limit: usize,
}

impl Findings {
    pub(crate) fn add(&mut self, entry: Option<usize>, offset: u64, problem: Problem) {
        if self.list.len() < self.limit {
            self.list.push(Finding { entry, offset, problem });
        }
    }
}

impl<R: ReadAt> Archive<R> {
    /// Reads the directory and all local headers, and returns what contradicts what.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoEnd`] and [`ErrorKind::NoDirectory`] if this is no archive; [`ErrorKind::Limit`], [`ErrorKind::Read`]. Contradictions are no errors.
    pub fn open(source: R, limits: &Limits) -> Result<(Self, Vec<Finding>), Error> {
        let end = end::find(&source)?;
        let mut findings = Findings { list: Vec::new(), limit: limits.findings };
        for (limit, allowed, found) in [
            ("entries", limits.entries, end.entries),
            ("directory_bytes", limits.directory_bytes, end.directory_len),
        ] {
            if found > allowed {
                return Err(ErrorKind::Limit { limit, allowed, found }.into());
            }
        }
        let len = usize::try_from(end.directory_len).map_err(|_| ErrorKind::OutOfMemory {})?;
        let mut directory = Vec::new();
        directory.try_reserve_exact(len).map_err(|_| ErrorKind::OutOfMemory {})?;
        directory.resize(len, 0);
        source.read_exact_at(end.directory, &mut directory)?;

        let mut entries = Vec::new();
        let mut rest = directory.as_slice();
        while rest.len() >= CENTRAL_LEN {
            let idx = entries.len();
            let at = end.directory + (len - rest.len()) as u64;
            let Some(header) = entry::central(rest) else { break };
            if idx as u64 >= limits.entries {
                let found = idx as u64 + 1;
                return Err(ErrorKind::Limit { limit: "entries", allowed: limits.entries, found }.into());
            }
            let (name, sound_name) = entry::name(header.name, header.flags);
            let entry = Entry {
                name,
                name_bytes: header.name.into(),
                method: Method(header.method),
                flags: header.flags,
                crc32: header.crc32,
                stored_len: header.stored_len,
                len: header.len,
                central: at,
                header: header.offset.saturating_add(end.base),
                data: None,
            };
            let encrypted = entry.is_encrypted();
            let method = entry.method;
            for (problem, found) in [
                (Problem::Name {}, !sound_name),
                (Problem::Extra {}, !header.sound_extra),
                (Problem::Link {}, header.is_link),
                (Problem::Encrypted {}, encrypted),
                (
                    Problem::Method { method: method.0 },
                    method != Method::STORED && method != Method::DEFLATED,
                ),
            ] {
                if found {
                    findings.add(Some(idx), at, problem);
                }
            }
            entries.try_reserve(1).map_err(|_| ErrorKind::OutOfMemory {})?;
            entries.push(entry);
            rest = rest.get(header.header_len..).unwrap_or_default();
        }
        if entries.is_empty() && end.entries > 0 {
            return Err(Error::from(ErrorKind::NoDirectory {}).at(end.directory));
        }
        if !end.sound || !rest.is_empty() || entries.len() as u64 != end.entries {
            findings.add(None, end.start, Problem::End {});
        }
        if end.second {
            findings.add(None, end.start, Problem::SecondEnd {});
        }
        let trailing = source.total_len() - end.end;
        if trailing > 0 {
            findings.add(None, end.end, Problem::Trailing { len: trailing });
        }
        checks::locals(&source, &mut entries, end.directory, &mut findings)?;
        checks::names(&entries, &mut findings);
        Ok((Self { source, entries }, findings.list))
    }

    /// The members, in the order of the directory.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The source.
    #[must_use]
    pub const fn source(&self) -> &R {
        &self.source
    }

    /// A member as a stream.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoData`]; [`ErrorKind::Method`] for a method that is neither stored nor deflated.
    pub fn member(&self, entry: &Entry) -> Result<Member<'_, R>, Error> {
        Member::new(&self.source, entry)
    }

    /// A whole member of at most `max` bytes.
    ///
    /// # Errors
    ///
    /// As [`member`](Self::member); [`ErrorKind::Limit`] if it declares more than `max` bytes; [`ErrorKind::Deflate`];
    /// [`ErrorKind::Short`] if there are fewer than it declares.
    pub fn read(&self, entry: &Entry, max: u64) -> Result<Vec<u8>, Error> {
        let mut member = self.member(entry)?;
        if entry.len > max {
            return Err(ErrorKind::Limit { limit: "max", allowed: max, found: entry.len }.into());
        }
        let mut out = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let len = member.read(&mut piece)?;
            if len == 0 {
                return Ok(out);
            }
            out.try_reserve(len).map_err(|_| ErrorKind::OutOfMemory {})?;
            out.extend_from_slice(piece.get(..len).unwrap_or_default());
        }
    }
}
