//! Writes safetensors files atomically.

use alloc::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use durable_file::Replacement;
use st_core::{Header, Layout, Planned, ReadOptions, TensorSpec, TensorView, WriteOptions};

use crate::error::{Error, ErrorKind, InFile};
use crate::positioned::PositionedFile;

/// Small tensors are collected up to this many bytes per write; larger pieces go to the file directly. A
/// quarter of a mebibyte stays in the processor's cache and makes the call that writes it negligible.
const BUFFER: usize = 256 << 10;

/// Saves tensors as a safetensors file, replacing an old one in one step.
///
/// Whatever happens meanwhile, the path names the old file or the new one, complete; a map of the old file
/// stays intact. The bytes depend on the arguments only.
///
/// # Errors
///
/// [`ErrorKind::Format`] if the tensors cannot be laid out (a duplicate name, for example),
/// [`ErrorKind::File`] or [`ErrorKind::Io`] if the file cannot be written. The old file is untouched then.
///
/// # Examples
///
/// ```
/// use st_core::{Dtype, TensorView, WriteOptions};
///
/// # let path = std::env::temp_dir().join(format!("st-mmap-doc-save-{}", std::process::id()));
/// let data = 1.5_f32.to_le_bytes();
/// let view = TensorView::new(Dtype::F32, &[], &data)?;
/// st_mmap::save(&path, &[("bias", view)], &WriteOptions::default())?;
/// assert_eq!(st_mmap::MappedSafeTensors::open(&path)?.tensor("bias")?.data(), data);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn save(
    path: impl AsRef<Path>,
    tensors: &[(&str, TensorView<'_>)],
    options: &WriteOptions,
) -> Result<(), Error> {
    let path = path.as_ref();
    let layout = lay_out(tensors, options).in_file(path)?;
    replace(path, Replacement::create(path)?, Survives::PowerCut, |out| write_tensors(&layout, tensors, out))
}

/// Saves a safetensors file whose tensors are produced one at a time.
///
/// `pull` is called once for each tensor, in file order, and writes exactly [`Planned::byte_len`] bytes;
/// [`Planned::input_idx`] identifies the tensor, counted as they were given to [`Layout::new`]. Besides what `pull`
/// holds, less than 1 MiB of memory is used, so a model can be larger than memory.
///
/// # Errors
///
/// Those of [`save`], and [`ErrorKind::Format`] if `pull` writes too little or too much. An error of `pull`
/// ends the save: an [`Error`] of this crate inside it comes back as it is, any other as [`ErrorKind::File`]
/// with the
/// `io::Error` as its source. The old file is untouched then.
///
/// # Examples
///
/// ```
/// use st_core::{Dtype, Layout, TensorSpec, WriteOptions};
///
/// # let path = std::env::temp_dir().join(format!("st-mmap-doc-stream-{}", std::process::id()));
/// let shape = [1000];
/// let specs = ["a", "b"].map(|name| TensorSpec { name, dtype: Dtype::U8, shape: &shape });
/// let layout = Layout::new(specs, &WriteOptions::default())?;
/// st_mmap::save_layout(&path, &layout, |planned, out| out.write_all(&[planned.input_idx as u8; 1000]))?;
/// assert_eq!(st_mmap::MappedSafeTensors::open(&path)?.tensor("b")?.data(), [1; 1000]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn save_layout(
    path: impl AsRef<Path>,
    layout: &Layout,
    pull: impl FnMut(&Planned, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    save_layout_surviving(path, layout, Survives::PowerCut, pull)
}

/// What a finished save outlives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Survives {
    /// A power cut: the save waits until the medium has the file and its name.
    #[default]
    PowerCut,
    /// The end of this program, however sudden. After a power cut within the next seconds the path may name the old file,
    /// the new one or, on some file systems, a damaged one. Several times faster where the medium is slow.
    Process,
}

/// As [`save_layout`], with a choice of what the file survives. The path never names half a file to another program.
///
/// # Errors
///
/// Those of [`save_layout`].
///
/// # Examples
///
/// ```
/// use st_core::{Dtype, Layout, TensorSpec, WriteOptions};
/// use st_mmap::Survives;
///
/// # let path = std::env::temp_dir().join(format!("st-mmap-doc-survives-{}", std::process::id()));
/// let layout = Layout::new([TensorSpec { name: "a", dtype: Dtype::U8, shape: &[3] }], &WriteOptions::default())?;
/// st_mmap::save_layout_surviving(&path, &layout, Survives::Process, |_, out| out.write_all(b"abc"))?;
/// assert_eq!(st_mmap::MappedSafeTensors::open(&path)?.tensor("a")?.data(), b"abc");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn save_layout_surviving(
    path: impl AsRef<Path>,
    layout: &Layout,
    survives: Survives,
    pull: impl FnMut(&Planned, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let path = path.as_ref();
    replace(path, Replacement::create(path)?, survives, |out| layout.write_streamed(out, pull))
}

/// Replaces the metadata of a file **in place**; `None` removes it.
///
/// Only the header is written, whatever the size of the file, so the new metadata has to fit the header's
/// padding ([`WriteOptions::header_room`] reserves some). Tensors are not touched and do not move.
///
/// This is the one function of the crate that changes an existing file. The header is written by one call and
/// flushed, but a power cut during that call can leave old and new pages mixed if it spans several: the file
/// is then refused when read, or has parts of both metadata. The change shows in every hard link of the file,
/// through links, and to programs that have it open.
///
/// # Errors
///
/// [`ErrorKind::Format`] if the file is not valid or its header has too little space: then
/// [`NoHeaderRoom`](st_core::ErrorKind::NoHeaderRoom) has the number of missing bytes and nothing was
/// written. [`ErrorKind::Replaced`] if another program replaced the file meanwhile. [`ErrorKind::File`] or
/// [`ErrorKind::Io`] if it cannot be opened or written.
///
/// # Examples
///
/// ```
/// use std::collections::BTreeMap;
///
/// use st_core::{Dtype, TensorView, WriteOptions};
///
/// # let path = std::env::temp_dir().join(format!("st-mmap-doc-meta-{}", std::process::id()));
/// let view = TensorView::new(Dtype::U8, &[3], &[1, 2, 3])?;
/// let options = WriteOptions { header_room: 100, ..WriteOptions::default() };
/// st_mmap::save(&path, &[("w", view)], &options)?;
///
/// let metadata = BTreeMap::from([("licence".to_owned(), "MIT".to_owned())]);
/// st_mmap::set_metadata(&path, Some(&metadata))?;
/// let file = st_mmap::SafeTensorsFile::open(&path)?;
/// assert_eq!(file.header().metadata().and_then(|metadata| metadata.get("licence")), Some("MIT"));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_metadata(
    path: impl AsRef<Path>,
    metadata: Option<&BTreeMap<String, String>>,
) -> Result<(), Error> {
    let path = path.as_ref();
    let options = ReadOptions::STRICT;
    let file = PositionedFile::open(path)?;
    let old = file.read_prefix(&options)?;
    let header = Header::from_prefix(&old, file.len(), &options).in_file(path)?;
    let new = header.with_metadata(metadata).in_file(path)?;
    if new == old {
        return Ok(());
    }
    let io = |operation| move |error| ErrorKind::Io { operation, error }.at(path);
    // The name may lead elsewhere by now: write only to the file that was checked.
    let mut target = OpenOptions::new().read(true).write(true).open(path).map_err(io("open for writing"))?;
    if !file.is_same(&target).map_err(io("stat"))? {
        return Err(ErrorKind::Replaced.at(path));
    }
    target.write_all(&new).map_err(io("write"))?;
    target.sync_all().map_err(io("flush"))
}

/// Lays out tensors given as views.
pub(crate) fn lay_out(
    tensors: &[(&str, TensorView<'_>)],
    options: &WriteOptions,
) -> Result<Layout, st_core::Error> {
    let specs =
        tensors.iter().map(|(name, view)| TensorSpec { name, dtype: view.dtype(), shape: view.shape() });
    Layout::new(specs, options)
}

/// Writes tensors given as views, in file order.
pub(crate) fn write_tensors<W: Write>(
    layout: &Layout,
    tensors: &[(&str, TensorView<'_>)],
    out: &mut W,
) -> io::Result<()> {
    let data: Vec<&[u8]> = tensors.iter().map(|(_, view)| view.data()).collect();
    layout.write_to(out, &data)
}

/// Fills a replacement through a buffer and puts it in place.
pub(crate) fn replace(
    path: &Path,
    mut replacement: Replacement,
    survives: Survives,
    fill: impl FnOnce(&mut BufWriter<&mut Replacement>) -> io::Result<()>,
) -> Result<(), Error> {
    match buffered(&mut replacement, fill) {
        Ok(_) => Ok(match survives {
            Survives::PowerCut => replacement.commit(),
            Survives::Process => replacement.commit_unsynced(),
        }?),
        Err(error) => {
            Err(own_error(error, |error| ErrorKind::File(replacement.write_error(error))).in_file(path))
        }
    }
}

/// Runs `fill` on a buffer over `out`; after an error nothing more is written.
pub(crate) fn buffered<W: Write>(
    out: W,
    fill: impl FnOnce(&mut BufWriter<W>) -> io::Result<()>,
) -> io::Result<W> {
    let mut writer = BufWriter::with_capacity(BUFFER, out);
    let filled = fill(&mut writer).and_then(|()| writer.flush());
    // Taken apart rather than dropped: dropping would write what is left to a disk that just refused it.
    let (out, _) = writer.into_parts();
    filled.map(|()| out)
}

/// Takes the errors of `st-core` and of this crate out of the `io::Error` in which they passed through a
/// writer; `other` is for those of the system.
pub(crate) fn own_error(error: io::Error, other: impl FnOnce(io::Error) -> ErrorKind) -> Error {
    match error.downcast::<st_core::Error>() {
        Ok(error) => error.into(),
        Err(error) => error.downcast::<Error>().unwrap_or_else(|error| other(error).into()),
    }
}

impl PositionedFile {
    /// Whether `other` is this very file.
    fn is_same(&self, other: &File) -> io::Result<bool> {
        let (mine, theirs) = (self.metadata()?, other.metadata()?);
        #[cfg(unix)]
        let same = {
            use std::os::unix::fs::MetadataExt;
            (mine.dev(), mine.ino()) == (theirs.dev(), theirs.ino())
        };
        // Without file numbers, kind and length are what can be compared.
        #[cfg(not(unix))]
        let same = theirs.is_file();
        Ok(same && mine.len() == theirs.len() && theirs.len() == self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_of_the_same_name_is_told_apart() {
        let path = std::env::temp_dir().join(format!("st-mmap-same-{}", std::process::id()));
        std::fs::write(&path, b"one").unwrap();
        let first = PositionedFile::open(&path).unwrap();
        assert!(first.is_same(&File::open(&path).unwrap()).unwrap());
        std::fs::write(&path, b"longer").unwrap();
        assert!(!first.is_same(&File::open(&path).unwrap()).unwrap(), "another length");
        durable_file::write(&path, b"two").unwrap();
        #[cfg(unix)]
        assert!(!first.is_same(&File::open(&path).unwrap()).unwrap(), "another file");
        std::fs::remove_file(&path).unwrap();
    }
}
