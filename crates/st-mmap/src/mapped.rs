//! A mapped safetensors file.

use alloc::sync::Arc;
use std::path::{Path, PathBuf};

use st_core::{Header, ReadOptions, TensorView};

use crate::error::{Error, ErrorKind, InFile, not_found};
use crate::file::SafeTensorsFile;
use crate::map::{Advice, Mapping};
use crate::views;

/// A safetensors file mapped into memory: tensors are views of the file, nothing is copied.
///
/// The header is read, not mapped, and owned: what was checked stays checked, and opening never raises a
/// signal. The tensors are the file's own pages; [`Mapping`] describes the consequences: **if another program
/// shortens the file, touching the lost part ends the process with SIGBUS**, and if one writes into it, views
/// change. Use [`SafeTensorsFile`] where that can happen.
///
/// # Examples
///
/// ```
/// use st_core::{Dtype, TensorView, WriteOptions};
/// use st_mmap::{Advice, MappedSafeTensors};
///
/// # let path = std::env::temp_dir().join(format!("st-mmap-doc-mapped-{}", std::process::id()));
/// let data: Vec<u8> = [1.0_f32, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
/// st_mmap::save(&path, &[("w", TensorView::new(Dtype::F32, &[2], &data)?)], &WriteOptions::default())?;
///
/// let file = MappedSafeTensors::open(&path)?;
/// file.advise(Advice::WillNeed)?;
/// assert_eq!(file.tensor("w")?.to_f32()?.collect::<Vec<_>>(), [1.0, 2.0]);
/// assert!(file.tensor("b").is_err());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MappedSafeTensors {
    header: Arc<Header>,
    mapping: Mapping,
    path: PathBuf,
}

impl SafeTensorsFile {
    /// Maps the file that is open here. See [`MappedSafeTensors`] for what that means.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::AddressSpace`], [`ErrorKind::Shrunk`] or [`ErrorKind::Io`].
    pub fn map(&self) -> Result<MappedSafeTensors, Error> {
        let (header, mapping) = self.map_parts()?;
        Ok(MappedSafeTensors { header, mapping, path: self.path().to_path_buf() })
    }
}

impl MappedSafeTensors {
    /// Opens, checks (strictly, with the default limits) and maps a file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`] if it cannot be opened or is not a regular file, [`ErrorKind::Format`] if the
    /// header is invalid, [`ErrorKind::AddressSpace`], [`ErrorKind::Shrunk`] or [`ErrorKind::Io`] if it
    /// cannot be mapped.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &ReadOptions::STRICT)
    }

    /// Opens, checks and maps a file.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, Error> {
        SafeTensorsFile::open_with(path, options)?.map()
    }

    /// The table of tensors.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The path it was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file, header included.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.mapping.bytes()
    }

    /// A tensor by name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`] if there is no such tensor.
    pub fn tensor(&self, name: &str) -> Result<TensorView<'_>, Error> {
        views::tensor(&self.header, self.data(), name).in_file(&self.path)
    }

    /// All tensors in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, TensorView<'_>)> {
        views::iter(&self.header, self.data())
    }

    /// Tells the system how the file will be used.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] with the system's reason; see [`Mapping::advise`].
    pub fn advise(&self, advice: Advice) -> Result<(), Error> {
        self.mapping
            .advise(advice)
            .map_err(|error| ErrorKind::Io { operation: "advise", error })
            .in_file(&self.path)
    }

    /// Tells the system how the pages of one tensor will be used.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`] if there is no such tensor, otherwise as [`advise`](Self::advise).
    pub fn advise_tensor(&self, name: &str, advice: Advice) -> Result<(), Error> {
        let info = self.header.tensor(name).ok_or_else(|| not_found(name).in_file(&self.path))?;
        let range = info.file_range();
        // Both fit: the whole file is mapped.
        self.mapping
            .advise_range(advice, range.start as usize, info.byte_len() as usize)
            .map_err(|error| ErrorKind::Io { operation: "advise", error }.at(&self.path).of_tensor(name))
    }

    fn data(&self) -> &[u8] {
        self.mapping.bytes().get(self.header.data_start() as usize..).unwrap_or_default()
    }
}
