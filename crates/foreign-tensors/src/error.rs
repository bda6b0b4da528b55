//! Kinds of errors.

use alloc::string::String;

const DOWNLOAD: &str =
    "the file is damaged or cut short: fetch it again and compare its SHA-256 with the publisher's";
const EXCLUDE: &str = "leave the tensor out (`apr convert --exclude NAME`; `exclude` in Python), or save it in another form with the program that wrote the file";

located_error::errors! {
    /// Why a file, or one of its tensors, cannot be read. Offsets count from the start of the file.
    pub struct Error caused by located_error::AnyCause;

    /// What was wrong. Quantities are bytes unless the field says otherwise.
    #[derive(Debug)]
    pub enum ErrorKind {
        /// The file is of no format that this library reads, or the reader of its format is not compiled in.
        Format {} = "ft-format" (Unsupported), "no reader for this format" => "convert the file with the program that wrote it";
        /// The file does not have the structure of its format.
        Malformed {
            /// What is wrong.
            problem: &'static str,
        } = "ft-malformed" (Invalid), "{problem}" => DOWNLOAD;
        /// The file has a feature of its format that this library does not read.
        Unsupported {
            /// The feature.
            feature: &'static str,
        } = "ft-unsupported" (Unsupported), "{feature} cannot be read" => "save the model in another form with the program that wrote the file";
        /// The tensor is of a type, or stored in a way, that no tensor here can represent. Reading it as something else would be wrong.
        TensorUnsupported {
            /// The type or the way.
            what: String,
        } = "ft-tensor-unsupported" (Unsupported), "{what} cannot be represented" => EXCLUDE;
        /// The pickle names or calls something that no tensor needs. Loading it could run code.
        Callable {
            /// Module and name.
            name: String,
        } = "ft-callable" (Unsupported), "the pickle uses {name}, which no tensor needs" => "scan the file with `apr scan` before any program loads it";
        /// The pickle is an object whose class keeps what it learned in another form than arrays, as boosted trees in the format of their library, or
        /// that learned nothing yet.
        NoArrays {
            /// Module and name of the class.
            class: String,
        } = "ft-no-arrays" (Unsupported), "the pickle is an object of the class {class} without arrays"
            => "use it with the library that wrote it, after `apr scan FILE`: loading a pickle can run code";
        /// A tensor reaches beyond the bytes it is a view of.
        View {
            /// What is wrong.
            problem: &'static str,
        } = "ft-view" (Invalid), "invalid view: {problem}" => DOWNLOAD;
        /// Two tensors have the same name once the parts of nested names are joined.
        DuplicateName {} = "ft-duplicate-name" (Invalid), "two tensors have this name" => "choose one part of the file (`apr convert --object NAME`; `object` in Python)";
        /// The nested object that was asked for is not in the file.
        NoObject {
            /// The objects that the file has.
            objects: String,
        } = "ft-key" (Usage), "no such object, there are: {objects}" => "name one of these objects";
        /// A companion file is named by a path that is not allowed: absolute, outside the folder of the model, or through a link.
        CompanionPath {
            /// The rule that it breaks.
            problem: &'static str,
        } = "ft-companion-path" (Invalid), "path of external data is refused: {problem}" => "put the file into the folder of the model and name it by a relative path";
        /// A companion file cannot be opened.
        CompanionMissing {} = "ft-companion-missing" (Io), "external data cannot be opened" => "put the files of the model into one folder";
        /// A limit was reached.
        Limit {
            /// The field of `Limits`.
            limit: &'static str,
            /// Its value.
            allowed: u64,
        } = "ft-limit" (Invalid), "more than the limit `{limit}` of {allowed}" => "if you trust the file, raise the limit (`Limits` in Rust), or save it in another form with the program that wrote it";
        /// Memory for a tensor could not be allocated.
        OutOfMemory {
            /// Bytes asked for.
            needed: u64,
        } = "ft-memory" (Io), "no memory for {needed} bytes" => located_error::remedy::MEMORY;
        /// Two programs may see two different archives.
        Archive {
            /// The contradiction.
            problem: zip_core::Problem,
        } = "ft-archive" (Invalid) if "numpy", "the archive is ambiguous: {problem}" => DOWNLOAD;
        /// The source failed.
        Read {} = "ft-read" (Io), "cannot read the file" => "check that the file can be read";
    }

    wrapped {
        /// A pickle cannot be followed.
        Pickle(pickle_core::Error) if "torch";
        /// An archive cannot be read.
        Zip(zip_core::Error) if "numpy";
    }
}

impl Error {
    /// Of a malformed file.
    pub(crate) fn malformed(problem: &'static str) -> Self {
        ErrorKind::Malformed { problem }.into()
    }

    /// Of a feature of the format.
    pub(crate) fn unsupported(feature: &'static str) -> Self {
        ErrorKind::Unsupported { feature }.into()
    }

    /// Of a tensor.
    pub(crate) fn tensor_unsupported(what: impl Into<String>) -> Self {
        ErrorKind::TensorUnsupported { what: what.into() }.into()
    }

    /// Of a companion that the operating system does not open.
    #[cfg(feature = "std")]
    pub(crate) fn companion_missing(
        path: &str,
        cause: impl core::error::Error + Send + Sync + 'static,
    ) -> Self {
        let mut error = Self::from(ErrorKind::CompanionMissing {}).of(located_error::Subject::key(path));
        error.0.cause = Some(alloc::boxed::Box::new(cause));
        error
    }

    /// Of a view.
    pub(crate) fn view(problem: &'static str) -> Self {
        ErrorKind::View { problem }.into()
    }
}

#[cfg(feature = "torch")]
impl From<json_scan::Error> for Error {
    fn from(cause: json_scan::Error) -> Self {
        let mut error = Self::malformed("invalid JSON");
        error.0.cause = Some(alloc::boxed::Box::new(cause));
        error
    }
}

impl From<read_at::Error> for Error {
    fn from(cause: read_at::Error) -> Self {
        let mut error = Self::from(ErrorKind::Read {});
        error.0.cause = Some(alloc::boxed::Box::new(cause));
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(located_error::problems(ErrorKind::TABLE, "ft-"), [""; 0]);
    }
}
