//! The signed statement: an in-toto statement about a list of files (OpenSSF Model Signing 1.0, sections 5 and 6.5 to 6.6).

use core::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, HashAlgorithm};
use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::manifest::{Manifest, Method, files_of, root_of};
use crate::name::is_canonical;

pub(crate) const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "https://model_signing/signature/v1.0";
/// Of version 0.2 of the reference implementation.
const OLD_PREDICATE: &str = "https://model_signing/Digests/v0.1";

/// The type of a statement, checked before the rest is parsed.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "_type", borrow)]
    kind: alloc::borrow::Cow<'a, str>,
    #[serde(rename = "predicateType", borrow)]
    predicate_type: alloc::borrow::Cow<'a, str>,
}

/// Fields that are not named here are passed over, as the specification wants; one that is there twice is an error.
#[derive(Serialize, Deserialize)]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Predicate,
}

#[derive(Serialize, Deserialize)]
struct Subject {
    name: String,
    digest: SubjectDigest,
}

#[derive(Serialize, Deserialize)]
struct SubjectDigest {
    sha256: String,
}

#[derive(Serialize, Deserialize)]
struct Predicate {
    serialization: Serialization,
    resources: Vec<Resource>,
}

#[derive(Serialize, Deserialize)]
struct Serialization {
    method: String,
    hash_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    shard_size: Option<serde_json::Number>,
    allow_symlinks: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_paths: Option<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct Resource {
    name: String,
    algorithm: String,
    digest: String,
}

pub(crate) fn to_json(manifest: &Manifest) -> Vec<u8> {
    let hash_type = manifest.algorithm.name().to_owned();
    let (method, shard_size) = match manifest.method {
        Method::Files => ("files", None),
        Method::Shards(size) => ("shards", Some(size.get().into())),
    };
    let algorithm = entry_algorithm(manifest.method, &hash_type);
    let resource = |(name, digest): (String, &Digest)| Resource {
        name,
        algorithm: algorithm.clone(),
        digest: digest.to_string(),
    };
    let statement = Statement {
        kind: STATEMENT.into(),
        subject: vec![Subject {
            name: manifest.name.clone(),
            digest: SubjectDigest { sha256: manifest.root().to_string() },
        }],
        predicate_type: PREDICATE.into(),
        predicate: Predicate {
            serialization: Serialization {
                method: method.into(),
                hash_type,
                shard_size,
                allow_symlinks: manifest.follows_symlinks,
                ignore_paths: (!manifest.ignored.is_empty()).then(|| manifest.ignored.clone()),
            },
            resources: manifest.entries().into_iter().map(resource).collect(),
        },
    };
    serde_json::to_vec(&statement).expect("text, numbers and lists are JSON")
}

pub(crate) fn from_json(json: &[u8], limits: &Limits) -> Result<Manifest, Error> {
    let head: Head<'_> = parse("the statement in it", json)?;
    let wrong = |what| Error::from(ErrorKind::Statement { what });
    if head.kind != STATEMENT {
        return Err(wrong("its type is not that of in-toto statements, version 1"));
    }
    match &*head.predicate_type {
        PREDICATE => {}
        OLD_PREDICATE => {
            let what = "a list as versions before 1.0 wrote it: sign the model again";
            return Err(ErrorKind::Unsupported { what }.into());
        }
        _ => return Err(wrong("its predicate is not that of model signing, version 1.0")),
    }
    let Statement { subject, predicate, .. } = parse("the statement in it", json)?;
    let Predicate { serialization, resources } = predicate;
    let [Subject { name, digest: SubjectDigest { sha256 } }] =
        <[Subject; 1]>::try_from(subject).map_err(|_| wrong("it has not one subject"))?;
    if name.is_empty() {
        return Err(wrong("its subject has no name"));
    }

    let algorithm = HashAlgorithm::from_name(&serialization.hash_type)
        .ok_or(ErrorKind::Unsupported { what: "a hash other than sha256, blake2b and blake3" })?;
    let method = match (&*serialization.method, &serialization.shard_size) {
        ("files", None) => Method::Files,
        ("files", Some(_)) => return Err(wrong("it lists whole files and has a shard size")),
        ("shards", size) => {
            let size = size.as_ref().and_then(whole_number).and_then(NonZeroU64::new);
            Method::Shards(size.ok_or_else(|| wrong("its shard size is not a whole number of bytes"))?)
        }
        _ => return Err(ErrorKind::Unsupported { what: "a method other than files and shards" }.into()),
    };
    let ignored = serialization.ignore_paths.unwrap_or_default();
    for (what, found) in [("files on the list", resources.len()), ("ignored names", ignored.len())] {
        if found > limits.files {
            return Err(ErrorKind::Limit { what, found: found as u64, limit: limits.files as u64 }.into());
        }
    }
    if let Some(name) = ignored.iter().find(|name| !is_canonical(name)) {
        return Err(Error::from(ErrorKind::Name).of_name(name));
    }

    let plain = &serialization.hash_type;
    let qualified = entry_algorithm(method, plain);
    let mut entries = Vec::with_capacity(resources.len());
    for Resource { name, algorithm: hash, digest } in resources {
        if hash != *plain && hash != qualified {
            return Err(wrong("an entry has another hash than the list").of_name(&name));
        }
        let digest = Digest::from_hex(&digest, algorithm.digest_len())
            .ok_or_else(|| wrong("a digest is not of its length in lower-case hexadecimal").of_name(&name))?;
        entries.push((name, digest));
    }
    if root_of(entries.iter().map(|(_, digest)| digest)).to_string() != sha256 {
        return Err(ErrorKind::Root.into());
    }
    let files = files_of(entries, method, &ignored)?;
    Ok(Manifest { name, method, algorithm, ignored, follows_symlinks: serialization.allow_symlinks, files })
}

/// The specification wants the hash's name for every entry; version 1.1.1 of the reference implementation writes, and
/// when it verifies demands, another one for shards. Both are read, its own is written.
fn entry_algorithm(method: Method, hash_type: &str) -> String {
    match method {
        Method::Files => hash_type.to_owned(),
        Method::Shards(size) => format!("{hash_type}-sharded-{size}"),
    }
}

/// The reference implementation writes whole numbers with a fraction of zero.
fn whole_number(number: &serde_json::Number) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let as_float = || {
        let float = number.as_f64()?;
        // Below 2^53, a float without fraction is an integer; the cast is exact.
        (float.fract() == 0.0 && (0.0..EXACT).contains(&float)).then_some(float as u64)
    };
    number.as_u64().or_else(as_float)
}

/// JSON without what the parser has to say: its text may hold anything that was in the file.
pub(crate) fn parse<'a, T: Deserialize<'a>>(what: &'static str, json: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(json)
        .map_err(|error| ErrorKind::Json { what, line: error.line(), column: error.column() }.into())
}
