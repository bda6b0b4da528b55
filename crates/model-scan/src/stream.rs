//! Streams, and the passes over each.

use alloc::vec::Vec;

use pickle_core::joblib::{self, Content};
use pickle_core::{Construct, Error, ErrorKind, EventKind, Framing, Global, Machine, Opcode, Value, ValueId};
use read_at::{ReadAt, Window};

use crate::allowed::{Arguments, Use};
use crate::legacy::Legacy;
use crate::places::Notes;
use crate::problem::Problem;
use crate::report::{Finding, Options, Origin, Report, Standing};

/// Modules with a `dtype` of their own.
const ARRAY_LIBRARIES: [&str; 6] = ["torch", "jax", "cupy", "mxnet", "ml_dtypes", "tensorflow"];

/// Pickles in one stream that are followed.
const MAX_PICKLES: u32 = 64;

/// Scans a stream: one pickle or several, with the arrays of joblib and PyTorch between and after them.
///
/// # Errors
///
/// [`ErrorKind::Read`] alone: whatever is wrong with the stream is a finding.
pub fn scan(source: impl ReadAt, origin: Origin, options: &Options<'_>) -> Result<Report, Error> {
    let mut report = Report::new(options.kept);
    scan_source(&source, origin, options, 0, &mut report)?;
    Ok(report)
}

/// All passes over a source.
pub(crate) fn scan_source(
    source: &dyn ReadAt,
    origin: Origin,
    options: &Options<'_>,
    depth: u32,
    report: &mut Report,
) -> Result<(), Error> {
    let mut pass = Pass {
        origin,
        options,
        depth,
        report,
        arrays: Arrays::None,
        frames_agree: true,
        notes: Notes::default(),
    };
    pass.stream(source, 0, Framing::Memory, Reading::Joblib)?;
    if !pass.frames_agree {
        // `pickle.load` may see another program.
        pass.stream(source, 0, Framing::File, Reading::Plain)?;
    }
    if pass.arrays == Arrays::Found {
        // What `joblib.load` reads as the bytes of an array is a program for `pickle.load`, up to the first byte that is no opcode.
        pass.stream(source, 0, Framing::Memory, Reading::Prefix)?;
    }
    Ok(())
}

/// How a pass reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// With the arrays of joblib.
    Joblib,
    /// As opcodes alone.
    Plain,
    /// The same; it ends where the stream cannot be followed, which is no finding.
    Prefix,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrays {
    None,
    Found,
}

/// A machine over a part of a file.
pub(crate) type Stream<'s> = Machine<&'s dyn ReadAt>;

pub(crate) struct Pass<'p> {
    pub(crate) origin: Origin,
    pub(crate) options: &'p Options<'p>,
    pub(crate) depth: u32,
    pub(crate) report: &'p mut Report,
    arrays: Arrays,
    frames_agree: bool,
    /// Notes on this pickle.
    pub(crate) notes: Notes,
}

/// How a pickle ended.
enum End {
    /// With its value.
    Stop(ValueId),
    /// With the offset and the code of the error.
    Broken(u64, &'static str),
}

impl Pass<'_> {
    /// Follows pickles from `start` to the end of the source, and returns where the first of them ends.
    fn stream(
        &mut self,
        source: &dyn ReadAt,
        start: u64,
        framing: Framing,
        reading: Reading,
    ) -> Result<u64, Error> {
        // Of all passes together.
        let mut limits = self.options.limits;
        limits.opcodes = limits.opcodes.saturating_sub(self.report.opcodes);
        let mut machine = Machine::at(source, start, &limits).with_framing(framing);
        let mut legacy = Legacy::default();
        let end = self.pickle(&mut machine, &mut legacy, reading)?;
        let first_end = machine.position();
        match end {
            // What is not read for lack of opcodes is a finding of any pass.
            End::Broken(offset, cause)
                if reading != Reading::Prefix || machine.opcodes() > limits.opcodes =>
            {
                self.at(offset, Problem::Malformed { cause });
            }
            End::Broken(..) => {}
            End::Stop(_) if start == 0 && reading != Reading::Prefix => {
                self.after(&mut machine, legacy, reading)?;
            }
            End::Stop(_) => {}
        }
        self.report.opcodes += machine.opcodes();
        Ok(first_end)
    }

    /// What follows the first pickle.
    fn after(&mut self, machine: &mut Stream<'_>, mut legacy: Legacy, reading: Reading) -> Result<(), Error> {
        let mut pickles = 1;
        let mut reported = false;
        while !legacy.is_complete() {
            let (position, len) = (machine.position(), machine.rest());
            if len == 0 {
                if legacy.is_torch() {
                    self.at(position, Problem::Malformed { cause: "pk-truncated" });
                }
                return Ok(());
            }
            let expected = legacy.is_torch();
            let before = self.report.counts();
            machine.next_pickle()?;
            pickles += 1;
            let end = self.pickle(machine, &mut legacy, reading)?;
            // A pickle, if it does anything: other bytes are noise.
            let is_pickle = expected || matches!(end, End::Stop(_)) || self.report.counts() != before;
            if !is_pickle || pickles > MAX_PICKLES {
                self.at(position, Problem::TrailingBytes { len });
                return Ok(());
            }
            if !expected && !reported {
                self.at(position, Problem::SeveralPickles {});
                reported = true;
            }
            if let End::Broken(offset, cause) = end {
                self.at(offset, Problem::Malformed { cause });
                return Ok(());
            }
        }
        let position = machine.position();
        match legacy.pass_storages(machine)? {
            Some(0) => {}
            Some(len) => self.at(position, Problem::TrailingBytes { len }),
            None => self.at(position, Problem::Malformed { cause: "pk-truncated" }),
        }
        Ok(())
    }

    /// One pickle.
    fn pickle(
        &mut self,
        machine: &mut Stream<'_>,
        legacy: &mut Legacy,
        reading: Reading,
    ) -> Result<End, Error> {
        self.notes = Notes { first: machine.tree().len(), ..Notes::default() };
        let end = self.events(machine, legacy, reading)?;
        // Also of one that breaks off: what was read may have been used.
        let root = if let End::Stop(root) = end { Some(root) } else { None };
        self.judge(machine, root)?;
        Ok(end)
    }

    fn events(
        &mut self,
        machine: &mut Stream<'_>,
        legacy: &mut Legacy,
        reading: Reading,
    ) -> Result<End, Error> {
        loop {
            let event = match machine.next_event() {
                Ok(event) => event,
                Err(error) => return Self::broken(machine, error),
            };
            match event.kind {
                EventKind::Stop { root } => {
                    legacy.pickle(machine, root)?;
                    return Ok(End::Stop(root));
                }
                EventKind::Build { target, .. } if reading == Reading::Joblib => {
                    self.event(machine, event, legacy)?;
                    if let Err(error) = self.array(machine, target) {
                        return Self::broken(machine, error);
                    }
                }
                EventKind::Global { value } if self.is_refused(machine, value, reading) => {
                    return Ok(End::Broken(event.offset, "pk-operand"));
                }
                EventKind::FrameMismatch => {
                    self.frames_agree = false;
                    self.add(event.offset, event.opcode, Problem::FrameMismatch {});
                }
                _ => self.event(machine, event, legacy)?,
            }
        }
    }

    /// Whether the unpickler certainly stops at a name: an operand is not a string, or, where `pickle.load` reads a file of joblib, the memo
    /// of the file is used for that of an array in it, so that the module of a type is any string.
    fn is_refused(&self, machine: &Stream<'_>, value: ValueId, reading: Reading) -> bool {
        match machine.tree().value(value) {
            Value::Computed { module, name } => {
                [module, name].into_iter().any(|operand| self.is_no_string(machine, operand, reading))
            }
            Value::Global(global) => {
                let is_estimator = ["sklearn.", "joblib."].iter().any(|root| global.module.starts_with(root));
                reading == Reading::Prefix
                    && global.name == "dtype"
                    && self.usage(global).is_none()
                    && !ARRAY_LIBRARIES.contains(&global.module)
                    && (is_estimator || !global.module.contains('.'))
            }
            _ => false,
        }
    }

    /// Whether a value is certainly not a string itself.
    fn is_no_string(&self, machine: &Stream<'_>, value: ValueId, reading: Reading) -> bool {
        let is_unknown =
            |global: Global<'_>| reading == Reading::Prefix && self.standing(global) != Standing::Dangerous;
        match machine.tree().value(value) {
            Value::Global(global) => self.usage(global).is_some() || is_unknown(global),
            Value::Object(object) => {
                machine.tree().callee(value).is_some_and(|callee| match self.usage(callee) {
                    Some(Use::Class(_) | Use::Container(_)) => true,
                    Some(Use::Function(rule)) => {
                        matches!(rule, Arguments::Tensor(..) | Arguments::Reconstruct | Arguments::Encode)
                    }
                    None => object.construct == Construct::NewObj && is_unknown(callee),
                    _ => false,
                })
            }
            _ => false,
        }
    }

    fn broken(machine: &Stream<'_>, error: Error) -> Result<End, Error> {
        if matches!(error.kind(), ErrorKind::Read { .. } | ErrorKind::OutOfMemory { .. }) {
            return Err(error);
        }
        Ok(End::Broken(error.offset().unwrap_or(machine.position()), error.code()))
    }

    /// Passes the array that joblib stores here, if it does.
    fn array(&mut self, machine: &mut Stream<'_>, target: ValueId) -> Result<(), Error> {
        let Some(array) = joblib::raw_array(machine, target)? else { return Ok(()) };
        self.arrays = Arrays::Found;
        if array.content != Content::Pickle {
            return joblib::pass(machine, &array).map(drop);
        }
        // `pickle.load` of the array, from here.
        let position = machine.position();
        let source = *machine.source();
        let depth = self.depth + 1;
        if depth > self.options.depth {
            self.at(position, Problem::NestedUnread {});
            return Err(ErrorKind::Array {}.into());
        }
        let mut inner = Pass {
            origin: Origin::File,
            options: self.options,
            depth,
            report: &mut *self.report,
            arrays: Arrays::None,
            frames_agree: true,
            notes: Notes::default(),
        };
        let end = inner.stream(source, position, Framing::Memory, Reading::Plain)?;
        if !inner.frames_agree {
            inner.stream(source, position, Framing::File, Reading::Plain)?;
        }
        machine.skip(end - position).map(drop)
    }

    /// A PyTorch file in a bytes object.
    pub(crate) fn nested(&mut self, machine: &Stream<'_>, value: Nested, offset: u64) -> Result<(), Error> {
        let depth = self.depth + 1;
        let source = *machine.source();
        if depth > self.options.depth {
            self.at(offset, Problem::NestedUnread {});
            return Ok(());
        }
        match value {
            Nested::Range(start, len) => {
                let Ok(window) = Window::new(source, start, len) else {
                    self.at(offset, Problem::NestedUnread {});
                    return Ok(());
                };
                scan_source(&window, Origin::File, self.options, depth, self.report)
            }
            Nested::Bytes(bytes) => scan_source(&bytes, Origin::File, self.options, depth, self.report),
            Nested::Unreadable => {
                self.at(offset, Problem::NestedUnread {});
                Ok(())
            }
        }
    }

    pub(crate) fn add(&mut self, offset: u64, opcode: Opcode, problem: Problem) {
        self.report.add(Finding { offset, opcode, depth: self.depth, problem });
    }

    fn at(&mut self, offset: u64, problem: Problem) {
        self.add(offset, Opcode(b'.'), problem);
    }
}

/// Where a nested file is.
pub(crate) enum Nested {
    Range(u64, u64),
    Bytes(Vec<u8>),
    Unreadable,
}

/// The bytes of a short string; empty for other values.
pub(crate) fn text(machine: &Stream<'_>, value: ValueId) -> Result<Vec<u8>, Error> {
    match machine.tree().value(value) {
        Value::Str(span) | Value::Str2(span) if span.len() <= 256 => {
            Ok(machine.tree().bytes(*machine.source(), span, 256)?.into_owned())
        }
        _ => Ok(Vec::new()),
    }
}
