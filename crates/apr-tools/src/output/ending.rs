//! The format of an output by its file extension.

use std::ffi::OsStr;
use std::path::Path;

use foreign_format::Format as Foreign;

use crate::error::{CODE_OUTPUT_FORMAT, Failure};
use crate::input::Format;
use crate::output::Destination;
use crate::terminal::escape;

/// An ending of model files that are read and written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    SafeTensors,
    Apr,
    Gguf,
    Npz,
    Npy,
}

/// Endings of other programs' models: a file of ours so named is worth a warning.
const OTHERS: [&str; 9] = ["onnx", "pt", "pth", "ckpt", "h5", "hdf5", "keras", "tflite", "mlmodel"];

/// Other endings under which models are published, also used for other content.
const OF_MODELS: [&str; 6] = ["sealed", "bin", "pkl", "pickle", "joblib", "msgpack"];

/// Whether a path has the ending of a model file, of this program or another.
pub(crate) fn names_model(path: &Path) -> bool {
    let is_other =
        |ending: &OsStr| OTHERS.iter().chain(&OF_MODELS).any(|other| ending.eq_ignore_ascii_case(other));
    Ending::of_name(path).is_some() || path.extension().is_some_and(is_other)
}

impl Ending {
    const ALL: [Self; 5] = [Self::SafeTensors, Self::Apr, Self::Gguf, Self::Npz, Self::Npy];

    /// Without the dot.
    const fn text(self) -> &'static str {
        match self {
            Self::SafeTensors => "safetensors",
            Self::Apr => "apr",
            Self::Gguf => "gguf",
            Self::Npz => "npz",
            Self::Npy => "npy",
        }
    }

    /// The one that files of this format have, or are converted to.
    const fn of_format(format: Format) -> Self {
        match format {
            Format::Foreign(Foreign::Npz) => Self::Npz,
            Format::Foreign(Foreign::Npy) => Self::Npy,
            // No model is written as a sealed file.
            Format::SafeTensors | Format::Sealed | Format::Foreign(_) => Self::SafeTensors,
            Format::AprV1 | Format::AprV2 => Self::Apr,
            Format::Gguf => Self::Gguf,
        }
    }

    fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        Self::ALL.into_iter().find(|ending| extension.eq_ignore_ascii_case(ending.text()))
    }

    /// The ending of a new file's name; `None` if it has none, and for standard output.
    ///
    /// # Errors
    ///
    /// If the name has another ending: a model of one format would be taken for one of another.
    pub(crate) fn of_output(destination: &Destination) -> Result<Option<Self>, Failure> {
        match destination {
            Destination::Stdout => Ok(None),
            destination => match (Self::of_name(destination.label()), destination.label().extension()) {
                (None, Some(extension)) => {
                    let extension = escape::path(Path::new(extension)).to_string();
                    let what = format!("apr cannot write .{extension} files");
                    Err(Failure::new(CODE_OUTPUT_FORMAT, what).in_file(destination.label()))
                }
                (ending, _) => Ok(ending),
            },
        }
    }

    /// Refuses a name with an ending of another format, for a command that writes `format` and nothing else.
    ///
    /// # Errors
    ///
    /// If the name has another ending.
    pub(crate) fn check_output(destination: &Destination, format: Format) -> Result<(), Failure> {
        let right = Self::of_format(format);
        let help = format!("name the output with the ending .{}, or without one", right.text());
        match Self::of_output(destination) {
            Ok(None) => Ok(()),
            Ok(Some(ending)) if ending == right => Ok(()),
            Ok(Some(ending)) => {
                let what = format!("this would write {} under the ending .{}", format.title(), ending.text());
                let failure = Failure::new(CODE_OUTPUT_FORMAT, what).in_file(destination.label());
                Err(failure.help(help))
            }
            Err(failure) => Err(failure.help(help)),
        }
    }

    /// A sentence about a file of this format whose name says another one.
    pub(crate) fn disagreement(format: Format, path: &Path) -> Option<String> {
        let extension = path.extension()?;
        let is_own = !matches!(format, Format::Foreign(_));
        let is_other = is_own && OTHERS.iter().any(|other| extension.eq_ignore_ascii_case(other))
            || Self::of_name(path).is_some_and(|ending| ending != Self::of_format(format));
        let extension = extension.to_string_lossy();
        (is_other && path.is_file())
            .then(|| format!("the name ends in .{extension}, but the content is {}", format.title()))
    }
}
