//! The system calls of a save, read from strace.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::reliability::lab::{Content, Ending, Lab, ended};
use crate::reliability::scene::Scene;
use crate::task::Failure;

/// Looked up by the saver around the save; see its source.
const BEGIN: &str = "/durable-file-save-begins";
const END: &str = "/durable-file-save-ends";

/// Calls that have to do with memory alone: a program without memory ends, whatever it was doing.
const MEMORY: [&str; 6] = ["brk", "mmap", "munmap", "mremap", "madvise", "mprotect"];

/// One system call of a save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its name.
    pub(crate) name: String,
    /// Which call of this name it is, counted from the start of the program.
    pub(crate) number: usize,
    /// Its arguments and result, with the paths of descriptors.
    pub(crate) text: String,
}

/// Traces an undisturbed run of the saver in `mode`, where `scene` has been prepared.
pub(crate) fn undisturbed(
    strace: &Path,
    lab: &Lab,
    scene: Scene,
    mode: &str,
    content: &Content,
) -> Result<Vec<Call>, Failure> {
    let file = lab.path("trace");
    let mut command = Command::new(strace);
    command.args(["-f", "-y", "-o"]).arg(&file);
    lab.save_under(&mut command, &scene.path(lab), content, mode);
    let (ending, _) = ended(command.spawn())?;
    if ending != Ending::Saved {
        return Err(format!("an undisturbed run of {mode} under strace: {ending:?}").into());
    }
    let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let calls = calls(&text);
    if calls.is_empty() { Err("the trace does not show the save".into()) } else { Ok(calls) }
}

/// The calls between the marks.
fn calls(trace: &str) -> Vec<Call> {
    let mut seen: Vec<String> = Vec::new();
    let mut calls = Vec::new();
    let mut inside = false;
    for line in trace.lines() {
        // `1234  write(1</dev/pts/0>, "ok\n", 3) = 3`; lines about signals and exits have no such shape.
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let Some((name, text)) = line.split_once('(') else { continue };
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            continue;
        }
        seen.push(name.to_owned());
        if text.contains(BEGIN) {
            inside = true;
        } else if inside && text.contains(END) {
            break;
        } else if inside && !MEMORY.contains(&name) {
            let number = seen.iter().filter(|earlier| *earlier == name).count();
            calls.push(Call { name: name.to_owned(), number, text: text.to_owned() });
        }
    }
    calls
}

/// Checks that content reaches the medium before it gets its name, and the name before success is reported.
pub(crate) fn check_order(scene: Scene, calls: &[Call], folder: &Path) -> Vec<String> {
    let mut broken = Vec::new();
    let folder = format!("<{}>", folder.display());
    let synced = |call: &Call, what: &str| call.name == "fsync" && call.text.contains(what);
    let places = |call: &Call| match call.name.as_str() {
        // A file without a name gets that of the target.
        "linkat" => call.text.contains("\"/proc/self/fd/") && call.text.contains("\"m.bin\""),
        name => name.starts_with("rename") && call.text.contains(".m.bin."),
    };
    let Some(rename) = calls.iter().position(|call| places(call) && call.text.ends_with("= 0")) else {
        return vec!["no rename".to_owned()];
    };
    let (before, after) = calls.split_at(rename);
    let contents: &[&str] = match scene {
        Scene::Folder => &["df-dir/content>", "df-dir/inner/content>", "df-dir/inner>", "df-dir>"],
        // A file without a name is shown as `/folder/#12345`.
        _ => &["/#"],
    };
    for content in contents {
        match before.iter().rposition(|call| synced(call, content)) {
            None => broken.push(format!("{content} is not synced before the rename")),
            Some(sync) if before[sync..].iter().any(|call| call.name == "write") => {
                broken.push(format!("{content} is written to after its sync"));
            }
            Some(_) => {}
        }
    }
    if !after.iter().any(|call| synced(call, &folder)) {
        broken.push("the folder is not synced after the rename".to_owned());
    }
    if after.iter().any(|call| call.name == "write") {
        broken.push("something is written after the rename".to_owned());
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
7  execve(\"save\", [\"save\"], 0x0 /* 3 vars */) = 0
7  write(1</dev/null>, \"saving\\n\", 7) = 7
7  statx(AT_FDCWD</f>, \"/durable-file-save-begins\", 0, 0, 0x0) = -1 ENOENT (No such file or directory)
7  openat(3</f>, \".\", O_RDWR|O_TMPFILE, 0666) = 4</f/#7>(deleted)
7  brk(0x1000) = 0x1000
7  write(4</f/#7>(deleted), \"a\"..., 3) = 3
7  fsync(4</f/#7>(deleted)) = 0
7  linkat(AT_FDCWD</f>, \"/proc/self/fd/4\", 3</f>, \".m.bin.00ff.df-new\", AT_SYMLINK_FOLLOW) = 0
7  renameat(3</f>, \".m.bin.00ff.df-new\", 3</f>, \"m.bin\") = 0
7  fsync(3</f>) = 0
7  statx(AT_FDCWD</f>, \"/durable-file-save-ends\", 0, 0, 0x0) = -1 ENOENT (No such file or directory)
7  write(1</dev/null>, \"ok\\n\", 3) = 3
7  +++ exited with 0 +++
";

    #[test]
    fn calls_between_the_marks_are_counted_from_the_start() {
        let found: Vec<_> = calls(TRACE).into_iter().map(|call| (call.name, call.number)).collect();
        let expected =
            [("openat", 1), ("write", 2), ("fsync", 1), ("linkat", 1), ("renameat", 1), ("fsync", 2)];
        assert_eq!(found, expected.map(|(name, number)| (name.to_owned(), number)));
    }

    #[test]
    fn the_order_is_checked() {
        let calls = calls(TRACE);
        assert!(check_order(Scene::Replace, &calls, Path::new("/f")).is_empty());
        for gone in ["fsync(4", "fsync(3", "renameat"] {
            let fewer: Vec<_> = calls
                .iter()
                .filter(|c| !format!("{}({}", c.name, c.text).starts_with(gone))
                .cloned()
                .collect();
            assert!(!check_order(Scene::Replace, &fewer, Path::new("/f")).is_empty(), "without {gone}");
        }
        let direct: Vec<_> = calls
            .iter()
            .filter(|call| call.name != "renameat")
            .map(|call| Call { text: call.text.replace(".m.bin.00ff.df-new", "m.bin"), ..call.clone() })
            .collect();
        assert!(
            check_order(Scene::Fresh, &direct, Path::new("/f")).is_empty(),
            "where nothing is, the link places"
        );
        let mut swapped = calls;
        swapped.swap(1, 2);
        assert_eq!(check_order(Scene::Replace, &swapped, Path::new("/f")).len(), 1);
    }
}
