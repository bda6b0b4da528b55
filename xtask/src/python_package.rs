//! `python`: the Python package built, installed and tested, by our tests and by those of the package it replaces.

mod frameworks;
mod structures;
mod valgrind;

pub(crate) use self::frameworks::TORCH;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crate::process::{capture, command, stdout_of, step, step_with_lines};
use crate::python::{self, Packages, environment};
use crate::task::{Failure, Outcome, Session, skipped};

/// Our package.
const FOLDER: &str = "crates/apr-python";

/// Largest wheel, in bytes: the package and the program. A tenth more than it has: what exceeds it, as a second program or data, belongs
/// into a package of its own.
const MAX_WHEEL: u64 = 12_000_000;

/// What builds wheels.
const BUILDER: Packages = Packages {
    names: &["maturin==1.16.0"],
    check: "import importlib.metadata as m; assert m.version('maturin') == '1.16.0'",
    variables: &[],
};

/// What the tests need besides our package; the official one among it, which upstream's tests are run with first.
const TESTERS: Packages = Packages {
    names: &[
        "safetensors==0.8.0",
        "numpy",
        "ml_dtypes",
        "pytest",
        "fsspec",
        "gguf==0.19.0",
        "nanoarrow==0.9.0",
    ],
    check: "import importlib.metadata as m, numpy, ml_dtypes, nanoarrow, pytest, fsspec; \
            assert (m.version('safetensors'), m.version('gguf')) == ('0.8.0', '0.19.0')",
    variables: &[],
};

/// What tests and benches of `apr.sklearn` need beside the others: the release that the figures are of, or the newest that the
/// interpreter takes. Where it cannot be had, they are skipped.
const ESTIMATORS: Packages = Packages {
    names: &["scikit-learn>=1.6,<=1.9.1", "pandas"],
    check: "import sklearn, pandas",
    variables: &[],
};

/// What the tests of tables need beside pandas and nanoarrow. Where it cannot be had, those of its columns are skipped.
const TABLES: Packages =
    Packages { names: &["polars", "pyarrow"], check: "import polars, pyarrow", variables: &[] };

/// What the tests of `fs=` need beside fsspec. Where it cannot be had, those of its stores are skipped.
const STORES: Packages = Packages { names: &["obstore>=0.8"], check: "import obstore.store", variables: &[] };

/// An engine that `apr.jobs` is tested with. Where it cannot be had, that test is skipped.
const ENGINES: Packages =
    Packages { names: &["distributed>=2025.1"], check: "import distributed", variables: &[] };

/// Type checkers for a program that uses the package. `pyright` fetches itself when it is first run.
const CHECKERS: Packages = Packages {
    names: &["mypy==2.4.1", "pyright==1.1.414"],
    check: "import importlib.metadata as m, subprocess, sys; \
            assert (m.version('mypy'), m.version('pyright')) == ('2.4.1', '1.1.414'); \
            subprocess.run([sys.executable, '-m', 'pyright', '--version'], check=True)",
    variables: &[],
};

/// The part that type checkers do.
const TYPES: &str = "python: types";

/// A source distribution, for the tests in it.
struct Source {
    name: &'static str,
    /// As the registry's client checks it.
    requirement: &'static str,
    /// What the tests are run from.
    folder: &'static str,
}

/// That of the official package.
const UPSTREAM: Source = Source {
    name: "safetensors",
    requirement: "safetensors==0.8.0 \
        --hash=sha256:fabaf3e0f18a6618d9b36560682562157f77c2b71fcffc7b432be2baed9d753d\n",
    folder: "safetensors-0.8.0/bindings/python",
};

/// Upstream's tests without those that need a framework other than torch, which may be absent.
const UPSTREAM_TESTS: [&str; 7] = [
    "tests/test_simple.py",
    "tests/test_handle.py",
    "tests/test_threadable.py",
    "tests/test_multithreaded.py",
    "tests/test_pread_backend.py",
    "tests/test_pt_comparison.py",
    "tests/test_pt_model.py",
];

/// What the benches need.
const BENCHERS: Packages = Packages {
    names: &["safetensors==0.8.0", "numpy", "ml_dtypes", "msgpack"],
    check: "import importlib.metadata as m, numpy, ml_dtypes, msgpack; assert m.version('safetensors') == '0.8.0'",
    variables: &[],
};

/// A program that compares us with a package.
struct Bench {
    /// What it is called by.
    name: &'static str,
    /// Path below our folder.
    program: &'static str,
    /// What it needs besides the others.
    packages: Option<&'static Packages>,
}

const BENCHES: [Bench; 2] = [
    Bench { name: "safetensors", program: "benches/beside_safetensors.py", packages: None },
    Bench { name: "sklearn", program: "benches/beside_sklearn.py", packages: Some(&ESTIMATORS) },
];

/// How a wheel is built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    /// As it is released.
    Release,
    /// With the profile of the tests of the workspace, which shares dependencies with them: in a fraction of the time, and with checks of
    /// overflow. Its size says nothing.
    Tests,
}

/// The tests of the wheel.
enum Job<'a> {
    /// The tests with numpy.
    Tests(Build),
    /// Those of frameworks, each in an environment of its own.
    Frameworks(Vec<&'static frameworks::Framework>),
    /// Benches, and their arguments.
    Bench(Vec<&'static Bench>, &'a [String]),
    /// The tests of safestructures.
    Structures,
    /// Our tests with every memory access checked.
    Valgrind,
}

impl<'a> Job<'a> {
    fn new(args: &'a [String]) -> Result<Self, Failure> {
        let Some((word, rest)) = args.split_first() else { return Ok(Self::Tests(Build::Release)) };
        match (word.as_str(), rest) {
            ("quick", []) => Ok(Self::Tests(Build::Tests)),
            ("frameworks", names) => Ok(Self::Frameworks(frameworks::chosen(names)?)),
            ("bench", []) => Ok(Self::Bench(BENCHES.iter().collect(), rest)),
            ("bench", [name, options @ ..]) => match BENCHES.iter().find(|bench| bench.name == name) {
                Some(bench) => Ok(Self::Bench(vec![bench], options)),
                None => Err(Failure::Usage(format!("no bench `{name}`: `safetensors` or `sklearn`"))),
            },
            ("structures", []) => Ok(Self::Structures),
            ("valgrind", []) => Ok(Self::Valgrind),
            _ => Err(Failure::Usage(format!(
                "`python` takes `quick`, `frameworks [NAME...]`, `structures`, `bench [safetensors|sklearn [OPTION...]]` or `valgrind`, not `{}`",
                args.join(" ")
            ))),
        }
    }
}

/// Builds the wheel and runs the selected tests.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let job = Job::new(args)?;
    python::require(session)?;
    let folder = session.scratch("python");
    match job {
        Job::Tests(build) => with_numpy(session, &folder, build),
        Job::Frameworks(chosen) => {
            let wheel = wheel(session, &folder, Build::Release)?;
            let upstream = source_or_skip(session, &folder, &UPSTREAM)?;
            frameworks::run(session, &folder, &wheel, upstream.as_deref(), &chosen)
        }
        Job::Bench(benches, options) => {
            let place = folder.join("bench");
            let python = with_wheel(session, &place, &BENCHERS, &wheel(session, &folder, Build::Release)?)?;
            for bench in benches {
                if let Some(packages) = bench.packages
                    && let Err(why) = environment(session, &place, packages)?
                {
                    session.skip(format!("python bench {}", bench.name), why);
                    continue;
                }
                let program = format!("{FOLDER}/{}", bench.program);
                step(command(session, &python, &[&program]).args(options))?;
            }
            Ok(())
        }
        Job::Structures => {
            let wheel = wheel(session, &folder, Build::Release)?;
            structures::run(session, &folder, &wheel)
        }
        Job::Valgrind => {
            let place = folder.join("valgrind");
            let python = with_wheel(session, &place, &TESTERS, &wheel(session, &folder, Build::Release)?)?;
            valgrind::run(session, &folder, &python)
        }
    }
}

/// A source distribution; its tests are said to be skipped where it cannot be had.
fn source_or_skip(session: &mut Session, folder: &Path, source: &Source) -> Result<Option<PathBuf>, Failure> {
    Ok(match fetched(session, folder, source)? {
        Ok(folder) => Some(folder),
        Err(why) => {
            session.skip(format!("python: the tests of {}", source.name), why);
            None
        }
    })
}

/// An environment with these packages and our wheel.
fn with_wheel(
    session: &Session,
    place: &Path,
    packages: &Packages,
    wheel: &Path,
) -> Result<PathBuf, Failure> {
    let python = environment(session, place, packages)?.map_err(skipped)?;
    install(session, &python, wheel)?;
    Ok(python)
}

/// What a part of our tests needs besides [`TESTERS`], and the name of that part.
const PARTS: [(&str, &Packages); 5] = [
    (TYPES, &CHECKERS),
    ("python: apr.sklearn", &ESTIMATORS),
    ("python: tables of polars and pyarrow", &TABLES),
    ("python: stores of obstore", &STORES),
    ("python: jobs with Dask", &ENGINES),
];

/// Parts of our tests that cannot run, and why.
type Missing = Vec<(&'static str, String)>;

/// A new environment with what the tests need; and which parts of them have to be skipped, and why.
fn test_environment(session: &Session, fresh: &Path) -> Result<(PathBuf, Missing), Failure> {
    emptied(fresh)?;
    let python = environment(session, fresh, &TESTERS)?.map_err(skipped)?;
    let mut missing = Missing::new();
    for (what, packages) in PARTS {
        missing.extend(environment(session, fresh, packages)?.err().map(|why| (what, why)));
    }
    Ok((python, missing))
}

/// A new environment with our wheel: the README's example, all of our tests, upstream's tests.
fn with_numpy(session: &mut Session, folder: &Path, build: Build) -> Outcome {
    let fresh = folder.join("fresh");
    // What the tests need comes over the network while the wheel is built.
    let (wheel, prepared) = thread::scope(|scope| {
        let preparing = scope.spawn(|| test_environment(session, &fresh));
        (wheel(session, folder, build), preparing.join().expect("the work ends without a panic"))
    });
    let (wheel, (python, missing)) = (wheel?, prepared?);
    if build == Build::Release {
        session.close_with(format!("python wheel: {} bytes", len_of(&wheel)?));
    }
    let has_checkers = missing.iter().all(|(what, _)| *what != TYPES);
    missing.into_iter().for_each(|(what, why)| session.skip(what, why));
    install(session, &python, &wheel)?;
    example(session, &python, folder)?;
    if has_checkers {
        check_types(session, &python, &folder.join("types"))?;
    }
    let ours = pytest(session, &python, &["tests"], |command| {
        command.current_dir(session.root().join(FOLDER));
    });
    close(session, "our tests", ours)?;
    match source_or_skip(session, folder, &UPSTREAM)? {
        Some(upstream) => judged(session, &python, &upstream, "numpy", &UPSTREAM_TESTS),
        None => Ok(()),
    }
}

/// Builds our wheel in `folder` and checks the size of one that could be released.
fn wheel(session: &Session, folder: &Path, build: Build) -> Result<PathBuf, Failure> {
    let python = environment(session, &folder.join("build"), &BUILDER)?.map_err(skipped)?;
    let wheels = folder.join("wheels");
    emptied(&wheels)?;
    let manifest = format!("{FOLDER}/Cargo.toml");
    let words = ["-m", "maturin", "build", "--quiet", "--locked", "--manifest-path", &manifest];
    let mut maturin = command(session, &python, &words);
    match build {
        Build::Release => maturin.args(["--compression-method=deflated", "--compression-level=9"]),
        // Installed here and nowhere else.
        Build::Tests => maturin
            .args(["--profile=dev", "--compression-method=stored", "--config"])
            .arg(profile_of_tests(session, folder)?),
    };
    step(maturin.arg("--interpreter").arg(&python).arg("--out").arg(&wheels))?;
    let wheel = only_file(&wheels, ".whl")?;
    let (name, len) = (wheel.file_name().unwrap_or_default().to_string_lossy(), len_of(&wheel)?);
    println!("python: {name}: {len} bytes");
    if build == Build::Release && len > MAX_WHEEL {
        return Err(format!("{name} has {len} bytes, more than {MAX_WHEEL}").into());
    }
    Ok(wheel)
}

/// A file of settings for cargo that gives the profile `dev` what the workspace says of `test`. By the name of `test`, `cargo rustc`, which
/// maturin runs, would compile a program of tests in place of the module.
fn profile_of_tests(session: &Session, folder: &Path) -> Result<PathBuf, Failure> {
    let manifest = session.root().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let settings = folder.join("profile.toml");
    fs::write(&settings, dev_as_test(&text)).map_err(|error| format!("{}: {error}", settings.display()))?;
    Ok(settings)
}

/// The tables of a manifest about the profile `test`, as tables about `dev`.
fn dev_as_test(manifest: &str) -> String {
    let mut is_wanted = false;
    let mut settings = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_wanted = line.starts_with("[profile.test");
        }
        if is_wanted {
            settings.push_str(&line.replacen("[profile.test", "[profile.dev", 1));
            settings.push('\n');
        }
    }
    settings
}

fn len_of(file: &Path) -> Result<u64, Failure> {
    Ok(fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?.len())
}

/// Installs a wheel of ours into an environment, over what was built before under the same version.
fn install(session: &Session, python: &Path, wheel: &Path) -> Outcome {
    let words = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"];
    step(command(session, python, &words).args(["--no-deps", "--force-reinstall"]).arg(wheel))
}

/// Runs the Python examples of our README, from an empty folder.
fn example(session: &Session, python: &Path, folder: &Path) -> Outcome {
    let readme = session.root().join(FOLDER).join("README.md");
    let text = fs::read_to_string(&readme).map_err(|error| format!("{}: {error}", readme.display()))?;
    let place = folder.join("example");
    let mut count = 0_usize;
    for code in python_blocks(&text) {
        emptied(&place)?;
        let printed = stdout_of(command(session, python, &["-I", "-c", &code]).current_dir(&place))?;
        print!("{printed}");
        count += 1;
    }
    if count == 0 { Err(format!("{}: no example", readme.display()).into()) } else { Ok(()) }
}

/// Checks the types of a program that uses the installed package. It is copied into an empty folder, away from the package's source.
fn check_types(session: &Session, python: &Path, place: &Path) -> Outcome {
    const PROGRAM: &str = "typed.py";
    emptied(place)?;
    let source = session.root().join(FOLDER).join("tests").join(PROGRAM);
    fs::copy(&source, place.join(PROGRAM)).map_err(|error| format!("{}: {error}", source.display()))?;
    step(command(session, python, &["-m", "mypy", "--strict", PROGRAM]).current_dir(place))?;
    let pyright = ["-m", "pyright", "--pythonpath"];
    step(command(session, python, &pyright).arg(python).arg(PROGRAM).current_dir(place))
}

/// The Python code blocks of a page, each a separate example.
fn python_blocks(page: &str) -> impl Iterator<Item = String> {
    page.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned)
}

/// A source distribution, fetched and unpacked once; or why it cannot be had.
fn fetched(session: &Session, folder: &Path, source: &Source) -> Result<Result<PathBuf, String>, Failure> {
    let place = folder.join("upstream").join(source.folder);
    if place.join("tests").is_dir() {
        return Ok(Ok(place));
    }
    let download = folder.join("download");
    emptied(&download)?;
    let wanted = download.join("wanted.txt");
    fs::write(&wanted, source.requirement).map_err(|error| format!("{}: {error}", wanted.display()))?;
    let words =
        ["-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--disable-pip-version-check"];
    let mut pip = command(session, "python3", &words);
    pip.arg("--retries=2").arg(format!("--no-binary={}", source.name));
    let fetched =
        capture(pip.args(["--require-hashes", "--dest"]).arg(&download).arg("--requirement").arg(&wanted))?;
    if !fetched.success {
        let line = fetched.stderr.lines().rev().find(|line| !line.trim().is_empty());
        return Ok(Err(line.unwrap_or("no reason given").trim().to_owned()));
    }
    let archive = only_file(&download, ".tar.gz")?;
    stdout_of(
        command(session, "python3", &["-I", "-m", "tarfile", "--extract"])
            .arg(archive)
            .arg(folder.join("upstream")),
    )?;
    Ok(Ok(place))
}

/// Upstream's tests in one environment: first with the official package, which determines the tests that must pass, then with
/// ours.
fn judged(session: &mut Session, python: &Path, upstream: &Path, name: &str, tests: &[&str]) -> Outcome {
    let overlay = session.root().join(FOLDER).join("tests/upstream");
    let record = upstream.join(format!("official-{name}.json"));
    drop(fs::remove_file(&record));
    let words = ["-m", "pytest", "-p", "overlay", "-p", "no:cacheprovider", "--quiet"];
    let mut official = command(session, python, &words);
    official.current_dir(upstream).env("PYTHONPATH", &overlay);
    official.args(["--judge-package=safetensors", "--judge-record"]).arg(&record).args(tests);
    let official = capture(&mut official)?;
    let closing =
        official.stdout.lines().rev().find(|line| is_closing(line)).unwrap_or("no result").to_owned();
    println!("python: upstream's tests of {name}, official package: {closing}");
    if !record.is_file() {
        return Err(format!(
            "upstream's tests of {name} do not run:\n{}{}",
            official.stdout, official.stderr
        )
        .into());
    }
    session.close_with(format!("python, upstream's tests of {name}, official: {closing}"));
    let ours = pytest(session, python, tests, |command| {
        command.current_dir(upstream).env("PYTHONPATH", &overlay);
        command.args(["-p", "overlay", "-rfEx", "--judge-expect"]).arg(&record);
    });
    close(session, &format!("upstream's tests of {name}, ours"), ours)
}

/// Runs pytest; its closing line, and whether it succeeded.
fn pytest(
    session: &Session,
    python: &Path,
    tests: &[&str],
    more: impl FnOnce(&mut std::process::Command),
) -> (Option<String>, Outcome) {
    let mut command = command(session, python, &["-m", "pytest", "-p", "no:cacheprovider", "--quiet"]);
    more(&mut command);
    let mut closing = None;
    let outcome = step_with_lines(command.args(tests), |line| {
        if is_closing(line) {
            closing = Some(line.to_owned());
        }
    });
    (closing, outcome)
}

/// Keeps the closing line of a run for the end; a run without one did not run.
fn close(session: &mut Session, what: &str, (closing, outcome): (Option<String>, Outcome)) -> Outcome {
    outcome?;
    let closing = closing.ok_or_else(|| format!("python, {what}: pytest said nothing"))?;
    session.close_with(format!("python, {what}: {closing}"));
    Ok(())
}

/// Whether this is pytest's last line, such as `3 passed, 1 skipped in 0.12s`.
fn is_closing(line: &str) -> bool {
    let counted = |word| line.contains(word);
    line.contains(" in ")
        && line.ends_with(['s', ')'])
        && [" passed", " failed", " skipped", " error"].into_iter().any(counted)
}

/// A folder without anything in it.
fn emptied(folder: &Path) -> Outcome {
    drop(fs::remove_dir_all(folder));
    Ok(fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?)
}

/// The file in a folder whose name ends like this, if it is the only one.
fn only_file(folder: &Path, end: &str) -> Result<PathBuf, Failure> {
    let wrong = |why: &str| Failure::Check(format!("{}: {why}", folder.display()));
    let entries = fs::read_dir(folder).map_err(|error| wrong(&error.to_string()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found = paths.filter(|path| path.to_string_lossy().ends_with(end));
    match (found.next(), found.next()) {
        (Some(path), None) => Ok(path),
        _ => Err(wrong(&format!("not one file that ends with {end}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_pytest_are_told_from_others() {
        for line in [
            "53 passed in 10.23s",
            "1 failed, 16 passed, 63 skipped in 7.10s",
            "4 passed in 65.00s (0:01:05)",
        ] {
            assert!(is_closing(line), "{line}");
        }
        for line in
            ["FAILED tests/test_simple.py::a - AssertionError", "........ [100%]", "no tests ran in 0.01s"]
        {
            assert!(!is_closing(line), "{line}");
        }
    }

    #[test]
    fn settings_of_tests_become_those_of_dev() {
        let manifest = "[profile.dev]\nd = 1\n[profile.test]\na = 1\n\n[profile.test.package]\nb.c = 2\n[profile.wasm]\ne = 1\n";
        assert_eq!(dev_as_test(manifest), "[profile.dev]\na = 1\n\n[profile.dev.package]\nb.c = 2\n");
    }

    #[test]
    fn examples_are_what_stands_between_fences() {
        let page = "a\n```python\nx = 1\n```\n```sh\nls\n```\n```python\ny = 2\n```\n";
        assert_eq!(python_blocks(page).collect::<Vec<_>>(), ["x = 1\n", "y = 2\n"]);
    }
}
