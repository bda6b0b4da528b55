//! `fuzz`: every target for some seconds, starting from the conformance vectors; as many at a time as there are cores.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::parallel::side_by_side;
use crate::process::{command, display, nightly_cargo, stdout_of, step};
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::Workspace;

const MANIFEST: &str = "fuzz/Cargo.toml";

/// Default duration of each target.
const DEFAULT_SECONDS: u64 = 60;

/// Runs below this many seconds take less time than their build: they have a profile of their own.
const SHORT: u64 = 30;

/// What libFuzzer is guided by: counters of branches, operands of comparisons, depth of the stack (the flags of cargo-fuzz 0.13), under the
/// address sanitizer. The profile says in how many units a crate is compiled: for long runs in one, as there.
const RUST_FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-sanitizer-coverage-stack-depth \
     -Cllvm-args=-simplifycfg-branch-fold-threshold=0 -Zsanitizer=address --cfg fuzzing";

/// A fixed seed repeats a run; the memory limits turn an allocation the file merely asked for into a finding.
const FLAGS: [&str; 4] = ["-seed=1", "-rss_limit_mb=512", "-malloc_limit_mb=64", "-timeout=10"];

/// C code is watched as well. `gcc` makes a constant of a local array and still calls it dead when its function ends: a read of
/// it would be a finding.
const C_FLAGS: &str = "-fno-sanitize-address-use-after-scope";

/// Runs the targets named in `args`, or all, each for the number of seconds in `args`.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    if nightly_cargo(session, &[]).is_none() {
        return Err(skipped("needs the nightly toolchain"));
    }
    let workspace = Workspace::load(session, MANIFEST)?;
    let targets: Vec<_> = workspace.packages.into_iter().flat_map(|package| package.binaries).collect();
    let (seconds, chosen) = choice(args, &targets).map_err(Failure::Usage)?;
    let profile = if seconds < SHORT { "short" } else { "release" };
    let host = nightly_host(session)?;
    let words = ["build", "--manifest-path", MANIFEST, "--target", &host, "--profile", profile];
    let mut build = nightly_cargo(session, &words).ok_or("the nightly toolchain went away")?;
    let variable = |name| std::env::var(name).unwrap_or_default();
    build.env("CFLAGS", format!("{} {C_FLAGS}", variable("CFLAGS")));
    build.env("RUSTFLAGS", format!("{} {RUST_FLAGS}", variable("RUSTFLAGS")));
    // It would take the place of these flags.
    build.env_remove("CARGO_ENCODED_RUSTFLAGS");
    step(build.args(chosen.iter().flat_map(|target| ["--bin", target])))?;
    let built = workspace.target_dir.join(host).join(profile);
    let reports = side_by_side(&chosen, |_, target| fuzz_one(session, &built.join(target), target, seconds));
    let mut findings = 0;
    let mut failures = Vec::new();
    for report in reports {
        match report {
            Ok(report) => {
                findings += report.findings.len();
                println!("{report}");
            }
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    if findings > 0 {
        failures.push(format!("findings: {findings}"));
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

/// This machine's triple.
fn nightly_host(session: &Session) -> Result<String, Failure> {
    let words = ["run", "nightly", "rustc", "--print", "host-tuple"];
    Ok(stdout_of(&mut command(session, "rustup", &words))?.trim().to_owned())
}

/// Splits the arguments into seconds and targets.
fn choice(args: &[String], targets: &[String]) -> Result<(u64, Vec<String>), String> {
    let mut seconds = DEFAULT_SECONDS;
    let mut chosen = Vec::new();
    for arg in args {
        if let Ok(number) = arg.parse() {
            seconds = number;
        } else if targets.contains(arg) {
            chosen.push(arg.clone());
        } else {
            return Err(format!("`{arg}` is neither seconds nor one of the targets {}", targets.join(", ")));
        }
    }
    Ok((seconds, if chosen.is_empty() { targets.to_vec() } else { chosen }))
}

/// What came of one target.
struct Report {
    target: String,
    runs: Option<u64>,
    /// Inputs that were not there before.
    findings: Vec<PathBuf>,
    /// The output of the fuzzer.
    said: Vec<String>,
}

impl core::fmt::Display for Report {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let runs = self.runs.map_or("an unknown number of".to_owned(), |runs| runs.to_string());
        write!(f, "fuzz: {}: {runs} runs, findings: {}", self.target, self.findings.len())?;
        self.findings.iter().try_for_each(|input| write!(f, "\n  {}", input.display()))?;
        self.said.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// Runs what was built.
fn fuzz_one(session: &Session, program: &Path, target: &str, seconds: u64) -> Result<Report, Failure> {
    let artifacts = session.root().join("fuzz/artifacts").join(target);
    let before = entries(&artifacts);
    fs::create_dir_all(&artifacts).map_err(|error| format!("{}: {error}", artifacts.display()))?;
    // What the fuzzer learns goes to the first folder; the others are only read.
    let learned = session.scratch("fuzz").join(target);
    fs::create_dir_all(&learned).map_err(|error| format!("{}: {error}", learned.display()))?;
    let mut command = command(session, program, &[]);
    // Rust defines a symbol in several objects. Freed memory that the sanitizer holds back counts in the memory of the fuzzer: by
    // default, half of what it may have.
    command.env("ASAN_OPTIONS", "detect_odr_violation=0:quarantine_size_mb=32");
    command.arg(format!("-artifact_prefix={}/", artifacts.display())).args(FLAGS);
    command.arg(format!("-max_total_time={seconds}")).arg(&learned);
    let seeds = session.scratch("fuzz").join("seeds").join(target);
    copy_seeds(&session.root().join(vectors_of(target)), &seeds)
        .map_err(|error| format!("{}: {error}", seeds.display()))?;
    command.arg(&seeds);
    let corpus = Path::new("fuzz/corpus").join(target);
    command.args(session.root().join(&corpus).is_dir().then_some(corpus));
    command.args(longest_input(target).map(|len| format!("-max_len={len}")));
    let dictionary = dictionary_of(target);
    if session.root().join(&dictionary).is_file() {
        command.arg(format!("-dict={dictionary}"));
    }

    let log_path = session.scratch("fuzz").join(format!("{target}.log"));
    let cannot_log = |error: std::io::Error| Failure::from(format!("{}: {error}", log_path.display()));
    let log = File::create(&log_path).map_err(cannot_log)?;
    eprintln!("$ {} 2> {}", display(&command), log_path.display());
    let status = command.stdin(Stdio::null()).stderr(log).status();
    let status = status.map_err(|error| format!("`{}`: {error}", display(&command)))?;
    let log = fs::read(&log_path).map_err(cannot_log)?;
    let log = String::from_utf8_lossy(&log);
    let findings: Vec<_> = entries(&artifacts).into_iter().filter(|input| !before.contains(input)).collect();
    if !status.success() {
        let tail: Vec<_> = log.lines().rev().take(60).collect();
        tail.iter().rev().for_each(|line| eprintln!("{line}"));
        if findings.is_empty() {
            return Err(format!("`{}`: {status}", display(&command)).into());
        }
    }
    let said = if findings.is_empty() { Vec::new() } else { said_in(&log) };
    Ok(Report { target: target.to_owned(), runs: runs_in(&log), findings, said })
}

/// The lines of a log with the failure and its input: enough to reproduce it without the file.
fn said_in(log: &str) -> Vec<String> {
    let mut said = Vec::new();
    let mut lines = log.lines();
    while let Some(line) = lines.next() {
        if line.contains("panicked at ") {
            said.push(line.to_owned());
            said.extend(lines.next().map(str::to_owned));
        } else if line.starts_with("SUMMARY: ") || line.starts_with("Base64: ") {
            said.push(line.to_owned());
        }
    }
    said
}

/// The format a target reads: `st` of `st_parse`.
fn format_of(target: &str) -> &str {
    target.split('_').next().unwrap_or(target)
}

/// The words of that format.
fn dictionary_of(target: &str) -> String {
    format!("fuzz/{}.dict", format_of(target))
}

/// The vectors of that format; the others are longer than a fuzzer's inputs should be.
fn vectors_of(target: &str) -> PathBuf {
    let folder = match format_of(target) {
        "st" => "safetensors",
        // Encrypted and signed ones among them.
        "decrypt" => "apr",
        "quant" => "quantization",
        // Files of other formats, most of them archives or pickles.
        "zip" | "pickle" | "foreign" => "import",
        // Tables are no models: those of the crate that reads them.
        "table" => return PathBuf::from("crates/apr-table/tests/data"),
        "ald" => return PathBuf::from("crates/apr-table/tests/data/ald"),
        "request" => return PathBuf::from("crates/apr-serve/tests/data"),
        // Of every format.
        "model" => "",
        format => format,
    };
    Path::new("crates/conformance/vectors").join(folder)
}

/// Suffix of a vector's sidecar, which is not a seed.
const SIDECAR: &str = ".vector.json";

/// Copies the vectors below a folder into an empty one: the files with a sidecar, and those in folders with one; all files of a crate.
fn copy_seeds(vectors: &Path, seeds: &Path) -> std::io::Result<()> {
    if seeds.exists() {
        fs::remove_dir_all(seeds)?;
    }
    fs::create_dir_all(seeds)?;
    let mut found = Vec::new();
    // Files of a crate and of model folders have no sidecars.
    let is_folder = ["tests/data", "data/ald", "vectors/hf"].iter().any(|folder| vectors.ends_with(folder));
    find_vectors(vectors, is_folder, &mut found);
    if vectors.ends_with("vectors/hf") {
        // Rerankers, and adapters of these models.
        find_vectors(&vectors.with_file_name("hf-rerank"), true, &mut found);
        find_vectors(&vectors.with_file_name("hf-lora"), true, &mut found);
    }
    for (number, vector) in found.iter().enumerate() {
        fs::copy(vector, seeds.join(number.to_string()))?;
    }
    Ok(())
}

/// The vectors below a folder, or all files of a folder that is one vector.
fn find_vectors(folder: &Path, is_vector: bool, found: &mut Vec<PathBuf>) {
    let mut entries = entries(folder);
    entries.sort();
    for path in entries {
        let mut sidecar = path.clone().into_os_string();
        sidecar.push(SIDECAR);
        let is_vector = is_vector || Path::new(&sidecar).is_file();
        if path.is_dir() {
            find_vectors(&path, is_vector, found);
        } else if is_vector {
            found.push(path);
        }
    }
}

/// Bytes of the longest input worth trying, where the longest vector would decide. Numbers need space for a few of the longest
/// blocks.
fn longest_input(target: &str) -> Option<u32> {
    match format_of(target) {
        "apr" | "decrypt" | "gguf" | "model" | "pickle" | "pipeline" | "quant" | "request" | "serve"
        | "structures" | "zip" => Some(4096),
        // Few files of other formats are shorter.
        "foreign" => Some(16_384),
        _ => None,
    }
}

/// The files of a folder; none if it does not exist.
fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The number in the fuzzer's last line: `Done 1234 runs in 20 second(s)`.
fn runs_in(log: &str) -> Option<u64> {
    log.lines().rev().find_map(|line| line.strip_prefix("Done ")?.split(' ').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_seconds_and_targets_in_any_order() {
        let targets = ["a", "b"].map(str::to_owned);
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(choice(&[], &targets), Ok((DEFAULT_SECONDS, words(&["a", "b"]))));
        assert_eq!(choice(&words(&["b", "7"]), &targets), Ok((7, words(&["b"]))));
        assert!(choice(&words(&["c"]), &targets).is_err());
    }

    #[test]
    fn targets_of_one_format_share_its_words() {
        assert_eq!(dictionary_of("st_parse"), "fuzz/st.dict");
        assert_eq!(dictionary_of("gguf"), "fuzz/gguf.dict");
        assert_eq!(vectors_of("decrypt"), vectors_of("apr_v1"));
        assert_eq!(vectors_of("apr_v1"), Path::new("crates/conformance/vectors/apr"));
        assert!(vectors_of("st_slice").ends_with("safetensors"));
    }

    #[test]
    fn seeds_are_the_vectors_without_what_is_known_about_them() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/conformance/vectors");
        let mut found = Vec::new();
        find_vectors(&folder, false, &mut found);
        assert!(found.len() > 900, "{}", found.len());
        for path in found {
            let name = path.to_string_lossy();
            assert!(
                !name.ends_with(SIDECAR) && !name.ends_with(".md") && !name.contains("payloads"),
                "{name}"
            );
        }
    }

    #[test]
    fn runs_are_read_from_the_closing_line() {
        assert_eq!(runs_in("#12 NEW\nDone 1234 runs in 20 second(s)\n"), Some(1234));
        assert_eq!(runs_in("==1== ERROR: AddressSanitizer"), None);
    }

    #[test]
    fn a_finding_is_told_with_its_message_and_its_input() {
        let log = "#3 NEW\nthread '<unnamed>' (7) panicked at a.rs:1:2:\nnot so\nstack backtrace:\n   0: main\n\
                   SUMMARY: libFuzzer: deadly signal\nBase64: AAE=\n";
        let said = [
            "thread '<unnamed>' (7) panicked at a.rs:1:2:",
            "not so",
            "SUMMARY: libFuzzer: deadly signal",
            "Base64: AAE=",
        ];
        assert_eq!(said_in(log), said);
        assert_eq!(said_in("#3 NEW\nDone 3 runs in 1 second(s)\n"), Vec::<String>::new());
    }
}
