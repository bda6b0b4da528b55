//! `python structures`: safestructures' own tests, on `apr.safetensors` below it and on `apr.structures` in its place.

use std::path::Path;

use super::frameworks::TORCH;
use super::{FOLDER, Source, close, install, pytest, source_or_skip};
use crate::python::{Packages, environment};
use crate::task::{Outcome, Session, skipped};

const SOURCE: Source = Source {
    name: "safestructures",
    requirement: "safestructures==1.0.0 \
        --hash=sha256:da6d5e5f6004800d7a475ca005dc78c63fa8d7fc602ec22c1a62cf664910ddf0\n",
    folder: "safestructures-1.0.0",
};

/// The tests ask for a class of jaxlib that later versions do not have.
const FRAMEWORKS: Packages = Packages {
    names: &[
        "safestructures==1.0.0",
        "safetensors==0.8.0",
        "jax==0.5.3",
        "jaxlib==0.5.3",
        "tensorflow-cpu==2.21.0",
        "transformers==4.57.6",
        "ml_dtypes",
        "pytest",
        "fsspec",
    ],
    check: "import importlib.metadata as m; assert m.version('safestructures') == '1.0.0'; import jax, pytest, ml_dtypes, fsspec; \
            assert m.version('transformers') == '4.57.6'",
    variables: &[],
};

const WITH_TORCH: Packages = Packages {
    names: TORCH,
    check: "import importlib.metadata as m; assert m.version('torch') == '2.8.0'; import torch",
    variables: &[],
};

/// All of its tests but those that need the weights of trained models.
const ALL: [&str; 8] = [
    "tests/test_basic.py",
    "tests/test_iterable.py",
    "tests/test_nested.py",
    "tests/test_plugin.py",
    "tests/test_serializer.py",
    "tests/test_tensor.py",
    "tests/test_wrapper.py",
    "-rfE",
];

/// Those that save and load, through its functions and its class; the rest looks at the classes inside.
const THROUGH_FILES: [&str; 3] = ["tests/test_nested.py", "tests/test_plugin.py", "-rfE"];

/// Runs them three times: with the official packages, on our `safetensors`, on our `structures`.
pub(super) fn run(session: &mut Session, folder: &Path, wheel: &Path) -> Outcome {
    let Some(source) = source_or_skip(session, folder, &SOURCE)? else { return Ok(()) };
    let place = folder.join("structures");
    eprintln!("python: structures: the first run installs torch, TensorFlow, JAX and transformers");
    let had = match environment(session, &place, &FRAMEWORKS)? {
        Ok(_) => environment(session, &place, &WITH_TORCH)?,
        Err(why) => Err(why),
    };
    let python = had.map_err(skipped)?;
    install(session, &python, wheel)?;
    let overlay = session.root().join(FOLDER).join("tests/upstream");
    let paths = std::env::join_paths([overlay.clone(), overlay.join("structures")])
        .map_err(|error| format!("{}: {error}", overlay.display()))?;
    let mut outcome = Ok(());
    for (what, tests, options) in [
        ("official", &ALL[..], &["--judge-package=safetensors"][..]),
        ("on apr.safetensors", &ALL[..], &["--judge-package=apr"]),
        ("on apr.structures", &THROUGH_FILES[..], &["--judge-package=apr", "--judge-structures"]),
    ] {
        let tested = pytest(session, &python, tests, |command| {
            command.current_dir(&source).env("PYTHONPATH", &paths);
            command.args(["-p", "overlay", "-p", "overlay_structures"]).args(options);
        });
        outcome = outcome.and(close(session, &format!("tests of safestructures, {what}"), tested));
    }
    session.closing_lines().iter().for_each(|line| println!("{line}"));
    outcome
}
