//! Kinds of findings.

use alloc::string::String;

const DANGEROUS: &str = "do not load this file";
const UNKNOWN: &str =
    "load it only if you trust its author; ask for a file of tensors alone, for example safetensors";
const NAMED: &str = "read it before you let a program run it; `--baseline` accepts a reviewed file";
const TRUST: &str = "load it without trusting remote code, or read the code first";
const UNOPENED: &str = "unpack it where you trust it, and scan what is in it; limits are options";
const UNPACKED: &str =
    "do not unpack it where other files are: unpack it into an empty folder, and scan that";
const DAMAGED: &str = "do not load this file: fetch it again and compare its SHA-256 with the publisher's";

/// What loading a file would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Only names that files of tensors need, used as their writers use them.
    Safe,
    /// Something that files of tensors do not need.
    Suspicious,
    /// The stream breaks off or cannot be followed to its end.
    Malformed,
    /// Code is run.
    Dangerous,
}

impl Verdict {
    /// The word in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Suspicious => "suspicious",
            Self::Malformed => "malformed",
            Self::Dangerous => "dangerous",
        }
    }
}

located_error::kinds! {
    /// What was found.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Problem {
        /// A name that runs code, opens files or reaches other names. It is imported when the file is loaded, and usually called.
        DangerousName {
            /// The module, as Python 3 names it.
            module: String,
            /// The name in it.
            name: String,
            /// What it does.
            reason: &'static str,
        } = "sc-dangerous-name" (Verification), "{module}.{name}: {reason}" => DANGEROUS;
        /// A path of attributes from a known module, which reaches any other module: no program that writes pickles needs that.
        AttributePath {
            /// The module, as Python 3 names it.
            module: String,
            /// The path.
            name: String,
        } = "sc-attribute-path" (Verification), "{module}.{name}: a path to other names" => DANGEROUS;
        /// The name that is resolved is the result of a call, so that it cannot be known without running the call.
        ComputedName {} = "sc-computed-name" (Verification), "a computed name is resolved" => DANGEROUS;
        /// What is called is the result of another call, so that it cannot be known without running that call.
        ComputedCall {} = "sc-computed-call" (Verification), "the result of a call is called" => DANGEROUS;
        /// Attributes of a function, class or module are replaced, which changes what other code does.
        StateOfName {} = "sc-state-of-name" (Verification), "attributes of a function or class are replaced" => DANGEROUS;
        /// A name that is not among those that files of tensors need. Its module is imported when the file is loaded.
        UnknownName {
            /// The module, as Python 3 names it.
            module: String,
            /// The name in it.
            name: String,
        } = "sc-unknown-name" (Verification), "{module}.{name}: unknown name" => UNKNOWN;
        /// A known name is used in another way than the program that writes it does, or lies in another place.
        UnexpectedUse {
            /// The module, as Python 3 names it.
            module: String,
            /// The name in it.
            name: String,
        } = "sc-unexpected-use" (Verification), "{module}.{name}: unexpected use" => UNKNOWN;
        /// State is set, or items are added, where no program that writes pickles does it: attributes that shadow methods, hooks, a state that
        /// is not a dict.
        UnexpectedState {
            /// A colon, the class and the attribute; empty if there is none.
            what: String,
        } = "sc-unexpected-state" (Verification), "unexpected change of an object{what}" => UNKNOWN;
        /// A code of the extension registry, whose name is known to the loading process alone.
        Extension {
            /// The code.
            code: u32,
        } = "sc-extension" (Verification), "extension code {code}" => UNKNOWN;
        /// A persistent id that is none of a PyTorch storage: what it means is decided by the loader.
        PersistentId {} = "sc-persistent-id" (Verification), "unknown persistent id" => UNKNOWN;
        /// A buffer that is not in the file.
        OutOfBand {} = "sc-out-of-band" (Verification), "an out-of-band buffer is taken" => UNKNOWN;
        /// A frame and the opcodes disagree: the file is another program for `pickle.load` than for `pickle.loads`.
        FrameMismatch {} = "sc-frame" (Verification), "frames and opcodes disagree" => UNKNOWN;
        /// A pickle follows the first one. A program that loads again from the same file runs it.
        SeveralPickles {} = "sc-several-pickles" (Verification), "another pickle follows" => UNKNOWN;
        /// Bytes after the last pickle, of which nothing is known.
        TrailingBytes {
            /// How many.
            len: u64,
        } = "sc-trailing-bytes" (Verification), "{len} bytes after the last pickle" => UNKNOWN;
        /// A pickle that PyTorch does not read, beside the one that it reads.
        SidePickle {} = "sc-side-pickle" (Verification), "another pickle in the archive" => UNKNOWN;
        /// A nested file that is too deep or not stored as bytes.
        NestedUnread {} = "sc-nested" (Verification), "a nested pickle cannot be read" => UNKNOWN;
        /// Bytes in a pickle are a pickle that is not safe. Nothing in the file loads it; a program that uses the file may.
        HiddenPickle {
            /// The verdict for it.
            verdict: &'static str,
        } = "sc-hidden-pickle" (Verification), "bytes that are a pickle: {verdict}" => UNKNOWN;
        /// The stream cannot be followed. A loader has executed what comes before.
        Malformed {
            /// Code of the error.
            cause: &'static str,
        } = "sc-malformed" (Verification), "the stream cannot be followed ({cause})" => DAMAGED;
        /// A part of the file was not read: it is encrypted, in an unknown format, nested too deep, or larger than a limit.
        Unopened {
            /// Why.
            reason: &'static str,
        } = "sc-unopened" (Verification), "not opened: {reason}" => UNOPENED;
        /// A layer of Keras that holds Python code or calls functions by name.
        KerasLayer {
            /// The class.
            class: String,
        } = "sc-keras-layer" (Verification), "{class}: a layer with code of its own" => UNKNOWN;
        /// The configuration of Keras names a module that is not of Keras: it is imported when the model is loaded.
        KerasModule {
            /// The module.
            module: String,
        } = "sc-keras-module" (Verification), "{module}: a module outside of Keras" => UNKNOWN;
        /// A class, function or method in the configuration of Keras that is not among those that models are made of.
        KerasName {
            /// What is named.
            name: String,
        } = "sc-keras-name" (Verification), "{name}: not among the classes and functions that Keras models are made of" => UNKNOWN;
        /// The value of a setting is a path or an address, from which a layer reads when the model is loaded.
        PathSetting {
            /// The setting.
            key: String,
        } = "sc-path-setting" (Verification), "`{key}` is a path or an address, which is read when the model is loaded" => UNKNOWN;
        /// The configuration of Keras names a module or function that runs code, opens files or switches the checks of Keras off.
        KerasCode {
            /// What is named.
            name: String,
        } = "sc-keras-code" (Verification), "{name}: named by the configuration of Keras" => DANGEROUS;
        /// An operation of TensorFlow that reads files of the machine when the model is loaded or used.
        GraphFiles {
            /// The operation.
            operation: String,
        } = "sc-graph-files" (Verification), "{operation}: an operation that reads files" => UNKNOWN;
        /// An operation of TensorFlow that writes files or calls Python when the model is loaded or used.
        GraphCode {
            /// The operation.
            operation: String,
        } = "sc-graph-code" (Verification), "{operation}: an operation that writes files or calls Python" => DANGEROUS;
        /// An operation of TensorFlow that is not among those that only compute.
        GraphOperation {
            /// The operation.
            operation: String,
        } = "sc-graph-operation" (Verification), "{operation}: not among the operations of TensorFlow that only compute" => UNKNOWN;
        /// An operation of TensorFlow that saves, restores or fills a table, with a path that is in the model instead of one that the program gives.
        GraphPath {
            /// The operation.
            operation: String,
        } = "sc-graph-path" (Verification), "{operation}: its path is in the model" => UNKNOWN;
        /// An operation of TFLite, or a domain of ONNX, that needs a library of its own.
        CustomOperation {
            /// The operation or the domain.
            operation: String,
        } = "sc-custom-operation" (Verification), "{operation}: an operation of another library" => UNKNOWN;
        /// Data in another file that is not beside the model, which a reader takes for data of the model.
        ExternalData {
            /// The file, as far as it is known.
            location: String,
        } = "sc-external-data" (Verification), "data in another file: {location}" => UNKNOWN;
        /// A program of TorchScript calls an operation that opens files, or one of a library that is not PyTorch.
        ScriptOperation {
            /// The operation.
            operation: String,
        } = "sc-script-operation" (Verification), "{operation}: opens files or is not of PyTorch" => UNKNOWN;
        /// The configuration names classes in Python files of the repository, which loaders run that are told to trust remote code.
        RemoteCode {} = "sc-remote-code" (Verification), "`auto_map` names Python code of the repository" => TRUST;
        /// A setting names code that a loader imports, downloads or installs.
        CodeSetting {
            /// The setting.
            key: String,
        } = "sc-code-setting" (Verification), "`{key}` names code that a loader imports" => TRUST;
        /// A configuration names a class or function that a loader imports and calls.
        ConfigTarget {
            /// What is named.
            name: String,
        } = "sc-config-target" (Verification), "{name}: imported and called by loaders of the configuration" => TRUST;
        /// A configuration names a class or function that runs code or opens files, and a loader calls it.
        ConfigCode {
            /// What is named.
            name: String,
        } = "sc-config-code" (Verification), "{name}: runs code or opens files, and loaders of the configuration call it" => DANGEROUS;
        /// A tag of YAML that makes a reader create objects, call functions or read files.
        YamlTag {
            /// The tag.
            tag: String,
        } = "sc-yaml-tag" (Verification), "{tag}: a tag of YAML that names code" => TRUST;
        /// A Python file beside the model.
        PythonFile {} = "sc-python-file" (Verification), "Python code" => NAMED;
        /// A file beside the model, or a member of an archive, that is run because of its name: a library, a program, a script, a package.
        CodeFile {
            /// What it is.
            kind: &'static str,
        } = "sc-code-file" (Verification), "{kind}" => NAMED;
        /// A package of PyTorch brings Python code: `torch.package.PackageImporter` runs it when a pickle of the package names it.
        PackageCode {} = "sc-package-code" (Verification), "a package of PyTorch with Python code" => DANGEROUS;
        /// A tar archive holds what no archive of a model needs: readers take its members for different files, or write outside of the folder.
        Tar {
            /// What it is.
            reason: &'static str,
        } = "sc-tar" (Verification), "{reason} in a tar archive" => UNPACKED;
        /// A chat template, which a program that formats messages runs, in a sandbox or not.
        ChatTemplate {} = "sc-chat-template" (Verification), "a chat template" => NAMED;
        /// A chat template uses a filter, test, function, method or statement that is not among those that templates of models need.
        TemplateName {
            /// What is used.
            name: String,
        } = "sc-template-name" (Verification), "a chat template that uses {name}" => TRUST;
        /// A chat template that uses names of Python's insides, `attr`, or an attribute whose name it computes: that is how a template leaves its sandbox.
        TemplateCode {} = "sc-template-code" (Verification), "a chat template that reaches the insides of Python" => TRUST;
    }
}

impl Problem {
    /// Whether it is about a stream instead of an opcode.
    pub(crate) const fn is_of_stream(&self) -> bool {
        matches!(
            self,
            Self::Malformed { .. }
                | Self::TrailingBytes { .. }
                | Self::SeveralPickles {}
                | Self::SidePickle {}
        )
    }

    /// Module and name, if it is about a name.
    #[must_use]
    pub fn name(&self) -> Option<(&str, &str)> {
        match self {
            Self::DangerousName { module, name, .. }
            | Self::AttributePath { module, name }
            | Self::UnknownName { module, name }
            | Self::UnexpectedUse { module, name } => Some((module, name)),
            _ => None,
        }
    }

    /// The verdict for a file with this finding alone.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::DangerousName { .. }
            | Self::AttributePath { .. }
            | Self::ComputedName {}
            | Self::ComputedCall {}
            | Self::StateOfName {}
            | Self::KerasCode { .. }
            | Self::ConfigCode { .. }
            | Self::GraphCode { .. }
            | Self::PackageCode {} => Verdict::Dangerous,
            Self::ChatTemplate {} => Verdict::Safe,
            Self::Malformed { .. } => Verdict::Malformed,
            _ => Verdict::Suspicious,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(located_error::problems(Problem::TABLE, "sc-"), [""; 0]);
    }
}
