fn call(bytes: &[u8]) -> usize {
    let Ok(file) = gguf_core::Gguf::from_bytes(bytes) else { return 0 };
    let count = file.entries().iter().filter_map(|entry| entry.value().as_array()).map(|array| array.iter().count());
    let data: alloc::vec::Vec<&[u8]> = file.tensors().iter().filter_map(|info| file.tensor_data(info)).collect();
    let copy = gguf_core::GgufBuilder::copy_of(file.header()).and_then(|copy| copy.layout()?.to_vec(&data));
    count.sum::<usize>() + copy.map_or(0, |bytes| bytes.len())
}
