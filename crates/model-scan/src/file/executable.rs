//! Programs and libraries of operating systems and virtual machines, by their first bytes.

use pickle_core::Error;
use read_at::ReadAt;

/// Bytes of the line that names the interpreter of a script.
const SCRIPT_LINE: usize = 256;

const MAGIC: [(&[u8], &str); 9] = [
    (b"\x7fELF", "an executable or a library"),
    (b"MZqFpD='", "a program of all systems (APE)"),
    (b"\xfe\xed\xfa\xce", "a program or library of macOS"),
    (b"\xfe\xed\xfa\xcf", "a program or library of macOS"),
    (b"\xce\xfa\xed\xfe", "a program or library of macOS"),
    (b"\xcf\xfa\xed\xfe", "a program or library of macOS"),
    (b"\xca\xfe\xba\xbe", "a class of Java, or a program or library of macOS"),
    (b"\xca\xfe\xba\xbf", "a program or library of macOS"),
    (b"\0asm", "a program of WebAssembly"),
];

/// The kind of program, if it is one.
pub(super) fn kind(source: &dyn ReadAt, start: &[u8]) -> Result<Option<&'static str>, Error> {
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Ok(Some(kind));
    }
    if is_script(start) {
        return Ok(Some("a script"));
    }
    Ok(is_windows(source, start)?.then_some("a program or library of Windows"))
}

/// `#!` and the rest of a line: a zero in it is none of a path, but of a length of safetensors.
fn is_script(start: &[u8]) -> bool {
    let line = start.get(..SCRIPT_LINE).unwrap_or(start).split(|byte| *byte == b'\n').next();
    line.is_some_and(|line| line.starts_with(b"#!") && !line.contains(&0))
}

/// A header of DOS, which has the place of another one at 60. The two letters alone may begin a text.
fn is_windows(source: &dyn ReadAt, start: &[u8]) -> Result<bool, Error> {
    let at = start.get(60..64).and_then(|at| at.try_into().ok()).map(u32::from_le_bytes);
    let Some(at) = at.filter(|_| start.starts_with(b"MZ")).map(u64::from) else { return Ok(false) };
    let mut signature = [0; 2];
    if at + 2 > source.total_len() {
        return Ok(false);
    }
    source.read_exact_at(at, &mut signature)?;
    Ok([b"PE", b"NE", b"LE", b"LX"].contains(&&signature))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of Windows of `len` bytes, whose header is at `at`.
    fn windows(signature: &[u8], at: u32, len: usize) -> alloc::vec::Vec<u8> {
        let mut bytes = [b"MZ".as_slice(), &[0; 58], &at.to_le_bytes(), &[0; 64]].concat();
        let from = at as usize;
        bytes.get_mut(from..from + 2).expect("inside").copy_from_slice(signature);
        bytes.truncate(len);
        bytes
    }

    #[test]
    fn programs_of_all_systems_are_found() {
        let line = |len: usize| [b"#!".as_slice(), &b"/".repeat(len - 2), b"\0\n"].concat();
        let (mac, script) = ("a program or library of macOS", "a script");
        for (bytes, expected) in [
            (b"\x7fELF\x02".to_vec(), Some("an executable or a library")),
            (b"\xfe\xed\xfa\xce".to_vec(), Some(mac)),
            (b"\xfe\xed\xfa\xcf".to_vec(), Some(mac)),
            (b"\xce\xfa\xed\xfe".to_vec(), Some(mac)),
            (b"\xcf\xfa\xed\xfe".to_vec(), Some(mac)),
            (b"\xca\xfe\xba\xbf".to_vec(), Some(mac)),
            (b"\xca\xfe\xba\xbe".to_vec(), Some("a class of Java, or a program or library of macOS")),
            (b"\0asm\x01\0\0\0".to_vec(), Some("a program of WebAssembly")),
            (b"MZqFpD='\n".to_vec(), Some("a program of all systems (APE)")),
            (b"#!/bin/sh\n\0".to_vec(), Some(script)),
            (b"#! sh".to_vec(), Some(script)),
            (b"#!\x01\0\0\0\0\0{\n".to_vec(), None),
            (line(256), Some(script)),
            (line(255), None),
            (b"# !".to_vec(), None),
            (windows(b"PE", 100, 102), Some("a program or library of Windows")),
            (windows(b"NE", 64, 128), Some("a program or library of Windows")),
            (windows(b"LE", 64, 128), Some("a program or library of Windows")),
            (windows(b"LX", 64, 128), Some("a program or library of Windows")),
            (windows(b"PE", 100, 101), None),
            (windows(b"XX", 100, 128), None),
            (windows(b"PE", 100, 63), None),
            (b"MZ,intensity\n1,2\n".repeat(8), None),
            (b"NZ".iter().copied().chain(windows(b"PE", 100, 128).split_off(2)).collect(), None),
            (b"text".to_vec(), None),
        ] {
            assert_eq!(kind(&bytes, &bytes).expect("in memory"), expected, "{}", bytes.escape_ascii());
        }
    }
}
