//! Sealing into a writer.

use alloc::vec::Vec;
use std::io::{self, Write};

use super::{CHUNK_LEN, ChunkedEncryptor};
use crate::encrypt::file_key::FileKey;
use crate::error::Error;
use crate::random::Rng;

/// Most that is sealed at once; what is held in memory beside one chunk.
const PIECE: usize = 64 * CHUNK_LEN;

/// Seals everything that is written to it on its way into another writer.
///
/// Holds a little more than 1 MiB, however long the message. Without [`finish`](Self::finish) the message has no end and does not
/// open.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use std::io::Write;
///
/// use apr_crypto::{ChunkedWriter, FileKey};
///
/// let key = FileKey::generate(rng)?;
/// let mut writer = ChunkedWriter::new(Vec::new(), &key, rng, b"header")?;
/// writer.write_all(b"weights")?;
/// let sealed = writer.finish()?;
/// assert_eq!(key.open_chunked(b"header", &sealed)?, b"weights");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a message without its last chunk does not open"]
pub struct ChunkedWriter<W: Write> {
    out: W,
    encryptor: ChunkedEncryptor,
    /// Sealed bytes on their way out; those before `written` have left.
    ready: Vec<u8>,
    written: usize,
}

impl<W: Write> ChunkedWriter<W> {
    /// Begins a message. Nothing is written yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`](crate::ErrorKind::Randomness) if there is none.
    pub fn new(
        out: W,
        file_key: &FileKey,
        rng: &mut (impl Rng + ?Sized),
        context: &[u8],
    ) -> Result<Self, Error> {
        let mut ready = Vec::new();
        let encryptor = ChunkedEncryptor::new(file_key, rng, context, &mut ready)?;
        Ok(Self { out, encryptor, ready, written: 0 })
    }

    /// Writes the last chunk, flushes, and gives the writer back.
    ///
    /// # Errors
    ///
    /// Errors of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.drain()?;
        self.encryptor.finish(&mut self.ready)?;
        self.out.write_all(&self.ready)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes out what is ready. After an error, the next call goes on where this one stopped.
    fn drain(&mut self) -> io::Result<()> {
        while let Some(rest) = self.ready.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.out.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count.min(rest.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.ready.clear();
        self.written = 0;
        Ok(())
    }
}

impl<W: Write> Write for ChunkedWriter<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.drain()?;
        let (now, _) = data.split_at(data.len().min(PIECE));
        self.encryptor.update(now, &mut self.ready)?;
        Ok(now.len())
    }

    /// Writes out every full chunk. The rest waits: only the last chunk may be shorter.
    fn flush(&mut self) -> io::Result<()> {
        self.drain()?;
        self.out.flush()
    }
}
