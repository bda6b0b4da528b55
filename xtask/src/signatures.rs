//! `signatures`: minisign and model-signing verify signatures of `apr sign`, and `apr verify` theirs.

use std::path::Path;

use crate::process::{command, step, succeeds};
use crate::python::{Packages, environment};
use crate::task::{Outcome, Session, skipped, without_arguments};
use crate::workspace::build_apr;

const JUDGE: &str = "xtask/judge_signatures.py";

/// The reference implementation, and what its command line cannot do without.
const PACKAGES: Packages = Packages {
    names: &["model-signing==1.1.1", "pyOpenSSL==26.4.0"],
    check: "import importlib.metadata as m, OpenSSL, model_signing; assert m.version('model-signing') == '1.1.1'",
    variables: &[],
};

/// Verifies with both programs; a missing one is skipped.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("signatures", args)?;
    for (program, word) in [("python3", "--version"), ("openssl", "version")] {
        if !succeeds(&mut command(session, program, &[word])) {
            return Err(skipped(format!("needs {program}")));
        }
    }
    let apr = build_apr(session)?;
    let has_minisign = succeeds(&mut command(session, "minisign", &["-v"]));
    if has_minisign {
        judge(session, Path::new("python3"), &apr, "minisign")?;
    } else {
        session.skip("signatures of minisign", "needs Debian's minisign");
    }
    match environment(session, &session.scratch("signatures").join("python"), &PACKAGES)? {
        Ok(python) => judge(session, &python, &apr, "model-signing"),
        Err(why) if has_minisign => {
            session.skip("signatures of model-signing", why);
            Ok(())
        }
        Err(why) => Err(skipped(why)),
    }
}

fn judge(session: &Session, python: &Path, apr: &Path, what: &str) -> Outcome {
    let scratch = session.scratch("signatures").join(what);
    let mut command = command(session, python, &["-I", JUDGE]);
    step(command.arg(apr).arg(scratch).arg(what))
}
