//! Values as callers see them.

use core::fmt;

use super::{Cell, Node, Sequence, Span, Tree, ValueId};

/// A value. Views borrow the tree; nested values are identifiers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Value<'t> {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer that fits.
    Int(i64),
    /// A larger integer: two's complement, little-endian.
    BigInt(Span),
    /// A float.
    Float(f64),
    /// A string: UTF-8 in which surrogates may occur.
    Str(Span),
    /// A `str` of Python 2: bytes, whose encoding the loader chooses.
    Str2(Span),
    /// A bytes object.
    Bytes(Span),
    /// A byte array. What was appended to it later is not in it: see [`EventKind::Update`](crate::EventKind::Update).
    ByteArray(Span),
    /// A list.
    List(Items<'t>),
    /// A tuple.
    Tuple(&'t [ValueId]),
    /// A dict, in the order of insertion. A key may occur more than once: the last one counts.
    Dict(Entries<'t>),
    /// A set; its items may repeat.
    Set(Items<'t>),
    /// A frozen set; its items may repeat.
    FrozenSet(&'t [ValueId]),
    /// A name that a loader resolves.
    Global(Global<'t>),
    /// A name whose module or name is the result of a call.
    Computed {
        /// The module.
        module: ValueId,
        /// The name in it.
        name: ValueId,
    },
    /// The result of a call.
    Object(Object<'t>),
    /// What the loader makes of a persistent id.
    Persistent(ValueId),
    /// A name from the extension registry of the loading process.
    Extension(u32),
    /// An out-of-band buffer, numbered from 0.
    Buffer(u32),
}

/// A name that a loader resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global<'t> {
    /// The module as stored: of Python 2 or 3, see [`python2::modern`](crate::python2::modern).
    pub module: &'t str,
    /// The name in it; with dots, a path of attributes.
    pub name: &'t str,
}

impl fmt::Display for Global<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.module, self.name)
    }
}

/// How an object was constructed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Construct {
    /// `callable(*args)`.
    Reduce,
    /// `callable.__new__(callable, *args)`.
    NewObj,
    /// `callable.__new__(callable, *args, **kwargs)`.
    NewObjEx,
    /// `callable(*args)`, or without arguments `callable.__new__(callable)`: `OBJ`.
    Obj,
    /// The same by `INST`.
    Inst,
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
pub struct Object<'t> {
    /// How it was constructed.
    pub construct: Construct,
    /// What was called: a global, unless the pickle is hostile or defines functions.
    pub callable: ValueId,
    /// The arguments: a tuple, unless the pickle is hostile.
    pub args: ValueId,
    /// Keyword arguments of [`Construct::NewObjEx`]: a dict, unless the pickle is hostile.
    pub kwargs: Option<ValueId>,
    /// What was done to it afterwards.
    pub updates: Updates<'t>,
}

/// What was done to an object after it was constructed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// `BUILD` with this state.
    State(ValueId),
    /// `APPEND` or `APPENDS`, once for each item.
    Append(ValueId),
    /// `SETITEM` or `SETITEMS`, once for each pair.
    SetItem(ValueId, ValueId),
    /// `ADDITEMS`, once for each item.
    Add(ValueId),
}

impl Update {
    /// A constant for the kind, and the values.
    pub(super) const fn encode(self) -> (ValueId, [Option<ValueId>; 2]) {
        match self {
            Self::State(state) => (ValueId::NONE, [Some(state), None]),
            Self::Append(item) => (ValueId::FALSE, [Some(item), None]),
            Self::Add(item) => (ValueId::TRUE, [Some(item), None]),
            Self::SetItem(key, value) => (ValueId::EMPTY_TUPLE, [Some(key), Some(value)]),
        }
    }
}

/// The items of a list or set, in order.
#[derive(Clone, Copy)]
pub struct Items<'t> {
    tree: &'t Tree,
    sequence: Sequence,
}

impl<'t> Items<'t> {
    /// Number of items.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.sequence.len as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.sequence.len == 0
    }

    fn next_cell(&mut self) -> Option<&'t Cell> {
        let cell = self.tree.cells.get(self.sequence.first?.get() as usize - 1)?;
        self.sequence.first = cell.next;
        self.sequence.len -= 1;
        Some(cell)
    }
}

impl Iterator for Items<'_> {
    type Item = ValueId;

    fn next(&mut self) -> Option<ValueId> {
        self.next_cell().map(|cell| cell.value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

/// The pairs of a dict, in order.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'t>(Items<'t>);

impl Entries<'_> {
    /// Number of pairs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len() / 2
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Iterator for Entries<'_> {
    type Item = (ValueId, ValueId);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().zip(self.0.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

/// What was done to an object, in order.
#[derive(Clone, Copy, Debug)]
pub struct Updates<'t>(Items<'t>);

impl Updates<'_> {
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Iterator for Updates<'_> {
    type Item = Update;

    fn next(&mut self) -> Option<Update> {
        let (kind, value) = self.0.next().zip(self.0.next())?;
        Some(match kind {
            ValueId::NONE => Update::State(value),
            ValueId::FALSE => Update::Append(value),
            ValueId::TRUE => Update::Add(value),
            _ => Update::SetItem(value, self.0.next()?),
        })
    }
}

impl Tree {
    /// The value of a node.
    #[must_use]
    pub fn value(&self, id: ValueId) -> Value<'_> {
        let items = |idx: u32| Items { tree: self, sequence: self.sequence(idx) };
        let wide = |idx: u32| self.wide.get(idx as usize).copied().unwrap_or_default();
        match self.node(id) {
            Node::None => Value::None,
            Node::Bool(value) => Value::Bool(value),
            Node::Small(value) => Value::Int(value.into()),
            Node::Wide(idx) => Value::Int(wide(idx).cast_signed()),
            Node::Float(idx) => Value::Float(f64::from_bits(wide(idx))),
            Node::BigInt(idx) => Value::BigInt(self.span(idx)),
            Node::Str(idx) => Value::Str(self.span(idx)),
            Node::Str2(idx) => Value::Str2(self.span(idx)),
            Node::Bytes(idx) => Value::Bytes(self.span(idx)),
            Node::ByteArray(idx) => Value::ByteArray(self.span(idx)),
            Node::List(idx) => Value::List(items(idx)),
            Node::Dict(idx) => Value::Dict(Entries(items(idx))),
            Node::Set(idx) => Value::Set(items(idx)),
            Node::Tuple(idx) => Value::Tuple(self.slice(idx)),
            Node::FrozenSet(idx) => Value::FrozenSet(self.slice(idx)),
            Node::Global(idx) => Value::Global(self.global(idx)),
            Node::Computed(idx) => match *self.slice(idx) {
                [module, name] => Value::Computed { module, name },
                _ => Value::None,
            },
            Node::Object(idx) => self.object(idx).map_or(Value::None, Value::Object),
            Node::Persistent(id) => Value::Persistent(id),
            Node::Extension(code) => Value::Extension(code),
            Node::Buffer(number) => Value::Buffer(number),
        }
    }

    /// The name that was called to construct an object; `None` for other values, and for calls of something else than a name.
    #[must_use]
    pub fn callee(&self, id: ValueId) -> Option<Global<'_>> {
        let Value::Object(object) = self.value(id) else { return None };
        let Value::Global(global) = self.value(object.callable) else { return None };
        Some(global)
    }

    fn slice(&self, idx: u32) -> &[ValueId] {
        let from = self.slices.get(idx as usize..).and_then(<[ValueId]>::split_first);
        from.and_then(|(len, items)| items.get(..len.index())).unwrap_or_default()
    }

    fn object(&self, idx: u32) -> Option<Object<'_>> {
        let record = self.objects.get(idx as usize)?;
        Some(Object {
            construct: record.construct,
            callable: record.callable,
            args: record.args,
            kwargs: record.kwargs,
            updates: Updates(Items { tree: self, sequence: record.updates }),
        })
    }

    fn global(&self, idx: u32) -> Global<'_> {
        let (module, name) = self.globals.get(idx as usize).copied().unwrap_or_default();
        Global { module: self.name(module), name: self.name(name) }
    }

    pub(crate) fn name(&self, idx: u32) -> &str {
        let end = |idx: usize| self.name_ends.get(idx).map_or(0, |end| *end as usize);
        let start = (idx as usize).checked_sub(1).map_or(0, end);
        self.names.get(start..end(idx as usize)).unwrap_or_default()
    }
}

/// The identifiers: what they stand for may be a cycle.
impl fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}
