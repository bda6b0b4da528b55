fn call(bytes: &[u8]) -> usize {
    let Ok(file) = st_core::SafeTensors::from_bytes(bytes) else { return 0 };
    let sum: usize = file.iter().filter_map(|(_, tensor)| tensor.to_f64().ok()).map(Iterator::count).sum();
    let tensors: alloc::vec::Vec<_> = file.iter().collect();
    let saved = st_core::to_vec(&tensors, &st_core::WriteOptions::default());
    sum + saved.map_or(0, |bytes| bytes.len())
}
