//! Codes of `st-core`: safetensors headers, views, slices and shard indexes.

use super::{Entry, entry};
use crate::error::Exit::{Invalid, Unsupported, Usage};

const DOWNLOAD: &str =
    "the file is damaged or cut short: fetch it again and compare its SHA-256 with the publisher's";
const REWRITE: &str =
    "write the file again with a safetensors library; tell the author of the program that made it";
const LOOSE: &str = "if you trust the file, repeat with --compat; `apr convert --compat` rewrites it cleanly";
const BUG: &str = "this is a defect in the calling program, not in the file: please report it";

pub(super) const ENTRIES: &[Entry] = &[
    entry(
        "st-header-too-small",
        Invalid,
        "The file is shorter than the 8 bytes that hold the length of the header. It is empty, or a download or \
         copy stopped at once.",
        DOWNLOAD,
    ),
    entry(
        "st-header-too-large",
        Invalid,
        "The first 8 bytes of a safetensors file give the length of its header, and the format allows at most \
         100,000,000. A number this large usually means that the file is of another format, or damaged at its \
         beginning. When writing, the names, shapes and metadata together need more than that.",
        "check that this is a safetensors file; when writing, shorten the metadata or split the model with `apr shard`",
    ),
    entry(
        "st-header-length",
        Invalid,
        "The declared length of the header reaches past the end of the file. The file was cut short, or its first \
         8 bytes are damaged.",
        DOWNLOAD,
    ),
    entry(
        "st-utf8",
        Invalid,
        "The header has to be UTF-8 text, and is not. Its bytes are damaged.",
        DOWNLOAD,
    ),
    entry(
        "st-json-end",
        Invalid,
        "The JSON text of the header ends in the middle of a value. The declared length of the header is too \
         small, or the header was cut.",
        DOWNLOAD,
    ),
    entry(
        "st-json-syntax",
        Invalid,
        "The header is not JSON: at this byte something else has to stand. A single damaged byte is enough.",
        DOWNLOAD,
    ),
    entry(
        "st-json-control",
        Invalid,
        "A string of the header holds a raw control character, which JSON wants escaped.",
        REWRITE,
    ),
    entry(
        "st-json-escape",
        Invalid,
        "A string of the header has a backslash sequence that JSON does not know.",
        REWRITE,
    ),
    entry(
        "st-json-surrogate",
        Invalid,
        "A string of the header has half of a \\u surrogate pair, which is no character.",
        REWRITE,
    ),
    entry(
        "st-json-number",
        Invalid,
        "A number of the header is not written the way JSON numbers are.",
        REWRITE,
    ),
    entry(
        "st-json-range",
        Invalid,
        "A number of the header is larger than any number a reader can hold.",
        REWRITE,
    ),
    entry(
        "st-json-depth",
        Invalid,
        "Arrays and objects of the header lie within each other deeper than any real header needs. The limit \
         protects readers from running out of stack.",
        "do not trust this file: no known program writes such headers",
    ),
    entry(
        "st-json-trailing",
        Invalid,
        "After the closing brace of the header only spaces, tabs and line ends may follow as padding.",
        REWRITE,
    ),
    entry(
        "st-entry-type",
        Invalid,
        "A value of the header has the wrong type, for example a number where text belongs, or a negative or \
         fractional size.",
        REWRITE,
    ),
    entry(
        "st-entry-missing",
        Invalid,
        "The entry of a tensor needs `dtype`, `shape` and `data_offsets`, and one of them is missing.",
        REWRITE,
    ),
    entry(
        "st-entry-duplicate",
        Invalid,
        "The entry of a tensor names a field twice. Readers would disagree on which one counts, so all refuse it.",
        REWRITE,
    ),
    entry(
        "st-dtype",
        Invalid,
        "The element type is none of the 22 the format defines. Names are exact and upper case: F32, BF16, I64.",
        "update `apr` if the type is newer than it; otherwise write the file again with a type the format has",
    ),
    entry("st-metadata-duplicate", Invalid, "The header has two `__metadata__` objects.", REWRITE),
    entry(
        "st-strict-whitespace",
        Invalid,
        "The specification says that the header begins with `{`. The official reader also takes white space before \
         it; strict reading does not, because a file could then pass for two formats.",
        LOOSE,
    ),
    entry(
        "st-strict-array",
        Invalid,
        "A tensor is written as an array instead of an object. The official reader takes this by accident of its \
         JSON library; no writer does it.",
        LOOSE,
    ),
    entry(
        "st-strict-dtype",
        Invalid,
        "An element type is written as an object instead of text. The official reader takes this by accident of \
         its JSON library; no writer does it.",
        LOOSE,
    ),
    entry(
        "st-duplicate-tensor",
        Invalid,
        "Two tensors have the same name. The official reader silently keeps the last one, so two programs can see \
         different models in one file; the specification forbids it.",
        LOOSE,
    ),
    entry(
        "st-duplicate-key",
        Invalid,
        "A metadata key is given twice. The official reader silently keeps the last value; the specification \
         forbids it.",
        LOOSE,
    ),
    entry(
        "st-offsets",
        Invalid,
        "The tensors have to follow each other without a gap or an overlap, and each has to end after it begins. \
         This one does not begin where the one before it ends. Gaps could hide data, overlaps could make one \
         value stand for many.",
        REWRITE,
    ),
    entry(
        "st-size-overflow",
        Invalid,
        "The sizes in the shape multiply to more bytes than 64 bits can count. No real tensor is that large: the \
         header is damaged or hostile.",
        "do not trust this file: fetch it again from a source you know",
    ),
    entry(
        "st-partial-byte",
        Invalid,
        "Elements of 4 or 6 bits are packed, and these do not fill whole bytes. The format has no padding inside \
         a tensor.",
        REWRITE,
    ),
    entry(
        "st-size",
        Invalid,
        "The bytes a tensor occupies are given twice, by its offsets and by its type and shape, and the two \
         disagree.",
        REWRITE,
    ),
    entry(
        "st-file-length",
        Invalid,
        "The header describes a file of another length. A shorter file was cut off, usually by a broken download \
         or a full disk; a longer one has bytes after the last tensor that nothing accounts for.",
        DOWNLOAD,
    ),
    entry(
        "st-limit",
        Invalid,
        "The header asks for more than this reader grants: tensors, dimensions, or bytes of names or metadata. \
         The limits are far above any real model and keep a hostile header from using up memory.",
        "if you trust the file, repeat with --compat, which keeps only the limits of the format itself",
    ),
    entry(
        "st-not-found",
        Usage,
        "The file has no tensor of this name.",
        "list the names with `apr tensors FILE`",
    ),
    entry(
        "st-dtype-mismatch",
        Unsupported,
        "The tensor holds elements of another type than the operation reads.",
        "look at the type with `apr tensors FILE`",
    ),
    entry(
        "st-misaligned",
        Unsupported,
        "The bytes of the tensor do not lie at a multiple of the element size, so they cannot be viewed in place \
         as numbers; they can be read one by one.",
        "write an aligned copy with `apr convert IN OUT --align 64`",
    ),
    entry(
        "st-endian",
        Unsupported,
        "The format stores little-endian numbers and this machine is big-endian, so they cannot be viewed in \
         place; they can be read one by one.",
        "read the tensor element by element",
    ),
    entry(
        "st-data-length",
        Invalid,
        "The bytes given for a tensor are more or fewer than its type and shape need. When a file is being \
         rewritten, the input has changed meanwhile.",
        "repeat when nothing else writes to the input",
    ),
    entry("st-data-count", Invalid, "Data was given for more or fewer tensors than were laid out.", BUG),
    entry(
        "st-index-count",
        Usage,
        "The slice has more indices than the tensor has dimensions.",
        "look at the shape with `apr tensors FILE`",
    ),
    entry(
        "st-index-ellipsis",
        Usage,
        "A slice may have one ellipsis: with two, its meaning is open.",
        "keep one ellipsis",
    ),
    entry(
        "st-index-range",
        Usage,
        "An index lies outside its dimension.",
        "look at the shape with `apr tensors FILE`",
    ),
    entry("st-index-reversed", Usage, "A range of the slice ends before it begins.", "swap its two ends"),
    entry(
        "st-index-byte",
        Usage,
        "Elements of 4 or 6 bits share bytes, and the slice begins or ends inside one.",
        "choose bounds that fall on whole bytes: multiples of 2 elements for F4, of 4 for F6",
    ),
    entry(
        "st-reserved-name",
        Usage,
        "`__metadata__` is the name under which a header keeps its metadata, so no tensor can have it.",
        "choose another name",
    ),
    entry(
        "st-header-room",
        Usage,
        "Metadata is replaced in place as long as it fits into the padding of the header; this does not.",
        "rewrite the file with `apr convert IN OUT --set KEY=VALUE --header-room 4096`",
    ),
    entry(
        "st-shard-no-map",
        Invalid,
        "An index of shards says in `weight_map` which file holds which tensor; this one has none.",
        "fetch the index again, or make a new one with `apr shard`",
    ),
    entry(
        "st-shard-duplicate",
        Invalid,
        "The index of shards lists a key twice, so readers could disagree on where a tensor is.",
        "fetch the index again, or make a new one with `apr shard`",
    ),
    entry(
        "st-shard-path",
        Invalid,
        "The index of shards names a file outside its own folder. Following it would let a downloaded index read \
         files elsewhere on this machine.",
        "do not trust this index: shards are plain file names beside it",
    ),
    entry(
        "st-shard-size",
        Invalid,
        "`total_size` in the index of shards is not a whole number of bytes.",
        "fetch the index again, or make a new one with `apr shard`",
    ),
];
