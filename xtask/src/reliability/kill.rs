//! kill -9 at a random time during a save.

use core::time::Duration;
use std::thread;

use crate::reliability::lab::{Chance, Content, Ending, Lab, ended, saving};
use crate::reliability::report::Report;
use crate::reliability::scene::{Found, Scene};
use crate::task::{Failure, Outcome};

/// Large enough that most kills come in the middle.
const OLD: (usize, u64) = (3_000_001, 11);
const NEW: (usize, u64) = (4_000_003, 12);

/// Results after the kills.
#[derive(Debug, Default)]
struct Tally {
    before: usize,
    after: usize,
    with_temp: usize,
    unswept: usize,
    torn: usize,
}

/// Kills `rounds` saves over a file, a quarter as many of a folder, and as many that write in place: those must show
/// torn files, or the harness would not see any.
pub(crate) fn run(lab: &Lab, rounds: u32, report: &mut Report) -> Outcome {
    let old = lab.content(OLD.0, OLD.1)?;
    let new = lab.content(NEW.0, NEW.1)?;
    let quarter = rounds.div_ceil(4);
    for (scene, mode, rounds) in [
        (Scene::Replace, "replace", rounds),
        (Scene::Folder, "folder", quarter),
        (Scene::Replace, "in-place", quarter),
    ] {
        let mut broken = Vec::new();
        let tally = kills(lab, scene, mode, rounds, (&old, &new), &mut broken)?;
        let Tally { before, after, with_temp, unswept, torn } = tally;
        if mode == "in-place" {
            let result = format!("{torn} torn: the harness sees them");
            report.add("control: kill -9, written in place", rounds as usize, result, Vec::new());
        } else {
            let result = format!(
                "{before} before, {after} after, {torn} torn; {with_temp} left a temp, the next save missed {unswept}"
            );
            report.add(
                format!("kill -9 at a random time, {}", scene.name()),
                rounds as usize,
                result,
                broken,
            );
        }
    }
    Ok(())
}

fn kills(
    lab: &Lab,
    scene: Scene,
    mode: &str,
    rounds: u32,
    (old, new): (&Content, &Content),
    broken: &mut Vec<String>,
) -> Result<Tally, Failure> {
    let typical = typical(lab, scene, mode, old, new)?;
    let mut chance = Chance::new();
    let mut tally = Tally::default();
    for round in 0..rounds {
        scene.prepare(lab, old)?;
        let mut child = saving(lab.save(&scene.path(lab), new, mode))?;
        thread::sleep(chance.up_to(typical.mul_f64(1.25)));
        child.kill().map_err(|error| format!("kill: {error}"))?;
        let (ending, _) = ended(Ok(child))?;
        if !matches!(ending, Ending::Killed | Ending::Saved) {
            broken.push(format!("round {round}: {ending:?}"));
        }
        match scene.look(lab, old, new) {
            Found::New => tally.after += 1,
            found if found == scene.before() && ending == Ending::Killed => tally.before += 1,
            found => {
                tally.torn += 1;
                broken.push(format!("round {round}: {ending:?}, then {found:?}"));
            }
        }
        tally.with_temp += usize::from(!scene.strangers(lab).is_empty());
        if mode != "in-place"
            && let Some(what) = scene.recover(lab, new)?
        {
            tally.unswept += 1;
            broken.push(format!("round {round}: {what}"));
        }
    }
    Ok(tally)
}

/// Duration of an undisturbed save: the median of five.
fn typical(lab: &Lab, scene: Scene, mode: &str, old: &Content, new: &Content) -> Result<Duration, Failure> {
    let mut times = Vec::new();
    for _ in 0..5 {
        scene.prepare(lab, old)?;
        times.push(ended(Ok(saving(lab.save(&scene.path(lab), new, mode))?))?.1);
    }
    times.sort();
    Ok(times[2])
}
