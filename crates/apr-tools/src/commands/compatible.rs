//! `apr compatible`: whether one model file may replace another.

use alloc::borrow::Cow;
use alloc::rc::Rc;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use model_file::{Difference, Effect};
use serde::Serialize;

use super::predict;
use crate::args::CompatArg;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{Model, Rules, Source};
use crate::report::{self, Report};
use crate::secrets::{Keys, KeysArgs, refuse_shared_stdin};
use crate::tables::{Dialect, Input};
use crate::terminal::Console;
use crate::terminal::escape::Visible;

const AFTER_HELP: &str = "NEW may replace OLD if programs that read OLD, or send rows to it, go on without a change and get the same kind \
    of answer. Compared are the format and its version, encryption and signature; of models that predict the samples they take, names and \
    order of features, missing values, the target, what a prediction is, the outputs, and the classes in their order; of other files the \
    names, shapes and types of tensors. With --table, NEW also has to predict each of its rows, as OLD does. Better or worse predictions are no difference: `apr score` measures them.\n\n\
    Examples:\n  apr compatible model.apr new.apr\n  apr compatible model.apr new.apr --by-name --json\n  \
    apr compatible model.apr new.apr --table rows.csv\n\n\
    Exit codes: 0 NEW may replace OLD, 1 it may not, 2 usage, 3 invalid file, 4 not verified or not decrypted, 5 I/O, 6 another \
    format, or encrypted and no key given.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The file in use.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The file that is to take its place.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Callers name the features of their rows, so their order does not matter, and one that is no longer needed does no harm.
    #[arg(long)]
    by_name: bool,
    /// Rows that OLD predicts.
    #[arg(long, value_name = "TABLE")]
    table: Option<PathBuf>,
    #[command(flatten)]
    dialect: Dialect,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    keys: KeysArgs,
}

/// Runs `apr compatible`.
///
/// # Errors
///
/// If one of the files cannot be read.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    for path in [&args.old, &args.new] {
        refuse_shared_stdin(args.keys.takes_stdin(), path)?;
    }
    let rules = args.compat.rules().with_unchecked_signatures();
    let keys = Rc::new(args.keys.load([args.old.as_path(), args.new.as_path()])?);
    let (old, new) = (open(&args.old, &rules, &keys)?, open(&args.new, &rules, &keys)?);
    let mut found =
        old.file().differences(new.file()).map_err(|error| Failure::from(error).in_file(&args.new))?;
    if let Some(table) = &args.table {
        found.extend(refusal(table, [old, new], args, &keys, console)?);
    }
    let breaks = |difference: &Difference| match difference.effect {
        Effect::Breaks => true,
        Effect::BreaksByPosition => !args.by_name,
        _ => false,
    };
    let compatible = !found.iter().any(breaks);
    if console.is_json() {
        let reasons = found.iter().map(|difference| Reason {
            kind: difference.kind,
            breaks: breaks(difference),
            message: &difference.message,
        });
        console.report(&CompatibleReport {
            old: report::path(&args.old),
            new: report::path(&args.new),
            compatible,
            reasons: reasons.collect(),
        })?;
    } else {
        console.text(|out, style| {
            match compatible {
                true => writeln!(out, "{}: NEW may replace OLD", style.green("compatible"))?,
                false => writeln!(out, "{}: NEW may not replace OLD", style.red("incompatible"))?,
            }
            for difference in &found {
                let mark = if breaks(difference) { style.red("x") } else { style.yellow("!") };
                writeln!(out, "  {mark} {}: {}", difference.kind, Visible(&difference.message))?;
            }
            Ok(())
        })?;
    }
    Ok(if compatible { Exit::Success } else { Exit::Different })
}

/// Why NEW does not predict rows that OLD predicts, if it does not.
///
/// # Errors
///
/// If the table cannot be read, or OLD does not predict its rows.
fn refusal(
    table: &Path,
    [old, new]: [Model; 2],
    args: &Args,
    keys: &Rc<Keys>,
    console: &Console,
) -> Result<Option<Difference>, Failure> {
    if table.as_os_str() == "-" {
        let failure =
            Failure::new(CODE_USAGE, "both models predict the table, and standard input is read once");
        return Err(failure.help("name a file with --table"));
    }
    let rows = || Ok::<_, Failure>(Input::open(table)?.with_shared_keys(keys));
    predict::try_all(&old.named()?, rows()?, &args.dialect, console)
        .map_err(|failure| failure.help("choose a table whose rows OLD predicts"))?;
    let rows = rows()?;
    match new.named().and_then(|new| predict::try_all(&new, rows, &args.dialect, console)) {
        // Not the model's fault.
        Err(failure) if failure.exit() == Exit::Io => Err(failure),
        Err(failure) => {
            let message = format!("NEW does not predict the rows: {}", failure.what());
            Ok(Some(Difference { kind: "table", effect: Effect::Breaks, message }))
        }
        Ok(_) => Ok(None),
    }
}

fn open(path: &Path, rules: &Rules, keys: &Rc<Keys>) -> Result<Model, Failure> {
    Model::from_source(Source::open(path)?.with_keys(keys), rules)
}

/// The verdict.
#[derive(Serialize)]
struct CompatibleReport<'a> {
    old: Cow<'a, str>,
    new: Cow<'a, str>,
    compatible: bool,
    reasons: Vec<Reason<'a>>,
}

#[derive(Serialize)]
struct Reason<'a> {
    kind: &'static str,
    breaks: bool,
    message: &'a str,
}

impl Report for CompatibleReport<'_> {
    const SCHEMA: &'static str = "apr.compatible/1";
}
