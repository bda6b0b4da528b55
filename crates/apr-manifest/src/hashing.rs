//! Digests of many files in parallel, in bounded memory.

use core::num::NonZeroUsize;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::thread;

use crate::digest::{Digest, HashAlgorithm, Hasher};
use crate::error::{Error, ErrorKind};
use crate::walk::{Found, failed};

/// Called from any thread with the number of bytes that were read since the last call, and of all that will be.
pub type Watch<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// What one thread holds of a file.
const BUFFER_LEN: usize = 256 * 1024;

/// Maximum number of threads: more do not read faster from a disk.
const MAX_THREADS: usize = 16;

/// A run of bytes to be hashed.
pub(crate) struct Job {
    pub(crate) file_idx: usize,
    pub(crate) range: Range<u64>,
}

/// The digest of each job, in their order.
pub(crate) fn hash_all(
    files: &[Found],
    jobs: &[Job],
    algorithm: HashAlgorithm,
    watch: Watch<'_>,
) -> Result<Vec<Digest>, Error> {
    // Long ones first: the last thread to finish should not have begun with the longest.
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    let len = |idx: &usize| jobs.get(*idx).map_or(0, |job| job.range.end - job.range.start);
    order.sort_by_key(|idx| core::cmp::Reverse(len(idx)));
    let total = order.iter().map(len).fold(0, u64::saturating_add);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let mut buffer = vec![0; BUFFER_LEN];
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let Some(idx) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            let Some((job, file)) = jobs.get(*idx).and_then(|job| Some((job, files.get(job.file_idx)?)))
            else {
                break;
            };
            let digest = hash_one(file, &job.range, algorithm, &mut buffer, &|now| watch(now, total));
            if digest.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            done.push((*idx, digest));
        }
        done
    };
    let n_threads =
        thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS).min(jobs.len());
    let mut done: Vec<(usize, Result<Digest, Error>)> = if n_threads > 1 {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("hashing does not panic")).collect()
        })
    } else {
        work()
    };
    done.sort_by_key(|(idx, _)| *idx);
    done.into_iter().map(|(_, digest)| digest).collect()
}

/// The digest of `range` of a file, which must have the length it was found with.
fn hash_one(
    file: &Found,
    range: &Range<u64>,
    algorithm: HashAlgorithm,
    buffer: &mut [u8],
    watch: &dyn Fn(u64),
) -> Result<Digest, Error> {
    let mut hasher = Hasher::new(algorithm);
    let read = read_range(&file.path, file.len, range, buffer, |data| {
        hasher.update(data);
        watch(data.len() as u64);
    });
    read.map_err(|error| error.of_name(&file.name))?;
    Ok(hasher.finish())
}

/// Hands `range` of a regular file of `len` bytes to `take`, piece by piece.
pub(crate) fn read_range(
    path: &Path,
    len: u64,
    range: &Range<u64>,
    buffer: &mut [u8],
    mut take: impl FnMut(&[u8]),
) -> Result<(), Error> {
    let unstable = || Error::from(ErrorKind::Unstable).in_file(path);
    let opened = durable_file::open_regular(path, u64::MAX)?;
    if opened.len() != len {
        return Err(unstable());
    }
    let mut file = opened.into_file();
    let cannot_read = |error: io::Error| failed("read", error).in_file(path);
    if range.start > 0 {
        file.seek(SeekFrom::Start(range.start)).map_err(cannot_read)?;
    }
    // At the end of the file, one more byte is requested, which must not exist.
    let is_last = range.end == len;
    let mut left = range.end - range.start;
    while left > 0 || is_last {
        let step = if left == 0 { 1 } else { usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len()) };
        let (now, _) = buffer.split_at_mut(step);
        match file.read(now) {
            Ok(0) if left == 0 => break,
            Ok(0) => return Err(unstable()),
            Ok(_) if left == 0 => return Err(unstable()),
            Ok(count) => {
                take(now.get(..count).unwrap_or_default());
                left = left.saturating_sub(count as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(cannot_read(error)),
        }
    }
    Ok(())
}
