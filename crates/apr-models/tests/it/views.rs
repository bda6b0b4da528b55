//! Models over the bytes of their payload: the verdicts and the bits of the models that are loaded.

use apr_container::{
    Compression, DecodePayload, EncodePayload, Error, ModelType, PayloadLayout, PayloadWriter, SaveOptions,
    ViewPayload, encode_payload_to_vec, load_from_bytes, to_vec, view_bytes,
};
use apr_models::{
    ClassWeight, Classifier, ElasticNet, FitMode, KMeans, KMeansView, Lasso, LinearRegression, LinearView,
    LogisticRegression, LogisticRegressionView, Matrix, Regressor, Ridge, Vector,
};

/// Features of a sample of every model here: one more than have a loop of their own.
const N_FEATURES: usize = 17;

/// Samples: more than are taken at once.
const N_ROWS: usize = 6;

/// Bits of the predictions of a model or a view of it.
trait Says {
    fn bits(&self, rows: &[f32]) -> Result<Vec<u64>, apr_models::Error>;
}

macro_rules! says {
    ($($model:ty: $zero:expr, $into:ident, $bits:expr;)*) => {
        $(impl Says for $model {
            fn bits(&self, rows: &[f32]) -> Result<Vec<u64>, apr_models::Error> {
                let mut out = [$zero; N_ROWS];
                self.$into(rows, &mut out)?;
                Ok(out.map($bits).into())
            }
        })*
    };
}

/// All that are not numbers are the same: which of two of them a product is, is the processor's business.
fn of_float(value: f32) -> u64 {
    if value.is_nan() { u64::MAX } else { value.to_bits().into() }
}

fn of_class(class: usize) -> u64 {
    class as u64
}

says! {
    LinearRegression: 0.0, predict_into, of_float;
    Ridge: 0.0, predict_into, of_float;
    Lasso: 0.0, predict_into, of_float;
    ElasticNet: 0.0, predict_into, of_float;
    LinearView<'_>: 0.0, predict_into, of_float;
    LogisticRegression: 0.0, predict_proba_into, of_float;
    LogisticRegressionView<'_>: 0.0, predict_proba_into, of_float;
    KMeans: 0, predict_into, of_class;
    KMeansView<'_>: 0, predict_into, of_class;
}

/// A payload of any content, under the checksum that belongs to it.
struct Raw<'a>(&'a [u8]);

impl EncodePayload for Raw<'_> {
    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        out.bytes_raw(self.0)
    }
}

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 4e6 - 2.0
    };
    (0..count).map(|_| next()).collect()
}

fn coefficients() -> Vector {
    Vector::from_vec(numbers(N_FEATURES, 1))
}

fn logistic() -> LogisticRegression {
    LogisticRegression::from_parts(coefficients(), -0.5)
        .unwrap()
        .with_class_weight(ClassWeight::Manual(vec![1.0, 2.0]))
        .with_descent(0.1, FitMode::MiniBatch(32))
}

fn clusters() -> KMeans {
    let mut model = KMeans::new(3).unwrap().with_random_state(4);
    model.fit(&Matrix::from_vec(5, N_FEATURES, numbers(5 * N_FEATURES, 2)).unwrap()).unwrap();
    model
}

/// Whether file and view get one verdict and say the same, wherever in memory the file begins.
fn judge<M>(model_type: ModelType, layout: PayloadLayout, payload: &[u8], what: &str) -> bool
where
    M: ViewPayload + Says,
    for<'data> M::View<'data>: Says,
{
    let options = SaveOptions::default().with_layout(layout).with_created_at(0);
    let file = to_vec(&Raw(payload), model_type, &options).unwrap();
    let mut rows = numbers(N_ROWS * N_FEATURES, 3);
    rows[N_FEATURES] = f32::NAN;
    rows[2 * N_FEATURES] = f32::INFINITY;
    let loaded = load_from_bytes::<M>(&file, model_type).map(|model| model.bits(&rows));
    let mut space = vec![0; file.len() + 4];
    for shift in 0..4 {
        space[shift..shift + file.len()].copy_from_slice(&file);
        let viewed =
            view_bytes::<M>(&space[shift..shift + file.len()], model_type).map(|view| view.bits(&rows));
        match (&loaded, viewed) {
            (Ok(Ok(expected)), Ok(found)) => assert_eq!(&found.unwrap(), expected, "{what}"),
            // A model of another number of features.
            (Ok(Err(expected)), Ok(found)) => {
                assert_eq!(found.unwrap_err().code(), expected.code(), "{what}");
            }
            // A model that can predict nothing is no view.
            (Ok(Err(error)), Err(found)) => {
                assert_eq!((error.code(), found.code()), ("am-not-fitted", "am-not-fitted"), "{what}");
            }
            // That there are no weights is found before what follows them is read.
            (Err(error), Err(found)) => {
                assert!([error.code(), "am-not-fitted"].contains(&found.code()), "{what}: {found}, {error}");
            }
            (expected, found) => panic!("{what}: loaded {expected:?}, viewed {found:?}"),
        }
    }
    matches!(loaded, Ok(Ok(_)))
}

/// A model in every layout, and every damage of one byte and every cut of it.
fn judge_all<M>(model: &M)
where
    M: EncodePayload + ViewPayload + Says,
    for<'data> M::View<'data>: Says,
{
    let model_type = <M as DecodePayload>::MODEL_TYPE.unwrap();
    for layout in PayloadLayout::ALL {
        let payload = encode_payload_to_vec(model, layout).unwrap();
        assert!(judge::<M>(model_type, layout, &payload, "as it is"));
        for at in 0..payload.len() {
            for value in [0, 1, 2, 0x7F, 0x80, 0xFF] {
                let mut damaged = payload.clone();
                damaged[at] = value;
                judge::<M>(model_type, layout, &damaged, &format!("{layout}, byte {at} {value}"));
            }
            judge::<M>(model_type, layout, &payload[..at], &format!("{layout}, {at} bytes"));
        }
        judge::<M>(model_type, layout, &[&payload[..], &[0]].concat(), "one byte more");
    }
}

#[test]
fn linear_regressions() {
    judge_all(&LinearRegression::from_parts(coefficients(), 0.25).unwrap());
    judge_all(&Ridge::from_parts(0.5, coefficients(), 0.25).unwrap());
    judge_all(&Lasso::from_parts(0.5, coefficients(), 0.25).unwrap());
    judge_all(&ElasticNet::from_parts(0.5, 0.1, coefficients(), 0.25).unwrap());
}

#[test]
fn logistic_regressions() {
    judge_all(&logistic());
    let (model, rows) = (logistic(), numbers(N_ROWS * N_FEATURES, 3));
    let file = to_vec(&model, ModelType::LogisticRegression, &SaveOptions::default()).unwrap();
    let view = view_bytes::<LogisticRegression>(&file, ModelType::LogisticRegression).unwrap();
    let (mut expected, mut found) = ([9; N_ROWS], [9; N_ROWS]);
    model.predict_into(&rows, &mut expected).unwrap();
    view.predict_into(&rows, &mut found).unwrap();
    assert_eq!(found, expected);
    assert!(view.coefficients().iter().eq(coefficients().iter()));
    assert_eq!((view.intercept(), view.n_features()), (-0.5, N_FEATURES));
}

#[test]
fn clusters_and_their_centres() {
    judge_all(&clusters());
    let model = clusters();
    let file = to_vec(&model, ModelType::KMeans, &SaveOptions::default()).unwrap();
    let view = view_bytes::<KMeans>(&file, ModelType::KMeans).unwrap();
    assert_eq!((view.n_clusters(), view.n_features()), (3, N_FEATURES));
    assert!(view.centroids().iter().eq(model.centroids().unwrap().as_slice().iter().copied()));
}

#[test]
fn what_is_compressed_or_of_another_type_is_no_view() {
    let model = LinearRegression::from_parts(coefficients(), 0.25).unwrap();
    let expected = ModelType::LinearRegression;
    let file = to_vec(&model, expected, &SaveOptions::default()).unwrap();
    assert_eq!(view_bytes::<KMeans>(&file, ModelType::KMeans).unwrap_err().code(), "ac-wrong-type");
    let mut damaged = file;
    damaged[40] ^= 1;
    assert_eq!(view_bytes::<LinearRegression>(&damaged, expected).unwrap_err().code(), "ac-checksum");
    #[cfg(feature = "lz4")]
    {
        let options = SaveOptions::default().with_compression(Compression::LZ4);
        let file = to_vec(&model, expected, &options).unwrap();
        let error = view_bytes::<LinearRegression>(&file, expected).unwrap_err();
        assert_eq!((error.code(), error.offset()), ("ac-compressed", Some(20)));
    }
    #[cfg(not(feature = "lz4"))]
    let _ = Compression::LZ4;
}

#[test]
fn shapes_are_checked() {
    let model = LinearRegression::from_parts(coefficients(), 0.25).unwrap();
    let file = to_vec(&model, ModelType::LinearRegression, &SaveOptions::default()).unwrap();
    let view = view_bytes::<LinearRegression>(&file, ModelType::LinearRegression).unwrap();
    assert_eq!(view.try_predict_one(&[1.0]).unwrap_err().code(), "am-feature-count");
    assert_eq!(view.predict_into(&[1.0; 35], &mut [0.0; 2]).unwrap_err().code(), "am-input-length");
    let row = numbers(N_FEATURES, 5);
    assert_eq!(
        view.try_predict_one(&row).unwrap(),
        Regressor::predict(&model, &Matrix::from_vec(1, N_FEATURES, row).unwrap())[0]
    );
}
