//! Rows of NumPy arrays: `.npy`, and the arrays of `.npz`.

use alloc::collections::BTreeMap;

use apr_table::{Accepted, Problem, Value};
use model_file::{ModelFile, OpenOptions, Tensor};
use read_at::FileSource;
use tensor_dtype::{Dtype, TensorType};

use super::columns::accepted;
use super::number::Number;
use super::{Categories, Stop, Taken, Wanted};
use crate::error::{CODE_TABLE_COLUMNS, Failure, Place};
use crate::terminal::escape;

/// An array with a row for each sample, and other arrays with a value for each.
pub(super) struct Arrays {
    file: ModelFile<FileSource>,
    /// The array with the rows.
    rows: String,
    n_rows: usize,
    n_columns: usize,
    /// Arrays with a value for each row, which may be asked for as columns.
    others: Vec<String>,
    next_row: usize,
}

/// What an array with the rows is called in an archive, by convention.
const ROWS: [&str; 2] = ["X", "x"];

impl Arrays {
    pub(super) fn open(file: FileSource, wanted: Option<&str>) -> Result<Self, Failure> {
        let file = ModelFile::read(file, &OpenOptions::new())?;
        let tensors = file.tensors()?;
        let refused = |what: String| Err(Failure::new(CODE_TABLE_COLUMNS, what));
        let is_table = |tensor: &&Tensor<'_>| tensor.shape().len() == 2;
        let mut tables = tensors.iter().filter(is_table);
        let rows = match (wanted, tables.next(), tables.next()) {
            (Some(wanted), ..) => tensors.iter().find(|tensor| tensor.name() == wanted),
            (None, Some(only), None) => Some(only),
            (None, ..) => tensors.iter().filter(is_table).find(|tensor| ROWS.contains(&tensor.name())),
        };
        let Some(rows) = rows else {
            let names: Vec<String> = tensors.iter().map(|tensor| shown(tensor)).collect();
            let failure = refused(match wanted {
                Some(wanted) => format!("there is no array `{}`", escape::cut(wanted, 60)),
                None if tensors.iter().any(|tensor| is_table(&tensor)) => {
                    "several arrays may be the table".to_owned()
                }
                None => "no array has two dimensions, one of samples and one of features".to_owned(),
            });
            return failure.map_err(|failure| {
                let failure = failure.because(super::listed(&names));
                if wanted.is_none() { failure.help("name the array of rows with --array") } else { failure }
            });
        };
        let &[n_rows, n_columns] = rows.shape() else {
            return refused(format!(
                "{} does not have two dimensions, one of samples and one of features",
                shown(rows)
            ));
        };
        check(rows)?;
        let is_column = |shape: &[usize]| matches!(*shape, [len] | [len, 1] if len == n_rows);
        let others =
            tensors.iter().filter(|tensor| is_column(tensor.shape()) && tensor.name() != rows.name());
        let (others, rows) =
            (others.map(|tensor| tensor.name().to_owned()).collect(), rows.name().to_owned());
        Ok(Self { file, rows, n_rows, n_columns, others, next_row: 0 })
    }

    pub(super) const fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The number of the array of that name as a column, if there is one with a value for each row.
    pub(super) fn column(&self, wanted: &str) -> Result<Option<usize>, Failure> {
        if let Some(at) = self.others.iter().position(|name| name == wanted) {
            check(&self.file.tensor(wanted)?)?;
            return Ok(Some(self.n_columns + at));
        }
        let tensors = self.file.tensors()?;
        match tensors.iter().find(|tensor| tensor.name() == wanted && wanted != self.rows) {
            None => Ok(None),
            Some(tensor) => {
                let what =
                    format!("{} does not have one value for each of {} rows", shown(tensor), self.n_rows);
                Err(Failure::new(CODE_TABLE_COLUMNS, what))
            }
        }
    }

    /// Takes the next rows, at most `limit`, until the first one at fault.
    pub(super) fn take<T: Number>(
        &mut self,
        wanted: Wanted<'_>,
        categories: &mut BTreeMap<usize, Categories>,
        limit: usize,
        taken: &mut Taken<T>,
    ) -> Result<(), Stop> {
        let first = self.next_row;
        let n_rows = limit.min(self.n_rows - first);
        self.next_row += n_rows;
        let accepted = accepted(wanted.accepts);
        let mut values: Vec<Cell<T>> = Vec::new();
        let is_number = |column: &usize| !categories.contains_key(column);
        if wanted.numbers.iter().any(|column| *column < self.n_columns && is_number(column)) {
            self.read(&self.rows, self.n_columns, first, n_rows, accepted, &mut values)?;
        }
        let mut others: BTreeMap<usize, Vec<Cell<T>>> = BTreeMap::new();
        let mut names: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for &column in wanted.numbers {
            if !is_number(&column) {
                names.insert(column, self.texts(column, first, n_rows)?);
            } else if let Some(name) =
                column.checked_sub(self.n_columns).and_then(|other| self.others.get(other))
            {
                self.read(name, 1, first, n_rows, accepted, others.entry(column).or_default())?;
            }
        }
        let cell = |row: usize, column: usize| match column < self.n_columns {
            true => values.get(row * self.n_columns + column),
            false => others.get(&column)?.get(row),
        };
        let texts = match wanted.text {
            Some(column) => self.texts(column, first, n_rows)?,
            None => Vec::new(),
        };
        let mut texts = texts.into_iter();
        for row in 0..n_rows {
            let place = Place::row((first + row) as u64 + 1);
            let begin = taken.numbers.len();
            for &column in wanted.numbers {
                let number = match categories.get_mut(&column) {
                    Some(categories) => {
                        let name = names.get(&column).and_then(|names| names.get(row));
                        Some(categories.number(name.map(String::as_str), wanted.accepts).map(T::from))
                    }
                    None => cell(row, column).map(|cell| cell.as_ref().copied().map_err(ToString::to_string)),
                };
                match number {
                    Some(Ok(value)) => taken.numbers.push(value),
                    Some(Err(what)) => {
                        taken.numbers.truncate(begin);
                        return Err(Stop::Cell { what, place, column });
                    }
                    None => return Err(Stop::Table(Failure::new(CODE_TABLE_COLUMNS, "a column is missing"))),
                }
            }
            taken.texts.extend(texts.next().map(|text| (place, text)));
            taken.n_rows += 1;
        }
        Ok(())
    }

    /// The cells of a column as texts.
    fn texts(&self, column: usize, first: usize, n_rows: usize) -> Result<Vec<String>, Stop> {
        let (name, width, at) =
            match column.checked_sub(self.n_columns).and_then(|other| self.others.get(other)) {
                Some(name) => (name, 1, 0),
                None => (&self.rows, self.n_columns, column),
            };
        let mut texts = Vec::new();
        self.read(name, width, first, n_rows, Accepted { missing: true, infinite: true }, &mut texts)?;
        Ok(texts.into_iter().skip(at).step_by(width.max(1)).map(|Digits(text)| text).collect())
    }

    /// Appends the elements of some rows of an array.
    fn read<C: Element>(
        &self,
        name: &str,
        width: usize,
        first: usize,
        n_rows: usize,
        accepted: Accepted,
        out: &mut Vec<C>,
    ) -> Result<(), Stop> {
        let tensor = self.file.tensor(name).map_err(stop)?;
        // 16-bit floats are read as 32-bit ones.
        let tensor = match tensor.dtype() {
            TensorType::Known(Dtype::F16 | Dtype::Bf16) => tensor.widened().map_err(stop)?,
            _ => tensor,
        };
        let TensorType::Known(dtype) = tensor.dtype() else { return Ok(()) };
        let row_len = width * (dtype.bits() / 8) as usize;
        let mut bytes = vec![0; row_len * n_rows];
        tensor.read(row_len as u64 * first as u64, &mut bytes).map_err(stop)?;
        elements(dtype, &bytes, accepted, out);
        Ok(())
    }
}

fn stop(error: model_file::Error) -> Stop {
    Stop::Table(error.into())
}

/// Name and shape of an array.
fn shown(tensor: &Tensor<'_>) -> String {
    let dims: Vec<String> = tensor.shape().iter().map(ToString::to_string).collect();
    match tensor.name() {
        "" => format!("the array of shape ({})", dims.join(", ")),
        name => format!("{} ({})", escape::cut(name, 40), dims.join(", ")),
    }
}

/// Refuses elements that are no numbers.
fn check(tensor: &Tensor<'_>) -> Result<(), Failure> {
    tensor.check_type()?;
    match tensor.dtype() {
        TensorType::Known(dtype) if is_number(dtype) => Ok(()),
        dtype => {
            let what = format!(
                "{} has elements that are no numbers ({})",
                shown(tensor),
                model_file::common_name(dtype)
            );
            Err(Failure::new(CODE_TABLE_COLUMNS, what)
                .help("save numbers; fields of structured arrays one by one"))
        }
    }
}

/// A number, or why it is none.
type Cell<T> = Result<T, Problem>;

/// What an element becomes.
trait Element: Sized {
    fn of_i64(value: i64) -> Self;
    fn of_u64(value: u64) -> Self;
    fn of_f32(value: f32, accepted: Accepted) -> Self;
    fn of_f64(value: f64, accepted: Accepted) -> Self;
}

impl<T: Value> Element for Cell<T> {
    fn of_i64(value: i64) -> Self {
        Ok(T::of_i64(value))
    }

    fn of_u64(value: u64) -> Self {
        Ok(T::of_u64(value))
    }

    fn of_f32(value: f32, accepted: Accepted) -> Self {
        accepted.float(value.into())
    }

    fn of_f64(value: f64, accepted: Accepted) -> Self {
        accepted.float(value)
    }
}

/// Digits that give a number back; none of NaN.
struct Digits(String);

impl Element for Digits {
    fn of_i64(value: i64) -> Self {
        Self(value.to_string())
    }

    fn of_u64(value: u64) -> Self {
        Self(value.to_string())
    }

    fn of_f32(value: f32, _: Accepted) -> Self {
        Self(if value.is_nan() { String::new() } else { value.to_string() })
    }

    fn of_f64(value: f64, _: Accepted) -> Self {
        Self(if value.is_nan() { String::new() } else { value.to_string() })
    }
}

const fn is_number(dtype: Dtype) -> bool {
    use Dtype::{Bf16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(dtype, Bool | U8 | U16 | U32 | U64 | I8 | I16 | I32 | I64 | F16 | Bf16 | F32 | F64)
}

/// Appends little-endian elements.
fn elements<C: Element>(dtype: Dtype, bytes: &[u8], accepted: Accepted, out: &mut Vec<C>) {
    macro_rules! each {
        ($type:ty, |$value:ident| $convert:expr) => {
            out.extend(bytes.as_chunks().0.iter().map(|bytes| {
                let $value = <$type>::from_le_bytes(*bytes);
                $convert
            }))
        };
    }
    match dtype {
        Dtype::Bool => out.extend(bytes.iter().map(|&byte| C::of_u64(u64::from(byte != 0)))),
        Dtype::U8 => each!(u8, |value| C::of_u64(value.into())),
        Dtype::U16 => each!(u16, |value| C::of_u64(value.into())),
        Dtype::U32 => each!(u32, |value| C::of_u64(value.into())),
        Dtype::U64 => each!(u64, |value| C::of_u64(value)),
        Dtype::I8 => each!(i8, |value| C::of_i64(value.into())),
        Dtype::I16 => each!(i16, |value| C::of_i64(value.into())),
        Dtype::I32 => each!(i32, |value| C::of_i64(value.into())),
        Dtype::I64 => each!(i64, |value| C::of_i64(value)),
        Dtype::F32 => each!(f32, |value| C::of_f32(value, accepted)),
        Dtype::F64 => each!(f64, |value| C::of_f64(value, accepted)),
        // The others were refused.
        _ => {}
    }
}
