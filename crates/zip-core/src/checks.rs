//! What is compared with the directory.

use alloc::vec::Vec;

use read_at::ReadAt;

use crate::archive::Findings;
use crate::entry::{self, Entry, LOCAL_LEN};
use crate::error::{Error, ErrorKind};
use crate::fields::Fields;
use crate::problem::Problem;

/// Bytes of a member from its local header to the end of its descriptor.
struct Extent {
    start: u64,
    end: u64,
    idx: usize,
}

/// Reads the local headers, finds the data, and compares.
pub(crate) fn locals<R: ReadAt + ?Sized>(
    source: &R,
    entries: &mut [Entry],
    directory: u64,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut extents = Vec::new();
    extents.try_reserve_exact(entries.len()).map_err(|_| ErrorKind::OutOfMemory {})?;
    for (idx, entry) in entries.iter_mut().enumerate() {
        let (start, central) = (entry.header, entry.central);
        let missing = |findings: &mut Findings| findings.add(Some(idx), central, Problem::LocalMissing {});
        let mut fixed = [0; LOCAL_LEN];
        let fits = |end: Option<u64>| end.filter(|end| *end <= directory);
        let Some(_) = fits(start.checked_add(LOCAL_LEN as u64)) else {
            missing(findings);
            continue;
        };
        source.read_exact_at(start, &mut fixed)?;
        let Some(tail) = entry::local_tail(&fixed) else {
            missing(findings);
            continue;
        };
        let Some(data) = fits(start.checked_add((LOCAL_LEN + tail) as u64)) else {
            missing(findings);
            continue;
        };
        let mut header = fixed.to_vec();
        header.resize(LOCAL_LEN + tail, 0);
        source.read_exact_at(start, &mut header)?;
        let Some(end) = fits(data.checked_add(entry.stored_len)) else {
            missing(findings);
            continue;
        };
        entry.data = Some(data..end);
        compare(entry, &header, idx, findings);
        let end = if entry.has_descriptor() {
            descriptor(source, entry, end, directory, idx, findings)?
        } else {
            end
        };
        extents.push(Extent { start, end, idx });
    }
    extents.sort_unstable_by_key(|extent| (extent.start, extent.end));
    let mut reached = 0;
    for extent in &extents {
        if extent.start < reached {
            findings.add(Some(extent.idx), extent.start, Problem::Overlap {});
        } else if extent.start > reached {
            let len = extent.start - reached;
            let problem = if reached == 0 { Problem::Leading { len } } else { Problem::Gap { len } };
            findings.add(None, reached, problem);
        }
        reached = reached.max(extent.end);
    }
    if directory > reached {
        let len = directory - reached;
        let problem = if reached == 0 { Problem::Leading { len } } else { Problem::Gap { len } };
        findings.add(None, reached, problem);
    }
    Ok(())
}

fn compare(entry: &Entry, header: &[u8], idx: usize, findings: &mut Findings) {
    let Some(local) = entry::local(header) else { return };
    // With a descriptor, the sizes may be left to it; PyTorch and Python write zeros, numpy 2^32 - 1.
    let unset = |value: u64| entry.has_descriptor() && (value == 0 || value == u64::from(u32::MAX));
    let other_size = |local: u64, central: u64| local != central && !unset(local);
    for (problem, found) in [
        (Problem::LocalName {}, local.name != entry.name_bytes()),
        (Problem::LocalMethod {}, local.method != entry.method.0),
        (Problem::LocalFlags {}, local.flags != entry.flags),
        (
            Problem::LocalSize {},
            other_size(local.stored_len, entry.stored_len) || other_size(local.len, entry.len),
        ),
        (
            Problem::LocalChecksum {},
            local.crc32 != entry.crc32 && !(entry.has_descriptor() && local.crc32 == 0),
        ),
        (Problem::Extra {}, !local.sound_extra),
    ] {
        if found {
            findings.add(Some(idx), entry.header, problem);
        }
    }
}

/// Compares the data descriptor at `at`, and returns its end. Its signature is optional, its sizes have four or eight bytes.
fn descriptor<R: ReadAt + ?Sized>(
    source: &R,
    entry: &Entry,
    at: u64,
    directory: u64,
    idx: usize,
    findings: &mut Findings,
) -> Result<u64, Error> {
    let mut bytes = [0; 24];
    let len = usize::try_from(directory - at).unwrap_or(usize::MAX).min(bytes.len());
    let present = bytes.get_mut(..len).unwrap_or_default();
    source.read_exact_at(at, present)?;
    for signature in [4, 0] {
        for width in [4_u64, 8] {
            let len = signature + 4 + 2 * width;
            let mut fields = Fields(present);
            if (present.len() as u64) < len || (signature == 4 && fields.array() != *b"PK\x07\x08") {
                continue;
            }
            let crc32 = fields.u32();
            let (stored_len, len_declared) = if width == 4 {
                (u64::from(fields.u32()), u64::from(fields.u32()))
            } else {
                (fields.u64(), fields.u64())
            };
            if (crc32, stored_len, len_declared) == (entry.crc32, entry.stored_len, entry.len) {
                return Ok(at + len);
            }
        }
    }
    findings.add(Some(idx), at, Problem::Descriptor {});
    // Its length is a guess, so that one wrong field is one finding.
    let guess = if present.starts_with(b"PK\x07\x08") { 16 } else { 0 };
    Ok(at + guess.min(present.len() as u64))
}

/// Finds names that occur twice.
pub(crate) fn names(entries: &[Entry], findings: &mut Findings) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    let name = |idx: usize| entries.get(idx).map_or(&[][..], Entry::name_bytes);
    order.sort_by(|left, right| name(*left).cmp(name(*right)));
    for pair in order.windows(2) {
        if let [first, second] = *pair
            && name(first) == name(second)
            && let Some(entry) = entries.get(second)
        {
            findings.add(Some(second), entry.central, Problem::Duplicate {});
        }
    }
}
