//! Codes of `gguf-core`: GGUF files, shards and changes to them.

use located_error::Category::{Invalid, Unsupported, Usage};
use located_error::Entry;

use super::entry;

const DOWNLOAD: &str =
    "the file is damaged or cut short: fetch it again and compare its SHA-256 with the publisher's";
const REWRITE: &str = "tell the author of the program that wrote the file";
const LOOSE: &str =
    "if you trust the file, repeat with --compat; a copy written from it is one that llama.cpp reads";
const BUG: &str = "this is a defect in the calling program, not in the file: please report it";
const SHARDS: &str = "give all shards of one model, `NAME-00001-of-000NN.gguf` and so on";

pub(super) const ENTRIES: &[Entry] = &[
    entry("gg-truncated", Invalid, "The file ends inside its header.", DOWNLOAD),
    entry(
        "gg-magic",
        Invalid,
        "A GGUF file begins with the letters `GGUF`, this one does not. Files that begin with `ggml`, `ggjt` or `lmgg` are of \
         formats that came before.",
        "check that this is a GGUF file; convert an older one with the tools of its time",
    ),
    entry(
        "gg-version",
        Unsupported,
        "The file is of a version of the format that is not known: 1, 2 and 3 are.",
        "look for a newer release of this program",
    ),
    entry(
        "gg-version-1",
        Unsupported,
        "The file is of version 1, of 2023. llama.cpp no longer reads it.",
        LOOSE,
    ),
    entry(
        "gg-byte-order",
        Unsupported,
        "The file was made for big-endian machines. llama.cpp does not read it here.",
        LOOSE,
    ),
    entry(
        "gg-count",
        Invalid,
        "The file says it has more tensors or keys than the rest of it has room for. It was cut short, or made to break programs \
         that believe such numbers.",
        DOWNLOAD,
    ),
    entry(
        "gg-limit",
        Invalid,
        "The header asks for more than the limits allow: the message names the limit.",
        "if you trust the file, read it with a program of your own and `gguf_core::Limits`",
    ),
    entry("gg-string-length", Invalid, "A string is longer than what is left of the file.", DOWNLOAD),
    entry(
        "gg-array-length",
        Invalid,
        "An array has more elements than the rest of the file has room for.",
        DOWNLOAD,
    ),
    entry(
        "gg-array-nested",
        Invalid,
        "An array has arrays as elements. The format allows that, llama.cpp does not read it, and it is not written.",
        LOOSE,
    ),
    entry(
        "gg-value-type",
        Invalid,
        "The type of a value is a number that stands for none of the 13 types.",
        DOWNLOAD,
    ),
    entry("gg-key-empty", Invalid, "A key has no name. llama.cpp refuses such a file.", LOOSE),
    entry(
        "gg-key-duplicate",
        Invalid,
        "A key is there twice. Two programs may see two models in one file.",
        REWRITE,
    ),
    entry(
        "gg-alignment-type",
        Invalid,
        "The key `general.alignment` says where tensors begin and has to be a u32.",
        REWRITE,
    ),
    entry("gg-alignment", Invalid, "The alignment of the tensors has to be a power of two.", REWRITE),
    entry(
        "gg-name-length",
        Invalid,
        "A tensor's name is longer than llama.cpp reads: 63 bytes.",
        "give the tensor a shorter name; to read such a file, repeat with --compat",
    ),
    entry(
        "gg-name-duplicate",
        Invalid,
        "Two tensors have the same name. llama.cpp compares names up to the first zero byte.",
        REWRITE,
    ),
    entry(
        "gg-rank",
        Invalid,
        "A tensor has more dimensions than GGUF files can have: four.",
        "leave dimensions of one element out; to read such a file, repeat with --compat",
    ),
    entry(
        "gg-dimension",
        Invalid,
        "A dimension is negative to most programs: it does not fit 63 bits.",
        DOWNLOAD,
    ),
    entry(
        "gg-elements",
        Invalid,
        "The dimensions of a tensor multiply to more than 63 bits count. Such files were made to break programs.",
        DOWNLOAD,
    ),
    entry(
        "gg-type-unknown",
        Unsupported,
        "The numbers of a tensor are stored in a way that this version does not know, so its size is not known either.",
        "look for a newer release of this program",
    ),
    entry(
        "gg-type-removed",
        Unsupported,
        "The numbers of a tensor are stored in a way that was taken out of the format.",
        "quantize the original model again, with the type that the message names",
    ),
    entry(
        "gg-type-foreign",
        Usage,
        "GGUF files cannot hold numbers of this format.",
        "choose one of ggml's types, for example q8_0 or f32",
    ),
    entry(
        "gg-row-length",
        Invalid,
        "A row of a tensor is not a whole number of blocks of its format.",
        "store this tensor with a smaller block (32 elements) or without any, as f16",
    ),
    entry("gg-size", Invalid, "The size of a tensor, or of all of them, does not fit 64 bits.", DOWNLOAD),
    entry(
        "gg-offset",
        Invalid,
        "Tensors have to follow each other in the order of their table, each padded to the alignment. llama.cpp refuses a file in which \
         they do not.",
        LOOSE,
    ),
    entry(
        "gg-data-end",
        Invalid,
        "The data of a tensor, or the padding behind it, reach past the end of the file.",
        DOWNLOAD,
    ),
    entry(
        "gg-not-found",
        Usage,
        "There is no tensor of this name in the file.",
        "`apr tensors FILE` lists their names",
    ),
    entry(
        "gg-key-not-found",
        Usage,
        "There is no such key in the file.",
        "`apr inspect FILE` lists the keys",
    ),
    entry(
        "gg-key",
        Usage,
        "A key to be written has 1 to 65,535 bytes and no control characters.",
        "choose another key; those of others are words in lower case joined by dots",
    ),
    entry(
        "gg-name",
        Usage,
        "The name of a tensor to be written has 1 to 63 bytes and no control characters.",
        "give the tensor a shorter name",
    ),
    entry("gg-data-length", Usage, "A tensor was given more or fewer bytes than its shape needs.", BUG),
    entry("gg-data-count", Usage, "Bytes of more or fewer tensors were given than there are.", BUG),
    entry(
        "gg-in-place",
        Usage,
        "A value is changed where it stands only if the new one has its type and length; the alignment never is.",
        "write a copy of the file with the new value",
    ),
    entry(
        "gg-shard-count",
        Usage,
        "A model is split into 1 to 65,535 shards.",
        "allow larger shards, or more tensors in each",
    ),
    entry(
        "gg-shard-size",
        Usage,
        "A shard holds at least one tensor; its size is a whole number with M or G behind it.",
        "for example 300M or 2G",
    ),
    entry(
        "gg-shard-keys",
        Invalid,
        "Shards carry the keys `split.no`, `split.count` and `split.tensors.count`. This file lacks one, or has them where a \
         whole model is wanted.",
        SHARDS,
    ),
    entry(
        "gg-shard-order",
        Invalid,
        "The shards are not in order, one is missing, or they are not of one model.",
        SHARDS,
    ),
    entry(
        "gg-shard-tensors",
        Invalid,
        "The shards together have more or fewer tensors than each of them says.",
        SHARDS,
    ),
];
