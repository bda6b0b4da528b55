//! `python frameworks`: the adapters beside the frameworks themselves, each in an environment of its own.

use std::path::Path;

use super::{FOLDER, TESTERS, UPSTREAM_TESTS, close, install, judged, pytest};
use crate::python::{Packages, environment};
use crate::task::{Failure, Outcome, Session, skipped};

/// A framework and how it is judged.
#[derive(Debug)]
pub(super) struct Framework {
    name: &'static str,
    packages: Packages,
    /// Our tests of its adapter.
    tests: &'static [&'static str],
    /// Upstream's.
    upstream: &'static [&'static str],
}

/// For x86-64 Linux the registry has torch for GPUs alone. It does not start without the libraries that it is linked with,
/// but does without the compilers and tools that it names as well: 5.4 GiB in place of 7.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) const TORCH: &[&str] = &[
    "torch==2.8.0",
    "--no-deps",
    "filelock",
    "typing_extensions",
    "sympy",
    "mpmath",
    "networkx",
    "jinja2",
    "markupsafe",
    "nvidia-cublas-cu12==12.8.4.1",
    "nvidia-cuda-cupti-cu12==12.8.90",
    "nvidia-cuda-runtime-cu12==12.8.90",
    "nvidia-cudnn-cu12==9.10.2.21",
    "nvidia-cufft-cu12==11.3.3.83",
    "nvidia-cufile-cu12==1.13.1.3",
    "nvidia-curand-cu12==10.3.9.90",
    "nvidia-cusparse-cu12==12.5.8.93",
    "nvidia-cusparselt-cu12==0.7.1",
    "nvidia-nccl-cu12==2.27.3",
    "nvidia-nvjitlink-cu12==12.8.93",
];

/// Elsewhere it is for CPUs.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) const TORCH: &[&str] = &["torch==2.8.0"];

static FRAMEWORKS: [Framework; 7] = [
    Framework {
        name: "torch",
        packages: Packages {
            names: TORCH,
            check: "import importlib.metadata as m; assert m.version('torch') == '2.8.0'; import torch",
            variables: &[],
        },
        tests: &[
            "tests/test_torch.py",
            "tests/test_torch_load.py",
            "tests/test_accelerator_torch.py",
            "tests/test_checkpoints_torch.py",
        ],
        upstream: &UPSTREAM_TESTS,
    },
    Framework {
        name: "jax",
        packages: Packages {
            names: &["jax==0.10.2", "flax", "optax", "keras"],
            check: "import importlib.metadata as m; assert m.version('jax') == '0.10.2'; import flax, optax; m.version('keras')",
            variables: &[],
        },
        tests: &["tests/test_flax.py", "tests/test_checkpoints_jax.py"],
        upstream: &["tests/test_flax_comparison.py"],
    },
    Framework {
        name: "tensorflow",
        packages: Packages {
            names: &["tensorflow-cpu==2.21.0", "h5py"],
            check: "import importlib.metadata as m, h5py; assert m.version('tensorflow-cpu') == '2.21.0'",
            variables: &[],
        },
        tests: &["tests/test_tensorflow.py"],
        upstream: &["tests/test_tf_comparison.py"],
    },
    Framework {
        name: "paddle",
        packages: Packages {
            names: &["paddlepaddle==3.3.1", "setuptools"],
            check: "import importlib.metadata as m; assert m.version('paddlepaddle') == '3.3.1'",
            variables: &[],
        },
        tests: &["tests/test_paddle.py"],
        upstream: &["tests/test_paddle_comparison.py"],
    },
    Framework {
        name: "mlx",
        packages: Packages {
            names: &["mlx[cpu]==0.32.4"],
            check: "import importlib.metadata as m, mlx.core; assert m.version('mlx') == '0.32.4'",
            variables: &[],
        },
        tests: &["tests/test_mlx.py"],
        upstream: &["tests/test_mlx_comparison.py"],
    },
    Framework {
        name: "ray",
        packages: Packages { names: &["ray"], check: "import ray", variables: &[] },
        tests: &["tests/test_jobs.py"],
        upstream: &[],
    },
    Framework {
        name: "spark",
        packages: Packages {
            names: &["pyspark"],
            // Its engine is a program in Java.
            check: "import pyspark, subprocess; subprocess.run(['java', '-version'], check=True)",
            variables: &[],
        },
        tests: &["tests/test_jobs.py"],
        upstream: &[],
    },
];

/// The frameworks with these names; without names, all.
///
/// # Errors
///
/// A [`Failure::Usage`] if a name is none of them.
pub(super) fn chosen(names: &[String]) -> Result<Vec<&'static Framework>, Failure> {
    if let Some(name) = names.iter().find(|name| FRAMEWORKS.iter().all(|known| known.name != **name)) {
        let known = FRAMEWORKS.each_ref().map(|known| known.name).join(", ");
        return Err(Failure::Usage(format!("no framework `{name}`; there are {known}")));
    }
    Ok(FRAMEWORKS
        .iter()
        .filter(|known| names.is_empty() || names.iter().any(|name| name == known.name))
        .collect())
}

/// Runs our tests and upstream's with each framework; one that cannot be had is skipped.
pub(super) fn run(
    session: &mut Session,
    folder: &Path,
    wheel: &Path,
    upstream: Option<&Path>,
    chosen: &[&Framework],
) -> Outcome {
    let mut outcome = Ok(());
    let mut n_tested = 0;
    for framework in chosen {
        eprintln!("python: {}: the first run installs it", framework.name);
        let place = folder.join(framework.name);
        let had = match environment(session, &place, &framework.packages)? {
            Ok(_) => environment(session, &place, &TESTERS)?,
            Err(why) => Err(why),
        };
        let python = match had {
            Ok(python) => python,
            Err(why) => {
                session.skip(format!("python frameworks: {}", framework.name), why);
                continue;
            }
        };
        n_tested += 1;
        install(session, &python, wheel)?;
        let ours = pytest(session, &python, framework.tests, |command| {
            command.current_dir(session.root().join(FOLDER));
        });
        let passed = close(session, &format!("our tests of {}", framework.name), ours);
        let judged = match upstream {
            Some(upstream) if !framework.upstream.is_empty() => {
                judged(session, &python, upstream, framework.name, framework.upstream)
            }
            _ => Ok(()),
        };
        outcome = outcome.and(passed).and(judged);
    }
    session.closing_lines().iter().for_each(|line| println!("{line}"));
    if n_tested == 0 { Err(skipped("no framework can be installed")) } else { outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_choose_and_unknown_ones_are_refused() {
        let words = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(chosen(&[]).unwrap().len(), FRAMEWORKS.len());
        assert_eq!(chosen(&words(&["mlx"])).unwrap().first().map(|found| found.name), Some("mlx"));
        assert!(matches!(chosen(&words(&["keras"])), Err(Failure::Usage(_))));
    }
}
