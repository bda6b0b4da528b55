//! A model with the names that its file gives to features and classes.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use apr_container::Metadata;
use apr_models::{AnyModel, CLASSES_KEY, FEATURES_KEY};

/// A loaded model with the metadata of its file.
#[derive(Clone, Debug)]
pub struct NamedModel {
    /// The model.
    pub model: AnyModel,
    /// The metadata of the file; of formats other than `.apr` version 1, the text entries as custom keys.
    pub metadata: Metadata,
}

impl NamedModel {
    /// The names of the features in their order.
    #[must_use]
    pub fn features(&self) -> Option<Vec<String>> {
        texts(&self.metadata, FEATURES_KEY)
    }

    /// The names of the classes by their indices.
    #[must_use]
    pub fn classes(&self) -> Option<Vec<String>> {
        texts(&self.metadata, CLASSES_KEY)
    }
}

/// An array of text in the custom metadata.
fn texts(metadata: &Metadata, key: &str) -> Option<Vec<String>> {
    let values = metadata.custom.get(key)?.as_array()?;
    values.iter().map(|value| Some(value.as_str()?.to_owned())).collect()
}
