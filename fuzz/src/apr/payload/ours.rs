//! Models whose layouts are ours.

use super::writer::Writer;

impl Writer<'_, '_> {
    pub(super) fn pca(&mut self) {
        let n_features = 1 + self.choices.below(3);
        let n_components = 1 + self.choices.below(n_features);
        self.head(1);
        self.u64(n_features as u64);
        self.u64(n_components as u64);
        self.bool();
        self.f32s(n_features);
        self.f32s(n_features * n_components);
        for _ in 0..2 {
            self.list(n_components, |w| {
                let value = f32::from(w.choices.byte()) / 16.0;
                w.out.extend_from_slice(&value.to_le_bytes());
            });
        }
    }

    pub(super) fn naive_bayes(&mut self) {
        let (k, n_features) = (1 + self.choices.below(3), 1 + self.choices.below(3));
        self.head(1);
        self.labels(k);
        self.u64(n_features as u64);
        self.list(k, Self::share);
        self.f64s(k * n_features);
        self.list(k * n_features, Self::share);
    }

    pub(super) fn neighbours(&mut self, form: u32) {
        let (n, n_features) = (1 + self.choices.below(4), 1 + self.choices.below(3));
        self.head(form);
        let k = 1 + self.choices.below(n);
        self.u64(k as u64);
        let weights = self.choices.below(2) as u32;
        self.u32(weights);
        self.u64(n_features as u64);
        self.f32s(n * n_features);
        if form == 1 {
            self.labels(3);
            self.list(n, |w| {
                let class = w.choices.below(3) as u32;
                w.u32(class);
            });
        } else {
            self.f32s(n);
        }
    }

    pub(super) fn svm(&mut self) {
        let (k, n_features) = (2 + self.choices.below(2), 1 + self.choices.below(3));
        let form = 1 + self.choices.below(2) as u32;
        self.head(form);
        self.labels(k);
        if form == 1 {
            let rows = if k == 2 { 1 } else { k };
            self.u64(n_features as u64);
            self.f32s(rows * n_features);
            self.f32s(rows);
            return;
        }
        let kernel = self.choices.below(2) as u32;
        self.u32(kernel);
        if kernel == 1 {
            self.share();
        }
        self.u64(n_features as u64);
        self.list(k, |w| w.u64(2));
        self.f32s(2 * k * n_features);
        self.f64s((k - 1) * 2 * k);
        self.f64s(k * (k - 1) / 2);
    }

    pub(super) fn boosting(&mut self, form: u32) {
        self.head(form);
        let mut outputs = 1;
        if form == 2 {
            let k = 2 + self.choices.below(2);
            self.labels(k);
            outputs = if k == 2 { 1 } else { k };
        }
        self.u64(3);
        self.share();
        self.f64s(outputs);
        let stages = self.choices.below(3);
        self.list(stages * outputs, |w| {
            let mut features = Vec::new();
            w.boosted_tree(&mut features, 3);
            let len = features.len();
            w.list(len, |w| {
                let feature = features.pop().unwrap_or_default();
                w.u32(feature);
            });
            w.f32s(len);
        });
    }

    /// The features of a tree's nodes, the last one first.
    pub(super) fn boosted_tree(&mut self, features: &mut Vec<u32>, levels: usize) {
        if levels == 0 || self.choices.rarely(3) {
            features.push(u32::MAX);
            return;
        }
        self.boosted_tree(features, levels - 1);
        self.boosted_tree(features, levels - 1);
        let feature = self.choices.below(3) as u32;
        features.push(feature);
    }

    pub(super) fn ngrams(&mut self) {
        let order = 1 + self.choices.below(2);
        let n_words = 1 + self.choices.below(3);
        self.head(1);
        self.u64(order as u64);
        let smoothing = self.choices.below(2) as u32;
        self.u32(smoothing);
        self.share();
        self.vocabulary(n_words);
        self.list(order, |_| {});
        for len in 1..=order {
            let rows = 1 + self.choices.below(2);
            let mut token = 0;
            self.u64((rows * len) as u64);
            for _ in 0..rows {
                for _ in 1..len {
                    self.u32(2 + token);
                }
                token += 1;
                self.u32(2 + token);
            }
            self.list(rows, |w| {
                let count = 1 + w.choices.below(9);
                w.u64(count as u64);
            });
        }
    }

    pub(super) fn counts(&mut self) -> usize {
        let (n_stop_words, n_terms) = (self.choices.below(2), self.choices.below(4));
        self.bool();
        let tokens = self.choices.below(3) as u32;
        self.u32(tokens);
        let shortest = 1 + self.choices.below(2);
        self.u64(shortest as u64);
        let longest = shortest + self.choices.below(2);
        self.u64(longest as u64);
        self.bool();
        self.vocabulary(n_stop_words);
        self.vocabulary(n_terms);
        n_terms
    }

    pub(super) fn tf_idf(&mut self) -> usize {
        let n_terms = self.counts();
        self.bool();
        let norm = self.choices.below(3) as u32;
        self.u32(norm);
        self.option(|w| w.f32s(n_terms));
        n_terms
    }

    pub(super) fn neural(&mut self) {
        let mut n_inputs = 1 + self.choices.below(3);
        let n_layers = 1 + self.choices.below(2);
        self.head(1);
        self.u64(n_inputs as u64);
        self.list(n_layers, |w| {
            let n_outputs = 1 + w.choices.below(3);
            w.u64(n_outputs as u64);
            let activation = w.choices.below(5) as u32;
            w.u32(activation);
            w.f32s(n_inputs * n_outputs);
            w.f32s(n_outputs);
            n_inputs = n_outputs;
        });
    }

    pub(super) fn recommender(&mut self) {
        let n = 1 + self.choices.below(3);
        let form = 1 + self.choices.below(2) as u32;
        self.head(form);
        self.vocabulary(n);
        if form == 1 {
            let n_features = 1 + self.choices.below(3);
            self.u64(n_features as u64);
            self.f32s(n * n_features);
            return;
        }
        self.u64(3);
        let starts: Vec<usize> = (0..n)
            .scan(0, |at, _| {
                *at += self.choices.below(4);
                Some(*at)
            })
            .collect();
        self.u64(n as u64 + 1);
        self.u64(0);
        starts.iter().for_each(|start| self.u64(*start as u64));
        let len = starts.last().copied().unwrap_or_default();
        let mut row = 0;
        self.u64(len as u64);
        for place in 0..len {
            while starts.get(row).is_some_and(|end| *end <= place) {
                row += 1;
            }
            let begin = row.checked_sub(1).and_then(|before| starts.get(before)).copied().unwrap_or_default();
            self.u32((place - begin) as u32);
        }
        self.f32s(len);
        self.option(|w| {
            w.tf_idf();
        });
    }
}
