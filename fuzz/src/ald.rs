//! Datasets of alimentar made again out of the parts of one: in another layout, compressed, encrypted, signed, with every
//! length and checksum right, as alimentar would.

use std::io::Write as _;

use apr_crypto::{EphemeralPublic, RecipientSecret, SigningKey};
use apr_table::ald::MAGIC;

use crate::sealed::Counter;

/// The recipient of every dataset: that of the test vectors.
#[must_use]
pub fn recipient() -> RecipientSecret {
    RecipientSecret::from_bytes(&[7; 32])
}

/// The signer of every dataset: that of the test vectors.
#[must_use]
pub fn signer() -> SigningKey {
    SigningKey::from_seed(&[9; 32])
}

/// A dataset with the checksum that it should have.
#[must_use]
pub fn with_checksum(file: &[u8]) -> Option<Vec<u8>> {
    let (content, _) = file.split_last_chunk::<4>()?;
    Some([content, &crc32fast::hash(content).to_le_bytes()].concat())
}

/// Parts of a dataset of one payload that is neither compressed nor encrypted.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    header: &'a [u8; 32],
    metadata: &'a [u8],
    schema: &'a [u8],
    payload: &'a [u8],
}

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// As it is.
    Plain,
    /// A frame of zstd.
    Zstd,
    /// A frame of LZ4, or a block where the dataset is in chunks.
    Lz4,
}

impl Stored {
    /// The number in the header.
    const fn number(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Zstd => 1,
            Self::Lz4 => 3,
        }
    }
}

impl<'a> Parts<'a> {
    /// Those of a file, whatever its flags and its checksum are.
    #[must_use]
    pub fn of(file: &'a [u8]) -> Option<Self> {
        let (header, rest) = file.split_first_chunk::<32>()?;
        let len =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (metadata, rest) = rest.split_at_checked(len(8) as usize)?;
        let (schema, rest) = rest.split_at_checked(len(20) as usize >> 16)?;
        let payload = rest.get(..len(12) as usize)?;
        Some(Self { header, metadata, schema, payload })
    }

    /// Rows, as declared.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.header.last_chunk().map_or(0, |n_rows| u64::from_le_bytes(*n_rows))
    }

    fn compressed(&self, stored: Stored, in_chunks: bool) -> Option<Vec<u8>> {
        match stored {
            Stored::Plain => Some(self.payload.to_vec()),
            Stored::Zstd => zstd::encode_all(self.payload, 1).ok(),
            Stored::Lz4 if in_chunks => Some(lz4_flex::block::compress_prepend_size(self.payload)),
            Stored::Lz4 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(self.payload).ok()?;
                encoder.finish().ok()
            }
        }
    }

    /// As one payload, encrypted to the recipient and signed if that is asked for.
    #[must_use]
    pub fn single(&self, stored: Stored, is_encrypted: bool, is_signed: bool) -> Option<Vec<u8>> {
        let mut payload = self.compressed(stored, false)?;
        let mut key_block = Vec::new();
        if is_encrypted {
            let ephemeral = RecipientSecret::from_bytes(&[3; 32]).public();
            let key = recipient().agree_ald(&EphemeralPublic::from_file(*ephemeral.as_bytes()).ok()?).ok()?;
            let (nonce, tag) = key.seal_in_place(&mut Counter(1), &[], &mut payload).ok()?;
            payload.extend_from_slice(&tag.to_bytes());
            key_block = [&[1][..], ephemeral.as_bytes(), &nonce.to_bytes()].concat();
        }
        let mut header = *self.header;
        header[..5].copy_from_slice(&[MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3], 1]);
        header[6..8].copy_from_slice(&[1, 0]);
        header[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[16..20].copy_from_slice(&(self.payload.len() as u32).to_le_bytes());
        header[20] = stored.number();
        header[21] = u8::from(is_encrypted) | u8::from(is_signed) << 1;
        let mut file = [&header, self.metadata, self.schema, &key_block, &payload].concat();
        if is_signed {
            let signature = signer().sign(&file);
            file.extend_from_slice(&signature.to_bytes());
            file.extend_from_slice(signer().verifying_key().as_bytes());
        }
        let sum = crc32fast::hash(&file);
        file.extend_from_slice(&sum.to_le_bytes());
        Some(file)
    }

    /// In one chunk.
    #[must_use]
    pub fn streaming(&self, stored: Stored) -> Option<Vec<u8>> {
        let payload = self.compressed(stored, true)?;
        let n_rows = self.n_rows();
        let number = |number: u64| [&[0xcf][..], &number.to_be_bytes()].concat();
        let lens = [number(payload.len() as u64), number(self.payload.len() as u64)].concat();
        let index = [&[0x92, 0x91, 0x95, 0][..], &number(n_rows), &[0], &lens, &number(n_rows)].concat();
        let header = [
            MAGIC.as_slice(),
            &[1, 2, 4, stored.number(), 1, 0, 0, 0],
            &(self.metadata.len() as u32).to_le_bytes(),
            &(self.schema.len() as u32).to_le_bytes(),
            &(index.len() as u32).to_le_bytes(),
            &(payload.len() as u64).to_le_bytes(),
        ]
        .concat();
        Some([&header, self.metadata, self.schema, &index, &payload].concat())
    }
}

#[cfg(test)]
mod tests {
    use apr_crypto::Access;
    use apr_table::Table;
    use apr_table::ald::Ald;

    use super::*;

    #[test]
    fn a_dataset_made_again_has_its_rows() {
        let file = include_bytes!("../../crates/apr-table/tests/data/ald/none.ald");
        let parts = Parts::of(file).unwrap();
        let (secret, signer) = (recipient(), signer().verifying_key());
        let n_rows = |file: Option<Vec<u8>>, access: &Access<'_>| {
            let (mut table, _) = Table::ald(Ald::open(file.unwrap()).unwrap(), access).unwrap();
            let batch = table.next_batch().unwrap().unwrap();
            assert!(table.next_batch().unwrap().is_none());
            batch.n_rows()
        };
        for stored in [Stored::Plain, Stored::Zstd, Stored::Lz4] {
            let none = Access::default();
            assert_eq!(n_rows(parts.single(stored, false, false), &none), 4);
            assert_eq!(n_rows(parts.streaming(stored), &none), 4);
            let both = Access::default().with_recipient(&secret).with_trust(&signer);
            assert_eq!(n_rows(parts.single(stored, true, true), &both), 4);
        }
    }
}
