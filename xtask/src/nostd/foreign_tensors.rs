
fn call(bytes: &[u8]) -> usize {
    use foreign_tensors::{NoCompanions, Options, read};

    let Ok(model) = read(&bytes, &NoCompanions, &Options::default()) else { return 0 };
    model.tensors().iter().map(|tensor| tensor.to_vec(&model, &bytes).map_or(0, |bytes| bytes.len())).sum()
}
