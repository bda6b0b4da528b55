//! Some rows of a table.

use alloc::borrow::Cow;
use core::fmt;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::value::{Accepted, Value};

/// Some rows of a table, column by column.
#[derive(Debug)]
pub struct Batch {
    /// Those that were asked for, each with all rows.
    columns: Vec<ArrayRef>,
    n_rows: usize,
    /// The column of `columns` with each column of the table.
    at: Vec<Option<usize>>,
    first_row: u64,
}

/// A cell that is not what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct CellError {
    /// Row of the table, from 0.
    pub row: u64,
    /// Column of the table, from 0.
    pub column: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a cell.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// It is null.
    Null,
    /// It is a text, shown here, and a number is needed.
    Text(String),
    /// It is NaN or infinite.
    NotFinite(f64),
    /// It is beyond what a float of so many bits can hold.
    TooLarge(f64, u32),
    /// The column was not asked for, or its type is not supported.
    NotRead,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("the cell is empty"),
            Self::Text(text) => write!(f, "the text `{}` is not a number", located_error::cut(text, 60)),
            Self::NotFinite(value) => write!(f, "`{value}` is not a finite number"),
            Self::TooLarge(value, bits) => {
                write!(f, "`{value:e}` is beyond what a {bits}-bit float can hold")
            }
            Self::NotRead => f.write_str("the column was not read"),
        }
    }
}

impl fmt::Display for CellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, row {}, column {}", self.problem, self.row + 1, self.column + 1)
    }
}

impl core::error::Error for CellError {}

/// The name of a type whose values cannot be read; nothing of one that is read.
pub(crate) fn unsupported(data_type: &DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::Dictionary(_, values) => match **values {
            DataType::Dictionary(..) => "dictionary of dictionaries",
            // Nulls have no buffers, so that their number is whatever a file declares.
            DataType::Null => "dictionary of nulls",
            _ => return unsupported(values),
        },
        DataType::Decimal32(..) => "decimal32",
        DataType::Decimal64(..) => "decimal64",
        DataType::Decimal128(..) => "decimal128",
        DataType::Decimal256(..) => "decimal256",
        other if other.is_numeric() || other.is_string() => return None,
        DataType::Boolean | DataType::Null => return None,
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Timestamp(..) => "timestamp",
        DataType::Duration(_) => "duration",
        DataType::Interval(_) => "interval",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "binary"
        }
        DataType::Struct(_) => "struct",
        DataType::Map(..) => "map",
        DataType::Union(..) => "union",
        DataType::RunEndEncoded(..) => "run-end encoded",
        _ => "list",
    })
}

/// Whether the values of a column of this type can be read.
pub(crate) fn is_supported(data_type: &DataType) -> bool {
    unsupported(data_type).is_none()
}

impl Batch {
    pub(crate) fn new(columns: Vec<ArrayRef>, n_rows: usize, at: Vec<Option<usize>>, first_row: u64) -> Self {
        Self { columns, n_rows, at, first_row }
    }

    /// How many rows it has.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of its first row in the table, from 0.
    #[must_use]
    pub fn first_row(&self) -> u64 {
        self.first_row
    }

    /// The rows from `begin` to `end`, counted within the batch; fewer if there are fewer.
    #[must_use]
    pub fn slice(&self, begin: usize, end: usize) -> Self {
        let end = end.min(self.n_rows());
        let begin = begin.min(end);
        Self {
            columns: self.columns.iter().map(|column| column.slice(begin, end - begin)).collect(),
            n_rows: end - begin,
            at: self.at.clone(),
            first_row: self.first_row + begin as u64,
        }
    }

    /// Appends the numbers of these columns, row by row. Booleans are 0 and 1.
    ///
    /// # Errors
    ///
    /// The first cell, in the order of the columns, that is not an accepted number; `out` is as before then.
    pub fn append_rows<T: Value>(
        &self,
        columns: &[usize],
        accepted: Accepted,
        out: &mut Vec<T>,
    ) -> Result<(), CellError> {
        let (begin, width) = (out.len(), columns.len());
        out.resize(begin + self.n_rows() * width, T::default());
        for (idx, &column) in columns.iter().enumerate() {
            let cells = out.get_mut(begin + idx..).unwrap_or_default().iter_mut().step_by(width.max(1));
            if let Err(error) = self.write_column(column, accepted, cells) {
                out.truncate(begin);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Puts the numbers of a column into cells, one for each row. Booleans are 0 and 1.
    ///
    /// # Errors
    ///
    /// The first cell that is not an accepted number; those before it are written.
    pub fn write_column<'c, T: Value>(
        &self,
        column: usize,
        accepted: Accepted,
        cells: impl Iterator<Item = &'c mut T>,
    ) -> Result<(), CellError> {
        let done = match self.array(column) {
            Some(array) => write_numbers(array, accepted, cells),
            None => Err((0, Problem::NotRead)),
        };
        done.map_err(|(row, problem)| CellError { row: self.first_row + row as u64, column, problem })
    }

    /// The text of a cell: numbers in decimal digits, booleans as `true` and `false`. None if it is null or NaN.
    ///
    /// # Errors
    ///
    /// If there is no such row, or the column was not read.
    pub fn text(&self, row: usize, column: usize) -> Result<Option<Cow<'_, str>>, CellError> {
        let array = self.array(column).filter(|array| row < array.len());
        array.and_then(|array| text(array, row)).ok_or(CellError {
            row: self.first_row + row as u64,
            column,
            problem: Problem::NotRead,
        })
    }

    fn array(&self, column: usize) -> Option<&dyn Array> {
        let at = self.at.get(column).copied().flatten()?;
        self.columns.get(at).map(AsRef::as_ref)
    }
}

/// The first row at fault and its problem.
type RowProblem = (usize, Problem);

/// Puts the values of an array into cells.
fn write_numbers<'c, T: Value>(
    array: &dyn Array,
    accepted: Accepted,
    cells: impl Iterator<Item = &'c mut T>,
) -> Result<(), RowProblem> {
    macro_rules! integers {
        ($type:ty, $of:ident) => {{
            let values = array.as_primitive::<$type>().values().iter();
            fill(array, accepted, cells, values.map(|&value| Ok(T::$of(value.into()))))
        }};
    }
    macro_rules! floats {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>().values().iter();
            fill(array, accepted, cells, values.map(|&value| accepted.float(f64::from(value))))
        }};
    }
    match array.data_type() {
        DataType::Int8 => integers!(Int8Type, of_i64),
        DataType::Int16 => integers!(Int16Type, of_i64),
        DataType::Int32 => integers!(Int32Type, of_i64),
        DataType::Int64 => integers!(Int64Type, of_i64),
        DataType::UInt8 => integers!(UInt8Type, of_u64),
        DataType::UInt16 => integers!(UInt16Type, of_u64),
        DataType::UInt32 => integers!(UInt32Type, of_u64),
        DataType::UInt64 => integers!(UInt64Type, of_u64),
        DataType::Float16 => floats!(Float16Type),
        DataType::Float32 => floats!(Float32Type),
        DataType::Float64 => floats!(Float64Type),
        DataType::Boolean => {
            let values = array.as_boolean().values().iter();
            fill(array, accepted, cells, values.map(|value| Ok(T::of_u64(value.into()))))
        }
        DataType::Null => {
            let values = (0..array.len()).map(|_| missing(accepted));
            fill(array, Accepted::FINITE, cells, values)
        }
        DataType::Dictionary(..) => {
            let values = (0..array.len()).map(|row| match value_of_key(array, row) {
                Some((values, key)) => number_at(values, key, accepted),
                None => missing(accepted),
            });
            fill(array, accepted, cells, values)
        }
        _ => match (0..array.len()).find_map(|row| Some((row, text(array, row)??.into_owned()))) {
            Some((row, text)) => Err((row, Problem::Text(text))),
            // Only nulls.
            None if is_supported(array.data_type()) => {
                fill(array, accepted, cells, (0..array.len()).map(|_| Ok(T::NAN)))
            }
            None => Err((0, Problem::NotRead)),
        },
    }
}

fn fill<'c, T: Value>(
    array: &dyn Array,
    accepted: Accepted,
    cells: impl Iterator<Item = &'c mut T>,
    values: impl Iterator<Item = Result<T, Problem>>,
) -> Result<(), RowProblem> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    for (row, (cell, value)) in cells.zip(values).enumerate() {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
        let value = if is_null { missing(accepted) } else { value };
        *cell = value.map_err(|problem| (row, problem))?;
    }
    Ok(())
}

fn missing<T: Value>(accepted: Accepted) -> Result<T, Problem> {
    if accepted.missing { Ok(T::NAN) } else { Err(Problem::Null) }
}

/// The number in one row of an array.
fn number_at<T: Value>(array: &dyn Array, row: usize, accepted: Accepted) -> Result<T, Problem> {
    let mut number = T::default();
    let done = write_numbers(array.slice(row, 1).as_ref(), accepted, core::iter::once(&mut number));
    done.map(|()| number).map_err(|(_, problem)| problem)
}

/// The values of a dictionary, and which of them stands in a row; none if it is null.
fn value_of_key(array: &dyn Array, row: usize) -> Option<(&dyn Array, usize)> {
    macro_rules! keys {
        ($($data_type:ident, $type:ty;)*) => {
            match array.data_type() {
                DataType::Dictionary(keys, _) => match **keys {
                    $(DataType::$data_type => {
                        let dictionary = array.as_dictionary::<$type>();
                        (dictionary.key(row)?, dictionary.values())
                    })*
                    _ => return None,
                },
                _ => return None,
            }
        };
    }
    let (key, values) = keys! {
        Int8, Int8Type; Int16, Int16Type; Int32, Int32Type; Int64, Int64Type;
        UInt8, UInt8Type; UInt16, UInt16Type; UInt32, UInt32Type; UInt64, UInt64Type;
    };
    (key < values.len()).then_some((values.as_ref(), key))
}

/// The text of a cell, which may be null; nothing if the type is not supported.
fn text(array: &dyn Array, row: usize) -> Option<Option<Cow<'_, str>>> {
    macro_rules! digits {
        ($type:ty) => {
            Cow::Owned(array.as_primitive::<$type>().values().get(row)?.to_string())
        };
    }
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Some(None);
    }
    let text = match array.data_type() {
        DataType::Float64 if array.as_primitive::<Float64Type>().value(row).is_nan() => return Some(None),
        DataType::Float32 if array.as_primitive::<Float32Type>().value(row).is_nan() => return Some(None),
        DataType::Float16 if array.as_primitive::<Float16Type>().value(row).is_nan() => return Some(None),
        DataType::Int8 => digits!(Int8Type),
        DataType::Int16 => digits!(Int16Type),
        DataType::Int32 => digits!(Int32Type),
        DataType::Int64 => digits!(Int64Type),
        DataType::UInt8 => digits!(UInt8Type),
        DataType::UInt16 => digits!(UInt16Type),
        DataType::UInt32 => digits!(UInt32Type),
        DataType::UInt64 => digits!(UInt64Type),
        DataType::Float16 => digits!(Float16Type),
        DataType::Float32 => digits!(Float32Type),
        DataType::Float64 => digits!(Float64Type),
        DataType::Boolean => Cow::Borrowed(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        DataType::Dictionary(..) => {
            let Some((values, key)) = value_of_key(array, row) else { return Some(None) };
            return text(values, key);
        }
        _ => return None,
    };
    Some(Some(text))
}
