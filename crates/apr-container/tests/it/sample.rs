//! A model of the tests' own.

use apr_container::{DecodePayload, EncodePayload, Error, ModelType, PayloadReader, PayloadWriter};

/// A list of numbers, then a tail that makes lengths odd.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) weights: Vec<f32>,
    pub(crate) name: String,
    pub(crate) fitted: bool,
}

impl Sample {
    pub(crate) fn new(count: usize) -> Self {
        // Noise in the low bits, as trained weights have it: hardly compressible.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        Self { weights: (0..count).map(|_| next()).collect(), name: "säule".into(), fitted: true }
    }

    pub(crate) fn constant(count: usize) -> Self {
        Self { weights: vec![0.25; count], ..Self::new(0) }
    }
}

impl EncodePayload for Sample {
    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        out.f32s(&self.weights)?;
        out.str(&self.name)?;
        out.bool(self.fitted)
    }
}

impl DecodePayload for Sample {
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        Ok(Self { weights: input.f32s()?, name: input.string()?, fitted: input.bool()? })
    }
}

/// A model that belongs to one type.
#[derive(Debug)]
pub(crate) struct OnlyKMeans;

impl EncodePayload for OnlyKMeans {
    const MODEL_TYPE: Option<ModelType> = Some(ModelType::KMeans);

    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        out.u8(7)
    }
}
