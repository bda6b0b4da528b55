//! Support vector machines.

use apr_models::{KernelParts, LinearParts, Svm, SvmKernel};

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
