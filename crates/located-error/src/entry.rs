//! The table of kinds: what each code means and what to do about it.

#[cfg(feature = "alloc")]
use alloc::{format, string::String, vec::Vec};

/// What an error means to the user of a program. It decides the exit code of `apr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Category {
    /// The caller's arguments contradict each other or the input.
    Usage,
    /// The input is malformed, or is not what it claims to be.
    Invalid,
    /// A checksum, a signature or a key does not match.
    Verification,
    /// The operating system reported an error, or memory ran out.
    Io,
    /// The input is of a known format or version that this library does not read.
    Unsupported,
    /// A defect of the calling program.
    Internal,
    /// The work ended early because no one needs the rest: not a failure.
    Stopped,
}

/// One kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Stable identifier, for example `st-offsets`.
    pub code: &'static str,
    /// Decides the exit code of a program.
    pub category: Category,
    /// The message, with the names of its values in braces.
    pub message: &'static str,
    /// What happened and why it is refused, in sentences.
    pub meaning: &'static str,
    /// The next step: one line without a full stop.
    pub remedy: &'static str,
}

impl Entry {
    /// An entry; `meaning` may begin with white space, as doc comments do.
    #[must_use]
    pub const fn new(
        code: &'static str,
        category: Category,
        message: &'static str,
        meaning: &'static str,
        remedy: &'static str,
    ) -> Self {
        Self { code, category, message, meaning: meaning.trim_ascii(), remedy }
    }
}

/// What is wrong with a table: for the test of a crate that declares kinds. The codes begin with `prefix` and occur once, messages are
/// one line without a full stop, meanings are sentences, remedies are not.
#[cfg(feature = "alloc")]
#[must_use]
pub fn problems(table: &[Entry], prefix: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (idx, entry) in table.iter().enumerate() {
        let Entry { code, message, meaning, remedy, .. } = entry;
        let mut check = |holds: bool, problem: &str| {
            if !holds {
                problems.push(format!("{code}: {problem}"));
            }
        };
        check(code.starts_with(prefix), "another prefix");
        check(table.iter().take(idx).all(|earlier| earlier.code != *code), "occurs twice");
        // A message of values alone is checked where the values are made.
        check(message.len() > 8 || message.contains('{'), "message too short");
        check(
            !message.ends_with('.') && !message.contains('\n'),
            "message is not one line without a full stop",
        );
        check(meaning.ends_with('.') && !meaning.contains("  "), "meaning is not a sentence");
        check(
            !remedy.is_empty() && !remedy.ends_with('.') && !remedy.contains('\n'),
            "remedy is not one line without a full stop",
        );
    }
    problems
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_checked() {
        let good = Entry::new("x-a", Category::Usage, "a message", " A meaning.", "a remedy");
        assert_eq!(good.meaning, "A meaning.");
        assert!(problems(&[good], "x-").is_empty());
        assert_eq!(problems(&[good, good], "x-"), ["x-a: occurs twice"]);
        assert_eq!(problems(&[good], "y-"), ["x-a: another prefix"]);
        let bad = Entry { message: "x.", meaning: "a", remedy: "", ..good };
        assert_eq!(problems(&[bad], "x-").len(), 4);
        assert!(problems(&[Entry { message: "{what}", ..good }], "x-").is_empty());
    }
}
