//! Values of payloads, valid except for rare faults.

use apr_container::PayloadLayout;

use crate::choices::Choices;

pub(super) struct Writer<'c, 'a> {
    pub(super) choices: &'c mut Choices<'a>,
    pub(super) layout: PayloadLayout,
    pub(super) out: Vec<u8>,
}

impl Writer<'_, '_> {
    pub(super) fn u64(&mut self, value: u64) {
        let value = if self.choices.rarely(100) { self.choices.integer() as u64 } else { value };
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        let value = if self.choices.rarely(100) { self.choices.integer() as u32 } else { value };
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn size(&mut self, bound: usize) {
        let value = self.choices.below(bound);
        self.u64(value as u64);
    }

    pub(super) fn float(&mut self) -> f64 {
        match self.choices.byte() {
            250 => f64::NAN,
            251 => f64::INFINITY,
            252 => f64::NEG_INFINITY,
            253 => -0.0,
            254 => 1e-40,
            255 => 3e38,
            byte => (f64::from(byte) - 125.0) / 16.0,
        }
    }

    pub(super) fn f32(&mut self) {
        let value = self.float() as f32;
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn f64(&mut self) {
        let value = self.float();
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Between 0 and 1.
    pub(super) fn share(&mut self) {
        let value = (f64::from(self.choices.byte()) + 1.0) / 257.0;
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bool(&mut self) {
        let byte = match self.choices.byte() {
            255 => 2,
            byte => byte & 1,
        };
        self.out.push(byte);
    }

    pub(super) fn option(&mut self, value: impl FnOnce(&mut Self)) {
        match self.choices.byte() {
            0..=31 => self.out.push(0),
            255 => self.out.push(2),
            _ => {
                self.out.push(1);
                value(self);
            }
        }
    }

    pub(super) fn list(&mut self, len: usize, mut element: impl FnMut(&mut Self)) {
        self.u64(len as u64);
        for _ in 0..len {
            element(self);
        }
    }

    pub(super) fn f32s(&mut self, len: usize) {
        self.list(len, Self::f32);
    }

    pub(super) fn f64s(&mut self, len: usize) {
        self.list(len, Self::f64);
    }

    pub(super) fn u64s(&mut self, len: usize) {
        self.list(len, |w| w.size(4));
    }

    pub(super) fn u32s(&mut self, len: usize) {
        self.list(len, |w| {
            let value = w.choices.below(4);
            w.u32(value as u32);
        });
    }

    /// Strictly increasing labels.
    pub(super) fn labels(&mut self, len: usize) {
        let mut label = 0;
        self.list(len, |w| {
            w.u64(label);
            label += 1 + w.choices.below(3) as u64;
        });
    }

    pub(super) fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
        if self.choices.rarely(200) {
            self.out.pop();
            self.out.push(0xFF);
        }
    }

    pub(super) fn vocabulary(&mut self, len: usize) {
        let mut number = 10;
        self.list(len, |w| {
            number += if w.choices.rarely(100) { 0 } else { 1 };
            w.text(&format!("t{number}"));
        });
    }

    pub(super) fn matrix(&mut self, n_rows: usize, n_cols: usize) {
        self.f32s(n_rows * n_cols);
        self.u64(n_rows as u64);
        self.u64(n_cols as u64);
    }

    pub(super) fn head(&mut self, form: u32) {
        self.u32(1);
        self.u32(form);
    }
}
