//! The sealing engine: takes parts, produces bytes with their offsets.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use apr_crypto::{
    ChunkedEncryptor, ChunkedLayout, FileKey, MacKey, Rng, SigningKey, TreeAlgorithm, TreeHasher, TreeRoot,
};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, ErrorKind};
use crate::fields::put_texts;
use crate::fixed::{FIXED_LEN, Fixed, PART_ALIGN, PRELUDE_LEN, Places, SIGNER_LEN};
use crate::header::{signed_bytes, signer_block, stanza_context};
use crate::plan::Plan;
use crate::recipients::{RECIPIENTS, Recipients};
use crate::slot::{self, NewSlot, Record};
use crate::{SealOptions, directory};

/// Most that is taken, and about what is written, at once.
const PIECE: usize = 1 << 20;

/// What the message of the directory, and of the payload, is bound to beside the header.
pub(crate) const DIRECTORY: &str = "directory";
pub(crate) const PAYLOAD: &str = "payload";

/// Where sealed bytes go: each place once, but for the header, which comes last.
pub(crate) trait Out {
    fn put_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error>;
}

/// A file in memory, made as long as it will be beforehand.
impl Out for Vec<u8> {
    fn put_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        let place = begin.checked_add(bytes.len()).and_then(|end| self.get_mut(begin..end));
        place.ok_or(ErrorKind::OutOfMemory { bytes: offset })?.copy_from_slice(bytes);
        Ok(())
    }
}

/// The lengths of a sealed file, known before a byte of it is written.
///
/// ```
/// use apr_sealed::{Part, Plan, SealOptions, SealedLayout};
/// use apr_crypto::SigningKey;
///
/// let key = SigningKey::from_seed(&[1; 32]);
/// let plan = Plan::new([Part::raw(100)])?;
/// let layout = SealedLayout::new(&plan, &SealOptions::default().signed_by(&key))?;
/// // Signed only: the parts stand in the file as they are.
/// assert_eq!(layout.total_len(), layout.payload_offset() + 100 + 32);
/// # Ok::<(), apr_sealed::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedLayout {
    payload_offset: u64,
    total_len: u64,
}

impl SealedLayout {
    /// The layout of these parts, sealed with these options.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unprotected`] without recipients, password and signer; [`ErrorKind::InvalidValue`] for options that
    /// contradict each other; [`ErrorKind::Limit`] for an empty password or too many recipients; [`ErrorKind::SizeOverflow`].
    pub fn new(plan: &Plan, options: &SealOptions<'_>) -> Result<Self, Error> {
        let texts = Texts::new(plan, options);
        let (_, places) = fixed(plan, options, &texts, [0; 16])?;
        Ok(Self { payload_offset: places.payload.start, total_len: places.total_len() })
    }

    /// Where the payload begins.
    #[must_use]
    pub const fn payload_offset(&self) -> u64 {
        self.payload_offset
    }

    /// Bytes of the file.
    #[must_use]
    pub const fn total_len(&self) -> u64 {
        self.total_len
    }
}

/// Public metadata and directory in their bytes, the latter not encrypted yet.
struct Texts {
    public: Vec<u8>,
    directory: Vec<u8>,
}

impl Texts {
    fn new(plan: &Plan, options: &SealOptions<'_>) -> Self {
        let bytes = |texts: &BTreeMap<String, String>| {
            let mut bytes = Vec::new();
            put_texts(&mut bytes, texts);
            bytes
        };
        Self { public: bytes(&options.public), directory: directory::encode(plan, &options.private) }
    }
}

fn fixed(
    plan: &Plan,
    options: &SealOptions<'_>,
    texts: &Texts,
    file_id: [u8; 16],
) -> Result<(Fixed, Places), Error> {
    options.check()?;
    let suite = options.suite();
    let stored_len = |len: u64| match suite {
        crate::Suite::Plain => Ok(len),
        crate::Suite::Cobblestone256 => Ok::<_, Error>(ChunkedLayout::of_plaintext(len)?.sealed_len()),
    };
    let public_len = u32::try_from(texts.public.len());
    let fixed = Fixed {
        bytes: [0; FIXED_LEN],
        suite,
        is_signed: options.signer.is_some(),
        is_bound: options.is_bound,
        file_id,
        payload_len: stored_len(plan.payload_len())?,
        directory_len: stored_len(texts.directory.len() as u64)?,
        public_len: public_len.map_err(|_| ErrorKind::SizeOverflow)?,
        slot_len: options.slot_len()?,
        tree: options.signer.map(|_| (options.algorithm, options.leaf_len)),
        has_upper: false,
    };
    let has_upper = fixed.upper_len() > 0;
    let fixed = Fixed { has_upper, ..fixed }.with_bytes();
    let places = fixed.places().ok_or(ErrorKind::SizeOverflow)?;
    Ok((fixed, places))
}

/// What is needed for the key slot at the end.
struct Locks {
    mac: MacKey,
    context: [u8; 32],
    records: Vec<Record>,
}

/// Seals parts as they arrive.
pub(crate) struct Engine<'k> {
    plan: Plan,
    fixed: Fixed,
    places: Places,
    public: Vec<u8>,
    /// As stored.
    directory: Vec<u8>,
    signer: Option<&'k SigningKey>,
    locks: Option<Locks>,
    encryptor: Option<ChunkedEncryptor>,
    hasher: Option<TreeHasher>,
    /// The part that is being filled, and what it has.
    part: usize,
    filled: u64,
    /// Bytes of the payload so far, before encryption.
    position: u64,
    /// Bytes to be stored.
    ready: Vec<u8>,
    payload_at: u64,
    hashes: Vec<u8>,
    outboard_at: u64,
    /// Something could not be written: nothing after it counts.
    is_broken: bool,
}

impl<'k> Engine<'k> {
    pub(crate) fn new(
        plan: &Plan,
        options: &SealOptions<'k>,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, Error> {
        let texts = Texts::new(plan, options);
        let mut file_id = [0; 16];
        rng.fill(&mut file_id)?;
        let (fixed, places) = fixed(plan, options, &texts, file_id)?;
        let Texts { public, mut directory } = texts;
        let signer_key = options.signer.map_or([0; 32], |key| *key.verifying_key().as_bytes());
        let (mut locks, mut encryptor, mut ready) = (None, None, Vec::new());
        if fixed.is_encrypted() {
            let file_key = FileKey::generate(rng)?;
            let context = |purpose| fixed.context(purpose, &signer_key, &public);
            directory = file_key.seal_chunked(rng, &context(DIRECTORY), &directory)?;
            let stanzas = stanza_context(&fixed, &signer_key, &public);
            let mut records = records(&file_key, options, &stanzas, rng)?;
            if options.is_listed && options.password.is_none() {
                let mut listed = Recipients::default();
                let named = records.iter().zip(&options.recipients);
                named.for_each(|(stanza, key)| listed.insert(stanza, *key));
                let mut list = listed.to_records(&records, &file_key, &context(RECIPIENTS), rng)?;
                records.append(&mut list);
            }
            locks = Some(Locks { mac: slot::mac_key(&file_key), context: stanzas, records });
            encryptor = Some(ChunkedEncryptor::new(&file_key, rng, &context(PAYLOAD), &mut ready)?);
        }
        let tree = |(algorithm, leaf_len): (TreeAlgorithm, _)| {
            TreeHasher::new(algorithm, leaf_len).with_upper(fixed.payload_len)
        };
        let engine = Self {
            plan: plan.clone(),
            public,
            directory,
            signer: options.signer,
            locks,
            encryptor,
            hasher: fixed.tree.map(tree),
            part: 0,
            filled: 0,
            position: 0,
            ready,
            payload_at: places.payload.start,
            hashes: Vec::new(),
            outboard_at: places.outboard.start,
            is_broken: false,
            fixed,
            places,
        };
        Ok(engine)
    }

    pub(crate) fn total_len(&self) -> u64 {
        self.places.total_len()
    }

    /// Takes the next bytes of the parts.
    pub(crate) fn push(&mut self, data: &[u8], out: &mut impl Out) -> Result<(), Error> {
        self.check_whole()?;
        self.try_push(data, out).inspect_err(|_| self.is_broken = true)
    }

    fn try_push(&mut self, mut data: &[u8], out: &mut impl Out) -> Result<(), Error> {
        while !data.is_empty() {
            let Some(left) = self.next_part(out)? else {
                let needed = self.plan.content_len();
                return Err(ErrorKind::DataLength { needed, given: needed + data.len() as u64 }.into());
            };
            let len = (left.min(PIECE as u64) as usize).min(data.len());
            let (now, rest) = data.split_at(len);
            self.store(now, out)?;
            self.filled += len as u64;
            data = rest;
        }
        Ok(())
    }

    /// Advances to the next part that lacks bytes, and returns their number.
    fn next_part(&mut self, out: &mut impl Out) -> Result<Option<u64>, Error> {
        while let Some(part) = self.plan.parts().get(self.part) {
            let (begin, left) = (part.offset(), part.len() - self.filled);
            if self.filled == 0 && self.position < begin {
                let zeros = [0; PART_ALIGN as usize];
                let (padding, _) = zeros.split_at((begin - self.position) as usize);
                self.store(padding, out)?;
            }
            if left > 0 {
                return Ok(Some(left));
            }
            self.part += 1;
            self.filled = 0;
        }
        Ok(None)
    }

    fn store(&mut self, plain: &[u8], out: &mut impl Out) -> Result<(), Error> {
        match &mut self.encryptor {
            Some(encryptor) => encryptor.update(plain, &mut self.ready)?,
            None => self.ready.extend_from_slice(plain),
        }
        self.position += plain.len() as u64;
        if self.ready.len() >= PIECE { self.drain(out) } else { Ok(()) }
    }

    /// Writes away what is ready.
    fn drain(&mut self, out: &mut impl Out) -> Result<(), Error> {
        if !self.ready.is_empty() {
            out.put_at(self.payload_at, &self.ready)?;
            self.payload_at += self.ready.len() as u64;
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&self.ready);
            self.hashes.append(&mut hasher.take_outboard());
        }
        self.ready.clear();
        if self.hashes.len() >= PIECE { self.drain_hashes(out) } else { Ok(()) }
    }

    fn drain_hashes(&mut self, out: &mut impl Out) -> Result<(), Error> {
        if !self.hashes.is_empty() {
            out.put_at(self.outboard_at, &self.hashes)?;
            self.outboard_at += self.hashes.len() as u64;
            self.hashes.clear();
        }
        Ok(())
    }

    fn check_whole(&self) -> Result<(), Error> {
        match self.is_broken {
            true => Err(ErrorKind::InvalidValue { what: "sealing was given up after an error" }.into()),
            false => Ok(()),
        }
    }

    /// Writes the end of the payload, the last hashes and the header.
    pub(crate) fn finish(mut self, out: &mut impl Out) -> Result<(), Error> {
        self.check_whole()?;
        if self.next_part(out)?.is_some() {
            let before = self.plan.parts().iter().take(self.part).map(crate::Part::len).sum::<u64>();
            let (needed, given) = (self.plan.content_len(), before + self.filled);
            return Err(ErrorKind::DataLength { needed, given }.into());
        }
        if let Some(encryptor) = self.encryptor.take() {
            encryptor.finish(&mut self.ready)?;
        }
        self.drain(out)?;
        let tree = self.hasher.take().map(TreeHasher::finish_upper).map(|(root, mut hashes, upper)| {
            self.hashes.append(&mut hashes);
            (root, upper)
        });
        self.drain_hashes(out)?;
        out.put_at(0, &self.header(tree.as_ref())?)
    }

    /// Everything before the payload.
    fn header(&self, tree: Option<&(TreeRoot, Vec<u8>)>) -> Result<Vec<u8>, Error> {
        let mut block = [0; SIGNER_LEN];
        if let (Some(signer), Some((root, _))) = (self.signer, tree) {
            let key = *signer.verifying_key().as_bytes();
            let directory_hash = Sha256::digest(&self.directory).into();
            let message = signed_bytes(&self.fixed, &self.public, &directory_hash, root, &key);
            block = signer_block(root, &key, &signer.sign(&message));
        }
        let mut bytes = Vec::with_capacity(self.places.payload.start as usize);
        bytes.extend_from_slice(&self.fixed.bytes);
        bytes.extend_from_slice(&block);
        debug_assert_eq!(bytes.len(), PRELUDE_LEN);
        bytes.extend_from_slice(&self.public);
        if let Some(locks) = &self.locks {
            bytes.resize(self.places.slot(0).start as usize, 0);
            let new = NewSlot {
                len: self.fixed.slot_len as usize,
                revision: 1,
                records: &locks.records,
                context: &locks.context,
                signer: self.signer.filter(|_| self.fixed.is_bound),
            };
            let surroundings = [self.fixed.bytes.as_slice(), &block, &self.public];
            bytes.extend_from_slice(&new.to_bytes(&locks.mac, surroundings)?);
            bytes.extend_from_slice(&slot::empty(self.fixed.slot_len));
        }
        bytes.extend_from_slice(&self.directory);
        let upper_len = bytes.len() as u64 + (self.places.upper.end - self.places.upper.start);
        bytes.extend(tree.into_iter().flat_map(|(_, upper)| upper));
        debug_assert_eq!(bytes.len() as u64, upper_len, "the tree has the level that its length promises");
        bytes.resize(self.places.payload.start as usize, 0);
        Ok(bytes)
    }
}

fn records(
    file_key: &FileKey,
    options: &SealOptions<'_>,
    context: &[u8; 32],
    rng: &mut (impl Rng + ?Sized),
) -> Result<Vec<Record>, Error> {
    if let Some((password, cost)) = &options.password {
        return Ok([Record::password(&file_key.wrap_with_password(rng, password, cost, context)?)].into());
    }
    let recipients = options.recipients.iter();
    recipients.map(|key| Ok(Record::recipient(&file_key.wrap_for(rng, key, context)?))).collect()
}

/// Seals `content`, the bytes of all parts one after the other, in memory. File id, keys and salts come from `rng`: two files
/// of one content differ.
///
/// # Errors
///
/// Those of [`SealedLayout::new`]; [`ErrorKind::DataLength`] if `content` is not as long as the parts;
/// [`ErrorKind::OutOfMemory`]; [`ErrorKind::Crypto`] if there is no randomness, no memory for the password, or a recipient's
/// key protects nothing.
pub fn to_vec(
    plan: &Plan,
    content: &[u8],
    options: &SealOptions<'_>,
    rng: &mut (impl Rng + ?Sized),
) -> Result<Vec<u8>, Error> {
    let mut engine = Engine::new(plan, options, rng)?;
    let len = engine.total_len();
    let mut file = crate::header::try_with_capacity(len)?;
    file.resize(len as usize, 0);
    engine.push(content, &mut file)?;
    engine.finish(&mut file)?;
    Ok(file)
}
