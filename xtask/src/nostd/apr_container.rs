struct Weights(alloc::vec::Vec<f32>);

impl apr_container::DecodePayload for Weights {
    fn decode_payload(input: &mut apr_container::PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        Ok(Self(input.f32s()?))
    }
}

impl apr_container::EncodePayload for Weights {
    fn encode_payload(&self, out: &mut apr_container::PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.f32s(&self.0)
    }
}

fn call(bytes: &[u8]) -> usize {
    let kind = apr_container::ModelType::Custom;
    let Ok(weights) = apr_container::load_from_bytes::<Weights>(bytes, kind) else { return 0 };
    let Ok(info) = apr_container::inspect_bytes(bytes) else { return 1 };
    let options = apr_container::SaveOptions::default()
        .with_metadata(info.metadata)
        .with_compression(apr_container::Compression::ZstdDefault);
    let saved = apr_container::to_vec(&weights, kind, &options);
    let options = apr_container::LoadOptions::default();
    if apr_container::load_from_bytes_with::<Weights>(bytes, kind, options).is_ok() {
        return 2;
    }
    let tensors = apr_container::v2::Container::from_bytes(bytes).map_or(0, |file| file.len());
    saved.map_or(tensors, |bytes| bytes.len())
}
