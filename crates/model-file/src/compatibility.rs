//! Whether a model file may replace another one: programs that read the old file, or call its model, go on with the new one.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
#[cfg(feature = "categories")]
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use apr_models::{
    Accepts, InputKind, Label, Model as _, OutputKind, PredictionKind, Predictions, Samples, TermWeights,
};
use read_at::ReadAt;

#[cfg(feature = "categories")]
use crate::categories::{Categories, UnknownCategory};
use crate::description::TensorDescription;
use crate::error::{Error, ErrorKind};
use crate::model_file::ModelFile;
use crate::named_model::NamedModel;

/// Most columns of a transformed sample that are counted.
const MAX_FEATURES: usize = 1 << 20;

/// What one difference means for those who use the old file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Effect {
    /// Nothing breaks.
    Note,
    /// Callers that pass features by their position break; callers that name them do not.
    BreaksByPosition,
    /// Callers or readers break, or get something else without noticing.
    Breaks,
}

/// One difference between two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Stable identifier, for example `feature-added`.
    pub kind: &'static str,
    /// What it means.
    pub effect: Effect,
    /// The difference in words.
    pub message: String,
}

/// How a model is called and what it returns.
///
/// ```
/// use model_file::{Effect, Interface};
///
/// let old = Interface { features: Some(vec!["age".into(), "size".into()]), ..Interface::default() };
/// let new = Interface { features: Some(vec!["size".into(), "age".into()]), ..Interface::default() };
/// let found = old.differences(&new);
/// assert_eq!((found[0].kind, found[0].effect), ("feature-order", Effect::BreaksByPosition));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// Type of the model.
    pub model: String,
    /// Type of the samples; `None` of a model that takes none.
    pub input: Option<InputKind>,
    /// Which values features may have; `None` of finite values alone.
    pub accepts: Option<Accepts>,
    /// Features of a sample, where the model knows it.
    pub n_features: Option<usize>,
    /// The names of the features, if the file has them.
    pub features: Option<Vec<String>>,
    /// What a prediction is.
    pub prediction: Option<PredictionKind>,
    /// The outputs that the model has.
    pub outputs: Vec<OutputKind>,
    /// The labels of the classes in their order.
    pub classes: Option<Vec<String>>,
    /// What the labels are: `text`, `integer`, `boolean` or `number`, where all are the same.
    pub class_type: Option<&'static str>,
    /// Values of a prediction that is a row.
    pub n_columns: Option<usize>,
    /// The terms of a prediction that weights terms, in the order of its columns.
    pub terms: Option<Vec<String>>,
    /// What is predicted, if the file names it.
    pub target: Option<String>,
    /// The categories of its features, if the file has them.
    #[cfg(feature = "categories")]
    pub categories: Option<Categories>,
}

impl Interface {
    /// That of a loaded model.
    #[must_use]
    pub fn of(named: &NamedModel) -> Self {
        let capabilities = named.model.capabilities();
        let label = |class| match named.label(class) {
            Some(Label::Text(text)) => text.to_owned(),
            Some(Label::Integer(number)) => number.to_string(),
            Some(Label::Boolean(is_true)) => is_true.to_string(),
            Some(Label::Number(number)) => number.to_string(),
            _ => class.to_string(),
        };
        let class_type = |class| match named.label(class) {
            Some(Label::Text(_)) => "text",
            Some(Label::Boolean(_)) => "boolean",
            Some(Label::Number(_)) => "number",
            _ => "integer",
        };
        let accepts = capabilities.accepts();
        let classes = named.model.class_numbers();
        Self {
            model: named.model.name().to_owned(),
            input: capabilities.input(),
            accepts: (accepts != Accepts::Finite).then_some(accepts),
            n_features: named.n_features(),
            features: named.features.clone(),
            prediction: capabilities.prediction(),
            outputs: OutputKind::ALL.into_iter().filter(|&output| capabilities.supports(output)).collect(),
            class_type: classes.as_ref().and_then(|classes| {
                let mut types = classes.iter().map(|&class| class_type(class));
                let first = types.next()?;
                types.all(|other| other == first).then_some(first)
            }),
            classes: classes.map(|classes| classes.into_iter().map(label).collect()),
            n_columns: n_columns(named),
            terms: named.model.terms().map(|terms| terms.iter().map(ToOwned::to_owned).collect()),
            target: named.target.clone(),
            #[cfg(feature = "categories")]
            categories: named.categories.clone(),
        }
    }

    /// What is different in `new`, for programs that call `self`.
    #[must_use]
    pub fn differences(&self, new: &Self) -> Vec<Difference> {
        let mut found = Found::default();
        if self.model != new.model {
            found.add("model-type", Effect::Note, format!("{} becomes {}", self.model, new.model));
        }
        match (self.input, new.input) {
            (Some(_), None) => found.breaks("input", "the new model takes no samples".to_owned()),
            (Some(InputKind::Text), Some(InputKind::F32 | InputKind::F64)) => {
                found.breaks("input", "the model takes numbers instead of texts".to_owned());
            }
            (Some(InputKind::F32 | InputKind::F64), Some(InputKind::Text)) => {
                found.breaks("input", "the model takes texts instead of numbers".to_owned());
            }
            (Some(InputKind::F64), Some(InputKind::F32)) => {
                found.add("input-width", Effect::Note, "features are rounded to 32 bits".to_owned());
            }
            _ => {}
        }
        let order = |accepts| match accepts {
            None | Some(Accepts::Finite) => 0,
            Some(Accepts::Missing) => 1,
            Some(Accepts::Anything) => 2,
        };
        if order(new.accepts) < order(self.accepts) {
            found.breaks("missing-values", "features can no longer be missing or infinite".to_owned());
        }
        self.features(new, &mut found);
        #[cfg(feature = "categories")]
        self.categories(new, &mut found);
        self.predictions(new, &mut found);
        found.0
    }

    fn features(&self, new: &Self, found: &mut Found) {
        match (&self.features, &new.features) {
            (Some(old), Some(new)) if old == new => return,
            (Some(old), Some(new)) => {
                let missing = |from: &[String], of: &[String]| -> Vec<String> {
                    of.iter().filter(|name| !from.contains(name)).cloned().collect()
                };
                let (added, removed) = (missing(old, new), missing(new, old));
                if !added.is_empty() {
                    found.breaks("feature-added", format!("the new model needs {}", listed(&added)));
                }
                if !removed.is_empty() {
                    let message = format!("the new model does not take {}", listed(&removed));
                    found.add("feature-removed", Effect::BreaksByPosition, message);
                }
                if added.is_empty() && removed.is_empty() {
                    let message = "the same features come in another order".to_owned();
                    found.add("feature-order", Effect::BreaksByPosition, message);
                }
                return;
            }
            (Some(_), None) => {
                found.breaks("feature-names", "the new file does not name its features".to_owned());
            }
            (None, Some(_)) | (None, None) => {}
        }
        if let (Some(old), Some(new)) = (self.n_features, new.n_features)
            && old != new
        {
            found.breaks("feature-count", format!("a sample has {new} features instead of {old}"));
        }
    }

    #[cfg(feature = "categories")]
    fn categories(&self, new: &Self, found: &mut Found) {
        if self.categories.is_none() && new.categories.is_none() {
            return;
        }
        let [old, other] = [self, new].map(|of| of.categories.clone().unwrap_or_default());
        let has_categories = old.of_features.iter().any(|names| !names.is_empty());
        let refuses = (old.unknown, other.unknown) == (UnknownCategory::Ignore, UnknownCategory::Refuse);
        if refuses && has_categories {
            let message = "categories that the new model does not know are refused".to_owned();
            found.breaks("unknown-category", message);
        }
        let n_named = self.features.as_ref().map_or(0, Vec::len);
        let n_features = match new.features {
            // What the new model has besides was said.
            Some(_) if n_named > 0 => n_named,
            _ => old.of_features.len().max(other.of_features.len()).max(n_named),
        };
        for idx in 0..n_features {
            let old = old.of_features.get(idx).map_or(&[][..], Vec::as_slice);
            let name = self.features.as_ref().and_then(|names| names.get(idx));
            // By its name, if both files name it.
            let place = match (name, &new.features) {
                (Some(name), Some(names)) => names.iter().position(|new| new == name),
                _ => Some(idx),
            };
            let Some(place) = place else { continue };
            let new = other.of_features.get(place).map_or(&[][..], Vec::as_slice);
            let feature = name.cloned().unwrap_or_else(|| format!("feature {idx}"));
            if old.is_empty() != new.is_empty() {
                let what = if old.is_empty() {
                    "categories instead of numbers"
                } else {
                    "numbers instead of categories"
                };
                found.breaks("categories", format!("`{feature}` takes {what}"));
                continue;
            }
            let known: BTreeSet<&String> = new.iter().collect();
            let removed: Vec<String> = old.iter().filter(|name| !known.contains(name)).cloned().collect();
            if !removed.is_empty() {
                let message = format!("of `{feature}`, the new model does not know {}", listed(&removed));
                found.breaks("category-removed", message);
            } else if !new.starts_with(old) {
                let message = format!("the categories of `{feature}` have other numbers");
                found.add("category-order", Effect::BreaksByPosition, message);
            }
        }
    }

    fn predictions(&self, new: &Self, found: &mut Found) {
        if let (Some(old), Some(new)) = (&self.target, &new.target)
            && old != new
        {
            found.breaks("target", format!("`{new}` is predicted instead of `{old}`"));
        }
        let name = |prediction: Option<PredictionKind>| prediction.map_or("nothing", PredictionKind::name);
        if self.prediction != new.prediction {
            let message =
                format!("a prediction is {} instead of {}", name(new.prediction), name(self.prediction));
            found.breaks("prediction", message);
        }
        for &output in self.outputs.iter().filter(|output| !new.outputs.contains(output)) {
            if output != OutputKind::Predictions {
                found.breaks("output-removed", format!("the new model has no {}", output.name()));
            }
        }
        for &output in new.outputs.iter().filter(|output| !self.outputs.contains(output)) {
            if output != OutputKind::Predictions {
                found.add("output-added", Effect::Note, format!("the new model has {}", output.name()));
            }
        }
        if let (Some(old), Some(new)) = (self.n_columns, new.n_columns)
            && old != new
        {
            found.breaks("columns", format!("a prediction has {new} values instead of {old}"));
        }
        if let (Some(old), Some(others)) = (&self.terms, &new.terms) {
            if old != others {
                let changed = old.iter().zip(others).find(|(old, new)| old != new);
                let first = changed
                    .map_or_else(String::new, |(old, new)| format!(", first `{new}` instead of `{old}`"));
                found.breaks("terms", format!("columns of a prediction are of other terms{first}"));
            } else if self.model != new.model {
                found.breaks(
                    "terms",
                    format!("terms are weighted by a {} instead of a {}", new.model, self.model),
                );
            }
        }
        if let (Some(old), Some(new)) = (self.class_type, new.class_type)
            && old != new
        {
            found.breaks("class-type", format!("a label is of the type {new} instead of {old}"));
        }
        // Groups of a clustering are numbers without labels; of predictions of another kind that was said.
        let (old, new) = match (&self.classes, &new.classes) {
            (Some(old), Some(new)) => (old.as_slice(), new.as_slice()),
            (Some(old), None) if self.prediction == new.prediction => (old.as_slice(), &[][..]),
            (None, Some(classes)) if self.prediction == new.prediction => (&[][..], classes.as_slice()),
            _ => return,
        };
        let without = |of: &[String], others: &[String]| -> Vec<String> {
            of.iter().filter(|label| !others.contains(label)).cloned().collect()
        };
        let (added, removed) = (without(new, old), without(old, new));
        if !added.is_empty() {
            found.breaks("class-added", format!("the new model predicts {}", listed(&added)));
        }
        if !removed.is_empty() {
            found.breaks("class-removed", format!("the new model never predicts {}", listed(&removed)));
        }
        if added.is_empty() && removed.is_empty() && old != new {
            let message = "the same classes come in another order, and probabilities with them".to_owned();
            found.breaks("class-order", message);
        }
    }
}

impl<R: ReadAt> ModelFile<R> {
    /// What is different in `new` for programs that read this file, or call its model: formats and versions, then interfaces of models,
    /// or names, shapes and types of tensors.
    ///
    /// # Errors
    ///
    /// Those of loading the models and of listing the tensors.
    pub fn differences<S: ReadAt>(&self, new: &ModelFile<S>) -> Result<Vec<Difference>, Error> {
        let mut found = Found::default();
        let (before, after) = (self.describe()?, new.describe()?);
        if before.format != after.format {
            found.breaks("format", format!("the file is {} instead of {}", after.format, before.format));
        } else if after.version > before.version {
            let version = |version: Option<u32>| version.unwrap_or(0);
            let (old, new) = (version(before.version), version(after.version));
            found.breaks(
                "format-version",
                format!("readers of version {old} of the format refuse version {new}"),
            );
        }
        if after.encrypted && !before.encrypted {
            found.breaks("encrypted", "the new file is encrypted".to_owned());
        }
        if before.signed && !after.signed {
            found.breaks(
                "signature",
                "the new file is not signed: readers that require a signature refuse it".to_owned(),
            );
        }
        let model = |model: Result<NamedModel, Error>| match model {
            Ok(model) => Ok(Some(Interface::of(&model))),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NoModel | ErrorKind::ModelDtype { .. } | ErrorKind::ForeignPayload { .. }
                ) =>
            {
                Ok(None)
            }
            // Tensors of no model that is known.
            Err(error) if matches!(error.kind(), ErrorKind::Model(_)) => Ok(None),
            Err(error) => Err(error),
        };
        let old = match self.model() {
            // A payload that nothing here reads: another type of model is another one, of the same type nothing is known.
            Err(error) if matches!(error.kind(), ErrorKind::ForeignPayload { .. }) => {
                let [old, new] = [self.declared_model(), new.declared_model()];
                if old == new {
                    return Err(error);
                }
                let [old, new] = [old, new].map(Option::unwrap_or_default);
                found.breaks("payload", format!("the model is of the type `{new}` instead of `{old}`"));
                return Ok(found.0);
            }
            old => model(old)?,
        };
        match (old, model(new.model())?) {
            (Some(old), Some(new)) => {
                found.0.extend(old.differences(&new));
                if old.input.is_none() {
                    found.tensors(&before.tensors, &after.tensors);
                }
            }
            (Some(_), None) => {
                found.breaks("no-model", "the new file holds no model that predicts".to_owned());
            }
            (None, _) => found.tensors(&before.tensors, &after.tensors),
        }
        Ok(found.0)
    }
}

#[derive(Default)]
struct Found(Vec<Difference>);

impl Found {
    fn add(&mut self, kind: &'static str, effect: Effect, message: String) {
        self.0.push(Difference { kind, effect, message });
    }

    fn breaks(&mut self, kind: &'static str, message: String) {
        self.add(kind, Effect::Breaks, message);
    }

    fn tensors(&mut self, old: &[TensorDescription], new: &[TensorDescription]) {
        let of_new: BTreeMap<&str, &TensorDescription> =
            new.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        let of_old: BTreeMap<&str, ()> = old.iter().map(|tensor| (tensor.name.as_str(), ())).collect();
        let (mut removed, mut shapes, mut dtypes) = (Vec::new(), Vec::new(), Vec::new());
        for tensor in old {
            match of_new.get(tensor.name.as_str()) {
                None => removed.push(tensor.name.clone()),
                Some(other) if other.shape != tensor.shape => shapes.push(tensor.name.clone()),
                Some(other) if other.dtype != tensor.dtype => dtypes.push(tensor.name.clone()),
                Some(_) => {}
            }
        }
        let added = new.iter().filter(|tensor| !of_old.contains_key(tensor.name.as_str()));
        let added: Vec<String> = added.map(|tensor| tensor.name.clone()).collect();
        let mut note = |kind, effect, names: Vec<String>, what: &str| {
            if !names.is_empty() {
                self.add(kind, effect, format!("{what}: {}", listed(&names)));
            }
        };
        note("tensor-removed", Effect::Breaks, removed, "tensors that the new file lacks");
        note("tensor-shape", Effect::Breaks, shapes, "tensors of another shape");
        note("tensor-dtype", Effect::Breaks, dtypes, "tensors of another type");
        note("tensor-added", Effect::Note, added, "tensors that are new");
    }
}

/// The first of several names, and how many more there are.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Values of a prediction that is a row: those of a sample of zeros, or of an empty text.
fn n_columns(named: &NamedModel) -> Option<usize> {
    let capabilities = named.model.capabilities();
    if !matches!(capabilities.prediction(), Some(PredictionKind::Row | PredictionKind::Terms)) {
        return None;
    }
    let zeros;
    let samples = match capabilities.input()? {
        InputKind::Text => Samples::Text(&[""]),
        _ => {
            zeros = vec![0.0; capabilities.n_features().filter(|&n| n <= MAX_FEATURES)?];
            Samples::F64(&zeros)
        }
    };
    match named.model.predict(samples, 1, OutputKind::Predictions).ok()? {
        Predictions::Rows { n_columns, .. } => Some(n_columns),
        Predictions::Terms(TermWeights::F32(_) | TermWeights::F64(_)) => {
            named.model.terms().map(|terms| terms.iter().count())
        }
        _ => None,
    }
}
