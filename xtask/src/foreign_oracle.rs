//! `foreign-oracle`: the libraries of foreign formats write files and say what is in them; `apr tensors` reads the same.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{command, step};
use crate::python::{self, Packages, environment};
use crate::python_package::TORCH;
use crate::task::{Failure, Outcome, Session, skipped, without_arguments};
use crate::workspace::build_release;

/// Compares what was read with what was written.
const JUDGE: &str = "xtask/judge_foreign.py";

/// Makes a failure repeatable.
const SEED: &str = "1";

/// A library, and the script that lets it write.
struct Oracle {
    name: &'static str,
    /// The folder of its environment, which several may share.
    environment: &'static str,
    packages: &'static [Packages],
    script: &'static str,
    /// Files unless told.
    count: u32,
}

static ARRAYS: [Packages; 1] = [Packages {
    names: &["numpy==2.2.6", "joblib==1.6.0", "h5py==3.16.0", "onnx==1.23.2"],
    check: "import importlib.metadata as m, joblib, h5py, onnx\n\
        versions = [m.version(name) for name in ('numpy', 'joblib', 'h5py', 'onnx')]\n\
        assert versions == ['2.2.6', '1.6.0', '3.16.0', '1.23.2']",
    variables: &[],
}];

static TENSORFLOW: [Packages; 1] = [Packages {
    names: &["tensorflow-cpu==2.21.0", "h5py"],
    check: "import importlib.metadata as m, h5py; assert m.version('tensorflow-cpu') == '2.21.0'",
    variables: &[],
}];

static TORCH_2_8: [Packages; 2] = [
    Packages {
        names: TORCH,
        check: "import importlib.metadata as m; assert m.version('torch') == '2.8.0'; import torch",
        variables: &[],
    },
    Packages {
        names: &["numpy==2.2.6", "safetensors==0.8.0", "joblib==1.6.0"],
        check: "import joblib, numpy, safetensors.torch; assert (numpy.__version__, safetensors.__version__) == ('2.2.6', '0.8.0')",
        variables: &[],
    },
];

const ONNX: Packages = Packages {
    names: &["onnx==1.23.2"],
    check: "import onnx; assert onnx.__version__ == '1.23.2'",
    variables: &[],
};

const fn arrays(name: &'static str, count: u32) -> Oracle {
    Oracle { name, environment: "arrays", packages: &ARRAYS, script: "write_arrays.py", count }
}

static ORACLES: [Oracle; 6] = [
    Oracle {
        name: "torch",
        environment: "torch",
        packages: &TORCH_2_8,
        script: "write_torch.py",
        count: 500,
    },
    arrays("numpy", 400),
    arrays("joblib", 300),
    arrays("hdf5", 300),
    arrays("onnx", 300),
    Oracle {
        name: "tensorflow",
        environment: "tensorflow",
        packages: &TENSORFLOW,
        script: "write_tensorflow.py",
        count: 120,
    },
];

/// Lets the oracles named in `args` (all of them without names) write files, and compares.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    if let Some(name) = args.iter().find(|name| ORACLES.iter().all(|oracle| oracle.name != **name)) {
        let known = ORACLES.each_ref().map(|oracle| oracle.name).join(", ");
        return Err(Failure::Usage(format!("no oracle `{name}`; there are {known}")));
    }
    python::require(session)?;
    let folder = session.scratch("foreign-oracle");
    let mut written = Vec::new();
    for oracle in
        ORACLES.iter().filter(|oracle| args.is_empty() || args.iter().any(|name| name == oracle.name))
    {
        let files = folder.join("files").join(oracle.name);
        match installed(session, oracle.environment, oracle.packages)? {
            Ok(python) => write(session, oracle, &python, &files)?,
            Err(why) => {
                session.skip(format!("foreign-oracle {}", oracle.name), why);
                continue;
            }
        }
        written.push(files);
    }
    if written.is_empty() {
        return Err(skipped("no library can be had"));
    }
    let apr = build_release(session)?;
    step(command(session, "python3", &["-I", JUDGE]).arg(apr).args(written))
}

/// The Python of an environment, or why it cannot be had.
fn installed(
    session: &Session,
    name: &str,
    packages: &[Packages],
) -> Result<Result<PathBuf, String>, Failure> {
    let folder = session.scratch("foreign-oracle").join(name);
    let mut had = Err("no packages".to_owned());
    for packages in packages {
        had = environment(session, &folder, packages)?;
        if had.is_err() {
            break;
        }
    }
    Ok(had)
}

fn write(session: &Session, oracle: &Oracle, python: &Path, files: &Path) -> Outcome {
    let wrong = |error| format!("{}: {error}", files.display());
    if files.exists() {
        fs::remove_dir_all(files).map_err(wrong)?;
    }
    fs::create_dir_all(files).map_err(wrong)?;
    let script = format!("xtask/oracles/{}", oracle.script);
    let mut writer = command(session, python, &["-s", &script]);
    step(writer.arg(files).arg(oracle.count.to_string()).args([SEED, oracle.name]))
}

/// Compares model files of public packages with what their libraries read from them.
pub(crate) fn models(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("foreign-models", args)?;
    crate::models::fetch(session, &["ci".to_owned(), "foreign".to_owned()])?;
    let (models, mut read) = (session.scratch("models"), Vec::new());
    for oracle in ORACLES.iter().filter(|oracle| ["torch", "numpy"].contains(&oracle.name)) {
        let files = session.scratch("foreign-oracle").join("files/packages").join(oracle.environment);
        match installed(session, oracle.environment, oracle.packages)? {
            Ok(python) => {
                let wrong = |error| format!("{}: {error}", files.display());
                fs::create_dir_all(&files).map_err(wrong)?;
                let mut reader = command(session, python, &["-s", "xtask/oracles/read_packages.py"]);
                step(reader.arg(&files).args(["0", "0", oracle.environment]).arg(&models))?;
                read.push(files);
            }
            Err(why) => session.skip(format!("foreign-models {}", oracle.environment), why),
        }
    }
    if read.is_empty() {
        return Err(skipped("no library can be had"));
    }
    let apr = build_release(session)?;
    step(command(session, "python3", &["-I", JUDGE]).arg(apr).args(read))
}

/// Measures `apr convert` beside the libraries.
pub(crate) fn speed(session: &mut Session, args: &[String]) -> Outcome {
    let rounds = match args {
        [] => "5",
        [rounds] if rounds.parse::<u32>().is_ok_and(|rounds| rounds > 0) => rounds.as_str(),
        _ => return Err(Failure::Usage("`foreign-speed` takes a number of rounds".to_owned())),
    };
    python::require(session)?;
    installed(session, "torch", &TORCH_2_8)?.map_err(skipped)?;
    let python = installed(session, "torch", &[ONNX])?.map_err(skipped)?;
    let folder = session.scratch("foreign-oracle").join("speed");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let apr = build_release(session)?;
    step(command(session, python, &["-I", "xtask/foreign_speed.py"]).args([&apr, &folder]).arg(rounds))
}
