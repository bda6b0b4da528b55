#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]
#![cfg_attr(
    not(any(
        feature = "numpy",
        feature = "onnx",
        feature = "tflite",
        feature = "tensorflow",
        feature = "flax",
        feature = "hdf5"
    )),
    allow(dead_code, reason = "what readers share, without any reader")
)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "numpy")]
mod archive;
mod error;
mod files;
mod model;
mod names;
mod options;
#[cfg(any(feature = "onnx", feature = "tensorflow", feature = "tflite", feature = "flax"))]
mod reader;
#[cfg(feature = "torch")]
mod pickled;
mod tensor;
mod view;

#[cfg(feature = "flax")]
pub mod flax;
#[cfg(feature = "hdf5")]
pub mod hdf5;
#[cfg(feature = "joblib")]
pub mod joblib;
#[cfg(feature = "keras")]
pub mod keras;
#[cfg(feature = "numpy")]
pub mod numpy;
#[cfg(feature = "onnx")]
pub mod onnx;
#[cfg(any(feature = "onnx", feature = "tensorflow"))]
mod protobuf;
#[cfg(feature = "tensorflow")]
pub mod tensorflow;
#[cfg(feature = "tflite")]
pub mod tflite;
#[cfg(feature = "torch")]
pub mod torch;

pub use crate::error::{Error, ErrorKind};
#[cfg(feature = "std")]
pub use crate::files::Folder;
pub use crate::files::{Companions, NoCompanions};
pub use crate::model::{Alias, Model, Note};
pub use crate::options::{Limits, Options};
pub use crate::tensor::{ElementType, Tensor};

use foreign_format::Format;
use read_at::ReadAt;

/// The reader of a format.
type Reader = fn(&dyn ReadAt, &dyn Companions, &Options) -> Result<Model, Error>;

const fn reader(format: Format) -> Option<Reader> {
    match format {
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => Some(hdf5::read),
        #[cfg(feature = "keras")]
        Format::Keras => Some(keras::read),
        #[cfg(feature = "numpy")]
        Format::Npy | Format::Npz => Some(numpy::read),
        #[cfg(feature = "onnx")]
        Format::Onnx | Format::OnnxMl => Some(onnx::read),
        #[cfg(feature = "tensorflow")]
        Format::TfCheckpoint => Some(tensorflow::read),
        #[cfg(feature = "tensorflow")]
        Format::SavedModel => {
            Some(|_, companions, options| tensorflow::read_saved_model(companions, options))
        }
        #[cfg(feature = "flax")]
        Format::MessagePack => Some(flax::read),
        #[cfg(feature = "tflite")]
        Format::TfLite => Some(tflite::read),
        #[cfg(feature = "torch")]
        Format::Torch
        | Format::TorchScript
        | Format::TorchLegacy
        | Format::TorchExport
        | Format::TorchIndex => Some(torch::read),
        #[cfg(feature = "joblib")]
        Format::Pickle | Format::Zlib | Format::Gzip | Format::ZFile => Some(joblib::read),
        #[cfg(feature = "bzip2")]
        Format::Bzip2 => Some(joblib::read),
        #[cfg(feature = "lz4")]
        Format::Lz4 => Some(joblib::read),
        #[cfg(feature = "xz")]
        Format::Xz | Format::Lzma => Some(joblib::read),
        _ => None,
    }
}

/// Whether a format has a reader. Compressed files may be those of joblib, or of anything else.
#[must_use]
pub const fn is_supported(format: Format) -> bool {
    reader(format).is_some()
}

/// Reads a file of any of the formats, which is detected by its content.
///
/// # Errors
///
/// [`ErrorKind::Format`] for other formats; those of the reader of the format.
pub fn read(file: &dyn ReadAt, companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    let format = foreign_format::identify(file.total_len(), |offset, out| file.read_exact_at(offset, out))?;
    match format.and_then(reader) {
        Some(reader) => reader(file, companions, options),
        None => Err(ErrorKind::Format {}.into()),
    }
}

/// Reads the model in a folder: a `SavedModel` of TensorFlow. The folder is that of `companions`.
///
/// # Errors
///
/// [`ErrorKind::Format`] for folders of other kinds, [`ErrorKind::Unsupported`] for checkpoints of Orbax; those of the reader of the format.
pub fn read_folder(companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    // The files that Orbax writes at the root.
    if ["manifest.ocdbt", "_CHECKPOINT_METADATA"].iter().any(|name| companions.open(name).is_ok()) {
        return Err(Error::unsupported("a checkpoint of Orbax (OCDBT, Zarr)"));
    }
    #[cfg(feature = "tensorflow")]
    if companions.open("saved_model.pb").is_ok() {
        return tensorflow::read_saved_model(companions, options);
    }
    let _ = options;
    Err(ErrorKind::Format {}.into())
}
