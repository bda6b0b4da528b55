//! Measures what a protected file is protected against: every bit of it changed, and known attacks.
//!
//! An attacker who changes a file recomputes its checksums, which need no secret. A [`Profile`] is a file, what a reader of it
//! demands, and its parts; [`claims`] flips every bit of each part, [`attacks`] shows the results of whole attacks. Both become
//! tables of `docs/threat-model.md`.

mod people;
mod sealed;
mod v1;

use core::fmt::{self, Write as _};
use core::ops::Range;

use apr_crypto::{Error as CryptoError, Rng};
use sha2::{Digest as _, Sha256};

pub use self::sealed::sealed;
pub use self::v1::v1;

/// What opening gave: nothing, or the code of the error.
pub type Verdict = Result<(), &'static str>;

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
    /// Opens a file as this profile's reader does.
    pub open: Opener,
    /// Makes checksums right again.
    pub reseal: fn(&mut [u8]),
    /// One bit of each byte, where opening takes long; else all eight.
    pub sampled: bool,
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

/// How many bits of a part were flipped, and how many of the files were opened all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flips {
    tried: usize,
    opened: usize,
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
    fn flips(&self, part: &Range<usize>) -> Flips {
        let mut flips = Flips::default();
        let step = if self.sampled { 9 } else { 1 };
        for bit in (part.start * 8..part.end * 8).step_by(step) {
            let mut changed = self.file.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            (self.reseal)(&mut changed);
            // Recomputing the checksum restores a changed bit of it: change it again.
            if changed == self.file {
                changed[bit / 8] ^= 1 << (bit % 8);
            }
            flips.tried += 1;
            flips.opened += usize::from((self.open)(&changed).is_ok());
        }
        flips
    }

    /// The beginnings of the file, each with right checksums.
    fn cuts(&self) -> Flips {
        let mut cuts = Flips::default();
        for len in (0..self.file.len()).step_by(if self.sampled { 7 } else { 1 }) {
            let mut cut = self.file[..len].to_vec();
            (self.reseal)(&mut cut);
            cuts.tried += 1;
            cuts.opened += usize::from((self.open)(&cut).is_ok());
        }
        cuts
    }
}

/// The table of flipped bits and cut ends, and what contradicts the claims.
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
    let mut rows: Vec<Vec<String>> = labels.iter().map(|label| vec![(*label).to_owned()]).collect();
    let mut ends = vec!["shortened".to_owned()];
    let mut wrong = Vec::new();
    for profile in &family.profiles {
        assert_eq!((profile.open)(&profile.file), Ok(()), "{}", profile.name);
        for (label, row) in labels.iter().zip(&mut rows) {
            let places = profile.parts.iter().filter(|(name, _)| name == label);
            let all: Vec<Flips> = places.map(|(_, place)| profile.flips(place)).collect();
            let sum = all.iter().fold(Flips::default(), |sum, part| Flips {
                tried: sum.tried + part.tried,
                opened: sum.opened + part.opened,
            });
            if sum.opened > 0 && !profile.unclaimed.contains(label) {
                wrong.push(format!("{}, {label}: {} of {} opened", profile.name, sum.opened, sum.tried));
            }
            row.push(sum.cell());
        }
        let cuts = profile.cuts();
        if cuts.opened > 0 {
            wrong.push(format!("{}: {} lengths of {} opened", profile.name, cuts.opened, cuts.tried));
        }
        ends.push(cuts.cell());
    }
    rows.push(ends);
    (table("bits of", &family.profiles, rows), wrong)
}

/// The table of attacks, and what contradicts the claims.
#[must_use]
pub fn attacks(family: &Family) -> (String, Vec<String>) {
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    for (name, files) in &family.attacks {
        let mut row = vec![(*name).to_owned()];
        let limit = family.limits.iter().find(|(attack, _)| attack == name);
        for (profile, file) in family.profiles.iter().zip(files) {
            let Some(file) = file else {
                row.push("-".to_owned());
                continue;
            };
            let verdict = (profile.open)(file);
            let is_limit = limit.is_some_and(|(_, profiles)| profiles.contains(&profile.name));
            if verdict.is_ok() != is_limit {
                wrong.push(format!("{}, {name}: {verdict:?}", profile.name));
            }
            row.push(verdict.map_or_else(|code| format!("`{code}`"), |()| "opens".to_owned()));
        }
        rows.push(row);
    }
    (table("attack", &family.profiles, rows), wrong)
}

impl Flips {
    fn cell(self) -> String {
        match self {
            Self { tried: 0, .. } => "-".to_owned(),
            Self { tried, opened: 0 } => format!("{tried} refused"),
            Self { tried, opened } => format!("**{opened} of {tried} open**"),
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
