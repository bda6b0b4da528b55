//! Arrays and scalars of NumPy.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use pickle_core::joblib::Order;
use pickle_core::{Span, Update, Value, ValueId};
use read_at::ReadAt;

use crate::error::Error;
use crate::numpy::element::{by_name, element};
use crate::numpy::strings::{MAX_BYTES, Strings};
use crate::options::Options;
use crate::pickled::{Found, Pickle};
use crate::tensor::{Decode, ElementType, Place};
use crate::view::View;

/// Types have short codes.
const MAX_CODE: u64 = 64;

/// Where the elements of an array are.
enum Raw {
    Bytes(Span),
    /// Characters up to 255 in UTF-8.
    Latin1(Span),
    /// `bytes()`, as protocols 0 to 2 spell it.
    Empty,
    Objects,
}

impl Pickle<'_> {
    /// The array that an object is, if it is one.
    pub(crate) fn array(&self, id: ValueId, options: &Options) -> Result<Option<Found>, Error> {
        if let Some((array, range)) = self.arrays.get(&id) {
            let Some(range) = range else {
                return Ok(Some(Found::unsupported(array.shape.clone(), "an array of Python objects")));
            };
            let is_fortran = array.order == Order::Fortran;
            let len = range.end - range.start;
            let place = (self.source.place(range.clone())?, len);
            return self.found(id, array.dtype, array.shape.clone(), is_fortran, place, options).map(Some);
        }
        let (dtype, shape, is_fortran, raw) = match self.callee(id) {
            Some(("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct")) => {
                let state = match self.state(id) {
                    Some([_, shape, dtype, fortran, raw]) | Some([shape, dtype, fortran, raw]) => {
                        (*dtype, *shape, *fortran, *raw)
                    }
                    _ => return Err(Error::malformed("an array without its state")),
                };
                (state.0, state.1, matches!(self.tree.value(state.2), Value::Bool(true)), state.3)
            }
            Some(("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer")) => {
                let [raw, dtype, shape, order] = *self.args(id) else {
                    return Err(Error::malformed("an array without its state"));
                };
                let order = self.text(order, MAX_CODE)?;
                (dtype, shape, order.as_deref() == Some("F"), raw)
            }
            Some((
                "joblib.numpy_pickle" | "joblib.numpy_pickle_compat",
                "NDArrayWrapper" | "ZNDArrayWrapper",
            )) => {
                return Ok(Some(Found::unsupported(
                    Vec::new(),
                    "an array in a file of its own, as joblib before 0.10 wrote it,",
                )));
            }
            Some(("numpy.ma.core", "_mareconstruct")) => {
                return Ok(Some(Found::unsupported(Vec::new(), "a masked array")));
            }
            Some(("joblib.numpy_pickle", "NumpyArrayWrapper")) => {
                return Ok(Some(Found::unsupported(Vec::new(), "an array of joblib inside another file")));
            }
            _ => return Ok(None),
        };
        let shape = self.ints(shape).ok_or_else(|| Error::malformed("an array with an invalid shape"))?;
        let (place, len) = match self.raw(raw)? {
            None => return Err(Error::malformed("an array without elements")),
            Some(Raw::Objects) => return Ok(Some(Found::unsupported(shape, "an array of Python objects"))),
            Some(Raw::Bytes(span)) => match (span.range(), self.source.at) {
                (Some(range), Some(_)) => (self.source.place(range)?, span.len()),
                _ => self.copied(raw, || self.bytes(span, u64::MAX))?,
            },
            Some(Raw::Latin1(span)) => self.latin1(raw, span, dtype, &shape, options)?,
            Some(Raw::Empty) => self.copied(raw, || Ok(Vec::new()))?,
        };
        self.found(id, dtype, shape, is_fortran, (place, len), options).map(Some)
    }

    fn found(
        &self,
        id: ValueId,
        dtype: ValueId,
        shape: Vec<u64>,
        is_fortran: bool,
        place: (Place, u64),
        options: &Options,
    ) -> Result<Found, Error> {
        let (dtype, is_big) = match self.dtype(dtype, options)? {
            Ok(element) => element,
            Err(what) => {
                let strings = self.strings(dtype, &shape, &place)?;
                return Ok(strings.map_or(Found::Unsupported { shape, what }, Found::Strings));
            }
        };
        let mut view = if is_fortran { View::column_major(&shape)? } else { View::whole() };
        view.swap = if is_big { dtype.number_width() } else { 0 };
        Ok(Found::Tensor { dtype, shape, place, view, storage: id.index() as u64 })
    }

    /// A short array of strings, as JSON.
    fn strings(
        &self,
        dtype: ValueId,
        shape: &[u64],
        (place, len): &(Place, u64),
    ) -> Result<Option<String>, Error> {
        let (Some(("numpy", "dtype")), Some(&code)) = (self.callee(dtype), self.args(dtype).first()) else {
            return Ok(None);
        };
        let order = match self.state(dtype).and_then(|state| state.get(1)) {
            Some(&order) => self.text(order, MAX_CODE)?.unwrap_or_default(),
            None => String::new(),
        };
        let Some(strings) = self.text(code, MAX_CODE)?.and_then(|code| Strings::of(&(order + &code))) else {
            return Ok(None);
        };
        let count = shape.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim));
        let needed = count.and_then(|count| count.checked_mul(strings.len()));
        if needed != Some(*len) || *len > MAX_BYTES {
            return Ok(None);
        }
        Ok(match (place, self.source.at) {
            (Place::Memory(bytes), _) => strings.json(shape, bytes),
            (Place::Stored(_, range), Some((_, base))) => {
                let mut bytes = alloc::vec![0; *len as usize];
                self.source.bytes.read_exact_at(range.start - base, &mut bytes)?;
                strings.json(shape, &bytes)
            }
            _ => None,
        })
    }

    /// The list of the elements of an array of objects of one dimension.
    pub(crate) fn object_list(&self, id: ValueId) -> Option<ValueId> {
        let ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") = self.callee(id)? else {
            return None;
        };
        let ([_, shape, _, _, list] | [shape, _, _, list]) = self.state(id)? else { return None };
        match (self.ints(*shape)?.as_slice(), self.tree.value(*list)) {
            ([len], Value::List(items)) if items.len() as u64 == *len => Some(*list),
            _ => None,
        }
    }

    /// The last state that was set, if it is a tuple.
    fn state(&self, id: ValueId) -> Option<&[ValueId]> {
        let Value::Object(object) = self.tree.value(id) else { return None };
        let state = object.updates.filter_map(|update| match update {
            Update::State(state) => Some(state),
            _ => None,
        });
        match self.tree.value(state.last()?) {
            Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The type that a `numpy.dtype` describes, and whether it is big-endian.
    pub(crate) fn dtype(
        &self,
        id: ValueId,
        options: &Options,
    ) -> Result<Result<(ElementType, bool), String>, Error> {
        let invalid = || Error::malformed("an array with an invalid type");
        let (Some(("numpy", "dtype")), Some(&code)) = (self.callee(id), self.args(id).first()) else {
            let name = self.callee(id).map_or("", |(_, name)| name);
            let name = name.strip_suffix("DType").unwrap_or("").to_ascii_lowercase();
            return by_name(&name).map(|dtype| Ok((dtype, false))).ok_or_else(invalid);
        };
        let state = self.state(id).unwrap_or(&[]);
        if state
            .get(2..5)
            .is_some_and(|parts| parts.iter().any(|&part| !matches!(self.tree.value(part), Value::None)))
        {
            return Ok(Err("an array of structures".into()));
        }
        let order = match state.get(1) {
            Some(&order) => self.text(order, MAX_CODE)?.ok_or_else(invalid)?,
            None => String::new(),
        };
        if let Some((_, name)) = self.global(code) {
            // A type of `ml_dtypes`.
            let known = by_name(name).ok_or_else(|| String::from("an array of an unknown type"));
            return Ok(known.map(|dtype| (dtype, order == ">")));
        }
        let code = self.text(code, MAX_CODE)?.ok_or_else(invalid)?;
        Ok(element(&code, options.void_is_bf16).map(|(dtype, is_big)| (dtype, is_big || order == ">")))
    }

    fn raw(&self, id: ValueId) -> Result<Option<Raw>, Error> {
        Ok(match self.tree.value(id) {
            Value::Bytes(span) | Value::ByteArray(span) | Value::Str2(span) => Some(Raw::Bytes(span)),
            Value::Str(span) => Some(Raw::Latin1(span)),
            Value::List(_) => Some(Raw::Objects),
            Value::Object(_) => match (self.callee(id), self.args(id)) {
                (Some(("_codecs", "encode")), [text, encoding]) => {
                    let encoding = self.text(*encoding, MAX_CODE)?;
                    match (self.tree.value(*text), encoding.as_deref()) {
                        (Value::Str(span), Some("latin1" | "latin-1")) => Some(Raw::Latin1(span)),
                        _ => None,
                    }
                }
                (Some(("builtins", "bytes")), []) => Some(Raw::Empty),
                _ => None,
            },
            _ => None,
        })
    }

    /// Bytes that are stored as characters: decoded on demand if they are in the file.
    fn latin1(
        &self,
        raw: ValueId,
        span: Span,
        dtype: ValueId,
        shape: &[u64],
        options: &Options,
    ) -> Result<(Place, u64), Error> {
        let needed = match self.dtype(dtype, options)? {
            Ok((dtype, _)) => shape
                .iter()
                .try_fold(1_u64, |count, &dim| count.checked_mul(dim))
                .ok_or_else(|| Error::view("its size overflows"))
                .and_then(|count| dtype.byte_len(count))?,
            Err(_) => 0,
        };
        let is_possible = needed <= span.len() && span.len() / 2 <= needed;
        if let (Some(range), Some((0, base)), true) = (span.range(), self.source.at, is_possible) {
            let range = base + range.start..base + range.end;
            return Ok((Place::Encoded(Arc::new(Latin1 { range, len: needed })), needed));
        }
        self.copied(raw, || latin1(&self.bytes(span, u64::MAX)?))
    }

    /// Bytes in memory, once for each value that they are of.
    fn copied(
        &self,
        of: ValueId,
        bytes: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<(Place, u64), Error> {
        if let Some(copy) = self.copies.borrow().get(&of) {
            return Ok(copy.clone());
        }
        let bytes = bytes()?;
        let copy = (Place::Memory(Arc::from(bytes.as_slice())), bytes.len() as u64);
        self.copies.borrow_mut().insert(of, copy.clone());
        Ok(copy)
    }

    /// Bytes of a short bytes object, in any of its spellings.
    pub(crate) fn raw_bytes(&self, id: ValueId, max: u64) -> Result<Option<Vec<u8>>, Error> {
        Ok(match self.raw(id)? {
            Some(Raw::Bytes(span)) => Some(self.bytes(span, max)?),
            Some(Raw::Latin1(span)) => Some(latin1(&self.bytes(span, max)?)?),
            Some(Raw::Empty) => Some(Vec::new()),
            _ => None,
        })
    }
}

/// Bytes that are stored as characters of UTF-8.
#[derive(Debug)]
struct Latin1 {
    range: Range<u64>,
    len: u64,
}

impl Decode for Latin1 {
    fn decode(&self, file: &dyn ReadAt) -> Result<Vec<u8>, Error> {
        let mut bytes = crate::tensor::reserved(self.range.end - self.range.start)?;
        bytes.resize((self.range.end - self.range.start) as usize, 0);
        file.read_exact_at(self.range.start, &mut bytes)?;
        let bytes = latin1(&bytes)?;
        if bytes.len() as u64 == self.len {
            Ok(bytes)
        } else {
            Err(Error::view("its storage has another length"))
        }
    }
}

fn latin1(text: &[u8]) -> Result<Vec<u8>, Error> {
    let invalid = || Error::malformed("bytes that are stored as text have characters above 255");
    let text = core::str::from_utf8(text).map_err(|_| invalid())?;
    let mut bytes = crate::tensor::reserved(text.len() as u64)?;
    for character in text.chars() {
        bytes.push(u8::try_from(u32::from(character)).map_err(|_| invalid())?);
    }
    Ok(bytes)
}
