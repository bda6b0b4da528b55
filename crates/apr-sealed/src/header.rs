//! The header of a sealed file, readable without a key.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use apr_crypto::{
    Argon2Cost, Argon2Limits, Signature, Signer, TreeHasher, TreeRoot, Trust, UpperHashes, VerifyingKey,
    dsse_pae,
};
use read_at::{ReadAt, Window};
use sha2::{Digest as _, Sha256};

use crate::SealedLimits;
use crate::error::{Error, ErrorKind};
use crate::fields::Fields;
use crate::fixed::{FIXED_LEN, Fixed, PRELUDE_LEN, Places, SIGNER_LEN, Suite, take};
use crate::slot::{Slot, StanzaKind, Surroundings};

const SIGNED_TYPE: &str = "application/vnd.apr.sealed.v1";
/// What a stanza is made for.
const STANZA: &str = "stanza";

/// Everything before the payload of a sealed file, checked for consistency; not authenticated before
/// [`verify`](Self::verify) or [`SealedReader::open`](crate::SealedReader::open).
#[derive(Clone, Debug)]
pub struct SealedHeader {
    pub(crate) fixed: Fixed,
    pub(crate) places: Places,
    /// The file up to the payload; up to the directory once that was opened.
    bytes: Vec<u8>,
    directory_hash: [u8; 32],
    public: BTreeMap<String, String>,
    root: Option<TreeRoot>,
    pub(crate) upper: Option<UpperHashes>,
    /// Which slot counts, and what is in it.
    slot: Option<(usize, u64, Vec<StanzaKind>)>,
}

impl SealedHeader {
    /// Reads everything before the payload.
    ///
    /// ```
    /// use apr_sealed::{Plan, SealOptions, SealedHeader, SealedLimits, StanzaKind};
    /// use apr_crypto::{OsRandom, RecipientSecret};
    ///
    /// let recipient = RecipientSecret::generate(&mut OsRandom)?.public();
    /// let options = SealOptions::default().for_recipient(recipient).with_public("name", "segments");
    /// let file = apr_sealed::to_vec(&Plan::new([])?, b"", &options, &mut OsRandom)?;
    ///
    /// let header = SealedHeader::read(&file, &SealedLimits::default())?;
    /// assert_eq!(header.stanzas(), [StanzaKind::Recipient]);
    /// assert_eq!(header.public_declared()["name"], "segments");
    /// # Ok::<(), apr_sealed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Magic`], [`ErrorKind::UnsupportedVersion`], [`ErrorKind::UnknownSuite`], [`ErrorKind::UnknownFlags`];
    /// [`ErrorKind::FileLength`] if the file has another length than it declares; [`ErrorKind::Header`],
    /// [`ErrorKind::Reserved`], [`ErrorKind::Unprotected`]; [`ErrorKind::KeySlots`]; [`ErrorKind::Limit`];
    /// [`ErrorKind::Crypto`] if the source fails.
    pub fn read(source: &(impl ReadAt + ?Sized), limits: &SealedLimits) -> Result<Self, Error> {
        let available = source.total_len();
        let mut prelude = [0; PRELUDE_LEN];
        let len = prelude.len().min(usize::try_from(available).unwrap_or(usize::MAX));
        let (now, _) = prelude.split_at_mut(len);
        source.read_exact_at(0, now)?;
        // So that a foreign short file is called foreign.
        if !prelude.starts_with(&crate::MAGIC) {
            return Err(ErrorKind::Magic.at(0));
        }
        if available < PRELUDE_LEN as u64 {
            return Err(ErrorKind::FileLength { declared: PRELUDE_LEN as u64, available }.at(available));
        }
        let mut rest = prelude.as_slice();
        let fixed = Fixed::parse(&take::<FIXED_LEN>(&mut rest))?;
        let places = fixed.places().ok_or_else(|| ErrorKind::SizeOverflow.at(32))?;
        let declared = places.total_len();
        if declared != available {
            return Err(ErrorKind::FileLength { declared, available }.at(32));
        }
        for (what, found, limit) in [
            ("length of the public metadata", u64::from(fixed.public_len), limits.public_bytes),
            ("length of the directory", fixed.directory_len, limits.directory_bytes),
        ] {
            if found > limit {
                return Err(ErrorKind::Limit { what, found, limit }.at(40));
            }
        }
        let len = places.payload.start;
        let mut bytes = try_with_capacity(len)?;
        bytes.extend_from_slice(&prelude);
        bytes.resize(len as usize, 0);
        let (_, rest) = bytes.split_at_mut(PRELUDE_LEN);
        source.read_exact_at(PRELUDE_LEN as u64, rest)?;
        Self::parse(fixed, places, bytes)
    }

    fn parse(fixed: Fixed, places: Places, bytes: Vec<u8>) -> Result<Self, Error> {
        let mut header = Self {
            fixed,
            places,
            bytes,
            directory_hash: [0; 32],
            public: BTreeMap::new(),
            root: None,
            upper: None,
            slot: None,
        };
        header.root = header.parse_root()?;
        header.upper = header.parse_upper()?;
        let public = Fields::new(header.public_bytes()).texts();
        header.public = public.map_err(|what| ErrorKind::Header { what }.at(header.places.public.start))?;
        for gap in header.places.gaps() {
            if header.part(&gap).iter().any(|byte| *byte != 0) {
                return Err(ErrorKind::Reserved.at(gap.start));
            }
        }
        if header.fixed.is_encrypted() {
            // Of two slots, the newer one counts; the other is what was before, or what came of writing it.
            let slots = [0, 1].map(|idx| (idx, Slot::parse(header.part(&header.places.slot(idx)))));
            let newest = slots.into_iter().filter_map(|(idx, slot)| Some((idx, slot?)));
            let newest = newest.max_by_key(|(idx, slot)| (slot.revision, usize::MAX - idx));
            let (idx, slot) = newest.ok_or_else(|| ErrorKind::KeySlots.at(header.places.slot(0).start))?;
            let kinds = slot.stanzas().map(crate::slot::Record::kind).collect();
            header.slot = Some((idx, slot.revision, kinds));
        }
        header.directory_hash = Sha256::digest(header.part(&header.places.directory)).into();
        Ok(header)
    }

    fn parse_root(&self) -> Result<Option<TreeRoot>, Error> {
        let mut block = self.signer_block();
        let contradiction = |what| Err(ErrorKind::Header { what }.at(FIXED_LEN as u64));
        if !self.fixed.is_signed {
            return match block.iter().all(|byte| *byte == 0) {
                true => Ok(None),
                false => contradiction("a signer without a signature"),
            };
        }
        let root = TreeRoot::from_bytes(&take(&mut block))?;
        if take::<6>(&mut block) != [0; 6] {
            return Err(ErrorKind::Reserved.at(FIXED_LEN as u64 + TreeRoot::LEN as u64));
        }
        match self.fixed.root(*root.hash()) == Some(root) {
            true => Ok(Some(root)),
            false => contradiction("a tree hash of something else than the payload"),
        }
    }

    fn parse_upper(&self) -> Result<Option<UpperHashes>, Error> {
        let (Some(root), true) = (&self.root, self.fixed.has_upper) else { return Ok(None) };
        let upper = UpperHashes::from_bytes(root, self.part(&self.places.upper));
        // One of the two was changed.
        upper.map(Some).map_err(|_| ErrorKind::SignatureInvalid.at(self.places.upper.start))
    }

    /// With which algorithms the file is encrypted, if it is.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.fixed.suite
    }

    /// Whether the file is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.fixed.is_encrypted()
    }

    /// Whether the file declares a signature. An attacker can remove the declaration with the signature; an encrypted file does
    /// not open then.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.fixed.is_signed
    }

    /// Whether only the signer can change who can open the file.
    #[must_use]
    pub const fn has_bound_recipients(&self) -> bool {
        self.fixed.is_bound
    }

    /// Sixteen random bytes, different in each file.
    #[must_use]
    pub const fn file_id(&self) -> &[u8; 16] {
        &self.fixed.file_id
    }

    /// The declared public key of the signer, in bytes that may not be a key.
    #[must_use]
    pub fn signer_declared(&self) -> Option<[u8; VerifyingKey::LEN]> {
        self.fixed.is_signed.then(|| self.signer_key())
    }

    /// Public metadata, not authenticated.
    #[must_use]
    pub const fn public_declared(&self) -> &BTreeMap<String, String> {
        &self.public
    }

    /// The kinds of keys that open the file: one entry per recipient, or one password.
    #[must_use]
    pub fn stanzas(&self) -> &[StanzaKind] {
        self.slot.as_ref().map(|(_, _, kinds)| kinds.as_slice()).unwrap_or_default()
    }

    /// What trying a password costs; none of a file that no password opens.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Crypto`] if the cost in the file is outside of `limits`.
    pub fn password_cost(&self, limits: &Argon2Limits) -> Result<Option<Argon2Cost>, Error> {
        self.current_slot().and_then(|slot| slot.password_cost(limits)).transpose()
    }

    /// How often the list of recipients was written; 1 as sealed, 0 without encryption.
    #[must_use]
    pub fn revision_declared(&self) -> u64 {
        self.slot.as_ref().map_or(0, |(_, revision, _)| *revision)
    }

    /// The tree hash of the payload, if the file declares a signature.
    #[must_use]
    pub const fn root_declared(&self) -> Option<&TreeRoot> {
        self.root.as_ref()
    }

    /// Bytes before the payload, of the payload as stored, and of the hashes after it: the length of the file.
    #[must_use]
    pub fn lens(&self) -> [u64; 3] {
        let Places { payload, outboard, .. } = &self.places;
        [payload.start, payload.end - payload.start, outboard.end - outboard.start]
    }

    /// Verifies the signature as far as this header goes: header, public metadata, directory, and the root against which the
    /// payload is verified where it is read. `None` if `trust` requires no signature and there is none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotSigned`], [`ErrorKind::SignatureUnchecked`] (signed, and `trust` requires no signature),
    /// [`ErrorKind::UntrustedSigner`], [`ErrorKind::SignatureInvalid`].
    pub fn verify<'k>(&self, trust: Trust<'k>) -> Result<Option<Signer<'k>>, Error> {
        let at = FIXED_LEN as u64;
        let Some(root) = &self.root else {
            return match trust {
                Trust::NoSignature => Ok(None),
                _ => Err(ErrorKind::NotSigned.at(12)),
            };
        };
        let accepted =
            trust.accept(&self.signer_key()).map_err(|rejected| ErrorKind::from(rejected).at(at))?;
        // A key to verify with is always at hand, at least the file's own: there is no reason not to.
        let Some(signer) = accepted else { return Err(ErrorKind::SignatureUnchecked.at(12)) };
        let message =
            signed_bytes(&self.fixed, self.public_bytes(), &self.directory_hash, root, &self.signer_key());
        let signature = self.signer_block().last_chunk().map_or([0; Signature::LEN], |bytes| *bytes);
        let key = signer.key();
        let is_valid = key.verify(&message, &Signature::from_bytes(signature)).is_ok();
        let is_bound_right = !self.fixed.is_bound
            || self.current_slot().is_some_and(|slot| slot.verify(key, &self.stanza_context()));
        match is_valid && is_bound_right {
            true => Ok(Some(signer)),
            false => Err(ErrorKind::SignatureInvalid.at(at)),
        }
    }

    fn part(&self, range: &Range<u64>) -> &[u8] {
        // The header is in memory up to the payload.
        self.bytes.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// The payload as stored, not verified.
    pub(crate) fn stored_payload<'r, R: ReadAt>(&self, source: &'r R) -> Result<Window<&'r R>, Error> {
        let Range { start, end } = self.places.payload;
        Ok(Window::new(source, start, end - start)?)
    }

    fn signer_block(&self) -> &[u8] {
        self.part(&(FIXED_LEN as u64..PRELUDE_LEN as u64))
    }

    pub(crate) fn signer_key(&self) -> [u8; 32] {
        self.signer_block().split_at(48).1.first_chunk().copied().unwrap_or_default()
    }

    pub(crate) fn public_bytes(&self) -> &[u8] {
        self.part(&self.places.public)
    }

    pub(crate) fn directory_bytes(&self) -> &[u8] {
        self.part(&self.places.directory)
    }

    /// What a slot authenticates beside itself.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        [&self.fixed.bytes, self.signer_block(), self.public_bytes()]
    }

    /// What a message of this file is bound to.
    pub(crate) fn context(&self, purpose: &str) -> [u8; 32] {
        self.fixed.context(purpose, &self.signer_key(), self.public_bytes())
    }

    pub(crate) fn stanza_context(&self) -> [u8; 32] {
        self.context(STANZA)
    }

    /// The slot that counts.
    pub(crate) fn current_slot(&self) -> Option<Slot<'_>> {
        self.slot_idx().and_then(|idx| Slot::parse(self.part(&self.places.slot(idx))))
    }

    pub(crate) fn slot_idx(&self) -> Option<usize> {
        self.slot.as_ref().map(|(idx, _, _)| *idx)
    }

    /// Whether the bytes of the directory are still there.
    pub(crate) fn has_directory(&self) -> bool {
        self.bytes.len() as u64 >= self.places.directory.end
    }

    /// Gives up the bytes of the directory, which were decoded.
    pub(crate) fn forget_directory(&mut self) {
        self.bytes.truncate(self.places.directory.start as usize);
        self.bytes.shrink_to_fit();
    }
}

/// What a signature covers.
pub(crate) fn signed_bytes(
    fixed: &Fixed,
    public: &[u8],
    directory_hash: &[u8; 32],
    root: &TreeRoot,
    signer: &[u8; 32],
) -> Vec<u8> {
    let public = Sha256::digest(public);
    let fields: [&[u8]; 5] = [&fixed.bytes, &public, directory_hash, &root.to_bytes(), signer];
    dsse_pae(SIGNED_TYPE, &fields.concat())
}

/// What bytes a new stanza is bound to.
pub(crate) fn stanza_context(fixed: &Fixed, signer: &[u8; 32], public: &[u8]) -> [u8; 32] {
    fixed.context(STANZA, signer, public)
}

/// Signer block of a file; zeros if it is not signed.
pub(crate) fn signer_block(root: &TreeRoot, signer: &[u8; 32], signature: &Signature) -> [u8; SIGNER_LEN] {
    let mut block = [0; SIGNER_LEN];
    let fields: [&[u8]; 4] = [&root.to_bytes(), &[0; 6], signer, &signature.to_bytes()];
    block.iter_mut().zip(fields.into_iter().flatten()).for_each(|(to, from)| *to = *from);
    block
}

/// An empty vector with capacity for `len` bytes.
pub(crate) fn try_with_capacity(len: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let reserved = usize::try_from(len).ok().and_then(|len| bytes.try_reserve_exact(len).ok());
    reserved.map(|()| bytes).ok_or_else(|| ErrorKind::OutOfMemory { bytes: len }.into())
}

/// Verifies signature and all content of a sealed file, without a key to decrypt it.
///
/// ```
/// use apr_crypto::Signer;
/// use apr_sealed::{Part, Plan, SealOptions, SealedLimits};
/// use apr_crypto::{OsRandom, SigningKey};
///
/// let key = SigningKey::generate(&mut OsRandom)?;
/// let plan = Plan::new([Part::raw(7)])?;
/// let file = apr_sealed::to_vec(&plan, b"weights", &SealOptions::default().signed_by(&key), &mut OsRandom)?;
/// let public = key.verifying_key();
/// assert_eq!(apr_sealed::verify(&file, &public, &SealedLimits::default())?, Signer::Trusted(public, None));
/// # Ok::<(), apr_sealed::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`SealedHeader::read`] and [`SealedHeader::verify`]; [`ErrorKind::NotSigned`] too where `trust` requires no
/// signature.
pub fn verify<'k>(
    source: &(impl ReadAt + ?Sized),
    trust: impl Into<Trust<'k>>,
    limits: &SealedLimits,
) -> Result<Signer<'k>, Error> {
    let header = SealedHeader::read(source, limits)?;
    let signer = header.verify(trust.into())?.ok_or_else(|| ErrorKind::NotSigned.at(12))?;
    header.verify_stored(source)?;
    Ok(signer)
}

impl SealedHeader {
    /// Compares payload and hashes with the root, from the first to the last byte in order.
    pub(crate) fn verify_stored(&self, source: &(impl ReadAt + ?Sized)) -> Result<(), Error> {
        const PIECE: u64 = 1 << 20;
        let Some(root) = &self.root else { return Ok(()) };
        let Places { payload, outboard, .. } = &self.places;
        let mut piece = vec![0; PIECE.min(outboard.end - payload.start) as usize];
        let mut read = |range: &Range<u64>, take: &mut dyn FnMut(&[u8])| {
            let mut at = range.start;
            while at < range.end {
                let (now, _) = piece.split_at_mut(PIECE.min(range.end - at) as usize);
                source.read_exact_at(at, now)?;
                take(now);
                at += now.len() as u64;
            }
            Ok::<_, Error>(())
        };
        source.will_read(payload.start..outboard.end);
        // Of the hashes, a digest is kept until they are read.
        let (mut hasher, mut expected) = (TreeHasher::new(root.algorithm(), root.leaf_len()), Sha256::new());
        read(payload, &mut |bytes| {
            hasher.update(bytes);
            expected.update(hasher.take_outboard());
        })?;
        let (found, hashes) = hasher.finish();
        expected.update(hashes);
        if found != *root {
            return Err(ErrorKind::SignatureInvalid.at(payload.start));
        }
        let mut stored = Sha256::new();
        read(outboard, &mut |bytes| stored.update(bytes))?;
        match stored.finalize() == expected.finalize() {
            true => Ok(()),
            false => Err(ErrorKind::SignatureInvalid.at(outboard.start)),
        }
    }
}
