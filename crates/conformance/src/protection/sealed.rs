//! Sealed files of models in version 2.

use apr_crypto::{
    Access, Argon2Cost, Argon2Limits, LeafLen, TreeAlgorithm, TreeHasher, TreeRoot, Trust, VerifyingKey,
    dsse_pae,
};
use apr_sealed::{Part, Plan, SealOptions, SealedLimits, SealedReader};
use sha2::{Digest as _, Sha256};

use super::people::{Lock, People, people};
use super::v2::{self, GOOD, Model, OTHER};
use super::{Effort, Family, Places, Profile, Repeatable, Verdict, beginning};
use crate::apr::seal::seal;

const FLAGS_AT: usize = 12;
const TREE_AT: usize = 56;
const CHUNK: usize = 16_400;
const CHECKSUM_LEN: usize = 32;

/// How files of a profile are made.
#[derive(Clone, Copy, Debug)]
struct Make {
    name: &'static str,
    lock: Lock,
    is_signed: bool,
    trusts_anyone: bool,
    binds_recipients: bool,
    is_compressed: bool,
    effort: Effort,
}

const OTHER_SLOT: &str = "key slot not in use";
const MAKES: [Make; 8] = [
    Make { effort: Effort::EveryBit, ..make("signed", Lock::None, true) },
    make("for a recipient", Lock::Recipient, false),
    make("under a password", Lock::Password, false),
    Make { effort: Effort::EveryBit, ..make("for a recipient, signed", Lock::Recipient, true) },
    make("under a password, signed", Lock::Password, true),
    Make { is_compressed: true, ..make("compressed, for a recipient, signed", Lock::Recipient, true) },
    Make {
        binds_recipients: true,
        ..make("for a recipient, signed, recipients bound", Lock::Recipient, true)
    },
    Make { trusts_anyone: true, ..make("for a recipient, signed, by anyone", Lock::Recipient, true) },
];

const fn make(name: &'static str, lock: Lock, is_signed: bool) -> Make {
    Make {
        name,
        lock,
        is_signed,
        trusts_anyone: false,
        binds_recipients: false,
        is_compressed: false,
        effort: Effort::EveryByte,
    }
}

/// Of several chunks.
const LONG: Model = Model { len: 25_600, ..GOOD };

impl Make {
    fn file(self, model: Model, People { maker, reader, password, .. }: &People, seed: u32) -> Vec<u8> {
        let options = SealOptions::default().with_capacity_for(1).with_public("name", model.name);
        let options = match self.lock {
            Lock::None => options,
            Lock::Password => options.with_password_at(password, cheapest()),
            Lock::Recipient => options.for_recipient(reader.public()),
        };
        let options = if self.is_signed { options.signed_by(maker) } else { options };
        let options = if self.binds_recipients { options.with_bound_recipients() } else { options };
        let raw = model.file();
        // The tensors of a compressed file are not told apart.
        let places = if self.is_compressed { Vec::new() } else { v2::tensors(&raw) };
        let tensors = places.into_iter().zip([model.first, "b"]).map(|(place, name)| {
            let len = place.len() as u64;
            (place.start as u64, Part::tensor(name, "U8", [len], len))
        });
        let content = if self.is_compressed { v2::compressed(&raw) } else { raw };
        let made = Plan::of_file(content.len() as u64, tensors)
            .and_then(|plan| apr_sealed::to_vec(&plan, &content, &options, &mut Repeatable::new(seed)));
        made.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// A file of several chunks; a compressed one has one.
    fn long_file(self, people: &People) -> Option<Vec<u8>> {
        (!self.is_compressed).then(|| self.file(LONG, people, 0))
    }

    fn open(self, file: &[u8], People { reader, password, .. }: &People, maker: &VerifyingKey) -> Verdict {
        let access = match self.lock {
            Lock::None => Access::default(),
            Lock::Password => Access::default().with_password(password),
            Lock::Recipient => Access::default().with_recipient(reader),
        };
        let access = match (self.is_signed, self.trusts_anyone) {
            (false, _) => access,
            (true, false) => access.with_trust(maker),
            (true, true) => access.with_trust(Trust::Anyone),
        };
        let mut model = Vec::new();
        SealedReader::open(file, &access, &limits())
            .and_then(|reader| reader.verify_all().and_then(|()| reader.restore(&mut model)))
            .map_err(|error| error.code())?;
        v2::content(&model)
    }

    fn profile(self) -> Profile {
        let people = people();
        let key = people.maker.verifying_key();
        let file = self.file(GOOD, &people, 0);
        Profile {
            name: self.name,
            parts: parts(&file),
            unclaimed: &[],
            without_effect: &[OTHER_SLOT],
            open: Box::new(move |file| self.open(file, &people, &key)),
            cut: beginning,
            reseal: |file| reseal(file),
            effort: self.effort,
            file,
        }
    }
}

/// Limits under which guessing is cheap enough to try every byte.
fn limits() -> SealedLimits {
    let argon2 = Argon2Limits::default().with_memory_kib(8..=1024 * 1024);
    SealedLimits { argon2, ..SealedLimits::default() }
}

fn cheapest() -> Argon2Cost {
    Argon2Cost::new(8, 1, 1, &limits().argon2).unwrap_or_else(|error| panic!("{error}"))
}

/// The places of a file, computed a second time from the specification.
fn parts(file: &[u8]) -> Places {
    let number = |place: core::ops::Range<usize>| {
        file[place].iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte))
    };
    let (payload_len, directory_len) = (number(32..40), number(40..48));
    let (public_len, slot_len) = (number(48..52), number(52..56));
    let public_end = 208 + public_len;
    let slots = if slot_len == 0 { public_end } else { public_end.next_multiple_of(512) };
    let (second, directory) = (slots + slot_len, slots + 2 * slot_len);
    let directory_end = directory + directory_len;
    let payload = directory_end.next_multiple_of(64);
    vec![
        ("fixed header", 0..64),
        ("signer block", 64..208),
        ("public metadata", 208..public_end),
        ("gaps", public_end..slots),
        ("key slot in use", slots..second),
        (OTHER_SLOT, second..directory),
        ("directory", directory..directory_end),
        ("gaps", directory_end..payload),
        ("payload", payload..payload + payload_len),
        ("hashes", payload + payload_len..file.len().max(payload + payload_len)),
    ]
}

fn place(file: &[u8], label: &str) -> core::ops::Range<usize> {
    let found = parts(file).into_iter().find(|(name, _)| *name == label);
    found.map_or(0..0, |(_, place)| place)
}

/// Root and hashes of the payload, if the file says how they are made.
fn tree(file: &[u8]) -> Option<(TreeRoot, Vec<u8>)> {
    let payload = file.get(place(file, "payload"))?;
    let leaf_len = LeafLen::new(1 << (file[TREE_AT + 1] % 64)).ok()?;
    let mut hasher = TreeHasher::new(TreeAlgorithm::from_id(file[TREE_AT]).ok()?, leaf_len);
    hasher.update(payload);
    Some(hasher.finish())
}

/// Makes right what needs no key: the checksums of a model that is not encrypted, the hashes of the payload and their root,
/// the checksums of the key slots.
fn reseal(file: &mut [u8]) {
    if file.len() < 208 {
        return;
    }
    let (payload, hashes) = (place(file, "payload"), place(file, "hashes"));
    if let Some(payload) = file.get_mut(payload)
        && payload.starts_with(b"APR")
    {
        seal(payload);
    }
    if let Some((root, outboard)) = tree(file) {
        file[64..106].copy_from_slice(&root.to_bytes());
        if let Some(hashes) = file.get_mut(hashes).filter(|hashes| hashes.len() == outboard.len()) {
            hashes.copy_from_slice(&outboard);
        }
    }
    for label in ["key slot in use", OTHER_SLOT] {
        let slot = place(file, label);
        let Some(slot) = file.get_mut(slot) else { continue };
        if let Some((content, checksum)) = slot.split_last_chunk_mut::<CHECKSUM_LEN>()
            && content.iter().chain(checksum.iter()).any(|byte| *byte != 0)
        {
            *checksum = Sha256::digest(content).into();
        }
    }
}

/// The sealed profiles, and what an attacker without their secrets can try.
#[must_use]
pub fn sealed() -> Family {
    let people = people();
    let villain = People::as_villain();
    let each = |attack: &dyn Fn(Make) -> Option<Vec<u8>>| MAKES.iter().map(|make| attack(*make)).collect();
    let from_other = |labels: &'static [&'static str]| {
        each(&|make| {
            let (mut file, other) = (make.file(GOOD, &people, 0), make.file(OTHER, &people, 1));
            for label in labels {
                let place = place(&file, label);
                if place.is_empty() || (*label == "signer block" && !make.is_signed) {
                    return None;
                }
                file[place.clone()].copy_from_slice(&other[place]);
            }
            reseal(&mut file);
            Some(file)
        })
    };
    let chunks = |change: &dyn Fn(&mut [u8], &mut [u8])| {
        each(&|make| {
            let mut file = make.long_file(&people)?;
            let payload = place(&file, "payload");
            let begin = payload.start + if make.lock == Lock::None { 0 } else { 56 };
            let (first, second) = file[begin..begin + 2 * CHUNK].split_at_mut(CHUNK);
            change(first, second);
            reseal(&mut file);
            Some(file)
        })
    };
    let exchanged_tensors = each(&|make| {
        if make.is_compressed {
            return None;
        }
        let mut file = make.file(GOOD, &people, 0);
        let begin = place(&file, "payload").start + if make.lock == Lock::None { 0 } else { 56 };
        let places: Vec<_> = v2::tensors(&GOOD.file())
            .into_iter()
            .map(|place| begin + place.start..begin + place.end)
            .collect();
        v2::exchange_tensors(&mut file, &places);
        reseal(&mut file);
        Some(file)
    });
    let without_chunk = each(&|make| {
        let mut file = make.long_file(&people)?;
        let payload = place(&file, "payload");
        file.drain(payload.end - CHUNK..payload.end);
        let len = (payload.len() - CHUNK) as u64;
        file[32..40].copy_from_slice(&len.to_le_bytes());
        file.truncate(place(&file, "hashes").start);
        file.extend(tree(&file).map(|(_, hashes)| hashes).unwrap_or_default());
        reseal(&mut file);
        Some(file)
    });
    let unsigned = each(&|make| {
        make.is_signed.then(|| {
            let mut file = make.file(GOOD, &people, 0);
            file.truncate(place(&file, "hashes").start);
            // Bound recipients are the signer's as well.
            file[FLAGS_AT] = 0;
            file[TREE_AT..TREE_AT + 2].fill(0);
            file[64..208].fill(0);
            file
        })
    });
    let re_signed = each(&|make| {
        make.is_signed.then(|| {
            let mut file = make.file(GOOD, &people, 0);
            let public = *villain.maker.verifying_key().as_bytes();
            file[112..144].copy_from_slice(&public);
            let digest = |label| Sha256::digest(&file[place(&file, label)]);
            let (metadata, directory) = (digest("public metadata"), digest("directory"));
            let message = [&file[..64], &metadata, &directory, &file[64..106], &public].concat();
            let signature = villain.maker.sign(&dsse_pae("application/vnd.apr.sealed.v1", &message));
            file[144..208].copy_from_slice(&signature.to_bytes());
            file
        })
    });
    let opened = each(&|make| {
        let bare = Make { lock: Lock::None, is_signed: true, binds_recipients: false, ..make };
        (make.lock != Lock::None).then(|| bare.file(OTHER, &villain, 2))
    });
    let renamed = each(&|make| {
        let mut file = make.file(GOOD, &people, 0);
        file[..6].copy_from_slice(b"APRN\x01\x00");
        Some(file)
    });
    let attacks = vec![
        ("public metadata of another file by the same author", from_other(&["public metadata"])),
        ("key slot of another file for the same reader", from_other(&["key slot in use"])),
        ("directory and payload of another file", from_other(&["directory", "payload"])),
        ("the same with its signer block", from_other(&["signer block", "directory", "payload"])),
        ("two tensors of equal length exchanged", exchanged_tensors),
        ("two chunks exchanged", chunks(&|first, second| first.swap_with_slice(second))),
        ("one chunk repeated", chunks(&|first, second| second.copy_from_slice(first))),
        ("one chunk removed, lengths corrected", without_chunk),
        ("signature removed", unsigned),
        ("signature replaced by the attacker's", re_signed),
        ("encryption removed, content by the attacker", opened),
        ("presented as a file of version 1", renamed),
        (
            "written and signed by the attacker",
            each(&|make| (make.lock != Lock::Password).then(|| make.file(OTHER, &villain, 3))),
        ),
        ("replaced by another file by the same author", each(&|make| Some(make.file(OTHER, &people, 1)))),
    ];
    Family {
        profiles: MAKES.iter().map(|make| make.profile()).collect(),
        attacks,
        limits: &[
            (
                "written and signed by the attacker",
                &["for a recipient", "for a recipient, signed, by anyone"],
            ),
            (
                "replaced by another file by the same author",
                &[
                    "signed",
                    "for a recipient",
                    "under a password",
                    "for a recipient, signed",
                    "under a password, signed",
                    "compressed, for a recipient, signed",
                    "for a recipient, signed, recipients bound",
                    "for a recipient, signed, by anyone",
                ],
            ),
        ],
    }
}
