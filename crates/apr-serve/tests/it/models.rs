//! Models of every kind of sample and answer.

use apr_models::{
    Accepts, AnyModel, ClassHead, CountVectorizer, CountVectorizerOptions, DecisionFunction, DecisionRule,
    Head, Input, Labels, LinearStep, LogisticRegression, Matrix, NgramLm, NgramLmOptions, Numbers,
    OutputShape, Pipeline, ProbabilityRule, ShiftDivide, StandardScaler, Step, ValueKind,
};
use apr_serve::Model;
use serde_json::{Value, json};

use crate::client::{Running, options, start, start_with};

fn logistic() -> AnyModel {
    let x = Matrix::from_vec(4, 1, vec![0.0, 1.0, 2.0, 3.0]).unwrap();
    let mut model = LogisticRegression::new();
    model.fit(&x, &[0, 0, 1, 1]).unwrap();
    model.into()
}

/// Two classes by the sign of the first feature.
pub(crate) fn classes(labels: Labels, accepts: Accepts) -> AnyModel {
    let head = ClassHead {
        labels,
        rule: DecisionRule::Positive,
        probabilities: ProbabilityRule::Logistic { factor: 1.0 },
        decision_function: DecisionFunction::Scores,
    };
    let scale = ShiftDivide::new(Some(vec![0.0, 0.0].into()), Some(vec![1.0, 1.0].into())).unwrap();
    let linear = LinearStep::new(1, vec![1.0, 0.0].into(), vec![0.0].into()).unwrap();
    let steps = vec![Step::ShiftDivide(scale), Step::Linear(linear)];
    Pipeline::from_parts(Input::Numbers { n_features: 2, accepts }, steps, Head::Classes(head))
        .unwrap()
        .into()
}

fn proba(server: &Running, body: &str) -> Value {
    server.ask("POST /predict?proba=true HTTP/1.1\r\n", body.as_bytes()).predictions()
}

fn raw(server: &Running, options: &str, values: &[f32]) -> crate::client::Response {
    let body: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    server
        .ask(&format!("POST /predict{options} HTTP/1.1\r\ncontent-type: application/vnd.apr.f32\r\n"), &body)
}

#[test]
fn classes_have_numbers_names_and_probabilities() {
    let server = start(logistic());
    assert_eq!(server.predict("[[0],[3]]").predictions(), json!([0, 1]));
    let shares = proba(&server, "[[0]]");
    assert_eq!(shares[0]["class"], 0);
    let sum: f64 = ["0", "1"].iter().map(|class| shares[0]["probabilities"][*class].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-6);
    let answer = raw(&server, "", &[0.0, 3.0]);
    assert_eq!(answer.header("content-type"), Some("application/vnd.apr.u32"));
    assert_eq!(answer.body, [0_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat());
    let answer = raw(&server, "?proba=1", &[0.0, 3.0]);
    assert_eq!((answer.header("apr-columns"), answer.body.len()), (Some("2"), 16));

    let named = Model::new(logistic()).unwrap().with_classes(vec!["n\"o".into(), "yes".into()]);
    let server = start_with(named, options());
    assert_eq!(server.predict("[[0],[3]]").predictions(), json!(["n\"o", "yes"]));
    assert!(proba(&server, "[[3]]")[0]["probabilities"]["n\"o"].is_number());
}

#[test]
fn labels_keep_their_type() {
    let of = |labels: Labels| start(classes(labels, Accepts::Finite)).predict("[[-1,0],[1,0]]").predictions();
    assert_eq!(of(Labels::Texts(vec!["a".into(), "b".into()])), json!(["a", "b"]));
    assert_eq!(of(Labels::Integers(vec![-7, 9])), json!([-7, 9]));
    assert_eq!(of(Labels::Booleans(vec![false, true])), json!([false, true]));
    assert_eq!(of(Labels::Numbers(vec![0.5, 1.5])), json!([0.5, 1.5]));
    let server = start(classes(Labels::Integers(vec![-7, 9]), Accepts::Finite));
    assert!(proba(&server, "[[1,0]]")[0]["probabilities"]["-7"].as_f64().unwrap() < 0.5);
    assert_eq!(raw(&server, "", &[1.0, 0.0]).body, 1_u32.to_le_bytes());
}

#[test]
fn missing_and_infinite_values_are_for_models_that_take_them() {
    let labels = || Labels::Integers(vec![0, 1]);
    let code = |accepts, body: &str| {
        let response = start(classes(labels(), accepts)).predict(body);
        if response.status == 200 { "ok".to_owned() } else { response.code() }
    };
    for (accepts, missing, infinite) in [
        (Accepts::Finite, "sv-number", "sv-number"),
        (Accepts::Missing, "ok", "sv-number"),
        (Accepts::Anything, "ok", "ok"),
    ] {
        assert_eq!(code(accepts, "[1, null]"), missing);
        assert_eq!(code(accepts, "[1, \"nan\"]"), missing);
        assert_eq!(code(accepts, "[1, \"-inf\"]"), infinite);
        let server = start(classes(labels(), accepts));
        assert_eq!(raw(&server, "", &[1.0, f32::NAN]).status == 200, missing == "ok");
        assert_eq!(raw(&server, "", &[1.0, f32::INFINITY]).status == 200, infinite == "ok");
    }
}

#[test]
fn numbers_that_json_lacks_are_strings() {
    let step = LinearStep::new(1, vec![1e300, 0.0].into(), vec![0.0].into()).unwrap();
    let head = Head::Values {
        kind: ValueKind::Predictions,
        link: apr_models::Link::None,
        shape: OutputShape::Vector,
    };
    let model = Pipeline::from_parts(
        Input::Numbers { n_features: 2, accepts: Accepts::Finite },
        vec![Step::Linear(step)],
        head,
    )
    .unwrap();
    let server = start(model.into());
    assert_eq!(server.predict("[[1e300,0],[-1e300,0],[0.1,0]]").predictions(), json!(["inf", "-inf", 1e299]));
}

#[test]
fn rows_become_rows() {
    let scaler = StandardScaler::from_parts(vec![1.0, 2.0], vec![1.0, 2.0]).unwrap();
    let server = start(scaler.into());
    assert_eq!(server.predict("[[2,4]]").predictions(), json!([[1.0, 1.0]]));
    let answer = raw(&server, "", &[2.0, 4.0]);
    assert_eq!((answer.header("apr-columns"), answer.body.len()), (Some("2"), 8));
}

#[test]
fn texts_become_terms_and_probabilities() {
    let texts = ["red apple", "green apple"];
    let counts = CountVectorizer::fit(&texts, &CountVectorizerOptions::default()).unwrap();
    let server = start(counts.into());
    for body in [r#"["apple apple x"]"#, r#""apple apple x""#, r#"{"rows": ["\u0061pple apple x"]}"#] {
        assert_eq!(server.predict(body).predictions(), json!([{"apple": 2.0}]), "{body}");
    }
    assert_eq!(server.predict("[\"\", \"red\\n\\ud83d\\ude00\"]").predictions(), json!([{}, {"red": 1.0}]));
    for body in ["[1]", "[[1]]", r#"["a",1]"#, r#"["\ud83d"]"#, r#"["\x"]"#, "[\"\t\"]", r#"["a"#] {
        assert_eq!(server.predict(body).code(), "sv-json", "{body}");
    }
    assert_eq!(raw(&server, "", &[1.0]).code(), "sv-media-type");
    assert_eq!(server.get("/model").json()["takes"], "texts");

    let lm = NgramLm::fit(&[vec!["a", "b"], vec!["a", "c"]], &NgramLmOptions::default()).unwrap();
    let found = start(lm.into()).predict(r#"["a b", "c a"]"#).predictions();
    assert!(found[0].as_f64().unwrap() > found[1].as_f64().unwrap());
}

#[test]
fn a_model_that_says_nothing_is_not_served() {
    assert_eq!(Model::new(AnyModel::from(Numbers::from(vec![1.0]))).unwrap_err().code(), "am-no-predictions");
}
