//! Sealed files: what seal, open, rekey and inspect share.

use std::path::Path;

use apr_container::sealed::{MAGIC, SealedHeader, SealedLimits, SealedReader, StanzaKind};
use apr_container::{Access, Trust};
use apr_crypto::FileSource;

use crate::error::{CODE_FOREIGN_FORMAT, Failure};
use crate::input::Source;
use crate::secrets::{IdentityArgs, Keys, Trusted};

/// Whether a file begins as a sealed one does.
pub(crate) fn is_sealed(path: &Path) -> bool {
    crate::input::first_bytes(path).is_some_and(|first| first.starts_with(&MAGIC))
}

/// A sealed file whose header was read.
#[derive(Debug)]
pub(crate) struct SealedFile<'s> {
    source: &'s Source,
    file: FileSource,
    header: SealedHeader,
    limits: SealedLimits,
}

impl<'s> SealedFile<'s> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is of another format, or not sound.
    pub(crate) fn open(source: &'s Source) -> Result<Self, Failure> {
        let limits = SealedLimits::default();
        let regular = durable_file::open_regular(source.path(), u64::MAX);
        let file = regular.map_err(|error| source.relabel(error.into()))?.into_file();
        let file = FileSource::new(file).map_err(|error| source.relabel(error.into()))?;
        let header = SealedHeader::read(&file, &limits).map_err(|error| match error.code() {
            "ac-sealed-magic" => Failure::new(CODE_FOREIGN_FORMAT, "this is not a sealed file")
                .in_file(source.label())
                .help("`apr inspect FILE` says what it is; `apr seal` makes sealed files"),
            "ac-reserved" => source.relabel(error.into()).help("fetch the file again: it was damaged"),
            _ => source.relabel(error.into()),
        })?;
        Ok(Self { source, file, header, limits })
    }

    pub(crate) fn header(&self) -> &SealedHeader {
        &self.header
    }

    /// What opens the file: first its signature is verified, then a key or password is asked for if one is needed.
    ///
    /// # Errors
    ///
    /// If the signature is not as demanded, or is there and not demanded; if what opens the file cannot be had.
    pub(crate) fn keys(&self, trusted: Trusted, identity: &IdentityArgs) -> Result<Keys, Failure> {
        self.header.verify(trusted.trust()).map_err(|error| self.refused(error))?;
        let keys = Keys::of_signers(trusted);
        if !self.header.is_encrypted() {
            return match identity.is_given() {
                true => Err(Failure::new("ac-not-encrypted", "the file is not encrypted")
                    .in_file(self.source.label())
                    .because("a password or key was given for it")),
                false => Ok(keys),
            };
        }
        if !identity.is_given() && self.header.stanzas() != [StanzaKind::Password] {
            return Err(Failure::new("ac-encrypted", "the file is encrypted for recipients")
                .in_file(self.source.label())
                .help("open it with a recipient's key: --identity KEYFILE"));
        }
        Ok(keys.with_identity(identity.load(self.source.label())?))
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// If it is not as its maker left it, or the key is another one.
    pub(crate) fn reader<'k, 'f>(
        &'f self,
        keys: &'k Keys,
    ) -> Result<SealedReader<'k, &'f FileSource>, Failure> {
        let access = self.access(keys);
        SealedReader::open(&self.file, &access, &self.limits).map_err(|error| self.refused(error))
    }

    /// What the keys give access to.
    pub(crate) fn access<'k>(&self, keys: &'k Keys) -> Access<'k> {
        keys.decryption().with_trust(keys.trusted().trust())
    }

    pub(crate) fn limits(&self) -> &SealedLimits {
        &self.limits
    }

    /// Verifies signature and content without opening the file.
    ///
    /// # Errors
    ///
    /// If they are not as demanded.
    pub(crate) fn verify(&self, trust: Trust<'_>) -> Result<(), Failure> {
        let verified = apr_container::sealed::verify(&self.file, trust, &self.limits);
        verified.map(drop).map_err(|error| self.refused(error))
    }

    /// The failure, with the name the user knows and the advice that fits sealed files.
    pub(crate) fn refused(&self, error: apr_container::Error) -> Failure {
        let code = error.code();
        let failure = self.source.relabel(error.into());
        match code {
            "ac-signed" => failure.help(
                "say whose signature it must have: --signer KEY or --trusted-keys FILE; --any-signer shows damage only",
            ),
            _ => failure,
        }
    }
}
