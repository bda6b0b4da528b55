//! Codes of the npm package `apr-wasm`: its errors, and its notes about deviations from a request.

use located_error::Category::{Internal, Invalid, Io, Unsupported, Usage};
use located_error::Entry;

use super::entry;

const CACHE: &str = "docs/wasm.md says what is kept; without a cache files are fetched each time";
const NOTE: &str = "nothing: it is a note, and the answer is right";
const RANGES: &str = "serve the file with byte ranges, or allow larger ones with `maxBytes`";
const LIST: &str = "`tensors` and `metadata` of the file list the names";

pub(super) const ENTRIES: &[Entry] = &[
    entry(
        "aw-feature",
        Unsupported,
        "The smaller module, `apr-wasm/core`, is without what the call or the file needs.",
        "import \"apr-wasm\", which has everything",
    ),
    entry(
        "aw-usage",
        Usage,
        "A call with arguments that it does not take.",
        "index.d.ts has the types of all of them",
    ),
    entry("aw-closed", Usage, "The file was closed, or the model freed.", "open it again"),
    entry(
        "aw-message",
        Internal,
        "A message to the module that it does not understand.",
        "use the scripts and modules of one release",
    ),
    entry(
        "aw-init",
        Io,
        "The module cannot be loaded, or is not loaded yet.",
        "serve the folder `wasm` beside the scripts, and `await init()` before calls that are not asynchronous",
    ),
    entry(
        "aw-trap",
        Internal,
        "The module stopped: a failed assertion, or a stack overflow. Its open files and models are lost; the next call makes a new one.",
        "open the file again, and report the file that did this",
    ),
    entry(
        "aw-memory",
        Unsupported,
        "More bytes at once than a module of WebAssembly can hold.",
        "read a range of the tensor, or open the file with `apr`",
    ),
    entry(
        "aw-dtype",
        Unsupported,
        "Numbers of a type that is not known, or that cannot be written.",
        "`quantTypes()` lists the formats of blocks",
    ),
    entry(
        "aw-byte-order",
        Unsupported,
        "The numbers of a big-endian GGUF file are listed, not read.",
        "`apr convert` makes a little-endian one",
    ),
    entry("aw-no-tensor", Usage, "The file has no tensor of that name.", LIST),
    entry("aw-no-entry", Usage, "The file has no metadata of that key.", LIST),
    entry(
        "aw-no-prediction",
        Usage,
        "The model does not say that about rows or texts.",
        "`model` of the file says what it takes and gives",
    ),
    entry(
        "aw-foreign-payload",
        Unsupported,
        "The payload is of a user-defined type: only the program that defines it can decode it.",
        "open it in the program that wrote it",
    ),
    entry(
        "aw-foreign-format",
        Unsupported,
        "The content is that of another format, which the error names: a web page, a PyTorch checkpoint, an archive.",
        "the error's `help` says what to do with a file of that format",
    ),
    entry(
        "aw-nothing-to-verify",
        Usage,
        "The file has neither a checksum nor a signature inside.",
        "verify a signature beside it with `verifyDetached`, or compare its SHA-256",
    ),
    entry(
        "aw-network",
        Io,
        "The server cannot be reached, or does not let this page read the file (CORS).",
        "try again, or download the file and open it",
    ),
    entry(
        "aw-http",
        Io,
        "The server refuses the file, or sends something else than it was asked for.",
        "see the status in the message",
    ),
    entry("aw-timeout", Io, "No byte came for as long as `timeout` says.", "try again, or allow more time"),
    entry("aw-aborted", Io, "The caller ended the reading by its `signal`.", "open the file again"),
    entry(
        "aw-changed",
        Io,
        "The file at the address, or on the disk, became another one while it was read.",
        "open it again",
    ),
    entry(
        "aw-range",
        Invalid,
        "Bytes beyond the end of the file were asked for.",
        "see the length of the file",
    ),
    entry(
        "aw-too-large",
        Usage,
        "The server gives no ranges, and the whole file is longer than `maxBytes`.",
        RANGES,
    ),
    entry(
        "aw-content",
        Invalid,
        "The file is not the one that was asked for: its SHA-256 differs from the one given, or it cannot be read any more.",
        "fetch it again from a source you trust",
    ),
    entry("aw-cache", Io, "The cache cannot be read or written.", CACHE),
    entry(
        "aw-cache-full",
        Io,
        "The file does not fit into the cache.",
        "allow more with `maxCacheBytes`, or remove other files",
    ),
    entry("aw-cache-damaged", Invalid, "What was kept is damaged: it was dropped and fetched again.", NOTE),
    entry(
        "aw-cache-other",
        Invalid,
        "What was kept is another file than the one asked for: it was fetched again.",
        NOTE,
    ),
    entry("aw-cache-evicted", Usage, "The least recently used files were evicted.", NOTE),
    entry("aw-cache-none", Unsupported, "There is no IndexedDB here: nothing is kept.", CACHE),
    entry(
        "aw-cache-no-digest",
        Unsupported,
        "The page was loaded without TLS, so nothing can be compared, and nothing is kept.",
        CACHE,
    ),
    entry("aw-cached", Usage, "The model came from the cache.", NOTE),
    entry("aw-no-ranges", Usage, "The server gives no ranges: the whole file was fetched.", RANGES),
    entry(
        "aw-payload-not-read",
        Usage,
        "The payload of a remote or encrypted model was not read yet, so its tensors are not listed.",
        "`loadModel()` reads it",
    ),
    entry(
        "aw-ignored-streaming",
        Usage,
        "Streaming was asked for, or the file asks for it: native code alone does that.",
        NOTE,
    ),
    entry(
        "aw-ignored-native-alignment",
        Usage,
        "Memory aligned for native code was asked for, or the file asks for it: it was loaded as any other.",
        NOTE,
    ),
];
