//! `embed size`: sizes of programs of `apr embed` by model, feature and target, and their predictions.

use std::fs;
use std::path::{Path, PathBuf};

use super::target::{Target, installed};
use super::{SIGNED, TRAINED, empty, public_key, train, write};
use crate::process::{command, stdout_of};
use crate::task::{Failure, Outcome, Session};
use crate::workspace::{Workspace, build_apr};

/// The table that `apr size` prints, from the root of the project.
const TABLE: &str = "crates/apr-tools/src/commands/size/measured.txt";

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

/// Builds the programs, prints what each takes, compares their predictions with the recorded ones, and with `--write` puts the sizes where
/// `apr size` has them from.
pub(super) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let (is_written, only) = match args {
        [] => (false, None),
        [word] if word == "--write" => (true, None),
        [word] if !word.starts_with('-') => (false, Some(word.as_str())),
        _ => return Err(Failure::Usage("`embed size` takes --write, a target, or nothing".to_owned())),
    };
    let targets = installed(session, only)?;
    let apr = build_apr(session)?;
    let folder = empty(session.scratch("embed-size"))?;
    let (models, projects) = (empty(folder.join("models"))?, empty(folder.join("projects"))?);
    let target_dir = Workspace::load(session, "Cargo.toml")?.target_dir.join("embed-size");
    let compiler = stdout_of(&mut command(session, "rustc", &["--version"]))?;

    let triples: Vec<&str> = targets.iter().map(|target| target.triple).collect();
    let mut table = format!(
        "# Bytes of programs of `apr embed`: stripped, without their model's file. Written by `cargo xtask embed size --write`.\n\
         compiler {compiler}targets {}\n# model form signature program for, then a column for each target\n",
        triples.join(" ")
    );
    let mut compared = vec![0; targets.len()];
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
        let mut cells = String::new();
        for (target, compared) in targets.iter().zip(&mut compared) {
            let program = target.build(session, &project, &target_dir, &name, &[])?;
            let code = length(&program)?.checked_sub(model_len).ok_or("a program shorter than its model")?;
            cells += &format!(" {code}");
            *compared += usize::from(predicts_as_recorded(session, target, &program, &project)?);
        }
        let row = row + &cells + "\n";
        print!("{row}");
        table += &row;
        // The same project without anything in it.
        if number == 0 {
            write(&project.join("src/main.rs"), "fn main() {}\n")?;
            let mut row = "nothing - - - size".to_owned();
            for target in &targets {
                row += &format!(" {}", length(&target.build(session, &project, &target_dir, &name, &[])?)?);
            }
            row += "\n";
            print!("{row}");
            table += &row;
        }
    }
    for (target, compared) in targets.iter().zip(compared) {
        match compared {
            0 => session.skip(format!("predictions on {}", target.triple), "needs its emulator"),
            _ => println!("{}: the predictions of {compared} programs are the recorded ones", target.triple),
        }
    }
    if is_written {
        write(&session.root().join(TABLE), &table)?;
    }
    Ok(())
}

/// Every type of model, then one with each feature, then some with several.
fn programs(session: &Session, apr: &Path, folder: &Path) -> Result<Vec<Program>, Failure> {
    let trained = train(session, apr, folder, &TRAINED)?;
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

/// Whether the program was run on the rows of its project; an error if it does not print the predictions that were recorded. Services, and
/// models without a known number of columns, have none.
fn predicts_as_recorded(
    session: &Session,
    target: &Target,
    program: &Path,
    project: &Path,
) -> Result<bool, Failure> {
    let Ok(rows) = fs::File::open(project.join("tests/rows.txt")) else { return Ok(false) };
    let Some(mut command) = target.runs(session, program) else { return Ok(false) };
    let recorded = project.join("tests/predictions.txt");
    let recorded =
        fs::read_to_string(&recorded).map_err(|error| format!("{}: {error}", recorded.display()))?;
    let output = command.stdin(rows).output().map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() || output.stdout != recorded.as_bytes() {
        return Err(
            format!("{}: not the recorded predictions on {}", project.display(), target.triple).into()
        );
    }
    Ok(true)
}

pub(super) fn length(path: &Path) -> Result<u64, Failure> {
    let metadata = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(metadata.len())
}
