//! The crates of a workspace, as cargo reports them.

use alloc::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::json::Value;
use crate::process::{cargo, stdout_of, step};
use crate::task::{Failure, Session};

/// The members of a workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The members, by name.
    pub(crate) packages: Vec<Package>,
    /// Where cargo builds.
    pub(crate) target_dir: PathBuf,
}

/// One member.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// The features it declares, by name, with what they switch on.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// The names of its binaries, in the order of its manifest.
    pub(crate) binaries: Vec<String>,
    /// What its manifest says it depends on, for every target and feature.
    pub(crate) dependencies: Vec<Dependency>,
    /// Whether its manifest allows to publish it.
    pub(crate) is_published: bool,
}

/// One line of a `[dependencies]` table.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The package it names, whatever it is called here.
    pub(crate) name: String,
    /// When it is used.
    pub(crate) kind: Kind,
}

/// The table that lists a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `[dependencies]`
    Normal,
    /// `[dev-dependencies]`
    Dev,
    /// `[build-dependencies]`
    Build,
}

impl Workspace {
    /// Asks cargo about the workspace of `manifest` (a path from the root of the project).
    ///
    /// # Errors
    ///
    /// A failure with cargo's own words if it cannot read the manifests.
    pub(crate) fn load(session: &Session, manifest: &str) -> Result<Self, Failure> {
        let args = ["metadata", "--format-version", "1", "--no-deps", "--manifest-path", manifest];
        let text = stdout_of(&mut cargo(session, &args))?;
        Self::from_metadata(&text).map_err(|error| format!("cargo metadata: {error}").into())
    }

    fn from_metadata(text: &str) -> Result<Self, String> {
        let metadata = Value::parse(text)?;
        let target_dir = metadata.text_of("target_directory").ok_or("no target_directory")?;
        let listed = metadata.get("packages").ok_or("no packages")?.list();
        let mut packages = listed.iter().map(package).collect::<Result<Vec<_>, _>>()?;
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { packages, target_dir: Path::new(target_dir).to_path_buf() })
    }
}

fn package(value: &Value) -> Result<Package, String> {
    let name = value.text_of("name").ok_or("a package without a name")?.to_owned();
    let manifest = value.text_of("manifest_path").ok_or("a package without a manifest")?;
    let features = value.get("features").map_or(&[][..], Value::table).iter().map(|(feature, enables)| {
        let enables = enables.list().iter().filter_map(Value::text).map(str::to_owned);
        (feature.clone(), enables.collect())
    });
    let is_binary = |target: &&Value| {
        target.get("kind").map_or(&[][..], Value::list).iter().any(|kind| kind.text() == Some("bin"))
    };
    let targets = value.get("targets").map_or(&[][..], Value::list);
    let binaries = targets.iter().filter(is_binary).filter_map(|target| target.text_of("name"));
    let dependencies = value.get("dependencies").map_or(&[][..], Value::list).iter().map(dependency);
    Ok(Package {
        name,
        folder: Path::new(manifest).parent().map(Path::to_path_buf).unwrap_or_default(),
        features: features.collect(),
        binaries: binaries.map(str::to_owned).collect(),
        dependencies: dependencies.collect::<Result<_, _>>()?,
        is_published: value.get("publish").is_none_or(|registries| registries.bare() == Some("null")),
    })
}

fn dependency(value: &Value) -> Result<Dependency, String> {
    let name = value.text_of("name").ok_or("a dependency without a name")?.to_owned();
    let kind = match value.text_of("kind") {
        None => Kind::Normal,
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        Some(other) => return Err(format!("a dependency of the unknown kind {other}")),
    };
    Ok(Dependency { name, kind })
}

/// Builds the program `apr`, as [`built`] says.
///
/// # Errors
///
/// A failure if it does not build.
pub(crate) fn build_apr(session: &Session) -> Result<PathBuf, Failure> {
    build_program(session, "apr-tools", "apr")
}

/// Builds a program of `package`, as [`built`] says.
///
/// # Errors
///
/// A failure if it does not build.
pub(crate) fn build_program(session: &Session, package: &str, name: &str) -> Result<PathBuf, Failure> {
    built(session, package, ["--bin", name], "debug")
}

/// Builds an example of `package`, as [`built`] says.
///
/// # Errors
///
/// A failure if it does not build.
pub(crate) fn build_example(session: &Session, package: &str, name: &str) -> Result<PathBuf, Failure> {
    built(session, package, ["--example", name], "debug/examples")
}

/// Builds an example of `package` with the features of this package alone: for what answers by the features of its dependencies.
///
/// # Errors
///
/// A failure if it does not build.
pub(crate) fn build_example_alone(session: &Session, package: &str, name: &str) -> Result<PathBuf, Failure> {
    let words = ["build", "--locked", "--profile", "test", "--package", package, "--example", name];
    step(&mut cargo(session, &words))?;
    place(session, name, "debug/examples")
}

/// A program with the profile of the tests. If the tests were built in this session, it is there: cargo builds every example with them, and
/// every program whose crate has tests that run it. A build for one package alone would compile the crates that it depends on once more, with
/// other features.
fn built(session: &Session, package: &str, what: [&str; 2], folder: &str) -> Result<PathBuf, Failure> {
    if !session.has_built_tests() {
        let words = ["build", "--locked", "--profile", "test", "--package", package];
        step(cargo(session, &words).args(what))?;
    }
    place(session, what[1], folder)
}

/// The path of the program `name` in a folder of what cargo built.
///
/// # Errors
///
/// A failure if cargo does not say where it builds.
pub(crate) fn place(session: &Session, name: &str, folder: &str) -> Result<PathBuf, Failure> {
    let target_dir = Workspace::load(session, "Cargo.toml")?.target_dir;
    Ok(target_dir.join(folder).join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// Builds the program `apr` as it is released.
///
/// # Errors
///
/// A failure if it does not build.
pub(crate) fn build_release(session: &Session) -> Result<PathBuf, Failure> {
    step(&mut cargo(session, &["build", "--release", "--locked", "--package", "apr-tools", "--bin", "apr"]))?;
    let target_dir = Workspace::load(session, "Cargo.toml")?.target_dir;
    Ok(target_dir.join("release").join(format!("apr{}", std::env::consts::EXE_SUFFIX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_from_metadata() {
        let workspace = Workspace::from_metadata(
            r#"{"packages":[
                {"name":"b","manifest_path":"/w/b/Cargo.toml","features":{},"targets":[{"kind":["bin"],"name":"tool"},{"kind":["test"],"name":"it"}],
                 "dependencies":[{"name":"a","kind":null},{"name":"x","kind":"dev"},{"name":"y","kind":"build"}]},
                {"name":"a","manifest_path":"/w/a/Cargo.toml","features":{"std":["alloc"],"alloc":[]},"targets":[{"kind":["lib"],"name":"a"}],
                 "dependencies":[]}],
               "target_directory":"/t"}"#,
        )
        .unwrap();
        let [a, b] = &workspace.packages[..] else { panic!("two members") };
        assert_eq!((a.name.as_str(), a.folder.as_path()), ("a", Path::new("/w/a")));
        let features: Vec<_> =
            a.features.iter().map(|(name, enables)| (name.as_str(), enables.len())).collect();
        assert_eq!(features, [("alloc", 0), ("std", 1)]);
        assert!(a.binaries.is_empty());
        assert_eq!(b.binaries, ["tool"]);
        let kinds: Vec<_> = b.dependencies.iter().map(|d| (d.name.as_str(), d.kind)).collect();
        assert_eq!(kinds, [("a", Kind::Normal), ("x", Kind::Dev), ("y", Kind::Build)]);
        assert_eq!(workspace.target_dir, Path::new("/t"));
    }
}
