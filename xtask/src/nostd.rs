//! `nostd`: proof that crates which promise to do without `std` do not link it.
//!
//! For each such crate a tiny static library is generated that brings its own panic handler and allocator and calls the
//! crate. If anything below it links `std`, the compiler finds two panic handlers: error E0152. The same library with the
//! crate's `std` feature on must meet that error, else the check proves nothing. Where a toolchain for a bare-metal target
//! is at hand, the library is built for it too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{capture, cargo, command, display, stdout_of, succeeds};
use crate::task::{Failure, Outcome, Session};
use crate::workspace::Workspace;

/// A microcontroller without operating system, 32-bit.
const BARE_TARGET: &str = "thumbv7em-none-eabi";

/// The compiler's number for two definitions of one language item, here the panic handler.
const DUPLICATE_ITEM: &str = "E0152";

/// The crates that promise it, and a call that leads through the whole of each.
const CRATES: [Promise; 7] = [
    Promise { name: "st-core", features: &[], call: include_str!("nostd/st_core.rs") },
    Promise { name: "st-structures", features: &[], call: include_str!("nostd/st_structures.rs") },
    Promise { name: "apr-quant", features: &[], call: include_str!("nostd/apr_quant.rs") },
    Promise { name: "gguf-core", features: &[], call: include_str!("nostd/gguf_core.rs") },
    Promise { name: "apr-crypto", features: &["p256", "scrypt"], call: include_str!("nostd/apr_crypto.rs") },
    Promise {
        name: "apr-container",
        features: &["ruzstd", "lz4", "crypto"],
        call: include_str!("nostd/apr_container.rs"),
    },
    Promise {
        name: "apr-models",
        features: &["ruzstd", "lz4", "pipelines", "quantize", "unnamed"],
        call: include_str!("nostd/apr_models.rs"),
    },
];

/// What every generated library needs in place of `std`.
const GROUND: &str = include_str!("nostd/ground.rs");

struct Promise {
    name: &'static str,
    /// Features that promise it too.
    features: &'static [&'static str],
    /// Source of `fn call(bytes: &[u8]) -> usize`.
    call: &'static str,
}

/// Builds the libraries, for the host and for the bare target.
pub(crate) fn run(session: &mut Session, _args: &[String]) -> Outcome {
    let workspace = Workspace::load(session, "Cargo.toml")?;
    let folder = workspace.target_dir.join("nostd");
    let host = Builder { program: cargo(session, &[]).get_program().into(), bare: false, from_source: false };
    let bare = bare_builder(session);
    for promise in &CRATES {
        let without = probe(session, &folder, promise, promise.features)?;
        host.build(session, &folder, &without)?;
        println!("nostd: {} links without std on the host", promise.name);

        let with = probe(session, &folder, promise, &[promise.features, &["std"]].concat())?;
        let captured = capture(&mut host.command(session, &folder, &with))?;
        if captured.success || !captured.stderr.contains(DUPLICATE_ITEM) {
            let text = captured.stderr;
            return Err(format!("{} with std does not meet {DUPLICATE_ITEM}:\n{text}", promise.name).into());
        }
        println!("nostd: {} with std is caught ({DUPLICATE_ITEM})", promise.name);

        if let Some(bare) = &bare {
            bare.build(session, &folder, &without)?;
            println!("nostd: {} builds for {BARE_TARGET}", promise.name);
        }
    }
    if bare.is_none() {
        let why =
            format!("`rustup target add {BARE_TARGET}`, or Debian's rustc-web, cargo-web and rust-web-src");
        session.skip(format!("nostd on {BARE_TARGET}"), format!("needs {why}"));
    }
    Ok(())
}

/// A cargo, and what it builds for.
struct Builder {
    program: PathBuf,
    bare: bool,
    /// `core` and `alloc` have to be built first, by a compiler that is told to allow it.
    from_source: bool,
}

impl Builder {
    fn command(&self, session: &Session, folder: &Path, probe: &Path) -> Command {
        let mut command = command(session, &self.program, &["build", "--quiet", "--manifest-path"]);
        command.arg(probe.join("Cargo.toml")).arg("--target-dir").arg(folder.join("target"));
        // Flags meant for the workspace (coverage, sanitizers) would bring std or a runtime with them.
        command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        if self.bare {
            command.args(["--target", BARE_TARGET]);
        }
        if self.from_source {
            command.args(["-Z", "build-std=core,alloc"]);
            command.env("RUSTC", self.program.with_file_name("rustc")).env("RUSTC_BOOTSTRAP", "1");
            command.env_remove("RUSTC_WRAPPER").env_remove("RUSTDOC");
        }
        command
    }

    fn build(&self, session: &Session, folder: &Path, probe: &Path) -> Outcome {
        let mut command = self.command(session, folder, probe);
        let captured = capture(&mut command)?;
        if captured.success {
            return Ok(());
        }
        let hint = if captured.stderr.contains(DUPLICATE_ITEM) { "something below it links std" } else { "" };
        Err(format!("`{}`: {hint}\n{}", display(&command), captured.stderr.trim_end()).into())
    }
}

/// A builder for the bare target: rustup's ready-made library, or Debian's compiler with the library's source.
fn bare_builder(session: &Session) -> Option<Builder> {
    let mut installed = command(session, "rustup", &["target", "list", "--installed"]);
    if stdout_of(&mut installed).is_ok_and(|targets| targets.lines().any(|line| line.trim() == BARE_TARGET)) {
        let program = cargo(session, &[]).get_program().into();
        return Some(Builder { program, bare: true, from_source: false });
    }
    let debian = Path::new("/usr/bin/cargo");
    let sysroot = stdout_of(&mut command(session, "/usr/bin/rustc", &["--print", "sysroot"])).ok()?;
    let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/alloc/Cargo.toml");
    let version = stdout_of(&mut command(session, "/usr/bin/rustc", &["--version"])).ok()?;
    let usable = source.is_file()
        && minor_version(&version) >= minor_version(env!("CARGO_PKG_RUST_VERSION"))
        && succeeds(&mut command(session, debian, &["--version"]));
    usable.then(|| Builder { program: debian.into(), bare: true, from_source: true })
}

/// The middle number of a compiler version: `rustc 1.95.0 (...)` or `1.95`.
fn minor_version(text: &str) -> Option<u32> {
    let numbers = text.split_whitespace().find(|word| word.starts_with("1."))?;
    numbers.split('.').nth(1)?.parse().ok()
}

/// Writes the static library that calls one crate with `features`, and says where it is.
fn probe(session: &Session, folder: &Path, promise: &Promise, features: &[&str]) -> Result<PathBuf, Failure> {
    let name = core::iter::once(&promise.name).chain(features).copied().collect::<Vec<_>>().join("-with-");
    let probe = folder.join(&name);
    let crate_path = session.root().join("crates").join(promise.name);
    let manifest = format!(
        "[package]\nname = \"nostd-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [lib]\npath = \"lib.rs\"\ncrate-type = [\"staticlib\"]\n\n\
         [dependencies]\n{} = {{ path = {crate_path:?}, default-features = false, features = {features:?} }}\n\n\
         [profile.dev]\npanic = \"abort\"\ndebug = false\n\n[workspace]\n",
        promise.name
    );
    let write = |file: &str, text: &str| -> Result<(), Failure> {
        let path = probe.join(file);
        // An unchanged file keeps its date, and cargo its build.
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()).into())
    };
    fs::create_dir_all(&probe).map_err(|error| format!("{}: {error}", probe.display()))?;
    write("Cargo.toml", &manifest)?;
    write("lib.rs", &format!("{GROUND}\n{}", promise.call))?;
    // The versions that the workspace is tested with; cargo drops the rest of the file.
    let lock = session.root().join("Cargo.lock");
    fs::copy(&lock, probe.join("Cargo.lock")).map_err(|error| format!("{}: {error}", lock.display()))?;
    Ok(probe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_versions_are_compared_by_their_middle_number() {
        assert_eq!(
            minor_version("rustc 1.96.0 (f2d3ce0bd 2026-01-01) (built from a source tarball)"),
            Some(96)
        );
        assert_eq!(minor_version("1.95"), Some(95));
        assert_eq!(minor_version("rustc"), None);
    }
}
