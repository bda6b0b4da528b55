//! What was read of a file.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use foreign_format::Format;
use read_at::ReadAt;

use crate::error::{Error, ErrorKind};
use crate::names::{Names, matches};
use crate::options::Options;
use crate::tensor::Tensor;

/// The note of a tensor that the options exclude.
const EXCLUDED: &str = "left out as requested";

/// The tensors of a file, and what else it holds.
///
/// The file itself is not kept: reading the bytes of a tensor takes it again.
pub struct Model {
    format: Format,
    tensors: Vec<Tensor>,
    aliases: Vec<Alias>,
    entries: Vec<(String, String)>,
    notes: Vec<Note>,
    companions: Vec<Box<dyn ReadAt + Send + Sync>>,
    classes: Vec<String>,
    names: Names,
    entry_names: BTreeSet<String>,
}

/// A second name of a tensor: both stand for the same elements of the same storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The other name.
    pub name: String,
    /// The name in the list of tensors.
    pub of: String,
}

/// Something about the file that its reader should know: left out, converted, ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The place: the path of keys, the member, the name of the node.
    pub place: String,
    /// What about it.
    pub text: String,
}

impl Model {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            tensors: Vec::new(),
            aliases: Vec::new(),
            entries: Vec::new(),
            notes: Vec::new(),
            companions: Vec::new(),
            classes: Vec::new(),
            names: Names::default(),
            entry_names: BTreeSet::new(),
        }
    }

    /// The format: that of the file, or a kind of it that its content shows, as ONNX-ML.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The tensors, in the order of the file. Among them those that cannot be represented: see [`Tensor::problem`].
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Second names of tensors.
    #[must_use]
    pub fn aliases(&self) -> &[Alias] {
        &self.aliases
    }

    /// Position of a tensor or second name among all names, in the order of the file: second names have no other trace of theirs.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names.position(name)
    }

    /// What is no tensor and has a form in JSON, by its path: names and JSON values.
    #[must_use]
    pub fn entries(&self) -> &[(String, String)] {
        &self.entries
    }

    /// What was left out or changed.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Classes of the objects in a pickle, each once, in the order of the file: first that of the object that the pickle is, if it is one. Some
    /// of the objects may have none, and of many classes the first are listed.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Files beside the file that hold bytes of tensors.
    #[must_use]
    pub fn companions(&self) -> &[Box<dyn ReadAt + Send + Sync>] {
        &self.companions
    }

    /// The first tensor that cannot be represented, as an error.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorUnsupported`], with its name.
    pub fn check(&self) -> Result<(), Error> {
        self.tensors.iter().try_for_each(Tensor::check)
    }

    /// Adds a tensor, unless the options exclude it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DuplicateName`]; [`ErrorKind::Limit`].
    pub(crate) fn add(&mut self, tensor: Tensor, options: &Options) -> Result<(), Error> {
        if options.exclude.iter().any(|pattern| matches(pattern, tensor.name())) {
            self.note(tensor.name(), EXCLUDED);
            return Ok(());
        }
        if self.tensors.len() >= options.limits.tensors {
            return Err(ErrorKind::Limit { limit: "tensors", allowed: options.limits.tensors as u64 }.into());
        }
        self.names.take(tensor.name())?;
        self.tensors.push(tensor);
        Ok(())
    }

    /// Adds a second name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DuplicateName`].
    #[cfg(any(feature = "torch", feature = "hdf5"))]
    pub(crate) fn add_alias(&mut self, name: String, of: String) -> Result<(), Error> {
        self.names.take(&name)?;
        self.aliases.push(Alias { name, of });
        Ok(())
    }

    /// Whether a tensor or alias has this name.
    #[cfg(any(feature = "onnx", feature = "tflite"))]
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Turns tensors that are the same view of the same storage, with the same type and shape, into aliases. The alphabetically first name stays, but
    /// that of an output layer: programs tie it to the embedding when they load a model, and look for the embedding.
    #[cfg(any(feature = "torch", feature = "onnx", feature = "tflite"))]
    pub(crate) fn tie(&mut self) {
        let mut order: Vec<usize> = (0..self.tensors.len()).collect();
        let tensors = &self.tensors;
        let is_output = |name: &str| name == "lm_head.weight" || name.ends_with(".lm_head.weight");
        let key = |at: &usize| {
            tensors.get(*at).map(|tensor| (tensor.identity(), is_output(tensor.name()), tensor.name()))
        };
        order.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        let mut first: Option<&Tensor> = None;
        let mut tied = Vec::new();
        for at in order {
            let Some(tensor) = tensors.get(at) else { continue };
            match first {
                Some(first) if tensor.identity().is_some() && tensor.identity() == first.identity() => {
                    tied.push((at, Alias { name: tensor.name().into(), of: first.name().into() }));
                }
                _ => first = Some(tensor),
            }
        }
        tied.sort_unstable_by_key(|(at, _)| *at);
        let mut next = tied.iter().map(|(at, _)| *at).peekable();
        let mut at = 0;
        self.tensors.retain(|_| {
            let is_tied = next.next_if_eq(&at).is_some();
            at += 1;
            !is_tied
        });
        self.aliases.extend(tied.into_iter().map(|(_, alias)| alias));
    }

    /// Adds what is no tensor, as JSON.
    pub(crate) fn add_entry(&mut self, name: impl Into<String>, json: impl Into<String>) {
        let name = name.into();
        if self.entry_names.insert(name.clone()) {
            self.entries.push((name, json.into()));
        } else {
            self.note(name, "left out: something else that is no tensor has the same path");
        }
    }

    /// Adds the class of an object.
    #[cfg(feature = "torch")]
    pub(crate) fn add_class(&mut self, class: String) {
        const MAX_CLASSES: usize = 64;
        if self.classes.len() < MAX_CLASSES && !self.classes.contains(&class) {
            self.classes.push(class);
        }
    }

    /// Whether a tensor was left out because the options say so.
    #[cfg(feature = "joblib")]
    pub(crate) fn has_excluded(&self) -> bool {
        self.notes.iter().any(|note| note.text == EXCLUDED)
    }

    /// Narrows the format to a kind of it.
    #[cfg(feature = "onnx")]
    pub(crate) const fn set_format(&mut self, format: Format) {
        self.format = format;
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.notes.push(Note { place: place.into(), text: text.into() });
    }

    /// What was read of a file that another contains as it is.
    #[cfg(feature = "torch")]
    pub(crate) fn within(mut self, format: Format, range: &core::ops::Range<u64>) -> Self {
        self.format = format;
        self.tensors = self.tensors.into_iter().map(|tensor| tensor.within(range)).collect();
        self
    }

    /// Adds what was read of another file, which becomes a companion.
    #[cfg(any(feature = "torch", feature = "keras"))]
    pub(crate) fn absorb(
        &mut self,
        path: &str,
        other: Self,
        file: Box<dyn ReadAt + Send + Sync>,
    ) -> Result<(), Error> {
        let home = self.add_companion(file);
        self.companions.extend(other.companions);
        for tensor in other.tensors {
            self.names.take(tensor.name())?;
            self.tensors.push(tensor.moved(home));
        }
        for alias in other.aliases {
            self.add_alias(alias.name, alias.of)?;
        }
        for (name, json) in other.entries {
            self.add_entry(name, json);
        }
        self.notes.extend(
            other
                .notes
                .into_iter()
                .map(|note| Note { place: alloc::format!("{path}: {}", note.place), text: note.text }),
        );
        Ok(())
    }

    /// Adds a file with bytes of tensors, and returns its number for [`crate::tensor::Place::Stored`].
    #[cfg(any(feature = "torch", feature = "onnx", feature = "tensorflow", feature = "keras"))]
    pub(crate) fn add_companion(&mut self, source: Box<dyn ReadAt + Send + Sync>) -> usize {
        self.companions.push(source);
        self.companions.len()
    }
}

/// A number as JSON. What JSON has no number for is a string: `"NaN"`, `"Infinity"`, `"-Infinity"`.
#[cfg(any(feature = "onnx", feature = "tflite", feature = "flax"))]
pub(crate) fn json_number(value: impl Into<f64> + fmt::Display + Copy) -> String {
    let float: f64 = value.into();
    if float.is_finite() {
        alloc::format!("{value}")
    } else if float.is_nan() {
        "\"NaN\"".into()
    } else if float > 0.0 {
        "\"Infinity\"".into()
    } else {
        "\"-Infinity\"".into()
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("format", &self.format)
            .field("tensors", &self.tensors)
            .field("aliases", &self.aliases)
            .field("entries", &self.entries)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_entry_of_a_path_is_noted() {
        let mut model = Model::new(Format::Hdf5);
        for json in ["1", "2"] {
            model.add_entry("a.b", json);
        }
        assert_eq!(model.entries(), [("a.b".into(), "1".into())]);
        assert_eq!(model.notes().first().map(|note| note.place.as_str()), Some("a.b"));
    }
}
