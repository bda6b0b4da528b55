//! Saving under kill -9, failing system calls, a full disk and a power cut.
//!
//! Each part starts `crates/durable-file/examples/save.rs` (the last three `apr` and `crates/st-mmap/examples/checkpoint.rs`), does its worst, and looks at what is in the folder. What
//! has to hold is written down in `docs/durable-file.md`; `--write` puts the figures into `docs/reliability.md`.

#[cfg(unix)]
mod checkpoint;
#[cfg(unix)]
mod convert;
#[cfg(unix)]
mod fault;
#[cfg(unix)]
mod full_disk;
#[cfg(unix)]
mod kill;
#[cfg(unix)]
pub(crate) mod lab;
#[cfg(unix)]
mod power_cut;
#[cfg(unix)]
mod report;
#[cfg(unix)]
pub(crate) mod scene;
#[cfg(unix)]
mod seal;
#[cfg(unix)]
mod trace;

use crate::task::{Failure, Outcome, Session};

const USAGE: &str = "reliability [--quick] [--rounds N] [--write]";

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// Saves killed at a random time.
    kills: u32,
    /// Power cuts.
    cuts: u32,
    /// Sizes of the full disk.
    disks: u32,
    /// An error at every call in every scene, or in the three that differ most.
    faults: Faults,
    /// Refresh `docs/reliability.md`.
    write: bool,
}

/// Where faults are injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Faults {
    EveryScene,
    ThreeScenes,
}

impl Plan {
    const FULL: Self = Self { kills: 200, cuts: 50, disks: 20, faults: Faults::EveryScene, write: false };
    const QUICK: Self = Self { kills: 30, cuts: 3, disks: 5, faults: Faults::ThreeScenes, write: false };

    fn from_args(args: &[String]) -> Result<Self, Failure> {
        let usage = || Failure::Usage(USAGE.to_owned());
        let mut plan = Self::FULL;
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => plan = Self { write: plan.write, ..Self::QUICK },
                "--write" => plan.write = true,
                "--rounds" => {
                    plan.kills = args.next().and_then(|n| n.parse().ok()).ok_or_else(usage)?;
                }
                number => plan.kills = number.parse().map_err(|_| usage())?,
            }
        }
        Ok(plan)
    }
}

/// Runs all parts and prints what came of them.
#[cfg(unix)]
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let plan = Plan::from_args(args)?;
    let lab = lab::Lab::new(session)?;
    let mut report = report::Report::default();
    kill::run(&lab, plan.kills, &mut report)?;
    let scenes: &[scene::Scene] = match plan.faults {
        Faults::EveryScene => &scene::Scene::ALL,
        Faults::ThreeScenes => &[scene::Scene::Replace, scene::Scene::Create, scene::Scene::Folder],
    };
    fault::run(session, &lab, scenes, &mut report)?;
    full_disk::run(session, &lab, plan.disks, &mut report)?;
    power_cut::run(session, &lab, plan.cuts, &mut report)?;
    seal::run(session, &lab, plan.kills, &mut report)?;
    convert::run(session, &lab, plan.kills, &mut report)?;
    checkpoint::run(session, &lab, plan.kills, plan.cuts, &mut report)?;
    drop(lab);
    print!("{}", report.table());
    if plan.write {
        report.write(session)?;
    }
    report.verdict()
}

/// The tested behaviour is defined for Unix only.
#[cfg(not(unix))]
pub(crate) fn run(_session: &mut Session, args: &[String]) -> Outcome {
    Plan::from_args(args)?;
    Err(Failure::Skipped("this is no Unix system".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_choose_the_plan() {
        let plan = |args: &[&str]| Plan::from_args(&args.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(plan(&[]).unwrap(), Plan::FULL);
        assert_eq!(plan(&["--write", "--quick"]).unwrap(), Plan { write: true, ..Plan::QUICK });
        assert_eq!(plan(&["--rounds", "5"]).unwrap().kills, 5);
        assert_eq!(plan(&["7"]).unwrap().kills, 7);
        for wrong in [&["--rounds"][..], &["--rounds", "x"], &["fast"]] {
            assert!(matches!(plan(wrong), Err(Failure::Usage(_))));
        }
    }
}
