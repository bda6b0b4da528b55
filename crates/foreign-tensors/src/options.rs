//! How files are read.

use alloc::string::String;
use alloc::vec::Vec;

/// How a file is read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Bounds on what a file may claim.
    pub limits: Limits,
    /// The nested object to read, by its keys from the root, as `model` or `ema.model`; empty for the whole file.
    pub object: String,
    /// Names of tensors to leave out: exact, or with `*` for any text.
    pub exclude: Vec<String>,
    /// Read two-byte void elements (`V2`), which NumPy writes for types that it does not have, as `BF16`.
    pub void_is_bf16: bool,
}

impl Options {
    /// For formats without nested objects.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoObject`](crate::ErrorKind::NoObject) if one is asked for.
    #[cfg(any(feature = "numpy", feature = "onnx", feature = "tflite", feature = "tensorflow"))]
    pub(crate) fn without_object(&self) -> Result<(), crate::Error> {
        if self.object.is_empty() {
            Ok(())
        } else {
            Err(crate::ErrorKind::NoObject { objects: "none, the format has no nested objects".into() }
                .into())
        }
    }
}

/// Bounds on what a file may claim.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Dimensions of a tensor.
    pub rank: usize,
    /// Tensors of a file.
    pub tensors: usize,
    /// Bytes of one tensor.
    pub tensor_bytes: u64,
    /// Bytes of all that is not tensors and is kept: names, settings. Of a pickle, the names of tensors and the other values have as many each,
    /// and values beyond are left out.
    pub text_bytes: u64,
    /// Bytes of a file that is compressed as a whole and has to be decompressed in memory.
    pub decompressed_bytes: u64,
    /// Nested objects, graphs or groups.
    pub depth: usize,
    /// Steps of walks through structures that may refer to themselves.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rank: 64,
            tensors: 1 << 20,
            tensor_bytes: 1 << 40,
            text_bytes: 64 << 20,
            decompressed_bytes: 1 << 30,
            depth: 64,
            steps: 1 << 24,
        }
    }
}
