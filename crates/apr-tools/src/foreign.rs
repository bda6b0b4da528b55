//! Failures that name the format of a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use foreign_format::Format;
use model_file::{FileKind, Foreign, ModelFormat};

use crate::error::{CODE_FOREIGN_FORMAT, Failure};

/// The kind of a regular file, if it is recognized and is not safetensors; `None` also of what cannot be read.
pub(crate) fn of_file(path: &Path) -> Option<FileKind> {
    let regular = durable_file::open_regular(path, u64::MAX).ok()?;
    let len = regular.len();
    match of_open(&mut regular.into_file(), len).ok()? {
        None if is_openvino_weights(path) => Some(FileKind::Foreign(Format::OpenVinoWeights)),
        kind => kind,
    }
}

/// Whether a file whose content says nothing lies beside the graph of OpenVINO that describes it.
fn is_openvino_weights(path: &Path) -> bool {
    let graph = path.with_extension("xml");
    path.extension().is_some_and(|ending| ending == "bin")
        && graph.is_file()
        && of_file(&graph).and_then(FileKind::foreign) == Some(Format::OpenVino)
}

/// The same of an open file of `len` bytes, whose position moves.
///
/// # Errors
///
/// Those of reading.
pub(crate) fn of_open(file: &mut File, len: u64) -> io::Result<Option<FileKind>> {
    let kind = FileKind::identify(len, |offset, buf| {
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buf)
    })?;
    Ok(recognized(kind))
}

/// The kind, if it is recognized and is not safetensors.
pub(crate) fn recognized(kind: FileKind) -> Option<FileKind> {
    Some(kind).filter(|kind| !matches!(kind, FileKind::Unknown | FileKind::Model(ModelFormat::SafeTensors)))
}

/// Refuses a file of this kind where `expected` is read.
pub(crate) fn refusal(kind: FileKind, expected: &str, path: &Path) -> Failure {
    let what = match kind.foreign() {
        // Its title says what it is not.
        Some(Format::GitLfs | Format::GitLfsConflict) => format!("this is {}", kind.title()),
        _ => format!("this is {}, not {expected}", kind.title()),
    };
    let failure = Failure::new(CODE_FOREIGN_FORMAT, what).in_file(path);
    failure.help(match (kind, kind.foreign()) {
        (FileKind::Model(_), Some(_)) if !kind.fits(path) => {
            "the name promises another format: if the content is what you expect, rename the file, and `apr` reads it"
        }
        (_, Some(format)) => format.help(),
        (FileKind::Model(ModelFormat::Sealed), _) => {
            "`apr inspect FILE` says what opens it; `apr open FILE -o OUT` gives back what is inside"
        }
        _ => "name the file itself: in a folder or a set of shards only safetensors files are read",
    })
}

/// Libraries of boosted trees whose estimators look like those of scikit-learn.
const BOOSTERS: [&str; 3] = ["xgboost", "lightgbm", "catboost"];

/// The class of boosted trees in a pickle, if there is one.
pub(crate) fn boosted_trees(file: &Foreign) -> Option<&str> {
    let library = |class: &str| class.split('.').next().is_some_and(|package| BOOSTERS.contains(&package));
    file.model().classes().iter().map(String::as_str).find(|class| library(class))
}

/// Refuses a file of another program where a model that predicts is needed.
pub(crate) fn no_prediction(file: &Foreign, path: &Path) -> Failure {
    let format = file.model().format();
    let expected = "a model that predicts";
    if let Some(class) = boosted_trees(file) {
        let failure = refusal(FileKind::Foreign(format), expected, path);
        return failure.because(format!("it has an object of the class {class}")).help(
            "the trees are in a format of their library, which `apr` does not read: predict where the model was trained; \
             `apr train gradient-boosting` trains trees for `apr predict`",
        );
    }
    let kind = FileKind::Model(ModelFormat::Foreign(format));
    let failure = refusal(kind, expected, path);
    match format {
        Format::OnnxMl | Format::Pickle => failure,
        _ if !kind.fits(path) => failure,
        _ => failure.help(
            "run it with the program that it was made for: `apr` predicts with models that `apr train` makes, and with those of scikit-learn that \
             apr.sklearn.export writes in Python; `apr convert` copies its tensors, which are no such model",
        ),
    }
}

/// Refuses a file that should be a model.
pub(crate) fn not_a_model(kind: FileKind, path: &Path) -> Failure {
    let expected = if kind.foreign().is_some() { "safetensors, .apr or GGUF" } else { "safetensors" };
    refusal(kind, expected, path)
}
