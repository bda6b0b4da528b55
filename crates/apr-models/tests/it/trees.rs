//! Trees from untrusted payloads and tensors.

use apr_container::{ModelType, PayloadLayout, decode_payload_from_slice, encode_payload_to_vec};
use apr_models::{
    AnyModel, Classifier, DecisionTreeClassifier, DecisionTreeRegressor, IsolationForest, Matrix, Model,
    RandomForestClassifier, Regressor, Tensors, TreeNode,
};

fn split<L>(feature: usize, threshold: f32, left: usize, right: usize) -> TreeNode<L> {
    TreeNode::Split { feature, threshold, left, right, n_samples: 3, impurity: 0.5 }
}

fn leaf<L>(value: L) -> TreeNode<L> {
    TreeNode::Leaf { value, n_samples: 1, impurity: 0.25 }
}

/// `left, then right`, in 1-byte steps of thresholds: leaves 10, 11, 12.
fn classifier() -> DecisionTreeClassifier {
    let nodes = [split(1, 0.5, 1, 4), split(0, -1.0, 2, 3), leaf(10), leaf(11), leaf(12)];
    DecisionTreeClassifier::from_parts(&nodes, 2).unwrap().with_max_depth(Some(2))
}

#[test]
fn layouts_are_those_of_the_other_implementations() {
    let one_split = DecisionTreeClassifier::from_parts(&[split(1, 0.5, 1, 2), leaf(7), leaf(8)], 2).unwrap();
    let (split_head, half) = (&[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], 0.5_f32.to_le_bytes());
    let leaf_bytes = |class: u8| [&[1, 0, 0, 0, class][..], &[0; 7], &[1], &[0; 7]].concat();
    let tail = [0, 1, 2, 0, 0, 0, 0, 0, 0, 0];

    let old = [&[1][..], split_head, &half, &leaf_bytes(7), &leaf_bytes(8), &tail].concat();
    assert_eq!(encode_payload_to_vec(&one_split, PayloadLayout::V0_15).unwrap(), old);
    assert_eq!(encode_payload_to_vec(&one_split, PayloadLayout::V0_10).unwrap(), old[..old.len() - 9]);

    let quarter = 0.25_f32.to_le_bytes();
    let three_samples = [3, 0, 0, 0, 0, 0, 0, 0];
    let new = [
        &[1][..],
        split_head,
        &half,
        &half,
        &three_samples,
        &leaf_bytes(7),
        &quarter,
        &leaf_bytes(8),
        &quarter,
        &tail,
    ]
    .concat();
    assert_eq!(encode_payload_to_vec(&one_split, PayloadLayout::V0_72).unwrap(), new);
}

#[test]
fn old_layouts_lose_impurities_and_nothing_else() {
    let model = classifier();
    for layout in PayloadLayout::ALL {
        let payload = encode_payload_to_vec(&model, layout).unwrap();
        let read: DecisionTreeClassifier =
            decode_payload_from_slice(&payload, layout, ModelType::DecisionTree).unwrap();
        assert_eq!(encode_payload_to_vec(&read, layout).unwrap(), payload);
        for (read, written) in read.nodes().zip(model.nodes()) {
            match (read, written) {
                (TreeNode::Leaf { value: a, .. }, TreeNode::Leaf { value: b, .. }) => assert_eq!(a, b),
                (
                    TreeNode::Split { feature: a, threshold: s, n_samples, .. },
                    TreeNode::Split { feature: b, threshold: t, .. },
                ) => {
                    assert_eq!((a, s), (b, t));
                    assert!(n_samples > 1, "counted from the leaves where the layout has no number");
                }
                _ => panic!("another shape"),
            }
        }
        let knows_features = layout > PayloadLayout::V0_10;
        assert_eq!(read.n_features(), knows_features.then_some(2));
        let x = Matrix::from_vec(3, 2, vec![-1.0, 0.5, 0.0, 0.5, 0.0, 0.6]).unwrap();
        assert_eq!(read.predict(&x), [10, 11, 12]);
    }
}

#[test]
fn samples_of_another_width_are_refused() {
    let wide = Matrix::from_vec(1, 3, vec![0.0; 3]).unwrap();
    assert_eq!(classifier().try_predict(&wide).unwrap_err().code(), "am-feature-count");
    // A tree that does not know its features takes samples that have all it tests.
    let model = DecisionTreeRegressor::from_parts(&[split(1, 0.5, 1, 2), leaf(1.0), leaf(2.0)]).unwrap();
    assert_eq!(model.predict(&wide)[0], 1.0);
    let narrow = Matrix::from_vec(1, 1, vec![0.0]).unwrap();
    assert_eq!(model.try_predict(&narrow).unwrap_err().code(), "am-feature-count");
    let mut out = [0.0; 2];
    assert_eq!(model.predict_into(&[0.0; 5], &mut out).unwrap_err().code(), "am-input-length");
}

#[test]
fn two_million_nested_splits_neither_overflow_the_stack_nor_pass_for_a_tree() {
    let n_splits = 2_000_000;
    let mut payload = vec![1];
    for _ in 0..n_splits {
        payload.extend([0; 16]);
    }
    for layout in [PayloadLayout::V0_10, PayloadLayout::V0_15] {
        let read =
            decode_payload_from_slice::<DecisionTreeClassifier>(&payload, layout, ModelType::DecisionTree);
        assert_eq!(read.unwrap_err().code(), "ac-payload-end");
    }
    // With its leaves it is a tree, and predicts, and goes away.
    for _ in 0..=n_splits {
        payload.extend([1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    payload.push(0);
    let model: DecisionTreeClassifier =
        decode_payload_from_slice(&payload, PayloadLayout::V0_10, ModelType::DecisionTree).unwrap();
    assert_eq!(model.predict(&Matrix::from_vec(1, 1, vec![0.0]).unwrap()), [5]);
    assert_eq!(encode_payload_to_vec(&model, PayloadLayout::V0_10).unwrap(), payload);
}

#[test]
fn deep_isolation_trees_are_read_and_written() {
    let depth = 300_000;
    let nodes: Vec<TreeNode<()>> = (0..depth)
        .flat_map(|level| [split(0, level as f32, 2 * level + 1, 2 * level + 2), leaf(())])
        .chain([leaf(())])
        .collect();
    let model = IsolationForest::from_parts(&[nodes], 16, -0.5).unwrap();
    let payload = encode_payload_to_vec(&model, PayloadLayout::V0_72).unwrap();
    let read: IsolationForest =
        decode_payload_from_slice(&payload, PayloadLayout::V0_72, ModelType::Custom).unwrap();
    // Without printing a million nodes.
    assert!(read == model);
    for len in [payload.len() / 2, payload.len() - 1] {
        let cut = decode_payload_from_slice::<IsolationForest>(
            &payload[..len],
            PayloadLayout::V0_72,
            ModelType::Custom,
        );
        assert!(cut.is_err());
    }
}

#[test]
fn forests_write_the_training_data_only_when_told() {
    // One tree of one leaf, then 1 tree, no depth, no seed, one list of one sample not seen, a table of 1 x 2, a class.
    let tree = [&[1, 1, 0, 0, 0, 3][..], &[0; 7], &[9], &[0; 7], &[0, 0]].concat();
    let number = |value: u8| [&[value][..], &[0; 7]].concat();
    let (x, one) = ([1.0_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat(), number(1));
    let head = [&one[..], &tree, &one, &[0, 0]].concat();
    let kept =
        [&one[..], &one, &number(0), &[1], &number(2), &x, &one, &number(2), &[1], &one, &number(3)].concat();
    let payload = [&head[..], &kept].concat();
    let dropped = [&head[..], &number(0), &[0, 0]].concat();

    let model: RandomForestClassifier =
        decode_payload_from_slice(&payload, PayloadLayout::V0_15, ModelType::RandomForest).unwrap();
    let stored = model.stored_training_data().unwrap();
    assert_eq!(stored.oob_indices, [[0]]);
    assert_eq!(stored.x.as_ref().unwrap().as_slice(), &[1.0, 2.0]);
    assert_eq!(stored.y, Some(vec![3]));
    assert_eq!(AnyModel::from(model.clone()).stored_samples(), Some(1));
    assert_eq!(encode_payload_to_vec(&model, PayloadLayout::V0_15).unwrap(), dropped);
    let keeping = model.clone().keep_training_data();
    assert_eq!(encode_payload_to_vec(&keeping, PayloadLayout::V0_15).unwrap(), payload);
    let mut forgetful = keeping;
    forgetful.forget_training_data();
    assert_eq!(AnyModel::from(forgetful.clone()).stored_samples(), None);
    assert_eq!(encode_payload_to_vec(&forgetful, PayloadLayout::V0_15).unwrap(), dropped);
    assert!(model.to_tensors().unwrap().names().all(|name| !name.contains("train") && !name.contains("oob")));
}

#[test]
fn forests_of_empty_trees_are_refused_before_they_take_memory() {
    let count = 1_000_000_u64;
    let mut payload = count.to_le_bytes().to_vec();
    payload.extend(vec![0; 22 * count as usize]);
    let read = decode_payload_from_slice::<RandomForestClassifier>(
        &payload,
        PayloadLayout::V0_10,
        ModelType::RandomForest,
    );
    assert_eq!(read.unwrap_err().code(), "am-not-fitted");
}

#[test]
fn tensors_that_are_no_tree_are_refused_by_name() {
    let good = classifier().to_tensors().unwrap();
    assert_eq!(DecisionTreeClassifier::from_tensors(&good).unwrap(), classifier());
    let wrong_length: &[f32] = &[0.0, 0.0];
    let (halves, nines): (&[f32], &[f32]) = (&[0.5; 5], &[9.0; 5]);
    for changed in ["node_features", "node_left_child", "node_right_child", "node_samples", "node_classes"] {
        let of_nines = match changed {
            // Leaves that became splits have no children.
            "node_features" => Some("am-tensor-integer"),
            "node_left_child" | "node_right_child" => Some("am-part"),
            _ => None,
        };
        let cases =
            [(wrong_length, Some("am-part-length")), (halves, Some("am-tensor-integer")), (nines, of_nines)];
        for (values, code) in cases {
            let mut tensors = Tensors::new();
            for name in good.names() {
                let view = good.view(name).unwrap();
                if name == changed {
                    tensors.push_f32(name, &[values.len()], values).unwrap();
                } else {
                    tensors.push(name, view.dtype(), view.shape(), view.data().to_vec()).unwrap();
                }
            }
            let read = DecisionTreeClassifier::from_tensors(&tensors);
            assert_eq!(read.map_err(|error| error.code()).err(), code, "{changed} {values:?}");
        }
    }
}
