//! `apr embed`: writes the project of a program that contains a model.

mod answer;
mod file;
mod project;
mod service;
mod template;

use alloc::borrow::Cow;
use alloc::rc::Rc;
use std::fs;
use std::path::{Path, PathBuf};

use apr_crypto::Trusted;
use durable_file::StagedDir;
use serde::Serialize;

use self::answer::Answer;
use self::file::MAX_LEN;
pub(crate) use self::file::{Format, ModelFile, Signature};
use self::project::{Checkout, Optimize, Project, Shape};
use crate::args::DryRunArg;
use crate::error::{CODE_FOREIGN_FORMAT, CODE_NOT_PUBLISHED, CODE_OUTPUT_EXISTS, CODE_USAGE, Exit, Failure};
use crate::input::{Model, NamedModel, Rules};
use crate::output::{self, Overwrite, Run};
use crate::remote;
use crate::report::{self, OneLine, Report};
use crate::sealed_file::is_sealed;
use crate::secrets::{HEADING, Identity, KeyPasswordArgs, Keys, load_recipient_secret, load_trusted};
use crate::terminal::Console;
use crate::terminal::escape::{self, Visible};
use crate::{commands::predict, terminal::human};

const AFTER_HELP: &str = "The program answers its arguments, or the lines of its standard input, as `apr predict` does: numbers of a row \
    separated by commas, or a text. The model is checked when the program starts. A test of the project compares \
    its answers with those recorded now.\n\n\
    With --signer the program verifies the signature with that key, which it carries, before it uses the model. An \
    encrypted model is refused: its key would have to be in the program. A sealed file is verified (--signer) and decrypted (--identity) now, and \
    the program contains what is inside.\n\n\
    With --serve the program is an HTTP service on the address of its argument, as `apr serve` is one for any model.\n\n\
    Examples:\n  apr embed model.apr -o house-prices --crates checkout\n  \
    apr embed made.apr --signer maker.key.pub --opt speed -o prices --crates checkout --dry-run\n\n\
    Exit codes: 0 success, 2 the folder exists, it predicts nothing or --crates is missing, 3 invalid file, 4 corrupted or not verified, 5 I/O, \
    6 another format, or encrypted.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// An .apr model, a .safetensors or .apr file with the tensors of one, or a sealed file of one of these.
    #[arg(value_name = "MODEL")]
    input: PathBuf,
    /// Folder of the project; it must not exist, and is created atomically.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Language of the program.
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t)]
    lang: Language,
    /// Name of the program; without it, that of the file.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What the compiler optimizes for.
    #[arg(long, value_name = "FOR", value_enum, default_value_t = Optimize::Size)]
    opt: Optimize,
    /// Folder of a checkout of this project, whose crates the program is built from; required until they are published.
    #[arg(long, value_name = "CHECKOUT")]
    crates: Option<PathBuf>,
    /// An HTTP service instead of a filter of lines.
    #[arg(long, conflicts_with = "signer")]
    serve: bool,
    /// Require a signature by this public key: the key itself, or its file.
    #[arg(long, value_name = "KEY-OR-FILE", help_heading = HEADING)]
    signer: Option<PathBuf>,
    /// Open a sealed file with this secret key of a recipient; the program contains what is inside, decrypted.
    #[arg(long, value_name = "KEYFILE", help_heading = HEADING)]
    identity: Option<PathBuf>,
    #[command(flatten)]
    key_password: KeyPasswordArgs,
    /// Use a signed .apr file without verifying its signature.
    #[arg(long)]
    allow_unverified: bool,
    #[command(flatten)]
    dry_run: DryRunArg,
}

/// A value of `--lang`.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Language {
    #[default]
    Rust,
}

/// The project that was written.
#[derive(Serialize)]
struct EmbedReport<'a> {
    file: Cow<'a, str>,
    output: Cow<'a, str>,
    written: bool,
    name: &'a str,
    model: &'a str,
    model_bytes: u64,
    in_place: bool,
    verifies_signature: bool,
    features: OneLine<'a, &'a str>,
}

impl Report for EmbedReport<'_> {
    const SCHEMA: &'static str = "apr.embed/1";
}

/// Runs `apr embed`.
///
/// # Errors
///
/// If the model cannot be loaded, predicts nothing, or is encrypted; if the folder exists or cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let Args { lang: Language::Rust, input: path, output: folder, .. } = args;
    if path.as_os_str() == "-" {
        return Err(Failure::new(CODE_USAGE, "the model must be a file"));
    }
    remote::refuse_folder(folder)?;
    if folder.symlink_metadata().is_ok() {
        return Err(Failure::new(CODE_OUTPUT_EXISTS, "the folder of the project exists")
            .in_file(folder)
            .help("choose the name of a new folder"));
    }
    let is_sealed = is_sealed(path);
    if args.identity.is_some() && !is_sealed {
        return Err(Failure::new(CODE_USAGE, "--identity is for sealed files").in_file(path).help(
            "an encrypted .apr file is decrypted first: `apr decrypt MODEL -o OUT --identity KEYFILE`",
        ));
    }
    let mut rules = Rules::STRICT;
    if args.allow_unverified {
        rules = rules.with_unchecked_signatures();
    }
    let trusted = args.signer.as_deref().map(load_trusted).transpose()?.unwrap_or_default();
    let signer = match &trusted {
        Trusted::AnyOf(keys) => keys.iter().map(|(_, key)| *key).next(),
        Trusted::NoSignature | Trusted::Anyone => None,
    };
    let mut keys = Keys::of_signers(trusted);
    if let Some(identity) = &args.identity {
        let secret = load_recipient_secret(identity, &args.key_password)?;
        keys = keys.with_identity(Identity::Recipient(secret));
    }
    let opened = Model::open_content(path, &rules, &Rc::new(keys));
    let opened = opened.map_err(if is_sealed { sealed_without_key } else { not_encrypted })?;
    // Its signature covers the sealed file, which the program does not contain.
    let inside = if is_sealed { Some(opened.content(MAX_LEN)?) } else { None };
    let known = opened.named().map_err(not_encrypted)?;
    let file = match inside {
        Some(bytes) => ModelFile::new(bytes, path, &known, None)?,
        None => ModelFile::read(path, &known, signer)?,
    };
    let name = program_name(args.name.as_ref(), path)?;
    let shape = if args.serve { Shape::Service } else { Shape::Lines };
    if shape == Shape::Service {
        check_serves(&file).map_err(|failure| failure.in_file(path))?;
    }
    // Last: whatever is wrong with the model counts more.
    let checkout = args.crates.as_ref().ok_or_else(no_crates)?;
    let checkout = Checkout::find(checkout)?;
    let project = Project::new(&known, &file, &name, shape, args.opt, &checkout);
    let project = project.map_err(|failure| failure.in_file(path))?;
    let run = args.dry_run.run();
    if run == Run::Write {
        write(folder, &project, &known, console)?;
    }
    print(&project, path, folder, run, console)?;
    if is_sealed {
        console.remark("the program contains the decrypted model: keep it as secret as the model");
    }
    Ok(Exit::Success)
}

/// Refuses to name crates by version while they are not published: a registry would serve what anybody published there under
/// their names, and cargo runs its build scripts.
fn no_crates() -> Failure {
    Failure::new(CODE_NOT_PUBLISHED, "--crates is required: the crates of the program are not published")
        .because("by version, cargo would build crates of the same names by another author")
        .help("name the folder of a checkout of this project: --crates CHECKOUT")
}

/// Refuses a file that the embedding API of services does not read.
fn check_serves(file: &ModelFile) -> Result<(), Failure> {
    match &file.format {
        Format::First { signature: Signature::None, .. } => Ok(()),
        Format::First { .. } => {
            Err(Failure::new(CODE_USAGE, "a service around a signed model is not written")
                .help("`apr serve MODEL --signer KEY` serves it, and verifies it first"))
        }
        Format::Tensors { reader: "from_safetensors" } => {
            Err(Failure::new(CODE_FOREIGN_FORMAT, "a service is written around an .apr model")
                .help("make one of it first: `apr convert MODEL model.apr`"))
        }
        Format::Tensors { .. } => Ok(()),
    }
}

/// Refuses a model without predictions.
///
/// # Errors
///
/// If the model has no predictions.
pub(crate) fn check_predicts(known: &NamedModel) -> Result<(), Failure> {
    Answer::of(known).map(|_| ())
}

/// Adds help for a sealed file that does not open.
fn sealed_without_key(failure: Failure) -> Failure {
    match failure.code() {
        "ac-encrypted" => failure.help(
            "open it with --identity KEYFILE: the program contains the decrypted model then, and is as secret as it",
        ),
        _ => failure,
    }
}

/// Adds help for a model that needs a key.
pub(crate) fn not_encrypted(failure: Failure) -> Failure {
    match failure.code() {
        "ac-encrypted" => failure.help(
            "a program that opens it would carry its key, for anyone to find: `apr decrypt` it first, and keep the program \
             as secret as the model",
        ),
        _ => failure,
    }
}

/// A name that cargo takes: letters, digits, `-` and `_`, beginning with a letter.
fn program_name(given: Option<&String>, path: &Path) -> Result<String, Failure> {
    let is_name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            && text.len() <= 64
            && !RESERVED.contains(&text)
    };
    if let Some(name) = given {
        return match is_name(name) {
            true => Ok(name.clone()),
            false => {
                let what = format!("`{}` cannot be the name of the program", escape::escaped(name));
                let failure = Failure::new(CODE_USAGE, what);
                Err(match RESERVED.contains(&name.as_str()) {
                    true => {
                        failure.because("cargo or Rust uses this name itself").help("choose another name")
                    }
                    false => {
                        failure.help("use at most 64 letters, digits, `-` and `_`, beginning with a letter")
                    }
                })
            }
        };
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = stem.chars().map(plain).take(64).collect();
    let name = name.trim_matches('-').to_owned();
    Ok(if is_name(&name) {
        name
    } else {
        format!("model-{name}").trim_end_matches('-').chars().take(64).collect()
    })
}

/// Names that cargo refuses, or that stand for something else in a project: those of crates the program uses, and words of
/// the language.
const RESERVED: &[&str] = &[
    "Self",
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "core",
    "std",
    "alloc",
    "proc-macro",
    "proc_macro",
    "build",
    "deps",
    "examples",
    "incremental",
    "apr-container",
    "apr-crypto",
    "apr-models",
    "apr-serve",
    "apr_container",
    "apr_crypto",
    "apr_models",
    "apr_serve",
];

/// Writes all files, and records the predictions that the project's test compares with.
fn write(folder: &Path, project: &Project, known: &NamedModel, console: &Console) -> Result<(), Failure> {
    let staged = StagedDir::create(folder)?;
    let fill = |base: &Path| -> Result<(), Failure> {
        for (name, content) in &project.files {
            let path = base.join(name);
            let parent = path.parent().unwrap_or(base);
            fs::create_dir_all(parent).map_err(|error| Failure::io("make the folder", parent, &error))?;
            output::write_file(&path, content, Overwrite::Refuse)?;
        }
        match &project.recorded {
            Some(recorded) => {
                // Programs take the numbers of categories.
                let known = NamedModel { categories: None, ..known.clone() };
                predict::record(&known, &base.join(recorded.rows), &base.join(recorded.predictions), console)
            }
            None => Ok(()),
        }
    };
    fill(staged.path()).map_err(|failure| failure.moved(staged.path(), folder))?;
    Ok(staged.commit()?)
}

fn print(
    project: &Project,
    path: &Path,
    folder: &Path,
    run: Run,
    console: &mut Console,
) -> Result<(), Failure> {
    if console.is_json() {
        return console.report(&EmbedReport {
            file: report::path(path),
            output: report::path(folder),
            written: run == Run::Write,
            name: &project.name,
            model: project.model,
            model_bytes: project.model_bytes,
            in_place: project.is_view,
            verifies_signature: project.is_verified,
            features: OneLine(&project.features),
        });
    }
    let (label, name) = (escape::path(folder), &project.name);
    let size = human::bytes(project.model_bytes);
    let verb = if run == Run::Write { "wrote" } else { "would write" };
    console.note(format_args!("{verb} {label}: the program `{name}` around a {} of {size}", project.model));
    if run == Run::Write {
        console.note(format_args!(
            "next: cargo run --release --manifest-path {} -- {}",
            escape::path_word(&folder.join("Cargo.toml")),
            Visible(&project.argument)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_cargo_takes() {
        let of = |path: &str| program_name(None, Path::new(path)).unwrap();
        assert_eq!(of("a/flat prices.v2.apr"), "flat-prices-v2");
        assert_eq!(
            (of("7.apr"), of("\u{e4}.apr"), of("test.apr")),
            ("model-7".into(), "model".into(), "model-test".into())
        );
        for bad in ["", "7", "a b", "a/b", "match", "\u{e4}", "../x", "apr-serve"] {
            assert!(program_name(Some(&bad.to_owned()), Path::new("m.apr")).is_err(), "{bad}");
        }
    }
}
