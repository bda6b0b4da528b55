//! GGUF files.

use alloc::borrow::ToOwned as _;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use gguf_core::{Endian, Header, Prefix};
use read_at::ReadAt;
use tensor_dtype::TensorType;

use crate::error::{Error, ErrorKind};
use crate::tensor::{Origin, Tensor};

/// Bytes read at first: the header of most models without a tokenizer.
const FIRST_READ: u64 = 128 << 10;

/// The header of a GGUF file. Nothing of the tensors has been read.
#[derive(Debug)]
pub struct Gguf {
    /// The beginning of the file, with all of its header.
    head: Vec<u8>,
    file_len: u64,
    options: gguf_core::ReadOptions,
    endian: Endian,
    tensors: Vec<Row>,
}

/// A row of the table of tensors.
#[derive(Debug)]
struct Row {
    /// What is not UTF-8 with its bytes escaped (`\xff`): names that differ in them stay different.
    name: String,
    dtype: TensorType,
    shape: Vec<usize>,
    elements: u64,
    offset: u64,
    byte_len: u64,
}

impl Gguf {
    pub(crate) fn read(content: &dyn ReadAt, options: &gguf_core::ReadOptions) -> Result<Self, Error> {
        let file_len = content.total_len();
        let head = read_head(content, options)?;
        let header = header_in(&head, file_len, options)?;
        header.check_file_len(file_len, options.strictness)?;
        let endian = header.endian();
        let tensors = header.tensors().iter().map(|info| {
            let name = match info.name().to_str() {
                Ok(name) => name.to_owned(),
                Err(_) => info.name().as_bytes().escape_ascii().to_string(),
            };
            let count = |dim| {
                let kind = gguf_core::ErrorKind::Dimension { dim };
                usize::try_from(dim).map_err(|_| Error::from(gguf_core::Error::from(kind)).of_tensor(&name))
            };
            let shape = info.shape().map(count).collect::<Result<_, _>>()?;
            Ok(Row {
                dtype: TensorType::from(info.dtype()),
                shape,
                elements: info.element_count(),
                offset: info.file_range().start,
                byte_len: info.byte_len(),
                name,
            })
        });
        let tensors = tensors.collect::<Result<_, Error>>()?;
        drop(header);
        Ok(Self { head, file_len, options: *options, endian, tensors })
    }

    /// The header, parsed again: it borrows the bytes that are kept.
    ///
    /// # Errors
    ///
    /// None in practice: the same bytes were accepted when the file was opened.
    pub fn header(&self) -> Result<Header<'_>, Error> {
        header_in(&self.head, self.file_len, &self.options)
    }

    /// Bytes of the file.
    #[must_use]
    pub const fn file_len(&self) -> u64 {
        self.file_len
    }

    pub(crate) fn tensors<'m>(&'m self, content: &'m dyn ReadAt) -> Vec<Tensor<'m>> {
        self.tensors.iter().map(|row| self.tensor_of(row, content)).collect()
    }

    pub(crate) fn tensor_at<'m>(&'m self, index: usize, content: &'m dyn ReadAt) -> Option<Tensor<'m>> {
        self.tensors.get(index).map(|row| self.tensor_of(row, content))
    }

    fn tensor_of<'m>(&self, row: &'m Row, content: &'m dyn ReadAt) -> Tensor<'m> {
        let origin = Origin { content, offset: row.offset };
        let (kind, extent) = ((row.name.as_str(), row.dtype), (&row.shape[..], row.elements));
        Tensor::of_gguf(kind, extent, row.byte_len, origin, self.endian)
    }
}

/// As much of the beginning as the header takes, read in growing pieces.
fn read_head(content: &dyn ReadAt, options: &gguf_core::ReadOptions) -> Result<Vec<u8>, Error> {
    let len = content.total_len();
    let mut head = vec![];
    let mut wanted = FIRST_READ.min(len);
    loop {
        let at = head.len();
        // Not beyond the length of the file.
        head.resize(wanted as usize, 0);
        content.read_exact_at(at as u64, head.get_mut(at..).unwrap_or_default())?;
        match Header::from_prefix(&head, len, options)? {
            Prefix::Header(_) => return Ok(head),
            Prefix::More { needed } => wanted = needed.max(wanted.saturating_mul(4)).min(len),
        }
    }
}

fn header_in<'head>(
    head: &'head [u8],
    len: u64,
    options: &gguf_core::ReadOptions,
) -> Result<Header<'head>, Error> {
    match Header::from_prefix(head, len, options)? {
        Prefix::Header(header) => Ok(header),
        Prefix::More { needed } => {
            let available = head.len() as u64;
            Err(ErrorKind::OutOfRange { offset: 0, len: needed, available }.into())
        }
    }
}
