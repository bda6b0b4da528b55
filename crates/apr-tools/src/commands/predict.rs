//! `apr predict`: predictions for the rows of a table or for lines of text.

mod answer;
mod output;
mod private;
pub(crate) mod report;
pub(crate) mod rows;
mod similar;
pub(crate) mod texts;

use alloc::rc::Rc;
use core::cell::OnceCell;
use std::path::{Path, PathBuf};

use apr_models::{AnyModel, InputKind, OutputKind, Predictions};

use self::answer::Asked;
use self::output::Form;
use self::private::PrivateArgs;
use self::report::{Names, Report};
use self::similar::{Answers, Question, SimilarArgs};
use crate::args::{CompatArg, ForceArg, PayloadArgs};
use crate::detached::DetachedArgs;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{Model, NamedModel, Source};
use crate::output::{Destination, Overwrite, Run, check_inputs, keep_inputs};
use crate::report::List;
use crate::sealed_file::tell_cost;
use crate::secrets::{Keys, KeysArgs};
use crate::tables::{self, Dialect, Input};
use crate::terminal::Console;

const AFTER_HELP: &str = "If the model knows the names of its features and the table has a header, columns are taken by name and \
    others are left out, with a note. Otherwise the table has exactly the features, in their order. An empty \
    cell, a word or NaN is an error that names line and column, unless the model takes missing values. Predictions appear as soon as their rows \
    have arrived, so a pipe can stay open.\n\n\
    A regression gives a number, a classification the class, a transformation the new row, a language \
    model the logarithm of a line's probability, a vectorizer pairs of term number and weight, a recommender pairs \
    of similar item and cosine, the most similar first.\n\n\
    With --signer, --trusted-keys or --any-signer, the signature is verified before anything else of the model \
    is looked at; an encrypted model needs --identity or a password. With --key, the signature beside the model \
    is verified; the model is copied to a temporary file for that, and read from there.\n\n\
    With --private, TABLE (.csv, .json or .arrow) is encrypted and sent to a server of the model, and the answer is decrypted; the key to \
    encrypt to is signed by --signer, in MODEL or at the server, or given with --inference-key.\n\n\
    Examples:\n  apr predict model.apr --input rows.csv\n  \
    apr predict model.apr -i rows.csv --json\n  \
    apr predict sold.apr -i rows.csv --identity buyer.key --signer maker.key.pub\n  \
    apr predict --private http://127.0.0.1:8080 --signer maker.key.pub -i rows.csv\n\n\
    Exit codes: 0 success, 2 it predicts nothing, 3 invalid model or table, 4 corrupted, not \
    verified or not decrypted, 5 I/O, 6 another format, or encrypted and no key given.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A model in a file of any format, or a sealed file of one; `-` for standard input.
    #[arg(value_name = "MODEL", required_unless_present = "private")]
    model: Option<PathBuf>,
    /// The table, as --input names it.
    #[arg(value_name = "TABLE", required_unless_present = "rows", conflicts_with = "private")]
    table: Option<PathBuf>,
    #[arg(short = 'i', long = "input", value_name = "TABLE", help = tables::TABLE_OR_LINES, conflicts_with = "table")]
    rows: Option<PathBuf>,
    /// Write the predictions to this file instead of standard output; .jsonl, .parquet, .arrow and .arrows name its format.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// After each class also the probability of every class.
    #[arg(long)]
    proba: bool,
    /// For models of text: read a table, and take the texts from this column.
    #[arg(long, value_name = "COLUMN")]
    column: Option<String>,
    #[command(flatten)]
    private: PrivateArgs,
    #[command(flatten)]
    similar: SimilarArgs,
    #[command(flatten)]
    dialect: Dialect,
    #[command(flatten)]
    force: ForceArg,
    #[command(flatten)]
    loading: LoadArgs,
}

impl Args {
    /// The table.
    ///
    /// # Errors
    ///
    /// If neither argument names it, which the parser refuses before.
    fn rows(&self) -> Result<&PathBuf, Failure> {
        self.rows.as_ref().or(self.table.as_ref()).ok_or_else(|| Failure::new(CODE_USAGE, "TABLE is missing"))
    }
}

/// How a model that predicts is loaded.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    payload: PayloadArgs,
    #[command(flatten)]
    keys: KeysArgs,
    #[command(flatten)]
    detached: DetachedArgs,
    /// A password is asked for once.
    #[arg(skip)]
    loaded: OnceCell<Rc<Keys>>,
}

impl LoadArgs {
    /// The model in that file, to be asked about the rows in the other one.
    ///
    /// # Errors
    ///
    /// If both are standard input, or the model cannot be verified, opened or loaded.
    pub(crate) fn load(&self, model: &Path, rows: &Path, console: &Console) -> Result<NamedModel, Failure> {
        if model.as_os_str() == "-" && rows.as_os_str() == "-" {
            return Err(Failure::new(CODE_USAGE, "standard input can be only one of model and table"));
        }
        let rules = self.payload.apply(self.compat.rules());
        let keys = self.keys([model, rows])?;
        let detached = self.detached.load()?;
        let source = Source::open_verified(model, detached.as_ref(), console)?;
        // What decrypts is for the table if only that is encrypted.
        let keys = match !source.is_encrypted() && keys.can_decrypt() && tables::is_encrypted(rows) {
            true => Rc::new(keys.without_identity()),
            false => keys,
        };
        let source = source.with_keys(&keys);
        tell_cost(&source, console)?;
        Model::of_content(source, &rules)?.named()
    }

    /// The table, with the keys that open the model.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or a key cannot be read.
    pub(crate) fn table(&self, rows: &Path, console: &Console) -> Result<Input, Failure> {
        let input = Input::open(rows)?.with_shared_keys(&self.keys([rows, rows])?);
        input.tell_notes(console);
        Ok(input)
    }

    fn keys(&self, inputs: [&Path; 2]) -> Result<Rc<Keys>, Failure> {
        if let Some(keys) = self.loaded.get() {
            return Ok(Rc::clone(keys));
        }
        let keys = Rc::new(self.keys.load(inputs)?);
        Ok(Rc::clone(self.loaded.get_or_init(|| keys)))
    }
}

/// Runs `apr predict`.
///
/// # Errors
///
/// If the model cannot be loaded or predicts nothing, the table does not fit it, or the output cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    if let Some(url) = &args.private.private {
        return private::run(args, url, console);
    }
    let (rows_path, dialect) = (args.rows()?, &args.dialect);
    let Some(model_path) = &args.model else { return Err(Failure::new(CODE_USAGE, "MODEL is missing")) };
    let destination = match &args.output {
        Some(path) if path.as_os_str() != "-" => Destination::File(path.clone()),
        _ => Destination::Stdout,
    };
    let overwrite = args.force.overwrite();
    if let Destination::File(path) = &destination {
        check_inputs([model_path, rows_path])?;
        keep_inputs(path, [model_path, rows_path])?;
        destination.check(overwrite, Run::Write, console)?;
    }
    let column = args.column.as_deref();
    let known = args.loading.load(model_path, rows_path, console)?;
    if let AnyModel::ContentRecommender(model) = &*known.model
        && !args.proba
    {
        let input = args.loading.table(rows_path, console)?;
        let question = Question { args: args.similar, input, dialect, column };
        let form = Form::of(&destination)?;
        let answers = Answers { files: [model_path, rows_path], destination: &destination, overwrite, form };
        similar::run(&known, model, question, &answers, console)?;
        return Ok(Exit::Success);
    }
    let given = [("--ids", args.similar.ids), ("--top", args.similar.top.is_some())];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let failure = Failure::new(CODE_USAGE, format!("{option} is for recommenders, and this is none"));
        return Err(failure.in_file(model_path));
    }
    let wanted = if args.proba { OutputKind::Probabilities } else { OutputKind::Predictions };
    let asked = Asked::new(&known, wanted).map_err(|failure| failure.in_file(model_path))?;
    let input = args.loading.table(rows_path, console)?;
    let names = Names::of(&destination, console);
    let report = Report::new(&known, &asked, dialect.delimiter).with_names(names);
    let form = Form::of(&destination)?;
    if form != Form::Lines {
        let ask = Box::new(|take: &mut dyn FnMut(Predictions) -> Result<(), Failure>| {
            ask(&known, &asked, input, dialect, column, console, take)
        });
        let n_rows = output::write(form, (&known, &asked), &destination, overwrite, ask)?;
        return report
            .written(n_rows, [model_path, rows_path], &destination, console)
            .map(|()| Exit::Success);
    }
    if console.is_json() {
        // One object, whole or not at all: a row that does not fit is the only thing printed then.
        let mut predictions = List::default();
        ask(&known, &asked, input, dialect, column, console, &mut |answers| {
            report.push(&answers, &mut predictions)
        })?;
        report.json(&predictions, [model_path, rows_path], &destination, overwrite, console)?;
        return Ok(Exit::Success);
    }
    let n_rows = report
        .stream(&destination, overwrite, |take| ask(&known, &asked, input, dialect, column, console, take))?;
    if destination != Destination::Stdout {
        report.written(n_rows, [model_path, rows_path], &destination, console)?;
    }
    Ok(Exit::Success)
}

/// Passes predictions to `take`, in batches of the rows that have arrived.
fn ask(
    known: &NamedModel,
    asked: &Asked<'_>,
    input: Input,
    dialect: &Dialect,
    column: Option<&str>,
    console: &Console,
    take: &mut dyn FnMut(Predictions) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if asked.input_kind == InputKind::Text {
        return texts::ask(asked, input, dialect, column, take);
    }
    if column.is_some() {
        return Err(Failure::new(CODE_USAGE, "--column is for models of text, and this is none"));
    }
    rows::ask(known, asked, input, dialect, console, take)
}

/// Writes the predictions for the rows or texts of a file, one per line.
///
/// # Errors
///
/// If the rows cannot be read or do not fit the model, or the output cannot be written.
pub(crate) fn record(known: &NamedModel, rows: &Path, to: &Path, console: &Console) -> Result<(), Failure> {
    let asked = Asked::new(known, OutputKind::Predictions)?;
    let report = Report::new(known, &asked, Dialect::COMMAS.delimiter);
    let input = Input::open(rows)?;
    report.stream(&Destination::File(to.to_owned()), Overwrite::Refuse, |take| {
        ask(known, &asked, input, &Dialect::COMMAS, None, console, take)
    })?;
    Ok(())
}

/// Predicts all rows or texts of a table without keeping anything.
///
/// # Errors
///
/// If the rows cannot be read or do not fit the model.
pub(crate) fn try_all(
    known: &NamedModel,
    input: Input,
    dialect: &Dialect,
    console: &Console,
) -> Result<(), Failure> {
    let asked = Asked::new(known, OutputKind::Predictions)?;
    ask(known, &asked, input, dialect, None, console, &mut |_| Ok(()))
}

/// The output for the first classes, clusters or outlier flags, by index.
///
/// # Errors
///
/// If the model predicts nothing.
pub(crate) fn names(known: &NamedModel, count: usize) -> Result<Vec<String>, Failure> {
    let asked = Asked::new(known, OutputKind::Predictions)?;
    let report = Report::new(known, &asked, Dialect::COMMAS.delimiter);
    Ok((0..count).map(|number| report.name(number)).collect())
}
