//! `python valgrind`: our tests under memcheck, which checks every memory access.

use std::fs;
use std::path::Path;

use super::{FOLDER, close, is_closing};
use crate::process::{command, step_with_lines, succeeds};
use crate::task::{Outcome, Session, skipped};

/// The tests that go through all of the native module; the rest would only take longer.
const TESTS: [&str; 6] = [
    "tests/test_numpy.py",
    "tests/test_files.py",
    "tests/test_vectors.py",
    "tests/test_apr.py",
    "tests/test_sealed.py",
    "tests/test_gguf.py",
];

/// It counts the memory of a process, most of which is valgrind's here.
const LEFT_OUT: &str = "tests/test_numpy.py::test_only_what_is_touched_is_read";

/// The frame of Python code that runs.
const INTERPRETER: &str = "_PyEval";

/// What names our functions in what memcheck reports: the interpreter and the loader have reports of their own.
const OURS: [&str; 2] = ["_native", "apr_python"];

/// Runs the tests and refuses a report about a function of ours.
pub(super) fn run(session: &mut Session, folder: &Path, python: &Path) -> Outcome {
    if !succeeds(&mut command(session, "valgrind", &["--version"])) {
        return Err(skipped("needs valgrind"));
    }
    let log = folder.join("valgrind.log");
    let mut memcheck = command(session, "valgrind", &["--leak-check=no", "--num-callers=40"]);
    memcheck.arg(format!("--log-file={}", log.display())).arg(python);
    memcheck.args(["-m", "pytest", "-p", "no:cacheprovider", "--quiet", "--deselect", LEFT_OUT]).args(TESTS);
    // Python's own allocator would hide where one object ends and the next begins.
    memcheck.env("PYTHONMALLOC", "malloc").current_dir(session.root().join(FOLDER));
    let mut closing = None;
    let outcome = step_with_lines(&mut memcheck, |line| {
        if is_closing(line) {
            closing = Some(line.to_owned());
        }
    });
    close(session, "our tests under valgrind", (closing, outcome))?;
    let report = fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    match blamed(&report).first() {
        Some(report) => {
            Err(format!("a report with a function of ours in {}:\n{report}", log.display()).into())
        }
        None => {
            println!("python: no report of memcheck is about a function of ours or what one called");
            Ok(())
        }
    }
}

/// The reports whose innermost frames are ours, or were called by ours without Python code in between.
fn blamed(log: &str) -> Vec<String> {
    // `==12345== text`: an empty text divides the reports.
    let texts: Vec<&str> =
        log.lines().map(|line| line.splitn(3, "==").nth(2).unwrap_or_default().trim()).collect();
    let is_ours = |report: &&[&str]| {
        let frames = report.iter().take_while(|frame| !frame.contains(INTERPRETER));
        frames.into_iter().any(|frame| OURS.iter().any(|name| frame.contains(name)))
    };
    texts.split(|text| text.is_empty()).filter(is_ours).map(|report| report.join("\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_ours_unless_python_code_runs_in_between() {
        let log = "==1== Memcheck\n==1== \n\
            ==1== Invalid read\n==1==    at 0x1: memcpy\n==1==    by 0x2: ??? (in apr/_native.abi3.so)\n==1== \n\
            ==1== Use of uninitialised value\n==1==    at 0x1: Py_INCREF\n==1==    by 0x2: _PyEval_EvalFrame\n\
            ==1==    by 0x3: ??? (in apr/_native.abi3.so)\n";
        let found = blamed(log);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("Invalid read"), "{found:?}");
    }
}
