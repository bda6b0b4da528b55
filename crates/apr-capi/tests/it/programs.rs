//! Programs in C and C++, compiled, linked with the library beside this test, and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// The folder of the package.
const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// A way to compile: the compiler, the standard, and the endings of programs.
struct Language {
    compiler: (&'static str, &'static str),
    flags: &'static [&'static str],
}

const C99: Language = Language { compiler: ("CC", "cc"), flags: &["-std=c99"] };
const CPP17: Language = Language { compiler: ("CXX", "c++"), flags: &["-std=c++17"] };

const WARNINGS: &[&str] =
    &["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-g", "-O1"];
const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

impl Language {
    fn command(&self) -> Command {
        Command::new(env::var_os(self.compiler.0).unwrap_or_else(|| self.compiler.1.into()))
    }

    /// Compiles a program; `None` without a compiler.
    fn program(&self, source: &Path) -> Option<PathBuf> {
        if self.command().arg("--version").output().is_err() {
            eprintln!("not tested: no compiler `{}`", self.compiler.1);
            return None;
        }
        // The library is beside the test that was linked with it.
        let exe = env::current_exe().expect("a test has a path");
        let libraries = exe.parent().expect("a test is in a folder");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
        fs::create_dir_all(&folder).expect("the target folder can be written");
        let out = folder.join(source.file_name().expect("a source has a name")).with_extension("program");
        let compile = |sanitizers: &[&str]| {
            let mut command = self.command();
            command.args(self.flags).args(WARNINGS).args(sanitizers);
            command.arg("-I").arg(Path::new(PACKAGE).join("include")).arg(source).arg("-o").arg(&out);
            command.arg("-L").arg(libraries).arg("-lapr_capi").arg("-lm");
            command.arg(format!("-Wl,-rpath,{}", libraries.display()));
            command.output().expect("the compiler started before")
        };
        let mut made = compile(SANITIZERS);
        let stderr = String::from_utf8_lossy(&made.stderr).into_owned();
        if !made.status.success() && (stderr.contains("asan") || stderr.contains("ubsan")) {
            eprintln!("not tested: `{}` has no sanitizers", self.compiler.1);
            made = compile(&[]);
        }
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(out)
    }
}

fn run(program: &Path, args: &[PathBuf]) -> Output {
    let output =
        Command::new(program).args(args).current_dir(PACKAGE).output().expect("the program was made");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {}: {stderr}", program.display(), output.status);
    assert!(!stderr.contains("panicked"), "{stderr}");
    output
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("programs print ASCII")
}

fn vectors() -> PathBuf {
    Path::new(PACKAGE).join("../conformance/vectors")
}

/// Every file below the vectors.
fn all_files() -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![vectors()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the vectors can be read") {
            let path = entry.expect("the vectors can be read").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|path| !path.to_string_lossy().ends_with(".vector.json"));
    files.sort();
    files
}

#[test]
fn wrong_arguments_are_errors() {
    let Some(program) = C99.program(&Path::new(PACKAGE).join("tests/c/arguments.c")) else { return };
    let model = vectors().join("apr/a0723_linreg_none_plain.apr");
    run(&program, &[model, vectors().join("safetensors/valid")]);
}

/// Whatever a file contains: a status, and with the sanitizers no invalid access and no leak.
#[test]
fn every_vector_gives_a_status() {
    let Some(program) = C99.program(&Path::new(PACKAGE).join("tests/c/sweep.c")) else { return };
    let files = all_files();
    assert!(files.len() > 1_000, "{}", files.len());
    let mut printed = String::new();
    for files in files.chunks(500) {
        printed += &text(&run(&program, files));
    }
    let statuses: Vec<&str> = printed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(statuses.len(), files.len());
    let count = |status| statuses.iter().filter(|&&found| found == status).count();
    // Valid files, refused ones, and no defect.
    assert!(count("0") > 500 && count("3") > 300, "{} {}", count("0"), count("3"));
    assert_eq!((count("2"), count("7")), (0, 0), "{printed}");
}

#[test]
fn examples_print_what_the_page_shows() {
    let examples = Path::new(PACKAGE).join("examples");
    let model = vectors().join("apr/a0723_linreg_none_plain.apr");
    if let Some(program) = C99.program(&examples.join("predict.c")) {
        let output = run(&program, core::slice::from_ref(&model));
        assert_eq!(text(&output), "LinearRegression, 3 features\n1 2 3 -> 12.5006\n");
    }
    if let Some(program) = CPP17.program(&examples.join("tensors.cpp")) {
        let output = run(&program, &[vectors().join("apr/f0723v2_f32_multi.apr")]);
        let expected = "a.bias F32, 1 elements, mean 0.499844\nm.weight F32, 64 elements, mean -0.0161024\n";
        assert!(text(&output).starts_with(expected), "{}", text(&output));
    }
}
