//! Weights of classes and samples.

use apr_container::Value;
use apr_models::ClassWeight;
use clap::Args;

use super::algorithms::SETTINGS;
use super::data::{Table, Target};
use crate::error::{CODE_USAGE, Failure};
use crate::tables;

#[derive(Debug, Args)]
pub(super) struct WeightArgs {
    /// Weights of classes: `balanced`, for the inverse of their numbers of samples, `uniform`, or NAME=WEIGHT,NAME=WEIGHT; 1 for the others.
    #[arg(long, value_name = "WEIGHTS", help_heading = SETTINGS)]
    class_weight: Option<String>,
    /// A column with the weight of each sample; it is no feature.
    #[arg(long, value_name = "COLUMN", help_heading = SETTINGS)]
    sample_weight: Option<String>,
}

impl WeightArgs {
    /// The column of weights of samples.
    pub(super) fn column(&self) -> Option<&str> {
        self.sample_weight.as_deref()
    }

    /// The weights of the classes of the table.
    ///
    /// # Errors
    ///
    /// If they are none, or the table has numbers to learn.
    pub(super) fn class_weight(&self, table: &Table) -> Result<ClassWeight, Failure> {
        let Some(text) = &self.class_weight else { return Ok(ClassWeight::Uniform) };
        let Target::Classes { names, .. } = &table.target else {
            let failure = Failure::new(CODE_USAGE, "--class-weight: the target has numbers, not classes");
            return Err(failure.help("add --classes if each number is a class"));
        };
        match text.as_str() {
            "uniform" => return Ok(ClassWeight::Uniform),
            "balanced" => return Ok(ClassWeight::Balanced),
            _ => {}
        }
        let mut weights = vec![None; names.len()];
        for pair in text.split(',') {
            // A name may have an equals sign, a weight has none.
            let parsed =
                pair.rsplit_once('=').and_then(|(name, weight)| Some((name, weight.trim().parse().ok()?)));
            let Some((name, weight)) = parsed else {
                let failure = Failure::new(CODE_USAGE, format!("--class-weight: `{pair}` is no NAME=WEIGHT"));
                return Err(failure.help("write `balanced`, or for example yes=5,no=1"));
            };
            let place = names.iter().position(|known| known == name.trim());
            let Some(place) = place.and_then(|place| weights.get_mut(place)) else {
                let what = format!("--class-weight: the target has no class `{}`", name.trim());
                return Err(Failure::new(CODE_USAGE, what).because(tables::listed(names)));
            };
            if place.replace(weight).is_some() {
                let what = format!("--class-weight: `{}` has two weights", name.trim());
                return Err(Failure::new(CODE_USAGE, what).help("give each class one weight"));
            }
        }
        Ok(ClassWeight::Manual(weights.into_iter().map(|weight| weight.unwrap_or(1.0)).collect()))
    }

    pub(super) fn settings(&self) -> impl Iterator<Item = (String, Value)> {
        let text =
            |name: &str, value: &Option<String>| value.clone().map(|value| (name.to_owned(), value.into()));
        [text("class_weight", &self.class_weight), text("sample_weight", &self.sample_weight)]
            .into_iter()
            .flatten()
    }
}
