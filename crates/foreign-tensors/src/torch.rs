//! PyTorch: archives, streams before 1.6, TorchScript, exported programs, whole modules.

mod archive;
mod export;
mod legacy;
mod rebuild;
mod shards;

use alloc::string::String;

use foreign_format::Format;
use pickle_core::{Value, ValueId};
use read_at::ReadAt;
use tensor_dtype::Dtype;

use crate::error::{Error, ErrorKind};
use crate::files::Companions;
use crate::model::Model;
use crate::options::Options;
use crate::pickled::Pickle;
use crate::tensor::ElementType;

/// Longest key of a storage, and name of a place.
const MAX_KEY: u64 = 256;

/// Reads what `torch.save`, `torch.jit.save` or `torch.export.save` wrote, or an index of shards of the former.
///
/// # Errors
///
/// If the archive or stream is malformed, the pickle names what no tensor needs, or a tensor reaches beyond its storage.
pub fn read(file: &dyn ReadAt, companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    match identify(file)? {
        Some(Format::TorchIndex) => shards::read(file, companions, options),
        _ => read_one(file, options),
    }
}

/// Reads a file that is no index.
fn read_one(file: &dyn ReadAt, options: &Options) -> Result<Model, Error> {
    match identify(file)? {
        Some(Format::TorchExport) => export::read(file, options),
        Some(Format::Torch | Format::TorchScript) => archive::read(file, options),
        Some(Format::TorchLegacy) => legacy::read(file, options),
        _ => Err(ErrorKind::Format {}.into()),
    }
}

fn identify(file: &dyn ReadAt) -> Result<Option<Format>, Error> {
    Ok(foreign_format::identify(file.total_len(), |offset, out| file.read_exact_at(offset, out))?)
}

/// `('storage', class, key, place, count, view)`.
struct StorageId {
    /// `None` for bytes without a type.
    dtype: Option<ElementType>,
    key: String,
    /// Elements, or bytes without a type.
    count: u64,
    /// Key, offset and length of a view, in elements.
    view: Option<(u64, u64)>,
}

impl StorageId {
    fn of(pickle: &Pickle<'_>, id: ValueId) -> Result<Self, Error> {
        let invalid = || Error::malformed("a persistent id that is no storage");
        let Value::Tuple([kind, class, key, _, count, rest @ ..]) = pickle.tree.value(id) else {
            return Err(invalid());
        };
        if pickle.text(*kind, MAX_KEY)?.as_deref() != Some("storage") {
            return Err(invalid());
        }
        let Some(dtype) = pickle.global(*class).and_then(|(module, name)| storage_type(module, name)) else {
            return Err(Error::unsupported("a storage of an unknown type"));
        };
        let key = match pickle.tree.value(*key) {
            Value::Int(key) => alloc::format!("{key}"),
            _ => pickle.text(*key, MAX_KEY)?.ok_or_else(invalid)?,
        };
        let count = pickle.int(*count).ok_or_else(invalid)?;
        let view = match rest.first().map(|&view| pickle.tree.value(view)) {
            None | Some(Value::None) => None,
            Some(Value::Tuple(&[_, offset, len])) => {
                Some((pickle.int(offset).ok_or_else(invalid)?, pickle.int(len).ok_or_else(invalid)?))
            }
            _ => return Err(invalid()),
        };
        Ok(Self { dtype, key, count, view })
    }

    /// Bytes of an element.
    fn width(&self) -> u64 {
        self.dtype.map_or(1, |dtype| dtype.width() as u64)
    }

    fn len(&self) -> Result<u64, Error> {
        self.count.checked_mul(self.width()).ok_or_else(|| Error::view("its storage overflows"))
    }
}

/// The type of the elements of a storage class; `None` for none in classes of bytes.
fn storage_type(module: &str, name: &str) -> Option<Option<ElementType>> {
    if !matches!(module, "torch" | "torch.cuda" | "torch.storage") {
        return None;
    }
    let dtype = match name.strip_suffix("Storage")?.trim_start_matches('_') {
        "Untyped" => return Some(None),
        "ComplexDouble" => return Some(Some(ElementType::C128)),
        "Double" => Dtype::F64,
        "Float" => Dtype::F32,
        "Half" => Dtype::F16,
        "BFloat16" => Dtype::Bf16,
        "Long" => Dtype::I64,
        "Int" | "QInt32" => Dtype::I32,
        "Short" => Dtype::I16,
        "Char" | "QInt8" => Dtype::I8,
        "Byte" | "QUInt8" => Dtype::U8,
        "Bool" => Dtype::Bool,
        "ComplexFloat" => Dtype::C64,
        _ => return None,
    };
    Some(Some(ElementType::Known(dtype)))
}
