//! Names that chat templates use.

pub(super) const FILTERS: [&str; 26] = [
    "tojson",
    "trim",
    "length",
    "string",
    "selectattr",
    "join",
    "list",
    "map",
    "items",
    "default",
    "lower",
    "upper",
    "safe",
    "capitalize",
    "dictsort",
    "int",
    "title",
    "replace",
    "last",
    "rejectattr",
    "indent",
    "first",
    "unique",
    "reject",
    "sort",
    // An addition of programs.
    "from_json",
];

/// Filters whose arguments are no names of attributes, filters or tests: `map` may apply them.
pub(super) const SIMPLE: [&str; 19] = [
    "tojson",
    "trim",
    "length",
    "string",
    "list",
    "items",
    "default",
    "lower",
    "upper",
    "safe",
    "capitalize",
    "dictsort",
    "int",
    "title",
    "replace",
    "last",
    "indent",
    "first",
    "from_json",
];

pub(super) const TESTS: [&str; 14] = [
    "defined",
    "string",
    "none",
    "mapping",
    "iterable",
    "sequence",
    "false",
    "undefined",
    "true",
    "boolean",
    "equalto",
    "eq",
    "in",
    "ne",
];

/// Called, and nothing else.
pub(super) const FUNCTIONS: [&str; 6] =
    ["namespace", "raise_exception", "strftime_now", "range", "dict", "caller"];

pub(super) const METHODS: [&str; 13] = [
    "split",
    "strip",
    "items",
    "get",
    "lstrip",
    "rstrip",
    "endswith",
    "startswith",
    "replace",
    "pop",
    "append",
    "upper",
    "title",
];

/// Objects of Jinja that lead out of it.
pub(super) const OBJECTS: [&str; 5] = ["lipsum", "cycler", "joiner", "self", "super"];

/// Attributes without an underscore at their beginning that lead from generators and their like to the modules of Python.
pub(super) const INSIDES: [&str; 22] = [
    "gi_frame",
    "gi_code",
    "gi_yieldfrom",
    "cr_frame",
    "cr_code",
    "cr_await",
    "cr_origin",
    "ag_frame",
    "ag_code",
    "ag_await",
    "f_globals",
    "f_builtins",
    "f_locals",
    "f_back",
    "f_code",
    "tb_frame",
    "tb_next",
    "func_globals",
    "func_code",
    "func_closure",
    "im_func",
    "im_self",
];

/// What an argument of a filter names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Attribute,
    Filter,
    Test,
}

/// Of the argument at a position, or with a keyword.
pub(super) fn argument(filter: &str, position: usize, keyword: Option<&str>) -> Option<Named> {
    match (filter, position, keyword) {
        (_, _, Some("attribute"))
        | ("selectattr" | "rejectattr", 0, None)
        | ("join" | "unique", 1, None)
        | ("sort", 2, None) => Some(Named::Attribute),
        ("map", 0, None) => Some(Named::Filter),
        ("selectattr" | "rejectattr", 1, None) | ("reject", 0, None) => Some(Named::Test),
        _ => None,
    }
}
