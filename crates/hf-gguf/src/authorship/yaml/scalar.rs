//! Values without parts: which are text, and which something else.

use alloc::string::String;
use alloc::vec::Vec;

use super::Yaml;
use crate::regex::{Budget, Regex};

/// What a plain scalar is, by the rules of YAML 1.1 as PyYAML has them.
const NULL: &str = "~|null|Null|NULL|";
const FALSE: &str = "no|No|NO|false|False|FALSE|off|Off|OFF";
const TRUE: &str = "yes|Yes|YES|true|True|TRUE|on|On|ON";
const NUMBER: &str = "[-+]?[0-9][0-9_]*[.][0-9_]*([eE][-+][0-9]+)?|[.][0-9][0-9_]*([eE][-+][0-9]+)?\
    |[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+[.][0-9_]*|[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+\
    |[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+";
const OTHER: &str = "[-+]?[.](inf|Inf|INF)|[.](nan|NaN|NAN)|<<|=|[0-9]{4}-[0-9][0-9]-[0-9][0-9]\
    |[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?([Tt]|[ \t]+)[0-9][0-9]?:[0-9][0-9]:[0-9][0-9]([.][0-9]*)?([ \t]*(Z|[-+][0-9][0-9]?(:[0-9][0-9])?))?";

/// A text, and whether it has no quotes, so that it may be a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Scalar {
    pub(in super::super) text: String,
    is_plain: bool,
}

impl Scalar {
    pub(super) fn plain(text: impl Into<String>) -> Yaml {
        Yaml::Scalar(Self { text: text.into(), is_plain: true })
    }

    pub(super) fn quoted(text: String) -> Yaml {
        Yaml::Scalar(Self { text, is_plain: false })
    }

    /// Whether it is null.
    pub(in super::super) fn is_null(&self) -> bool {
        self.is(NULL)
    }

    /// Whether it is false or zero.
    pub(in super::super) fn is_false(&self) -> bool {
        let digits = match self.text.contains('x') {
            true => &self.text,
            false => self.text.split(['e', 'E']).next().unwrap_or_default(),
        };
        let is_zero = !digits.contains(|c: char| {
            c != '0' && c.is_ascii_hexdigit() && (c.is_ascii_digit() || self.text.contains('x'))
        });
        self.is(FALSE) || (is_zero && self.is(NUMBER))
    }

    /// Whether it is text: neither null nor a number, a truth value or a date.
    pub(in super::super) fn is_text(&self) -> bool {
        !(self.is(NULL) || self.is(FALSE) || self.is(TRUE) || self.is(NUMBER) || self.is(OTHER))
    }

    fn is(&self, expression: &str) -> bool {
        let may_be = self.text.is_empty()
            || self.text.starts_with(|c: char| c.is_ascii_digit() || "-+.~<=yYnNtTfFoO".contains(c));
        if !self.is_plain || !may_be || self.text.len() > 100 {
            return false;
        }
        let chars: Vec<char> = self.text.chars().collect();
        let regex = Regex::new(&alloc::format!(r"\A(?:{expression})\z"));
        regex
            .and_then(|regex| regex.matches(&chars, &mut Budget::default()))
            .is_ok_and(|found| !found.is_empty())
    }
}
