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
    let reader = Attributes { tree: machine.tree(), source: machine.source(), fields: Cell::new(MAX_FIELDS) };
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

/// Whether a `numpy.dtype` has a state that NumPy writes for it. In others, flags contradict the type: elements are taken for pointers to objects.
///
/// # Errors
///
/// [`ErrorKind::Read`].
pub fn is_sound_dtype<R: ReadAt>(machine: &Machine<R>, dtype: ValueId) -> Result<bool, Error> {
    let reader = Attributes { tree: machine.tree(), source: machine.source(), fields: Cell::new(MAX_FIELDS) };
    Ok(reader.element(dtype, 0)?.is_some())
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
enum Element {
    Bytes(u64),
    Object,
    /// Of a type that a class stands for: its length is not known.
    Class,
}

/// `None` is a description that NumPy or joblib would not have written.
struct Attributes<'t, R> {
    tree: &'t Tree,
    source: &'t R,
    /// Fields that may still be visited.
    fields: Cell<u32>,
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
            Some(Element::Object) => Content::Pickle,
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
        // A class: of objects, or of numbers of another library.
        if let Value::Global(class) = value(code) {
            let is_object = class.name.starts_with("object");
            return Ok(match (is_object, is_plain) {
                (true, true) if has == OBJECT => Some(Element::Object),
                (false, true) if has == 0 => Some(Element::Class),
                _ => None,
            });
        }
        let code = self.text(*code)?;
        let code = code.strip_prefix(b"|").unwrap_or(&code);
        let Some((kind, digits)) = code.split_first() else { return Ok(None) };
        let width = core::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok());
        Ok(match (kind, width) {
            (b'O', _) => (is_plain && has == OBJECT).then_some(Element::Object),
            (b'b' | b'i' | b'u' | b'f' | b'c' | b'm' | b'M', Some(width @ 1..=32)) => {
                (is_plain && has == 0).then_some(Element::Bytes(width))
            }
            (b'S' | b'U' | b'V', _) => {
                let Value::Int(size) = value(size) else { return Ok(None) };
                let objects = match (value(subarray), value(names), value(fields)) {
                    (Value::None, Value::None, Value::None) => Some(false),
                    (Value::None, Value::Tuple(_), Value::Dict(fields)) => self.has_objects(fields, depth)?,
                    (Value::Tuple([of, _]), Value::None, Value::None) => {
                        self.element(*of, depth + 1)?.map(|of| matches!(of, Element::Object))
                    }
                    _ => None,
                };
                match (objects, has, u64::try_from(size)) {
                    (Some(false), 0, Ok(size)) => Some(Element::Bytes(size)),
                    (Some(true), has, _) if has & STRUCTURE == STRUCTURE => Some(Element::Object),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    /// Whether a field of a structure is an object.
    fn has_objects(&self, fields: crate::Entries<'_>, depth: u32) -> Result<Option<bool>, Error> {
        let mut objects = false;
        for (_, field) in fields {
            let Some(left) = self.fields.get().checked_sub(1) else { return Ok(None) };
            self.fields.set(left);
            let Value::Tuple([dtype, ..]) = self.tree.value(field) else { return Ok(None) };
            match self.element(*dtype, depth + 1)? {
                Some(Element::Object) => objects = true,
                Some(Element::Bytes(_) | Element::Class) => {}
                None => return Ok(None),
            }
        }
        Ok(Some(objects))
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
