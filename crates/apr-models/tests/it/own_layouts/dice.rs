//! Models of random shape and content.

mod pipelines;

use apr_models::{
    Activation, AnyModel, BoostedClassifierParts, BoostedRegressorParts, ContentRecommender, CountVectorizer,
    Dense, GradientBoostingClassifier, GradientBoostingRegressor, KernelParts, KnnClassifier, KnnRegressor,
    KnnWeights, LetterCase, LinearParts, Matrix, NaiveBayes, NaiveBayesParts, NeuralSequential, NgramLm,
    NgramLmOptions, Pca, PcaParts, PcaScaling, RowNorm, Smoothing, SparseRows, Svm, SvmKernel, TermCount,
    TermFrequency, TextRules, TfIdf, TfIdfParts, TokenRule, TreeNode, Vector, Vocabulary,
};

/// Kinds of models that have a layout of our own, some twice for their forms.
pub(crate) const KINDS: core::ops::Range<usize> = 0..20;

/// A small generator: the tests need variety, not quality.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) ^ (self.0 << 31)
    }

    /// From `least` to `most`.
    fn size(&mut self, least: usize, most: usize) -> usize {
        least + (self.roll() % (most - least + 1) as u64) as usize
    }

    fn coin(&mut self) -> bool {
        self.size(0, 1) == 1
    }

    /// A finite number, now and then an extreme one.
    fn number(&mut self) -> f32 {
        match self.size(0, 19) {
            0 => 0.0,
            1 => -0.0,
            2 => f32::MAX,
            3 => f32::MIN_POSITIVE / 2.0,
            _ => (self.roll() as i32) as f32 / 1e9,
        }
    }

    fn numbers(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.number()).collect()
    }

    fn wide(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| f64::from(self.number()) * 1.000_000_1).collect()
    }

    /// Numbers above 0.
    fn positive(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| self.size(1, 1000) as f64 / 1000.0).collect()
    }

    fn matrix(&mut self, n_rows: usize, n_cols: usize) -> Matrix {
        Matrix::from_vec(n_rows, n_cols, self.numbers(n_rows * n_cols)).unwrap()
    }

    fn labels(&mut self, len: usize) -> Vec<usize> {
        let mut label = self.size(0, 3);
        (0..len)
            .map(|_| {
                label += self.size(1, 5);
                label
            })
            .collect()
    }

    fn words(&mut self, most: usize) -> Vocabulary {
        let words = ["a", "b", "bb", "cc", "cc bb", "ä", "日本", "x_1", "zz"];
        let len = self.size(1, most);
        Vocabulary::from_texts((0..len).map(|_| words[self.size(0, words.len() - 1)])).unwrap()
    }

    fn tree(&mut self, n_features: usize) -> Vec<TreeNode<f32>> {
        let n_splits = self.size(0, 6);
        let mut nodes = vec![TreeNode::Leaf { value: self.number(), n_samples: 0, impurity: 0.0 }];
        for _ in 0..n_splits {
            let leaves: Vec<usize> =
                (0..nodes.len()).filter(|&idx| matches!(nodes[idx], TreeNode::Leaf { .. })).collect();
            let grown = leaves[self.size(0, leaves.len() - 1)];
            let (left, right) = (nodes.len(), nodes.len() + 1);
            let (feature, threshold) = (self.size(0, n_features - 1), self.number());
            nodes[grown] = TreeNode::Split { feature, threshold, left, right, n_samples: 0, impurity: 0.0 };
            for _ in 0..2 {
                nodes.push(TreeNode::Leaf { value: self.number(), n_samples: 0, impurity: 0.0 });
            }
        }
        nodes
    }

    fn knn_weights(&mut self) -> KnnWeights {
        if self.coin() { KnnWeights::Distance } else { KnnWeights::Uniform }
    }

    fn vectorizer(&mut self) -> CountVectorizer {
        let ngram_min = self.size(1, 3);
        let rules = TextRules {
            case: if self.coin() { LetterCase::Lower } else { LetterCase::Keep },
            tokens: [TokenRule::LongWords, TokenRule::Words, TokenRule::Whitespace][self.size(0, 2)],
            ngram_min,
            ngram_max: self.size(ngram_min, 4),
            counts: if self.coin() { TermCount::Once } else { TermCount::Every },
            stop_words: if self.coin() { self.words(2) } else { Vocabulary::default() },
        };
        CountVectorizer::from_parts(self.words(9), rules).unwrap()
    }

    fn tf_idf(&mut self) -> TfIdf {
        let counts = self.vectorizer();
        let parts = TfIdfParts {
            frequency: if self.coin() { TermFrequency::Logarithm } else { TermFrequency::Count },
            norm: [RowNorm::None, RowNorm::L1, RowNorm::L2][self.size(0, 2)],
            idf: if self.coin() { Some(self.numbers(counts.vocabulary().len())) } else { None },
        };
        TfIdf::from_parts(counts, parts).unwrap()
    }

    pub(crate) fn model(&mut self, kind: usize) -> AnyModel {
        let (n_rows, n_cols) = (self.size(1, 6), self.size(1, 5));
        match kind {
            0 => self.pca(n_cols).into(),
            1 => self.naive_bayes(n_cols).into(),
            2 => {
                let y: Vec<usize> = (0..n_rows).map(|_| self.size(0, 900)).collect();
                let (k, weights) = (self.size(1, n_rows), self.knn_weights());
                KnnClassifier::fit(self.matrix(n_rows, n_cols), &y, k, weights).unwrap().into()
            }
            3 => {
                let (k, weights) = (self.size(1, n_rows), self.knn_weights());
                let y = Vector::from_vec(self.numbers(n_rows));
                KnnRegressor::fit(self.matrix(n_rows, n_cols), y, k, weights).unwrap().into()
            }
            4 => {
                let n_classes = self.size(2, 4);
                let n_planes = if n_classes == 2 { 1 } else { n_classes };
                let (classes, weights) = (self.labels(n_classes), self.matrix(n_planes, n_cols));
                Svm::linear(LinearParts { classes, weights, intercepts: self.numbers(n_planes) })
                    .unwrap()
                    .into()
            }
            5 => self.kernel(n_cols).into(),
            6 => {
                let n_trees = self.size(0, 4);
                GradientBoostingRegressor::from_parts(BoostedRegressorParts {
                    n_features: n_cols,
                    learning_rate: f64::from(self.number()),
                    start: f64::from(self.number()),
                    trees: (0..n_trees).map(|_| self.tree(n_cols)).collect(),
                })
                .unwrap()
                .into()
            }
            7 => {
                let n_classes = self.size(2, 4);
                let n_scores = if n_classes == 2 { 1 } else { n_classes };
                let n_trees = n_scores * self.size(0, 3);
                GradientBoostingClassifier::from_parts(BoostedClassifierParts {
                    classes: self.labels(n_classes),
                    n_features: n_cols,
                    learning_rate: 0.1,
                    start: self.wide(n_scores),
                    trees: (0..n_trees).map(|_| self.tree(n_cols)).collect(),
                })
                .unwrap()
                .into()
            }
            8 => self.language_model().into(),
            9 => self.tf_idf().into(),
            10 => self.vectorizer().into(),
            11 => self.network(n_cols).into(),
            12 => {
                let ids: Vec<String> = (0..n_rows).map(|idx| format!("item {}", idx * 7 % 10)).collect();
                ContentRecommender::dense(ids, self.matrix(n_rows, n_cols)).unwrap().into()
            }
            13 => self.sparse_items(n_rows).into(),
            14..20 => self.pipeline(n_cols, kind - 14).into(),
            other => panic!("no kind {other}"),
        }
    }

    fn pca(&mut self, n_features: usize) -> Pca {
        let n_components = self.size(1, n_features);
        let share = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
        Pca::from_parts(PcaParts {
            mean: self.numbers(n_features),
            components: self.matrix(n_components, n_features),
            explained_variance: share(self.positive(n_components)),
            explained_variance_ratio: share(self.positive(n_components)),
            scaling: if self.coin() { PcaScaling::Whiten } else { PcaScaling::Keep },
        })
        .unwrap()
    }

    fn naive_bayes(&mut self, n_features: usize) -> NaiveBayes {
        let n_classes = self.size(1, 4);
        NaiveBayes::from_parts(NaiveBayesParts {
            classes: self.labels(n_classes),
            prior: self.positive(n_classes),
            mean: self.wide(n_classes * n_features),
            variance: self.positive(n_classes * n_features),
        })
        .unwrap()
    }

    fn kernel(&mut self, n_features: usize) -> Svm {
        let n_classes = self.size(2, 4);
        let n_support: Vec<usize> = (0..n_classes).map(|_| self.size(1, 3)).collect();
        let n_vectors = n_support.iter().sum();
        Svm::kernel(KernelParts {
            classes: self.labels(n_classes),
            kernel: if self.coin() {
                SvmKernel::Rbf { gamma: self.positive(1)[0] }
            } else {
                SvmKernel::Linear
            },
            n_support,
            support_vectors: self.matrix(n_vectors, n_features),
            dual: self.wide((n_classes - 1) * n_vectors),
            intercepts: self.wide(n_classes * (n_classes - 1) / 2),
        })
        .unwrap()
    }

    fn language_model(&mut self) -> NgramLm {
        let words = ["a", "b", "bb", "日本"];
        let sentences: Vec<Vec<&str>> = (0..self.size(1, 4))
            .map(|_| (0..self.size(0, 5)).map(|_| words[self.size(0, 3)]).collect())
            .collect();
        let constant = self.positive(1)[0] * 0.99;
        let options = NgramLmOptions {
            order: self.size(1, 4),
            smoothing: if self.coin() {
                Smoothing::AddK(constant)
            } else {
                Smoothing::AbsoluteDiscount(constant)
            },
            min_count: self.size(1, 2),
        };
        NgramLm::fit(&sentences, &options).unwrap()
    }

    fn network(&mut self, n_inputs: usize) -> NeuralSequential {
        let activations = [
            Activation::Identity,
            Activation::Relu,
            Activation::Tanh,
            Activation::Sigmoid,
            Activation::Softmax,
        ];
        let mut width = n_inputs;
        let layers = (0..self.size(1, 4)).map(|_| {
            let (n_inputs, n_outputs) = (width, self.size(1, 4));
            width = n_outputs;
            let (weights, bias) = (self.matrix(n_inputs, n_outputs), self.numbers(n_outputs));
            Dense::new(weights, bias, activations[self.size(0, 4)]).unwrap()
        });
        NeuralSequential::from_layers(layers.collect()).unwrap()
    }

    fn sparse_items(&mut self, n_items: usize) -> ContentRecommender {
        let ids = (0..n_items).map(|idx| format!("{}", 100 - idx)).collect::<Vec<_>>();
        if self.coin() {
            let texts: Vec<String> = (0..n_items).map(|idx| format!("bb cc {idx}{idx} zz")).collect();
            return ContentRecommender::from_texts(ids, &texts, &apr_models::TfIdfOptions::default())
                .unwrap();
        }
        let mut rows = SparseRows::new(7);
        for _ in 0..n_items {
            let columns: Vec<u32> = (0..7).filter(|_| self.coin()).collect();
            let row: Vec<(u32, f32)> = columns.into_iter().map(|column| (column, self.number())).collect();
            rows.push_row(&row).unwrap();
        }
        ContentRecommender::sparse(ids, rows).unwrap()
    }
}
