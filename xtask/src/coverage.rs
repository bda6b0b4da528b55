//! `coverage`: lines and branches that tests execute.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::json::Value;
use crate::process::{cargo, command, find_tool, nightly_cargo, path_with, stdout_of, step};
use crate::task::{Failure, Outcome, Session, skipped};

/// The crates that read, write and protect files, with the features that their tests need.
const CRATES: [(&str, &[&str]); 6] = [
    ("st-core", &[]),
    ("durable-file", &[]),
    ("apr-crypto", &["ring", "rayon", "p256", "scrypt"]),
    ("apr-container", &["zstd", "ruzstd", "lz4", "serde", "serde_json", "crypto"]),
    ("gguf-core", &[]),
    ("apr-sealed", &["rayon"]),
];

/// Tests the crates, and prints for each file and crate how many lines and branches were executed, with the lines that were not.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let Some(tool) = find_tool(session, "cargo-llvm-cov") else {
        return Err(skipped("needs cargo-llvm-cov"));
    };
    let toolchain = Toolchain::installed(session)?;
    let llvm_cov = |session: &Session, args: &[&str]| toolchain.llvm_cov(session, &tool, args);
    step(&mut llvm_cov(session, &["clean", "--workspace", "--profraw-only"])?)?;
    let mut test = llvm_cov(session, &["--no-report"])?;
    if matches!(toolchain, Toolchain::Nightly) {
        test.arg("--branch");
    }
    if args.is_empty() {
        for (name, features) in CRATES {
            test.args(["--package", name]);
            test.args(
                features.iter().flat_map(|feature| ["--features".to_owned(), format!("{name}/{feature}")]),
            );
        }
    }
    step(test.args(args))?;
    step(&mut llvm_cov(session, &["report", "--show-missing-lines"])?)?;
    let summary = stdout_of(&mut llvm_cov(session, &["report", "--json", "--summary-only"])?)?;
    let named = |pair: &[String]| matches!(pair[0].as_str(), "--package" | "-p").then(|| pair[1].clone());
    let tested: Vec<String> = match args {
        [] => CRATES.iter().map(|(name, _)| (*name).to_owned()).collect(),
        _ => args.windows(2).filter_map(named).collect(),
    };
    print!("{}", by_crate(&Value::parse(&summary)?, &tested)?);
    if matches!(toolchain, Toolchain::Stable(_)) {
        session.skip("coverage of branches", "needs a nightly toolchain with the component llvm-tools");
    }
    Ok(())
}

/// The compiler whose tools read its profiles.
enum Toolchain {
    /// Counts branches as well.
    Nightly,
    Stable(LlvmTools),
}

enum LlvmTools {
    /// The component; cargo-llvm-cov finds it.
    OfRustup,
    OfSystem {
        cov: PathBuf,
        profdata: PathBuf,
    },
}

impl Toolchain {
    fn installed(session: &Session) -> Result<Self, Failure> {
        let mut nightly =
            command(session, "rustup", &["run", "nightly", "rustc", "--print", "target-libdir"]);
        if stdout_of(&mut nightly).is_ok_and(|libraries| has_tools(&libraries)) {
            return Ok(Self::Nightly);
        }
        let tools = llvm_tools(session);
        tools.map(Self::Stable).ok_or_else(|| {
            skipped("needs `rustup component add llvm-tools`, or LLVM of the compiler's version")
        })
    }

    fn llvm_cov(&self, session: &Session, tool: &Path, args: &[&str]) -> Result<Command, Failure> {
        let words = [&["llvm-cov"], args].concat();
        let mut command = match self {
            Self::Nightly => nightly_cargo(session, &words).ok_or("the nightly toolchain went away")?,
            Self::Stable(_) => cargo(session, &words),
        };
        command.env("PATH", path_with(tool));
        if let Self::Stable(LlvmTools::OfSystem { cov, profdata }) = self {
            command.env("LLVM_COV", cov).env("LLVM_PROFDATA", profdata);
        }
        Ok(command)
    }
}

/// A line for each tested crate of llvm-cov's report, the files of `crates/NAME/src` together: crates below them are listed there as well, but
/// not all of their tests were run.
fn by_crate(report: &Value, tested: &[String]) -> Result<String, Failure> {
    let files = report.get("data").and_then(|data| data.list().first()?.get("files"));
    let mut crates: Vec<(String, [u64; 4])> = Vec::new();
    for file in files.ok_or("a report without files")?.list() {
        let path = file.text_of("filename").ok_or("a file without a name")?.replace('\\', "/");
        let Some(name) = path.rsplit_once("/src/").and_then(|(root, _)| root.rsplit('/').next()) else {
            continue;
        };
        if !tested.iter().any(|tested| tested == name) {
            continue;
        }
        let count = |kind: &str, which: &str| -> u64 {
            let value = file.get("summary").and_then(|summary| summary.get(kind)?.get(which)?.bare());
            value.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        let counts = [
            count("lines", "covered"),
            count("lines", "count"),
            count("branches", "covered"),
            count("branches", "count"),
        ];
        match crates.iter_mut().find(|(known, _)| known == name) {
            Some((_, sums)) => sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count),
            None => crates.push((name.to_owned(), counts)),
        }
    }
    let share = |covered: u64, all: u64| match all {
        0 => "-".to_owned(),
        _ => format!("{covered} of {all} ({:.1} %)", covered as f64 * 100.0 / all as f64),
    };
    let mut text = format!("\n{:16} {:26} branches\n", "crate", "lines");
    for (name, [lines, all_lines, branches, all_branches]) in crates {
        text += &format!("{name:16} {:26} {}\n", share(lines, all_lines), share(branches, all_branches));
    }
    Ok(text)
}

/// The tools that read this compiler's profiles: those of another LLVM version refuse them.
fn llvm_tools(session: &Session) -> Option<LlvmTools> {
    let libraries = stdout_of(&mut command(session, "rustc", &["--print", "target-libdir"])).ok()?;
    if has_tools(&libraries) || std::env::var_os("LLVM_COV").is_some() {
        return Some(LlvmTools::OfRustup);
    }
    let version = stdout_of(&mut command(session, "rustc", &["-vV"])).ok()?;
    let major = llvm_major(&version)?;
    let cov = find_tool(session, &format!("llvm-cov-{major}"))?;
    let profdata = find_tool(session, &format!("llvm-profdata-{major}"))?;
    Some(LlvmTools::OfSystem { cov, profdata })
}

/// Whether the component llvm-tools is beside these libraries of a toolchain.
fn has_tools(libraries: &str) -> bool {
    Path::new(libraries.trim()).with_file_name("bin").join("llvm-cov").is_file()
}

/// The number in `LLVM version: 22.1.2`.
fn llvm_major(version: &str) -> Option<u32> {
    version.lines().find_map(|line| line.strip_prefix("LLVM version: ")?.split('.').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_says_which_llvm_it_has() {
        assert_eq!(llvm_major("rustc 1.95.0\nhost: x\nLLVM version: 22.1.2\n"), Some(22));
        assert_eq!(llvm_major("rustc 1.95.0"), None);
    }

    #[test]
    fn files_are_added_up_by_crate() {
        let file = |path: &str, covered: u64| {
            format!(
                r#"{{"filename":"{path}","summary":{{"lines":{{"count":10,"covered":{covered}}},"branches":{{"count":4,"covered":1}}}}}}"#
            )
        };
        let tested = ["a".to_owned(), "b".to_owned()];
        let files = [
            file("/x/crates/c/src/lib.rs", 1),
            file("/x/crates/a/src/lib.rs", 9),
            file("/x/crates/a/src/b/c.rs", 10),
            file("/x/crates/b/src/lib.rs", 5),
        ];
        let report = format!(r#"{{"data":[{{"files":[{}]}}]}}"#, files.join(","));
        let text = by_crate(&Value::parse(&report).expect("it is JSON"), &tested).expect("it has files");
        let words: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(words[2..], ["a 19 of 20 (95.0 %) 2 of 8 (25.0 %)", "b 5 of 10 (50.0 %) 1 of 4 (25.0 %)"]);
    }
}
