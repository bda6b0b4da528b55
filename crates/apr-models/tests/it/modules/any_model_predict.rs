use apr_models::*;

#[test]
fn outputs_that_a_model_lacks_are_refused() {
    let line = AnyModel::from(LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0).unwrap());
    let code = |model: &AnyModel, samples: Samples<'_>, n_samples, output| {
        model.predict(samples, n_samples, output).unwrap_err().code()
    };
    let one = Samples::F32(&[1.0]);
    for output in OutputKind::ALL {
        let supported = line.capabilities().supports(output);
        assert_eq!(supported, output == OutputKind::Predictions);
        assert_eq!(line.predict(one, 1, output).is_ok(), supported);
    }
    assert_eq!(code(&line, one, 1, OutputKind::Probabilities), "am-no-such-output");
    assert_eq!(code(&line, Samples::Text(&["a"]), 1, OutputKind::Predictions), "am-part");
    assert_eq!(code(&line, one, 2, OutputKind::Predictions), "am-input-length");
    assert_eq!(code(&line, one, 0, OutputKind::Predictions), "am-input-length");
    assert_eq!(code(&line, Samples::F32(&[1.0, 2.0]), 1, OutputKind::Predictions), "am-feature-count");
    let numbers = AnyModel::from(Numbers::from(vec![1.0]));
    assert_eq!(numbers.capabilities().input(), None);
    for output in OutputKind::ALL {
        assert!(!numbers.capabilities().supports(output));
        assert_eq!(code(&numbers, one, 1, output), "am-no-predictions");
    }
}

#[test]
fn both_classes_have_a_probability() {
    let x = Matrix::from_vec(4, 1, vec![0.0, 1.0, 2.0, 3.0]).unwrap();
    let mut model = LogisticRegression::new();
    model.fit(&x, &[0, 0, 1, 1]).unwrap();
    let found =
        AnyModel::from(model).predict(Samples::F64(&[0.0, 3.0]), 2, OutputKind::Probabilities).unwrap();
    let Predictions::Probabilities { classes, values, n_columns: 2 } = found else { panic!("{found:?}") };
    assert_eq!(classes, [0, 1]);
    let Floats::F32(values) = values else { panic!("{values:?}") };
    assert!(values.chunks(2).all(|row| (row[0] + row[1] - 1.0).abs() < 1e-6));
}
