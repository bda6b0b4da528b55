//! Sealed files.

use apr_crypto::{Access, Argon2Cost, Argon2Limits, Trust, dsse_pae};
use apr_sealed::{Part, Plan, SealOptions, SealedLimits, SealedReader};
use sha2::{Digest as _, Sha256};

use super::people::{Lock, People, people};
use super::{Effort, Family, Places, Profile, Repeatable, Verdict, beginning};

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
    effort: Effort,
}

const OTHER_SLOT: &str = "key slot not in use";
const MAKES: [Make; 6] = [
    make("signed", Lock::None, true),
    make("for a recipient", Lock::Recipient, false),
    Make { effort: Effort::OneBit, ..make("under a password", Lock::Password, false) },
    make("for a recipient, signed", Lock::Recipient, true),
    Make {
        binds_recipients: true,
        effort: Effort::OneBit,
        ..make("the same, recipients bound", Lock::Recipient, true)
    },
    Make {
        trusts_anyone: true,
        effort: Effort::OneBit,
        ..make("for a recipient, signed, by anyone", Lock::Recipient, true)
    },
];

const fn make(name: &'static str, lock: Lock, is_signed: bool) -> Make {
    Make { name, lock, is_signed, trusts_anyone: false, binds_recipients: false, effort: Effort::EveryBit }
}

/// A file's content: one tensor with the header of its original before it.
#[derive(Clone, Copy)]
struct Model {
    name: &'static str,
    byte: u8,
    len: usize,
}

const GOOD: Model = Model { name: "churn 12", byte: 1, len: 40 };
const OTHER: Model = Model { name: "churn 13", byte: 2, ..GOOD };
const LONG: Model = Model { len: 3 * CHUNK, ..GOOD };

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
        let tensor = Part::tensor("weight", "U8", [model.len as u64 - 8], model.len as u64 - 8);
        // Each chunk is another one.
        let content: Vec<u8> = (0..model.len).map(|idx| model.byte + (idx / CHUNK) as u8).collect();
        let made = Plan::of_file(model.len as u64, [(8, tensor)])
            .and_then(|plan| apr_sealed::to_vec(&plan, &content, &options, &mut Repeatable::new(seed)));
        made.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn open(self, file: &[u8]) -> Verdict {
        let People { maker, reader, password, .. } = people();
        let access = match self.lock {
            Lock::None => Access::default(),
            Lock::Password => Access::default().with_password(&password),
            Lock::Recipient => Access::default().with_recipient(&reader),
        };
        let key = maker.verifying_key();
        let access = match (self.is_signed, self.trusts_anyone) {
            (false, _) => access,
            (true, false) => access.with_trust(&key),
            (true, true) => access.with_trust(Trust::Anyone),
        };
        let mut content = Vec::new();
        SealedReader::open(file, &access, &SealedLimits::default())
            .and_then(|reader| reader.verify_all().and_then(|()| reader.restore(&mut content)))
            .map_err(|error| error.code())?;
        Ok(content)
    }

    fn profile(self) -> Profile {
        let file = self.file(GOOD, &people(), 0);
        Profile {
            name: self.name,
            parts: parts(&file),
            unclaimed: &[],
            without_effect: &[OTHER_SLOT],
            open: Box::new(move |file: &[u8]| self.open(file)),
            cut: beginning,
            reseal: |file| reseal(file),
            effort: self.effort,
            file,
        }
    }
}

/// What a reader accepts at least.
fn cheapest() -> Argon2Cost {
    let cost = Argon2Cost::new(8 << 10, 1, 1, &Argon2Limits::default());
    cost.unwrap_or_else(|error| panic!("{error}"))
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

/// Makes the checksums of the key slots right.
fn reseal(file: &mut [u8]) {
    if file.len() < 208 {
        return;
    }
    for label in ["key slot in use", OTHER_SLOT] {
        let Some(slot) = file.get_mut(place(file, label)) else { continue };
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
    let exchanged = each(&|make| {
        let mut file = make.file(LONG, &people, 0);
        let payload = place(&file, "payload");
        let begin = payload.start + if make.lock == Lock::None { 0 } else { 56 };
        let (first, second) = file[begin..begin + 2 * CHUNK].split_at_mut(CHUNK);
        first.swap_with_slice(second);
        Some(file)
    });
    let without_chunk = each(&|make| {
        let mut file = make.file(LONG, &people, 0);
        let payload = place(&file, "payload");
        file.drain(payload.end - CHUNK..payload.end);
        let len = (payload.len() - CHUNK) as u64;
        file[32..40].copy_from_slice(&len.to_le_bytes());
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
        ("two chunks exchanged", exchanged),
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
                    "the same, recipients bound",
                    "for a recipient, signed, by anyone",
                ],
            ),
        ],
    }
}
