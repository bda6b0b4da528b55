//! `peers`: the releases of aprender read the files that we write.

use crate::process::{Captured, capture, cargo, step};
use crate::task::{Failure, Outcome, Session, skipped};

/// A separate workspace: three versions of a large library stay out of ours.
const MANIFEST: &str = "benches/peers/Cargo.toml";

/// Builds the peers and lets them read every model type in every compression; `args` narrow it down.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    if let Err(why) = fetched(session, MANIFEST)? {
        return Err(skipped(why));
    }
    let run = ["run", "--quiet", "--release", "--locked", "--manifest-path", MANIFEST, "--", "check"];
    step(cargo(session, &run).args(args))
}

/// Fetches the crates of a workspace of its own, or says why they cannot be had.
///
/// # Errors
///
/// A failure if the workspace is not in order.
pub(crate) fn fetched(session: &Session, manifest: &str) -> Result<Result<(), String>, Failure> {
    let fetched = capture(&mut cargo(session, &["fetch", "--locked", "--manifest-path", manifest]))?;
    match unreachable(&fetched) {
        _ if fetched.success => Ok(Ok(())),
        Some(why) => Ok(Err(why)),
        None => Err(format!("{manifest}: {}", fetched.stderr.trim_end()).into()),
    }
}

/// Why the crates cannot be had, or `None` if it is the project that is not in order: its lock file is out of date or a
/// manifest is wrong.
fn unreachable(fetched: &Captured) -> Option<String> {
    let offline = ["failed to download", "failed to get", "spurious network error", "failed to query"];
    let line = fetched.stderr.lines().find(|line| offline.iter().any(|sign| line.contains(sign)))?;
    (!fetched.stderr.contains("--locked was passed"))
        .then(|| format!("the peer's crates cannot be fetched ({})", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(stderr: &str) -> Captured {
        Captured { success: false, stdout: String::new(), stderr: stderr.to_owned() }
    }

    #[test]
    fn only_a_registry_out_of_reach_is_a_skip() {
        let offline =
            refused("warning: spurious network error\nerror: failed to download from `https://r/`\n");
        assert!(unreachable(&offline).is_some_and(|why| why.contains("network error")));
        let stale = "error: cannot update the lock file benches/peers/Cargo.lock because --locked was passed";
        assert_eq!(unreachable(&refused(stale)), None);
        assert_eq!(unreachable(&refused("error: failed to parse manifest")), None);
    }
}
