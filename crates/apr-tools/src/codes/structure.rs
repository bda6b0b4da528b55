//! Codes of `st-structures`: nested data in safetensors files.

use super::{Entry, entry};
use crate::error::Exit::{Invalid, Unsupported, Usage};

const DAMAGED: &str =
    "the schema was changed or made by hand: ask the author of the program that wrote the file";
const NOT_ONE: &str =
    "read it as a plain safetensors file, or save the data again with safestructures or apr.structures";
const LIMITS: &str = "if you trust the file, read it with a program of your own and `st_structures::Limits`";
const TYPE: &str = "read the file into a type with a place for this, or into `st_structures::Structure`";

pub(super) const ENTRIES: &[Entry] = &[
    entry(
        "ss-custom",
        Invalid,
        "The data are sound but do not fit the type of the program that reads them. The message says where.",
        TYPE,
    ),
    entry(
        "ss-no-schema",
        Invalid,
        "The file holds tensors but no `_safestructures_schema_`: nothing says how they belong together.",
        NOT_ONE,
    ),
    entry(
        "ss-no-version",
        Invalid,
        "The file holds a schema but does not say of which version. Writers always do.",
        DAMAGED,
    ),
    entry(
        "ss-version",
        Unsupported,
        "The schema is of a version that is not known; 1.0.0 is. Another version may mean other things by the same words.",
        "look for a newer release of this program",
    ),
    entry("ss-json", Invalid, "The text of the schema is not JSON.", DAMAGED),
    entry(
        "ss-json-surrogate",
        Unsupported,
        "A text of the schema holds half of a surrogate pair. Python's texts may, those of most other languages cannot.",
        "read the file with `apr.structures` in Python and clean the text",
    ),
    entry(
        "ss-duplicate",
        Invalid,
        "An object of the schema has two equal keys. Readers disagree about which of them counts.",
        DAMAGED,
    ),
    entry(
        "ss-depth",
        Invalid,
        "The data are nested more deeply than 128 levels, or than the program allows. Deeper trees exhaust the stack of readers.",
        "keep long chains as lists",
    ),
    entry("ss-nodes", Invalid, "The schema has more nodes than the limit allows.", LIMITS),
    entry("ss-field-missing", Invalid, "A node of the schema lacks a field that its type needs.", DAMAGED),
    entry(
        "ss-field-unknown",
        Invalid,
        "A node of the schema has a field that its type does not know. Passing over it could lose data.",
        DAMAGED,
    ),
    entry("ss-type", Invalid, "A field of the schema holds the wrong kind of JSON value.", DAMAGED),
    entry(
        "ss-data-type",
        Unsupported,
        "A node is of a type that is not known. Names in a file are compared with a fixed list; nothing is imported by them.",
        "read the file in Python with the plugin that wrote it: `apr.structures.load_file(path, plugins=[...])`",
    ),
    entry(
        "ss-number",
        Invalid,
        "A text that should be a number is none, or one too large for the type.",
        DAMAGED,
    ),
    entry("ss-keys", Invalid, "The values and the keys of a dict do not belong together.", DAMAGED),
    entry(
        "ss-key-collision",
        Usage,
        "Two keys of a map have the same text, such as 1 and \"1\". One of the values would be lost.",
        "use keys of one type, or a list of pairs",
    ),
    entry("ss-tensor", Invalid, "The schema names a tensor that the file does not have.", DAMAGED),
    entry(
        "ss-tensor-shape",
        Invalid,
        "A tensor that stands for bytes or for one number has another type or shape.",
        DAMAGED,
    ),
    entry(
        "ss-reserved-key",
        Usage,
        "The schema is kept in the metadata under this key, so a program cannot use it for its own.",
        "rename the key",
    ),
];
