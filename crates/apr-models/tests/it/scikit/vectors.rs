//! Support vector machines.

use apr_models::{KernelParts, KernelSvmOptions, LinearParts, LinearSvmOptions, Svm, SvmKernel};

use super::{Case, cases, floats, matrix, reloaded, wholes, wide};

fn check(case: &Case, model: &Svm) {
    let x = case.x("rows");
    assert_eq!(model.predict(&x), wholes(case.expected("predict")), "{}", case.name());
    case.close(
        "decision_function",
        &model.decision_function(&x).unwrap(),
        case.expected("decision_function"),
    );
}

#[test]
fn planes_decide_as_there() {
    for case in cases("linear_svc") {
        let model = Svm::linear(LinearParts {
            classes: wholes(case.part("classes")),
            weights: matrix(case.part("coef")),
            intercepts: floats(case.part("intercept")),
        });
        check(&case, &reloaded(model.unwrap(), Svm::from_tensors));
    }
}

#[test]
fn support_vectors_decide_as_there() {
    for case in cases("svc") {
        let model = Svm::kernel(KernelParts {
            classes: wholes(case.part("classes")),
            kernel: match case.part("kernel").as_str().unwrap() {
                "rbf" => SvmKernel::Rbf { gamma: case.part("gamma").as_f64().unwrap() },
                "linear" => SvmKernel::Linear,
                other => panic!("{other}"),
            },
            n_support: wholes(case.part("n_support")),
            support_vectors: matrix(case.part("support_vectors")),
            dual: wide(&floats(&case.part("dual_coef")["data"])),
            intercepts: wide(&floats(case.part("intercept"))),
        });
        check(&case, &reloaded(model.unwrap(), Svm::from_tensors));
    }
}

#[test]
fn planes_are_found_as_there() {
    for case in cases("linear_svc") {
        let (x, y) = (case.x("train_rows"), case.classes("train_rows"));
        let c = case.case["params"]["C"].as_f64().unwrap();
        let options = LinearSvmOptions { c, tol: 1e-8, ..LinearSvmOptions::default() };
        let (model, convergence) = Svm::fit_linear(&x, &y, &options).unwrap();
        assert!(convergence.converged);
        let parts = model.linear_parts().unwrap();
        close_to(wide(parts.weights.as_slice()), case.part("coef")["data"].clone(), 1e-4);
        close_to(wide(&parts.intercepts), case.part("intercept").clone(), 1e-4);
        assert_eq!(model.predict(&case.x("rows")), wholes(case.expected("predict")), "{}", case.name());
    }
}

#[test]
fn support_vectors_are_found_as_there() {
    for case in cases("svc") {
        let (x, y) = (case.x("train_rows"), case.classes("train_rows"));
        let kernel = match case.part("gamma").as_f64() {
            Some(gamma) => SvmKernel::Rbf { gamma },
            None => SvmKernel::Linear,
        };
        let c = case.case["params"]["C"].as_f64().unwrap();
        let options = KernelSvmOptions { c, tol: 1e-6, ..KernelSvmOptions::new(kernel) };
        let (model, convergence) = Svm::fit_kernel(&x, &y, &options).unwrap();
        assert!(convergence.converged);
        // Two samples of iris are equal, and either can be the support vector: values are compared, not coefficients.
        let n_support = model.kernel_parts().unwrap().support_vectors.n_rows();
        let there = matrix(case.part("support_vectors")).n_rows();
        assert!(n_support.abs_diff(there) <= 1, "{}: {n_support}, there {there}", case.name());
        let decisions = model.decision_function(&case.x("rows")).unwrap();
        close_to(decisions, case.expected("decision_function")["data"].clone(), 1e-5);
        assert_eq!(model.predict(&case.x("rows")), wholes(case.expected("predict")), "{}", case.name());
    }
}

/// Differences up to `bound` times the largest value: what the tolerance of the training there allows.
fn close_to(found: Vec<f64>, expected: serde_json::Value, bound: f64) {
    let expected = wide(&floats(&expected));
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(1.0_f64, |largest, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() <= bound * largest, "{found} {expected}");
    }
}
