//! Boosted trees as payload (`docs/payloads.md`, section 8) and as tensors.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::classes::Classes;
use crate::error::Error;
use crate::gradient_boosting::boosted::Boosted;
use crate::gradient_boosting::{GradientBoostingClassifier, GradientBoostingRegressor};
use crate::payload::fields::read;
use crate::tensors::Tensors;
use crate::tree::Tree;

const N_FORMS: u32 = 2;
const REGRESSOR: u32 = 1;
const CLASSIFIER: u32 = 2;

/// Bytes of the shortest tree: two lengths and one leaf.
const MIN_TREE_LEN: u64 = 24;

const CLASSES: &str = "classes";
const N_FEATURES: &str = "n_features";
const LEARNING_RATE: &str = "learning_rate";
const START: &str = "start";
const TREE_LENGTHS: &str = "tree_lengths";
const NODE_FEATURES: &str = "node_features";
const NODE_VALUES: &str = "node_values";

impl Boosted {
    fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.n_features)?;
        out.f64(self.learning_rate)?;
        out.f64s(&self.start)?;
        out.usize(self.trees.len())?;
        self.trees.iter().try_for_each(|tree| {
            out.usize(tree.len())?;
            tree.features().try_for_each(|feature| out.u32(feature))?;
            out.usize(tree.len())?;
            tree.values().try_for_each(|value| out.f32(value))
        })
    }

    fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let (n_features, learning_rate, start) =
            read(input, |fields| (fields.usize(), fields.f64(), fields.f64s()))?;
        let trees = input.list(MIN_TREE_LEN, |input| {
            let (features, values) = read(input, |fields| (fields.u32s(), fields.f32s()))?;
            input.charge(Tree::preorder_memory(features.len()))?;
            Ok(Tree::from_preorder(&features, &values)?)
        })?;
        Ok(Self::new(n_features, learning_rate, start, trees)?)
    }

    fn push_to(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let lengths: Vec<usize> = self.trees.iter().map(Tree::len).collect();
        // Leaves as -1, which stays an exact float.
        let feature = |feature: u32| if feature == u32::MAX { -1 } else { i64::from(feature) };
        let (mut features, mut values) = (Vec::new(), Vec::new());
        for tree in &self.trees {
            tree.features().for_each(|found| features.push(feature(found)));
            tree.values().for_each(|value| values.push(value));
        }
        tensors.push_count(N_FEATURES, self.n_features)?;
        tensors.push_f64(LEARNING_RATE, &[1], &[self.learning_rate])?;
        tensors.push_f64(START, &[self.start.len()], &self.start)?;
        tensors.push_counts(TREE_LENGTHS, &lengths)?;
        tensors.push_signed(NODE_FEATURES, &features)?;
        tensors.push_f32(NODE_VALUES, &[values.len()], &values)
    }

    fn take_from(tensors: &Tensors) -> Result<Self, Error> {
        // A feature beyond 32 bits is one no sample has, as is one less than that.
        let feature = |feature: i128| match feature {
            -1 => u32::MAX,
            _ => u32::try_from(feature).unwrap_or(u32::MAX - 1),
        };
        let features: Vec<u32> = tensors.signed_integers(NODE_FEATURES)?.into_iter().map(feature).collect();
        let values = tensors.vector(NODE_VALUES)?;
        checks::expect_len(NODE_VALUES, features.len(), values.len())?;
        let mut trees = Vec::new();
        let mut start = 0_usize;
        for len in tensors.counts(TREE_LENGTHS)? {
            let end = start.saturating_add(len);
            let (Some(features), Some(values)) = (features.get(start..end), values.get(start..end)) else {
                checks::expect_len(NODE_FEATURES, end, features.len())?;
                break;
            };
            trees.push(Tree::from_preorder(features, values)?);
            start = end;
        }
        checks::expect_len(NODE_FEATURES, start, features.len())?;
        let (learning_rate, n_features, start) = tensors
            .parts(|parts| (parts.wide_number(LEARNING_RATE), parts.count(N_FEATURES), parts.f64s(START)))?;
        Self::new(n_features, learning_rate, start, trees)
    }
}

fn is_part(name: &str) -> bool {
    [N_FEATURES, LEARNING_RATE, START, TREE_LENGTHS, NODE_FEATURES, NODE_VALUES].contains(&name)
}

stored_model! {
    GradientBoostingRegressor "GradientBoostingRegressor" [GradientBoosting] form REGRESSOR of N_FORMS
    n_features: |model| Some(model.boosted.n_features);
}

impl GradientBoostingRegressor {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.boosted.encode(out)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        Ok(Self::of(Boosted::decode(input)?)?)
    }

    /// The model that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        tensors.expect_only(&is_part)?;
        Self::of(Boosted::take_from(tensors)?)
    }

    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        self.boosted.push_to(tensors)
    }
}

stored_model! {
    GradientBoostingClassifier "GradientBoostingClassifier" [GradientBoosting] form CLASSIFIER of N_FORMS
    n_features: |model| Some(model.boosted.n_features);
}

impl GradientBoostingClassifier {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.classes.encode(out)?;
        self.boosted.encode(out)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let classes = Classes::decode(input, 2)?;
        Ok(Self::of(classes, Boosted::decode(input)?)?)
    }

    /// The model that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        tensors.expect_only(&|name| name == CLASSES || is_part(name))?;
        let classes = Classes::from_labels(tensors.counts(CLASSES)?, 2)?;
        Self::of(classes, Boosted::take_from(tensors)?)
    }

    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        tensors.push_counts(CLASSES, self.classes())?;
        self.boosted.push_to(tensors)
    }
}
