//! `peers`: the programs that made the `.apr` format read what we write.

use crate::process::{Captured, capture, cargo, step};
use crate::task::{Outcome, Session};

/// A workspace of its own: three versions of a large library never reach ours.
const MANIFEST: &str = "benches/peers/Cargo.toml";

/// Builds the peers and lets them read every model type in every compression; `args` narrow it down.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let fetched = capture(&mut cargo(session, &["fetch", "--locked", "--manifest-path", MANIFEST]))?;
    if !fetched.success {
        let Some(why) = unreachable(&fetched) else {
            return Err(format!("benches/peers: {}", fetched.stderr.trim_end()).into());
        };
        session.skip("peers", why);
        return Ok(());
    }
    let run = ["run", "--quiet", "--release", "--locked", "--manifest-path", MANIFEST, "--", "check"];
    step(cargo(session, &run).args(args))
}

/// Why the crates cannot be had, or `None` if it is the project that is not in order: its lock file is out of date or a
/// manifest is wrong.
fn unreachable(fetched: &Captured) -> Option<String> {
    let offline = ["failed to download", "failed to get", "spurious network error", "failed to query"];
    let line = fetched.stderr.lines().find(|line| offline.iter().any(|sign| line.contains(sign)))?;
    (!fetched.stderr.contains("--locked was passed"))
        .then(|| format!("the peers' crates cannot be fetched ({})", line.trim()))
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
