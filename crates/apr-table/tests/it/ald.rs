//! Datasets of alimentar: `tests/data/README.md`.

use apr_crypto::{Access, Password, RecipientSecret, SigningKey, Trust, TrustedKeys, VerifyingKey};
use apr_table::ald::{Ald, Checksum, Compression, DatasetType, Encryption, Layout, Verified};
use apr_table::{Accepted, Error, Table};

use crate::bytes;

const FILES: [&str; 12] = [
    "all.ald",
    "lz4.ald",
    "metadata.ald",
    "none.ald",
    "password.ald",
    "recipient.ald",
    "signed.ald",
    "streaming-lz4.ald",
    "streaming-none.ald",
    "streaming-zstd3.ald",
    "zstd19.ald",
    "zstd3.ald",
];

/// Names and cells of the columns; `None` is null.
type Cells = Vec<(String, Vec<Option<String>>)>;

struct Keys {
    password: Password,
    secret: RecipientSecret,
    signer: VerifyingKey,
}

impl Keys {
    fn new() -> Self {
        Self {
            password: Password::from("correct horse"),
            secret: RecipientSecret::from_bytes(&[7; 32]),
            signer: SigningKey::from_seed(&[9; 32]).verifying_key(),
        }
    }

    /// What the dataset asks for.
    fn access(&self, ald: &Ald) -> Access<'_> {
        let access = match ald.encryption() {
            Some(Encryption::Password) => Access::default().with_password(&self.password),
            Some(Encryption::Recipient) => Access::default().with_recipient(&self.secret),
            None => Access::default(),
        };
        if ald.is_signed() { access.with_trust(&self.signer) } else { access }
    }
}

fn open(file: &[u8]) -> Result<Ald, Error> {
    Ald::open(file.to_vec())
}

fn read(table: &mut Table<'_>) -> Result<Cells, Error> {
    let mut cells: Cells = table.names().iter().map(|name| (name.clone(), Vec::new())).collect();
    while let Some(batch) = table.next_batch()? {
        for (column, (_, cells)) in cells.iter_mut().enumerate() {
            let text = |row| batch.text(row, column).unwrap().map(String::from);
            cells.extend((0..batch.n_rows()).map(text));
            let _ = batch.append_rows::<f64>(&[column], Accepted::FINITE, &mut Vec::new());
        }
    }
    Ok(cells)
}

/// All cells, with the keys that a file asks for.
fn read_all(file: &[u8]) -> Result<(Cells, Verified), Error> {
    let keys = Keys::new();
    let ald = open(file)?;
    let access = keys.access(&ald);
    let (mut table, verified) = Table::ald(ald, &access)?;
    Ok((read(&mut table)?, verified))
}

fn code(file: &[u8]) -> &'static str {
    read_all(file).map_or_else(|error| error.code(), |_| "accepted")
}

/// The file with these bytes at an offset, and a checksum that is right.
fn changed(name: &str, at: usize, new: &[u8]) -> Vec<u8> {
    let mut file = bytes(&format!("ald/{name}"));
    file[at..at + new.len()].copy_from_slice(new);
    sealed(file)
}

fn sealed(mut file: Vec<u8>) -> Vec<u8> {
    let end = file.len() - 4;
    let sum = crc32fast::hash(&file[..end]);
    file[end..].copy_from_slice(&sum.to_le_bytes());
    file
}

#[test]
fn every_dataset_has_the_cells_that_were_written() {
    let expected = serde_json::from_slice::<serde_json::Value>(&bytes("ald/expected.json")).unwrap();
    for name in FILES {
        let (cells, verified) = read_all(&bytes(&format!("ald/{name}"))).unwrap();
        let is_streaming = name.starts_with("streaming");
        assert_eq!(verified.checksum, (!is_streaming).then_some(Checksum::Alimentar), "{name}");
        assert_eq!(verified.signer.is_some(), ["all.ald", "signed.ald"].contains(&name), "{name}");
        let columns = expected["columns"].as_object().unwrap();
        assert_eq!(cells.len(), columns.len(), "{name}");
        for (column, found) in cells {
            let expected = columns[&column].as_array().unwrap();
            assert!(found.len() >= 4 && found.len() % 4 == 0, "{name} {column} {}", found.len());
            for (found, expected) in found.iter().zip(expected.iter().cycle()) {
                let same = match (found, expected) {
                    (None, expected) => expected.is_null(),
                    (Some(found), serde_json::Value::String(text)) => {
                        found == text || found.parse::<f64>().is_ok_and(|found| Ok(found) == text.parse())
                    }
                    (Some(found), serde_json::Value::Bool(value)) => *found == value.to_string(),
                    (Some(found), number) => {
                        let number = number.as_f64().unwrap();
                        found
                            .parse::<f64>()
                            .is_ok_and(|found| found == number || found as f32 == number as f32)
                    }
                };
                assert!(same, "{name} {column}: {found:?} {expected}");
            }
        }
    }
}

#[test]
fn what_is_in_the_clear_is_described() {
    let open = |name: &str| open(&bytes(&format!("ald/{name}"))).unwrap();
    let all = open("all.ald");
    assert_eq!((all.layout(), all.version(), all.dataset_type()), (Layout::Single, (1, 2), DatasetType(1)));
    assert_eq!(all.dataset_type().name(), Some("tabular"));
    assert_eq!((all.compression(), all.n_rows_declared(), all.is_signed()), (Compression::Zstd(3), 4, true));
    assert_eq!(all.notes().len(), 2, "{:?}", all.notes());
    let license = all.license().unwrap();
    assert_eq!((license.id, license.licensee_sha256), ([1; 16], [2; 32]));
    assert_eq!((license.expires_at, license.flags, license.seats, license.queries), (4_102_444_800, 3, 3, 0));
    assert_eq!(license.terms, "terms");
    assert!(open("metadata.ald").metadata().name.is_some());
    assert_eq!(open("password.ald").encryption(), Some(Encryption::Password));
    assert_eq!(open("recipient.ald").encryption(), Some(Encryption::Recipient));
    let streaming = open("streaming-lz4.ald");
    assert_eq!((streaming.layout(), streaming.compression()), (Layout::Streaming, Compression::Lz4));
    assert_eq!((streaming.n_rows_declared(), streaming.n_chunks()), (4, 2));
}

#[test]
fn keys_and_signatures_are_demanded_and_compared() {
    let keys = Keys::new();
    let (other, stranger) = (Password::from("wrong"), RecipientSecret::from_bytes(&[8; 32]));
    let other_signer = SigningKey::from_seed(&[8; 32]).verifying_key();
    let mut trusted = TrustedKeys::new();
    trusted.add("maker", keys.signer).unwrap();
    let none = Access::default;
    for (name, access, expected) in [
        ("password.ald", none(), "tb-ald-encrypted"),
        ("password.ald", none().with_password(&other), "tb-ald-decryption"),
        ("password.ald", none().with_recipient(&keys.secret), "tb-ald-decryption"),
        ("password.ald", none().with_password(&keys.password), "read"),
        ("recipient.ald", none().with_recipient(&stranger), "tb-ald-decryption"),
        ("recipient.ald", none().with_recipient(&keys.secret), "read"),
        ("zstd3.ald", none().with_password(&keys.password), "tb-ald-not-encrypted"),
        ("streaming-none.ald", none().with_password(&keys.password), "tb-ald-not-encrypted"),
        ("signed.ald", none(), "tb-ald-signed"),
        ("signed.ald", none().with_trust(&other_signer), "tb-ald-untrusted-signer"),
        ("signed.ald", none().with_trust(&trusted), "read"),
        ("signed.ald", none().with_trust(Trust::Anyone), "read"),
        ("zstd3.ald", none().with_trust(&keys.signer), "tb-ald-not-signed"),
        ("streaming-zstd3.ald", none().with_trust(Trust::Anyone), "tb-ald-not-signed"),
    ] {
        let read = Table::ald(open(&bytes(&format!("ald/{name}"))).unwrap(), &access);
        match read {
            Ok((_, verified)) => {
                assert_eq!(expected, "read", "{name}");
                if let Some(signer) = verified.signer {
                    assert_eq!((signer.key, signer.name.is_some()), (keys.signer, signer.is_trusted));
                }
            }
            Err(error) => assert_eq!(error.code(), expected, "{name}: {error}"),
        }
    }
    // Of a signed file, every byte before the signature is covered, and the signature itself; not the checksum.
    let signed = bytes("ald/signed.ald");
    for at in (32..signed.len()).take(signed.len() - 4 - 32 - 32) {
        let file = changed("signed.ald", at, &[signed[at] ^ 1]);
        let found = code(&file);
        assert!(["tb-ald-signature", "tb-ald"].contains(&found), "{at} {found}");
    }
    // A tag covers what is encrypted.
    let length = bytes("ald/recipient.ald").len();
    for at in [length - 5, length - 30, 32 + 8 + 0x188 + 1 + 32] {
        let byte = bytes("ald/recipient.ald")[at];
        assert_eq!(code(&changed("recipient.ald", at, &[byte ^ 1])), "tb-ald-decryption", "{at}");
    }
    // A public key of small order.
    assert_eq!(code(&changed("recipient.ald", 32 + 8 + 0x188 + 1, &[0; 32])), "tb-ald-decryption");
}

#[test]
fn any_change_of_a_byte_is_refused_by_the_checksum() {
    for name in ["none.ald", "zstd3.ald", "lz4.ald", "metadata.ald"] {
        let file = bytes(&format!("ald/{name}"));
        for at in 0..file.len() {
            let mut file = file.clone();
            file[at] ^= 0x10;
            assert_ne!(code(&file), "accepted", "{name} {at}");
        }
        for len in 0..file.len() {
            assert_ne!(code(&file[..len]), "accepted", "{name} {len}");
        }
    }
    for name in ["streaming-none.ald", "streaming-zstd3.ald", "streaming-lz4.ald"] {
        let file = bytes(&format!("ald/{name}"));
        for len in 0..file.len() {
            assert_ne!(code(&file[..len]), "accepted", "{name} {len}");
        }
        // There is no checksum: many changes pass, and none does harm.
        for at in 0..file.len() {
            for bit in [0x01, 0x80] {
                let mut file = file.clone();
                file[at] ^= bit;
                code(&file);
            }
        }
    }
}

#[test]
fn what_a_header_declares_is_compared_with_the_file() {
    let most = u32::MAX.to_le_bytes();
    let mut failures = Vec::new();
    for (at, new, expected) in [
        (0, &b"ALDX"[..], "tb-ald"),
        (4, &[2], "tb-ald-version"),
        (4, &[0], "accepted"),
        (6, &[0x77, 0], "tb-ald-type"),
        (6, &[0x05, 0x40], "tb-ald-type"),
        (8, &most, "tb-truncated"),
        (8, &[9], "tb-truncated"),
        (12, &most, "tb-truncated"),
        (12, &[0; 4], "tb-ald"),
        (16, &most, "tb-limit"),
        (16, &[1, 0, 0, 0], "tb-truncated"),
        (16, &[0xc9, 5], "tb-ald"),
        (20, &[4], "tb-ald-compression"),
        (20, &[3], "tb-ald"),
        (20, &[2], "accepted"),
        (21, &[0x04], "tb-ald"),
        (21, &[0xe0], "accepted"),
        (21, &[0x02], "tb-truncated"),
        (22, &[0xff, 0xff], "tb-truncated"),
        (22, &[0x80, 0x01], "tb-ald"),
        (24, &[99], "tb-ald-rows"),
        (24, &[3], "tb-ald-rows"),
        (31, &[0x80], "tb-ald-rows"),
    ] {
        if code(&changed("zstd3.ald", at, new)) != expected {
            failures.push((at, new, code(&changed("zstd3.ald", at, new)), expected));
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(open(&changed("zstd3.ald", 21, &[0xe0])).unwrap().notes().len(), 1);
    let (_, verified) = read_all(&changed("zstd3.ald", 24, &[4])).unwrap();
    assert_eq!(verified.checksum, Some(Checksum::Crc32));
    // The schema before the payload has another column than the payload.
    let file = bytes("ald/none.ald");
    let at = file.windows(5).position(|window| window == b"label").unwrap();
    assert_eq!(code(&changed("none.ald", at, b"lapel")), "tb-ald-schema");
    // The terms of a licence.
    let all = bytes("ald/all.ald");
    let terms = all.len() - 4 - 5 - 4;
    assert_eq!(open(&changed("all.ald", terms, &[6])).unwrap_err().code(), "tb-ald");
    assert_eq!(open(&changed("all.ald", terms, &[4])).unwrap().license().unwrap().terms, "term");
}

#[test]
fn what_a_streaming_header_declares_is_compared_with_the_file() {
    for (name, at, new, expected) in [
        ("streaming-none.ald", 7, &[9][..], "tb-ald-compression"),
        // Taken for a file of one payload.
        ("streaming-none.ald", 12, &[0xff; 4], "tb-ald-compression"),
        ("streaming-zstd3.ald", 12, &[0xff; 4], "tb-truncated"),
        ("streaming-zstd3.ald", 20, &[0x18], "tb-ald"),
        ("streaming-zstd3.ald", 24, &[0xff; 8], "tb-truncated"),
        ("streaming-zstd3.ald", 10, &[1], "accepted"),
    ] {
        let mut file = bytes(&format!("ald/{name}"));
        file[at..at + new.len()].copy_from_slice(new);
        assert_eq!(code(&file), expected, "{name} {at} {new:x?}");
    }
    // The index: 92 92 95 [first row, rows, offset, stored, uncompressed] 95 ... total.
    let file = bytes("ald/streaming-zstd3.ald");
    let index = 32 + 8 + 0x188;
    for (at, new) in [(0, 0x93), (1, 0x93), (1, 0x91), (2, 0x94), (3, 1), (4, 4), (5, 1), (0x18, 9)] {
        let mut file = file.clone();
        file[index + at] = new;
        let found = code(&file);
        assert!(["tb-ald", "tb-ald-rows"].contains(&found), "{at} {found}");
    }
}

#[test]
fn small_files_do_not_become_large() {
    // Zeros that the header declares as they are.
    let file = bytes("ald/zstd3.ald");
    let begin = 32 + 8 + 0x188;
    let with_payload = |payload: &[u8], uncompressed: u32| {
        let mut file = file[..begin].to_vec();
        file[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        file[16..20].copy_from_slice(&uncompressed.to_le_bytes());
        file.extend_from_slice(payload);
        file.extend_from_slice(&[0; 4]);
        sealed(file)
    };
    let bomb = zstd::encode_all(&vec![0_u8; 256 << 20][..], 3).unwrap();
    assert!(bomb.len() < 20_000);
    assert_eq!(code(&with_payload(&bomb, 256 << 20)), "tb-limit");
    // A stream, and then more than it declares.
    let stream = zstd::decode_all(&file[begin..file.len() - 4]).unwrap();
    let mut longer = stream.clone();
    longer.extend([0; 100]);
    let longer = zstd::encode_all(&longer[..], 3).unwrap();
    assert_eq!(code(&with_payload(&longer, stream.len() as u32)), "tb-ald");
    assert_eq!(code(&with_payload(&longer, stream.len() as u32 + 100)), "tb-ald");
    assert_eq!(
        code(&with_payload(&zstd::encode_all(&stream[..], 3).unwrap(), stream.len() as u32)),
        "accepted"
    );
}
