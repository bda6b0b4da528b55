//! Full disks: file systems of every small size, without inodes, and limits on the size of a file.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};

use crate::process::{find_tool, succeeds};
use crate::reliability::lab::{Content, Ending, Lab, ended};
use crate::reliability::report::Report;
use crate::reliability::scene::{Found, Scene};
use crate::task::{Failure, Outcome, Session};

const OLD: (usize, u64) = (300_001, 31);
const NEW: (usize, u64) = (900_007, 32);
/// Sizes in KiB: from where the old file just fits to where the new one does, too.
const SMALLEST: u32 = 300;
const LARGEST: u32 = 1240;

/// Mounts a small file system of its own, saves into it, and reports: the exit code, what the saver said, whether the
/// content is `old`, `new` or `torn`, and the names that are there.
const SCRIPT: &str = r#"
set -e
options=$1 place=$2 saver=$3 old=$4 new=$5 size=$6 seed=$7
mount -t tmpfs -o "$options" tmpfs "$place"
cp "$old" "$place/m.bin"
code=0
said=$("$saver" "$place/m.bin" "$size" "$seed" 2>&1) || code=$?
if cmp -s "$place/m.bin" "$old"; then found=old
elif cmp -s "$place/m.bin" "$new"; then found=new
else found=torn; fi
echo "$code"
echo "$said" | tail -n 1
echo "$found"
ls -A "$place"
"#;

/// Fills disks of `sizes` sizes, and runs against size limits.
pub(crate) fn run(session: &mut Session, lab: &Lab, sizes: u32, report: &mut Report) -> Outcome {
    let old = lab.content(OLD.0, OLD.1)?;
    let new = lab.content(NEW.0, NEW.1)?;
    small_disks(session, lab, sizes, (&old, &new), report)?;
    size_limits(session, lab, (&old, &new), report)
}

fn small_disks(
    session: &mut Session,
    lab: &Lab,
    sizes: u32,
    (old, new): (&Content, &Content),
    report: &mut Report,
) -> Outcome {
    let Some(unshare) = own_mounts(session) else {
        session.skip("disk full", "this user may not mount anything, not even in a namespace of its own");
        return Ok(());
    };
    for (name, content) in [("old", old), ("new", new)] {
        std::fs::write(lab.path(name), &content.bytes).map_err(|error| error.to_string())?;
    }
    let step = |n: u32| SMALLEST + (LARGEST - SMALLEST) * n / (sizes - 1).max(1);
    let mut disks: Vec<String> = (0..sizes).map(|n| format!("size={}k", step(n))).collect();
    // Inodes for the root and the old file; for a temp, too; and for the way back.
    disks.extend([2, 3, 4].map(|inodes| format!("size=8m,nr_inodes={inodes}")));
    let (mut refused, mut saved, mut broken) = (0, 0, Vec::new());
    for options in &disks {
        let place = lab.clear("disk")?;
        let mut command = Command::new("unshare");
        command.args(unshare).args(["sh", "-c", SCRIPT, "sh", options]).arg(&place).arg(lab.saver());
        command.arg(lab.path("old")).arg(lab.path("new")).args(new.args());
        let output = command.stderr(Stdio::piped()).output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let (code, said, found) = (lines.next(), lines.next().unwrap_or_default(), lines.next());
        let names: Vec<_> = lines.collect();
        let Some(code) = code.and_then(|code| code.parse::<i32>().ok()) else {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("a disk with {options} cannot be set up: {}", why.trim()).into());
        };
        match (Ending::new(ExitStatus::from_raw(code << 8), said, ""), found) {
            (Ending::Saved, Some("new")) => saved += 1,
            (Ending::Refused(_), Some("old")) => refused += 1,
            (ending, found) => broken.push(format!("{options}: {ending:?}, then {found:?}")),
        }
        if names != ["m.bin"] {
            broken.push(format!("{options}: {names:?} left"));
        }
    }
    let result = format!("{refused} typed errors with the old file intact, {saved} saved");
    report.add("disk full (tmpfs)", disks.len(), result, broken);
    Ok(())
}

/// Arguments of `unshare` that let this user mount something in a private namespace.
pub(crate) fn own_mounts(session: &Session) -> Option<&'static [&'static str]> {
    find_tool(session, "unshare")?;
    let ways: [&[&str]; 2] = [&["-m"], &["-r", "-m"]];
    ways.into_iter().find(|way| {
        let mut probe = Command::new("unshare");
        probe.args(*way).args(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]);
        succeeds(&mut probe)
    })
}

/// A limit makes the kernel write a part, then refuse (signal ignored) or kill (signal not ignored).
fn size_limits(
    session: &mut Session,
    lab: &Lab,
    (old, new): (&Content, &Content),
    report: &mut Report,
) -> Outcome {
    if find_tool(session, "prlimit").is_none() {
        session.skip("limit on the size of files", "prlimit is not installed");
        return Ok(());
    }
    let scene = Scene::Replace;
    let (mut refused, mut killed, mut saved, mut broken) = (0, 0, 0, Vec::new());
    let limits = [0, 1, 4095, 4096, 65_535, 65_537, 131_072, 500_000, NEW.0 - 1, NEW.0];
    let ways = [("trap '' XFSZ; ", true), ("", false)];
    for limit in limits {
        for (trap, ignored) in ways {
            scene.prepare(lab, old)?;
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{trap}exec prlimit --core=0 --fsize={limit} \"$@\""), "sh"]);
            lab.save_under(&mut command, &scene.path(lab), new, scene.mode());
            let ending = ended(command.spawn())?.0;
            let found = scene.look(lab, old, new);
            let left = scene.strangers(lab);
            let fine = match (&ending, &found) {
                (Ending::Saved, Found::New) => {
                    saved += 1;
                    limit >= NEW.0 && left.is_empty()
                }
                (Ending::Refused(_), Found::Old) => {
                    refused += 1;
                    ignored && left.is_empty()
                }
                // The signal kills like any other: a temp may stay until the next save.
                (Ending::Wrong(_), Found::Old) => {
                    killed += 1;
                    !ignored
                }
                _ => false,
            };
            if !fine {
                broken.push(format!(
                    "limit {limit}, signal ignored {ignored}: {ending:?}, {found:?}, {left:?}"
                ));
            }
            broken.extend(scene.recover(lab, new)?.map(|what| format!("limit {limit}: {what}")));
        }
    }
    let result =
        format!("{refused} typed errors and {killed} deaths with the old file intact, {saved} saved");
    report.add("limit on the size of files", limits.len() * ways.len(), result, broken);
    Ok::<(), Failure>(())
}
