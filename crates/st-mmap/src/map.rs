//! Maps a file read-only. The only module of the crate with `unsafe`.
//!
//! The limits of mapped files are documented at [`Mapping`]; the rest of the crate only sees a `&[u8]`.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Mmap, MmapMut, MmapOptions};

use crate::error::{Error, ErrorKind};
use crate::positioned::PositionedFile;

/// A regular file, mapped read-only in full.
///
/// # What a map cannot promise
///
/// The bytes are the file's, not a copy. If another program shortens the file, touching a page beyond the new
/// end raises SIGBUS and ends the process; so does a page that a disk or a network file system cannot
/// deliver. If another program writes into the file, the bytes change under the reader. Files replaced by
/// rename (as [`save`](crate::save()) does) are safe: the map keeps the old content. For files that may
/// shrink or change use [`SafeTensorsFile`](crate::SafeTensorsFile).
///
/// # Examples
///
/// ```
/// # let path = std::env::temp_dir().join(format!("st-mmap-doc-mapping-{}", std::process::id()));
/// std::fs::write(&path, b"any file")?;
/// let mapping = st_mmap::Mapping::open(&path)?;
/// assert_eq!(mapping.bytes(), b"any file");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Mapping {
    map: Mmap,
}

impl Mapping {
    /// Opens and maps a regular file; an empty one gives no bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`] if the file cannot be opened or is not a regular file, [`ErrorKind::AddressSpace`]
    /// if it is larger than this machine can address, [`ErrorKind::Shrunk`] if it was shortened meanwhile,
    /// [`ErrorKind::Io`] if the system refuses to map it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = PositionedFile::open(path.as_ref())?;
        file.map()
    }

    /// Maps the first `len` bytes of an open file.
    pub(crate) fn of(file: &File, len: u64) -> Result<Self, ErrorKind> {
        let map_len = map_len(len)?;
        // SAFETY: `map` asks that the memory stays valid and unchanged while borrowed.
        // - The map is private to this struct, read-only, and unmapped on drop; `bytes` borrows from `self`.
        // - `len` is at most `isize::MAX`: memmap2 checks it and fails otherwise.
        // - `file` is a regular file (`PositionedFile::open` refuses everything else), so reading it has no effect.
        // - That no other process changes or shortens the file cannot be established by any check. A shortened
        //   file raises a signal instead of giving wrong memory; a changed one changes the bytes seen. No
        //   memory-safety decision is taken from mapped bytes: header and offsets are parsed from a private
        //   copy, and every slice is bounded by the length of the map. The documentation of the type states this.
        let map = unsafe { MmapOptions::new().len(map_len).map(file) }
            .map_err(|error| ErrorKind::Io { operation: "map", error })?;
        still_whole(file, len)?;
        Ok(Self { map })
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Tells the system how the bytes will be used. Does nothing where the platform has no such call.
    ///
    /// # Errors
    ///
    /// The system's own, in particular [`Advice::PopulateRead`] on a kernel before Linux 5.14, or when a page
    /// cannot be read.
    pub fn advise(&self, advice: Advice) -> io::Result<()> {
        self.advise_range(advice, 0, self.map.len())
    }

    /// [`advise`](Self::advise) for `len` bytes from `offset`, rounded to pages.
    pub(crate) fn advise_range(&self, advice: Advice, offset: usize, len: usize) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        #[cfg(unix)]
        {
            let advice = match advice {
                Advice::Normal => memmap2::Advice::Normal,
                Advice::Random => memmap2::Advice::Random,
                Advice::Sequential => memmap2::Advice::Sequential,
                Advice::WillNeed => memmap2::Advice::WillNeed,
                #[cfg(target_os = "linux")]
                Advice::PopulateRead => memmap2::Advice::PopulateRead,
                #[cfg(not(target_os = "linux"))]
                Advice::PopulateRead => memmap2::Advice::WillNeed,
            };
            self.map.advise_range(advice, offset, len)
        }
        #[cfg(not(unix))]
        {
            let _ = (advice, offset);
            Ok(())
        }
    }
}

/// A regular file, mapped in full for reading and for writing **to memory only**: what is written is seen through this map
/// alone, never by the file or another program. Pages that are not written to stay those of the file, so what
/// [`Mapping`] documents about shortened and changed files holds for them.
#[derive(Debug)]
pub struct PrivateMapping {
    map: MmapMut,
}

impl PrivateMapping {
    pub(crate) fn of(file: &File, len: u64) -> Result<Self, ErrorKind> {
        let map_len = map_len(len)?;
        // SAFETY: as for `Mapping::of`. Writes go to copies of the pages (MAP_PRIVATE), which this struct owns; `bytes_mut`
        // borrows it exclusively.
        let map = unsafe { MmapOptions::new().len(map_len).map_copy(file) }
            .map_err(|error| ErrorKind::Io { operation: "map", error })?;
        still_whole(file, len)?;
        Ok(Self { map })
    }

    /// The whole file, with what was written to it here.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// The same, to write to. The file does not change.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }
}

fn map_len(len: u64) -> Result<usize, ErrorKind> {
    usize::try_from(len).map_err(|_| ErrorKind::AddressSpace { len })
}

fn still_whole(file: &File, len: u64) -> Result<(), ErrorKind> {
    let now = file.metadata().map_err(|error| ErrorKind::Io { operation: "stat", error })?.len();
    if now < len { Err(ErrorKind::Shrunk { expected: len }) } else { Ok(()) }
}

/// How mapped bytes will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// Nothing special: the system reads some pages ahead.
    Normal,
    /// Single places here and there: reading ahead is waste.
    Random,
    /// From front to back: read far ahead.
    Sequential,
    /// Soon: begin to read, do not wait.
    WillNeed,
    /// Now: read every page and wait for it. A page that is beyond the end of a shortened file or cannot be
    /// read is an error here, not a signal later. Linux; elsewhere the same as `WillNeed`.
    PopulateRead,
}
