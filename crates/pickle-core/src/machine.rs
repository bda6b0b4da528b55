//! The machine: follows every opcode, runs nothing.

mod constants;
mod names;
mod objects;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use read_at::ReadAt;

use crate::error::{Error, ErrorKind, Fault};
use crate::limits::Limits;
use crate::memo::Memo;
use crate::number;
use crate::opcode::Opcode;
use crate::reader::Reader;
use crate::tree::{Node, Tree, ValueId, push};

/// Something that a loader would execute, or that a reader must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Byte offset of the opcode in the source.
    pub offset: u64,
    /// The opcode.
    pub opcode: Opcode,
    /// What it does.
    pub kind: EventKind,
}

/// What a loader would execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A name is resolved: its module is imported. [`Value::Global`](crate::Value::Global), or
    /// [`Value::Computed`](crate::Value::Computed) if a call computed the name.
    Global {
        /// The name.
        value: ValueId,
    },
    /// A name of the extension registry is resolved.
    Extension {
        /// The extension.
        value: ValueId,
    },
    /// Something is called: a function, or a class.
    Call {
        /// The [`Value::Object`](crate::Value::Object) that stands for the result.
        object: ValueId,
    },
    /// `BUILD`: `__setstate__` is called, or attributes are set.
    Build {
        /// What is changed.
        target: ValueId,
        /// The new state.
        state: ValueId,
    },
    /// `APPEND`, `SETITEM`, `ADDITEMS` and the like on something else than a list, dict or set: its method is called. Unless the target is
    /// a [`Value::Object`](crate::Value::Object), the tree does not contain the change.
    Update {
        /// What is changed.
        target: ValueId,
    },
    /// The loader's `persistent_load` is called.
    Persistent {
        /// The result.
        value: ValueId,
    },
    /// An out-of-band buffer is taken.
    Buffer {
        /// The buffer.
        value: ValueId,
    },
    /// A frame and the opcodes disagree. The Python unpickler refuses the stream; what the C unpickler does depends on where it reads
    /// from: see [`Framing`].
    FrameMismatch,
    /// The end of a pickle.
    Stop {
        /// Its value.
        root: ValueId,
    },
}

/// What happens where a frame ends inside an opcode. Programs that write pickles never do that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Opcodes follow each other, whatever the frames: `pickle.loads`.
    #[default]
    Memory,
    /// The rest of the frame is lost, and the argument is taken from after it: the C unpickler, `pickle.load`, from a file that cannot
    /// be read ahead, for example a member of a PyTorch archive.
    File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Stopped,
    Failed,
}

/// Reads a pickle and reports its [events](EventKind) one after the other.
///
/// It accepts what either of CPython's unpicklers accepts; `docs/pickle.md` lists where they differ.
#[derive(Debug)]
pub struct Machine<R> {
    reader: Reader<R>,
    tree: Tree,
    limits: Limits,
    stack: Vec<ValueId>,
    /// Heights of the stack.
    marks: Vec<u32>,
    memo: Memo,
    protocol: u8,
    buffers: u32,
    opcodes: u64,
    /// The current opcode and where it is.
    opcode: Opcode,
    offset: u64,
    events: VecDeque<Event>,
    /// Comes after `events`.
    failure: Option<Error>,
    state: State,
}

impl<R: ReadAt> Machine<R> {
    /// A machine at the beginning of a source.
    #[must_use]
    pub fn new(source: R, limits: &Limits) -> Self {
        Self::at(source, 0, limits)
    }

    /// A machine for the pickle that begins at `offset`. Offsets of events and errors still count from the beginning of the source.
    #[must_use]
    pub fn at(source: R, offset: u64, limits: &Limits) -> Self {
        Self {
            reader: Reader::new(source, offset),
            tree: Tree::default(),
            limits: *limits,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Memo::default(),
            protocol: 0,
            buffers: 0,
            opcodes: 0,
            opcode: Opcode::STOP,
            offset,
            events: VecDeque::new(),
            failure: None,
            state: State::Running,
        }
    }

    /// The same machine with another treatment of frames. A stream without [`EventKind::FrameMismatch`] has the same events with both.
    #[must_use]
    pub fn with_framing(mut self, framing: Framing) -> Self {
        self.reader.set_framing(framing);
        self
    }

    /// The values so far.
    #[must_use]
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The source.
    #[must_use]
    pub const fn source(&self) -> &R {
        self.reader.source()
    }

    /// The values and the source.
    #[must_use]
    pub fn into_parts(self) -> (Tree, R) {
        (self.tree, self.reader.into_source())
    }

    /// Where the next opcode is.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.reader.position()
    }

    /// Bytes after [`position`](Self::position).
    #[must_use]
    pub const fn rest(&self) -> u64 {
        self.reader.rest()
    }

    /// The last `PROTO`, or 0. From 4 on, dots in a name lead to attributes.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Opcodes so far.
    #[must_use]
    pub const fn opcodes(&self) -> u64 {
        self.opcodes
    }

    /// Runs until the next event.
    ///
    /// # Errors
    ///
    /// What no unpickler accepts, or a limit; all events before it have been returned. [`ErrorKind::Ended`] after an error or
    /// [`EventKind::Stop`].
    pub fn next_event(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if let Some(error) = self.failure.take() {
                self.state = State::Failed;
                return Err(error);
            }
            if self.state != State::Running {
                return Err(ErrorKind::Ended {}.into());
            }
            while self.events.is_empty() && self.failure.is_none() {
                if let Err(fault) = self.step() {
                    self.failure = Some(fault.of(self.opcode).at(self.offset));
                }
            }
        }
    }

    /// Runs to the end of the pickle, whatever its events, and returns its value.
    ///
    /// # Errors
    ///
    /// As [`next_event`](Self::next_event).
    pub fn finish(&mut self) -> Result<ValueId, Error> {
        loop {
            if let EventKind::Stop { root } = self.next_event()?.kind {
                return Ok(root);
            }
        }
    }

    /// After [`EventKind::Stop`]: begins the next pickle of the stream, with an empty stack and memo and the same tree.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Ended`] at any other time.
    pub fn next_pickle(&mut self) -> Result<(), Error> {
        if self.state != State::Stopped || !self.events.is_empty() {
            return Err(ErrorKind::Ended {}.into());
        }
        self.stack.clear();
        self.marks.clear();
        self.memo.clear();
        self.reader.leave_frame();
        (self.protocol, self.buffers, self.state) = (0, 0, State::Running);
        Ok(())
    }

    /// After an event: passes bytes that are no opcodes, as joblib stores them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RawInFrame`] within a frame; [`ErrorKind::Truncated`].
    pub fn skip(&mut self, len: u64) -> Result<Range<u64>, Error> {
        let rest = self.reader.rest_of_frame();
        if rest > 0 {
            return Err(Error::from(ErrorKind::RawInFrame { rest }).at(self.position()));
        }
        let offset = self.position();
        self.reader.skip_parts(len).map_err(|fault| fault.of(self.opcode).at(offset))
    }

    fn step(&mut self) -> Result<(), Fault> {
        self.offset = self.reader.position();
        let Some(byte) = self.reader.byte()? else {
            self.opcode = Opcode::STOP;
            return Err(Fault::Truncated);
        };
        self.opcode = Opcode(byte);
        self.opcodes += 1;
        if self.opcodes > self.limits.opcodes {
            return Err(Fault::Limit("opcodes", self.limits.opcodes));
        }
        let result = self.execute();
        if self.reader.take_straddled() {
            let mismatch = Event { offset: self.offset, opcode: self.opcode, kind: EventKind::FrameMismatch };
            self.events.push_front(mismatch);
        }
        result
    }

    fn execute(&mut self) -> Result<(), Fault> {
        match self.opcode {
            Opcode::PROTO => match self.reader.take()? {
                [version @ 0..=5] => self.protocol = version,
                [found] => return Err(Fault::Kind(ErrorKind::Protocol { found })),
            },
            Opcode::FRAME => self.frame()?,
            Opcode::STOP => {
                let root = self.pop()?;
                self.state = State::Stopped;
                if self.reader.rest_of_frame() > 0 {
                    self.report(EventKind::FrameMismatch);
                }
                self.reader.leave_frame();
                self.report(EventKind::Stop { root });
            }
            Opcode::MARK => {
                let height = u32::try_from(self.stack.len()).map_err(|_| Fault::Memory)?;
                if self.marks.len() >= self.limits.marks as usize {
                    return Err(Fault::Limit("marks", self.limits.marks.into()));
                }
                push(&mut self.marks, height).ok_or(Fault::Memory)?;
            }
            Opcode::POP => {
                // A mark is removed if nothing is above it.
                let is_mark = self.marks.last().is_some_and(|mark| *mark as usize == self.stack.len());
                if is_mark {
                    self.marks.pop();
                } else {
                    self.pop()?;
                }
            }
            Opcode::POP_MARK => {
                let mark = self.pop_mark()?;
                self.stack.truncate(mark);
            }
            Opcode::DUP => {
                let top = self.top()?;
                self.push(top)?;
            }
            Opcode::PUT | Opcode::BINPUT | Opcode::LONG_BINPUT | Opcode::MEMOIZE => self.put()?,
            Opcode::GET | Opcode::BINGET | Opcode::LONG_BINGET => {
                let index = self.memo_index()?;
                let value = self.memo.get(index).ok_or(Fault::Memo(index))?;
                self.push(value)?;
            }
            Opcode::GLOBAL | Opcode::STACK_GLOBAL | Opcode::INST => self.name()?,
            Opcode::EXT1 | Opcode::EXT2 | Opcode::EXT4 => self.extension()?,
            Opcode::REDUCE
            | Opcode::NEWOBJ
            | Opcode::NEWOBJ_EX
            | Opcode::OBJ
            | Opcode::BUILD
            | Opcode::PERSID
            | Opcode::BINPERSID
            | Opcode::NEXT_BUFFER
            | Opcode::READONLY_BUFFER => self.object()?,
            Opcode::APPEND | Opcode::APPENDS | Opcode::SETITEM | Opcode::SETITEMS | Opcode::ADDITEMS => {
                self.update()?;
            }
            _ => self.constant()?,
        }
        Ok(())
    }

    fn frame(&mut self) -> Result<(), Fault> {
        let len = length(u64::from_le_bytes(self.reader.take()?))?;
        let mismatch = self.reader.rest_of_frame() > 0 || len > self.reader.rest();
        if mismatch {
            self.report(EventKind::FrameMismatch);
        }
        self.reader.begin_frame(len)
    }

    fn put(&mut self) -> Result<(), Fault> {
        let index = if self.opcode == Opcode::MEMOIZE { self.memo.len().into() } else { self.memo_index()? };
        let value = self.top()?;
        self.memo.put(index, value).ok_or(Fault::Memory)?;
        let limit = self.limits.memo;
        if self.memo.len() > limit { Err(Fault::Limit("memo", limit.into())) } else { Ok(()) }
    }

    fn memo_index(&mut self) -> Result<u64, Fault> {
        match self.opcode {
            Opcode::BINPUT | Opcode::BINGET => self.reader.take().map(|[index]| index.into()),
            Opcode::LONG_BINPUT | Opcode::LONG_BINGET => Ok(u32::from_le_bytes(self.reader.take()?).into()),
            _ => {
                let line = self.line()?;
                let digits = self.reader.copy(&line, ("integer_bytes", self.limits.integer_bytes))?;
                number::index(&digits).ok_or(Fault::MemoIndex)
            }
        }
    }

    /// A whole line.
    fn line(&mut self) -> Result<Range<u64>, Fault> {
        let line = self.reader.line()?;
        if line.terminated { Ok(line.range) } else { Err(Fault::Truncated) }
    }

    fn report(&mut self, kind: EventKind) {
        self.events.push_back(Event { offset: self.offset, opcode: self.opcode, kind });
    }

    fn push(&mut self, value: ValueId) -> Result<(), Fault> {
        push(&mut self.stack, value).ok_or(Fault::Memory)
    }

    /// Adds a value and pushes it.
    fn push_node(&mut self, node: Node) -> Result<ValueId, Fault> {
        let value = self.tree.add(node, self.limits.values)?;
        self.push(value)?;
        Ok(value)
    }

    fn fence(&self) -> usize {
        self.marks.last().map_or(0, |mark| *mark as usize)
    }

    fn top(&self) -> Result<ValueId, Fault> {
        if self.stack.len() <= self.fence() {
            return Err(Fault::Stack);
        }
        self.stack.last().copied().ok_or(Fault::Stack)
    }

    fn pop(&mut self) -> Result<ValueId, Fault> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Removes the last mark; the values above it begin at the result.
    fn pop_mark(&mut self) -> Result<usize, Fault> {
        self.marks.pop().map(|mark| mark as usize).ok_or(Fault::Mark)
    }

    /// The values from a height on.
    fn above(&self, height: usize) -> &[ValueId] {
        self.stack.get(height..).unwrap_or_default()
    }
}

/// Lengths are signed in Python.
fn length(len: u64) -> Result<u64, Fault> {
    if len > i64::MAX as u64 { Err(Fault::Length) } else { Ok(len) }
}
