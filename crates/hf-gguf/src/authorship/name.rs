//! Names of models, taken apart: `Llama-2-7b-chat-hf`.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::regex::{Budget, Missing, Regex};

/// Longest name that is taken apart, in bytes. Those of the hub have 193 at most.
const MAX_NAME: usize = 256;

/// Forms of the parts of names, whatever their case.
#[derive(Debug)]
pub(super) struct Names {
    version: Regex,
    kind: Regex,
    size: Regex,
    tuned: Regex,
    /// Of words that titles leave as they are.
    version_in_title: Regex,
}

/// The parts of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// The whole name, without the organization.
    pub(super) name: String,
    pub(super) organization: Option<String>,
    pub(super) basename: Option<String>,
    pub(super) finetune: Option<String>,
    pub(super) version: Option<String>,
    pub(super) size_label: Option<String>,
}

/// What a part of a name is. Several at once.
#[derive(Clone, Copy, Debug, Default)]
struct Role {
    is_version: bool,
    is_type: bool,
    is_size: bool,
    is_finetune: bool,
    is_base: bool,
}

impl Role {
    const fn count(self) -> u8 {
        self.is_version as u8
            + self.is_type as u8
            + self.is_size as u8
            + self.is_finetune as u8
            + self.is_base as u8
    }
}

impl Names {
    /// Compiles them.
    ///
    /// # Errors
    ///
    /// None: the expressions are constant, and a test compiles them.
    pub(super) fn new() -> Result<Self, Error> {
        let form = |expression: &str| {
            let regex = Regex::new(&format!(r"(?i)\A(?:{expression})\z"));
            regex.map_err(|Missing(what)| ErrorKind::unsupported("README.md", &what))
        };
        Ok(Self {
            version: form(r"(v|iter)?[0-9]+([.][0-9]+)*")?,
            kind: form(r"i?q[0-9](_[0-9a-z_])*|b?fp?(16|32)")?,
            size: form(r"((a|[0-9]+x)?[0-9]+([._][0-9]+)?[kmbt][0-9]?|small|mini|medium|large|x?xl)")?,
            tuned: form("chat|instruct|vision|lora")?,
            version_in_title: form(r"(?m:v[0-9]+(\.[0-9]+)*|[0-9].*)")?,
        })
    }

    /// Takes `organization/name` apart, or a name. A size far from the real number of parameters is that of a context; 0 if the
    /// number is not known, negative for an adapter that has so many.
    pub(super) fn parts(&self, id: &str, parameters: i64) -> Parts {
        if id.contains(' ') || id.len() > MAX_NAME {
            return Parts { name: id.into(), ..Parts::default() };
        }
        let (organization, name) = match id.split_once('/') {
            Some((organization, name)) => (Some(organization).filter(|own| !own.starts_with('.')), name),
            None => (None, id),
        };
        let mut parts: Vec<String> =
            name.split('-').filter(|part| !part.is_empty()).map(String::from).collect();
        let mut roles: Vec<Role> =
            parts.iter_mut().enumerate().map(|(idx, part)| self.role(part, idx == 0, parameters)).collect();
        let digits = |part: &String| part.contains(|c: char| c.is_ascii_digit());
        if parts.iter().zip(&roles).any(|(part, role)| role.is_size && digits(part)) {
            // Sizes in words are ignored beside numbers.
            for (part, role) in parts.iter().zip(&mut roles) {
                role.is_size &= !part.chars().all(char::is_alphabetic);
            }
        }
        mark_base(&parts, &mut roles);
        let join = |is: &dyn Fn(&Role) -> bool| {
            let chosen: Vec<&str> =
                parts.iter().zip(&roles).filter(|(_, role)| is(role)).map(|(part, _)| &**part).collect();
            (!chosen.is_empty()).then_some(chosen)
        };
        let mut sizes = join(&|role| role.is_size);
        if let Some(sizes) = &mut sizes {
            let mut seen = BTreeSet::new();
            sizes.retain(|size| seen.insert(*size));
        }
        let size_label = sizes.map(|sizes| sizes.join("-"));
        let finetune = join(&|role| role.is_finetune).map(|parts| parts.join("-"));
        let version = join(&|role| role.is_version && !role.is_base).map(|parts| parts.join("-"));
        let is_clear = size_label.is_some() || finetune.is_some() || version.is_some();
        let basename = join(&|role| role.is_base).filter(|_| is_clear).map(|parts| parts.join("-"));
        let organization = organization.map(String::from);
        Parts { name: name.into(), organization, basename, finetune, version, size_label }
    }

    /// What a part is, by its form; sizes and types are written in capitals.
    fn role(&self, part: &mut String, is_first: bool, parameters: i64) -> Role {
        let mut role = Role::default();
        if is(part, &self.version) {
            role.is_version = true;
        } else if is(part, &self.kind) {
            role.is_type = true;
            *part = part.to_uppercase();
        } else if !is_first
            // Cases are ignored beyond ASCII, and sizes are cut by bytes: U+212A is a `k`.
            && part.is_ascii()
            && is(part, &self.size)
        {
            *part = normalized_size(part);
            if is_context(part, parameters) {
                role.is_finetune = true;
                let (number, unit) = part.split_at(part.len() - 1);
                *part = format!("{number}{}", unit.to_lowercase());
            } else {
                role.is_size = true;
            }
        } else if !is_first && is(part, &self.tuned) {
            let is_adapter = parameters < 0 && part.eq_ignore_ascii_case("lora");
            role.is_type = is_adapter;
            role.is_finetune = !is_adapter;
        }
        role
    }

    /// A name in title form: `-` is a space, words in small letters begin with a capital one unless they are versions.
    pub(super) fn title(&self, name: &str) -> String {
        if name.len() > MAX_NAME {
            return name.into();
        }
        let spaced = name.replace('-', " ");
        let word = |word: &str| {
            let is_lower = word.contains(char::is_lowercase) && !word.contains(char::is_uppercase);
            if is_lower && !is(word, &self.version_in_title) { capitalized(word) } else { word.to_string() }
        };
        spaced.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// `7b1` as `7.1B`, `1_5b` as `1.5B`.
fn normalized_size(part: &str) -> String {
    let mut part = part.replace('_', ".");
    let last = |part: &str| part.chars().last().unwrap_or_default();
    if last(&part).is_ascii_digit() {
        let (rest, decimal) = part.split_at(part.len() - 1);
        let (number, unit) = rest.split_at(rest.len() - 1);
        part = format!("{number}.{decimal}{unit}");
    }
    let (number, unit) = part.split_at(part.len() - 1);
    if last(number).is_ascii_digit() && "kmbt".contains(unit) {
        part = format!("{number}{}", unit.to_uppercase());
    }
    part
}

/// Whether a size is far from the number of parameters.
fn is_context(part: &str, parameters: i64) -> bool {
    let (number, unit) = part.split_at(part.len() - 1);
    let Ok(number) = number.parse::<f64>() else { return false };
    let scale = match unit {
        "K" => 1e3,
        "M" => 1e6,
        "B" => 1e9,
        "T" => 1e12,
        // No unit in capitals, as Python computes it.
        _ => 1e-3,
    };
    let label = number * scale;
    let eighth = (parameters.unsigned_abs() / 8) as f64;
    let most = (u128::from(parameters.unsigned_abs()) * 7 / 8) as f64;
    let distance =
        if label > parameters as f64 { label - parameters as f64 } else { parameters as f64 - label };
    (parameters < 0 && label < eighth) || (parameters > 0 && distance > most)
}

/// Marks the parts of the base name: letters and versions at the beginning, without versions at the end. What is nothing else after
/// that is of the finetune.
fn mark_base(parts: &[String], roles: &mut [Role]) {
    let mut at_start = true;
    for (part, role) in parts.iter().zip(roles.iter_mut()) {
        let is_word = role.count() == 0 && part.starts_with(char::is_alphabetic);
        if at_start && (is_word || role.is_version) {
            role.is_base = true;
        } else {
            at_start = false;
            role.is_finetune |= role.count() == 0;
        }
    }
    for role in roles.iter_mut().rev() {
        if !role.is_base || role.count() == 1 {
            break;
        }
        role.is_base = false;
    }
}

/// Each run of letters begins with a capital one.
fn capitalized(word: &str) -> String {
    let mut text = String::new();
    let mut is_inside = false;
    for c in word.chars() {
        if is_inside {
            text.extend(c.to_lowercase());
        } else {
            let mut upper = c.to_uppercase();
            text.extend(upper.next());
            text.extend(upper.flat_map(char::to_lowercase));
        }
        is_inside = c.is_lowercase() || c.is_uppercase();
    }
    text
}

/// Whether a text has a form.
fn is(text: &str, form: &Regex) -> bool {
    let chars: Vec<char> = text.chars().collect();
    form.matches(&chars, &mut Budget::default()).is_ok_and(|found| !found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_as_by_the_reference() {
        // Organization, base name, finetune, version, size.
        type Row<'r> = (&'r str, i64, [Option<&'r str>; 5]);
        let cases: &[Row<'_>] = &[
            (
                "Mistral-7B-Instruct-v0.2",
                7_241_732_096,
                [None, Some("Mistral"), Some("Instruct"), Some("v0.2"), Some("7B")],
            ),
            (
                "meta-llama/Llama-2-7b-chat-hf",
                6_738_415_616,
                [Some("meta-llama"), Some("Llama-2"), Some("chat-hf"), None, Some("7B")],
            ),
            (
                "bigscience/bloom-7b1-petals",
                0,
                [Some("bigscience"), Some("bloom"), Some("petals"), None, Some("7.1B")],
            ),
            (
                "Phi-3-mini-4k-instruct",
                3_821_079_552,
                [None, Some("Phi-3"), Some("4k-instruct"), None, Some("mini")],
            ),
            (
                "Qwen1.5-MoE-A2.7B-Chat",
                14_315_784_192,
                [None, Some("Qwen1.5-MoE"), Some("Chat"), None, Some("A2.7B")],
            ),
            ("Mixtral-8x7B-v0.1", 46_702_792_704, [None, Some("Mixtral"), None, Some("v0.1"), Some("8x7B")]),
            (
                "Llama-3-Instruct-8B-SimPO-q4_k_m",
                0,
                [None, Some("Llama-3"), Some("Instruct-SimPO"), None, Some("8B")],
            ),
            ("gpt2", 0, [None, None, None, None, None]),
            ("gpt2-medium", 0, [None, Some("gpt2"), None, None, Some("medium")]),
            ("./models", 0, [None, None, None, None, None]),
            ("A name", 7, [None, None, None, None, None]),
            ("model-1-2", 0, [None, Some("model"), None, Some("1-2"), None]),
            ("base-7B-7B-lora", -100_000, [None, Some("base"), None, None, Some("7B")]),
            ("base-1k-lora", -100_000, [None, Some("base"), Some("1k"), None, None]),
            ("--7B--", 0, [None, None, Some("7B"), None, None]),
            ("", 0, [None, None, None, None, None]),
        ];
        let names = Names::new().unwrap();
        for (id, parameters, expected) in cases {
            let parts = names.parts(id, *parameters);
            let found = [parts.organization, parts.basename, parts.finetune, parts.version, parts.size_label];
            assert_eq!(found.each_ref().map(Option::as_deref), *expected, "{id}");
        }
    }

    #[test]
    fn long_names_are_left_as_they_are() {
        let (names, long) = (Names::new().unwrap(), "a-7b".repeat(MAX_NAME));
        assert_eq!(names.parts(&long, 0), Parts { name: long.clone(), ..Parts::default() });
        assert_eq!(names.title(&long), long);
    }

    #[test]
    fn letters_beyond_ascii_are_no_units() {
        for name in ["model-7\u{212a}", "model-7\u{212a}1", "model-\u{17f}mall", "model-1_5\u{212a}"] {
            assert_eq!(Names::new().unwrap().parts(name, 7_000).size_label, None, "{name}");
        }
    }

    #[test]
    fn titles_are_pythons() {
        let cases = [
            ("tiny-llama-v1.0", "Tiny Llama v1.0"),
            ("Qwen2-7b", "Qwen2 7b"),
            ("a1b-x's", "A1B X'S"),
            ("  ßtraße\tGPT ", "Sstraße GPT"),
            ("v2ray", "V2Ray"),
            ("", ""),
        ];
        for (name, expected) in cases {
            assert_eq!(Names::new().unwrap().title(name), expected);
        }
    }
}
