use apr_models::*;

#[test]
fn a_sample_set_apart_at_once_scores_lowest() {
    let leaf = |n_samples| TreeNode::Leaf { value: (), n_samples, impurity: 0.0 };
    let cut = TreeNode::Split { feature: 0, threshold: 2.0, left: 1, right: 2, n_samples: 8, impurity: 0.0 };
    let model = IsolationForest::from_parts(&[vec![cut, leaf(7), leaf(1)]], 8, -0.7).expect("a tree");
    let x = Matrix::from_vec(3, 1, vec![1.9, 2.0, f32::NAN]).expect("three rows");
    // The second and third go right, where a single sample is: one cut.
    let lone = -libm::exp2(-1.0 / f64::from(model.c_norm())) as f32;
    let scores = model.try_score_samples(&x).expect("fitted");
    assert_eq!((scores[1], scores[2]), (lone, lone));
    assert!(scores[0] > lone);
    assert_eq!(model.try_predict(&x).expect("fitted"), [1, -1, -1]);
    assert_eq!(IsolationForest::from_tensors(&model.to_tensors().expect("fitted")).expect("own"), model);
}
