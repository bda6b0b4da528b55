fn call(bytes: &[u8]) -> usize {
    let Ok(structure) = st_structures::Structure::from_bytes(bytes) else { return 0 };
    let saved = structure.to_vec().map_or(0, |bytes| bytes.len());
    let list: alloc::vec::Vec<f64> = structure.deserialize().unwrap_or_default();
    saved + st_structures::to_vec(&list).map_or(0, |bytes| bytes.len())
}
