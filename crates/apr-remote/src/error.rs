//! Kinds of errors.

use core::error::Error as StdError;
use core::fmt;

const AGAIN: &str = "try again later; what was written before is unchanged";
const SERVER: &str = "the server or a proxy in front of it does not follow HTTP: fetch the file with another program and name its copy";
const PUBLISHER: &str = "do not use the file: fetch it again, and compare its SHA-256 with the publisher's";

const CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL), GOOGLE_APPLICATION_CREDENTIALS, \
    or AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY; docs/remote.md lists all";

const CACHE: &str = "repeat with --no-hub-cache, or APR_NO_HUB_CACHE=1; correct HF_HUB_CACHE, or remove the repository from the cache";

const BLOCKS: &str = "name a folder of your own with APR_BLOCK_CACHE (`chmod go-w`, no link), or a size such as 10GiB with APR_BLOCK_CACHE_SIZE; \
    or repeat without the block cache";

located_error::errors! {
    /// Why a remote file cannot be read.
    pub struct Error caused by located_error::AnyCause;

    /// What was wrong. URLs are shown without their queries, which may be credentials.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// The text is no URL that is understood: `https://HOST/PATH`, `http://HOST/PATH`, `hf://ORG/NAME[@REVISION]/PATH` or
        /// `s3://BUCKET/KEY`, without a user name or password.
        Url {
            /// What is wrong with it.
            problem: &'static str,
        } = "rm-url" (Usage), "invalid URL: {problem}"
            => "write https://HOST/PATH, hf://ORG/NAME[@REVISION]/PATH or s3://BUCKET/KEY; credentials are read from the environment";
        /// HF_ENDPOINT names the server of `hf://` URLs, and is no URL.
        Endpoint = "rm-endpoint" (Usage), "HF_ENDPOINT is no URL"
            => "correct HF_ENDPOINT, for example https://hub.example, or unset it to use https://huggingface.co";
        /// The token of the hub cannot be part of a request.
        Token {
            /// The variable or the file that it is read from.
            origin: &'static str,
        } = "rm-token" (Usage), "{origin} is no token: it has spaces, control characters, or characters beyond ASCII"
            => "copy the token from the settings of the account again, or unset it to read public repositories";
        /// Object stores by their own protocols (`s3://`, `gs://`, `az://`) need the feature `cloud`, which this build does not have.
        Scheme {
            /// The scheme.
            scheme: &'static str,
        } = "rm-scheme" (Unsupported), "`{scheme}://` needs the feature `cloud`, which this build does not have"
            => "build with the feature: `cargo install --locked --path crates/apr-tools --features cloud`; to read, a signed https:// URL of the object is enough";
        /// Plain HTTP can be read and changed on its way. It is used for this machine only, unless it is allowed.
        PlainHttp {
            /// The host.
            host: String,
        } = "rm-http" (Usage), "plain http:// to {host} is not allowed"
            => "use https://, or allow it with --allow-http";
        /// The network was switched off, by an option or by HF_HUB_OFFLINE.
        Offline = "rm-offline" (Usage), "the network is switched off"
            => "name a file of this machine or one in the cache of the hub, or repeat without --offline and HF_HUB_OFFLINE";
        /// The server's certificate is not valid for it, or no secure connection could be made.
        Tls {
            /// The host.
            host: String,
        } = "rm-tls" (Io), "no secure connection to {host}"
            => "check the clock of this machine; name the certificates of your network with SSL_CERT_FILE";
        /// SSL_CERT_FILE cannot be read, or holds no certificate.
        Certificates = "rm-certificates" (Usage), "SSL_CERT_FILE names no file of certificates in PEM"
            => "correct SSL_CERT_FILE, or unset it to use the certificates of Mozilla's programme";
        /// A variable of the environment names a proxy that cannot be used. Nothing is requested without it.
        Proxy {
            /// The variable.
            variable: &'static str,
            /// What is wrong with its value.
            problem: &'static str,
        } = "rm-proxy" (Usage), "{variable}: {problem}"
            => "write http://HOST:PORT or https://HOST:PORT, with USER:PASSWORD@ before the host if need be, or unset the variable; SOCKS is not supported";
        /// The server has no such file: 404 or 410. The hub gives the same answer for a private repository without a token.
        NotFound {
            /// The host.
            host: String,
        } = "rm-not-found" (Io), "{host} has no such file"
            => "check the URL; of the hub also the revision, and HF_TOKEN if the repository is private";
        /// The server refuses access: 401 or 403. A signed URL may have expired.
        Denied {
            /// The host.
            host: String,
            /// The status.
            status: u16,
        } = "rm-denied" (Io), "{host} refuses access (status {status})"
            => "set HF_TOKEN for a private repository of the hub, make a new signed URL, or give these credentials access to the object";
        /// The hub gives the files of this repository to people who accepted its terms.
        Gated = "rm-gated" (Io), "the repository is gated"
            => "accept the terms on the page of the repository, and set HF_TOKEN to a token of that account";
        /// The server answered with a status that is neither success nor one of those that are tried again.
        Status {
            /// The host.
            host: String,
            /// The status.
            status: u16,
        } = "rm-status" (Io), "{host} answered with status {status}" => AGAIN;
        /// Connections broke, or the server answered that it is overloaded, until the tries or the time were used up.
        GaveUp {
            /// The host.
            host: String,
            /// How often it was tried without progress.
            tries: u32,
        } = "rm-gave-up" (Io), "gave up on {host} after {}", Tries(tries) => AGAIN;
        /// No program of this machine accepts connections at the address. It is asked once.
        Refused {
            /// The host.
            host: String,
        } = "rm-refused" (Io), "no program answers at {host}"
            => "start the server, or correct the host and port of the URL";
        /// The time that was set for all requests together is over (`--time-limit`).
        TimeLimit {
            /// The limit.
            seconds: u64,
        } = "rm-time-limit" (Io), "the network took longer than the {seconds} seconds that were allowed"
            => "repeat with a longer --time-limit";
        /// The server asks for a longer pause (Retry-After) than is waited for.
        Pause {
            /// The host.
            host: String,
            /// Seconds.
            seconds: u64,
        } = "rm-pause" (Io), "{host} asks to wait {seconds} seconds" => "repeat after that time";
        /// The file was replaced while it was read: its ETag, date or length is another one. Nothing of it is used.
        Changed = "rm-changed" (Io), "the file changed while it was read"
            => "repeat; name a commit (hf://ORG/NAME@COMMIT/PATH) for what does not change";
        /// The answer is not the range of bytes that was asked for.
        Range {
            /// What is wrong with it.
            problem: &'static str,
        } = "rm-range" (Invalid), "wrong answer to a range request: {problem}" => SERVER;
        /// The server ignores ranges, and the file is longer than what is read as a whole.
        NoRanges {
            /// The limit in bytes.
            limit: u64,
        } = "rm-no-ranges" (Unsupported), "the server ignores ranges, and the file has more than {limit} bytes"
            => "fetch the file with another program and name its copy";
        /// The answer of a service is longer than it may be.
        TooLong {
            /// The limit in bytes.
            limit: u64,
        } = "rm-too-long" (Invalid), "the answer has more than {limit} bytes" => SERVER;
        /// The body is compressed although the plain bytes were asked for, so that the range is one of other bytes.
        Encoding = "rm-encoding" (Invalid), "the server compressed the answer" => SERVER;
        /// A redirect leads nowhere, to another protocol, from https to http, or there are too many.
        Redirect {
            /// What is wrong with it.
            problem: &'static str,
        } = "rm-redirect" (Invalid), "invalid redirect: {problem}" => SERVER;
        /// A name inside a file leads out of the folder of the file that names it.
        Outside = "rm-outside" (Invalid), "a file name leads out of its folder"
            => "do not use the file: only names below its own folder are followed";
        /// What the cache of the hub has of a file is not the file: a link in it leads out of the folder of its repository, it is not a regular
        /// file, or its length is another one than the hub declares.
        Cache {
            /// What is wrong with it.
            problem: &'static str,
        } = "rm-cache" (Invalid), "invalid file in the cache of the hub: {problem}" => CACHE;
        /// The cache of the hub (HF_HUB_CACHE, else `hub` in HF_HOME) cannot be read.
        CacheRead = "rm-cache-read" (Io), "the cache of the hub cannot be read" => CACHE;
        /// The block cache is not used: its folder (APR_BLOCK_CACHE, else `apr/blocks` in the user's folder of caches) is a link, belongs to
        /// another user, or can be written by others, who could choose what is read; or there is none.
        BlockCache {
            /// What is wrong with it.
            problem: &'static str,
        } = "rm-block-cache" (Usage), "block cache: {problem}" => BLOCKS;
        /// The folder of the block cache cannot be read.
        BlockCacheRead = "rm-block-cache-read" (Io), "the block cache cannot be read" => BLOCKS;
        /// The hub's answer about a repository is not the list of its files. Below a prefix of an object store are too many objects, or some
        /// with keys that are not read.
        Listing {
            /// What is wrong with it.
            problem: String,
        } = "rm-listing" (Invalid), "invalid list of files: {problem}"
            => "check the URL; of the hub also HF_ENDPOINT and the revision, of an object store the keys below the prefix";
        /// The SHA-256 of the content is not the one that the hub declares.
        Digest {
            /// What the hub declares.
            expected: String,
            /// What was read.
            found: String,
        } = "rm-digest" (Verification), "SHA-256 mismatch: expected {expected}, found {found}" => PUBLISHER;
        /// The object store has no such bucket (of Azure, container).
        Bucket {
            /// The host.
            host: String,
            /// The bucket.
            bucket: String,
        } = "rm-bucket" (Io), "{host} has no bucket `{bucket}`"
            => "check the URL, and of S3 the endpoint (AWS_ENDPOINT_URL); buckets are created by other programs";
        /// The bucket is in another region than the one that requests are signed for.
        Region {
            /// The bucket.
            bucket: String,
        } = "rm-region" (Usage), "bucket `{bucket}` is in another region" => "set AWS_REGION to the region of the bucket";
        /// There are no credentials for the object store, or it does not accept them: an unknown key, another secret, an expired token.
        Credentials {
            /// What is wrong with them.
            problem: String,
        } = "rm-credentials" (Io), "credentials of the object store: {problem}" => CREDENTIALS;
        /// The variables of the environment that describe the object store are not complete or not valid.
        Settings {
            /// The protocol.
            scheme: &'static str,
            /// What is wrong with them; of a variable its name, not its value.
            problem: String,
        } = "rm-settings" (Usage), "settings for {scheme}:// in the environment: {problem}" => CREDENTIALS;
        /// An object of this key exists, also one that another writer has completed in the meantime. It is unchanged.
        Exists = "rm-exists" (Usage), "the object exists" => "choose another name, or add --force to replace it";
        /// The object has another length than what was sent. Another writer may have replaced it.
        Uploaded {
            /// Bytes that were sent.
            expected: u64,
            /// Bytes of the object.
            found: u64,
        } = "rm-uploaded" (Verification), "the object has {found} bytes, {expected} were sent"
            => "repeat with --force, and let one program at a time write the object";
        /// An object of one upload has at most 10,000 parts.
        ObjectLimit {
            /// Bytes.
            limit: u64,
        } = "rm-object-limit" (Unsupported), "the object would have more than {limit} bytes"
            => "divide the model with `apr shard`, and write the shards";
        /// There is not enough memory.
        OutOfMemory {
            /// Bytes.
            len: u64,
        } = "rm-memory" (Io), "no memory for {len} bytes" => located_error::remedy::MEMORY;
    }
}

/// A number of tries in words.
struct Tries<'a>(&'a u32);

impl fmt::Display for Tries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 try"),
            tries => write!(f, "{tries} tries"),
        }
    }
}

impl Error {
    pub(crate) fn caused(kind: ErrorKind, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let mut error = Self::from(kind);
        error.0.cause = Some(cause.into());
        error
    }
}

impl From<Error> for read_at::Error {
    fn from(error: Error) -> Self {
        Self::from_source(error)
    }
}

/// The error of a remote file among `error` and its sources.
#[must_use]
pub fn remote_error<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(located_error::problems(ErrorKind::TABLE, "rm-"), [""; 0]);
    }

    #[test]
    fn it_is_found_below_other_errors() {
        let error = std::io::Error::from(read_at::Error::from(Error::from(ErrorKind::Changed)));
        assert_eq!(remote_error(&error).map(Error::code), Some("rm-changed"));
        assert!(remote_error(&fmt::Error).is_none());
    }
}
