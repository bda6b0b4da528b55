//! Names of categories as the numbers that a model takes: those that tables of `apr predict` have.

use apr_models::Accepts;
use model_file::{Categories, CategoryError, CategoryNumbers, UnknownCategory};

use crate::refusal::Refusal;
use crate::write;

const HELP: &str = "GET /model lists the categories";

/// What the values of a row may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Takes<'m> {
    pub(crate) accepts: Accepts,
    /// The categories of features, if some take names instead of numbers.
    pub(crate) categories: Option<&'m CategoricalFeatures>,
}

/// The features of a model of which at least one has categories.
#[derive(Clone, Debug)]
pub(crate) struct CategoricalFeatures {
    of_features: Vec<Option<CategoryNumbers>>,
    unknown: UnknownCategory,
}

impl CategoricalFeatures {
    /// `None` if no feature has categories.
    pub(crate) fn new(known: &Categories) -> Option<Self> {
        let of_feature =
            |names: &Vec<String>| (!names.is_empty()).then(|| CategoryNumbers::new(names, known.unknown));
        let of_features: Vec<_> = known.of_features.iter().map(of_feature).collect();
        let has_some = of_features.iter().any(Option::is_some);
        has_some.then_some(Self { of_features, unknown: known.unknown })
    }

    /// The categories of a feature, if its values are no numbers.
    pub(crate) fn of(&self, feature: usize) -> Option<&CategoryNumbers> {
        self.of_features.get(feature)?.as_ref()
    }

    /// The features that have categories.
    pub(crate) fn features(&self) -> impl Iterator<Item = usize> {
        self.of_features.iter().enumerate().filter(|(_, names)| names.is_some()).map(|(feature, _)| feature)
    }

    /// Checks a row of numbers: those of features with categories are missing, or the number of a category.
    ///
    /// # Errors
    ///
    /// The feature of the first other one, and a refusal without a place.
    #[inline(never)]
    pub(crate) fn check_numbers(&self, row: &[f32]) -> Result<(), (usize, Refusal)> {
        for (feature, (&value, numbers)) in row.iter().zip(&self.of_features).enumerate() {
            let Some(numbers) = numbers else { continue };
            let known = numbers.names();
            let is_number = value.fract() == 0.0 && (0.0..known.len() as f32).contains(&value);
            let is_ignored = value == -1.0 && self.unknown == UnknownCategory::Ignore;
            if !is_number && !is_ignored && !value.is_nan() {
                let what =
                    format!("{value} is not the number of a category: they are 0 to {}", known.len() - 1);
                return Err((feature, Refusal::of_body("sv-category", what, HELP)));
            }
        }
        Ok(())
    }

    /// The names for each feature as JSON, null of those that take numbers.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        write::list(&self.of_features, out, |numbers, out| match numbers {
            Some(numbers) => write::strings(numbers.names(), out),
            None => out.extend_from_slice(b"null"),
        });
        out.push(b']');
    }
}

/// The number of the category of that name; of an empty one, or of none, NaN if missing values are accepted.
///
/// # Errors
///
/// A refusal without a place.
pub(crate) fn number<T: From<f32>>(
    categories: &CategoryNumbers,
    name: Option<&str>,
    accepts: Accepts,
) -> Result<T, Refusal> {
    categories.number(name, accepts).map(T::from).map_err(|error| match error {
        CategoryError::Empty => {
            let what = "a missing value, and the model takes none";
            Refusal::of_body("sv-number", what, "GET /model says what the model takes")
        }
        error => Refusal::of_body("sv-category", error, HELP),
    })
}
