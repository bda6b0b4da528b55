//! The served model and its description.

use alloc::sync::Arc;

use apr_models::{Accepts, AnyModel, Error, ErrorKind, InputKind, Label, Model as _, OutputKind};
use model_file::{Categories, ModelFile, OpenOptions};
use sha2::{Digest as _, Sha256};

use crate::categories::{CategoricalFeatures, Takes};
use crate::features::{Features, cut};
use crate::succession::Signed;
use crate::write;

/// Most columns with categories that a message lists.
const SHOWN: usize = 12;

/// A model that predicts, with what the server reports about it.
#[derive(Clone, Debug)]
pub struct Model {
    any: Arc<AnyModel>,
    input_kind: InputKind,
    classes: Option<Vec<String>>,
    features: Option<Features>,
    categories: Option<CategoricalFeatures>,
    digest: Option<[u8; 32]>,
    about: Option<String>,
    signed: Option<Signed>,
}

impl Model {
    /// Takes a model.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoPredictions`] if it takes no samples.
    pub fn new(model: impl Into<Arc<AnyModel>>) -> Result<Self, Error> {
        let model = model.into();
        let input_kind =
            model.capabilities().input().ok_or(ErrorKind::NoPredictions { model: model.name() })?;
        Ok(Self {
            any: model,
            input_kind,
            classes: None,
            features: None,
            categories: None,
            digest: None,
            about: None,
            signed: None,
        })
    }

    /// Reads the model of an `.apr` or safetensors file, for example from `include_bytes!`, with the names of features, categories and
    /// classes in its metadata, and computes the digest of the file.
    ///
    /// # Errors
    ///
    /// Those of [`ModelFile::from_bytes`], [`ModelFile::model`], [`new`](Self::new) and [`with_categories`](Self::with_categories).
    pub fn from_bytes(file: &[u8]) -> Result<Self, model_file::Error> {
        let named = ModelFile::from_bytes(file, &OpenOptions::new())?.model()?;
        let mut model = Self::new(named.model)?.with_digest(Sha256::digest(file).into());
        if let Some(names) = named.features {
            model = model.with_features(names);
        }
        if let Some(categories) = &named.categories {
            model = model.with_categories(categories)?;
        }
        if let Some(names) = named.classes {
            model = model.with_classes(names);
        }
        Ok(model)
    }

    /// Sets the names of the features, so that rows may be objects. Names are ignored if they are not one for each feature, or
    /// not distinct.
    #[must_use]
    pub fn with_features(mut self, names: Vec<String>) -> Self {
        let fits = self.input_kind != InputKind::Text
            && self.n_inputs().is_none_or(|n_inputs| n_inputs == names.len());
        self.features = if fits { Features::new(names) } else { None };
        self
    }

    /// The names of the features, if they are known.
    pub(crate) const fn features(&self) -> Option<&Features> {
        self.features.as_ref()
    }

    /// Sets the categories of features, whose values in rows are then the names of categories; in raw bodies their numbers. A model of
    /// texts has none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`] if they are not one list for each feature.
    pub fn with_categories(mut self, categories: &Categories) -> Result<Self, Error> {
        let found = categories.of_features.len();
        if let Some(expected) = self.n_inputs().filter(|&n_inputs| n_inputs != found) {
            return Err(ErrorKind::PartLength { part: "categories of features", expected, found }.into());
        }
        if self.input_kind != InputKind::Text {
            self.categories = CategoricalFeatures::new(categories);
        }
        Ok(self)
    }

    /// Sets the names of the classes, by their numbers.
    #[must_use]
    pub fn with_classes(mut self, names: Vec<String>) -> Self {
        self.classes = Some(names);
        self
    }

    /// Sets the SHA-256 of its file; responses identify their model by its first digits.
    #[must_use]
    pub fn with_digest(mut self, digest: [u8; 32]) -> Self {
        self.digest = Some(digest);
        self
    }

    /// Sets a JSON value about its file, which `GET /model` repeats.
    #[must_use]
    pub fn with_about(mut self, json: String) -> Self {
        self.about = Some(json);
        self
    }

    /// Sets the signed name and time. When a file replaces a model that has this, the rules of
    /// [`Succession`](crate::Succession) apply.
    #[must_use]
    pub fn with_signed(mut self, signed: Signed) -> Self {
        self.signed = Some(signed);
        self
    }

    /// The signed name and time.
    pub(crate) const fn signed(&self) -> Option<&Signed> {
        self.signed.as_ref()
    }

    /// The model's name in responses, if it is the model of that reload counter.
    pub(crate) fn tag(&self, load_count: u64) -> String {
        let digest = self.digest().and_then(|digest| digest.get(..16).map(str::to_owned));
        digest.unwrap_or_else(|| format!("generation-{load_count}"))
    }

    /// The model.
    #[must_use]
    pub fn any(&self) -> &AnyModel {
        &self.any
    }

    /// Type of its samples.
    pub(crate) const fn input_kind(&self) -> InputKind {
        self.input_kind
    }

    /// Number of features, if samples are rows of values and the model stores it.
    pub(crate) fn n_inputs(&self) -> Option<usize> {
        self.any.capabilities().n_features()
    }

    /// Which values features may have.
    pub(crate) fn takes(&self) -> Takes<'_> {
        Takes { accepts: self.accepts(), categories: self.categories.as_ref() }
    }

    fn accepts(&self) -> Accepts {
        self.any.capabilities().accepts()
    }

    /// Whether it takes the same samples as another model. Both may know other categories of a feature; features that both name have the
    /// same names in the same order, because rows need not name them.
    pub(crate) fn takes_what(&self, other: &Self) -> bool {
        let is_text = |model: &Self| model.input_kind == InputKind::Text;
        let has_other_names = match (&self.features, &other.features) {
            (Some(own), Some(others)) => own.names() != others.names(),
            _ => false,
        };
        !has_other_names
            && is_text(self) == is_text(other)
            && self.n_inputs() == other.n_inputs()
            && self.with_names().eq(other.with_names())
    }

    /// The features that take names of categories.
    fn with_names(&self) -> impl Iterator<Item = usize> {
        self.categories.iter().flat_map(CategoricalFeatures::features)
    }

    /// Its input, for messages; of the names of features, the first that the other model has not there.
    pub(crate) fn taken_beside(&self, other: &Self) -> String {
        let rows = match (self.input_kind, self.n_inputs()) {
            (InputKind::Text, _) => return "texts".to_owned(),
            (_, Some(n_inputs)) => format!("rows of {n_inputs} numbers"),
            (_, None) => "rows of any number of numbers".to_owned(),
        };
        let differing = self.features.as_ref().zip(other.features.as_ref()).and_then(|(own, others)| {
            let pairs = own.names().iter().zip(others.names());
            pairs.enumerate().find(|(_, (own, other))| own != other)
        });
        let rows = match differing {
            Some((place, (name, _))) => format!("{rows}, feature {place} called `{}`", cut(name)),
            None => rows,
        };
        let columns: Vec<String> = self.with_names().take(SHOWN).map(|column| column.to_string()).collect();
        match columns.is_empty() {
            true => rows,
            false => format!("{rows}, with names of categories in columns {}", columns.join(", ")),
        }
    }

    /// The label of a predicted class: its name, if the class is a number that has one.
    pub(crate) fn label(&self, class: usize) -> Option<Label<'_>> {
        self.any.named_label(class, self.classes.as_deref())
    }

    /// Predictions as columns; `None` for weights of terms.
    #[cfg(feature = "arrow")]
    pub(crate) fn columns(
        &self,
        predictions: apr_models::Predictions,
    ) -> Option<Vec<apr_models::PredictionColumn>> {
        self.any.prediction_columns(predictions, self.classes.as_deref())
    }

    /// The digest in hexadecimal.
    pub(crate) fn digest(&self) -> Option<String> {
        self.digest.map(|digest| base16ct::lower::encode_string(&digest))
    }

    /// The fields of `GET /model` that are about the model alone.
    pub(crate) fn write_fields(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"name\":");
        write::string(self.any.name(), out);
        let takes = if self.input_kind == InputKind::Text { "texts" } else { "numbers" };
        out.extend_from_slice(b",\"takes\":");
        write::string(takes, out);
        out.extend_from_slice(b",\"inputs\":");
        match self.n_inputs() {
            Some(n_inputs) => write::plain(n_inputs, out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"features\":");
        match &self.features {
            Some(features) => write::strings(features.names(), out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"categories\":");
        match &self.categories {
            Some(categories) => categories.write(out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"missing_values\":");
        write::plain(self.accepts() != Accepts::Finite, out);
        out.extend_from_slice(b",\"probabilities\":");
        write::plain(self.any.capabilities().supports(OutputKind::Probabilities), out);
        out.extend_from_slice(b",\"digest\":");
        match self.digest() {
            Some(digest) => write::string(&format!("sha256:{digest}"), out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"file\":");
        out.extend_from_slice(self.about.as_deref().map_or("null", str::trim_end).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use apr_models::{LinearRegression, Vector};

    use super::*;

    #[test]
    fn another_order_of_features_takes_something_else() {
        let named = |names: &[&str]| {
            let line = LinearRegression::from_parts(Vector::from_vec(vec![1.0, 10.0]), 0.0).unwrap();
            let model = Model::new(AnyModel::from(line)).unwrap();
            model.with_features(names.iter().map(|&name| name.to_owned()).collect())
        };
        let (first, turned, unnamed) = (named(&["age", "size"]), named(&["size", "age"]), named(&[]));
        assert!(first.takes_what(&named(&["age", "size"])) && first.takes_what(&unnamed));
        assert!(!first.takes_what(&turned));
        assert_eq!(turned.taken_beside(&first), "rows of 2 numbers, feature 0 called `size`");
        assert_eq!(turned.taken_beside(&unnamed), "rows of 2 numbers");
    }
}
