//! kill -9 and power cuts while checkpoints are saved and removed.

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::process::stdout_of;
use crate::reliability::lab::{Chance, Ending, Lab, ended, saving};
use crate::reliability::power_cut::{Setup, Sized};
use crate::reliability::report::Report;
use crate::reliability::scene::names;
use crate::task::{Failure, Outcome, Session};
use crate::workspace::build_example;

/// Bytes of the weights; a checkpoint has four times as many.
const LEN: u64 = 1_000_003;

/// Steps that are there before.
const BEFORE: [u64; 2] = [100, 200];

/// The step that is saved.
const NEW: u64 = 300;

/// How often each came out.
#[derive(Debug, Default)]
struct Tally {
    absent: usize,
    whole: usize,
    torn: usize,
    reported: usize,
}

/// Kills `rounds` saves, a quarter as many that write in place and as many removals; cuts the power `cuts` times.
pub(crate) fn run(session: &mut Session, lab: &Lab, rounds: u32, cuts: u32, report: &mut Report) -> Outcome {
    let program = Program::new(session, lab)?;
    let quarter = rounds.div_ceil(4);
    for (mode, rounds) in [("save", rounds), ("in-place", quarter)] {
        let mut broken = Vec::new();
        let tally = program.kills(mode, rounds, &mut broken)?;
        let Tally { absent, whole, torn, .. } = tally;
        if mode == "in-place" {
            let result = format!("{torn} torn: the harness sees them");
            report.add("control: kill -9, checkpoint written in place", rounds as usize, result, Vec::new());
        } else {
            let result = format!("{absent} before, {whole} after, {torn} torn");
            report.add("kill -9 at a random time, a checkpoint", rounds as usize, result, broken);
        }
    }
    let mut broken = Vec::new();
    let (interrupted, partial) = program.removals(quarter, &mut broken)?;
    report.add(
        "kill -9 at a random time, checkpoints removed",
        quarter as usize,
        format!("{interrupted} interrupted, {partial} with some of the 18 left; none of the 2 that are kept is gone"),
        broken,
    );
    program.cuts(session, lab, cuts, report)
}

/// The program that saves, and its folder.
struct Program {
    path: PathBuf,
    run: PathBuf,
}

impl Program {
    fn new(session: &Session, lab: &Lab) -> Result<Self, Failure> {
        let path = build_example(session, "st-mmap", "checkpoint")?;
        Ok(Self { path, run: lab.clear("checkpoints")?.join("run") })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn save(&self, mode: &str, folder: &Path, step: u64) -> Command {
        let (folder, step, len) = (folder.to_string_lossy(), step.to_string(), LEN.to_string());
        self.command(&[mode, &folder, &step, &len])
    }

    /// Runs a command undisturbed; the time after it has begun its work.
    fn must(&self, command: Command) -> Result<Duration, Failure> {
        match ended(Ok(saving(command)?))? {
            (Ending::Saved, time) => Ok(time),
            (other, _) => Err(format!("a checkpoint cannot be saved or removed: {other:?}").into()),
        }
    }

    /// Only the steps that are there before.
    fn prepare(&self) -> Outcome {
        drop(fs::remove_dir_all(&self.run));
        for step in BEFORE {
            self.must(self.save("save", &self.run, step))?;
        }
        Ok(())
    }

    /// The steps of a folder, each with what is said of it.
    fn verified(&self, folder: &Path) -> Result<Vec<(u64, String)>, Failure> {
        let text = stdout_of(&mut self.command(&["verify", &folder.to_string_lossy()]))?;
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        Ok(lines.filter_map(|(step, state)| Some((step.parse().ok()?, state.to_owned()))).collect())
    }

    fn kills(&self, mode: &str, rounds: u32, broken: &mut Vec<String>) -> Result<Tally, Failure> {
        let mut times = Vec::new();
        for _ in 0..5 {
            self.prepare()?;
            times.push(self.must(self.save(mode, &self.run, NEW))?);
        }
        times.sort();
        let (mut chance, mut tally) = (Chance::new(), Tally::default());
        for round in 0..rounds {
            self.prepare()?;
            let mut child = saving(self.save(mode, &self.run, NEW))?;
            thread::sleep(chance.up_to(times[2].mul_f64(1.25)));
            child.kill().map_err(|error| format!("kill: {error}"))?;
            let (ending, _) = ended(Ok(child))?;
            let found = self.verified(&self.run)?;
            let is_whole = |step: u64| found.iter().any(|(at, state)| *at == step && state == "whole");
            match found.iter().find(|(step, _)| *step == NEW) {
                None if ending == Ending::Killed => tally.absent += 1,
                Some(_) if is_whole(NEW) => tally.whole += 1,
                other => {
                    tally.torn += 1;
                    broken.push(format!("round {round}: {ending:?}, then {other:?}"));
                }
            }
            if !BEFORE.iter().all(|step| is_whole(*step)) {
                broken.push(format!("round {round}: of the earlier ones there is {found:?}"));
            }
            if mode == "save" {
                // The next save removes what is left.
                self.must(self.save("save", &self.run, NEW + 1))?;
                let strangers: Vec<_> =
                    names(&self.run).into_iter().filter(|name| !name.starts_with("step_")).collect();
                if !strangers.is_empty() {
                    broken.push(format!("round {round}: after the next save there is {strangers:?}"));
                }
            }
        }
        Ok(tally)
    }

    /// Kills removals of 18 of 20 checkpoints; how many removals had not come to their end, and how many left some of the 18.
    fn removals(&self, rounds: u32, broken: &mut Vec<String>) -> Result<(usize, usize), Failure> {
        let steps: Vec<u64> = (1..=20).collect();
        let prune = |program: &Self| program.command(&["prune", &program.run.to_string_lossy(), "2"]);
        let (mut chance, mut typical) = (Chance::new(), Duration::ZERO);
        let (mut interrupted, mut partial) = (0, 0);
        // The first round is not killed.
        for round in 0..=rounds {
            drop(fs::remove_dir_all(&self.run));
            for step in &steps {
                let step = step.to_string();
                self.must(self.command(&["save", &self.run.to_string_lossy(), &step, "20000"]))?;
            }
            if round == 0 {
                typical = self.must(prune(self))?;
                continue;
            }
            let mut child = saving(prune(self))?;
            // Names go within the first moments, files after them: every other kill aims at the names.
            let most = if round % 2 == 0 { 0.05 } else { 1.25 };
            thread::sleep(chance.up_to(typical.mul_f64(most)));
            child.kill().map_err(|error| format!("kill: {error}"))?;
            let (ending, _) = ended(Ok(child))?;
            interrupted += usize::from(ending == Ending::Killed);
            let found = self.verified(&self.run)?;
            partial += usize::from(found.len() > 2);
            if let Some(torn) = found.iter().find(|(_, state)| state != "whole") {
                broken.push(format!("round {round}: {torn:?}"));
            }
            if ![19, 20].iter().all(|step| found.iter().any(|(at, _)| at == step)) {
                broken.push(format!("round {round}: only {found:?} are left"));
            }
            self.must(prune(self))?;
            if names(&self.run) != ["step_19", "step_20"] {
                broken.push(format!("round {round}: after the next removal there is {:?}", names(&self.run)));
            }
        }
        Ok((interrupted, partial))
    }

    fn cuts(&self, session: &mut Session, lab: &Lab, cuts: u32, report: &mut Report) -> Outcome {
        let setup = match Setup::new(session, lab) {
            Ok(setup) => setup,
            Err(why) => {
                session.skip("power cut of a checkpoint", why);
                return Ok(());
            }
        };
        for (mode, cuts) in [("save", cuts), ("in-place", cuts.div_ceil(4))] {
            let mut times = Vec::new();
            for _ in 0..3 {
                times.push(self.cut(&setup, lab, mode, None)?.time);
            }
            times.sort();
            let (mut chance, mut tally, mut broken) = (Chance::new(), Tally::default(), Vec::new());
            for cut in 0..cuts {
                let most = times[1].mul_f64(2.0).max(Duration::from_millis(2));
                let Cut { said, states, .. } = self.cut(&setup, lab, mode, Some(chance.up_to(most)))?;
                let state =
                    |step: u64| states.iter().find(|(at, _)| *at == step).map(|(_, state)| state.as_str());
                let reported = said == "ok";
                match state(NEW) {
                    Some("whole") => tally.whole += 1,
                    None if !reported => tally.absent += 1,
                    other => {
                        tally.torn += 1;
                        broken.push(format!("cut {cut}: the saver said {said}, then {other:?}"));
                    }
                }
                if state(BEFORE[0]) != Some("whole") {
                    broken.push(format!("cut {cut}: of the earlier one there is {states:?}"));
                }
                tally.reported += usize::from(reported && state(NEW) == Some("whole"));
            }
            let Tally { absent, whole, torn, reported } = tally;
            if mode == "in-place" {
                let result = format!("{torn} torn or lost: the harness sees them");
                report.add(
                    "control: power cut, checkpoint written in place",
                    cuts as usize,
                    result,
                    Vec::new(),
                );
            } else {
                let result = format!(
                    "{absent} before, {whole} after, {torn} torn; {reported} had reported success and kept it"
                );
                report.add("power cut (ext4), a checkpoint", cuts as usize, result, broken);
            }
        }
        Ok(())
    }

    fn cut(&self, setup: &Setup, lab: &Lab, mode: &str, cut: Option<Duration>) -> Result<Cut, Failure> {
        let text =
            setup.checkpoint(lab, &self.path, Sized { mode, len: LEN, old: BEFORE[0], new: NEW }, cut)?;
        let mut lines = text.lines();
        let mut next = || lines.next().ok_or_else(|| Failure::from(format!("a power cut said {text:?}")));
        let (said, seconds) = (next()?.to_owned(), next()?);
        let seconds = seconds.parse().map_err(|_| format!("a power cut took {seconds:?}"))?;
        let states = lines.filter_map(|line| line.split_once(' '));
        let states =
            states.filter_map(|(step, state)| Some((step.parse().ok()?, state.to_owned()))).collect();
        Ok(Cut { said, time: Duration::from_secs_f64(seconds), states })
    }
}

/// What one power cut, or an undisturbed save, came to.
struct Cut {
    said: String,
    time: Duration,
    states: Vec<(u64, String)>,
}
