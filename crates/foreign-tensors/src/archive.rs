//! ZIP archives: members as places of tensors.

use alloc::sync::Arc;
use alloc::vec::Vec;

use located_error::Subject;
use read_at::ReadAt;
use zip_core::{Archive, Checksum, Entry, Finding, Limits, Member, Problem};

use crate::error::{Error, ErrorKind};
use crate::tensor::{Decode, Place, reserved};

/// Deflate does not shrink data further.
const MAX_RATIO: u64 = 1032;

/// Opens an archive of which every program sees the same members. Names that leave the folder are returned: nothing is written under them.
///
/// # Errors
///
/// [`ErrorKind::Archive`].
pub(crate) fn open(file: &dyn ReadAt) -> Result<(Archive<&dyn ReadAt>, Vec<Finding>), Error> {
    let (archive, mut findings) = Archive::open(file, &Limits::DEFAULT)?;
    let is_name = |finding: &Finding| finding.problem == Problem::Name {};
    if let Some(finding) = findings.iter().find(|finding| !is_name(finding)) {
        let error = match finding.problem {
            Problem::Method { .. } => {
                Error::unsupported("compression of an archive's members by another method than deflate")
            }
            problem => ErrorKind::Archive { problem }.into(),
        };
        let error = error.at(finding.offset);
        let entry = finding.entry.and_then(|idx| archive.entries().get(idx));
        return Err(match entry {
            Some(entry) => error.of(Subject::entry(entry.name())),
            None => error,
        });
    }
    findings.retain(is_name);
    Ok((archive, findings))
}

/// A small member, in memory.
///
/// # Errors
///
/// If it is longer than `max` or its checksum does not match.
#[cfg(any(feature = "torch", feature = "keras"))]
pub(crate) fn read(archive: &Archive<&dyn ReadAt>, entry: &Entry, max: u64) -> Result<Vec<u8>, Error> {
    let bytes = if entry.len_declared() > max {
        Err(ErrorKind::Limit { limit: "text_bytes", allowed: max }.into())
    } else {
        decoded(archive.source(), entry, 0, entry.len_declared())
    };
    bytes.map_err(|error: Error| error.of(Subject::entry(entry.name())))
}

/// Bytes of a member from `skip` on.
pub(crate) fn place(entry: &Entry, skip: u64, len: u64) -> Place {
    match entry.stored() {
        Some(range) => {
            let start = range.start.saturating_add(skip);
            Place::Stored(0, start..start.saturating_add(len).min(range.end))
        }
        None => Place::Encoded(Arc::new(Deflated { entry: entry.clone(), skip, len })),
    }
}

/// A part of a deflated member.
#[derive(Debug)]
struct Deflated {
    entry: Entry,
    skip: u64,
    len: u64,
}

impl Decode for Deflated {
    fn decode(&self, file: &dyn ReadAt) -> Result<Vec<u8>, Error> {
        decoded(&file, &self.entry, self.skip, self.len)
    }
}

/// A part of a member, of which the checksum is verified.
fn decoded(file: &&dyn ReadAt, entry: &Entry, skip: u64, len: u64) -> Result<Vec<u8>, Error> {
    let stored = entry.data().map_or(0, |data| data.end - data.start);
    if len > stored.saturating_mul(MAX_RATIO) {
        return Err(Error::malformed("a member declares more bytes than it can hold"));
    }
    let mut member = Member::new(file, entry)?;
    let mut skipped = 0;
    let mut piece = [0; 4096];
    while skipped < skip {
        let wanted = usize::try_from(skip - skipped).unwrap_or(usize::MAX).min(piece.len());
        let passed = member.read(piece.get_mut(..wanted).unwrap_or_default())?;
        if passed == 0 {
            return Err(Error::malformed("a member is shorter than declared"));
        }
        skipped += passed as u64;
    }
    let mut bytes = reserved(len)?;
    bytes.resize(len as usize, 0);
    if !fill(&mut member, &mut bytes)? {
        return Err(Error::malformed("a member is shorter than declared"));
    }
    if let Some(problem) = member.verify()? {
        return Err(ErrorKind::Archive { problem }.into());
    }
    debug_assert!(member.checksum() != Checksum::Differs);
    Ok(bytes)
}

/// Fills a buffer, or says that there are too few bytes.
pub(crate) fn fill<R: ReadAt>(member: &mut Member<'_, R>, mut out: &mut [u8]) -> Result<bool, Error> {
    while !out.is_empty() {
        let len = member.read(out)?;
        if len == 0 {
            return Ok(false);
        }
        out = out.get_mut(len..).unwrap_or_default();
    }
    Ok(true)
}
