//! `apr license`: the license of a model, which is a label and not enforced.

mod report;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use apr_container::{
    License, LicenseTier, Metadata, UncheckedSignature, inspect_bytes_with, verify_signature,
};
use apr_crypto::Trust;

use self::report::Report;
use crate::args::{CompatArg, PayloadArgs, WriteArgs};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::Rules;
use crate::secrets::{Keys, SignedBy, TrustArgs};
use crate::terminal::Console;
use crate::whole_file;

const INSTEAD: &str = "only .apr models of version 1 have a place for a license";

const AFTER_HELP: &str = "The license is a part of the metadata. Nothing enforces it, and anyone who has the file can change or remove it; \
    a signature over the file shows whether someone did.\n\n\
    Examples:\n  apr license show sold.apr --signer maker.key.pub\n  \
    apr license check licensed.apr --seats 5 --tier team\n  \
    apr license set model.apr -o new.apr --licensee 'Example Ltd' --expiry 2030-06-30\n\n\
    Exit codes: 0 success, set, or it holds; 1 it does not hold, or there is none; 2 usage; 3 invalid file; 4 corrupted or not verified; 5 I/O; 6 another format.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: LicenseCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LicenseCommand {
    Show(ShowArgs),
    Check(CheckArgs),
    Set(SetArgs),
}

/// A value of `--tier`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TierArg {
    Personal,
    Team,
    Enterprise,
    Academic,
}

impl From<TierArg> for LicenseTier {
    fn from(tier: TierArg) -> Self {
        match tier {
            TierArg::Personal => Self::Personal,
            TierArg::Team => Self::Team,
            TierArg::Enterprise => Self::Enterprise,
            TierArg::Academic => Self::Academic,
        }
    }
}

const SHOW_AFTER_HELP: &str = "Examples:\n  apr license show licensed.apr\n  apr license show sold.apr --signer maker.key.pub --json\n\n\
    Exit codes: 0 success, 1 there is none, 3 invalid file, 4 corrupted or not verified, 5 I/O, 6 another \
    format.";

/// Show the license of a model.
#[derive(Debug, clap::Args)]
#[command(after_help = SHOW_AFTER_HELP)]
struct ShowArgs {
    /// An .apr model of version 1, or `-` for standard input.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    trust: TrustArgs,
}

const CHECK_AFTER_HELP: &str = "A date counts to the end of its day, UTC. An expiry that is no date has passed. Without --signer or \
    --trusted-keys, what is checked is text that anyone can have written.\n\n\
    Examples:\n  apr license check licensed.apr --at 2030-01-01\n  \
    apr license check sold.apr --seats 5 --signer maker.key.pub\n\n\
    Exit codes: 0 it holds, 1 it does not or there is none, 3 invalid file, 4 corrupted or not verified, \
    5 I/O, 6 another format.";

/// Say whether the license of a model holds.
#[derive(Debug, clap::Args)]
#[command(after_help = CHECK_AFTER_HELP)]
struct CheckArgs {
    /// An .apr model of version 1, or `-` for standard input.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// At this time instead of now: 2030-06-30, 2030-06-30T12:00:00Z, or seconds since 1970.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<u64>,
    /// For this many at a time; a license that names no number allows any.
    #[arg(long, value_name = "N")]
    seats: Option<u32>,
    /// It has to be of this tier.
    #[arg(long, value_name = "TIER")]
    tier: Option<TierArg>,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    trust: TrustArgs,
}

const SET_AFTER_HELP: &str = "What is not named stays as it is. Set the license before encrypting and signing: both cover it, and end with \
    it.\n\n\
    Examples:\n  apr license set model.apr -o new.apr --licensee 'Example Ltd' --expiry 2030-06-30\n  \
    apr license set licensed.apr -o free.apr --clear\n\n\
    Exit codes: 0 success, 2 OUT exists or nothing to set, 3 invalid file, 4 corrupted or signed, 5 \
    I/O, 6 another format or encrypted.";

/// Write a copy of a model with another license, or without one.
#[derive(Debug, clap::Args)]
#[command(after_help = SET_AFTER_HELP)]
struct SetArgs {
    /// An .apr model of version 1, not encrypted.
    #[arg(value_name = "MODEL")]
    input: PathBuf,
    /// The new file, or `-` for standard output.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// To whom it is given.
    #[arg(long, value_name = "TEXT")]
    licensee: Option<String>,
    /// Until when it holds: 2030-06-30, or a time such as 2030-06-30T12:00:00Z.
    #[arg(long, value_name = "DATE")]
    expiry: Option<String>,
    /// Identifier of the license.
    #[arg(long, value_name = "TEXT")]
    id: Option<String>,
    /// Digest of the license key.
    #[arg(long, value_name = "TEXT")]
    hash: Option<String>,
    /// How many may use it at a time.
    #[arg(long, value_name = "N")]
    seats: Option<u32>,
    /// Kind of license; personal if none is there.
    #[arg(long, value_name = "TIER")]
    tier: Option<TierArg>,
    /// Take the license out.
    #[arg(long, conflicts_with_all = ["licensee", "expiry", "id", "hash", "seats", "tier"])]
    clear: bool,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    payload: PayloadArgs,
}

/// A time in seconds since 1970; a date is its first second.
fn moment(text: &str) -> Result<u64, String> {
    let unix = |text: String| Metadata { created_at: text, ..Metadata::default() }.created_at_unix();
    unix(text.to_owned()).or_else(|| unix(format!("{text}T00:00:00Z"))).ok_or_else(|| {
        "a date such as 2030-06-30 is needed, a time such as 2030-06-30T12:00:00Z, or seconds".to_owned()
    })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// Runs `apr license`.
///
/// # Errors
///
/// If the file cannot be read, is invalid, or is not signed by whom it must be; for `set`, if it cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    match &args.command {
        LicenseCommand::Show(args) => {
            let (license, report) = read(&args.input, args.compat, &args.trust, console)?;
            report.show(license.as_ref(), console)?;
            Ok(if license.is_some() { Exit::Success } else { Exit::Different })
        }
        LicenseCommand::Check(args) => {
            let (license, report) = read(&args.input, args.compat, &args.trust, console)?;
            let at = args.at.unwrap_or_else(now);
            let problems = problems(license.as_ref(), at, args.seats, args.tier.map(Into::into));
            report.check(license.as_ref(), at, &problems, console)?;
            Ok(if problems.is_empty() { Exit::Success } else { Exit::Different })
        }
        LicenseCommand::Set(args) => set(args, console),
    }
}

/// The license of a file and the state of the file; verifies its signature first if one is required.
fn read(
    path: &Path,
    compat: CompatArg,
    trust: &TrustArgs,
    console: &Console,
) -> Result<(Option<License>, Report), Failure> {
    let mut rules = compat.rules();
    let keys = Keys::of_signers(trust.load()?);
    let source = whole_file::source(path, INSTEAD)?;
    let bytes = whole_file::read(&source, &rules, keys.trusted().trust(), console)?;
    let refused = |error: apr_container::Error, rules: &Rules| {
        whole_file::refused(error.into(), &bytes, &source, rules)
    };
    let signer = verify_signature(&bytes, keys.trusted().trust(), &rules.apr)
        .map_err(|error| refused(error, &rules))?;
    let signer = signer.map(SignedBy::from);
    // The report states whether the signature was verified, so it cannot be skipped.
    rules.apr.unchecked_signature = UncheckedSignature::Allow;
    let info = inspect_bytes_with(&bytes, &rules.apr).map_err(|error| refused(error, &rules))?;
    let report = Report { path: path.to_owned(), is_signed: info.signed, signer };
    Ok((info.metadata.license, report))
}

/// Why the license does not hold.
fn problems(
    license: Option<&License>,
    at: u64,
    seats: Option<u32>,
    tier: Option<LicenseTier>,
) -> Vec<String> {
    let Some(license) = license else { return vec!["the file has no license".to_owned()] };
    let mut problems = Vec::new();
    if let Some(expiry) = license.expiry.as_ref().filter(|_| license.has_expired(at)) {
        problems.push(match license.expiry_unix() {
            Some(_) => format!("it expired: {expiry}"),
            None => format!("its expiry is no date: {expiry}"),
        });
    }
    if let (Some(wanted), Some(allowed)) = (seats, license.seats)
        && wanted > allowed
    {
        problems.push(format!("it is for {allowed} at a time, not for {wanted}"));
    }
    if let Some(wanted) = tier.filter(|wanted| *wanted != license.tier) {
        problems.push(format!("it is of the tier {}, not {wanted}", license.tier));
    }
    problems
}

fn set(args: &SetArgs, console: &mut Console) -> Result<Exit, Failure> {
    let (path, rules) = (&args.input, args.payload.apply(args.compat.rules()));
    let SetArgs { licensee, expiry, id, hash, seats, tier, clear, .. } = args;
    let nothing =
        [licensee, expiry, id, hash].iter().all(|text| text.is_none()) && seats.is_none() && tier.is_none();
    if nothing && !clear {
        return Err(Failure::new(CODE_USAGE, "nothing to set is named")
            .help("name --licensee, --expiry, --seats, --tier, --id or --hash; or --clear"));
    }
    let output = args.write.output([&args.input], &args.output, console)?;
    let source = whole_file::source(path, INSTEAD)?;
    let bytes = whole_file::read(&source, &rules, Trust::NoSignature, console)?;
    let mut model = whole_file::open_plain(&bytes, &source, &rules)?;
    let mut license = model.metadata.license.take().unwrap_or_default();
    license.licensee = licensee.clone().or(license.licensee);
    license.expiry = expiry.clone().or(license.expiry);
    license.uuid = id.clone().unwrap_or(license.uuid);
    license.hash = hash.clone().unwrap_or(license.hash);
    license.seats = seats.or(license.seats);
    license.tier = tier.map_or(license.tier, Into::into);
    if license.expiry.is_some() && license.expiry_unix().is_none() {
        let what = format!("`{}` is no date", license.expiry.unwrap_or_default());
        return Err(Failure::new(CODE_USAGE, what).help("write --expiry 2030-06-30"));
    }
    model.metadata.license = (!clear).then_some(license);
    let file = model.to_vec()?;
    output.write(&file, console)?;
    report::set(path, &output, model.metadata.license.as_ref(), file.len(), console)?;
    Ok(Exit::Success)
}
