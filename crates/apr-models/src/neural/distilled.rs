//! Targets of a distillation: another model's probabilities.

use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;
use crate::neural::fit::logarithm;

/// Probabilities of a teacher, of which a network learns more than of classes (Hinton, Vinyals and Dean, *Distilling the
/// Knowledge in a Neural Network*, 2015).
///
/// The loss of a sample is `alpha * T^2 * KL(q || p) + (1 - alpha) * -ln(p1[class])`. There `T` is the temperature, `q` the teacher's
/// probabilities at that temperature, `p` the network's at it, and `p1` those of the network itself. For a sample without
/// a class it is the first term without `alpha`.
#[derive(Clone, Copy, Debug)]
pub struct SoftTargets<'t> {
    /// Probabilities by the teacher at the temperature, for example by [`soften`](Self::soften): `[n_samples, n_classes]`.
    pub softened: &'t Matrix,
    /// The class of each sample, counted from 0, if it is known: `[n_samples]`.
    pub classes: &'t [Option<usize>],
    /// Divides the logits of both models: above 0.
    pub temperature: f64,
    /// Weight of the teacher's probabilities, from 0 to 1; the rest is that of the classes.
    pub alpha: f64,
}

impl SoftTargets<'_> {
    /// What a teacher's probability counts as at least: forests give exact zeros, whose logits are infinite.
    pub const LEAST_TEACHER: f64 = 1e-7;

    /// Probabilities at a temperature: in proportion to `probabilities^(1 / temperature)`, where one below
    /// [`LEAST_TEACHER`](Self::LEAST_TEACHER) counts as that. `probabilities` and the result are `[n_samples, n_classes]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] for a temperature that is not above 0, [`ErrorKind::TargetNotFinite`] for a row with a value
    /// that is no probability.
    pub fn soften(probabilities: &Matrix, temperature: f64) -> Result<Matrix, Error> {
        check_temperature(temperature)?;
        check_probabilities(probabilities)?;
        let mut softened = Vec::with_capacity(probabilities.as_slice().len());
        for row in probabilities.rows() {
            let powers = row.iter().map(|&probability| {
                libm::pow(f64::from(probability).max(Self::LEAST_TEACHER), 1.0 / temperature)
            });
            let sum: f64 = powers.clone().sum();
            softened.extend(powers.map(|power| (power / sum) as f32));
        }
        Matrix::from_vec(probabilities.n_rows(), probabilities.n_cols(), softened)
    }

    /// The mean loss of a network that gives these probabilities: `[n_samples, n_classes]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`] and [`ErrorKind::PartLength`] if the shapes differ, [`ErrorKind::Label`] for a class without
    /// a column, [`ErrorKind::PartInvalid`] for a temperature or an alpha out of its range, [`ErrorKind::TargetNotFinite`] for
    /// a teacher's probability that is none.
    pub fn loss(&self, probabilities: &Matrix) -> Result<f64, Error> {
        let (n_rows, width) = probabilities.shape();
        self.check(n_rows, width)?;
        let mut gradients = self.softened.as_slice().to_vec();
        let rows: Vec<usize> = (0..n_rows).collect();
        Ok(self.gradients(&rows, probabilities.as_slice(), width, &mut gradients) / n_rows as f64)
    }

    /// Proves that they are targets of so many samples and outputs.
    pub(super) fn check(&self, n_rows: usize, n_outputs: usize) -> Result<(), Error> {
        let Self { softened, classes, temperature, alpha } = *self;
        for given in [softened.n_rows(), classes.len()] {
            if given != n_rows {
                return Err(ErrorKind::TargetLength { n_rows, given }.into());
            }
        }
        checks::expect_len("probabilities of each sample", n_outputs, softened.n_cols())?;
        check_temperature(temperature)?;
        checks::expect("alpha", (0.0..=1.0).contains(&alpha), "must be from 0 to 1")?;
        if let Some(row) = classes.iter().position(|class| class.is_some_and(|class| class >= n_outputs)) {
            return Err(ErrorKind::Label { row, problem: "must be below the number of outputs" }.into());
        }
        check_probabilities(softened)
    }

    /// Replaces softened probabilities of the teacher for these rows by the derivatives of the mean loss with respect to the logits of a
    /// network that gives the probabilities `said`; the sum of the losses.
    pub(super) fn gradients(&self, rows: &[usize], said: &[f32], width: usize, gradients: &mut [f32]) -> f64 {
        let (temperature, count) = (self.temperature, rows.len() as f64);
        let mut sum = 0.0;
        let mut cooled: Vec<f64> = Vec::with_capacity(width);
        for ((&row, places), said) in
            rows.iter().zip(gradients.chunks_exact_mut(width)).zip(said.chunks_exact(width))
        {
            let class = self.classes.get(row).copied().flatten();
            let alpha = if class.is_some() { self.alpha } else { 1.0 };
            cooled.clear();
            cooled.extend(said.iter().map(|&said| libm::exp(logarithm(said.into()) / temperature)));
            let total: f64 = cooled.iter().sum();
            let mut divergence = 0.0;
            for ((place, &said), (idx, cooled)) in places.iter_mut().zip(said).zip(cooled.iter().enumerate())
            {
                let (teacher, student) = (f64::from(*place), cooled / total);
                divergence += term(teacher, student);
                let apart = f64::from(said) - if class == Some(idx) { 1.0 } else { 0.0 };
                let gradient = alpha * temperature * (student - teacher) + (1.0 - alpha) * apart;
                *place = (gradient / count) as f32;
            }
            sum += alpha * temperature * temperature * divergence;
            if let Some(&said) = class.and_then(|class| said.get(class)) {
                sum -= (1.0 - alpha) * logarithm(said.into());
            }
        }
        sum
    }
}

/// What a class adds to the divergence. Both probabilities sum to 1 but for their rounding, which at high temperatures is more than the
/// divergence: with their difference, no term is below 0.
fn term(teacher: f64, student: f64) -> f64 {
    let excess = (student - teacher) / teacher;
    if teacher <= 0.0 {
        student
    } else if excess.abs() < 0.5 {
        teacher * (excess - libm::log1p(excess))
    } else {
        teacher * (libm::log(teacher) - libm::log(student)) + (student - teacher)
    }
}

fn check_temperature(temperature: f64) -> Result<(), Error> {
    let is_warm = temperature > 0.0 && temperature.is_finite();
    checks::expect("temperature", is_warm, "must be finite and above 0")
}

fn check_probabilities(probabilities: &Matrix) -> Result<(), Error> {
    let is_one = |probability: &f32| (0.0..=1.0).contains(probability);
    match probabilities.rows().position(|row| !row.iter().all(is_one)) {
        Some(row) => Err(ErrorKind::TargetNotFinite { row }.into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::neural::{Activation, NeuralLoss, NeuralOptions, NeuralSequential, NeuralTargets, Optimizer};

    fn softmax(logits: &[f64], temperature: f64) -> Vec<f64> {
        let powers: Vec<f64> = logits.iter().map(|logit| libm::exp(logit / temperature)).collect();
        let sum: f64 = powers.iter().sum();
        powers.iter().map(|power| power / sum).collect()
    }

    /// The loss by its definition, from logits of both models.
    fn defined(teacher: &[f64], student: &[f64], class: usize, temperature: f64, alpha: f64) -> f64 {
        let (q, p) = (softmax(teacher, temperature), softmax(student, temperature));
        let divergence: f64 = q.iter().zip(&p).map(|(q, p)| q * libm::log(q / p)).sum();
        alpha * temperature * temperature * divergence
            - (1.0 - alpha) * libm::log(softmax(student, 1.0)[class])
    }

    fn row(values: &[f64]) -> Matrix {
        Matrix::from_vec(1, values.len(), values.iter().map(|&value| value as f32).collect()).unwrap()
    }

    #[test]
    fn loss_and_gradient_are_those_of_the_definition() {
        let (teacher, student) = ([2.0, -1.0, 0.5], [0.25, 1.0, -0.75]);
        let probabilities = row(&softmax(&teacher, 1.0));
        for (temperature, alpha) in [(1.0, 1.0), (3.0, 0.7), (0.5, 0.0), (10.0, 0.3)] {
            let classes = [Some(2)];
            let softened = SoftTargets::soften(&probabilities, temperature).unwrap();
            let soft = SoftTargets { softened: &softened, classes: &classes, temperature, alpha };
            let said = softmax(&student, 1.0);
            let expected = defined(&teacher, &student, 2, temperature, alpha);
            assert!((soft.loss(&row(&said)).unwrap() - expected).abs() < 1e-5 * expected.max(1.0));

            let mut gradients = softened.as_slice().to_vec();
            soft.gradients(&[0], row(&said).as_slice(), 3, &mut gradients);
            for logit in 0..3 {
                let nudged = |by: f64| {
                    let mut student = student;
                    student[logit] += by;
                    defined(&teacher, &student, 2, temperature, alpha)
                };
                let slope = (nudged(1e-5) - nudged(-1e-5)) / 2e-5;
                assert!((f64::from(gradients[logit]) - slope).abs() < 1e-5, "{temperature} {alpha}");
            }
        }
    }

    #[test]
    fn divergences_at_high_temperatures_are_those_of_the_definition() {
        let (teacher, student) = ([2.0, -1.0, 0.5], [1.75, -0.5, 0.25]);
        for temperature in [1.0, 30.0, 300.0, 1e4] {
            let softened = SoftTargets::soften(&row(&softmax(&teacher, 1.0)), temperature).unwrap();
            let soft = SoftTargets { softened: &softened, classes: &[None], temperature, alpha: 1.0 };
            let found = soft.loss(&row(&softmax(&student, 1.0))).unwrap();
            let expected = defined(&teacher, &student, 0, temperature, 1.0);
            assert!((found - expected).abs() < 0.01 * expected, "{temperature}: {found} {expected}");
        }
        assert_eq!(term(0.0, 0.25), 0.25);
        assert!(term(0.5, 1e-30).is_finite() && term(0.5, 1e-30) > 0.0);
    }

    #[test]
    fn samples_without_a_class_learn_from_the_teacher_alone() {
        let softened = SoftTargets::soften(&row(&[0.7, 0.2, 0.1]), 2.0).unwrap();
        let with = |classes: &[Option<usize>], alpha| {
            let soft = SoftTargets { softened: &softened, classes, temperature: 2.0, alpha };
            soft.loss(&row(&[0.5, 0.25, 0.25])).unwrap()
        };
        assert_eq!(with(&[None], 0.3), with(&[Some(1)], 1.0));
        assert_eq!(with(&[Some(1)], 0.0) as f32, -libm::log(0.25) as f32);
    }

    #[test]
    fn a_network_learns_what_its_teacher_says() {
        let x = Matrix::from_vec(4, 1, vec![-2.0, -1.0, 1.0, 2.0]).unwrap();
        let teacher = Matrix::from_vec(4, 2, vec![0.9, 0.1, 0.7, 0.3, 0.3, 0.7, 0.0, 1.0]).unwrap();
        let softened = SoftTargets::soften(&teacher, 1.0).unwrap();
        let soft = SoftTargets { softened: &softened, classes: &[None; 4], temperature: 1.0, alpha: 1.0 };
        let mut model =
            NeuralSequential::random(1, &[(4, Activation::Tanh), (2, Activation::Softmax)], 1).unwrap();
        let options = NeuralOptions {
            optimizer: Optimizer::adam(0.02),
            epochs: 500,
            ..NeuralOptions::new(NeuralLoss::CrossEntropy)
        };
        let losses = model.fit(&x, NeuralTargets::Distilled(soft), &options).unwrap();
        let found = model.outputs(&x).unwrap();
        assert!(losses[499] < 0.01 && losses[499] < losses[0], "{losses:?}");
        assert!((soft.loss(&found).unwrap() - losses[499]).abs() < 1e-3);
        for (found, expected) in found.as_slice().iter().zip(teacher.as_slice()) {
            assert!((found - expected).abs() < 0.05, "{found} {expected}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let softened = row(&[0.5, 0.5]);
        let soft = SoftTargets { softened: &softened, classes: &[Some(1)], temperature: 3.0, alpha: 0.7 };
        let refused = |soft: SoftTargets<'_>| soft.loss(&row(&[0.5, 0.5])).unwrap_err().code();
        assert_eq!(refused(SoftTargets { classes: &[Some(2)], ..soft }), "am-label");
        assert_eq!(refused(SoftTargets { classes: &[], ..soft }), "am-target-length");
        assert_eq!(refused(SoftTargets { temperature: 0.0, ..soft }), "am-part");
        assert_eq!(refused(SoftTargets { alpha: 1.5, ..soft }), "am-part");
        assert_eq!(refused(SoftTargets { softened: &row(&[f64::NAN, 0.5]), ..soft }), "am-target-not-finite");
        assert_eq!(refused(SoftTargets { softened: &row(&[0.5, 0.25, 0.25]), ..soft }), "am-part-length");
        let mut model = NeuralSequential::random(1, &[(2, Activation::Sigmoid)], 0).unwrap();
        let options = NeuralOptions::new(NeuralLoss::CrossEntropy);
        let error = model.fit(&row(&[1.0]), NeuralTargets::Distilled(soft), &options).unwrap_err();
        assert_eq!(error.code(), "am-part");
    }
}
