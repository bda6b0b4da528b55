//! Kinds of errors.

use json_scan::Quoted;
use located_error::Subject;
use tensor_dtype::Dtype;

use crate::target_format::TargetFormat;

const TYPES: &str = "`apr quantize --help` and docs/quantize.md name the types";
const MAKE_AGAIN: &str = "make the file again with llama-imatrix, or leave --imatrix out";
const DAMAGED: &str = "fetch the file again; if it stays so, the program that wrote it is at fault";

located_error::errors! {
    /// Why an operation was refused. The offset is that of a byte in an importance file.
    #[derive(Clone, PartialEq)]
    pub struct Error;

    /// What was wrong.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ErrorKind {
        /// There is no type of this name that numbers could be turned into.
        UnknownTarget {
            /// The name.
            name: Box<str>,
        } = "cv-target" (Usage),
            "unknown type to quantize to: {}", Quoted(name)
            => TYPES;
        /// This type is read and not written here: its codebooks are searched by other programs.
        ReadOnlyTarget {
            /// Its name.
            name: &'static str,
            /// One that they can be turned into.
            instead: &'static str,
        } = "cv-read-only-target" (Usage),
            "writing {name} is not supported; use {instead}"
            => "take the type that the message names, which is about as small";
        /// An override has to be EXPRESSION=TYPE, with a regular expression over names of tensors.
        Override {
            /// What was given.
            text: Box<str>,
            /// What is wrong with it.
            what: Box<str>,
        } = "cv-override" (Usage),
            "invalid override {}: {}", Quoted(text), what
            => "for example --tensor-type 'blk\\.[01]\\.ffn_down=q6_k'";
        /// The format of the new file has no such type. An .apr file has its own 4 and 8 bits (q4_0, q8_0), Q4_K, Q6_K and plain
        /// floats; safetensors has plain floats only.
        NotInFormat {
            /// The type.
            dtype: Dtype,
            /// The file.
            format: TargetFormat,
        } = "cv-not-in-container" (Usage),
            "{format} has no type {dtype}"
            => "write GGUF, which has them all (a name that ends in .gguf, or --format gguf), or choose another --type";
        /// The tensor is quantized already, and quantizing it to another type would lose precision a second time.
        Requantize {
            /// What it is.
            from: Dtype,
            /// What it would become.
            to: Dtype,
        } = "cv-requantize" (Usage),
            "the tensor is quantized to {from} already, and would lose precision again as {to}"
            => "start from the 16-bit or 32-bit model; or accept the loss with --allow-requantize";
        /// A file of this type is of use only if it is known which columns matter, and nothing is known of this tensor.
        NeedsImportance = "cv-needs-importance" (Usage),
            "quantizing to Q2_K_S needs importance weights"
            => "give the file of llama-imatrix with --imatrix, or take the type Q2_K";
        /// The file of importance has another number of weights for this tensor than the tensor has columns: it belongs to another
        /// model.
        ImportanceLength {
            /// Weights that it takes.
            expected: u64,
            /// Weights that there are.
            found: u64,
        } = "cv-importance-length" (Usage),
            "wrong number of importance weights: expected {expected}, found {found}"
            => MAKE_AGAIN;
        /// No entry of the file of importance has the name of a tensor that is quantized: it belongs to another model.
        ImportanceNames {
            /// A name in the file.
            entry: Box<str>,
            /// A tensor that is quantized.
            tensor: Box<str>,
        } = "cv-importance-names" (Usage),
            "no entry applies to a tensor that is quantized: the file has {}, the model {}", Quoted(entry), Quoted(tensor)
            => MAKE_AGAIN;
        /// The file of importance is cut off, damaged, or none: a count reaches beyond its end, or a weight is negative or not
        /// finite.
        Importance {
            /// What is wrong with it.
            what: &'static str,
        } = "cv-importance" (Invalid),
            "{what}"
            => MAKE_AGAIN;
        /// The tensor has more elements than 64 bits count.
        TooLong = "cv-too-long" (Invalid),
            "number of elements does not fit 64 bits"
            => DAMAGED;
    }

    wrapped {
        /// The values of a tensor cannot be decoded, or not be quantized.
        Quant(apr_quant::Error);
        /// An importance file is not a valid GGUF file.
        Gguf(gguf_core::Error);
    }
}

impl Error {
    /// The same error about this tensor.
    #[must_use]
    pub fn of_tensor(self, name: &str) -> Self {
        self.of(Subject::tensor(name))
    }
}
