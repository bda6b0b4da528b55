//! Pairs of interfaces, and what a change from the first to the second means.

use apr_models::{Accepts, InputKind, OutputKind, PredictionKind};
use model_file::{Effect, Interface};

use Effect::{Breaks, BreaksByPosition, Note};

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|&name| name.to_owned()).collect())
}

/// A regression of two features.
fn regression() -> Interface {
    Interface {
        model: "LinearRegression".into(),
        input: Some(InputKind::F32),
        n_features: Some(2),
        features: names(&["age", "size"]),
        prediction: Some(PredictionKind::Value),
        outputs: vec![OutputKind::Predictions],
        target: Some("price".into()),
        ..Interface::default()
    }
}

/// A classification of three classes.
fn classification() -> Interface {
    Interface {
        model: "NaiveBayes".into(),
        prediction: Some(PredictionKind::Class),
        outputs: vec![OutputKind::Predictions, OutputKind::Probabilities],
        classes: names(&["a", "b", "c"]),
        class_type: Some("text"),
        target: Some("kind".into()),
        ..regression()
    }
}

fn clusters() -> Interface {
    Interface {
        model: "KMeans".into(),
        prediction: Some(PredictionKind::Class),
        features: None,
        target: None,
        ..regression()
    }
}

fn transformer() -> Interface {
    Interface {
        model: "Pca".into(),
        prediction: Some(PredictionKind::Row),
        outputs: vec![OutputKind::Predictions, OutputKind::Transformed],
        n_columns: Some(2),
        target: None,
        ..regression()
    }
}

fn texts() -> Interface {
    Interface {
        model: "TfIdf".into(),
        input: Some(InputKind::Text),
        n_features: None,
        features: None,
        prediction: Some(PredictionKind::Terms),
        outputs: vec![OutputKind::Predictions],
        n_columns: Some(2),
        terms: names(&["apple", "green"]),
        target: None,
        ..Interface::default()
    }
}

fn outliers() -> Interface {
    Interface {
        model: "IsolationForest".into(),
        prediction: Some(PredictionKind::Outlier),
        outputs: vec![OutputKind::Predictions, OutputKind::ScoreSamples],
        target: None,
        ..regression()
    }
}

type Change = fn(&mut Interface);
type Expected = &'static [(&'static str, Effect)];

/// Checks the changes of one interface. `None` for the worst effect: no difference at all.
fn check(base: fn() -> Interface, changes: &[(Change, Expected)]) {
    for (number, (change, expected)) in changes.iter().enumerate() {
        let (old, mut new) = (base(), base());
        change(&mut new);
        let found = old.differences(&new);
        let found: Vec<(&str, Effect)> = found.iter().map(|found| (found.kind, found.effect)).collect();
        assert_eq!(found, *expected, "{} {number}", old.model);
    }
}

#[test]
fn changes_of_features() {
    check(
        regression,
        &[
            (|_| {}, &[]),
            (|new| new.features = names(&["size", "age"]), &[("feature-order", BreaksByPosition)]),
            (
                |new| (new.features, new.n_features) = (names(&["age", "size", "rooms"]), Some(3)),
                &[("feature-added", Breaks)],
            ),
            (
                |new| (new.features, new.n_features) = (names(&["age"]), Some(1)),
                &[("feature-removed", BreaksByPosition)],
            ),
            (
                |new| new.features = names(&["age", "rooms"]),
                &[("feature-added", Breaks), ("feature-removed", BreaksByPosition)],
            ),
            (
                |new| new.features = names(&["Age", "size"]),
                &[("feature-added", Breaks), ("feature-removed", BreaksByPosition)],
            ),
            (|new| new.features = None, &[("feature-names", Breaks)]),
            (
                |new| (new.features, new.n_features) = (None, Some(3)),
                &[("feature-names", Breaks), ("feature-count", Breaks)],
            ),
            (|new| new.accepts = Some(Accepts::Missing), &[]),
            (|new| new.accepts = Some(Accepts::Anything), &[]),
            (|new| new.input = Some(InputKind::F64), &[]),
            (|new| new.input = Some(InputKind::Text), &[("input", Breaks)]),
            (|new| new.input = None, &[("input", Breaks)]),
        ],
    );
    check(
        || Interface { features: None, ..regression() },
        &[
            (|_| {}, &[]),
            (|new| new.features = names(&["age", "size"]), &[]),
            (|new| new.n_features = Some(3), &[("feature-count", Breaks)]),
            (|new| new.n_features = None, &[]),
            (
                |new| (new.features, new.n_features) = (names(&["a", "b", "c"]), Some(3)),
                &[("feature-count", Breaks)],
            ),
        ],
    );
    check(
        || Interface { accepts: Some(Accepts::Missing), input: Some(InputKind::F64), ..regression() },
        &[
            (|new| new.accepts = None, &[("missing-values", Breaks)]),
            (|new| new.accepts = Some(Accepts::Finite), &[("missing-values", Breaks)]),
            (|new| new.accepts = Some(Accepts::Anything), &[]),
            (|new| new.input = Some(InputKind::F32), &[("input-width", Note)]),
        ],
    );
    check(
        || Interface { accepts: Some(Accepts::Anything), ..regression() },
        &[(|new| new.accepts = Some(Accepts::Missing), &[("missing-values", Breaks)])],
    );
}

#[test]
fn changes_of_regressions() {
    check(
        regression,
        &[
            (|new| new.model = "Ridge".into(), &[("model-type", Note)]),
            (|new| new.target = Some("rent".into()), &[("target", Breaks)]),
            (|new| new.target = None, &[]),
            (|new| new.prediction = Some(PredictionKind::Class), &[("prediction", Breaks)]),
            (|new| new.prediction = Some(PredictionKind::Row), &[("prediction", Breaks)]),
            (|new| new.prediction = Some(PredictionKind::Outlier), &[("prediction", Breaks)]),
            (|new| new.prediction = None, &[("prediction", Breaks)]),
            (|new| new.outputs.push(OutputKind::Transformed), &[("output-added", Note)]),
            (
                |new| *new = Interface { model: "KnnRegressor".into(), ..regression() },
                &[("model-type", Note)],
            ),
            (
                |new| *new = classification(),
                &[("model-type", Note), ("target", Breaks), ("prediction", Breaks), ("output-added", Note)],
            ),
            (
                |new| *new = clusters(),
                &[("model-type", Note), ("feature-names", Breaks), ("prediction", Breaks)],
            ),
        ],
    );
    check(|| Interface { target: None, ..regression() }, &[(|new| new.target = Some("price".into()), &[])]);
}

#[test]
fn changes_of_classifications() {
    check(
        classification,
        &[
            (|_| {}, &[]),
            (|new| new.classes = names(&["a", "b", "c", "d"]), &[("class-added", Breaks)]),
            (|new| new.classes = names(&["a", "b"]), &[("class-removed", Breaks)]),
            (|new| new.classes = names(&["a", "c", "b"]), &[("class-order", Breaks)]),
            (
                |new| new.classes = names(&["a", "b", "d"]),
                &[("class-added", Breaks), ("class-removed", Breaks)],
            ),
            (
                |new| new.classes = names(&["0", "1", "2"]),
                &[("class-added", Breaks), ("class-removed", Breaks)],
            ),
            // A clustering.
            (|new| new.classes = None, &[("class-removed", Breaks)]),
            (|new| new.class_type = Some("integer"), &[("class-type", Breaks)]),
            (|new| new.class_type = None, &[]),
            (|new| new.outputs = vec![OutputKind::Predictions], &[("output-removed", Breaks)]),
            (
                |new| new.outputs = vec![OutputKind::Predictions, OutputKind::DecisionFunction],
                &[("output-removed", Breaks), ("output-added", Note)],
            ),
            (|new| new.outputs.push(OutputKind::DecisionFunction), &[("output-added", Note)]),
            (|new| new.model = "Svm".into(), &[("model-type", Note)]),
            (|new| new.prediction = Some(PredictionKind::Value), &[("prediction", Breaks)]),
            (
                |new| (new.features, new.classes) = (names(&["size", "age"]), names(&["c", "b", "a"])),
                &[("feature-order", BreaksByPosition), ("class-order", Breaks)],
            ),
        ],
    );
    check(
        clusters,
        &[
            (|_| {}, &[]),
            (|new| new.outputs.push(OutputKind::Probabilities), &[("output-added", Note)]),
            (|new| new.n_features = Some(4), &[("feature-count", Breaks)]),
            (
                |new| *new = classification(),
                &[("model-type", Note), ("output-added", Note), ("class-added", Breaks)],
            ),
        ],
    );
}

#[cfg(feature = "categories")]
#[test]
fn changes_of_categories() {
    use model_file::{Categories, UnknownCategory};

    fn of(colours: &[&str], unknown: UnknownCategory) -> Option<Categories> {
        Some(Categories { of_features: vec![names(colours).unwrap(), Vec::new()], unknown })
    }
    fn base() -> Interface {
        Interface { categories: of(&["green", "red"], UnknownCategory::Ignore), ..regression() }
    }
    check(
        base,
        &[
            (|_| {}, &[]),
            (|new| new.categories = of(&["green", "red", "violet"], UnknownCategory::Ignore), &[]),
            (
                |new| new.categories = of(&["blue", "green", "red"], UnknownCategory::Ignore),
                &[("category-order", BreaksByPosition)],
            ),
            (
                |new| new.categories = of(&["blue", "red"], UnknownCategory::Ignore),
                &[("category-removed", Breaks)],
            ),
            (
                |new| new.categories = of(&["green", "red"], UnknownCategory::Refuse),
                &[("unknown-category", Breaks)],
            ),
            (|new| new.categories = of(&[], UnknownCategory::Ignore), &[("categories", Breaks)]),
            (|new| new.categories = None, &[("unknown-category", Breaks), ("categories", Breaks)]),
            // By the names of the features.
            (
                |new| {
                    new.features = names(&["size", "age"]);
                    new.categories = new.categories.take().map(|mut categories| {
                        categories.of_features.reverse();
                        categories
                    });
                },
                &[("feature-order", BreaksByPosition)],
            ),
        ],
    );
    check(
        regression,
        &[(|new| new.categories = of(&["green", "red"], UnknownCategory::Ignore), &[("categories", Breaks)])],
    );
    // Also of a feature that comes after as many as the new model has.
    let colour = |new: &mut Interface| {
        (new.features, new.n_features) = (names(&["size"]), Some(1));
        new.categories = Some(Categories {
            of_features: vec![names(&["s", "m"]).unwrap()],
            unknown: UnknownCategory::Refuse,
        });
    };
    check(regression, &[(colour, &[("feature-removed", BreaksByPosition), ("categories", Breaks)])]);
    let mut refusing = base();
    refusing.categories = of(&["green", "red"], UnknownCategory::Refuse);
    assert!(refusing.differences(&base()).is_empty());
}

#[test]
fn changes_of_other_models() {
    check(
        transformer,
        &[
            (|_| {}, &[]),
            (|new| new.n_columns = Some(3), &[("columns", Breaks)]),
            (|new| new.n_columns = None, &[]),
            (|new| new.outputs = vec![OutputKind::Predictions], &[("output-removed", Breaks)]),
            (|new| new.features = names(&["size", "age"]), &[("feature-order", BreaksByPosition)]),
            (|new| new.prediction = Some(PredictionKind::Value), &[("prediction", Breaks)]),
        ],
    );
    check(
        texts,
        &[
            (|_| {}, &[]),
            (|new| new.n_columns = Some(101), &[("columns", Breaks)]),
            (|new| new.input = Some(InputKind::F32), &[("input", Breaks)]),
            (|new| new.prediction = Some(PredictionKind::LogProbability), &[("prediction", Breaks)]),
            (|new| new.model = "CountVectorizer".into(), &[("model-type", Note), ("terms", Breaks)]),
            (|new| new.terms = names(&["blue", "sky"]), &[("terms", Breaks)]),
            (|new| new.terms = names(&["green", "apple"]), &[("terms", Breaks)]),
            (|new| new.terms = None, &[]),
        ],
    );
    check(
        outliers,
        &[
            (|_| {}, &[]),
            (|new| new.outputs = vec![OutputKind::Predictions], &[("output-removed", Breaks)]),
            (|new| new.prediction = Some(PredictionKind::Class), &[("prediction", Breaks)]),
            (|new| new.features = names(&["age"]), &[("feature-removed", BreaksByPosition)]),
        ],
    );
}
