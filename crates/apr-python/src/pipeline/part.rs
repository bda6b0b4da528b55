//! A value of a plan, and its position: plain values, lists, and arrays by their buffers.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use st_core::Dtype;

use crate::buffer::{Buffer, Wanted};
use crate::dtypes::{from_format, python_name};
use crate::numpy::Numpy;

/// A value of a plan. Refusals name its place, for example `steps[2].leaves`.
pub(crate) struct Part<'py> {
    value: Bound<'py, PyAny>,
    place: String,
}

/// Elements of an array in row-major order, and its dimensions.
pub(crate) struct Array<T> {
    pub(crate) values: Vec<T>,
    pub(crate) shape: Vec<usize>,
}

/// A type that arrays of plans have.
pub(crate) trait Element: Sized {
    const DTYPE: Dtype;

    /// The elements that little-endian bytes are.
    fn all(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! element {
    ($($kind:ty, $dtype:ident;)*) => {
        $(impl Element for $kind {
            const DTYPE: Dtype = Dtype::$dtype;

            fn all(bytes: &[u8]) -> Vec<Self> {
                let (elements, _) = bytes.as_chunks();
                elements.iter().map(|&element| Self::from_le_bytes(element)).collect()
            }
        })*
    };
}

element! {
    f32, F32;
    f64, F64;
    i64, I64;
    u8, U8;
    u32, U32;
    u64, U64;
}

impl<'py> Part<'py> {
    /// A plan as a whole, which has no name in places.
    pub(crate) fn plan(plan: &Bound<'py, PyAny>) -> Self {
        Self { value: plan.clone(), place: String::new() }
    }

    pub(crate) fn py(&self) -> Python<'py> {
        self.value.py()
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// The dict itself.
    pub(crate) fn dict(&self) -> PyResult<Bound<'py, PyDict>> {
        self.value.cast().cloned().map_err(|_| self.wrong("a dict"))
    }

    /// The value of a key.
    pub(crate) fn field(&self, name: &str) -> PyResult<Self> {
        let place = match self.place.as_str() {
            "" => name.to_owned(),
            place => format!("{place}.{name}"),
        };
        match self.dict()?.get_item(name)? {
            Some(value) => Ok(Self { value, place }),
            None => Err(PyValueError::new_err(format!("the plan has no {place}"))),
        }
    }

    /// The value of a key that is not None.
    pub(crate) fn optional(&self, name: &str) -> PyResult<Option<Self>> {
        let field = self.field(name)?;
        Ok((!field.value.is_none()).then_some(field))
    }

    /// The values of a list or a tuple.
    pub(crate) fn items(&self) -> PyResult<Vec<Self>> {
        if !self.value.is_instance_of::<PyList>() && !self.value.is_instance_of::<PyTuple>() {
            return Err(self.wrong("a list"));
        }
        let item = |(idx, value): (usize, PyResult<Bound<'py, PyAny>>)| {
            Ok(Self { value: value?, place: format!("{}[{idx}]", self.place) })
        };
        self.value.try_iter()?.enumerate().map(item).collect()
    }

    /// The texts of a list.
    pub(crate) fn texts(&self) -> PyResult<Vec<String>> {
        let Ok(list) = self.value.cast::<PyList>() else { return Err(self.wrong("a list of str")) };
        let text = |(idx, value): (usize, Bound<'py, PyAny>)| {
            let Ok(text) = value.cast::<PyString>() else {
                return Err(Self { value, place: format!("{}[{idx}]", self.place) }.wrong("a str"));
            };
            let half = |_| self.invalid(&format!("has half a surrogate pair in text {idx}"));
            text.to_str().map(str::to_owned).map_err(half)
        };
        list.iter().enumerate().map(text).collect()
    }

    /// The key `kind` of a dict.
    pub(crate) fn kind(&self) -> PyResult<String> {
        let kind = self.field("kind")?;
        kind.value.extract().map_err(|_| kind.wrong("a str"))
    }

    /// That the key `kind` is none that is known.
    pub(crate) fn unknown(&self) -> PyErr {
        self.field("kind").map_or_else(|error| error, |kind| kind.invalid("is not known"))
    }

    /// The value of one of several words.
    pub(crate) fn one_of<T: Clone>(&self, words: &[(&str, T)]) -> PyResult<T> {
        let Ok(word) = self.value.cast::<PyString>() else { return Err(self.wrong("a str")) };
        match words.iter().find(|(known, _)| word == known) {
            Some((_, meaning)) => Ok(meaning.clone()),
            None => {
                let known: Vec<String> = words.iter().map(|(known, _)| format!("{known:?}")).collect();
                Err(self.invalid(&format!("must be {}", known.join(" or "))))
            }
        }
    }

    pub(crate) fn flag(&self) -> PyResult<bool> {
        self.value.extract().map_err(|_| self.wrong("True or False"))
    }

    /// A number of things.
    pub(crate) fn count<T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(&self) -> PyResult<T> {
        self.value.extract().map_err(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(self.value.py()) {
                return self.invalid("must be a non-negative integer that fits the layout");
            }
            self.wrong("a whole number")
        })
    }

    pub(crate) fn number(&self) -> PyResult<f64> {
        self.value.extract().map_err(|_| self.wrong("a number"))
    }

    /// Two numbers.
    pub(crate) fn bounds(&self) -> PyResult<(f64, f64)> {
        match &self.items()?[..] {
            [low, high] => Ok((low.number()?, high.number()?)),
            _ => Err(self.invalid("must be two numbers")),
        }
    }

    /// The elements of an array with so many dimensions, and exactly that type.
    pub(crate) fn array<T: Element>(&self, rank: usize) -> PyResult<Array<T>> {
        let wanted = || self.wrong(&format!("an array of {}", python_name(T::DTYPE)));
        let mut buffer = Buffer::of(&self.value, Wanted::Elements).map_err(|_| wanted())?;
        let format = buffer.format().and_then(|format| from_format(format, buffer.item_len()));
        let Some((dtype, in_order)) = format else { return Err(wanted()) };
        if dtype != T::DTYPE {
            return Err(PyTypeError::new_err(format!(
                "{} holds {}: the plan needs {} there",
                self.place,
                python_name(dtype),
                python_name(T::DTYPE)
            )));
        }
        let shape: Vec<usize> = buffer.shape().collect();
        if shape.len() != rank {
            let text = format!("has {} dimensions: the plan needs {rank} there", shape.len());
            return Err(self.invalid(&text));
        }
        if !in_order || !buffer.is_contiguous() {
            let ordered = Numpy::get(self.value.py())?.in_order(dtype, &self.value)?;
            buffer = Buffer::of(&ordered, Wanted::Elements)?;
        }
        Ok(Array { values: T::all(buffer.bytes()), shape })
    }

    /// The elements of an array with one dimension.
    pub(crate) fn list<T: Element>(&self) -> PyResult<Vec<T>> {
        self.array(1).map(|array| array.values)
    }

    /// The numbers of a table with so many rows.
    pub(crate) fn rows(&self, n_rows: usize) -> PyResult<Vec<f64>> {
        let array = self.array::<f64>(2)?;
        self.expect_rows(n_rows, &array.shape)?;
        Ok(array.values)
    }

    /// Checks that the first dimension agrees with another part of the plan.
    pub(crate) fn expect_rows(&self, expected: usize, shape: &[usize]) -> PyResult<()> {
        let found = shape.first().copied().unwrap_or_default();
        if found == expected {
            return Ok(());
        }
        Err(self.invalid(&format!("has {found} rows: the plan says {expected}")))
    }

    /// A value of the right type that cannot be.
    pub(crate) fn invalid(&self, problem: &str) -> PyErr {
        PyValueError::new_err(format!("{} of the plan {problem}", self.place))
    }

    fn wrong(&self, wanted: &str) -> PyErr {
        let kind = self.value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        let place = if self.place.is_empty() { "the plan" } else { &self.place };
        PyTypeError::new_err(format!("{place} is {kind}: {wanted} is needed"))
    }
}
