//! Standard input is copied to a temporary file, because models are read at any offset.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use durable_file::Scratch;
use model_file::FileKind;
use st_core::{Header, ReadOptions};

use super::Format;
use crate::error::{CODE_STDIN_TOO_LARGE, Failure};
use crate::foreign;

/// Most bytes taken from standard input.
const CAP: u64 = 64 << 30;

/// A temporary file that is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Spool(Scratch);

impl Spool {
    /// Copies standard input to its end.
    ///
    /// # Errors
    ///
    /// If its first bytes cannot begin a model (so that an endless stream of other things is refused at
    /// once), if it exceeds the cap, or if the file cannot be written.
    pub(super) fn from_stdin() -> Result<Self, Failure> {
        let spool = Self::copied(plausible)?;
        match spool.path().metadata() {
            Ok(file) if file.len() == 0 => {
                let error = st_core::Error::from(st_core::ErrorKind::HeaderTooSmall { available: 0 });
                Err(Failure::from(error)
                    .saying("standard input was empty")
                    .in_file(Path::new("-"))
                    .help("check the command before the pipe: it wrote nothing"))
            }
            _ => Ok(spool),
        }
    }

    /// Copies standard input to its end, whatever it is.
    ///
    /// # Errors
    ///
    /// If the input exceeds the cap, or the file cannot be written.
    pub(super) fn from_any_stdin() -> Result<Self, Failure> {
        Self::copied(|_, _, _| Ok(()))
    }

    fn copied(check: impl Fn([u8; 8], &[u8], &Path) -> Result<(), Failure>) -> Result<Self, Failure> {
        let label = Path::new("-");
        let read_failed = |error: io::Error| Failure::io("read standard input", label, &error);
        let mut input = BufReader::new(io::stdin().lock());

        let mut first = Vec::with_capacity(8);
        input.by_ref().take(8).read_to_end(&mut first).map_err(read_failed)?;
        if let Some(&first) = first.first_chunk::<8>() {
            check(first, input.buffer(), label)?;
        }

        let folder = std::env::temp_dir();
        let mut file = Scratch::create(&folder, "apr-stdin")?;
        let write_failed = |error: io::Error| Failure::io("write a temporary file", &folder, &error);
        file.write_all(&first).map_err(write_failed)?;
        let mut buf = vec![0; 1 << 20];
        let mut len = first.len() as u64;
        loop {
            let got = match input.read(&mut buf) {
                Ok(0) => return Ok(Self(file)),
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(read_failed(error)),
            };
            len += got as u64;
            if len > CAP {
                return Err(
                    Failure::new(CODE_STDIN_TOO_LARGE, "standard input exceeds 64 GiB").in_file(label)
                );
            }
            file.write_all(&buf[..got]).map_err(write_failed)?;
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn into_scratch(self) -> Scratch {
        self.0
    }
}

/// Refuses a beginning that no file of any length can have; `more` are the bytes that arrived after it.
fn plausible(first: [u8; 8], more: &[u8], label: &Path) -> Result<(), Failure> {
    // What an archive is stands at its end.
    if first.starts_with(b"PK\x03\x04") || FileKind::of(&first).expected() != Format::SafeTensors {
        return Ok(());
    }
    let Err(error) = Header::declared_len(first, u64::MAX, &ReadOptions::COMPAT) else { return Ok(()) };
    Err(match foreign::recognized(FileKind::of(&[&first, more].concat())) {
        Some(kind) => foreign::not_a_model(kind, label),
        None => Failure::from(error).in_file(label),
    })
}
