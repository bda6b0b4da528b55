//! Which names a pickle may use.
//!
//! Nothing is called, whatever its name. Names are judged so that a file that would do something else when it is loaded is not mistaken for a model.

use pickle_core::{Global, python2};

/// Modules of Python's standard library, by the first part of their names, a line for each first letter. Their classes open files, start
/// processes and run code.
const STANDARD: &[&str] = &[
    "abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop",
    "base64 bdb binascii bisect builtins bz2",
    "cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent configparser \
     contextlib contextvars copy copyreg crypt csv ctypes curses",
    "dataclasses datetime dbm decimal difflib dis distutils doctest",
    "email encodings ensurepip enum errno",
    "faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools",
    "gc genericpath getopt getpass gettext glob graphlib grp gzip",
    "hashlib heapq hmac html http",
    "idlelib imaplib imghdr imp importlib inspect io ipaddress itertools",
    "json",
    "keyword",
    "lib2to3 linecache locale logging lzma",
    "mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing",
    "netrc nis nntplib nt ntpath nturl2path numbers",
    "opcode operator optparse os ossaudiodev",
    "pathlib pdb pickle pickletools pip pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd \
     py_compile pyclbr pydoc pydoc_data pyexpat",
    "queue quopri",
    "random re readline reprlib resource rlcompleter runpy",
    "sched secrets select selectors setuptools shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd \
     sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys \
     sysconfig syslog",
    "tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace \
     traceback tracemalloc tty turtle turtledemo types typing",
    "unicodedata unittest urllib uu uuid",
    "venv",
    "warnings wave weakref webbrowser winreg winsound wsgiref",
    "xdrlib xml xmlrpc",
    "zipapp zipfile zipimport zlib zoneinfo",
];

/// What of it holds data only.
const INERT: &[(&str, &str)] = &[
    ("argparse", "Namespace"),
    ("collections", "Counter OrderedDict defaultdict deque"),
    ("copyreg", "_reconstructor"),
    ("_codecs", "encode"),
    ("datetime", "date datetime time timedelta timezone"),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("pathlib", "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath"),
    ("pathlib._local", "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath"),
    ("types", "SimpleNamespace"),
    ("typing", "Any Dict List Optional Tuple Union"),
    ("uuid", "UUID"),
    (
        "builtins",
        "bool bytearray bytes complex dict float frozenset int list object range set slice str tuple",
    ),
];

/// Functions that build tensors, arrays and their parts. Classes are told by their spelling.
const FUNCTIONS: &[(&str, &str)] = &[
    (
        "torch._utils",
        "_rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy _rebuild_meta_tensor_no_storage _rebuild_nested_tensor \
         _rebuild_parameter _rebuild_parameter_with_state _rebuild_qtensor _rebuild_sparse_csr_tensor _rebuild_sparse_tensor _rebuild_tensor \
         _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_wrapper_subclass _rebuild_xla_tensor",
    ),
    ("torch._tensor", "_rebuild_from_type _rebuild_from_type_v2"),
    ("torch.tensor", "_rebuild_from_type _rebuild_from_type_v2"),
    ("torch", "device"),
    ("torch.serialization", "_get_layout"),
    ("torch.storage", "_load_from_bytes"),
    (
        "torch.jit._pickle",
        "build_boollist build_doublelist build_intlist build_tensor_from_id build_tensorlist restore_type_tag",
    ),
    ("numpy", "dtype ndarray"),
    ("numpy.core.multiarray", "_reconstruct scalar"),
    ("numpy._core.multiarray", "_reconstruct scalar"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.ma.core", "_mareconstruct"),
    ("numpy.random", "__RandomState_ctor"),
    ("numpy.random._pickle", "__bit_generator_ctor __generator_ctor __randomstate_ctor"),
    ("pandas._libs.internals", "_unpickle_block"),
    ("pandas.core.indexes.base", "_new_Index"),
    ("pandas.core.internals.blocks", "new_block"),
];

/// Whether a name may occur: those of the standard library only if they hold data, and no paths to attributes.
pub(crate) fn is_allowed(global: Global<'_>) -> bool {
    let (module, name) = python2::modern(global.module, global.name);
    if is_in(INERT, module, name) {
        return true;
    }
    if name.split('.').any(str::is_empty) || name.contains('.') && !name.split('.').all(is_class) {
        return false;
    }
    let root = module.split('.').next().unwrap_or(module);
    let is_private = root.starts_with('_') && root != "__torch__" && root != "__main__";
    !is_private && !root.is_empty() && !is_standard(root)
}

/// Whether something of this name may be constructed.
pub(crate) fn is_callable(global: Global<'_>) -> bool {
    let (module, name) = python2::modern(global.module, global.name);
    let last = name.rsplit('.').next().unwrap_or(name);
    is_in(INERT, module, name)
        || is_in(FUNCTIONS, module, name)
        || is_allowed(global)
            && (is_class(last) || last.starts_with("__pyx_unpickle_") || module.starts_with("__torch__"))
}

fn is_standard(root: &str) -> bool {
    let line = STANDARD.iter().find(|line| line.as_bytes().first() == root.as_bytes().first());
    line.is_some_and(|line| line.split_ascii_whitespace().any(|standard| standard == root))
}

/// Whether it is spelled as a class.
fn is_class(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|first: char| first.is_ascii_uppercase())
}

fn is_in(table: &[(&str, &str)], module: &str, name: &str) -> bool {
    table.iter().any(|(of, names)| *of == module && names.split_ascii_whitespace().any(|known| known == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged() {
        for (module, name, allowed, callable) in [
            ("torch._utils", "_rebuild_tensor_v2", true, true),
            ("torch._utils", "_import_dotted_name", true, false),
            ("torch.nn.modules.linear", "Linear", true, true),
            ("torch", "float32", true, false),
            ("torch", "serialization.os.system", false, false),
            ("os", "system", false, false),
            ("subprocess", "Popen", false, false),
            ("__builtin__", "eval", false, false),
            ("__builtin__", "set", true, true),
            ("_pickle", "loads", false, false),
            ("collections", "OrderedDict", true, true),
            ("numpy", "size", true, false),
            ("sklearn.tree._tree", "Tree", true, true),
            ("zoneinfo", "ZoneInfo", false, false),
            ("abc", "ABC", false, false),
            ("typing", "Any", true, true),
            ("__torch__.torch.nn.modules.linear", "Linear", true, true),
            ("", "A", false, false),
        ] {
            let global = Global { module, name };
            assert_eq!((is_allowed(global), is_callable(global)), (allowed, callable), "{global}");
        }
    }
}
