//! Programs that run a GGUF file, by its architecture.

use gguf_core::Header;
use model_file::entries::{ARCHITECTURE, UNKNOWN_ARCHITECTURE};

/// What will and what will not run a GGUF file of this architecture that holds this model (`apr.model`); `None` if
/// it names an architecture.
pub(crate) fn note_on_architecture(architecture: Option<&str>, model: Option<&str>) -> Option<String> {
    if architecture.is_some_and(|name| name != UNKNOWN_ARCHITECTURE) {
        return None;
    }
    let predicts = model.is_some_and(|name| apr_models::AnyModel::NAMES.contains(&name));
    let and = if predicts { " and `apr predict` predicts with it" } else { "" };
    Some(format!(
        "the file names no architecture ({ARCHITECTURE}): programs that read GGUF find the tensors{and}, but llama.cpp cannot run the model"
    ))
}

/// The same of a file with this header. The later files of a model in several have no architecture of their own.
pub(crate) fn note_on_header(header: &Header<'_>) -> Option<String> {
    let is_later = header.get("split.no").and_then(|value| value.to_u64()).is_some_and(|number| number > 0);
    let text = |key: &str| header.get(key).and_then(|value| value.as_str());
    note_on_architecture(text(ARCHITECTURE), text(apr_models::MODEL_KEY)).filter(|_| !is_later)
}
