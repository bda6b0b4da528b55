//! A license as text and as JSON.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use apr_container::License;

use crate::error::Failure;
use crate::output::{Output, Run};
use crate::report::json::JsonWriter;
use crate::secrets::SignedBy;
use crate::terminal::Console;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human;
use crate::terminal::table::{Align, Table};

/// What is known of the file that the license is in.
pub(super) struct Report {
    pub(super) path: PathBuf,
    pub(super) is_signed: bool,
    /// Whose signature was verified, if one was demanded.
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
                "a label, not a lock; the file is signed, which nobody has checked (--signer)".to_owned()
            }
            (None, false) => {
                "a label, not a lock; the file is not signed: anyone can have written it".to_owned()
            }
        }
    }

    fn write_cover<W: Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        json.field_bool("signed", self.is_signed)?;
        json.field_opt("signer", self.signer.as_ref(), SignedBy::write_json)
    }

    pub(super) fn show(&self, license: Option<&License>, console: &mut Console) -> Result<(), Failure> {
        if console.is_json() {
            return console.json("apr.license/1", |json| {
                json.field_str("file", &self.path.to_string_lossy())?;
                json.key("license")?;
                write_license(license, json)?;
                self.write_cover(json)
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
            return console.json("apr.license-check/1", |json| {
                json.field_str("file", &self.path.to_string_lossy())?;
                json.field_bool("holds", problems.is_empty())?;
                json.field_uint("at", at)?;
                json.field_strings("problems", problems.iter().map(String::as_str))?;
                json.key("license")?;
                write_license(license, json)?;
                self.write_cover(json)
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

fn write_license<W: Write>(license: Option<&License>, json: &mut JsonWriter<W>) -> io::Result<()> {
    let Some(license) = license else { return json.null() };
    json.object()?;
    json.field_str("id", &license.uuid)?;
    json.field_str("hash", &license.hash)?;
    json.field_opt_str("licensee", license.licensee.as_deref())?;
    json.field_str("tier", license.tier.name())?;
    json.field_opt_str("expiry", license.expiry.as_deref())?;
    let mut number = |key: &str, value: Option<u64>| -> io::Result<()> {
        json.key(key)?;
        match value {
            Some(value) => json.uint(value),
            None => json.null(),
        }
    };
    number("expiry_unix", license.expiry_unix())?;
    number("seats", license.seats.map(u64::from))?;
    json.end_object()
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
        return console.json("apr.license-set/1", |json| {
            json.field_str("input", &path.to_string_lossy())?;
            json.field_str("output", &output.destination.label().to_string_lossy())?;
            json.field_bool("written", output.run == Run::Write)?;
            json.field_uint("bytes", len as u64)?;
            json.key("license")?;
            write_license(license, json)
        });
    }
    let how = license.map_or("no license", |_| "licensed");
    output.tell(how, len, console)
}
