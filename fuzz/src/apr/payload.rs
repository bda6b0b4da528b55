//! Payloads of every model, in every layout.

mod ours;
mod peers;
mod writer;

use apr_container::{ModelType, PayloadLayout};

use self::writer::Writer;
use crate::choices::Choices;

/// A model's name, the type its container has, and the generator of its payloads.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name.
    pub name: &'static str,
    /// The container's model type.
    pub model_type: ModelType,
    write: fn(&mut Writer<'_, '_>),
}

impl Kind {
    /// A payload that is valid except for rare faults.
    #[must_use]
    pub fn payload(&self, choices: &mut Choices<'_>, layout: PayloadLayout) -> Vec<u8> {
        let mut writer = Writer { choices, layout, out: Vec::new() };
        (self.write)(&mut writer);
        if writer.choices.rarely(64) {
            writer.out.push(0);
        }
        if writer.choices.rarely(64) {
            writer.out.pop();
        }
        writer.out
    }
}

/// Every model.
pub const KINDS: [Kind; 30] = [
    kind("LinearRegression", ModelType::LinearRegression, |w| w.linear()),
    kind("Ridge", ModelType::LinearRegression, |w| {
        w.f32();
        w.linear();
    }),
    kind("Lasso", ModelType::LinearRegression, |w| {
        w.f32();
        w.linear();
        w.size(5);
        w.f32();
    }),
    kind("ElasticNet", ModelType::LinearRegression, |w| {
        w.f32();
        w.f32();
        w.linear();
        w.size(5);
        w.f32();
    }),
    kind("LogisticRegression", ModelType::LogisticRegression, |w| w.logistic()),
    kind("KMeans", ModelType::KMeans, |w| w.k_means()),
    kind("DecisionTreeClassifier", ModelType::DecisionTree, |w| w.classifier()),
    kind("DecisionTreeRegressor", ModelType::DecisionTree, |w| w.regressor()),
    kind("RandomForestClassifier", ModelType::RandomForest, |w| w.forest(|w| w.classifier(), |w| w.u64s(4))),
    kind("RandomForestRegressor", ModelType::RandomForest, |w| w.forest(|w| w.regressor(), |w| w.f32s(4))),
    kind("StandardScaler", ModelType::Custom, |w| {
        w.option(|w| w.f32s(2));
        w.option(|w| w.f32s(2));
        w.bool();
        w.bool();
    }),
    kind("MinMaxScaler", ModelType::Custom, |w| {
        w.option(|w| w.f32s(2));
        w.option(|w| w.f32s(2));
        w.f32();
        w.f32();
    }),
    kind("DBSCAN", ModelType::Custom, |w| {
        w.f32();
        w.size(3);
        w.option(|w| w.u32s(3));
    }),
    kind("GaussianMixture", ModelType::Custom, |w| w.mixture()),
    kind("IsolationForest", ModelType::Custom, |w| w.isolation_forest()),
    kind("MixtureOfExperts", ModelType::MixtureOfExperts, |w| w.experts()),
    kind("QuantizedBlock", ModelType::NeuralSequential, |w| w.quantized()),
    kind("Numbers", ModelType::Pca, |w| {
        let len = w.choices.below(6);
        w.f32s(len);
    }),
    kind("Pca", ModelType::Pca, |w| w.pca()),
    kind("NaiveBayes", ModelType::NaiveBayes, |w| w.naive_bayes()),
    kind("KnnClassifier", ModelType::Knn, |w| w.neighbours(1)),
    kind("KnnRegressor", ModelType::Knn, |w| w.neighbours(2)),
    kind("Svm", ModelType::Svm, |w| w.svm()),
    kind("GradientBoostingClassifier", ModelType::GradientBoosting, |w| w.boosting(2)),
    kind("GradientBoostingRegressor", ModelType::GradientBoosting, |w| w.boosting(1)),
    kind("NgramLm", ModelType::NgramLm, |w| w.ngrams()),
    kind("CountVectorizer", ModelType::CountVectorizer, |w| {
        w.head(1);
        w.counts();
    }),
    kind("TfIdf", ModelType::TfIdf, |w| {
        w.head(1);
        w.tf_idf();
    }),
    kind("NeuralSequential", ModelType::NeuralSequential, |w| w.neural()),
    kind("ContentRecommender", ModelType::ContentRecommender, |w| w.recommender()),
];

const fn kind(name: &'static str, model_type: ModelType, write: fn(&mut Writer<'_, '_>)) -> Kind {
    Kind { name, model_type, write }
}

/// A payload of some model.
pub fn any(choices: &mut Choices<'_>) -> (ModelType, PayloadLayout, Vec<u8>) {
    let kind = KINDS[choices.below(KINDS.len())];
    let layout = choices.pick(PayloadLayout::ALL);
    let payload = kind.payload(choices, layout);
    (kind.model_type, layout, payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        let names: std::collections::BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
    }
}
