//! `lint`: words that the glossary replaces must not occur in pages, messages, help and comments.
//!
//! Pages and the sources of the web page and the Python package are checked as a whole, Rust sources in their comments, those
//! of libraries and programs also in their string literals. Code spans (between backquotes) and the column "instead of" of the
//! glossary are exempt.

use core::ops::Range;

/// Words and, after the colon, the term to use. A word also matches with a plural `s`.
const REPLACED: &[(&str, &str)] = &[
    ("door", "entry point, function, API"),
    ("room", "space, capacity; crate"),
    ("house", "workspace, architecture"),
    ("floor", "layer"),
    ("first generation", "version 1"),
    ("second generation", "version 2"),
    ("whoever", "anyone who, an attacker, the caller"),
    ("nobody", "no one, no reader, none"),
    ("somebody", "someone, another user, an attacker"),
];

/// The problems of one file: `name:line: ...`, one for each replaced word.
pub(crate) fn problems_in(name: &str, text: &str) -> Vec<String> {
    let spans: Vec<(usize, String)> = if name.ends_with(".rs") {
        let Rust { mut comments, literals } = rust(text);
        // The comments of kernels and of tests on rounding are about `floor` of numbers.
        comments.iter_mut().for_each(|(_, text)| *text = text.replace("floor", ""));
        if is_rust_with_messages(name) {
            comments.extend(literals);
            comments.sort_by_key(|(line, _)| *line);
        }
        comments
    } else if name.ends_with(".md") {
        prose(name, text)
    } else if is_front_end(name) {
        text.lines().map(str::to_owned).enumerate().collect()
    } else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    for (line, span) in spans {
        for (word, term) in REPLACED {
            if occurrences(&span, word).next().is_some() {
                problems.push(format!("{name}:{}: `{word}`: the glossary says {term}", line + 1));
            }
        }
    }
    problems
}

fn is_rust_with_messages(name: &str) -> bool {
    // The scanner's lists have names of other programs.
    name.starts_with("crates/")
        && name.contains("/src/")
        && !name.starts_with("crates/model-scan/src/allowed/")
}

/// Text of the web page and of the two packages that users see.
fn is_front_end(name: &str) -> bool {
    let of_wasm = name.starts_with("crates/apr-wasm/js/") || name.starts_with("crates/apr-wasm/www/");
    let of_python = name.starts_with("crates/apr-python/python/");
    let is_text = [".js", ".ts", ".html", ".py", ".pyi"].iter().any(|ending| name.ends_with(ending));
    (of_wasm || of_python) && is_text
}

/// The places of `word` in `text`, as a word of its own or with a plural `s`, in any case.
fn occurrences<'text>(text: &'text str, word: &str) -> impl Iterator<Item = Range<usize>> + 'text {
    // `--room` is an option and `Math.floor` a function.
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "_-.".contains(c));
    let continues = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "_-(".contains(c));
    let lower = text.to_ascii_lowercase();
    let found: Vec<usize> = lower.match_indices(word).map(|(at, _)| at).collect();
    let len = word.len();
    found.into_iter().filter_map(move |at| {
        let before = text.get(..at)?.chars().next_back();
        let rest = text.get(at + len..)?;
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        let is_word = !in_word(before) && !continues(rest.chars().next());
        is_word.then_some(at..at + len)
    })
}

/// The lines of a page without code blocks and code spans, and without the last column of the glossary.
fn prose(name: &str, page: &str) -> Vec<(usize, String)> {
    let is_glossary = name == "docs/glossary.md";
    let mut fenced = false;
    let mut lines = Vec::new();
    for (idx, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let mut shown = without_code(line);
        if is_glossary && line.starts_with('|') {
            shown = shown.split('|').take(3).collect();
        }
        // Targets of links are names of files.
        while let Some((before, rest)) = shown.split_once("](") {
            let after = rest.split_once(')').map_or("", |(_, after)| after);
            shown = format!("{before}]{after}");
        }
        lines.push((idx, shown));
    }
    lines
}

/// A line without its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Comments and string literals of Rust source, line by line, each with the index of its line.
struct Rust {
    comments: Vec<(usize, String)>,
    literals: Vec<(usize, String)>,
}

fn rust(source: &str) -> Rust {
    let bytes = source.as_bytes();
    let mut found = Rust { comments: Vec::new(), literals: Vec::new() };
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source[at..];
        let line = || source[..at].matches('\n').count();
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            found.comments.push((line(), without_code(&rest[..end])));
            at += end;
        } else if rest.starts_with("'\"'") || rest.starts_with("b'\"'") {
            at += rest.find("\"'").map_or(1, |quote| quote + 2);
        } else if let Some((start, end)) = literal(rest) {
            let (line, text) = (line(), &rest[start..end]);
            // A single word is a name: of an option, a key, a column.
            if text.contains(' ') {
                let parts = text.split('\n').enumerate();
                found.literals.extend(parts.map(|(idx, part)| (line + idx, part.to_owned())));
            }
            at += end + 1;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// Start and end of the content if `rest` begins with a string literal, raw or not.
fn literal(rest: &str) -> Option<(usize, usize)> {
    if let Some(text) = rest.strip_prefix('"') {
        let mut escaped = false;
        let end = text.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        return Some((1, end.map_or(rest.len(), |end| end + 1)));
    }
    let raw = rest.strip_prefix("r#\"")?;
    Some((3, raw.find("\"#").map_or(rest.len(), |end| end + 3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_words_of_pages_are_found_with_their_line() {
        let page = "fine\nThe back doors are open.\n```\nroom\n```\n`--room` and [text](house.md), ballroom, roomy\n";
        assert_eq!(problems_in("docs/a.md", page).len(), 1);
        assert!(problems_in("docs/a.md", page)[0].starts_with("docs/a.md:2: `door`"));
        assert_eq!(problems_in("README.md", "Whoever\n\nof the Second generation").len(), 2);
    }

    #[test]
    fn the_last_column_of_the_glossary_is_exempt() {
        let row = "| entry point | a function | door |\n";
        assert_eq!(problems_in("docs/glossary.md", row), [""; 0]);
        assert_eq!(problems_in("docs/other.md", row).len(), 1);
        assert_eq!(problems_in("docs/glossary.md", "| door | a function | |\n").len(), 1);
    }

    #[test]
    fn of_rust_sources_comments_and_messages_count() {
        let source = "// a door\nlet room = '\"';\nlet a = \"fine \\\" door\";\nlet b = r#\"x y\nnobody\"#;\nlet c = \"room\"; // `room`\n";
        let found = problems_in("crates/a/src/b.rs", source);
        assert_eq!(found.len(), 3);
        assert!(found[0].starts_with("crates/a/src/b.rs:1: `door`"), "{found:?}");
        assert!(found[1].starts_with("crates/a/src/b.rs:3: `door`"), "{found:?}");
        assert!(found[2].starts_with("crates/a/src/b.rs:5: `nobody`"), "{found:?}");
        assert_eq!(problems_in("crates/a/tests/it/b.rs", source).len(), 1);
    }
}
