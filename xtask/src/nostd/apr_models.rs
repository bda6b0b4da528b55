fn call(bytes: &[u8]) -> usize {
    let numbers: alloc::vec::Vec<f32> = bytes.iter().copied().map(f32::from).collect();
    let Ok(x) = apr_models::Matrix::from_vec(numbers.len(), 1, numbers.clone()) else { return 0 };
    let y = apr_models::Vector::from_vec(numbers);
    let mut model = apr_models::LinearRegression::new();
    usize::from(model.fit(&x, &y).is_ok())
}
