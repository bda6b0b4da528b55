//! `embed size`: sizes of programs of `apr embed` by model, feature and target.

use std::fs;
use std::path::{Path, PathBuf};

use super::{SIGNED, TRAINED, empty, public_key, train, write};
use crate::process::{announce, cargo, command, stdout_of};
use crate::task::{Failure, Outcome, Session};
use crate::workspace::{Workspace, build_apr};

/// The table that `apr size` prints, from the root of the project.
const TABLE: &str = "crates/apr-tools/src/commands/size/measured.txt";

/// Targets of the programs; the column of a target that is not installed is omitted.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"];

/// One model of every type with separate code, except for those of [`TRAINED`].
const VECTORS: [&str; 9] = [
    "crates/conformance/vectors/apr/a0723_dtree_zstd-default_plain.apr",
    "crates/conformance/vectors/apr/a0723_dtree-reg_zstd-default_plain.apr",
    FOREST,
    "crates/conformance/vectors/apr/a0723_rforest-reg_zstd-max_plain.apr",
    SIGNED_FOREST,
    "crates/conformance/vectors/apr/a0723_gmm_zstd-default_plain.apr",
    "crates/conformance/vectors/apr/a0723_stdscaler_none_plain.apr",
    "crates/conformance/vectors/apr/a0723_minmaxscaler_zstd-default_plain.apr",
    "crates/apr-models/tests/data/pipelines/random_forest.apr",
];

/// The one that features are measured on: it has no view, so that they alone make the difference.
const FOREST: &str = "crates/conformance/vectors/apr/a0723_rforest_zstd-default_plain.apr";

/// Compressed and signed: its estimated size is compared with the measured one.
const SIGNED_FOREST: &str = "crates/conformance/vectors/apr/a0723_isoforest_zstd-default_signed.apr";

/// A program to be built.
struct Program {
    model: PathBuf,
    /// How the model is stored: `stored`, `lz4`, `zstd`, `safetensors`, `apr2`.
    form: &'static str,
    /// The options of `apr embed`, among `--serve`, `--opt speed` and `--signer`.
    options: Vec<String>,
}

/// Builds the programs, prints what each takes, and with `--write` puts that where `apr size` has it from.
pub(super) fn run(session: &Session, args: &[String]) -> Outcome {
    let is_written = match args {
        [] => false,
        [word] if word == "--write" => true,
        _ => return Err(Failure::Usage("`embed size` takes --write or nothing".to_owned())),
    };
    let apr = build_apr(session)?;
    let folder = empty(session.scratch("embed-size"))?;
    let (models, projects) = (empty(folder.join("models"))?, empty(folder.join("projects"))?);
    let target_dir = Workspace::load(session, "Cargo.toml")?.target_dir.join("embed-size");
    let installed = stdout_of(&mut command(session, "rustc", &["--print", "sysroot"]))?;
    let libraries = Path::new(installed.trim()).join("lib/rustlib");
    let targets: Vec<&str> =
        TARGETS.into_iter().filter(|target| libraries.join(target).join("lib").is_dir()).collect();
    let compiler = stdout_of(&mut command(session, "rustc", &["--version"]))?;

    let mut table = format!(
        "# Bytes of programs of `apr embed`: stripped, without their model's file. Written by `cargo xtask embed size --write`.\n\
         compiler {compiler}targets {}\n# model form signature program for, then a column for each target\n",
        targets.join(" ")
    );
    let built = |project: &Path, name: &str, model_len: u64| -> Result<String, Failure> {
        let mut cells = String::new();
        for target in &targets {
            let args = ["build", "--release", "--quiet", "--offline", "--target", target];
            let mut build = cargo(session, &args);
            build.current_dir(project).env("CARGO_TARGET_DIR", &target_dir);
            announce(&build);
            stdout_of(&mut build)?;
            let program = target_dir.join(target).join("release").join(name);
            let len = length(&program)?;
            let code = len.checked_sub(model_len).ok_or("a program shorter than its model")?;
            cells += &format!(" {code}");
        }
        Ok(cells)
    };
    for (number, program) in programs(session, &apr, &models)?.iter().enumerate() {
        let (name, project) = (format!("p{number}"), projects.join(format!("p{number}")));
        let mut embed = command(session, &apr, &["embed", "--json", "--name", &name]);
        embed.arg(&program.model).arg("-o").arg(&project).arg("--crates").arg(session.root());
        if !program.options.iter().any(|option| option == "--signer") {
            embed.arg("--allow-unverified");
        }
        let report = crate::json::Value::parse(&stdout_of(embed.args(&program.options))?)?;
        let model = report.text_of("model").ok_or("a report without a model")?;
        let has = |option: &str| program.options.iter().any(|given| given == option);
        let row = format!(
            "{model} {} {} {} {}",
            program.form,
            if has("--signer") { "verified" } else { "-" },
            if has("--serve") { "service" } else { "lines" },
            if has("speed") { "speed" } else { "size" },
        );
        let model_len = length(&program.model)?;
        let row = row + &built(&project, &name, model_len)? + "\n";
        print!("{row}");
        table += &row;
        // The same project without anything in it.
        if number == 0 {
            write(&project.join("src/main.rs"), "fn main() {}\n")?;
            let row = "nothing - - - size".to_owned() + &built(&project, &name, 0)? + "\n";
            print!("{row}");
            table += &row;
        }
    }
    if is_written {
        write(&session.root().join(TABLE), &table)?;
    }
    Ok(())
}

/// Every type of model, then one with each feature, then some with several.
fn programs(session: &Session, apr: &Path, folder: &Path) -> Result<Vec<Program>, Failure> {
    let trained = train(session, apr, folder)?;
    let sources = trained.into_iter().chain(VECTORS.iter().map(|vector| session.root().join(vector)));
    let converted = |source: &Path, name: &str, form: &'static str, options: &[&str]| {
        let model = folder.join(name);
        let mut convert = command(session, apr, &["-q", "convert", "--allow-unverified"]);
        stdout_of(convert.arg(source).arg(&model).args(options))?;
        Ok::<_, Failure>(Program { model, form, options: Vec::new() })
    };
    let mut programs = Vec::new();
    for (number, source) in sources.enumerate() {
        let name = format!("{number}-stored.apr");
        programs.push(converted(&source, &name, "stored", &["--compression", "none"])?);
    }
    let forest = session.root().join(FOREST);
    let with = |program: Program, options: &[&str]| Program {
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..program
    };
    programs.push(converted(&forest, "lz4.apr", "lz4", &["--compression", "lz4"])?);
    programs.push(converted(&forest, "zstd.apr", "zstd", &["--compression", "zstd"])?);
    programs.push(converted(&forest, "forest.safetensors", "safetensors", &[])?);
    programs.push(converted(&forest, "tensors.apr", "apr2", &["--format", "apr2"])?);
    let stored = |name| converted(&forest, name, "stored", &["--compression", "none"]);
    programs.push(with(stored("speed.apr")?, &["--opt", "speed"]));
    programs.push(with(stored("service.apr")?, &["--serve"]));

    let verified = |model: &str, form: &'static str| {
        let model = session.root().join(model);
        let key = folder.join(format!("{form}.pem"));
        write(&key, &public_key(&model)?)?;
        let options = vec!["--signer".to_owned(), key.to_string_lossy().into_owned()];
        Ok::<_, Failure>(Program { model, form, options })
    };
    programs.push(verified(SIGNED, "stored")?);
    programs.push(verified(SIGNED_FOREST, "zstd")?);
    let regression = folder.join(TRAINED[0].0).with_extension("apr");
    programs.push(converted(&regression, "in-lz4.apr", "lz4", &["--compression", "lz4"])?);
    Ok(programs)
}

fn length(path: &Path) -> Result<u64, Failure> {
    let metadata = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(metadata.len())
}
