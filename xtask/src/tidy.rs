//! Rules for the text of the project.

use std::fs;
use std::path::Path;

use crate::process::{command, stdout_of};
use crate::task::{Failure, Outcome, Session};
use crate::terms;

/// Longest Rust file; past it, look for the seam. Tests, fuzz targets and vectors may be longer.
const MAX_LINES: usize = 600;

/// Longest table cell of a page, in characters.
const MAX_CELL: usize = 200;

/// The crates with one unsafe module: one maps files, one reads memory of Python objects, one gives functions the names under
/// which JavaScript finds them, one takes pointers of C, one counts what an allocator is asked for, one starts without an operating
/// system.
const UNSAFE_CRATES: [&str; 6] = [
    "crates/apr-capi/",
    "crates/st-mmap/",
    "crates/apr-python/",
    "crates/apr-wasm/",
    "crates/test-meter/",
    "crates/conformance/firmware/",
];

/// Text that must not occur, in pieces so that this file does not contain it.
const FORBIDDEN: &[Rule] = &[
    Rule::path(concat!("/wo", "rk/")),
    Rule::path(concat!("/ro", "ot/")),
    Rule::path(concat!("/tmp/", "bash_")),
    Rule::everywhere(concat!("../", "shared"), "reaches outside the project"),
    Rule::everywhere(concat!("crates", ".io"), "names a registry"),
    Rule::everywhere(concat!("py", "pi.org"), "names a registry"),
    Rule::everywhere(concat!("python", "hosted.org"), "names a registry"),
    Rule::everywhere(concat!("npm", "js.org"), "names a registry"),
    Rule::everywhere(concat!("deb", "ian.org"), "names a registry"),
    Rule::everywhere(concat!("FIX", "ME"), "an unfinished thought"),
    Rule::word(concat!("XX", "X"), "an unfinished thought"),
    Rule::rust(concat!("todo", "!"), "unfinished code"),
    Rule::rust(concat!("unimplemented", "!"), "unfinished code"),
    Rule::rust(concat!("#[ign", "ore"), "a test that does not run"),
    Rule::rust(concat!("```ign", "ore"), "an example that does not run"),
    Rule::rust(concat!("```no_", "run"), "an example that does not run"),
];

/// One text that must not occur, and why.
struct Rule {
    needle: &'static str,
    reason: &'static str,
    rust_only: bool,
    place: Place,
}

/// What may stand around a needle for it to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// No letter on either side.
    WholeWord,
    /// A name after it: `"/r/"` is a prefix in a search, `/r/file` is a path.
    BeforeName,
}

impl Rule {
    const fn everywhere(needle: &'static str, reason: &'static str) -> Self {
        Self { needle, reason, rust_only: false, place: Place::Anywhere }
    }

    const fn path(needle: &'static str) -> Self {
        Self { needle, reason: "a path of one machine", rust_only: false, place: Place::BeforeName }
    }

    const fn word(needle: &'static str, reason: &'static str) -> Self {
        Self { needle, reason, rust_only: false, place: Place::WholeWord }
    }

    const fn rust(needle: &'static str, reason: &'static str) -> Self {
        Self { needle, reason, rust_only: true, place: Place::Anywhere }
    }

    fn occurs_in(&self, line: &str) -> bool {
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        line.match_indices(self.needle).any(|(at, found)| {
            let before = line.get(..at).and_then(|text| text.chars().next_back());
            let after = line.get(at + found.len()..).and_then(|text| text.chars().next());
            match self.place {
                Place::Anywhere => true,
                Place::WholeWord => !in_word(before) && !in_word(after),
                Place::BeforeName => in_word(after) || after == Some('.'),
            }
        })
    }
}

/// Checks every file that git would keep.
///
/// # Errors
///
/// A failure if a file breaks a rule; each is printed with its place.
pub(crate) fn check(session: &Session) -> Outcome {
    let files = files(session)?;
    let mut problems = Vec::new();
    for name in &files {
        let path = session.root().join(name);
        // A dangling link or a deleted file: git lists it, but it cannot be read.
        let Ok(bytes) = fs::read(&path) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        problems.extend(problems_in(name, &text));
        problems.extend(terms::problems_in(name, &text));
        if name.ends_with(".md") {
            let folder = path.parent().unwrap_or(session.root());
            let missing = links(&text).filter(|(_, file, fragment)| match (*file, *fragment) {
                ("", fragment) => !has_heading(&text, fragment),
                (file, "") => !folder.join(file).exists(),
                (file, fragment) => {
                    let page = fs::read_to_string(folder.join(file));
                    !page.is_ok_and(|page| !file.ends_with(".md") || has_heading(&page, fragment))
                }
            });
            problems.extend(missing.map(|(line, file, fragment)| {
                format!("{name}:{line}: link to `{file}#{fragment}`, which is not there")
            }));
            let long = long_cells(&text);
            problems.extend(long.map(|(line, len)| {
                format!("{name}:{line}: a table cell of {len} characters: write sentences under the table")
            }));
        }
    }
    if problems.is_empty() {
        println!("tidy: {} files", files.len());
        return Ok(());
    }
    problems.iter().for_each(|problem| eprintln!("tidy: {problem}"));
    Err(format!("{} places break a rule", problems.len()).into())
}

/// The files git tracks or would track; without git, every file outside the ignored folders.
fn files(session: &Session) -> Result<Vec<String>, Failure> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    if let Ok(listed) = stdout_of(&mut command(session, "git", &args)) {
        return Ok(listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect());
    }
    let mut found = Vec::new();
    walk(session.root(), "", &mut found)?;
    Ok(found)
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| Failure::from(format!("{}: {error}", folder.display()));
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "target"
            || name == ".git"
            || prefix == "fuzz/" && (name == "artifacts" || name == "coverage")
        {
            continue;
        }
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            walk(&entry.path(), &format!("{prefix}{name}/"), found)?;
        } else {
            found.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

/// The rules that `text`, the file called `name`, breaks.
fn problems_in(name: &str, text: &str) -> Vec<String> {
    let is_rust = name.ends_with(".rs");
    let mut problems = Vec::new();
    // A lock file names the registry its sources come from.
    if !name.ends_with("Cargo.lock") {
        for (idx, line) in text.lines().enumerate() {
            let broken = FORBIDDEN.iter().filter(|rule| (is_rust || !rule.rust_only) && rule.occurs_in(line));
            problems
                .extend(broken.map(|rule| format!("{name}:{}: `{}`: {}", idx + 1, rule.needle, rule.reason)));
        }
    }
    if is_rust {
        let lines = text.lines().count();
        let may_be_long = name.starts_with("fuzz/") || name.contains("/tests/") || name.contains("/vectors/");
        if lines > MAX_LINES && !may_be_long {
            problems.push(format!("{name}: {lines} lines, more than {MAX_LINES}: look for the seam"));
        }
        if name.ends_with("/mod.rs") {
            problems.push(format!("{name}: name the file after the module"));
        }
    }
    let is_crate_root =
        name.starts_with("crates/") && (name.ends_with("/src/lib.rs") || name.ends_with("/src/main.rs"));
    let forbids = text.contains("#![forbid(unsafe_code)]");
    let allowed =
        UNSAFE_CRATES.iter().any(|folder| name.starts_with(folder)) && text.contains("#![deny(unsafe_code)]");
    if is_crate_root && !forbids && !allowed {
        problems.push(format!("{name}: no `#![forbid(unsafe_code)]`"));
    }
    problems
}

/// The lines of a Markdown page outside of code blocks, by index.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    page.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The table cells that are longer than [`MAX_CELL`], by line. Lists of code spans are exempt.
fn long_cells(page: &str) -> impl Iterator<Item = (usize, usize)> {
    let rows = prose(page).filter(|(_, line)| line.starts_with('|'));
    rows.flat_map(|(idx, row)| {
        let is_list = |cell: &str| cell.split('`').step_by(2).all(|text| matches!(text, "" | ", " | " | "));
        let cells = row.split(" | ").map(|cell| cell.trim_matches(['|', ' ']));
        let long = cells.filter(move |cell| cell.chars().count() > MAX_CELL && !is_list(cell));
        long.map(move |cell| (idx + 1, cell.chars().count()))
    })
}

/// The relative links of a Markdown page: their lines, the file, which is empty for the page itself, and the fragment.
fn links(page: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    prose(page).flat_map(|(idx, line)| {
        let targets =
            line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        let relative = targets.filter(|target| !target.contains(':') && !target.is_empty());
        relative.map(move |target| {
            let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
            (idx + 1, file, fragment)
        })
    })
}

/// Whether a page has the heading that a fragment names: in small letters, with hyphens for spaces, without punctuation.
fn has_heading(page: &str, fragment: &str) -> bool {
    let is_named = |heading: &str| {
        let letters = heading.trim_start_matches('#').trim().chars().filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ => c.is_alphanumeric().then_some(c),
        });
        letters.flat_map(char::to_lowercase).eq(fragment.chars())
    };
    prose(page).any(|(_, line)| line.starts_with('#') && is_named(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_forbidden_text_is_found_with_its_line() {
        for rule in FORBIDDEN {
            let name = if rule.place == Place::BeforeName { "file" } else { "" };
            let line = format!("foo {}{name}", rule.needle);
            let found = problems_in("crates/a/src/b.rs", &format!("fine\n{line}\n"));
            assert_eq!(found, [format!("crates/a/src/b.rs:2: `{}`: {}", rule.needle, rule.reason)]);
            assert_eq!(problems_in("docs/a.md", &line).is_empty(), rule.rust_only);
        }
    }

    #[test]
    fn part_of_a_longer_word_is_not_a_marker() {
        let marker = concat!("XX", "X");
        assert_eq!(problems_in("a.md", &format!("{marker}X a{marker} {marker}_")), [""; 0]);
        assert_eq!(problems_in("a.md", &format!("({marker}) \n{marker}.")).len(), 2);
    }

    #[test]
    fn a_prefix_to_look_for_is_not_a_path() {
        assert_eq!(problems_in("a.rs", concat!("[\"/ro", "ot/\", \"/wo", "rk/\"]")), [""; 0]);
    }

    #[test]
    fn lock_files_may_name_the_registry() {
        assert_eq!(problems_in("fuzz/Cargo.lock", concat!("crates", ".io")), [""; 0]);
    }

    #[test]
    fn long_files_and_module_roots_are_reported() {
        let long = "//\n".repeat(MAX_LINES + 1);
        assert_eq!(problems_in("crates/a/src/b.rs", &long).len(), 1);
        assert_eq!(problems_in("crates/a/tests/it/b.rs", &long), [""; 0]);
        assert_eq!(problems_in("crates/a/src/b/mod.rs", "").len(), 1);
    }

    #[test]
    fn crate_roots_forbid_unsafe_code() {
        let (forbid, deny) = ("#![forbid(unsafe_code)]", "#![deny(unsafe_code)]");
        assert_eq!(problems_in("crates/a/src/lib.rs", deny).len(), 1);
        assert_eq!(problems_in("crates/a/src/lib.rs", forbid), [""; 0]);
        assert_eq!(problems_in("crates/st-mmap/src/lib.rs", deny), [""; 0]);
        assert_eq!(problems_in("crates/st-mmap/src/lib.rs", "").len(), 1);
    }

    #[test]
    fn long_table_cells_are_reported() {
        let long = "word ".repeat(41);
        let code = "`code`, ".repeat(30);
        let page = format!("{long}\n| a | {long} |\n| a | {code}`b` |\n```\n| {long} |\n```\n");
        assert_eq!(long_cells(&page).collect::<Vec<_>>(), [(2, 204)]);
    }

    #[test]
    fn relative_links_are_read_from_prose_only() {
        let page = "[a](b.md#c) [d](#e) [f](https://g)\n```\n[h](i.md)\n```\n[j](k/l.md)";
        assert_eq!(links(page).collect::<Vec<_>>(), [(1, "b.md", "c"), (1, "", "e"), (5, "k/l.md", "")]);
    }

    #[test]
    fn fragments_are_headings() {
        let page = "# A `b-c`, (d)\n```\n# no\n```\n";
        assert!(has_heading(page, "a-b-c-d"));
        assert!(!has_heading(page, "no") && !has_heading(page, "a"));
    }
}
