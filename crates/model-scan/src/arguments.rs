//! Whether the arguments of an allowed name are those that its writers pass.

use alloc::vec::Vec;

use pickle_core::{Error, Event, Object, Value, ValueId, python2};

use crate::allowed::{Arguments, Kind, State, Use};
use crate::states::{Members, attributes_and_slots, class_of, is_name};
use crate::stream::{Nested, Pass, Stream, text};

/// Encodings that turn text into the bytes that were written as text.
const ENCODINGS: [&[u8]; 4] = [b"latin1", b"latin-1", b"iso-8859-1", b"ascii"];

/// Bytes of a nested file that was written as text.
const MAX_NESTED_TEXT: u64 = 64 << 20;

/// Numbers and strings that a constructor takes: parts of a path.
const MAX_SCALARS: usize = 256;

impl Pass<'_> {
    /// Whether a call has the arguments that its callee, of this module, expects.
    pub(crate) fn expected(
        &mut self,
        machine: &Stream<'_>,
        event: Event,
        (module, object): (&str, &Object<'_>),
        rule: Arguments,
    ) -> Result<bool, Error> {
        let Value::Tuple(args) = machine.tree().value(object.args) else { return Ok(false) };
        self.fits(machine, event, (module, args), rule)
    }

    fn fits(
        &mut self,
        machine: &Stream<'_>,
        event: Event,
        (module, args): (&str, &[ValueId]),
        rule: Arguments,
    ) -> Result<bool, Error> {
        let tree = machine.tree();
        let value = |id: &ValueId| tree.value(*id);
        let usage = |id: &ValueId| self.use_of(machine, *id);
        Ok(match (rule, args) {
            (
                Arguments::Kinds(kinds, least)
                | Arguments::Object(kinds, least)
                | Arguments::Tensor(kinds, least),
                _,
            ) => {
                if args.len() < least || args.len() > kinds.len() {
                    return Ok(false);
                }
                for (arg, kind) in args.iter().zip(kinds) {
                    if !self.is_kind(machine, event, (module, *arg), *kind)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Arguments::Data, []) => true,
            (Arguments::Data, [data]) => is_data(value(data)) || is_bytes(machine, *data),
            (Arguments::Data | Arguments::Encode, [text_of_bytes, encoding]) => {
                matches!(value(text_of_bytes), Value::Str(_) | Value::Str2(_))
                    && ENCODINGS.contains(&&*text(machine, *encoding)?)
            }
            (Arguments::Scalars, _) => {
                args.len() <= MAX_SCALARS && args.iter().all(|arg| is_scalar(value(arg)))
            }
            (Arguments::Reconstructor, [class, base, state]) => {
                let is_class = match usage(class) {
                    // joblib reads elements behind one, and does not write it so.
                    Some(Use::Class(state)) => state != State::Wrapper,
                    Some(Use::Container(_)) => true,
                    _ => false,
                };
                is_class
                    && name_of(machine, *base) == Some(("builtins", "object"))
                    && matches!(value(state), Value::None)
            }
            (Arguments::Factory, []) => true,
            (Arguments::Factory, [factory, rest @ ..]) => {
                let is_builtin = name_of(machine, *factory).is_some_and(|(module, _)| {
                    matches!(module, "builtins" | "collections")
                        && matches!(usage(factory), Some(Use::Container(_) | Use::Type(_)))
                });
                (is_builtin || matches!(value(factory), Value::None))
                    && rest.len() < 2
                    && rest.iter().all(|data| is_data(value(data)))
            }
            (Arguments::FromType, [function, class, args, state]) => {
                let (Some(Use::Function(rule @ Arguments::Tensor(..))), Value::Tuple(args)) =
                    (usage(function), value(args))
                else {
                    return Ok(false);
                };
                self.is_kind(machine, event, (module, *class), Kind::TensorClass)?
                    && self.is_kind(machine, event, (module, *state), Kind::Attributes)?
                    && self.fits(machine, event, ("torch._utils", args), rule)?
            }
            (Arguments::Dtype, [code, rest @ ..]) => {
                (matches!(value(code), Value::Str(_) | Value::Str2(_))
                    || usage(code) == Some(Use::Constant)
                    || name_of(machine, *code) == Some(("numpy", "record")))
                    && rest.len() < 3
                    && rest.iter().all(|flag| matches!(value(flag), Value::Bool(_) | Value::Int(_)))
            }
            (Arguments::Reconstruct, [class, shape, _]) => {
                self.is_kind(machine, event, (module, *class), Kind::ArrayClass)?
                    && matches!(value(shape), Value::Tuple(_))
            }
            (Arguments::Nested, [file]) => {
                let file = encoded(machine, *file).unwrap_or(*file);
                // The same bytes say the same again.
                if self.notes.read.insert(file) {
                    self.nested(machine, file_in(machine, file)?, event.offset)?;
                }
                true
            }
            (Arguments::Partial, [function]) => self.may_be_partial(machine, *function),
            _ => false,
        })
    }

    /// The use of a name that is an argument.
    fn use_of(&self, machine: &Stream<'_>, value: ValueId) -> Option<Use> {
        match machine.tree().value(value) {
            Value::Global(global) => self.usage(global),
            _ => None,
        }
    }

    /// Whether an argument of a function of this module is what it has to be.
    pub(crate) fn is_kind(
        &mut self,
        machine: &Stream<'_>,
        event: Event,
        (module, arg): (&str, ValueId),
        kind: Kind,
    ) -> Result<bool, Error> {
        let tree = machine.tree();
        let value = tree.value(arg);
        let name = || name_of(machine, arg);
        let maker = || class_of(machine, arg).map(|class| python2::modern(class.module, class.name));
        let is_argument = || self.use_of(machine, arg) == Some(Use::Argument);
        Ok(match kind {
            Kind::Plain => !self.is_code(machine, arg),
            Kind::Scalar => {
                // Bytes of protocols 0 to 2, and numbers of NumPy.
                is_scalar(value)
                    || is_bytes(machine, arg)
                    || matches!(maker(), Some(("numpy.core.multiarray" | "numpy._core.multiarray", "scalar")))
            }
            Kind::Storage => {
                matches!(value, Value::Persistent(_))
                    || maker() == Some(("torch.storage", "_load_from_bytes"))
            }
            Kind::Tensor => self.is_tensor(machine, arg),
            Kind::Hooks => {
                self.notes.members.push((arg, Members::None, event.offset));
                true
            }
            Kind::Attributes => {
                let parts = attributes_and_slots(machine, arg).unwrap_or([arg, arg]);
                let mut fits = true;
                for part in parts {
                    fits &= self.unexpected_key(machine, event, part, State::Attributes, "")?.is_none();
                }
                fits
            }
            Kind::TensorClass => match value {
                // What is not listed was reported.
                Value::Global(global) => {
                    matches!(self.usage(global), None | Some(Use::Container(Arguments::Tensor(..))))
                }
                _ => false,
            },
            Kind::Array => maker().is_some_and(|(module, _)| module.starts_with("numpy")),
            Kind::ArrayClass => {
                let is_numpy = |module| {
                    matches!(
                        module,
                        "numpy" | "numpy.rec" | "numpy.matrixlib.defmatrix" | "numpy.ma" | "numpy.ma.core"
                    )
                };
                is_argument() && name().is_some_and(|(module, _)| is_numpy(module))
            }
            Kind::Generator => {
                matches!(value, Value::Str(_) | Value::Str2(_))
                    || is_argument() && name().is_some_and(|(module, _)| module.starts_with("numpy.random._"))
                    || maker() == Some(("numpy.random._pickle", "__bit_generator_ctor"))
            }
            Kind::GeneratorFunction => name() == Some(("numpy.random._pickle", "__bit_generator_ctor")),
            Kind::Sibling => is_argument() && name().is_some_and(|(of, _)| of == module),
        })
    }
}

/// Bytes as protocols 0 to 2 write them.
fn is_bytes(machine: &Stream<'_>, value: ValueId) -> bool {
    machine
        .tree()
        .callee(value)
        .is_some_and(|callee| is_name(callee, "_codecs", "encode") || is_name(callee, "builtins", "bytes"))
}

/// A name that is an argument, as Python 3 has it.
fn name_of<'t>(machine: &'t Stream<'_>, value: ValueId) -> Option<(&'t str, &'t str)> {
    match machine.tree().value(value) {
        Value::Global(global) => Some(python2::modern(global.module, global.name)),
        _ => None,
    }
}

/// A container whose items were read already: iterating over it runs nothing and ends.
const fn is_data(value: Value<'_>) -> bool {
    matches!(
        value,
        Value::List(_)
            | Value::Tuple(_)
            | Value::Dict(_)
            | Value::Set(_)
            | Value::FrozenSet(_)
            | Value::Str(_)
            | Value::Str2(_)
            | Value::Bytes(_)
            | Value::ByteArray(_)
    )
}

const fn is_scalar(value: Value<'_>) -> bool {
    matches!(
        value,
        Value::None
            | Value::Bool(_)
            | Value::Int(_)
            | Value::BigInt(_)
            | Value::Float(_)
            | Value::Str(_)
            | Value::Str2(_)
            | Value::Bytes(_)
    )
}

/// The text that a call turns into bytes, as protocols 0 to 2 write them: `_codecs.encode(text, 'latin1')`.
pub(crate) fn encoded(machine: &Stream<'_>, file: ValueId) -> Option<ValueId> {
    let tree = machine.tree();
    let callee = tree.callee(file)?;
    if !is_name(callee, "_codecs", "encode") && !is_name(callee, "builtins", "bytearray") {
        return None;
    }
    let Value::Object(object) = tree.value(file) else { return None };
    match tree.value(object.args) {
        Value::Tuple([source, _]) => Some(*source),
        _ => None,
    }
}

/// The bytes of a nested file, or of the text that it is made of.
pub(crate) fn file_in(machine: &Stream<'_>, file: ValueId) -> Result<Nested, Error> {
    let tree = machine.tree();
    let value = tree.value(file);
    Ok(match value {
        Value::Bytes(span) | Value::Str2(span) | Value::ByteArray(span) => match span.range() {
            Some(range) => Nested::Range(range.start, range.end - range.start),
            None => Nested::Bytes(tree.bytes(*machine.source(), span, MAX_NESTED_TEXT)?.into_owned()),
        },
        Value::Str(span) if span.len() <= MAX_NESTED_TEXT => {
            let source = tree.bytes(*machine.source(), span, MAX_NESTED_TEXT)?;
            let characters = core::str::from_utf8(&source).ok().map(str::chars);
            let bytes = characters.and_then(|characters| {
                characters
                    .map(|character| u8::try_from(u32::from(character)).ok())
                    .collect::<Option<Vec<u8>>>()
            });
            bytes.map_or(Nested::Unreadable, Nested::Bytes)
        }
        _ => Nested::Unreadable,
    })
}
