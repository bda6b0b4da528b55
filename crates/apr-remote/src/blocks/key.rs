//! What names an object in the cache.

use blake3::Hasher;

use crate::hub::HubPath;
use crate::url::Url;

/// Names an object; of the hub, the file of every revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    digest: [u8; 32],
    /// Without a query.
    shown: String,
    /// Of the hub.
    commit: Option<String>,
}

/// Parameters that come with a signature, another one each time, whatever the object is. In lower case.
const OF_SIGNATURES: [&str; 22] = [
    "expires",
    "key-pair-id",
    "policy",
    "awsaccesskeyid",
    "googleaccessid",
    "sv",
    "ss",
    "srt",
    "sr",
    "sp",
    "st",
    "se",
    "sip",
    "spr",
    "si",
    "skoid",
    "sktid",
    "skt",
    "ske",
    "sks",
    "skv",
    "spk",
];
/// The signatures themselves: Azure's, CloudFront's, those of Amazon and Google.
const SIGNATURES: [&str; 4] = ["sig", "signature", "x-amz-signature", "x-goog-signature"];

impl Key {
    /// That of a URL.
    pub(crate) fn of_url(url: &Url) -> Self {
        let mut hash = Hasher::new_derive_key("apr block cache 1: URL");
        let shown = url.to_string();
        hash.update(shown.as_bytes());
        let parameters = || url.query().into_iter().flat_map(|query| query.split('&'));
        let is_signed = parameters().any(|parameter| SIGNATURES.contains(&name_of(parameter).as_str()));
        for parameter in parameters().filter(|parameter| !(is_signed && is_of_signature(parameter))) {
            hash.update(b"\0").update(parameter.as_bytes());
        }
        Self { digest: *hash.finalize().as_bytes(), shown, commit: None }
    }

    /// That of a file of the hub at a commit; `None` of another revision, which moves.
    pub(crate) fn of_hub(endpoint: &Url, path: &HubPath) -> Option<Self> {
        let commit = path.commit()?.to_owned();
        let mut hash = Hasher::new_derive_key("apr block cache 1: hub");
        let kind = if path.is_dataset() { "datasets/" } else { "" };
        for part in [&endpoint.to_string(), kind, path.repository(), path.path()] {
            hash.update(part.as_bytes()).update(b"\0");
        }
        let shown = format!("hf://{kind}{}/{}", path.repository(), path.path());
        Some(Self { digest: *hash.finalize().as_bytes(), shown, commit: Some(commit) })
    }

    /// The name of its folder.
    pub(super) fn name(&self) -> String {
        blake3::Hash::from_bytes(self.digest).to_hex().to_string()
    }

    pub(super) const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// The name of what is known of it.
    pub(super) fn record(&self) -> String {
        match &self.commit {
            Some(commit) => format!("pin-{commit}"),
            None => "pin".to_owned(),
        }
    }

    /// The ID of a version of it.
    pub(super) fn version(&self, validator: &str, len: u64) -> [u8; 32] {
        let mut hash = Hasher::new_derive_key("apr block cache 1: version");
        hash.update(&self.digest).update(&len.to_le_bytes()).update(validator.as_bytes());
        *hash.finalize().as_bytes()
    }
}

fn name_of(parameter: &str) -> String {
    parameter.split('=').next().unwrap_or_default().to_ascii_lowercase()
}

fn is_of_signature(parameter: &str) -> bool {
    let name = name_of(parameter);
    let is_known = SIGNATURES.contains(&name.as_str()) || OF_SIGNATURES.contains(&name.as_str());
    is_known || name.starts_with("x-amz-") || name.starts_with("x-goog-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_not_a_part_of_the_name() {
        let of = |text| Key::of_url(&Url::parse(text).unwrap());
        let plain = of("https://h.example/a");
        for same in [
            "https://h.example/a#part",
            "https://h.example/a?X-Amz-Signature=1&X-Amz-Date=2",
            "https://h.example/a?sv=2022&sr=b&sig=abc&se=2030",
            "https://h.example/a?Expires=1&Key-Pair-Id=2&Signature=3",
        ] {
            assert_eq!(of(same), plain, "{same}");
        }
        for other in [
            "http://h.example/a",
            "https://h.example:444/a",
            "https://h.example/b",
            "https://h.example/a?id=1",
            "https://h.example/a?id=2",
            "https://h.example/a?id=1&X-Amz-Signature=2",
            "https://h.example/a?sv=1",
        ] {
            assert!(of(other).digest != plain.digest && of(other).shown == other.split('?').next().unwrap());
        }
        assert_ne!(of("https://h.example/a?id=1").digest, of("https://h.example/a?id=2").digest);
    }

    #[test]
    fn files_of_the_hub_have_a_name_for_all_commits_and_none_for_branches() {
        let endpoint = Url::parse("https://hub.example").unwrap();
        let of = |text: &str| Key::of_hub(&endpoint, &HubPath::parse(text).unwrap());
        let (first, second) = ("0".repeat(40), "1".repeat(40));
        let key = of(&format!("o/n@{first}/m")).unwrap();
        let later = of(&format!("o/n@{second}/m")).unwrap();
        assert_eq!((key.digest, key.shown()), (later.digest, "hf://o/n/m"));
        assert_ne!(key.record(), later.record());
        assert_ne!(of(&format!("datasets/o/n@{first}/m")).unwrap().digest, key.digest);
        assert_eq!(of("o/n/m"), None);
        let other = Url::parse("https://other.example").unwrap();
        let path = HubPath::parse(&format!("o/n@{first}/m")).unwrap();
        assert_ne!(Key::of_hub(&other, &path).unwrap().digest, key.digest);
    }
}
