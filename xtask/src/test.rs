//! `test`: every test and every example in the documentation.

use crate::process::{cargo, step_with_lines};
use crate::task::{Outcome, Session};

/// Crates whose features choose between implementations, each with the features that the workspace as a whole does not give
/// them: the program `apr` switches `ring` on, and nothing switches `rayon` on.
const ALONE: [(&str, &str); 2] = [("apr-crypto", ""), ("apr-crypto", "ring,rayon")];

/// Without arguments, all tests go on after a failure, and `cloud` finds the program built with what it needs.
const ALL: [&str; 4] = ["--locked", "--no-fail-fast", "--features", "apr-tools/cloud"];

/// Runs `cargo test --workspace` with `args` appended and repeats the test runner's closing lines at the end. Without `args`,
/// then the crates that have to be tested in more ways than one.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let mut commands = vec![cargo(session, &["test", "--workspace"])];
    if args.is_empty() {
        commands[0].args(ALL);
        commands.extend(ALONE.map(|(name, features)| {
            cargo(session, &["test", "--package", name, "--lib", "--tests", "--features", features])
        }));
    }
    let mut totals = Totals::default();
    let mut outcome = Ok(());
    for mut command in commands {
        let tested = step_with_lines(command.args(args), |line| {
            if totals.add(line) {
                // All are built before the first runs.
                session.note_built_tests();
                session.close_with(line.to_owned());
            }
        });
        outcome = outcome.and(tested);
    }
    println!();
    session.closing_lines().iter().for_each(|line| println!("{line}"));
    let closing = totals.to_string();
    println!("{closing}");
    session.close_with(closing);
    outcome
}

/// The sum of the test runner's closing lines.
#[derive(Debug, Default)]
struct Totals {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Totals {
    /// Adds a line of the test runner; false if it is not a closing line or one of a binary without tests.
    fn add(&mut self, line: &str) -> bool {
        let Some(counts) = line.strip_prefix("test result: ") else { return false };
        let count = |what: &str| -> u64 {
            let before = counts.split(what).next().unwrap_or_default();
            before.trim_end().rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        let (passed, failed, ignored) = (count(" passed"), count(" failed"), count(" ignored"));
        self.passed += passed;
        self.failed += failed;
        self.ignored += ignored;
        passed + failed + ignored > 0
    }
}

impl core::fmt::Display for Totals {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { passed, failed, ignored } = self;
        write!(f, "all tests: {passed} passed; {failed} failed; {ignored} ignored")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_summed() {
        let mut totals = Totals::default();
        let line = |p, f, i| {
            format!("test result: ok. {p} passed; {f} failed; {i} ignored; 0 measured; 3 filtered out")
        };
        assert!(totals.add(&line(41, 0, 0)));
        assert!(totals.add(&line(1, 2, 3)));
        assert!(!totals.add(&line(0, 0, 0)));
        assert!(!totals.add("test result_is_fine ... ok"));
        let closing = "all tests: 42 passed; 2 failed; 3 ignored";
        assert_eq!(totals.to_string(), closing);
    }
}
