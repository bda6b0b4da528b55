//! Targets of programs of `apr embed`, and how their programs run here.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{announce, cargo, command, find_tool, stdout_of};
use crate::task::{Failure, Session};

/// A target, and what this machine has for it.
pub(super) struct Target {
    pub(super) triple: &'static str,
    /// The linker and the C compiler, for cargo, where they are not those of this machine.
    variables: &'static [(&'static str, &'static str)],
    emulator: Option<&'static str>,
}

/// In the order of the columns that `apr size` prints.
const TARGETS: [Target; 3] = [
    Target { triple: "x86_64-unknown-linux-gnu", variables: &[], emulator: None },
    Target { triple: "x86_64-unknown-linux-musl", variables: &[], emulator: None },
    Target {
        triple: "aarch64-unknown-linux-musl",
        variables: &[
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld"),
            // BLAKE3, in programs that verify a signature or decrypt.
            ("CC_aarch64_unknown_linux_musl", "aarch64-linux-gnu-gcc"),
        ],
        emulator: Some("qemu-aarch64"),
    },
];

/// The targets for which programs can be built here, or the one of them that is called `only`; the others are noted as skipped.
pub(super) fn installed(session: &mut Session, only: Option<&str>) -> Result<Vec<&'static Target>, Failure> {
    let sysroot = stdout_of(&mut command(session, "rustc", &["--print", "sysroot"]))?;
    let libraries = Path::new(sysroot.trim()).join("lib/rustlib");
    let mut targets = Vec::new();
    for target in TARGETS.iter().filter(|target| only.is_none_or(|only| only == target.triple)) {
        let compilers = target.variables.iter().filter(|(name, _)| name.starts_with("CC_"));
        let missing = compilers.map(|(_, tool)| *tool).find(|tool| find_tool(session, tool).is_none());
        if !libraries.join(target.triple).join("lib").is_dir() {
            session.skip(target.triple, format!("needs `rustup target add {}`", target.triple));
        } else if let Some(tool) = missing {
            session.skip(target.triple, format!("needs {tool}"));
        } else {
            targets.push(target);
        }
    }
    if targets.is_empty() {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.triple).collect();
        return Err(Failure::Usage(format!("the targets are {}", known.join(", "))));
    }
    Ok(targets)
}

impl Target {
    /// Builds the program `name` of a project as it is released, with further arguments for cargo.
    pub(super) fn build(
        &self,
        session: &Session,
        project: &Path,
        target_dir: &Path,
        name: &str,
        options: &[&str],
    ) -> Result<PathBuf, Failure> {
        let args = ["build", "--release", "--quiet", "--offline", "--target", self.triple];
        let mut build = cargo(session, &args);
        build
            .args(options)
            .current_dir(project)
            .env("CARGO_TARGET_DIR", target_dir)
            .envs(self.variables.iter().copied());
        announce(&build);
        stdout_of(&mut build)?;
        Ok(target_dir.join(self.triple).join("release").join(name))
    }

    /// The command that runs a program of this target here; `None` without its emulator.
    pub(super) fn runs(&self, session: &Session, program: &Path) -> Option<Command> {
        let Some(emulator) = self.emulator else { return Some(command(session, program, &[])) };
        let mut command = command(session, find_tool(session, emulator)?, &[]);
        command.arg(program);
        Some(command)
    }
}
