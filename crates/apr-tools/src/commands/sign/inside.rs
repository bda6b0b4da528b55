//! `apr sign --inside`: the signature inside an `.apr` model of version 1.

use apr_container::{Protection, inspect_bytes_with};
use apr_crypto::OsRandom;
use apr_crypto::Trust;

use super::{Args, Made, SignReport};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::output::{Destination, Output, Run, check_inputs};
use crate::report;
use crate::secrets::{Signer, load_recipient, load_signer, refuse_shared_stdin};
use crate::terminal::Console;
use crate::whole_file;

/// What this signature is called, as `apr verify` calls it.
const FORMAT: &str = "embedded";

/// Writes the model with a signature in it.
///
/// # Errors
///
/// If the key or the model cannot be read; if the model is of another format, encrypted, or signed already; if the output cannot
/// be written.
pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let [path] = args.inputs.as_slice() else {
        return Err(Failure::new(CODE_USAGE, "--inside writes one file, and there are several"));
    };
    let Some(output) = &args.output else {
        return Err(Failure::new(CODE_USAGE, "--inside writes the model anew: where to?")
            .help("name the file with -o; with --force it may be the model itself"));
    };
    refuse_shared_stdin(args.key_password.takes_stdin(), path)?;
    let output =
        Output { destination: Destination::new(output), overwrite: args.force.overwrite(), run: Run::Write };
    check_inputs([path])?;
    output.destination.check(output.overwrite, output.run, console)?;
    let key = match load_signer(&args.key, &args.key_password)? {
        Signer::Ed25519(key) => key.into_key(),
        Signer::P256(_) => {
            return Err(Failure::new(CODE_USAGE, "the signature inside a model is of an Ed25519 key")
                .in_file(&args.key)
                .because("a P-256 key makes model signatures, which are files of their own"));
        }
    };
    let inference_key = args.inference_key.as_deref().map(load_recipient).transpose()?;
    let source = whole_file::source(path, "`apr sign` without --inside signs files of every format")?;
    let rules = args.payload.apply(args.compat.rules());
    let bytes = whole_file::read(&source, &rules, Trust::NoSignature, console)?;
    let mut model = whole_file::open_plain(&bytes, &source, &rules).map_err(already_protected)?;
    if let Some(key) = &inference_key {
        model.metadata.set_inference_key(key);
    }
    let was_signed =
        inspect_bytes_with(&bytes, &rules.with_unchecked_signatures().apr).is_ok_and(|info| info.signed);
    drop(bytes);
    // A signature takes no randomness.
    let file = model.to_vec_protected(&Protection::default().signed_by(&key), &mut OsRandom)?;
    output.write(&file, console)?;

    let fingerprint = key.verifying_key().fingerprint().to_string();
    if was_signed {
        console.remark("the signature of the input is not in the output");
    }
    if console.is_json() {
        let made = Made {
            input: report::path(path).into_owned(),
            output: report::path(output.destination.label()).into_owned(),
            files: 1,
            bytes: file.len() as u64,
        };
        console.report(&SignReport { format: FORMAT, fingerprint, signatures: &[made] })?;
        return Ok(Exit::Success);
    }
    output.tell(&format!("signed by {fingerprint}"), file.len(), console)?;
    Ok(Exit::Success)
}

fn already_protected(failure: Failure) -> Failure {
    match failure.code() {
        "ac-encrypted" => failure
            .help("`apr encrypt --sign` signs what it encrypts; `apr sign` without --inside signs any file"),
        "ac-signed" => {
            failure.help("the new signature takes the place of the one there: add --allow-unverified")
        }
        _ => failure,
    }
}
