//! Codes of quantization.

use located_error::Category::{Invalid, Unsupported, Usage};
use located_error::Entry;

use super::entry;

const LENGTHS: &str = "give as many as the message says";

pub(super) const ENTRIES: &[Entry] = &[
    entry(
        "q-unknown-type",
        Unsupported,
        "The file holds a tensor of a type that this version does not know. The size of its blocks would be a guess, so nothing \
         of it is read.",
        "use a newer version of this program, or the tool that wrote the file",
    ),
    entry(
        "q-removed-type",
        Unsupported,
        "The tensor has a type that ggml gave up: its files were for one kind of processor or never spread. No current program \
         reads it.",
        "quantize the original model again, with the type that the message names",
    ),
    entry(
        "q-row-length",
        Usage,
        "Numbers are quantized in blocks, and a row of the tensor is not a whole number of them. Blocks never run on into the \
         next row.",
        "choose a type with shorter blocks: those of Q8_0 and Q4_0 have 32 numbers, F16 has none",
    ),
    entry(
        "q-too-long",
        Invalid,
        "The shape of the tensor asks for more bytes than 64 bits can count. No file is that long: the shape is damaged or made \
         up.",
        "fetch the file again",
    ),
    entry(
        "q-not-quantizable",
        Unsupported,
        "Blocks of this type are read, but numbers are not turned into it. Types with codebooks need a search that this version \
         does not have.",
        "choose the type that the message names",
    ),
    entry("q-values-length", Usage, "The numbers are not a whole number of rows.", LENGTHS),
    entry(
        "q-output-length",
        Usage,
        "The room for the blocks is longer or shorter than they are. Bytes left over would be read as blocks later.",
        LENGTHS,
    ),
    entry(
        "q-blocks-length",
        Invalid,
        "There are more or fewer bytes than the blocks of so many numbers take.",
        "fetch the file again; a tensor's bytes and its shape have to agree",
    ),
    entry(
        "q-unequal-lengths",
        Usage,
        "Numbers are compared with what became of them, and there are more of one than of the other.",
        LENGTHS,
    ),
    entry(
        "q-importance-length",
        Usage,
        "An importance matrix has one weight for each column of a tensor, and this one has another number of columns.",
        "take the importance matrix that was made with this model",
    ),
    entry(
        "q-importance-value",
        Usage,
        "A weight of the importance matrix is negative, infinite or not a number. It says how much a column counts, so it cannot \
         be less than nothing.",
        "make the importance matrix again",
    ),
    entry(
        "q-importance-zero",
        Usage,
        "All weights of a block are zero, or so small that they do not add up to anything. The scale of such a block is a quotient \
         of sums of weights: there is none, and the reference would store not-a-number.",
        "give columns that were never used a small weight, or quantize this tensor without the importance matrix",
    ),
    entry(
        "q-non-finite",
        Invalid,
        "The tensor holds infinity or not-a-number, and no block can hold that: the numbers beside it would be lost as well. \
         Most often the training went wrong.",
        "find out where the number comes from: the message says which element it is",
    ),
    entry(
        "q-scale-too-small",
        Invalid,
        "The numbers of a block are so close to zero that the step between their codes has no inverse. What the reference makes \
         of them is not defined.",
        "set numbers below 1e-35 to zero, or keep the tensor as F32",
    ),
    entry(
        "q-scale-too-large",
        Invalid,
        "The numbers of a block are so large that its scale would be stored as infinity, and every number of it would be lost; or a \
         number is beyond the largest one of the format itself (65,504 for F16, 3.39e38 for BF16).",
        "scale the tensor down, or keep it as F32 or BF16",
    ),
];
