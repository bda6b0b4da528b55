//! The stream before PyTorch 1.6: five pickles, then the storages.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use foreign_format::Format;
use pickle_core::{Span, Tree, Value, ValueId};
use read_at::{ReadAt, Window};

use crate::error::Error;
use crate::model::Model;
use crate::options::Options;
use crate::pickled::{self, Follower, Pickle, Source, Storage, Storages};
use crate::torch::{MAX_KEY, StorageId};

/// 119547037146038801333356 as an integer of ten bytes.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/// Bytes of a number that is compared with it.
const MAX_MAGIC: u64 = 64;

/// The only version.
const VERSION: i64 = 1001;

/// Identities of storages, beside those of values.
const STORAGE: u64 = 1 << 63;

/// A stream that was followed to its end.
struct Stream<'s> {
    pickle: Pickle<'s>,
    root: ValueId,
    storages: Ranges,
}

/// Storages by their keys.
struct Ranges {
    ranges: BTreeMap<String, Range<u64>>,
    is_big: bool,
}

/// Reads a stream.
pub(super) fn read(file: &dyn ReadAt, options: &Options) -> Result<Model, Error> {
    let mut model = Model::new(Format::TorchLegacy);
    let (stream, end) = follow(Source { bytes: file, at: Some((0, 0)) })?;
    if end < file.total_len() {
        model.note("", "bytes after the last storage are ignored");
    }
    pickled::walk(&stream.pickle, stream.root, &stream.storages, options, &mut model)?;
    Ok(model)
}

/// The storage that is the object of a stream inside a bytes object.
pub(super) fn storage_in_bytes(pickle: &Pickle<'_>, span: Span) -> Result<Storage, Error> {
    let Some(range) = span.range() else { return Err(Error::unsupported("a storage inside text")) };
    if let Some(storage) = pickle.inner.borrow().get(&range.start) {
        return Ok(storage.clone());
    }
    let bytes = Window::new(pickle.source.bytes, range.start, range.end - range.start)?;
    let at = pickle.source.at.map(|(file, base)| (file, base + range.start));
    let (inner, _) = follow(Source { bytes: &bytes, at })?;
    let Value::Persistent(id) = inner.pickle.tree.value(inner.root) else {
        return Err(Error::unsupported("a stream inside a stream that is no storage"));
    };
    let mut storage = inner.storages.find(&inner.pickle, id)?;
    storage.identity = storage.identity.wrapping_add(range.start);
    pickle.inner.borrow_mut().insert(range.start, storage.clone());
    Ok(storage)
}

/// Follows the pickles, and returns the end of the storages.
fn follow(source: Source<'_>) -> Result<(Stream<'_>, u64), Error> {
    let mut follower = Follower::new(source, true, false);
    let magic = follower.follow()?;
    let is_magic = match follower.tree().value(magic) {
        Value::BigInt(span) if span.len() <= MAX_MAGIC => {
            let bytes = follower.tree().bytes(source.bytes, span, MAX_MAGIC)?;
            // Zeros at its end do not change a number.
            bytes.strip_prefix(&MAGIC).is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
        }
        _ => false,
    };
    if !is_magic {
        return Err(Error::malformed("the stream does not begin with the number of PyTorch"));
    }
    follower.begin_next()?;
    let version = follower.follow()?;
    if !matches!(follower.tree().value(version), Value::Int(VERSION)) {
        return Err(Error::unsupported("this version of the stream"));
    }
    follower.begin_next()?;
    let system = follower.follow()?;
    let is_big = !is_little(follower.tree(), system, source.bytes)?;
    follower.begin_next()?;
    let root = follower.follow()?;
    let persistent = core::mem::take(&mut follower.persistent);
    follower.begin_next()?;
    let keys = follower.follow()?;
    let start = follower.position();
    let pickle = follower.finish();

    let mut declared: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for id in persistent {
        let Value::Persistent(id) = pickle.tree.value(id) else { continue };
        let Value::Tuple([kind, ..]) = pickle.tree.value(id) else {
            return Err(Error::malformed("a persistent id that is no storage"));
        };
        if pickle.text(*kind, MAX_KEY)?.as_deref() == Some("module") {
            continue;
        }
        let id = StorageId::of(&pickle, id)?;
        let found = (id.width(), id.count);
        if *declared.entry(id.key).or_insert(found) != found {
            return Err(Error::malformed("two storages have one key"));
        }
    }
    let Value::List(keys) = pickle.tree.value(keys) else {
        return Err(Error::malformed("the stream has no list of storages"));
    };
    let mut ranges = BTreeMap::new();
    let mut at = start;
    let keys: Vec<ValueId> = keys.collect();
    for key in keys {
        let short = || Error::malformed("the file ends inside its storages");
        let key =
            pickle.text(key, MAX_KEY)?.ok_or_else(|| Error::malformed("an invalid key of a storage"))?;
        let Some(&(width, count)) = declared.get(&key) else {
            return Err(Error::malformed("a storage that no tensor has").at(at));
        };
        let begin = at.checked_add(8).filter(|begin| *begin <= source.bytes.total_len()).ok_or_else(short)?;
        let mut stored = [0; 8];
        source.bytes.read_exact_at(at, &mut stored)?;
        let stored = if is_big { u64::from_be_bytes(stored) } else { u64::from_le_bytes(stored) };
        if stored != count {
            return Err(Error::malformed("a storage has another length than declared").at(at));
        }
        let end = count.checked_mul(width).and_then(|len| begin.checked_add(len));
        let end = end.filter(|end| *end <= source.bytes.total_len()).ok_or_else(short)?;
        if ranges.insert(key, begin..end).is_some() {
            return Err(Error::malformed("two storages have one key").at(at));
        }
        at = end;
    }
    Ok((Stream { pickle, root, storages: Ranges { ranges, is_big } }, at))
}

/// What the description of the writing system says about the byte order.
fn is_little(tree: &Tree, system: ValueId, source: &dyn ReadAt) -> Result<bool, Error> {
    let Value::Dict(pairs) = tree.value(system) else {
        return Err(Error::malformed("the stream does not describe its system"));
    };
    for (key, value) in pairs {
        let (Value::Str(span) | Value::Str2(span)) = tree.value(key) else { continue };
        if span.len() == 13 && *tree.bytes(source, span, 13)? == *b"little_endian" {
            return match tree.value(value) {
                Value::Bool(is_little) => Ok(is_little),
                _ => Err(Error::malformed("the stream does not describe its system")),
            };
        }
    }
    Ok(true)
}

impl Storages for Ranges {
    fn find(&self, pickle: &Pickle<'_>, id: ValueId) -> Result<Storage, Error> {
        let id = StorageId::of(pickle, id)?;
        let Some(range) = self.ranges.get(&id.key) else {
            return Err(Error::malformed("a storage is missing"));
        };
        let len = range.end - range.start;
        let (offset, len) = match id.view {
            None => (0, len),
            Some((offset, count)) => {
                // The view ends before the storage does.
                let end = offset.checked_add(count).and_then(|end| end.checked_mul(id.width()));
                let end = end
                    .filter(|end| *end <= len)
                    .ok_or_else(|| Error::view("it reaches beyond its storage"))?;
                (offset, end)
            }
        };
        let place = pickle.source.place(range.start..range.start + len)?;
        let identity = STORAGE | range.start;
        Ok(Storage { dtype: id.dtype, place, len, offset, is_big: self.is_big, identity })
    }
}
