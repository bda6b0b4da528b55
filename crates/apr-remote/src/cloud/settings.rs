//! Variables of the environment that describe a store, checked before they are used: `object_store` panics at values of which no URL or header
//! can be made.

use core::str::FromStr;
use std::ffi::OsString;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::signer::Url as AnyUrl;
use ureq::http::Uri;
use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind};
use crate::object::Protocol;
use crate::url::Url;

/// A variable and its value.
struct Given<K> {
    name: String,
    key: K,
    value: Zeroizing<String>,
}

fn wrong(protocol: Protocol, problem: String) -> Error {
    ErrorKind::Settings { scheme: protocol.scheme(), problem }.into()
}

/// The variables with a prefix that a store has a meaning for, but for those that are empty, in the order of their names: of two with the same
/// meaning, AWS_ENDPOINT and AWS_ENDPOINT_URL, the last one counts.
fn given<K: FromStr>(
    protocol: Protocol,
    prefix: &str,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<Given<K>>, Error> {
    let mut all = Vec::new();
    for (name, value) in variables {
        let Ok(name) = name.into_string() else { continue };
        let Some(key) = name.starts_with(prefix).then(|| name.to_ascii_lowercase().parse().ok()).flatten()
        else {
            continue;
        };
        let text = |_| wrong(protocol, format!("{name} is not Unicode"));
        let value = Zeroizing::new(value.into_string().map_err(text)?);
        // The text of a key is JSON.
        let is_json = name.eq_ignore_ascii_case("GOOGLE_SERVICE_ACCOUNT_KEY");
        if !is_json && value.contains(char::is_control) {
            return Err(wrong(protocol, format!("{name} has a line feed or another control character")));
        }
        if !value.is_empty() {
            all.push(Given { name, key, value });
        }
    }
    // AWS_TOKEN is another name of AWS_SESSION_TOKEN, which counts.
    all.sort_by(|a, b| (a.name != "AWS_TOKEN", &a.name).cmp(&(b.name != "AWS_TOKEN", &b.name)));
    Ok(all)
}

/// Whether requests can be sent to an address: a URL of `https` or `http` with a host, for each of the parsers that read it.
fn is_endpoint(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
        && !text.contains(['?', '#'])
        && Url::parse(text).is_ok()
        && AnyUrl::parse(text).is_ok_and(|url| url.has_host())
        && text.parse::<Uri>().is_ok_and(|uri| uri.host().is_some_and(|host| !host.is_empty()))
}

fn check_endpoint<K>(protocol: Protocol, Given { name, value, .. }: &Given<K>) -> Result<(), Error> {
    match is_endpoint(value) {
        true => Ok(()),
        false => Err(wrong(protocol, format!("{name} is no URL with https:// or http:// and a host"))),
    }
}

/// S3, with what the environment says about it.
///
/// # Errors
///
/// [`ErrorKind::Settings`].
pub(super) fn amazon(
    bucket: &str,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<AmazonS3Builder, Error> {
    use AmazonS3ConfigKey as Key;
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket);
    for given in given::<Key>(Protocol::S3, "AWS_", variables)? {
        let Given { name, key, value } = &given;
        let is_valid = match key {
            Key::Endpoint
            | Key::S3Endpoint
            | Key::StsEndpoint
            | Key::MetadataEndpoint
            | Key::ContainerCredentialsFullUri => {
                check_endpoint(Protocol::S3, &given)?;
                true
            }
            // They are parts of host names.
            Key::Region | Key::DefaultRegion => {
                value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
                    && is_endpoint(&format!("https://s3.{}.amazonaws.com/{bucket}", **value))
            }
            Key::ContainerCredentialsRelativeUri => {
                value.starts_with('/') && format!("http://h{}", **value).parse::<Uri>().is_ok()
            }
            // The URL names the bucket.
            Key::Bucket => continue,
            _ => true,
        };
        if !is_valid {
            return Err(wrong(Protocol::S3, format!("{name} is not valid")));
        }
        builder = builder.with_config(*key, value.as_str());
    }
    Ok(builder)
}

/// Google Cloud Storage, with what the environment says about it.
///
/// # Errors
///
/// [`ErrorKind::Settings`].
pub(super) fn google(
    bucket: &str,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<GoogleCloudStorageBuilder, Error> {
    use GoogleConfigKey as Key;
    let mut builder = GoogleCloudStorageBuilder::new().with_bucket_name(bucket);
    for given in given::<Key>(Protocol::Google, "GOOGLE_", variables)? {
        match given.key {
            Key::BaseUrl => check_endpoint(Protocol::Google, &given)?,
            Key::Bucket => continue,
            _ => {}
        }
        builder = builder.with_config(given.key, given.value.as_str());
    }
    Ok(builder)
}

/// Azure Blob Storage, with what the environment says about it.
///
/// # Errors
///
/// [`ErrorKind::Settings`].
pub(super) fn azure(
    container: &str,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<MicrosoftAzureBuilder, Error> {
    use AzureConfigKey as Key;
    let mut builder = MicrosoftAzureBuilder::new().with_container_name(container);
    let (msi, variables): (Vec<_>, Vec<_>) =
        variables.into_iter().partition(|(name, _)| name == "MSI_ENDPOINT");
    for given in given::<Key>(Protocol::Azure, "AZURE_", variables)? {
        let Given { name, key, value } = &given;
        match key {
            Key::Endpoint | Key::MsiEndpoint | Key::AuthorityHost => check_endpoint(Protocol::Azure, &given)?,
            // A part of a host name.
            Key::AccountName if !is_endpoint(&format!("https://{}.blob.core.windows.net", **value)) => {
                return Err(wrong(Protocol::Azure, format!("{name} is not valid")));
            }
            Key::ContainerName => continue,
            _ => {}
        }
        builder = builder.with_config(*key, value.as_str());
    }
    for (_, endpoint) in msi {
        let value = Zeroizing::new(endpoint.to_string_lossy().into_owned());
        check_endpoint(
            Protocol::Azure,
            &Given { name: "MSI_ENDPOINT".to_owned(), key: (), value: value.clone() },
        )?;
        builder = builder.with_msi_endpoint(value.as_str());
    }
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        set.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    #[test]
    fn what_no_request_can_be_made_of_is_refused_by_its_name() {
        let addresses = [
            "127.0.0.1:9951",
            "localhost:9951",
            "garbage",
            "http://",
            "http://a b",
            "/path",
            "http://[::1",
            "http://127.0.0.1:99999",
            "http://1.2.3.4.5",
            "http://user:secret@h",
            "http://h?secret",
            "s3://h",
        ];
        let mut cases: Vec<(&str, &str)> = addresses.map(|text| ("AWS_ENDPOINT_URL", text)).into();
        cases.extend(addresses.map(|text| ("AWS_ENDPOINT_URL_S3", text)));
        cases.extend(addresses.map(|text| ("GOOGLE_BASE_URL", text)));
        cases.extend([
            ("AWS_REGION", "eu west"),
            ("AWS_DEFAULT_REGION", "eu/west"),
            ("AWS_REGION", "xn--"),
            ("AWS_SESSION_TOKEN", "sec\nret"),
            ("AWS_ACCESS_KEY_ID", "secret\u{7F}"),
            ("AWS_SECRET_ACCESS_KEY", "secret\r"),
            ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil.example/"),
            ("GOOGLE_BEARER_TOKEN", "secret\n"),
            ("AZURE_STORAGE_TOKEN", "secret\n"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "a c"),
            ("AZURE_STORAGE_ENDPOINT", "http://"),
            ("MSI_ENDPOINT", "garbage"),
        ]);
        for (name, value) in cases {
            let set = of(&[(name, value)]);
            let found = match name.split('_').next() {
                Some("AWS") => amazon("b", set).map(drop),
                Some("GOOGLE") => google("b", set).map(drop),
                _ => azure("b", set).map(drop),
            };
            let error = found.unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(name) && !shown.contains("secret"), "{name}={value}: {shown}");
            assert_eq!(error.code(), "rm-settings", "{name}={value}");
        }
    }

    #[test]
    fn what_requests_can_be_made_of_is_taken() {
        let set = of(&[
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:9951/"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "a/b+c="),
            ("AWS_SESSION_TOKEN", ""),
            ("AWS_PROFILE", "line\nfeed"),
        ]);
        let builder = amazon("b", set).unwrap();
        assert_eq!(builder.get_config_value(&AmazonS3ConfigKey::Token), None);
        for region in ["auto", "garage", "us_east"] {
            amazon("b", of(&[("AWS_REGION", region)])).unwrap();
        }
        google("b", of(&[("GOOGLE_SERVICE_ACCOUNT_KEY", "{\n}"), ("GOOGLE_BASE_URL", "http://[::1]:80")]))
            .unwrap();
    }

    #[test]
    fn of_two_names_of_a_setting_the_documented_one_counts() {
        let mut set = of(&[
            ("AWS_ENDPOINT_URL", "http://a"),
            ("AWS_ENDPOINT", "http://b"),
            ("AWS_SESSION_TOKEN", "a"),
            ("AWS_TOKEN", "b"),
            ("AWS_REGION", "a"),
            ("AWS_DEFAULT_REGION", "b"),
        ]);
        for _ in 0..2 {
            set.reverse();
            let builder = amazon("b", set.clone()).unwrap();
            let found = [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::Token, AmazonS3ConfigKey::Region]
                .map(|key| builder.get_config_value(&key).unwrap());
            assert_eq!(found, ["http://a", "a", "a"]);
        }
    }
}
