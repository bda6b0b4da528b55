//! Files of version 2: plain, compressed as a whole, with a signature beside them.
//!
//! A signature beside a file is a second file, which an attacker changes as well: such a profile is the length of the signature
//! (4 bytes), the signature, and the model.

use core::ops::Range;

use apr_container::ReadOptions;
use apr_container::v2::{
    AprType, Flags, Index, Layout, Metadata, Stored, TensorSpec, TensorView, WriteOptions, to_vec,
};
use apr_crypto::minisign::{Prehash, PublicKey, SecretKey, Signature};

use super::people::{People, people};
use super::{Effort, Family, Places, Profile, SHORTENED, Verdict, beginning};
use crate::apr::seal::{crc32, seal, seal_header};

const HEADER_LEN: usize = 64;
const FLAGS_AT: usize = 6;
const ZSTD: u8 = 1 << 1;
const FOOTER_LEN: usize = 4;

const PLAIN: &str = "plain";
const COMPRESSED: &str = "compressed";
const UNSIGNED: &[&str] = &[PLAIN, COMPRESSED];
const UNTRUSTED_COMMENT: &str = "signature: untrusted comment";

/// How files of a profile are made.
#[derive(Clone, Copy, Debug)]
struct Make {
    name: &'static str,
    is_compressed: bool,
    is_signed: bool,
}

const MAKES: [Make; 4] = [
    Make { name: PLAIN, is_compressed: false, is_signed: false },
    Make { name: COMPRESSED, is_compressed: true, is_signed: false },
    Make { name: "signed beside", is_compressed: false, is_signed: true },
    Make { name: "compressed, signed beside", is_compressed: true, is_signed: true },
];

/// A model of two tensors of equal length, which are multiples of 64: the tensors and what is before them have no padding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) license: &'static str,
    /// Name of the first tensor.
    pub(super) first: &'static str,
    pub(super) byte: u8,
    /// Of a tensor.
    pub(super) len: usize,
}

pub(super) const GOOD: Model =
    Model { name: "churn 12", license: "proprietary-1", first: "a", byte: 1, len: 64 };
/// With parts of the same lengths.
pub(super) const OTHER: Model =
    Model { name: "churn 13", license: "proprietary-2", first: "A", byte: 2, len: 64 };

impl Model {
    /// The file, raw.
    pub(super) fn file(self) -> Vec<u8> {
        // No piece of the length of a chunk is like another one.
        let data = |first: u8| -> Vec<u8> {
            (0..self.len).map(|idx| (self.byte + first).wrapping_add((idx / 64) as u8)).collect()
        };
        let (shape, [first, second]) = ([self.len as u64], [data(0), data(100)]);
        let views = [(self.first, &first), ("b", &second)]
            .map(|(name, data)| TensorView::new(name, AprType::U8, &shape, data).unwrap_or_else(broken));
        to_vec(&views, &self.options()).unwrap_or_else(broken)
    }

    /// The file without its second tensor.
    fn without_second(self) -> Vec<u8> {
        let shape = [self.len as u64];
        let layout = Layout::new([TensorSpec::new(self.first, AprType::U8, &shape)], &self.options());
        let data = vec![self.byte; self.len];
        layout.and_then(|layout| layout.to_vec(&[&data])).unwrap_or_else(broken)
    }

    fn options(self) -> WriteOptions {
        let mut metadata = Metadata::new("churn");
        metadata.name = Some(self.name.to_owned());
        metadata.license = Some(self.license.to_owned());
        WriteOptions::new(metadata)
    }
}

fn broken<T>(error: apr_container::Error) -> T {
    panic!("{error}")
}

/// Everything that a strict reader gets to see of a file: metadata, flags of the content, tensors.
pub(super) fn content(file: &[u8]) -> Verdict {
    let stored = Stored::from_bytes(file, &ReadOptions::STRICT).map_err(|error| error.code())?;
    let container = stored.container();
    let flags = container.header().flags().without(Flags::COMPRESSED);
    let mut seen = format!("{flags:?} {}", container.metadata().to_json());
    for view in container.tensors().map_err(|error| error.code())? {
        seen += &format!(" {} {:?} {:?} {:?}", view.name(), view.dtype(), view.shape(), view.data());
    }
    Ok(seen.into_bytes())
}

/// Tensors of a file, in the order of their names.
pub(super) fn tensors(file: &[u8]) -> Vec<Range<usize>> {
    let index = Index::from_bytes(file, &ReadOptions::STRICT).unwrap_or_else(broken);
    index.iter().map(|info| info.file_range()).map(|place| place.start as usize..place.end as usize).collect()
}

/// Where the index of a file is.
fn index(file: &[u8]) -> Range<usize> {
    let found = Index::from_bytes(file, &ReadOptions::STRICT).unwrap_or_else(broken);
    found.header().index_offset_declared() as usize..found.data_start() as usize
}

/// Exchanges two tensors of a raw file, or of its copy in another file.
pub(super) fn exchange_tensors(file: &mut [u8], places: &[Range<usize>]) {
    if let [first, second] = places {
        let data = file[first.clone()].to_vec();
        file.copy_within(second.clone(), first.start);
        file[second.clone()].copy_from_slice(&data);
    }
}

/// A raw file as one zstd frame after its header, as one reader in circulation expects it.
pub(super) fn compressed(raw: &[u8]) -> Vec<u8> {
    let mut file = raw.to_vec();
    if let Some(flags) = file.get_mut(FLAGS_AT) {
        *flags |= ZSTD;
    }
    seal(&mut file);
    let (header, rest) = file.split_at(HEADER_LEN);
    [header, &zstd::encode_all(rest, 3).unwrap_or_default()].concat()
}

/// Makes the checksums of a compressed file right: that of the header, and the one inside the frame, which is then made anew.
fn seal_compressed(file: &mut Vec<u8>) {
    seal_header(file);
    let Some((header, frame)) = file.split_at_checked(HEADER_LEN) else { return };
    let Ok(mut rest) = zstd::decode_all(frame) else { return };
    if let Some((content, footer)) = rest.split_last_chunk_mut::<FOOTER_LEN>() {
        let right = crc32(&[header, content]).to_le_bytes();
        if *footer != right {
            *footer = right;
            let frame = zstd::encode_all(&*rest, 3).unwrap_or_default();
            file.truncate(HEADER_LEN);
            file.extend(frame);
        }
    }
}

/// A signature and the model beside it.
fn pair(signature: &[u8], model: &[u8]) -> Vec<u8> {
    [&(signature.len() as u32).to_le_bytes(), signature, model].concat()
}

fn split(pair: &[u8]) -> (&[u8], &[u8]) {
    let (len, rest) = pair.split_first_chunk::<4>().unwrap_or((&[0; 4], pair));
    rest.split_at(rest.len().min(u32::from_le_bytes(*len) as usize))
}

/// Cuts the signature, then the model.
fn cut_pair(file: &[u8], len: usize) -> Vec<u8> {
    let (signature, model) = split(file);
    match len.saturating_sub(4) {
        len if len < signature.len() => pair(&beginning(signature, len), model),
        len => pair(signature, &beginning(model, len - signature.len())),
    }
}

fn seal_pair(file: &mut Vec<u8>, seal_model: fn(&mut Vec<u8>)) {
    let (signature, model) = split(file);
    let (signature, mut model) = (signature.to_vec(), model.to_vec());
    seal_model(&mut model);
    *file = pair(&signature, &model);
}

fn verify(signature: &[u8], model: &[u8], key: &PublicKey) -> Result<(), &'static str> {
    let text = core::str::from_utf8(signature).map_err(|_| "not UTF-8")?;
    let signature = Signature::from_text(text).map_err(|error| error.code())?;
    key.verify_file(model, &signature).map(drop).map_err(|error| error.code())
}

impl Make {
    /// The model as it is stored.
    fn stored(self, raw: &[u8]) -> Vec<u8> {
        if self.is_compressed { compressed(raw) } else { raw.to_vec() }
    }

    /// A model as it is stored, with the signature of this model or of another one.
    fn with_signature_of(self, stored: &[u8], signed: &[u8], signer: &SecretKey) -> Vec<u8> {
        if !self.is_signed {
            return stored.to_vec();
        }
        let mut hash = Prehash::new();
        hash.update(signed);
        match signer.sign(&hash.finish(), "churn", "by the maker") {
            Ok(signature) => pair(signature.to_string().as_bytes(), stored),
            Err(error) => panic!("{error}"),
        }
    }

    fn file(self, model: Model, signer: &SecretKey) -> Vec<u8> {
        let stored = self.stored(&model.file());
        self.with_signature_of(&stored, &stored, signer)
    }

    /// A changed raw file with right checksums, in the place of the model that the maker signed.
    fn forged(self, mut raw: Vec<u8>, maker: &SecretKey) -> Vec<u8> {
        seal(&mut raw);
        self.with_signature_of(&self.stored(&raw), &self.stored(&GOOD.file()), maker)
    }

    fn profile(self) -> Profile {
        let maker = SecretKey::from(people().maker);
        let (file, key) = (self.file(GOOD, &maker), maker.public());
        let open = move |file: &[u8]| {
            if !self.is_signed {
                return content(file);
            }
            let (signature, model) = split(file);
            verify(signature, model, &key).and_then(|()| content(model))
        };
        let all: &[_] = &["header", "metadata", "tensor index", "tensors", "frame"];
        Profile {
            name: self.name,
            parts: self.parts(&file),
            unclaimed: if self.is_signed { &[] } else { all },
            // The line break at the end of a signature may be missing, and the footer of a raw file.
            without_effect: &[UNTRUSTED_COMMENT, SHORTENED],
            open: Box::new(open),
            cut: if self.is_signed { cut_pair } else { beginning },
            reseal: match (self.is_compressed, self.is_signed) {
                (false, false) => |file| seal(file),
                (true, false) => seal_compressed,
                (false, true) => |file| seal_pair(file, |model| seal(model)),
                (true, true) => |file| seal_pair(file, seal_compressed),
            },
            effort: Effort::EveryBit,
            file,
        }
    }

    fn parts(self, file: &[u8]) -> Places {
        let (mut places, mut at) = (Places::new(), 0);
        if self.is_signed {
            at = 4;
            let labels = [UNTRUSTED_COMMENT, "signature", "signature: trusted comment", "signature"];
            for (label, line) in labels.into_iter().zip(split(file).0.split_inclusive(|byte| *byte == b'\n'))
            {
                // What a line begins with is a part of the format.
                let fixed = line.iter().position(|byte| *byte == b':').map_or(0, |colon| colon + 2);
                places.push(("signature", at..at + fixed));
                places.push((label, at + fixed..at + line.len() - 1));
                places.push(("signature", at + line.len() - 1..at + line.len()));
                at += line.len();
            }
        }
        if self.is_compressed {
            places.extend([("header", at..at + HEADER_LEN), ("frame", at + HEADER_LEN..file.len())]);
            return places;
        }
        let (index, end) = (index(&file[at..]), file.len() - FOOTER_LEN);
        places.extend([
            ("header", at..at + HEADER_LEN),
            ("metadata", at + HEADER_LEN..at + index.start),
            ("tensor index", at + index.start..at + index.end),
            ("tensors", at + index.end..end),
            ("footer", end..file.len()),
        ]);
        places
    }
}

/// The profiles of version 2, and what an attacker without their secrets can try.
#[must_use]
pub fn v2() -> Family {
    let People { maker, attacker, .. } = people();
    let maker = SecretKey::from(maker);
    // Under the name of the maker's key.
    let attacker = SecretKey::new(maker.public().id(), attacker);
    let each = |attack: &dyn Fn(Make) -> Option<Vec<u8>>| MAKES.iter().map(|make| attack(*make)).collect();
    let of_raw = |change: &dyn Fn(&mut Vec<u8>)| -> Vec<Option<Vec<u8>>> {
        let mut raw = GOOD.file();
        change(&mut raw);
        each(&|make| Some(make.forged(raw.clone(), &maker)))
    };
    let (other, index) = (OTHER.file(), index(&GOOD.file()));
    let from_other =
        |place: Range<usize>| of_raw(&|raw| raw[place.clone()].copy_from_slice(&other[place.clone()]));
    // An entry: length of the name, the name, type and number of dimensions, a dimension, offset, length.
    let entry_len = 2 + 1 + 2 + 3 * 8;
    let offset = |entry: usize| {
        let at = index.start + entry * entry_len + 2 + 1 + 2 + 8;
        at..at + 8
    };
    let re_packed = |make: Make| Make { is_compressed: !make.is_compressed, ..make }.stored(&GOOD.file());
    let attacks = vec![
        ("metadata of another file by the same author", from_other(HEADER_LEN..index.start)),
        ("tensor index of another file", from_other(index.clone())),
        ("tensors of another file", from_other(index.end..other.len() - FOOTER_LEN)),
        (
            "two tensors of equal length exchanged",
            of_raw(&|raw| {
                let places = tensors(raw);
                exchange_tensors(raw, &places);
            }),
        ),
        (
            "the offsets of two entries exchanged",
            of_raw(&|raw| exchange_tensors(raw, &[offset(0), offset(1)])),
        ),
        (
            "one tensor in the place of both",
            of_raw(&|raw| {
                if let [first, second] = &*tensors(raw) {
                    raw.copy_within(first.clone(), second.start);
                }
            }),
        ),
        ("a tensor left out", of_raw(&|raw| *raw = GOOD.without_second())),
        (
            "the license of another file",
            of_raw(&|raw| {
                *raw = Model { license: OTHER.license, ..GOOD }.file();
            }),
        ),
        (
            "compressed by someone, or decompressed",
            each(&|make| {
                let signed = make.stored(&GOOD.file());
                Some(make.with_signature_of(&re_packed(make), &signed, &maker))
            }),
        ),
        (
            "signature of another file by the same author",
            each(&|make| {
                let [stored, signed] = [GOOD, OTHER].map(|model| make.stored(&model.file()));
                make.is_signed.then(|| make.with_signature_of(&stored, &signed, &maker))
            }),
        ),
        ("signature removed", each(&|make| make.is_signed.then(|| pair(&[], &make.stored(&GOOD.file()))))),
        (
            "signature replaced by the attacker's",
            each(&|make| make.is_signed.then(|| make.file(GOOD, &attacker))),
        ),
        ("written and signed by the attacker", each(&|make| Some(make.file(OTHER, &attacker)))),
        ("replaced by another file by the same author", each(&|make| Some(make.file(OTHER, &maker)))),
    ];
    Family {
        profiles: MAKES.iter().map(|make| make.profile()).collect(),
        attacks,
        limits: &[
            ("metadata of another file by the same author", UNSIGNED),
            ("tensor index of another file", UNSIGNED),
            ("tensors of another file", UNSIGNED),
            ("two tensors of equal length exchanged", UNSIGNED),
            ("the offsets of two entries exchanged", UNSIGNED),
            ("one tensor in the place of both", UNSIGNED),
            ("a tensor left out", UNSIGNED),
            ("the license of another file", UNSIGNED),
            ("compressed by someone, or decompressed", UNSIGNED),
            ("written and signed by the attacker", UNSIGNED),
            (
                "replaced by another file by the same author",
                &[PLAIN, COMPRESSED, "signed beside", "compressed, signed beside"],
            ),
        ],
    }
}
