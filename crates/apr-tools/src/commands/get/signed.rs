//! Copies that get their names only if a key signed them.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use std::fs;
use std::io;
use std::path::Path;

use apr_remote::{Client, ErrorKind};
use durable_file::StagedDir;

use super::copy::Arrived;
use super::plan::{Plan, Wanted};
use crate::commands::verify;
use crate::error::{CODE_NO_SIGNATURE, CODE_NOT_COVERED, Failure};
use crate::secrets::{Verifier, load_verifier};
use crate::terminal::Console;

/// The signature of a whole folder, in it.
const OF_FOLDER: &str = "model.sig";
const LEAVE_OUT: &str = "only signed files are copied: leave out the others with --exclude";

/// Whose signature the files must have.
#[derive(Debug)]
pub(super) struct Signer(Verifier);

impl Signer {
    /// # Errors
    ///
    /// If the key cannot be read or is of another kind.
    pub(super) fn load(key_or_file: &Path) -> Result<Self, Failure> {
        load_verifier(key_or_file).map(Self)
    }

    pub(super) fn fingerprint(&self) -> String {
        self.0.fingerprint().to_string()
    }

    /// The ending of signatures beside files.
    const fn ending(&self) -> &'static str {
        match self.0 {
            Verifier::Ed25519 { .. } => ".minisig",
            Verifier::P256(_) => ".sig",
        }
    }

    /// Whether a path is that of a signature of files that are copied.
    pub(super) fn is_signature(&self, path: &str, is_copied: impl Fn(&str) -> bool) -> bool {
        let is_of_folder = matches!(self.0, Verifier::P256(_)) && path == OF_FOLDER;
        is_of_folder || path.strip_suffix(self.ending()).is_some_and(is_copied)
    }

    /// Adds the signatures beside the files, as far as the server has them: for places that list nothing.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub(super) fn find(&self, client: &Arc<Client>, files: &mut Vec<Wanted>) -> Result<(), Failure> {
        let known: BTreeSet<String> = files.iter().map(|file| file.path.clone()).collect();
        let mut found = Vec::new();
        for file in files.iter() {
            let path = format!("{}{}", file.path, self.ending());
            if known.contains(&path) || self.is_signature(&file.path, |path| known.contains(path)) {
                continue;
            }
            let place = file.place.beside(path.rsplit('/').next().unwrap_or_default())?;
            match client.open(&place) {
                Ok(opened) => found.push(Wanted::of_file(&opened, place, path)),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound { .. }) => {}
                Err(error) => return Err(Failure::from(error).in_file(Path::new(&place.to_string()))),
            }
        }
        files.extend(found);
        Ok(())
    }

    /// Verifies the files that have arrived, and those that were there, before any of them gets its name.
    ///
    /// # Errors
    ///
    /// If one has no signature, another one than the key's, or is not as it was signed.
    pub(super) fn verify(
        &self,
        plan: &Plan,
        arrived: &[Option<Arrived>],
        folder: &Path,
        console: &Console,
    ) -> Result<(), Failure> {
        let parts = folder.join(super::PARTS);
        fs::create_dir_all(&parts).map_err(|error| Failure::io("create the folder", &parts, &error))?;
        let staged = StagedDir::create(&parts.join("signed"))?;
        for (wanted, arrived) in plan.files.iter().zip(arrived) {
            let there = folder.join(&wanted.path);
            let from = arrived.as_ref().map_or(there.as_path(), Arrived::path);
            let to = staged.path().join(&wanted.path);
            gather(from, &to).map_err(|error| Failure::io("read the file", &there, &error))?;
        }
        self.check(plan, staged.path(), console).map_err(|failure| {
            let failure = failure.moved(staged.path(), folder);
            let file = failure.file().and_then(|file| file.strip_prefix(folder).ok()).map(Path::to_owned);
            match failure.code() {
                CODE_NO_SIGNATURE => self.unsigned(plan, file.as_deref(), failure),
                CODE_NOT_COVERED => failure.help(LEAVE_OUT),
                _ => failure,
            }
        })
    }

    /// A file without a signature of the kind of the key, with the place on the server where it would be.
    fn unsigned(&self, plan: &Plan, file: Option<&Path>, failure: Failure) -> Failure {
        let wanted = plan.files.iter().find(|wanted| Some(Path::new(&wanted.path)) == file);
        let Some(wanted) = wanted else { return failure.help(LEAVE_OUT) };
        let kind = match self.0 {
            Verifier::Ed25519 { .. } => "Ed25519: a signature of a P-256 key has the ending .sig",
            Verifier::P256(_) => "P-256: a signature of an Ed25519 key has the ending .minisig",
        };
        let place = format!("{}{}", wanted.place, self.ending());
        failure.because(format!("looked for {place} on the server; the key is {kind}")).help(LEAVE_OUT)
    }

    fn check(&self, plan: &Plan, staged: &Path, console: &Console) -> Result<(), Failure> {
        let paths: BTreeSet<&str> = plan.files.iter().map(|file| file.path.as_str()).collect();
        if matches!(self.0, Verifier::P256(_)) && paths.contains(OF_FOLDER) {
            return verify::fetched(staged, &self.0, console);
        }
        let signed = paths.iter().filter(|path| !self.is_signature(path, |path| paths.contains(path)));
        signed.into_iter().try_for_each(|path| verify::fetched(&staged.join(path), &self.0, console))
    }
}

/// Links a file into a staged folder, or copies it where the file system has no hard links.
fn gather(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    // A link that was there is followed, as its readers follow it.
    let from = from.canonicalize()?;
    fs::hard_link(&from, to).or_else(|_| fs::copy(&from, to).map(drop))
}
