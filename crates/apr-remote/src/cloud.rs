//! Object stores: credentials, signatures, lists and uploads, by `object_store` over our own connections.

mod connector;
mod settings;
mod upload;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, OnceLock, PoisonError};

use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::{GcpCredential, GcpCredentialProvider, GoogleConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::signer::{Method, Signer};
use object_store::{ObjectStore, ObjectStoreExt as _, RetryConfig, StaticCredentialProvider};
use zeroize::Zeroizing;

use self::connector::{Connector, wait};
pub use self::upload::{Aborter, Upload};
use crate::client::{Client, Route};
use crate::error::{Error, ErrorKind};
use crate::http::Http;
use crate::object::{ListedObject, ObjectPath, Protocol, Replace};
use crate::sign::{Sign, Signed};
use crate::url::{Url, encoded};

/// How long a signed URL is valid.
const VALID: Duration = Duration::from_secs(3600);
/// Objects below a prefix at most.
const LISTED_MAX: usize = 100_000;
/// Where Google Cloud Storage is unless GOOGLE_BASE_URL says otherwise.
const GOOGLE: &str = "https://storage.googleapis.com";

/// The stores of a client, each made when it is first used.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    http: OnceLock<Arc<Http>>,
    all: Mutex<BTreeMap<(Protocol, String, Replace), Arc<Store>>>,
}

/// A bucket.
pub(crate) struct Store {
    protocol: Protocol,
    bucket: String,
    objects: Arc<dyn ObjectStore>,
    parts: Arc<dyn MultipartStore>,
    pages: Arc<dyn PaginatedListStore>,
    access: Access,
}

/// How reads are authorized.
enum Access {
    /// By a signature in the URL.
    Signature(Arc<dyn Signer>),
    /// Not at all: the URL without the signature.
    Public(Arc<dyn Signer>),
    /// By what is given and not made for a URL: a token beside it, because keys that could sign are rare there, or a query; or not at all.
    Given { base: String, query: Option<Zeroizing<String>>, credentials: Option<GcpCredentialProvider> },
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, bucket, .. } = self;
        f.debug_struct("Store").field("protocol", protocol).field("bucket", bucket).finish_non_exhaustive()
    }
}

impl Store {
    /// With the credentials of the environment, as other programs name them.
    fn new(
        protocol: Protocol,
        bucket: &str,
        connector: Connector,
        retry: RetryConfig,
    ) -> Result<Self, Error> {
        let problem = "they are incomplete or not valid".to_owned();
        let settings = ErrorKind::Settings { scheme: protocol.scheme(), problem };
        let caused = |error: object_store::Error| Error::caused(settings.clone(), error);
        match protocol {
            Protocol::S3 => {
                let builder = settings::amazon(bucket, std::env::vars_os())?;
                let builder = builder.with_retry(retry).with_http_connector(connector);
                let is_public = is_true(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature));
                let store = Arc::new(builder.clone().build().map_err(caused)?);
                let access = if is_public {
                    let any = builder.with_access_key_id("-").with_secret_access_key("-");
                    Access::Public(Arc::new(any.build().map_err(caused)?))
                } else {
                    Access::Signature(Arc::<object_store::aws::AmazonS3>::clone(&store))
                };
                Ok(Self::of(protocol, bucket, store, access))
            }
            Protocol::Google => {
                let builder = settings::google(bucket, std::env::vars_os())?;
                let builder = builder.with_retry(retry).with_http_connector(connector);
                let base = builder.get_config_value(&GoogleConfigKey::BaseUrl);
                let is_public = is_true(builder.get_config_value(&GoogleConfigKey::SkipSignature));
                // `object_store` 0.14 asks for a token to write all the same.
                let builder = if is_public { builder.with_credentials(no_token()) } else { builder };
                // What is wrong with a key would show a part of it.
                let store = Arc::new(builder.build().map_err(|_| Error::from(settings))?);
                let access = Access::Given {
                    query: None,
                    base: base.unwrap_or_else(|| GOOGLE.to_owned()).trim_end_matches('/').to_owned(),
                    credentials: (!is_public).then(|| Arc::clone(store.credentials())),
                };
                Ok(Self::of(protocol, bucket, store, access))
            }
            Protocol::Azure => {
                let builder = settings::azure(bucket, std::env::vars_os())?
                    .with_retry(retry)
                    .with_http_connector(connector);
                let given = |key| builder.get_config_value(&key);
                let is_set = |key| is_true(given(key));
                // Servers whose addresses `object_store` makes by rules of its own.
                if is_set(AzureConfigKey::UseEmulator) || is_set(AzureConfigKey::UseFabricEndpoint) {
                    return Err(settings.into());
                }
                let is_public = is_set(AzureConfigKey::SkipSignature);
                // It cannot sign a URL: it is one. `object_store` takes every other credential before it.
                let others = [
                    AzureConfigKey::AccessKey,
                    AzureConfigKey::Token,
                    AzureConfigKey::ClientSecret,
                    AzureConfigKey::FederatedTokenFile,
                ];
                let query = given(AzureConfigKey::SasKey)
                    .filter(|_| !is_public && others.into_iter().all(|other| given(other).is_none()))
                    .map(|token| sas_query(&token));
                let is_given = is_public || query.is_some();
                let base = given(AzureConfigKey::Endpoint).or_else(|| {
                    let account = given(AzureConfigKey::AccountName)?;
                    Some(format!("https://{account}.blob.core.windows.net"))
                });
                // What is wrong with a key or a signature would show a part of it.
                let failed = |_| Error::from(settings.clone());
                let store = Arc::new(builder.build().map_err(failed)?);
                let access = if is_given {
                    let base = base.ok_or_else(|| Error::from(settings.clone()))?;
                    let base = base.trim_end_matches('/').to_owned();
                    Access::Given { base, query, credentials: None }
                } else {
                    Access::Signature(Arc::<object_store::azure::MicrosoftAzure>::clone(&store))
                };
                Ok(Self::of(protocol, bucket, store, access))
            }
        }
    }

    fn of<S: ObjectStore + MultipartStore + PaginatedListStore>(
        protocol: Protocol,
        bucket: &str,
        store: Arc<S>,
        access: Access,
    ) -> Self {
        Self {
            protocol,
            bucket: bucket.to_owned(),
            objects: Arc::<S>::clone(&store),
            parts: Arc::<S>::clone(&store),
            pages: store,
            access,
        }
    }

    /// Waits for a request, and names what is wrong.
    fn wait<T>(&self, request: impl Future<Output = object_store::Result<T>>) -> Result<T, Error> {
        wait(&self.bucket, request)
    }

    fn sign(&self, path: &Path) -> Result<Signed, Error> {
        let parsed = |url: &object_store::signer::Url| Url::parse(url.as_str());
        match &self.access {
            // `object_store` 0.14 signs the name of a blob as a URL spells it; Azure compares it with the name as it is.
            Access::Signature(_)
                if self.protocol == Protocol::Azure && encoded(path.as_ref(), true) != path.as_ref() =>
            {
                Err(ErrorKind::Url { problem: "a key with these characters needs a shared access signature" }
                    .into())
            }
            Access::Signature(signer) => {
                let url = self.wait(signer.signed_url(Method::GET, path, VALID))?;
                Ok(parsed(&url)?.into())
            }
            Access::Public(signer) => {
                let url = self.wait(signer.signed_url(Method::GET, path, VALID))?;
                Ok(parsed(&url)?.without_query().into())
            }
            Access::Given { base, query, credentials } => {
                let mut url =
                    Zeroizing::new(format!("{base}/{}/{}", self.bucket, encoded(path.as_ref(), true)));
                query.iter().for_each(|query| url.extend(["?", query]));
                let url = Url::parse(&url)?;
                let Some(credentials) = credentials else { return Ok(url.into()) };
                let credential = self.wait(credentials.get_credential())?;
                let bearer = Some(&credential.bearer).filter(|bearer| !bearer.is_empty());
                Ok(Signed { url, bearer: bearer.map(|token| Zeroizing::new(format!("Bearer {token}"))) })
            }
        }
    }

    /// Bytes of an object; `None` if there is none.
    fn len(&self, path: &Path) -> Result<Option<u64>, Error> {
        let error = match self.wait(self.objects.head(path)) {
            Ok(found) => return Ok(Some(found.size)),
            Err(error) => error,
        };
        let is_missing = matches!(error.kind(), ErrorKind::NotFound { .. });
        let is_unclear = matches!(
            error.kind(),
            ErrorKind::Denied { .. } | ErrorKind::Status { status: 301 | 307 | 400, .. }
        );
        if !is_missing && !is_unclear {
            return Err(error);
        }
        // An answer to HEAD has no body, which would say more.
        let options = PaginatedListOptions { max_keys: Some(1), ..Default::default() };
        match self.wait(self.pages.list_paginated(Some(path.as_ref()), options)) {
            Err(told)
                if matches!(
                    told.kind(),
                    ErrorKind::Bucket { .. } | ErrorKind::Credentials { .. } | ErrorKind::Region { .. }
                ) =>
            {
                Err(told)
            }
            _ if is_missing => Ok(None),
            _ => Err(error),
        }
    }
}

/// A shared access signature of Azure as a query: as it is given elsewhere, with a question mark or without. One that is not encoded has no
/// other character that a query would take for another.
fn sas_query(token: &str) -> Zeroizing<String> {
    Zeroizing::new(token.trim().trim_start_matches('?').replace('+', "%2B"))
}

/// Credentials of requests that have none: the connector sends no header with an empty token.
fn no_token() -> GcpCredentialProvider {
    Arc::new(StaticCredentialProvider::new(GcpCredential { bearer: String::new() }))
}

/// As `object_store` reads it.
fn is_true(value: Option<String>) -> bool {
    value.is_some_and(|value| {
        ["1", "true", "on", "yes", "y"].iter().any(|word| value.eq_ignore_ascii_case(word))
    })
}

/// The key as `object_store` takes it.
fn path(object: &ObjectPath) -> Result<Path, Error> {
    Path::parse(object.key()).map_err(|_| ErrorKind::Url { problem: "the key is not supported" }.into())
}

/// Signs the URL of an object.
#[derive(Debug)]
struct ObjectSigner {
    store: Arc<Store>,
    path: Path,
}

impl Sign for ObjectSigner {
    fn sign(&self) -> Result<Signed, Error> {
        self.store.sign(&self.path)
    }

    fn bucket(&self) -> &str {
        &self.store.bucket
    }
}

impl Client {
    /// The bucket of an object.
    fn store(&self, object: &ObjectPath, replace: Replace) -> Result<Arc<Store>, Error> {
        self.allowed()?;
        let Stores { http, all } = &self.stores;
        let http = match http.get() {
            Some(http) => Arc::clone(http),
            None => {
                let new = Arc::new(Http::new(self.options.certificates.clone())?);
                Arc::clone(http.get_or_init(|| new))
            }
        };
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (object.protocol(), object.bucket().to_owned(), replace);
        if let Some(store) = all.get(&key) {
            return Ok(Arc::clone(store));
        }
        let tries = self.options.tries;
        let retry = RetryConfig {
            max_retries: tries.count.saturating_sub(1) as usize,
            retry_timeout: tries.time,
            ..RetryConfig::default()
        };
        let is_new_only = replace == Replace::Never && object.protocol() == Protocol::S3;
        let connector =
            Connector::new(http, self.options.plain_http, Arc::clone(&self.counters), is_new_only);
        let store = Arc::new(Store::new(object.protocol(), object.bucket(), connector, retry)?);
        all.insert(key, Arc::clone(&store));
        Ok(store)
    }

    /// The route to an object.
    pub(crate) fn object(&self, object: &ObjectPath) -> Result<Route, Error> {
        let (store, path) = (self.store(object, Replace::Always)?, path(object)?);
        Route::signed(Arc::new(ObjectSigner { store, path }))
    }

    /// Bytes of an object; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Those of requests; [`ErrorKind::Bucket`], [`ErrorKind::Credentials`], [`ErrorKind::Settings`].
    pub fn object_len(&self, object: &ObjectPath) -> Result<Option<u64>, Error> {
        self.store(object, Replace::Always)?.len(&path(object)?)
    }

    /// The objects below a prefix, which is a whole component of keys, in the order of their keys.
    ///
    /// # Errors
    ///
    /// Those of [`object_len`](Self::object_len); [`ErrorKind::Listing`] if there are more than 100,000.
    pub fn list_objects(&self, prefix: &ObjectPath) -> Result<Vec<ListedObject>, Error> {
        let store = self.store(prefix, Replace::Always)?;
        let slash = if prefix.is_prefix() { "" } else { "/" };
        let key = format!("{}{slash}", prefix.key());
        let mut listed = BTreeMap::new();
        let mut page_token = None;
        loop {
            let options = PaginatedListOptions { page_token, ..Default::default() };
            let page = store.wait(
                store
                    .pages
                    .list_paginated(Some(&key).filter(|key| !key.is_empty()).map(String::as_str), options),
            )?;
            for object in page.result.objects {
                // Lists of some stores have it without the quotes of the header.
                let etag =
                    object.e_tag.map(|tag| if tag.starts_with('"') { tag } else { format!("\"{tag}\"") });
                // What has the same key but for a slash at its end comes later.
                listed.entry(object.location.to_string()).or_insert((object.size, etag));
            }
            if listed.len() > LISTED_MAX {
                let problem = format!("there are more than {LISTED_MAX} objects");
                return Err(ErrorKind::Listing { problem }.into());
            }
            match page.page_token {
                Some(token) => page_token = Some(token),
                None => break,
            }
        }
        // Programs put empty objects where they show folders.
        let is_folder = |key: &str, len| {
            let inside = format!("{key}/");
            let mut next = listed.range(inside.clone()..);
            len == 0 && next.next().is_some_and(|(next, _)| next.starts_with(&inside))
        };
        let mut objects = Vec::with_capacity(listed.len());
        for (found, (len, etag)) in &listed {
            let object = prefix.with_key(found);
            // The key of one that stands for an empty folder ends with a slash, which lists do not show here.
            let is_there = || Ok::<bool, Error>(*len > 0 || store.len(&path(&object)?)?.is_some());
            if found.starts_with(&key) && !is_folder(found, *len) && is_there()? {
                objects.push(ListedObject { path: object, len: *len, etag: etag.clone() });
            }
        }
        Ok(objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_access_signature_becomes_a_query_however_it_was_copied() {
        let encoded = "sv=2021-10-04&se=2027-01-01T00%3A00%3A00Z&sig=a%2Bb%2Fc%3D";
        for token in [encoded.to_owned(), format!("?{encoded}"), format!(" {encoded}\n")] {
            assert_eq!(*sas_query(&token), encoded);
        }
        assert_eq!(*sas_query("sp=r&sig=a+b/c="), "sp=r&sig=a%2Bb/c=");
    }
}
