//! The first eight bytes.

use apr_container::{ModelType, PayloadLayout, decode_payload_from_slice, encode_payload_to_vec};
use apr_models::{AnyModel, Custom, KnnClassifier, KnnRegressor, Model, NeuralCustom, Numbers};

use super::dice::{Dice, KINDS};
use super::{decode, encode};

#[test]
fn payloads_begin_with_layout_and_form() {
    for kind in KINDS {
        let model = Dice::new(0).model(kind);
        let bytes = encode(&model);
        assert_eq!(bytes[..4], 1_u32.to_le_bytes(), "{}", model.name());
        let form = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
        let expected = match kind {
            3 | 5 | 7 | 13 => 2,
            _ => 1,
        };
        assert_eq!(form, expected, "{}", model.name());
    }
}

#[test]
fn unknown_layouts_and_forms_are_named() {
    for kind in KINDS {
        let model = Dice::new(0).model(kind);
        let sound = encode(&model);
        let with_head = |layout: u32, form: u32| {
            let bytes = [&layout.to_le_bytes()[..], &form.to_le_bytes(), &sound[8..]].concat();
            decode(&bytes, &model).unwrap_err()
        };
        let error = with_head(2, 1);
        assert_eq!(error.code(), "am-layout");
        assert!(error.to_string().contains("layout 2"), "{error}");
        assert_eq!(with_head(0, 1).code(), "am-layout");
        assert_eq!(with_head(1, 3).code(), "am-form");
        assert_eq!(with_head(1, u32::MAX).code(), "am-form");
        assert_eq!(with_head(1, 0).code(), "am-bare-numbers");
        assert_eq!(with_head(7, 0).code(), "am-bare-numbers");
    }
    let classifier = encode(&Dice::new(0).model(2));
    let other: Result<KnnRegressor, _> =
        decode_payload_from_slice(&classifier, PayloadLayout::default(), ModelType::Knn);
    assert_eq!(other.unwrap_err().code(), "am-other-form");
    let regressor = encode(&Dice::new(0).model(3));
    let other: Result<KnnClassifier, _> =
        decode_payload_from_slice(&regressor, PayloadLayout::default(), ModelType::Knn);
    assert_eq!(other.unwrap_err().code(), "am-other-form");
}

#[test]
fn bare_numbers_are_told_apart() {
    for kind in KINDS {
        let model_type = Dice::new(0).model(kind).model_type();
        for len in 0..40 {
            let numbers = Numbers::from((0..len).map(|idx| idx as f32).collect::<Vec<_>>());
            let bytes = encode_payload_to_vec(&numbers, PayloadLayout::default()).unwrap();
            let found: AnyModel =
                decode_payload_from_slice(&bytes, PayloadLayout::default(), model_type).unwrap();
            assert_eq!(found, AnyModel::from(numbers));
        }
    }
}

#[test]
fn wrappers_change_the_type_and_nothing_else() {
    let numbers = Numbers::from(vec![1.0, 2.0]);
    let plain = encode_payload_to_vec(&numbers, PayloadLayout::default()).unwrap();
    assert_eq!(encode_payload_to_vec(&Custom(numbers.clone()), PayloadLayout::default()).unwrap(), plain);
    assert_eq!(
        encode_payload_to_vec(&NeuralCustom(numbers.clone()), PayloadLayout::default()).unwrap(),
        plain
    );
    let Custom(again): Custom<Numbers> =
        decode_payload_from_slice(&plain, PayloadLayout::default(), ModelType::Custom).unwrap();
    let NeuralCustom(third): NeuralCustom<Numbers> =
        decode_payload_from_slice(&plain, PayloadLayout::default(), ModelType::NeuralCustom).unwrap();
    assert_eq!((&again, &third), (&numbers, &numbers));
}

#[cfg(feature = "serde")]
#[test]
fn serde_types_travel_in_the_wrappers() {
    use apr_container::{SaveOptions, Serde, load_from_bytes, to_vec};

    let own = vec![(String::from("layer"), Some(vec![0.5_f32, -1.0])), (String::new(), None)];
    let file = to_vec(&NeuralCustom(Serde(&own)), ModelType::NeuralCustom, &SaveOptions::default()).unwrap();
    type Own = Vec<(String, Option<Vec<f32>>)>;
    let NeuralCustom(Serde(loaded)): NeuralCustom<Serde<Own>> =
        load_from_bytes(&file, ModelType::NeuralCustom).unwrap();
    assert_eq!(loaded, own);
    let other: Result<Custom<Serde<Own>>, _> = load_from_bytes(&file, ModelType::Custom);
    assert_eq!(other.unwrap_err().code(), "ac-wrong-type");
    let empty = to_vec(&Custom(Serde(())), ModelType::NeuralCustom, &SaveOptions::default());
    assert!(empty.is_err(), "the wrapper has a type of its own");
}
