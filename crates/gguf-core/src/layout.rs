//! Writing, first phase: pure arithmetic that determines every byte except the tensor data.

use alloc::vec::Vec;

use crate::builder::{EncodedEntry, TensorSpec};
use crate::cursor::Form;
use crate::error::{Error, ErrorKind};
use crate::header::{MAGIC, VERSION, before_nul, index};
use crate::value::{put_number, put_text};

/// Where a tensor of a [`Layout`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Which of the tensors it is, in the order in which they were added.
    pub idx: usize,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Size in bytes.
    pub byte_len: u64,
    /// Zero bytes after it.
    pub padding: u64,
}

impl Planned {
    /// Refuses data of another length.
    pub(crate) fn check_len(&self, given: u64) -> Result<(), Error> {
        match self.byte_len {
            needed if needed == given => Ok(()),
            needed => Err(Error::from(ErrorKind::DataLength { needed, given }).at(self.offset)),
        }
    }
}

/// A file with all lengths and offsets determined, before it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    header: Vec<u8>,
    data_start: u64,
    tensors: Vec<Planned>,
    file_len: u64,
}

impl Layout {
    pub(crate) fn new(
        form: Form,
        alignment: u32,
        entries: &[EncodedEntry],
        tensors: &[TensorSpec],
    ) -> Result<Self, Error> {
        let name = |spec: &TensorSpec| Error::from(ErrorKind::DuplicateTensor).of_tensor(&spec.name);
        index(tensors, |spec| before_nul(&spec.name)).map_err(name)?;
        let mut header = Vec::new();
        let put = |header: &mut Vec<u8>, number: u64, size| put_number(header, number, size, form.endian);
        header.extend_from_slice(&MAGIC);
        put(&mut header, VERSION.into(), 4);
        put(&mut header, tensors.len() as u64, 8);
        put(&mut header, entries.len() as u64, 8);
        for entry in entries {
            put_text(&mut header, &entry.key, form);
            header.extend_from_slice(&entry.value);
        }
        let mut planned = Vec::with_capacity(tensors.len());
        let mut end = 0u64;
        for (idx, spec) in tensors.iter().enumerate() {
            put_text(&mut header, &spec.name, form);
            put(&mut header, spec.dims.len() as u64, 4);
            spec.dims.iter().for_each(|dim| put(&mut header, *dim, 8));
            let number = spec.dtype.ggml_type().map_or(u32::MAX, |number| number.0);
            put(&mut header, number.into(), 4);
            put(&mut header, end, 8);
            let padded = spec.byte_len.checked_next_multiple_of(alignment.into());
            let next = padded.and_then(|padded| Some((padded, end.checked_add(padded)?)));
            let (padded, next) =
                next.ok_or_else(|| Error::from(ErrorKind::SizeOverflow).of_tensor(&spec.name))?;
            let padding = padded - spec.byte_len;
            planned.push(Planned { idx, offset: end, byte_len: spec.byte_len, padding });
            end = next;
        }
        // No overflow: a length in memory and 2^31 at most.
        let data_start = (header.len() as u64).next_multiple_of(alignment.into());
        let file_len = data_start.checked_add(end).ok_or(ErrorKind::SizeOverflow)?;
        planned.iter_mut().for_each(|tensor| tensor.offset += data_start);
        Ok(Self { header, data_start, tensors: planned, file_len })
    }

    /// Everything before the tensor data, without the padding up to [`data_start`](Self::data_start).
    #[must_use]
    pub fn header_bytes(&self) -> &[u8] {
        &self.header
    }

    /// Where the tensor data begin, from the start of the file.
    #[must_use]
    pub const fn data_start(&self) -> u64 {
        self.data_start
    }

    /// Length of the file in bytes.
    #[must_use]
    pub const fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The tensors in file order.
    #[must_use]
    pub fn tensors(&self) -> &[Planned] {
        &self.tensors
    }

    /// The whole file in memory. `data` holds each tensor's bytes in the order in which they were added.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DataCount`] and [`ErrorKind::DataLength`] if `data` is not what was declared;
    /// [`ErrorKind::SizeOverflow`] if the padding of an extreme alignment exceeds 64 bits.
    pub fn to_vec(&self, data: &[&[u8]]) -> Result<Vec<u8>, Error> {
        self.check_data(data)?;
        let mut out = Vec::new();
        let len = usize::try_from(self.file_len).ok();
        len.and_then(|len| out.try_reserve_exact(len).ok()).ok_or(ErrorKind::SizeOverflow)?;
        out.extend_from_slice(&self.header);
        // Every index is below the length, which fits memory.
        out.resize(self.data_start as usize, 0);
        for (tensor, data) in self.tensors.iter().zip(data) {
            out.extend_from_slice(data);
            out.resize(out.len() + tensor.padding as usize, 0);
        }
        Ok(out)
    }

    pub(crate) fn check_data(&self, data: &[&[u8]]) -> Result<(), Error> {
        let (needed, given) = (self.tensors.len(), data.len());
        if needed != given {
            return Err(ErrorKind::DataCount { needed, given }.into());
        }
        self.tensors.iter().zip(data).try_for_each(|(tensor, data)| tensor.check_len(data.len() as u64))
    }
}
