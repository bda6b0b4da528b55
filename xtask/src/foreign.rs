//! `foreign`: the tests of `apr-quant` with the instructions of other processors.

use crate::process::{cargo, command, find_tool, stdout_of, step};
use crate::task::{Outcome, Session, skipped, without_arguments};

/// Runs the WebAssembly programs.
const WASI: &str = "xtask/run_wasi.mjs";

/// A kind of processor that a program here emulates.
struct Target {
    triple: &'static str,
    lanes: &'static str,
    /// What compiles for it, and what runs its programs.
    tools: &'static [&'static str],
    linker: Option<&'static str>,
    runner: &'static [&'static str],
    flags: &'static str,
    needs: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        triple: "aarch64-unknown-linux-gnu",
        lanes: "NEON",
        tools: &["aarch64-linux-gnu-gcc", "qemu-aarch64"],
        linker: Some("aarch64-linux-gnu-gcc"),
        runner: &["qemu-aarch64"],
        // Nothing is looked for in the folders of this machine.
        flags: "-C target-feature=+crt-static",
        needs: "Debian's qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross",
    },
    Target {
        triple: "wasm32-wasip1",
        lanes: "simd128",
        tools: &["node"],
        linker: None,
        runner: &["node", "--no-warnings", WASI],
        flags: "-C target-feature=+simd128",
        needs: "Node.js 20",
    },
];

/// Runs them on each target that can be had here.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("foreign", args)?;
    let mut n_tested = 0;
    for target in TARGETS {
        match why_not(session, target) {
            Some(why) => session.skip(format!("foreign on {}", target.triple), why),
            None => {
                test(session, target)?;
                n_tested += 1;
            }
        }
    }
    if n_tested == 0 { Err(skipped("no target can be tested here")) } else { Ok(()) }
}

/// What is missing.
fn why_not(session: &Session, target: &Target) -> Option<String> {
    if target.tools.iter().any(|tool| find_tool(session, tool).is_none()) {
        return Some(format!("needs {}", target.needs));
    }
    let library = ["--print", "target-libdir", "--target", target.triple];
    let folder = stdout_of(&mut command(session, "rustc", &library));
    let there = folder.is_ok_and(|folder| std::path::Path::new(folder.trim()).is_dir());
    (!there).then(|| format!("needs `rustup target add {}`", target.triple))
}

fn test(session: &Session, target: &Target) -> Outcome {
    eprintln!("with {}:", target.lanes);
    let words = ["test", "--locked", "--package", "apr-quant", "--lib", "--tests", "--target", target.triple];
    let mut command = cargo(session, &words);
    let variable = |name| format!("CARGO_TARGET_{}_{name}", target.triple.to_uppercase().replace('-', "_"));
    // A script is named from the root; cargo runs tests in the folder of their crate.
    let runner = target.runner.iter().map(|word| match *word {
        WASI => session.root().join(WASI).display().to_string(),
        word => word.to_owned(),
    });
    command.env(variable("RUNNER"), runner.collect::<Vec<_>>().join(" "));
    command.env(variable("RUSTFLAGS"), target.flags);
    if let Some(linker) = target.linker {
        command.env(variable("LINKER"), linker);
    }
    // It would take the place of the flags of the target.
    step(command.env_remove("RUSTFLAGS"))
}
