//! `ggml`: compares blocks of `apr-quant` with the reference library.

use crate::models;
use crate::process::{cargo, command, step};
use crate::python;
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::Workspace;

/// Loads the library and compares.
const JUDGE: &str = "xtask/judge_blocks.py";

/// A package with the reference inside (ggml 0.13.1), built without contraction of products and sums: the library, and
/// the one it does not load without.
const PACKAGE: &str = "\
package python pywhispercpp 1.5.1 ci
file 911257 8c0f6278fef6393e17c66fa7f280958488de1cda008a602080557d024c1bcd8e libggml-base.so libggml-base.so
file 253289 a43904e4fa297301d4640dc1bb3c8a3480b406f99e498eba9b1914b68aab604a \
    pywhispercpp.libs/libgomp-e985bcbb.so.1.0.0 pywhispercpp.libs/libgomp-e985bcbb.so.1.0.0
";

/// Default number of blocks of each kind.
const QUICK: u64 = 20_000;

/// Compares COUNT blocks of each format and kind; words after it choose formats.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let (n_blocks, formats) = chosen(args)?;
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        return Err(skipped("the reference library is one for x86-64 Linux"));
    }
    python::require(session)?;
    let folder = match models::fetch_package(session, PACKAGE)? {
        Ok(folder) => folder,
        Err(why) => {
            return Err(skipped(why));
        }
    };
    let example = ["build", "--release", "--locked", "--package", "apr-quant", "--example", "blocks"];
    step(&mut cargo(session, &example))?;
    let target_dir = Workspace::load(session, "Cargo.toml")?.target_dir;
    let program = target_dir.join("release/examples").join(format!("blocks{}", std::env::consts::EXE_SUFFIX));
    let mut judge = command(session, "python3", &["-I", JUDGE]);
    judge.arg(folder.join("libggml-base.so")).arg(program).arg(n_blocks.to_string());
    step(judge.args(formats))
}

/// How many blocks, and of which formats; without names, of all.
fn chosen(args: &[String]) -> Result<(u64, &[String]), Failure> {
    let Some((first, rest)) = args.split_first() else { return Ok((QUICK, &[])) };
    if !first.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok((QUICK, args));
    }
    match first.replace('_', "").parse() {
        Ok(count) if count > 0 => Ok((count, rest)),
        _ => Err(Failure::Usage(format!("`{first}` is not a number of blocks"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_blocks_may_stand_before_names() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let read = |text: &str| chosen(&words(text)).map(|(count, names)| (count, names.len())).ok();
        assert_eq!(read(""), Some((QUICK, 0)));
        assert_eq!(read("Q4_K Q8_0"), Some((QUICK, 2)));
        assert_eq!(read("10_000_000 Q4_K"), Some((10_000_000, 1)));
        assert_eq!((read("0"), read("1x")), (None, None));
    }
}
