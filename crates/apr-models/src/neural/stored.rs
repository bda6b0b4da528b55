//! A network as payload (`docs/payloads.md`, section 12) and as tensors.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::neural::{Activation, Dense, NeuralSequential};
use crate::payload::fields::read;
use crate::payload::variants;
use crate::tensors::Tensors;

/// Bytes of a layer without weights, which is refused.
const MIN_LAYER_LEN: u64 = 28;

const ACTIVATIONS: &str = "activations";

variants!(Activation: Identity Relu Tanh Sigmoid Softmax);

stored_model! {
    NeuralSequential "NeuralSequential" [NeuralSequential] form 1 of 1
    n_features: |model| Some(model.n_inputs());
}

impl NeuralSequential {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.n_inputs())?;
        out.usize(self.layers().len())?;
        self.layers().iter().try_for_each(|layer| {
            out.usize(layer.n_outputs())?;
            out.variant(layer.activation().variant())?;
            out.f32s(layer.weights().as_slice())?;
            out.f32s(layer.bias())
        })
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let mut n_inputs = input.usize()?;
        let layers = input.list(MIN_LAYER_LEN, |input| {
            let (weights, bias, activation) = read(input, |fields| {
                let n_outputs = fields.usize();
                let activation = Activation::of_variant(fields.variant(5).into()).unwrap_or_default();
                let weights = fields.f32s();
                let weights = fields.matrix_of(n_inputs, n_outputs, weights);
                n_inputs = n_outputs;
                (weights, fields.f32s(), activation)
            })?;
            Ok(Dense::new(weights, bias, activation)?)
        })?;
        Ok(Self::from_layers(layers)?)
    }

    /// The network that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`from_layers`](Self::from_layers).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        let activations = tensors.integers(ACTIVATIONS)?;
        let known = 2 * activations.len();
        checks::expect_len("layers", known, tensors.names().count().saturating_sub(1))?;
        let layers = activations.into_iter().enumerate().map(|(idx, activation)| {
            let problem = "must be 0 to 4";
            let activation = Activation::of_variant(activation)
                .ok_or(ErrorKind::PartInvalid { part: ACTIVATIONS, problem })?;
            Dense::new(tensors.matrix(&weights_name(idx))?, tensors.vector(&bias_name(idx))?, activation)
        });
        Self::from_layers(checks::all(layers)?)
    }
}

fn weights_name(layer: usize) -> String {
    format!("layer_{layer}_weights")
}

fn bias_name(layer: usize) -> String {
    format!("layer_{layer}_bias")
}

impl NeuralSequential {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let activations: Vec<u64> =
            self.layers().iter().map(|layer| layer.activation().variant().into()).collect();
        tensors.push_integers(ACTIVATIONS, &[activations.len()], &activations)?;
        for (idx, layer) in self.layers().iter().enumerate() {
            let shape = [layer.n_inputs(), layer.n_outputs()];
            tensors.push_f32(&weights_name(idx), &shape, layer.weights().as_slice())?;
            tensors.push_f32(&bias_name(idx), &shape[1..], layer.bias())?;
        }
        Ok(())
    }
}
