//! Pipelines: steps that transform samples into scores, and a head that turns scores into outputs.

#[cfg(test)]
mod alone;
mod characters;
mod columns;
mod fold;
mod head;
pub(crate) mod input;
mod kernel;
mod labels;
mod linear;
mod neighbours;
mod of_model;
mod gaussian;
mod payload;
mod predict;
pub(crate) mod reals;
pub(crate) mod rows;
mod simple;
mod step;
pub(crate) mod table;
mod text;
mod trees;
mod tf_idf_weights;

use alloc::vec::Vec;

pub use self::characters::CharacterClass;
pub use self::columns::{Column, Columns};
pub use self::fold::{AccentFold, HangulRule, OtherCharacters};
pub use self::gaussian::{Covariance, GaussianLogDensity};
pub use self::head::{
    ClassHead, ClusterRule, DecisionFunction, DecisionRule, Head, Link, OutlierHead, OutputShape,
    ProbabilityRule, ValueKind,
};
pub use self::input::{Accepts, Input};
pub use self::kernel::{KernelStep, StepKernel};
pub use self::labels::{Label, Labels};
pub use self::linear::LinearStep;
pub use self::neighbours::{
    NeighbourMetric, NeighbourOutput, NeighbourSearch, NeighboursParts, NeighboursStep,
};
pub use self::reals::Reals;
pub use self::rows::Samples;
use self::rows::{Block, n_rows_of};
pub use self::simple::{CentroidDistances, ScaleAdd, ShiftDivide, StepActivation};
pub use self::step::Step;
pub use self::table::Table;
pub use self::text::{TextInput, TextParts, TextTerms};
pub use self::tf_idf_weights::TfIdfWeights;
pub use self::trees::{TreeOutputs, TreeThresholds, TreesParts, TreesStep};

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::scratch::with_scratch;
use crate::sparse::SparseRows;

/// Most steps.
const MAX_STEPS: usize = 4096;

/// Rows that go through the steps together: enough that a step's parameters are read from the cache for most of
/// them, few enough that the rows stay there.
const ROWS_AT_ONCE: usize = 256;

/// As [`ROWS_AT_ONCE`] with trees: the nodes of a tree are read from memory once for all of these rows. With 256
/// rows a forest takes up to four times as long.
const ROWS_AT_ONCE_THROUGH_TREES: usize = 4096;

/// Values of a block of rows, unless a single row has more.
const VALUES_AT_ONCE: usize = 1 << 18;

/// Values that fit the stack: a row of up to 256, twice.
const VALUES_ON_STACK: usize = 512;

/// A model fitted by scikit-learn, or here after preprocessing, as a sequence of steps (scalers, projections, linear models, support vectors and
/// others) and a head that turns the scores of the last step into outputs.
///
/// Computed in `f64` with the formulas of scikit-learn 1.9.1. A single model is a pipeline of one step.
///
/// ```
/// use apr_models::{
///     Accepts, ClassHead, DecisionRule, DecisionFunction, Head, Input, Label, Labels, LinearStep, Pipeline, Samples, ProbabilityRule,
///     ShiftDivide, Step,
/// };
///
/// // A StandardScaler and a LogisticRegression of two features, for two classes.
/// let scaler = ShiftDivide::new(Some(vec![1.0, 2.0].into()), Some(vec![0.5, 4.0].into()))?;
/// let linear = LinearStep::new(1, vec![1.5, -0.5].into(), vec![0.25].into())?;
/// let head = ClassHead {
///     labels: Labels::Texts(vec!["no".into(), "yes".into()]),
///     rule: DecisionRule::Positive,
///     probabilities: ProbabilityRule::Logistic { factor: 1.0 },
///     decision_function: DecisionFunction::Scores,
/// };
/// let model = Pipeline::from_parts(
///     Input::Numbers { n_features: 2, accepts: Accepts::Finite },
///     vec![Step::ShiftDivide(scaler), Step::Linear(linear)],
///     Head::Classes(head),
/// )?;
///
/// let rows = Samples::F64(&[2.0, 2.0, 0.0, 6.0]);
/// let mut classes = [0; 2];
/// model.predict_indices_into(rows, &mut classes)?;
/// assert_eq!(classes.map(|class| model.label(class)), [Some(Label::Text("yes")), Some(Label::Text("no"))]);
/// let mut decisions = [0.0; 2];
/// model.decision_function_into(rows, &mut decisions)?;
/// assert_eq!(decisions, [3.25, -3.25]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    input: Input,
    steps: Vec<Step>,
    head: Head,
    n_outputs: usize,
    /// Values of a row where it is widest.
    widest: usize,
}

impl Pipeline {
    /// Makes a pipeline of steps that fit each other and the head.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`] and [`ErrorKind::EmptyMatrix`] if the number of values of a row does not fit a step
    /// or the head; [`ErrorKind::PartInvalid`] for an invalid input or head, and for no step or more than 4,096;
    /// [`ErrorKind::PartNotFinite`]; [`ErrorKind::MatrixTooLarge`] for rows beyond this machine.
    pub fn from_parts(input: Input, steps: Vec<Step>, head: Head) -> Result<Self, Error> {
        input.check()?;
        let least = usize::from(matches!(input, Input::Numbers { .. }));
        let possible = (least..=MAX_STEPS).contains(&steps.len());
        checks::expect("steps", possible, "must be at most 4096, and at least 1 if samples are numbers")?;
        let (mut width, mut widest) = (input.width(), input.width());
        for step in &steps {
            width = step.n_outputs(width)?;
            widest = widest.max(width);
        }
        head.check(width)?;
        // Rows before and after a step, in bytes.
        if widest.checked_mul(2 * size_of::<f64>()).is_none_or(|len| isize::try_from(len).is_err()) {
            return Err(ErrorKind::MatrixTooLarge { n_rows: 2, n_cols: widest }.into());
        }
        Ok(Self { input, steps, head, n_outputs: width, widest })
    }

    /// Its input.
    #[must_use]
    pub const fn input(&self) -> &Input {
        &self.input
    }

    /// The steps, in order.
    #[must_use]
    pub const fn steps(&self) -> &[Step] {
        self.steps.as_slice()
    }

    /// How the scores of the last step become outputs.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// Scores of a sample, `n_outputs`: values after the last step.
    #[must_use]
    pub const fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// Probabilities of a sample, one for each class or cluster; `None` if it has none.
    #[must_use]
    pub fn n_probabilities(&self) -> Option<usize> {
        self.head.n_probabilities(self.n_outputs).ok()
    }

    /// Values of the decision function of a sample; `None` if it has none.
    #[must_use]
    pub fn n_decisions(&self) -> Option<usize> {
        self.head.n_decisions(self.n_outputs).ok()
    }

    /// Classes, clusters or marks that [`predict_indices_into`](Self::predict_indices_into) tells apart; `None` if it predicts
    /// values.
    #[must_use]
    pub const fn n_classes(&self) -> Option<usize> {
        match &self.head {
            Head::Values { .. } => None,
            Head::Classes(head) => Some(head.labels.len()),
            Head::Clusters(_) => Some(self.n_outputs),
            Head::Outliers(_) => Some(2),
        }
    }

    /// Whether it has [`score_samples_into`](Self::score_samples_into).
    #[must_use]
    pub fn has_score_samples(&self) -> bool {
        self.head.expect_score_samples().is_ok()
    }

    /// Training samples in the model, those of neighbours; `None` if no step has any.
    #[must_use]
    pub fn stored_samples(&self) -> Option<usize> {
        self.steps.iter().find_map(|step| match step {
            Step::Neighbours(step) => Some(step.n_samples()),
            _ => None,
        })
    }

    /// The labels of the classes, if it is a classifier.
    #[must_use]
    pub const fn labels(&self) -> Option<&Labels> {
        match &self.head {
            Head::Classes(head) => Some(&head.labels),
            _ => None,
        }
    }

    /// The label of a class index: of a cluster its number, of the marks 0 and 1 the values -1 (outlier) and 1.
    #[must_use]
    pub fn label(&self, place: usize) -> Option<Label<'_>> {
        self.head.label(place)
    }

    /// The scores of the last step: `out` is `[n_samples, n_outputs]`, row-major, as are the rows of `rows`
    /// (`[n_samples, n_features]`).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InputLength`], [`ErrorKind::FeatureCount`] and [`ErrorKind::OutputLength`] if the lengths do not
    /// fit each other and the model, [`ErrorKind::FeatureNotFinite`] for values that the model does not accept,
    /// [`ErrorKind::PartInvalid`] for samples of another type. [`ErrorKind::BeyondSingle`] for values that are
    /// infinite as `f32` where trees compare those, unless the model accepts any value or detects outliers; `out` may
    /// hold some of the scores then.
    pub fn scores_into(&self, rows: Samples<'_>, out: &mut [f64]) -> Result<(), Error> {
        self.fill(rows, out, self.n_outputs, |scores, out| out.copy_from_slice(scores))
    }

    /// The class index of each sample (`[n_samples]`): of a class, of a cluster, or 0 for an outlier and 1 for an
    /// inlier; see [`label`](Self::label).
    ///
    /// # Errors
    ///
    /// As [`scores_into`](Self::scores_into), and [`ErrorKind::NoSuchOutput`].
    pub fn predict_indices_into(&self, rows: Samples<'_>, out: &mut [usize]) -> Result<(), Error> {
        self.head.expect_indices()?;
        self.fill(rows, out, 1, |scores, out| out.fill(self.head.predict_index(scores)))
    }

    /// The predictions or the transformed samples, of clusters by distance the distances: `[n_samples, n_outputs]`,
    /// row-major.
    ///
    /// # Errors
    ///
    /// As [`predict_indices_into`](Self::predict_indices_into).
    pub fn values_into(&self, rows: Samples<'_>, out: &mut [f64]) -> Result<(), Error> {
        self.head.expect_values()?;
        self.fill(rows, out, self.n_outputs, |scores, out| self.head.values(scores, out))
    }

    /// The transformed texts as sparse rows (`[n_samples, n_terms]`): the output of a vectorizer, with or without
    /// weights.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchOutput`] if the input is not text or a step makes rows dense.
    pub fn transform_texts(&self, texts: &[&str]) -> Result<SparseRows<f64>, Error> {
        let Input::Texts(input) = &self.input else { return Err(no_sparse_rows()) };
        if !self.gives_terms() {
            return Err(no_sparse_rows());
        }
        let mut rows = input.count(texts);
        let mut block = Block::sparse(&mut rows, &mut [], &mut []);
        self.run(&mut block, 0)?;
        Ok(rows)
    }

    /// The probability of each class or cluster: `[n_samples, n_probabilities]`, row-major.
    ///
    /// # Errors
    ///
    /// As [`predict_indices_into`](Self::predict_indices_into).
    pub fn predict_proba_into(&self, rows: Samples<'_>, out: &mut [f64]) -> Result<(), Error> {
        let n_probabilities = self.head.n_probabilities(self.n_outputs)?;
        self.fill(rows, out, n_probabilities, |scores, out| self.head.probabilities(scores, out))
    }

    /// scikit-learn's `decision_function`: `[n_samples, n_decisions]`, row-major.
    ///
    /// # Errors
    ///
    /// As [`predict_indices_into`](Self::predict_indices_into).
    pub fn decision_function_into(&self, rows: Samples<'_>, out: &mut [f64]) -> Result<(), Error> {
        let n_decisions = self.head.n_decisions(self.n_outputs)?;
        self.fill(rows, out, n_decisions, |scores, out| self.head.decision_function(scores, out))
    }

    /// scikit-learn's `score_samples` (`[n_samples]`): the natural logarithm of the density, or the opposite of the
    /// anomaly score.
    ///
    /// # Errors
    ///
    /// As [`predict_indices_into`](Self::predict_indices_into).
    pub fn score_samples_into(&self, rows: Samples<'_>, out: &mut [f64]) -> Result<(), Error> {
        self.head.expect_score_samples()?;
        self.fill(rows, out, 1, |scores, out| out.fill(self.head.score_sample(scores)))
    }

    /// Computes `n_places` values of `out` for each row from its scores.
    fn fill<T>(
        &self,
        rows: Samples<'_>,
        out: &mut [T],
        n_places: usize,
        mut read: impl FnMut(&[f64], &mut [T]),
    ) -> Result<(), Error> {
        let n_results = out.len();
        let mut places = out.chunks_exact_mut(n_places.max(1));
        self.score_blocks(rows, n_results, n_places, &mut |scores| {
            // Scores first: at their end no places are taken.
            for (scores, places) in scores.chunks_exact(self.n_outputs).zip(places.by_ref()) {
                read(scores, places);
            }
        })
    }

    /// Passes the scores of each block of rows to `each`, if `n_results` is `n_places` for each row.
    fn score_blocks(
        &self,
        rows: Samples<'_>,
        n_results: usize,
        n_places: usize,
        each: &mut dyn FnMut(&[f64]),
    ) -> Result<(), Error> {
        self.input.check_rows(rows)?;
        let width = self.input.width();
        let values_of_row = if matches!(rows, Samples::Text(_)) { 1 } else { width };
        let n_rows = n_rows_of(rows.len(), values_of_row, n_results, n_places)?;
        let at_once = self.rows_at_once().min(n_rows);
        // No overflow: two rows at their widest are within this machine's addresses, and more only if they are short.
        let len = at_once * self.widest;
        with_scratch::<f64, VALUES_ON_STACK, _>(2 * len, |scratch| {
            let (values, spare) = scratch.split_at_mut(len);
            let mut counting = None;
            for first_row in (0..n_rows).step_by(at_once.max(1)) {
                let n_rows = at_once.min(n_rows - first_row);
                let mut block = match (&self.input, rows) {
                    (Input::Texts(input), Samples::Text(texts)) => {
                        let (work, counts) =
                            counting.get_or_insert_with(|| (text::Work::default(), SparseRows::new(width)));
                        let texts = texts.get(first_row..first_row + n_rows).unwrap_or_default();
                        counts.clear(width);
                        input.count_into(texts, work, counts);
                        Block::sparse(counts, values, spare)
                    }
                    _ => {
                        let space = values.get_mut(..n_rows * width).unwrap_or_default();
                        rows.copy_to(first_row * width, space);
                        Block::dense(n_rows, width, values, spare)
                    }
                };
                self.run(&mut block, first_row)?;
                block.make_dense();
                each(block.values());
            }
            Ok(())
        })
    }

    /// Sends a block through the steps; `first_row` is the number of its first row.
    fn run(&self, block: &mut Block<'_>, first_row: usize) -> Result<(), Error> {
        // Isolation forests take whatever there is.
        let takes_anything = matches!(self.head, Head::Outliers(_))
            || matches!(self.input, Input::Numbers { accepts: Accepts::Anything, .. });
        for (number, step) in self.steps.iter().enumerate() {
            if let Step::Trees(trees) = step
                && !takes_anything
            {
                block.make_dense();
                if let Some(idx) = trees.beyond_range(block.values()) {
                    let n_cols = block.width().max(1);
                    let (row, col) = (first_row + idx / n_cols, idx % n_cols);
                    return Err(ErrorKind::BeyondSingle { row, col, step: number }.into());
                }
            }
            step.run(block);
        }
        Ok(())
    }

    /// Rows that go through the steps together.
    fn rows_at_once(&self) -> usize {
        let has_trees = self.steps.iter().any(|step| matches!(step, Step::Trees(_)));
        let most = if has_trees { ROWS_AT_ONCE_THROUGH_TREES } else { ROWS_AT_ONCE };
        (VALUES_AT_ONCE / self.widest).clamp(1, most)
    }
}

fn no_sparse_rows() -> Error {
    ErrorKind::NoSuchOutput { output: "sparse rows" }.into()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn numbers(n_features: usize) -> Input {
        Input::Numbers { n_features, accepts: Accepts::Finite }
    }

    fn rows_head() -> Head {
        Head::Values { kind: ValueKind::Transformed, link: Link::None, shape: OutputShape::Matrix }
    }

    /// Widths 3, 3, 5, 2.
    fn model() -> Pipeline {
        let shift = (1..=3).map(f64::from).collect();
        let scaler = ShiftDivide::new(Some(shift), None).unwrap();
        let weights = (0..15).map(|idx| f64::from(idx) * 0.1).collect();
        let wide = LinearStep::new(5, weights, vec![0.5_f64; 5].into()).unwrap();
        let weights = (0..10).map(|idx| f64::from(idx % 3) - 1.0).collect();
        let narrow = LinearStep::new(2, weights, vec![0.0_f64, 1.0].into()).unwrap();
        let steps = vec![
            Step::ShiftDivide(scaler),
            Step::Linear(wide),
            Step::Activation(StepActivation::Tanh),
            Step::Linear(narrow),
        ];
        Pipeline::from_parts(numbers(3), steps, rows_head()).unwrap()
    }

    #[test]
    fn rows_do_not_depend_on_how_many_go_together() {
        let model = model();
        let n_rows = 2 * ROWS_AT_ONCE + 7;
        let rows: Vec<f64> = (0..3 * n_rows).map(|idx| (idx % 101) as f64 * 0.07 - 3.0).collect();
        let mut all = vec![0.0; 2 * n_rows];
        model.scores_into(Samples::F64(&rows), &mut all).unwrap();
        for (row, expected) in rows.chunks_exact(3).zip(all.chunks_exact(2)) {
            let mut alone = [0.0; 2];
            model.scores_into(Samples::F64(row), &mut alone).unwrap();
            assert_eq!(alone, expected);
        }
        let narrow: Vec<f32> = rows.iter().map(|&value| value as f32).collect();
        let wide: Vec<f64> = narrow.iter().map(|&value| f64::from(value)).collect();
        let mut other = vec![0.0; 2 * n_rows];
        model.scores_into(Samples::F64(&wide), &mut all).unwrap();
        model.scores_into(Samples::F32(&narrow), &mut other).unwrap();
        assert_eq!(all, other);
        assert!(model.scores_into(Samples::F64(&[]), &mut []).is_ok());
    }

    #[test]
    fn steps_that_do_not_fit_are_refused() {
        let linear = |n_outputs: usize, width: usize| {
            let weights = vec![1.0_f64; n_outputs * width].into();
            Step::Linear(LinearStep::new(n_outputs, weights, vec![0.0_f64; n_outputs].into()).unwrap())
        };
        let code =
            |steps, head| Pipeline::from_parts(numbers(2), steps, head).map_err(|error| error.code()).err();
        let flat =
            || Head::Values { kind: ValueKind::Predictions, link: Link::None, shape: OutputShape::Vector };
        assert_eq!(code(vec![linear(3, 2), linear(1, 3)], flat()), None);
        assert_eq!(code(vec![linear(3, 2)], flat()), Some("am-part-length"));
        assert_eq!(code(vec![linear(3, 2), linear(1, 2)], flat()), Some("am-part-length"));
        assert_eq!(code(vec![], rows_head()), Some("am-part"));
        let relu = || Step::Activation(StepActivation::Relu);
        assert_eq!(code(vec![relu(); MAX_STEPS], rows_head()), None);
        assert_eq!(code(vec![relu(); MAX_STEPS + 1], rows_head()), Some("am-part"));
    }

    #[test]
    fn texts_go_through_sparse_and_dense_steps() {
        let input = || {
            let class = CharacterClass::from_bounds(vec![0x61, 0x7B]).unwrap();
            let vocabulary = ["be", "not", "or", "to"];
            let parts = TextParts {
                case: crate::LetterCase::Lower,
                accents: None,
                terms: TextTerms::Words { class, least: 1, edges: None },
                ngram_min: 1,
                ngram_max: 1,
                stop_words: crate::Vocabulary::default(),
                vocabulary: crate::Vocabulary::from_sorted(vocabulary).unwrap(),
                columns: None,
                counts: crate::TermCount::Every,
            };
            Input::Texts(TextInput::new(parts).unwrap().into())
        };
        let texts = ["to be or not to be", "none of them", "To!"];
        let counts = [2.0, 1.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        let bare = Pipeline::from_parts(input(), vec![], rows_head()).unwrap();
        let mut out = [0.0; 12];
        bare.values_into(Samples::Text(&texts), &mut out).unwrap();
        assert_eq!(out, counts);
        assert_eq!(bare.transform_texts(&texts).unwrap().lists(0), (&[0, 1, 2, 3][..], &counts[..4]));
        let weigh = || TfIdfWeights::new(crate::TermFrequency::Count, crate::RowNorm::L1, None).unwrap();
        let linear = LinearStep::new(1, vec![1.0, 2.0, 3.0, 4.0].into(), vec![0.5].into()).unwrap();
        let scored = |steps| Pipeline::from_parts(input(), steps, rows_head()).unwrap();
        let model = scored(vec![Step::TfIdfWeights(weigh()), Step::Linear(linear.clone())]);
        // As many texts as do not go together, too.
        let many: Vec<&str> = texts.iter().copied().cycle().take(600).collect();
        let mut scores = vec![0.0; 600];
        model.scores_into(Samples::Text(&many), &mut scores).unwrap();
        let expected = [0.5 + (2.0 + 2.0 + 3.0 + 8.0) / 6.0, 0.5, 4.5];
        for (score, expected) in scores.iter().zip(expected.iter().cycle()) {
            assert!((score - expected).abs() < 1e-12);
        }
        let sparse = scored(vec![Step::TfIdfWeights(weigh())]).transform_texts(&texts).unwrap();
        assert_eq!(sparse.lists(2), (&[3][..], &[1.0][..]));
        assert_eq!(model.transform_texts(&texts).unwrap_err().code(), "am-no-such-output");
        assert_eq!(bare.values_into(Samples::F64(&[0.0; 12]), &mut out).unwrap_err().code(), "am-part");
        assert_eq!(
            bare.values_into(Samples::Text(&texts), &mut out[..11]).unwrap_err().code(),
            "am-output-length"
        );
        for model in [bare, model] {
            let bytes = apr_container::encode_payload_to_vec(&model, Default::default()).unwrap();
            let custom = apr_container::ModelType::Custom;
            let read =
                apr_container::decode_payload_from_slice::<Pipeline>(&bytes, Default::default(), custom);
            assert_eq!(read.unwrap(), model);
        }
    }

    #[test]
    fn values_beyond_single_are_refused_where_trees_compare_those() {
        let trees = |thresholds| {
            let step = TreesStep::new(&TreesParts {
                n_outputs: 1,
                outputs: TreeOutputs::All,
                start: &[0.0],
                divisor: 1.0,
                leaf_rows: &[1.0, 2.0],
                tree_nodes: &[3],
                features: &[1, u32::MAX, u32::MAX],
                thresholds,
                leaves: &[0, 1],
            });
            Step::Trees(step.unwrap())
        };
        let scaler = || Step::ShiftDivide(ShiftDivide::new(None, Some(vec![1.0, 1e-9].into())).unwrap());
        let found = |accepts, steps, head, value| {
            let model = Pipeline::from_parts(Input::Numbers { n_features: 2, accepts }, steps, head).unwrap();
            // The value is in the last of more rows than are computed together.
            let mut rows = vec![0.0; 2 * 5000];
            rows[9999] = value;
            let mut out = vec![0.0; 5000];
            let error = model.scores_into(Samples::F64(&rows), &mut out).err()?;
            match error.kind() {
                &ErrorKind::BeyondSingle { row, col, step } => Some((row, col, step)),
                other => panic!("{other:?}"),
            }
        };
        let single = || trees(TreeThresholds::Single(&[0.5]));
        let refused = |step| Some((4999, 1, step));
        let most = f64::from(f32::MAX);
        assert_eq!(found(Accepts::Finite, vec![single()], rows_head(), most), None);
        // Half a unit in the last place more rounds up.
        assert_eq!(found(Accepts::Finite, vec![single()], rows_head(), most * (1.0 + 3e-8)), refused(0));
        assert_eq!(found(Accepts::Missing, vec![single()], rows_head(), -1e300), refused(0));
        assert_eq!(found(Accepts::Missing, vec![single()], rows_head(), f64::NAN), None);
        assert_eq!(found(Accepts::Finite, vec![scaler(), single()], rows_head(), 1e30), refused(1));
        assert_eq!(found(Accepts::Anything, vec![single()], rows_head(), 1e300), None);
        let outliers = Head::Outliers(OutlierHead { divisor: 1.0, cut: 0.0, offset: 0.0 });
        assert_eq!(found(Accepts::Missing, vec![scaler(), single()], outliers, 1e300), None);
        let double = trees(TreeThresholds::Double(&[0.5]));
        assert_eq!(found(Accepts::Finite, vec![double], rows_head(), 1e300), None);
    }

    #[test]
    fn what_it_does_not_say_is_refused() {
        let (model, rows) = (model(), Samples::F64(&[0.0, 1.0, 2.0]));
        assert_eq!(
            (model.n_probabilities(), model.n_decisions(), model.has_score_samples()),
            (None, None, false)
        );
        let mut out = [0.0; 2];
        assert_eq!(model.predict_indices_into(rows, &mut [0]).unwrap_err().code(), "am-no-such-output");
        assert_eq!(model.predict_proba_into(rows, &mut out).unwrap_err().code(), "am-no-such-output");
        assert_eq!(model.decision_function_into(rows, &mut out).unwrap_err().code(), "am-no-such-output");
        assert_eq!(model.score_samples_into(rows, &mut out).unwrap_err().code(), "am-no-such-output");
        assert!(model.values_into(rows, &mut out).is_ok());
        assert_eq!(model.values_into(rows, &mut out[..1]).unwrap_err().code(), "am-output-length");
    }
}
