//! `deny`, `coverage` and `mutants`: external tools.

use std::path::{Path, PathBuf};

use crate::process::{cargo, command, find_tool, path_with, stdout_of, step, succeeds};
use crate::task::{Outcome, Session, skipped};

/// Licences, duplicate versions and sources of every dependency, by `deny.toml`.
pub(crate) fn deny(session: &mut Session, _args: &[String]) -> Outcome {
    let Some(tool) = find_tool(session, "cargo-deny") else {
        return Err(skipped("needs cargo-deny"));
    };
    // cargo-deny reads the sources for every platform, a build only those for its own.
    if !succeeds(&mut cargo(session, &["fetch", "--locked"])) {
        eprintln!("deny: not everything can be fetched; going on with what is here");
    }
    step(&mut command(session, tool, &["--offline", "check", "bans", "licenses", "sources"]))
}

/// Line coverage of the crates on which files depend, with the lines no test reaches.
pub(crate) fn coverage(session: &mut Session, args: &[String]) -> Outcome {
    let Some(tool) = find_tool(session, "cargo-llvm-cov") else {
        return Err(skipped("needs cargo-llvm-cov"));
    };
    let Some(llvm) = llvm_tools(session) else {
        return Err(skipped("needs `rustup component add llvm-tools`, or LLVM of the compiler's version"));
    };
    let mut command = cargo(session, &["llvm-cov", "--show-missing-lines"]);
    command.env("PATH", path_with(&tool));
    match llvm {
        LlvmTools::OfRustup => {}
        LlvmTools::OfSystem { cov, profdata } => {
            command.env("LLVM_COV", cov).env("LLVM_PROFDATA", profdata);
        }
    }
    if args.is_empty() {
        command.args(["--package", "st-core", "--package", "durable-file", "--package", "apr-crypto"]);
    }
    step(command.args(args))
}

/// Mutation testing: which small changes of the code the tests of `st-core`, or of the named package, detect.
pub(crate) fn mutants(session: &mut Session, args: &[String]) -> Outcome {
    let Some(tool) = find_tool(session, "cargo-mutants") else {
        return Err(skipped("needs cargo-mutants"));
    };
    let out = session.scratch("");
    let mut command = cargo(session, &["mutants", "--output"]);
    command.env("PATH", path_with(&tool)).arg(out);
    if !args.iter().any(|arg| arg == "--package") {
        command.args(["--package", "st-core"]);
    }
    step(command.args(args))
}

enum LlvmTools {
    /// The component; cargo-llvm-cov finds it.
    OfRustup,
    OfSystem {
        cov: PathBuf,
        profdata: PathBuf,
    },
}

/// The tools that read this compiler's profiles: those of another LLVM version refuse them.
fn llvm_tools(session: &Session) -> Option<LlvmTools> {
    let libraries = stdout_of(&mut command(session, "rustc", &["--print", "target-libdir"])).ok()?;
    let component = Path::new(libraries.trim()).with_file_name("bin").join("llvm-cov");
    if component.is_file() || std::env::var_os("LLVM_COV").is_some() {
        return Some(LlvmTools::OfRustup);
    }
    let version = stdout_of(&mut command(session, "rustc", &["-vV"])).ok()?;
    let major = llvm_major(&version)?;
    let cov = find_tool(session, &format!("llvm-cov-{major}"))?;
    let profdata = find_tool(session, &format!("llvm-profdata-{major}"))?;
    Some(LlvmTools::OfSystem { cov, profdata })
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
}
