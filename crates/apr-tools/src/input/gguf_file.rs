//! A GGUF file: keys and values, a table of tensors, and their bytes.

use std::path::{Path, PathBuf};

use gguf_core::{Endian, Header, Prefix, ReadOptions};

use super::tensor::Origin;
use super::{Rules, Source, Stored, Tensor};
use crate::error::{CODE_INTERNAL, Failure};
use tensor_dtype::TensorType;

/// Bytes read at first: the header of most models without a tokenizer.
const FIRST_READ: u64 = 256 << 10;

/// An open file of which the header has been read, and nothing of the tensors.
#[derive(Debug)]
pub(crate) struct GgufFile {
    stored: Stored,
    label: PathBuf,
    path: PathBuf,
    /// The beginning of the file, with all of its header.
    head: Vec<u8>,
    rules: ReadOptions,
    endian: Endian,
    tensors: Vec<Row>,
}

/// A row of the table of tensors, in the machine's own integers.
#[derive(Debug)]
struct Row {
    /// With replacement characters for what is not UTF-8.
    name: String,
    dtype: TensorType,
    shape: Vec<usize>,
    elements: u64,
    offset: u64,
    byte_len: u64,
}

impl GgufFile {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not sound, or is shorter than its tensors.
    pub(super) fn open(source: &Source, rules: &Rules) -> Result<Self, Failure> {
        let open = |rules: &Rules| Self::open_at(source.path(), source.label(), rules);
        open(rules).map_err(|failure| {
            let failure = source.relabel(failure);
            let is_strict_refusal = rules.is_strict() && failure.code().starts_with("gg-");
            match is_strict_refusal && open(&Rules::COMPAT).is_ok() {
                true => failure.help(
                    "other readers accept this file: if you trust it, repeat with --compat, or rewrite it with \
                     `apr convert --compat IN OUT`",
                ),
                false => failure,
            }
        })
    }

    fn open_at(path: &Path, label: &Path, rules: &Rules) -> Result<Self, Failure> {
        Self::of(Stored::open(path)?, path, label, rules)
    }

    /// The same of bytes wherever they are.
    pub(super) fn of(stored: Stored, path: &Path, label: &Path, rules: &Rules) -> Result<Self, Failure> {
        let len = stored.len();
        let head = read_head(&stored, label, &rules.gguf)?;
        let header = header_in(&head, len, &rules.gguf)?;
        header.check_file_len(len, rules.gguf.level)?;
        let endian = header.endian();
        let tensors = header.tensors().iter().map(|info| {
            let name = info.name().to_str_lossy().into_owned();
            let shape = info.shape().map(usize::try_from).collect::<Result<_, _>>().map_err(|_| {
                let failure =
                    Failure::new("gg-dimension", "a dimension is beyond what this machine can count");
                failure.of_tensor(Some(&name))
            })?;
            Ok(Row {
                dtype: TensorType::from(info.dtype()),
                shape,
                elements: info.element_count(),
                offset: info.file_range().start,
                byte_len: info.byte_len(),
                name,
            })
        });
        let tensors = tensors.collect::<Result<_, Failure>>()?;
        drop(header);
        let (label, path) = (label.to_owned(), path.to_owned());
        Ok(Self { stored, label, path, head, rules: rules.gguf, endian, tensors })
    }

    /// The header. It is read anew: it borrows the bytes that are kept.
    ///
    /// # Errors
    ///
    /// None: they were told when the file was opened.
    pub(crate) fn header(&self) -> Result<Header<'_>, Failure> {
        header_in(&self.head, self.stored.len(), &self.rules)
    }

    pub(crate) fn file_len(&self) -> u64 {
        self.stored.len()
    }

    /// Why strict rules refuse the same file, if they do.
    pub(crate) fn strict_refusal(&self) -> Option<Failure> {
        Self::open_at(&self.path, &self.label, &Rules::STRICT).err()
    }

    pub(super) fn tensors(&self) -> Vec<Tensor<'_>> {
        let tensors = self.tensors.iter().map(|stored| {
            let origin = Origin { stored: &self.stored, label: &self.label, offset: stored.offset };
            let (kind, extent) = ((stored.name.as_str(), stored.dtype), (&stored.shape[..], stored.elements));
            Tensor::of_gguf(kind, extent, stored.byte_len, origin, self.endian)
        });
        tensors.collect()
    }
}

/// As much of the beginning as the header takes, asked for in growing pieces.
fn read_head(stored: &Stored, label: &Path, rules: &ReadOptions) -> Result<Vec<u8>, Failure> {
    let len = stored.len();
    let mut head = Vec::new();
    let mut wanted = FIRST_READ.min(len);
    loop {
        let at = head.len();
        // Not beyond the length of the file.
        head.resize(wanted as usize, 0);
        stored.read(at as u64, &mut head[at..], ("read the header", label))?;
        match Header::from_prefix(&head, len, rules)? {
            Prefix::Header(_) => return Ok(head),
            Prefix::More { needed } => wanted = needed.max(wanted.saturating_mul(4)).min(len),
        }
    }
}

fn header_in<'head>(head: &'head [u8], len: u64, rules: &ReadOptions) -> Result<Header<'head>, Failure> {
    match Header::from_prefix(head, len, rules)? {
        Prefix::Header(header) => Ok(header),
        Prefix::More { .. } => Err(Failure::new(CODE_INTERNAL, "a header that was there has gone")),
    }
}
