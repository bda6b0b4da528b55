//! Clusters.

use apr_models::{CovarianceType, Dbscan, GaussianMixture, GaussianMixtureOptions, KMeans, Matrix};

use super::{Case, cases, floats, matrix, number, reloaded, whole, wholes, wide};

/// Squared distances of the rows to their nearest centres, in `f64`.
fn squared_distances(x: &Matrix, centres: &Matrix) -> Vec<f64> {
    let squared = |row: &[f32], centre: &[f32]| {
        let differences = row.iter().zip(centre).map(|(&a, &b)| f64::from(a) - f64::from(b));
        differences.map(|difference| difference * difference).sum::<f64>()
    };
    let nearest = |row: &[f32]| centres.rows().map(|centre| squared(row, centre)).fold(f64::MAX, f64::min);
    x.rows().map(nearest).collect()
}

#[test]
fn rows_belong_to_the_centres_of_there() {
    for case in cases("kmeans") {
        let model = KMeans::from_parts(matrix(case.part("centers"))).unwrap();
        let (x, model) = (case.x("rows"), reloaded(model, KMeans::from_tensors));
        assert_eq!(model.predict(&x), wholes(case.expected("predict")), "{}", case.name());
        let found = squared_distances(&x, model.centroids().unwrap());
        case.close("squared_distance", &found, case.expected("squared_distance"));
    }
}

#[test]
fn inertia_is_as_low_as_there() {
    for case in cases("kmeans") {
        let x = case.x("train_rows");
        let reached = case.expected("inertia").as_f64().unwrap();
        for seed in 0..3 {
            let n_clusters = whole(&case.case["params"]["n_clusters"]);
            let mut model = KMeans::new(n_clusters).unwrap().with_random_state(seed);
            model.fit(&x).unwrap();
            let inertia: f64 = squared_distances(&x, model.centroids().unwrap()).iter().sum();
            let told = f64::from(model.inertia());
            assert!((told - inertia).abs() <= 1e-6 * inertia, "{}: {told} for {inertia}", case.name());
            assert!(
                inertia <= reached * (1.0 + 1e-4),
                "{}, seed {seed}: {inertia}, there {reached}",
                case.name()
            );
            assert_eq!(model.labels().unwrap(), model.predict(&x), "{}", case.name());
        }
    }
}

/// One square matrix for each component.
fn covariances(case: &Case, kind: CovarianceType, n_components: usize, n_features: usize) -> Vec<Matrix> {
    let values = floats(&case.part("covariances")["data"]);
    let value = |component: usize, row: usize, col: usize| match kind {
        CovarianceType::Full => values[(component * n_features + row) * n_features + col],
        CovarianceType::Tied => values[row * n_features + col],
        CovarianceType::Diag if row == col => values[component * n_features + row],
        CovarianceType::Spherical if row == col => values[component],
        CovarianceType::Diag | CovarianceType::Spherical => 0.0,
    };
    let places = || (0..n_features).flat_map(|row| (0..n_features).map(move |col| (row, col)));
    let one = |component| {
        let values = places().map(|(row, col)| value(component, row, col)).collect();
        Matrix::from_vec(n_features, n_features, values).unwrap()
    };
    (0..n_components).map(one).collect()
}

#[test]
fn mixtures_are_as_dense_as_there() {
    for case in cases("gaussian_mixture") {
        let kind = match case.case["params"]["covariance_type"].as_str().unwrap() {
            "full" => CovarianceType::Full,
            "tied" => CovarianceType::Tied,
            "diag" => CovarianceType::Diag,
            "spherical" => CovarianceType::Spherical,
            other => panic!("{other}"),
        };
        let reached = case.expected("mean_score").as_f64().unwrap();
        for seed in 0..3 {
            let x = case.x("train_rows");
            let options = GaussianMixtureOptions {
                covariance_type: kind,
                restarts: 3,
                seed,
                ..GaussianMixtureOptions::new(whole(&case.case["params"]["n_components"]))
            };
            let (trained, convergence) = GaussianMixture::fit(&x, &options).unwrap();
            assert!(convergence.converged, "{}", case.name());
            let scores = trained.try_score_samples(&x).unwrap();
            let mean = scores.iter().map(f64::from).sum::<f64>() / x.n_rows() as f64;
            assert!(mean > reached - 2e-3, "{}, seed {seed}: {mean}, there {reached}", case.name());
            assert_eq!(trained.labels().unwrap(), trained.predict(&x), "{}", case.name());
            assert_eq!(GaussianMixture::fit(&x, &options).unwrap(), (trained, convergence));
        }
        let (x, means) = (case.x("rows"), matrix(case.part("means")));
        let covariances = covariances(&case, kind, means.n_rows(), means.n_cols());
        let weights = floats(case.part("weights"));
        let model = GaussianMixture::from_parts(kind, means, covariances, weights).unwrap();
        let model = reloaded(model, GaussianMixture::from_tensors);
        assert_eq!(model.predict(&x), wholes(case.expected("predict")), "{}", case.name());
        let shares = model.try_predict_proba(&x).unwrap();
        case.close("predict_proba", &wide(shares.as_slice()), case.expected("predict_proba"));
        let logs = model.try_score_samples(&x).unwrap();
        case.close("score_samples", &wide(logs.as_slice()), case.expected("score_samples"));
    }
}

/// Labels are all there is; they come back, and are what the rule says of the table.
#[test]
fn labels_by_density_are_kept() {
    for case in cases("dbscan") {
        let labels = case.part("labels").as_array().unwrap().iter();
        let labels: Vec<i32> = labels.map(|label| i32::try_from(label.as_i64().unwrap()).unwrap()).collect();
        let (eps, min_samples) =
            (number(&case.case["params"]["eps"]), whole(&case.case["params"]["min_samples"]));
        assert_eq!(
            Dbscan::fit(&case.x("train_rows"), eps, min_samples).unwrap().labels().unwrap(),
            labels,
            "{}",
            case.name()
        );
        let model = Dbscan::from_parts(eps, min_samples, labels).unwrap();
        let (x, model) = (case.x("rows"), reloaded(model, Dbscan::from_tensors));
        let labels = model.labels().unwrap();
        let squared = f64::from(model.eps()).powi(2);
        let near = |row: &[f32], other: &[f32]| {
            let differences = row.iter().zip(other).map(|(&a, &b)| f64::from(a) - f64::from(b));
            differences.map(|difference| difference * difference).sum::<f64>() <= squared
        };
        let is_core: Vec<bool> = x
            .rows()
            .map(|row| x.rows().filter(|other| near(row, other)).count() >= model.min_samples())
            .collect();
        for (row, (values, &label)) in x.rows().zip(labels).enumerate() {
            let mut cores =
                x.rows().enumerate().filter(|(other, core)| is_core[*other] && near(values, core));
            let fits = match label {
                -1 => cores.next().is_none(),
                label if is_core[row] => cores.all(|(other, _)| labels[other] == label),
                label => cores.any(|(other, _)| labels[other] == label),
            };
            assert!(fits, "{}: row {row}", case.name());
        }
    }
}
