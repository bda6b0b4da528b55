//! Principal components.

use apr_models::{Matrix, Pca, PcaOptions, PcaParts, PcaScaling};

use super::{Case, cases, floats, matrix, reloaded, whole, wide};

fn first_rows(x: &Matrix, n_rows: usize) -> Matrix {
    Matrix::from_vec(n_rows, x.n_cols(), x.as_slice()[..n_rows * x.n_cols()].to_vec()).unwrap()
}

fn check_projections(case: &Case, pca: &Pca, tolerance: &str) {
    let z = pca.transform(&case.x("rows"));
    case.close_by("transform", tolerance, &wide(z.as_slice()), case.expected("transform"));
    if tolerance == "transform" {
        let back = pca.inverse_transform(&first_rows(&z, 8)).unwrap();
        case.close("inverse_transform", &wide(back.as_slice()), case.expected("inverse_transform"));
    }
}

#[test]
fn projections_onto_given_components_are_equal() {
    for case in cases("pca") {
        let pca = Pca::from_parts(PcaParts {
            mean: floats(case.part("mean")),
            components: matrix(case.part("components")),
            explained_variance: floats(case.expected("explained_variance")),
            explained_variance_ratio: floats(case.expected("explained_variance_ratio")),
            scaling: PcaScaling::Keep,
        });
        check_projections(&case, &reloaded(pca.unwrap(), Pca::from_tensors), "transform");
    }
}

#[test]
fn components_found_are_those_of_the_other_side_with_the_same_signs() {
    for case in cases("pca") {
        let x = case.x("train_rows");
        let options = PcaOptions::new(whole(&case.case["params"]["n_components"]));
        let pca = reloaded(Pca::fit(&x, &options).unwrap(), Pca::from_tensors);
        case.close("components", &wide(pca.components().as_slice()), case.part("components"));
        for (name, values) in [
            ("explained_variance", pca.explained_variance()),
            ("explained_variance_ratio", pca.explained_variance_ratio()),
        ] {
            case.close(name, &wide(values), case.expected(name));
        }
        check_projections(&case, &pca, "transform_trained");
    }
}
