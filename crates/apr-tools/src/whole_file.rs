//! `.apr` files of version 1 that are read and written as a whole: shared by the commands that encrypt, decrypt and license
//! them.

use std::io::{Read as _, Seek as _};
use std::path::Path;

use apr_container::{RawModel, check_source, checksum_mismatch, inspect_bytes_with};
use apr_crypto::{Access, Trust};
use read_at::FileSource;

use crate::error::{CODE_FOREIGN_FORMAT, Exit, Failure};
use crate::foreign;
use crate::input::{Format, Rules, Source};
use crate::output::Output;
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::exact_bytes;

/// Longest file whose checksum is compared after it was refused: read in a tenth of a second.
const COMPARED_LEN_MAX: u64 = 256 << 20;
/// Codes of files that end too early, or continue after their checksum.
const OF_LENGTH: [&str; 3] = ["ac-truncated", "ac-too-small", "ac-unowned"];
/// Longest file the format can describe.
const FILE_LEN_MAX: u64 = 1 << 34;
/// Bytes between two looks at the progress.
const PIECE_LEN: usize = 1 << 20;

/// A source that must be of version 1; `instead` is the advice for every other format.
///
/// # Errors
///
/// If it is of another format.
pub(crate) fn source(path: &Path, instead: &str) -> Result<Source, Failure> {
    of_version_1(Source::open_local(path)?, instead)
}

/// The same of a source that was opened.
///
/// # Errors
///
/// If it is of another format.
pub(crate) fn of_version_1(source: Source, instead: &str) -> Result<Source, Failure> {
    if source.format() == Format::AprV1 {
        return Ok(source);
    }
    // What cannot be read has no format: it is told first.
    durable_file::open_regular(source.path(), u64::MAX)
        .map_err(|error| source.relabel(Failure::from(error)))?;
    Err(foreign(&source, instead))
}

fn foreign(source: &Source, instead: &str) -> Failure {
    let what = match (source.format(), foreign::of_file(source.path())) {
        (_, Some(kind)) if kind.foreign().is_some() => {
            return foreign::refusal(kind, "an .apr model", source.label());
        }
        (Format::SafeTensors, _) => "this is not an .apr model".to_owned(),
        (format, _) => format!("this is {}", format.title()),
    };
    Failure::new(CODE_FOREIGN_FORMAT, what)
        .in_file(source.label())
        .because("the command works on .apr models of version 1, which begin with `APRN`")
        .help(instead)
}

/// All bytes of a file.
///
/// # Errors
///
/// If it cannot be read; if it is long and its header does not fit its length or what is demanded of its signature, which
/// is found before it is read.
pub(crate) fn read(
    source: &Source,
    rules: &Rules,
    trust: Trust<'_>,
    console: &Console,
) -> Result<Vec<u8>, Failure> {
    let at_source = |failure: Failure| source.relabel(failure);
    let regular =
        durable_file::open_regular(source.path(), FILE_LEN_MAX).map_err(|error| at_source(error.into()))?;
    let len = regular.len();
    let file = FileSource::with_len(regular.into_file(), len);
    let check = |rules: &Rules| check_source(&file, trust, &rules.apr);
    check(rules).map_err(|error| advised(error.into(), source, rules, |compat| check(compat).is_ok()))?;
    let mut progress = console.progress("reading", len);
    let mut bytes = Vec::new();
    let reserved = usize::try_from(len).ok().filter(|&len| bytes.try_reserve_exact(len).is_ok());
    if reserved.is_none() {
        return Err(at_source(Failure::new("ac-memory", format!("no memory for {len} bytes"))));
    }
    let mut file = file.into_file();
    // Positioned reads move the cursor on some systems.
    file.rewind().map_err(|error| at_source(Failure::io("read the file", source.path(), &error)))?;
    loop {
        let read = (&mut file).take(PIECE_LEN as u64).read_to_end(&mut bytes);
        match read {
            Ok(0) => return Ok(bytes),
            Ok(count) => progress.advance(count),
            Err(error) => return Err(at_source(Failure::io("read the file", source.path(), &error))),
        }
        if bytes.len() as u64 > FILE_LEN_MAX {
            return Err(at_source(Failure::new("df-too-large", "the file grew while it was read")));
        }
    }
}

/// The parts of a file that nothing has to be opened for.
///
/// # Errors
///
/// If it is invalid, encrypted, or signed and the rules do not let that pass.
pub(crate) fn open_plain(file: &[u8], source: &Source, rules: &Rules) -> Result<RawModel, Failure> {
    RawModel::open(file, &Access::default(), &rules.apr)
        .map_err(|error| refused(error.into(), file, source, rules))
}

/// Of a damaged file the checksum says more than the first value that makes no sense: then the failure is that it does not match.
///
/// A file that ends too early or too late stays one, because its last bytes are no checksum. A large one is refused for its header
/// without being read.
pub(crate) fn or_damage(failure: Failure, path: &Path) -> Failure {
    let is_unsound = failure.exit() == Exit::Invalid || failure.code() == "ac-version";
    let is_small = || path.metadata().is_ok_and(|file| file.len() <= COMPARED_LEN_MAX);
    let is_of_length = OF_LENGTH.contains(&failure.code());
    if !is_unsound || !failure.code().starts_with("ac-") || is_of_length || !is_small() {
        return failure;
    }
    match checksum_mismatch(path) {
        Ok(Some(mismatch)) => failure.caused_by_damage(mismatch.into()),
        _ => failure,
    }
}

/// The failure, with the name the user knows, and with what helps if a less strict reader takes the file.
pub(crate) fn refused(failure: Failure, file: &[u8], source: &Source, rules: &Rules) -> Failure {
    advised(failure, source, rules, |compat| inspect_bytes_with(file, &compat.apr).is_ok())
}

/// The failure, with the name the user knows, and with what helps if a less strict reader `accepts` the file.
pub(crate) fn advised(
    failure: Failure,
    source: &Source,
    rules: &Rules,
    accepts: impl FnOnce(&Rules) -> bool,
) -> Failure {
    let failure = or_damage(source.relabel(failure), source.path());
    // Bytes after the end: what is compared is at another place than the checksum.
    if failure.code() == "ac-unowned" && matches!(checksum_mismatch(source.path()), Ok(Some(_))) {
        return failure.help(
            "other readers refuse this file too, because its checksum is not at its end: fetch it again and compare its SHA-256 with the publisher's",
        );
    }
    let compat = Rules { apr: Rules::COMPAT.apr.with_limits(rules.apr.limits), ..Rules::COMPAT };
    if rules.is_strict() && failure.exit() == Exit::Invalid && accepts(&compat) {
        return failure.help("other readers accept this file: if you trust it, repeat with --compat");
    }
    failure
}

impl Output {
    /// Says in words what was written, or would be.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(crate) fn tell(&self, how: &str, len: usize, console: &mut Console) -> Result<(), Failure> {
        let label = escape::path(self.destination.label());
        let text = format!("{label}: .apr version 1, {how}, {}", exact_bytes(len as u64));
        self.run.tell(&text, console)
    }
}
