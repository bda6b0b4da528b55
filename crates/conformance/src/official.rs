//! The `safetensors` crate 0.8.0 as reference implementation.

use core::cell::Cell;
use core::fmt;
use core::panic::AssertUnwindSafe;
use std::collections::HashMap;
use std::panic::catch_unwind;

use safetensors::tensor::TensorView;
use safetensors::{SafeTensorError, SafeTensors};
use st_core::Dtype;

use crate::content::{Content, Tensor};

/// Why the crate did not read or write something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It returned this variant of its error type.
    Variant(&'static str),
    /// It panicked.
    Panic,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variant(name) => f.write_str(name),
            Self::Panic => f.write_str("panic"),
        }
    }
}

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside the crate: a panic hook can then stay silent, the panic is caught and judged.
#[must_use]
pub fn is_running() -> bool {
    RUNNING.get()
}

/// Calls the crate, catching its panics.
///
/// # Errors
///
/// [`Refusal`].
pub fn call<T>(work: impl FnOnce() -> Result<T, SafeTensorError>) -> Result<T, Refusal> {
    RUNNING.set(true);
    // What a panic leaves half-done is local to the crate and dropped.
    let out = catch_unwind(AssertUnwindSafe(work));
    RUNNING.set(false);
    match out {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Refusal::Variant(variant(&error))),
        Err(_) => Err(Refusal::Panic),
    }
}

/// Reads a whole file.
///
/// # Errors
///
/// [`Refusal`].
///
/// # Examples
///
/// ```
/// use conformance::official;
///
/// assert_eq!(official::read(b"short"), Err(official::Refusal::Variant("HeaderTooSmall")));
/// ```
pub fn read(file: &[u8]) -> Result<Content<'_>, Refusal> {
    call(|| {
        let (_, table) = SafeTensors::read_metadata(file)?;
        let mut content = Content {
            metadata: table
                .metadata()
                .as_ref()
                .map(|map| map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()),
            ..Content::default()
        };
        for (name, view) in SafeTensors::deserialize(file)?.tensors() {
            let begin = table.info(&name).map_or(0, |info| info.data_offsets.0 as u64);
            let tensor =
                Tensor { dtype: ours(view.dtype()), shape: view.shape().to_vec(), begin, data: view.data() };
            content.tensors.insert(name, tensor);
        }
        Ok(content)
    })
}

/// Writes a whole file.
///
/// # Errors
///
/// [`Refusal`].
pub fn write(content: &Content<'_>) -> Result<Vec<u8>, Refusal> {
    call(|| {
        let views = content.tensors.iter().map(|(name, tensor)| {
            Ok((name, TensorView::new(theirs(tensor.dtype), tensor.shape.clone(), tensor.data)?))
        });
        let views = views.collect::<Result<Vec<_>, SafeTensorError>>()?;
        let metadata: Option<HashMap<String, String>> =
            content.metadata.as_ref().map(|map| map.clone().into_iter().collect());
        safetensors::serialize(views, metadata)
    })
}

/// The crate's name of a dtype.
///
/// # Panics
///
/// If the crate does not know one of ours.
#[must_use]
pub fn theirs(dtype: Dtype) -> safetensors::Dtype {
    serde_json::from_value(dtype.name().into()).expect("both know the same 22 names")
}

/// Our name of a dtype of the crate.
///
/// # Panics
///
/// If we do not know one of its.
#[must_use]
pub fn ours(dtype: safetensors::Dtype) -> Dtype {
    Dtype::element_from_name(&dtype.to_string()).expect("both know the same 22 names")
}

/// Name of the variant, as the sidecars write it.
#[must_use]
pub fn variant(error: &SafeTensorError) -> &'static str {
    match error {
        SafeTensorError::InvalidHeader(_) => "InvalidHeader",
        SafeTensorError::InvalidHeaderDeserialization(_) => "InvalidHeaderDeserialization",
        SafeTensorError::HeaderTooLarge => "HeaderTooLarge",
        SafeTensorError::HeaderTooSmall => "HeaderTooSmall",
        SafeTensorError::InvalidHeaderLength => "InvalidHeaderLength",
        SafeTensorError::TensorNotFound(_) => "TensorNotFound",
        SafeTensorError::TensorInvalidInfo => "TensorInvalidInfo",
        SafeTensorError::InvalidOffset(_) => "InvalidOffset",
        SafeTensorError::IoError(_) => "IoError",
        SafeTensorError::JsonError(_) => "JsonError",
        SafeTensorError::InvalidTensorView(..) => "InvalidTensorView",
        SafeTensorError::MetadataIncompleteBuffer => "MetadataIncompleteBuffer",
        SafeTensorError::ValidationOverflow => "ValidationOverflow",
        SafeTensorError::MisalignedSlice => "MisalignedSlice",
    }
}
