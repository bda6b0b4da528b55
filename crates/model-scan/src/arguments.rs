//! Whether the arguments of an allowed name are those that its writers pass.

use alloc::vec::Vec;

use pickle_core::{Construct, Error, Event, Object, Value, ValueId, python2};

use crate::allowed::{self, Arguments, Use};
use crate::stream::{Nested, Pass, Stream, text};

/// Encodings that turn text into the bytes that were written as text.
const ENCODINGS: [&[u8]; 4] = [b"latin1", b"latin-1", b"iso-8859-1", b"ascii"];

/// Bytes of a nested file that was written as text.
const MAX_NESTED_TEXT: u64 = 64 << 20;

pub(crate) fn expected(
    pass: &mut Pass<'_>,
    machine: &Stream<'_>,
    object: &Object<'_>,
    rule: Arguments,
    event: Event,
) -> Result<bool, Error> {
    let tree = machine.tree();
    let Value::Tuple(args) = tree.value(object.args) else { return Ok(false) };
    let value = |id: &ValueId| tree.value(*id);
    let global = |id: &ValueId| match value(id) {
        Value::Global(global) => Some(python2::modern(global.module, global.name)),
        _ => None,
    };
    let usage = |id: &ValueId| global(id).and_then(|(module, name)| allowed::usage(module, name));
    Ok(match rule {
        Arguments::Count(least, most) => (least..=most).contains(&args.len()),
        Arguments::Data => match args {
            [] => true,
            [data] => is_data(value(data)),
            [text_of_bytes, encoding] => {
                matches!(value(text_of_bytes), Value::Str(_) | Value::Str2(_))
                    && ENCODINGS.contains(&&*text(machine, *encoding)?)
            }
            _ => false,
        },
        Arguments::Scalars => args.iter().all(|arg| is_scalar(value(arg))),
        Arguments::Encode => match args {
            [source, encoding] => {
                matches!(value(source), Value::Str(_) | Value::Str2(_))
                    && ENCODINGS.contains(&&*text(machine, *encoding)?)
            }
            _ => false,
        },
        Arguments::Reconstructor => match args {
            [class, base, state] => {
                matches!(usage(class), Some(Use::Class | Use::Container(_)))
                    // joblib reads elements behind one, and does not write it so.
                    && global(class).is_none_or(|(module, _)| !module.starts_with("joblib."))
                    && global(base) == Some(("builtins", "object"))
                    && matches!(value(state), Value::None)
            }
            _ => false,
        },
        Arguments::Factory => match args {
            [] => true,
            [factory, rest @ ..] => {
                let class =
                    matches!(usage(factory), Some(Use::Container(Arguments::Data | Arguments::Scalars)));
                (class || matches!(value(factory), Value::None))
                    && rest.len() < 2
                    && rest.iter().all(|data| is_data(value(data)))
            }
        },
        Arguments::FromType => match args {
            [function, class, args, _] => {
                let module = global(function).map(|(module, _)| module);
                module == Some("torch._utils")
                    && matches!(usage(function), Some(Use::Function(_)))
                    && global(class).is_some()
                    && matches!(value(args), Value::Tuple(_))
            }
            _ => false,
        },
        Arguments::Dtype => match args {
            [code, rest @ ..] => {
                let is_code = matches!(value(code), Value::Str(_) | Value::Str2(_));
                (is_code || usage(code) == Some(Use::Constant))
                    && rest.len() < 3
                    && rest.iter().all(|flag| matches!(value(flag), Value::Bool(_) | Value::Int(_)))
            }
            [] => false,
        },
        Arguments::Reconstruct => match args {
            [class, shape, _] => {
                global(class).is_some_and(|(module, _)| module.starts_with("numpy"))
                    && usage(class) == Some(Use::Constant)
                    && matches!(value(shape), Value::Tuple(_))
                    && object.construct == Construct::Reduce
            }
            _ => false,
        },
        Arguments::Nested => match args {
            [file] => {
                let file = nested(machine, *file)?;
                pass.nested(machine, file, event.offset)?;
                true
            }
            _ => false,
        },
    })
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

/// The bytes of a nested file, which are text in protocols 0 to 2.
fn nested(machine: &Stream<'_>, file: ValueId) -> Result<Nested, Error> {
    let tree = machine.tree();
    let value = match tree.value(file) {
        Value::Object(object)
            if tree.callee(file).is_some_and(|name| (name.module, name.name) == ("_codecs", "encode")) =>
        {
            match tree.value(object.args) {
                Value::Tuple([source, _]) => tree.value(*source),
                _ => return Ok(Nested::Unreadable),
            }
        }
        value => value,
    };
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
