//! `embed`: projects of `apr embed` around models of every type build, pass rustfmt and clippy, and give the recorded
//! predictions.

mod protection;
mod readme;
mod size;
mod target;

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{cargo, command, stdout_of, step};
use crate::task::{Failure, Outcome, Session, without_arguments};
use crate::workspace::{Workspace, build_apr};

/// Models trained for the purpose: a name, the words of `apr train`.
const TRAINED: [(&str, &[&str]); 9] = [
    ("plane", &["linear-regression", "--data", "table.csv", "--target", "y", "--drop", "kind"]),
    ("classes", &["logistic-regression", "--data", "table.csv", "--target", "kind"]),
    ("bayes", &["naive-bayes", "--data", "table.csv", "--target", "kind", "--compression", "lz4"]),
    ("network", &["mlp", "--data", "table.csv", "--target", "kind", "--compression", "zstd"]),
    ("clusters", &["kmeans", "--data", "table.csv", "--drop", "kind", "--clusters", "2"]),
    ("axes", &["pca", "--data", "table.csv", "--drop", "kind"]),
    ("experts", &["moe", "--data", "table.csv", "--target", "y", "--drop", "kind", "--experts", "1"]),
    ("terms", &["tfidf", "--data", "texts.txt"]),
    ("words", &["ngram", "--data", "texts.txt"]),
];

/// A class has a name that has to be quoted.
const TABLE: &str = "a,b,y,kind\n0,0.1,1,red\n0.2,0,2,red\n0.1,0.3,1.5,red\n4,5,9,\"a, b\"\n4.5,5.5,10,\"a, b\"\n4.2,4.9,9.5,\"a, b\"\n";

const TEXTS: &str = "the cat sat\nthe dog sat on the cat\nein Vogel\n";

/// Models that other programs made, from the root of the project.
const VECTORS: [&str; 10] = [
    "crates/conformance/vectors/apr/a0723_dtree-reg_zstd-default_plain.apr",
    "crates/conformance/vectors/apr/a0723_rforest_zstd-default_plain.apr",
    "crates/conformance/vectors/apr/a0723_isoforest_zstd-default_signed.apr",
    "crates/conformance/vectors/apr/a0723_minmaxscaler_zstd-default_plain.apr",
    "crates/conformance/vectors/apr/a0723_logreg.safetensors",
    "crates/apr-models/tests/data/pipelines/histogram_boosting.apr",
    "crates/apr-models/tests/data/pipelines/isolation_forest.apr",
    "crates/apr-models/tests/data/pipelines/k_means.apr",
    "crates/apr-models/tests/data/pipelines/pca.apr",
    "crates/apr-models/tests/data/pipelines/texts.apr",
];

/// A model whose signature its program verifies.
const SIGNED: &str = "crates/conformance/vectors/apr/a0723_linreg_none_signed.apr";

/// One that is served, of those that are trained: its classes have names.
const SERVED: &str = "network.apr";

/// Generates the projects, and holds them to rustfmt, clippy and their own tests; with `size` or `protection`, measures some.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    if let Some((word, rest)) = args.split_first() {
        match word.as_str() {
            "size" => return size::run(session, rest),
            "protection" => return protection::run(session, rest),
            _ => {}
        }
    }
    without_arguments("embed", args)?;
    let apr = build_apr(session)?;
    let folder = empty(session.scratch("embed"))?;
    let (models, projects) = (empty(folder.join("models"))?, empty(folder.join("projects"))?);
    let mut generated = Vec::new();
    for path in models_in(session, &apr, &models)? {
        let name = format!("m{}", generated.len());
        let project = projects.join(&name);
        let mut embed = command(session, &apr, &["-q", "embed", "--allow-unverified", "--name", &name]);
        stdout_of(embed.arg(&path).arg("-o").arg(&project).arg("--crates").arg(session.root()))?;
        generated.push(project);
    }
    let project = projects.join("signed");
    let (model, key) = (session.root().join(SIGNED), models.join("maker.pem"));
    write(&key, &public_key(&model)?)?;
    let mut embed = command(session, &apr, &["-q", "embed", "--name", "signed"]);
    stdout_of(
        embed
            .arg(&model)
            .arg("-o")
            .arg(&project)
            .arg("--signer")
            .arg(&key)
            .arg("--crates")
            .arg(session.root()),
    )?;
    generated.push(project);

    // A service: its test starts it and sends requests.
    let project = projects.join("service");
    let mut embed = command(session, &apr, &["-q", "embed", "--serve", "--name", "service"]);
    let model = models.join(SERVED);
    stdout_of(embed.arg(&model).arg("-o").arg(&project).arg("--crates").arg(session.root()))?;
    generated.push(project);

    // One project unchanged: a separate workspace, with only its own features.
    let target = Workspace::load(session, "Cargo.toml")?.target_dir.join("embed");
    let inside = |project: &Path, args: &[&str]| {
        let mut cargo = cargo(session, args);
        cargo.current_dir(project).env("CARGO_TARGET_DIR", &target);
        cargo
    };
    let alone = generated.first().ok_or("no model to embed")?;
    step(&mut inside(alone, &["test", "--quiet", "--offline"]))?;
    readme::run(session, &folder.join("readme"), &target)?;

    // All in one workspace: the line that makes each a separate workspace is removed.
    for project in &generated {
        let manifest = project.join("Cargo.toml");
        let text =
            fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
        write(&manifest, &text.replace("[workspace]\n", ""))?;
    }
    write(&projects.join("Cargo.toml"), "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n")?;
    // Projects are written for rustfmt as it comes, and these lie below this project's rules.
    write(&projects.join("rustfmt.toml"), "")?;
    let lock = session.root().join("Cargo.lock");
    fs::copy(&lock, projects.join("Cargo.lock")).map_err(|error| format!("{}: {error}", lock.display()))?;
    step(&mut inside(&projects, &["fmt", "--all", "--check"]))?;
    let clippy = ["clippy", "--quiet", "--offline", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step(&mut inside(&projects, &clippy))?;
    step(&mut inside(&projects, &["test", "--quiet", "--offline", "--workspace", "--no-fail-fast"]))?;
    println!("embed: {} projects build and say what was recorded", generated.len());
    Ok(())
}

/// Trains, quantizes and collects models.
fn models_in(session: &Session, apr: &Path, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut models = train(session, apr, folder, &TRAINED)?;
    let (network, quantized) = (folder.join("network.apr"), folder.join("quantized.apr"));
    let mut quantize = command(session, apr, &["-q", "quantize", "--type", "q8_0"]);
    stdout_of(quantize.arg(network).arg("-o").arg(&quantized))?;
    models.push(quantized);
    models.extend(VECTORS.iter().map(|vector| session.root().join(vector)));
    Ok(models)
}

/// Trains some of [`TRAINED`].
fn train(
    session: &Session,
    apr: &Path,
    folder: &Path,
    trained: &[(&str, &[&str])],
) -> Result<Vec<PathBuf>, Failure> {
    write(&folder.join("table.csv"), TABLE)?;
    write(&folder.join("texts.txt"), TEXTS)?;
    let mut models = Vec::new();
    for (name, words) in trained {
        let path = folder.join(name).with_extension("apr");
        let mut train = command(session, apr, &["-q", "train"]);
        stdout_of(train.args(*words).arg("-o").arg(&path).current_dir(folder))?;
        models.push(path);
    }
    Ok(models)
}

/// The key inside a signed model: 32 bytes before the checksum.
fn public_key_bytes(model: &Path) -> Result<[u8; 32], Failure> {
    let bytes = fs::read(model).map_err(|error| format!("{}: {error}", model.display()))?;
    let key = bytes.len().checked_sub(36).and_then(|at| bytes[at..].first_chunk());
    Ok(*key.ok_or("a model without a key")?)
}

/// The same in PEM: RFC 8410 specifies its prefix.
fn public_key(model: &Path) -> Result<String, Failure> {
    let key = public_key_bytes(model)?;
    let der = [b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00".as_slice(), &key].concat();
    Ok(format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", base64(&der)))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            (0..3).fold(0_u32, |bits, idx| bits << 8 | u32::from(chunk.get(idx).copied().unwrap_or(0)));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { letter.into() } else { '=' });
        }
    }
    text
}

fn empty(folder: PathBuf) -> Result<PathBuf, Failure> {
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10.
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
