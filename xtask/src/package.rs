//! `package` and `msrv`: checks for publishing the crates.

use std::fs;

use crate::process::{cargo, command, stdout_of, step, succeeds};
use crate::task::{Outcome, Session, skipped, without_arguments};
use crate::workspace::Workspace;

/// Most bytes of one package: the limit of the registry.
const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// The version of every crate of the workspace, ours included.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Packages every published crate, without building it, and compares its size with the limit.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("package", args)?;
    let workspace = Workspace::load(session, "Cargo.toml")?;
    let folder = workspace.target_dir.join("package");
    let mut packaging =
        cargo(session, &["package", "--no-verify", "--allow-dirty", "--locked", "--offline", "--quiet"]);
    let published: Vec<&str> = workspace
        .packages
        .iter()
        .filter(|package| package.is_published)
        .map(|package| package.name.as_str())
        .collect();
    published.iter().for_each(|name| {
        packaging.args(["--package", name]);
    });
    step(&mut packaging)?;
    let mut problems = Vec::new();
    for name in published {
        let file = folder.join(format!("{name}-{VERSION}.crate"));
        let len = fs::metadata(&file).map_err(|error| format!("{}: {error}", file.display()))?.len();
        println!("package: {name:<16} {len:>9} bytes");
        if len > MAX_BYTES {
            problems.push(format!("{name} has {len} bytes, more than {MAX_BYTES}"));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

/// Checks the workspace with the oldest compiler that its manifest allows.
pub(crate) fn msrv(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("msrv", args)?;
    let manifest = session.root().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let Some(version) = rust_version(&text) else { return Err("Cargo.toml has no rust-version".into()) };
    if !succeeds(&mut command(session, "rustup", &["run", version, "cargo", "--version"])) {
        return Err(skipped(format!("needs `rustup toolchain install {version} --profile minimal`")));
    }
    println!(
        "msrv: {}",
        stdout_of(&mut command(session, "rustup", &["run", version, "rustc", "--version"]))?.trim()
    );
    let target = session.scratch("msrv");
    let mut check =
        command(session, "rustup", &["run", version, "cargo", "check", "--workspace", "--locked"]);
    step(check.arg("--target-dir").arg(target))
}

/// The value of `rust-version` in a manifest.
fn rust_version(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| Some(line.strip_prefix("rust-version = \"")?.split_once('"')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_manifest() {
        let manifest = "[workspace.package]\n# Why.\nrust-version = \"1.91\"\nlicense = \"MIT\"\n";
        assert_eq!(rust_version(manifest), Some("1.91"));
        assert_eq!(rust_version("rust-version.workspace = true\n"), None);
    }
}
