//! `candle`: candle reads what gguf-core and `apr` wrote.

use crate::gguf::write_samples;
use crate::llama::SMALL;
use crate::peers;
use crate::process::{cargo, command, stdout_of, step};
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::build_apr;

/// A workspace of its own: the library is large.
const MANIFEST: &str = "benches/candle/Cargo.toml";

/// What candle makes numbers of.
const TYPES: &str = "F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K_M Q4_K_M Q5_K_M Q6_K";

/// Writes files that candle reads, and compares its results for the vectors; `--write` records them.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let verdicts = match args {
        [] => &["verdicts"][..],
        [flag] if flag == "--write" => &["verdicts", "--write"],
        [arg, ..] => return Err(Failure::Usage(format!("`candle` takes `--write` alone, not `{arg}`"))),
    };
    if let Err(why) = peers::fetched(session, MANIFEST)? {
        return Err(skipped(why));
    }
    let folder = session.scratch("candle");
    let [samples, models] = ["samples", "models"].map(|name| folder.join(name));
    write_samples(session, "write_samples", &[&samples])?;
    write_samples(session, "wide_llama", &[SMALL.as_ref(), &models])?;
    let apr = build_apr(session)?;
    for name in TYPES.split_whitespace() {
        let words = ["quantize", "--quiet", "--type", name];
        let wide = [models.join("wide.gguf"), models.join(format!("wide-{name}.gguf"))];
        let small = [session.root().join(SMALL), models.join(format!("small-{name}.gguf"))];
        for [model, out] in [wide, small] {
            // Its table is not compared here.
            stdout_of(command(session, &apr, &words).arg(&model).arg("--output").arg(out))?;
        }
    }
    let run = ["run", "--quiet", "--release", "--locked", "--manifest-path", MANIFEST, "--"];
    step(cargo(session, &run).arg("check").arg(&samples).arg(&models))?;
    step(cargo(session, &run).args(verdicts))
}
