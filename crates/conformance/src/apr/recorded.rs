//! Models in the terms of the sidecars: what they hold as the peers' JSON, and what they compute.

use apr_container::{DecodePayload, EncodePayload, PayloadLayout, Serde};
use apr_models::{
    ClassWeight, Classifier, CovarianceType, Dbscan, DecisionTreeClassifier, DecisionTreeRegressor,
    ElasticNet, Error, FitMode, GatingNetwork, GaussianMixture, Intercept, IsolationForest, KMeans, Lasso,
    LinearRegression, LogisticRegression, Matrix, MinMaxScaler, MixtureOfExperts, Numbers, QuantType,
    QuantizedBlock, RandomForestClassifier, RandomForestRegressor, Regressor, Ridge, StandardScaler,
    TrainingData, Transformer, TreeNode, Vector,
};
use serde_json::{Value, json};

use super::kitchen::Kitchen;

/// A model that the vectors know.
pub trait Recorded: EncodePayload + DecodePayload {
    /// What it holds, under the names of the peers' JSON and in the layout of one of them; every accessor is used.
    fn facts(&self, layout: PayloadLayout) -> Value;

    /// What it computes, under the names of the expectations.
    ///
    /// # Errors
    ///
    /// What the model says.
    fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error>;

    /// The same model, which will write all it read.
    #[must_use]
    fn complete(self) -> Self
    where
        Self: Sized,
    {
        self
    }
}

fn vector(values: &Vector) -> Value {
    json!({"data": values.as_slice()})
}

fn matrix(matrix: &Matrix) -> Value {
    json!({"data": matrix.as_slice(), "rows": matrix.n_rows(), "cols": matrix.n_cols()})
}

/// Without coefficients there is nothing to see: whether they are missing or none tell the bytes.
fn coefficients(values: &Vector) -> Value {
    if values.is_empty() { json!({}) } else { json!({"coefficients": vector(values)}) }
}

/// One object of two.
fn with(mut facts: Value, more: Value) -> Value {
    if let (Some(facts), Value::Object(more)) = (facts.as_object_mut(), more) {
        facts.extend(more);
    }
    facts
}

macro_rules! linear {
    ($($model:ident, $more:expr;)*) => {
        $(impl Recorded for $model {
            fn facts(&self, _layout: PayloadLayout) -> Value {
                let facts = json!({
                    "intercept": self.intercept(),
                    "fit_intercept": self.intercept_rule() == Intercept::Fitted,
                });
                let more: fn(&Self) -> Value = $more;
                with(with(facts, coefficients(self.coefficients())), more(self))
            }

            fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
                let predictions = Regressor::try_predict(self, rows)?;
                let coefficients = self.coefficients().as_slice().to_vec();
                Ok(vec![
                    ("predictions", predictions.into_vec()),
                    ("coefficients", coefficients),
                    ("intercept", vec![self.intercept()]),
                ])
            }
        })*
    };
}

linear! {
    LinearRegression, |_| json!({});
    Ridge, |model| json!({"alpha": model.alpha()});
    Lasso, |model| json!({"alpha": model.alpha(), "max_iter": model.max_iter(), "tol": model.tol()});
    ElasticNet, |model| json!({
        "alpha": model.alpha(), "l1_ratio": model.l1_ratio(), "max_iter": model.max_iter(), "tol": model.tol(),
    });
}

fn classes(predictions: Vec<usize>) -> Vec<f32> {
    predictions.into_iter().map(|class| class as f32).collect()
}

impl Recorded for LogisticRegression {
    fn facts(&self, layout: PayloadLayout) -> Value {
        let facts = json!({
            "intercept": self.intercept(),
            "learning_rate": self.learning_rate(),
            "max_iter": self.max_iter(),
            "tol": self.tol(),
        });
        let facts = with(facts, coefficients(self.coefficients()));
        if layout < PayloadLayout::V0_72 {
            return facts;
        }
        let class_weight = match self.class_weight() {
            ClassWeight::Uniform => json!("Uniform"),
            ClassWeight::Balanced => json!("Balanced"),
            ClassWeight::Manual(weights) => json!({"Manual": weights}),
        };
        let fit_mode = match self.fit_mode() {
            FitMode::Batch => json!("Batch"),
            FitMode::Stochastic => json!("Stochastic"),
            FitMode::MiniBatch(len) => json!({"MiniBatch": len}),
        };
        let more =
            json!({"class_weight": class_weight, "fit_mode": fit_mode, "l2_penalty": self.l2_penalty()});
        with(facts, more)
    }

    fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        let probabilities = self.try_predict_proba(rows)?;
        Ok(vec![
            ("predictions", classes(self.try_predict(rows)?)),
            ("probabilities", probabilities.into_vec()),
        ])
    }
}

impl Recorded for KMeans {
    fn facts(&self, _layout: PayloadLayout) -> Value {
        json!({
            "n_clusters": self.n_clusters(),
            "max_iter": self.max_iter(),
            "tol": self.tol(),
            "random_state": self.random_state(),
            "centroids": self.centroids().map(matrix),
            "labels": self.labels(),
            "inertia": self.inertia(),
            "n_iter": self.n_iter(),
        })
    }

    fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        Ok(vec![
            ("predictions", classes(self.try_predict(rows)?)),
            ("centroids", self.centroids().map(Matrix::as_slice).unwrap_or_default().to_vec()),
            ("inertia", vec![self.inertia()]),
            ("n_iter", vec![self.n_iter() as f32]),
        ])
    }
}

/// The subtree at one place, as the peers nest it; vectors are small enough to recurse.
fn tree<L: Copy>(nodes: &[TreeNode<L>], at: usize, layout: PayloadLayout, leaf: fn(L) -> Value) -> Value {
    let (kind, mut facts, measured) = match nodes.get(at) {
        None => return Value::Null,
        Some(TreeNode::Leaf { value, n_samples, impurity }) => {
            let facts = with(leaf(*value), json!({"n_samples": n_samples}));
            ("Leaf", facts, json!({"impurity": impurity}))
        }
        Some(TreeNode::Split { feature, threshold, left, right, n_samples, impurity }) => {
            let facts = json!({
                "feature_idx": feature,
                "threshold": threshold,
                "left": tree(nodes, *left, layout, leaf),
                "right": tree(nodes, *right, layout, leaf),
            });
            ("Node", facts, json!({"impurity": impurity, "n_node_samples": n_samples}))
        }
    };
    if layout == PayloadLayout::V0_72 {
        facts = with(facts, measured);
    }
    json!({kind: facts})
}

impl Recorded for DecisionTreeClassifier {
    fn facts(&self, layout: PayloadLayout) -> Value {
        let nodes: Vec<_> = self.nodes().collect();
        let facts = json!({
            "tree": tree(&nodes, 0, layout, |class| json!({"class_label": class})),
            "max_depth": self.max_depth(),
        });
        if layout == PayloadLayout::V0_10 {
            return facts;
        }
        with(facts, json!({"n_features": apr_models::Model::n_features(self)}))
    }

    fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        Ok(vec![("predictions", classes(self.try_predict(rows)?))])
    }
}

impl Recorded for DecisionTreeRegressor {
    fn facts(&self, layout: PayloadLayout) -> Value {
        let nodes: Vec<_> = self.nodes().collect();
        json!({
            "tree": tree(&nodes, 0, layout, |value| json!({"value": value})),
            "max_depth": self.max_depth(),
            "min_samples_split": self.min_samples_split(),
            "min_samples_leaf": self.min_samples_leaf(),
        })
    }

    fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        Ok(vec![("predictions", self.try_predict(rows)?.into_vec())])
    }
}

fn training<Y>(training: Option<&TrainingData<Y>>, y: fn(&Y) -> Value) -> Value {
    training.map_or(json!({}), |training| {
        json!({
            "oob_indices": training.oob_indices,
            "x_train": training.x.as_ref().map(matrix),
            "y_train": training.y.as_ref().map(y),
        })
    })
}

macro_rules! forest {
    ($($model:ident, $y:expr, $predictions:expr;)*) => {
        $(impl Recorded for $model {
            fn facts(&self, layout: PayloadLayout) -> Value {
                let trees: Vec<Value> = self.trees().iter().map(|tree| tree.facts(layout)).collect();
                let facts = json!({
                    "trees": trees,
                    "n_estimators": self.n_estimators(),
                    "max_depth": self.max_depth(),
                    "random_state": self.random_state(),
                });
                with(facts, training(self.stored_training_data(), $y))
            }

            fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
                let predictions: fn(&Self, &Matrix) -> Result<Vec<f32>, Error> = $predictions;
                Ok(vec![("predictions", predictions(self, rows)?)])
            }

            fn complete(self) -> Self {
                self.keep_training_data()
            }
        })*
    };
}

forest! {
    RandomForestClassifier, |labels| json!(labels), |model, rows| Ok(classes(model.try_predict(rows)?));
    RandomForestRegressor, vector, |model, rows| Ok(model.try_predict(rows)?.into_vec());
}

impl Recorded for StandardScaler {
    fn facts(&self, _layout: PayloadLayout) -> Value {
        json!({
            "mean": self.mean(), "std": self.std(), "with_mean": self.is_centring(), "with_std": self.is_scaling(),
        })
    }

    fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        Ok(vec![("transformed", self.try_transform(rows)?.into_vec())])
    }
}

impl Recorded for MinMaxScaler {
    fn facts(&self, _layout: PayloadLayout) -> Value {
        let (feature_min, feature_max) = self.range();
        json!({
            "data_min": self.data_min(), "data_max": self.data_max(),
            "feature_min": feature_min, "feature_max": feature_max,
        })
    }

    fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        Ok(vec![("transformed", self.try_transform(rows)?.into_vec())])
    }
}

impl Recorded for Dbscan {
    fn facts(&self, _layout: PayloadLayout) -> Value {
        json!({"eps": self.eps(), "min_samples": self.min_samples(), "labels": self.labels()})
    }

    fn computed(&self, _rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        let labels = self.labels().unwrap_or_default();
        Ok(vec![("labels", labels.iter().map(|label| *label as f32).collect())])
    }
}

impl Recorded for GaussianMixture {
    fn facts(&self, _layout: PayloadLayout) -> Value {
        let covariance_type = match self.covariance_type() {
            CovarianceType::Full => "Full",
            CovarianceType::Tied => "Tied",
            CovarianceType::Diag => "Diag",
            CovarianceType::Spherical => "Spherical",
        };
        json!({
            "n_components": self.n_components(),
            "covariance_type": covariance_type,
            "means": self.means().map(matrix),
            "covariances": self.covariances().map(|all| all.iter().map(matrix).collect::<Vec<_>>()),
            "weights": self.weights().map(|weights| json!({"data": weights})),
            "labels": self.labels(),
        })
    }

    fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        Ok(vec![("predictions", classes(self.try_predict(rows)?))])
    }
}

/// A tree of an isolation forest, as the peers nest it.
fn isolation_tree(nodes: &[TreeNode<()>], at: usize) -> Value {
    match nodes.get(at) {
        None => Value::Null,
        Some(TreeNode::Leaf { n_samples, .. }) => json!({
            "left": null, "right": null, "size": n_samples, "split_feature": null, "split_value": null,
        }),
        Some(TreeNode::Split { feature, threshold, left, right, n_samples, .. }) => json!({
            "left": isolation_tree(nodes, *left),
            "right": isolation_tree(nodes, *right),
            "size": n_samples,
            "split_feature": feature,
            "split_value": threshold,
        }),
    }
}

impl Recorded for IsolationForest {
    fn facts(&self, _layout: PayloadLayout) -> Value {
        json!({
            "trees": self.trees().map(|nodes| json!({"root": isolation_tree(&nodes, 0)})).collect::<Vec<_>>(),
            "threshold": self.threshold(),
            "contamination": self.contamination(),
            "c_norm": self.c_norm(),
        })
    }

    fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        let predictions = self.try_predict(rows)?.into_iter().map(|side| side as f32).collect();
        Ok(vec![("predictions", predictions), ("scores", self.try_score_samples(rows)?.into_vec())])
    }
}

impl Recorded for MixtureOfExperts<LinearRegression> {
    fn facts(&self, layout: PayloadLayout) -> Value {
        let (gating, config) = (self.gating(), self.config());
        json!({
            "experts": self.experts().iter().map(|expert| expert.facts(layout)).collect::<Vec<_>>(),
            "gating": {
                "n_features": gating.n_features(),
                "n_experts": gating.n_experts(),
                "temperature": gating.temperature(),
                "weights": gating.weights(),
            },
            "config": {
                "top_k": config.top_k,
                "capacity_factor": config.capacity_factor,
                "expert_dropout": config.expert_dropout,
                "load_balance_weight": config.load_balance_weight,
            },
        })
    }

    fn computed(&self, rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        let weights = rows.rows().map(|row| self.routing_weights(row)).collect::<Result<Vec<_>, _>>()?;
        Ok(vec![
            ("predictions", self.try_predict(rows)?.into_vec()),
            ("routing_weights", weights.concat()),
            ("top_k", vec![self.config().top_k as f32]),
        ])
    }
}

impl Recorded for Numbers {
    fn facts(&self, _layout: PayloadLayout) -> Value {
        json!(self.as_slice())
    }

    fn computed(&self, _rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        Ok(vec![("values", self.as_slice().to_vec())])
    }
}

impl Recorded for QuantizedBlock {
    fn facts(&self, _layout: PayloadLayout) -> Value {
        let quant_type = match self.quant_type() {
            QuantType::Q8_0 => "Q8_0",
            QuantType::Q4_0 => "Q4_0",
            _ => "another",
        };
        json!({"quant_type": quant_type, "shape": self.shape(), "blocks": self.blocks()})
    }

    fn computed(&self, _rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        Ok(vec![("dequantized", self.dequantize()?)])
    }
}

impl Recorded for Serde<Kitchen> {
    fn facts(&self, _layout: PayloadLayout) -> Value {
        match self.0 == Kitchen::recorded() {
            true => Value::Null,
            false => json!(format!("{:?}", self.0)),
        }
    }

    fn computed(&self, _rows: &Matrix) -> Result<Vec<(&'static str, Vec<f32>)>, Error> {
        Ok(vec![])
    }
}
