//! The parameters of a model as named tensors, as in safetensors files.

mod apr;
mod orientation;
mod parts;

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use st_core::{Dtype, Layout, SafeTensors, TensorSpec, TensorView, WriteOptions};

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;

pub use self::orientation::{TRANSPOSED_KEY, transposed};

/// Key of the metadata entry that names the model in a file, for example `Ridge`.
pub const MODEL_KEY: &str = "apr.model";

/// Named tensors and the text that goes with them: what a model is made of, between its type here and a safetensors
/// file.
///
/// ```
/// use apr_models::Tensors;
///
/// let mut tensors = Tensors::new();
/// tensors.push_f32("centroids", &[2, 3], &[0.0, 0.5, 1.0, 1.5, 2.0, 2.5])?;
/// tensors.push_integers("n_iter", &[1], &[300])?;
/// let file = tensors.to_safetensors()?;
///
/// let tensors = Tensors::from_safetensors(&file)?;
/// assert_eq!(tensors.matrix("centroids")?.row(1), Some(&[1.5, 2.0, 2.5][..]));
/// assert_eq!(tensors.integer("n_iter")?, 300);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors {
    tensors: BTreeMap<String, Stored>,
    /// Sorted by keys.
    metadata: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Stored {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Vec<u8>,
}

impl Tensors {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { tensors: BTreeMap::new(), metadata: Vec::new() }
    }

    /// None yet, with the metadata entry that names the model.
    #[must_use]
    pub fn of_model(name: &str) -> Self {
        let mut tensors = Self::new();
        tensors.set_metadata(MODEL_KEY, name);
        tensors
    }

    /// The tensors that `push` adds to a list of a model of this name. An error inside is one pointer, and everything is dropped
    /// in one place.
    pub(crate) fn made(name: &str, push: &dyn Fn(&mut Self) -> Result<(), Error>) -> Result<Self, Error> {
        let mut tensors = Self::of_model(name);
        push(&mut tensors)?;
        Ok(tensors)
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// The names in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Whether there is a tensor of that name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Adds a tensor: its elements little-endian, row by row.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`] if the bytes are not as many as type and shape need, or the name is taken or reserved.
    pub fn push(&mut self, name: &str, dtype: Dtype, shape: &[usize], data: Vec<u8>) -> Result<(), Error> {
        // Both refusals of the writer, at the tensor that causes them.
        TensorView::new(dtype, shape, &data).map_err(|error| Error::from(error).of_tensor(name))?;
        if self.tensors.contains_key(name) {
            return Err(
                Error::from(st_core::Error::from(st_core::ErrorKind::DuplicateTensor)).of_tensor(name)
            );
        }
        self.tensors.insert(name.to_owned(), Stored { dtype, shape: shape.to_owned(), data });
        Ok(())
    }

    /// Adds numbers as F32, row by row.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_f32(&mut self, name: &str, shape: &[usize], values: &[f32]) -> Result<(), Error> {
        self.push(name, Dtype::F32, shape, bytes_of(values, f32::to_le_bytes))
    }

    /// Adds numbers as F64, row by row.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_f64(&mut self, name: &str, shape: &[usize], values: &[f64]) -> Result<(), Error> {
        self.push(name, Dtype::F64, shape, bytes_of(values, f64::to_le_bytes))
    }

    /// Adds whole numbers as U64.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_u64(&mut self, name: &str, shape: &[usize], values: &[u64]) -> Result<(), Error> {
        self.push(name, Dtype::U64, shape, bytes_of(values, u64::to_le_bytes))
    }

    /// Adds whole numbers as I64.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_i64(&mut self, name: &str, shape: &[usize], values: &[i64]) -> Result<(), Error> {
        self.push(name, Dtype::I64, shape, bytes_of(values, i64::to_le_bytes))
    }

    /// Adds bytes as U8.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_u8(&mut self, name: &str, shape: &[usize], values: &[u8]) -> Result<(), Error> {
        self.push(name, Dtype::U8, shape, values.to_owned())
    }

    /// Adds whole numbers as F32, which is how earlier writers store them and all readers expect them, if each of them is
    /// such a float exactly; otherwise as I64, or U64 if one is beyond that.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_integers(&mut self, name: &str, shape: &[usize], values: &[u64]) -> Result<(), Error> {
        if values.iter().all(|&value| (value as f32) as u128 == u128::from(value)) {
            return self.push(
                name,
                Dtype::F32,
                shape,
                bytes_of(values, |value| (value as f32).to_le_bytes()),
            );
        }
        let dtype =
            if values.iter().all(|&value| i64::try_from(value).is_ok()) { Dtype::I64 } else { Dtype::U64 };
        self.push(name, dtype, shape, bytes_of(values, u64::to_le_bytes))
    }

    /// Adds a list of whole numbers, some of them perhaps below 0, as [`push_integers`](Self::push_integers).
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_signed(&mut self, name: &str, values: &[i64]) -> Result<(), Error> {
        let shape = [values.len()];
        if values.iter().all(|&value| (value as f32) as i128 == i128::from(value)) {
            return self.push(
                name,
                Dtype::F32,
                &shape,
                bytes_of(values, |value| (value as f32).to_le_bytes()),
            );
        }
        self.push_i64(name, &shape, values)
    }

    /// Adds a whole number that may be missing, which is written as -1.
    pub(crate) fn push_optional(&mut self, name: &str, value: Option<u64>) -> Result<(), Error> {
        match value {
            Some(value) => self.push_integers(name, &[1], &[value]),
            None => self.push_number(name, -1.0),
        }
    }

    /// Adds one whole number of the machine's size, as [`push_integers`](Self::push_integers).
    pub(crate) fn push_count(&mut self, name: &str, value: usize) -> Result<(), Error> {
        self.push_integers(name, &[1], &[value as u64])
    }

    /// Adds whole numbers of the machine's size, as [`push_integers`](Self::push_integers).
    pub(crate) fn push_counts(&mut self, name: &str, values: &[usize]) -> Result<(), Error> {
        let values: Vec<u64> = values.iter().map(|&value| value as u64).collect();
        self.push_integers(name, &[values.len()], &values)
    }

    /// Adds one number.
    pub(crate) fn push_number(&mut self, name: &str, value: f32) -> Result<(), Error> {
        self.push_f32(name, &[1], &[value])
    }

    /// Adds all tensors of another list, their names after `prefix`. Metadata are not added.
    pub(crate) fn append(&mut self, prefix: &str, other: &Self) -> Result<(), Error> {
        other.tensors.iter().try_for_each(|(name, stored)| {
            self.push(&format!("{prefix}{name}"), stored.dtype, &stored.shape, stored.data.clone())
        })
    }

    /// The tensors whose names begin with `prefix`, which is taken off.
    pub(crate) fn part(&self, prefix: &str) -> Self {
        let mut part = Self::new();
        for (name, stored) in &self.tensors {
            if let Some(name) = name.strip_prefix(prefix) {
                part.tensors.insert(name.to_owned(), stored.clone());
            }
        }
        part
    }

    /// Sets a metadata entry.
    pub fn set_metadata(&mut self, key: &str, value: &str) {
        match self.place_of(key) {
            Ok(place) => value.clone_into(&mut self.metadata[place].1),
            Err(place) => self.metadata.insert(place, (key.to_owned(), value.to_owned())),
        }
    }

    /// A metadata entry.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.place_of(key).ok().map(|place| self.metadata[place].1.as_str())
    }

    /// Where in the list of metadata a key is, or would be.
    fn place_of(&self, key: &str) -> Result<usize, usize> {
        self.metadata.binary_search_by(|(known, _)| known.as_str().cmp(key))
    }

    /// The model that the metadata name.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.metadata(MODEL_KEY)
    }

    /// The tensor of that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingTensor`].
    pub fn view(&self, name: &str) -> Result<TensorView<'_>, Error> {
        let stored = self.stored(name)?;
        Ok(TensorView::new(stored.dtype, &stored.shape, &stored.data)?)
    }

    /// The numbers of an F32 tensor of one dimension.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingTensor`], [`ErrorKind::WrongDtype`], [`ErrorKind::WrongRank`].
    pub fn vector(&self, name: &str) -> Result<Vec<f32>, Error> {
        let stored = self.stored(name)?;
        match stored.shape.len() {
            1 => stored.f32s(name),
            found => Err(Error::from(ErrorKind::WrongRank { found }).of_tensor(name)),
        }
    }

    /// The numbers of an F32 tensor of two dimensions, none of them 0.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingTensor`], [`ErrorKind::WrongDtype`], [`ErrorKind::TensorShape`].
    pub fn matrix(&self, name: &str) -> Result<Matrix, Error> {
        let stored = self.stored(name)?;
        match *stored.shape {
            [n_rows, n_cols] if n_rows > 0 && n_cols > 0 => {
                Matrix::from_vec(n_rows, n_cols, stored.f32s(name)?)
            }
            _ => Err(stored.wrong_shape(name, "a matrix of at least one row and one column")),
        }
    }

    /// The shape of a tensor and its numbers, which are F32.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingTensor`], [`ErrorKind::WrongDtype`].
    pub fn array(&self, name: &str) -> Result<(&[usize], Vec<f32>), Error> {
        let stored = self.stored(name)?;
        Ok((&stored.shape, stored.f32s(name)?))
    }

    /// The number of an F32 tensor that holds one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingTensor`], [`ErrorKind::WrongDtype`], [`ErrorKind::TensorShape`].
    pub fn number(&self, name: &str) -> Result<f32, Error> {
        match *self.stored(name)?.f32s(name)? {
            [value] => Ok(value),
            _ => Err(self.stored(name)?.wrong_shape(name, "a single number")),
        }
    }

    /// The F64 numbers of a tensor, row by row.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingTensor`], [`ErrorKind::WrongDtype`].
    pub fn f64s(&self, name: &str) -> Result<Vec<f64>, Error> {
        let stored = self.stored(name)?;
        match stored.dtype {
            Dtype::F64 => {
                Ok(stored.data.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
            }
            found => Err(Error::from(ErrorKind::WrongDtype { found }).of_tensor(name)),
        }
    }

    /// The bytes of a U8 tensor.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingTensor`], [`ErrorKind::WrongDtype`].
    pub fn bytes(&self, name: &str) -> Result<&[u8], Error> {
        let stored = self.stored(name)?;
        match stored.dtype {
            Dtype::U8 => Ok(&stored.data),
            found => Err(Error::from(ErrorKind::WrongDtype { found }).of_tensor(name)),
        }
    }

    /// The whole numbers of a tensor that holds them as integers or, as earlier writers do, as F32; row by row.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingTensor`]; [`ErrorKind::TensorInteger`] for a value that is negative or no whole number.
    pub fn integers(&self, name: &str) -> Result<Vec<u64>, Error> {
        let whole = self.signed_integers(name)?.into_iter().map(u64::try_from);
        checks::all(whole).map_err(|_| Error::from(ErrorKind::TensorInteger).of_tensor(name))
    }

    /// As [`integers`](Self::integers) with numbers below 0.
    ///
    /// # Errors
    ///
    /// As [`integers`](Self::integers).
    pub fn signed_integers(&self, name: &str) -> Result<Vec<i128>, Error> {
        let stored = self.stored(name)?;
        let refused = || Error::from(ErrorKind::TensorInteger).of_tensor(name);
        let len = match stored.dtype {
            Dtype::F32 | Dtype::U32 | Dtype::I32 => 4,
            Dtype::U64 | Dtype::I64 => 8,
            _ => return Err(refused()),
        };
        // One loop for all types.
        let values = stored.data.chunks_exact(len).map(|bytes| {
            let bits = match (bytes.first_chunk(), bytes.first_chunk()) {
                (Some(bytes), _) => u64::from_le_bytes(*bytes),
                (_, Some(bytes)) => u32::from_le_bytes(*bytes).into(),
                _ => 0,
            };
            match stored.dtype {
                Dtype::F32 => whole(f32::from_bits(bits as u32)).ok_or_else(refused),
                Dtype::I64 => Ok((bits as i64).into()),
                Dtype::I32 => Ok((bits as i32).into()),
                _ => Ok(bits.into()),
            }
        });
        checks::all(values)
    }

    /// The whole number of a tensor that holds one.
    ///
    /// # Errors
    ///
    /// As [`integers`](Self::integers), and [`ErrorKind::TensorShape`].
    pub fn integer(&self, name: &str) -> Result<u64, Error> {
        match *self.integers(name)? {
            [value] => Ok(value),
            _ => Err(self.stored(name)?.wrong_shape(name, "a single number")),
        }
    }

    /// As [`integer`](Self::integer) for one that may be missing, which is written as -1.
    pub(crate) fn optional_integer(&self, name: &str) -> Result<Option<u64>, Error> {
        match *self.signed_integers(name)? {
            [-1] => Ok(None),
            _ => self.integer(name).map(Some),
        }
    }

    /// As [`optional_integer`](Self::optional_integer) in the machine's size.
    pub(crate) fn optional_count(&self, name: &str) -> Result<Option<usize>, Error> {
        let value = self.optional_integer(name)?;
        let value = value.map(usize::try_from).transpose();
        value.map_err(|_| Error::from(ErrorKind::TensorInteger).of_tensor(name))
    }

    /// As [`integer`](Self::integer) in the machine's size.
    pub(crate) fn count(&self, name: &str) -> Result<usize, Error> {
        let value = self.integer(name)?;
        usize::try_from(value).map_err(|_| Error::from(ErrorKind::TensorInteger).of_tensor(name))
    }

    /// As [`integers`](Self::integers) in the machine's size.
    pub(crate) fn counts(&self, name: &str) -> Result<Vec<usize>, Error> {
        let values = self.integers(name)?.into_iter().map(usize::try_from);
        checks::all(values).map_err(|_| Error::from(ErrorKind::TensorInteger).of_tensor(name))
    }

    /// What `read` finds if the tensor is there.
    pub(crate) fn optional<'t, T>(
        &'t self,
        name: &str,
        read: impl FnOnce(&'t Self, &str) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.contains(name).then(|| read(self, name)).transpose()
    }

    /// Refuses tensors that a model does not have: with more parts it is another one, and half of it would predict
    /// without complaint, and wrongly.
    pub(crate) fn expect_only(&self, known: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        match self.names().find(|name| !known(name)) {
            Some(name) => Err(Error::from(ErrorKind::UnexpectedTensor).of_tensor(name)),
            None => Ok(()),
        }
    }

    /// Refuses a file that names another model; one that names none passes.
    pub(crate) fn expect_model(&self, expected: &'static str) -> Result<(), Error> {
        match self.model() {
            Some(found) if found != expected => {
                Err(ErrorKind::OtherModel { expected, found: Box::from(found) }.into())
            }
            _ => Ok(()),
        }
    }

    /// The tensors as a safetensors file in memory; equal tensors give equal bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`] if no reader would accept the header.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, Error> {
        let specs = self.tensors.iter().map(|(name, stored)| TensorSpec {
            name,
            dtype: stored.dtype,
            shape: &stored.shape,
        });
        let metadata = (!self.metadata.is_empty()).then(|| self.metadata.iter().cloned().collect());
        let layout = Layout::new(specs, &WriteOptions { metadata, ..WriteOptions::default() })?;
        let data: Vec<&[u8]> = self.tensors.values().map(|stored| stored.data.as_slice()).collect();
        Ok(layout.to_vec(&data)?)
    }

    /// Reads a safetensors file, strictly.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`].
    pub fn from_safetensors(file: &[u8]) -> Result<Self, Error> {
        let file = SafeTensors::from_bytes(file)?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter() {
            let stored =
                Stored { dtype: view.dtype(), shape: view.shape().to_owned(), data: view.data().to_owned() };
            tensors.insert(name.to_owned(), stored);
        }
        let mut metadata: Vec<(String, String)> = Vec::new();
        if let Some(entries) = file.header().metadata() {
            for (key, value) in entries.iter() {
                metadata.push((key.to_owned(), value.to_owned()));
            }
        }
        // A header has each key once.
        metadata.sort_unstable();
        let mut tensors = Self { tensors, metadata };
        tensors.orient()?;
        Ok(tensors)
    }

    fn stored(&self, name: &str) -> Result<&Stored, Error> {
        self.tensors.get(name).ok_or_else(|| Error::from(ErrorKind::MissingTensor).of_tensor(name))
    }
}

impl Stored {
    fn f32s(&self, name: &str) -> Result<Vec<f32>, Error> {
        match self.dtype {
            Dtype::F32 => Ok(self.numbers(|bytes| f32::from_le_bytes(*bytes))),
            found => Err(Error::from(ErrorKind::WrongDtype { found }).of_tensor(name)),
        }
    }

    fn numbers<T, const N: usize>(&self, from_bytes: impl FnMut(&[u8; N]) -> T) -> Vec<T> {
        self.data.as_chunks().0.iter().map(from_bytes).collect()
    }

    fn wrong_shape(&self, name: &str, expected: &'static str) -> Error {
        Error::from(ErrorKind::TensorShape { expected, found: self.shape.clone() }).of_tensor(name)
    }
}

fn bytes_of<T: Copy, const N: usize>(values: &[T], to_bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * N];
    for (place, &value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
        *place = to_bytes(value);
    }
    bytes
}

/// The whole number that a float is.
fn whole(value: f32) -> Option<i128> {
    // Every finite value below 2^127 and none else survives the way there and back.
    let whole = value as i128;
    (whole as f32 == value && whole != i128::MAX).then_some(whole)
}

#[cfg(test)]
mod tests {
    use located_error::Subject;

    use super::*;

    #[test]
    fn integers_keep_their_values_whatever_their_type() {
        for values in
            [&[0, 1, 1 << 24][..], &[(1 << 24) + 1], &[u64::MAX], &[u64::MAX, 3], &[i64::MAX as u64], &[]]
        {
            let mut tensors = Tensors::new();
            tensors.push_integers("n", &[values.len()], values).expect("as many as the shape says");
            assert_eq!(tensors.integers("n").expect("whole numbers"), values);
        }
        let mut tensors = Tensors::new();
        tensors.push_integers("n", &[1], &[1 << 30]).expect("one");
        assert_eq!(tensors.view("n").expect("there").dtype(), Dtype::F32);
    }

    #[test]
    fn what_is_no_whole_number_is_refused() {
        for (value, found) in
            [(1.5, None), (f32::NAN, None), (f32::INFINITY, None), (-2.0, Some(-2)), (-0.0, Some(0))]
        {
            assert_eq!(whole(value), found);
            let mut tensors = Tensors::new();
            tensors.push_number("n", value).expect("one");
            assert_eq!(tensors.integers("n").is_ok(), found == Some(0));
        }
    }

    #[test]
    fn lengths_and_names_are_checked_where_they_are_given() {
        let mut tensors = Tensors::new();
        assert!(tensors.push_f32("a", &[2], &[1.0]).is_err());
        tensors.push_f32("a", &[1], &[1.0]).expect("one");
        assert_eq!(
            tensors.push_f32("a", &[1], &[1.0]).expect_err("twice").subject().map(Subject::name),
            Some("a")
        );
        assert_eq!(tensors.number("b").expect_err("missing").code(), "am-missing-tensor");
        assert_eq!(tensors.matrix("a").expect_err("a vector").code(), "am-tensor-shape");
        assert_eq!(tensors.bytes("a").expect_err("floats").code(), "am-dtype");
    }
}
