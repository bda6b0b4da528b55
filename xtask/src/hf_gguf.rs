//! `hf-gguf`, `hf-lora`: llama.cpp's converters and `apr convert` turn the same random model folders and adapters into GGUF, byte for byte.
//! `hf-speed`: they are timed.
//! `hf-logits`: llama.cpp computes with the result what transformers computes with the folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::llama;
use crate::process::{command, step};
use crate::python::{self, Packages, environment};
use crate::python_package::TORCH;
use crate::task::{Failure, Outcome, Session, skipped, without_arguments};
use crate::workspace::build_release;

const WRITER: &str = "xtask/oracles/write_hf.py";
const ADAPTER_WRITER: &str = "xtask/oracles/write_lora.py";
const JUDGE: &str = "xtask/judge_hf.py";
const SPEED: &str = "xtask/hf_speed.py";
const LOGITS_WRITER: &str = "xtask/oracles/hf_logits.py";
const LOGITS_JUDGE: &str = "xtask/judge_hf_logits.py";
const VECTORS: &str = "crates/conformance/vectors/hf";

/// The package whose source has llama.cpp with its converter.
const SOURCE: &str = "llama-cpp-python==0.3.36";

/// Folders of each family unless told.
const COUNT: &str = "10";

/// Makes a failure repeatable.
const SEED: &str = "1";

static PACKAGES: [Packages; 2] = [
    Packages { names: TORCH, check: "import torch", variables: &[] },
    Packages {
        names: &[
            "transformers==4.57.6",
            "numpy==2.2.6",
            "protobuf==4.25.9",
            // The next version needs a newer protobuf than the converter.
            "sentencepiece==0.2.0",
            "safetensors",
            "pyyaml",
            "tqdm",
            // The source distribution is looked at with them.
            "scikit-build-core",
            "pathspec",
            "cmake",
        ],
        check: "import importlib.metadata as m, transformers, sentencepiece\n\
            versions = [m.version(name) for name in ('transformers', 'sentencepiece')]\n\
            assert versions == ['4.57.6', '0.2.0']",
        variables: &[],
    },
];

/// Compares, with as many folders of each family as the first argument says, and of the families after it.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    compare(session, args, WRITER, "files")
}

/// Compares adapters in the same way.
pub(crate) fn adapters(session: &mut Session, args: &[String]) -> Outcome {
    compare(session, args, ADAPTER_WRITER, "adapters")
}

/// Compares what the converter and `apr` make of the folders that `writer` writes, into the folder `name`.
fn compare(session: &mut Session, args: &[String], writer: &str, name: &str) -> Outcome {
    let (count, families) = match args {
        [count, families @ ..] if count.parse::<u32>().is_ok() => (count.as_str(), families),
        families => (COUNT, families),
    };
    let folder = session.scratch("hf-gguf");
    let python = prepared(session, &folder)?;
    let source = converter(session, &python, &folder)?;
    let files = folder.join(name);
    if files.exists() {
        fs::remove_dir_all(&files).map_err(|error| format!("{}: {error}", files.display()))?;
    }
    let mut writer = command(session, &python, &["-W", "ignore", writer]);
    step(writer.arg(source).arg(VECTORS).arg(&files).args([count, SEED]).args(families))?;
    let apr = build_release(session)?;
    step(command(session, "python3", &["-I", JUDGE]).arg(apr).arg(files))
}

/// Times a conversion beside the converter and the quantizer of llama.cpp: rounds, GiB of the model and where it is written.
pub(crate) fn speed(session: &mut Session, args: &[String]) -> Outcome {
    let is_number = |word: &String| word.parse::<f32>().is_ok_and(|number| number > 0.0);
    if args.len() > 3 || !args.iter().take(2).all(is_number) {
        return Err(Failure::Usage("`hf-speed` takes a number of rounds, GiB and a folder".to_owned()));
    }
    let word = |idx: usize, other: &'static str| args.get(idx).map_or(other, String::as_str);
    let folder = session.scratch("hf-gguf");
    let python = prepared(session, &folder)?;
    let source = converter(session, &python, &folder)?;
    let quantizer = llama::python(session)?;
    let place = args.get(2).map_or_else(|| folder.join("speed"), PathBuf::from);
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let apr = build_release(session)?;
    let mut judge = command(session, &python, &[SPEED]);
    judge.arg(apr).arg(source).arg(quantizer).arg(VECTORS).arg(place);
    step(judge.args([word(0, "3"), word(1, "4")]))
}

/// Loads what `apr convert` makes of the folders of the vectors with llama.cpp, and compares its logits with those of transformers.
pub(crate) fn logits(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("hf-logits", args)?;
    let folder = session.scratch("hf-gguf");
    let python = prepared(session, &folder)?;
    let judge = llama::python(session)?;
    let expected = folder.join("logits");
    let mut writer = command(session, &python, &["-W", "ignore", LOGITS_WRITER, VECTORS]);
    step(writer.arg(&expected).env("HF_HUB_OFFLINE", "1"))?;
    let apr = build_release(session)?;
    let mut judge = command(session, &judge, &["-I", LOGITS_JUDGE]);
    step(judge.arg(apr).arg(VECTORS).arg(expected).arg(folder.join("loaded")))
}

/// Python with the packages of the converter.
fn prepared(session: &mut Session, folder: &Path) -> Result<PathBuf, Failure> {
    python::require(session)?;
    let environment_folder = folder.join("python");
    let mut python = Err("no packages".to_owned());
    for packages in &PACKAGES {
        python = environment(session, &environment_folder, packages)?;
        if python.is_err() {
            break;
        }
    }
    python.map_err(skipped)
}

/// The folder of llama.cpp's source, from the registry if it is not there.
fn converter(session: &Session, python: &Path, folder: &Path) -> Result<PathBuf, Failure> {
    const EXTRACT: &str = "import sys, tarfile, pathlib\n\
        archive = next(pathlib.Path(sys.argv[1]).glob('llama_cpp_python-*.tar.gz'))\n\
        with tarfile.open(archive) as tar:\n    \
            tar.extractall(sys.argv[2], filter='data')\n\
        next(pathlib.Path(sys.argv[2]).glob('llama_cpp_python-*')).rename(sys.argv[3])";
    let source = folder.join("source");
    let converter = source.join("vendor/llama.cpp");
    if converter.join("convert_hf_to_gguf.py").exists() {
        return Ok(converter);
    }
    let download = folder.join("download");
    let words = ["-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--no-build-isolation"];
    let mut pip = command(session, python, &words);
    pip.args(["--no-binary", "llama-cpp-python", SOURCE, "--dest"]).arg(&download);
    step(&mut pip).map_err(|why| skipped(format!("{SOURCE} cannot be downloaded ({why})")))?;
    step(command(session, python, &["-I", "-c", EXTRACT]).arg(&download).arg(folder).arg(&source))?;
    Ok(converter)
}
