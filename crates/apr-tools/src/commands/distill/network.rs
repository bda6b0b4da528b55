//! Networks: scaled samples in training, unscaled samples in predictions.

use apr_models::{Activation, Dense, Matrix, NeuralLoss, NeuralOptions, NeuralSequential, NeuralTargets};

use crate::commands::train::Scale;
use crate::commands::train::network::unscaled;
use crate::error::Failure;

/// What a network is to give.
pub(super) enum Outputs<'t> {
    Classes(NeuralTargets<'t>),
    /// One number for each sample.
    Numbers(&'t [f32]),
}

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
    let (inputs, scaled) = scaled(x)?;
    let begun = NeuralSequential::random(x.n_cols(), layers, options.seed)?;
    let mut model = hints.learn(begun, &scaled, x, options)?;
    match *outputs {
        Outputs::Classes(targets) => {
            model.fit(&scaled, targets, options)?;
            unscaled(model, &inputs, None)
        }
        Outputs::Numbers(y) => {
            let (outputs, y) = self::scaled(&Matrix::from_vec(y.len(), 1, y.to_vec())?)?;
            model.fit(&scaled, NeuralTargets::Values(&y), options)?;
            unscaled(model, &inputs, Some(&outputs))
        }
    }
}

/// A table in units of the deviations of its columns.
fn scaled(table: &Matrix) -> Result<(Scale, Matrix), Failure> {
    let (n_rows, n_cols) = table.shape();
    let scale = Scale::of(table.as_slice(), n_cols);
    let scaled = Matrix::from_vec(n_rows, n_cols, scale.apply(table.as_slice()))?;
    Ok((scale, scaled))
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
            let (_, wanted) = self::scaled(&wanted)?;

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
