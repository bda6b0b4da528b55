//! Names of temporary files: recognizable, unique, and short enough for any target name.

use core::fmt;
use core::hash::{Hash as _, Hasher as _};
use core::sync::atomic::{AtomicU64, Ordering};
use std::ffi::{OsStr, OsString};
use std::hash::DefaultHasher;
use std::process;
use std::time::SystemTime;

/// The longest part of a temp name that identifies the target. With the other parts that makes 121 bytes, below
/// the 143 of eCryptfs and the 255 of most file systems.
const MAX_STEM: usize = 96;
/// The kept part of a longer name, before `~` and 16 digits.
const MAX_PREFIX: usize = MAX_STEM - 17;
/// Hexadecimal digits of the random part.
const ID_DIGITS: usize = 16;

/// The purpose of a temporary name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The file being written.
    New,
    /// The old file's second link: the way back.
    Old,
    /// A folder being filled.
    Folder,
}

impl Role {
    const ALL: [Self; 3] = [Self::New, Self::Old, Self::Folder];

    const fn suffix(self) -> &'static str {
        match self {
            Self::New => ".df-new",
            Self::Old => ".df-old",
            Self::Folder => ".df-dir",
        }
    }
}

/// `.NAME.ID.df-new` and its siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TempName {
    /// Identifies the target, see [`stem`].
    pub(crate) stem: String,
    id: u64,
    pub(crate) role: Role,
}

impl TempName {
    /// A name that is unique with high probability.
    pub(crate) fn fresh(stem: String, role: Role) -> Self {
        Self { stem, id: fresh_id(), role }
    }

    /// The name of the same save for another purpose.
    pub(crate) fn with_role(&self, role: Role) -> Self {
        Self { stem: self.stem.clone(), id: self.id, role }
    }

    /// Recognises a name that `Display` could have written.
    pub(crate) fn parse(name: &OsStr) -> Option<Self> {
        let name = name.to_str()?.strip_prefix('.')?;
        let (rest, role) =
            Role::ALL.iter().find_map(|role| Some((name.strip_suffix(role.suffix())?, *role)))?;
        let (stem, digits) = rest.rsplit_once('.')?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if stem.is_empty() || digits.len() != ID_DIGITS || !digits.bytes().all(is_digit) {
            return None;
        }
        Some(Self { stem: stem.to_owned(), id: u64::from_str_radix(digits, 16).ok()?, role })
    }

    /// The name for the file system.
    pub(crate) fn to_os_string(&self) -> OsString {
        self.to_string().into()
    }
}

impl fmt::Display for TempName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}.{:016x}{}", self.stem, self.id, self.role.suffix())
    }
}

/// The part of a temp name that identifies the target: its name, or as much of it as fits and a hash of the whole.
///
/// Two targets with the same stem would do each other no harm: only what dead writers left is ever removed.
pub(crate) fn stem(name: &OsStr) -> String {
    match name.to_str() {
        Some(text) if text.len() <= MAX_STEM => text.to_owned(),
        _ => {
            let text = name.to_string_lossy();
            let prefix = &text[..text.floor_char_boundary(MAX_PREFIX)];
            format!("{prefix}~{:016x}", fnv1a(name.as_encoded_bytes()))
        }
    }
}

/// FNV-1a, 64 bits: the same in every process, which the standard library's hashers do not promise.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Differs from every other save's, in this process, beside it and after it.
///
/// Not from the system's random number generator: it could fail, and the standard library panics when it does. A guess does no
/// harm, since creation is exclusive: a process that hits the nanosecond and the address makes us try once more.
fn fresh_id() -> u64 {
    static SAVES: AtomicU64 = AtomicU64::new(0);
    let mut hasher = DefaultHasher::new();
    SAVES.fetch_add(1, Ordering::Relaxed).hash(&mut hasher);
    process::id().hash(&mut hasher);
    // A clock before 1970 is as good as any other.
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok().hash(&mut hasher);
    // Where the system put the stack of this thread.
    (&raw const hasher).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_recognised() {
        for role in Role::ALL {
            let name = TempName::fresh(stem(OsStr::new("model.safetensors")), role);
            assert_eq!(TempName::parse(&name.to_os_string()), Some(name));
        }
    }

    #[test]
    fn nothing_else_is_recognised() {
        for name in [
            "model.safetensors",
            ".m.df-new",
            "m.0123456789abcdef.df-new",
            ".m.0123456789abcde.df-new",
            ".m.0123456789abcdef0.df-new",
            ".m.0123456789ABCDEF.df-new",
            ".m.+123456789abcdef.df-new",
            ".m.0123456789abcdef.df-new2",
            "..0123456789abcdef.df-new",
            ".0123456789abcdef.df-new",
        ] {
            assert_eq!(TempName::parse(OsStr::new(name)), None, "{name}");
        }
    }

    #[test]
    fn stems_are_short_whole_characters_and_differ_where_names_differ() {
        assert_eq!(stem(OsStr::new("a.bin")), "a.bin");
        let at_limit = "x".repeat(MAX_STEM);
        assert_eq!(stem(OsStr::new(&at_limit)), at_limit);
        let long = "ä".repeat(127);
        let longer = "ä".repeat(126) + "öö";
        for name in [&long, &longer] {
            let stem = stem(OsStr::new(name));
            assert!(stem.len() <= MAX_STEM && stem.starts_with(&"ä".repeat(39)), "{stem}");
            let whole = TempName::fresh(stem, Role::New).to_string();
            assert!(whole.len() <= 121, "{} bytes", whole.len());
        }
        assert_ne!(stem(OsStr::new(&long)), stem(OsStr::new(&longer)));
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_no_text_gets_a_stem_that_is() {
        use std::os::unix::ffi::OsStrExt as _;
        let one = stem(OsStr::from_bytes(b"model\xff"));
        let two = stem(OsStr::from_bytes(b"model\xfe"));
        assert!(one.starts_with("model\u{fffd}~"), "{one}");
        assert_ne!(one, two);
    }

    #[test]
    fn ids_do_not_repeat() {
        let mut ids: Vec<u64> = (0..10_000).map(|_| fresh_id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 10_000);
    }

    #[test]
    fn fnv1a_gives_its_published_values() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
