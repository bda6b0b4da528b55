//! `apr score`: how well a model predicts a column of a table.

mod report;

use std::path::PathBuf;

use apr_models::{Accepts, AnyModel, InputKind, Label, NgramLm, Samples};

use self::report::Report;
use super::predict::report::name;
use super::predict::{LoadArgs, rows, texts};
use crate::error::{CODE_NO_PREDICTION, CODE_TABLE_COLUMNS, CODE_USAGE, Exit, Failure};
use crate::input::NamedModel;
use crate::scoring::{Expected, Metrics, Scorer};
use crate::tables::{self, Dialect, Number, Table, Text, Wanted};
use crate::terminal::Console;
use crate::terminal::escape;

const AFTER_HELP: &str = "Of classes: accuracy; the F1 score of each class and their mean; log loss, if the model gives probabilities; \
    the area under the ROC curve, for more than two classes the mean of each class against the others. Of numbers: R2, the root of the \
    mean squared error (RMSE), the mean absolute error (MAE). The definitions are those of scikit-learn. Of a language model: \
    perplexity, the exponential of the mean negative logarithm of the probability of a word or an end of a line.\n\n\
    Features are found as in `apr predict`. The target may be left out if the model knows its name; `apr train` stores it.\n\n\
    Examples:\n  apr train ridge --data table.csv --target price -o price.apr\n  apr score price.apr --data table.csv\n\n\
    Exit codes: 0 success, 2 it predicts neither classes nor numbers, 3 invalid model or table, 4 corrupted, not \
    verified or not decrypted, 5 I/O, 6 another format, or encrypted and no key given.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A model in a file of any format, or a sealed file of one; `-` for standard input.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// A table with the features and the target, or lines of text; `-` for standard input.
    #[arg(long, value_name = "TABLE")]
    data: PathBuf,
    /// The column with what is right, by name or by number from 1.
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// For language models: read a table, and take the texts from this column.
    #[arg(long, value_name = "COLUMN", conflicts_with = "target")]
    column: Option<String>,
    #[command(flatten)]
    dialect: Dialect,
    #[command(flatten)]
    loading: LoadArgs,
}

/// Rows read at once.
const BATCH: usize = 4096;

/// Runs `apr score`.
///
/// # Errors
///
/// If the model cannot be loaded or predicts nothing that has a target, or the table does not fit it.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let known = args.loading.load(&args.model, &args.data, console)?;
    if let AnyModel::NgramLm(model) = &*known.model {
        let metrics = perplexity(model, args, console)?;
        return print(args, &known, None, (&metrics, &[]), console);
    }
    if args.column.is_some() {
        return Err(Failure::new(CODE_USAGE, "--column is for language models, and this is none"));
    }
    let mut scorer = Scorer::new(&known.model, known.classes.as_ref().map_or(0, Vec::len))
        .map_err(|failure| failure.in_file(&args.model))?;
    let Some(target_name) = args.target.as_deref().or(known.target.as_deref()) else {
        let failure = Failure::new(CODE_USAGE, "the model does not know the name of its target");
        return Err(failure.help("name the column with --target"));
    };
    let mut table = Table::open(args.loading.table(&args.data, console)?, &args.dialect)?;
    let in_table = |failure: Failure| failure.in_file(&args.data);
    let target = table.column(target_name)?;
    let columns = rows::columns(&known, &mut table, Some(target), console).map_err(in_table)?;
    let capabilities = known.model.capabilities();
    let classes = scorer.classes().map(|numbers| Classes::new(&known, numbers));

    let wanted = |accepts| Wanted { numbers: &columns, accepts, text: Some(target) };
    let mut asked = Asked { scorer: &mut scorer, classes: classes.as_ref(), target };
    match capabilities.input() {
        Some(InputKind::F32) => {
            asked.all(&mut table, wanted(Accepts::Finite), |values: &[f32]| Samples::F32(values))?;
        }
        Some(InputKind::F64) => {
            asked.all(&mut table, wanted(capabilities.accepts()), |values: &[f64]| Samples::F64(values))?;
        }
        _ => {
            let failure =
                Failure::new(CODE_NO_PREDICTION, "of the models of texts only language models are scored");
            return Err(failure.in_file(&args.model));
        }
    }
    let metrics = scorer.metrics();
    if metrics.n_samples() == 0 {
        return Err(in_table(Failure::new(CODE_TABLE_COLUMNS, "the table has no rows")));
    }
    let names = classes.map_or_else(Vec::new, |classes| classes.names);
    print(args, &known, Some(target_name), (&metrics, &names), console)
}

/// Prints the metrics, of classes with these names.
fn print(
    args: &Args,
    known: &NamedModel,
    target: Option<&str>,
    (metrics, names): (&Metrics, &[String]),
    console: &mut Console,
) -> Result<Exit, Failure> {
    let report = Report { model: &args.model, data: &args.data, target, known, metrics, names };
    report.print(console)?;
    Ok(Exit::Success)
}

/// The perplexity of a language model on lines, or on the texts of a column.
fn perplexity(model: &NgramLm, args: &Args, console: &Console) -> Result<Metrics, Failure> {
    let (mut n_texts, mut n_tokens, mut sum) = (0, 0, 0.0);
    let input = args.loading.table(&args.data, console)?;
    texts::each(input, &args.dialect, args.column.as_deref(), &mut |text, _| {
        let words: Vec<&str> = text.split_whitespace().collect();
        n_texts += 1;
        // The end of a text is an outcome, too.
        n_tokens += words.len() + 1;
        sum += model.log_probability(&words);
        Ok(())
    })?;
    if n_texts == 0 {
        return Err(Failure::new(CODE_TABLE_COLUMNS, "there are no texts").in_file(&args.data));
    }
    Ok(Metrics::Texts { n_texts, perplexity: (-sum / n_tokens as f64).exp() })
}

struct Asked<'a, 'm> {
    scorer: &'a mut Scorer<'m>,
    classes: Option<&'a Classes>,
    target: usize,
}

impl Asked<'_, '_> {
    fn all<T: Number>(
        &mut self,
        table: &mut Table,
        wanted: Wanted<'_>,
        samples: fn(&[T]) -> Samples<'_>,
    ) -> Result<(), Failure> {
        loop {
            let taken = table.next_rows::<T>(wanted, BATCH)?;
            if taken.n_rows == 0 {
                return Ok(());
            }
            let wrong = |what, (place, _): &Text| table.cell_failure(what, place.clone(), self.target);
            let (classes, values): (Vec<usize>, Vec<f64>);
            let expected = match self.classes {
                Some(known) => {
                    let number = |cell: &Text| {
                        known.number(cell.1.trim()).ok_or_else(|| {
                            let what = format!(
                                "`{}` is none of the model's classes",
                                escape::cut(cell.1.trim(), 60)
                            );
                            wrong(what, cell).because(tables::listed(&known.names))
                        })
                    };
                    classes = taken.texts.iter().map(number).collect::<Result<_, _>>()?;
                    Expected::Classes(&classes)
                }
                None => {
                    let number =
                        |cell: &Text| f64::parse(&cell.1, Accepts::Finite).map_err(|what| wrong(what, cell));
                    values = taken.texts.iter().map(number).collect::<Result<_, _>>()?;
                    Expected::Values(&values)
                }
            };
            self.scorer.add(samples(&taken.numbers), taken.n_rows, expected)?;
        }
    }
}

/// The classes of a model by the texts of their labels.
pub(crate) struct Classes {
    pub(crate) numbers: Vec<usize>,
    pub(crate) names: Vec<String>,
    by_name: std::collections::HashMap<String, usize>,
    /// The same of names that are numbers, by the bits of these; zero has one sign.
    by_value: std::collections::HashMap<u64, usize>,
}

impl Classes {
    pub(crate) fn new(known: &NamedModel, numbers: &[usize]) -> Self {
        let names: Vec<String> = numbers.iter().map(|&number| name(known.label(number))).collect();
        let mut by_name: std::collections::HashMap<String, usize> = Default::default();
        let mut by_value = std::collections::HashMap::new();
        for (&number, name) in numbers.iter().zip(&names) {
            by_name.entry(name.clone()).or_insert(number);
            if let Some(value) = bits(name) {
                by_value.entry(value).or_insert(number);
            }
            // As Python writes truth values.
            if let Some(Label::Boolean(value)) = known.label(number) {
                by_name.entry(if value { "True" } else { "False" }.to_owned()).or_insert(number);
            }
        }
        Self { numbers: numbers.to_vec(), names, by_name, by_value }
    }

    /// The class in a cell: of that name, or of that number however it is written.
    pub(crate) fn number(&self, cell: &str) -> Option<usize> {
        self.by_name.get(cell).or_else(|| self.by_value.get(&bits(cell)?)).copied()
    }
}

/// The bits of a number, the same for both zeros; none of NaN, which is no number.
fn bits(text: &str) -> Option<u64> {
    let value = text.parse::<f64>().ok().filter(|value| !value.is_nan())?;
    Some((value + 0.0).to_bits())
}
