//! How the scores of the last step become outputs.

mod payload;

use crate::checks;
use crate::classes::largest;
use crate::error::{Error, ErrorKind};
use crate::kernels::activations::{sigmoid, softmax};
use crate::kernels::svm::{most_votes, n_pairs, pair};
use crate::pipeline::labels::{Label, Labels};

const PART: &str = "head";

/// How the scores of a sample become outputs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Head {
    /// The scores themselves.
    Values {
        /// The kind of values.
        kind: ValueKind,
        /// Function applied to each value.
        link: Link,
        /// How many a row has.
        shape: OutputShape,
    },
    /// One of several classes.
    Classes(ClassHead),
    /// A cluster, counted from 0.
    Clusters(ClusterRule),
    /// Whether a row is an outlier.
    Outliers(OutlierHead),
}

/// The kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Predictions, one for each target.
    Predictions,
    /// The samples, transformed.
    Transformed,
}

/// Function applied to each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nothing.
    None,
    /// The exponential function is applied.
    Exp,
}

/// Shape of values with one output: `[n_samples]` or `[n_samples, 1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputShape {
    /// A table.
    Matrix,
    /// `[n_samples]`.
    Vector,
}

/// How scores become a class, its probability and its decision function.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassHead {
    /// The labels of the classes, strictly increasing.
    pub labels: Labels,
    /// Which class it is.
    pub rule: DecisionRule,
    /// How probabilities are computed.
    pub probabilities: ProbabilityRule,
    /// How clear it is.
    pub decision_function: DecisionFunction,
}

/// How the class is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionRule {
    /// The second of two classes if the one score is above 0.
    Positive,
    /// The second of two classes if the one score is at least 0.
    NonNegative,
    /// The class of the largest score, the first one in a tie.
    ArgMax,
    /// The class with the most votes, the first one in a tie: a score for each pair of classes, (0, 1), (0, 2), ...
    /// (1, 2), ..., is a vote for the first of the pair if it is above 0, else for the second, as in libsvm.
    OneVsOne,
    /// As `OneVsOne`; with more than two classes the scores break ties, as in scikit-learn's `SVC(break_ties=True)`.
    OneVsOneConfidence,
}

/// How probabilities are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProbabilityRule {
    /// There are none.
    None,
    /// They are the scores.
    Scores,
    /// The logistic function of the one score times `factor` is the probabilities of the second class.
    Logistic {
        /// Above 0.
        factor: f64,
    },
    /// Softmax: the exponential of each score over the sum of all.
    Softmax,
    /// Each score over the sum of all.
    Normalized,
}

/// How the decision function is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionFunction {
    /// Nothing.
    None,
    /// The scores.
    Scores,
    /// The scores of the pairs; with two classes the negated score.
    OneVsOne,
    /// For each class its votes plus its normalized sum of scores, between -1/3 and 1/3; with two classes as
    /// `OneVsOne`. scikit-learn's `_ovr_decision_function`.
    OneVsRest,
}

/// How the cluster is chosen; the first one in a tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterRule {
    /// The smallest score: a distance.
    ArgMin,
    /// The largest score: a logarithm of a density.
    ArgMax,
}

/// How a sum of path lengths becomes a mark, as in scikit-learn's `IsolationForest`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutlierHead {
    /// Divisor of the sum, not negative; 0 makes every score -1/2.
    pub divisor: f64,
    /// Sums below it are outliers: all if it is infinite, none if it is negative infinity.
    pub cut: f64,
    /// Subtracted from scores for the decision function.
    pub offset: f64,
}

impl Head {
    /// Checks that it fits rows of `width` scores.
    pub(crate) fn check(&self, width: usize) -> Result<(), Error> {
        match self {
            Self::Values { shape: OutputShape::Vector, .. } => checks::expect_len("flat row", 1, width),
            Self::Values { .. } | Self::Clusters(_) => Ok(()),
            Self::Classes(head) => head.check(width),
            Self::Outliers(head) => {
                checks::expect_len("row of an outlier", 1, width)?;
                checks::expect_finite(PART, &[head.divisor, head.offset])?;
                checks::expect(PART, head.divisor >= 0.0, "the divisor must not be negative")?;
                checks::expect(PART, !head.cut.is_nan(), "the cut must be a number")
            }
        }
    }

    /// The label of the index that [`predict_index`](Self::predict_index) returns.
    pub(crate) fn label(&self, place: usize) -> Option<Label<'_>> {
        match self {
            Self::Values { .. } => None,
            Self::Classes(head) => head.labels.get(place),
            Self::Clusters(_) => i64::try_from(place).ok().map(Label::Integer),
            Self::Outliers(_) => [-1, 1].get(place).copied().map(Label::Integer),
        }
    }

    /// Index of the class or cluster of a row; 0 for an outlier, 1 for an inlier.
    pub(crate) fn predict_index(&self, scores: &[f64]) -> usize {
        let first = scores.first().copied().unwrap_or_default();
        match self {
            Self::Values { .. } => 0,
            Self::Classes(head) => match head.rule {
                DecisionRule::Positive => usize::from(first > 0.0),
                DecisionRule::NonNegative => usize::from(first >= 0.0),
                DecisionRule::ArgMax => largest(scores.iter().copied()),
                DecisionRule::OneVsOneConfidence if head.labels.len() > 2 => {
                    let k = head.labels.len();
                    largest((0..k).map(|class| votes_and_confidence(scores, class, k)))
                }
                DecisionRule::OneVsOne | DecisionRule::OneVsOneConfidence => {
                    most_votes(scores, head.labels.len())
                }
            },
            Self::Clusters(ClusterRule::ArgMin) => largest(scores.iter().map(|score| -score)),
            Self::Clusters(ClusterRule::ArgMax) => largest(scores.iter().copied()),
            Self::Outliers(head) => usize::from(first >= head.cut),
        }
    }

    /// Probabilities of a row of `width` scores.
    pub(crate) fn n_probabilities(&self, width: usize) -> Result<usize, Error> {
        match self {
            Self::Classes(ClassHead { probabilities: ProbabilityRule::Logistic { .. }, .. }) => Ok(2),
            Self::Classes(ClassHead { probabilities: ProbabilityRule::None, .. }) => Err(no("probabilities")),
            Self::Classes(_) | Self::Clusters(ClusterRule::ArgMax) => Ok(width),
            _ => Err(no("probabilities")),
        }
    }

    pub(crate) fn probabilities(&self, scores: &[f64], out: &mut [f64]) {
        let rule = match self {
            Self::Classes(head) => head.probabilities,
            _ => ProbabilityRule::Softmax,
        };
        let each = out.iter_mut().zip(scores);
        match rule {
            ProbabilityRule::None => {}
            ProbabilityRule::Scores => each.for_each(|(place, &score)| *place = score),
            ProbabilityRule::Softmax => {
                each.for_each(|(place, &score)| *place = score);
                softmax(out);
            }
            ProbabilityRule::Normalized => {
                let sum: f64 = scores.iter().sum();
                each.for_each(|(place, &score)| *place = score / sum);
            }
            ProbabilityRule::Logistic { factor } => {
                if let ([first, second], &[score]) = (out, scores) {
                    *second = sigmoid(factor * score);
                    *first = 1.0 - *second;
                }
            }
        }
    }

    /// Values of the decision function of a row of `width` scores.
    pub(crate) fn n_decisions(&self, width: usize) -> Result<usize, Error> {
        match self {
            Self::Classes(head) => match head.decision_function {
                DecisionFunction::None => Err(no("decision function")),
                DecisionFunction::Scores | DecisionFunction::OneVsOne => Ok(width),
                DecisionFunction::OneVsRest if width == 1 => Ok(1),
                DecisionFunction::OneVsRest => Ok(head.labels.len()),
            },
            Self::Outliers(_) => Ok(1),
            _ => Err(no("decision function")),
        }
    }

    pub(crate) fn decision_function(&self, scores: &[f64], out: &mut [f64]) {
        let head = match self {
            Self::Classes(head) => head,
            Self::Outliers(head) => {
                out.iter_mut().for_each(|place| *place = head.score(scores) - head.offset);
                return;
            }
            _ => return,
        };
        match (head.decision_function, scores) {
            (DecisionFunction::OneVsOne | DecisionFunction::OneVsRest, &[score]) => out.fill(-score),
            (DecisionFunction::OneVsRest, _) => {
                let k = head.labels.len();
                let classes = out.iter_mut().enumerate();
                classes.for_each(|(class, place)| *place = votes_and_confidence(scores, class, k));
            }
            _ => out.iter_mut().zip(scores).for_each(|(place, &score)| *place = score),
        }
    }

    /// Checks that it has scores of samples.
    pub(crate) fn expect_score_samples(&self) -> Result<(), Error> {
        match self {
            Self::Clusters(ClusterRule::ArgMax) | Self::Outliers(_) => Ok(()),
            _ => Err(no("scores of samples")),
        }
    }

    /// The natural logarithm of the density, or the opposite of the anomaly score.
    pub(crate) fn score_sample(&self, scores: &[f64]) -> f64 {
        match self {
            Self::Outliers(head) => head.score(scores),
            _ => log_sum_exp(scores),
        }
    }

    /// Checks that its output is rows of values.
    pub(crate) fn expect_values(&self) -> Result<(), Error> {
        match self {
            Self::Values { .. } | Self::Clusters(ClusterRule::ArgMin) => Ok(()),
            _ => Err(no("rows of values")),
        }
    }

    pub(crate) fn values(&self, scores: &[f64], out: &mut [f64]) {
        let is_exp = matches!(self, Self::Values { link: Link::Exp, .. });
        for (place, &score) in out.iter_mut().zip(scores) {
            *place = if is_exp { libm::exp(score) } else { score };
        }
    }

    pub(crate) fn expect_indices(&self) -> Result<(), Error> {
        match self {
            Self::Values { .. } => Err(no("class indices")),
            _ => Ok(()),
        }
    }
}

impl ClassHead {
    fn check(&self, width: usize) -> Result<(), Error> {
        let k = self.labels.len();
        let is_pairs = matches!(self.rule, DecisionRule::OneVsOne | DecisionRule::OneVsOneConfidence);
        match self.rule {
            DecisionRule::Positive | DecisionRule::NonNegative => {
                checks::expect_len("row of two classes", 1, width)?;
                self.labels.check(2)?;
            }
            DecisionRule::ArgMax => self.labels.check(width)?,
            DecisionRule::OneVsOne | DecisionRule::OneVsOneConfidence => {
                checks::expect("labels", k >= 2, "pairs need two classes")?;
                checks::expect_len("row of pairs", n_pairs(k), width)?;
                self.labels.check(k)?;
            }
        }
        let probabilities_fit = match self.probabilities {
            ProbabilityRule::None => true,
            ProbabilityRule::Scores | ProbabilityRule::Softmax | ProbabilityRule::Normalized => {
                self.rule == DecisionRule::ArgMax
            }
            ProbabilityRule::Logistic { factor } => {
                checks::expect(
                    PART,
                    factor.is_finite() && factor > 0.0,
                    "the factor must be finite and above 0",
                )?;
                matches!(self.rule, DecisionRule::Positive | DecisionRule::NonNegative)
            }
        };
        checks::expect(PART, probabilities_fit, "the probability rule does not fit the decision rule")?;
        let decision_function_fits = match self.decision_function {
            DecisionFunction::None => true,
            DecisionFunction::Scores => !is_pairs,
            DecisionFunction::OneVsOne | DecisionFunction::OneVsRest => is_pairs,
        };
        checks::expect(PART, decision_function_fits, "the decision function does not fit the decision rule")
    }
}

impl OutlierHead {
    fn score(&self, scores: &[f64]) -> f64 {
        let depth = scores.first().copied().unwrap_or_default();
        match self.divisor == 0.0 {
            true => -0.5,
            false => -libm::exp2(-(depth / self.divisor)),
        }
    }
}

fn no(output: &'static str) -> Error {
    ErrorKind::NoSuchOutput { output }.into()
}

fn log_sum_exp(scores: &[f64]) -> f64 {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match highest.is_infinite() {
        true => highest,
        false => highest + libm::log(scores.iter().map(|score| libm::exp(score - highest)).sum()),
    }
}

/// The votes of a class plus its confidence, between -1/3 and 1/3. Here a score of 0 is a vote for the first of its
/// pair, as in scikit-learn; libsvm's votes alone ([`most_votes`]) count it for the second.
fn votes_and_confidence(scores: &[f64], class: usize, k: usize) -> f64 {
    let (mut votes, mut confidence) = (0.0, 0.0);
    for other in (0..k).filter(|&other| other != class) {
        let score = |pair: usize| scores.get(pair).copied().unwrap_or_default();
        let won = match class < other {
            true => {
                let score = score(pair(class, other, k));
                confidence += score;
                score >= 0.0
            }
            false => {
                let score = score(pair(other, class, k));
                confidence -= score;
                score < 0.0
            }
        };
        votes += f64::from(u8::from(won));
    }
    votes + confidence / (3.0 * (confidence.abs() + 1.0))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn classes(
        k: i64,
        rule: DecisionRule,
        probabilities: ProbabilityRule,
        decision_function: DecisionFunction,
    ) -> Head {
        Head::Classes(ClassHead {
            labels: Labels::Integers((0..k).collect()),
            rule,
            probabilities,
            decision_function,
        })
    }

    fn shares<const N: usize>(head: &Head, scores: &[f64]) -> [f64; N] {
        assert_eq!(head.n_probabilities(scores.len()).unwrap(), N);
        let mut out = [f64::NAN; N];
        head.probabilities(scores, &mut out);
        out
    }

    fn decisions<const N: usize>(head: &Head, scores: &[f64]) -> [f64; N] {
        assert_eq!(head.n_decisions(scores.len()).unwrap(), N);
        let mut out = [f64::NAN; N];
        head.decision_function(scores, &mut out);
        out
    }

    #[test]
    fn two_classes_by_one_score() {
        let above = classes(
            2,
            DecisionRule::Positive,
            ProbabilityRule::Logistic { factor: 2.0 },
            DecisionFunction::Scores,
        );
        above.check(1).unwrap();
        assert_eq!([-1.0, 0.0, 1e-300].map(|score| above.predict_index(&[score])), [0, 0, 1]);
        assert_eq!(shares(&above, &[0.0]), [0.5, 0.5]);
        let second = 1.0 / (1.0 + libm::exp(-2.0));
        assert_eq!(shares(&above, &[1.0]), [1.0 - second, second]);
        assert_eq!(decisions(&above, &[-3.5]), [-3.5]);
        let at_least = classes(2, DecisionRule::NonNegative, ProbabilityRule::None, DecisionFunction::None);
        assert_eq!([-1e-300, 0.0].map(|score| at_least.predict_index(&[score])), [0, 1]);
        assert_eq!(at_least.n_probabilities(1).unwrap_err().code(), "am-no-such-output");
        assert_eq!(at_least.n_decisions(1).unwrap_err().code(), "am-no-such-output");
    }

    #[test]
    fn many_classes_by_the_largest_score() {
        let scores = [1.0, 3.0, 3.0];
        let head = |probabilities| classes(3, DecisionRule::ArgMax, probabilities, DecisionFunction::None);
        assert_eq!(head(ProbabilityRule::None).predict_index(&scores), 1);
        assert_eq!(shares(&head(ProbabilityRule::Scores), &scores), scores);
        assert_eq!(shares(&head(ProbabilityRule::Normalized), &scores), [1.0 / 7.0, 3.0 / 7.0, 3.0 / 7.0]);
        assert_eq!(
            shares(&head(ProbabilityRule::Softmax), &[-4000.0, f64::NEG_INFINITY, -4000.0]),
            [0.5, 0.0, 0.5]
        );
    }

    #[test]
    fn pairs_vote_and_may_tell_equal_votes_apart() {
        // Each class wins once; the second of them by most.
        let scores = [1.0, -2.0, 4.0];
        let votes = classes(3, DecisionRule::OneVsOne, ProbabilityRule::None, DecisionFunction::OneVsOne);
        let sure =
            classes(3, DecisionRule::OneVsOneConfidence, ProbabilityRule::None, DecisionFunction::OneVsRest);
        assert_eq!((votes.predict_index(&scores), sure.predict_index(&scores)), (0, 1));
        assert_eq!(decisions(&votes, &scores), scores);
        let third = |sum: f64| 1.0 + sum / (3.0 * (sum.abs() + 1.0));
        assert_eq!(decisions(&sure, &scores), [third(-1.0), third(3.0), third(-2.0)]);
        // A score of 0 is libsvm's vote for the second, and scikit-learn's for the first.
        assert_eq!((votes.predict_index(&[0.0; 3]), sure.predict_index(&[0.0; 3])), (2, 0));
        let two =
            classes(2, DecisionRule::OneVsOneConfidence, ProbabilityRule::None, DecisionFunction::OneVsRest);
        assert_eq!([-1.0, 0.0, 1.0].map(|score| two.predict_index(&[score])), [1, 1, 0]);
        assert_eq!(decisions(&two, &[2.0]), [-2.0]);
    }

    #[test]
    fn clusters_and_outliers() {
        assert_eq!(Head::Clusters(ClusterRule::ArgMin).predict_index(&[2.0, 1.0, 1.0]), 1);
        let mixture = Head::Clusters(ClusterRule::ArgMax);
        assert_eq!(mixture.predict_index(&[2.0, 1.0, 2.0]), 0);
        assert_eq!(mixture.score_sample(&[-5000.0, -5000.0]), -5000.0 + libm::log(2.0));
        assert_eq!(mixture.score_sample(&[f64::NEG_INFINITY]), f64::NEG_INFINITY);
        let head = Head::Outliers(OutlierHead { divisor: 2.0, cut: 3.0, offset: -0.5 });
        assert_eq!(
            [2.9, 3.0].map(|depth| head.label(head.predict_index(&[depth]))),
            [-1, 1].map(|mark| Some(Label::Integer(mark)))
        );
        assert_eq!((head.score_sample(&[2.0]), decisions(&head, &[4.0])), (-0.5, [0.25]));
        let head = Head::Outliers(OutlierHead { divisor: 0.0, cut: 3.0, offset: -0.5 });
        assert_eq!(head.score_sample(&[7.0]), -0.5);
    }

    #[test]
    fn heads_that_cannot_be_are_refused() {
        use DecisionRule::{ArgMax, OneVsOne, Positive};
        let flat =
            Head::Values { kind: ValueKind::Predictions, link: Link::None, shape: OutputShape::Vector };
        let outlier = |divisor, cut, offset| Head::Outliers(OutlierHead { divisor, cut, offset });
        for (head, width, code) in [
            (flat.clone(), 1, None),
            (flat, 2, Some("am-part-length")),
            (classes(2, Positive, ProbabilityRule::None, DecisionFunction::None), 2, Some("am-part-length")),
            (classes(3, Positive, ProbabilityRule::None, DecisionFunction::None), 1, Some("am-part-length")),
            (classes(3, ArgMax, ProbabilityRule::None, DecisionFunction::None), 2, Some("am-part-length")),
            (classes(3, OneVsOne, ProbabilityRule::None, DecisionFunction::None), 2, Some("am-part-length")),
            (classes(1, OneVsOne, ProbabilityRule::None, DecisionFunction::None), 0, Some("am-part")),
            (classes(2, Positive, ProbabilityRule::Softmax, DecisionFunction::None), 1, Some("am-part")),
            (
                classes(2, ArgMax, ProbabilityRule::Logistic { factor: 1.0 }, DecisionFunction::None),
                2,
                Some("am-part"),
            ),
            (
                classes(2, Positive, ProbabilityRule::Logistic { factor: 0.0 }, DecisionFunction::None),
                1,
                Some("am-part"),
            ),
            (
                classes(2, Positive, ProbabilityRule::Logistic { factor: f64::NAN }, DecisionFunction::None),
                1,
                Some("am-part"),
            ),
            (classes(2, OneVsOne, ProbabilityRule::None, DecisionFunction::Scores), 1, Some("am-part")),
            (classes(2, Positive, ProbabilityRule::None, DecisionFunction::OneVsOne), 1, Some("am-part")),
            (outlier(0.0, 1.0, 1.0), 1, None),
            (outlier(0.0, f64::INFINITY, 1.0), 1, None),
            (outlier(0.0, 1.0, 1.0), 2, Some("am-part-length")),
            (outlier(-1.0, 1.0, 1.0), 1, Some("am-part")),
            (outlier(1.0, f64::NAN, 1.0), 1, Some("am-part")),
            (outlier(1.0, 1.0, f64::INFINITY), 1, Some("am-part-not-finite")),
        ] {
            assert_eq!(head.check(width).map_err(|error| error.code()).err(), code, "{head:?} {width}");
        }
        let unsorted = ClassHead {
            labels: Labels::Integers(vec![2, 1]),
            rule: OneVsOne,
            probabilities: ProbabilityRule::None,
            decision_function: DecisionFunction::None,
        };
        assert_eq!(Head::Classes(unsorted).check(1).unwrap_err().code(), "am-part");
    }
}
