//! Archives: `data.pkl`, and a member for each storage.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry as Slot;
use alloc::format;
use alloc::string::String;
use core::cell::RefCell;

use foreign_format::Format;
use located_error::Subject;
use pickle_core::ValueId;
use read_at::{ReadAt, Window};
use zip_core::{Archive, Entry};

use crate::archive;
use crate::error::{Error, ErrorKind};
use crate::model::Model;
use crate::options::Options;
use crate::pickled::{self, Follower, Pickle, Source, Storage, Storages};
use crate::tensor::ElementType;
use crate::torch::StorageId;

/// Identities of storages, beside those of values.
const STORAGE: u64 = 1 << 40;

/// Members that are named in notes.
const MAX_NOTES: usize = 100;

/// Reads an archive.
pub(super) fn read(file: &dyn ReadAt, options: &Options) -> Result<Model, Error> {
    let (archive, odd) = archive::open(file)?;
    if let Some(finding) = odd.first() {
        return Err(Error::from(ErrorKind::Archive { problem: finding.problem }).at(finding.offset));
    }
    let members: BTreeMap<&str, usize> =
        archive.entries().iter().enumerate().map(|(idx, entry)| (entry.name(), idx)).collect();
    let member = |name: &str| members.get(name).and_then(|&idx| archive.entries().get(idx));
    let mut roots = archive
        .entries()
        .iter()
        .filter_map(|entry| entry.name().strip_suffix("data.pkl"))
        .filter(|root| (root.is_empty() || root.ends_with('/')) && !root.starts_with("__MACOSX/"));
    let root = match (roots.next(), roots.next()) {
        (Some(root), None) => root,
        (Some(_), Some(_)) => return Err(Error::unsupported("an archive with two pickles of tensors")),
        (None, _) => return Err(no_pickle(&archive)),
    };
    let is_script = member(&format!("{root}constants.pkl")).is_some();
    let mut model = Model::new(if is_script { Format::TorchScript } else { Format::Torch });
    note_members(&archive, root, &mut model);

    let is_big = match member(&format!("{root}byteorder")) {
        None => false,
        Some(entry) => match archive::read(&archive, entry, 16)?.trim_ascii() {
            b"little" => false,
            b"big" => true,
            _ => return Err(Error::malformed("an unknown byte order")),
        },
    };
    let Some(entry) = member(&format!("{root}data.pkl")) else { return Err(no_pickle(&archive)) };
    let storages = Members {
        archive: &archive,
        members: &members,
        prefix: format!("{root}data/"),
        is_big,
        seen: RefCell::default(),
    };
    let subject = || Subject::entry(entry.name());
    if let Some(range) = entry.stored() {
        if let Some(problem) = archive.member(entry)?.verify()? {
            return Err(Error::from(ErrorKind::Archive { problem }).of(subject()));
        }
        let bytes = Window::new(file, range.start, range.end - range.start)?;
        let source = Source { bytes: &bytes, at: Some((0, range.start)) };
        tensors(source, &storages, options, &mut model)
            .map_err(|error| error.shifted(range.start).of(subject()))?;
    } else {
        let bytes = archive::read(&archive, entry, options.limits.text_bytes)?;
        let source = Source { bytes: &bytes, at: None };
        tensors(source, &storages, options, &mut model).map_err(|error| error.of(subject()))?;
    }
    Ok(model)
}

/// Of an archive without `data.pkl`.
fn no_pickle(archive: &Archive<&dyn ReadAt>) -> Error {
    let is_package = archive.entries().iter().any(|entry| entry.name().ends_with(".data/extern_modules"));
    Error::unsupported(if is_package {
        "a package of `torch.package`, which holds modules as code,"
    } else {
        "an archive without a pickle of tensors"
    })
}

fn tensors(
    source: Source<'_>,
    storages: &Members<'_, '_>,
    options: &Options,
    model: &mut Model,
) -> Result<(), Error> {
    let mut follower = Follower::new(source, true, false);
    let root = follower.follow()?;
    if follower.position() < source.bytes.total_len() {
        return Err(Error::malformed("bytes after the pickle").at(follower.position()));
    }
    pickled::walk(&follower.finish(), root, storages, options, model)
}

/// Says which members are not read.
fn note_members(archive: &Archive<&dyn ReadAt>, root: &str, model: &mut Model) {
    let mut left = MAX_NOTES;
    for entry in archive.entries().iter().filter(|entry| !entry.is_folder()) {
        let text = match entry.name().strip_prefix(root) {
            Some("data.pkl" | "byteorder" | "version" | ".format_version" | ".storage_alignment") => continue,
            Some(name) if name.starts_with("data/") || name.starts_with(".data/") => continue,
            Some(name) if name.starts_with("code/") || name.ends_with(".debug_pkl") => continue,
            Some("constants.pkl") => "constants of the program are not read",
            Some(name) if name.starts_with("constants/") => continue,
            _ => "this member is not read",
        };
        let Some(rest) = left.checked_sub(1) else {
            model.note("", "more members are not read");
            return;
        };
        left = rest;
        model.note(entry.name(), text);
    }
}

/// Storages by their keys.
struct Members<'a, 'f> {
    archive: &'a Archive<&'f dyn ReadAt>,
    members: &'a BTreeMap<&'a str, usize>,
    prefix: String,
    is_big: bool,
    /// Type and length of each key.
    seen: RefCell<BTreeMap<String, (Option<ElementType>, u64)>>,
}

impl Members<'_, '_> {
    fn entry(&self, key: &str) -> Option<(usize, &Entry)> {
        let idx = *self.members.get(format!("{}{key}", self.prefix).as_str())?;
        Some((idx, self.archive.entries().get(idx)?))
    }
}

impl Storages for Members<'_, '_> {
    fn find(&self, pickle: &Pickle<'_>, id: ValueId) -> Result<Storage, Error> {
        let id = StorageId::of(pickle, id)?;
        let len = id.len()?;
        if id.view.is_some() {
            return Err(Error::malformed("a view of a storage in an archive"));
        }
        let Some((idx, entry)) = self.entry(&id.key) else {
            return Err(Error::malformed("a storage is missing"));
        };
        match self.seen.borrow_mut().entry(id.key) {
            Slot::Vacant(slot) => drop(slot.insert((id.dtype, len))),
            Slot::Occupied(slot) if *slot.get() == (id.dtype, len) => {}
            Slot::Occupied(_) => return Err(Error::malformed("two storages have one key")),
        }
        if len > entry.len_declared() {
            return Err(Error::malformed("a storage is shorter than declared"));
        }
        let place = archive::place(entry, 0, len);
        Ok(Storage {
            dtype: id.dtype,
            place,
            len,
            offset: 0,
            is_big: self.is_big,
            identity: STORAGE | idx as u64,
        })
    }
}
