//! Files in files: archives and compressed data.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::{Error, ErrorKind, Opcode};
use read_at::{ReadAt, Window};
use zip_core::{Archive, Entry, Wrapper};

#[cfg(feature = "std")]
use super::decoders;
use super::pieces::Pieces;
use super::{Compression, Files, Format, join};
use crate::numpy::{self, Data};
use crate::problem::Problem;
use crate::report::{Finding, Origin};
use crate::{keras, script};

/// Why decompressing stopped.
pub(super) const EXPANDS: &str = "expands beyond the limit";

/// What a member is code of, besides pickles.
#[derive(Clone, Copy)]
enum Code {
    /// The configuration of Keras.
    Keras,
    /// A program of TorchScript.
    Script,
    Other,
}

impl Files<'_> {
    pub(super) fn compressed(
        &mut self,
        source: &dyn ReadAt,
        path: &str,
        compression: Compression,
        origin: Origin,
        depth: u32,
    ) -> Result<(), Error> {
        let mut pieces = Pieces::default();
        let problem = match compression {
            Compression::Zlib => deflated(source, Wrapper::Zlib, &mut pieces, self.inflated)?,
            Compression::Gzip => deflated(source, Wrapper::Raw, &mut pieces, self.inflated)?,
            Compression::Other(reason) => Some(reason),
            #[cfg(feature = "std")]
            other => decoders::decode(source, other, &mut pieces, self.inflated)?,
            #[cfg(not(feature = "std"))]
            _ => Some("compressed with bzip2, xz or lzma"),
        };
        if let Some(reason) = problem {
            self.unopened(path, reason);
        }
        if pieces.total_len() == 0 {
            return Ok(());
        }
        // Also of what is not complete: it may have been loaded before its reader stopped.
        self.inflated = self.inflated.saturating_sub(pieces.total_len());
        self.file(&pieces, path, origin, depth + 1).map(drop)
    }

    pub(super) fn archive(
        &mut self,
        archive: &Archive<&dyn ReadAt>,
        path: &str,
        depth: u32,
    ) -> Result<Format, Error> {
        let folder = |name: &str| {
            name.strip_suffix("data.pkl").filter(|folder| folder.ends_with('/')).map(str::to_owned)
        };
        let roots: Vec<String> = archive.entries().iter().filter_map(|entry| folder(entry.name())).collect();
        let script = archive.entries().iter().any(|entry| {
            roots.iter().any(|root| {
                entry
                    .name()
                    .strip_prefix(root.as_str())
                    .is_some_and(|rest| rest == "constants.pkl" || rest.starts_with("code/"))
            })
        });
        let has = |name: &str| archive.entries().iter().any(|entry| entry.name() == name);
        let is_keras = has("config.json") && (has("metadata.json") || has("model.weights.h5"));
        let (format, origin) = match (roots.is_empty(), script) {
            (true, _) if is_keras => (Format::Keras, Origin::File),
            (true, _) => (Format::Zip, Origin::File),
            (_, false) => (Format::Torch, Origin::Torch),
            (_, true) => (Format::TorchScript, Origin::TorchScript),
        };
        for entry in archive.entries().iter().filter(|entry| !entry.is_folder()) {
            let inside = roots.iter().find_map(|root| entry.name().strip_prefix(root.as_str()));
            let number = |rest: &str, folder: &str| {
                rest.strip_prefix(folder)
                    .is_some_and(|key| key.bytes().all(|byte| byte.is_ascii_digit()) && !key.is_empty())
            };
            let storage =
                inside.is_some_and(|rest| number(rest, "data/") || (script && number(rest, "constants/")));
            if storage {
                continue; // Elements, whatever they look like.
            }
            let code = match inside {
                Some(rest) if script && rest.starts_with("code/") => Code::Script,
                None if is_keras && entry.name() == "config.json" => Code::Keras,
                _ => Code::Other,
            };
            let parts = self.report.parts.len();
            let member = join(path, entry.name());
            if let Some(range) = entry.stored() {
                let window = Window::new(*archive.source(), range.start, range.end - range.start)?;
                self.member(&window, &member, origin, depth + 1, code)?;
            } else if let Some(bytes) = self.inflated(archive, entry, &member)? {
                self.member(&bytes, &member, origin, depth + 1, code)?;
            }
            self.checksum(archive, entry, &member, parts)?;
            if format == Format::Torch && inside != Some("data.pkl") {
                for part in self.report.parts.iter_mut().skip(parts) {
                    part.report.add(Finding {
                        offset: 0,
                        opcode: Opcode(b'.'),
                        depth: 0,
                        problem: Problem::SidePickle {},
                    });
                }
            }
        }
        Ok(format)
    }

    fn member(
        &mut self,
        source: &dyn ReadAt,
        path: &str,
        origin: Origin,
        depth: u32,
        code: Code,
    ) -> Result<(), Error> {
        let kept = self.options.kept;
        let found = match code {
            Code::Keras => keras::settings(source, kept)?,
            Code::Script => script::scan(source, kept)?,
            Code::Other => Vec::new(),
        };
        for (offset, problem) in found {
            self.remark(path, offset, problem);
        }
        self.file(source, path, origin, depth).map(drop)
    }

    /// A compressed member, as far as it can be read; `None` for arrays of elements, which nothing else is read of.
    fn inflated(
        &mut self,
        archive: &Archive<&dyn ReadAt>,
        entry: &Entry,
        path: &str,
    ) -> Result<Option<Pieces>, Error> {
        let mut pieces = Pieces::default();
        let max = self.inflated;
        let mut read = || {
            let mut member = archive.member(entry)?;
            let mut buffer = [0; 4096];
            loop {
                let len = member.read(&mut buffer)?;
                let first = pieces.total_len() == 0;
                let piece = buffer.get(..len).unwrap_or_default();
                if len == 0 || !pieces.push(piece, max) {
                    return Ok((len == 0, false));
                }
                if first && piece.starts_with(numpy::MAGIC) && is_plain_array(piece) {
                    return Ok((true, true));
                }
            }
        };
        let reason = match read() {
            Ok((true, true)) => return Ok(None),
            Ok((true, false)) => None,
            Ok((false, _)) => Some(EXPANDS),
            Err(error) if is_read(&error) => return Err(ErrorKind::Read {}.into()),
            Err(_) => Some("cannot be read"),
        };
        if let Some(reason) = reason {
            self.unopened(path, reason);
        }
        self.inflated -= pieces.total_len().min(max);
        Ok(Some(pieces))
    }

    /// Of members that are pickles: PyTorch does not verify them, others do.
    fn checksum(
        &mut self,
        archive: &Archive<&dyn ReadAt>,
        entry: &Entry,
        path: &str,
        parts: usize,
    ) -> Result<(), Error> {
        if self.report.parts.len() == parts {
            return Ok(());
        }
        match archive.member(entry).and_then(|mut member| member.verify()) {
            Ok(Some(problem)) => self.contradiction(path, entry.header_offset(), problem),
            Ok(None) => {}
            Err(error) if is_read(&error) => return Err(ErrorKind::Read {}.into()),
            Err(_) => self.unopened(path, "cannot be read"),
        }
        Ok(())
    }

    /// Members of 512-byte blocks: the name first, the length in octal digits at 124.
    pub(super) fn tar(&mut self, source: &dyn ReadAt, path: &str, depth: u32) -> Result<(), Error> {
        let (mut at, total) = (0_u64, source.total_len());
        while let Some(data) = at.checked_add(512).filter(|data| *data <= total) {
            let mut header = [0; 512];
            source.read_exact_at(at, &mut header)?;
            if header.iter().all(|byte| *byte == 0) {
                at = data; // The end; some readers go on.
                continue;
            }
            let name = header.split(|byte| *byte == 0).next().unwrap_or_default();
            let member = join(path, &String::from_utf8_lossy(name.get(..100).unwrap_or(name)));
            let digits = header.get(124..136).unwrap_or_default();
            let digits = core::str::from_utf8(digits).unwrap_or_default().trim_matches([' ', '\0']);
            let len = u64::from_str_radix(digits, 8).ok().filter(|len| *len <= total - data);
            let Some(len) = len else {
                self.unopened(&member, "tar header without a length");
                return Ok(());
            };
            self.file(&Window::new(source, data, len)?, &member, Origin::File, depth + 1)?;
            at = data + len.next_multiple_of(512);
        }
        Ok(())
    }
}

/// Decompresses zlib or gzip, and says what is wrong with it. Python's readers go on with a stream that follows.
fn deflated(
    source: &dyn ReadAt,
    wrapper: Wrapper,
    pieces: &mut Pieces,
    max: u64,
) -> Result<Option<&'static str>, Error> {
    let (mut at, total) = (0, source.total_len());
    while at < total {
        let begin = if wrapper == Wrapper::Zlib { Some(at) } else { gzip_data(source, at)? };
        let end = begin.map(|begin| {
            zip_core::decompress(&source, begin..total, wrapper, |piece| pieces.push(piece, max))
        });
        match end {
            Some(Ok(Some(end))) => at = if wrapper == Wrapper::Zlib { end } else { end.saturating_add(8) },
            Some(Ok(None)) => return Ok(Some(EXPANDS)),
            Some(Err(error)) if is_read(&error) => return Err(ErrorKind::Read {}.into()),
            _ if at > 0 => return Ok(Some("bytes after the compressed data")),
            _ => return Ok(Some("cannot be decompressed")),
        }
    }
    Ok(None)
}

/// Whether an array file begins with these bytes and has elements alone.
fn is_plain_array(start: &[u8]) -> bool {
    matches!(numpy::data(&start), Ok(Data::Elements))
}

fn is_read(error: &zip_core::Error) -> bool {
    matches!(error.kind(), zip_core::ErrorKind::Read {} | zip_core::ErrorKind::OutOfMemory {})
}

/// Whether a block is a tar header: by its checksum, since the oldest kind has no magic number and PyTorch reads that, too.
pub(super) fn is_tar(block: &[u8]) -> bool {
    let Some(digits) = block.get(148..156).filter(|_| block.len() == 512) else { return false };
    let digits = core::str::from_utf8(digits).unwrap_or_default().trim_matches([' ', '\0']);
    let Ok(declared) = i64::from_str_radix(digits, 8) else { return false };
    // The field itself counts as spaces; some writers took bytes as signed.
    let field = |idx: usize| (148..156).contains(&idx);
    let sum = |value: fn(u8) -> i64| -> i64 {
        block.iter().enumerate().map(|(idx, byte)| if field(idx) { 32 } else { value(*byte) }).sum()
    };
    declared == sum(i64::from) || declared == sum(|byte| byte.cast_signed().into())
}

/// Where the data of a gzip member begin; `None` if there is no header.
fn gzip_data(source: &dyn ReadAt, at: u64) -> Result<Option<u64>, Error> {
    const MAX_HEADER: u64 = 1 << 16;
    let len = (source.total_len() - at).min(MAX_HEADER);
    let mut header = alloc::vec![0; usize::try_from(len).unwrap_or_default()];
    source.read_exact_at(at, &mut header)?;
    let [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, rest @ ..] = header.as_slice() else { return Ok(None) };
    let mut rest = rest;
    if flags & 4 != 0 {
        let Some((len, after)) = rest.split_first_chunk::<2>() else { return Ok(None) };
        rest = after.get(usize::from(u16::from_le_bytes(*len))..).unwrap_or_default();
    }
    // A name and a comment, which end with a zero; a checksum.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0).map_or(rest.len(), |end| end + 1);
            rest = rest.get(end..).unwrap_or_default();
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..).unwrap_or_default();
    }
    Ok(Some(at + (header.len() - rest.len()) as u64))
}
