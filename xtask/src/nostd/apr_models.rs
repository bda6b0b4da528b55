fn call(bytes: &[u8]) -> usize {
    let numbers: alloc::vec::Vec<f32> = bytes.iter().copied().map(f32::from).collect();
    let Ok(x) = apr_models::Matrix::from_vec(numbers.len(), 1, numbers.clone()) else { return 0 };
    let y = apr_models::Vector::from_vec(numbers);
    let mut model = apr_models::LinearRegression::new();
    let fitted = usize::from(model.fit(&x, &y).is_ok());
    // Any model of any file, from its bytes to its predictions.
    let Ok(model) = apr_models::AnyModel::from_bytes(bytes) else { return fitted };
    let quantized = apr_models::Model::quantize(&model, apr_models::QuantType::Q4_0);
    if let Some(model) = quantized.ok().and_then(|quantized| quantized.to_vec().ok()) {
        return model.len();
    }
    match model.try_predict(&x) {
        Ok(apr_models::Predictions::Values(values)) => values.len(),
        Ok(_) => fitted,
        Err(_) => 0,
    }
}
