//! `wasm`: the npm package built, measured and tested.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crate::process::{cargo, command, display, find_tool, stdout_of, step};
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::{build_apr, build_example, build_example_alone};

/// The crate.
const FOLDER: &str = "crates/apr-wasm";
const TRIPLE: &str = "wasm32-unknown-unknown";
/// What the modules may use besides the first version of WebAssembly: what the compiler takes for granted today.
const PROPOSALS: [&str; 7] = [
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-sign-ext",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-multivalue",
    "--enable-reference-types",
];
/// Only small functions are inlined where they have one caller. Inlining all of those, as `-Oz` does by itself, saves 1% of the bytes and
/// costs 2.5% after `gzip`: in long functions with many variables the same code repeats less often. The passes are repeated until nothing
/// changes, which saves another 0.3%.
const INLINING: [&str; 3] = ["-ocimfs", "20", "--converge"];

/// Functions of one crate beside each other: they repeat each other more than those of others. Saves 1.2% after `gzip`.
const ORDER: &str = "--reorder-functions-by-name";

/// One of the package's modules.
struct Module {
    name: &'static str,
    /// Features of the crate.
    features: &'static str,
    has_simd: bool,
    /// Most bytes that a page may have to transfer for it: after `gzip -9`.
    max_gzip: u64,
}

const MODULES: [Module; 7] = [
    Module { name: "apr-core", features: "apr", has_simd: false, max_gzip: 130_000 },
    Module { name: "apr-full", features: "full", has_simd: false, max_gzip: 350_000 },
    Module { name: "apr-full-simd", features: "full", has_simd: true, max_gzip: 350_000 },
    Module { name: "apr-pickles", features: "pickles", has_simd: false, max_gzip: 150_000 },
    Module { name: "apr-hdf5", features: "hdf5", has_simd: false, max_gzip: 150_000 },
    Module { name: "apr-graphs", features: "graphs", has_simd: false, max_gzip: 150_000 },
    // The allowlists of the scanner and other data are a quarter of the module.
    Module { name: "apr-scan", features: "scan", has_simd: false, max_gzip: 190_000 },
];

/// `wasm [build | test | size]`: without a word, all of it.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (tests, measures) = match *words.as_slice() {
        [] => (true, true),
        ["build"] => (false, false),
        ["size"] => (false, true),
        ["test"] => (true, false),
        _ => return Err(Failure::Usage("`wasm` takes build, test or size, not several words".to_owned())),
    };
    if let Some(why) = why_not(session) {
        return Err(skipped(why));
    }
    let place = Place::of(session);
    place.install(session)?;
    place.build(session)?;
    if tests {
        // Rust programs for browsers name the same features as others.
        let words = [
            "check",
            "--locked",
            "--package=apr-models",
            "--features=format-compression",
            "--target",
            TRIPLE,
        ];
        step(&mut cargo(session, &words))?;
        place.test(session)?;
    }
    if measures { place.measure() } else { Ok(()) }
}

/// What is missing.
fn why_not(session: &Session) -> Option<String> {
    for tool in ["node", "npm"] {
        if find_tool(session, tool).is_none() {
            return Some(format!("needs {tool}: Node.js 20"));
        }
    }
    let printed = |what: &[&str]| stdout_of(&mut command(session, "rustc", what)).unwrap_or_default();
    if !Path::new(printed(&["--print", "target-libdir", "--target", TRIPLE]).trim()).is_dir() {
        return Some(format!("needs `rustup target add {TRIPLE}`"));
    }
    let sources = Path::new(printed(&["--print", "sysroot"]).trim()).join("lib/rustlib/src/rust/library/std");
    (!sources.is_dir()).then(|| "needs `rustup component add rust-src`".to_owned())
}

/// Where things are built.
struct Place {
    /// The folder of the package as it is published.
    package: PathBuf,
    /// That of the tools from npm.
    tools: PathBuf,
    /// Where cargo builds.
    target: PathBuf,
}

impl Place {
    fn of(session: &Session) -> Self {
        let folder = session.scratch("wasm");
        Self { package: folder.join("package"), tools: folder.join("tools"), target: folder.join("build") }
    }

    /// The tools from npm, as the lock file names them.
    fn install(&self, session: &Session) -> Outcome {
        let from = session.root().join(FOLDER).join("tests/tools");
        let is_current = |name: &str| fs::read(from.join(name)).ok() == fs::read(self.tools.join(name)).ok();
        if is_current("package-lock.json") && self.tools.join("node_modules").is_dir() {
            return Ok(());
        }
        fs::create_dir_all(&self.tools).map_err(|error| format!("{}: {error}", self.tools.display()))?;
        copy(&from.join("package.json"), &self.tools)?;
        let lock = from.join("package-lock.json");
        copy(&lock, &self.tools)?;
        let mut npm = command(session, "npm", &["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        let installed = step(npm.current_dir(&self.tools));
        if installed.is_err() {
            // So that the next run does not take half of it for all.
            let _ = fs::remove_file(self.tools.join("package-lock.json"));
        }
        installed
    }

    fn build(&self, session: &Session) -> Outcome {
        let _ = fs::remove_dir_all(&self.package);
        let modules = self.package.join("wasm");
        fs::create_dir_all(&modules).map_err(|error| format!("{}: {error}", modules.display()))?;
        // Both ends of the work take one core each: one module is made small while the next one is compiled.
        thread::scope(|scope| {
            let mut optimizing = Vec::new();
            for module in &MODULES {
                let raw = self.compile(session, module)?;
                let to = modules.join(format!("{}.wasm", module.name));
                optimizing.push(scope.spawn(move || self.optimize(session, module, &raw, &to)));
            }
            optimizing.into_iter().try_for_each(|work| work.join().expect("the work ends without a panic"))
        })?;
        let scripts = session.root().join(FOLDER).join("js");
        let entries = fs::read_dir(&scripts).map_err(|error| format!("{}: {error}", scripts.display()))?;
        for entry in entries.flatten() {
            copy(&entry.path(), &self.package)?;
        }
        for name in ["LICENSE-MIT", "LICENSE-APACHE", "crates/apr-wasm/README.md"] {
            copy(&session.root().join(name), &self.package)?;
        }
        Ok(())
    }

    /// With the standard library built for size too, and failed assertions as nothing but a stop of the module: their texts
    /// would have nowhere to go. Both are options that only a bootstrapping compiler takes. SHA-2 and AES as loops, not unrolled:
    /// smaller, and no slower in an engine that has to compile and to keep in registers what it runs.
    fn compile(&self, session: &Session, module: &Module) -> Result<PathBuf, Failure> {
        let mut flags = String::from(
            "-Zunstable-options -Cpanic=immediate-abort -Zfmt-debug=none -Zlocation-detail=none \
             --cfg=apr_small --cfg=sha2_backend_soft=\"compact\" --cfg=aes_backend_soft=\"compact\"",
        );
        if module.has_simd {
            flags.push_str(" -Ctarget-feature=+simd128");
        }
        // Each set of flags in a folder of its own: cargo would build everything anew whenever they change.
        let target = self.target.join(if module.has_simd { "simd" } else { "scalar" });
        let mut words = vec!["build", "--locked", "--package", "apr-wasm", "--lib", "--profile", "wasm"];
        words.extend(["--target", TRIPLE, "--no-default-features", "--features", module.features]);
        words.extend(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"]);
        let mut build = cargo(session, &words);
        build.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", &target);
        step(&mut build)?;
        // The next module has the same name.
        let raw = self.target.join(format!("{}.raw.wasm", module.name));
        fs::copy(target.join(TRIPLE).join("wasm/apr_wasm.wasm"), &raw)
            .map_err(|error| format!("{}: {error}", raw.display()))?;
        Ok(raw)
    }

    fn optimize(&self, session: &Session, module: &Module, raw: &Path, to: &Path) -> Outcome {
        let mut optimize = command(session, "node", &[]);
        optimize.arg(self.tools.join("node_modules/binaryen/bin/wasm-opt")).arg("-Oz");
        optimize.args(INLINING).args(PROPOSALS).args(module.has_simd.then_some("--enable-simd"));
        // The order by name before the names go.
        optimize.args([ORDER, "--strip-debug", "--strip-producers", "--strip-target-features"]);
        // It takes half a minute of a core: once for the same module, by the same words.
        let failed = |error: std::io::Error| Failure::from(format!("{}: {error}", to.display()));
        let mut wanted = fs::read(raw).map_err(failed)?;
        wanted.extend(display(&optimize).bytes());
        let made_of = self.target.join(format!("{}.made-of", module.name));
        let made = self.target.join(format!("{}.wasm", module.name));
        if !made.is_file() || !fs::read(&made_of).is_ok_and(|known| known == wanted) {
            let _ = fs::remove_file(&made_of);
            step(optimize.arg(raw).arg("-o").arg(&made))?;
            fs::write(&made_of, wanted).map_err(failed)?;
        }
        fs::copy(&made, to).map_err(failed)?;
        Ok(())
    }

    /// The tests of the package, then those of the installed package.
    fn test(&self, session: &Session) -> Outcome {
        let mut tests = command(session, "node", &["--test", "--test-reporter=spec"]);
        let folder = session.root().join(FOLDER).join("tests");
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
        files.sort();
        tests.args(files).env("APR_WASM_PACKAGE", &self.package).env("APR_WASM_TOOLS", &self.tools);
        let fixtures = self.package.with_file_name("fixtures");
        let example = |name: &str| build_example(session, "apr-wasm", name);
        let (owner, program) = (example("owner")?, build_apr(session)?);
        let vectors = session.root().join("crates/conformance/vectors");
        let models = [
            "apr/a0100_linreg.safetensors",
            "gguf/files/tiny_llama_Q4_0.gguf",
            "apr/a0100_linreg_none_plain.apr",
        ];
        let mut write = command(session, example("fixtures")?, &[]);
        step(write.arg(&fixtures).args(models.map(|name| vectors.join(name))))?;
        tests.env("APR_WASM_FIXTURES", &fixtures).env("APR_WASM_OWNER", owner);
        tests.env("APR_WASM_PROGRAM", program);
        let transcript = self.package.with_file_name("transcript.bin");
        let _ = fs::remove_file(&transcript);
        step(tests.env("APR_WASM_TRANSCRIPT", &transcript))?;
        // The same questions to the same code, compiled for this machine.
        let replay = build_example_alone(session, "apr-wasm", "replay")?;
        println!("{}", stdout_of(command(session, replay, &[]).arg(&transcript))?.trim_end());
        Ok(())
    }

    /// Prints the size of each module, and fails if one transfers more bytes than its bound.
    fn measure(&self) -> Outcome {
        let mut too_large = Vec::new();
        println!("{:<16} {:>9} {:>9} {:>9}", "module", "bytes", "gzip -9", "bound");
        for module in &MODULES {
            let path = self.package.join("wasm").join(format!("{}.wasm", module.name));
            let bytes = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?.len();
            let (Module { name, max_gzip, .. }, gzip) = (module, gzipped(&path)?);
            println!("{name:<16} {bytes:>9} {gzip:>9} {max_gzip:>9}");
            if gzip > *max_gzip {
                too_large.push(format!("{name}: {gzip} bytes after gzip -9, more than {max_gzip}"));
            }
        }
        if too_large.is_empty() { Ok(()) } else { Err(too_large.join("\n").into()) }
    }
}

/// Bytes that a server sends.
fn gzipped(path: &Path) -> Result<u64, Failure> {
    let output = std::process::Command::new("gzip").args(["-9", "-c"]).arg(path).output();
    let output = output.map_err(|error| format!("gzip: {error}"))?;
    if !output.status.success() {
        return Err(format!("gzip: {}", output.status).into());
    }
    Ok(output.stdout.len() as u64)
}

fn copy(from: &Path, folder: &Path) -> Outcome {
    let name = from.file_name().ok_or("a file without a name")?;
    match fs::copy(from, folder.join(name)) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{}: {error}", from.display()).into()),
    }
}
