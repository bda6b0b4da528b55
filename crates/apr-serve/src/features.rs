//! Features by their names.

use core::fmt::Display;

use crate::refusal::Refusal;

/// Longest part of a name that a response repeats, in characters.
const SHOWN: usize = 60;

/// The names of a model's features.
#[derive(Clone, Debug)]
pub(crate) struct Features {
    names: Vec<String>,
    /// Indices of the names, in the order of the names.
    by_name: Vec<usize>,
}

impl Features {
    /// `None` if a name is that of two features.
    pub(crate) fn new(names: Vec<String>) -> Option<Self> {
        let mut by_name: Vec<usize> = (0..names.len()).collect();
        by_name.sort_by_key(|&idx| names.get(idx));
        let is_unique = by_name.windows(2).all(|pair| names.get(pair[0]) != names.get(pair[1]));
        is_unique.then_some(Self { names, by_name })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Index of the feature of that name; where names come in their order, `guess` finds it at once.
    fn find(&self, name: &str, guess: usize) -> Option<usize> {
        if self.names.get(guess).is_some_and(|found| found == name) {
            return Some(guess);
        }
        let name_of = |idx: usize| self.names.get(idx).map(String::as_str);
        let at = self.by_name.binary_search_by(|&idx| name_of(idx).cmp(&Some(name))).ok()?;
        self.by_name.get(at).copied()
    }
}

/// Which features a row has named.
#[derive(Debug, Default)]
pub(crate) struct Named {
    seen: Vec<bool>,
    count: usize,
}

impl Named {
    /// Begins a row.
    pub(crate) fn begin(&mut self, features: &Features) {
        self.seen.clear();
        self.seen.resize(features.names.len(), false);
        self.count = 0;
    }

    /// The feature of the next name.
    ///
    /// # Errors
    ///
    /// If there is none, or it was named before.
    pub(crate) fn next(&mut self, features: &Features, name: &str) -> Result<usize, Refusal> {
        let idx = features
            .find(name, self.count)
            .ok_or_else(|| refused(format_args!("`{}` is not a feature of the model", cut(name))))?;
        match self.seen.get_mut(idx) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(refused(format_args!("the feature `{}` is given twice", cut(name)))),
        }
        self.count += 1;
        Ok(idx)
    }

    /// Ends a row.
    ///
    /// # Errors
    ///
    /// If a feature was not named.
    pub(crate) fn end(&self, features: &Features) -> Result<(), Refusal> {
        match self.seen.iter().position(|seen| !seen) {
            None => Ok(()),
            Some(idx) => {
                let name = features.names.get(idx).map(String::as_str).unwrap_or_default();
                Err(refused(format_args!("the feature `{}` is missing", cut(name))))
            }
        }
    }
}

/// Names of features, and a model that has none.
pub(crate) fn unnamed() -> Refusal {
    let help = "send the numbers of each row without names, in the order of the model's inputs";
    Refusal::of_body("sv-feature", "the model does not know the names of its features", help)
}

fn refused(what: impl Display) -> Refusal {
    Refusal::of_body("sv-feature", what, "GET /model lists the names of the features")
}

pub(crate) fn cut(name: &str) -> String {
    let mut chars = name.chars();
    let mut shown: String = chars.by_ref().take(SHOWN).collect();
    if chars.next().is_some() {
        shown.push_str("...");
    }
    shown
}
