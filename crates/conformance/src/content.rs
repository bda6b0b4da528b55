//! The content of a file in a form that can be compared between readers.

use alloc::collections::BTreeMap;

use st_core::Dtype;

/// Tensors and metadata of one file, as some reader understood it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content<'data> {
    /// Tensors by name.
    pub tensors: BTreeMap<String, Tensor<'data>>,
    /// Metadata; an empty object is not the same as none.
    pub metadata: Option<BTreeMap<String, String>>,
}

/// One tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor<'data> {
    /// Type of the elements.
    pub dtype: Dtype,
    /// Dimensions.
    pub shape: Vec<usize>,
    /// Begin of the data, in bytes from the start of the data section.
    pub begin: u64,
    /// The bytes.
    pub data: &'data [u8],
}

impl Content<'_> {
    /// Says how the other content differs, apart from the place of the tensors; [`None`] if it does not.
    #[must_use]
    pub fn difference(&self, other: &Content<'_>) -> Option<String> {
        if self.metadata != other.metadata {
            return Some(format!("metadata {:?} became {:?}", self.metadata, other.metadata));
        }
        if let Some(name) = other.tensors.keys().find(|name| !self.tensors.contains_key(*name)) {
            return Some(format!("tensor {name:?} appeared"));
        }
        self.tensors.iter().find_map(|(name, tensor)| {
            let Some(other) = other.tensors.get(name) else {
                return Some(format!("tensor {name:?} is gone"));
            };
            let same = (tensor.dtype, &tensor.shape, tensor.data) == (other.dtype, &other.shape, other.data);
            (!same).then(|| format!("tensor {name:?} differs"))
        })
    }
}
