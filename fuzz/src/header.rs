//! Writes header texts that are valid except for a rare, chosen fault.

use st_core::Dtype;

use crate::choices::Choices;

/// A header text and the length of the data section it describes.
pub fn header(choices: &mut Choices<'_>) -> (Vec<u8>, usize) {
    let mut writer = Writer { out: Vec::new(), end: 0 };
    let count = choices.below(6);
    let metadata_at = [choices.below(8), choices.below(64)];
    writer.space(choices);
    writer.token(choices, b"{");
    for idx in 0..=count {
        // The second place is rarely among the tensors: two metadata objects are a fault.
        for _ in metadata_at.iter().filter(|at| **at == idx) {
            writer.separate(choices);
            writer.metadata(choices);
        }
        if idx < count {
            writer.separate(choices);
            writer.tensor(choices);
        }
    }
    writer.token(choices, b"}");
    writer.space(choices);
    (writer.out, writer.end)
}

struct Writer {
    out: Vec<u8>,
    end: usize,
}

/// Values for unknown fields, some of them not JSON.
const VALUES: [&str; 32] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1.5e-3",
    "\"\"",
    "[]",
    "{}",
    "[1,[2,{\"k\":[]}]]",
    "{\"k\":\"v\",\"k\":1}",
    "1e308",
    "1e309",
    "0e999",
    "123456789012345678901234567890",
    "17976931348623157e292",
    "1.8e308",
    "01",
    "-",
    "1.",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\\udc00\"",
    "\"\\u00\"",
    "\"\\x\"",
    "[1,]",
    "{\"k\"}",
    "nul",
    "[",
    "}",
    "1e99999999999",
    "0.00000000000000000000000000000000001e340",
];

const NAMES: [&str; 17] = [
    "a",
    "b",
    "",
    "layers.0.weight",
    "\\u0061",
    "\\ud83d\\ude00",
    "é",
    "__metadata_",
    "1234567",
    "12345678",
    "123456789abcdef",
    "\\\"",
    "\\\\",
    "a\\u0000",
    "a\u{1}",
    "\\/",
    "\u{10ffff}",
];

impl Writer {
    fn token(&mut self, choices: &mut Choices<'_>, token: &[u8]) {
        if choices.rarely(200) {
            return;
        }
        self.out.extend_from_slice(token);
        if choices.rarely(40) {
            self.space(choices);
        }
        if choices.rarely(250) {
            self.out.push(choices.byte());
        }
    }

    fn space(&mut self, choices: &mut Choices<'_>) {
        if choices.rarely(16) {
            let space = choices.pick([" ", "\n", "\t", "\r", "  ", "\u{c}", "\0", "        "]);
            self.out.extend_from_slice(space.as_bytes());
        }
    }

    /// A comma, unless an object or array has just begun.
    fn separate(&mut self, choices: &mut Choices<'_>) {
        let last = self.out.iter().rev().find(|byte| !byte.is_ascii_whitespace());
        if !matches!(last, None | Some(b'{' | b'[')) {
            self.token(choices, b",");
        }
    }

    fn string(&mut self, choices: &mut Choices<'_>, text: &str) {
        self.token(choices, format!("\"{text}\"").as_bytes());
    }

    fn value(&mut self, choices: &mut Choices<'_>) {
        if choices.rarely(32) {
            let depth = 110 + choices.below(32);
            self.token(choices, &[b"[".repeat(depth), b"]".repeat(depth)].concat());
        } else {
            let value = choices.pick(VALUES);
            self.token(choices, value.as_bytes());
        }
    }

    fn name(&mut self, choices: &mut Choices<'_>) {
        let name = choices.pick(NAMES);
        if choices.rarely(2) {
            self.string(choices, name);
        } else {
            let number = choices.byte();
            self.string(choices, &format!("{name}.{number}"));
        }
    }

    fn metadata(&mut self, choices: &mut Choices<'_>) {
        let key = if choices.rarely(8) { "__met\\u0061data__" } else { "__metadata__" };
        self.string(choices, key);
        self.token(choices, b":");
        if choices.rarely(8) {
            self.value(choices);
            return;
        }
        self.token(choices, b"{");
        for _ in 0..choices.below(4) {
            self.separate(choices);
            self.name(choices);
            self.token(choices, b":");
            if choices.rarely(32) {
                self.value(choices);
            } else {
                self.name(choices);
            }
        }
        self.token(choices, b"}");
    }

    fn tensor(&mut self, choices: &mut Choices<'_>) {
        self.name(choices);
        self.token(choices, b":");
        let dtype = Dtype::ELEMENTS[choices.below(Dtype::ELEMENTS.len())];
        let mut shape: Vec<usize> = (0..choices.below(4)).map(|_| choices.below(5)).collect();
        if !dtype.bits().is_multiple_of(8) && !choices.rarely(8) {
            shape.push(4);
        }
        let bits = shape.iter().product::<usize>() * dtype.bits() as usize;
        let begin = self.end;
        self.end += bits / 8;
        if choices.rarely(24) {
            self.value(choices);
            return;
        }
        let as_array = choices.rarely(16);
        self.token(choices, if as_array { b"[" } else { b"{" });
        let mut order = [0, 1, 2];
        if choices.rarely(8) && !as_array {
            order.rotate_left(choices.below(3));
        }
        let fields = if choices.rarely(64) { 2 } else { 3 };
        for field in order.into_iter().take(fields) {
            self.separate(choices);
            if choices.rarely(24) && !as_array {
                let field = choices.pick(["x", "dtype", "shape", "d\\u0074ype", ""]);
                self.string(choices, field);
                self.token(choices, b":");
                self.value(choices);
                self.separate(choices);
            }
            if !as_array {
                self.string(choices, ["dtype", "shape", "data_offsets"][field]);
                self.token(choices, b":");
            }
            match field {
                0 => self.dtype(choices, dtype),
                1 => self.numbers(choices, &shape),
                _ => self.numbers(choices, &[begin, self.end]),
            }
        }
        self.token(choices, if as_array { b"]" } else { b"}" });
    }

    fn dtype(&mut self, choices: &mut Choices<'_>, dtype: Dtype) {
        match choices.byte() {
            0..=239 => self.string(choices, dtype.name()),
            240..=247 => {
                let inner = choices.pick(["null", "null", "{}", "[]", "0", "\"\"", " null ", "{\"k\":1}"]);
                self.token(choices, format!("{{\"{}\":{inner}}}", dtype.name()).as_bytes());
            }
            248 | 249 => self.string(choices, &dtype.name().to_lowercase()),
            250 | 251 => {
                let tail = choices.pick(["\0", "\0\0\0\0", "\\u0000", " ", "x"]);
                self.string(choices, &format!("{}{tail}", dtype.name()));
            }
            252.. => self.value(choices),
        }
    }

    fn numbers(&mut self, choices: &mut Choices<'_>, numbers: &[usize]) {
        self.token(choices, b"[");
        for number in numbers {
            self.separate(choices);
            match choices.byte() {
                0..=249 => self.token(choices, number.to_string().as_bytes()),
                250 => self.token(choices, (number + 1).to_string().as_bytes()),
                251 => self.token(choices, b"18446744073709551615"),
                252 => self.token(choices, b"9223372036854775808"),
                253 => self.token(choices, format!("0{number}").as_bytes()),
                254.. => self.value(choices),
            }
        }
        self.token(choices, b"]");
    }
}
