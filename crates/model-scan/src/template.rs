//! Chat templates, which are programs of Jinja.

mod lexer;

use crate::problem::Problem;

/// Bytes of a template that are judged.
pub(crate) const MAX: usize = 1 << 20;

/// Escapes of an underscore in a string, in lower case: there is no other use for them.
const ESCAPES: [&str; 4] = ["\\x5f", "\\u005f", "\\u0000005f", "\\137"];

/// What a template is: whether it leaves its sandbox, by attributes of Python's insides or by the filter that reaches any attribute by a string.
pub(crate) fn judge(text: &str) -> Problem {
    if text.len() > MAX {
        return Problem::Unopened { reason: "a chat template of more than 1 MiB" };
    }
    let dense: alloc::string::String = text.split_whitespace().collect();
    let lower = dense.to_ascii_lowercase();
    let reaches = dense.match_indices("__").any(|(at, _)| is_inside(&dense, at))
        || dense.match_indices("attr(").any(|(at, _)| is_filter(&dense, at))
        // A character by its name.
        || dense.contains("\\N{")
        || ESCAPES.iter().any(|escape| lower.contains(escape));
    if reaches { Problem::TemplateCode {} } else { Problem::ChatTemplate {} }
}

/// `|attr(`, not `hasattr(`.
fn is_filter(text: &str, at: usize) -> bool {
    text.get(..at).is_some_and(|before| before.ends_with('|'))
}

/// `__class__`: two underscores and a letter.
fn is_inside(text: &str, at: usize) -> bool {
    text.get(at + 2..).and_then(|rest| rest.bytes().next()).is_some_and(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_judged_as_a_whole_or_not_at_all() {
        let long = |len: usize| "x".repeat(len - 9) + "__class__";
        assert_eq!(judge(&long(MAX)), Problem::TemplateCode {});
        assert_eq!(judge(&long(MAX + 1)).code(), "sc-unopened");
    }

    #[test]
    fn templates_that_leave_the_sandbox_are_told_apart() {
        for (text, code) in [
            ("{% for m in messages %}{{ m['content'] | trim }}{% endfor %}", false),
            ("{{ '____' }} {{ hasattr(x) }}", false),
            ("{{ ''.__class__.__base__ }}", true),
            ("{{ x | attr ('a') }}", true),
            ("{{ x['\\x5f\\x5fclass'] }}", true),
            ("{{ x['_\\x5Fclass'] }}", true),
            ("{{ x['_\\u005fclass'] }}", true),
            ("{{ x['_\\U0000005fclass'] }}", true),
            ("{{ x['_\\137class'] }}", true),
            ("{{ x['_\\N{LOW LINE}class'] }}", true),
            ("{{ '\\n{' }} {{ x__ }} {{ ab__ }}", false),
        ] {
            assert_eq!(judge(text) == Problem::TemplateCode {}, code, "{text}");
        }
    }
}
