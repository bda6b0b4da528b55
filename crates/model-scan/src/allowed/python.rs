//! Containers and values of the standard library.

use super::{ATTRIBUTES, Arguments, Group, State, Use, group};

const DATA: Use = Use::Container(Arguments::Data);
const SCALARS: Use = Use::Container(Arguments::Scalars);
const PATHS: &str = "PurePath PurePosixPath PureWindowsPath Path PosixPath WindowsPath";

pub(super) const GROUPS: &[Group] = &[
    // State dicts and containers.
    group("collections", "OrderedDict Counter", DATA),
    group("collections", "defaultdict", Use::Container(Arguments::Factory)),
    group("builtins", "set frozenset tuple list dict bytearray", DATA),
    // Empty bytes in protocols 0 to 2.
    group("builtins", "bytes", Use::Function(Arguments::Kinds(&[], 0))),
    group("builtins", "complex int float str bool", Use::Type(Arguments::Scalars)),
    group("builtins", "slice range", SCALARS),
    group("builtins", "object", Use::Type(Arguments::Kinds(&[], 0))),
    group("copyreg", "_reconstructor", Use::Function(Arguments::Reconstructor)),
    // Bytes in protocols 0 to 2.
    group("_codecs", "encode", Use::Function(Arguments::Encode)),
    // Values in configurations. Their constructors take text and open nothing.
    group("argparse", "Namespace", ATTRIBUTES),
    group("types", "SimpleNamespace", ATTRIBUTES),
    group("uuid", "UUID", ATTRIBUTES),
    group("uuid", "SafeUUID", SCALARS),
    group("pathlib", PATHS, SCALARS),
    group("pathlib._local", PATHS, SCALARS),
    group(
        "datetime",
        "date time datetime timedelta",
        Use::Container(Arguments::Kinds(&[super::Kind::Plain; 8], 0)),
    ),
    group("datetime", "timezone", Use::Container(Arguments::Kinds(&[super::Kind::Plain; 2], 1))),
    group("decimal", "Decimal", SCALARS),
    group("fractions", "Fraction", SCALARS),
    group("functools", "partial", Use::Function(Arguments::Partial)),
    // Arrays between the opcodes.
    group("joblib.numpy_pickle", "NumpyArrayWrapper", Use::Class(State::Wrapper)),
];
