//! Members of ZIP archives.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::{Error, ErrorKind, Opcode};
use read_at::{ReadAt, Window};
use zip_core::{Archive, Entry};

use super::Format;
use super::compressed::EXPANDS;
use super::item::{Files, Item, join};
use super::pieces::Pieces;
use crate::numpy::{self, Data};
use crate::problem::Problem;
use crate::report::{Finding, Origin};
use crate::{keras, script};

/// What a member is code of, besides pickles.
#[derive(Clone, Copy)]
enum Code {
    /// The configuration of Keras.
    Keras,
    /// A program of TorchScript.
    Script,
    /// An exported graph of PyTorch.
    Graph,
    Other,
}

impl Files<'_> {
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
        for entry in archive.entries() {
            let inside = roots.iter().find_map(|root| entry.name().strip_prefix(root.as_str()));
            let number = |rest: &str, folder: &str| {
                rest.strip_prefix(folder)
                    .is_some_and(|key| key.bytes().all(|byte| byte.is_ascii_digit()) && !key.is_empty())
            };
            let storage =
                inside.is_some_and(|rest| number(rest, "data/") || (script && number(rest, "constants/")));
            if storage && !self.is_array(archive, entry)? {
                continue; // Elements, whatever they look like.
            }
            let code = match inside {
                Some(rest) if script && rest.starts_with("code/") && rest.ends_with(".py") => Code::Script,
                _ if is_graph(entry.name()) => Code::Graph,
                // Keras looks at it before it needs the other members.
                None if entry.name() == "config.json" => Code::Keras,
                _ => Code::Other,
            };
            let parts = self.report.parts.len();
            let member = join(path, entry.name());
            let item = Item {
                source: *archive.source(),
                path: &member,
                name: if matches!(code, Code::Script) { "" } else { entry.name() },
                origin,
                depth: depth + 1,
            };
            if let Some(range) = entry.stored() {
                let window = Window::new(*archive.source(), range.start, range.end - range.start)?;
                self.member(Item { source: &window, ..item }, code)?;
            } else if let Some(bytes) = self.inflated(archive, entry, &member)? {
                self.member(Item { source: &bytes, ..item }, code)?;
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

    fn member(&mut self, item: Item<'_>, code: Code) -> Result<(), Error> {
        let Item { source, path, .. } = item;
        let kept = self.options.kept;
        let found = match code {
            Code::Keras => keras::settings(source, kept)?,
            Code::Script => script::scan(source, kept)?,
            Code::Graph => script::scan_graph(source, kept)?,
            Code::Other => Vec::new(),
        };
        for (offset, problem) in found {
            self.remark(path, offset, problem);
        }
        self.file(item).map(drop)
    }

    /// Whether a member begins as an array file: `numpy.load` reads those of any archive, also where PyTorch has elements.
    fn is_array(&self, archive: &Archive<&dyn ReadAt>, entry: &Entry) -> Result<bool, Error> {
        let mut start = [0; numpy::MAGIC.len()];
        let mut len = 0;
        let read = archive.member(entry).and_then(|mut member| {
            while let Some(rest) = start.get_mut(len..).filter(|rest| !rest.is_empty()) {
                match member.read(rest)? {
                    0 => break,
                    read => len += read,
                }
            }
            Ok(())
        });
        match read {
            Err(error) if is_read(&error) => Err(ErrorKind::Read {}.into()),
            // What cannot be read, no one loads.
            _ => Ok(start.starts_with(numpy::MAGIC)),
        }
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
}

/// The graph of `torch.export`, by its name since PyTorch 2.7 and before.
fn is_graph(name: &str) -> bool {
    name.ends_with(".json") && name.contains("models/") || name.ends_with("serialized_exported_program.json")
}

/// Whether an array file begins with these bytes and has elements alone.
fn is_plain_array(start: &[u8]) -> bool {
    matches!(numpy::data(&start), Ok(Data::Elements))
}

pub(super) fn is_read(error: &zip_core::Error) -> bool {
    matches!(error.kind(), zip_core::ErrorKind::Read {} | zip_core::ErrorKind::OutOfMemory {})
}
