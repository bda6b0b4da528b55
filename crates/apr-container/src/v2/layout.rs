//! Writing, first phase: pure arithmetic that fixes every byte but the tensors' own.

use alloc::vec::Vec;

use located_error::Subject;

use crate::crc::Crc32;
use crate::error::{Error, ErrorKind};
use crate::v2;
use crate::v2::dtype::{byte_lens, check_len};
use crate::v2::flags::Flags;
use crate::v2::header::{ALIGN, FOOTER_LEN, Header, Magic, aligned};
use crate::v2::index::Index;
use crate::v2::metadata::Metadata;
use crate::v2::table::{MAX_NAME_LEN, MAX_RANK, push_entry};
use crate::v2::view::TensorView;
use tensor_dtype::AprType;

/// A tensor to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorSpec<'a> {
    /// Name, at most 256 bytes long.
    pub name: &'a str,
    /// Type of the elements.
    pub dtype: AprType,
    /// Dimensions, the slowest first; at most 8.
    pub shape: &'a [u64],
    /// Length in bytes, where type and shape leave a choice: see [`TensorView::new`]. `None`: [`AprType`].
    pub byte_len: Option<u64>,
}

impl<'a> TensorSpec<'a> {
    /// A tensor of the length its type and shape need.
    #[must_use]
    pub const fn new(name: &'a str, dtype: AprType, shape: &'a [u64]) -> Self {
        Self { name, dtype, shape, byte_len: None }
    }

    fn len(&self) -> Result<u64, Error> {
        let name_len = self.name.len();
        if name_len > MAX_NAME_LEN {
            return Err(v2::ErrorKind::NameTooLong { len: name_len }.into());
        }
        if self.shape.len() > MAX_RANK {
            return Err(v2::ErrorKind::TooManyDimensions { found: self.shape.len() }.into());
        }
        match self.byte_len {
            Some(len) => check_len(self.dtype, self.shape, len).map(|()| len),
            None => byte_lens(self.dtype, self.shape).map(|(len, _)| len),
        }
    }
}

impl<'a> From<TensorView<'a>> for TensorSpec<'a> {
    fn from(view: TensorView<'a>) -> Self {
        let byte_len = Some(view.data().len() as u64);
        Self { name: view.name(), dtype: view.dtype(), shape: view.shape(), byte_len }
    }
}

/// In which order the tensors' bytes follow each other. The index is always sorted by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By the bytes of the names.
    #[default]
    ByName,
    /// As given: what writers do that do not have all tensors at hand.
    AsGiven,
}

/// How to write a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Metadata.
    pub metadata: Metadata,
    /// Flags that describe the content. [`Flags::ROW_MAJOR`] is always set, [`Flags::SHARDED`] if the metadata describe shards.
    pub flags: Flags,
    /// Order of the tensors.
    pub order: Order,
}

impl WriteOptions {
    /// Options with this metadata.
    #[must_use]
    pub fn new(metadata: Metadata) -> Self {
        Self { metadata, ..Self::default() }
    }

    /// Options to write a file that was read again: its metadata and those of its flags that can be written.
    #[must_use]
    pub fn like(index: &Index) -> Self {
        let flags = index.header().flags().without(Flags::NOT_WRITTEN);
        let (metadata, order) = (index.metadata().clone(), Order::ByName);
        Self { metadata, flags, order }
    }
}

/// Where a tensor of a [`Layout`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Which of the tensors given to [`Layout::new`] it is.
    pub input_idx: usize,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Size in bytes, without padding.
    pub byte_len: u64,
}

impl Planned {
    /// Refuses data of another length.
    pub(crate) fn check_len(&self, given: u64) -> Result<(), Error> {
        match self.byte_len {
            needed if needed == given => Ok(()),
            needed => Err(v2::ErrorKind::DataLength { needed, given }.at(self.offset)),
        }
    }

    /// Zero bytes after it.
    pub(crate) const fn padding(&self) -> usize {
        // Less than 64.
        (self.byte_len.next_multiple_of(ALIGN) - self.byte_len) as usize
    }
}

/// What padding is cut from.
pub(crate) const ZEROS: [u8; 64] = [0; 64];

/// A file whose every length and offset is fixed, before a byte of it is written.
///
/// Equal input gives equal bytes; they are the bytes that the format's other writer makes of it.
///
/// ```
/// use apr_container::v2::{AprType, Layout, TensorSpec, WriteOptions};
///
/// let layout = Layout::new([TensorSpec::new("w", AprType::U8, &[3])], &WriteOptions::default())?;
/// let [w] = layout.tensors() else { panic!("one tensor") };
/// assert_eq!((w.offset % 64, layout.file_len()), (0, w.offset + 64 + 4));
/// let file = layout.to_vec(&[b"abc"])?;
/// assert_eq!(file[w.offset as usize..][..4], *b"abc\0");
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    prefix: Vec<u8>,
    tensors: Vec<Planned>,
    file_len: u64,
}

impl Layout {
    /// Lays tensors out.
    ///
    /// # Errors
    ///
    /// With the tensor's name: [`v2::ErrorKind::NameTooLong`], [`v2::ErrorKind::TooManyDimensions`], [`v2::ErrorKind::DuplicateTensor`],
    /// [`v2::ErrorKind::SizeMismatch`], [`v2::ErrorKind::SizeOverflow`], [`v2::ErrorKind::UnknownDtype`] (if no length is given). Without:
    /// [`v2::ErrorKind::FlagNotWritten`] for compression, encryption, signature, column-major order and reserved flags;
    /// [`ErrorKind::TooLargeForFormat`] for metadata of 4 GiB.
    pub fn new<'a>(
        tensors: impl IntoIterator<Item = TensorSpec<'a>>,
        options: &WriteOptions,
    ) -> Result<Self, Error> {
        let unwritable = options.flags.0 & Flags::NOT_WRITTEN.0;
        if unwritable != 0 {
            return Err(v2::ErrorKind::FlagNotWritten { flags: Flags(unwritable) }.into());
        }
        let mut flags = options.flags.with(Flags::ROW_MAJOR);
        if options.metadata.sharding.is_some() {
            flags = flags.with(Flags::SHARDED);
        }
        let specs: Vec<TensorSpec<'a>> = tensors.into_iter().collect();
        let by_name = sorted(&specs)?;
        let mut tensors = place(&specs, &by_name, options.order)?;

        let metadata = options.metadata.to_json();
        let metadata_len = within_u32("metadata", metadata.len())?;
        let mut prefix = alloc::vec![0; Header::LEN];
        prefix.extend_from_slice(metadata.as_bytes());
        let index_offset = pad(&mut prefix);
        let mut of_input = alloc::vec![(0, 0); specs.len()];
        for tensor in &tensors {
            if let Some(place) = of_input.get_mut(tensor.input_idx) {
                *place = (tensor.offset, tensor.byte_len);
            }
        }
        for &idx in &by_name {
            let (TensorSpec { name, dtype, shape, .. }, (offset, len)) = (specs[idx], of_input[idx]);
            push_entry(&mut prefix, name, AprType::from_stored(dtype.0), shape, offset, len);
        }
        let data_offset = pad(&mut prefix);

        let header = Header {
            magic: Magic::Apr,
            version: Header::VERSION,
            flags,
            n_tensors: within_u32("list of tensors", specs.len())?,
            metadata_offset: Header::LEN as u64,
            metadata_len,
            index_offset,
            data_offset,
            reserved: [0; 20],
        };
        prefix[..Header::LEN].copy_from_slice(&header.to_bytes());

        let mut end = data_offset;
        for tensor in &mut tensors {
            tensor.offset = tensor.offset.checked_add(data_offset).ok_or(v2::ErrorKind::SizeOverflow)?;
            end = tensor
                .offset
                .checked_add(tensor.byte_len)
                .and_then(aligned)
                .ok_or(v2::ErrorKind::SizeOverflow)?;
        }
        let file_len = end.checked_add(FOOTER_LEN).ok_or(v2::ErrorKind::SizeOverflow)?;
        Ok(Self { prefix, tensors, file_len })
    }

    /// Everything before the first tensor: header, metadata, index and their padding.
    #[must_use]
    pub fn prefix_bytes(&self) -> &[u8] {
        &self.prefix
    }

    /// Length of the file in bytes, its footer included.
    #[must_use]
    pub const fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The tensors in the order of their bytes.
    #[must_use]
    pub fn tensors(&self) -> &[Planned] {
        &self.tensors
    }

    /// The whole file in memory. `data` holds each tensor's bytes in the order given to [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// [`v2::ErrorKind::DataCount`] and [`v2::ErrorKind::DataLength`] if `data` is not what was declared, [`ErrorKind::OutOfMemory`].
    pub fn to_vec(&self, data: &[&[u8]]) -> Result<Vec<u8>, Error> {
        self.check_data(data)?;
        let no_memory = || ErrorKind::OutOfMemory { bytes: self.file_len };
        let len = usize::try_from(self.file_len).map_err(|_| no_memory())?;
        let mut out = Vec::new();
        out.try_reserve_exact(len).map_err(|_| no_memory())?;
        out.extend_from_slice(&self.prefix);
        for tensor in &self.tensors {
            out.extend_from_slice(data[tensor.input_idx]);
            out.extend_from_slice(&ZEROS[..tensor.padding()]);
        }
        let mut crc = Crc32::default();
        crc.update(&out);
        out.extend_from_slice(&crc.get().to_le_bytes());
        Ok(out)
    }

    pub(crate) fn check_data(&self, data: &[&[u8]]) -> Result<(), Error> {
        let (needed, given) = (self.tensors.len(), data.len());
        if needed != given {
            return Err(v2::ErrorKind::DataCount { needed, given }.into());
        }
        self.tensors.iter().try_for_each(|tensor| tensor.check_len(data[tensor.input_idx].len() as u64))
    }
}

/// The places of specs in the order of their names, which are all different.
fn sorted(specs: &[TensorSpec<'_>]) -> Result<Vec<usize>, Error> {
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by_key(|&idx| specs[idx].name);
    match order.windows(2).find(|pair| specs[pair[0]].name == specs[pair[1]].name) {
        Some(pair) => {
            Err(Error::from(v2::ErrorKind::DuplicateTensor).about(Subject::tensor(specs[pair[1]].name)))
        }
        None => Ok(order),
    }
}

/// Places tensors one after another, with offsets from the start of the data.
fn place(specs: &[TensorSpec<'_>], by_name: &[usize], order: Order) -> Result<Vec<Planned>, Error> {
    let mut end = 0;
    let mut plan = |input_idx: usize| {
        let named = |error: Error| error.about(Subject::tensor(specs[input_idx].name));
        let byte_len = specs[input_idx].len().map_err(named)?;
        let offset = end;
        let padded = aligned(byte_len).and_then(|len| len.checked_add(offset));
        end = padded.ok_or(v2::ErrorKind::SizeOverflow.into()).map_err(named)?;
        Ok(Planned { input_idx, offset, byte_len })
    };
    match order {
        Order::ByName => by_name.iter().map(|&idx| plan(idx)).collect(),
        Order::AsGiven => (0..specs.len()).map(plan).collect(),
    }
}

fn within_u32(part: &'static str, len: usize) -> Result<u32, Error> {
    let limit = u32::MAX.into();
    u32::try_from(len).map_err(|_| ErrorKind::TooLargeForFormat { part, len: len as u64, limit }.into())
}

/// Fills up to the next multiple of 64; returns where that is.
fn pad(bytes: &mut Vec<u8>) -> u64 {
    bytes.resize(bytes.len().next_multiple_of(ZEROS.len()), 0);
    bytes.len() as u64
}

/// Writes tensors as a file in memory.
///
/// # Errors
///
/// As [`Layout::new`] and [`Layout::to_vec`].
pub fn to_vec(tensors: &[TensorView<'_>], options: &WriteOptions) -> Result<Vec<u8>, Error> {
    let (layout, data) = lay_out(tensors, options)?;
    layout.to_vec(&data)
}

pub(crate) fn lay_out<'data>(
    tensors: &[TensorView<'data>],
    options: &WriteOptions,
) -> Result<(Layout, Vec<&'data [u8]>), Error> {
    let layout = Layout::new(tensors.iter().copied().map(TensorSpec::from), options)?;
    Ok((layout, tensors.iter().map(TensorView::data).collect()))
}
