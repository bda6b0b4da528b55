//! Who may use a model, as its maker says.

use alloc::string::String;

use super::record::{choice, record};

choice! {
    /// Kind of license.
    pub enum LicenseTier {
        /// One person, not for business.
        #[default]
        Personal,
        /// A small group.
        Team,
        /// A whole organization.
        Enterprise,
        /// Teaching and research.
        Academic,
    }
}

record! {
    /// A label that says who may use the model. Nothing enforces it, and nobody vouches for it in a file that is not
    /// signed.
    pub struct License {
        /// Identifier of the license.
        pub uuid: String,
        /// Digest of the license key.
        pub hash: String,
        /// Until when it holds, as ISO 8601.
        pub expiry: Option<String>,
        /// How many may use it at a time.
        pub seats: Option<u32>,
        /// Whom it was given to.
        pub licensee: Option<String>,
        /// Kind of license.
        pub tier: LicenseTier,
    }
}
