//! `llama`: llama.cpp, built from source, loads and continues what gguf-core and `apr` wrote.

use std::path::{Path, PathBuf};

use crate::gguf::write_samples;
use crate::process::{command, step};
use crate::python::{self, Packages, environment};
use crate::task::{Failure, Outcome, Session, skipped, without_arguments};
use crate::workspace::build_apr;

const JUDGE: &str = "xtask/judge_llama.py";

/// The vector that the other models are made of.
pub(crate) const SMALL: &str = "crates/conformance/vectors/gguf/files/tiny_llama_f32.gguf";

/// A package that is llama.cpp's source (0.5.0-dev, with ggml 0.25.3) and the names of its functions.
const PACKAGES: Packages = Packages {
    names: &["llama-cpp-python==0.3.36"],
    check: "import importlib.metadata as m, llama_cpp; assert m.version('llama-cpp-python') == '0.3.36'",
    // Pictures and HTTPS are not judged.
    variables: &[("CMAKE_ARGS", "-DLLAVA_BUILD=OFF -DLLAMA_OPENSSL=OFF -DGGML_CCACHE=OFF")],
};

/// Writes the models and loads them with llama.cpp, or skips it if it cannot be built.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("llama", args)?;
    let python = python(session)?;
    let folder = session.scratch("llama");
    let models = folder.join("models");
    write_samples(session, "wide_llama", &[Path::new(SMALL), &models])?;
    let apr = build_apr(session)?;
    step(command(session, &python, &["-I", JUDGE]).arg(apr).arg(SMALL).arg(&models))
}

/// Python with the package.
pub(crate) fn python(session: &mut Session) -> Result<PathBuf, Failure> {
    python::require(session)?;
    eprintln!("llama: the first run compiles llama.cpp, which takes some minutes");
    environment(session, &session.scratch("llama").join("python"), &PACKAGES)?
        .map_err(|why| skipped(format!("{why}; needs a C++ compiler as well")))
}
