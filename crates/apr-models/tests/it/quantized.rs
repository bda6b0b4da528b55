//! Models in fewer bits: saved, loaded, asked; refused where they would be no models any more.

use apr_container::v2::{self, AprType};
use apr_container::{ModelType, PayloadLayout, decode_payload_from_slice, encode_payload_to_vec};
use apr_models::{
    Activation, AnyModel, CovarianceType, Floats, GaussianMixture, KMeans, LinearRegression, Matrix, Model,
    NeuralSequential, OutputKind, Predictions, QuantType, QuantizedModel, Subject, Tensors, Vector,
    save_quantized,
};
use apr_quant::{Dtype, Quantizer};

use crate::data::{Numbers, TempFolder};
use crate::own_layouts::dice::{Dice, KINDS};

fn network() -> NeuralSequential {
    NeuralSequential::random(48, &[(256, Activation::Tanh), (5, Activation::Softmax)], 7).unwrap()
}

fn samples(n_rows: usize, n_cols: usize) -> Matrix {
    Matrix::from_vec(n_rows, n_cols, Numbers(3).take(n_rows * n_cols).collect()).unwrap()
}

fn outputs(model: &AnyModel, x: &Matrix) -> Vec<f32> {
    match model.predict_matrix(x, OutputKind::Transformed).unwrap() {
        Predictions::Rows { values: Floats::F32(values), .. } => values,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_saved_model_predicts_nearly_the_same() {
    let (model, x) = (network(), samples(20, 48));
    let exact = model.outputs(&x).unwrap();
    let folder = TempFolder::new();
    for (quant_type, tolerance, share) in [(QuantType::Q8_0, 0.01, 3.5), (QuantType::Q4_0, 0.1, 5.5)] {
        let path = folder.file("model.apr");
        save_quantized(&model, quant_type, &path).unwrap();
        let loaded = AnyModel::load(&path).unwrap();
        let found = outputs(&loaded, &x);
        let worst = exact.as_slice().iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst > 0.0 && worst < tolerance, "{quant_type:?} {worst}");
        let bytes = std::fs::read(&path).unwrap();
        assert!((bytes.len() as f64) * share < 4.0 * f64::from(48 * 256 + 256 * 5), "{}", bytes.len());

        let quantized = model.quantize(quant_type).unwrap();
        assert_eq!((quantized.model_name(), quantized.quant_type()), ("NeuralSequential", quant_type));
        assert_eq!(quantized.to_vec().unwrap(), bytes);
        assert_eq!(quantized.to_model().unwrap(), loaded);
        // Any model, and one behind a reference, as well.
        assert_eq!(AnyModel::from(model.clone()).quantize(quant_type).unwrap(), quantized);
        assert_eq!((&model as &dyn Model).quantize(quant_type).unwrap(), quantized);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_the_file_says_is_the_users() {
    let mut quantized = network().quantize(QuantType::Q4_0).unwrap();
    assert_eq!(quantized.metadata().param_count, 48 * 256 + 256 + 256 * 5 + 5 + 2);
    quantized.metadata_mut().name = Some("digits".into());
    let file = quantized.to_vec().unwrap();
    let container = v2::Container::from_bytes(&file).unwrap();
    assert_eq!(container.metadata(), quantized.metadata());
    assert_eq!(container.metadata().model_type, "NeuralSequential");
    assert!(container.header().flags().contains(v2::Flags::QUANTIZED));
    let dtypes: Vec<AprType> = container.tensors().unwrap().map(|view| view.dtype()).collect();
    assert_eq!(dtypes, [AprType::F32, AprType::F32, AprType::AprQ4, AprType::F32, AprType::AprQ4]);
    // Without its name, the model is known by its tensors.
    quantized.metadata_mut().other.clear();
    assert!(AnyModel::from_bytes(&quantized.to_vec().unwrap()).is_ok());
}

/// Whatever a model is made of: what is saved is loaded, everything but its weights is as it was, and what cannot be is a
/// refusal that says why.
#[test]
fn every_model_is_quantized_or_refused() {
    let (mut made, mut codes) = (0, Vec::new());
    for (kind, seed) in KINDS.flat_map(|kind| (0..40).map(move |seed| (kind, seed))) {
        let model = Dice::new(seed).model(kind);
        let before = model.to_tensors().unwrap();
        for quant_type in [QuantType::Q8_0, QuantType::Q4_0] {
            let quantized = match model.quantize(quant_type) {
                Ok(quantized) => quantized,
                Err(error) => {
                    codes.push(error.code());
                    continue;
                }
            };
            made += 1;
            let file = quantized.to_vec().unwrap();
            let loaded = AnyModel::from_bytes(&file).unwrap();
            assert_eq!((loaded.name(), loaded.n_features()), (model.name(), model.n_features()));
            assert_eq!(loaded, quantized.to_model().unwrap());
            let after = Tensors::from_apr2(&file).unwrap();
            assert!(before.names().eq(after.names()));
            for name in before.names() {
                let (before, after) = (before.view(name).unwrap(), after.view(name).unwrap());
                assert_eq!((before.dtype(), before.shape()), (after.dtype(), after.shape()), "{name}");
                let is_weight = Tensors::is_weight_matrix(before.dtype(), before.shape());
                assert!(is_weight || before.data() == after.data(), "{} {name}", model.name());
            }
        }
    }
    assert!(made > 200, "{made}");
    // Extreme numbers among the weights are too large for the scale of a block.
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes, ["am-no-weight-matrices", "q-scale-too-large"]);
}

#[test]
fn covariances_are_no_weights() {
    let covariance = Matrix::from_vec(2, 2, vec![1e-3, 9e-4, 9e-4, 1e-3]).unwrap();
    let means = Matrix::from_vec(3, 2, vec![0.5, 1.0, -3.0, 2.0, 0.1, 0.2]).unwrap();
    let model =
        GaussianMixture::from_parts(CovarianceType::Full, means, vec![covariance; 3], vec![0.25; 3]).unwrap();
    let quantized = model.quantize(QuantType::Q4_0).unwrap();
    let dtype = |name: &str| {
        let found = quantized.tensors().map(Result::unwrap).find(|view| view.name() == name);
        found.unwrap().dtype()
    };
    assert_eq!((dtype("means"), dtype("covariances")), (AprType::AprQ4, AprType::F32));
    let AnyModel::GaussianMixture(loaded) = quantized.to_model().unwrap() else { panic!("another model") };
    assert_eq!(
        loaded.to_tensors().unwrap().array("covariances").unwrap(),
        model.to_tensors().unwrap().array("covariances").unwrap()
    );
}

#[test]
fn what_has_no_weight_matrices_is_refused() {
    let linear = LinearRegression::from_parts(Vector::from_vec(vec![1.0; 64]), 0.5).unwrap();
    let narrow = NeuralSequential::random(1, &[(64, Activation::Identity)], 1).unwrap();
    let network = network();
    let folder = TempFolder::new();
    let path = folder.file("old.apr");
    std::fs::write(&path, b"old").unwrap();
    for (model, quant_type, code) in [
        (&linear as &dyn Model, QuantType::Q4_0, "am-no-weight-matrices"),
        (&narrow, QuantType::Q8_0, "am-no-weight-matrices"),
        (&LinearRegression::new(), QuantType::Q8_0, "am-not-fitted"),
        (&KMeans::new(2).unwrap(), QuantType::Q8_0, "am-not-fitted"),
        (&network, QuantType::Q4_1, "am-not-writable"),
        (&network, QuantType::Q8Tensor, "am-not-writable"),
        (&network, QuantType::Custom, "am-not-writable"),
    ] {
        let error = model.quantize(quant_type).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(save_quantized(model, quant_type, &path).unwrap_err().code(), code);
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert!(save_quantized(&network, QuantType::Q8_0, folder.path().join("none/x.apr")).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn weights_that_no_block_holds_are_named() {
    // Only payloads hold such.
    let model = KMeans::from_parts(Matrix::from_vec(2, 3, vec![1.5; 6]).unwrap()).unwrap();
    let mut payload = encode_payload_to_vec(&model, PayloadLayout::default()).unwrap();
    let at = payload.windows(4).position(|bytes| bytes == 1.5_f32.to_le_bytes()).unwrap();
    payload[at + 8..at + 12].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let model: KMeans =
        decode_payload_from_slice(&payload, PayloadLayout::default(), ModelType::KMeans).unwrap();
    for quant_type in [QuantType::Q8_0, QuantType::Q4_0] {
        let error = model.quantize(quant_type).unwrap_err();
        assert_eq!(
            (error.code(), error.subject().map(Subject::name)),
            ("q-non-finite", Some("centroids")),
            "{error}"
        );
        assert!(error.to_string().contains("element 2"), "{error}");
    }
    // A whole number that no `.apr` type holds.
    let mut clusters = KMeans::new(2).unwrap().with_random_state(u64::MAX);
    clusters.fit(&samples(8, 3)).unwrap();
    let error = clusters.quantize(QuantType::Q4_0).unwrap_err();
    assert_eq!(
        (error.code(), error.subject().map(Subject::name)),
        ("am-part", Some("random_state")),
        "{error}"
    );
}

/// A small quantized file.
fn small() -> Vec<u8> {
    let model = NeuralSequential::random(4, &[(9, Activation::Relu), (2, Activation::Identity)], 5).unwrap();
    model.quantize(QuantType::Q4_0).unwrap().to_vec().unwrap()
}

#[test]
fn a_damaged_file_is_no_model() {
    let file = small();
    assert!(AnyModel::from_bytes(&file).is_ok());
    // A file that ends before its checksum is one of a known writer that leaves it out.
    for len in (0..file.len()).filter(|len| *len != file.len() - 4) {
        assert!(AnyModel::from_bytes(&file[..len]).is_err(), "{len} bytes");
    }
    let mut longer = file.clone();
    longer.push(0);
    assert!(AnyModel::from_bytes(&longer).is_err());
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 0x10;
        assert!(AnyModel::from_bytes(&changed).is_err(), "byte {at}");
    }
}

/// As a program that fixes the checksum would change it: tensors left out, of other types, of other shapes.
#[test]
fn a_forged_file_is_a_refusal_or_another_model() {
    let file = small();
    let container = v2::Container::from_bytes(&file).unwrap();
    let views: Vec<_> = container.tensors().unwrap().collect();
    let options = v2::WriteOptions::like(container.index());
    let read = |views: &[v2::TensorView<'_>]| {
        AnyModel::from_bytes(&v2::to_vec(views, &options).unwrap()).map_err(|error| error.code())
    };
    assert!(read(&views).is_ok());
    for left_out in 0..views.len() {
        let mut fewer = views.clone();
        fewer.remove(left_out);
        assert!(read(&fewer).is_err(), "{}", views[left_out].name());
    }
    let place = views.iter().position(|view| view.name() == "layer_0_weights").unwrap();
    let with = |view| {
        let mut changed = views.clone();
        changed[place] = view;
        read(&changed)
    };
    let blocks = [0xFF; 36];
    for (dtype, shape, data, code) in [
        (AprType::AprQ4, &[9_u64, 4][..], &blocks[..], "am-part-length"),
        (AprType::AprQ4, &[36], &blocks, "am-tensor-shape"),
        (AprType::AprQ4, &[0, 4], &[], "am-tensor-shape"),
        // A scale that is not a number.
        (AprType::AprQ4, &[4, 9], &blocks, "am-part-not-finite"),
        (AprType::U8, &[4, 9], &blocks, "am-dtype"),
        (AprType(77), &[4, 9], &blocks, "ac-v2-dtype"),
        (AprType(77), &[u64::MAX, u64::MAX], &blocks, "ac-v2-dtype"),
        (AprType::U8, &[u64::MAX, 0], &[], "am-tensor-shape"),
    ] {
        let view = v2::TensorView::new("layer_0_weights", dtype, shape, data).unwrap();
        assert_eq!(with(view).unwrap_err(), code, "{dtype:?} {shape:?}");
    }
}

#[test]
fn files_with_other_blocks_are_loaded_too() {
    let model = network();
    let tensors = model.to_tensors().unwrap();
    let (_, values) = tensors.array("layer_0_weights").unwrap();
    let x = samples(6, 48);
    let exact = model.outputs(&x).unwrap();
    for (format, dtype, tolerance) in [
        (Dtype::Q4_K, AprType::Q4_K, 0.1),
        (Dtype::Q6_K, AprType::Q6_K, 0.05),
        (Dtype::F16, AprType::F16, 0.001),
        (Dtype::Bf16, AprType::Bf16, 0.01),
    ] {
        let mut blocks = vec![0; format.byte_len_of_rows(256, 48).unwrap() as usize];
        Quantizer::new(format).unwrap().quantize(&values, 256, &mut blocks).unwrap();
        let quantized = model.quantize(QuantType::Q8_0).unwrap();
        let mut views: Vec<_> = quantized.tensors().map(Result::unwrap).collect();
        let place = views.iter().position(|view| view.name() == "layer_0_weights").unwrap();
        views[place] = v2::TensorView::new("layer_0_weights", dtype, &[48, 256], &blocks).unwrap();
        let options = v2::WriteOptions::new(quantized.metadata().clone());
        let loaded = AnyModel::from_bytes(&v2::to_vec(&views, &options).unwrap()).unwrap();
        let worst = exact.as_slice().iter().zip(outputs(&loaded, &x)).map(|(a, b)| (a - b).abs());
        assert!(worst.fold(0.0, f32::max) < tolerance, "{format}");
    }
}

#[test]
fn equal_models_give_equal_bytes() {
    let once = QuantizedModel::new(&network(), QuantType::Q8_0).unwrap();
    assert_eq!(once.to_vec().unwrap(), network().quantize(QuantType::Q8_0).unwrap().to_vec().unwrap());
}
