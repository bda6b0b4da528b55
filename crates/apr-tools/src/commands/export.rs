//! `apr export`: a model for other programs. The work is that of `apr convert`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, value_parser};

use crate::commands::convert::{self, Blocks};
use crate::error::{Exit, Failure};
use crate::input;
use crate::output::{self, Run};
use crate::terminal::Console;

pub(crate) fn command() -> Command {
    Command::new("export")
        .about("Write a model for other programs: GGUF or safetensors")
        .arg(input::input_arg().value_name("MODEL"))
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .required(true)
                .value_parser(PossibleValuesParser::new(["gguf", "safetensors"]))
                .help("What to write"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("OUT")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The new file; of a folder (it exists, or the name ends in a slash) `model` with the format's ending in it"),
        )
        .arg(convert::dequantize_arg())
        .arg(input::compat_arg())
        .arg(output::force_arg())
        .arg(output::dry_run_arg())
        .arg(input::unverified_arg())
        .arg(input::trusted_arg())
        .after_help(
            "The same as `apr convert MODEL OUT --format FORMAT`, which has more options, but for quantized tensors that \
             FORMAT has no type for: they become the nearest type it has, and each is named. In a GGUF file q4_0 of .apr \
             files stays q4_0, losslessly, where rows are whole blocks; q8_0 has its one scale rounded to 16 bits; all others \
             become F32. In a safetensors file all become F32, or F16 with --dequantize f16.\n\n\
             Examples:\n  apr export model.apr --format safetensors --output exported/\n  \
             apr export model.apr --format gguf --output exported.gguf\n\n\
             Exit codes: those of `apr convert`.",
        )
}

/// Runs `apr export`.
///
/// # Errors
///
/// Those of `apr convert`; if a folder cannot be made.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let format = matches.get_one::<String>("format").map_or("safetensors", String::as_str);
    let output = matches.get_one::<PathBuf>("output").expect("clap requires OUT");
    let (output, folder) = file(output, format, output::run_mode(matches))?;
    let mut args: Vec<OsString> = vec!["convert".into(), "--format".into(), format.into()];
    for flag in ["compat", "force", "dry-run", "allow-unverified", "trusted"] {
        if matches.get_flag(flag) {
            args.push(format!("--{flag}").into());
        }
    }
    if let Some(to) = matches.get_one::<String>("dequantize") {
        args.extend(["--dequantize".into(), to.into()]);
    }
    args.extend(["--".into(), input::path(matches).into(), output.into()]);
    let matches = convert::command().get_matches_from(args);
    let exit = convert::rewrite(&matches, Blocks::Nearest, console)?;
    folder.keep();
    Ok(exit)
}

/// The file to write: in a folder, it has a name of its own.
fn file(output: &Path, format: &str, run: Run) -> Result<(PathBuf, NewFolders), Failure> {
    let names_folder = output
        .as_os_str()
        .as_encoded_bytes()
        .last()
        .is_some_and(|&last| std::path::is_separator(last.into()));
    if !names_folder && !output.is_dir() {
        return Ok((output.to_owned(), NewFolders::default()));
    }
    let folders = match run {
        Run::Write => NewFolders::create(output)?,
        Run::Dry => NewFolders::default(),
    };
    Ok((output.join("model").with_extension(format), folders))
}

/// Folders that were made for the output. Without [`keep`](Self::keep) those that are still empty are removed again.
#[derive(Debug, Default)]
struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    fn create(path: &Path) -> Result<Self, Failure> {
        let missing = path.ancestors().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let folders = Self(missing.map(Path::to_owned).collect());
        fs::create_dir_all(path).map_err(|error| Failure::io("make the folder", path, &error))?;
        Ok(folders)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        // The innermost first; what holds something by now stays.
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}
