//! kill -9 while `apr seal` replaces a file, and while `apr rekey` changes one in place.

use core::time::Duration;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::reliability::lab::{Chance, Lab};
use crate::reliability::report::Report;
use crate::reliability::scene::names;
use crate::task::{Failure, Outcome, Session};
use crate::workspace::build_apr;

/// Elements of the two models: long enough to be killed in the middle, also without optimisation.
const LENS: [usize; 2] = [600_000, 800_000];

/// The program, two models and a sealed file.
struct Scene {
    program: PathBuf,
    folder: PathBuf,
    models: [Vec<u8>; 2],
}

/// How often each came out.
#[derive(Debug, Default)]
struct Tally {
    old: usize,
    new: usize,
    lost: usize,
}

/// Kills `rounds` seals, and a quarter as many rekeyings.
pub(crate) fn run(session: &Session, lab: &Lab, rounds: u32, report: &mut Report) -> Outcome {
    let scene = Scene::new(session, lab)?;
    for (part, rounds, work) in [
        (
            "kill -9 at a random time, `apr seal` over a file",
            rounds,
            &["seal", "b.safetensors", "-o", "model.sealed"][..],
        ),
        (
            "kill -9 at a random time, `apr rekey`",
            rounds.div_ceil(4),
            &["rekey", "model.sealed", "--recipient", "second.key.pub"],
        ),
    ] {
        let mut broken = Vec::new();
        let Tally { old, new, lost } = scene.kills(work, rounds, &mut broken)?;
        report.add(part, rounds as usize, format!("{old} before, {new} after, {lost} lost"), broken);
    }
    Ok(())
}

impl Scene {
    fn new(session: &Session, lab: &Lab) -> Result<Self, Failure> {
        let program = build_apr(session)?;
        let scene = Self { program, folder: lab.clear("seal")?, models: LENS.map(model) };
        for (name, bytes) in ["a.safetensors", "b.safetensors"].iter().zip(&scene.models) {
            fs::write(scene.folder.join(name), bytes).map_err(|error| error.to_string())?;
        }
        for key in ["reader.key", "second.key"] {
            scene.must(&["keygen", "encrypt", "-o", key])?;
        }
        Ok(scene)
    }

    fn kills(&self, work: &[&str], rounds: u32, broken: &mut Vec<String>) -> Result<Tally, Failure> {
        let seals = work.first() == Some(&"seal");
        // `seal` writes without an identity; `rekey` needs one.
        let owner: &[&str] =
            if seals { &["--recipient", "reader.key.pub", "--force"] } else { &["--identity", "reader.key"] };
        let work = [work, owner].concat();
        let typical = self.typical(&work)?;
        let (mut chance, mut tally) = (Chance::new(), Tally::default());
        for round in 0..rounds {
            self.prepare()?;
            let mut child = self.start(&work)?;
            thread::sleep(chance.up_to(typical.mul_f64(1.25)));
            child.kill().and_then(|()| child.wait()).map_err(|error| format!("kill: {error}"))?;
            match self.found("reader.key") {
                Ok(content) if content == self.models[0] && seals => tally.old += 1,
                Ok(content) if content == self.models[1] && seals => tally.new += 1,
                Ok(content) if content == self.models[0] => match self.found("second.key") {
                    Ok(_) => tally.new += 1,
                    Err(_) => tally.old += 1,
                },
                other => {
                    tally.lost += 1;
                    broken.push(format!("round {round}: {:?}", other.map(|content| content.len())));
                }
            }
            // The next save removes the leftovers of the killed one.
            self.prepare()?;
            let strangers = names(&self.folder).into_iter().filter(|name| name.contains(".df-")).count();
            if strangers > 0 {
                broken.push(format!("round {round}: {strangers} temporary files are left"));
            }
        }
        Ok(tally)
    }

    /// A file sealed for one reader.
    fn prepare(&self) -> Outcome {
        self.must(&[
            "seal",
            "a.safetensors",
            "-o",
            "model.sealed",
            "--recipient",
            "reader.key.pub",
            "--force",
        ])
    }

    /// The content of the sealed file.
    fn found(&self, key: &str) -> Result<Vec<u8>, Failure> {
        self.must(&["open", "model.sealed", "-o", "found.safetensors", "--identity", key, "--force"])?;
        fs::read(self.folder.join("found.safetensors")).map_err(|error| error.to_string().into())
    }

    /// Duration of the undisturbed work: the median of five.
    fn typical(&self, work: &[&str]) -> Result<Duration, Failure> {
        let mut times = [Duration::ZERO; 5];
        for time in &mut times {
            self.prepare()?;
            let start = Instant::now();
            self.must(work)?;
            *time = start.elapsed();
        }
        times.sort();
        Ok(times[2])
    }

    fn start(&self, args: &[&str]) -> Result<Child, Failure> {
        self.command(args).spawn().map_err(|error| format!("apr cannot be started: {error}").into())
    }

    fn must(&self, args: &[&str]) -> Outcome {
        let output =
            self.command(args).output().map_err(|error| format!("apr cannot be started: {error}"))?;
        let says = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("apr {}: {says}", args.join(" ")).into()) }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).arg("--quiet").current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

/// A safetensors file of one tensor.
fn model(len: usize) -> Vec<u8> {
    let mut header =
        format!("{{\"weight\":{{\"dtype\":\"U8\",\"shape\":[{len}],\"data_offsets\":[0,{len}]}}}}");
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let data = (0..len).map(|idx| (idx.wrapping_mul(2_654_435_761) >> 7) as u8);
    (header.len() as u64).to_le_bytes().into_iter().chain(header.into_bytes()).chain(data).collect()
}
