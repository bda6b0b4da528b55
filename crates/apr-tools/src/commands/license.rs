//! `apr license`: what a model says about who may use it. A label, not a lock.

mod report;

use std::time::{SystemTime, UNIX_EPOCH};

use apr_container::{
    License, LicenseTier, Metadata, UncheckedSignature, inspect_bytes_with, verify_signature,
};
use apr_crypto::Trust;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use self::report::Report;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{self, Rules};
use crate::output::{self, Output};
use crate::secrets::{Keys, SignedBy, TrustArgs};
use crate::terminal::Console;
use crate::whole_file;

const TIERS: [(&str, LicenseTier); 4] = [
    ("personal", LicenseTier::Personal),
    ("team", LicenseTier::Team),
    ("enterprise", LicenseTier::Enterprise),
    ("academic", LicenseTier::Academic),
];
const INSTEAD: &str = "only .apr models of version 1 have a place for a license";

pub(crate) fn command() -> Command {
    Command::new("license")
        .about("Show, check or set the license in an .apr model: a label, not a lock")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands([show_command(), check_command(), set_command()])
        .after_help(
            "The license is a part of the metadata. Nothing enforces it, and whoever has the file can change or remove it; \
             a signature over the file shows whether somebody did.\n\n\
             Examples:\n  apr license show sold.apr --signer maker.key.pub\n  \
             apr license check licensed.apr --seats 5 --tier team\n  \
             apr license set model.apr -o new.apr --licensee 'Example Ltd' --expiry 2030-06-30\n\n\
             Exit codes: 0 shown, set, or it holds; 1 it does not hold, or there is none; 2 usage; 3 not a sound model \
             file; 4 damaged or not verified; 5 I/O; 6 another format.",
        )
}

fn show_command() -> Command {
    Command::new("show")
        .about("Show the license of a model")
        .arg(input::input_arg().help("An .apr model of version 1, or `-` for standard input"))
        .arg(input::compat_arg())
        .args(TrustArgs::args())
        .after_help(
            "Examples:\n  apr license show licensed.apr\n  apr license show sold.apr --signer maker.key.pub --json\n\n\
             Exit codes: 0 shown, 1 there is none, 3 not a sound model file, 4 damaged or not verified, 5 I/O, 6 another \
             format.",
        )
}

fn check_command() -> Command {
    Command::new("check")
        .about("Say whether the license of a model holds")
        .arg(input::input_arg().help("An .apr model of version 1, or `-` for standard input"))
        .arg(
            Arg::new("at")
                .long("at")
                .value_name("DATE")
                .value_parser(moment)
                .help("At this time instead of now: 2030-06-30, 2030-06-30T12:00:00Z, or seconds since 1970"),
        )
        .arg(
            Arg::new("seats")
                .long("seats")
                .value_name("N")
                .value_parser(value_parser!(u32))
                .help("For this many at a time; a license that names no number allows any"),
        )
        .arg(tier_arg().help("It has to be of this tier"))
        .arg(input::compat_arg())
        .args(TrustArgs::args())
        .after_help(
            "A date counts to the end of its day, UTC. An expiry that is no date has passed. Without --signer or \
             --trusted-keys, what is checked is a text that anybody can have written.\n\n\
             Examples:\n  apr license check licensed.apr --at 2030-01-01\n  \
             apr license check sold.apr --seats 5 --signer maker.key.pub\n\n\
             Exit codes: 0 it holds, 1 it does not or there is none, 3 not a sound model file, 4 damaged or not verified, \
             5 I/O, 6 another format.",
        )
}

fn set_command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("set")
        .about("Write a copy of a model with another license, or without one")
        .arg(input::input_arg().value_name("MODEL").help("An .apr model of version 1, not encrypted"))
        .arg(output::output_arg("The new file, or `-` for standard output"))
        .arg(text("licensee", "TEXT", "Whom it is given to"))
        .arg(text("expiry", "DATE", "Until when it holds: 2030-06-30, or a time such as 2030-06-30T12:00:00Z"))
        .arg(text("id", "TEXT", "Identifier of the license"))
        .arg(text("hash", "TEXT", "Digest of the license key"))
        .arg(
            Arg::new("seats")
                .long("seats")
                .value_name("N")
                .value_parser(value_parser!(u32))
                .help("How many may use it at a time"),
        )
        .arg(tier_arg().help("Kind of license; personal if none is there"))
        .arg(
            Arg::new("clear")
                .long("clear")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["licensee", "expiry", "id", "hash", "seats", "tier"])
                .help("Take the license out"),
        )
        .arg(input::compat_arg())
        .arg(output::force_arg())
        .arg(output::dry_run_arg())
        .arg(input::unverified_arg())
        .arg(input::trusted_arg())
        .after_help(
            "What is not named stays as it is. Set the license before encrypting and signing: both cover it, and end with \
             it.\n\n\
             Examples:\n  apr license set model.apr -o new.apr --licensee 'Example Ltd' --expiry 2030-06-30\n  \
             apr license set licensed.apr -o free.apr --clear\n\n\
             Exit codes: 0 written, 2 OUT exists or nothing to set, 3 not a sound model file, 4 damaged or signed, 5 \
             I/O, 6 another format or encrypted.",
        )
}

fn tier_arg() -> Arg {
    Arg::new("tier")
        .long("tier")
        .value_name("TIER")
        .value_parser(PossibleValuesParser::new(TIERS.map(|(name, _)| name)))
}

fn tier(matches: &ArgMatches) -> Option<LicenseTier> {
    let wanted = matches.get_one::<String>("tier")?;
    TIERS.into_iter().find(|(name, _)| name == wanted).map(|(_, tier)| tier)
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
/// If the file cannot be read, is not sound, or is not signed by whom it must be; for `set`, if it cannot be written.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let (name, matches) = matches.subcommand().expect("clap requires a subcommand");
    match name {
        "show" => {
            let (license, report) = read(matches, console)?;
            report.show(license.as_ref(), console)?;
            Ok(if license.is_some() { Exit::Success } else { Exit::Different })
        }
        "check" => {
            let (license, report) = read(matches, console)?;
            let at = matches.get_one::<u64>("at").copied().unwrap_or_else(now);
            let problems = problems(license.as_ref(), at, matches.get_one("seats").copied(), tier(matches));
            report.check(license.as_ref(), at, &problems, console)?;
            Ok(if problems.is_empty() { Exit::Success } else { Exit::Different })
        }
        _ => set(matches, console),
    }
}

/// The license of a file, and what is known of the file; its signature first if one is demanded.
fn read(matches: &ArgMatches, console: &Console) -> Result<(Option<License>, Report), Failure> {
    let (path, mut rules) = (input::path(matches), input::rules_of(matches));
    let keys = Keys::of_signers(TrustArgs::from_matches(matches).load()?);
    let source = whole_file::source(path, INSTEAD)?;
    let bytes = whole_file::read(&source, &rules, keys.trusted().trust(), console)?;
    let refused = |error: apr_container::Error, rules: &Rules| {
        whole_file::refused(error.into(), &bytes, &source, rules)
    };
    let signer = verify_signature(&bytes, keys.trusted().trust(), &rules.apr)
        .map_err(|error| refused(error, &rules))?;
    let signer: Option<SignedBy> = signer.map(|signer| keys.signed_by(signer));
    // To look is no use: whether the signature was checked is a part of the answer.
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

fn set(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let (path, rules) = (input::path(matches), input::rules_of(matches));
    let text = |name| matches.get_one::<String>(name).cloned();
    let (licensee, expiry, id, hash) = (text("licensee"), text("expiry"), text("id"), text("hash"));
    let (seats, tier, clear) =
        (matches.get_one::<u32>("seats").copied(), tier(matches), matches.get_flag("clear"));
    let nothing = [&licensee, &expiry, &id, &hash].iter().all(|text| text.is_none())
        && seats.is_none()
        && tier.is_none();
    if nothing && !clear {
        return Err(Failure::new(CODE_USAGE, "nothing to set is named")
            .help("name --licensee, --expiry, --seats, --tier, --id or --hash; or --clear"));
    }
    let output = Output::from_matches(matches, console)?;
    let source = whole_file::source(path, INSTEAD)?;
    let bytes = whole_file::read(&source, &rules, Trust::NoSignature, console)?;
    let mut model = whole_file::open_plain(&bytes, &source, &rules)?;
    let mut license = model.metadata.license.take().unwrap_or_default();
    license.licensee = licensee.or(license.licensee);
    license.expiry = expiry.or(license.expiry);
    license.uuid = id.unwrap_or(license.uuid);
    license.hash = hash.unwrap_or(license.hash);
    license.seats = seats.or(license.seats);
    license.tier = tier.unwrap_or(license.tier);
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
