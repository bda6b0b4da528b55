//! A pipeline as payload (`docs/payloads.md`, section 21) and as a tensor.

use apr_container::{
    DecodePayload, EncodePayload, ModelType, PayloadLayout, PayloadReader, PayloadWriter,
    decode_payload_from_slice, encode_payload_to_vec,
};

use crate::error::Error;
use crate::model::Model;
use crate::payload::header;
use crate::pipeline::step::{STEP_LEN, Step};
use crate::pipeline::{Head, Input, Pipeline};
use crate::tensors::Tensors;

const FORM: u32 = 1;
const N_FORMS: u32 = 1;

const NAME: &str = "Pipeline";
const PAYLOAD: &str = "payload";

impl EncodePayload for Pipeline {
    const MODEL_TYPE: Option<ModelType> = Some(ModelType::Custom);

    fn model_name(&self) -> Option<&str> {
        Some(NAME)
    }

    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        header::write(out, FORM)?;
        self.input().encode(out)?;
        out.usize(self.steps().len())?;
        self.steps().iter().try_for_each(|step| step.encode(out))?;
        self.head().encode(out)
    }
}

impl DecodePayload for Pipeline {
    const MODEL_TYPE: Option<ModelType> = Some(ModelType::Custom);

    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        header::expect_form(input, FORM, N_FORMS)?;
        let samples = Input::decode(input)?;
        let steps = input.list(STEP_LEN, Step::decode)?;
        Ok(Self::from_parts(samples, steps, Head::decode(input)?)?)
    }
}

impl Pipeline {
    /// The pipeline that a tensor holds: its payload, byte by byte.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type, and
    /// [`ErrorKind::Container`](crate::ErrorKind::Container).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(NAME, &[PAYLOAD])?;
        let payload = tensors.bytes(PAYLOAD)?;
        decode_payload_from_slice(payload, PayloadLayout::default(), ModelType::Custom)
            .map_err(|error| Error::from(error).of_tensor(PAYLOAD))
    }
}

impl Model for Pipeline {
    fn name(&self) -> &'static str {
        NAME
    }

    fn model_type(&self) -> ModelType {
        ModelType::Custom
    }

    fn n_features(&self) -> Option<usize> {
        match self.input() {
            Input::Numbers { n_features, .. } => Some(*n_features),
            Input::Texts(_) => None,
        }
    }

    fn to_tensors(&self) -> Result<Tensors, Error> {
        Tensors::made(NAME, &|tensors| {
            let payload = encode_payload_to_vec(self, PayloadLayout::default())?;
            tensors.push_u8(PAYLOAD, &[payload.len()], &payload)?;
            Ok(())
        })
    }
}
