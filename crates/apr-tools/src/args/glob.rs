//! Patterns over tensor names: `*` matches any sequence of characters, `?` matches one, `\` takes the next literally.

use core::convert::Infallible;

use clap::Args;

use crate::error::{CODE_USAGE, Failure};
use crate::terminal::escape;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    pattern: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Literal(char),
    AnyOne,
    AnyRun,
}

impl Glob {
    pub(crate) fn new(pattern: &str) -> Self {
        let mut parts = Vec::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            parts.push(match c {
                '\\' => Part::Literal(chars.next().unwrap_or('\\')),
                '*' => Part::AnyRun,
                '?' => Part::AnyOne,
                c => Part::Literal(c),
            });
        }
        Self { pattern: pattern.to_owned(), parts }
    }

    /// The pattern as it was given.
    pub(crate) fn pattern(&self) -> &str {
        &self.pattern
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.captures(name).is_some()
    }

    /// The text matched by each `*`, the leftmost ones as short as possible; `None` if the name does not match.
    ///
    /// Only the last star is ever extended, so the time is the product of the two lengths at worst.
    pub(crate) fn captures(&self, name: &str) -> Option<Vec<String>> {
        let name: Vec<char> = name.chars().collect();
        // Begin and end of the run of each star met so far.
        let mut runs: Vec<(usize, usize)> = Vec::new();
        let mut last_star = None;
        let (mut at, mut part) = (0, 0);
        loop {
            match self.parts.get(part) {
                Some(Part::AnyRun) => {
                    runs.push((at, at));
                    last_star = Some(part);
                    part += 1;
                    continue;
                }
                Some(&Part::Literal(c)) if name.get(at) == Some(&c) => {
                    (at, part) = (at + 1, part + 1);
                    continue;
                }
                Some(Part::AnyOne) if at < name.len() => {
                    (at, part) = (at + 1, part + 1);
                    continue;
                }
                None if at == name.len() => break,
                _ => {}
            }
            // Mismatch: the last star takes one character more.
            let (star, run) = (last_star?, runs.last_mut()?);
            if run.1 == name.len() {
                return None;
            }
            run.1 += 1;
            (at, part) = (run.1, star + 1);
        }
        Some(runs.iter().map(|&(begin, end)| name[begin..end].iter().collect()).collect())
    }

    fn n_stars(&self) -> usize {
        self.parts.iter().filter(|&&part| part == Part::AnyRun).count()
    }
}

/// A rule `FROM=TO`; the n-th `*` of TO is the text matched by the n-th `*` of FROM.
#[derive(Clone, Debug)]
pub(crate) struct Rename {
    from: Glob,
    to: Glob,
}

impl Rename {
    /// Reads `FROM=TO`, split at the first `=`.
    ///
    /// # Errors
    ///
    /// A usage failure without `=`, with an empty FROM or TO, with `?` in TO, or with more `*` in TO than in FROM.
    pub(crate) fn parse(rule: &str) -> Result<Self, Failure> {
        let refused = |why: &str| {
            Failure::new(CODE_USAGE, format!("rename rule `{rule}` {why}"))
                .help("write FROM=TO, for example --rename 'encoder.*=bert.encoder.*'")
        };
        let (from, to) = rule.split_once('=').ok_or_else(|| refused("has no `=`"))?;
        if from.is_empty() || to.is_empty() {
            return Err(refused("has an empty side"));
        }
        let rename = Self { from: Glob::new(from), to: Glob::new(to) };
        if rename.to.parts.contains(&Part::AnyOne) {
            return Err(refused("has a `?` on its right side"));
        }
        if rename.to.n_stars() > rename.from.n_stars() {
            return Err(refused("has more `*` on its right side than on its left"));
        }
        Ok(rename)
    }

    /// The new name, if the rule applies.
    pub(crate) fn apply(&self, name: &str) -> Option<String> {
        let mut captures = self.from.captures(name)?.into_iter();
        let mut renamed = String::new();
        for part in &self.to.parts {
            match part {
                Part::Literal(c) => renamed.push(*c),
                _ => renamed.push_str(&captures.next().unwrap_or_default()),
            }
        }
        Some(renamed)
    }
}

/// Which tensors a command is about: all, or those of --select, without those of --exclude.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Selection {
    /// Only tensors whose whole name matches; `*` is any run, `?` one character (repeatable).
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    select: Vec<Glob>,
    /// Leave out tensors whose name matches (repeatable).
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    exclude: Vec<Glob>,
}

fn glob(pattern: &str) -> Result<Glob, Infallible> {
    Ok(Glob::new(pattern))
}

/// Which files a command is about: all, or those of --include, without those of --exclude.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PathSelection {
    /// Only files whose whole path matches; `*` is any run, `/` too, `?` one character (repeatable).
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    include: Vec<Glob>,
    /// Leave out files whose path matches (repeatable).
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    exclude: Vec<Glob>,
}

impl PathSelection {
    pub(crate) fn includes(&self, path: &str) -> bool {
        is_in(path, &self.include, &self.exclude)
    }
}

fn is_in(name: &str, only: &[Glob], without: &[Glob]) -> bool {
    let matches = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(name));
    (only.is_empty() || matches(only)) && !matches(without)
}

impl Selection {
    /// The patterns of --select.
    pub(crate) fn select(&self) -> impl Iterator<Item = &Glob> {
        self.select.iter()
    }

    /// The patterns of --exclude.
    pub(crate) fn exclude(&self) -> impl Iterator<Item = &Glob> {
        self.exclude.iter()
    }

    pub(crate) fn includes(&self, name: &str) -> bool {
        is_in(name, &self.select, &self.exclude)
    }
}

/// The advice to leave these tensors out; a pattern for each would be long if there are many.
pub(crate) fn leave_out(command: &str, names: &[&str]) -> String {
    const NAMED: usize = 8;
    let words = names.iter().take(NAMED).map(|name| format!(" --exclude {}", escape::word(name)));
    let words: String = words.collect();
    match names.len().checked_sub(NAMED) {
        Some(more @ 1..) => format!("leave them out: `{command}{words}`, and {more} more"),
        _ if names.len() > 1 => format!("leave the {} such tensors out: `{command}{words}`", names.len()),
        _ => format!("leave the tensor out: `{command}{words}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_span_dots_and_may_be_empty() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "a.b", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("*.weight", "x.y.weight", true),
            ("*.weight", "x.y.bias", false),
            ("layer.?.w", "layer.3.w", true),
            ("layer.?.w", "layer.30.w", false),
            ("*a*b", "xaaxb", true),
            ("*ab", "aab", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("é?", "é漢", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn hostile_patterns_end_in_good_time() {
        let pattern = "a*".repeat(64) + "b";
        assert!(!Glob::new(&pattern).matches(&"a".repeat(20_000)));
    }

    #[test]
    fn captures_fill_the_new_name_in_order() {
        let rule = Rename::parse("h.*.attn.*=layers.*.attention.*").unwrap();
        assert_eq!(rule.apply("h.11.attn.w").as_deref(), Some("layers.11.attention.w"));
        assert_eq!(rule.apply("h.11.mlp.w"), None);
        assert_eq!(Rename::parse("a=b=c").unwrap().apply("a").as_deref(), Some("b=c"));
        assert_eq!(Rename::parse("*.x=y").unwrap().apply("q.x").as_deref(), Some("y"));
    }

    #[test]
    fn rules_without_sense_are_usage_errors() {
        for rule in ["ab", "=b", "a=", "a=*", "a*=b?"] {
            assert_eq!(Rename::parse(rule).unwrap_err().code(), CODE_USAGE, "{rule}");
        }
    }
}
