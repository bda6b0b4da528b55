//! Metadata of version 1.

use crate::choices::Choices;

/// The fields of metadata and of their nested values.
const KEYS: [&str; 44] = [
    "created_at",
    "aprender_version",
    "model_name",
    "description",
    "training",
    "samples",
    "duration_ms",
    "source",
    "hyperparameters",
    "metrics",
    "custom",
    "apr.model",
    "distillation",
    "distillation_info",
    "method",
    "teacher",
    "hash",
    "signature",
    "model_type",
    "param_count",
    "ensemble_teachers",
    "params",
    "temperature",
    "alpha",
    "beta",
    "epochs",
    "final_loss",
    "layer_mapping",
    "student_layer",
    "teacher_layer",
    "weight",
    "license",
    "uuid",
    "expiry",
    "seats",
    "licensee",
    "tier",
    "model_card",
    "model_id",
    "name",
    "version",
    "training_data",
    "target_hardware",
    "k",
];

/// A map that is valid except for rare faults, with the two keys every writer writes.
pub fn metadata(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut writer = Writer { out: Vec::new() };
    let optional = choices.below(6);
    writer.map_of(choices, 2 + optional);
    if !choices.rarely(32) {
        writer.text("created_at");
        let time = choices.pick(["1795241427", "2026-11-21T06:10:33Z", "", "-1", "99999999999999999999999"]);
        writer.text(time);
    }
    if !choices.rarely(32) {
        writer.text("aprender_version");
        let version = choices.pick(["0.10.0", "0.15.0", "0.72.3", "0.20", "9.9.9", ""]);
        writer.text(version);
    }
    for _ in 0..optional {
        let depth = 4;
        match choices.below(8) {
            0 => writer.field(choices, "training", depth),
            1 => writer.field(choices, "hyperparameters", depth),
            2 => writer.field(choices, "custom", depth),
            3 => writer.field(choices, "license", depth),
            4 => writer.distillation(choices),
            5 => writer.field(choices, "model_card", depth),
            6 => writer.field(choices, "distillation_info", depth),
            _ => {
                let key = choices.pick(KEYS);
                writer.field(choices, key, depth);
            }
        }
    }
    if choices.rarely(32) {
        writer.out.push(choices.byte());
    }
    writer.out
}

struct Writer {
    out: Vec<u8>,
}

impl Writer {
    fn length(&mut self, choices: &mut Choices<'_>, len: usize, fix: u8, fix_max: usize, wide: [u8; 2]) {
        // The shortest form, a longer one, or a lie.
        let claimed = if choices.rarely(64) { choices.integer() as usize } else { len };
        match choices.below(8) {
            0 => {
                self.out.push(wide[1]);
                self.out.extend_from_slice(&(claimed as u32).to_be_bytes());
            }
            1 => {
                self.out.push(wide[0]);
                self.out.extend_from_slice(&(claimed as u16).to_be_bytes());
            }
            _ => self.out.push(fix | (claimed.min(fix_max) as u8)),
        }
    }

    fn map_of(&mut self, choices: &mut Choices<'_>, len: usize) {
        self.length(choices, len, 0x80, 15, [0xDE, 0xDF]);
    }

    fn list_of(&mut self, choices: &mut Choices<'_>, len: usize) {
        self.length(choices, len, 0x90, 15, [0xDC, 0xDD]);
    }

    fn text(&mut self, text: &str) {
        match text.len() {
            len @ 0..=31 => self.out.push(0xA0 | len as u8),
            len => self.out.extend_from_slice(&[0xD9, len.min(255) as u8]),
        }
        self.out.extend_from_slice(&text.as_bytes()[..text.len().min(255)]);
    }

    fn field(&mut self, choices: &mut Choices<'_>, key: &str, depth: usize) {
        self.text(key);
        match key {
            "hyperparameters" | "metrics" | "custom" | "training" | "license" | "model_card" | "params"
            | "teacher" | "distillation_info" | "training_data"
                if !choices.rarely(24) =>
            {
                let len = choices.below(5);
                self.map_of(choices, len);
                for _ in 0..len {
                    let key = choices.pick(KEYS);
                    self.field(choices, key, depth.saturating_sub(1));
                }
            }
            _ => self.value(choices, depth),
        }
    }

    /// The deepest of the structures, complete.
    fn distillation(&mut self, choices: &mut Choices<'_>) {
        self.text("distillation_info");
        self.out.push(0x84);
        self.text("method");
        let method = choices.pick(["Standard", "Progressive", "Ensemble", "Other"]);
        self.text(method);
        self.text("teacher");
        self.teacher(choices, 3);
        self.text("params");
        self.out.push(0x83);
        for key in ["temperature", "alpha", "epochs"] {
            self.text(key);
            self.value(choices, 0);
        }
        self.text("layer_mapping");
        let len = choices.below(4);
        self.list_of(choices, len);
        for _ in 0..len {
            self.out.push(0x83);
            for key in ["student_layer", "teacher_layer", "weight"] {
                self.text(key);
                self.number(choices);
            }
        }
    }

    fn teacher(&mut self, choices: &mut Choices<'_>, depth: usize) {
        let more = if depth > 0 { choices.below(3) } else { 0 };
        self.out.push(if more > 0 { 0x84 } else { 0x83 });
        self.text("hash");
        self.text("sha256:9f86d081");
        self.text("model_type");
        self.text("NeuralSequential");
        self.text("param_count");
        self.number(choices);
        if more > 0 {
            self.text("ensemble_teachers");
            self.list_of(choices, more);
            for _ in 0..more {
                self.teacher(choices, depth - 1);
            }
        }
    }

    fn number(&mut self, choices: &mut Choices<'_>) {
        let number = choices.integer();
        match choices.below(9) {
            0 => self.out.push(number as u8 & 0x7F),
            1 => self.out.extend_from_slice(&[0xCC, number as u8]),
            2 => self.out.extend_from_slice(&[&[0xCD][..], &(number as u16).to_be_bytes()].concat()),
            3 => self.out.extend_from_slice(&[&[0xCE][..], &(number as u32).to_be_bytes()].concat()),
            4 => self.out.extend_from_slice(&[&[0xCF][..], &(number as u64).to_be_bytes()].concat()),
            5 => self.out.extend_from_slice(&[&[0xD3][..], &number.to_be_bytes()].concat()),
            6 => self.out.extend_from_slice(&[&[0xCA][..], &(number as f32 / 8.0).to_be_bytes()].concat()),
            7 => self.out.extend_from_slice(&[&[0xCB][..], &(number as f64 / 8.0).to_be_bytes()].concat()),
            _ => self.out.push(0xE0 | number as u8),
        }
    }

    fn value(&mut self, choices: &mut Choices<'_>, depth: usize) {
        match choices.below(16) {
            0 => self.out.push(0xC0),
            1 => self.out.push(0xC2 | choices.below(2) as u8),
            2..=6 => self.number(choices),
            7..=9 => {
                let text = choices.pick([
                    "",
                    "a",
                    "0.72.3",
                    "Standard",
                    "Team",
                    "é😀",
                    "LinearRegression",
                    "\0\u{1b}[2J",
                ]);
                self.text(text);
            }
            10 | 11 if depth > 0 => {
                let len = choices.below(4);
                self.list_of(choices, len);
                for _ in 0..len {
                    self.value(choices, depth - 1);
                }
            }
            12 | 13 if depth > 0 => {
                let len = choices.below(4);
                self.map_of(choices, len);
                for _ in 0..len {
                    let key = choices.pick(KEYS);
                    self.field(choices, key, depth - 1);
                }
            }
            14 => {
                let len = choices.below(8);
                self.out.extend_from_slice(&[0xC4, len as u8]);
                self.out.extend_from_slice(&vec![choices.byte(); len]);
            }
            15 => match choices.below(4) {
                0 => self.out.extend_from_slice(&[0xD4, choices.byte(), 0]),
                1 => self.out.extend_from_slice(&[0xC7, 2, choices.byte(), 1, 2]),
                2 => {
                    let levels = 50 + choices.below(32);
                    self.out.extend_from_slice(&vec![0x91; levels]);
                    self.out.push(0xC0);
                }
                _ => self.out.push(choices.byte()),
            },
            _ => self.out.push(0xC0),
        }
    }
}
