//! Conversion of the libraries' errors to failures.

use core::error::Error;
use std::io;
#[cfg(feature = "remote")]
use std::path::Path;

use gguf_core::KeyType;
use located_error::{Located, io_error};
use tensor_dtype::Dtype;

use super::{
    CODE_FOREIGN_FORMAT, CODE_FOREIGN_PAYLOAD, CODE_INTERNAL, CODE_IO, CODE_NO_PREDICTION, CODE_NOT_CARRIED,
    Failure, Place,
};
use crate::remote;
use crate::terminal::escape;

/// The key of GGUF that says where tensors may begin.
pub(crate) const ALIGNMENT: &str = "general.alignment";
pub(crate) const ALIGNMENT_HELP: &str = "the alignment is a power of two of type u32, by the specification a multiple of 8: --set general.alignment=64, for example";

impl<E: Located + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::of(&error)
    }
}

impl Failure {
    /// The failure of a library's error: offset, subject, line, file and cause have lines of their own.
    pub(crate) fn of(error: &(dyn Located + 'static)) -> Self {
        let any: &(dyn Error + 'static) = error;
        #[cfg(feature = "remote")]
        if let Some(remote) = apr_remote::remote_error(any).filter(|_| !any.is::<apr_remote::Error>()) {
            let (failure, location) = (Self::of(remote).about(error.location().subject), error.location());
            return location.path.map_or_else(|| Self::of(remote), |path| failure.in_file(path));
        }
        let system = io_error(any);
        if let Some(sealed) = system.and_then(sealed_error) {
            return Self::of(sealed);
        }
        let (location, message) = (error.location(), message(error, system));
        if let Some(url) =
            location.path.filter(|path| is_missing(error.code(), system) && remote::is_url(path))
        {
            return Self::not_remote(url);
        }
        let cause = any.source().map(ToString::to_string);
        let cause = cause.filter(|cause| !message.contains(cause) && !is_missing(error.code(), system));
        let mut failure =
            Self::new(code_here(error.code()), message).at(location.offset).about(location.subject);
        if let Some(line) = location.line {
            failure = failure.placed(Place::line(line.into()));
        }
        if let Some(path) = location.path {
            failure = failure.in_file(path);
        }
        if let Some(cause) = cause {
            failure = failure.because(cause);
        }
        if let Some(system) = system {
            failure = failure.of_system(system);
        }
        if error.code() == "rm-url" && failure.what().contains("ORG/NAME") {
            failure = failure.help("write hf://ORG/NAME, as the page of the repository shows it");
        }
        match any.downcast_ref::<model_file::Error>() {
            Some(error) => failure.advised(error.kind()),
            None => failure,
        }
    }

    /// The failure of a source over the network.
    #[cfg(feature = "remote")]
    pub(crate) fn of_remote(error: read_at::Error, path: &Path) -> Self {
        match apr_remote::remote_error(&error) {
            Some(remote) => Self::of(remote).in_file(path),
            None => Self::io("read the file", path, &error.into()),
        }
    }

    /// What to do with the options of this program.
    fn advised(self, kind: &model_file::ErrorKind) -> Self {
        use model_file::ErrorKind;
        match kind {
            ErrorKind::NoModel => self.help(
                "a language model runs in llama.cpp, Ollama or LM Studio; of tensors that `apr train` wrote, metadata with `apr.model` name the \
                 model: see `apr convert --set`",
            ),
            // Blocks become no other type than these two.
            ErrorKind::NotRepresentable { to, element: Some(_), .. } if to.element() != Some(Dtype::F32) => {
                self.help("--dequantize f32 keeps every value")
            }
            ErrorKind::InvalidEntry { key, .. } => {
                self.help(format!("remove it with --unset {}, or set it correctly", escape::word(key)))
            }
            ErrorKind::EntryType { key, .. } if key == ALIGNMENT => {
                self.of_key(Some(key)).help(ALIGNMENT_HELP)
            }
            ErrorKind::EntryType { key, expected, .. } => {
                let (word, example) = (escape::word(key), escape::word(example(expected)));
                // Programs refuse a key that they know with a value of another type.
                let other = match KeyType::of(key) {
                    Some(_) => String::new(),
                    None => format!("; or say another type: --set {word}=str:VALUE"),
                };
                self.of_key(Some(key))
                    .help(format!("give a value of the type {expected}, for example --set {word}={example}{other}"))
            }
            _ => self,
        }
    }
}

/// A value of this type of GGUF, as `--set` takes it.
fn example(kind: &str) -> &'static str {
    match kind {
        "bool" => "true",
        "bool[]" => "[true,false]",
        "str" => "text",
        "str[]" => r#"["a","b"]"#,
        "f32" | "f64" => "0.5",
        "f32[]" | "f64[]" => "[0.5,1.5]",
        _ if kind.ends_with("[]") => "[1,2]",
        _ => "12",
    }
}

fn message(error: &dyn Located, system: Option<&io::Error>) -> String {
    match error.code() {
        "ac-signed" => "the file is signed and its signature was not verified".to_owned(),
        // The other half names an argument of the library.
        "am-unknown-model" => {
            "the file names no known model, and its content has the form of none".to_owned()
        }
        code if is_missing(code, system) => "there is no such file or folder".to_owned(),
        _ => {
            // The library's own names for limits say nothing here; the advice names the option.
            let message = error.message().to_string();
            message.split("; raise `").next().unwrap_or_default().to_owned()
        }
    }
}

fn is_missing(code: &str, system: Option<&io::Error>) -> bool {
    code == "df-io" && system.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The error of a sealed file inside an error of reading.
fn sealed_error(error: &io::Error) -> Option<&apr_sealed::Error> {
    error.get_ref()?.downcast_ref()
}

/// The code of this program for those of `model-file`, which do not say what the command was for.
fn code_here(code: &'static str) -> &'static str {
    match code {
        "mo-read" => CODE_IO,
        "mo-foreign-format" => CODE_FOREIGN_FORMAT,
        "mo-foreign-payload" => CODE_FOREIGN_PAYLOAD,
        "mo-no-model" | "mo-model-dtype" => CODE_NO_PREDICTION,
        "mo-unknown-encoding"
        | "mo-byte-order"
        | "mo-not-representable"
        | "mo-invalid-entry"
        | "mo-entry-type" => CODE_NOT_CARRIED,
        "mo-out-of-memory" => "ac-memory",
        "mo-range" | "mo-no-tensor" => CODE_INTERNAL,
        code => code,
    }
}
