//! Sealing into files.

use core::fmt;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use apr_crypto::{OsRandom, Rng};

use crate::engine::{Engine, Out};
use crate::error::Error;
use crate::{Plan, SealOptions};

/// Seals what is written to it: the bytes of all parts, in order.
///
/// Holds a few MiB, however long the file. The header is written last: what was not finished is no sealed file.
///
/// ```
/// use std::io::{Cursor, Write};
///
/// use apr_sealed::{Part, Plan, SealOptions, Sealer, SealedLimits, verify};
/// use apr_crypto::{OsRandom, SigningKey};
///
/// let key = SigningKey::generate(&mut OsRandom)?;
/// let plan = Plan::new([Part::tensor("weight", "F32", [2], 8)])?;
/// let options = SealOptions::default().signed_by(&key);
/// let mut sealer = Sealer::new(Cursor::new(Vec::new()), &plan, &options, &mut OsRandom)?;
/// sealer.write_all(&1.0_f32.to_le_bytes())?;
/// sealer.write_all(&2.0_f32.to_le_bytes())?;
/// let file = sealer.finish()?.into_inner();
/// verify(&file, &key.verifying_key(), &SealedLimits::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "what is not finished is no sealed file"]
pub struct Sealer<'k, W> {
    engine: Engine<'k>,
    out: Placed<W>,
}

impl<'k, W: Write + Seek> Sealer<'k, W> {
    /// Begins a file at the current position of `out`.
    ///
    /// # Errors
    ///
    /// As [`to_vec`](crate::to_vec), and errors of `out`.
    pub fn new(
        mut out: W,
        plan: &Plan,
        options: &SealOptions<'k>,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, Error> {
        let base = out.stream_position()?;
        let engine = Engine::new(plan, options, rng)?;
        Ok(Self { engine, out: Placed { out, base, at: base } })
    }

    /// Writes the rest and the header, flushes, and returns `out`, whose position is unspecified.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DataLength`](crate::ErrorKind::DataLength) if bytes are missing, [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn finish(mut self) -> Result<W, Error> {
        self.engine.finish(&mut self.out)?;
        self.out.out.flush()?;
        Ok(self.out.out)
    }
}

impl<W: Write + Seek> Write for Sealer<'_, W> {
    /// Takes all of `data`. An error ends it: what is written afterwards is refused.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.engine.push(data, &mut self.out).map_err(io::Error::other)?;
        Ok(data.len())
    }

    /// Does nothing: only [`finish`](Sealer::finish) completes a file.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W> fmt::Debug for Sealer<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer(..)")
    }
}

/// A writer that seeks where it has to.
struct Placed<W> {
    out: W,
    base: u64,
    at: u64,
}

impl<W: Write + Seek> Out for Placed<W> {
    fn put_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let at = self.base + offset;
        if self.at != at {
            self.out.seek(SeekFrom::Start(at))?;
        }
        self.out.write_all(bytes)?;
        self.at = at + bytes.len() as u64;
        Ok(())
    }
}

/// Seals what `fill` writes, the bytes of all parts in order, into the file at `path`. A file that is there is replaced whole
/// or stays as it is.
///
/// # Errors
///
/// Those of [`Sealer`] and of `fill`; [`ErrorKind::File`](crate::ErrorKind::File).
pub fn seal_file(
    path: impl AsRef<Path>,
    plan: &Plan,
    options: &SealOptions<'_>,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let mut replacement = durable_file::Replacement::create(path.as_ref())?;
    let mut sealer = Sealer::new(&mut replacement, plan, options, &mut OsRandom)?;
    fill(&mut sealer).map_err(|error| match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => error.into(),
    })?;
    sealer.finish()?;
    Ok(replacement.commit()?)
}
