//! The Rust program of the README, built and run with the dependencies that the README names.

use std::fs;
use std::path::Path;

use super::write;
use crate::process::{cargo, step};
use crate::task::{Failure, Outcome, Session};

/// Makes a project of the README's lines for `Cargo.toml` and of its program, as printed, and runs it.
pub(super) fn run(session: &Session, project: &Path, target: &Path) -> Outcome {
    let root = session.root();
    let page = root.join("README.md");
    let text = fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    let dependencies = only_block(&text, "toml")?.replace("\"apr/", &format!("\"{}/", root.display()));
    // A workspace of its own: the folder lies below another.
    let manifest =
        format!("[workspace]\n\n[package]\nname = \"readme\"\nedition = \"2024\"\n\n{dependencies}");
    fs::create_dir_all(project.join("src")).map_err(|error| format!("{}: {error}", project.display()))?;
    write(&project.join("Cargo.toml"), &manifest)?;
    write(&project.join("src/main.rs"), only_block(&text, "rust")?)?;
    let lock = root.join("Cargo.lock");
    fs::copy(&lock, project.join("Cargo.lock")).map_err(|error| format!("{}: {error}", lock.display()))?;
    let mut run = cargo(session, &["run", "--quiet", "--offline"]);
    step(run.current_dir(project).env("CARGO_TARGET_DIR", target))?;
    println!("embed: the program of README.md builds and runs");
    Ok(())
}

/// The only block of code of a page in this language.
fn only_block<'page>(page: &'page str, language: &str) -> Result<&'page str, Failure> {
    let fence = format!("```{language}\n");
    let mut blocks = page.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
    match (blocks.next(), blocks.next()) {
        (Some(block), None) => Ok(block),
        _ => Err(format!("README.md: not one block of {language}").into()),
    }
}
