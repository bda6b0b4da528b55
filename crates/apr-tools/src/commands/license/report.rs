//! A license as text and as JSON.

use alloc::borrow::Cow;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use apr_container::License;
use serde::Serialize;

use crate::error::Failure;
use crate::output::Output;
use crate::report::{self, Written};
use crate::secrets::SignedBy;
use crate::terminal::Console;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human;
use crate::terminal::table::{Align, Table};

/// The state of the file with the license.
pub(super) struct Report {
    pub(super) path: PathBuf,
    pub(super) is_signed: bool,
    /// The signer, if a signature was required.
    pub(super) signer: Option<SignedBy>,
}

impl Report {
    /// Who vouches for the license.
    fn cover(&self) -> String {
        match (&self.signer, self.is_signed) {
            (Some(signer), _) if signer.name.is_some() => {
                format!("a label, not a lock; covered by a verified signature {}", signer.by())
            }
            (Some(signer), _) => {
                format!("a label, not a lock; unchanged since it was signed {}: that is anyone", signer.by())
            }
            (None, true) => {
                "a label, not a lock; the file is signed, and the signature was not verified (--signer)"
                    .to_owned()
            }
            (None, false) => {
                "a label, not a lock; the file is not signed: anyone can have written it".to_owned()
            }
        }
    }

    pub(super) fn show(&self, license: Option<&License>, console: &mut Console) -> Result<(), Failure> {
        if console.is_json() {
            return console.report(&LicenseReport {
                file: report::path(&self.path),
                license: license.map(Into::into),
                signed: self.is_signed,
                signer: self.signer.as_ref(),
            });
        }
        console.text(|out, style| {
            writeln!(out, "{}", style.bold(&escape::path(&self.path)))?;
            match license {
                None => writeln!(out, "  no license"),
                Some(license) => {
                    table(license, &self.cover()).lines().iter().try_for_each(|line| writeln!(out, "{line}"))
                }
            }
        })
    }

    pub(super) fn check(
        &self,
        license: Option<&License>,
        at: u64,
        problems: &[String],
        console: &mut Console,
    ) -> Result<(), Failure> {
        if console.is_json() {
            return console.report(&LicenseCheckReport {
                file: report::path(&self.path),
                holds: problems.is_empty(),
                at,
                problems,
                license: license.map(Into::into),
                signed: self.is_signed,
                signer: self.signer.as_ref(),
            });
        }
        console.text(|out, style| {
            let file = escape::path(&self.path);
            match problems {
                [] => writeln!(out, "{} {file}: the license holds", style.green("ok"))?,
                _ => writeln!(out, "{} {file}: the license does not hold", style.red("no"))?,
            }
            let mark = style.yellow("!");
            problems.iter().try_for_each(|problem| writeln!(out, "  {mark} {}", escaped(problem)))?;
            match license {
                Some(_) => writeln!(out, "  {}", self.cover()),
                None => Ok(()),
            }
        })
    }
}

fn table(license: &License, cover: &str) -> Table {
    let mut table = Table::new(&[Align::Left, Align::Left]);
    let mut line = |label: &str, text: String| table.row([format!("  {label}"), text]);
    let or_none = |text: Option<&str>| match text {
        Some(text) if !text.is_empty() => escaped(text),
        _ => "not stated".to_owned(),
    };
    line("licensee", or_none(license.licensee.as_deref()));
    line("tier", escaped(license.tier.name()));
    let expiry = match (&license.expiry, license.expiry_unix()) {
        (None, _) => "never".to_owned(),
        (Some(text), Some(end)) => format!("{} (until {})", escaped(text), human::unix_time(end)),
        (Some(text), None) => format!("{} (no date)", escaped(text)),
    };
    line("expiry", expiry);
    line("seats", license.seats.map_or_else(|| "not stated".to_owned(), |seats| seats.to_string()));
    line("id", or_none(Some(&license.uuid)));
    line("hash", or_none(Some(&license.hash)));
    line("worth", cover.to_owned());
    table
}

/// `apr license show`.
#[derive(Serialize)]
struct LicenseReport<'a> {
    file: Cow<'a, str>,
    license: Option<LicenseFields<'a>>,
    signed: bool,
    signer: Option<&'a SignedBy>,
}

impl report::Report for LicenseReport<'_> {
    const SCHEMA: &'static str = "apr.license/1";
}

/// `apr license check`.
#[derive(Serialize)]
struct LicenseCheckReport<'a> {
    file: Cow<'a, str>,
    holds: bool,
    at: u64,
    problems: &'a [String],
    license: Option<LicenseFields<'a>>,
    signed: bool,
    signer: Option<&'a SignedBy>,
}

impl report::Report for LicenseCheckReport<'_> {
    const SCHEMA: &'static str = "apr.license-check/1";
}

/// `apr license set`.
#[derive(Serialize)]
struct LicenseSetReport<'a> {
    #[serde(flatten)]
    file: Written<'a>,
    license: Option<LicenseFields<'a>>,
}

impl report::Report for LicenseSetReport<'_> {
    const SCHEMA: &'static str = "apr.license-set/1";
}

#[derive(Serialize)]
struct LicenseFields<'a> {
    id: &'a str,
    hash: &'a str,
    licensee: Option<&'a str>,
    tier: &'a str,
    expiry: Option<&'a str>,
    expiry_unix: Option<u64>,
    seats: Option<u32>,
}

impl<'a> From<&'a License> for LicenseFields<'a> {
    fn from(license: &'a License) -> Self {
        Self {
            id: &license.uuid,
            hash: &license.hash,
            licensee: license.licensee.as_deref(),
            tier: license.tier.name(),
            expiry: license.expiry.as_deref(),
            expiry_unix: license.expiry_unix(),
            seats: license.seats,
        }
    }
}

/// What `apr license set` wrote.
pub(super) fn set(
    path: &Path,
    output: &Output,
    license: Option<&License>,
    len: usize,
    console: &mut Console,
) -> Result<(), Failure> {
    if console.is_json() {
        return console.report(&LicenseSetReport {
            file: Written::new(path, output.destination.label(), output.run, len as u64),
            license: license.map(Into::into),
        });
    }
    let how = license.map_or("no license", |_| "licensed");
    output.tell(how, len, console)
}
