//! Kinds of errors.

use alloc::boxed::Box;
use core::fmt;

use json_scan::Quoted;
use located_error::remedy::FETCH;
use located_error::{Subject, cut};
use tensor_dtype::Dtype;

use crate::json::Json;

/// Bytes that messages keep of a token.
const MAX_TOKEN: usize = 256;

/// A value of a file that the message names.
const VALUE: &str = "compare the file with the one that the publisher of the model has, and fetch it again";
const CONFIG: &str =
    "compare config.json with the one that the publisher of the model has, and fetch it again";
const TOKENIZER: &str = "fetch all files of the tokenizer again, from one revision of the model";

const MERGE: &str = "merge the adapter into its model with the program that trained it (`merge_and_unload` of PEFT, `mlx_lm.fuse` of MLX), and convert the result";

located_error::errors! {
    /// Why a folder is not converted. The offset is that of a byte in the file that the message names.
    #[derive(Clone, PartialEq)]
    pub struct Error;

    /// What was wrong.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ErrorKind {
        /// A file that the conversion needs is not in the folder.
        MissingFile {
            /// Its name.
            file: Box<str>,
        } = "hg-missing-file" (Usage),
            "the folder has no {file}"
            => "fetch the whole folder again; a tokenizer.model that a merge or a fine-tune did not write is copied from the folder of the base model";
        /// A file of the folder is not UTF-8.
        NotUtf8 {
            /// Its name.
            file: Box<str>,
        } = "hg-utf8" (Invalid),
            "{file} is not UTF-8"
            => FETCH;
        /// A file of the folder is not one JSON value, or has more than 64 arrays and objects within one another.
        Json {
            /// Its name.
            file: Box<str>,
            /// What is wrong.
            what: json_scan::ErrorKind,
        } = "hg-json" (Invalid),
            "{file}: {what}"
            => FETCH;
        /// A value of the configuration has another type than models have, is negative, or is beyond what such models can have.
        ConfigValue {
            /// The file.
            file: Box<str>,
            /// What is expected.
            expected: &'static str,
            /// What was found.
            found: Box<str>,
        } = "hg-config-value" (Invalid),
            "{file}: expected {expected}, found {found}"
            => VALUE;
        /// The configuration lacks a value that the architecture needs and that has no default.
        ConfigMissing {
            /// The file.
            file: Box<str>,
            /// The names under which it is looked for.
            names: Box<str>,
        } = "hg-config-missing" (Invalid),
            "{file} has no {names}"
            => VALUE;
        /// What the caller says about name, authors and sampling is not a JSON object of such keys.
        Metadata {
            /// What is wrong.
            what: Box<str>,
        } = "hg-metadata" (Usage),
            "{what}"
            => "correct the file of --metadata: a JSON object, {\"general.author\": \"NAME\"}";
        /// The class of the model is none of those that are converted.
        UnknownArchitecture {
            /// The class.
            name: Box<str>,
        } = "hg-architecture" (Unsupported),
            "models of the class {} are not converted", Quoted(name)
            => "docs/hf-gguf.md lists the classes; --tensors-only writes the tensors alone, for programs that know the names";
        /// The folder has no files that hold tensors under the names that such files have.
        NoTensors = "hg-no-tensors" (Usage),
            "the folder has no model*.safetensors and no pytorch_model*.bin"
            => "fetch the whole folder again, or name the folder that has the files";
        /// The index of the files is not one, or names files outside of the folder.
        Index {
            /// Its name.
            file: Box<str>,
            /// What is wrong.
            what: &'static str,
        } = "hg-index" (Invalid),
            "{file}: {what}"
            => FETCH;
        /// The index says that a file holds a tensor, and no file does: one is missing or incomplete.
        IndexedTensor {
            /// The file that should have it.
            file: Box<str>,
        } = "hg-indexed-tensor" (Invalid),
            "the index has a tensor that no file has; it should be in {file}"
            => FETCH;
        /// A file has a tensor that the index does not have.
        TensorNotIndexed {
            /// The index.
            file: Box<str>,
        } = "hg-not-indexed" (Invalid),
            "a file has a tensor that {file} does not have"
            => "remove files of other models from the folder, or fetch the folder again";
        /// The folder has a file of the numbered set that the index is of, and the index has no tensor of it: its tensors would be lost.
        PartNotIndexed {
            /// The index.
            index: Box<str>,
            /// The file.
            file: Box<str>,
        } = "hg-part-not-indexed" (Invalid),
            "{index} does not name {file}, a file of the same model"
            => "fetch the index again; remove the file from the folder if it is of another model";
        /// Two tensors of the folder have the same name.
        DuplicateTensor = "hg-duplicate-tensor" (Invalid),
            "two tensors have this name"
            => "remove copies of the model from the folder: files whose names begin with `model` are all read";
        /// A tensor that another one needs is missing: scales or zero points of a quantized tensor.
        MissingTensor = "hg-missing-tensor" (Invalid),
            "a quantized tensor needs this one, which is missing"
            => "fetch the folder again; if the program that saved the model left the tensor out, start from the model as it was before";
        /// A tensor that every model of the architecture has, or that the layers of its kind have, is in no file.
        NeededTensor = "hg-needed-tensor" (Invalid),
            "no file has this tensor, which the model needs"
            => "fetch the whole folder again: a file is missing or incomplete, or config.json counts more layers than the model has";
        /// Tensors have elements that the reference implementation does not read either.
        SourceType {
            /// The type.
            dtype: Dtype,
        } = "hg-source-type" (Unsupported),
            "elements of type {dtype} are not converted"
            => "convert the model to BF16 or F16 with the program that wrote it";
        /// A tensor has more elements than any model.
        TooManyElements = "hg-elements" (Invalid),
            "the tensor has more than 2^48 elements"
            => FETCH;
        /// The tensors are quantized by a method that is not decoded here. Decoded are `fp8`, `gptq` of 2, 4 and 8 bits, `compressed-tensors` in
        /// the formats `float-quantized`, `int-quantized`, `naive-quantized` and `pack-quantized`, and `mxfp4` of GPT-OSS.
        Quantization {
            /// The method.
            method: Box<str>,
        } = "hg-quantization" (Unsupported),
            "models quantized by {method} are not converted"
            => "start from the model as it was before it was quantized";
        /// Scales or zero points of a quantized tensor have other shapes or types than its codes need.
        QuantizedShape = "hg-quantized-shape" (Invalid),
            "codes, scales and zero points of a quantized tensor do not fit each other"
            => FETCH;
        /// The tensor is of a layer that the configuration does not count: the model was extended, or merged of several, and its
        /// configuration is that of another.
        LayerBeyond {
            /// The layer, from 0.
            layer: u64,
            /// The number of layers.
            count: u64,
        } = "hg-layer" (Unsupported),
            "config.json counts {count} layers, and the tensor is of layer {layer}, counted from 0"
            => "set num_hidden_layers of config.json to the number of layers that the files have; or fetch the folder again";
        /// The name of the tensor begins with what a program for training puts before the names of a model that it wraps.
        Prefix {
            /// The prefix.
            prefix: &'static str,
            /// The program.
            program: &'static str,
        } = "hg-prefix" (Unsupported),
            "the name begins with {prefix}, which {program} puts before the names of a model that it wraps"
            => "remove the prefix: `apr convert FOLDER NEW/model.safetensors --rename 'PREFIX*=*'`, and copy the other files of FOLDER to NEW";
        /// The architecture has no tensor of this name.
        UnknownTensor = "hg-tensor-name" (Unsupported),
            "the architecture has no tensor of this name"
            => "the model has parts that this architecture does not have; --tensors-only writes the tensors alone";
        /// The name is that of a tensor that a program for quantization or training writes beside the weights, and the configuration
        /// does not say that the model is of that kind.
        Leftover {
            /// The program.
            program: &'static str,
        } = "hg-leftover" (Unsupported),
            "the tensor was left by {program}"
            => "start from the model as it was before, or merge it with the program that wrote the tensor";
        /// Two tensors of the folder would have the same name in the new file.
        SameName {
            /// The name.
            name: Box<str>,
        } = "hg-same-name" (Invalid),
            "two tensors would become {}", Quoted(name)
            => "remove copies of the model from the folder";
        /// The scaling of rotary embeddings has another number of factors than a head has pairs of dimensions that are rotated.
        RopeFactors {
            /// The pairs.
            expected: u64,
            /// The factors.
            found: u64,
        } = "hg-rope-factors" (Invalid),
            "config.json: expected {expected} factors of a long and of a short context, found {found}"
            => CONFIG;
        /// The vectors of tokens are combined in a way that GGUF files have no number for: neither their mean, nor the first or
        /// last of them.
        Pooling = "hg-pooling" (Unsupported),
            "the pooling of the model is neither mean, nor cls, nor lasttoken"
            => "remove modules.json from a copy of the folder, and combine the vectors in the program that uses them";
        /// A tensor has another shape than the configuration says.
        TensorShape {
            /// What the configuration says.
            expected: Box<str>,
            /// The shape.
            found: Box<str>,
        } = "hg-tensor-shape" (Invalid),
            "expected {expected}, found {found}"
            => "config.json and the tensors are of different models: fetch the folder again";
        /// The tokenizer has another number of tokens than the embedding has rows: a token without a row has no vector.
        TokenRows {
            /// The tokens.
            tokens: u64,
            /// The shape of the embedding.
            found: Box<str>,
        } = "hg-token-rows" (Invalid),
            "expected a row of the embedding for each of {tokens} tokens, found {found}"
            => "after tokens were added, save the model again after `model.resize_token_embeddings(len(tokenizer))`, or take tokenizer and vocab_size of the base model";
        /// An expert, or a head, has a number that the configuration does not allow.
        ExpertNumber {
            /// The number.
            number: u64,
            /// How many there are.
            count: u64,
        } = "hg-expert" (Invalid),
            "the tensor is number {number} of {count}"
            => CONFIG;
        /// Tensors that become one are not all there.
        IncompleteGroup {
            /// The layer.
            layer: u64,
            /// What the tensors are called.
            part: Box<str>,
        } = "hg-incomplete" (Invalid),
            "layer {layer} lacks tensors of its group {}", Quoted(part)
            => FETCH;
        /// Tensors that become one have different shapes.
        GroupShape {
            /// What the tensors are called.
            part: Box<str>,
        } = "hg-group-shape" (Invalid),
            "tensors of the group {} have different shapes", Quoted(part)
            => FETCH;
        /// An adapter is of a kind that GGUF files have no form for, or that changes more than matrices.
        Adapter {
            /// The kind.
            what: &'static str,
        } = "hg-adapter" (Unsupported),
            "adapter_config.json: {what} cannot be converted"
            => MERGE;
        /// A tensor of an adapter is no factor of a change of a matrix that the model has.
        AdapterTensor {
            /// What it is.
            what: &'static str,
        } = "hg-adapter-tensor" (Unsupported),
            "the tensor is {what}, and GGUF files of adapters have factors of matrices alone"
            => MERGE;
        /// A tensor of an adapter is a factor of a change of a matrix, and the other one is missing.
        AdapterPair {
            /// The other one.
            missing: &'static str,
        } = "hg-adapter-pair" (Invalid),
            "the adapter has no {missing} for this matrix"
            => FETCH;
        /// The factors of a change of a matrix are not two matrices of one rank.
        AdapterRank {
            /// The shape of the first.
            a: Box<str>,
            /// The shape of the second.
            b: Box<str>,
        } = "hg-adapter-rank" (Invalid),
            "expected factors [rank, columns] and [rows, rank] below 2^31, found {a} and {b}"
            => FETCH;
        /// The matrix that an adapter changes becomes tensors whose change has no factors.
        AdapterChange = "hg-adapter-change" (Unsupported),
            "the change of this matrix has no factors in the form that it has in GGUF files"
            => MERGE;
        /// An id of a token is not below the number of tokens that the model has.
        TokenId {
            /// The file.
            file: Box<str>,
            /// The token; empty if it is not known.
            token: Box<str>,
            /// The id.
            id: u64,
            /// The number of tokens.
            n_tokens: u64,
        } = "hg-token-id" (Invalid),
            "{}: {} has the id {}, the model has {} tokens", file, Token(token), id, n_tokens
            => "after tokens were added, save the model again after `model.resize_token_embeddings(len(tokenizer))`, which sets vocab_size too; or take the tokenizer of the base model";
        /// Two tokens have one id, or one token is named twice: which one counts would depend on the reader.
        TokenTwice {
            /// The file.
            file: Box<str>,
            /// The id.
            id: u64,
            /// One of the tokens.
            first: Box<str>,
            /// The other.
            second: Box<str>,
        } = "hg-token-twice" (Invalid),
            "{}: {} and {} both have the id {}", file, Quoted(first), Quoted(second), id
            => TOKENIZER;
        /// A merge, a template or a setting of the tokenizer names a token that the vocabulary does not have.
        TokenUnknown {
            /// The file.
            file: Box<str>,
            /// What names it.
            place: &'static str,
            /// The token.
            token: Box<str>,
        } = "hg-token-unknown" (Invalid),
            "{}: {} names {}, which the vocabulary does not have", file, place, Quoted(token)
            => TOKENIZER;
        /// A file has more of something than any model has: reading it would take memory and time without need.
        Limit {
            /// The file.
            file: Box<str>,
            /// What there is too much of.
            what: &'static str,
            /// The limit.
            limit: u64,
        } = "hg-limit" (Invalid),
            "{file} has more than {limit} {what}"
            => FETCH;
        /// The tokenizer is of a kind that has no form in GGUF, or that is not read.
        TokenizerKind {
            /// The file.
            file: Box<str>,
            /// What is not supported.
            what: Box<str>,
        } = "hg-tokenizer-kind" (Unsupported),
            "{}: {} is not supported", file, Quoted(what)
            => "docs/hf-gguf.md lists the tokenizers that are converted; --tensors-only writes the tensors alone";
        /// A SentencePiece model is not a protobuf message of that type.
        Protobuf {
            /// The file.
            file: Box<str>,
            /// What is wrong.
            what: &'static str,
        } = "hg-protobuf" (Invalid),
            "{file}: {what}"
            => FETCH;
        /// The tokenizer encodes the text that identifies pre-tokenizers in a way that is not in the table of known ones. The way in which
        /// a program splits text before it merges bytes is not in the file otherwise, and a wrong one makes a model worse without a message.
        UnknownPre {
            /// SHA-256 of the ids.
            hash: Box<str>,
            /// Why it may be unknown.
            cause: &'static str,
            /// The name that fits the pre-tokenizer; empty if none does.
            suggestion: Box<str>,
        } = "hg-pre" (Unsupported),
            "the pre-tokenizer is unknown (hash {}): {}{}", hash, cause, Suggestion(suggestion)
            => "give the name under which llama.cpp knows the pre-tokenizer with --pre NAME; compare the text of a few generated answers afterwards";
        /// The text that identifies pre-tokenizers cannot be encoded with this tokenizer, because a step of it is not implemented here.
        PreNotComputed {
            /// What is not implemented.
            what: Box<str>,
            /// The name that fits the pre-tokenizer; empty if none does.
            suggestion: Box<str>,
        } = "hg-pre-steps" (Unsupported),
            "the pre-tokenizer cannot be identified, because {} is not implemented{}", what, Suggestion(suggestion)
            => "give the name under which llama.cpp knows the pre-tokenizer with --pre NAME";
        /// A folder is not made of GGUF files of this architecture.
        NotRestored {
            /// The architecture.
            name: Box<str>,
        } = "hg-restore-architecture" (Unsupported),
            "folders are not made of GGUF files of the architecture {}", Quoted(name)
            => "docs/hf-gguf.md lists the architectures; --format safetensors writes the tensors alone";
        /// A key that the architecture needs is missing.
        KeyMissing = "hg-key-missing" (Invalid),
            "the file has no such key"
            => "`apr inspect` lists the keys: convert the model again with a newer program, or take another file";
        /// A key has a value of another type or size than the architecture has.
        KeyValue {
            /// What is expected.
            expected: &'static str,
        } = "hg-key-value" (Invalid),
            "expected {expected}"
            => "`apr inspect` lists the keys: convert the model again with a newer program, or take another file";
        /// A tensor of a GGUF file is none that the architecture has, or has another shape there.
        StoredTensor = "hg-stored-tensor" (Unsupported),
            "the architecture has no tensor of this name and shape that a folder could hold"
            => "the file may be of an older program, or have more parts than the model: --format safetensors writes the tensors alone";
        /// The factors of rotary embeddings are not those that any known parameters of Llama 3 give.
        UnknownFactors = "hg-restore-factors" (Unsupported),
            "the factors of the rotary embeddings come from no parameters that are known"
            => "--format safetensors writes the tensors alone";
        /// The front matter of README.md is not YAML, or a value in it has another type than its name asks for.
        Card {
            /// The line, from 1.
            line: u64,
            /// What is wrong.
            what: &'static str,
        } = "hg-card" (Invalid),
            "README.md, line {line}: {what}"
            => "correct the front matter of README.md, or convert a folder without it";
    }

    wrapped {
        /// Values that the new type cannot hold.
        Quant(apr_quant::Error);
        /// A key or a tensor that a GGUF file cannot have.
        Gguf(gguf_core::Error);
    }
}

/// A token, if it is known.
struct Token<'t>(&'t str);

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("a token") } else { write!(f, "the token {}", Quoted(self.0)) }
    }
}

/// What comes after a message: the name that fits, if there is one.
struct Suggestion<'s>(&'s str);

impl fmt::Display for Suggestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "; its form is that of --pre {}", self.0) }
    }
}

impl ErrorKind {
    /// Of two tokens with one id.
    pub(crate) fn twice(file: &str, id: u32, first: &str, second: &str) -> Error {
        let kept = |token| cut(token, MAX_TOKEN).into();
        Self::TokenTwice { file: file.into(), id: id.into(), first: kept(first), second: kept(second) }.into()
    }

    /// Of a token that the vocabulary does not have.
    pub(crate) fn unknown(file: &str, place: &'static str, token: &str) -> Error {
        Self::TokenUnknown { file: file.into(), place, token: cut(token, MAX_TOKEN).into() }.into()
    }

    /// Of an id that is not below the number of tokens.
    pub(crate) fn beyond(file: &str, id: u64, n_tokens: u64) -> Error {
        Self::beyond_of("", file, id, n_tokens)
    }

    /// Of the id of this token.
    pub(crate) fn beyond_of(token: &str, file: &str, id: u64, n_tokens: u64) -> Error {
        Self::TokenId { file: file.into(), token: cut(token, MAX_TOKEN).into(), id, n_tokens }.into()
    }

    /// Of too much of something.
    pub(crate) fn limit(file: &str, what: &'static str, limit: usize) -> Error {
        Self::Limit { file: file.into(), what, limit: limit as u64 }.into()
    }

    /// Of something that is not supported.
    pub(crate) fn unsupported(file: &str, what: &str) -> Error {
        Self::TokenizerKind { file: file.into(), what: cut(what, MAX_TOKEN).into() }.into()
    }

    /// Of a value that is missing.
    pub(crate) fn missing(file: &str, names: &str) -> Error {
        Self::ConfigMissing { file: file.into(), names: names.into() }.into()
    }

    /// Of a value of a wrong type.
    pub(crate) fn value(file: &str, name: &str, expected: &'static str, found: &Json) -> Error {
        let found = found.shown().into();
        Error::from(Self::ConfigValue { file: file.into(), expected, found }).of(Subject::key(name))
    }
}
