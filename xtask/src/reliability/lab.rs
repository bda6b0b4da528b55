//! Runs the saving program in a separate folder, and collects its result.

use core::time::Duration;
use std::fs;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Instant;

use crate::task::{Failure, Session};
use crate::workspace::build_example;

/// No save here takes a second: one that takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The saver and its folder.
#[derive(Debug)]
pub(crate) struct Lab {
    saver: PathBuf,
    root: PathBuf,
}

/// A content, named by the arguments that make the saver write it.
#[derive(Debug)]
pub(crate) struct Content {
    size: usize,
    seed: u64,
    /// What ends up in the file.
    pub(crate) bytes: Vec<u8>,
}

impl Content {
    /// The saver's arguments for it.
    pub(crate) fn args(&self) -> [String; 2] {
        [self.size.to_string(), self.seed.to_string()]
    }
}

impl Lab {
    /// Builds the saver and makes an empty folder for it.
    pub(crate) fn new(session: &Session) -> Result<Self, Failure> {
        let saver = build_example(session, "durable-file", "save")?;
        let labs = session.scratch("reliability");
        remove_dead(&labs);
        let lab = Self { saver, root: labs.join(std::process::id().to_string()) };
        lab.clear("")?;
        Ok(lab)
    }

    /// The saver.
    pub(crate) fn saver(&self) -> &Path {
        &self.saver
    }

    /// A place in the lab.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// An empty folder with this name.
    pub(crate) fn clear(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path(name);
        let emptied = match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => fs::create_dir_all(&path),
        };
        emptied.map_err(|error| Failure::from(format!("{}: {error}", path.display())))?;
        Ok(path)
    }

    /// The content of this size and seed, as the saver writes it when nothing is wrong.
    pub(crate) fn content(&self, size: usize, seed: u64) -> Result<Content, Failure> {
        let mut content = Content { size, seed, bytes: Vec::new() };
        let path = self.path("reference");
        match ended(self.save(&path, &content, "in-place").spawn())?.0 {
            Ending::Saved => {}
            other => return Err(format!("the saver does not work: {other:?}").into()),
        }
        content.bytes = fs::read(&path).map_err(|error| error.to_string())?;
        Ok(content)
    }

    /// The command that saves `content` to `path`.
    pub(crate) fn save(&self, path: &Path, content: &Content, mode: &str) -> Command {
        let mut command = Command::new(&self.saver);
        command.arg(path).args(content.args()).arg(mode);
        piped(&mut command);
        command
    }

    /// The same, run by another program whose own arguments come first.
    pub(crate) fn save_under(&self, outer: &mut Command, path: &Path, content: &Content, mode: &str) {
        outer.arg(&self.saver).arg(path).args(content.args()).arg(mode);
        piped(outer);
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Leftovers are harmless: a later run removes them.
        _ = fs::remove_dir_all(&self.root);
    }
}

/// Removes the labs of processes that are gone; they are named after them.
fn remove_dead(labs: &Path) {
    let is_dead = |name: &str| {
        Path::new("/proc/self").exists()
            && name.parse::<u32>().is_ok_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    };
    for entry in fs::read_dir(labs).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_dead) {
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn piped(command: &mut Command) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// How a saver ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It said `ok`.
    Saved,
    /// It reported an error with this code.
    Refused(String),
    /// It was killed.
    Killed,
    /// Anything else: a panic, another signal, a hang.
    Wrong(String),
}

impl Ending {
    /// From the exit status and the output.
    pub(crate) fn new(status: ExitStatus, stdout: &str, stderr: &str) -> Self {
        let last = stdout.lines().last().unwrap_or_default();
        let refused = last.strip_prefix("error ").and_then(|rest| rest.split_once(':')).map(|(code, _)| code);
        match (status.signal(), status.code()) {
            (Some(9), _) => Self::Killed,
            (None, Some(0)) if last == "ok" => Self::Saved,
            (None, Some(1)) if refused.is_some() => Self::Refused(refused.unwrap_or_default().to_owned()),
            _ => Self::Wrong(format!("{status}: {last} {}", stderr.lines().next().unwrap_or_default())),
        }
    }
}

/// Waits for a saver and returns its exit status and duration.
pub(crate) fn ended(spawned: std::io::Result<Child>) -> Result<(Ending, Duration), Failure> {
    let mut child = spawned.map_err(|error| format!("a saver cannot be started: {error}"))?;
    let start = Instant::now();
    let cannot = |error: std::io::Error| Failure::from(format!("waiting for a saver: {error}"));
    let status = loop {
        if let Some(status) = child.try_wait().map_err(cannot)? {
            break status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().and_then(|()| child.wait()).map_err(cannot)?;
            return Ok((Ending::Wrong("hangs".to_owned()), start.elapsed()));
        }
        thread::sleep(Duration::from_micros(200));
    };
    let elapsed = start.elapsed();
    // The output of a saver fits into the pipes, so it never blocked on us.
    let mut texts = [String::new(), String::new()];
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut texts[0]).map_err(cannot)?;
    }
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut texts[1]).map_err(cannot)?;
    }
    Ok((Ending::new(status, &texts[0], &texts[1]), elapsed))
}

/// Starts a saver and returns when its save begins.
pub(crate) fn saving(mut command: Command) -> Result<Child, Failure> {
    let mut child = command.spawn().map_err(|error| format!("a saver cannot be started: {error}"))?;
    let stdout = child.stdout.as_mut().ok_or("a saver without output")?;
    // Reads single bytes: what follows this line is for the thread that waits for the end.
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        stdout.read_exact(&mut byte).map_err(|error| format!("waiting for a saver: {error}"))?;
        line.extend(byte);
    }
    if line != b"saving\n" {
        return Err(format!("the saver said {:?}", String::from_utf8_lossy(&line)).into());
    }
    Ok(child)
}

/// Numbers for random times: good enough to spread, different in each run.
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// Starts from the clock.
    pub(crate) fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self(now.map_or(1, |now| now.as_nanos() as u64) | 1)
    }

    /// A time between nothing and `most` (xorshift).
    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        most.mul_f64((self.0 >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_told_apart() {
        let status = |raw| ExitStatus::from_raw(raw);
        assert_eq!(Ending::new(status(0), "saving\nok\n", ""), Ending::Saved);
        assert_eq!(Ending::new(status(9), "saving\n", ""), Ending::Killed);
        let refused = Ending::new(status(1 << 8), "saving\nerror df-io: cannot sync m\n", "");
        assert_eq!(refused, Ending::Refused("df-io".to_owned()));
        for (raw, said) in [(0, "saving\n"), (1 << 8, "saving\n"), (101 << 8, "saving\n"), (6, ""), (25, "")]
        {
            assert!(matches!(Ending::new(status(raw), said, "panicked"), Ending::Wrong(_)), "{raw}");
        }
    }

    #[test]
    fn chance_stays_below_its_bound() {
        let mut chance = Chance::new();
        let most = Duration::from_millis(10);
        let times: Vec<_> = (0..1000).map(|_| chance.up_to(most)).collect();
        assert!(times.iter().all(|time| *time <= most));
        assert!(times.iter().any(|time| *time < most / 4) && times.iter().any(|time| *time > most / 4 * 3));
    }
}
