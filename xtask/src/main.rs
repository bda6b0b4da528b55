//! Every task of the project: `cargo xtask` lists them, `cargo xtask NAME` runs one.
//!
//! Depends on none of our crates, so it still runs when the library does not build.

#![forbid(unsafe_code)]

extern crate alloc;

mod canary;
mod candle;
mod ci;
mod cloud;
mod coldstart;
mod coverage;
mod embed;
mod features;
mod firmware;
mod foreign;
mod foreign_oracle;
mod fuzz;
mod ggml;
mod gguf;
mod hf_gguf;
mod interrupt;
mod json;
mod layers;
mod lint;
mod llama;
mod measure;
mod models;
mod nostd;
mod npm;
mod package;
mod page;
mod parallel;
mod peers;
mod process;
mod python;
mod python_package;
mod quality;
mod reliability;
mod scanners;
mod serve;
mod signatures;
mod task;
mod terms;
mod test;
mod tidy;
mod values_speed;
mod wasm;
mod workspace;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::task::{Session, Task};

/// The tasks, in the order in which they are listed.
const TASKS: &[Task] = &[
    Task {
        name: "test",
        run: test::run,
        help: "[ARGS of cargo test]  every test, and every example of the documentation",
    },
    Task {
        name: "lint",
        run: lint::run,
        help: "formatting, clippy, documentation, and the rules no compiler knows",
    },
    Task {
        name: "layers",
        run: layers::run,
        help: "the dependencies between our crates are those of docs/architecture.md",
    },
    Task {
        name: "nostd",
        run: nostd::run,
        help: "[CRATE...]  the crates that promise to do without std link without it",
    },
    Task {
        name: "features",
        run: features::run,
        help: "[CRATE...]  each crate alone builds with none, each and all of its features",
    },
    Task {
        name: "package",
        run: package::run,
        help: "packages every published crate, without building it, and checks the sizes",
    },
    Task {
        name: "msrv",
        run: package::msrv,
        help: "the workspace compiles with the oldest supported compiler",
    },
    Task {
        name: "conformance",
        run: measure::conformance,
        help: "[--check]  the test vectors beside the official crate; writes docs/conformance.md",
    },
    Task {
        name: "peers",
        run: peers::run,
        help: "[WORD...]  the crates that made the .apr format read what we write, bit for bit",
    },
    Task { name: "gguf", run: gguf::run, help: "gguf-py reads what gguf-core writes, value by value" },
    Task {
        name: "llama",
        run: llama::run,
        help: "llama.cpp loads and continues models exported and quantized by `apr`; compiles it first",
    },
    Task {
        name: "candle",
        run: candle::run,
        help: "[--write]  candle reads what gguf-core and `apr quantize` write, and answers to the vectors",
    },
    Task {
        name: "ggml",
        run: ggml::run,
        help: "[BLOCKS] [FORMAT...]  ggml's reference judges our blocks and what we read from blocks, bit for bit",
    },
    Task {
        name: "foreign",
        run: foreign::run,
        help: "the tests of apr-quant on aarch64 (NEON) and wasm32 (simd128), in stand-ins for such processors",
    },
    Task {
        name: "signatures",
        run: signatures::run,
        help: "minisign and model-signing judge signatures of `apr sign`, and `apr verify` theirs",
    },
    Task {
        name: "cloud",
        run: cloud::run,
        help: "[seaweedfs | moto | azurite | seaweedfs-gcs | gcs]...  `apr` with the feature `cloud` reads and writes objects of stores on this machine",
    },
    Task {
        name: "serve-load",
        run: serve::load,
        help: "[SECONDS]  predictions a second and latencies of `apr serve`, by wrk",
    },
    Task {
        name: "serve-soak",
        run: serve::soak,
        help: "[SECONDS]  `apr serve` with good and bad requests and a new model every second; 600 unless told",
    },
    Task {
        name: "firmware",
        run: firmware::run,
        help: "models in the flash of a microcontroller, in QEMU: predictions, heap and refusals as on this machine",
    },
    Task {
        name: "embed",
        run: embed::run,
        help: "[size [--write | TARGET] | protection [TARGET]]  projects of `apr embed` around models of every type build, are tidy, and say what was recorded",
    },
    Task {
        name: "python",
        run: python_package::run,
        help: "[quick | frameworks [NAME...] | structures | bench | valgrind]  builds, installs and tests the Python package, beside upstream's tests",
    },
    Task {
        name: "wasm",
        run: wasm::run,
        help: "[build | test | size]  builds, tests and measures the npm package",
    },
    Task {
        name: "page",
        run: page::run,
        help: "[test]  puts the page for browsers together; with test, Chromium uses it",
    },
    Task {
        name: "fuzz",
        run: fuzz::run,
        help: "[SECONDS] [TARGET...]  fuzzes each target, starting from the test vectors",
    },
    Task {
        name: "reliability",
        run: reliability::run,
        help: "[ROUNDS] [--quick] [--write]  saves under kill -9, failing system calls, a full disk, a power cut",
    },
    Task {
        name: "interrupt",
        run: interrupt::run,
        help: "[ROUNDS]  commands of `apr` under SIGINT, SIGTERM and SIGKILL at random moments; 200 each unless told",
    },
    Task {
        name: "bench",
        run: measure::bench,
        help: "[ROW...] [--rounds N] [--write]  times and memory beside the official crate",
    },
    Task {
        name: "coldstart",
        run: coldstart::run,
        help: "[STARTS]  programs of `apr embed` from start to first prediction, beside Python with scikit-learn",
    },
    Task {
        name: "deny",
        run: quality::deny,
        help: "licences, duplicate versions and sources of the dependencies",
    },
    Task {
        name: "models",
        run: models::fetch,
        help: "[ci | all | PACKAGE...] [--list] [--strict]  fetches real models into target/models",
    },
    Task {
        name: "models-check",
        run: models::check,
        help: "`apr tensors --digest` of real models equals what plain Python reads",
    },
    Task {
        name: "foreign-oracle",
        run: foreign_oracle::run,
        help: "[ORACLE...]  random files of torch, NumPy, joblib, h5py, onnx and TensorFlow: `apr tensors` reads what they wrote",
    },
    Task {
        name: "foreign-models",
        run: foreign_oracle::models,
        help: "model files of other programs from public packages: `apr tensors` reads what their libraries read",
    },
    Task {
        name: "foreign-speed",
        run: foreign_oracle::speed,
        help: "[ROUNDS]  `apr convert` of 2 GiB of PyTorch and ONNX beside torch.load and save_file: time and memory",
    },
    Task {
        name: "hf-gguf",
        run: hf_gguf::run,
        help: "[COUNT] [FAMILY...]  llama.cpp's converter and `apr convert` beside each other on random model folders",
    },
    Task {
        name: "hf-lora",
        run: hf_gguf::adapters,
        help: "[COUNT] [FAMILY...]  llama.cpp's converter and `apr convert` beside each other on random LoRA adapters",
    },
    Task {
        name: "hf-speed",
        run: hf_gguf::speed,
        help: "[ROUNDS [GIB [FOLDER]]]  `apr convert` of a model folder beside llama.cpp's converter and quantizer: time and memory",
    },
    Task {
        name: "hf-logits",
        run: hf_gguf::logits,
        help: "llama.cpp loads what `apr convert` makes of model folders, and computes what transformers computes",
    },
    Task {
        name: "values-speed",
        run: values_speed::run,
        help: "[ROUNDS [GIB]]  `apr check --values` of a file in memory beside reading it on all cores",
    },
    Task {
        name: "canary",
        run: canary::run,
        help: "[SECONDS [SEED]]  generated files that `apr scan` calls safe do nothing in their loaders",
    },
    Task {
        name: "scanners",
        run: scanners::run,
        help: "[ROUNDS]  verdicts and times of `apr scan` beside picklescan, fickling and modelscan",
    },
    Task {
        name: "coverage",
        run: coverage::run,
        help: "[ARGS of cargo llvm-cov]  lines and branches that the tests of the crates for files execute, with the lines missed",
    },
    Task {
        name: "mutants",
        run: quality::mutants,
        help: "[ARGS of cargo mutants]  changes to st-core that its tests do not notice",
    },
    Task {
        name: "ci",
        run: ci::change,
        help: "[STEP...]  what .ci/run runs, or these steps of it: what each change needs",
    },
    Task {
        name: "nightly",
        run: ci::nightly,
        help: "[STEP...]  what takes long: features, cloud, reliability, interrupts, long soaks and fuzzing",
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let Some((name, rest)) = args.split_first() else {
        list();
        return ExitCode::SUCCESS;
    };
    if ["help", "--help", "-h"].contains(&name.as_str()) || rest.first().is_some_and(|word| word == "--help")
    {
        list();
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        let close = nearest(name).map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
        eprintln!("xtask: no task `{name}`{close}; `cargo xtask` lists them");
        return ExitCode::from(2);
    };
    let mut session = Session::new(root());
    let outcome = (task.run)(&mut session, rest);
    if !["ci", "nightly"].contains(&name.as_str()) {
        session.print_skips();
    }
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask {name}: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn list() {
    println!("cargo xtask TASK [ARGS]\n");
    TASKS.iter().for_each(|task| println!("  {:<12}  {}", task.name, task.help));
    println!("\nWhat each needs, and what a skipped check means: docs/tasks.md");
}

/// The root of the project. Cargo says where this package is, also to a program that was built elsewhere.
fn root() -> PathBuf {
    let built_in = || PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(built_in, PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}

/// The task whose name is within two typing errors of `name`.
fn nearest(name: &str) -> Option<&'static str> {
    let ranked = TASKS.iter().map(|task| (distance(name, task.name), task.name));
    ranked.min().filter(|(edits, near)| *edits <= 2 || near.starts_with(name)).map(|(_, near)| near)
}

/// How many letters have to be added, removed or replaced to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (from_idx, from_char) in from.chars().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], from_idx + 1);
        for (to_idx, to_char) in to.chars().enumerate() {
            let replaced = diagonal + usize::from(from_char != to_char);
            diagonal = row[to_idx + 1];
            row[to_idx + 1] = replaced.min(diagonal + 1).min(row[to_idx] + 1);
        }
    }
    row[to.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        for (slip, meant) in
            [("tets", "test"), ("no-std", "nostd"), ("layer", "layers"), ("modles", "models")]
        {
            assert_eq!(nearest(slip), Some(meant));
        }
        assert_eq!(nearest("deploy"), None);
    }

    #[test]
    fn each_task_has_its_own_name_and_one_line_of_help() {
        for (idx, task) in TASKS.iter().enumerate() {
            assert!(!task.help.contains('\n'));
            assert!(TASKS.iter().skip(idx + 1).all(|other| other.name != task.name), "{}", task.name);
        }
    }
}
