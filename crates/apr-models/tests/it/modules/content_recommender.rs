use apr_models::*;

fn dense() -> ContentRecommender {
    let vectors = [[1.0, 0.0], [0.0, 0.0], [2.0, 2.0], [0.5, 0.5], [-3.0, 0.0]].concat();
    ContentRecommender::dense(["e", "d", "c", "b", "a"], Matrix::from_vec(5, 2, vectors).unwrap()).unwrap()
}

fn sparse() -> ContentRecommender {
    let mut rows = SparseRows::new(2);
    for row in [&[(0, 1.0)][..], &[], &[(0, 2.0), (1, 2.0)], &[(0, 0.5), (1, 0.5)], &[(0, -3.0)]] {
        rows.push_row(row).unwrap();
    }
    ContentRecommender::sparse(["e", "d", "c", "b", "a"], rows).unwrap()
}

#[test]
fn most_alike_come_first_and_ties_in_order() {
    for model in [dense(), sparse()] {
        let found = model.recommend(&[3.0, 3.0], 9).unwrap();
        let ids: Vec<&str> = found.iter().map(|found| found.id).collect();
        assert_eq!(ids, ["c", "b", "e", "d", "a"]);
        let scores: Vec<f32> = found.iter().map(|found| found.score).collect();
        let half = 0.5_f32.sqrt();
        assert!(
            scores.iter().zip([1.0, 1.0, half, 0.0, -half]).all(|(a, b)| (a - b).abs() < 1e-6),
            "{scores:?}"
        );
        let like_b = model.similar_to("b", 2).unwrap();
        assert_eq!(
            like_b.iter().map(|found| (found.id, found.item)).collect::<Vec<_>>(),
            [("c", 2), ("e", 0)]
        );
        assert_eq!(model.similar_to("b", 99).unwrap().len(), 4);
        // Like nothing, so all are equal.
        let like_nothing = model.similar_to("d", 2).unwrap();
        assert_eq!(like_nothing.iter().map(|found| found.item).collect::<Vec<_>>(), [0, 2]);
        assert!(model.recommend(&[1.0, 0.0], 0).unwrap().is_empty());
        let mut asked = SparseRows::new(2);
        asked.push_row(&[(0, 3.0), (1, 3.0)]).unwrap();
        assert_eq!(model.recommend_sparse(&asked.row(0).unwrap(), 9).unwrap(), found);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let model = dense();
    assert_eq!(model.similar_to("zz", 1).unwrap_err().code(), "am-unknown-item");
    assert_eq!(model.recommend(&[1.0], 1).unwrap_err().code(), "am-feature-count");
    assert_eq!(model.recommend(&[1.0, f32::NAN], 1).unwrap_err().code(), "am-feature-not-finite");
    assert_eq!(model.recommend_text("text", 1).unwrap_err().code(), "am-part");
    let mut asked = SparseRows::new(9);
    asked.push_row(&[(2, 1.0)]).unwrap();
    assert_eq!(model.recommend_sparse(&asked.row(0).unwrap(), 1).unwrap_err().code(), "am-feature-count");

    let vectors = || Matrix::from_vec(2, 1, vec![1.0, 2.0]).unwrap();
    let refusal = |ids: &[&str]| ContentRecommender::dense(ids, vectors()).unwrap_err().code();
    assert_eq!((refusal(&["a"]), refusal(&["a", "a"])), ("am-part-length", "am-part"));
    let none: [&str; 0] = [];
    assert_eq!(ContentRecommender::sparse(none, SparseRows::new(3)).unwrap_err().code(), "am-empty-matrix");
}
