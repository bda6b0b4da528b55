//! Measures what a protected file is protected against: every byte of it changed, and known attacks.
//!
//! An attacker who changes a file recomputes its checksums and hashes, which need no secret. A [`Profile`] is a file, what a
//! reader of it demands, and its parts; [`claims`] changes every byte of each part, [`attacks`] shows the results of whole
//! attacks. Both become tables of `docs/threat-model.md`.

mod people;
mod sealed;
mod v1;
mod v2;

use core::fmt::{self, Write as _};
use core::ops::Range;

use apr_crypto::{Error as CryptoError, Rng};
use sha2::{Digest as _, Sha256};

pub use self::sealed::sealed;
pub use self::v1::v1;
pub use self::v2::v2;

/// What opening gave: everything that the reader gets to see, or the code of the error.
pub type Verdict = Result<Vec<u8>, &'static str>;

/// Parts of a file, each with its place, in file order; a label may come again.
pub type Places = Vec<(&'static str, Range<usize>)>;

/// Opens a file.
pub type Opener = Box<dyn Fn(&[u8]) -> Verdict>;

/// A way to protect a file, and to read it.
pub struct Profile {
    /// Heading of its column.
    pub name: &'static str,
    /// Sound.
    pub file: Vec<u8>,
    /// Label and place of each part, in file order.
    pub parts: Places,
    /// Parts of which the profile claims nothing.
    pub unclaimed: &'static [&'static str],
    /// Parts of which it claims that a change is refused or has no effect on the content.
    pub without_effect: &'static [&'static str],
    /// Opens a file as this profile's reader does.
    pub open: Opener,
    /// The first so many bytes of the file, or what is left of it if the profile is made of two files.
    pub cut: fn(&[u8], usize) -> Vec<u8>,
    /// Makes checksums and unkeyed hashes right again.
    pub reseal: fn(&mut Vec<u8>),
    /// How much is tried.
    pub effort: Effort,
}

/// How a file is changed to try what its profile claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// All bits of each byte, and its complement; every length.
    EveryBit,
    /// One bit of each byte, and its complement; every length.
    EveryByte,
    /// One bit of each byte, every seventh length: opening takes long.
    OneBit,
}

/// The row of [`claims`] with the beginnings of the file.
pub(crate) const SHORTENED: &str = "shortened";

/// The beginning of a single file.
pub(crate) fn beginning(file: &[u8], len: usize) -> Vec<u8> {
    file.get(..len).unwrap_or(file).to_vec()
}

/// What was tried on a family of profiles.
#[derive(Debug)]
pub struct Family {
    /// Column by column.
    pub profiles: Vec<Profile>,
    /// Each with the file that it makes for the profile of that index; nothing where it does not apply.
    pub attacks: Vec<(&'static str, Vec<Option<Vec<u8>>>)>,
    /// Attacks that are not refused, with the profiles for which that is so: documented limits.
    pub limits: &'static [(&'static str, &'static [&'static str])],
}

/// Randomness that is the same each time, so that the files are.
#[derive(Debug)]
pub struct Repeatable(u64);

impl Repeatable {
    /// A stream of its own for each `seed`.
    #[must_use]
    pub const fn new(seed: u32) -> Self {
        Self((seed as u64) << 32)
    }
}

impl Rng for Repeatable {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        for piece in out.chunks_mut(32) {
            self.0 += 1;
            let block = Sha256::digest(self.0.to_le_bytes());
            piece.iter_mut().zip(block).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }
}

/// How many changes of a part were tried, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Changes {
    tried: usize,
    /// Opened all the same.
    opened: usize,
    /// With another content than the original.
    other_content: usize,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile")
            .field("name", &self.name)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

impl Profile {
    /// What this profile's reader gets to see of the sound file.
    fn content(&self) -> Vec<u8> {
        (self.open)(&self.file).unwrap_or_else(|code| panic!("{}: {code}", self.name))
    }

    /// Changes each byte of a part.
    fn changes(&self, part: &Range<usize>, content: &[u8]) -> Changes {
        let mut changes = Changes::default();
        for at in part.clone() {
            let one = 1 << (at % 8);
            let masks: &[u8] = match self.effort {
                Effort::EveryBit => &[1, 2, 4, 8, 16, 32, 64, 128, 0xFF],
                Effort::EveryByte => &[one, 0xFF],
                Effort::OneBit => &[one],
            };
            for mask in masks {
                let mut changed = self.file.clone();
                changed[at] ^= mask;
                (self.reseal)(&mut changed);
                // A checksum that is changed is restored: change it again.
                if changed == self.file {
                    changed[at] ^= mask;
                }
                changes.count(&(self.open)(&changed), content);
            }
        }
        changes
    }

    /// The beginnings of the file, as they are and with right checksums.
    fn cuts(&self, content: &[u8]) -> Changes {
        let mut cuts = Changes::default();
        for len in (0..self.file.len()).step_by(if self.effort == Effort::OneBit { 7 } else { 1 }) {
            let mut cut = (self.cut)(&self.file, len);
            let bare = (self.open)(&cut);
            (self.reseal)(&mut cut);
            let verdict = (self.open)(&cut);
            cuts.count(if bare.is_ok() { &bare } else { &verdict }, content);
        }
        cuts
    }

    /// What a change of this part did that the profile does not allow.
    fn contradiction(&self, label: &str, changes: Changes) -> Option<String> {
        let Changes { tried, opened, other_content } = changes;
        let counted = match () {
            () if self.unclaimed.contains(&label) => 0,
            () if self.without_effect.contains(&label) => other_content,
            () => opened,
        };
        (counted > 0).then(|| format!("{}, {label}: {counted} of {tried} opened", self.name))
    }
}

/// The table of changed bytes and cut ends, and what contradicts the claims.
///
/// # Panics
///
/// If a profile's own file does not open.
#[must_use]
pub fn claims(family: &Family) -> (String, Vec<String>) {
    let mut labels: Vec<&str> = Vec::new();
    for (label, _) in family.profiles.iter().flat_map(|profile| &profile.parts) {
        if !labels.contains(label) {
            labels.push(label);
        }
    }
    labels.push(SHORTENED);
    let mut rows: Vec<Vec<String>> = labels.iter().map(|label| vec![(*label).to_owned()]).collect();
    let (mut together, mut wrong) = (vec!["together".to_owned()], Vec::new());
    for profile in &family.profiles {
        let content = profile.content();
        let mut all = Changes::default();
        for (label, row) in labels.iter().zip(&mut rows) {
            let places = profile.parts.iter().filter(|(name, _)| name == label);
            let parts = places.map(|(_, place)| profile.changes(place, &content));
            let mut changes = parts.fold(Changes::default(), Changes::plus);
            if *label == SHORTENED {
                changes = profile.cuts(&content);
            }
            wrong.extend(profile.contradiction(label, changes));
            row.push(changes.cell());
            all = all.plus(changes);
        }
        together.push(all.cell());
    }
    rows.push(together);
    (table("changes of", &family.profiles, rows), wrong)
}

/// The table of attacks, and what contradicts the claims.
///
/// # Panics
///
/// If a profile's own file does not open, or an attack leaves it as it is.
#[must_use]
pub fn attacks(family: &Family) -> (String, Vec<String>) {
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    let contents: Vec<Vec<u8>> = family.profiles.iter().map(Profile::content).collect();
    for (name, files) in &family.attacks {
        let mut row = vec![(*name).to_owned()];
        let limit = family.limits.iter().find(|(attack, _)| attack == name);
        for ((profile, content), file) in family.profiles.iter().zip(&contents).zip(files) {
            let Some(file) = file else {
                row.push("-".to_owned());
                continue;
            };
            assert_ne!(*file, profile.file, "{}, {name}: nothing is changed", profile.name);
            let cell = match (profile.open)(file) {
                Err(code) => format!("`{code}`"),
                Ok(found) if found == *content => "opens, the same content".to_owned(),
                Ok(_) => "opens".to_owned(),
            };
            let is_limit = limit.is_some_and(|(_, profiles)| profiles.contains(&profile.name));
            if cell.starts_with("opens") != is_limit {
                wrong.push(format!("{}, {name}: {cell}", profile.name));
            }
            row.push(cell);
        }
        rows.push(row);
    }
    (table("attack", &family.profiles, rows), wrong)
}

impl Changes {
    fn count(&mut self, verdict: &Verdict, content: &[u8]) {
        self.tried += 1;
        self.opened += usize::from(verdict.is_ok());
        self.other_content += usize::from(verdict.as_ref().is_ok_and(|found| found != content));
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            tried: self.tried + other.tried,
            opened: self.opened + other.opened,
            other_content: self.other_content + other.other_content,
        }
    }

    fn cell(self) -> String {
        match self {
            Self { tried: 0, .. } => "-".to_owned(),
            Self { tried, opened: 0, .. } => format!("{tried} refused"),
            Self { tried, opened, other_content: 0 } => format!("{opened} of {tried} open, the same content"),
            Self { tried, opened, .. } => format!("**{opened} of {tried} open**"),
        }
    }
}

fn table(corner: &str, profiles: &[Profile], rows: Vec<Vec<String>>) -> String {
    let names: Vec<&str> = profiles.iter().map(|profile| profile.name).collect();
    let mut text = format!("| {corner} | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for row in rows {
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}
