fn call(bytes: &[u8]) -> usize {
    let limits = apr_sealed::SealedLimits::default();
    let Ok(reader) = apr_sealed::SealedReader::open(bytes, &Default::default(), &limits) else { return 0 };
    reader.parts().len()
}
