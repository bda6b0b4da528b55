//! Sound payloads of pipelines, every step and head among them, and what becomes of them when they are changed.

use std::sync::LazyLock;

use apr_container::{PayloadLayout, encode_payload_to_vec};
use apr_models::*;

use crate::choices::Choices;

/// A payload that was sound before a few decisions changed it.
#[must_use]
pub fn changed(choices: &mut Choices<'_>) -> Vec<u8> {
    static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(seeds);
    let mut payload = SEEDS[choices.below(SEEDS.len())].clone();
    for _ in 0..choices.below(4) {
        let at = (choices.below(256) << 8 | choices.below(256)) % payload.len().max(1);
        match choices.below(5) {
            0 => payload.truncate(at),
            1 => drop(payload.splice(at..at, [choices.byte(); 4])),
            2 => payload[at..]
                .iter_mut()
                .take(8)
                .zip(choices.integer().to_le_bytes())
                .for_each(|(a, b)| *a = b),
            _ => payload.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= choices.byte()),
        }
    }
    payload
}

/// Payloads with every step and every head.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let models = [scaled(), forest(), boosted(), tree_of_neighbours(), in_order(), words(), characters()];
    let payload = |model: &Result<Pipeline, Error>| {
        let model = model.as_ref().expect("the parts are sound");
        encode_payload_to_vec(model, PayloadLayout::default()).expect("any pipeline has a payload")
    };
    models.iter().map(payload).collect()
}

fn numbers(n_features: usize, accepts: Accepts, steps: Vec<Step>, head: Head) -> Result<Pipeline, Error> {
    Pipeline::from_parts(Input::Numbers { n_features, accepts }, steps, head)
}

fn classes(
    labels: Labels,
    rule: DecisionRule,
    probabilities: ProbabilityRule,
    decision_function: DecisionFunction,
) -> Head {
    Head::Classes(ClassHead { labels, rule, probabilities, decision_function })
}

/// All steps that work on each value, and a kernel.
fn scaled() -> Result<Pipeline, Error> {
    let ones = || Reals::from(vec![1.0_f64, 0.1]);
    let vectors = Table::sparse(2, vec![0, 1, 2], vec![1, 0], vec![1.0_f64, 0.5].into())?;
    let kernel = StepKernel::Polynomial { gamma: 0.5, coef0: 1.0, degree: 2 };
    let dual = vec![1.0_f64, -1.0].into();
    let variances = Covariance::Variances(vec![1.0_f64].into());
    numbers(
        2,
        Accepts::Missing,
        vec![
            Step::ShiftDivide(ShiftDivide::new(Some(ones()), Some(ones()))?),
            Step::ScaleAdd(ScaleAdd::new(ones(), ones(), Some((-1.0, 1.0)))?),
            Step::Linear(LinearStep::new(2, vec![0.1_f64, 0.2, 0.3, 0.4].into(), ones())?),
            Step::Activation(StepActivation::Tanh),
            Step::CentroidDistances(CentroidDistances::new(2, vec![0.0_f64, 1.0, 1.0, 0.0].into())?),
            Step::Kernel(KernelStep::new(kernel, vec![1, 1], vectors, dual, vec![0.5_f64].into())?),
            Step::GaussianLogDensity(GaussianLogDensity::new(
                vec![-1.0_f64].into(),
                vec![0.5_f64].into(),
                variances,
            )?),
        ],
        classes(
            Labels::Booleans(vec![false, true]),
            DecisionRule::OneVsOne,
            ProbabilityRule::None,
            DecisionFunction::OneVsOne,
        ),
    )
}

fn trees() -> TreesParts<'static> {
    TreesParts {
        n_outputs: 2,
        outputs: TreeOutputs::All,
        start: &[0.0, 0.0],
        divisor: 2.0,
        leaf_rows: &[1.0, 0.0, 0.25, 0.75, 0.0, 1.0],
        tree_nodes: &[5, 1],
        features: &[0, u32::MAX, 1 | 1 << 31, u32::MAX, u32::MAX, u32::MAX],
        thresholds: TreeThresholds::Single(&[0.5, -2.0]),
        leaves: &[0, 1, 2, 1],
    }
}

fn forest() -> Result<Pipeline, Error> {
    let labels = Labels::Texts(vec!["no".into(), "yes".into()]);
    let head = classes(labels, DecisionRule::ArgMax, ProbabilityRule::Scores, DecisionFunction::None);
    numbers(2, Accepts::Missing, vec![Step::Trees(TreesStep::new(&trees())?)], head)
}

fn boosted() -> Result<Pipeline, Error> {
    let parts = TreesParts {
        n_outputs: 1,
        outputs: TreeOutputs::InTurn,
        start: &[0.5],
        thresholds: TreeThresholds::Double(&[0.1, f64::NEG_INFINITY]),
        ..trees()
    };
    let head = Head::Outliers(OutlierHead { divisor: 3.0, cut: 2.0, offset: -0.5 });
    numbers(
        2,
        Accepts::Anything,
        vec![Step::Trees(TreesStep::new(&TreesParts { leaves: &[0, 1, 2, 3], ..parts })?)],
        head,
    )
}

fn neighbours(
    metric: NeighbourMetric,
    search: NeighbourSearch,
    answer: NeighbourOutput,
) -> Result<Step, Error> {
    let samples = Table::dense(3, vec![0.0_f64, 1.0, 1.0, 0.0, 0.6, 0.8].into())?;
    let weights = KnnWeights::Distance;
    Ok(Step::Neighbours(NeighboursStep::new(NeighboursParts {
        k: 2,
        metric,
        weights,
        samples,
        search,
        answer,
    })?))
}

fn tree_of_neighbours() -> Result<Pipeline, Error> {
    let search = NeighbourSearch::KdTree { leaf_size: 1, order: vec![0, 2, 1] };
    let answer = NeighbourOutput::Classes { n_classes: 2, class_of: vec![0, 1, 1] };
    let step = neighbours(NeighbourMetric::Minkowski(3.0), search, answer)?;
    let head = classes(
        Labels::Integers(vec![-1, 7]),
        DecisionRule::ArgMax,
        ProbabilityRule::Normalized,
        DecisionFunction::None,
    );
    numbers(2, Accepts::Finite, vec![step], head)
}

fn in_order() -> Result<Pipeline, Error> {
    let answer =
        NeighbourOutput::Values { n_outputs: 2, targets: vec![1.0_f64, 2.0, 3.0, 4.0, 5.0, 6.0].into() };
    let step = neighbours(NeighbourMetric::Cosine, NeighbourSearch::InOrder, answer)?;
    numbers(2, Accepts::Finite, vec![step], Head::Clusters(ClusterRule::ArgMax))
}

fn text(terms: TextTerms, n: [usize; 2], columns: Option<Vec<u32>>) -> Result<Input, Error> {
    let pairs = [('\u{e9}', "e"), ('\u{fb01}', "fi")];
    let parts = TextParts {
        case: LetterCase::Lower,
        accents: Some(AccentFold::new(pairs, HangulRule::Letters, OtherCharacters::Stay)?),
        terms,
        ngram_min: n[0],
        ngram_max: n[1],
        stop_words: Vocabulary::default(),
        vocabulary: Vocabulary::from_texts(["be", "to", "to be"])?,
        columns,
        counts: TermCount::Every,
    };
    Ok(Input::Texts(Box::new(TextInput::new(parts)?)))
}

fn words() -> Result<Pipeline, Error> {
    let class = CharacterClass::from_bounds(vec![0x61, 0x7B])?;
    let terms = TextTerms::Words { edges: Some(class.clone()), class, least: 1 };
    let idf = Some(vec![1.0_f64, 1.5, 0.1].into());
    let steps = vec![
        Step::TfIdfWeights(TfIdfWeights::new(TermFrequency::Logarithm, RowNorm::L2, idf)?),
        Step::Linear(LinearStep::new(1, vec![1.0_f64, 2.0, 3.0].into(), vec![0.5_f64].into())?),
    ];
    let head = classes(
        Labels::Numbers(vec![0.5, 1.5]),
        DecisionRule::NonNegative,
        ProbabilityRule::Logistic { factor: 1.0 },
        DecisionFunction::Scores,
    );
    Pipeline::from_parts(text(terms, [1, 2], Some(vec![2, 0, 1]))?, steps, head)
}

fn characters() -> Result<Pipeline, Error> {
    let head = Head::Values { kind: ValueKind::Transformed, link: Link::None, shape: OutputShape::Matrix };
    Pipeline::from_parts(text(TextTerms::CharactersInWords, [2, 5], None)?, vec![], head)
}

#[cfg(test)]
mod tests {
    use apr_container::{ModelType, decode_payload_from_slice};

    use super::*;

    #[test]
    fn seeds_are_sound_and_changes_are_not_always() {
        let read = |payload: &[u8]| {
            decode_payload_from_slice::<Pipeline>(payload, PayloadLayout::default(), ModelType::Custom)
                .is_ok()
        };
        assert!(seeds().iter().all(|payload| read(payload)));
        let n_read = (0..=255_u8)
            .flat_map(|first| (0..=255_u8).map(move |second| [first, 1, second, first, 4, 1]))
            .filter(|decisions| read(&changed(&mut Choices::new(decisions))))
            .count();
        assert!((1000..60_000).contains(&n_read), "{n_read}");
    }
}
