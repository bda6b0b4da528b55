//! Chat templates, which are programs of Jinja.

use crate::problem::Problem;

/// Where a template leaves its sandbox: attributes of Python's insides, and the filter that reaches any attribute by a string.
const INSIDES: [&str; 4] = ["__", "\\x5f\\x5f", "\\u005f", "attr("];

/// What a template is.
pub(crate) fn judge(text: &str) -> Problem {
    let dense: alloc::string::String = text.split_whitespace().collect();
    let attribute = |at: usize| {
        // `|attr(`, not `hasattr(`.
        dense.get(..at).is_none_or(|before| before.ends_with('|'))
    };
    let reaches = INSIDES.iter().any(|word| match *word {
        "attr(" => dense.match_indices("attr(").any(|(at, _)| attribute(at)),
        "__" => dense.match_indices("__").any(|(at, _)| is_inside(&dense, at)),
        word => dense.contains(word),
    });
    if reaches { Problem::TemplateCode {} } else { Problem::ChatTemplate {} }
}

/// `__class__`: two underscores and a letter.
fn is_inside(text: &str, at: usize) -> bool {
    text.get(at + 2..).and_then(|rest| rest.bytes().next()).is_some_and(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_that_leave_the_sandbox_are_told_apart() {
        for (text, code) in [
            ("{% for m in messages %}{{ m['content'] | trim }}{% endfor %}", false),
            ("{{ '____' }} {{ hasattr(x) }}", false),
            ("{{ ''.__class__.__base__ }}", true),
            ("{{ x | attr ('a') }}", true),
            ("{{ x['\\x5f\\x5fclass'] }}", true),
        ] {
            assert_eq!(judge(text) == Problem::TemplateCode {}, code, "{text}");
        }
    }
}
