//! Files whose names come from a list that someone else wrote: which names are accepted, and how the files get into a folder.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

use crate::error::{Error, ErrorKind, FileKind, Operation};
use crate::folder::Folder;

/// Longest name, in bytes: the limit of most file systems.
const NAME_MAX: usize = 255;
/// Longest path, in bytes.
const PATH_MAX: usize = 1024;
/// Most names in a path.
const DEPTH_MAX: usize = 64;
/// Whether file systems usually take names that differ in case for one.
const IS_CASE_BLIND: bool = cfg!(any(windows, target_vendor = "apple"));

/// Folders whose settings name programs that version control systems run, for example at each `git status`.
const REPOSITORIES: [&str; 4] = [".git", ".hg", ".jj", ".sl"];

/// Names that other programs read or run when they come across them, and these programs.
const TOOLS: [(&str, &str); 9] = [
    (".devcontainer", "editors"),
    (".envrc", "direnv"),
    (".github", "GitHub"),
    (".gitlab-ci.yml", "GitLab"),
    (".gitmodules", "git"),
    (".husky", "git"),
    (".idea", "editors"),
    (".pre-commit-config.yaml", "pre-commit"),
    (".vscode", "editors"),
];

/// Checks the paths of a list (`/` between names) as one tree, before the first file is written.
///
/// # Errors
///
/// [`ErrorKind::ListedName`] with the path: a name that is empty, `.`, `..`, ends with a dot or a blank, or is too long; a path that
/// is too long or too deep, occurs twice, or is a folder of another one; a name that version control systems take for their own
/// folder in any spelling (`.GIT`, `git~1`, `.g\u{200c}it`), and files that make a folder a bare repository of git.
///
/// ```
/// durable_file::check_listed(["config.json", "onnx/model.onnx"])?;
/// let error = durable_file::check_listed(["sub/.GIT /config"]).unwrap_err();
/// assert_eq!(error.code(), "df-listed-name");
/// # Ok::<(), durable_file::Error>(())
/// ```
pub fn check_listed<'p>(paths: impl IntoIterator<Item = &'p str>) -> Result<(), Error> {
    let (mut files, mut lower) = (BTreeSet::new(), BTreeSet::new());
    for path in paths {
        let refused = |problem| refused(path, problem);
        check_path(path).map_err(refused)?;
        if !files.insert(same_on_disk(path)) {
            return Err(refused("it occurs twice"));
        }
        lower.insert(path.to_lowercase());
    }
    let folders: BTreeSet<&str> = files.iter().flat_map(|path| above(path)).collect();
    if let Some(path) = files.iter().find(|path| folders.contains(&***path)) {
        return Err(refused(path, "it is a file and a folder"));
    }
    let folders: BTreeSet<&str> = lower.iter().flat_map(|path| above(path)).collect();
    let is_bare = |head: &&String| {
        let Some(folder) =
            head.strip_suffix("head").filter(|folder| folder.is_empty() || folder.ends_with('/'))
        else {
            return false;
        };
        let has = |name: &str| folders.contains(&*format!("{folder}{name}"));
        has("objects") && has("refs") || lower.contains(&format!("{folder}commondir"))
    };
    match lower.iter().find(is_bare) {
        Some(head) => Err(refused(
            head,
            "git takes its folder for a repository, whose settings name programs that it runs",
        )),
        None => Ok(()),
    }
}

/// The program that reads or runs a file with this path, or what is below a folder in it, without being asked by name.
///
/// ```
/// assert_eq!(durable_file::tool_of_listed("sub/.envrc"), Some("direnv"));
/// assert_eq!(durable_file::tool_of_listed("model.safetensors"), None);
/// ```
#[must_use]
pub fn tool_of_listed(path: &str) -> Option<&'static str> {
    let tool = |name: &str| TOOLS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    path.split('/').find_map(tool).map(|(_, tool)| *tool)
}

/// Refuses a path below `base` that leads through a symbolic link, or through a file. Folders may be missing.
///
/// # Errors
///
/// [`ErrorKind::NotFolder`]; [`ErrorKind::Io`] if a folder cannot be opened.
pub fn check_below(base: &Path, path: &str) -> Result<(), Error> {
    match Folder::open(base) {
        Ok(folder) => descend(folder, path, Missing::Stop).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(Operation::OpenFolder, base, error)),
    }
}

/// Moves a finished file to a path below `base` (`/` between names), replacing what has the name there. Missing folders are created;
/// no symbolic link below `base` is followed, also if one appears meanwhile. The names have reached the medium when it returns.
///
/// # Errors
///
/// [`ErrorKind::NotFolder`], [`ErrorKind::NoFileName`], or [`ErrorKind::Io`] if the operating system refused a step.
pub fn move_below(from: &Path, base: &Path, path: &str) -> Result<(), Error> {
    let shown = base.join(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    let (Some(from_name), false) = (from.file_name(), name.is_empty()) else {
        return Err(Error::new(ErrorKind::NoFileName, &shown));
    };
    let open =
        |path: &Path| Folder::open(path).map_err(|error| Error::io(Operation::OpenFolder, path, error));
    let parent = from.parent().filter(|parent| !parent.as_os_str().is_empty());
    let source = open(parent.unwrap_or(Path::new(".")))?;
    let folders = descend(open(base)?, path, Missing::Create)?;
    let target = folders.last().unwrap_or(&source);
    source
        .rename_into(from_name, target, OsStr::new(name))
        .map_err(|error| Error::io(Operation::Rename, &shown, error))?;
    let sync = |folder: &Folder| {
        folder.sync().map_err(|error| Error::io(Operation::SyncFolder, folder.path(), error))
    };
    folders.iter().rev().try_for_each(sync)
}

/// Handling of folders that are missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    /// The last one that exists ends it.
    Stop,
}

/// Opens the folders of a path below `base` one by one; `base` is the first.
fn descend(base: Folder, path: &str, missing: Missing) -> Result<Vec<Folder>, Error> {
    let names = path.split('/').map(OsStr::new);
    let n_folders = names.clone().count() - 1;
    let mut folders = vec![base];
    for name in names.take(n_folders) {
        let Some(last) = folders.last() else { break };
        let shown = last.path().join(name);
        let failed = |error| Error::io(Operation::OpenFolder, &shown, error);
        let opened = match last.open_folder(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if missing == Missing::Stop {
                    break;
                }
                match last.create_folder(name) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
                    _ => last.open_folder(name),
                }
            }
            opened => opened,
        };
        match opened {
            Ok(folder) => folders.push(folder),
            Err(error) => {
                let entry = last.entry(name).ok().flatten();
                let what = entry.map(|entry| entry.irregular().map_or("a file", FileKind::name));
                return Err(match what.filter(|what| *what != FileKind::Directory.name()) {
                    Some(what) => Error::new(ErrorKind::NotFolder { what }, &shown),
                    None => failed(error),
                });
            }
        }
    }
    Ok(folders)
}

fn refused(path: &str, problem: &'static str) -> Error {
    Error::new(ErrorKind::ListedName { problem }, Path::new(path))
}

/// The folders of a path, outermost first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

/// The path as file systems of this machine compare it.
fn same_on_disk(path: &str) -> Cow<'_, str> {
    if IS_CASE_BLIND { path.to_lowercase().into() } else { path.into() }
}

fn check_path(path: &str) -> Result<(), &'static str> {
    if path.len() > PATH_MAX {
        return Err("it is longer than 1024 bytes");
    }
    if path.split('/').count() > DEPTH_MAX {
        return Err("it has more than 64 folders in each other");
    }
    path.split('/').try_for_each(|name| match name {
        "" | "." | ".." => Err("it has an empty name, `.` or `..`"),
        _ if name.len() > NAME_MAX => Err("it has a name longer than 255 bytes"),
        _ if name.chars().any(char::is_control) => Err("it has a control character"),
        _ if name.split(['\\', ':']).any(is_repository) => Err(
            "a version control system takes it for its own folder, whose settings name programs that it runs",
        ),
        // Windows drops them: `.. ` is the folder above.
        _ if name.ends_with(['.', ' ']) => Err("a name in it ends with a dot or a blank"),
        _ => Ok(()),
    })
}

/// Whether a version control system takes a name for its folder on any file system: in any case (Windows, macOS), as a short name,
/// with dots and blanks at its end (Windows), or with characters that HFS+ ignores.
fn is_repository(name: &str) -> bool {
    let is_seen = |c: &char| !matches!(*c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let seen: String = name.chars().filter(is_seen).flat_map(char::to_lowercase).collect();
    let seen = seen.trim_end_matches(['.', ' ']);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    REPOSITORIES.contains(&seen) || seen.strip_prefix("git~").is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::test_folder::TestFolder;

    fn problem(paths: &[&str]) -> Option<String> {
        check_listed(paths.iter().copied())
            .err()
            .map(|error| format!("{}: {}", error.path().display(), error.kind()))
    }

    #[test]
    fn names_of_models_are_accepted() {
        let paths = [
            "model.safetensors",
            ".gitattributes",
            ".gitignore",
            "digit/x",
            "git~/x",
            "onnx/model.onnx",
            "a.git/x",
            ".github/workflows/x.yml",
            "HEAD",
            "refs/x",
            "…/ü",
        ];
        assert_eq!(problem(&paths), None);
    }

    #[test]
    fn every_spelling_of_a_repository_is_refused() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            "git~1",
            "GIT~2",
            ".git.",
            ".git ",
            ".git . .",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
            ".gi\u{feff}t",
            "\u{200d}.git",
            ".hg",
            ".HG ",
            ".jj",
            ".sl",
            "a\\.git\\config",
        ] {
            for path in
                [name.to_owned(), format!("{name}/config"), format!("a/{name}/b"), format!("a/{name}")]
            {
                assert!(problem(&[&path]).is_some_and(|text| text.contains("version control")), "{path:?}");
            }
        }
    }

    #[test]
    fn lists_that_do_not_form_a_tree_are_refused() {
        let (long, deep) = ("x".repeat(256), "d/".repeat(64) + "x");
        let far = vec!["y".repeat(250); 5].join("/");
        for (paths, expected) in [
            (&["a", "b", "a"][..], "a: .*twice"),
            (&["a/b", "a"], "a: .*a file and a folder"),
            (&["a", "a/b/c"], "a: .*a file and a folder"),
            (&[long.as_str()], "longer than 255"),
            (&[deep.as_str()], "more than 64"),
            (&[far.as_str()], "longer than 1024"),
            (&["a/../b"], "`..`"),
            (&["a//b"], "empty"),
            (&["/a"], "empty"),
            (&["a/.. /b"], "dot or a blank"),
            (&["a./b"], "dot or a blank"),
            (&["a\nb"], "control"),
        ] {
            let text = problem(paths).unwrap_or_default();
            let parts = expected.split(".*");
            assert!(parts.into_iter().all(|part| text.contains(part)), "{paths:?}: {text}");
        }
        assert_eq!(problem(&["a", "A"]).is_some(), IS_CASE_BLIND);
    }

    #[test]
    fn bare_repositories_are_refused() {
        for paths in [
            &["x/HEAD", "x/objects/00", "x/refs/heads/main", "x/config"][..],
            &["head", "OBJECTS/a", "Refs/a"],
            &["HEAD", "commondir"],
        ] {
            assert!(problem(paths).is_some_and(|text| text.contains("git takes")), "{paths:?}");
        }
        assert_eq!(problem(&["x/HEAD", "objects/a", "refs/a", "ahead", "commondirs"]), None);
    }

    #[test]
    fn files_of_tools_are_recognized() {
        assert_eq!(tool_of_listed(".VSCode/tasks.json"), Some("editors"));
        assert_eq!(tool_of_listed("a/.github/workflows/x.yml"), Some("GitHub"));
        assert_eq!(tool_of_listed("envrc"), None);
    }

    #[test]
    fn files_are_moved_into_folders_that_are_made() {
        let folder = TestFolder::new();
        let part = folder.path().join("part");
        for content in ["old", "new"] {
            fs::write(&part, content).unwrap();
            check_below(folder.path(), "a/b/file").unwrap();
            move_below(&part, folder.path(), "a/b/file").unwrap();
            assert_eq!(fs::read_to_string(folder.path().join("a/b/file")).unwrap(), content);
        }
        fs::write(&part, "x").unwrap();
        check_below(folder.path(), "a/b/file/c/x").unwrap_err();
        let error = move_below(&part, folder.path(), "a/b/file/c/x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFolder { what: "a file" });
        assert!(part.exists());
        check_below(&folder.path().join("none"), "a/b").unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn no_link_is_followed() {
        let (folder, outside) = (TestFolder::new(), TestFolder::new());
        let part = folder.path().join("part");
        fs::write(&part, "x").unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        for link in ["a/link", "link"] {
            std::os::unix::fs::symlink(outside.path(), folder.path().join(link)).unwrap();
            let path = format!("{link}/b/file");
            for error in [check_below(folder.path(), &path), move_below(&part, folder.path(), &path)] {
                assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFolder { what: "a symbolic link" });
            }
        }
        assert_eq!(outside.names().len(), 0);
        // A link in the place of the file is replaced, not followed.
        let victim = outside.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("a/file")).unwrap();
        move_below(&part, folder.path(), "a/file").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert!(!folder.path().join("a/file").is_symlink());
    }
}
