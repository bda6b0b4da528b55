//! `--key` and `--signature`: files that are used only if their detached signature is valid.
//!
//! Others may change a file between a look that verifies it and a second one that uses it. It is therefore copied once, to a
//! file that only this process can open; the copy is verified, and the copy is used.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use durable_file::Scratch;

use crate::commands::verify;
use crate::error::{CODE_NO_SIGNATURE, CODE_USAGE, Failure};
use crate::input::{Format, Source};
use crate::secrets::{HEADING, Verifier, load_verifier};
use crate::terminal::Console;
use crate::terminal::escape;

/// Bytes between two looks at the progress.
const PIECE_LEN: u64 = 64 << 20;

/// Whose signature must exist beside a file, and where.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DetachedArgs {
    /// Require a signature beside the file (minisign or model signing) by this public key, and use the bytes that were verified.
    #[arg(long, value_name = "KEY-OR-FILE", help_heading = HEADING)]
    pub(crate) key: Option<PathBuf>,
    /// The signature for --key [default: FILE.minisig; FILE.sig].
    #[arg(long, value_name = "SIG", requires = "key", help_heading = HEADING)]
    pub(crate) signature: Option<PathBuf>,
}

/// Whose signature must exist beside a file, and where.
#[derive(Debug)]
pub(crate) struct Detached {
    key: Verifier,
    signature: Option<PathBuf>,
}

impl DetachedArgs {
    /// Where the signature of a file may be; nowhere if none is required.
    #[cfg(feature = "serve")]
    pub(crate) fn places(&self, file: &Path) -> Vec<PathBuf> {
        match (&self.key, &self.signature) {
            (None, _) => Vec::new(),
            (Some(_), Some(signature)) => vec![signature.clone()],
            (Some(_), None) => verify::signature_places(file).collect(),
        }
    }

    /// `None` if no signature beside the file is required.
    ///
    /// # Errors
    ///
    /// If the key cannot be read or is of another kind.
    pub(crate) fn load(&self) -> Result<Option<Detached>, Failure> {
        let Some(key) = &self.key else { return Ok(None) };
        Ok(Some(Detached { key: load_verifier(key)?, signature: self.signature.clone() }))
    }
}

/// The advice of a command that does not verify signatures inside files, for a file that may have one.
pub(crate) fn without_signer(failure: Failure, path: &Path) -> Failure {
    if failure.code() != CODE_NO_SIGNATURE {
        return failure;
    }
    let beside = "fetch the signature too, or name it with --signature";
    let file = escape::path_word(path);
    match Source::peek(path) {
        Format::AprV1 => failure.help(format!(
            "{beside}; for one inside the file: `apr verify {file} --key KEY` verifies it, and --allow-unverified in place of --key then reads it"
        )),
        Format::Sealed => failure.help(format!(
            "{beside}; for one inside the file: `apr open {file} -o OUT --signer KEY` verifies it, and writes what is inside"
        )),
        _ => failure.help(beside),
    }
}

impl Detached {
    /// Copies a file to where no other user can change it.
    ///
    /// # Errors
    ///
    /// If it is not one file, or cannot be read or copied.
    pub(crate) fn copy(path: &Path, console: &Console) -> Result<Scratch, Failure> {
        let is_index = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        if is_index || path.is_dir() {
            let what = "--key verifies one file, and this model is several";
            return Err(Failure::new(CODE_USAGE, what).in_file(path).help(
                "join the files first (`apr unshard`) and sign the result; `apr verify` checks the signature of a folder",
            ));
        }
        let regular = durable_file::open_regular(path, u64::MAX)?;
        let len = regular.len();
        let folder = std::env::temp_dir();
        let scratch = Scratch::create(&folder, "apr-verified")?;
        let mut progress = console.progress("copying", len);
        let mut file = regular.into_file();
        let mut left = len;
        while left > 0 {
            // The system copies, where it can, without the bytes passing through this process.
            let mut piece = (&mut file).take(left.min(PIECE_LEN));
            let copied = io::copy(&mut piece, &mut scratch.file()).map_err(|error| {
                Failure::io("copy it to a temporary file", path, &error).help(format!(
                    "the copy is made in {}: TMPDIR can name another folder",
                    escape::path(&folder)
                ))
            })?;
            if copied == 0 {
                return Err(
                    Failure::new("df-changed", "the file became shorter while it was read").in_file(path)
                );
            }
            progress.advance(usize::try_from(copied).unwrap_or(usize::MAX));
            left = left.saturating_sub(copied);
        }
        Ok(scratch)
    }

    /// Verifies the bytes in the file `bytes`, which are those of the file that the user calls `label`.
    ///
    /// # Errors
    ///
    /// If there is no signature, it is not that of the key, or the bytes are not the signed ones.
    pub(crate) fn verify(&self, bytes: &Path, label: &Path, console: &Console) -> Result<(), Failure> {
        if label.as_os_str() == "-" && self.signature.is_none() {
            return Err(Failure::new(CODE_USAGE, "there is no signature beside standard input")
                .help("name it: --signature SIG"));
        }
        let other_name = verify::bytes_of(label, bytes, self.signature.as_ref(), &self.key, console)
            .map_err(|failure| failure.called(bytes, label))?;
        if let Some(name) = other_name.filter(|_| label.as_os_str() != "-") {
            console.remark(format_args!(
                "{} was signed under another name: {}",
                escape::path(label),
                escape::cut(&name, 200)
            ));
        }
        Ok(())
    }
}
