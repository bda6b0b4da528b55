//! Models whose layouts the peers made.

use apr_container::PayloadLayout;

use super::writer::Writer;

impl Writer<'_, '_> {
    pub(super) fn linear(&mut self) {
        let len = self.choices.below(5);
        self.option(|w| w.f32s(len));
        self.f32();
        self.bool();
    }

    pub(super) fn logistic(&mut self) {
        let len = self.choices.below(5);
        self.option(|w| w.f32s(len));
        self.f32();
        self.f32();
        self.size(200);
        self.f32();
        if self.layout == PayloadLayout::V0_72 {
            let weight = self.choices.below(3) as u32;
            self.u32(weight);
            if weight == 2 {
                self.f32s(2);
            }
            self.f32();
            let mode = self.choices.below(3) as u32;
            self.u32(mode);
            if mode == 2 {
                self.size(64);
            }
        }
    }

    pub(super) fn k_means(&mut self) {
        let (k, n_features, n) = (1 + self.choices.below(3), self.choices.below(4), self.choices.below(5));
        self.u64(k as u64);
        self.size(100);
        self.f32();
        self.option(|w| w.size(9));
        self.option(|w| w.matrix(k, n_features));
        self.option(|w| w.list(n, |w| w.size(k)));
        self.f32();
        self.size(9);
    }

    /// A subtree of at most so many levels, and rarely one that only goes left.
    pub(super) fn tree(&mut self, levels: usize, leaf: fn(&mut Self)) {
        let is_new = self.layout == PayloadLayout::V0_72;
        if levels == 0 || self.choices.rarely(4) {
            self.u32(1);
            leaf(self);
            self.size(9);
            if is_new {
                self.f32();
            }
            return;
        }
        let depth = if self.choices.rarely(64) { 1 + self.choices.below(200) } else { 1 };
        for _ in 0..depth {
            self.u32(0);
            self.size(4);
            self.f32();
            if is_new {
                self.f32();
                self.size(9);
            }
        }
        for _ in 0..=depth {
            self.tree(if depth == 1 { levels - 1 } else { 0 }, leaf);
        }
    }

    pub(super) fn classifier(&mut self) {
        self.option(|w| w.tree(3, |w| w.size(4)));
        self.option(|w| w.size(5));
        if self.layout > PayloadLayout::V0_10 {
            self.option(|w| w.u64(4));
        }
    }

    pub(super) fn regressor(&mut self) {
        self.option(|w| w.tree(3, Self::f32));
        self.option(|w| w.size(5));
        self.u64(2);
        self.u64(1);
    }

    pub(super) fn forest(&mut self, tree: fn(&mut Self), targets: fn(&mut Self)) {
        let len = self.choices.below(4);
        self.list(len, tree);
        self.u64(len as u64);
        self.option(|w| w.size(5));
        self.option(|w| w.size(9));
        self.list(len, |w| {
            let len = w.choices.below(3);
            w.u64s(len);
        });
        self.option(|w| w.matrix(4, 2));
        self.option(targets);
    }

    pub(super) fn mixture(&mut self) {
        let (k, n_features) = (1 + self.choices.below(3), 1 + self.choices.below(2));
        self.u64(k as u64);
        let covariances = self.choices.below(4) as u32;
        self.u32(covariances);
        self.size(100);
        self.f32();
        self.option(|w| w.size(9));
        self.option(|w| w.matrix(k, n_features));
        self.option(|w| w.list(k, |w| w.matrix(n_features, n_features)));
        self.option(|w| w.f32s(k));
        self.option(|w| w.list(4, |w| w.size(k)));
    }

    pub(super) fn isolation_forest(&mut self) {
        let len = self.choices.below(3);
        self.u64(len as u64);
        self.option(|w| w.size(9));
        self.f32();
        self.option(|w| w.size(9));
        self.u64(8);
        self.list(len, |w| {
            w.option(|w| w.isolation_tree(3));
            w.size(9);
        });
        self.option(Self::f32);
        self.f32();
    }

    pub(super) fn isolation_tree(&mut self, levels: usize) {
        if levels == 0 || self.choices.rarely(4) {
            self.out.extend_from_slice(&[0, 0, 0, 0]);
            self.size(9);
            return;
        }
        self.out.push(1);
        self.size(3);
        self.out.push(1);
        self.f32();
        for _ in 0..2 {
            match self.choices.byte() {
                0..=7 => self.out.push(0),
                255 => self.out.push(2),
                _ => {
                    self.out.push(1);
                    self.isolation_tree(levels - 1);
                }
            }
        }
        self.size(9);
    }

    pub(super) fn experts(&mut self) {
        let (n_experts, n_features) = (1 + self.choices.below(3), 1 + self.choices.below(3));
        self.list(n_experts, |w| {
            w.out.push(1);
            w.f32s(n_features);
            w.f32();
            w.bool();
        });
        self.u64(n_features as u64);
        self.u64(n_experts as u64);
        self.f32();
        self.f32s(n_features * n_experts);
        self.size(4);
        self.f32();
        self.f32();
        self.f32();
    }

    pub(super) fn quantized(&mut self) {
        let quant_type = self.choices.below(5) as u32;
        self.u32(quant_type);
        let rows = self.choices.below(3);
        self.u64(2);
        self.u64(rows as u64);
        self.u64(20);
        let block_len = if quant_type == 0 { 34 } else { 18 };
        let len = (rows * 20).div_ceil(32) * block_len;
        self.list(len, |w| {
            let byte = w.choices.byte();
            w.out.push(byte);
        });
        self.u64(32);
    }
}
