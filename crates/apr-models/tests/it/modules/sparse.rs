use apr_models::*;

fn rows() -> SparseRows {
    let mut rows = SparseRows::new(5);
    rows.push_row(&[(0, 1.0), (3, -2.0)]).unwrap();
    rows.push_row(&[]).unwrap();
    rows.push_row(&[(2, 4.0), (3, 0.5), (4, 1.0)]).unwrap();
    rows
}

#[test]
fn parts_and_rows_make_the_same_table() {
    let rows = rows();
    let again = SparseRows::from_parts(
        5,
        rows.row_starts().to_vec(),
        rows.columns().to_vec(),
        rows.values().to_vec(),
    );
    assert_eq!(again.unwrap(), rows);
    let dense = rows.to_matrix().unwrap();
    assert_eq!(dense.row(0).unwrap(), [1.0, 0.0, 0.0, -2.0, 0.0]);
    assert_eq!(dense.row(1).unwrap(), [0.0; 5]);
    let (first, last) = (rows.row(0).unwrap(), rows.row(2).unwrap());
    assert_eq!((first.dot(&last), first.dot_dense(dense.row(2).unwrap())), (-1.0, -1.0));
    assert_eq!((first.get(3), first.get(2), rows.row(3)), (Some(-2.0), None, None));
}

#[test]
fn unsound_lists_are_refused() {
    let cases = [
        (5, vec![0, 2], vec![3, 0], vec![1.0, 1.0]),
        (5, vec![0, 2], vec![0, 0], vec![1.0, 1.0]),
        (3, vec![0, 1], vec![3], vec![1.0]),
        (5, vec![0, 2], vec![0], vec![1.0]),
        (5, vec![1, 1], vec![0], vec![1.0]),
        (5, vec![0, 1, 0, 1], vec![0], vec![1.0]),
        (5, vec![], vec![], vec![]),
        (5, vec![0, 1], vec![0], vec![]),
        (5, vec![0, 1], vec![0], vec![f32::NAN]),
    ];
    for (n_cols, starts, columns, values) in cases {
        assert!(SparseRows::from_parts(n_cols, starts.clone(), columns, values).is_err(), "{starts:?}");
    }
    let mut rows = rows();
    for row in [&[(5, 1.0)][..], &[(1, 1.0), (1, 1.0)], &[(0, f32::INFINITY)]] {
        assert!(rows.push_row(row).is_err());
    }
    assert_eq!(rows, self::rows());
    assert!(SparseRows::new(usize::MAX).to_matrix().is_err());
}
