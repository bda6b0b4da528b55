//! Parts of a file that was cut, as `split` and hubs with a limit of sizes do.

use std::fs;
use std::path::Path;

use crate::error::{Exit, Failure};
use crate::terminal::escape;

/// Endings of model files of which parts are seen.
const ENDINGS: [&str; 9] =
    [".gguf", ".safetensors", ".apr", ".bin", ".pt", ".pth", ".ckpt", ".onnx", ".sealed"];
/// Most parts that a command names.
const NAMED: usize = 8;

/// The failure, with the command that joins the parts if the file is called like one.
pub(crate) fn advised(failure: Failure, path: &Path) -> Failure {
    let is_content = matches!(failure.exit(), Exit::Invalid | Exit::Unsupported);
    match whole(path).filter(|_| is_content) {
        Some(whole) => failure.help(format!(
            "the name is that of a part of a file that was cut: join all parts in their order first: {}",
            command(path, whole)
        )),
        None => failure,
    }
}

/// Name of the whole file, if this is the name of a part: `model.gguf.part1of2`, `model.gguf.partaa`, `model.gguf.00`.
fn whole(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let end = ENDINGS
        .iter()
        .filter_map(|ending| Some(name.to_ascii_lowercase().rfind(ending)? + ending.len()))
        .max()?;
    let (whole, part) = name.split_at_checked(end)?;
    is_part(part).then_some(whole)
}

fn is_part(part: &str) -> bool {
    let part = part.to_ascii_lowercase();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let letters =
        |text: &str| (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase());
    let Some(part) = part.strip_prefix(['.', '-', '_']) else { return false };
    match part.strip_prefix("part").or_else(|| part.strip_prefix("split")) {
        Some(rest) => {
            let rest = rest.trim_start_matches(['-', '_', '.']);
            let number =
                rest.split_once("of").map_or(rest, |(number, _)| number).trim_end_matches(['-', '_']);
            digits(number) || letters(rest)
        }
        None => {
            (2..=4).contains(&part.len()) && digits(part)
                || part.len() == 2 && part.starts_with('a') && letters(part)
        }
    }
}

/// `cat PART... > WHOLE`, with the parts in the folder.
fn command(path: &Path, whole: &str) -> String {
    let folder = path.parent().unwrap_or(Path::new(""));
    let at = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = fs::read_dir(at).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut parts: Vec<String> = names.filter(|name| name.strip_prefix(whole).is_some_and(is_part)).collect();
    // Numbers by value, letters by the alphabet.
    let key = |name: &str| {
        let digits = name.get(whole.len()..).unwrap_or_default().chars().skip_while(|c| !c.is_ascii_digit());
        digits.take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap_or_default()
    };
    parts.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.cmp(b)));
    let word = |name: &str| escape::path_word(&folder.join(name));
    let target = word(whole);
    match parts.len() {
        0 => format!("cat PART... > {target}"),
        1..=NAMED => {
            let parts: Vec<String> = parts.iter().map(|name| word(name)).collect();
            format!("cat {} > {target}", parts.join(" "))
        }
        _ => {
            let ends =
                [parts.first(), parts.last()].map(|name| name.map_or_else(String::new, |name| word(name)));
            format!("cat {} > {target}", ends.join(" ... "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_known_by_their_names() {
        for name in [
            "big.gguf.part1of2",
            "big.gguf.part-1-of-2",
            "big.gguf.partaa",
            "big.gguf.00",
            "big.gguf.001",
            "big.gguf-split-a",
            "big.GGUF.part1",
            "a.safetensors.aa",
        ] {
            let whole = whole(Path::new(name)).map(str::to_ascii_lowercase);
            assert!(
                whole.is_some_and(|whole| whole.ends_with(".gguf") || whole == "a.safetensors"),
                "{name}"
            );
        }
        for name in ["big.gguf", "big.gguf.bak", "big.gguf.minisig", "big.part1", "big.gguf.gz", "a.gguf.q4"]
        {
            assert_eq!(whole(Path::new(name)), None, "{name}");
        }
    }
}
