//! Scalers.

use apr_models::{MinMaxScaler, StandardScaler};

use super::{cases, floats, number, reloaded, wide};

#[test]
fn features_are_centred_and_scaled_as_there() {
    for case in cases("standard_scaler") {
        let mean = floats(case.part("mean"));
        let is_set = |name: &str| case.case["params"][name].as_bool().unwrap();
        let std = if is_set("with_std") { floats(case.part("scale")) } else { vec![3.0; mean.len()] };
        let mut model = StandardScaler::from_parts(mean, std).unwrap();
        if !is_set("with_mean") {
            model = model.without_centring();
        }
        if !is_set("with_std") {
            model = model.without_scaling();
        }
        let found = reloaded(model, StandardScaler::from_tensors).transform(&case.x("rows"));
        case.close("transform", &wide(found.as_slice()), case.expected("transform"));
    }
}

#[test]
fn features_are_mapped_to_a_range_as_there() {
    for case in cases("min_max_scaler") {
        let range = &case.case["params"]["feature_range"];
        let (least, greatest) = (floats(case.part("data_min")), floats(case.part("data_max")));
        let range = (number(&range[0]), number(&range[1]));
        let model = MinMaxScaler::from_parts(least, greatest, range).unwrap();
        let found = reloaded(model, MinMaxScaler::from_tensors).transform(&case.x("rows"));
        case.close("transform", &wide(found.as_slice()), case.expected("transform"));
    }
}
