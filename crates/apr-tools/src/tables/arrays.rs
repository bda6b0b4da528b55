//! Rows of NumPy arrays: `.npy`, and the arrays of `.npz`.

use alloc::collections::BTreeMap;
use std::collections::HashMap;

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
    places: Places,
    next_row: usize,
}

/// Which arrays are rows and columns.
struct Places {
    /// The array with the rows, by its place in the file; none if each array is a column.
    rows: Option<usize>,
    n_rows: usize,
    /// Columns of the array with the rows.
    n_columns: usize,
    /// Names of the columns, if each array is one.
    names: Option<Vec<String>>,
    /// Places of the arrays with a value for each row, which may be asked for as columns.
    others: Vec<usize>,
    /// The arrays beside the rows.
    by_name: HashMap<String, Other>,
}

/// An array that is not the one with the rows.
#[derive(Clone, Copy)]
struct Other {
    /// Its place in the file.
    at: usize,
    /// Its place among those with a value for each row.
    column: Option<usize>,
    /// Whether its elements are numbers.
    is_sound: bool,
}

/// What an array with the rows is called in an archive, by convention.
const ROWS: [&str; 2] = ["X", "x"];

impl Arrays {
    pub(super) fn open(file: FileSource, wanted: Option<&str>) -> Result<Self, Failure> {
        let file = ModelFile::read(file, &OpenOptions::new())?;
        let places = Places::of(&file.tensors()?, wanted)?;
        Ok(Self { file, places, next_row: 0 })
    }

    pub(super) fn n_columns(&self) -> usize {
        self.places.names.as_ref().map_or(self.places.n_columns, Vec::len)
    }

    /// The names of the columns, if each is an array.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        self.places.names.clone()
    }

    /// The number of the array of that name as a column, if there is one with a value for each row.
    pub(super) fn column(&self, wanted: &str) -> Result<Option<usize>, Failure> {
        let Some(other) = self.places.by_name.get(wanted) else { return Ok(None) };
        if !other.is_sound
            && let Some(tensor) = self.file.tensor_at(other.at)?
        {
            if other.column.is_none() {
                let what = format!(
                    "{} does not have one value for each of {} rows",
                    shown(&tensor),
                    self.places.n_rows
                );
                return Err(Failure::new(CODE_TABLE_COLUMNS, what));
            }
            check(&tensor)?;
        }
        Ok(other.column.map(|column| self.places.n_columns + column))
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
        let n_rows = limit.min(self.places.n_rows - first);
        self.next_row += n_rows;
        let accepted = accepted(wanted.accepts);
        // Once for all columns: finding an array in a file takes as long as the file has arrays.
        let tensors = self.file.tensors().map_err(|error| Stop::Table(error.into()))?;
        let part = |at: usize, width: usize| match tensors.get(at) {
            Some(tensor) => Part::read(tensor, width, first, n_rows),
            None => Ok(Part::default()),
        };
        let in_rows = |column: &usize| *column < self.places.n_columns;
        let rows = match wanted.numbers.iter().any(in_rows) || wanted.text.as_ref().is_some_and(in_rows) {
            true => {
                self.places.rows.map_or_else(|| Ok(Part::default()), |at| part(at, self.places.n_columns))?
            }
            false => Part::default(),
        };
        let texts_of = |column: usize| match column.checked_sub(self.places.n_columns) {
            None => Ok(rows.texts(column, n_rows)),
            Some(other) => match self.places.others.get(other) {
                Some(&at) => part(at, 1).map(|part| part.texts(0, n_rows)),
                None => Ok(Vec::new()),
            },
        };
        let is_number = |column: &usize| !categories.contains_key(column);
        let values: Vec<Cell<T>> =
            match wanted.numbers.iter().any(|column| in_rows(column) && is_number(column)) {
                true => rows.cells(accepted),
                false => Vec::new(),
            };
        let mut others: BTreeMap<usize, Vec<Cell<T>>> = BTreeMap::new();
        let mut names: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for &column in wanted.numbers {
            if !is_number(&column) {
                names.insert(column, texts_of(column)?);
            } else if let Some(&at) =
                column.checked_sub(self.places.n_columns).and_then(|other| self.places.others.get(other))
            {
                others.insert(column, part(at, 1)?.cells(accepted));
            }
        }
        let cell = |row: usize, column: usize| match column < self.places.n_columns {
            true => values.get(row * self.places.n_columns + column),
            false => others.get(&column)?.get(row),
        };
        let texts = match wanted.text {
            Some(column) => texts_of(column)?,
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
}

impl Places {
    fn of(tensors: &[Tensor<'_>], wanted: Option<&str>) -> Result<Self, Failure> {
        let refused = |what: String| Err(Failure::new(CODE_TABLE_COLUMNS, what));
        let is_table = |tensor: &&Tensor<'_>| tensor.shape().len() == 2;
        let mut tables = tensors.iter().filter(is_table);
        let tables = (tables.next(), tables.next());
        if let (None, (None, _), Some(n_rows)) = (wanted, tables, common_length(tensors)) {
            return Ok(Self::of_columns(tensors, n_rows));
        }
        let rows = match (wanted, tables) {
            (Some(wanted), _) => tensors.iter().find(|tensor| tensor.name() == wanted),
            (None, (Some(only), None)) => Some(only),
            (None, _) => tensors.iter().filter(is_table).find(|tensor| ROWS.contains(&tensor.name())),
        };
        let Some(rows) = rows else { return Err(without_rows(tensors, wanted)) };
        let &[n_rows, n_columns] = rows.shape() else {
            return refused(format!(
                "{} does not have two dimensions, one of samples and one of features",
                shown(rows)
            ));
        };
        check(rows)?;
        let mut places =
            Self { rows: None, n_rows, n_columns, names: None, others: Vec::new(), by_name: HashMap::new() };
        for (at, tensor) in tensors.iter().enumerate() {
            match tensor.name() == rows.name() {
                true if core::ptr::eq(tensor, rows) => places.rows = Some(at),
                true => {}
                false => places.add(at, tensor),
            }
        }
        Ok(places)
    }

    /// Of an archive each array of which is a column.
    fn of_columns(tensors: &[Tensor<'_>], n_rows: usize) -> Self {
        let (others, by_name) = (Vec::new(), HashMap::new());
        let mut places = Self { rows: None, n_rows, n_columns: 0, names: None, others, by_name };
        tensors.iter().enumerate().for_each(|(at, tensor)| places.add(at, tensor));
        let names = places.others.iter().filter_map(|&at| tensors.get(at));
        places.names = Some(names.map(|tensor| tensor.name().to_owned()).collect());
        places
    }

    /// Adds an array beside the rows.
    fn add(&mut self, at: usize, tensor: &Tensor<'_>) {
        let is_column = matches!(*tensor.shape(), [len] | [len, 1] if len == self.n_rows);
        let column = is_column.then_some(self.others.len());
        self.others.extend(column.map(|_| at));
        let other = Other { at, column, is_sound: column.is_some() && check(tensor).is_ok() };
        self.by_name.entry(tensor.name().to_owned()).or_insert(other);
    }
}

/// The length of the arrays of one dimension in an archive, if it is that of all of them.
fn common_length(tensors: &[Tensor<'_>]) -> Option<usize> {
    let mut lengths = tensors.iter().filter_map(|tensor| match *tensor.shape() {
        [len] if !tensor.name().is_empty() => Some(len),
        _ => None,
    });
    let first = lengths.next()?;
    lengths.all(|len| len == first).then_some(first)
}

/// No array is the one with the rows.
fn without_rows(tensors: &[Tensor<'_>], wanted: Option<&str>) -> Failure {
    let has_table = tensors.iter().any(|tensor| tensor.shape().len() == 2);
    let what = match wanted {
        Some(wanted) => format!("there is no array `{}`", escape::cut(wanted, 60)),
        None if has_table => "several arrays may be the table".to_owned(),
        None => "no array has two dimensions, one of samples and one of features".to_owned(),
    };
    let names: Vec<String> = tensors.iter().map(shown).collect();
    let failure = Failure::new(CODE_TABLE_COLUMNS, what).because(super::listed(&names));
    match (wanted, has_table) {
        (Some(_), _) => failure,
        (None, true) => failure.help("name the array of rows with --array"),
        (None, false) => failure.help(
            "save an array of two dimensions, or arrays of one dimension and one length, which are columns: numpy.savez(FILE, x=..., y=...)",
        ),
    }
}

/// The elements of some rows of an array.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    /// Of an array whose elements are numbers.
    dtype: Option<Dtype>,
    /// Elements of a row.
    width: usize,
}

impl Part {
    fn read(tensor: &Tensor<'_>, width: usize, first: usize, n_rows: usize) -> Result<Self, Stop> {
        let widened;
        // 16-bit floats are read as 32-bit ones.
        let tensor = match tensor.dtype() {
            TensorType::Known(Dtype::F16 | Dtype::Bf16) => {
                widened = tensor.widened().map_err(stop)?;
                &widened
            }
            _ => tensor,
        };
        let TensorType::Known(dtype) = tensor.dtype() else { return Ok(Self::default()) };
        let row_len = width * element_len(dtype);
        let mut bytes = vec![0; row_len * n_rows];
        tensor.read(row_len as u64 * first as u64, &mut bytes).map_err(stop)?;
        Ok(Self { bytes, dtype: Some(dtype), width })
    }

    /// All elements, row by row.
    fn cells<C: Element>(&self, accepted: Accepted) -> Vec<C> {
        let mut cells = Vec::new();
        if let Some(dtype) = self.dtype {
            elements(dtype, &self.bytes, accepted, &mut cells);
        }
        cells
    }

    /// The elements of a column as texts; the others are not looked at.
    fn texts(&self, column: usize, n_rows: usize) -> Vec<String> {
        let mut texts = Vec::new();
        if let Some(dtype) = self.dtype {
            let len = element_len(dtype);
            for row in 0..n_rows {
                let begin = (row * self.width + column) * len;
                let element = self.bytes.get(begin..begin + len).unwrap_or_default();
                elements(dtype, element, Accepted { missing: true, infinite: true }, &mut texts);
            }
        }
        texts.into_iter().map(|Digits(text)| text).collect()
    }
}

/// Bytes of an element that is a number.
const fn element_len(dtype: Dtype) -> usize {
    (dtype.bits() / 8) as usize
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
    const HELP: &str = "save numbers; fields of structured arrays one by one";
    if let Err(error) = tensor.check_type() {
        let what = format!("{} has elements that are no numbers", shown(tensor));
        return Err(Failure::new(CODE_TABLE_COLUMNS, what).because(error.kind().to_string()).help(HELP));
    }
    match tensor.dtype() {
        TensorType::Known(dtype) if is_number(dtype) => Ok(()),
        dtype => {
            let what = format!(
                "{} has elements that are no numbers ({})",
                shown(tensor),
                model_file::common_name(dtype)
            );
            Err(Failure::new(CODE_TABLE_COLUMNS, what).help(HELP))
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

#[cfg(test)]
mod tests {
    use test_meter::CountingAllocator;

    use super::super::{Accepts, Categories};
    use super::*;

    #[global_allocator]
    static HEAP: CountingAllocator = CountingAllocator::new();

    #[test]
    fn columns_of_categories_are_read_once() {
        const ROWS: usize = 50;
        const COLUMNS: usize = 80;
        let header = format!("{{'descr': '<i2', 'fortran_order': False, 'shape': ({ROWS}, {COLUMNS}), }}");
        let elements = (0..ROWS * COLUMNS).flat_map(|number| (number as u16 % 7).to_le_bytes());
        let file: Vec<u8> = b"\x93NUMPY\x01\x00\x76\x00"
            .iter()
            .copied()
            .chain(format!("{header:117}\n").bytes())
            .chain(elements)
            .collect();
        let path = std::env::temp_dir().join(format!("apr-arrays-{}.npy", std::process::id()));
        std::fs::write(&path, file).unwrap();
        let mut arrays =
            Arrays::open(FileSource::new(std::fs::File::open(&path).unwrap()).unwrap(), None).unwrap();
        std::fs::remove_file(&path).unwrap();
        let columns: Vec<usize> = (0..COLUMNS).collect();
        let wanted = Wanted { numbers: &columns, accepts: Accepts::Finite, text: Some(COLUMNS - 1) };
        let mut categories: BTreeMap<usize, Categories> =
            columns.iter().map(|&column| (column, Categories::found())).collect();
        let mut taken = Taken { n_rows: 0, numbers: Vec::<f32>::new(), texts: Vec::new() };
        let (result, usage) = HEAP.measure_thread(|| arrays.take(wanted, &mut categories, ROWS, &mut taken));
        assert!(result.is_ok() && taken.n_rows == ROWS && taken.numbers.len() == ROWS * COLUMNS);
        assert_eq!(taken.texts[1].1, ((2 * COLUMNS - 1) % 7).to_string());
        assert_eq!(categories.remove(&0).unwrap().into_names(), ["0", "3", "6", "2", "5", "1", "4"]);
        // A text for each cell, and some for each column.
        assert!(usage.requests < 2 * ROWS * COLUMNS, "{}", usage.requests);
    }
}
