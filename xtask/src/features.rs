//! `features`: every crate alone, with no feature, with each feature alone, with its defaults, with all.
//!
//! One package at a time: in a whole-workspace build one member switches on what another forgot to ask for.

use crate::parallel::side_by_side;
use crate::process::{capture, cargo, display};
use crate::task::{Failure, Outcome, Session};
use crate::workspace::{Package, Workspace};

/// Checks every combination, or those of the crates named in `args`.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let workspace = Workspace::load(session, "Cargo.toml")?;
    if let Some(unknown) =
        args.iter().find(|name| workspace.packages.iter().all(|package| &package.name != *name))
    {
        return Err(Failure::Usage(format!("`{unknown}` is no crate of the workspace")));
    }
    let chosen: Vec<&Package> =
        workspace.packages.iter().filter(|package| args.is_empty() || args.contains(&package.name)).collect();
    // A check of one crate keeps one core busy, and locks its folder.
    let checked = side_by_side(&chosen, |worker, package| check(session, package, worker));
    let mut failed = Vec::new();
    let mut builds = 0;
    for checked in checked {
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

/// Checks every combination of one crate: how many there are, and which do not build without a warning.
fn check(session: &Session, package: &Package, worker: usize) -> Result<(usize, Vec<String>), Failure> {
    let combinations = combinations(package);
    let mut failed = Vec::new();
    for combination in &combinations {
        let mut command = cargo(session, &["check", "--quiet", "--package", &package.name]);
        command.args(combination);
        if worker > 0 {
            command.arg("--target-dir").arg(session.scratch(&format!("features-{worker}")));
        }
        let captured = capture(&mut command)?;
        eprint!("$ {}\n{}", display(&command), captured.stderr);
        // A warning here is code that only another feature uses.
        if !captured.success || captured.stderr.contains("warning: ") {
            failed.push(format!("{} {}", package.name, combination.join(" ")));
        }
    }
    Ok((combinations.len(), failed))
}

/// The feature arguments to try; a crate without features has only one build.
fn combinations(package: &Package) -> Vec<Vec<String>> {
    let alone = |feature: &String| vec!["--no-default-features".into(), "--features".into(), feature.clone()];
    let mut combinations = vec![vec!["--no-default-features".to_owned()]];
    combinations.extend(package.features.iter().filter(|feature| *feature != "default").map(alone));
    if package.features.iter().any(|feature| feature == "default") {
        combinations.push(Vec::new());
    }
    if !package.features.is_empty() {
        combinations.push(vec!["--all-features".to_owned()]);
    }
    combinations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_tried_alone() {
        let features = ["alloc", "default", "std"].map(str::to_owned).to_vec();
        let mut package = Package {
            name: "p".into(),
            features,
            binaries: Vec::new(),
            dependencies: Vec::new(),
            is_published: true,
        };
        let joined: Vec<_> = combinations(&package).iter().map(|words| words.join(" ")).collect();
        let expected = [
            "--no-default-features",
            "--no-default-features --features alloc",
            "--no-default-features --features std",
            "",
            "--all-features",
        ];
        assert_eq!(joined, expected);
        package.features.clear();
        assert_eq!(combinations(&package).len(), 1);
    }
}
