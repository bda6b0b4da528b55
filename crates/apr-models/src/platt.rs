//! Probabilities from decisions.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::activations::sigmoid;
use crate::kernels::svm::{n_pairs, pair};

const DECISIONS: &str = "decisions";

/// Newton steps of a sigmoid.
const MAX_STEPS: usize = 100;

/// What a probability of a pair is at least: that of libsvm.
const LEAST_OF_PAIR: f64 = 1e-7;

/// How far probabilities of pairs may be from the ones that fit them best, as the gradient says; libsvm takes 0.005.
const COUPLED: f64 = 1e-9;

/// What the decisions of more than two classes compare. Of two classes there is one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionPairs {
    /// Each class with all others: a decision for each class.
    OneVsRest,
    /// Each class with each other one: (0, 1), (0, 2), ... (1, 2), ...
    OneVsOne,
}

/// Platt scaling: probabilities of the classes from the decisions of a classifier that has none, such as a support vector machine.
///
/// Each decision gets a sigmoid with the least log loss (Platt, *Probabilistic outputs for support vector machines*, 1999, with his
/// smoothed targets, by the Newton method of Lin, Lin and Weng, Machine Learning 68, 2007). With more than two classes, those of
/// one-vs-rest are divided by their sum, those of one-vs-one coupled (Wu, Lin and Weng, JMLR 5, 2004, as in libsvm).
///
/// ```
/// use apr_models::{DecisionPairs, PlattScaling};
///
/// let decisions = [-2.0, -1.0, 0.5, -0.5, 1.0, 2.0];
/// let scaling = PlattScaling::fit(&decisions, &[0, 0, 0, 1, 1, 1], 2, DecisionPairs::OneVsRest)?;
/// let mut out = [0.0; 4];
/// scaling.probabilities_into(&[-2.0, 2.0], &mut out)?;
/// assert!(out[1] < 0.3 && out[3] > 0.7 && (out[0] + out[1] - 1.0).abs() < 1e-12);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PlattScaling {
    n_classes: usize,
    pairs: DecisionPairs,
    sigmoids: Vec<Sigmoid>,
}

/// `1 / (1 + exp(-(slope * decision + constant)))`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sigmoid {
    slope: f64,
    constant: f64,
}

impl PlattScaling {
    /// Fits sigmoids to decisions (`[n_samples, n_decisions]`) of samples whose classes are known (`[n_samples]`, counted from 0).
    ///
    /// Samples that the classifier was trained on make it too sure of itself: others are better.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] for fewer than two classes, [`ErrorKind::PartLength`] if the decisions are not as many as the
    /// classes call for, [`ErrorKind::PartNotFinite`], [`ErrorKind::Label`] for a class that is not less than `n_classes`.
    pub fn fit(
        decisions: &[f64],
        classes: &[usize],
        n_classes: usize,
        pairs: DecisionPairs,
    ) -> Result<Self, Error> {
        checks::expect("classes", n_classes >= 2, "at least two are needed")?;
        let width = n_decisions(n_classes, pairs);
        checks::expect_len(DECISIONS, classes.len().saturating_mul(width), decisions.len())?;
        checks::expect_finite(DECISIONS, decisions)?;
        if let Some(row) = classes.iter().position(|&class| class >= n_classes) {
            return Err(ErrorKind::Label { row, problem: "must be below the number of classes" }.into());
        }
        // The class whose probability a decision gives, and the only other one that it tells it from.
        let sides: Vec<(usize, Option<usize>)> = match (n_classes, pairs) {
            (2, _) => vec![(1, None)],
            (_, DecisionPairs::OneVsRest) => (0..n_classes).map(|class| (class, None)).collect(),
            (_, DecisionPairs::OneVsOne) => {
                let others = |first: usize| (first + 1..n_classes).map(move |second| (first, Some(second)));
                (0..n_classes).flat_map(others).collect()
            }
        };
        let sigmoids = sides.iter().enumerate().map(|(column, &(first, second))| {
            let of_column = decisions.iter().skip(column).step_by(width).zip(classes);
            let samples = of_column
                .filter(|&(_, &class)| class == first || second.is_none_or(|second| class == second))
                .map(|(&decision, &class)| (decision, class == first));
            Sigmoid::fit(&samples.collect::<Vec<_>>())
        });
        Ok(Self { n_classes, pairs, sigmoids: sigmoids.collect() })
    }

    /// The probabilities of the classes, `out` (`[n_samples, n_classes]`), from decisions (`[n_samples, n_decisions]`).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`] if the lengths do not fit.
    pub fn probabilities_into(&self, decisions: &[f64], out: &mut [f64]) -> Result<(), Error> {
        let (k, width) = (self.n_classes, self.sigmoids.len());
        let n_samples = decisions.len() / width;
        checks::expect_len(DECISIONS, n_samples * width, decisions.len())?;
        checks::expect_len("probabilities", n_samples * k, out.len())?;
        let mut each = vec![0.0; width];
        for (decisions, out) in decisions.chunks_exact(width).zip(out.chunks_exact_mut(k)) {
            for ((place, &decision), sigmoid) in each.iter_mut().zip(decisions).zip(&self.sigmoids) {
                *place = sigmoid.at(decision);
            }
            match (self.pairs, out) {
                (_, [first, second]) => (*first, *second) = (1.0 - each[0], each[0]),
                (DecisionPairs::OneVsRest, out) => {
                    let sum: f64 = each.iter().sum();
                    let even = 1.0 / k as f64;
                    let share = |value: f64| if sum > 0.0 { value / sum } else { even };
                    out.iter_mut().zip(&each).for_each(|(place, &value)| *place = share(value));
                }
                (DecisionPairs::OneVsOne, out) => couple(&each, out),
            }
        }
        Ok(())
    }
}

fn n_decisions(n_classes: usize, pairs: DecisionPairs) -> usize {
    match (n_classes, pairs) {
        (2, _) => 1,
        (_, DecisionPairs::OneVsRest) => n_classes,
        (_, DecisionPairs::OneVsOne) => n_pairs(n_classes),
    }
}

impl Sigmoid {
    fn at(self, decision: f64) -> f64 {
        sigmoid(self.slope * decision + self.constant)
    }

    /// Of decisions and whether the probability is that of 1.
    fn fit(samples: &[(f64, bool)]) -> Self {
        let n_positive = samples.iter().filter(|(_, positive)| *positive).count() as f64;
        let n_negative = samples.len() as f64 - n_positive;
        let (high, low) = ((n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0));
        let target = |positive: bool| if positive { high } else { low };
        let loss = |found: Self| -> f64 {
            let terms = samples.iter().map(|&(decision, positive)| {
                let score = found.slope * decision + found.constant;
                // -t ln(p) - (1 - t) ln(1 - p), without a difference of large numbers.
                let smooth = libm::log1p(libm::exp(-score.abs()));
                smooth + score.max(0.0) - target(positive) * score
            });
            terms.sum()
        };
        let mut found = Self { slope: 0.0, constant: libm::log((n_positive + 1.0) / (n_negative + 1.0)) };
        let mut least = loss(found);
        for _ in 0..MAX_STEPS {
            let [mut slope, mut constant] = [0.0; 2];
            // The ridge of Lin, Lin and Weng: decisions that are all equal have no curvature.
            let [mut by_slope, mut mixed, mut by_constant] = [1e-12, 0.0, 1e-12];
            for &(decision, positive) in samples {
                let probability = found.at(decision);
                let apart = probability - target(positive);
                let curvature = probability * (1.0 - probability);
                slope += decision * apart;
                constant += apart;
                by_slope += decision * decision * curvature;
                mixed += decision * curvature;
                by_constant += curvature;
            }
            if slope.abs() < 1e-5 && constant.abs() < 1e-5 {
                break;
            }
            let determinant = by_slope * by_constant - mixed * mixed;
            let along_slope = (mixed * constant - by_constant * slope) / determinant;
            let along_constant = (mixed * slope - by_slope * constant) / determinant;
            let descent = slope * along_slope + constant * along_constant;
            let mut step = 1.0;
            let better = loop {
                let next = Self {
                    slope: found.slope + step * along_slope,
                    constant: found.constant + step * along_constant,
                };
                let next_loss = loss(next);
                if next_loss < least + 1e-4 * step * descent {
                    break Some((next, next_loss));
                }
                step /= 2.0;
                if step < 1e-10 {
                    break None;
                }
            };
            let Some(better) = better else { break };
            (found, least) = better;
        }
        found
    }
}

/// The probabilities that those of all pairs speak for most: the least sum of `(r[j, i] p[i] - r[i, j] p[j])^2`.
fn couple(pairs: &[f64], out: &mut [f64]) {
    let k = out.len();
    let of = |first: usize, second: usize| {
        let clip = |value: f64| value.clamp(LEAST_OF_PAIR, 1.0 - LEAST_OF_PAIR);
        let at = |first, second| pairs.get(pair(first, second, k)).copied().unwrap_or(0.5);
        if first < second { clip(at(first, second)) } else { 1.0 - clip(at(second, first)) }
    };
    let mut table = vec![0.0; k * k];
    for first in 0..k {
        for second in (0..k).filter(|&second| second != first) {
            table[first * k + first] += of(second, first) * of(second, first);
            table[first * k + second] = -of(second, first) * of(first, second);
        }
    }
    out.fill(1.0 / k as f64);
    let mut products = vec![0.0; k];
    for _ in 0..k.max(100) {
        let mut total = 0.0;
        for ((place, row), value) in products.iter_mut().zip(table.chunks_exact(k)).zip(&*out) {
            *place = row.iter().zip(&*out).map(|(entry, other)| entry * other).sum();
            total += value * *place;
        }
        if products.iter().all(|product| (product - total).abs() < COUPLED / k as f64) {
            break;
        }
        for class in 0..k {
            let diagonal = table[class * k + class];
            let step = (total - products[class]) / diagonal;
            out[class] += step;
            total =
                (total + step * (step * diagonal + 2.0 * products[class])) / ((1.0 + step) * (1.0 + step));
            let row = &table[class * k..(class + 1) * k];
            for ((product, entry), value) in products.iter_mut().zip(row).zip(out.iter_mut()) {
                *product = (*product + step * entry) / (1.0 + step);
                *value /= 1.0 + step;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigmoids_are_those_of_scikit_learn() {
        // -a and -b of sklearn.calibration._sigmoid_calibration(decisions, y) of scikit-learn 1.9.1.
        let decisions = [-3.0, -1.5, -0.25, 0.5, 0.75, 1.0, 2.0, 4.0];
        for (positive, slope, constant) in [
            ([false, false, true, false, true, true, true, true], 0.577_454, 0.316_554),
            ([true, true, true, true, false, true, false, false], -0.604_607, 0.843_719),
        ] {
            let samples: Vec<(f64, bool)> = decisions.into_iter().zip(positive).collect();
            let found = Sigmoid::fit(&samples);
            assert!(
                (found.slope - slope).abs() < 1e-4 && (found.constant - constant).abs() < 1e-4,
                "{found:?}"
            );
        }
    }

    #[test]
    fn decisions_without_a_sample_or_a_difference_have_a_sigmoid() {
        assert_eq!(Sigmoid::fit(&[]).at(3.0), 0.5);
        let found = Sigmoid::fit(&[(2.0, true), (2.0, true), (2.0, false)]);
        assert!((found.at(2.0) - 7.0 / 12.0).abs() < 0.1, "{found:?}");
        // Decisions as large as they get, and all on their side.
        let found = Sigmoid::fit(&[(-1e300, false), (1e300, true)]);
        assert!(found.slope.is_finite() && found.constant.is_finite());
    }

    #[test]
    fn pairs_that_agree_give_back_their_probabilities() {
        let expected = [0.1, 0.45, 0.05, 0.4];
        let mut pairs = Vec::new();
        for first in 0..4 {
            pairs.extend((first + 1..4).map(|second| expected[first] / (expected[first] + expected[second])));
        }
        let mut found = [0.0; 4];
        couple(&pairs, &mut found);
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        // Certain ones too.
        couple(&[1.0, 1.0, 1.0, 0.0, 0.0, 1.0], &mut found);
        assert!(found[0] > 0.99 && (found.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn probabilities_follow_the_decisions() {
        let classes = [0, 1, 2, 3, 0, 1, 2, 3];
        let one_vs_rest: Vec<f64> = classes
            .iter()
            .flat_map(|&class| (0..4).map(move |column| if column == class { 1.5 } else { -0.5 }))
            .collect();
        let one_vs_one: Vec<f64> = classes
            .iter()
            .flat_map(|&class| {
                let pairs = (0..4).flat_map(|first| (first + 1..4).map(move |second| (first, second)));
                pairs.map(move |(first, second)| match class {
                    _ if class == first => 1.0,
                    _ if class == second => -1.0,
                    _ => 0.25,
                })
            })
            .collect();
        for (decisions, pairs) in
            [(one_vs_rest, DecisionPairs::OneVsRest), (one_vs_one, DecisionPairs::OneVsOne)]
        {
            let scaling = PlattScaling::fit(&decisions, &classes, 4, pairs).unwrap();
            let mut out = [0.0; 32];
            scaling.probabilities_into(&decisions, &mut out).unwrap();
            for (row, &class) in out.chunks_exact(4).zip(&classes) {
                assert_eq!(crate::classes::largest(row.iter().copied()), class, "{pairs:?} {row:?}");
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let fit = |decisions: &[f64], classes: &[usize], n_classes| {
            PlattScaling::fit(decisions, classes, n_classes, DecisionPairs::OneVsRest).unwrap_err().code()
        };
        assert_eq!(fit(&[1.0], &[0], 1), "am-part");
        assert_eq!(fit(&[1.0], &[0, 1], 2), "am-part-length");
        assert_eq!(fit(&[1.0, f64::NAN], &[0, 1], 2), "am-part-not-finite");
        assert_eq!(fit(&[1.0, 2.0], &[0, 2], 2), "am-label");
        let scaling = PlattScaling::fit(&[1.0, -1.0], &[1, 0], 2, DecisionPairs::OneVsOne).unwrap();
        assert_eq!(scaling.probabilities_into(&[1.0], &mut [0.0; 3]).unwrap_err().code(), "am-part-length");
    }
}
