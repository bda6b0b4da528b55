//! Digests of files while they are written and read.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use st_core::ReadOptions;

use super::manifest::Digest;
use crate::arena::{Arena, LoadedSafeTensors};
use crate::error::{Error, ErrorKind};
use crate::file::SafeTensorsFile;
use crate::positioned::PositionedFile;
use crate::save::{buffered, own_error};

/// Piece in which a file is read to hash it.
const BUFFER: usize = 1 << 20;

/// Hashes what is written to a file.
pub(super) struct Tee {
    file: File,
    hash: Sha256,
}

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a new file and returns the digest of what was written.
pub(super) fn create(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<Tee>) -> io::Result<()>,
) -> Result<Digest, Error> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let file = file.map_err(|error| ErrorKind::Io { operation: "create", error }.at(path))?;
    let tee = buffered(Tee { file, hash: Sha256::new() }, fill).map_err(|error| {
        own_error(error, |error| ErrorKind::Io { operation: "write", error }).in_file(path)
    })?;
    Ok(tee.hash.finalize().into())
}

/// The digest of bytes in memory.
pub(super) fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// The digest of a whole file.
pub(super) fn digest_file(file: &PositionedFile) -> Result<Digest, Error> {
    let mut hash = Sha256::new();
    hash_from(file, 0, &mut hash)?;
    Ok(hash.finalize().into())
}

fn hash_from(file: &PositionedFile, mut offset: u64, hash: &mut Sha256) -> Result<(), Error> {
    let mut buffer = vec![0; BUFFER.min(usize::try_from(file.len()).unwrap_or(BUFFER))];
    while offset < file.len() {
        let len = usize::try_from(file.len() - offset).unwrap_or(BUFFER).min(buffer.len());
        file.read_at(&mut buffer[..len], offset)?;
        hash.update(&buffer[..len]);
        offset += len as u64;
    }
    Ok(())
}

/// A tensor file whose bytes have not been read.
#[derive(Debug)]
pub(super) struct Unread {
    file: PositionedFile,
    expected: Option<Digest>,
}

impl Unread {
    pub(super) fn open(path: &Path, expected: Option<Digest>) -> Result<Self, Error> {
        Ok(Self { file: PositionedFile::open(path)?, expected })
    }

    pub(super) fn len(&self) -> u64 {
        self.file.len()
    }

    /// Hashes the file, called `name` in the manifest, and compares the digest; the header is kept and not interpreted.
    pub(super) fn hash(self, name: &str, options: &ReadOptions) -> Result<Hashed, Error> {
        let Self { file, expected } = self;
        // The bytes that are hashed here are those that are parsed later. If not even their length is valid,
        // that is an error only if the digest shows that the file was like that from the beginning.
        let prefix = file.read_prefix(options);
        let Some(expected) = expected else {
            return Ok(Hashed { file, prefix, seal: None });
        };
        let header = prefix.as_deref().unwrap_or_default();
        let mut hash = Sha256::new();
        hash.update(header);
        let seal = Seal { hash: hash.clone(), expected };
        hash_from(&file, header.len() as u64, &mut hash)?;
        if Digest::from(hash.finalize()) != expected {
            return Err(ErrorKind::ChecksumMismatch { file: name.to_owned() }.at(file.path()));
        }
        Ok(Hashed { file, prefix, seal: Some(seal) })
    }

    /// Reads the whole file, called `name` in the manifest, and compares the digest of what was read.
    pub(super) fn read(&self, name: &str, out: &mut [u8]) -> Result<(), Error> {
        let (needed, given) = (self.len(), out.len() as u64);
        if given != needed {
            return Err(ErrorKind::BufferLength { needed, given }.at(self.file.path()));
        }
        let mut hash = Sha256::new();
        let mut offset = 0;
        // What was just read is still in the processor's cache when it is hashed.
        for piece in out.chunks_mut(BUFFER) {
            self.file.read_at(piece, offset)?;
            if self.expected.is_some() {
                hash.update(&*piece);
            }
            offset += piece.len() as u64;
        }
        match self.expected {
            Some(expected) if Digest::from(hash.finalize()) != expected => {
                Err(ErrorKind::ChecksumMismatch { file: name.to_owned() }.at(self.file.path()))
            }
            _ => Ok(()),
        }
    }
}

/// A tensor file whose bytes have been hashed and whose header has not been looked at.
pub(super) struct Hashed {
    file: PositionedFile,
    prefix: Result<Vec<u8>, Error>,
    seal: Option<Seal>,
}

/// What the bytes after the header have to hash to.
#[derive(Clone, Debug)]
struct Seal {
    /// After the header that was parsed.
    hash: Sha256,
    expected: Digest,
}

impl Hashed {
    /// Parses the header.
    pub(super) fn into_tensors(self, options: &ReadOptions) -> Result<SealedTensors, Error> {
        let file = SafeTensorsFile::from_prefix(self.file, &self.prefix?, options)?;
        Ok(SealedTensors { file, seal: self.seal })
    }
}

/// A tensor file with the digest it had when it was opened.
#[derive(Debug)]
pub(super) struct SealedTensors {
    file: SafeTensorsFile,
    seal: Option<Seal>,
}

impl SealedTensors {
    pub(super) fn file(&self) -> &SafeTensorsFile {
        &self.file
    }

    /// Loads the tensors and compares the digest of the loaded bytes, called `name` in the manifest.
    pub(super) fn load<'arena>(
        &self,
        name: &str,
        arena: &'arena mut Arena,
    ) -> Result<LoadedSafeTensors<'arena>, Error> {
        let loaded = self.file.load(arena)?;
        if let Some(Seal { hash, expected }) = &self.seal {
            let mut hash = hash.clone();
            hash.update(loaded.data());
            if Digest::from(hash.finalize()) != *expected {
                return Err(ErrorKind::ChecksumMismatch { file: name.to_owned() }.at(self.file.path()));
            }
        }
        Ok(loaded)
    }
}
