//! A loaded model.

use apr_container::Metadata;
use apr_models::AnyModel;

use super::keys::SignedBy;

/// A model, the metadata of its file, and what was found when it was opened.
pub(crate) struct Loaded {
    pub(crate) model: AnyModel,
    pub(crate) metadata: Metadata,
    pub(crate) signer: Option<SignedBy>,
}
