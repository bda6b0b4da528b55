//! Pipelines from outside: their bytes, what they refuse, what they say.

use apr_container::v1::Container;
use apr_container::{
    ModelType, PayloadLayout, SaveOptions, decode_payload_from_slice, encode_payload_to_vec, to_vec,
};
use apr_models::{
    Accepts, AnyModel, CentroidDistances, ClassHead, ClusterRule, Column, Columns, Covariance,
    DecisionFunction, DecisionRule, Floats, GaussianLogDensity, Head, Input, KernelStep, Label, Labels,
    LinearStep, Link, Matrix, Model, OutlierHead, OutputKind, OutputShape, Pipeline, Predictions,
    ProbabilityRule, RowNorm, Samples, ScaleAdd, ShiftDivide, Step, StepActivation, StepKernel, Table,
    Tensors, TermFrequency, TfIdfWeights, ValueKind,
};

/// Writes the notation of `docs/payloads.md`.
#[derive(Clone, Default)]
pub(crate) struct Fields(pub(crate) Vec<u8>);

impl Fields {
    /// A pipeline of rows of `n_features` finite numbers and `n_steps` steps, which follow.
    pub(crate) fn pipeline(n_features: u64, n_steps: u64) -> Self {
        Self::default().u32(1).u32(1).u32(0).u64(n_features).u32(0).u64(n_steps)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn f64(self, value: f64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.u64(text.len() as u64).bytes(text.as_bytes())
    }

    /// Numbers that are 32-bit ones.
    pub(crate) fn narrow(self, values: &[f32]) -> Self {
        values
            .iter()
            .fold(self.u32(1).u64(values.len() as u64), |fields, value| fields.bytes(&value.to_le_bytes()))
    }

    pub(crate) fn wide(self, values: &[f64]) -> Self {
        values.iter().fold(self.u32(0).u64(values.len() as u64), |fields, &value| fields.f64(value))
    }

    pub(crate) fn u32s(self, values: &[u32]) -> Self {
        values.iter().fold(self.u64(values.len() as u64), |fields, &value| fields.u32(value))
    }

    pub(crate) fn texts(self, texts: &[&str]) -> Self {
        texts.iter().fold(self.u64(texts.len() as u64), |fields, text| fields.text(text))
    }

    /// The head of rows that are a table.
    pub(crate) fn rows(self) -> Self {
        self.u32(0).u32(1).u32(0).bytes(&[0])
    }

    pub(crate) fn read(&self) -> Result<Pipeline, apr_container::Error> {
        decode_payload_from_slice(&self.0, PayloadLayout::default(), ModelType::Custom)
    }
}

/// Reads every beginning of the model's payload, and the payload with each of its bytes changed in several ways: all is
/// refused, or a model that `ask` can be asked and that is written and read again.
pub(crate) fn survives_damage(model: &Pipeline, ask: impl Fn(&Pipeline)) {
    let sound = Fields(encode_payload_to_vec(model, PayloadLayout::default()).unwrap());
    assert_eq!(&sound.read().unwrap(), model);
    ask(model);
    for end in 0..sound.0.len() {
        assert!(Fields(sound.0[..end].to_vec()).read().is_err(), "{end}");
    }
    for place in 0..sound.0.len() {
        for mask in [1, 2, 4, 0x10, 0x40, 0x80, 0xFF] {
            let mut damaged = sound.clone();
            damaged.0[place] ^= mask;
            match damaged.read() {
                Ok(model) => {
                    let again = Fields(encode_payload_to_vec(&model, PayloadLayout::default()).unwrap());
                    assert_eq!(again.read().unwrap(), model, "byte {place} by {mask:#x}");
                    ask(&model);
                }
                Err(error) => {
                    let code = error.code();
                    let known = code.starts_with("ac-") || apr_models::ErrorKind::CODES.contains(&code);
                    assert!(known && !error.to_string().is_empty(), "{code}");
                }
            }
        }
    }
}

/// Asks about rows of zeros and of what is no number, and about a text.
pub(crate) fn ask_anything(model: &Pipeline) {
    let mut scores = vec![0.0; 9 * model.n_outputs()];
    match model.n_features() {
        // What a damaged number says is many.
        Some(1..64) => {
            for value in [0.0, f64::NAN, f64::INFINITY, 1e300] {
                let rows = vec![value; 9 * model.n_features().unwrap()];
                let _ = model.scores_into(Samples::F64(&rows), &mut scores);
            }
        }
        Some(_) => {}
        None => {
            let texts = [
                "to be, or not to be",
                "",
                "\u{e9}a\u{301} \u{ac00}  B\u{fb01}",
                "be",
                "a",
                "b",
                "c",
                "d",
                "e",
            ];
            model.scores_into(Samples::Text(&texts), &mut scores).unwrap();
        }
    }
}

fn input(n_features: usize, accepts: Accepts) -> Input {
    Input::Numbers { n_features, accepts }
}

fn rows() -> Head {
    Head::Values { kind: ValueKind::Transformed, link: Link::None, shape: OutputShape::Matrix }
}

fn linear(n_outputs: usize, weights: &[f64], bias: &[f64]) -> Step {
    Step::Linear(LinearStep::new(n_outputs, weights.into(), bias.into()).unwrap())
}

fn model(n_features: usize, steps: Vec<Step>, head: Head) -> Pipeline {
    Pipeline::from_parts(input(n_features, Accepts::Finite), steps, head).unwrap()
}

fn values(model: &Pipeline, rows: &[f64]) -> Vec<f64> {
    let n_rows = rows.len() / model.n_features().unwrap();
    let mut out = vec![f64::NAN; n_rows * model.n_outputs()];
    model.values_into(Samples::F64(rows), &mut out).unwrap();
    out
}

#[test]
fn bytes_are_those_of_the_page() {
    let scaler = ShiftDivide::new(Some(vec![1.0_f64, 2.0].into()), Some(vec![0.1, 2.0].into())).unwrap();
    let range =
        ScaleAdd::new(vec![0.5_f64, 0.25].into(), vec![0.0_f64, -1.0].into(), Some((0.0, 1.0))).unwrap();
    let centres = CentroidDistances::new(3, vec![0.0_f32, 0.5, 1.0, 1.5, 2.0, 2.5].into()).unwrap();
    let dense = Table::dense(2, vec![1.0_f64, 2.0, 3.0, 4.0, 5.0, 6.0].into()).unwrap();
    let kernel = StepKernel::Polynomial { gamma: 0.5, coef0: 1.0, degree: 3 };
    let kernel =
        KernelStep::new(kernel, vec![1, 1], dense, vec![1.5_f64, -1.5].into(), vec![0.25_f64].into())
            .unwrap();
    let variances = Covariance::Variances(vec![1.0_f64, 2.0].into());
    let normals =
        GaussianLogDensity::new(vec![-1.0, f64::NEG_INFINITY].into(), vec![0.0_f64, 1.0].into(), variances)
            .unwrap();
    let factor = Covariance::PrecisionFactors(vec![1.0_f64, 2.0, 0.0, 4.0].into());
    let mixture = GaussianLogDensity::new(vec![0.1].into(), vec![0.0_f64, 1.0].into(), factor).unwrap();
    let steps = vec![
        Step::ShiftDivide(scaler),
        Step::ScaleAdd(range),
        linear(2, &[1.0, 2.0, 3.0, 0.1], &[0.0, 1.0]),
        Step::Activation(StepActivation::Tanh),
        Step::CentroidDistances(centres),
        Step::Kernel(kernel),
        Step::TfIdfWeights(
            TfIdfWeights::new(TermFrequency::Logarithm, RowNorm::L2, Some(vec![0.5_f64].into())).unwrap(),
        ),
        Step::GaussianLogDensity(normals),
        Step::GaussianLogDensity(mixture),
    ];
    let head = ClassHead {
        labels: Labels::Texts(vec!["a".into()]),
        rule: DecisionRule::ArgMax,
        probabilities: ProbabilityRule::Softmax,
        decision_function: DecisionFunction::Scores,
    };
    let model = model(2, steps, Head::Classes(head));
    let fields = Fields::pipeline(2, 9)
        .u32(0)
        .bytes(&[1])
        .narrow(&[1.0, 2.0])
        .bytes(&[1])
        .wide(&[0.1, 2.0])
        .u32(1)
        .narrow(&[0.5, 0.25])
        .narrow(&[0.0, -1.0])
        .bytes(&[1])
        .f64(0.0)
        .f64(1.0)
        .u32(2)
        .u64(2)
        .wide(&[1.0, 2.0, 3.0, 0.1])
        .narrow(&[0.0, 1.0])
        .u32(3)
        .u32(1)
        .u32(7)
        .u64(3)
        .narrow(&[0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
        .u32(5)
        .u32(1)
        .f64(0.5)
        .f64(1.0)
        .u32(3)
        .u64(2)
        .u64(1)
        .u64(1)
        .u32(0)
        .u64(2)
        .narrow(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        .narrow(&[1.5, -1.5])
        .narrow(&[0.25])
        .u32(8)
        .bytes(&[1])
        .u32(2)
        .bytes(&[1])
        .narrow(&[0.5])
        .u32(9)
        .narrow(&[-1.0, f32::NEG_INFINITY])
        .narrow(&[0.0, 1.0])
        .u32(0)
        .narrow(&[1.0, 2.0])
        .u32(9)
        .wide(&[0.1])
        .narrow(&[0.0, 1.0])
        .u32(1)
        .u64(1)
        .narrow(&[1.0, 2.0, 0.0, 4.0])
        .u32(1)
        .u32(1)
        .u64(1)
        .text("a")
        .u32(2)
        .u32(3)
        .u32(1);
    assert_eq!(encode_payload_to_vec(&model, PayloadLayout::default()).unwrap(), fields.0);
    assert_eq!(fields.read().unwrap(), model);
}

#[test]
fn heads_have_the_bytes_of_the_page() {
    let step = |width| linear(width, &vec![1.0; 3 * width], &vec![0.0; width]);
    let classes = |labels, rule, probabilities, decision_function| {
        Head::Classes(ClassHead { labels, rule, probabilities, decision_function })
    };
    let cases: [(usize, Head, Fields); 7] = [
        (2, rows(), Fields::default().rows()),
        (
            1,
            Head::Values { kind: ValueKind::Predictions, link: Link::Exp, shape: OutputShape::Vector },
            Fields::default().u32(0).u32(0).u32(1).bytes(&[1]),
        ),
        (
            1,
            classes(
                Labels::Booleans(vec![false, true]),
                DecisionRule::NonNegative,
                ProbabilityRule::Logistic { factor: 2.0 },
                DecisionFunction::None,
            ),
            Fields::default().u32(1).u32(2).u64(2).bytes(&[0, 1]).u32(1).u32(2).f64(2.0).u32(0),
        ),
        (
            3,
            classes(
                Labels::Integers(vec![-1, 5, 7]),
                DecisionRule::OneVsOneConfidence,
                ProbabilityRule::None,
                DecisionFunction::OneVsRest,
            ),
            Fields::default().u32(1).u32(0).u64(3).u64(u64::MAX).u64(5).u64(7).u32(4).u32(0).u32(3),
        ),
        (
            2,
            classes(
                Labels::Numbers(vec![0.5, 1.5]),
                DecisionRule::ArgMax,
                ProbabilityRule::Normalized,
                DecisionFunction::None,
            ),
            Fields::default().u32(1).u32(3).u64(2).f64(0.5).f64(1.5).u32(2).u32(4).u32(0),
        ),
        (2, Head::Clusters(ClusterRule::ArgMax), Fields::default().u32(2).u32(1)),
        (
            1,
            Head::Outliers(OutlierHead { divisor: 3.0, cut: 2.0, offset: -0.5 }),
            Fields::default().u32(3).f64(3.0).f64(2.0).f64(-0.5),
        ),
    ];
    for (width, head, fields) in cases {
        let expected = Fields::pipeline(3, 1)
            .u32(2)
            .u64(width as u64)
            .narrow(&vec![1.0; 3 * width])
            .narrow(&vec![0.0; width])
            .bytes(&fields.0);
        let model = model(3, vec![step(width)], head);
        assert_eq!(encode_payload_to_vec(&model, PayloadLayout::default()).unwrap(), expected.0);
        assert_eq!(expected.read().unwrap(), model);
    }
}

#[test]
fn columns_are_stored_as_lists() {
    let f64s = |fields: Fields, values: &[f64]| {
        values.iter().fold(fields.u64(values.len() as u64), |fields, &value| fields.f64(value))
    };
    let fields = |columns: &[u32], fills: &[f64], equals: &[f64]| {
        f64s(f64s(Fields::pipeline(2, 1).u32(10).u32s(columns), fills), equals).rows()
    };
    let (none, columns) = (f64::INFINITY, [1, 0, 1, 1]);
    let (fills, equals) = ([0.5, none, -1.0, none], [none, 2.0, 0.0, none]);
    let expected = fields(&columns, &fills, &equals);
    let number = |value: f64| (value != none).then_some(value);
    let outputs = columns.iter().zip(fills).zip(equals);
    let outputs = outputs.map(|((&column, fill), equals)| Column {
        column,
        fill: number(fill),
        equals: number(equals),
    });
    let step = Columns::new(&outputs.collect::<Vec<_>>());
    let model = model(2, vec![Step::Columns(step.unwrap())], rows());
    assert_eq!(encode_payload_to_vec(&model, PayloadLayout::default()).unwrap(), expected.0);
    assert_eq!(expected.read().unwrap(), model);
    for (fields, code, why) in [
        (fields(&[], &[], &[]), "am-empty-matrix", "no column"),
        (fields(&[2], &[none], &[none]), "am-part", "a column that is not there"),
        (fields(&[0], &[f64::NAN], &[none]), "am-part", "a fill that is no number"),
        (fields(&[0], &[none], &[-none]), "am-part", "an infinite category"),
        (fields(&[0, 1], &[none], &[none]), "am-part-length", "lists of other lengths"),
        (fields(&[0], &[none], &[none; 2]), "am-part-length", "lists of other lengths"),
        (Fields::pipeline(2, 1).u32(10).u64(u64::MAX).rows(), "ac-count", "more columns than bytes"),
    ] {
        assert_eq!(fields.read().unwrap_err().code(), code, "{why}");
    }
}

#[test]
fn payloads_that_cannot_be_are_refused() {
    let relu = |fields: Fields| fields.u32(3).u32(0);
    let start = || Fields::pipeline(2, 1);
    assert!(relu(start()).rows().read().is_ok());
    for (fields, code, why) in [
        (Fields::pipeline(2, 0).rows(), "am-part", "no step"),
        (relu(Fields::pipeline(0, 1)).rows(), "am-part", "no features"),
        (relu(Fields::pipeline((1 << 31) - 1, 1)).rows(), "am-part", "too many features"),
        (relu(Fields::pipeline(2, u64::MAX)).rows(), "ac-count", "more steps than bytes"),
        (start().u32(11).rows(), "ac-variant", "an unknown step"),
        (start().u32(3).u32(3).rows(), "ac-variant", "an unknown activation"),
        (relu(Fields::default().u32(1).u32(1).u32(0).u64(2).u32(3).u64(1)), "ac-variant", "accepts"),
        (relu(Fields::default().u32(1).u32(2).u32(0).u64(2).u32(0).u64(1)), "am-form", "form 2"),
        (relu(start()).u32(4), "ac-variant", "an unknown head"),
        (relu(start()).rows().bytes(&[0]), "ac-payload-trailing", "a byte too many"),
        (relu(start()).u32(0).u32(0).u32(0).bytes(&[1]), "am-part-length", "flat rows of two"),
        (start().u32(0).bytes(&[1]).wide(&[1.0, 2.0]).bytes(&[0]).rows(), "ac-value", "wide for nothing"),
        (start().u32(0).bytes(&[1]).wide(&[]).bytes(&[0]).rows(), "ac-value", "wide and empty"),
        (start().u32(0).bytes(&[1]).narrow(&[1.0]).bytes(&[0]).rows(), "am-part-length", "a short list"),
        (start().u32(0).bytes(&[0, 1]).narrow(&[1.0, 0.0]).rows(), "am-part", "a divisor of 0"),
        (
            start().u32(2).u64(1 << 40).narrow(&[1.0, 1.0]).narrow(&[1.0]).rows(),
            "am-empty-matrix",
            "more outputs than weights",
        ),
        (
            start().u32(9).narrow(&[0.0]).narrow(&[0.0, 0.0]).u32(1).u64(2).narrow(&[1.0; 4]).rows(),
            "am-part-length",
            "another number of factors",
        ),
    ] {
        assert_eq!(fields.read().unwrap_err().code(), code, "{why}");
    }
}

#[test]
fn files_and_tensors_carry_it() {
    let model = model(2, vec![linear(1, &[0.1, 0.2], &[0.3])], rows());
    let file = to_vec(&model, ModelType::Custom, &SaveOptions::default()).unwrap();
    let loaded = AnyModel::from_container(&Container::from_bytes(&file).unwrap()).unwrap();
    assert_eq!((loaded.name(), loaded.n_features()), ("Pipeline", Some(2)));
    assert_eq!(loaded, AnyModel::from(model.clone()));
    let tensors = model.to_tensors().unwrap();
    assert_eq!(tensors.names().collect::<Vec<_>>(), ["payload"]);
    let tensors = Tensors::from_safetensors(&tensors.to_safetensors().unwrap()).unwrap();
    assert_eq!(Pipeline::from_tensors(&tensors).unwrap(), model);
    let mut damaged = Tensors::of_model("Pipeline");
    damaged.push_u8("payload", &[3], &[1, 0, 0]).unwrap();
    assert_eq!(Pipeline::from_tensors(&damaged).unwrap_err().code(), "ac-payload-end");
}

#[test]
fn answers_keep_all_digits() {
    let scaler = ShiftDivide::new(Some(vec![0.1].into()), Some(vec![0.3].into())).unwrap();
    let model = model(1, vec![Step::ShiftDivide(scaler), linear(1, &[0.7], &[1e-9])], rows());
    let x = 123.456_789_012_345;
    assert_eq!(values(&model, &[x]), [(x - 0.1) / 0.3 * 0.7 + 1e-9]);
}

#[test]
fn every_head_predicts() {
    let x = Matrix::from_vec(3, 1, vec![-2.0, 0.0, 2.0]).unwrap();
    let one = || vec![linear(1, &[1.0], &[0.0])];
    let predict = |head| model(1, one(), head).try_predict(&x).unwrap();
    let flat = Head::Values { kind: ValueKind::Predictions, link: Link::Exp, shape: OutputShape::Vector };
    let expected = [-2.0_f64, 0.0, 2.0].map(f64::exp);
    assert_eq!(predict(flat), Predictions::Values(Floats::F64(expected.to_vec())));
    let values = Floats::F64(vec![-2.0, 0.0, 2.0]);
    assert_eq!(predict(rows()), Predictions::Rows { values, n_columns: 1 });
    let labelled = |labels: Labels| {
        let (rule, probabilities, decision_function) =
            (DecisionRule::Positive, ProbabilityRule::None, DecisionFunction::Scores);
        let head = Head::Classes(ClassHead { labels, rule, probabilities, decision_function });
        let model = AnyModel::from(model(1, one(), head));
        let Predictions::Classes(classes) = model.try_predict(&x).unwrap() else { panic!("no classes") };
        classes.iter().map(|&class| format!("{:?}", model.label(class).unwrap())).collect::<Vec<_>>()
    };
    for (labels, expected) in [
        (Labels::Integers(vec![3, 9]), ["Integer(3)", "Integer(3)", "Integer(9)"]),
        (Labels::Integers(vec![-1, 4]), ["Integer(-1)", "Integer(-1)", "Integer(4)"]),
        (Labels::Texts(vec!["no".into(), "yes".into()]), ["Text(\"no\")", "Text(\"no\")", "Text(\"yes\")"]),
    ] {
        assert_eq!(labelled(labels), expected);
    }
    let outliers = Head::Outliers(OutlierHead { divisor: 1.0, cut: 0.0, offset: -0.5 });
    assert_eq!(predict(outliers), Predictions::Outliers(vec![-1, 1, 1]));
    let centres = CentroidDistances::new(2, vec![-1.0_f64, 1.5].into()).unwrap();
    let clusters = model(1, vec![Step::CentroidDistances(centres)], Head::Clusters(ClusterRule::ArgMin));
    assert_eq!(clusters.try_predict(&x).unwrap(), Predictions::Classes(vec![0, 0, 1]));
    assert_eq!(clusters.label(1), Some(Label::Integer(1)));
    assert_eq!(self::values(&clusters, &[-2.0]), [1.0, 3.5]);
    assert_eq!(clusters.n_probabilities(), None);
}

/// Each output is there exactly if the capabilities say so.
#[test]
fn capabilities_are_what_predict_does() {
    let heads = [
        Head::Values { kind: ValueKind::Predictions, link: Link::None, shape: OutputShape::Vector },
        rows(),
        Head::Outliers(OutlierHead { divisor: 1.0, cut: 0.0, offset: -0.5 }),
        Head::Clusters(ClusterRule::ArgMin),
        Head::Clusters(ClusterRule::ArgMax),
        Head::Classes(ClassHead {
            labels: Labels::Booleans(vec![false, true]),
            rule: DecisionRule::Positive,
            probabilities: ProbabilityRule::Logistic { factor: 1.0 },
            decision_function: DecisionFunction::Scores,
        }),
    ];
    for head in heads {
        let model = AnyModel::from(model(1, vec![linear(1, &[1.0], &[0.0])], head));
        for output in OutputKind::ALL {
            let found = model.predict(Samples::F64(&[1.0, -1.0]), 2, output);
            assert_eq!(
                found.as_ref().map(Predictions::len).ok(),
                model.capabilities().supports(output).then_some(2),
                "{model:?} {output:?}"
            );
        }
    }
}

#[test]
fn values_that_it_does_not_take_are_named() {
    for (accepts, refused) in [
        (Accepts::Finite, [true, true]),
        (Accepts::Missing, [false, true]),
        (Accepts::Anything, [false, false]),
    ] {
        let steps = vec![linear(1, &[1.0, 1.0], &[0.0])];
        let model = Pipeline::from_parts(input(2, accepts), steps, rows()).unwrap();
        for (value, refused) in [f64::NAN, f64::INFINITY].into_iter().zip(refused) {
            let mut out = [0.0; 2];
            let found = model.scores_into(Samples::F64(&[0.0, 0.0, 1.0, value]), &mut out);
            match found {
                Err(error) => assert!(refused && error.to_string().contains("row 1, column 1"), "{error}"),
                Ok(()) => assert!(!refused, "{accepts:?} {value}"),
            }
        }
        let error = model.scores_into(Samples::Text(&["a", "b"]), &mut [0.0; 2]).unwrap_err();
        assert!(["am-part", "am-feature-count"].contains(&error.code()), "{error}");
    }
}
