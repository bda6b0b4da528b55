//! A whole file in memory.

use core::fmt;
use core::ops::Deref;

use crate::error::Error;
use crate::header::Header;
use crate::options::ReadOptions;
use crate::tensor::TensorInfo;

/// A file in memory: a [`Header`], to which it dereferences, and the tensor data. Nothing is copied.
///
/// ```
/// use gguf_core::Dtype;
/// use gguf_core::{Gguf, GgufBuilder, Value};
///
/// let mut builder = GgufBuilder::new();
/// builder.set("general.architecture", "demo")?;
/// builder.set("demo.width", 2u32)?;
/// builder.add_tensor("w", Dtype::F32, &[1, 2])?;
/// let file = builder.layout()?.to_vec(&[&[0; 8]])?;
///
/// let gguf = Gguf::from_bytes(&file)?;
/// assert_eq!(gguf.get("demo.width"), Some(Value::U32(2)));
/// let info = gguf.tensor("w")?;
/// assert!(info.shape().eq([1, 2]));
/// assert_eq!(gguf.tensor_data(info), Some(&[0; 8][..]));
///
/// // Invalid input is an error with its kind and offset.
/// let error = Gguf::from_bytes(&file[..file.len() - 1]).expect_err("one byte is missing");
/// assert_eq!(error.code(), "gg-data-end");
/// # Ok::<(), gguf_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Gguf<'data> {
    header: Header<'data>,
    file: &'data [u8],
}

impl<'data> Gguf<'data> {
    /// Reads a file with [`ReadOptions::STRICT`]. A file within another is given from its own first byte on.
    ///
    /// # Errors
    ///
    /// As [`Header::from_prefix`] and [`Header::check_file_len`].
    pub fn from_bytes(file: &'data [u8]) -> Result<Self, Error> {
        Self::from_bytes_with(file, &ReadOptions::STRICT)
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// As [`Header::from_prefix`] and [`Header::check_file_len`].
    pub fn from_bytes_with(file: &'data [u8], options: &ReadOptions) -> Result<Self, Error> {
        let header = Header::from_bytes(file, options)?;
        header.check_file_len(file.len() as u64, options.strictness)?;
        Ok(Self { header, file })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Header<'data> {
        &self.header
    }

    /// The bytes of a tensor of this file, in the file's byte order; `None` for one of another file that reaches beyond
    /// this one.
    #[must_use]
    pub fn tensor_data(&self, info: &TensorInfo<'_>) -> Option<&'data [u8]> {
        let range = info.file_range();
        self.file.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }

    /// Bytes after the last tensor and its padding: all readers ignore them.
    #[must_use]
    pub fn trailing_bytes(&self) -> &'data [u8] {
        let end = self.header.data_start() + self.header.data_len();
        usize::try_from(end).ok().and_then(|end| self.file.get(end..)).unwrap_or_default()
    }
}

impl<'data> Deref for Gguf<'data> {
    type Target = Header<'data>;

    fn deref(&self) -> &Self::Target {
        &self.header
    }
}

impl fmt::Debug for Gguf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header.fmt(f)
    }
}
