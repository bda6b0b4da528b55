//! `nostd`: checks that `no_std` crates do not link `std`.
//!
//! For each such crate a small static library is generated that has its own panic handler and allocator and calls the
//! crate. If a dependency links `std`, the compiler finds two panic handlers: error E0152. The same library with the
//! crate's feature `std` must fail with that error, otherwise the check would prove nothing. All libraries are checked together,
//! for the host and for targets without an operating system; those of the crates named are checked one by one, for the host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::firmware::{TARGET as MICROCONTROLLER, has_target};
use crate::process::{capture, cargo, display};
use crate::task::{Failure, Outcome, Session};
use crate::workspace::Workspace;

/// Targets without an operating system: a 32-bit microcontroller, WebAssembly, x86-64 with soft floats.
const BARE_TARGETS: [&str; 3] = [MICROCONTROLLER, "wasm32-unknown-unknown", SOFT_FLOATS];

/// Code is generated for this one: the compiler refuses some only then. What `firmware` and `wasm` build covers the others.
const SOFT_FLOATS: &str = "x86_64-unknown-none";

/// Flags for the crates of ciphers on the target with soft floats: no vector registers, for which the compiler cannot generate
/// code there.
const SOFT: (&str, &str) = (
    "CARGO_TARGET_X86_64_UNKNOWN_NONE_RUSTFLAGS",
    "--cfg sha2_256_backend=\"soft\" --cfg sha2_512_backend=\"soft\" --cfg aes_backend=\"soft\" \
     --cfg polyval_backend=\"soft\" --cfg curve25519_dalek_backend=\"serial\"",
);

/// The compiler's number for two definitions of one language item, here the panic handler.
const DUPLICATE_ITEM: &str = "E0152";

/// The `no_std` crates, and calls that use each of them as a whole.
const CRATES: [Promise; 15] = [
    Promise { name: "tensor-dtype", features: &["elements"], call: include_str!("nostd/tensor_dtype.rs") },
    Promise { name: "located-error", features: &["alloc"], call: include_str!("nostd/located_error.rs") },
    Promise { name: "foreign-format", features: &[], call: include_str!("nostd/foreign_format.rs") },
    Promise { name: "pickle-core", features: &[], call: include_str!("nostd/pickle_core.rs") },
    Promise { name: "zip-core", features: &[], call: include_str!("nostd/zip_core.rs") },
    Promise { name: "model-scan", features: &[], call: include_str!("nostd/model_scan.rs") },
    Promise {
        name: "foreign-tensors",
        features: &["torch", "joblib", "onnx", "tflite", "tensorflow", "flax", "keras"],
        call: include_str!("nostd/foreign_tensors.rs"),
    },
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
    Promise { name: "apr-sealed", features: &[], call: include_str!("nostd/apr_sealed.rs") },
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
    /// Features that do not need `std` either.
    features: &'static [&'static str],
    /// Source of `fn call(bytes: &[u8]) -> usize`.
    call: &'static str,
}

/// Checks the libraries together; those of the crates named in `args` one by one, for the host only.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    if let Some(unknown) = args.iter().find(|name| CRATES.iter().all(|promise| promise.name != *name)) {
        return Err(Failure::Usage(format!("`{unknown}` is no crate without std")));
    }
    let folder = Workspace::load(session, "Cargo.toml")?.target_dir.join("nostd");
    if args.is_empty() {
        return all(session, &folder);
    }
    for promise in CRATES.iter().filter(|promise| args.iter().any(|name| name == promise.name)) {
        let probe = probe(session, &folder, promise, promise.features, OF_ITS_OWN)?;
        build(&mut command(session, "check", &folder, &probe))?;
        println!("nostd: {} is without std on the host", promise.name);
        if has_std_feature(session, promise)? {
            with_std(session, &folder, promise)?;
        }
    }
    Ok(())
}

/// Proves that std would be found in the library of a crate that can have it.
fn with_std(session: &Session, folder: &Path, promise: &Promise) -> Outcome {
    let with = probe(session, folder, promise, &[promise.features, &["std"]].concat(), OF_ITS_OWN)?;
    let captured = capture(&mut command(session, "check", folder, &with))?;
    if captured.success || !captured.stderr.contains(DUPLICATE_ITEM) {
        let text = captured.stderr;
        return Err(format!("{} with std does not meet {DUPLICATE_ITEM}:\n{text}", promise.name).into());
    }
    println!("nostd: {} with std is caught ({DUPLICATE_ITEM})", promise.name);
    Ok(())
}

fn has_std_feature(session: &Session, promise: &Promise) -> Result<bool, Failure> {
    let path = session.root().join("crates").join(promise.name).join("Cargo.toml");
    let manifest = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(manifest.lines().any(|line| line.starts_with("std = ")))
}

/// Checks all libraries for the host and for all bare targets at once, so that shared dependencies are compiled once per target.
fn all(session: &mut Session, folder: &Path) -> Outcome {
    let together = folder.join("together");
    for promise in &CRATES {
        probe(session, &together, promise, promise.features, "")?;
    }
    write(&together.join("Cargo.toml"), &format!("{OF_ITS_OWN}resolver = \"3\"\nmembers = [\"*\"]\n"))?;
    lock(session, &together)?;
    build(&mut command(session, "check", folder, &together))?;
    println!("nostd: all {} are without std on the host", CRATES.len());
    with_std(session, folder, &CRATES[0])?;

    let (here, missing): (Vec<_>, Vec<_>) =
        BARE_TARGETS.iter().copied().partition(|target| has_target(session, target));
    for target in missing {
        session.skip(format!("nostd on {target}"), format!("needs `rustup target add {target}`"));
    }
    let (generated, checked): (Vec<&str>, Vec<&str>) =
        here.iter().partition(|target| **target == SOFT_FLOATS);
    for (what, targets) in [("check", checked), ("build", generated)] {
        if targets.is_empty() {
            continue;
        }
        let mut command = command(session, what, folder, &together);
        command.env(SOFT.0, SOFT.1);
        command.args(targets.iter().flat_map(|target| ["--target", target]));
        build(&mut command)?;
    }
    here.iter().for_each(|target| println!("nostd: all {} build for {target}", CRATES.len()));
    Ok(())
}

/// The `check` or `build` of a probe, or of a workspace of them.
fn command(session: &Session, what: &str, folder: &Path, probe: &Path) -> Command {
    let mut command = cargo(session, &[what, "--quiet", "--manifest-path"]);
    command.arg(probe.join("Cargo.toml")).arg("--target-dir").arg(folder.join("target"));
    // Flags meant for the workspace (coverage, sanitizers) would bring std or a runtime with them.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command
}

fn build(command: &mut Command) -> Outcome {
    let captured = capture(command)?;
    if captured.success {
        return Ok(());
    }
    let hint = if captured.stderr.contains(DUPLICATE_ITEM) { "something below it links std" } else { "" };
    Err(format!("`{}`: {hint}\n{}", display(command), captured.stderr.trim_end()).into())
}

/// Makes a probe, or all of them, a workspace.
const OF_ITS_OWN: &str = "\n[profile.dev]\npanic = \"abort\"\ndebug = false\n\n[workspace]\n";

/// Writes the static library that calls one crate with `features`, and returns its path.
fn probe(
    session: &Session,
    folder: &Path,
    promise: &Promise,
    features: &[&str],
    tail: &str,
) -> Result<PathBuf, Failure> {
    let name = core::iter::once(&promise.name).chain(features).copied().collect::<Vec<_>>().join("-with-");
    let probe = folder.join(&name);
    let crate_path = session.root().join("crates").join(promise.name);
    let manifest = format!(
        "[package]\nname = \"nostd-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [lib]\npath = \"lib.rs\"\ncrate-type = [\"staticlib\"]\n\n\
         [dependencies]\n{} = {{ path = {crate_path:?}, default-features = false, features = {features:?} }}\n{tail}",
        promise.name
    );
    fs::create_dir_all(&probe).map_err(|error| format!("{}: {error}", probe.display()))?;
    write(&probe.join("Cargo.toml"), &manifest)?;
    write(&probe.join("lib.rs"), &format!("{GROUND}\n{}", promise.call))?;
    lock(session, &probe)?;
    Ok(probe)
}

fn write(path: &Path, text: &str) -> Outcome {
    // An unchanged file keeps its date, and cargo its build.
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The versions that the workspace is tested with; cargo drops the rest of the file.
fn lock(session: &Session, folder: &Path) -> Outcome {
    let lock = session.root().join("Cargo.lock");
    fs::copy(&lock, folder.join("Cargo.lock")).map_err(|error| format!("{}: {error}", lock.display()))?;
    Ok(())
}
