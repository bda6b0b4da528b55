//! `ci`: the checks that every change needs; `nightly`: those that take longer.

use core::time::Duration;
use std::process::Command;
use std::time::Instant;

use crate::TASKS;
use crate::task::{Failure, Outcome, Session};

/// Tasks and their arguments.
type Steps = &'static [(&'static str, &'static [&'static str])];

const CHANGE: Steps = &[
    ("lint", &[]),
    ("test", &[]),
    ("msrv", &[]),
    ("layers", &[]),
    ("nostd", &[]),
    ("package", &[]),
    ("conformance", &["--check"]),
    ("embed", &[]),
    ("firmware", &[]),
    ("gguf", &[]),
    ("foreign", &[]),
    ("signatures", &[]),
    ("serve-soak", &["10"]),
    // The wheel as it is released, whose size has a bound.
    ("python", &[]),
    ("wasm", &[]),
    ("page", &["test"]),
    ("deny", &[]),
    ("canary", &["30"]),
    ("fuzz", &["5"]),
];

const NIGHTLY: Steps = &[
    ("features", &[]),
    ("cloud", &["seaweedfs", "moto"]),
    ("reliability", &["--quick"]),
    ("interrupt", &["10"]),
    ("serve-soak", &[]),
    ("canary", &[]),
    ("fuzz", &[]),
];

pub(crate) fn change(session: &mut Session, chosen: &[String]) -> Outcome {
    run(session, CHANGE, chosen)
}

pub(crate) fn nightly(session: &mut Session, chosen: &[String]) -> Outcome {
    run(session, NIGHTLY, chosen)
}

/// Runs all steps, or the chosen ones, also after a failure, and ends with a table, the skipped parts, and the test runner's closing lines.
fn run(session: &mut Session, steps: Steps, chosen: &[String]) -> Outcome {
    if let Some(unknown) = chosen.iter().find(|name| steps.iter().all(|(step, _)| step != name)) {
        let known: Vec<_> = steps.iter().map(|(step, _)| *step).collect();
        return Err(Failure::Usage(format!("`{unknown}` is not one of the steps {}", known.join(", "))));
    }
    let (start, cpu_at_start) = (Instant::now(), cpu_time());
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for &(name, args) in steps {
        if !chosen.is_empty() && !chosen.iter().any(|step| step == name) {
            continue;
        }
        let task = TASKS.iter().find(|task| task.name == name).ok_or_else(|| format!("no task `{name}`"))?;
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        eprintln!("\n=== {name} {}", args.join(" "));
        let (began, cpu) = (Instant::now(), cpu_time());
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
        rows.push(row(name, began.elapsed(), cpu, free_mebibytes(session), verdict));
    }
    println!("\n{:<12} {:>8} {:>8} {:>9}", "task", "seconds", "of cores", "free MiB");
    rows.iter().for_each(|row| println!("{row}"));
    let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
    println!("{}", row("together", start.elapsed(), cpu_at_start, free_mebibytes(session), verdict));
    session.print_skips();
    session.closing_lines().iter().for_each(|line| println!("{line}"));
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

/// `cpu` is that before the task.
fn row(name: &str, took: Duration, cpu: Option<f64>, free: Option<u64>, verdict: &str) -> String {
    let cpu = cpu_time().zip(cpu).map_or_else(|| "?".to_owned(), |(now, then)| format!("{:.1}", now - then));
    let free = free.map_or_else(|| "?".to_owned(), |free| free.to_string());
    format!("{name:<12} {:>8.1} {cpu:>8} {free:>9}  {verdict}", took.as_secs_f64())
}

/// Seconds that all programs started by this one, and those started by them, kept a core busy, until they ended: beside the
/// duration, what more cores would gain. Where there is no `/proc`, it is not known.
fn cpu_time() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may have spaces: `cutime` and `cstime` are the fields 16 and 17, in hundredths.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    Some((field(16)? + field(17)?) / 100.0)
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
        for (step, _) in CHANGE.iter().chain(NIGHTLY) {
            assert!(TASKS.iter().any(|task| task.name == *step), "{step}");
        }
    }
}
