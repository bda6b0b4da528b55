//! Dense networks.

use apr_models::{
    Activation, Dense, Matrix, NeuralLoss, NeuralOptions, NeuralSequential, NeuralTargets, Optimizer,
};
use serde_json::Value;

use super::{Case, cases, floats, matrix, reloaded, whole, wholes, wide};

fn activation(value: &Value) -> Activation {
    match value.as_str().unwrap() {
        "relu" => Activation::Relu,
        "tanh" => Activation::Tanh,
        "sigmoid" | "logistic" => Activation::Sigmoid,
        "softmax" => Activation::Softmax,
        "identity" => Activation::Identity,
        other => panic!("{other}"),
    }
}

fn network(case: &Case) -> NeuralSequential {
    let layers = case.part("layers").as_array().unwrap().iter().map(|layer| {
        let (weights, bias) = (matrix(&layer["weights"]), floats(&layer["bias"]));
        Dense::new(weights, bias, activation(&layer["activation"])).unwrap()
    });
    reloaded(NeuralSequential::from_layers(layers.collect()).unwrap(), NeuralSequential::from_tensors)
}

/// A network of the same shape with other weights.
fn untrained(case: &Case) -> NeuralSequential {
    let given = network(case);
    let shape: Vec<(usize, Activation)> =
        given.layers().iter().map(|layer| (layer.n_outputs(), layer.activation())).collect();
    NeuralSequential::random(given.n_inputs(), &shape, 42).unwrap()
}

#[test]
fn classifying_networks_say_what_they_say_there() {
    for case in cases("mlp_classifier") {
        let (x, model) = (case.x("rows"), network(&case));
        let outputs = model.outputs(&x).unwrap();
        case.close("output", &wide(outputs.as_slice()), case.expected("output"));
        let classes = wholes(case.part("classes"));
        let found: Vec<usize> = model.classes(&x).unwrap().iter().map(|&class| classes[class]).collect();
        assert_eq!(found, wholes(case.expected("predict")), "{}", case.name());
    }
}

#[test]
fn predicting_networks_say_what_they_say_there() {
    for case in cases("mlp_regressor") {
        let outputs = network(&case).outputs(&case.x("rows")).unwrap();
        case.close("predict", &wide(outputs.as_slice()), case.expected("predict"));
    }
}

/// The L2 penalty there is `alpha / 2` times the squares of the weights over the number of samples.
fn options(case: &Case, loss: NeuralLoss, n_rows: usize) -> NeuralOptions {
    let alpha = case.case["params"]["alpha"].as_f64().unwrap();
    NeuralOptions {
        optimizer: Optimizer::adam(0.01),
        epochs: 400,
        batch_size: 32,
        weight_decay: (alpha / n_rows as f64) as f32,
        seed: 7,
        ..NeuralOptions::new(loss)
    }
}

#[test]
fn classifying_networks_trained_here_are_as_good() {
    for case in cases("mlp_classifier") {
        let (x, y) = (case.x("train_rows"), case.classes("train_rows"));
        let mut model = untrained(&case);
        let options = options(&case, NeuralLoss::CrossEntropy, x.n_rows());
        let losses = model.fit(&x, NeuralTargets::Classes(&y), &options).unwrap();
        let there = case.expected("mean_log_loss").as_f64().unwrap();
        let (first, last) = (losses[0], losses[losses.len() - 1]);
        assert!(last < there * 1.05 + 0.01, "{}: {last}, there {there}", case.name());
        assert!(last < first, "{}: {losses:?}", case.name());
        let right = model.classes(&x).unwrap().iter().zip(&y).filter(|(a, b)| a == b).count();
        let accuracy = right as f64 / y.len() as f64;
        assert!(
            accuracy >= case.expected("accuracy").as_f64().unwrap() - 0.02,
            "{}: {accuracy}",
            case.name()
        );

        let mut again = untrained(&case);
        again.fit(&x, NeuralTargets::Classes(&y), &options).unwrap();
        assert_eq!(again, model, "the seed decides");
    }
}

#[test]
fn predicting_networks_trained_here_are_as_good() {
    for case in cases("mlp_regressor") {
        let (x, y) = (case.x("train_rows"), case.numbers("train_rows"));
        // Targets of deviation 1, as a network wants them.
        let n = y.len() as f64;
        let mean = wide(&y).iter().sum::<f64>() / n;
        let variance = wide(&y).iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
        let scaled = y.iter().map(|&value| ((f64::from(value) - mean) / variance.sqrt()) as f32).collect();
        let targets = Matrix::from_vec(y.len(), 1, scaled).unwrap();
        let mut model = untrained(&case);
        let options = options(&case, NeuralLoss::MeanSquared, y.len());
        let losses = model.fit(&x, NeuralTargets::Values(&targets), &options).unwrap();
        let r2 = 1.0 - losses[losses.len() - 1];
        let there = case.expected("r2").as_f64().unwrap();
        assert!(r2 > there - 0.05, "{}: {r2}, there {there}", case.name());
        assert_eq!(whole(&case.part("layers")[0]["inputs"]), model.n_inputs());
    }
}
