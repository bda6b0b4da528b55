//! Sealed files as the fuzzer decides: directories, metadata, key slots and headers out of its bytes, with every code,
//! checksum, hash and signature around them made right, as the keys' owner would.

use apr_crypto::{
    Error, FileKey, LeafLen, RecipientSecret, Rng, SigningKey, TreeAlgorithm, TreeHasher, dsse_pae,
};
use apr_sealed::MAGIC;
use sha2::{Digest as _, Sha256};

use crate::Choices;

/// The recipient of every file.
pub fn recipient() -> RecipientSecret {
    RecipientSecret::from_bytes(&[7; 32])
}

/// The signer of every file.
pub fn signer() -> SigningKey {
    SigningKey::from_seed(&[5; 32])
}

/// The same bytes each time: a run must repeat.
pub struct Counter(pub u8);

impl Rng for Counter {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), Error> {
        out.fill(self.0);
        self.0 = self.0.wrapping_add(1);
        Ok(())
    }
}

/// A file, and whether it is as its maker would have made it.
#[derive(Debug)]
pub struct Made {
    /// Its bytes.
    pub file: Vec<u8>,
    /// Whether a byte was changed when everything was finished.
    pub is_changed: bool,
}

/// A file made of these bytes.
pub fn make(input: &[u8]) -> Made {
    let (decisions, content) = input.split_at(input.len().min(24));
    let choices = &mut Choices::new(decisions);
    let (is_signed, is_encrypted) = choices.pick([(true, true), (false, true), (true, false)]);
    let is_bound = is_signed && is_encrypted && choices.rarely(4);
    let (public, content) = content.split_at(choices.below(64).min(content.len()));
    let (stanzas, content) = content.split_at(if choices.rarely(4) { content.len().min(40) } else { 0 });
    let public = if choices.rarely(2) { public } else { b"\x01a\x01b" };
    let directory = directory(choices, content);
    let plain: Vec<u8> = (0..payload_len(choices, &directory)).map(|idx| idx as u8).collect();

    let (leaf, leaf_len) = (10 + choices.below(3) as u8, LeafLen::new(1 << 14).unwrap_or(LeafLen::KIB_16));
    let leaf_len = LeafLen::new(1 << leaf).unwrap_or(leaf_len);
    let stored_len = |len: usize| if is_encrypted { 56 + len + 16 * (len / 16_384 + 1) } else { len };
    let slot_len: u32 = if is_encrypted { 512 } else { 0 };
    // Trees of more than 1,024 leaves have one of their levels in the header.
    let has_upper = is_signed && stored_len(plain.len()).div_ceil(1 << leaf) > 1024;
    let mut fixed = [
        MAGIC.as_slice(),
        &1_u16.to_le_bytes(),
        &u16::from(is_encrypted).to_le_bytes(),
        &(u32::from(is_signed) | u32::from(is_bound) << 1 | u32::from(has_upper) << 2).to_le_bytes(),
        &[9; 16],
        &(stored_len(plain.len()) as u64).to_le_bytes(),
        &(stored_len(directory.len()) as u64).to_le_bytes(),
        &(public.len() as u32).to_le_bytes(),
        &slot_len.to_le_bytes(),
        &if is_signed { [1, leaf] } else { [0, 0] },
        &[0; 6],
    ]
    .concat();
    if choices.rarely(8) {
        // A header that says something else, with everything bound to it.
        let at = choices.below(64);
        fixed[at] = choices.byte();
    }
    let key = *signer().verifying_key().as_bytes();
    let key = if is_signed { key } else { [0; 32] };
    let context = |purpose: &str| -> [u8; 32] {
        Sha256::digest([b"apr-sealed-v1 ", purpose.as_bytes(), &[0], &fixed, &key, public].concat()).into()
    };
    let file_key = FileKey::from_bytes(&[3; 32]);
    let sealed = |purpose: &str, plain: &[u8]| match is_encrypted {
        true => file_key.seal_chunked(&mut Counter(1), &context(purpose), plain).expect("short"),
        false => plain.to_vec(),
    };
    let (stored_directory, payload) = (sealed("directory", &directory), sealed("payload", &plain));

    let mut block = [0; 144];
    let (mut outboard, mut upper) = (Vec::new(), Vec::new());
    if is_signed {
        let mut hasher = TreeHasher::new(TreeAlgorithm::Blake3, leaf_len).with_upper(payload.len() as u64);
        hasher.update(&payload);
        let root;
        (root, outboard, upper) = hasher.finish_upper();
        block[..42].copy_from_slice(&root.to_bytes());
        block[48..80].copy_from_slice(&key);
        let hashes = [Sha256::digest(public), Sha256::digest(&stored_directory)].concat();
        let message = [&fixed, hashes.as_slice(), &root.to_bytes(), &key].concat();
        let signature = signer().sign(&dsse_pae("application/vnd.apr.sealed.v1", &message));
        block[80..].copy_from_slice(&signature.to_bytes());
    }

    let mut file = [&fixed, block.as_slice(), public].concat();
    let mut unused = 0..0;
    if is_encrypted {
        file.resize(file.len().next_multiple_of(512), 0);
        let slot = slot(&file_key, &context("stanza"), stanzas, is_bound, [&fixed, &block, public]);
        let first = choices.rarely(2);
        let empty = vec![0; 512];
        let begin = file.len() + if first { 512 } else { 0 };
        unused = begin..begin + 512;
        for part in if first { [&slot, &empty] } else { [&empty, &slot] } {
            file.extend_from_slice(part);
        }
    }
    file.extend_from_slice(&stored_directory);
    file.extend_from_slice(&upper);
    file.resize(file.len().next_multiple_of(64), 0);
    file.extend_from_slice(&payload);
    file.extend_from_slice(&outboard);

    let mut is_changed = false;
    if choices.rarely(3) {
        let at = usize::from(choices.byte()) << 8 | usize::from(choices.byte());
        let (at, bits) = (at % file.len(), choices.byte());
        file[at] ^= bits;
        is_changed = bits != 0 && !unused.contains(&at);
    }
    Made { file, is_changed }
}

/// The fuzzer's own directory, or a valid one of a few tensors.
fn directory(choices: &mut Choices<'_>, content: &[u8]) -> Vec<u8> {
    if choices.rarely(3) {
        return content.to_vec();
    }
    let mut out = vec![0];
    for idx in 0..choices.below(5) as u8 {
        let len = choices.pick([0, 1, 63, 64, 65, 127]);
        match choices.rarely(3) {
            true => out.extend_from_slice(&[0, len.max(1)]),
            false => out.extend_from_slice(&[1, 1, b'a' + idx, 2, b'U', b'8', 1, len, len]),
        }
    }
    if choices.rarely(6) {
        // 1 MiB and more, 7 bits at a time, between tensors.
        out.extend_from_slice(&[0, 0x80 | choices.byte(), 0x80, 0x40]);
    }
    out
}

/// The length that the parts of a valid directory have, mostly.
fn payload_len(choices: &mut Choices<'_>, directory: &[u8]) -> usize {
    let (mut rest, mut end) = (directory.get(1..).unwrap_or_default(), 0_usize);
    loop {
        let (skip, len) = match rest {
            [0, low, 0x80, 0x40, ..] => (4, 1 << 20 | usize::from(low & 0x7f)),
            [0, len, ..] => (2, usize::from(*len)),
            [1, 1, _, 2, _, _, 1, _, len, ..] => (9, usize::from(*len)),
            _ => break,
        };
        end = end.next_multiple_of(64) + len;
        rest = &rest[skip..];
    }
    if choices.rarely(8) { choices.below(256) * 300 } else { end }
}

fn slot(key: &FileKey, context: &[u8; 32], more: &[u8], is_bound: bool, around: [&[u8]; 3]) -> Vec<u8> {
    let stanza = key.wrap_for(&mut Counter(40), &recipient().public(), context).expect("a sound key");
    let mut stanzas = [&1_u16.to_le_bytes(), &80_u16.to_le_bytes(), stanza.to_bytes().as_slice()].concat();
    let mut count = 1_u16;
    if let Some((kind, body)) = more.split_first() {
        stanzas.extend_from_slice(&u16::from(*kind).to_le_bytes());
        stanzas.extend_from_slice(&(body.len() as u16).to_le_bytes());
        stanzas.extend_from_slice(body);
        count = 2;
    }
    let head = [
        7_u64.to_le_bytes().as_slice(),
        &count.to_le_bytes(),
        &[0; 2],
        &(stanzas.len() as u32).to_le_bytes(),
    ]
    .concat();
    stanzas.resize(512 - 80 - 64, 0);
    let message = [context.as_slice(), &head, &stanzas].concat();
    let signature = signer().sign(&dsse_pae("application/vnd.apr.sealed-recipients.v1", &message)).to_bytes();
    let signature = if is_bound { signature } else { [0; 64] };
    let mut slot = [head.as_slice(), &signature, &stanzas].concat();
    let [fixed, block, public] = around;
    let code = key.mac_key("apr-sealed-v1 header").tag(&[fixed, block, public, &slot]);
    slot.extend_from_slice(&code);
    let checksum = Sha256::digest(&slot);
    slot.extend_from_slice(&checksum);
    slot
}
