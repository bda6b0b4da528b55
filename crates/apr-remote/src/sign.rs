//! What authorizes requests to an object store.

use core::fmt;

use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind};
use crate::url::Url;

/// Makes the URL of an object for requests, for a limited time.
pub(crate) trait Sign: fmt::Debug + Send + Sync {
    fn sign(&self) -> Result<Signed, Error>;

    /// The bucket that the object is in.
    fn bucket(&self) -> &str;
}

/// Where requests go, and with what.
#[derive(Clone)]
pub(crate) struct Signed {
    /// Its query may be a signature.
    pub(crate) url: Url,
    /// A token for the host of the URL alone.
    pub(crate) bearer: Option<Zeroizing<String>>,
}

impl From<Url> for Signed {
    fn from(url: Url) -> Self {
        Self { url, bearer: None }
    }
}

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signed").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Longest answer in which a code is looked for.
pub(crate) const REFUSAL_MAX: u64 = 16 << 10;

/// The code in the body of an answer that refuses a request: `<Code>NoSuchKey</Code>`.
pub(crate) fn code_of(body: &[u8]) -> Option<&str> {
    let text = core::str::from_utf8(body).ok()?;
    let (code, _) = text.split_once("<Code>")?.1.split_once("</Code>")?;
    Some(code).filter(|code| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Why a store refuses a request for an object.
pub(crate) fn refusal(status: u16, code: Option<&str>, host: &str, bucket: &str) -> ErrorKind {
    let (host, shown) = (host.to_owned(), code.unwrap_or("without a code").to_owned());
    match (status, code.unwrap_or_default()) {
        (_, "NoSuchBucket" | "ContainerNotFound") => ErrorKind::Bucket { host, bucket: bucket.to_owned() },
        (301 | 307 | 400, "PermanentRedirect" | "TemporaryRedirect" | "AuthorizationHeaderMalformed") => {
            ErrorKind::Region { bucket: bucket.to_owned() }
        }
        (
            400 | 401 | 403,
            "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "ExpiredToken" | "InvalidToken",
        )
        | (400 | 401 | 403, "RequestTimeTooSkewed" | "AuthenticationFailed" | "TokenRefreshRequired")
        | (400 | 401 | 403, "AuthorizationQueryParametersError" | "InvalidAuthenticationInfo")
        | (401, _) => ErrorKind::Credentials { problem: format!("{host} refuses them ({shown})") },
        (403, _) => ErrorKind::Denied { host, status },
        (404 | 410, _) => ErrorKind::NotFound { host },
        // Another writer is at the same object.
        (409, "ConditionalRequestConflict" | "OperationAborted") => ErrorKind::GaveUp { host, tries: 1 },
        // Of Azure: another upload of the object was completed.
        (400, "InvalidBlockList") => ErrorKind::Exists,
        (409 | 412, "" | "PreconditionFailed" | "BlobAlreadyExists" | "ConditionNotMet") => ErrorKind::Exists,
        _ => ErrorKind::Status { host, status },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_named_by_their_codes() {
        let of = |status, body: &str| {
            let kind = refusal(status, code_of(body.as_bytes()), "h", "b");
            Error::from(kind).code()
        };
        for (status, body, code) in [
            (404, "<Error><Code>NoSuchBucket</Code></Error>", "rm-bucket"),
            (404, "<Error><Code>NoSuchKey</Code></Error>", "rm-not-found"),
            (404, "", "rm-not-found"),
            (
                403,
                "<?xml?><Error><Code>InvalidAccessKeyId</Code><Message>m</Message></Error>",
                "rm-credentials",
            ),
            (403, "<Code>AccessDenied</Code>", "rm-denied"),
            (403, "<Code>not a code</Code>", "rm-denied"),
            (401, "", "rm-credentials"),
            (400, "<Code>AuthorizationHeaderMalformed</Code>", "rm-region"),
            (412, "<Code>PreconditionFailed</Code>", "rm-exists"),
            (409, "<Code>ConditionalRequestConflict</Code>", "rm-gave-up"),
            (409, "<Code>BlobAlreadyExists</Code>", "rm-exists"),
            (400, "<Code>InvalidBlockList</Code>", "rm-exists"),
            (412, "<Code>LeaseIdMissing</Code>", "rm-status"),
            (418, "", "rm-status"),
        ] {
            assert_eq!(of(status, body), code, "{status} {body}");
        }
        assert_eq!(code_of(b"<Code>\xFF</Code>"), None);
        assert_eq!(code_of(b"<Code>A"), None);
    }

    #[test]
    fn credentials_are_not_shown() {
        let url = Url::parse("https://h.example/k?X-Amz-Signature=secret").unwrap();
        let signed = Signed { url, bearer: Some(Zeroizing::new("secret".to_owned())) };
        assert!(!format!("{signed:?}").contains("secret"));
    }
}
