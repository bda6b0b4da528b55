//! Pipelines of random steps.

use apr_models::{
    Accepts, CentroidDistances, ClassHead, ClusterRule, Covariance, DecisionFunction, DecisionRule,
    GaussianLogDensity, Head, Input, KernelStep, Labels, LinearStep, Link, OutlierHead, OutputShape,
    Pipeline, ProbabilityRule, Reals, RowNorm, ScaleAdd, ShiftDivide, Step, StepActivation, StepKernel,
    Table, TermFrequency, TfIdfWeights, ValueKind,
};

use super::Dice;

impl Dice {
    fn reals(&mut self, len: usize) -> Reals {
        if self.coin() { self.numbers(len).into() } else { self.wide(len).into() }
    }

    fn class_names(&mut self, len: usize) -> Labels {
        match self.size(0, if len == 2 { 3 } else { 2 }) {
            0 => Labels::Integers((0..len as i64).map(|place| 3 * place - 4).collect()),
            1 => Labels::Texts((0..len).map(|place| format!("ä{place:03}")).collect()),
            2 => Labels::Numbers((0..len).map(|place| place as f64 - 0.5).collect()),
            _ => Labels::Booleans(vec![false, true]),
        }
    }

    fn linear_step(&mut self, width: usize, n_outputs: usize) -> Step {
        let (weights, bias) = (self.reals(width * n_outputs), self.reals(n_outputs));
        Step::Linear(LinearStep::new(n_outputs, weights, bias).unwrap())
    }

    /// A step that any others may follow, and the width after it.
    fn early_step(&mut self, width: usize) -> (Step, usize) {
        let n_outputs = self.size(1, 5);
        match self.size(0, 5) {
            5 => {
                let frequency = if self.coin() { TermFrequency::Logarithm } else { TermFrequency::Count };
                let norm = [RowNorm::None, RowNorm::L1, RowNorm::L2][self.size(0, 2)];
                let idf = self.coin().then(|| self.reals(width));
                (Step::TfIdfWeights(TfIdfWeights::new(frequency, norm, idf).unwrap()), width)
            }
            0 => {
                let shift = self.coin().then(|| self.reals(width));
                let divisor = self.coin().then(|| self.positive(width).into());
                (Step::ShiftDivide(ShiftDivide::new(shift, divisor).unwrap()), width)
            }
            1 => {
                let (scale, add) = (self.reals(width), self.reals(width));
                let clip = self.coin().then_some((-1.0, 2.5));
                (Step::ScaleAdd(ScaleAdd::new(scale, add, clip).unwrap()), width)
            }
            2 => {
                let all = [StepActivation::Relu, StepActivation::Tanh, StepActivation::Logistic];
                (Step::Activation(all[self.size(0, 2)]), width)
            }
            3 => (
                Step::CentroidDistances(
                    CentroidDistances::new(n_outputs, self.reals(n_outputs * width)).unwrap(),
                ),
                n_outputs,
            ),
            _ => (self.linear_step(width, n_outputs), n_outputs),
        }
    }

    fn normals_step(&mut self, width: usize, k: usize) -> Step {
        let (mut peak, means) = (self.wide(k), self.reals(k * width));
        if self.coin() {
            peak[0] = f64::NEG_INFINITY;
        }
        let spread = match self.size(0, 2) {
            0 => Covariance::Variances(self.positive(k * width).into()),
            1 => Covariance::PrecisionFactors(self.reals(width * width)),
            _ => Covariance::PrecisionFactors(self.reals(k * width * width)),
        };
        Step::GaussianLogDensity(GaussianLogDensity::new(peak.into(), means, spread).unwrap())
    }

    fn kernel_step(&mut self, width: usize, k: usize) -> Step {
        let gamma = self.positive(1)[0];
        let kernel = match self.size(0, 2) {
            0 => StepKernel::Rbf { gamma },
            1 => StepKernel::Polynomial { gamma, coef0: 0.5, degree: self.size(0, 4) as u32 },
            _ => StepKernel::Sigmoid { gamma, coef0: -0.5 },
        };
        let n_support: Vec<usize> = (0..k).map(|_| self.size(1, 2)).collect();
        let n_vectors: usize = n_support.iter().sum();
        let vectors = if self.coin() {
            Table::dense(n_vectors, self.reals(n_vectors * width)).unwrap()
        } else {
            let columns = (0..n_vectors).map(|_| self.size(0, width - 1) as u32).collect();
            Table::sparse(width, (0..=n_vectors).collect(), columns, self.reals(n_vectors)).unwrap()
        };
        let (dual, intercepts) = (self.reals((k - 1) * n_vectors), self.reals(k * (k - 1) / 2));
        Step::Kernel(KernelStep::new(kernel, n_support, vectors, dual, intercepts).unwrap())
    }

    pub(super) fn pipeline(&mut self, n_features: usize, head: usize) -> Pipeline {
        let mut width = n_features;
        let mut steps = Vec::new();
        for _ in 0..self.size(0, 2) {
            let (step, behind) = self.early_step(width);
            width = behind;
            steps.push(step);
        }
        let k = self.size(2, 4);
        let pairs = k * (k - 1) / 2;
        let (step, head) = match head {
            0 => {
                let shape = if self.coin() { OutputShape::Vector } else { OutputShape::Matrix };
                let n_outputs = if shape == OutputShape::Vector { 1 } else { self.size(1, 4) };
                let kind = if self.coin() { ValueKind::Predictions } else { ValueKind::Transformed };
                let link = if self.coin() { Link::Exp } else { Link::None };
                (self.linear_step(width, n_outputs), Head::Values { kind, link, shape })
            }
            1 => {
                let rule = if self.coin() { DecisionRule::Positive } else { DecisionRule::NonNegative };
                let probabilities = if self.coin() {
                    ProbabilityRule::Logistic { factor: 2.0 }
                } else {
                    ProbabilityRule::None
                };
                let decision_function =
                    if self.coin() { DecisionFunction::Scores } else { DecisionFunction::None };
                let head = ClassHead { labels: self.class_names(2), rule, probabilities, decision_function };
                (self.linear_step(width, 1), Head::Classes(head))
            }
            2 => {
                let probabilities = [
                    ProbabilityRule::None,
                    ProbabilityRule::Scores,
                    ProbabilityRule::Softmax,
                    ProbabilityRule::Normalized,
                ][self.size(0, 3)];
                let labels = self.class_names(k);
                let head = ClassHead {
                    labels,
                    rule: DecisionRule::ArgMax,
                    probabilities,
                    decision_function: DecisionFunction::Scores,
                };
                (self.normals_step(width, k), Head::Classes(head))
            }
            3 => {
                let rule =
                    if self.coin() { DecisionRule::OneVsOne } else { DecisionRule::OneVsOneConfidence };
                let decision_function =
                    [DecisionFunction::None, DecisionFunction::OneVsOne, DecisionFunction::OneVsRest]
                        [self.size(0, 2)];
                let head = ClassHead {
                    labels: self.class_names(k),
                    rule,
                    probabilities: ProbabilityRule::None,
                    decision_function,
                };
                let step =
                    if self.coin() { self.kernel_step(width, k) } else { self.linear_step(width, pairs) };
                (step, Head::Classes(head))
            }
            4 if self.coin() => (self.normals_step(width, k), Head::Clusters(ClusterRule::ArgMax)),
            4 => {
                let centres = CentroidDistances::new(k, self.reals(k * width)).unwrap();
                (Step::CentroidDistances(centres), Head::Clusters(ClusterRule::ArgMin))
            }
            _ => {
                let divisor = if self.coin() { 0.0 } else { 12.5 };
                let head = OutlierHead { divisor, cut: 3.25, offset: -0.5 };
                (self.linear_step(width, 1), Head::Outliers(head))
            }
        };
        steps.push(step);
        let accepts = [Accepts::Finite, Accepts::Missing, Accepts::Anything][self.size(0, 2)];
        Pipeline::from_parts(Input::Numbers { n_features, accepts }, steps, head).unwrap()
    }
}
