//! Content of a model that another format cannot store, so that nothing is lost silently.

use apr_container::v1::Flags;
use apr_container::{
    Expect, Limits, PayloadLayout, ReadOptions, encode_payload_to_vec, load_from_bytes_with, v2,
};
use apr_models::{AnyModel, Model as _, Tensors};
use model_file::Warning;
use model_file::entries::Entries;

use crate::args::glob::leave_out;
use crate::error::{CODE_NOT_CARRIED, Failure};
use crate::input::{AprV1, Contents, Format, Model, Tensor};
use crate::terminal::human::plural;

/// Advice for tensors whose type only safetensors has.
pub(super) fn without<'t, 'm: 't>(tensors: impl Iterator<Item = &'t Tensor<'m>>) -> String {
    let names: Vec<&str> = tensors.map(|tensor| tensor.name()).collect();
    match names[..] {
        // A single array has nothing that could be left out.
        [""] => "write safetensors, which has the type: --format safetensors".to_owned(),
        _ => format!("{}; or write safetensors: --format safetensors", leave_out("apr convert", &names)),
    }
}

/// Content that a conversion to a format loses, except metadata, and notes about content that the new `metadata` keep.
///
/// # Errors
///
/// If a model cannot be encoded.
pub(crate) fn parts(model: &Model, to: Format, metadata: Option<&Entries>) -> Result<Vec<String>, Failure> {
    let has_metadata = matches!(to, Format::SafeTensors | Format::AprV2 | Format::Gguf);
    match model.contents() {
        Contents::SafeTensors(_) | Contents::Gguf(_) | Contents::Sealed(_) => Ok(Vec::new()),
        Contents::Foreign(file) => {
            let is_kept =
                |place: &String| has_metadata && metadata.is_some_and(|entries| entries.contains_key(place));
            let notes = file.model().notes().iter().filter(|note| !is_kept(&note.place));
            Ok(notes.map(|note| Warning::of_foreign(note).message).collect())
        }
        Contents::AprV1(file) => of_model(file, to),
        Contents::AprV2(file) => {
            let flags = file.index().header().flags();
            let kept = match to {
                Format::AprV2 => v2::WriteOptions::like(file.index()).flags,
                _ => v2::Flags::default(),
            };
            // Always set, and true of safetensors too; and what the types of the tensors say.
            let lost = flags.without(kept).without(v2::Flags::ROW_MAJOR).without(v2::Flags::QUANTIZED);
            Ok(flags_named(lost.names().collect()))
        }
    }
}

fn of_model(file: &AprV1, to: Format) -> Result<Vec<String>, Failure> {
    let info = file.info();
    let mut lost = Vec::new();
    if info.signed {
        lost.push("the signature".to_owned());
    }
    // Set by the writer where they apply.
    let derived = Flags::SIGNED.with(Flags::LICENSED);
    lost.extend(flags_named(Flags(info.flags.0 & !derived.0).names().collect()));
    if info.warnings().any(|warning| warning == apr_container::Warning::ReservedInUse) {
        lost.push("reserved header bytes".to_owned());
    }
    let Some(model) = file.model() else { return Ok(lost) };
    // Of a forest they are no part of the model, as they are of nearest neighbours.
    if let AnyModel::RandomForestClassifier(_) | AnyModel::RandomForestRegressor(_) = model
        && let Some(rows) = model.stored_samples()
    {
        lost.push(format!("the training data ({})", plural(rows as u64, "row")));
    }
    if to != Format::AprV1 {
        lost.extend(not_in_tensors(model, file)?);
    }
    Ok(lost)
}

/// Content that is lost if the model is loaded from its tensors.
///
/// # Errors
///
/// If it cannot become tensors, or cannot be encoded.
fn not_in_tensors(model: &AnyModel, file: &AprV1) -> Result<Option<String>, Failure> {
    if !file.is_fitted() {
        let failure = Failure::new(CODE_NOT_CARRIED, "the model has not been trained, so it has no tensors");
        return Err(failure.help("it can only stay an .apr model: --format apr1"));
    }
    let again = match AnyModel::from_tensors(&model.to_tensors()?) {
        Ok(again) => again,
        Err(error) => return Ok(Some(format!("what would make it this model again: {error}"))),
    };
    let layout = file.layout().unwrap_or_default();
    let is_same = encode_payload_to_vec(model, layout)? == encode_payload_to_vec(&again, layout)?;
    Ok((!is_same).then(|| {
        "parts of the model that its tensors do not hold, such as settings of its training".to_owned()
    }))
}

/// Content of tensors that is missing in the model loaded from them.
///
/// # Errors
///
/// If the model cannot become tensors.
pub(super) fn in_model(tensors: &Tensors, model: &AnyModel) -> Result<Vec<String>, Failure> {
    let again = model.to_tensors()?;
    let lost = tensors.names().filter_map(|name| {
        let (Ok(before), Ok(after)) = (tensors.view(name), again.view(name)) else {
            return Some(format!("tensor {name}"));
        };
        let is_same = before.dtype() == after.dtype()
            && before.shape() == after.shape()
            && before.data() == after.data();
        (!is_same).then(|| format!("tensor {name} as it was"))
    });
    Ok(lost.collect())
}

/// Content of a model that an older layout cannot store, by reading back the written file.
///
/// # Errors
///
/// If the model cannot be encoded.
pub(super) fn in_layout(
    model: &AnyModel,
    file: &[u8],
    layout: PayloadLayout,
) -> Result<Option<String>, Failure> {
    // The newest layout holds everything.
    let newest = PayloadLayout::default();
    if layout == newest {
        return Ok(None);
    }
    let rules = ReadOptions::STRICT.with_limits(Limits::TRUSTED);
    let again = load_from_bytes_with::<AnyModel>(file, Expect::AnyKnown, &rules)?;
    let is_same = encode_payload_to_vec(model, newest)? == encode_payload_to_vec(&again, newest)?;
    Ok((!is_same).then(|| format!("parts of the model that layout {} does not hold", layout.version())))
}

fn flags_named(names: Vec<&str>) -> Vec<String> {
    if names.is_empty() { Vec::new() } else { vec![format!("flags of the header: {}", names.join(", "))] }
}
