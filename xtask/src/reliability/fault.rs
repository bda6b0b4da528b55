//! An error, or a kill, at every system call of a save.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{find_tool, succeeds};
use crate::reliability::lab::{Content, Ending, Lab, ended};
use crate::reliability::report::Report;
use crate::reliability::scene::{Found, Scene};
use crate::reliability::trace::{Call, check_order, undisturbed};
use crate::task::{Failure, Outcome, Session};

/// Four writes for the new content.
const OLD: (usize, u64) = (150_001, 21);
const NEW: (usize, u64) = (200_003, 22);

/// What strace makes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It returns this error and does nothing.
    Error(&'static str),
    /// It returns 0 and does nothing: a write that writes nothing.
    Nothing,
    /// The program is killed in front of it.
    Kill,
    /// It and every later call, except writes, fails with `EIO`: the disk is gone. (The saver reports by writing.)
    Gone,
}

impl Fault {
    const ERRORS: [Self; 3] = [Self::Error("EIO"), Self::Error("ENOSPC"), Self::Error("EINTR")];

    fn injection(self) -> String {
        match self {
            Self::Error(name) => format!("error={name}"),
            Self::Nothing => "retval=0".to_owned(),
            Self::Kill => "signal=SIGKILL".to_owned(),
            Self::Gone => "error=EIO".to_owned(),
        }
    }
}

/// The call that makes a file without a name, and the one that gives it one.
const UNNAMED: (&str, &str) = ("openat", "O_TMPFILE");
const NAMING: (&str, &str) = ("linkat", "/proc/self/fd/");

/// Errors of file systems and sandboxes without a feature, for the first call of a name whose arguments contain a text. A save
/// must do without.
const LACKING: [(Scene, (&str, &str), &str); 9] = [
    (Scene::Replace, ("flock", ""), "ENOLCK"),
    (Scene::Replace, UNNAMED, "EOPNOTSUPP"),
    (Scene::Replace, NAMING, "EPERM"),
    (Scene::Replace, ("linkat", ".df-old"), "EPERM"),
    (Scene::Replace, ("fsync", "/here>"), "EINVAL"),
    (Scene::Create, UNNAMED, "EOPNOTSUPP"),
    (Scene::Create, NAMING, "EPERM"),
    (Scene::Folder, ("flock", ""), "EOPNOTSUPP"),
    (Scene::Folder, ("renameat2", ""), "EINVAL"),
];

/// Pairs of errors after which neither success nor the old file can be promised: the sync of the folder, and what
/// would undo the rename. The saver must say so.
const UNDECIDED: [(Scene, &str); 4] = [
    (Scene::Replace, "linkat"),
    (Scene::Replace, "renameat"),
    (Scene::Fresh, "unlinkat"),
    (Scene::Folder, "renameat"),
];

/// Calls that a save makes only when something is wrong.
const WAY_OUT: [&str; 3] = ["renameat", "unlinkat", "rmdir"];

/// What came of the faults of one kind in one scene.
#[derive(Debug, Default)]
struct Tally {
    runs: usize,
    /// A typed error, and all as before.
    refused: usize,
    /// Success, and the new content whole.
    saved: usize,
    /// A typed error that says that the new content is there without being certain to stay; and so it is.
    unconfirmed: usize,
    /// Killed, and all as before.
    killed_before: usize,
    /// Killed, and the new content whole.
    killed_after: usize,
}

/// Goes through every call of every scene.
pub(crate) fn run(session: &mut Session, lab: &Lab, scenes: &[Scene], report: &mut Report) -> Outcome {
    // Where processes may not be traced, strace is there and cannot do anything.
    let traces = |strace: &PathBuf| succeeds(Command::new(strace).args(["-o", "/dev/null", "true"]));
    let Some(strace) = find_tool(session, "strace").filter(traces) else {
        session.skip(
            "an error and a kill at every system call, order of syncs",
            "strace is missing or may not trace",
        );
        return Ok(());
    };
    let old = lab.content(OLD.0, OLD.1)?;
    let new = lab.content(NEW.0, NEW.1)?;
    let bench = Bench { strace: &strace, lab, old: &old, new: &new };
    let mut orders = Vec::new();
    for scene in scenes.iter().copied() {
        let name = scene.name();
        let calls = bench.trace(scene)?;
        let order = check_order(scene, &calls, &lab.path("run/here"));
        orders.extend(order.into_iter().map(|what| format!("{name}: {what}")));

        let mut broken = Vec::new();
        let Tally { runs, refused, saved, .. } = bench.errors(scene, &calls, &mut broken)?;
        let result = format!("{refused} typed errors, {saved} saved all the same ({} calls)", calls.len());
        report.add(format!("error at every call, {name}"), runs, result, broken);

        let mut broken = Vec::new();
        let Tally { runs, killed_before, killed_after, .. } = bench.kills(scene, &calls, &mut broken)?;
        let result = format!(
            "{killed_before} before, {killed_after} after, {} torn",
            runs - killed_before - killed_after
        );
        report.add(format!("kill at every call, {name}"), runs, result, broken);

        let mut broken = Vec::new();
        let Tally { runs, refused, saved, unconfirmed, .. } = bench.gone(scene, &calls, &mut broken)?;
        let result = format!("{refused} typed errors, {saved} saved, {unconfirmed} `df-unconfirmed`");
        report.add(format!("every call fails from one on, {name}"), runs, result, broken);
    }
    let result = "sync of the content < rename < sync of the folder";
    report.add("order of syncs", scenes.len(), result, orders);
    let mut broken = Vec::new();
    let Tally { runs, refused, saved, .. } = bench.reads(&mut broken)?;
    let result = format!("{refused} typed errors, {saved} read all the same");
    report.add("error at every call of a read", runs, result, broken);
    let broken = bench.lacking()?;
    report.add(
        "file systems without unnamed files, locks, links, folder syncs",
        LACKING.len(),
        "all saved",
        broken,
    );
    let broken = bench.undecided()?;
    report.add("folder sync and way back both fail", UNDECIDED.len(), "all `df-unconfirmed`", broken);
    Ok(())
}

/// All that stays the same from fault to fault.
#[derive(Debug)]
struct Bench<'a> {
    strace: &'a Path,
    lab: &'a Lab,
    old: &'a Content,
    new: &'a Content,
}

impl Bench<'_> {
    fn errors(&self, scene: Scene, calls: &[Call], broken: &mut Vec<String>) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        for call in calls {
            let nothing = (call.name == "write").then_some(Fault::Nothing);
            for fault in Fault::ERRORS.into_iter().chain(nothing) {
                tally.runs += 1;
                let ending = self.disturbed(scene, call, fault)?;
                let found = scene.look(self.lab, self.old, self.new);
                let strangers = scene.strangers(self.lab);
                let mut complain = |what: String| {
                    broken.push(format!("{} no. {}, {fault:?}: {what}", call.name, call.number));
                };
                match (&ending, &found) {
                    (Ending::Saved, Found::New) => tally.saved += 1,
                    // It reported an unconfirmed success, which a single fault must not cause.
                    (Ending::Refused(code), _) if code == "df-unconfirmed" => complain(code.clone()),
                    (Ending::Refused(_), found) if *found == scene.before() => tally.refused += 1,
                    _ => complain(format!("{ending:?}, then {found:?}")),
                }
                if !strangers.is_empty() {
                    complain(format!("{strangers:?} left"));
                }
                if scene == Scene::Leftover
                    && let Some(what) = scene.recover(self.lab, self.new)?
                {
                    complain(what);
                }
            }
        }
        Ok(tally)
    }

    fn kills(&self, scene: Scene, calls: &[Call], broken: &mut Vec<String>) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        for call in calls {
            tally.runs += 1;
            let ending = self.disturbed(scene, call, Fault::Kill)?;
            let mut complain =
                |what: String| broken.push(format!("{} no. {}: {what}", call.name, call.number));
            match (&ending, scene.look(self.lab, self.old, self.new)) {
                (Ending::Killed, Found::New) => tally.killed_after += 1,
                (Ending::Killed, found) if found == scene.before() => tally.killed_before += 1,
                (_, found) => complain(format!("{ending:?}, then {found:?}")),
            }
            if let Some(what) = scene.recover(self.lab, self.new)? {
                complain(what);
            }
        }
        Ok(tally)
    }

    /// The disk disappears before each call: a temp may remain, but never a torn file.
    fn gone(&self, scene: Scene, calls: &[Call], broken: &mut Vec<String>) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        for (at, call) in calls.iter().enumerate() {
            // Of each name the first call from here on, also of names that only the way out of an error needs.
            let mut faults: Vec<(&str, String)> = Vec::new();
            for name in calls.iter().map(|call| call.name.as_str()).chain(WAY_OUT) {
                if name != "write" && faults.iter().all(|(seen, _)| *seen != name) {
                    let earlier = calls[..at].iter().rfind(|call| call.name == name);
                    let later = calls[at..].iter().find(|call| call.name == name);
                    let number =
                        later.map_or_else(|| earlier.map_or(1, |call| call.number + 1), |call| call.number);
                    faults.push((name, format!("{}:when={number}+", Fault::Gone.injection())));
                }
            }
            tally.runs += 1;
            let ending = self.injected(scene, &faults)?;
            let mut complain =
                |what: String| broken.push(format!("from {} no. {}: {what}", call.name, call.number));
            match (&ending, scene.look(self.lab, self.old, self.new)) {
                (Ending::Saved, Found::New) => tally.saved += 1,
                (Ending::Refused(code), Found::New) if code == "df-unconfirmed" => tally.unconfirmed += 1,
                (Ending::Refused(_), found) if found == scene.before() => tally.refused += 1,
                (_, found) => complain(format!("{ending:?}, then {found:?}")),
            }
            if let Some(what) = scene.recover(self.lab, self.new)? {
                complain(what);
            }
        }
        Ok(tally)
    }

    /// Errors while a file is read and its folder synced: the content, or a typed error.
    fn reads(&self, broken: &mut Vec<String>) -> Result<Tally, Failure> {
        let (scene, mode) = (Scene::Replace, "read");
        let mut tally = Tally::default();
        scene.prepare(self.lab, self.old)?;
        for call in undisturbed(self.strace, self.lab, scene, mode, self.old)? {
            // A read that returns nothing too early is what a file does that was cut meanwhile.
            let nothing = (call.name == "read").then_some(Fault::Nothing);
            for fault in Fault::ERRORS.into_iter().chain(nothing) {
                tally.runs += 1;
                let injection = format!("{}:when={}", fault.injection(), call.number);
                match self.run(scene, mode, self.old, &[(&call.name, injection)])? {
                    Ending::Saved => tally.saved += 1,
                    Ending::Refused(_) => tally.refused += 1,
                    ending => {
                        broken.push(format!("{} no. {}, {fault:?}: {ending:?}", call.name, call.number));
                    }
                }
            }
        }
        Ok(tally)
    }

    fn lacking(&self) -> Result<Vec<String>, Failure> {
        let mut broken = Vec::new();
        for (scene, (call, text), error) in LACKING {
            let calls = self.trace(scene)?;
            let found = calls.iter().find(|made| made.name == call && made.text.contains(text));
            let number = found.ok_or_else(|| format!("a save without {call} of {text}"))?.number;
            let ending = self.injected(scene, &[(call, format!("error={error}:when={number}"))])?;
            let (found, left) = (scene.look(self.lab, self.old, self.new), scene.strangers(self.lab));
            if (&ending, &found) != (&Ending::Saved, &Found::New) || !left.is_empty() {
                broken.push(format!("{}, {call} {error}: {ending:?}, {found:?}, {left:?}", scene.name()));
            }
        }
        Ok(broken)
    }

    fn undecided(&self) -> Result<Vec<String>, Failure> {
        let mut broken = Vec::new();
        for (scene, call) in UNDECIDED {
            let calls = self.trace(scene)?;
            let sync = calls.iter().rfind(|call| call.name == "fsync").ok_or("a save without a sync")?;
            // Over a file, the first link names the temp and the first rename puts it in place.
            let first = if scene == Scene::Replace { 2 } else { 1 };
            let faults = [
                ("fsync", format!("error=EIO:when={}", sync.number)),
                (call, format!("error=EIO:when={first}")),
            ];
            let ending = self.injected(scene, &faults)?;
            let (found, left) = (scene.look(self.lab, self.old, self.new), scene.strangers(self.lab));
            let said = ending == Ending::Refused("df-unconfirmed".to_owned());
            if !said || found != Found::New || !left.is_empty() {
                broken.push(format!("{}, {call}: {ending:?}, {found:?}, {left:?}", scene.name()));
            }
        }
        Ok(broken)
    }

    /// Runs one save with a fault at one call.
    fn disturbed(&self, scene: Scene, call: &Call, fault: Fault) -> Result<Ending, Failure> {
        self.injected(scene, &[(&call.name, format!("{}:when={}", fault.injection(), call.number))])
    }

    /// Runs one save with faults.
    fn injected(&self, scene: Scene, faults: &[(&str, String)]) -> Result<Ending, Failure> {
        scene.prepare(self.lab, self.old)?;
        self.run(scene, scene.mode(), self.new, faults)
    }

    /// Runs the saver with faults, and makes sure that they took place.
    fn run(
        &self,
        scene: Scene,
        mode: &str,
        content: &Content,
        faults: &[(&str, String)],
    ) -> Result<Ending, Failure> {
        let file = self.lab.path("trace");
        let mut command = Command::new(self.strace);
        let names: Vec<_> = faults.iter().map(|(name, _)| *name).collect();
        command.args(["-f", "-qq", "-e", &format!("trace={}", names.join(","))]);
        for (name, fault) in faults {
            command.args(["-e", &format!("inject={name}:{fault}")]);
        }
        command.arg("-o").arg(&file);
        self.lab.save_under(&mut command, &scene.path(self.lab), content, mode);
        let (ending, _) = ended(command.spawn())?;
        let trace = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        if ending == Ending::Killed || trace.contains("(INJECTED)") {
            Ok(ending)
        } else {
            Err(format!("strace did not inject {faults:?} into {mode}").into())
        }
    }

    /// The calls of an undisturbed save.
    fn trace(&self, scene: Scene) -> Result<Vec<Call>, Failure> {
        scene.prepare(self.lab, self.old)?;
        undisturbed(self.strace, self.lab, scene, scene.mode(), self.new)
    }
}
