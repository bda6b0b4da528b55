//! A pipeline as payload (`docs/payloads.md`, section 21) and as a tensor.

use apr_container::{
    ModelType, PayloadLayout, PayloadReader, PayloadWriter, decode_payload_from_slice, encode_payload_to_vec,
};

use crate::error::Error;
use crate::pipeline::step::{STEP_LEN, Step};
use crate::pipeline::{Head, Input, Pipeline};
use crate::tensors::Tensors;

const PAYLOAD: &str = "payload";

stored_model! {
    Pipeline "Pipeline" [Custom] form 1 of 1
    n_features: |model| match model.input() {
            Input::Numbers { n_features, .. } => Some(*n_features),
            Input::Texts(_) => None,
        };
}

impl Pipeline {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.input().encode(out)?;
        out.usize(self.steps().len())?;
        self.steps().iter().try_for_each(|step| step.encode(out))?;
        self.head().encode(out)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let samples = Input::decode(input)?;
        let steps = input.list(STEP_LEN, Step::decode)?;
        Ok(Self::from_parts(samples, steps, Head::decode(input)?)?)
    }

    /// The pipeline that a tensor holds: its payload, byte by byte.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type, and
    /// [`ErrorKind::Container`](crate::ErrorKind::Container).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[PAYLOAD])?;
        let payload = tensors.bytes(PAYLOAD)?;
        decode_payload_from_slice(payload, PayloadLayout::default(), ModelType::Custom)
            .map_err(|error| Error::from(error).of_tensor(PAYLOAD))
    }

    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let payload = encode_payload_to_vec(self, PayloadLayout::default())?;
        tensors.push_u8(PAYLOAD, &[payload.len()], &payload)
    }
}
