//! kill -9 while `apr convert` makes a GGUF file of a model folder, over another one and where there is none.

use core::fmt::Write as _;
use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::reliability::lab::{Chance, Lab};
use crate::reliability::report::Report;
use crate::reliability::scene::names;
use crate::task::{Failure, Outcome, Session};
use crate::workspace::build_apr;

/// The folder whose texts are taken, from the root of the repository.
const VECTOR: &str = "crates/conformance/vectors/hf/Tiny-Llama2-110K-Chat";
/// Rows of its gates, and of those of the model here: some 50 ms of work without optimisation.
const OLD_ROWS: usize = 96;
const ROWS: usize = 2_500;
/// Length of its vectors of tokens.
const WIDTH: usize = 48;
const TOKENS: usize = 420;
const LAYERS: usize = 2;
/// The output.
const OUT: &str = "out.gguf";

/// The program, and what it makes of the folder as `F16` and as `F32`.
struct Scene {
    program: PathBuf,
    folder: PathBuf,
    old: Vec<u8>,
    new: Vec<u8>,
}

/// How often each came out.
#[derive(Debug, Default)]
struct Tally {
    old: usize,
    new: usize,
    absent: usize,
    torn: usize,
}

/// Kills `rounds` conversions.
pub(crate) fn run(session: &Session, lab: &Lab, rounds: u32, report: &mut Report) -> Outcome {
    let scene = Scene::new(session, lab)?;
    let mut broken = Vec::new();
    let Tally { old, new, absent, torn } = scene.kills(rounds, &mut broken)?;
    let result = format!("{old} with the old file, {absent} without one, {new} after, {torn} torn");
    let part = "kill -9 at a random time, `apr convert` of a model folder";
    report.add(part, rounds as usize, result, broken);
    Ok(())
}

impl Scene {
    fn new(session: &Session, lab: &Lab) -> Result<Self, Failure> {
        let program = build_apr(session)?;
        let folder = lab.clear("convert")?;
        write_model(&session.root().join(VECTOR), &folder.join("model"))?;
        let mut scene = Self { program, folder, old: Vec::new(), new: Vec::new() };
        scene.old = scene.converted("f16")?;
        scene.new = scene.converted("f32")?;
        Ok(scene)
    }

    fn kills(&self, rounds: u32, broken: &mut Vec<String>) -> Result<Tally, Failure> {
        let typical = self.typical()?;
        let (mut chance, mut tally) = (Chance::new(), Tally::default());
        for round in 0..rounds {
            let had_file = round % 2 == 0;
            // This run removes what the killed one left.
            self.converted("f16")?;
            let left = names(&self.folder).into_iter().filter(|name| name != OUT && name != "model").count();
            if left > 0 {
                broken.push(format!("round {round}: {left} files of the run before are left"));
            }
            if !had_file {
                fs::remove_file(self.folder.join(OUT)).map_err(|error| error.to_string())?;
            }
            let mut child = self.start("f32")?;
            thread::sleep(chance.up_to(typical.mul_f64(1.25)));
            child.kill().and_then(|()| child.wait()).map_err(|error| format!("kill: {error}"))?;
            match fs::read(self.folder.join(OUT)) {
                Ok(bytes) if bytes == self.new => tally.new += 1,
                Ok(bytes) if bytes == self.old && had_file => tally.old += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && !had_file => tally.absent += 1,
                other => {
                    tally.torn += 1;
                    broken.push(format!("round {round}: {:?}", other.map(|bytes| bytes.len())));
                }
            }
        }
        Ok(tally)
    }

    /// The file of an undisturbed conversion.
    fn converted(&self, output_type: &str) -> Result<Vec<u8>, Failure> {
        let output = self.command(output_type).output();
        let output = output.map_err(|error| format!("apr cannot be started: {error}"))?;
        if !output.status.success() {
            return Err(format!("apr convert: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        fs::read(self.folder.join(OUT)).map_err(|error| error.to_string().into())
    }

    /// Duration of an undisturbed conversion: the median of five.
    fn typical(&self) -> Result<Duration, Failure> {
        let mut times = [Duration::ZERO; 5];
        for time in &mut times {
            let start = Instant::now();
            self.converted("f32")?;
            *time = start.elapsed();
        }
        times.sort();
        Ok(times[2])
    }

    fn start(&self, output_type: &str) -> Result<Child, Failure> {
        let spawned = self.command(output_type).spawn();
        spawned.map_err(|error| format!("apr cannot be started: {error}").into())
    }

    fn command(&self, output_type: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["convert", "model", OUT, "--force", "--quiet", "--type", output_type]);
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

/// A copy of the vector with larger matrices.
fn write_model(vector: &Path, to: &Path) -> Outcome {
    let failed = |error: std::io::Error| Failure::from(format!("{}: {error}", to.display()));
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(vector).map_err(failed)?.flatten() {
        if entry.path().extension().is_none_or(|end| end != "safetensors") {
            fs::copy(entry.path(), to.join(entry.file_name())).map_err(failed)?;
        }
    }
    let config = fs::read_to_string(to.join("config.json")).map_err(failed)?;
    let size = |rows: usize| format!("\"intermediate_size\": {rows},");
    let config = config.replace(&size(OLD_ROWS), &size(ROWS));
    fs::write(to.join("config.json"), config).map_err(failed)?;
    fs::write(to.join("model.safetensors"), tensors()).map_err(failed)
}

/// A safetensors file of all tensors, in `F16`.
fn tensors() -> Vec<u8> {
    let matrix = |name: &str, rows: usize, columns: usize| (format!("{name}.weight"), vec![rows, columns]);
    let mut all = vec![
        matrix("model.embed_tokens", TOKENS, WIDTH),
        matrix("lm_head", TOKENS, WIDTH),
        ("model.norm.weight".to_owned(), vec![WIDTH]),
    ];
    for layer in 0..LAYERS {
        let name = |part: &str| format!("model.layers.{layer}.{part}");
        for part in ["q_proj", "k_proj", "v_proj", "o_proj"] {
            all.push(matrix(&name(&format!("self_attn.{part}")), WIDTH, WIDTH));
        }
        all.push(matrix(&name("mlp.gate_proj"), ROWS, WIDTH));
        all.push(matrix(&name("mlp.up_proj"), ROWS, WIDTH));
        all.push(matrix(&name("mlp.down_proj"), WIDTH, ROWS));
        for part in ["input_layernorm", "post_attention_layernorm"] {
            all.push((name(&format!("{part}.weight")), vec![WIDTH]));
        }
    }
    let (mut header, mut begin) = (String::new(), 0);
    for (name, shape) in &all {
        let end = begin + 2 * shape.iter().product::<usize>();
        let comma = if header.is_empty() { '{' } else { ',' };
        // Writing to a string does not fail.
        _ = write!(
            header,
            "{comma}\"{name}\":{{\"dtype\":\"F16\",\"shape\":{shape:?},\"data_offsets\":[{begin},{end}]}}"
        );
        begin = end;
    }
    header.push('}');
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    // Numbers below two: the exponents of infinities do not occur.
    let data = (0..begin).map(|idx| (idx.wrapping_mul(2_654_435_761) >> 7) as u8 & 0x3f);
    (header.len() as u64).to_le_bytes().into_iter().chain(header.into_bytes()).chain(data).collect()
}
