//! `ci`: the checks of a change, the most informative first.

use core::time::Duration;
use std::process::Command;
use std::time::Instant;

use crate::TASKS;
use crate::task::{Failure, Outcome, Session, without_arguments};

/// The tasks and their arguments.
const STEPS: &[(&str, &[&str])] = &[
    ("lint", &[]),
    ("test", &["--locked", "--no-fail-fast"]),
    ("layers", &[]),
    ("nostd", &[]),
    ("features", &[]),
    ("package", &[]),
    ("conformance", &["--check"]),
    ("embed", &[]),
    ("firmware", &[]),
    ("gguf", &[]),
    ("foreign", &[]),
    ("signatures", &[]),
    ("serve-soak", &["10"]),
    ("python", &[]),
    ("wasm", &[]),
    ("page", &["test"]),
    ("deny", &[]),
    ("fuzz", &["7"]),
    ("reliability", &["--quick"]),
    ("interrupt", &["10"]),
];

/// Runs all steps, also after a failure, and ends with a table, the skipped parts, and the test runner's closing lines.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("ci", args)?;
    let start = Instant::now();
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for &(name, args) in STEPS {
        let task = TASKS.iter().find(|task| task.name == name).ok_or_else(|| format!("no task `{name}`"))?;
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        eprintln!("\n=== {name} {}", args.join(" "));
        let began = Instant::now();
        let verdict = match (task.run)(session, &args) {
            Ok(()) => "ok",
            Err(Failure::Skipped(why)) => {
                session.skip(name, why);
                "skipped"
            }
            Err(failure) => {
                eprintln!("{name}: {failure}");
                failures.push(format!("{name}: {failure}"));
                "FAILED"
            }
        };
        rows.push(row(name, began.elapsed(), free_mebibytes(session), verdict));
    }
    println!("\n{:<12} {:>8} {:>9}", "task", "seconds", "free MiB");
    rows.iter().for_each(|row| println!("{row}"));
    let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
    println!("{}", row("together", start.elapsed(), free_mebibytes(session), verdict));
    session.print_skips();
    session.closing_lines().iter().for_each(|line| println!("{line}"));
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

fn row(name: &str, took: Duration, free: Option<u64>, verdict: &str) -> String {
    let free = free.map_or_else(|| "?".to_owned(), |free| free.to_string());
    format!("{name:<12} {:>8.1} {free:>9}  {verdict}", took.as_secs_f64())
}

/// Free disk space after a task, in MiB: a full disk causes misleading failures.
fn free_mebibytes(session: &Session) -> Option<u64> {
    let output = Command::new("df").args(["-Pm", "--"]).arg(session.root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_a_task() {
        for (step, _) in STEPS {
            assert!(TASKS.iter().any(|task| task.name == *step), "{step}");
        }
    }
}
