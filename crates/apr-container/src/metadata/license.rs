//! The license of a model, as its author declares it.

use alloc::string::String;

use super::record::{choice, record};
use super::time::unix_seconds;

choice! {
    /// Kind of license.
    pub enum LicenseTier {
        /// One person, non-commercial.
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
    /// The declared license of a model. Nothing enforces it, and it is not authenticated in a file that is not signed.
    pub struct License {
        /// Identifier of the license.
        pub uuid: String,
        /// Digest of the license key.
        pub hash: String,
        /// Expiry, as ISO 8601.
        pub expiry: Option<String>,
        /// Maximum number of concurrent users.
        pub seats: Option<u32>,
        /// The licensee.
        pub licensee: Option<String>,
        /// Kind of license.
        pub tier: LicenseTier,
    }
}

impl License {
    /// The time of expiry in seconds since 1970. A date without a time includes its whole day, UTC. `None` if there is no
    /// [`expiry`](Self::expiry), or it is not a time: see [`has_expired`](Self::has_expired).
    #[must_use]
    pub fn expiry_unix(&self) -> Option<u64> {
        let expiry = self.expiry.as_deref()?;
        match unix_seconds(&alloc::format!("{expiry}T00:00:00Z")) {
            Some(midnight) => midnight.checked_add(24 * 3600),
            None => unix_seconds(expiry),
        }
    }

    /// Whether the license has expired at a time in seconds since 1970. A license whose expiry cannot be parsed has expired.
    ///
    /// ```
    /// use apr_container::License;
    ///
    /// let license = License { expiry: Some("2030-06-30".into()), ..License::default() };
    /// assert!(!license.has_expired(1_909_094_399)); // 2030-06-30T23:59:59Z
    /// assert!(license.has_expired(1_909_094_400));
    /// assert!(License { expiry: Some("soon".into()), ..license }.has_expired(0));
    /// ```
    #[must_use]
    pub fn has_expired(&self, at: u64) -> bool {
        self.expiry.is_some() && self.expiry_unix().is_none_or(|expiry| at >= expiry)
    }
}

#[cfg(test)]
mod tests {
    use super::License;

    #[test]
    fn dates_count_to_their_end_and_times_to_the_second() {
        for (expiry, seconds) in [
            ("1970-01-01", Some(86_400)),
            ("1970-01-02T00:00:00Z", Some(86_400)),
            ("2024-02-29", Some(1_709_251_200)),
            ("1795241427", Some(1_795_241_427)),
            ("2023-02-29", None),
            ("2024-2-29", None),
            ("", None),
            ("never", None),
        ] {
            let license = License { expiry: Some(expiry.into()), ..License::default() };
            assert_eq!(license.expiry_unix(), seconds, "{expiry}");
            assert_eq!(license.has_expired(0), seconds.is_none(), "{expiry}");
            assert!(license.has_expired(u64::MAX), "{expiry}");
        }
        assert!(!License::default().has_expired(u64::MAX));
    }
}
