//! Members of ZIP archives.

use pickle_core::{Error, ErrorKind, Opcode};
use read_at::{ReadAt, Window};
use zip_core::{Archive, Entry};

use super::Format;
use super::budget::Ranges;
use super::compressed::EXPANDS;
use super::item::{Files, Item, join};
use super::layout::{Layout, Role};
use super::pieces::Pieces;
use crate::numpy::{self, Data};
use crate::problem::Problem;
use crate::report::Finding;
use crate::{keras, script};

impl Files<'_> {
    pub(super) fn archive(
        &mut self,
        archive: &Archive<&dyn ReadAt>,
        path: &str,
        depth: u32,
    ) -> Result<Format, Error> {
        let layout = Layout::of(archive.entries());
        if let Some(name) = layout.package_code(archive.entries()) {
            self.remark(&join(path, name), 0, Problem::PackageCode {});
        }
        let mut scanned = Ranges::default();
        for entry in archive.entries() {
            let role = layout.role(entry.name());
            if role == Role::Storage && !self.is_array(archive, entry)? {
                continue; // Elements, which no loader reads as a file.
            }
            let member = join(path, entry.name());
            if !self.budget.take_member() {
                self.unopened(path, "more members than are read");
                break;
            }
            // Overlapping members are a contradiction already.
            let range = entry.data().cloned().unwrap_or_default();
            if !self.budget.take_range(&mut scanned, range) {
                self.unopened(path, "members over bytes of other members");
                continue;
            }
            let parts = self.report.parts.len();
            // The language of TorchScript looks like Python.
            let name = if role == Role::Script { "" } else { entry.name() };
            let (source, path, origin) = (*archive.source(), member.as_str(), layout.origin);
            let item = Item { source, path, name, origin, depth: depth + 1 };
            if let Some(range) = entry.stored() {
                let window = Window::new(source, range.start, range.end - range.start)?;
                self.member(Item { source: &window, ..item }, role)?;
            } else if let Some(bytes) = self.inflated(archive, entry, path)? {
                self.member(Item { source: &bytes, ..item }, role)?;
            }
            self.checksum(archive, entry, path, parts)?;
            if layout.format == Format::Torch && role != Role::Checkpoint {
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
        Ok(layout.format)
    }

    fn member(&mut self, item: Item<'_>, role: Role) -> Result<(), Error> {
        let Item { source, path, .. } = item;
        let kept = self.options.kept;
        let found = match role {
            Role::Keras => keras::settings(source, kept)?,
            Role::Script => script::scan(source, kept)?,
            Role::Graph => script::scan_graph(source, kept)?,
            Role::Checkpoint | Role::Storage | Role::Other => Default::default(),
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

/// Whether an array file begins with these bytes and has elements alone.
fn is_plain_array(start: &[u8]) -> bool {
    matches!(numpy::data(&start), Ok(Data::Elements))
}

pub(super) fn is_read(error: &zip_core::Error) -> bool {
    matches!(error.kind(), zip_core::ErrorKind::Read {} | zip_core::ErrorKind::OutOfMemory {})
}
