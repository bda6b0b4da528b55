//! The payload layouts of `docs/payloads.md`: what is written is read back unchanged, and what no writer produces is refused or
//! read as a model that works.

pub(crate) mod dice;
mod fields;
mod heads;

use core::mem::discriminant;

use apr_container::v1::Container;
use apr_container::{
    DecodePayload, Error, Expect, PayloadLayout, ReadOptions, SaveOptions, decode_payload_from_slice,
    encode_payload_to_vec, load_from_bytes_with, to_vec,
};
use apr_models::{AnyModel, Matrix, Model, OutputKind, Tensors};
use proptest::prelude::*;

use self::dice::{Dice, KINDS};

fn encode(model: &AnyModel) -> Vec<u8> {
    encode_payload_to_vec(model, PayloadLayout::default()).unwrap()
}

/// Reads the payload as the very model that `like` is.
fn decode(bytes: &[u8], like: &AnyModel) -> Result<AnyModel, Error> {
    fn of<M: DecodePayload>(bytes: &[u8], like: &AnyModel) -> Result<AnyModel, Error>
    where
        AnyModel: From<M>,
    {
        decode_payload_from_slice::<M>(bytes, PayloadLayout::default(), like.model_type()).map(AnyModel::from)
    }
    match like {
        AnyModel::Pca(_) => of::<apr_models::Pca>(bytes, like),
        AnyModel::NaiveBayes(_) => of::<apr_models::NaiveBayes>(bytes, like),
        AnyModel::KnnClassifier(_) => of::<apr_models::KnnClassifier>(bytes, like),
        AnyModel::KnnRegressor(_) => of::<apr_models::KnnRegressor>(bytes, like),
        AnyModel::Svm(_) => of::<apr_models::Svm>(bytes, like),
        AnyModel::GradientBoostingRegressor(_) => of::<apr_models::GradientBoostingRegressor>(bytes, like),
        AnyModel::GradientBoostingClassifier(_) => of::<apr_models::GradientBoostingClassifier>(bytes, like),
        AnyModel::NgramLm(_) => of::<apr_models::NgramLm>(bytes, like),
        AnyModel::TfIdf(_) => of::<apr_models::TfIdf>(bytes, like),
        AnyModel::CountVectorizer(_) => of::<apr_models::CountVectorizer>(bytes, like),
        AnyModel::NeuralSequential(_) => of::<apr_models::NeuralSequential>(bytes, like),
        AnyModel::ContentRecommender(_) => of::<apr_models::ContentRecommender>(bytes, like),
        AnyModel::Pipeline(_) => of::<apr_models::Pipeline>(bytes, like),
        other => panic!("{} has no layout of our own", other.name()),
    }
}

/// Asks the model what it is for. It may refuse; it may not panic.
fn ask(model: &AnyModel) {
    let n_features = model.n_features().unwrap_or(1);
    if let Some(len) = n_features.checked_mul(3).filter(|&len| len < 10_000) {
        let values = (0..len).map(|idx| idx as f32 * 0.75 - 1.0).collect();
        if let Ok(predictions) = model.try_predict(&Matrix::from_vec(3, n_features, values).unwrap()) {
            let nothing = model.predict_nothing(OutputKind::Predictions).unwrap();
            assert!(
                nothing.is_empty() && discriminant(&nothing) == discriminant(&predictions),
                "{nothing:?}"
            );
        }
    }
    match model {
        AnyModel::NgramLm(model) => {
            let likely = model.probability(&["a", "zz"], "b");
            assert!((0.0..=1.0).contains(&likely), "{likely}");
            assert!(model.sample(&["b"], 10, 3).len() <= 10);
        }
        AnyModel::TfIdf(model) => assert_eq!(model.transform(["a bb cc", ""]).n_rows(), 2),
        AnyModel::CountVectorizer(model) => assert_eq!(model.transform(["a bb cc", ""]).n_rows(), 2),
        AnyModel::ContentRecommender(model) => {
            let id = model.ids().next().unwrap();
            assert!(model.similar_to(id, 2).unwrap().len() <= 2);
            let _ = model.recommend_text("bb cc", 2);
        }
        _ => {}
    }
    assert!(model.to_tensors().unwrap().names().count() > 0);
}

/// A payload that a writer of ours could have written is read and written back bit for bit; any other is refused.
fn check_any(bytes: &[u8], like: &AnyModel) {
    if let Ok(model) = decode(bytes, like) {
        assert_eq!(encode(&model), bytes, "{} has more than one encoding", like.name());
        ask(&model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_model_is_read_as_it_was_written(seed: u64) {
        for kind in KINDS {
            let model = Dice::new(seed).model(kind);
            let bytes = encode(&model);
            prop_assert_eq!(&decode(&bytes, &model).unwrap(), &model);
            // Without a name it is found by trying.
            let tried: AnyModel = decode_payload_from_slice(&bytes, PayloadLayout::default(), model.model_type()).unwrap();
            prop_assert_eq!(&tried, &model);
            for layout in PayloadLayout::ALL {
                prop_assert_eq!(&encode_payload_to_vec(&model, layout).unwrap(), &bytes, "same in every layout");
            }
            ask(&model);
        }
    }

    #[test]
    fn containers_and_tensors_carry_every_model(seed: u64) {
        for kind in KINDS {
            let model = Dice::new(seed).model(kind);
            let file = to_vec(&model, model.model_type(), &SaveOptions::default().with_created_at(0)).unwrap();
            let container = Container::from_bytes(&file).unwrap();
            prop_assert_eq!(&AnyModel::from_container(&container).unwrap(), &model);
            let loaded: AnyModel =
                load_from_bytes_with(&file, Expect::from(model.model_type()), ReadOptions::STRICT).unwrap();
            prop_assert_eq!(&loaded, &model);

            let tensors = model.to_tensors().unwrap();
            prop_assert_eq!(tensors.model(), Some(model.name()));
            let tensors = Tensors::from_safetensors(&tensors.to_safetensors().unwrap()).unwrap();
            prop_assert_eq!(&AnyModel::from_tensors(&tensors).unwrap(), &model);
        }
    }

    #[test]
    fn overwritten_bytes_are_refused_or_make_a_model_that_works(
        seed: u64,
        at: prop::sample::Index,
        bytes in prop::collection::vec(any::<u8>(), 1..12),
    ) {
        for kind in KINDS {
            let model = Dice::new(seed).model(kind);
            let mut damaged = encode(&model);
            let at = at.index(damaged.len());
            for (place, byte) in damaged.iter_mut().skip(at).zip(&bytes) {
                *place = *byte;
            }
            check_any(&damaged, &model);
        }
    }

    #[test]
    fn invented_payloads_are_refused_or_make_a_model_that_works(
        form in 1_u32..3,
        bytes in prop::collection::vec(prop_oneof![3 => Just(0_u8), 2 => Just(1), 1 => any::<u8>()], 0..200),
    ) {
        for kind in KINDS {
            let model = Dice::new(1).model(kind);
            let invented = [&1_u32.to_le_bytes()[..], &form.to_le_bytes(), &bytes].concat();
            check_any(&invented, &model);
        }
    }
}

#[test]
fn every_flipped_bit_is_refused_or_makes_a_model_that_works() {
    for kind in KINDS {
        for seed in 0..3 {
            let model = Dice::new(seed).model(kind);
            let sound = encode(&model);
            for idx in 0..sound.len() {
                for bit in 0..8 {
                    let mut damaged = sound.clone();
                    damaged[idx] ^= 1 << bit;
                    check_any(&damaged, &model);
                }
            }
        }
    }
}

#[test]
fn every_prefix_and_every_longer_payload_is_refused() {
    for kind in KINDS {
        let model = Dice::new(5).model(kind);
        let sound = encode(&model);
        for len in 0..sound.len() {
            assert!(decode(&sound[..len], &model).is_err(), "{}: {len} of {}", model.name(), sound.len());
        }
        for more in [1, 4, 8] {
            let longer = [sound.as_slice(), &vec![0; more]].concat();
            assert_eq!(
                decode(&longer, &model).unwrap_err().code(),
                "ac-payload-trailing",
                "{}",
                model.name()
            );
        }
    }
}

#[test]
fn counts_beyond_the_payload_are_refused() {
    for kind in KINDS {
        let model = Dice::new(8).model(kind);
        let sound = encode(&model);
        for idx in 8..sound.len() - 8 {
            for count in [u64::MAX, 1 << 63, 1 << 61, 1 << 40, 1 << 32, sound.len() as u64] {
                let mut damaged = sound.clone();
                damaged[idx..idx + 8].copy_from_slice(&count.to_le_bytes());
                check_any(&damaged, &model);
            }
        }
    }
}

#[test]
fn tensors_that_are_missing_or_too_many_or_different_are_refused() {
    for kind in KINDS {
        let model = Dice::new(2).model(kind);
        let tensors = model.to_tensors().unwrap();
        let names: Vec<&str> = tensors.names().collect();
        let copy = |without: &str| {
            let mut copy = Tensors::of_model(model.name());
            for name in names.iter().filter(|&&name| name != without) {
                let view = tensors.view(name).unwrap();
                copy.push(name, view.dtype(), view.shape(), view.data().to_vec()).unwrap();
            }
            copy
        };
        assert_eq!(AnyModel::from_tensors(&copy("")).unwrap(), model);
        for &name in &names {
            // Weights of a vectorizer and a gamma may be missing, and then it is another model.
            match AnyModel::from_tensors(&copy(name)) {
                Ok(other) => assert!(["idf", "gamma"].contains(&name) && other != model, "{name}"),
                Err(error) => assert!(error.code().starts_with("am-"), "{}: {name}: {error}", model.name()),
            }
            for shape in [&[0][..], &[1], &[2, 3]] {
                let mut changed = copy(name);
                changed.push_f32(name, shape, &vec![0.5; shape.iter().product()]).unwrap();
                if let Ok(other) = AnyModel::from_tensors(&changed) {
                    ask(&other);
                }
                let mut changed = copy(name);
                changed.push_f64(name, shape, &vec![f64::NAN; shape.iter().product()]).unwrap();
                assert!(
                    AnyModel::from_tensors(&changed).is_err() || shape == [0],
                    "{}: {name}",
                    model.name()
                );
                let mut changed = copy(name);
                changed.push_u64(name, shape, &vec![u64::MAX; shape.iter().product()]).unwrap();
                if let Ok(other) = AnyModel::from_tensors(&changed) {
                    ask(&other);
                }
            }
        }
        let mut more = copy("");
        more.push_f32("bonus", &[1], &[1.0]).unwrap();
        assert!(AnyModel::from_tensors(&more).is_err(), "{}", model.name());
    }
}
