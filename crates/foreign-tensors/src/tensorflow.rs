//! TensorFlow: checkpoints of version 2 (tensor bundles), and the variables of a `SavedModel`.
//!
//! A checkpoint is an index, `NAME.index`, and shards, `NAME.data-00000-of-00001`. Source: `tensor_bundle.cc` of TensorFlow 2.21.

mod bundle;
mod crc;
mod slices;
mod stored;
mod table;
#[cfg(test)]
mod written;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use foreign_format::Format;
use located_error::Subject;
use read_at::ReadAt;

use crate::error::Error;
use crate::files::Companions;
use crate::model::Model;
use crate::options::Options;
use crate::reader::{Budget, Reader};
use crate::tensor::{ElementType, Place, Tensor};
use crate::view::View;

use self::bundle::{Elements, Entry, Header, elements};
use self::slices::{are_exact, key};
use self::stored::{Shard, Sliced, Stored};
use self::table::Pair;

/// The index in the folder of a `SavedModel`.
const VARIABLES: &str = "variables/variables.index";

/// Reads the index of a checkpoint, whose name [`Companions::file_name`] has to know: the shards are named after it.
///
/// # Errors
///
/// If the index is malformed, a checksum is wrong or a shard is missing.
pub fn read(file: &dyn ReadAt, companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    let name = companions
        .file_name()
        .ok_or_else(|| Error::unsupported("a checkpoint whose file name is not known"))?;
    let name = name.strip_suffix(".index").ok_or_else(|| {
        Error::unsupported("a checkpoint whose index is not named `NAME.index`").of(Subject::key(name))
    })?;
    checkpoint(Model::new(Format::TfCheckpoint), file, (companions, name), options)
}

/// Reads the variables in the folder of a `SavedModel`. Its graph, `saved_model.pb`, is not read.
///
/// # Errors
///
/// As [`read`].
pub fn read_saved_model(companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    let index = companions.open(VARIABLES)?;
    let name = VARIABLES.strip_suffix(".index").unwrap_or_default();
    let mut model = Model::new(Format::SavedModel);
    model.note("saved_model.pb", "the graph and constants in it are not read");
    checkpoint(model, &index, (companions, name), options)
}

/// What every entry needs.
struct Context<'c> {
    reader: Reader<'c>,
    options: &'c Options,
    header: Header,
    companions: &'c dyn Companions,
    name: &'c str,
    shards: BTreeMap<u64, Shard>,
    pairs: Vec<Pair>,
    /// Keys of parts that a variable consists of.
    used: BTreeSet<Vec<u8>>,
    model: Model,
}

fn checkpoint(
    model: Model,
    index: &dyn ReadAt,
    (companions, name): (&dyn Companions, &str),
    options: &Options,
) -> Result<Model, Error> {
    options.without_object()?;
    let mut reader = Reader::new(index);
    let mut pairs = table::read(&mut reader, &mut Budget::new(options.limits.text_bytes))?;
    let Some((_, header)) = pairs.first().filter(|(key, _)| key.is_empty()).cloned() else {
        return Err(Error::malformed("the checkpoint has no header"));
    };
    pairs.remove(0);
    let header = Header::read(&mut reader, header)?;
    let shards = BTreeMap::new();
    let used = BTreeSet::new();
    let mut context = Context { reader, options, header, companions, name, shards, pairs, used, model };
    context.model.add_entry("tensorflow.shards", format!("{}", context.header.shards));
    // Keys of parts begin with a zero, and come first.
    let parts = context.pairs.partition_point(|(key, _)| key.first() == Some(&0));
    for idx in parts..context.pairs.len() {
        let Some((key, value)) = context.pairs.get(idx).cloned() else { break };
        let at = value.start;
        let name = String::from_utf8(key).map_err(|_| Error::malformed("a name is not UTF-8").at(at))?;
        let subject = Subject::tensor(&name);
        context.entry(name, value).map_err(|error| error.of(subject).at(at))?;
    }
    let unused = context.pairs.iter().take(parts).filter(|(key, _)| !context.used.contains(key)).count();
    if unused > 0 {
        context.model.note("", format!("{unused} parts of no variable are left out"));
    }
    Ok(context.model)
}

impl Context<'_> {
    /// Adds a tensor.
    fn entry(&mut self, name: String, value: Range<u64>) -> Result<(), Error> {
        let limits = &self.options.limits;
        let entry = Entry::read(&mut self.reader, value, limits)?;
        let dtype = match elements(entry.dtype) {
            Some(Elements::Of(dtype)) => dtype,
            Some(Elements::Quantized(dtype)) => {
                self.model.note(name.as_str(), "quantized numbers are read as integers without their scale");
                dtype
            }
            Some(Elements::Text) => {
                self.model.note(name, "a tensor of text is left out");
                return Ok(());
            }
            Some(Elements::Other(what)) => {
                return self.model.add(Tensor::unsupported(name, entry.shape, what), self.options);
            }
            None => return Err(Error::malformed("unknown data type of a tensor")),
        };
        let len = byte_len(dtype, &entry.shape)?;
        let place = if entry.slices.is_empty() {
            Place::Encoded(Arc::new(self.stored(&entry, len)?))
        } else {
            Place::Encoded(Arc::new(self.sliced(&name, &entry, dtype)?))
        };
        let swap = if self.header.is_big_endian { dtype.number_width() } else { 0 };
        let view = View { swap, ..View::whole() };
        let tensor = Tensor::new(name, dtype, entry.shape, (place, len), view, limits)?;
        self.model.add(tensor, self.options)
    }

    /// The bytes of an entry, of which there have to be `len`.
    fn stored(&mut self, entry: &Entry, len: u64) -> Result<Stored, Error> {
        if entry.len != len {
            return Err(Error::view("its data has another length than its shape"));
        }
        let shard = self.shard(entry.shard)?;
        let end = entry.offset.checked_add(len).filter(|end| *end <= shard.total_len());
        let end = end.ok_or_else(|| Error::view("it reaches beyond the file with its data"))?;
        Ok(Stored { shard, range: entry.offset..end, checksum: entry.checksum })
    }

    /// The parts of a variable.
    fn sliced(&mut self, name: &str, whole: &Entry, dtype: ElementType) -> Result<Sliced, Error> {
        let mut parts = Vec::new();
        let malformed = |problem| Err(Error::malformed(problem));
        for slice in &whole.slices {
            if slice.len() != whole.shape.len() {
                return malformed("a part of a variable has another rank");
            }
            let key = key(name, slice);
            let found = self.pairs.binary_search_by(|(other, _)| other.cmp(&key));
            let Some((_, value)) = found.ok().and_then(|idx| self.pairs.get(idx)).cloned() else {
                return malformed("a part of a variable is missing");
            };
            self.used.insert(key);
            let entry = Entry::read(&mut self.reader, value, &self.options.limits)?;
            let extents: Vec<(u64, u64)> = slice
                .iter()
                .zip(&whole.shape)
                .map(|((start, len), dim)| (*start, len.unwrap_or(*dim)))
                .collect();
            let is_same = entry.dtype == whole.dtype
                && extents.iter().map(|(_, len)| *len).eq(entry.shape.iter().copied());
            if !is_same || !entry.slices.is_empty() {
                return malformed("a part of a variable has another type or shape");
            }
            let len = byte_len(dtype, &entry.shape)?;
            parts.push((extents, self.stored(&entry, len)?));
        }
        let places: Vec<_> = parts.iter().map(|(extents, _)| extents.clone()).collect();
        if !are_exact(&whole.shape, &places) {
            return malformed("the parts of a variable do not fill it exactly");
        }
        Ok(Sliced { shape: whole.shape.clone(), width: dtype.width() as u64, parts })
    }

    /// A shard, which is opened once.
    fn shard(&mut self, number: u64) -> Result<Shard, Error> {
        if let Some(shard) = self.shards.get(&number) {
            return Ok(Arc::clone(shard));
        }
        if number >= self.header.shards {
            return Err(Error::malformed("a tensor is in a shard that the checkpoint does not have"));
        }
        let path = format!("{}.data-{number:05}-of-{:05}", self.name, self.header.shards);
        let shard: Shard = Arc::from(self.companions.open(&path)?);
        self.model.add_companion(Box::new(Arc::clone(&shard)));
        self.shards.insert(number, Arc::clone(&shard));
        Ok(shard)
    }
}

fn byte_len(dtype: ElementType, shape: &[u64]) -> Result<u64, Error> {
    let count = shape.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim));
    dtype.byte_len(count.ok_or_else(|| Error::view("its size overflows"))?)
}

#[cfg(test)]
mod tests {
    use super::written::index;
    use super::*;
    use proptest::prelude::*;

    /// A folder with one shard.
    struct OneShard(Vec<u8>);

    impl Companions for OneShard {
        fn open(&self, path: &str) -> Result<Box<dyn ReadAt + Send + Sync>, Error> {
            if path == "m.data-00000-of-00001" {
                Ok(Box::new(self.0.clone()))
            } else {
                crate::files::NoCompanions.open(path)
            }
        }

        fn file_name(&self) -> Option<&str> {
            Some("m.index")
        }
    }

    type Pairs<'p> = [(&'p [u8], &'p [u8])];

    fn opened(pairs: &Pairs<'_>, shard: &[u8]) -> Result<Model, Error> {
        read(&index(pairs.iter().copied()), &OneShard(shard.to_vec()), &Options::default())
    }

    const HEADER: &[u8] = &[8, 1, 0x1a, 2, 8, 1];
    /// An `F32` of shape `[2]` at 0 of the shard; its checksum is still missing.
    const TENSOR: &[u8] = &[8, 1, 0x12, 4, 0x12, 2, 8, 2, 0x28, 8, 0x35];

    fn tensor(shard: &[u8]) -> Vec<u8> {
        [TENSOR, &crc::masked(shard).to_le_bytes()].concat()
    }

    #[test]
    fn byte_order_and_checksums_are_considered() {
        let shard = [0x3f, 0x80, 0, 0, 0x40, 0, 0, 0];
        let big = [HEADER, &[0x10, 1]].concat();
        let folder = OneShard(shard.to_vec());
        let model = read(
            &index([(b"".as_slice(), big.as_slice()), (b"w", &tensor(&shard))]),
            &folder,
            &Options::default(),
        )
        .unwrap();
        let bytes = model.tensors()[0].to_vec(&model, &Vec::new()).unwrap();
        assert_eq!(bytes, [1.0_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat());
        let model = opened(&[(b"", HEADER), (b"w", &tensor(&[0; 8]))], &shard).unwrap();
        assert_eq!(model.tensors()[0].to_vec(&model, &Vec::new()).unwrap_err().code(), "ft-malformed");
    }

    #[test]
    fn damaged_checkpoints_are_refused() {
        let sound = tensor(&[0; 8]);
        let part = key("w", &[(0, Some(2))]);
        // A variable of one part, or of a part that is missing.
        let whole = |slice: &[u8]| [&[8, 1, 0x12, 4, 0x12, 2, 8, 2, 0x3a, slice.len() as u8], slice].concat();
        let (one, other) = (whole(&[0x0a, 2, 0x10, 2]), whole(&[0x0a, 2, 0x10, 1]));
        let model = opened(&[(b"", HEADER), (&part, &sound), (b"w", &one)], &[0; 8]).unwrap();
        assert_eq!(model.tensors()[0].to_vec(&model, &Vec::new()).unwrap(), [0; 8]);
        let cases: [(&Pairs<'_>, &[u8], &str); 10] = [
            (&[(b"w", &sound)], &[0; 8], "ft-malformed"),
            (&[(b"", HEADER), (b"w", &sound)], &[0; 7], "ft-view"),
            (&[(b"", HEADER), (b"w", &sound), (b"w", &sound)], &[0; 8], "ft-malformed"),
            (&[(b"", HEADER), (b"w", &sound), (b"v", &sound)], &[0; 8], "ft-malformed"),
            (&[(b"", HEADER), (b"\xff", &sound)], &[0; 8], "ft-malformed"),
            (&[(b"", HEADER), (b"w", &[&sound[..], &[0x18, 1]].concat())], &[0; 8], "ft-malformed"),
            (&[(b"", HEADER), (b"w", &[&sound[..], &[0x28, 7]].concat())], &[0; 8], "ft-view"),
            (&[(b"", HEADER), (b"w", &[&sound[..], &[8, 99]].concat())], &[0; 8], "ft-malformed"),
            (&[(b"", HEADER), (&part, &sound), (b"w", &other)], &[0; 8], "ft-malformed"),
            (&[(b"", HEADER), (b"w", &one)], &[0; 8], "ft-malformed"),
        ];
        for (number, (pairs, shard, code)) in cases.into_iter().enumerate() {
            assert_eq!(opened(pairs, shard).map_err(|error| error.code()).err(), Some(code), "{number}");
        }
        let model = opened(&[(b"", HEADER), (b"s", &[8, 7])], &[]).unwrap();
        assert_eq!((model.tensors().len(), model.notes().len()), (0, 1));
        let model = opened(&[(b"", HEADER), (b"v", &[8, 21])], &[]).unwrap();
        assert_eq!(model.check().unwrap_err().code(), "ft-tensor-unsupported");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Damage behind sound checksums.
        #[test]
        fn any_entries_are_refused_or_read(
            header in proptest::collection::vec(any::<u8>(), 0..8),
            is_sound in any::<bool>(),
            mut values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            values.push(tensor(&[0; 8]));
            for (at, byte) in changes {
                if let Some(last) = values.last_mut() {
                    let at = at.index(last.len());
                    last[at] = byte;
                }
            }
            let keys: Vec<[u8; 1]> = (0..values.len()).map(|at| [b'a' + at as u8]).collect();
            let mut pairs: Vec<(&[u8], &[u8])> = keys.iter().zip(&values).map(|(key, value)| (&key[..], &value[..])).collect();
            pairs.insert(0, (b"", if is_sound { HEADER } else { &header }));
            if let Ok(model) = opened(&pairs, &[0; 8]) {
                for tensor in model.tensors() {
                    let _ = tensor.to_vec(&model, &Vec::new());
                }
            }
        }
    }
}
