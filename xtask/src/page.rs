//! `page`: builds the page from `crates/apr-wasm/www` and the npm package, and tests it in Chromium.

use core::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::process::{command, find_tool, step};
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::build_apr;
use crate::{npm, wasm};

const SOURCE: &str = "crates/apr-wasm/www";
const TESTS: &str = "crates/apr-wasm/tests/browser";

/// Name of the folder of the npm package in the page.
const PACKAGE: &str = "apr-wasm";

/// The list of files for work without a network; `sw.js` reads it.
const LIST: &str = "files.js";

/// Files that visitors need not keep.
const NOT_KEPT: &[&str] = &["sw.js", LIST];

/// Puts the page together; with `test`, also lets Chromium use it.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let tests = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["test"] => true,
        _ => return Err(Failure::Usage("`page` takes `test` or nothing".to_owned())),
    };
    let package = session.scratch("wasm").join("package");
    wasm::run(session, &["build".to_owned()])?;
    let page = session.scratch("page");
    assemble(&session.root().join(SOURCE), &package, &page)?;
    if tests {
        return test(session, &page);
    }
    println!("the page is in target/page; any web server shows it:");
    println!("  python3 -m http.server --bind 127.0.0.1 --directory target/page");
    Ok(())
}

/// Copies both into `page`, which is replaced, and lists its files.
fn assemble(source: &Path, package: &Path, page: &Path) -> Outcome {
    if page.exists() {
        fs::remove_dir_all(page).map_err(|error| unusable(page, &error))?;
    }
    let mut files = Vec::new();
    copy(source, page, "", &mut files)?;
    copy(package, page, &format!("{PACKAGE}/"), &mut files)?;
    files.sort();
    let list = page.join(LIST);
    fs::write(&list, listing(&files)).map_err(|error| unusable(&list, &error))
}

/// A file of the page: its path below it, and a checksum of its bytes.
type Listed = (String, u64);

/// Copies what is in `from` to `prefix` below `page`.
fn copy(from: &Path, page: &Path, prefix: &str, files: &mut Vec<Listed>) -> Outcome {
    let folder = page.join(prefix);
    fs::create_dir_all(&folder).map_err(|error| unusable(&folder, &error))?;
    for entry in fs::read_dir(from).map_err(|error| unusable(from, &error))? {
        let path = entry.map_err(|error| unusable(from, &error))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if path.is_dir() {
            copy(&path, page, &format!("{prefix}{name}/"), files)?;
            continue;
        }
        let bytes = fs::read(&path).map_err(|error| unusable(&path, &error))?;
        let copied = folder.join(name);
        fs::write(&copied, &bytes).map_err(|error| unusable(&copied, &error))?;
        files.push((format!("{prefix}{name}"), fnv(&bytes)));
    }
    Ok(())
}

/// The script that tells `sw.js` what to keep; its version changes with any byte of any file.
fn listing(files: &[Listed]) -> String {
    let all = files.iter().map(|(name, digest)| format!("{name} {digest:016x}\n")).collect::<String>();
    let mut text = format!("self.PAGE = {{\n  version: \"{:016x}\",\n  files: [\n", fnv(all.as_bytes()));
    for (name, _) in files.iter().filter(|(name, _)| is_kept(name)) {
        writeln!(text, "    \"{name}\",").expect("a string takes any text");
    }
    text + "  ],\n};\n"
}

/// Scripts, styles, pictures, WebAssembly and models: what the page itself asks for.
fn is_kept(name: &str) -> bool {
    let wanted =
        [".html", ".css", ".js", ".svg", ".wasm", ".apr", ".gguf", ".safetensors", ".sealed", ".pub"];
    // The page uses the module that has everything.
    let is_other_module = name.contains("/wasm/apr-core");
    !NOT_KEPT.contains(&name) && !is_other_module && wanted.iter().any(|end| name.ends_with(end))
}

/// FNV-1a with 64 bits: distinguishes versions, no protection.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |state, byte| {
        (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    format!("{}: {error}", path.display()).into()
}

/// Runs the tests in Chromium.
fn test(session: &mut Session, page: &Path) -> Outcome {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let Some(chromium) = names.iter().find_map(|name| find_tool(session, name)) else {
        return Err(skipped("needs Debian's chromium"));
    };
    let tests = session.root().join(TESTS);
    let tools = session.scratch("page-tools");
    if let Err(why) = npm::install(session, &tests, &tools)? {
        return Err(skipped(format!("needs playwright-core and axe-core: {why}")));
    }
    let apr = build_apr(session)?;
    let mut node = command(session, "node", &["--test", "--test-reporter=spec"]);
    node.args(["parts.test.mjs", "page.test.mjs"].map(|name| tests.join(name)));
    node.env("PAGE", page).env("TOOLS", tools).env("APR", apr).env("CHROMIUM", chromium);
    step(node.env("SCREENSHOTS", session.scratch("page-screenshots")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_changes_with_any_byte_and_the_list_leaves_out_what_lists() {
        let one = [
            ("app.js".to_owned(), fnv(b"1")),
            ("files.js".to_owned(), 0),
            ("examples/make.sh".to_owned(), 0),
        ];
        let other = [
            ("app.js".to_owned(), fnv(b"2")),
            ("files.js".to_owned(), 0),
            ("examples/make.sh".to_owned(), 0),
        ];
        assert_ne!(listing(&one), listing(&other));
        assert!(listing(&one).ends_with("files: [\n    \"app.js\",\n  ],\n};\n"), "{}", listing(&one));
    }

    #[test]
    fn checksums_are_those_of_the_specification() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
