//! Errors of the command line, in the form of every other error.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli;
use crate::error::{CODE_USAGE, Failure};
use crate::terminal::escape::{self, Visible, cut, escaped, without_credentials};
use crate::terminal::suggest;

/// Most characters of a word that a message repeats.
const MAX_WORD: usize = 200;

/// The failure of arguments that the parser refuses.
pub(crate) fn failure(mut error: clap::Error, args: &[OsString]) -> Failure {
    forget_far_suggestions(&mut error);
    let tip = tip(&error, args);
    escape_words(&mut error);
    let usage = match error.remove(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let text = error.render().to_string();
    let lines: Vec<String> = text.lines().map(|line| Visible(line.trim()).to_string()).collect();
    let what: Vec<&str> = lines.iter().map(String::as_str).take_while(|line| !line.is_empty()).collect();
    let what = what.join(" ");
    let tips: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("tip: ")).collect();
    let help = match (tip, tips.is_empty()) {
        (Some(tip), _) => tip,
        (None, false) => tips.join("; "),
        (None, true) => match command(args) {
            Some(name) => format!("see `apr {name} --help`"),
            None => "see `apr --help`".to_owned(),
        },
    };
    let failure = Failure::new(CODE_USAGE, what.strip_prefix("error: ").unwrap_or(&what)).help(help);
    let usage = usage.lines().next().unwrap_or_default().trim();
    match usage.strip_prefix("Usage:").map(str::trim) {
        Some(usage) => failure.with_usage(usage),
        None => failure,
    }
}

/// The command of a command line.
fn command(args: &[OsString]) -> Option<&str> {
    args.iter().skip(1).filter_map(|arg| arg.to_str()).find(|word| cli::is_command(word))
}

/// Advice for a frequent mistake, where the parser has none.
fn tip(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    if matches!(word.as_str(), "--password" | "--passwd" | "--passphrase") {
        let tip = "a password is never taken from the command line, where other users and the history of the shell can see it: \
                   --ask-password, --password-file PATH or --password-fd N";
        return Some(tip.to_owned());
    }
    if usage.trim_end().ends_with("<ALGORITHM>") {
        return Some(
            "name the algorithm first: apr train ALGORITHM --data TABLE ...; `apr train --help` lists the algorithms"
                .to_owned(),
        );
    }
    let shown = |word: &str| escaped(&escape::word(&cut(&without_credentials(word.into()), MAX_WORD)));
    let first =
        args.iter().skip(2).filter_map(|arg| arg.to_str()).find(|arg| *arg != word && !arg.starts_with('-'));
    let name = command(args)?;
    if cli::is_command(word) && name == "inspect" {
        // `inspect` was put before a file.
        return Some(format!("the command comes first: apr {word} {}", shown(first.unwrap_or("FILE"))));
    }
    let is_file = !word.starts_with('-') && Path::new(word.as_str()).exists();
    let takes_one = ["inspect", "tensors", "dump", "serve", "embed"].contains(&name);
    (is_file && takes_one).then(|| {
        let first = first.unwrap_or("FILE");
        format!(
            "`apr {name}` takes one file; `apr diff {} {}` compares two, `apr check` takes several",
            shown(first),
            shown(word)
        )
    })
}

/// Drops the suggestion of an option that is far from what was typed, and the hint that an option may be meant as a value.
fn forget_far_suggestions(error: &mut clap::Error) {
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.trim_start_matches('-').to_owned()),
        _ => None,
    };
    if let (Some(typed), Some(suggested)) = (text(ContextKind::InvalidArg), text(ContextKind::SuggestedArg))
        && suggest::closest(&typed, [&suggested]).is_none()
    {
        error.remove(ContextKind::SuggestedArg);
    }
    error.remove(ContextKind::Suggested);
}

/// Escapes what an error repeats of the command line: a word may hold line feeds, which would look like lines of the program, and it
/// may be very long.
fn escape_words(error: &mut clap::Error) {
    use ContextValue::{String, Strings, StyledStrs};
    let escaped = |text: &str| cut(&without_credentials(text.into()), MAX_WORD);
    let escape = |kind: ContextKind, value: &_| match value {
        String(text) => Some(String(escaped(text))),
        // Values of the program.
        Strings(_) if kind == ContextKind::ValidValue => None,
        Strings(texts) => Some(Strings(texts.iter().map(|text| escaped(text)).collect())),
        // Suggestions, which repeat words too.
        StyledStrs(texts) => {
            Some(StyledStrs(texts.iter().map(|text| escaped(&text.to_string()).into()).collect()))
        }
        _ => None,
    };
    let values: Vec<_> =
        error.context().filter_map(|(kind, value)| escape(kind, value).map(|value| (kind, value))).collect();
    for (kind, value) in values {
        error.insert(kind, value);
    }
}
