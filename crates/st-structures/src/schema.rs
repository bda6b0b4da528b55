//! The keywords of the schema, and the conversion between its JSON and [`Node`](crate::Node)s.

pub(crate) mod read;
pub(crate) mod write;

/// Key of the schema in a file's metadata.
pub const SCHEMA_KEY: &str = "_safestructures_schema_";
/// Key of the schema's version.
pub const VERSION_KEY: &str = "_safestructures_schema_version_";
/// The one version there is.
pub const VERSION: &str = "1.0.0";

/// Field of a node: its type.
pub(crate) const DATA_TYPE: &str = "data_type";
/// Field of a node: what it holds.
pub(crate) const VALUE: &str = "value";
/// Field of a dict: the nodes of its keys.
pub(crate) const KEYS: &str = "keys";
/// Field of an enum, a named tuple, a registered dataclass.
pub(crate) const NAME: &str = "name";
/// Field of an enum.
pub(crate) const VARIANT: &str = "variant";
/// Field of a deque.
const MAXLEN: &str = "maxlen";
/// Field of a defaultdict.
const FACTORY: &str = "factory";

const NONE: &str = "NoneType";
/// Another name of it, which safestructures reads.
const NONE_ALIAS: &str = "None";
const BOOL: &str = "bool";
const INT: &str = "int";
const FLOAT: &str = "float";
const COMPLEX: &str = "complex";
const STR: &str = "str";
const LIST: &str = "list";
const TUPLE: &str = "tuple";
const SET: &str = "set";
const DICT: &str = "dict";
const DATACLASS: &str = "SafestructuresDataclass";

// Ours. They name no builtin of Python and have no dot: safestructures refuses them, and nothing can be imported by them.
pub(crate) const BYTES: &str = "apr:bytes";
pub(crate) const SCALAR: &str = "apr:scalar";
const FROZEN_SET: &str = "apr:frozenset";
const DEQUE: &str = "apr:deque";
const ORDERED_DICT: &str = "apr:OrderedDict";
const COUNTER: &str = "apr:Counter";
const DEFAULT_DICT: &str = "apr:defaultdict";
const NAMED_TUPLE: &str = "apr:namedtuple";
const ENUM: &str = "apr:enum";

/// The tensor of a file that would have none.
pub(crate) const DUMMY: &str = "null";
