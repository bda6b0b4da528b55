//! Writing, first phase: pure arithmetic that determines every byte except the tensor data.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::dtype::byte_len;
use crate::error::{Error, ErrorKind};
use crate::grammar::METADATA_KEY;
use crate::header::LENGTH_FIELD;
use crate::header_text;
use crate::limits::MAX_HEADER_LEN;
use crate::name_index::{Duplicate, NameIndex, Names, hash};
use crate::view::TensorView;
use tensor_dtype::Dtype;

/// A tensor to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorSpec<'a> {
    /// Name; anything but `__metadata__`.
    pub name: &'a str,
    /// Type of the elements.
    pub dtype: Dtype,
    /// Dimensions, the slowest first.
    pub shape: &'a [usize],
}

/// Alignment of the start of the data section, by padding the header with spaces.
///
/// Tensors follow each other without gaps (the format allows none), so an alignment of the section is an
/// alignment of a tensor only where all before it have sizes that are multiples of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alignment(u32);

impl Alignment {
    /// 8 bytes, what official writers do.
    pub const B8: Self = Self(8);
    /// 64 bytes: a cache line, the widest vector register.
    pub const B64: Self = Self(64);
    /// 4096 bytes: a page, for mapping and direct I/O.
    pub const PAGE: Self = Self(4096);

    /// A power of two from 8 to 65,536 bytes.
    #[must_use]
    pub const fn new(bytes: u32) -> Option<Self> {
        if bytes.is_power_of_two() && bytes >= 8 && bytes <= 65_536 { Some(Self(bytes)) } else { None }
    }

    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.0
    }
}

impl Default for Alignment {
    fn default() -> Self {
        Self::B8
    }
}

/// In which order tensors follow each other in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As official writers do: the greatest [`Dtype`] first, then by the bytes of the names. Every tensor is
    /// aligned to its elements.
    #[default]
    Official,
    /// By the bytes of the names.
    ByName,
    /// As given.
    AsGiven,
}

/// How to write a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Free-form metadata, written in key order. An empty map is written as an empty object.
    pub metadata: Option<BTreeMap<String, String>>,
    /// Alignment of the data section.
    pub alignment: Alignment,
    /// Order of the tensors.
    pub order: Order,
    /// Spaces to keep in the header, in bytes, so that metadata can grow later without rewriting the file
    /// ([`Header::with_metadata`](crate::Header::with_metadata)).
    pub header_room: usize,
}

/// Where a tensor of a [`Layout`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Which of the tensors given to [`Layout::new`] it is.
    pub input_idx: usize,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Size in bytes.
    pub byte_len: u64,
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
///
/// Equal input gives equal bytes; with default options they are the bytes of the official writer, whose
/// order of metadata is random where ours is sorted.
///
/// ```
/// use st_core::{Dtype, Layout, TensorSpec, WriteOptions};
///
/// let tensors = [TensorSpec { name: "w", dtype: Dtype::U8, shape: &[3] }];
/// let layout = Layout::new(tensors, &WriteOptions::default())?;
/// assert_eq!(layout.file_len() as usize, layout.header_bytes().len() + 3);
/// let file = layout.to_vec(&[b"abc"])?;
/// assert!(file.ends_with(b"abc"));
/// # Ok::<(), st_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    header: Vec<u8>,
    tensors: Vec<Planned>,
    file_len: u64,
}

impl Layout {
    /// Lays tensors out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ReservedName`], [`ErrorKind::DuplicateTensor`], [`ErrorKind::SizeOverflow`] and
    /// [`ErrorKind::PartialByte`] name the tensor; [`ErrorKind::HeaderTooLarge`] if no reader would accept the
    /// header.
    pub fn new<'a>(
        tensors: impl IntoIterator<Item = TensorSpec<'a>>,
        options: &WriteOptions,
    ) -> Result<Self, Error> {
        Self::of_specs(Specs(tensors.into_iter().collect()), options)
    }

    /// One function for all iterators that tensors come from.
    fn of_specs(specs: Specs<'_>, options: &WriteOptions) -> Result<Self, Error> {
        if let Err(Duplicate(_, second)) = NameIndex::new(&specs) {
            return Err(Error::from(ErrorKind::DuplicateTensor).of_tensor(specs.name(second)));
        }
        let specs = specs.0;
        let mut order: Vec<usize> = (0..specs.len()).collect();
        match options.order {
            Order::Official => order.sort_by(|&a, &b| {
                let (a, b) = (&specs[a], &specs[b]);
                b.dtype.cmp(&a.dtype).then(a.name.cmp(b.name))
            }),
            Order::ByName => order.sort_by_key(|&idx| specs[idx].name),
            Order::AsGiven => {}
        }

        let mut end = 0u64;
        let mut planned = Vec::with_capacity(order.len());
        for input_idx in order {
            let spec = &specs[input_idx];
            if spec.name == METADATA_KEY {
                return Err(Error::from(ErrorKind::ReservedName).of_tensor(spec.name));
            }
            let byte_len = byte_len(spec.dtype, spec.shape).map_err(|error| error.of_tensor(spec.name))?;
            planned.push(Planned { input_idx, offset: end, byte_len });
            end = end
                .checked_add(byte_len)
                .ok_or_else(|| Error::from(ErrorKind::SizeOverflow).of_tensor(spec.name))?;
        }

        let mut header = alloc::vec![0; LENGTH_FIELD as usize];
        let entries = planned.iter().map(|tensor| {
            let TensorSpec { name, dtype, shape } = specs[tensor.input_idx];
            header_text::Entry {
                name,
                dtype,
                shape,
                offsets: (tensor.offset, tensor.offset + tensor.byte_len),
            }
        });
        header_text::write(&mut header, options.metadata.as_ref(), entries);
        let start = (header.len() as u64)
            .saturating_add(options.header_room as u64)
            .checked_next_multiple_of(options.alignment.0.into())
            .unwrap_or(u64::MAX);
        let len = start - LENGTH_FIELD;
        if len > MAX_HEADER_LEN {
            return Err(ErrorKind::HeaderTooLarge { len, limit: MAX_HEADER_LEN }.into());
        }
        header.resize(start as usize, b' ');
        header[..LENGTH_FIELD as usize].copy_from_slice(&len.to_le_bytes());

        let file_len = start.checked_add(end).ok_or(ErrorKind::SizeOverflow)?;
        planned.iter_mut().for_each(|tensor| tensor.offset += start);
        Ok(Self { header, tensors: planned, file_len })
    }

    /// Everything before the first tensor: the length field and the padded JSON text.
    #[must_use]
    pub fn header_bytes(&self) -> &[u8] {
        &self.header
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

    /// The whole file in memory. `data` holds each tensor's bytes in the order given to [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DataCount`] and [`ErrorKind::DataLength`] if `data` is not what was declared.
    pub fn to_vec(&self, data: &[&[u8]]) -> Result<Vec<u8>, Error> {
        self.check_data(data)?;
        // Every tensor is in memory already, so the sum fits memory too unless slices are given twice.
        let mut out = Vec::with_capacity(self.file_len as usize);
        out.extend_from_slice(&self.header);
        self.tensors.iter().for_each(|tensor| out.extend_from_slice(data[tensor.input_idx]));
        Ok(out)
    }

    pub(crate) fn check_data(&self, data: &[&[u8]]) -> Result<(), Error> {
        let (needed, given) = (self.tensors.len(), data.len());
        if needed != given {
            return Err(ErrorKind::DataCount { needed, given }.into());
        }
        self.tensors.iter().try_for_each(|tensor| tensor.check_len(data[tensor.input_idx].len() as u64))
    }
}

struct Specs<'a>(Vec<TensorSpec<'a>>);

impl Names for Specs<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, idx: u32) -> &str {
        self.0[idx as usize].name
    }

    fn hash(&self, idx: u32) -> u32 {
        hash(self.name(idx))
    }
}

/// Writes tensors as a file in memory.
///
/// # Errors
///
/// As [`Layout::new`].
pub fn to_vec(tensors: &[(&str, TensorView<'_>)], options: &WriteOptions) -> Result<Vec<u8>, Error> {
    let (layout, data) = lay_out(tensors, options)?;
    layout.to_vec(&data)
}

pub(crate) fn lay_out<'data>(
    tensors: &[(&str, TensorView<'data>)],
    options: &WriteOptions,
) -> Result<(Layout, Vec<&'data [u8]>), Error> {
    let specs =
        tensors.iter().map(|(name, view)| TensorSpec { name, dtype: view.dtype(), shape: view.shape() });
    let layout = Layout::new(specs, options)?;
    Ok((layout, tensors.iter().map(|(_, view)| view.data()).collect()))
}
