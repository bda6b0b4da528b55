//! A loaded model.

use apr_container::Metadata;
use apr_models::{AnyModel, FEATURES_KEY};
use model_file::Categories;

use super::keys::SignedBy;

/// A model, the metadata of its file, and what was found when it was opened.
pub(crate) struct Loaded {
    pub(crate) model: AnyModel,
    pub(crate) metadata: Metadata,
    /// Those of features whose cells in tables are texts.
    pub(crate) categories: Option<Categories>,
    pub(crate) signer: Option<SignedBy>,
}

impl Loaded {
    /// The names of the features, if the file has them.
    pub(crate) fn features(&self) -> Option<Vec<String>> {
        let names = self.metadata.custom.get(FEATURES_KEY)?.as_array()?;
        names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
    }
}
