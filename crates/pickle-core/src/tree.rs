//! Values as nodes of an arena.

mod views;

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::ops::Range;

use read_at::ReadAt;

use crate::error::{Error, Fault};

pub use self::views::{Construct, Entries, Global, Items, Object, Update, Updates, Value};

/// A value of a [`Tree`]. Equal identifiers are the same object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(NonZeroU32);

impl ValueId {
    pub(crate) const NONE: Self = Self::constant(0);
    pub(crate) const FALSE: Self = Self::constant(1);
    pub(crate) const TRUE: Self = Self::constant(2);
    pub(crate) const EMPTY_TUPLE: Self = Self::constant(3);

    const fn constant(idx: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(idx))
    }

    pub(crate) fn new(idx: u32) -> Option<Self> {
        idx.checked_add(1).and_then(NonZeroU32::new).map(Self)
    }

    /// Position in the tree, below [`Tree::len`]: for tables beside the tree.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

/// Bytes of a string, bytes object or large integer: a range of the source, or memory of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The highest bit marks memory of the tree.
    start: u64,
    len: u64,
}

const DECODED: u64 = 1 << 63;

impl Span {
    pub(crate) const fn of(range: &Range<u64>) -> Self {
        Self { start: range.start, len: range.end - range.start }
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Where the bytes are in the source; `None` if they had to be decoded.
    #[must_use]
    pub const fn range(self) -> Option<Range<u64>> {
        if self.start & DECODED == 0 { Some(self.start..self.start + self.len) } else { None }
    }
}

/// What a value is, in eight bytes; the number is an index of the table of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    None,
    Bool(bool),
    Small(i32),
    Wide(u32),
    Float(u32),
    BigInt(u32),
    Str(u32),
    Str2(u32),
    Bytes(u32),
    ByteArray(u32),
    /// [`NO_SEQUENCE`] while it is empty, as the next two.
    List(u32),
    Dict(u32),
    Set(u32),
    /// Of `slices`: the length, then the items.
    Tuple(u32),
    FrozenSet(u32),
    Global(u32),
    /// Of `slices`: the operands.
    Computed(u32),
    Object(u32),
    Persistent(ValueId),
    Extension(u32),
    Buffer(u32),
}

const NO_SEQUENCE: u32 = u32::MAX;

/// A linked list of `cells`: a growing list costs no allocation of its own, and many small ones are dropped at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sequence {
    first: Option<NonZeroU32>,
    last: Option<NonZeroU32>,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    value: ValueId,
    /// Index of the next cell, from one.
    next: Option<NonZeroU32>,
}

#[derive(Clone, Copy, Debug)]
struct ObjectRecord {
    construct: Construct,
    callable: ValueId,
    args: ValueId,
    kwargs: Option<ValueId>,
    updates: Sequence,
}

/// An inert tree of values, which may share nodes and contain cycles.
///
/// Strings and bytes are read from the source that the machine read: [`Tree::bytes`] takes it again.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    wide: Vec<u64>,
    spans: Vec<Span>,
    /// Each slice follows its length, which is stored as the identifier of that index.
    slices: Vec<ValueId>,
    sequences: Vec<Sequence>,
    cells: Vec<Cell>,
    objects: Vec<ObjectRecord>,
    globals: Vec<(u32, u32)>,
    /// Text of modules and names, and where each ends.
    names: String,
    name_ends: Vec<u32>,
    /// Names that are strings of the stack, each once: many globals may use the same.
    interned: BTreeMap<Span, u32>,
    decoded: Vec<u8>,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: [Node::None, Node::Bool(false), Node::Bool(true), Node::Tuple(0)].into(),
            wide: Vec::new(),
            spans: Vec::new(),
            slices: [ValueId::NONE].into(),
            sequences: Vec::new(),
            cells: Vec::new(),
            objects: Vec::new(),
            globals: Vec::new(),
            names: String::new(),
            name_ends: Vec::new(),
            interned: BTreeMap::new(),
            decoded: Vec::new(),
        }
    }
}

impl Tree {
    /// Number of nodes; the constants `None`, `False`, `True` and `()` are always there.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes but the constants.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 4
    }

    /// The nodes from an index on, in the order in which they were made: tuples come after their items.
    pub fn ids(&self, first: usize) -> impl Iterator<Item = ValueId> + use<> {
        (first..self.nodes.len()).filter_map(|idx| ValueId::new(u32::try_from(idx).ok()?))
    }

    /// The bytes of a span, borrowed if the source is in memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if there are more than `max` and they have to be copied;
    /// [`ErrorKind::Read`](crate::ErrorKind::Read).
    pub fn bytes<'s, R: ReadAt + ?Sized>(
        &'s self,
        source: &'s R,
        span: Span,
        max: u64,
    ) -> Result<Cow<'s, [u8]>, Error> {
        let stop = crate::Opcode::STOP;
        let (memory, start) = match (span.range(), source.in_memory()) {
            (None, _) => (self.decoded.as_slice(), span.start & !DECODED),
            (Some(range), Some(memory)) => (memory, range.start),
            (Some(range), None) => {
                let limit = ("max", u32::try_from(max).unwrap_or(u32::MAX));
                let reader = crate::reader::Reader::new(source, 0);
                return reader.copy(&range, limit).map(Cow::Owned).map_err(|fault| fault.of(stop));
            }
        };
        let bytes = usize::try_from(start).ok().zip(usize::try_from(span.len).ok());
        let bytes = bytes.and_then(|(start, len)| memory.get(start..)?.get(..len));
        bytes.map(Cow::Borrowed).ok_or_else(|| Fault::Truncated.of(stop))
    }

    pub(crate) fn node(&self, id: ValueId) -> Node {
        self.nodes.get(id.index()).copied().unwrap_or(Node::None)
    }

    pub(crate) fn add(&mut self, node: Node, limit: u32) -> Result<ValueId, Fault> {
        let idx = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        if idx >= limit {
            return Err(Fault::Limit("values", limit.into()));
        }
        let id = ValueId::new(idx).ok_or(Fault::Memory)?;
        push(&mut self.nodes, node).ok_or(Fault::Memory)?;
        Ok(id)
    }

    pub(crate) fn add_wide(&mut self, bits: u64) -> Result<u32, Fault> {
        push_indexed(&mut self.wide, bits)
    }

    pub(crate) fn add_span(&mut self, span: Span) -> Result<u32, Fault> {
        push_indexed(&mut self.spans, span)
    }

    pub(crate) fn span(&self, idx: u32) -> Span {
        self.spans.get(idx as usize).copied().unwrap_or(Span { start: 0, len: 0 })
    }

    /// Keeps bytes that are not in the source as they are.
    pub(crate) fn add_decoded(&mut self, bytes: &[u8], limit: u32) -> Result<Span, Fault> {
        let start = self.decoded.len();
        if bytes.len() > (limit as usize).saturating_sub(start) {
            return Err(Fault::Limit("decoded_bytes", limit.into()));
        }
        self.decoded.try_reserve(bytes.len()).map_err(|_| Fault::Memory)?;
        self.decoded.extend_from_slice(bytes);
        Ok(Span { start: DECODED | start as u64, len: bytes.len() as u64 })
    }

    /// The bytes of a span that has no range of the source.
    pub(crate) fn decoded(&self, span: Span) -> Option<&[u8]> {
        let start = usize::try_from(span.start & !DECODED).ok()?;
        self.decoded.get(start..)?.get(..usize::try_from(span.len).ok()?)
    }

    /// A tuple, a frozen set, or two operands.
    pub(crate) fn add_slice(&mut self, items: &[ValueId]) -> Result<u32, Fault> {
        let len = u32::try_from(items.len()).ok().and_then(ValueId::new).ok_or(Fault::Memory)?;
        let idx = push_indexed(&mut self.slices, len)?;
        items.iter().try_for_each(|item| push(&mut self.slices, *item)).ok_or(Fault::Memory)?;
        Ok(idx)
    }

    /// The same for a string that may be used again.
    pub(crate) fn intern(&mut self, span: Span, bytes: &[u8]) -> Result<u32, Fault> {
        let idx = self.add_name(bytes)?;
        self.interned.insert(span, idx);
        Ok(idx)
    }

    pub(crate) fn interned(&self, span: Span) -> Option<u32> {
        self.interned.get(&span).copied()
    }

    /// Keeps the text of a module or a name. What is not UTF-8 is replaced: no name that is compared has it.
    pub(crate) fn add_name(&mut self, bytes: &[u8]) -> Result<u32, Fault> {
        let text = String::from_utf8_lossy(bytes);
        self.names.try_reserve(text.len()).map_err(|_| Fault::Memory)?;
        self.names.push_str(&text);
        let end = u32::try_from(self.names.len()).map_err(|_| Fault::Memory)?;
        push_indexed(&mut self.name_ends, end)
    }

    pub(crate) fn add_global(&mut self, module: u32, name: u32) -> Result<u32, Fault> {
        push_indexed(&mut self.globals, (module, name))
    }

    pub(crate) fn add_object(
        &mut self,
        construct: Construct,
        callable: ValueId,
        args: ValueId,
        kwargs: Option<ValueId>,
    ) -> Result<u32, Fault> {
        let updates = Sequence::default();
        push_indexed(&mut self.objects, ObjectRecord { construct, callable, args, kwargs, updates })
    }

    /// Appends to a list, dict or set.
    pub(crate) fn extend(&mut self, id: ValueId, items: &[ValueId]) -> Result<(), Fault> {
        let (Node::List(mut idx) | Node::Dict(mut idx) | Node::Set(mut idx)) = self.node(id) else {
            return Ok(());
        };
        if idx == NO_SEQUENCE && !items.is_empty() {
            idx = push_indexed(&mut self.sequences, Sequence::default())?;
            if let Some(Node::List(old) | Node::Dict(old) | Node::Set(old)) = self.nodes.get_mut(id.index()) {
                *old = idx;
            }
        }
        let mut sequence = self.sequence(idx);
        let appended = items.iter().try_for_each(|item| self.append(&mut sequence, *item));
        if let Some(stored) = self.sequences.get_mut(idx as usize) {
            *stored = sequence;
        }
        appended
    }

    /// Records what happened to an object after it was constructed.
    pub(crate) fn update(&mut self, object: u32, update: Update) -> Result<(), Fault> {
        let Some(record) = self.objects.get(object as usize) else { return Ok(()) };
        let mut sequence = record.updates;
        let (kind, values) = update.encode();
        for value in core::iter::once(kind).chain(values.into_iter().flatten()) {
            self.append(&mut sequence, value)?;
        }
        if let Some(record) = self.objects.get_mut(object as usize) {
            record.updates = sequence;
        }
        Ok(())
    }

    fn append(&mut self, sequence: &mut Sequence, value: ValueId) -> Result<(), Fault> {
        let idx = push_indexed(&mut self.cells, Cell { value, next: None })?;
        let number = idx.checked_add(1).and_then(NonZeroU32::new).ok_or(Fault::Memory)?;
        match sequence.last.and_then(|last| self.cells.get_mut(last.get() as usize - 1)) {
            Some(last) => last.next = Some(number),
            None => sequence.first = Some(number),
        }
        sequence.last = Some(number);
        sequence.len += 1;
        Ok(())
    }

    fn sequence(&self, idx: u32) -> Sequence {
        self.sequences.get(idx as usize).copied().unwrap_or_default()
    }
}

/// Appends without doubling: a hostile pickle has a value in each byte.
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) -> Option<()> {
    if list.len() == list.capacity() {
        list.try_reserve_exact((list.len() / 4).max(16)).ok()?;
    }
    list.push(value);
    Some(())
}

fn push_indexed<T>(list: &mut Vec<T>, value: T) -> Result<u32, Fault> {
    let idx = u32::try_from(list.len()).ok().filter(|&idx| idx < u32::MAX).ok_or(Fault::Memory)?;
    push(list, value).ok_or(Fault::Memory)?;
    Ok(idx)
}
