//! Adapters of PEFT as GGUF files.

use std::path::Path;

use hf_gguf::{Conversion, Json, Options, OutputType, Target, Texts};

use super::folder::{ADAPTER, CONFIG, Folder, Place};
use super::new_model::NewModel;
use super::split::Limits;
use super::{Job, LanguageArgs, tables};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{Format, Rules};
use crate::output::Output;
use crate::terminal::Console;

/// Types of the new file, by name.
const TYPES: [(&str, Target); 5] = [
    ("f32", Target::Type(OutputType::F32)),
    ("f16", Target::Type(OutputType::F16)),
    ("bf16", Target::Type(OutputType::Bf16)),
    ("q8_0", Target::Type(OutputType::Q8_0)),
    ("auto", Target::Auto),
];

/// Converts an adapter.
///
/// # Errors
///
/// If the folder has no adapter that is converted, that of the model is not named or has no configuration, a file cannot be read, or the
/// output cannot be written.
pub(super) fn run(
    args: &LanguageArgs,
    place: Place,
    input: &Path,
    rules: &Rules,
    (output, format): (Output, Format),
    console: &mut Console,
) -> Result<Exit, Failure> {
    args.refuse_for_adapters()?;
    let in_folder = |failure: Failure| failure.in_file(input);
    let type_name = args.type_name.as_deref().unwrap_or("f32");
    let target = TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(type_name));
    let Some((_, target)) = target else {
        let what = "the type of an adapter is f32, f16, bf16, q8_0 or auto";
        return Err(Failure::new(CODE_USAGE, what));
    };
    let has_own = place.has(CONFIG);
    let folder = Folder::open(place, ADAPTER, rules).map_err(in_folder)?;
    let base = match &args.base {
        Some(path) => base_texts(path)?,
        None if has_own => folder.texts.clone(),
        None => return Err(in_folder(unknown_base(&folder.texts))),
    };
    let tensors = folder.tensors()?;
    let mut options = Options::default();
    options.target = *target;
    args.set_authorship(&mut options)?;
    let conversion =
        Conversion::of_adapter(&folder.texts, &base, &folder.parts, &tables(&tensors)?, &options);
    let conversion =
        conversion.map_err(Failure::from).map_err(|failure| args.in_metadata(failure)).map_err(in_folder)?;
    let model = NewModel::converted(&conversion)?;
    let job = Job {
        input,
        folder: &folder,
        tensors: &tensors,
        limits: Limits::new(None, None, false),
        recorded: (!args.no_provenance).then(|| args.options_text("f32")),
        importance: None,
        output,
    };
    job.write_as(format, model, rules, console)
}

impl LanguageArgs {
    /// Refuses options that adapters do not have.
    fn refuse_for_adapters(&self) -> Result<(), Failure> {
        let given = [
            ("imatrix", self.imatrix.is_some()),
            ("pre", self.pre.is_some()),
            ("split-max-tensors", self.split_max_tensors.is_some()),
            ("split-max-size", self.split_max_size.is_some()),
            ("split-only", self.split_only.is_some()),
            ("no-tensor-first-split", self.no_tensor_first_split),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(Failure::new(
                CODE_USAGE,
                format!("--{name} is for models, and the folder has an adapter"),
            )),
            None => Ok(()),
        }
    }
}

/// The texts of the model that count: its configuration.
fn base_texts(path: &Path) -> Result<Texts, Failure> {
    let place = Place::of(path)?.filter(|place| place.has(CONFIG));
    let Some(place) = place else {
        let what = "--base names no folder or repository with config.json";
        return Err(Failure::new(CODE_USAGE, what).in_file(path));
    };
    let mut texts = Texts::new("");
    texts.insert(CONFIG, place.read(CONFIG, Texts::max_len(CONFIG).unwrap_or(0))?);
    Ok(texts)
}

/// Of an adapter without `--base`: says which model it names.
fn unknown_base(texts: &Texts) -> Failure {
    let config = texts.get(ADAPTER).and_then(|bytes| Json::from_bytes(ADAPTER, bytes).ok());
    let name =
        config.as_ref().and_then(|config| config.get("base_model_name_or_path")).and_then(Json::as_str);
    let what = match name.filter(|name| !name.is_empty()) {
        Some(name) => format!(
            "the adapter needs the config.json of its model, which it calls `{}`",
            crate::terminal::escape::cut(name, 100)
        ),
        None => "the adapter needs the config.json of its model, which it does not name".to_owned(),
    };
    Failure::new(CODE_USAGE, what).help("give the folder of the model, or hf://ORG/NAME, with --base")
}
