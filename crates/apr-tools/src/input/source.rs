//! What FILE names, before anything but its first bytes has been read.

use alloc::rc::Rc;
use std::io::Read;
use std::path::{Path, PathBuf};

use durable_file::Scratch;
use foreign_format::PREFIX;

use super::spool::Spool;
use crate::detached::Detached;
use crate::error::Failure;
use crate::secrets::Keys;
use crate::terminal::Console;

/// What a model is stored as, told by the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A safetensors file or a set of them; also whatever announces itself as nothing else.
    SafeTensors,
    /// An `.apr` file of the first generation, which holds a model.
    AprModel,
    /// An `.apr` file of the second generation, which holds tensors.
    AprTensors,
    /// A GGUF file, which holds tensors, many of them quantized.
    Gguf,
    /// A sealed file, which holds a file of any format.
    Sealed,
}

impl Format {
    /// The format that the first bytes of a file announce.
    ///
    /// With one bit of it wrong, the magic of an `.apr` file still counts: the reader will find that the checksum does not match.
    pub(super) fn of(first: &[u8]) -> Self {
        if first.starts_with(&apr_sealed::MAGIC) {
            return Self::Sealed;
        }
        match first.first_chunk::<4>() {
            Some(b"APRN") => Self::AprModel,
            Some(b"APR\0" | b"APR2") => Self::AprTensors,
            Some(b"GGUF") => Self::Gguf,
            Some(&magic) if !begins_otherwise(first) => {
                let is_near = |known: &[u8; 4]| {
                    (u32::from_le_bytes(magic) ^ u32::from_le_bytes(*known)).count_ones() == 1
                };
                match () {
                    () if is_near(b"APRN") => Self::AprModel,
                    () if is_near(b"APR\0") || is_near(b"APR2") => Self::AprTensors,
                    () => Self::SafeTensors,
                }
            }
            _ => Self::SafeTensors,
        }
    }

    /// As JSON and `--format` call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SafeTensors => "safetensors",
            Self::AprModel => "apr1",
            Self::AprTensors => "apr2",
            Self::Gguf => "gguf",
            Self::Sealed => "sealed",
        }
    }

    /// For sentences.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::SafeTensors => "a safetensors model",
            Self::AprModel => "an .apr model (version 1)",
            Self::AprTensors => "an .apr model (version 2)",
            Self::Gguf => "a GGUF model",
            Self::Sealed => "a sealed file",
        }
    }
}

/// A path; or a temporary file with standard input, or with bytes that were verified, which lives as long as this.
#[derive(Debug)]
pub(crate) struct Source {
    label: PathBuf,
    format: Format,
    spool: Option<Spool>,
    /// A copy that no other user can change.
    copy: Option<Scratch>,
    /// Whether a signature beside the file was verified.
    is_verified: bool,
    keys: Rc<Keys>,
}

impl Source {
    /// Looks at what FILE names; `-` is standard input.
    ///
    /// # Errors
    ///
    /// If standard input cannot be read, or cannot begin a model. What is wrong with a file shows when it is read.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let spool = if path.as_os_str() == "-" { Some(Spool::from_stdin()?) } else { None };
        let format = format_of(spool.as_ref().map_or(path, Spool::path));
        let label = path.to_owned();
        Ok(Self { label, format, spool, copy: None, is_verified: false, keys: Rc::default() })
    }

    /// Looks at what FILE names, and verifies the signature beside it if there has to be one. What is read from then on are the
    /// bytes that were verified.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); if the file cannot be copied, or the signature is missing or not right.
    pub(crate) fn open_verified(
        path: &Path,
        detached: Option<&Detached>,
        console: &Console,
    ) -> Result<Self, Failure> {
        let Some(detached) = detached else { return Self::open(path) };
        let mut source = Self::open(path)?;
        // Standard input is in a file of our own already.
        if source.spool.is_none() {
            let copy = Detached::copy(path, console)?;
            source.format = format_of(copy.path());
            source.copy = Some(copy);
        }
        detached.verify(source.path(), path, console)?;
        source.is_verified = true;
        Ok(source)
    }

    /// What a file or folder is stored as.
    pub(crate) fn peek(path: &Path) -> Format {
        format_of(path)
    }

    /// With what opens it and whose signature it must have.
    #[must_use]
    pub(crate) fn with_keys(mut self, keys: &Rc<Keys>) -> Self {
        self.keys = Rc::clone(keys);
        self
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// What the user called it.
    pub(crate) fn label(&self) -> &Path {
        &self.label
    }

    /// Where its bytes are.
    pub(crate) fn path(&self) -> &Path {
        let copy = self.copy.as_ref().map(Scratch::path);
        copy.or(self.spool.as_ref().map(Spool::path)).unwrap_or(&self.label)
    }

    /// Whether its bytes are those of a signature beside it.
    pub(crate) fn is_verified(&self) -> bool {
        self.is_verified
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// The failure with the name the user knows: of this one file, nothing else is named by it.
    pub(crate) fn relabel(&self, failure: Failure) -> Failure {
        match self.spool.is_some() || self.copy.is_some() {
            true => failure.in_place_of_file(&self.label),
            false => failure.in_file(&self.label),
        }
    }
}

/// Whether a file begins as safetensors, with a length and a brace, or as something foreign: text, for example.
fn begins_otherwise(first: &[u8]) -> bool {
    let is_safetensors = first.split_first_chunk::<8>().is_some_and(|(&length, rest)| {
        rest.first() == Some(&b'{') && u64::from_le_bytes(length) <= st_core::MAX_HEADER_LEN
    });
    is_safetensors || foreign_format::sniff(first).is_some()
}

fn format_of(path: &Path) -> Format {
    first_bytes(path).map_or(Format::SafeTensors, |first| Format::of(&first))
}

/// The beginning of a regular file, as much as telling formats apart needs.
pub(crate) fn first_bytes(path: &Path) -> Option<Vec<u8>> {
    let mut first = Vec::with_capacity(PREFIX);
    let file = durable_file::open_regular(path, u64::MAX).ok()?.into_file();
    file.take(PREFIX as u64).read_to_end(&mut first).ok()?;
    Some(first)
}
