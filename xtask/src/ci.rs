//! `ci`: every check worth a change's wait, the most telling first.

use core::time::Duration;
use std::time::Instant;

use crate::TASKS;
use crate::task::{Outcome, Session, without_arguments};

/// The tasks and their arguments.
const STEPS: &[(&str, &[&str])] = &[
    ("lint", &[]),
    ("test", &["--locked", "--no-fail-fast"]),
    ("layers", &[]),
    ("nostd", &[]),
    ("features", &[]),
    ("conformance", &["--check"]),
    ("gguf", &[]),
    ("foreign", &[]),
    ("signatures", &[]),
    ("python", &[]),
    ("deny", &[]),
    ("fuzz", &["20"]),
    ("reliability", &["--quick"]),
];

/// Runs all of them, also after one has failed, and closes with a table, what was skipped, and the test runner's lines.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("ci", args)?;
    let start = Instant::now();
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for &(name, args) in STEPS {
        let task = TASKS.iter().find(|task| task.name == name).ok_or_else(|| format!("no task `{name}`"))?;
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        eprintln!("\n=== {name} {}", args.join(" "));
        let (began, skips_before) = (Instant::now(), session.skips().len());
        let outcome = (task.run)(session, &args);
        let skipped = session.skips().iter().skip(skips_before).any(|skip| skip.what == name);
        let verdict = match &outcome {
            Err(_) => "FAILED",
            Ok(()) if skipped => "skipped",
            Ok(()) => "ok",
        };
        if let Err(failure) = outcome {
            eprintln!("{name}: {failure}");
            failures.push(format!("{name}: {failure}"));
        }
        rows.push(row(name, began.elapsed(), verdict));
    }
    println!("\n{:<12} {:>8}", "task", "seconds");
    rows.iter().for_each(|row| println!("{row}"));
    println!("{}", row("together", start.elapsed(), if failures.is_empty() { "ok" } else { "FAILED" }));
    session.print_skips();
    session.closing_lines().iter().for_each(|line| println!("{line}"));
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

fn row(name: &str, took: Duration, verdict: &str) -> String {
    format!("{name:<12} {:>8.1}  {verdict}", took.as_secs_f64())
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
