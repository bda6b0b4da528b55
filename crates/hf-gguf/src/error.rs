//! Kinds of errors.

use alloc::boxed::Box;

use json_scan::Quoted;
use located_error::remedy::FETCH;

const CONFIG: &str = "compare config.json with the one that the publisher of the model has, and fetch it again";

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
            => "fetch the whole folder again, with its configuration and tokenizer";
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
            => CONFIG;
        /// The configuration lacks a value that the architecture needs and that has no default.
        ConfigMissing {
            /// The file.
            file: Box<str>,
            /// The names under which it is looked for.
            names: Box<str>,
        } = "hg-config-missing" (Invalid),
            "{file} has no {names}"
            => CONFIG;
        /// The class of the model is none of those that are converted.
        UnknownArchitecture {
            /// The class.
            name: Box<str>,
        } = "hg-architecture" (Unsupported),
            "models of the class {} are not converted", Quoted(name)
            => "docs/hf-gguf.md lists the classes; --tensors-only writes the tensors alone, for programs that know the names";
    }

    wrapped {
        /// A key or a tensor that a GGUF file cannot have.
        Gguf(gguf_core::Error);
    }
}
