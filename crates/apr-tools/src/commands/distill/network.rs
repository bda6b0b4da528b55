//! Networks: scaled samples in training, unscaled samples in predictions.

use apr_models::{
    Activation, Alone, Dense, Matrix, NeuralLoss, NeuralOptions, NeuralSequential, NeuralTargets,
};

use crate::commands::train::network;
pub(super) use crate::commands::train::network::Outputs;
use crate::error::Failure;

/// Trains a network of these layers; the one that is returned takes samples as they are.
///
/// # Errors
///
/// Those of [`NeuralSequential::random`] and [`NeuralSequential::fit`].
pub(super) fn learn(
    x: &Matrix,
    outputs: &Outputs<'_>,
    layers: &[(usize, Activation)],
    options: &NeuralOptions,
    hints: &Hints<'_>,
) -> Result<NeuralSequential, Failure> {
    let prepare = |network, scaled: &Matrix| hints.learn(network, scaled, x, options);
    network::learn(&Alone, x, outputs, layers, options, prepare).map(|(model, _)| model)
}

/// Pairs of hidden layers, those of the student and those of a teacher: the student's first learn to give what the teacher's do (Romero et al.,
/// *FitNets: Hints for Thin Deep Nets*, 2015).
#[derive(Default)]
pub(super) struct Hints<'h> {
    pub(super) pairs: &'h [(usize, usize)],
    /// `None` without pairs.
    pub(super) teacher: Option<&'h NeuralSequential>,
}

impl Hints<'_> {
    /// Brings a network's hidden layers near the teacher's, pair by pair: the layers up to the student's, with a linear layer after
    /// them, learn what the teacher's gives, in units of its deviations; that layer, which makes widths equal, is then dropped. `scaled` are
    /// the samples as the network takes them, `plain` as the teacher does.
    ///
    /// # Errors
    ///
    /// Those of [`NeuralSequential::fit`].
    fn learn(
        &self,
        network: NeuralSequential,
        scaled: &Matrix,
        plain: &Matrix,
        options: &NeuralOptions,
    ) -> Result<NeuralSequential, Failure> {
        let Some(teacher) = self.teacher else { return Ok(network) };
        let mut layers = network.into_layers();
        for (number, &(of_student, of_teacher)) in (1_u64..).zip(self.pairs) {
            let upto = teacher.layers().iter().take(of_teacher + 1).cloned().collect();
            let wanted = NeuralSequential::from_layers(upto)?.outputs(plain)?;
            let (_, wanted) = network::scaled(&wanted)?;

            let rest = layers.split_off(of_student + 1);
            let from = layers.last().map_or(0, Dense::n_outputs);
            let seed = options.seed.wrapping_add(number);
            let projection =
                NeuralSequential::random(from, &[(wanted.n_cols(), Activation::Identity)], seed)?;
            layers.extend(projection.into_layers());
            let mut hinted = NeuralSequential::from_layers(layers)?;
            let options = NeuralOptions { loss: NeuralLoss::MeanSquared, ..*options };
            hinted.fit(scaled, NeuralTargets::Values(&wanted), &options)?;
            layers = hinted.into_layers();
            layers.truncate(of_student + 1);
            layers.extend(rest);
        }
        Ok(NeuralSequential::from_layers(layers)?)
    }
}
