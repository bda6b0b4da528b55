//! Code that is run because of the name of its file.

use pickle_core::Error;
use read_at::ReadAt;

use super::named::text;
use crate::problem::Problem;

/// Endings of code that is not Python, and what it is.
const CODE: [(&[&str], &str); 5] = [
    (&["so", "dll", "dylib", "pyd"], LIBRARY),
    (&["exe"], "a program"),
    (&["class", "jar"], "code of Java"),
    (&["sh", "bash", "bat", "cmd", "ps1"], "a script of a shell"),
    (&["whl", "egg"], "a package of Python"),
];

const LIBRARY: &str = "a library";

/// Bytes of a `.pth` file that are read.
const LINES: u64 = 1 << 16;

/// Python, libraries, scripts and packages.
///
/// `name` is without folders and in lower case.
pub(super) fn scan(source: &dyn ReadAt, name: &str) -> Result<Option<Problem>, Error> {
    let Some((front, ending)) = name.rsplit_once('.') else { return Ok(None) };
    Ok(match ending {
        "py" | "pyw" | "pyc" | "pyo" => Some(Problem::PythonFile {}),
        "pth" => imports(&text(source, LINES)?).then_some(Problem::PythonFile {}),
        _ if is_version(front, ending) => Some(Problem::CodeFile { kind: LIBRARY }),
        ending => {
            let code = CODE.iter().find(|(endings, _)| endings.contains(&ending));
            code.map(|(_, kind)| Problem::CodeFile { kind })
        }
    })
}

/// Whether Python runs a line of a `.pth` file when it starts, if the file is in a folder of packages.
fn imports(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("import ") || line.starts_with("import\t"))
}

/// `libname.so.1.2`.
fn is_version(front: &str, ending: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let front = front.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    is_number(ending) && front.ends_with(".so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_code_are_found_by_their_endings() {
        let code = |name: &str, bytes: &[u8]| {
            let problem = scan(&bytes, name).expect("in memory");
            problem.map(|problem| (problem.code(), alloc::string::ToString::to_string(&problem)))
        };
        for (names, expected) in [
            (&["b.so", "a.dll", "a.dylib", "a.pyd", "liba.so.1", "a.so.6.0"][..], LIBRARY),
            (&["a.exe"], "a program"),
            (&["b.class", "a.jar"], "code of Java"),
            (&["a.sh", "a.bash", "a.bat", "a.cmd", "a.ps1"], "a script of a shell"),
            (&["a.whl", "a.egg"], "a package of Python"),
        ] {
            for name in names {
                assert_eq!(code(name, b"x"), Some(("sc-code-file", expected.into())), "{name}");
            }
        }
        for name in ["a", "so", "a.bin", "a.so.x", "a.so.", "a.1", "aso.1", "a.txt", ""] {
            assert_eq!(code(name, b"import os"), None, "{name}");
        }
        for name in ["a.py", "a.pyw", "a.pyc", "a.pyo"] {
            assert_eq!(code(name, b"x").map(|(code, _)| code), Some("sc-python-file"), "{name}");
        }
    }

    #[test]
    fn files_of_paths_are_code_if_they_import() {
        let late = |lines: usize| [&b"x\n".repeat(lines), b"import x".as_slice()].concat();
        for (bytes, expected) in [
            (b"import os; os.system('x')".as_slice(), true),
            (b"lib\nimport\tos", true),
            (b"lib\n import os", false),
            (b"important", false),
            (&late((1 << 15) - 4), true),
            (&late(1 << 15), false),
        ] {
            let found = scan(&bytes, "a.pth").expect("in memory");
            assert_eq!(found == Some(Problem::PythonFile {}), expected, "{}", bytes.len());
        }
    }
}
