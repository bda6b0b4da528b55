//! A power cut during a save: an ext4 image loses every block that has not reached it.

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Captured, capture, find_tool, stdout_of, succeeds};
use crate::reliability::full_disk::own_mounts;
use crate::reliability::lab::{Chance, Content, Lab};
use crate::reliability::report::Report;
use crate::task::{Failure, Outcome, Session};

const OLD: (usize, u64) = (1_000_001, 41);
const NEW: (usize, u64) = (1_500_007, 42);
const IMAGE_LEN: u64 = 64 << 20;
const CUT: &str = include_str!("power_cut.py");

/// Mounts the image, puts the old file there for certain, saves and cuts, mounts again, and reports: what the saver
/// said, how long it took, `old`, `new`, `empty`, `none` or `torn`, and the names after an undisturbed save.
///
/// `noauto_da_alloc`: without ext4's own remedy for programs that forget to sync.
const SCRIPT: &str = r#"
set -e
image=$1 place=$2 old=$3 new=$4 cut=$5 delay=$6 saver=$7 mode=$8 size=$9 seed=${10}
mount -o loop,noauto_da_alloc "$image" "$place"
rm -f "$place"/.m.bin.*
cp "$old" "$place/m.bin"
sync -f "$place"
python3 "$cut" "$place" "$delay" "$saver" "$place/m.bin" "$size" "$seed" "$mode"
umount "$place"
mount -o loop,noauto_da_alloc "$image" "$place"
if [ ! -e "$place/m.bin" ]; then echo none
elif cmp -s "$place/m.bin" "$old"; then echo old
elif cmp -s "$place/m.bin" "$new"; then echo new
elif [ ! -s "$place/m.bin" ]; then echo empty
else echo torn; fi
"$saver" "$place/m.bin" "$size" "$seed" >/dev/null
ls -A "$place"
umount "$place"
"#;

/// The same with checkpoints: the step that is there before, the one that is saved, and what is said of each afterwards.
const CHECKPOINTS: &str = r#"
set -e
image=$1 place=$2 cut=$3 delay=$4 saver=$5 mode=$6 size=$7 old=$8 new=$9
mount -o loop,noauto_da_alloc "$image" "$place"
"$saver" save "$place/run" "$old" "$size" >/dev/null
sync -f "$place"
python3 "$cut" "$place" "$delay" "$saver" "$mode" "$place/run" "$new" "$size"
umount "$place"
mount -o loop,noauto_da_alloc "$image" "$place"
"$saver" verify "$place/run"
umount "$place"
"#;

/// Results after the cuts.
#[derive(Debug, Default)]
struct Tally {
    old: usize,
    new: usize,
    torn: usize,
    reported: usize,
}

/// Cuts the power `cuts` times during a save, and a quarter as often while a file is written in place: the control.
pub(crate) fn run(session: &mut Session, lab: &Lab, cuts: u32, report: &mut Report) -> Outcome {
    let setup = match Setup::new(session, lab) {
        Ok(setup) => setup,
        Err(why) => {
            session.skip("power cut", why);
            return Ok(());
        }
    };
    let old = lab.content(OLD.0, OLD.1)?;
    let new = lab.content(NEW.0, NEW.1)?;
    setup.store(lab, &old, &new)?;
    for (mode, cuts) in [("replace", cuts), ("in-place", cuts.div_ceil(4))] {
        let mut broken = Vec::new();
        let Tally { old, new, torn, reported } = setup.cuts(lab, &new, mode, cuts, &mut broken)?;
        if mode == "in-place" {
            let result = format!("{torn} torn or empty: the harness sees them");
            report.add("control: power cut, written in place", cuts as usize, result, Vec::new());
        } else {
            let result = format!(
                "{old} old, {new} new, {torn} torn or empty; {reported} had reported success and kept it"
            );
            report.add("power cut (ext4)", cuts as usize, result, broken);
        }
    }
    Ok(())
}

/// A checkpoint that is saved while the power is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sized<'a> {
    /// How.
    pub(crate) mode: &'a str,
    /// Bytes of its weights.
    pub(crate) len: u64,
    /// The step that is there before.
    pub(crate) old: u64,
    /// The step that is saved.
    pub(crate) new: u64,
}

/// Requirements of the cuts.
#[derive(Debug)]
pub(crate) struct Setup {
    unshare: &'static [&'static str],
    mkfs: PathBuf,
}

impl Setup {
    /// Looks for what is needed, and says what is missing.
    pub(crate) fn new(session: &Session, lab: &Lab) -> Result<Self, String> {
        let unshare = own_mounts(session).ok_or("this user may not mount anything")?;
        if find_tool(session, "python3").is_none() {
            return Err("python3 is not installed".to_owned());
        }
        let sbin = PathBuf::from("/usr/sbin/mkfs.ext4");
        let mkfs = find_tool(session, "mkfs.ext4").or_else(|| sbin.is_file().then_some(sbin));
        let setup = Self { unshare, mkfs: mkfs.ok_or("mkfs.ext4 is not installed")? };
        setup.format(lab).map_err(|failure| failure.to_string())?;
        let place = lab.clear("disk").map_err(|failure| failure.to_string())?;
        let mut probe = Command::new("unshare");
        probe.args(unshare).args(["mount", "-o", "loop"]).arg(lab.path("image")).arg(place);
        if succeeds(&mut probe) { Ok(setup) } else { Err("this user may not mount an image".to_owned()) }
    }

    /// A new file system for every cut: none carries anything over.
    fn format(&self, lab: &Lab) -> Outcome {
        let image = lab.path("image");
        let file = fs::File::create(&image).and_then(|file| file.set_len(IMAGE_LEN));
        file.map_err(|error| format!("the image of the power cuts: {error}"))?;
        stdout_of(Command::new(&self.mkfs).args(["-q", "-F"]).arg(&image)).map(drop)
    }

    /// Cuts the power while `saver` saves a checkpoint, and returns what the parts of the script say.
    pub(crate) fn checkpoint(
        &self,
        lab: &Lab,
        saver: &Path,
        saved: Sized<'_>,
        cut: Option<Duration>,
    ) -> Result<String, Failure> {
        self.format(lab)?;
        fs::write(lab.path("power_cut.py"), CUT).map_err(|error| format!("power_cut.py: {error}"))?;
        let mut command = Command::new("unshare");
        command.args(self.unshare).args(["sh", "-c", CHECKPOINTS, "sh"]);
        command.arg(lab.path("image")).arg(lab.clear("disk")?).arg(lab.path("power_cut.py"));
        command.arg(cut.map_or(-1.0, |cut| cut.as_secs_f64()).to_string());
        command
            .arg(saver)
            .arg(saved.mode)
            .args([saved.len, saved.old, saved.new].map(|number| number.to_string()));
        let Captured { success, stdout, stderr } = capture(&mut command)?;
        if success {
            Ok(stdout)
        } else {
            Err(format!("a power cut did not take place: {}", stderr.trim()).into())
        }
    }

    fn store(&self, lab: &Lab, old: &Content, new: &Content) -> Outcome {
        let files = [("old", old.bytes.as_slice()), ("new", &new.bytes), ("power_cut.py", CUT.as_bytes())];
        for (name, bytes) in files {
            fs::write(lab.path(name), bytes).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }

    fn cuts(
        &self,
        lab: &Lab,
        new: &Content,
        mode: &str,
        cuts: u32,
        broken: &mut Vec<String>,
    ) -> Result<Tally, Failure> {
        let mut times = Vec::new();
        for _ in 0..3 {
            times.push(self.round(lab, new, mode, None)?.time);
        }
        times.sort();
        let mut chance = Chance::new();
        let mut tally = Tally::default();
        for cut in 0..cuts {
            // A plain write takes no time at all, but its blocks stay in memory for seconds.
            let most = times[1].mul_f64(2.0).max(Duration::from_millis(2));
            let Round { said, found, names, .. } = self.round(lab, new, mode, Some(chance.up_to(most)))?;
            let reported = said == "ok";
            match found.as_str() {
                "new" => tally.new += 1,
                "old" if !reported => tally.old += 1,
                _ => {
                    tally.torn += 1;
                    broken.push(format!("cut {cut}: the saver said {said}, then {found}"));
                }
            }
            tally.reported += usize::from(reported && found == "new");
            if names != ["lost+found", "m.bin"] {
                broken.push(format!("cut {cut}: after the next save there is {names:?}"));
            }
        }
        Ok(tally)
    }

    fn round(&self, lab: &Lab, new: &Content, mode: &str, cut: Option<Duration>) -> Result<Round, Failure> {
        self.format(lab)?;
        let mut command = Command::new("unshare");
        command
            .args(self.unshare)
            .args(["sh", "-c", SCRIPT, "sh"])
            .arg(lab.path("image"))
            .arg(lab.clear("disk")?);
        command.args([lab.path("old"), lab.path("new"), lab.path("power_cut.py")]);
        command.arg(cut.map_or(-1.0, |cut| cut.as_secs_f64()).to_string());
        command.arg(lab.saver()).arg(mode).args(new.args());
        let Captured { success, stdout: text, stderr } = capture(&mut command)?;
        if !success {
            return Err(format!("a power cut did not take place: {}", stderr.trim()).into());
        }
        let mut lines = text.lines().map(str::to_owned);
        let mut next = || lines.next().ok_or_else(|| Failure::from(format!("a power cut said {text:?}")));
        let (said, seconds, found) = (next()?, next()?, next()?);
        let seconds = seconds.parse().map_err(|_| format!("a power cut took {seconds:?}"))?;
        Ok(Round { said, time: Duration::from_secs_f64(seconds), found, names: lines.collect() })
    }
}

/// What one power cut, or an undisturbed save, came to.
#[derive(Debug)]
struct Round {
    said: String,
    time: Duration,
    found: String,
    names: Vec<String>,
}
