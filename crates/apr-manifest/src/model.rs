//! Entry points: sign a file or folder, and verify it.

use core::ops::Range;
use std::path::Path;

use apr_crypto::p256::{SigningKey, VerifyingKey};

use crate::bundle::Bundle;
use crate::digest::HashAlgorithm;
use crate::error::{Differences, Error, ErrorKind};
use crate::hashing::{Job, Watch, hash_all};
use crate::limits::Limits;
use crate::manifest::{FileEntry, Manifest, Method, Part};
use crate::name::{DEFAULT_IGNORED, is_canonical, is_within};
use crate::walk::{Walk, name_below, walk};

/// How to list the files that are signed. Digests are SHA-256.
#[derive(Clone, Debug, Default)]
pub struct SignOptions {
    /// Whole files, or shards of a length.
    pub method: Method,
    /// Names below the folder that are not signed, including everything below them. `.git`, `.gitattributes`, `.github`,
    /// `.gitignore` and the signature itself never are.
    pub ignore: Vec<String>,
    /// Resource limits.
    pub limits: Limits,
}

/// A file or folder whose content is exactly what was signed.
#[derive(Clone, Debug)]
pub struct Verified {
    manifest: Manifest,
    not_covered: Vec<String>,
    /// The signature's name in the folder, if it is there.
    signature: Option<String>,
    n_bytes: u64,
}

impl Verified {
    /// The signed list, which the files match.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Names in the folder that the signature does not cover: the signature itself, `.git`, what the signer
    /// chose to ignore. At most 1,000.
    #[must_use]
    pub fn not_covered(&self) -> &[String] {
        &self.not_covered
    }

    /// Those of [`not_covered`](Self::not_covered) that are not the signature itself.
    pub fn uncovered(&self) -> impl Iterator<Item = &str> {
        let names = self.not_covered.iter().map(String::as_str);
        names.filter(|name| Some(*name) != self.signature.as_deref())
    }

    /// Bytes of the files on the list.
    #[must_use]
    pub const fn n_bytes(&self) -> u64 {
        self.n_bytes
    }
}

/// Signs a file or a folder into a bundle, which is written as a whole and replaces one that was there.
///
/// # Errors
///
/// Those of [`Manifest::of`]; a [`durable_file::Error`] if the signature cannot be written.
pub fn sign_model(
    path: &Path,
    signature: &Path,
    key: &SigningKey,
    options: &SignOptions,
    watch: Watch<'_>,
) -> Result<Manifest, Error> {
    let manifest = Manifest::of(path, Some(signature), options, watch)?;
    durable_file::write(signature, Bundle::sign(&manifest, key).to_json().as_bytes())?;
    Ok(manifest)
}

/// Checks that `key` signed the bundle, and that the file or folder is what it speaks of, no more and no less.
///
/// # Errors
///
/// Those of [`Bundle::from_json`], [`Bundle::verify`] and [`Manifest::check`]; a [`durable_file::Error`] if the signature
/// cannot be read.
pub fn verify_model(
    path: &Path,
    signature: &Path,
    key: &VerifyingKey,
    limits: &Limits,
    watch: Watch<'_>,
) -> Result<Verified, Error> {
    signed_list(signature, key, limits)?.check(path, Some(signature), limits, watch)
}

/// Checks that `key` signed the bundle, and that the one file it speaks of is the one at `path`, which is called `name` there.
///
/// # Errors
///
/// Those of [`verify_model`].
pub fn verify_model_file(
    path: &Path,
    name: &str,
    signature: &Path,
    key: &VerifyingKey,
    limits: &Limits,
    watch: Watch<'_>,
) -> Result<Verified, Error> {
    signed_list(signature, key, limits)?.check_as(Some(name), path, None, limits, watch)
}

fn signed_list(signature: &Path, key: &VerifyingKey, limits: &Limits) -> Result<Manifest, Error> {
    let json = durable_file::read(signature, limits.bundle_len)?;
    let manifest = Bundle::from_json(&json, limits).and_then(|bundle| bundle.verify(key, limits));
    manifest.map_err(|error| error.in_file(signature))
}

impl Manifest {
    /// The list of a file or of every file below a folder; `signature`, if it is there, is left out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Symlink`], [`ErrorKind::NotRegular`], [`ErrorKind::NotUtf8`], [`ErrorKind::Empty`],
    /// [`ErrorKind::Unstable`], [`ErrorKind::Limit`], [`ErrorKind::Name`] for a name to be ignored that is no plain relative path,
    /// [`ErrorKind::Io`] or a [`durable_file::Error`] if something cannot be read.
    pub fn of(
        path: &Path,
        signature: Option<&Path>,
        options: &SignOptions,
        watch: Watch<'_>,
    ) -> Result<Self, Error> {
        if let Some(name) = options.ignore.iter().find(|name| !is_canonical(name)) {
            return Err(Error::from(ErrorKind::Name).of_name(name));
        }
        let mut ignored: Vec<String> = DEFAULT_IGNORED.map(str::to_owned).to_vec();
        ignored.extend(options.ignore.iter().cloned());
        ignored.extend(signature.and_then(|signature| name_below(path, signature)));
        ignored.sort_unstable();
        ignored.dedup();
        let Walk { mut files, .. } = walk(path, is_ignored(&ignored), &options.limits)?;
        if matches!(options.method, Method::Shards(_)) {
            files.retain(|file| file.len > 0);
        }
        if files.is_empty() {
            return Err(Error::from(ErrorKind::Empty).in_file(path));
        }
        let limit = options.limits.files as u64;
        let found = files.iter().map(|file| n_parts(file.len, options.method)).fold(0, u64::saturating_add);
        if found > limit {
            return Err(
                Error::from(ErrorKind::Limit { what: "entries of the list", found, limit }).in_file(path)
            );
        }
        let mut jobs = Vec::new();
        for (file_idx, file) in files.iter().enumerate() {
            jobs.extend(ranges(file.len, options.method).map(|range| Job { file_idx, range }));
        }
        let algorithm = HashAlgorithm::Sha256;
        let digests = hash_all(&files, &jobs, algorithm, watch)?;
        let mut entries: Vec<FileEntry> =
            files.iter().map(|file| FileEntry { name: file.name.clone(), parts: Vec::new() }).collect();
        for (job, digest) in jobs.into_iter().zip(digests) {
            let range = matches!(options.method, Method::Shards(_)).then_some(job.range);
            if let Some(entry) = entries.get_mut(job.file_idx) {
                entry.parts.push(Part { range, digest });
            }
        }
        Ok(Self {
            name: model_name(path),
            method: options.method,
            algorithm,
            ignored,
            follows_symlinks: false,
            files: entries,
        })
    }

    /// Whether the file or folder matches the list exactly. `signature`, if it is there and not on
    /// the list, does not count.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Differs`], with all [`differences`](Error::differences); [`ErrorKind::Symlink`],
    /// [`ErrorKind::NotRegular`], [`ErrorKind::NotUtf8`], [`ErrorKind::Unstable`], [`ErrorKind::Limit`];
    /// [`ErrorKind::Io`] or a [`durable_file::Error`] if something cannot be read.
    pub fn check(
        self,
        path: &Path,
        signature: Option<&Path>,
        limits: &Limits,
        watch: Watch<'_>,
    ) -> Result<Verified, Error> {
        let name = path.file_name().and_then(|name| name.to_str());
        self.check_as(name, path, signature, limits, watch)
    }

    /// As [`check`](Self::check); a single file is called `name`.
    fn check_as(
        self,
        name: Option<&str>,
        path: &Path,
        signature: Option<&Path>,
        limits: &Limits,
        watch: Watch<'_>,
    ) -> Result<Verified, Error> {
        let is_listed = |folder: &str| self.files.iter().any(|file| is_within(&file.name, folder));
        // Signed files are read, whatever their name.
        let signature = signature.and_then(|signature| name_below(path, signature));
        let unlisted = DEFAULT_IGNORED.into_iter().map(str::to_owned).chain(signature.clone());
        let mut ignored = self.ignored.clone();
        ignored.extend(unlisted.filter(|name| !is_listed(name)));
        let Walk { mut files, skipped } = walk(path, is_ignored(&ignored), limits)?;
        // The specification calls a single file by its name, the reference implementation by a dot.
        let is_dot = matches!(&self.files[..], [listed] if listed.name == ".");
        if let ([only], false) = (&mut files[..], is_dot)
            && only.name == "."
            && let Some(name) = name
        {
            name.clone_into(&mut only.name);
        }

        let mut differences = Differences::default();
        let (mut jobs, mut expected) = (Vec::new(), Vec::new());
        let mut listed = self.files.iter().peekable();
        for (file_idx, file) in files.iter().enumerate() {
            while let Some(missing) = listed.next_if(|entry| entry.name < file.name) {
                differences.add_missing(&missing.name);
            }
            let Some(entry) = listed.next_if(|entry| entry.name == file.name) else {
                // A list of shards has no entry for a file without a byte.
                if file.len > 0 || self.method == Method::Files {
                    differences.add_extra(&file.name);
                }
                continue;
            };
            if entry.len_declared().is_some_and(|len| len != file.len) {
                differences.add_changed(&file.name);
                continue;
            }
            for part in &entry.parts {
                jobs.push(Job { file_idx, range: part.range.clone().unwrap_or(0..file.len) });
                expected.push(&part.digest);
            }
        }
        listed.for_each(|missing| differences.add_missing(&missing.name));
        let digests = hash_all(&files, &jobs, self.algorithm, watch)?;
        let mut changed = None;
        for ((job, digest), expected) in jobs.iter().zip(&digests).zip(expected) {
            if digest != expected && changed.replace(job.file_idx) != Some(job.file_idx) {
                differences.add_changed(files.get(job.file_idx).map_or("", |file| &file.name));
            }
        }
        if !differences.is_empty() {
            return Err(Error::from(ErrorKind::Differs { differences }).in_file(path));
        }
        let n_bytes = files.iter().map(|file| file.len).sum();
        Ok(Verified { manifest: self, not_covered: skipped, signature, n_bytes })
    }
}

/// The name of the file or folder at `path` on a list: the last name of the path, not that of a link's target; of a path that ends
/// in `.` or `..`, the name of the folder. `model` if it is not UTF-8.
///
/// ```
/// use std::path::Path;
///
/// assert_eq!(apr_manifest::model_name(Path::new("models/not-there.gguf")), "not-there.gguf");
/// ```
#[must_use]
pub fn model_name(path: &Path) -> String {
    let whole = if path.file_name().is_none() { path.canonicalize().ok() } else { None };
    let name = whole.as_deref().unwrap_or(path).file_name().and_then(|name| name.to_str());
    name.unwrap_or("model").to_owned()
}

fn is_ignored(folders: &[String]) -> impl Fn(&str) -> bool {
    move |name| folders.iter().any(|folder| is_within(name, folder))
}

fn n_parts(len: u64, method: Method) -> u64 {
    match method {
        Method::Files => 1,
        Method::Shards(size) => len.div_ceil(size.get()),
    }
}

fn ranges(len: u64, method: Method) -> impl Iterator<Item = Range<u64>> {
    let size = match method {
        Method::Files => len,
        Method::Shards(size) => size.get(),
    };
    (0..n_parts(len, method)).map(move |idx| {
        let start = idx.saturating_mul(size);
        start..start.saturating_add(size).min(len)
    })
}
