//! `layers`: the dependencies between our crates are those of the table in `docs/architecture.md`, and point to lower layers.
//!
//! The page holds one table between `<!-- layers:begin -->` and `<!-- layers:end -->`: crate, layer, may use. Layers are listed
//! from the top: a layer is below every layer named before it. A dependency for tests only need not be in the table, but must
//! point to a lower layer as well.

use std::fs;

use crate::task::{Outcome, Session};
use crate::workspace::{Kind, Package, Workspace};

const PAGE: &str = "docs/architecture.md";

/// Compares the workspace with the table.
pub(crate) fn run(session: &mut Session, _args: &[String]) -> Outcome {
    let page = fs::read_to_string(session.root().join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    let layers = Layers::from_page(&page).map_err(|error| format!("{PAGE}: {error}"))?;
    let workspace = Workspace::load(session, "Cargo.toml")?;
    let problems = layers.problems(&workspace.packages);
    if problems.is_empty() {
        let names: Vec<&str> = workspace.packages.iter().map(|package| package.name.as_str()).collect();
        let used = workspace.packages.iter().flat_map(|package| &package.dependencies);
        let arrows = used.filter(|used| names.contains(&used.name.as_str())).count();
        println!(
            "layers: {} crates in {} layers, {arrows} dependencies, all as in the table",
            names.len(),
            layers.layers.len()
        );
        return Ok(());
    }
    problems.iter().for_each(|problem| eprintln!("layers: {problem}"));
    Err(format!("{} differences to the table in {PAGE}", problems.len()).into())
}

/// The table.
#[derive(Debug)]
struct Layers {
    /// From the top down.
    layers: Vec<String>,
    rows: Vec<Row>,
}

/// One row of the table.
#[derive(Debug)]
struct Row {
    name: String,
    /// Index into the layers: a larger index is a lower layer.
    layer: usize,
    may_use: Vec<String>,
}

impl Layers {
    fn from_page(page: &str) -> Result<Self, String> {
        let (_, rest) = page.split_once("<!-- layers:begin -->").ok_or("no <!-- layers:begin -->")?;
        let (table, _) = rest.split_once("<!-- layers:end -->").ok_or("no <!-- layers:end -->")?;
        let mut layers = Self { layers: Vec::new(), rows: Vec::new() };
        // The first two rows are the headings and the rule below them.
        for row in table.lines().map(str::trim).filter(|line| line.starts_with('|')).skip(2) {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [name, layer, may_use] = cells[..] else { return Err(format!("not three cells: {row}")) };
            let layer_idx = layers.layers.iter().position(|known| known == layer).unwrap_or_else(|| {
                layers.layers.push(layer.to_owned());
                layers.layers.len() - 1
            });
            let crates = may_use.split(',').map(bare).filter(|name| !name.is_empty() && name != "none");
            layers.rows.push(Row { name: bare(name), layer: layer_idx, may_use: crates.collect() });
        }
        if layers.rows.is_empty() { Err("the table has no rows".into()) } else { Ok(layers) }
    }

    fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Everything in which the table and the manifests differ.
    fn problems(&self, packages: &[Package]) -> Vec<String> {
        let mut problems = Vec::new();
        for (idx, row) in self.rows.iter().enumerate() {
            if self.rows.iter().take(idx).any(|earlier| earlier.name == row.name) {
                problems.push(format!("{} has two rows", row.name));
            }
            if !packages.iter().any(|package| package.name == row.name) {
                problems.push(format!("{} has a row but is no crate of the workspace", row.name));
            }
            for below in &row.may_use {
                match self.row(below) {
                    None => problems.push(format!("{} may use {below}, which has no row", row.name)),
                    Some(used) if used.layer <= row.layer => {
                        problems.push(format!("{} may use {below}, which is not in a lower layer", row.name));
                    }
                    Some(_) => {}
                }
            }
        }
        for package in packages {
            let Some(row) = self.row(&package.name) else {
                problems.push(format!("{} has no row", package.name));
                continue;
            };
            for dependency in &package.dependencies {
                // A third-party crate has no row and no arrow; one of ours without a row is reported above.
                let Some(used) = self.row(&dependency.name) else { continue };
                let arrow = format!("{} -> {}", package.name, dependency.name);
                if used.layer <= row.layer {
                    let table = if dependency.kind == Kind::Dev { ", for tests" } else { "" };
                    problems.push(format!("{arrow}{table}: not in a lower layer"));
                } else if dependency.kind != Kind::Dev && !row.may_use.contains(&dependency.name) {
                    problems.push(format!("{arrow}: not in the table"));
                }
            }
        }
        problems
    }
}

fn bare(cell: &str) -> String {
    cell.trim().trim_matches('`').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    const TABLE: &str = "text\n<!-- layers:begin -->\n| crate | layer | may use |\n|---|---|---|\n\
        | `tool` | edges | `file`, `core` |\n| `file` | formats | `core` |\n| `core` | leaves | none |\n\
        | `other` | leaves | |\n<!-- layers:end -->\n| not | a | row |\n";

    fn package(name: &str, uses: &[(&str, Kind)]) -> Package {
        let dependencies = uses.iter().map(|&(name, kind)| Dependency { name: name.into(), kind }).collect();
        Package {
            name: name.into(),
            folder: std::path::PathBuf::new(),
            features: alloc::collections::BTreeMap::new(),
            binaries: Vec::new(),
            dependencies,
            is_published: true,
        }
    }

    fn problems(change: Package) -> Vec<String> {
        let mut packages = vec![
            package("tool", &[("file", Kind::Normal), ("core", Kind::Normal), ("serde", Kind::Normal)]),
            package("file", &[("core", Kind::Normal), ("other", Kind::Dev)]),
            package("core", &[]),
            package("other", &[]),
        ];
        match packages.iter_mut().find(|package| package.name == change.name) {
            Some(slot) => *slot = change,
            None => packages.push(change),
        }
        Layers::from_page(TABLE).unwrap().problems(&packages)
    }

    #[test]
    fn dependencies_in_the_table_are_accepted() {
        assert_eq!(problems(package("core", &[])), [""; 0]);
    }

    #[test]
    fn every_other_dependency_is_reported() {
        let cases = [
            (package("file", &[("other", Kind::Normal)]), "file -> other: not in the table"),
            (package("file", &[("other", Kind::Build)]), "file -> other: not in the table"),
            (package("core", &[("other", Kind::Normal)]), "core -> other: not in a lower layer"),
            (package("core", &[("tool", Kind::Dev)]), "core -> tool, for tests: not in a lower layer"),
            (package("core", &[("core", Kind::Dev)]), "core -> core, for tests: not in a lower layer"),
            (package("new", &[("core", Kind::Normal)]), "new has no row"),
        ];
        for (change, problem) in cases {
            assert_eq!(problems(change), [problem]);
        }
    }

    #[test]
    fn a_table_that_contradicts_itself_is_reported() {
        let page = TABLE.replace(
            "| `core` | leaves | none |",
            "| `core` | leaves | `tool`, `ghost` |\n| `core` | leaves | |",
        );
        let packages = [package("tool", &[]), package("file", &[]), package("core", &[])];
        let expected = [
            "core may use tool, which is not in a lower layer",
            "core may use ghost, which has no row",
            "core has two rows",
            "other has a row but is no crate of the workspace",
        ];
        assert_eq!(Layers::from_page(&page).unwrap().problems(&packages), expected);
        assert!(Layers::from_page("no table").is_err());
    }
}
