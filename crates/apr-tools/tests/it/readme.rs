//! The commands of README.md and the recipes of docs/guide.md, word for word; `cargo xtask embed` builds the Rust program of README.md. `UPDATE_SNAPSHOTS=1` rewrites the output that README.md shows.

use crate::sandbox::Sandbox;

const README: &str = include_str!("../../../../README.md");
const GUIDE: &str = include_str!("../../../../docs/guide.md");

/// The blocks of code of a page in this language.
fn blocks<'page>(page: &'page str, language: &str) -> Vec<&'page str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// The words of code, however they are spread over lines.
fn code(text: &str) -> String {
    text.split_whitespace().flat_map(|word| [word, " "]).collect()
}

mod files {
    use crate::sandbox::Sandbox;

    #[test]
    fn a_model_is_trained_saved_and_loaded() -> Result<(), apr_models::Error> {
        let sandbox = Sandbox::empty();
        let path = sandbox.path("line.apr");
        {
            use apr_container::{Compression, ModelType, SaveOptions, inspect, load, save};
            use apr_models::{LinearRegression, Matrix, Vector};

            let x = Matrix::from_vec(4, 1, vec![1.0, 2.0, 3.0, 4.0])?;
            let y = Vector::from_vec(vec![3.0, 5.0, 7.0, 9.0]);
            let mut model = LinearRegression::new();
            model.fit(&x, &y)?;

            let options = SaveOptions::default().with_name("line").with_compression(Compression::ZstdDefault);
            save(&model, ModelType::LinearRegression, &path, options)?;

            // Reads the header and the metadata, not the payload.
            assert_eq!(inspect(&path)?.metadata.model_name.as_deref(), Some("line"));

            let again: LinearRegression = load(&path, ModelType::LinearRegression)?;
            assert_eq!(again.predict(&x), model.predict(&x));
        }
        {
            use apr_models::{AnyModel, Floats, Matrix, Predictions};

            let model = AnyModel::load(&path)?;
            let x = Matrix::from_vec(1, 1, vec![5.0])?;
            assert_eq!(model.try_predict(&x)?, Predictions::Values(Floats::F32(vec![11.0])));
        }
        Ok(())
    }
}

mod embedded_model {
    use apr_container::{Embedded, embed_model};
    use apr_models::LinearRegression;

    static MODEL: Embedded<LinearRegression> =
        embed_model!("../../../conformance/vectors/apr/a0723_linreg_lz4_plain.apr");

    fn main() -> Result<(), apr_container::Error> {
        let model = MODEL.load()?;
        println!("{:?} {}", model.coefficients(), model.intercept());
        Ok(())
    }

    #[test]
    fn runs() {
        main().unwrap();
    }
}

#[allow(clippy::std_instead_of_core, reason = "as the README writes it")]
mod model_in_place {
    use apr_container::{Embedded, embed_model};
    use apr_models::LinearRegression;

    static MODEL: Embedded<LinearRegression> =
        embed_model!("../../../conformance/vectors/apr/a0723_linreg_none_plain.apr");

    fn main() -> Result<(), Box<dyn std::error::Error>> {
        let model = MODEL.view()?;
        println!("{}", model.try_predict_one(&vec![1.0; model.n_features()])?);
        Ok(())
    }

    #[test]
    fn runs() {
        main().unwrap();
    }
}

mod embedded_tensors {
    use st_core::SafeTensors;

    static MODEL: &[u8] = include_bytes!("../../../conformance/vectors/apr/a0723_linreg.safetensors");

    fn main() -> Result<(), st_core::Error> {
        let tensors = SafeTensors::from_bytes(MODEL)?;
        let weights = tensors.tensor("coefficients")?;
        println!("{:?} {:?}", weights.shape(), weights.elements::<f32>()?.collect::<Vec<_>>());
        Ok(())
    }

    #[test]
    fn runs() {
        main().unwrap();
    }
}

#[test]
fn the_code_is_that_above() {
    let here = code(include_str!("readme.rs"))
        .replace("&path", "\"line.apr\"")
        .replace("../../../conformance/vectors/apr/a0723_linreg_lz4_plain.apr", "model.apr")
        .replace("../../../conformance/vectors/apr/a0723_linreg_none_plain.apr", "model.apr")
        .replace("../../../conformance/vectors/apr/a0723_linreg.safetensors", "model.safetensors");
    let all = blocks(GUIDE, "rust");
    assert_eq!(all.len(), 5);
    for block in all {
        assert!(here.contains(&code(block)), "not in this file:\n{block}");
    }
}

/// A sandbox that resembles a checkout: recipes name `../crates`.
#[cfg(unix)]
fn checkout() -> Sandbox {
    let sandbox = Sandbox::empty();
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    std::os::unix::fs::symlink(crates, sandbox.path("crates")).unwrap();
    sandbox
}

/// The lines of the shell blocks that start `apr` or prepare its input; other programs are left out.
fn commands(page: &str) -> Vec<&str> {
    let is_run = |line: &&str| {
        ["apr ", "cp "].iter().any(|word| line.starts_with(word))
            || (line.starts_with("printf ") && line.contains("> "))
    };
    blocks(page, "sh").into_iter().flat_map(str::lines).filter(is_run).collect()
}

/// The blocks run in their order, as they are printed, in a checkout.
#[cfg(unix)]
#[test]
fn commands_of_the_guide_run() {
    let sandbox = checkout();
    let lines = commands(GUIDE);
    assert!(lines.len() >= 40 && lines[0].starts_with("apr demo --keep "), "{}", lines.len());
    let mut script = String::from("set -e\n");
    let mut served = None;
    for line in lines {
        if let Some(args) = line.strip_prefix("apr serve ") {
            // It runs until it is stopped: below, on any port.
            served = args.split_whitespace().next();
            continue;
        }
        // These end with 1 where files differ.
        let line = if ["apr diff ", "apr checkpoint diff "].iter().any(|word| line.starts_with(word)) {
            format!("({line}\n) || test $? -eq 1")
        } else {
            line.to_owned()
        };
        script += &format!("{line}\n");
    }
    let ran = sandbox.shell(&script);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let served = format!("demo-files/{}", served.expect("a recipe serves a model"));
    assert_eq!(crate::serving::Serving::start(&sandbox, &["serve", &served]).get("/health").0, 200);
}

/// The session of the README prints what the README shows, standard error included.
#[cfg(unix)]
#[test]
fn the_session_of_the_readme_prints_what_it_shows() {
    let [session] = blocks(README, "console")[..] else { panic!("one session") };
    let typed: Vec<&str> = session.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let mut script = format!("{{\n{}\n}} > /dev/null\n", commands(README).join("\n"));
    for line in &typed {
        script += &format!("printf '%s\\n' '$ {line}'\n{{ {line}; }} 2>&1\n");
    }
    let printed = checkout().shell(&script).stdout;
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
        std::fs::write(page, README.replace(session, &printed)).unwrap();
    } else {
        assert_eq!(printed, session);
    }
}
