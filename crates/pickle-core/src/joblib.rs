//! Arrays that joblib stores between two opcodes.
//!
//! joblib writes an array as a `NumpyArrayWrapper` that describes it, and the elements right after the `BUILD` of the wrapper, where no opcode walk
//! expects them. Call [`raw_array`] at each [`EventKind::Build`](crate::EventKind::Build), and [`pass`] over the bytes. Only `joblib.load` reads them so: to
//! `pickle.load` they are opcodes. A scanner has to consider both.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

use read_at::ReadAt;

use crate::error::{Error, ErrorKind};
use crate::machine::Machine;
use crate::python2;
use crate::tree::{Construct, Global, Tree, Update, Value, ValueId};

/// Types within types that are followed, and how many of them in all: types may be shared, so that few describe many.
const MAX_DEPTH: u32 = 8;
const MAX_FIELDS: u32 = 4096;
/// Fields of all types of a pickle that are judged.
const MAX_JUDGED: u32 = 1 << 20;

/// States of a wrapper, and entries of each; joblib writes one with six.
const MAX_STATES: usize = 4;
const MAX_ENTRIES: usize = 64;
/// Of a text that is compared.
const MAX_TEXT: u64 = 64;

/// An array whose elements follow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawArray {
    /// Lengths of its dimensions.
    pub shape: Vec<u64>,
    /// Its `numpy.dtype`.
    pub dtype: ValueId,
    /// Order of the elements.
    pub order: Order,
    /// What follows.
    pub content: Content,
}

/// Order of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Row-major.
    C,
    /// Column-major.
    Fortran,
}

/// What follows the wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Elements: this many bytes.
    Bytes(u64),
    /// One byte with the length of the padding, the padding, and elements: this many bytes.
    PaddedBytes(u64),
    /// A pickle of the array, whose elements are objects: read it with a machine at [`Machine::position`], then skip it.
    Pickle,
}

/// The array whose elements follow, if `target` of a `BUILD` event is one.
///
/// # Errors
///
/// [`ErrorKind::Array`] if the number of bytes that follow cannot be computed; [`ErrorKind::Read`].
pub fn raw_array<R: ReadAt>(machine: &Machine<R>, target: ValueId) -> Result<Option<RawArray>, Error> {
    let fields = Cell::new(MAX_FIELDS);
    let reader = Attributes { tree: machine.tree(), source: machine.source(), fields: &fields };
    let Some(class) = reader.tree.callee(target) else { return Ok(None) };
    // An object made by way of `copyreg` is one, too, although joblib does not write it so: it is refused below.
    let class = match python2::modern(class.module, class.name) {
        ("copyreg", "_reconstructor") => reader.first_argument(target),
        _ => Some(class),
    };
    if class.is_none_or(|class| (class.module, class.name) != ("joblib.numpy_pickle", "NumpyArrayWrapper")) {
        return Ok(None);
    }
    let Some(array) = reader.array(target)? else {
        return Err(Error::from(ErrorKind::Array {}).at(machine.position()));
    };
    Ok(Some(array))
}

/// The first of these `numpy.dtype` whose state NumPy would not write, or with more than a million fields in all before it. In such a type flags
/// contradict the code, or fields lie over each other: elements are taken for pointers to objects. Ask when the pickle has ended: a state
/// refers to dictionaries that the stream may still change.
///
/// # Errors
///
/// [`ErrorKind::Read`].
pub fn unsound_dtype<R: ReadAt>(
    machine: &Machine<R>,
    dtypes: impl IntoIterator<Item = ValueId>,
) -> Result<Option<ValueId>, Error> {
    let fields = Cell::new(MAX_JUDGED);
    let reader = Attributes { tree: machine.tree(), source: machine.source(), fields: &fields };
    for dtype in dtypes {
        if reader.element(dtype, 0)?.is_none() {
            return Ok(Some(dtype));
        }
    }
    Ok(None)
}

/// Passes the bytes of an array, and returns the range of its elements.
///
/// # Errors
///
/// [`ErrorKind::RawInFrame`], [`ErrorKind::Truncated`], [`ErrorKind::Read`]; [`ErrorKind::Array`] for [`Content::Pickle`].
pub fn pass<R: ReadAt>(machine: &mut Machine<R>, array: &RawArray) -> Result<Range<u64>, Error> {
    match array.content {
        Content::Bytes(len) => machine.skip(len),
        Content::PaddedBytes(len) => {
            let at = machine.skip(1)?.start;
            let mut padding = [0];
            machine.source().read_exact_at(at, &mut padding)?;
            machine.skip(padding[0].into())?;
            machine.skip(len)
        }
        Content::Pickle => Err(Error::from(ErrorKind::Array {}).at(machine.position())),
    }
}

/// Flags of types whose elements are objects: their references are counted, they are written as a list, and they are pointers. Structures with
/// such fields have all but the last. Other flags say how elements are made.
const OBJECT: i64 = 0b111;
const STRUCTURE: i64 = 0b011;

/// What an element takes.
#[derive(Clone, Copy)]
enum Element {
    Bytes(u64),
    /// Objects, or a structure with some.
    Object(u64),
    /// Of a type that a class stands for: its length is not known.
    Class,
}

impl Element {
    const fn len(self) -> Option<u64> {
        match self {
            Self::Bytes(len) | Self::Object(len) => Some(len),
            Self::Class => None,
        }
    }

    const fn is_object(self) -> bool {
        matches!(self, Self::Object(_))
    }
}

/// Bytes of a pointer.
const POINTER: u64 = 8;

/// `None` is a description that NumPy or joblib would not have written.
struct Attributes<'t, R> {
    tree: &'t Tree,
    source: &'t R,
    /// Fields that may still be visited.
    fields: &'t Cell<u32>,
}

impl<R: ReadAt> Attributes<'_, R> {
    fn array(&self, wrapper: ValueId) -> Result<Option<RawArray>, Error> {
        let Value::Object(object) = self.tree.value(wrapper) else { return Ok(None) };
        if object.construct != Construct::NewObj {
            return Ok(None); // joblib's constructor has defaults of its own.
        }
        let (mut shape, mut dtype, mut order, mut alignment) = (None, None, Order::C, None);
        for (number, update) in object.updates.enumerate() {
            let Update::State(state) = update else { return Ok(None) };
            let Value::Dict(entries) = self.tree.value(state) else { return Ok(None) };
            if number >= MAX_STATES || entries.len() > MAX_ENTRIES {
                return Ok(None);
            }
            for (key, value) in entries {
                // A key that is computed may be any, and one that joblib does not write a method.
                match &*self.text(key)? {
                    b"subclass" | b"allow_mmap" => {}
                    b"shape" => shape = Some(value),
                    b"dtype" => dtype = Some(value),
                    b"numpy_array_alignment_bytes" => alignment = Some(value),
                    b"order" => match &*self.text(value)? {
                        b"C" => order = Order::C,
                        b"F" => order = Order::Fortran,
                        _ => return Ok(None),
                    },
                    _ => return Ok(None),
                }
            }
        }
        let padded = alignment.is_some_and(|value| !matches!(self.tree.value(value), Value::None));
        let Some(shape) = shape.and_then(|shape| self.shape(shape)) else { return Ok(None) };
        let Some(dtype) = dtype else { return Ok(None) };
        let content = match self.element(dtype, 0)? {
            Some(Element::Object(_)) => Content::Pickle,
            Some(Element::Bytes(size)) => {
                let elements = shape
                    .iter()
                    .try_fold(1_i64, |product, dim| product.checked_mul(i64::try_from(*dim).ok()?));
                let bytes = elements.and_then(|elements| elements.cast_unsigned().checked_mul(size));
                let Some(len) = bytes else { return Ok(None) };
                if padded { Content::PaddedBytes(len) } else { Content::Bytes(len) }
            }
            Some(Element::Class) | None => return Ok(None),
        };
        Ok(Some(RawArray { shape, dtype, order, content }))
    }

    fn shape(&self, shape: ValueId) -> Option<Vec<u64>> {
        let Value::Tuple(dims) = self.tree.value(shape) else { return None };
        let dim = |id: &ValueId| match self.tree.value(*id) {
            Value::Int(dim) => u64::try_from(dim).ok(),
            _ => None,
        };
        dims.iter().map(dim).collect()
    }

    /// `numpy.dtype(code, ...)` with the state `(version, order, subarray, names, fields, size, alignment, flags, ...)`.
    fn element(&self, dtype: ValueId, depth: u32) -> Result<Option<Element>, Error> {
        let is_dtype = self.tree.callee(dtype);
        let is_dtype = is_dtype.is_some_and(|class| (class.module, class.name) == ("numpy", "dtype"));
        let Value::Object(object) = self.tree.value(dtype) else { return Ok(None) };
        let mut updates = object.updates;
        let (Some(Update::State(state)), None) = (updates.next(), updates.next()) else { return Ok(None) };
        let Value::Tuple(args) = self.tree.value(object.args) else { return Ok(None) };
        let (Value::Tuple(state), true) = (self.tree.value(state), is_dtype && depth < MAX_DEPTH) else {
            return Ok(None);
        };
        let (Some(code), [_, _, subarray, names, fields, size, _, flags, ..]) = (args.first(), state) else {
            return Ok(None);
        };
        let value = |id: &ValueId| self.tree.value(*id);
        let Value::Int(flags) = value(flags) else { return Ok(None) };
        let has = flags & OBJECT;
        let is_plain = [subarray, names, fields].iter().all(|part| matches!(value(part), Value::None));
        let code = match value(code) {
            // NumPy writes records by their class, and types of other libraries. It takes any other class for that of objects.
            Value::Global(class) => match python2::modern(class.module, class.name) {
                ("numpy" | "numpy.rec" | "numpy._core.records" | "numpy.core.records", "record") => {
                    b"V".to_vec()
                }
                (module, _) if module.split('.').next() == Some("ml_dtypes") => {
                    return Ok((is_plain && has == 0).then_some(Element::Class));
                }
                _ => return Ok(None),
            },
            _ => self.text(*code)?,
        };
        let code = code.strip_prefix(b"|").unwrap_or(&code);
        let Some((kind, digits)) = code.split_first() else { return Ok(None) };
        let width = core::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok());
        Ok(match (kind, width) {
            (b'O', _) => (is_plain && has == OBJECT).then_some(Element::Object(POINTER)),
            (b'b' | b'i' | b'u' | b'f' | b'c' | b'm' | b'M', Some(width @ 1..=32)) => {
                (is_plain && has == 0).then_some(Element::Bytes(width))
            }
            (b'S' | b'U' | b'V', _) => {
                let Value::Int(size) = value(size) else { return Ok(None) };
                let Ok(size) = u64::try_from(size) else { return Ok(None) };
                let objects = match (value(subarray), value(names), value(fields)) {
                    (Value::None, Value::None, Value::None) => Some(false),
                    (Value::None, Value::Tuple(_), Value::Dict(fields)) => {
                        self.structure(fields, size, depth)?
                    }
                    (Value::Tuple([of, shape]), Value::None, Value::None) => {
                        let of = self.element(*of, depth + 1)?;
                        of.filter(|of| self.is_filled(*of, *shape, size)).map(Element::is_object)
                    }
                    _ => None,
                };
                match (objects, has) {
                    (Some(false), 0) => Some(Element::Bytes(size)),
                    (Some(true), has) if has & STRUCTURE == STRUCTURE => Some(Element::Object(size)),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    /// Whether so many elements fit so many bytes.
    fn is_filled(&self, of: Element, shape: ValueId, size: u64) -> bool {
        let count = match self.tree.value(shape) {
            Value::Int(count) => u64::try_from(count).ok(),
            _ => self
                .shape(shape)
                .and_then(|dims| dims.iter().try_fold(1, |count: u64, dim| count.checked_mul(*dim))),
        };
        match (count, of.len()) {
            (Some(count), Some(len)) => count.checked_mul(len).is_some_and(|len| len <= size),
            (count, _) => count.is_some(),
        }
    }

    /// Whether a field of a structure of `size` bytes is an object. All lie in it; none lies over an object.
    fn structure(&self, fields: crate::Entries<'_>, size: u64, depth: u32) -> Result<Option<bool>, Error> {
        let (mut objects, mut places) = (false, Vec::new());
        for (_, field) in fields {
            let Some(left) = self.fields.get().checked_sub(1) else { return Ok(None) };
            self.fields.set(left);
            let Value::Tuple([dtype, offset, ..]) = self.tree.value(field) else { return Ok(None) };
            let Some(element) = self.element(*dtype, depth + 1)? else { return Ok(None) };
            let Value::Int(offset) = self.tree.value(*offset) else { return Ok(None) };
            let end =
                u64::try_from(offset).ok().and_then(|begin| begin.checked_add(element.len().unwrap_or(0)));
            let Some(end) = end.filter(|end| *end <= size) else { return Ok(None) };
            objects |= element.is_object();
            // Among objects, a field of unknown length may reach any.
            places.push((offset.cast_unsigned(), element.len().map_or(size, |_| end), *dtype));
        }
        // A title is a second name of a field.
        places.sort_unstable();
        places.dedup();
        let is_apart = places.is_sorted_by(|(_, end, _), (begin, ..)| end <= begin);
        Ok((is_apart || !objects).then_some(objects))
    }

    /// The class that a function is called with first.
    fn first_argument(&self, call: ValueId) -> Option<Global<'_>> {
        let Value::Object(object) = self.tree.value(call) else { return None };
        let Value::Tuple([class, ..]) = self.tree.value(object.args) else { return None };
        match self.tree.value(*class) {
            Value::Global(class) => Some(class),
            _ => None,
        }
    }

    /// The bytes of a short string; empty for other values.
    fn text(&self, value: ValueId) -> Result<Vec<u8>, Error> {
        match self.tree.value(value) {
            Value::Str(span) | Value::Str2(span) if span.len() <= MAX_TEXT => {
                Ok(self.tree.bytes(self.source, span, MAX_TEXT)?.into_owned())
            }
            _ => Ok(Vec::new()),
        }
    }
}
