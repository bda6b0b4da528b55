//! `features`: every crate alone, with no feature, with each feature alone, with its defaults, with all. Features that the source of a crate
//! does not know, which switch on others or those of its dependencies, make no build of their own.
//!
//! One package at a time: in a whole-workspace build one member switches on what another forgot to ask for.

use alloc::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Instant;

use crate::parallel::side_by_side;
use crate::process::{capture, cargo, display};
use crate::task::{Failure, Outcome, Session};
use crate::workspace::{Package, Workspace};

/// A crate, and one that is checked after it by the same worker: both need the clients of object stores, a hundred crates that the other
/// worker would compile in its folder once more.
const IN_TURN: (&str, &str) = ("apr-tools", "apr-remote");

/// Checks every combination, or those of the crates named in `args`.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let workspace = Workspace::load(session, "Cargo.toml")?;
    if let Some(unknown) =
        args.iter().find(|name| workspace.packages.iter().all(|package| &package.name != *name))
    {
        return Err(Failure::Usage(format!("`{unknown}` is no crate of the workspace")));
    }
    let mut chosen: Vec<&Package> =
        workspace.packages.iter().filter(|package| args.is_empty() || args.contains(&package.name)).collect();
    // The longest first: with the others, no core waits for it at the end.
    chosen.sort_by_key(|package| core::cmp::Reverse(package.dependencies.len()));
    // A check of one crate keeps one core busy, and locks its folder: the others begin with a copy of what was built before.
    let cores = available_parallelism().map_or(1, usize::from);
    for worker in 1..cores.min(chosen.len()) {
        let folder = own_target(session, worker);
        if !folder.exists() {
            copy_built(&workspace.target_dir.join("debug"), &folder.join("debug"))
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
    }
    let checked = side_by_side(&turns(&chosen), |worker, packages| {
        packages.iter().map(|package| check(session, package, worker)).collect::<Vec<_>>()
    });
    let mut failed = Vec::new();
    let mut builds = 0;
    for checked in checked.into_iter().flatten() {
        let (number, of_package) = checked?;
        builds += number;
        failed.extend(of_package);
    }
    if failed.is_empty() {
        println!("features: each crate alone, builds: {builds}");
        Ok(())
    } else {
        Err(format!("does not build without warning:\n  {}", failed.join("\n  ")).into())
    }
}

/// The crates, each in a turn of its own but those of [`IN_TURN`].
fn turns<'p>(packages: &[&'p Package]) -> Vec<Vec<&'p Package>> {
    let mut turns: Vec<Vec<&Package>> = packages.iter().map(|&package| vec![package]).collect();
    let place = |name| packages.iter().position(|package| package.name == name);
    if let (Some(first), Some(second)) = (place(IN_TURN.0), place(IN_TURN.1)) {
        let moved = turns[second].pop();
        turns[first].extend(moved);
    }
    turns
}

/// Checks every combination of one crate: how many there are, and which do not build without a warning.
fn check(session: &Session, package: &Package, worker: usize) -> Result<(usize, Vec<String>), Failure> {
    let src = package.folder.join("src");
    let source = source(if src.is_dir() { &src } else { &package.folder })?;
    let combinations = combinations(package, |feature| source.contains(&format!("\"{feature}\"")));
    let mut failed = Vec::new();
    for combination in &combinations {
        let mut command = cargo(session, &["check", "--quiet", "--package", &package.name]);
        command.args(combination);
        if worker > 0 {
            command.arg("--target-dir").arg(own_target(session, worker));
        }
        let began = Instant::now();
        let captured = capture(&mut command)?;
        let seconds = began.elapsed().as_secs_f64();
        eprint!("$ {} # {seconds:.1} s\n{}", display(&command), captured.stderr);
        // A warning here is code that only another feature uses.
        if !captured.success || captured.stderr.contains("warning: ") {
            failed.push(format!("{} {}", package.name, combination.join(" ")));
        }
    }
    Ok((combinations.len(), failed))
}

/// Where a worker but the one numbered 0 builds.
fn own_target(session: &Session, worker: usize) -> PathBuf {
    session.scratch(&format!("features-{worker}"))
}

/// Copies what was built, but programs.
fn copy_built(from: &Path, to: &Path) -> std::io::Result<()> {
    for part in [".fingerprint", "build"] {
        copy_files(&from.join(part), &to.join(part), &|_| true)?;
    }
    // Names of programs have no extension, all others have one.
    copy_files(&from.join("deps"), &to.join("deps"), &|path| path.extension().is_some())
}

/// Copies files with their times, which cargo compares.
fn copy_files(from: &Path, to: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> std::io::Result<()> {
    // Where nothing was built, there is nothing to copy.
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let copy = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_files(&path, &copy, is_wanted)?;
        } else if is_wanted(&path) {
            fs::copy(&path, &copy)?;
            File::options().append(true).open(&copy)?.set_modified(fs::metadata(&path)?.modified()?)?;
        }
    }
    Ok(())
}

/// All source files below a folder as one text.
fn source(folder: &Path) -> Result<String, Failure> {
    let cannot_read = |error: std::io::Error| Failure::from(format!("{}: {error}", folder.display()));
    let mut text = String::new();
    for entry in fs::read_dir(folder).map_err(cannot_read)? {
        let path = entry.map_err(cannot_read)?.path();
        if path.is_dir() {
            text.push_str(&source(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text.push_str(&fs::read_to_string(&path).map_err(cannot_read)?);
        }
    }
    Ok(text)
}

/// The feature arguments to try: one for each set of features that the source tells from the others.
fn combinations(package: &Package, is_known: impl Fn(&str) -> bool) -> Vec<Vec<String>> {
    let alone = |feature: &String| vec!["--no-default-features".into(), "--features".into(), feature.clone()];
    let declared: Vec<&String> = package.features.keys().collect();
    let mut candidates = vec![(vec![], vec!["--no-default-features".to_owned()])];
    let each = declared.iter().filter(|feature| *feature != &"default");
    candidates.extend(each.map(|&feature| (vec![feature.as_str()], alone(feature))));
    candidates.extend(package.features.contains_key("default").then(|| (vec!["default"], Vec::new())));
    candidates
        .push((declared.iter().map(|feature| feature.as_str()).collect(), vec!["--all-features".to_owned()]));
    let mut seen = BTreeSet::new();
    candidates.retain(|(features, _)| {
        let mut on = BTreeSet::new();
        features.iter().for_each(|feature| switch_on(package, feature, &mut on));
        seen.insert(on.into_iter().filter(|feature| is_known(feature)).collect::<Vec<_>>())
    });
    candidates.into_iter().map(|(_, args)| args).collect()
}

/// Adds a feature and those of the same package that it switches on.
fn switch_on<'p>(package: &'p Package, feature: &str, on: &mut BTreeSet<&'p str>) {
    let Some((feature, enables)) = package.features.get_key_value(feature) else { return };
    if on.insert(feature) {
        enables.iter().for_each(|other| switch_on(package, other, on));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, features: &[(&str, &[&str])]) -> Package {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Package {
            name: name.into(),
            folder: name.into(),
            features: features.iter().map(|&(name, enables)| (name.to_owned(), owned(enables))).collect(),
            binaries: Vec::new(),
            dependencies: Vec::new(),
            is_published: true,
        }
    }

    fn joined(features: &[(&str, &[&str])], known: &[&str]) -> Vec<String> {
        let package = package("p", features);
        let combinations = combinations(&package, |feature| known.contains(&feature));
        combinations.iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn each_feature_is_tried_alone() {
        let features: &[(&str, &[&str])] =
            &[("alloc", &[]), ("default", &["std"]), ("rayon", &["dep:rayon"]), ("std", &["alloc", "a/std"])];
        let expected = [
            "--no-default-features",
            "--no-default-features --features alloc",
            "--no-default-features --features rayon",
            "--no-default-features --features std",
            "--all-features",
        ];
        assert_eq!(joined(features, &["alloc", "rayon", "std"]), expected);
        assert_eq!(joined(&[], &[]), ["--no-default-features"]);
    }

    #[test]
    fn every_crate_has_its_turn_once() {
        let names = |chosen: &[&str]| {
            let packages: Vec<Package> = chosen.iter().map(|name| package(name, &[])).collect();
            let turns = turns(&packages.iter().collect::<Vec<_>>());
            turns.iter().map(|turn| turn.iter().map(|package| package.name.as_str()).collect()).collect()
        };
        let together: Vec<String> = names(&["apr-remote", "st-core", "apr-tools"]);
        assert_eq!(together, ["", "st-core", "apr-toolsapr-remote"]);
        let alone: Vec<String> = names(&["apr-remote", "st-core"]);
        assert_eq!(alone, ["apr-remote", "st-core"]);
    }

    #[test]
    fn what_the_source_does_not_know_makes_no_difference() {
        let features: &[(&str, &[&str])] =
            &[("all", &["one", "two"]), ("fast", &["a/fast"]), ("one", &[]), ("two", &[])];
        let expected = [
            "--no-default-features",
            "--no-default-features --features all",
            "--no-default-features --features one",
            "--no-default-features --features two",
        ];
        assert_eq!(joined(features, &["one", "two"]), expected);
    }
}
