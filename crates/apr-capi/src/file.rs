//! An open model file.

use alloc::ffi::CString;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use model_file::{Contents, ModelFile, Tensor, Verification};
use read_at::AnySource;

use crate::failure::{Failure, terminated, usage};
use crate::model::Model;
use crate::options::Options;

/// An open model file of any format. Threads may use one at the same time; they wait for each other while something is read.
pub struct File {
    opened: Mutex<Opened>,
    format: CString,
    description: OnceLock<CString>,
    tensors: OnceLock<Vec<TensorInfo>>,
    names: OnceLock<HashMap<Vec<u8>, usize>>,
}

/// One tensor, as C sees it.
#[derive(Debug)]
pub struct TensorInfo {
    /// The name as it is, which may contain zero bytes, and a zero byte.
    pub name: Vec<u8>,
    /// Name of the type, for example `F32`.
    pub dtype: CString,
    /// Dimensions, the slowest first.
    pub shape: Vec<u64>,
    /// Bytes of the data.
    pub byte_len: u64,
    /// Offset in the file; `None` if the bytes are not stored as they are.
    pub file_offset: Option<u64>,
}

/// Where the bytes are.
enum Opened {
    File(ModelFile<AnySource>),
    Memory(ModelFile<&'static [u8]>),
}

/// The same on the file, whatever its source.
macro_rules! with_file {
    ($opened:expr, $file:ident => $run:expr) => {
        match &*$opened {
            Opened::File($file) => $run,
            Opened::Memory($file) => $run,
        }
    };
}

impl File {
    /// Opens a file, a folder with a model, or an index of shards.
    ///
    /// # Errors
    ///
    /// Those of the readers and of the keys.
    pub fn open(path: &Path, options: &Options<'_>) -> Result<Self, Failure> {
        let keys = options.keys()?;
        let file = ModelFile::open(path, &keys.open_options(options))?;
        keys.refuse_for(&file)?;
        Ok(Self::new(Opened::File(file)))
    }

    /// Opens the bytes of a file.
    ///
    /// # Errors
    ///
    /// Those of the readers and of the keys.
    pub fn from_bytes(bytes: &'static [u8], options: &Options<'_>) -> Result<Self, Failure> {
        let keys = options.keys()?;
        let file = ModelFile::from_bytes(bytes, &keys.open_options(options))?;
        keys.refuse_for(&file)?;
        Ok(Self::new(Opened::Memory(file)))
    }

    fn new(opened: Opened) -> Self {
        let format = with_file!(&opened, file => file.format());
        Self {
            format: terminated(format.name()),
            opened: Mutex::new(opened),
            description: OnceLock::new(),
            tensors: OnceLock::new(),
            names: OnceLock::new(),
        }
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Name of the format.
    pub fn format(&self) -> &CString {
        &self.format
    }

    /// The description of the file as one JSON object.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub fn description(&self) -> Result<&CString, Failure> {
        if let Some(text) = self.description.get() {
            return Ok(text);
        }
        let description = with_file!(self.opened(), file => file.describe())?;
        let text = serde_json::to_string(&description).map_err(|_| usage("the description is no JSON"))?;
        Ok(self.description.get_or_init(|| terminated(&text)))
    }

    /// The tensors in file order.
    ///
    /// # Errors
    ///
    /// Those of reading; of a sealed file that was opened without keys.
    pub fn tensors(&self) -> Result<&[TensorInfo], Failure> {
        if let Some(tensors) = self.tensors.get() {
            return Ok(tensors);
        }
        let listed = with_file!(self.opened(), file => {
            if matches!(file.contents(), Contents::Sealed(_)) {
                let text = "the tensors of a sealed file need a key: set identity, password or verify_key";
                return Err(usage(text));
            }
            file.tensors()?.iter().map(|tensor| TensorInfo::new(tensor, file.is_sealed())).collect()
        });
        Ok(self.tensors.get_or_init(|| listed))
    }

    /// The index of the tensor with this name.
    ///
    /// # Errors
    ///
    /// [`model_file::ErrorKind::TensorNotFound`]; those of reading.
    pub fn find(&self, name: &str) -> Result<usize, Failure> {
        let tensors = self.tensors()?;
        let names = self.names.get_or_init(|| {
            tensors.iter().enumerate().map(|(index, tensor)| (tensor.name().to_owned(), index)).collect()
        });
        if let Some(&index) = names.get(name.as_bytes()) {
            return Ok(index);
        }
        with_file!(self.opened(), file => file.tensor(name).map(drop))?;
        Err(usage("no tensor has this name"))
    }

    /// Runs `read` on a tensor.
    fn with_tensor<T>(
        &self,
        index: usize,
        read: impl FnOnce(&Tensor<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        with_file!(self.opened(), file => match file.tensor_at(index)? {
            Some(tensor) => read(&tensor),
            None => Err(usage("no tensor has this index")),
        })
    }

    /// Reads bytes of a tensor as they are stored, little-endian and row-major, from `offset` of its data on.
    ///
    /// # Errors
    ///
    /// A range beyond the tensor; those of reading.
    pub fn read(&self, index: usize, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        self.with_tensor(index, |tensor| {
            let end = offset.checked_add(out.len() as u64);
            if end.is_none_or(|end| end > tensor.byte_len()) {
                return Err(usage("the range ends beyond the tensor"));
            }
            Ok(tensor.read(offset, out)?)
        })
    }

    /// Reads all values of a tensor as 32-bit floats.
    ///
    /// # Errors
    ///
    /// A buffer of another length; types without a conversion; those of reading.
    pub fn read_f32(&self, index: usize, out: &mut [f32]) -> Result<(), Failure> {
        self.with_tensor(index, |tensor| {
            if tensor.elements() != out.len() as u64 {
                return Err(usage("the buffer has not as many values as the tensor has elements"));
            }
            out.copy_from_slice(&tensor.to_f32()?);
            Ok(())
        })
    }

    /// Reads what the format can verify, and its signature if keys ask for one. Whether there was something to verify.
    ///
    /// # Errors
    ///
    /// A wrong checksum or signature; those of reading.
    pub fn verify(&self) -> Result<bool, Failure> {
        let verified = with_file!(self.opened(), file => file.verify())?;
        Ok(verified == Verification::Checksum)
    }

    /// Loads the model that predicts.
    ///
    /// # Errors
    ///
    /// A file without such a model; those of reading.
    pub fn model(&self) -> Result<Model, Failure> {
        Ok(Model::new(with_file!(self.opened(), file => file.model())?))
    }
}

impl TensorInfo {
    fn new(tensor: &Tensor<'_>, is_sealed: bool) -> Self {
        let mut name = tensor.name().as_bytes().to_vec();
        name.push(0);
        // An offset in the content of a sealed file, or in a shard that is not named here, is none in the file.
        let is_in_file = !is_sealed && tensor.shard().is_none();
        Self {
            name,
            dtype: terminated(tensor.dtype().name()),
            shape: tensor.shape().iter().map(|&dim| dim as u64).collect(),
            byte_len: tensor.byte_len(),
            file_offset: tensor.file_offset().filter(|_| is_in_file),
        }
    }

    /// The name without the zero byte at its end.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.name.split_last().map_or(&[], |(_, name)| name)
    }
}

impl core::fmt::Debug for File {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("File").field("format", &self.format).finish_non_exhaustive()
    }
}
