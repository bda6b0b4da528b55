//! Pickles as trees of values, and what the values mean.

mod allowed;
mod array;
mod json;
mod values;
mod walk;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::Range;

use pickle_core::joblib::{self, Content, RawArray};
use pickle_core::{EventKind, Limits, Machine, Span, Tree, Value, ValueId};
use read_at::ReadAt;

use crate::error::{Error, ErrorKind};
use crate::tensor::{ElementType, Place};
use crate::view::View;

pub(crate) use self::walk::walk;

/// Dimensions that are read.
const MAX_RANK: usize = 64;

/// Where the bytes of a pickle are.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(crate) bytes: &'s dyn ReadAt,
    /// The file of [`Place::Stored`] that they are in, and from where; `None` if they are in memory.
    pub(crate) at: Option<(usize, u64)>,
}

impl Source<'_> {
    /// A range of it, as the place of a tensor.
    pub(crate) fn place(&self, range: Range<u64>) -> Result<Place, Error> {
        let beyond = || Error::view("it reaches beyond its storage");
        let Some((file, base)) = self.at else {
            let len = range.end.checked_sub(range.start).ok_or_else(beyond)?;
            let mut bytes = crate::tensor::reserved(len.min(self.bytes.total_len()))?;
            bytes.resize(usize::try_from(len).map_err(|_| beyond())?, 0);
            self.bytes.read_exact_at(range.start, &mut bytes)?;
            return Ok(Place::Memory(Arc::from(bytes)));
        };
        let bounds = base.checked_add(range.start).zip(base.checked_add(range.end));
        let (start, end) = bounds.ok_or_else(beyond)?;
        Ok(Place::Stored(file, start..end))
    }
}

/// A pickle that was followed to its end.
pub(crate) struct Pickle<'s> {
    pub(crate) tree: Tree,
    pub(crate) source: Source<'s>,
    /// Arrays of joblib by their wrappers, and where their elements are; `None` for objects.
    pub(crate) arrays: BTreeMap<ValueId, (RawArray, Option<Range<u64>>)>,
    /// Of those of objects, the pickle that joblib puts after the wrapper, and its array.
    pub(crate) objects: BTreeMap<ValueId, (Self, ValueId)>,
    /// Bytes that had to be copied, by the values they are of: many arrays may have the same.
    copies: RefCell<BTreeMap<ValueId, (Place, u64)>>,
    /// Storages inside bytes objects, by where those begin.
    pub(crate) inner: RefCell<BTreeMap<u64, Storage>>,
}

/// Follows pickles, of which several may follow each other.
pub(crate) struct Follower<'s> {
    machine: Machine<&'s dyn ReadAt>,
    source: Source<'s>,
    /// Whether persistent ids are expected.
    has_storages: bool,
    /// Whether elements of arrays stand between opcodes.
    is_joblib: bool,
    arrays: BTreeMap<ValueId, (RawArray, Option<Range<u64>>)>,
    objects: BTreeMap<ValueId, (Pickle<'s>, ValueId)>,
    /// Persistent ids of the last pickle.
    pub(crate) persistent: Vec<ValueId>,
}

impl<'s> Follower<'s> {
    /// Of a stream in which persistent ids stand for storages, or one of joblib.
    pub(crate) fn new(source: Source<'s>, has_storages: bool, is_joblib: bool) -> Self {
        let machine = Machine::new(source.bytes, &Limits::DEFAULT);
        let (arrays, objects) = (BTreeMap::new(), BTreeMap::new());
        Self { machine, source, has_storages, is_joblib, arrays, objects, persistent: Vec::new() }
    }

    pub(crate) const fn tree(&self) -> &Tree {
        self.machine.tree()
    }

    /// Where the next pickle, or what follows the last one, begins.
    pub(crate) const fn position(&self) -> u64 {
        self.machine.position()
    }

    /// Prepares for the next pickle.
    pub(crate) fn begin_next(&mut self) -> Result<(), Error> {
        self.persistent.clear();
        Ok(self.machine.next_pickle()?)
    }

    /// Follows one pickle.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Callable`] for names that no tensor needs.
    pub(crate) fn follow(&mut self) -> Result<ValueId, Error> {
        loop {
            let event = self.machine.next_event()?;
            let tree = self.machine.tree();
            let refuse = |what: &'static str| Err(Error::unsupported(what).at(event.offset));
            match event.kind {
                EventKind::Global { value } => match tree.value(value) {
                    Value::Global(global) if allowed::is_allowed(global) => {}
                    Value::Global(global) => return Err(callable(global).at(event.offset)),
                    _ => return refuse("a pickle that computes a name"),
                },
                EventKind::Call { object } => {
                    let Value::Object(object) = tree.value(object) else { continue };
                    match tree.value(object.callable) {
                        Value::Global(global) if allowed::is_callable(global) => {}
                        Value::Global(global) => return Err(callable(global).at(event.offset)),
                        // A class with its source text, before PyTorch 1.6.
                        Value::Persistent(_) if self.has_storages => {}
                        _ => return refuse("a pickle that calls the result of a call"),
                    }
                }
                EventKind::Build { target, .. } => {
                    if !matches!(tree.value(target), Value::Object(_)) {
                        return refuse("a pickle that changes what is no object");
                    }
                    if self.is_joblib {
                        self.raw_array(target)?;
                    }
                }
                EventKind::Update { target } => {
                    if !matches!(tree.value(target), Value::Object(_)) {
                        return refuse("a pickle that changes what is no object");
                    }
                }
                EventKind::Persistent { value } if self.has_storages => self.persistent.push(value),
                EventKind::Persistent { .. } => return refuse("a pickle with persistent ids"),
                EventKind::Stop { root } => return Ok(root),
                EventKind::FrameMismatch => return refuse("a pickle whose frames and opcodes disagree"),
                _ => return refuse("a pickle with extensions or buffers"),
            }
        }
    }

    fn raw_array(&mut self, target: ValueId) -> Result<(), Error> {
        let Some(array) = joblib::raw_array(&self.machine, target)? else { return Ok(()) };
        let range = if array.content == Content::Pickle {
            // Objects: a pickle with a memo of its own.
            let position = self.machine.position();
            let mut inner = Self::new(self.source, false, false);
            inner.machine = Machine::at(self.source.bytes, position, &Limits::DEFAULT);
            let root = inner.follow()?;
            self.machine.skip(inner.position() - position)?;
            self.objects.insert(target, (inner.finish(), root));
            None
        } else {
            Some(joblib::pass(&mut self.machine, &array)?)
        };
        self.arrays.insert(target, (array, range));
        Ok(())
    }

    pub(crate) fn finish(self) -> Pickle<'s> {
        Pickle {
            tree: self.machine.into_parts().0,
            source: self.source,
            arrays: self.arrays,
            objects: self.objects,
            copies: RefCell::default(),
            inner: RefCell::default(),
        }
    }
}

fn callable(global: pickle_core::Global<'_>) -> Error {
    ErrorKind::Callable { name: dotted(global.module, global.name) }.into()
}

/// Module and name in messages.
pub(crate) fn dotted(module: &str, name: &str) -> String {
    let mut text = String::new();
    text.extend(located_error::cut(module, 200).escape_debug());
    text.push('.');
    text.extend(located_error::cut(name, 200).escape_debug());
    text
}

impl Pickle<'_> {
    /// The bytes of a short string or bytes object.
    pub(crate) fn bytes(&self, span: Span, max: u64) -> Result<Vec<u8>, Error> {
        if span.len() > max {
            return Err(ErrorKind::Limit { limit: "text_bytes", allowed: max }.into());
        }
        Ok(self.tree.bytes(self.source.bytes, span, max)?.into_owned())
    }

    /// A string of either Python.
    pub(crate) fn text(&self, id: ValueId, max: u64) -> Result<Option<String>, Error> {
        Ok(match self.tree.value(id) {
            Value::Str(span) => Some(String::from_utf8_lossy(&self.bytes(span, max)?).into_owned()),
            Value::Str2(span) | Value::Bytes(span) => {
                let bytes = self.bytes(span, max)?;
                Some(
                    String::from_utf8(bytes).unwrap_or_else(|error| {
                        error.as_bytes().iter().map(|&byte| char::from(byte)).collect()
                    }),
                )
            }
            _ => None,
        })
    }

    pub(crate) fn int(&self, id: ValueId) -> Option<u64> {
        match self.tree.value(id) {
            Value::Int(int) => u64::try_from(int).ok(),
            _ => None,
        }
    }

    /// Lengths, or strides. No tensor has more than 64.
    pub(crate) fn ints(&self, id: ValueId) -> Option<Vec<u64>> {
        match self.tree.value(id) {
            // `torch.Size((2, 3))`.
            Value::Object(_) => match *self.args(id) {
                [sizes] if self.callee(id) == Some(("torch", "Size")) => self.plain_ints(sizes),
                _ => None,
            },
            _ => self.plain_ints(id),
        }
    }

    fn plain_ints(&self, id: ValueId) -> Option<Vec<u64>> {
        match self.tree.value(id) {
            Value::Tuple(items) if items.len() <= MAX_RANK => {
                items.iter().map(|&item| self.int(item)).collect()
            }
            Value::List(items) if items.len() <= MAX_RANK => items.map(|item| self.int(item)).collect(),
            _ => None,
        }
    }

    /// What was called for an object, with the names of Python 3.
    pub(crate) fn callee(&self, id: ValueId) -> Option<(&str, &str)> {
        let Value::Object(object) = self.tree.value(id) else { return None };
        self.global(object.callable)
    }

    /// A name, also of a class with its source text.
    pub(crate) fn global(&self, id: ValueId) -> Option<(&str, &str)> {
        let global = match self.tree.value(id) {
            Value::Global(global) => global,
            Value::Persistent(class) => match self.tree.value(class) {
                Value::Tuple([_, class, ..]) => match self.tree.value(*class) {
                    Value::Global(global) => global,
                    _ => return None,
                },
                _ => return None,
            },
            _ => return None,
        };
        Some(pickle_core::python2::modern(global.module, global.name))
    }

    /// The arguments of an object's construction.
    pub(crate) fn args(&self, id: ValueId) -> &[ValueId] {
        let Value::Object(object) = self.tree.value(id) else { return &[] };
        match self.tree.value(object.args) {
            Value::Tuple(args) => args,
            _ => &[],
        }
    }
}

/// A tensor without its name.
pub(crate) enum Found {
    /// One that can be represented.
    Tensor {
        dtype: ElementType,
        shape: Vec<u64>,
        place: (Place, u64),
        view: View,
        /// Two tensors of one storage may be one.
        storage: u64,
    },
    /// One that cannot.
    Unsupported { shape: Vec<u64>, what: String },
    /// Strings, as JSON.
    Strings(String),
}

impl Found {
    pub(crate) fn unsupported(shape: Vec<u64>, what: impl Into<String>) -> Self {
        Self::Unsupported { shape, what: what.into() }
    }
}

/// A storage, as a persistent id names it.
#[derive(Clone)]
pub(crate) struct Storage {
    /// `None` for bytes without a type.
    pub(crate) dtype: Option<ElementType>,
    pub(crate) place: Place,
    /// Bytes.
    pub(crate) len: u64,
    /// Elements before the beginning, for a view of another storage.
    pub(crate) offset: u64,
    pub(crate) is_big: bool,
    /// Equal for equal storages.
    pub(crate) identity: u64,
}

/// Finds the storages of a file.
pub(crate) trait Storages {
    /// The storage of a persistent id.
    fn find(&self, pickle: &Pickle<'_>, id: ValueId) -> Result<Storage, Error>;
}

/// For streams without persistent ids.
#[cfg(feature = "joblib")]
pub(crate) struct NoStorages;

#[cfg(feature = "joblib")]
impl Storages for NoStorages {
    fn find(&self, _: &Pickle<'_>, _: ValueId) -> Result<Storage, Error> {
        Err(Error::unsupported("a pickle with persistent ids"))
    }
}
