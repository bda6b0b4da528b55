//! Payloads put together field by field from the tables of `docs/payloads.md`, beside what the models write.

use apr_container::{PayloadLayout, encode_payload_to_vec};
use apr_models::{
    Activation, AnyModel, BoostedClassifierParts, BoostedRegressorParts, ContentRecommender, CountVectorizer,
    Dense, GradientBoostingClassifier, GradientBoostingRegressor, KernelParts, KnnClassifier, KnnRegressor,
    KnnWeights, LetterCase, LinearParts, Matrix, Model, NaiveBayes, NaiveBayesParts, NeuralSequential,
    NgramCounts, NgramLm, NgramLmParts, Pca, PcaParts, PcaScaling, RowNorm, Smoothing, SparseRows, Svm,
    SvmKernel, TermCount, TermFrequency, TextRules, TfIdf, TfIdfParts, TokenRule, TreeNode, Vector,
    Vocabulary,
};

use super::decode;

/// Writes the notation of the page.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn form(form: u32) -> Self {
        Self::default().u32(1).u32(form)
    }

    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn f64(mut self, value: f64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn list<T: Copy, const N: usize>(self, values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Self {
        let mut fields = self.u64(values.len() as u64);
        fields.0.extend(values.iter().flat_map(|&value| bytes(value)));
        fields
    }

    fn u32s(self, values: &[u32]) -> Self {
        self.list(values, u32::to_le_bytes)
    }

    fn u64s(self, values: &[u64]) -> Self {
        self.list(values, u64::to_le_bytes)
    }

    fn f32s(self, values: &[f32]) -> Self {
        self.list(values, f32::to_le_bytes)
    }

    fn f64s(self, values: &[f64]) -> Self {
        self.list(values, f64::to_le_bytes)
    }

    fn texts(self, texts: &[&str]) -> Self {
        texts.iter().fold(self.u64(texts.len() as u64), |fields, text| {
            let mut fields = fields.u64(text.len() as u64);
            fields.0.extend(text.as_bytes());
            fields
        })
    }
}

fn check(model: impl Into<AnyModel>, fields: Fields) {
    let model = model.into();
    let written = encode_payload_to_vec(&model, PayloadLayout::default()).unwrap();
    assert_eq!(written, fields.0, "{}", model.name());
    assert_eq!(decode(&fields.0, &model).unwrap(), model);
}

fn matrix(n_rows: usize, n_cols: usize, values: &[f32]) -> Matrix {
    Matrix::from_vec(n_rows, n_cols, values.to_vec()).unwrap()
}

#[test]
fn projections_and_densities() {
    let pca = Pca::from_parts(PcaParts {
        mean: vec![1.0, 2.0],
        components: matrix(1, 2, &[0.6, 0.8]),
        explained_variance: vec![4.0],
        explained_variance_ratio: vec![0.5],
        scaling: PcaScaling::Whiten,
    });
    let fields =
        Fields::form(1).u64(2).u64(1).u8(1).f32s(&[1.0, 2.0]).f32s(&[0.6, 0.8]).f32s(&[4.0]).f32s(&[0.5]);
    check(pca.unwrap(), fields);

    let bayes = NaiveBayes::from_parts(NaiveBayesParts {
        classes: vec![3, 8],
        prior: vec![0.25, 0.75],
        mean: vec![1.0, -1.0],
        variance: vec![0.5, 2.0],
    });
    let fields =
        Fields::form(1).u64s(&[3, 8]).u64(1).f64s(&[0.25, 0.75]).f64s(&[1.0, -1.0]).f64s(&[0.5, 2.0]);
    check(bayes.unwrap(), fields);
}

#[test]
fn neighbours() {
    let x = || matrix(3, 1, &[1.0, 2.0, 3.0]);
    let common = |form, weights| Fields::form(form).u64(2).u32(weights).u64(1).f32s(&[1.0, 2.0, 3.0]);
    let classifier = KnnClassifier::fit(x(), &[7, 4, 7], 2, KnnWeights::Distance).unwrap();
    check(classifier, common(1, 1).u64s(&[4, 7]).u32s(&[1, 0, 1]));
    let targets = Vector::from_vec(vec![0.5, 0.25, 0.125]);
    let regressor = KnnRegressor::fit(x(), targets, 2, KnnWeights::Uniform).unwrap();
    check(regressor, common(2, 0).f32s(&[0.5, 0.25, 0.125]));
}

#[test]
fn support_vector_machines() {
    let linear = Svm::linear(LinearParts {
        classes: vec![0, 1],
        weights: matrix(1, 2, &[1.0, -1.0]),
        intercepts: vec![0.5],
    });
    check(linear.unwrap(), Fields::form(1).u64s(&[0, 1]).u64(2).f32s(&[1.0, -1.0]).f32s(&[0.5]));
    let parts = |kernel| KernelParts {
        classes: vec![0, 1],
        kernel,
        n_support: vec![1, 2],
        support_vectors: matrix(3, 1, &[1.0, 2.0, 3.0]),
        dual: vec![-1.0, 0.25, 0.75],
        intercepts: vec![0.125],
    };
    let rest = |fields: Fields| {
        fields.u64(1).u64s(&[1, 2]).f32s(&[1.0, 2.0, 3.0]).f64s(&[-1.0, 0.25, 0.75]).f64s(&[0.125])
    };
    let head = || Fields::form(2).u64s(&[0, 1]);
    check(Svm::kernel(parts(SvmKernel::Linear)).unwrap(), rest(head().u32(0)));
    check(Svm::kernel(parts(SvmKernel::Rbf { gamma: 0.1 })).unwrap(), rest(head().u32(1).f64(0.1)));
}

#[test]
fn boosted_trees() {
    let split = |feature, threshold, left, right| TreeNode::Split {
        feature,
        threshold,
        left,
        right,
        n_samples: 9,
        impurity: 0.5,
    };
    let leaf = |value| TreeNode::Leaf { value, n_samples: 4, impurity: 0.25 };
    // The right child of the root first: files have the order of the walk.
    let tree = vec![split(1, 0.5, 2, 1), leaf(3.0), split(0, -0.5, 3, 4), leaf(1.0), leaf(2.0)];
    let stored = |fields: Fields| {
        let end = u32::MAX;
        fields.u32s(&[1, 0, end, end, end]).f32s(&[0.5, -0.5, 1.0, 2.0, 3.0])
    };
    let regressor = GradientBoostingRegressor::from_parts(BoostedRegressorParts {
        n_features: 2,
        learning_rate: 0.1,
        start: 10.0,
        trees: vec![tree.clone(), vec![leaf(0.5)]],
    });
    let fields = stored(Fields::form(1).u64(2).f64(0.1).f64s(&[10.0]).u64(2));
    check(regressor.unwrap(), fields.u32s(&[u32::MAX]).f32s(&[0.5]));
    let classifier = GradientBoostingClassifier::from_parts(BoostedClassifierParts {
        classes: vec![5, 6],
        n_features: 2,
        learning_rate: 0.1,
        start: vec![-1.0],
        trees: vec![tree],
    });
    check(classifier.unwrap(), stored(Fields::form(2).u64s(&[5, 6]).u64(2).f64(0.1).f64s(&[-1.0]).u64(1)));
}

#[test]
fn language_models() {
    let tables = vec![
        NgramCounts { tokens: vec![2, 3, 4], counts: vec![2, 3, 1] },
        NgramCounts { tokens: vec![1, 3, 3, 2, 3, 4, 4, 2], counts: vec![2, 1, 1, 1] },
    ];
    let model = NgramLm::from_parts(NgramLmParts {
        smoothing: Smoothing::AbsoluteDiscount(0.75),
        words: Vocabulary::from_sorted(["a", "ä"]).unwrap(),
        tables,
    });
    let fields = Fields::form(1).u64(2).u32(1).f64(0.75).texts(&["a", "ä"]).u64(2);
    let fields = fields.u32s(&[2, 3, 4]).u64s(&[2, 3, 1]).u32s(&[1, 3, 3, 2, 3, 4, 4, 2]).u64s(&[2, 1, 1, 1]);
    check(model.unwrap(), fields);
}

fn vectorizer() -> (CountVectorizer, impl Fn(Fields) -> Fields) {
    let rules = TextRules {
        case: LetterCase::Lower,
        tokens: TokenRule::Whitespace,
        ngram_min: 1,
        ngram_max: 2,
        counts: TermCount::Every,
        stop_words: Vocabulary::from_sorted(["the"]).unwrap(),
    };
    let vocabulary = Vocabulary::from_sorted(["bb", "bb cc"]).unwrap();
    let fields =
        |fields: Fields| fields.u8(1).u32(2).u64(1).u64(2).u8(0).texts(&["the"]).texts(&["bb", "bb cc"]);
    (CountVectorizer::from_parts(vocabulary, rules).unwrap(), fields)
}

#[test]
fn vectorizers_and_recommenders() {
    let (counts, stored) = vectorizer();
    check(counts.clone(), stored(Fields::form(1)));
    let of = |norm, idf| {
        let parts = TfIdfParts { frequency: TermFrequency::Logarithm, norm, idf };
        TfIdf::from_parts(counts.clone(), parts).unwrap()
    };
    let with_idf = |fields: Fields| stored(fields).u8(1).u32(2).u8(1).f32s(&[1.5, 2.5]);
    check(of(RowNorm::L2, Some(vec![1.5, 2.5])), with_idf(Fields::form(1)));
    check(of(RowNorm::None, None), stored(Fields::form(1)).u8(1).u32(0).u8(0));
    check(of(RowNorm::L1, None), stored(Fields::form(1)).u8(1).u32(1).u8(0));

    let dense = ContentRecommender::dense(["y", "x"], matrix(2, 2, &[1.0, 2.0, 3.0, 4.0])).unwrap();
    check(dense, Fields::form(1).texts(&["y", "x"]).u64(2).f32s(&[1.0, 2.0, 3.0, 4.0]));
    let rows = SparseRows::from_parts(9, vec![0, 2, 2], vec![3, 8], vec![0.5, 0.25]).unwrap();
    let sparse = ContentRecommender::sparse(["y", "x"], rows).unwrap();
    let fields = Fields::form(2).texts(&["y", "x"]).u64(9).u64s(&[0, 2, 2]).u32s(&[3, 8]).f32s(&[0.5, 0.25]);
    check(sparse, fields.u8(0));
}

#[test]
fn networks() {
    let layers = vec![
        Dense::new(matrix(1, 2, &[0.5, -0.5]), vec![0.0, 1.0], Activation::Relu).unwrap(),
        Dense::new(matrix(2, 1, &[2.0, 3.0]), vec![-1.0], Activation::Sigmoid).unwrap(),
    ];
    let fields = Fields::form(1).u64(1).u64(2);
    let fields = fields.u64(2).u32(1).f32s(&[0.5, -0.5]).f32s(&[0.0, 1.0]);
    check(
        NeuralSequential::from_layers(layers).unwrap(),
        fields.u64(1).u32(3).f32s(&[2.0, 3.0]).f32s(&[-1.0]),
    );
}
