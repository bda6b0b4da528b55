//! `apr explain`: what every error code means. The table also decides the exit code of a failure.

mod cli_codes;
mod container_codes;
mod crypto_codes;
mod file_codes;
mod format_codes;
mod gguf_codes;
mod manifest_codes;
mod model_codes;
mod quantize_codes;
mod quant_codes;
#[cfg(feature = "serve")]
mod serve_codes;
mod structure_codes;
mod wasm_codes;

use std::io::Write as _;

use clap::{Arg, ArgMatches, Command};

use crate::completions::Listed;
use crate::console::Console;
use crate::error::{CODE_UNKNOWN_CODE, Exit, Failure};
use crate::render::table::{Align, Table};
use crate::suggest::closest;

/// What a code means and what to do about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) code: &'static str,
    pub(crate) exit: Exit,
    /// What happened and why it is refused, in sentences.
    pub(crate) means: &'static str,
    /// The next step, one line.
    pub(crate) help: &'static str,
}

/// One entry of the table.
const fn entry(code: &'static str, exit: Exit, means: &'static str, help: &'static str) -> Entry {
    Entry { code, exit, means, help }
}

/// All entries, in the order they are listed.
fn entries() -> impl Iterator<Item = &'static Entry> {
    [
        format_codes::ENTRIES,
        structure_codes::ENTRIES,
        gguf_codes::ENTRIES,
        container_codes::ENTRIES,
        crypto_codes::ENTRIES,
        manifest_codes::ENTRIES,
        file_codes::ENTRIES,
        model_codes::ENTRIES,
        quantize_codes::ENTRIES,
        quant_codes::ENTRIES,
        #[cfg(feature = "serve")]
        serve_codes::ENTRIES,
        wasm_codes::ENTRIES,
        cli_codes::ENTRIES,
    ]
    .into_iter()
    .flatten()
}

/// The entry of a code.
pub(crate) fn find(code: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.code == code)
}

pub(crate) fn command() -> Command {
    Command::new("explain")
        .about("Say what an error code means and what to do about it")
        .arg(
            Arg::new("code")
                .value_name("CODE")
                .value_parser(Listed(codes))
                .hide_possible_values(true)
                .help("Code of an error message; without it, all codes are listed"),
        )
        .after_help(
            "Examples:\n  apr explain st-offsets\n  apr explain --json\n\n\
             Exit codes: 0 explained, 2 unknown code.",
        )
}

fn codes() -> Vec<&'static str> {
    entries().map(|entry| entry.code).collect()
}

/// Runs `apr explain`.
///
/// # Errors
///
/// If the code is unknown.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    match matches.get_one::<String>("code") {
        Some(code) => explain(code.trim().trim_start_matches("error").trim_matches(['[', ']']), console),
        None => list(console),
    }
}

fn explain(code: &str, console: &mut Console) -> Result<Exit, Failure> {
    let entry = find(code).ok_or_else(|| unknown(code))?;
    if console.is_json() {
        console.json("apr.explain/1", |json| {
            json.field_str("code", entry.code)?;
            json.field_uint("exit", entry.exit as u64)?;
            json.field_str("means", entry.means)?;
            json.field_str("help", entry.help)
        })?;
    } else {
        console.text(|out, style| {
            writeln!(out, "{}  (exit code {})\n", style.bold(entry.code), entry.exit as u8)?;
            writeln!(out, "{}\n", wrapped(entry.means, 78))?;
            writeln!(out, "What to do: {}", wrapped(entry.help, 78))
        })?;
    }
    Ok(Exit::Success)
}

fn list(console: &mut Console) -> Result<Exit, Failure> {
    if console.is_json() {
        console.json("apr.explain/1", |json| {
            json.key("codes")?;
            json.array()?;
            for entry in entries() {
                json.object()?;
                json.field_str("code", entry.code)?;
                json.field_uint("exit", entry.exit as u64)?;
                json.field_str("means", entry.means)?;
                json.field_str("help", entry.help)?;
                json.end_object()?;
            }
            json.end_array()
        })?;
    } else {
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
        table.row(["CODE", "EXIT", "MEANS"]);
        for entry in entries() {
            let exit = (entry.exit as u8).to_string();
            table.row([entry.code, &exit, first_sentence(entry.means)]);
        }
        console.text(|out, _| table.lines().iter().try_for_each(|line| writeln!(out, "{line}")))?;
    }
    Ok(Exit::Success)
}

fn unknown(code: &str) -> Failure {
    let failure = Failure::new(CODE_UNKNOWN_CODE, format!("`{code}` is not an error code"));
    match closest(code, entries().map(|entry| entry.code)) {
        Some(close) => failure.help(format!("did you mean `{close}`?")),
        None => failure,
    }
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

/// The text in lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if used > 0 && used + 1 + len > width {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += len;
    }
    out
}

/// What it means that shards and index disagree, whoever finds it.
const SHARDS_DISAGREE: &str = "The index and the shards of a model do not agree: a shard is missing, a tensor is not where the index \
         says or is not listed, or the total size differs. A program that loads the model would miss tensors or \
         load stale ones.";
/// What to do about it.
const MEND_SHARDS: &str = "`apr check FOLDER` lists every disagreement; fetch the files again, or make the set anew with `apr shard`";
/// What to do about a signature that does not match.
const NOT_AS_SIGNED: &str = "do not use the file: get it from its maker again, and compare the fingerprint of the key with the maker's";

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_code_of_every_crate_is_explained_once() {
        let lists: &[&[&str]] = &[
            st_core::ErrorKind::CODES,
            st_structures::ErrorKind::CODES,
            gguf_core::ErrorKind::CODES,
            apr_container::ErrorKind::CODES,
            apr_crypto::ErrorKind::CODES,
            apr_manifest::ErrorKind::CODES,
            durable_file::ErrorKind::CODES,
            st_mmap::ErrorKind::CODES,
            apr_models::ErrorKind::CODES,
            apr_convert::ErrorKind::CODES,
            apr_quant::ErrorKind::CODES,
            #[cfg(feature = "serve")]
            apr_serve::CODES,
            crate::error::CODES,
        ];
        let known: BTreeSet<&str> = entries().map(|entry| entry.code).collect();
        assert_eq!(known.len(), entries().count(), "a code is explained twice");
        let package = codes_of_package();
        let mut all: BTreeSet<&str> = lists.iter().copied().flatten().copied().collect();
        all.extend(package.iter().map(String::as_str));
        let missing: Vec<_> = all.difference(&known).collect();
        let stale: Vec<_> = known.difference(&all).collect();
        assert!(missing.is_empty() && stale.is_empty(), "missing {missing:?}, stale {stale:?}");
    }

    /// The codes in the sources of the npm package, which this crate does not use.
    fn codes_of_package() -> BTreeSet<String> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apr-wasm");
        let mut folders = vec![package.join("src"), package.join("js")];
        let mut codes = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let text = fs::read_to_string(entry.path()).unwrap();
                codes.extend(text.split('"').filter(|word| is_code_of_package(word)).map(str::to_owned));
            }
        }
        codes
    }

    fn is_code_of_package(word: &str) -> bool {
        let is_letter = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        word.strip_prefix("aw-").is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_letter))
    }

    #[test]
    fn texts_are_sentences() {
        for entry in entries() {
            assert!(entry.means.ends_with('.'), "{}", entry.code);
            assert!(!entry.help.is_empty() && !entry.help.ends_with('.'), "{}", entry.code);
            assert!(!entry.help.contains('\n') && !entry.means.contains("  "), "{}", entry.code);
        }
    }

    #[test]
    fn close_codes_are_suggested() {
        let failure = unknown("st-ofsets");
        assert_eq!(failure.advice().as_deref(), Some("did you mean `st-offsets`?"));
        assert_eq!(unknown("completely different").code(), CODE_UNKNOWN_CODE);
        assert!(!unknown("foo").advice().unwrap().contains("did you mean"));
    }

    #[test]
    fn lines_are_wrapped_at_words() {
        assert_eq!(wrapped("aa bb cc", 5), "aa bb\ncc");
        assert_eq!(wrapped("aaaaaaa b", 3), "aaaaaaa\nb");
    }
}
