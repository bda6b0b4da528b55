//! Files of version 1.

use apr_container::v1::Container;
use apr_container::{
    Expect, ModelType, Protection, ReadOptions, SaveOptions, load_from_bytes_with, to_vec_with_rng,
};
use apr_crypto::{Access, SigningKey, Trust, VerifyingKey};
use apr_models::{AnyModel, LinearRegression, Vector};

use super::people::{Lock, People, people};
use super::{Effort, Family, Places, Profile, Repeatable, Verdict, beginning};
use crate::apr::seal::seal;

const HEADER_LEN: usize = 32;
const SIGNATURE_LEN: usize = 96;
const FLAGS_AT: usize = 21;
const SIGNED: u8 = 2;

/// How files of a profile are made.
#[derive(Clone, Copy, Debug)]
struct Make {
    name: &'static str,
    lock: Lock,
    is_signed: bool,
    /// The reader accepts any signer.
    trusts_anyone: bool,
    unclaimed: &'static [&'static str],
}

const MAKES: [Make; 7] = [
    Make { unclaimed: &["header", "metadata", "payload"], ..make("plain", Lock::None, false) },
    make("signed", Lock::None, true),
    Make { trusts_anyone: true, ..make("signed, by anyone", Lock::None, true) },
    make("for a recipient", Lock::Recipient, false),
    make("under a password", Lock::Password, false),
    make("for a recipient, signed", Lock::Recipient, true),
    Make { trusts_anyone: true, ..make("for a recipient, signed, by anyone", Lock::Recipient, true) },
];

const fn make(name: &'static str, lock: Lock, is_signed: bool) -> Make {
    Make { name, lock, is_signed, trusts_anyone: false, unclaimed: &[] }
}

/// A model, which one is in its name and its coefficient.
#[derive(Clone, Copy)]
struct Model {
    name: &'static str,
    coefficient: f32,
}

const GOOD: Model = Model { name: "churn 12", coefficient: 0.5 };
const OTHER: Model = Model { name: "churn 13", coefficient: 0.25 };

impl Make {
    fn file(self, model: Model, signer: &SigningKey, seed: u32) -> Vec<u8> {
        let People { reader, password, .. } = people();
        let public = reader.public();
        let protection = match self.lock {
            Lock::None => Protection::default(),
            Lock::Password => Protection::default().with_password(&password),
            Lock::Recipient => Protection::default().for_recipient(&public),
        };
        let protection = if self.is_signed { protection.signed_by(signer) } else { protection };
        let options = SaveOptions::default().with_created_at(1_795_241_427).with_name(model.name);
        let weights = Vector::from_vec(vec![model.coefficient; 3]);
        let regression = LinearRegression::from_parts(weights, 1.0);
        let made = regression.map(|regression| {
            let kind = ModelType::LinearRegression;
            let options = options.with_protection(protection);
            to_vec_with_rng(&regression, kind, &options, &mut Repeatable::new(seed))
        });
        match made {
            Ok(Ok(file)) => file,
            other => panic!("{}: {other:?}", self.name),
        }
    }

    fn open(self, file: &[u8]) -> Verdict {
        let People { maker, reader, password, .. } = people();
        let access = match self.lock {
            Lock::None => Access::default(),
            Lock::Password => Access::default().with_password(&password),
            Lock::Recipient => Access::default().with_recipient(&reader),
        };
        let key: VerifyingKey = maker.verifying_key();
        let access = match (self.is_signed, self.trusts_anyone) {
            (false, _) => access,
            (true, false) => access.with_trust(&key),
            (true, true) => access.with_trust(Trust::Anyone),
        };
        let expect = Expect::from(ModelType::LinearRegression);
        match load_from_bytes_with::<AnyModel>(file, expect, access) {
            // Metadata and model: every change of what is signed or bound counts as another content.
            Ok(_) => Ok(file.to_vec()),
            Err(error) => Err(error.code()),
        }
    }

    fn profile(self) -> Profile {
        let file = self.file(GOOD, &people().maker, 0);
        let parts = self.parts(&file);
        let (name, unclaimed) = (self.name, self.unclaimed);
        Profile {
            name,
            parts,
            unclaimed,
            without_effect: &[],
            open: Box::new(move |file| self.open(file)),
            cut: beginning,
            reseal: |file| seal(file),
            effort: if self.lock == Lock::Password { Effort::OneBit } else { Effort::EveryBit },
            file,
        }
    }

    fn parts(self, file: &[u8]) -> Places {
        let metadata_end = HEADER_LEN + metadata_len(file);
        let key_end = metadata_end
            + match self.lock {
                Lock::None => 0,
                Lock::Password => 16,
                Lock::Recipient => 40,
            };
        let end = file.len() - 4;
        let payload_end = if self.is_signed { end - SIGNATURE_LEN } else { end };
        vec![
            ("header", 0..HEADER_LEN),
            ("metadata", HEADER_LEN..metadata_end),
            ("salt, or ephemeral key and recipient", metadata_end..key_end),
            ("payload", key_end..payload_end),
            ("signature", payload_end..end.min(payload_end + 64)),
            ("signer's key", end.min(payload_end + 64)..end),
            ("checksum", end..file.len()),
        ]
    }
}

fn metadata_len(file: &[u8]) -> usize {
    Container::from_bytes_with(file, &ReadOptions::COMPAT).map_or(0, |found| found.metadata_bytes().len())
}

fn sealed(mut file: Vec<u8>) -> Vec<u8> {
    seal(&mut file);
    file
}

/// The profiles of version 1, and what an attacker without their secrets can try.
#[must_use]
pub fn v1() -> Family {
    let People { maker, attacker, .. } = people();
    let each = |attack: &dyn Fn(Make, Vec<u8>, Vec<u8>) -> Option<Vec<u8>>| {
        let files = |make: Make| (make.file(GOOD, &maker, 0), make.file(OTHER, &maker, 1));
        MAKES
            .iter()
            .map(|make| {
                let (good, other) = files(*make);
                attack(*make, good, other)
            })
            .collect::<Vec<_>>()
    };
    // Both files have parts of the same lengths.
    let from_other = |label: &'static str| {
        each(&move |make, good, other| {
            let place = make.parts(&good).into_iter().find(|(name, _)| *name == label)?.1;
            (!place.is_empty()).then(|| {
                let mut file = good;
                file[place.clone()].copy_from_slice(&other[place]);
                sealed(file)
            })
        })
    };
    let without_signature = |file: &[u8]| {
        let mut body = file[..file.len() - 4 - SIGNATURE_LEN].to_vec();
        body[FLAGS_AT] &= !SIGNED;
        body
    };
    let attacks = vec![
        ("metadata of another file by the same author", from_other("metadata")),
        ("payload of another file by the same author", from_other("payload")),
        ("signature of another file by the same author", from_other("signature")),
        (
            "signature removed",
            each(&|make, good, _| {
                make.is_signed.then(|| sealed([without_signature(&good), vec![0; 4]].concat()))
            }),
        ),
        (
            "signature replaced by the attacker's",
            each(&|make, good, _| {
                make.is_signed.then(|| {
                    let mut body = without_signature(&good);
                    body[FLAGS_AT] |= SIGNED;
                    let signature = attacker.sign(&body);
                    let key = attacker.verifying_key();
                    sealed([&body, &signature.to_bytes()[..], key.as_bytes(), &[0; 4]].concat())
                })
            }),
        ),
        (
            "encryption removed, payload by the attacker",
            each(&|make, _, _| {
                let bare = Make { lock: Lock::None, ..make };
                (make.lock != Lock::None).then(|| bare.file(OTHER, &attacker, 2))
            }),
        ),
        (
            "written and signed by the attacker",
            each(&|make, _, _| (make.lock != Lock::Password).then(|| make.file(OTHER, &attacker, 3))),
        ),
        ("replaced by another file by the same author", each(&|_, _, other| Some(other))),
    ];
    Family {
        profiles: MAKES.iter().map(|make| make.profile()).collect(),
        attacks,
        limits: &[
            ("metadata of another file by the same author", &["plain"]),
            ("payload of another file by the same author", &["plain"]),
            ("signature replaced by the attacker's", &["signed, by anyone"]),
            (
                "written and signed by the attacker",
                &["plain", "signed, by anyone", "for a recipient", "for a recipient, signed, by anyone"],
            ),
            (
                "replaced by another file by the same author",
                &[
                    "plain",
                    "signed",
                    "signed, by anyone",
                    "for a recipient",
                    "under a password",
                    "for a recipient, signed",
                    "for a recipient, signed, by anyone",
                ],
            ),
        ],
    }
}
