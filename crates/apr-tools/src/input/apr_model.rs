//! `.apr` files of version 1 as input: the payload is decoded to a model.

use apr_container::{
    Checksum, Error, Expect, LoadOptions, ModelInfo, ReadOptions, UncheckedSignature, check_source,
    inspect_bytes_with, inspect_with, load_from_bytes_with, load_with, verify_signature,
};
use model_file::Payload;
use read_at::FileSource;

use super::{Rules, Source};
use crate::error::Failure;
use crate::secrets::{Keys, SignedBy};
use crate::whole_file::advised;

/// Header and metadata; with [`Checksum::Compare`], everything else is read too and compared with the checksum.
///
/// # Errors
///
/// If the file cannot be read, is invalid, or is damaged.
pub(crate) fn info(source: &Source, checksum: Checksum, rules: &Rules) -> Result<ModelInfo, Failure> {
    let inspect = |rules: &Rules| inspect_with(source.path(), checksum, &rules.apr);
    inspect(rules).map_err(|error| advised(error.into(), source, rules, |compat| inspect(compat).is_ok()))
}

/// The payload, decoded; the checksum is compared on the way.
///
/// # Errors
///
/// If the file cannot be read, is invalid, is damaged, or needs a key or a permission.
pub(crate) fn payload(source: &Source, rules: &Rules) -> Result<Payload, Failure> {
    let load = |rules: &Rules| load_with::<Payload>(source.path(), Expect::AnyKnown, &rules.apr);
    load(rules).map_err(|error| advised(error.into(), source, rules, |compat| load(compat).is_ok()))
}

/// What a file holds that was opened with keys.
#[derive(Debug)]
pub(crate) struct Protected {
    pub(crate) info: ModelInfo,
    /// `None` if it is encrypted and there is nothing to decrypt it with.
    pub(crate) payload: Option<Payload>,
    /// The signer, if a signature was required.
    pub(crate) signer: Option<SignedBy>,
    /// Whether the payload was decrypted.
    pub(crate) is_decrypted: bool,
}

/// Longest file that is read as a whole: none that the format can describe is longer.
const FILE_LEN_MAX: u64 = 1 << 34;

/// Opens a file with the keys of its source: verifies, then looks at the metadata, then decrypts, then decodes. The file is
/// read once, so that what is used is what was verified.
///
/// # Errors
///
/// If the file cannot be read, is invalid or damaged; is not signed by whom it must be; cannot be decrypted.
pub(crate) fn protected(source: &Source, rules: &Rules) -> Result<Protected, Failure> {
    let regular = durable_file::open_regular(source.path(), FILE_LEN_MAX)
        .map_err(|error| source.relabel(Failure::from(error)))?;
    let len = regular.len();
    let file = regular.file().try_clone().map_err(|error| Failure::io("read", source.path(), &error))?;
    let file = FileSource::with_len(file, len);
    let check = |rules: &Rules| check_source(&file, source.keys().trusted().trust(), &rules.apr);
    check(rules).map_err(|error| advised(error.into(), source, rules, |compat| check(compat).is_ok()))?;
    let file = regular.into_bytes().map_err(|error| source.relabel(Failure::from(error)))?;
    let open = |rules: &Rules| open_bytes(&file, source.keys(), &rules.apr);
    open(rules).map_err(|error| advised(error.into(), source, rules, |compat| open(compat).is_ok()))
}

fn open_bytes(file: &[u8], keys: &Keys, options: &ReadOptions) -> Result<Protected, Error> {
    let signer = verify_signature(file, keys.trusted().trust(), options)?;
    let mut options = *options;
    if signer.is_some() {
        // It was checked just now, of these bytes.
        options.unchecked_signature = UncheckedSignature::Allow;
    }
    let info = inspect_bytes_with(file, &options)?;
    let payload = if info.encrypted && !keys.can_decrypt() {
        None
    } else {
        let options = LoadOptions { read: options, access: keys.decryption() };
        Some(load_from_bytes_with(file, Expect::AnyKnown, options)?)
    };
    let is_decrypted = info.encrypted && payload.is_some();
    Ok(Protected { info, payload, signer: signer.map(|signer| keys.signed_by(signer)), is_decrypted })
}
