//! Codes of `apr-convert`: models that are quantized.

use located_error::Category::{Invalid, Usage};
use located_error::Entry;

use super::entry;

const TYPES: &str = "`apr quantize --help` and docs/quantize.md name the types";
const DAMAGED: &str = "fetch the file again; if it stays so, the program that wrote it is at fault";
const MAKE_AGAIN: &str = "make the file again with llama-imatrix, or leave --imatrix out";

pub(super) const ENTRIES: &[Entry] = &[
    entry("cv-target", Usage, "There is no type of this name that numbers could be turned into.", TYPES),
    entry(
        "cv-read-only-target",
        Usage,
        "This type is read and not written here: its codebooks are searched by other programs.",
        "take the type that the message names, which is about as small",
    ),
    entry(
        "cv-override",
        Usage,
        "An override has to be EXPRESSION=TYPE, with a regular expression over names of tensors.",
        "for example --tensor-type 'blk\\.[01]\\.ffn_down=q6_k'",
    ),
    entry(
        "cv-not-in-container",
        Usage,
        "The format of the new file has no such type. An .apr file has its own 4 and 8 bits (q4_0, q8_0), Q4_K, Q6_K and plain floats; safetensors \
         has plain floats only.",
        "write GGUF, which has them all (a name that ends in .gguf, or --format gguf), or choose another --type",
    ),
    entry(
        "cv-requantize",
        Usage,
        "The tensor is quantized already, and quantizing it to another type would lose precision a second time.",
        "start from the 16-bit or 32-bit model; or accept the loss with --allow-requantize",
    ),
    entry(
        "cv-needs-importance",
        Usage,
        "A file of this type is of use only if it is known which columns matter, and nothing is known of this tensor.",
        "give the file of llama-imatrix with --imatrix, or take Q2_K",
    ),
    entry(
        "cv-importance-length",
        Usage,
        "The file of importance has another number of weights for this tensor than the tensor has columns: it belongs to another model.",
        MAKE_AGAIN,
    ),
    entry(
        "cv-importance",
        Invalid,
        "The file of importance is cut off, damaged, or none: a count reaches beyond its end, or a weight is negative or not finite.",
        MAKE_AGAIN,
    ),
    entry("cv-too-long", Invalid, "The tensor has more elements than 64 bits count.", DAMAGED),
];
