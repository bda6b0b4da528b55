//! Weights of classes and samples in trainings, and samples that are hard to learn from.

use apr_models::{
    Activation, ClassWeight, DecisionTreeClassifier, DecisionTreeRegressor, ErrorKind, KernelSvmOptions,
    LinearSvmOptions, LogisticRegression, Matrix, NeuralSequential, SoftmaxOptions, Svm, SvmKernel,
    TreeOptions, Vector,
};
use proptest::prelude::*;

use crate::scikit::cases;

/// Iris with two classes of 20 and 50 samples that overlap, and a weight of 1 to 3 for each sample.
fn overlapping() -> (Matrix, Vec<usize>, Vec<f32>) {
    let case = cases("linear_svc").into_iter().find(|case| case.name() == "iris_std").unwrap();
    let (x, y) = (case.x("train_rows"), case.classes("train_rows"));
    let rows: Vec<usize> = (50..70).chain(100..150).collect();
    let values = rows.iter().flat_map(|&row| x.row(row).unwrap().to_vec()).collect();
    let weights = (0..rows.len()).map(|idx| (1 + idx % 3) as f32).collect();
    (Matrix::from_vec(rows.len(), 4, values).unwrap(), rows.iter().map(|&row| y[row] - 1).collect(), weights)
}

fn repeated(x: &Matrix, y: &[usize], weights: &[f32]) -> (Matrix, Vec<usize>) {
    let rows = || (0..y.len()).flat_map(|row| core::iter::repeat_n(row, weights[row] as usize));
    let values = rows().flat_map(|row| x.row(row).unwrap().to_vec()).collect();
    (Matrix::from_vec(rows().count(), x.n_cols(), values).unwrap(), rows().map(|row| y[row]).collect())
}

/// Decision values of the samples by each of the four trainings.
fn decisions(
    (x, y, weights): (&Matrix, &[usize], Option<&[f32]>),
    class_weight: &ClassWeight,
    at: &Matrix,
) -> [Vec<f64>; 4] {
    let class_weight = || class_weight.clone();
    let softmax = SoftmaxOptions { class_weight: class_weight(), tol: 1e-9, ..SoftmaxOptions::default() };
    let linear = LinearSvmOptions { class_weight: class_weight(), tol: 1e-9, ..LinearSvmOptions::default() };
    let kernel = KernelSvmOptions::new(SvmKernel::Rbf { gamma: 0.3 });
    let kernel = KernelSvmOptions { class_weight: class_weight(), tol: 1e-7, ..kernel };
    let mut logistic =
        LogisticRegression::new().with_class_weight(class_weight()).with_l2_penalty(1.0 / y.len() as f32);
    let ((softmax, _), (linear, _), (kernel, _)) = match weights {
        None => {
            logistic.fit(x, y).unwrap();
            (
                NeuralSequential::softmax_regression(x, y, &softmax).unwrap(),
                Svm::fit_linear(x, y, &linear).unwrap(),
                Svm::fit_kernel(x, y, &kernel).unwrap(),
            )
        }
        Some(weights) => {
            logistic.fit_weighted(x, y, weights).unwrap();
            (
                NeuralSequential::softmax_regression_weighted(x, y, weights, &softmax).unwrap(),
                Svm::fit_linear_weighted(x, y, weights, &linear).unwrap(),
                Svm::fit_kernel_weighted(x, y, weights, &kernel).unwrap(),
            )
        }
    };
    let layer = &softmax.layers()[0];
    assert_eq!(layer.activation(), Activation::Softmax);
    let score = |row: &[f32], class: usize| {
        let products = layer.weights().rows().zip(row).map(|(w, &x)| f64::from(w[class]) * f64::from(x));
        f64::from(layer.bias()[class]) + products.sum::<f64>()
    };
    let softmax = at.rows().map(|row| score(row, 1) - score(row, 0)).collect();
    let value = |row: &[f32]| -> f64 {
        let products = logistic.coefficients().iter().zip(row).map(|(w, &x)| f64::from(w) * f64::from(x));
        f64::from(logistic.intercept()) + products.sum::<f64>()
    };
    let logistic = at.rows().map(value).collect();
    [softmax, linear.decision_function(at).unwrap(), kernel.decision_function(at).unwrap(), logistic]
}

fn assert_close(found: &[Vec<f64>], expected: &[Vec<f64>]) {
    for (training, (found, expected)) in found.iter().zip(expected).enumerate() {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-4, "{training}: {found} {expected}");
        }
    }
}

#[test]
fn a_weight_counts_as_that_many_samples() {
    let (x, y, weights) = overlapping();
    let found = decisions((&x, &y, Some(&weights)), &ClassWeight::Uniform, &x);
    let (more, labels) = repeated(&x, &y, &weights);
    let expected = decisions((&more, &labels, None), &ClassWeight::Uniform, &x);
    // The loss of a logistic regression is divided by the number of samples, its penalty is not.
    assert_close(&found, &expected);
    let plain = decisions((&x, &y, None), &ClassWeight::Uniform, &x);
    assert!((plain[2][0] - expected[2][0]).abs() > 1e-3, "weights matter");
}

/// `n / (k * n_k)`, scikit-learn's "balanced".
#[test]
fn balanced_classes_weigh_their_inverse_frequency() {
    let (x, y, _) = overlapping();
    let each = [70.0 / 40.0, 70.0 / 100.0];
    let weights: Vec<f32> = y.iter().map(|&class| each[class]).collect();
    let expected = decisions((&x, &y, Some(&weights)), &ClassWeight::Uniform, &x);
    assert_close(&decisions((&x, &y, None), &ClassWeight::Manual(each.to_vec()), &x), &expected);
    let balanced = decisions((&x, &y, None), &ClassWeight::Balanced, &x);
    assert_close(&balanced[..3], &expected[..3]);
    // aprender's, whose weights of classes are the roots of those.
    let roots = ClassWeight::Manual(each.map(f32::sqrt).to_vec());
    assert_close(&balanced[3..], &decisions((&x, &y, None), &roots, &x)[3..]);
}

#[test]
fn one_class_and_settings_out_of_range_are_refused() {
    let x = Matrix::from_vec(3, 1, vec![1.0, 2.0, 3.0]).unwrap();
    let softmax = |y: &[usize], options| NeuralSequential::softmax_regression(&x, y, &options).err().unwrap();
    let linear = |y: &[usize], options| Svm::fit_linear(&x, y, &options).err().unwrap();
    let kernel = |y: &[usize], options| Svm::fit_kernel(&x, y, &options).err().unwrap();
    for error in [
        softmax(&[0; 3], SoftmaxOptions::default()),
        linear(&[4; 3], LinearSvmOptions::default()),
        kernel(&[4; 3], KernelSvmOptions::new(SvmKernel::Linear)),
    ] {
        assert!(matches!(error.kind(), ErrorKind::PartLength { part: "classes", .. }), "{error}");
    }
    assert_eq!(softmax(&[0, 2, 2], SoftmaxOptions::default()).code(), "am-label");
    assert_eq!(linear(&[0, 1], LinearSvmOptions::default()).code(), "am-target-length");
    let y = [0, 1, 1];
    let (s, l) = (SoftmaxOptions::default, LinearSvmOptions::default);
    let plain = || KernelSvmOptions::new(SvmKernel::Linear);
    for (error, part) in [
        (softmax(&y, SoftmaxOptions { c: 0.0, ..s() }), "c"),
        (softmax(&y, SoftmaxOptions { max_iter: 0, ..s() }), "max_iter"),
        (softmax(&y, SoftmaxOptions { tol: f64::NAN, ..s() }), "tol"),
        (linear(&y, LinearSvmOptions { c: f64::INFINITY, ..l() }), "c"),
        (linear(&y, LinearSvmOptions { max_iter: 0, ..l() }), "max_iter"),
        (linear(&y, LinearSvmOptions { tol: -1.0, ..l() }), "tol"),
        (kernel(&y, KernelSvmOptions { c: f64::NAN, ..plain() }), "c"),
        (kernel(&y, KernelSvmOptions { max_iter: 0, ..plain() }), "max_iter"),
        (kernel(&y, KernelSvmOptions { tol: 0.0, ..plain() }), "tol"),
        (kernel(&y, KernelSvmOptions { kernel: SvmKernel::Rbf { gamma: -1.0 }, ..plain() }), "gamma"),
    ] {
        assert!(
            matches!(error.kind(), ErrorKind::PartInvalid { part: found, .. } if *found == part),
            "{error}"
        );
    }
    let x = Matrix::from_vec(2, 1, vec![1.0, f32::NAN]).unwrap();
    assert_eq!(Svm::fit_linear(&x, &[0, 1], &l()).err().unwrap().code(), "am-feature-not-finite");
    assert_eq!(Svm::fit_kernel(&x, &[0, 1], &plain()).err().unwrap().code(), "am-feature-not-finite");
    assert_eq!(
        NeuralSequential::softmax_regression(&x, &[0, 1], &s()).err().unwrap().code(),
        "am-feature-not-finite"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Constant features, repeated samples with different classes, large and small numbers: every training ends with a
    /// model that predicts one of the classes, and a second one gives the same model.
    #[test]
    fn every_table_gives_the_same_model_again(
        values in prop::collection::vec(
            prop_oneof![Just(0.0_f32), Just(7.0), -5.0_f32..5.0, -1e6_f32..1e6, -1e-6_f32..1e-6],
            24,
        ),
        labels in prop::collection::vec(0_usize..3, 10),
    ) {
        let x = Matrix::from_vec(12, 2, values).unwrap();
        let y = [&[0, 1][..], &labels].concat();
        let y: Vec<usize> = if y.contains(&2) { y } else { y.iter().map(|&class| class % 2).collect() };
        let linear = || Svm::fit_linear(&x, &y, &LinearSvmOptions::default()).unwrap();
        let options = KernelSvmOptions { max_iter: 20_000, ..KernelSvmOptions::new(SvmKernel::rbf_scale(&x).unwrap()) };
        let kernel = || Svm::fit_kernel(&x, &y, &options).unwrap();
        let softmax = || NeuralSequential::softmax_regression(&x, &y, &SoftmaxOptions::default()).unwrap();
        prop_assert_eq!(linear(), linear());
        prop_assert_eq!(kernel(), kernel());
        prop_assert_eq!(softmax(), softmax());
        for (model, _) in [linear(), kernel()] {
            prop_assert!(model.predict(&x).iter().all(|label| y.contains(label)));
        }
        prop_assert!(softmax().0.classes(&x).unwrap().iter().all(|label| y.contains(label)));
    }
}

#[test]
fn weights_count_in_importances_as_rows_do() {
    let (x, y, weights) = overlapping();
    let (repeated_x, repeated_y) = repeated(&x, &y, &weights);
    let values = |classes: &[usize]| Vector::from_vec(classes.iter().map(|&class| class as f32).collect());
    let options = TreeOptions { max_depth: Some(3), ..TreeOptions::default() };
    let close = |weighted: &[f64], repeated: &[f64]| {
        let apart = weighted.iter().zip(repeated).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
        assert!(weighted.len() == 4 && apart < 1e-6, "{weighted:?} {repeated:?}");
    };
    let tree = DecisionTreeClassifier::fit_weighted(&x, &y, &weights, &options).unwrap();
    let same = DecisionTreeClassifier::fit(&repeated_x, &repeated_y, &options).unwrap();
    close(&tree.feature_importances(), &same.feature_importances());
    let plain = DecisionTreeClassifier::fit(&x, &y, &options).unwrap();
    assert_ne!(tree.feature_importances(), plain.feature_importances());

    let tree = DecisionTreeRegressor::fit_weighted(&x, &values(&y), &weights, &options).unwrap();
    let same = DecisionTreeRegressor::fit(&repeated_x, &values(&repeated_y), &options).unwrap();
    close(&tree.feature_importances(4), &same.feature_importances(4));
    assert_eq!(tree.feature_importances(5).len(), 5);
}
