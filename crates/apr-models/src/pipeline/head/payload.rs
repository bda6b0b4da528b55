//! Heads in payloads (`docs/payloads.md`, section 21).

use apr_container::{PayloadReader, PayloadWriter};

use super::{
    ClassHead, ClusterRule, DecisionFunction, DecisionRule, Head, Link, OutlierHead, OutputShape,
    ProbabilityRule, ValueKind,
};
use crate::pipeline::labels::Labels;

impl Head {
    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        match self {
            Self::Values { kind, link, shape } => {
                out.variant(0)?;
                out.variant(u32::from(*kind == ValueKind::Transformed))?;
                out.variant(u32::from(*link == Link::Exp))?;
                out.bool(*shape == OutputShape::Vector)
            }
            Self::Classes(head) => {
                out.variant(1)?;
                head.encode(out)
            }
            Self::Clusters(rule) => {
                out.variant(2)?;
                out.variant(u32::from(*rule == ClusterRule::ArgMax))
            }
            Self::Outliers(head) => {
                out.variant(3)?;
                [head.divisor, head.cut, head.offset].into_iter().try_for_each(|value| out.f64(value))
            }
        }
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        Ok(match input.variant(4)? {
            0 => Self::Values {
                kind: [ValueKind::Predictions, ValueKind::Transformed][usize::from(input.variant(2)? == 1)],
                link: if input.variant(2)? == 1 { Link::Exp } else { Link::None },
                shape: if input.bool()? { OutputShape::Vector } else { OutputShape::Matrix },
            },
            1 => Self::Classes(ClassHead::decode(input)?),
            2 if input.variant(2)? == 0 => Self::Clusters(ClusterRule::ArgMin),
            2 => Self::Clusters(ClusterRule::ArgMax),
            _ => {
                Self::Outliers(OutlierHead { divisor: input.f64()?, cut: input.f64()?, offset: input.f64()? })
            }
        })
    }
}

impl ClassHead {
    const RULES: [DecisionRule; 5] = [
        DecisionRule::Positive,
        DecisionRule::NonNegative,
        DecisionRule::ArgMax,
        DecisionRule::OneVsOne,
        DecisionRule::OneVsOneConfidence,
    ];
    const DECISION_FUNCTIONS: [DecisionFunction; 4] = [
        DecisionFunction::None,
        DecisionFunction::Scores,
        DecisionFunction::OneVsOne,
        DecisionFunction::OneVsRest,
    ];

    fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.labels.encode(out)?;
        out.variant(self.rule as u32)?;
        match self.probabilities {
            ProbabilityRule::None => out.variant(0)?,
            ProbabilityRule::Scores => out.variant(1)?,
            ProbabilityRule::Logistic { factor } => {
                out.variant(2)?;
                out.f64(factor)?;
            }
            ProbabilityRule::Softmax => out.variant(3)?,
            ProbabilityRule::Normalized => out.variant(4)?,
        }
        out.variant(self.decision_function as u32)
    }

    fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let labels = Labels::decode(input)?;
        let rule = input.variant(Self::RULES.len() as u32)?;
        let probabilities = match input.variant(5)? {
            0 => ProbabilityRule::None,
            1 => ProbabilityRule::Scores,
            2 => ProbabilityRule::Logistic { factor: input.f64()? },
            3 => ProbabilityRule::Softmax,
            _ => ProbabilityRule::Normalized,
        };
        let decision_function = input.variant(Self::DECISION_FUNCTIONS.len() as u32)?;
        Ok(Self {
            labels,
            rule: Self::RULES[rule as usize],
            probabilities,
            decision_function: Self::DECISION_FUNCTIONS[decision_function as usize],
        })
    }
}
