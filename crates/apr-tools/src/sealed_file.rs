//! Sealed files: code shared by `seal`, `open`, `rekey` and `inspect`.

use std::path::Path;

use apr_crypto::{Access, Argon2Cost, Trust, Trusted};
use apr_sealed::{SealedHeader, SealedLimits, SealedReader, StanzaKind};
use read_at::AnySource;

use crate::error::{CODE_FOREIGN_FORMAT, Failure};
use crate::input::{Format, Source};
use crate::secrets::{Keys, KeysArgs, Limits};
use crate::terminal::Console;
use crate::terminal::human::plural;

/// Whether a file begins as a sealed one does.
pub(crate) fn is_sealed(path: &Path) -> bool {
    Source::peek(path) == Format::Sealed
}

/// A sealed file whose header was read.
#[derive(Debug)]
pub(crate) struct SealedFile<'s> {
    source: &'s Source,
    file: AnySource,
    header: SealedHeader,
    limits: SealedLimits,
}

/// MiB that Argon2id fills in a second: measured, on one core.
const MIB_PER_SECOND: u64 = 400;

impl<'s> SealedFile<'s> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is of another format, or invalid.
    pub(crate) fn open(source: &'s Source, limits: Limits) -> Result<Self, Failure> {
        let limits = limits.of_sealed();
        let file = source.bytes().map_err(|error| source.relabel(error.into()))?;
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
    /// If the signature is not as demanded, or is there and not demanded; if what opens the file cannot be had, or costs too
    /// much.
    pub(crate) fn keys(
        &self,
        trusted: Trusted,
        given: &KeysArgs,
        console: &Console,
    ) -> Result<Keys, Failure> {
        self.header.verify(trusted.trust()).map_err(|error| self.refused(error))?;
        let keys = Keys::of_signers(trusted);
        if !self.header.is_encrypted() {
            return match given.has_identity() {
                true => Err(Failure::new("ac-not-encrypted", "the file is not encrypted")
                    .in_file(self.source.label())
                    .because("a password or key was given for it")),
                false => Ok(keys),
            };
        }
        if !given.has_identity() && self.header.stanzas() != [StanzaKind::Password] {
            return Err(Failure::new("ac-encrypted", "the file is encrypted for recipients")
                .in_file(self.source.label())
                .help("open it with a recipient's key: --identity KEYFILE"));
        }
        self.tell_cost(console)?;
        Ok(keys.with_identity(given.load_identity(self.source.label())?))
    }

    /// Says what the password will cost where that is more than a file of this program asks for.
    ///
    /// # Errors
    ///
    /// If it is more than the limits allow.
    pub(crate) fn tell_cost(&self, console: &Console) -> Result<(), Failure> {
        let cost = self.header.password_cost(&self.limits.argon2).map_err(|error| self.refused(error))?;
        let Some(cost) = cost else { return Ok(()) };
        let (mib, passes) = (u64::from(cost.memory_kib()) >> 10, cost.passes());
        let work = mib * u64::from(passes);
        let usual = Argon2Cost::RFC_9106;
        if work > (u64::from(usual.memory_kib()) >> 10) * u64::from(usual.passes()) {
            console.remark(format_args!(
                "this file asks for {mib} MiB of memory and {passes} pass{} to try the password: about {} on one core",
                if passes == 1 { "" } else { "es" },
                plural(work.div_ceil(MIB_PER_SECOND), "second")
            ));
        }
        Ok(())
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// If it is not as its maker left it, or the key is another one.
    pub(crate) fn reader<'k, 'f>(
        &'f self,
        keys: &'k Keys,
    ) -> Result<SealedReader<'k, &'f AnySource>, Failure> {
        let access = self.access(keys);
        let opened = SealedReader::with_header(&self.file, self.header.clone(), &access, &self.limits);
        opened.map_err(|error| self.refused(error))
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
        let verified = apr_sealed::verify(&self.file, trust, &self.limits);
        verified.map(drop).map_err(|error| self.refused(error))
    }

    /// The failure, with the name the user knows and the advice that fits sealed files.
    pub(crate) fn refused(&self, error: apr_sealed::Error) -> Failure {
        refusal(error, self.source, &self.header)
    }
}

fn refusal(error: apr_sealed::Error, source: &Source, header: &SealedHeader) -> Failure {
    let code = error.code();
    let failure = source.relabel(error.into());
    let help = match code {
        "ac-signed" => {
            "say whose signature it must have: --signer KEY or --trusted-keys FILE; --any-signer shows damage only"
        }
        "ac-encrypted" => "open it with a recipient's key, --identity KEYFILE, or with its password",
        "cy-cost" => match header.password_cost(&Limits::widest()) {
            Ok(Some(cost)) => {
                let (mib, passes) = (cost.memory_kib().div_ceil(1 << 10), cost.passes());
                return failure.help(format!(
                    "if you trust where the file comes from: --max-password-cost {mib}MiB:{passes}"
                ));
            }
            _ => return failure,
        },
        _ => return failure,
    };
    failure.help(help)
}

/// Says what a password will cost that was read before the file was looked at.
///
/// # Errors
///
/// If the file is sealed and its header cannot be read, or it costs more than the limits allow.
pub(crate) fn tell_cost(source: &Source, console: &Console) -> Result<(), Failure> {
    let keys = source.keys();
    if !keys.has_password() || source.format() != Format::Sealed {
        return Ok(());
    }
    SealedFile::open(source, keys.limits())?.tell_cost(console)
}
