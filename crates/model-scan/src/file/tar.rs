//! Members of tar archives.

mod header;
mod members;

use alloc::collections::BTreeMap;
use alloc::string::String;

use pickle_core::Error;
use read_at::{ReadAt, Window};

pub(crate) use self::header::is_tar;
use self::members::{Member, Members};
use super::item::{Files, Item, join};
use crate::problem::Problem;
use crate::report::Origin;

/// The member of a name that was read last.
type Names = BTreeMap<String, Member>;

impl Files<'_> {
    pub(super) fn tar(&mut self, item: Item<'_>) -> Result<(), Error> {
        let Item { source, path, depth, .. } = item;
        let (mut members, mut names) = (Members::new(source), Names::new());
        while let Some(member) = members.next()? {
            if !self.budget.take_member() {
                self.unopened(path, "more members than are read");
                return Ok(());
            }
            let name = String::from_utf8_lossy(&member.name).into_owned();
            let inner = join(path, &name);
            for problem in &member.problems {
                self.remark(&inner, 0, problem.clone());
            }
            if leaves(&name) {
                self.tar_problem(&inner, "a name that leaves the folder");
            }
            let source = &Window::new(source, member.data, member.len)?;
            self.file(Item { source, path: &inner, name: &name, origin: Origin::File, depth: depth + 1 })?;
            if replaces(item.source, &mut names, normal(&name), member)? {
                self.tar_problem(&inner, "two members of one name");
            }
        }
        if let Some((at, problem)) = members.end {
            self.remark(path, at, problem);
        }
        Ok(())
    }

    fn tar_problem(&mut self, path: &str, reason: &'static str) {
        self.remark(path, 0, Problem::Tar { reason });
    }
}

/// The name as file systems take it.
fn normal(name: &str) -> String {
    let parts = name.split('/').filter(|part| !part.is_empty() && *part != ".");
    let mut normal = String::new();
    for part in parts {
        normal.push('/');
        normal.push_str(part);
    }
    normal
}

/// Whether a file of this name may be written outside of the folder, on any system.
fn leaves(name: &str) -> bool {
    let has_drive = matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    name.starts_with('/') || name.contains('\\') || has_drive || name.split('/').any(|part| part == "..")
}

/// Keeps a member under its name, and says whether it is another file than the one before it.
fn replaces(source: &dyn ReadAt, names: &mut Names, name: String, member: Member) -> Result<bool, Error> {
    let Some(before) = names.get(&name) else {
        names.insert(name, member);
        return Ok(false);
    };
    let mut differs = before.kind != member.kind || before.len != member.len;
    let (mut first, mut second, mut at) = ([0; 4096], [0; 4096], 0);
    while !differs && at < member.len {
        let len = usize::try_from(member.len - at).unwrap_or(usize::MAX).min(4096);
        let (first, second) =
            (first.get_mut(..len).unwrap_or_default(), second.get_mut(..len).unwrap_or_default());
        source.read_exact_at(before.data + at, first)?;
        source.read_exact_at(member.data + at, second)?;
        differs = first != second;
        at += len as u64;
    }
    names.insert(name, member);
    Ok(differs)
}
