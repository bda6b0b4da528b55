//! The output of a command: a file, replaced atomically, or standard output.

pub(crate) mod ending;
pub(crate) mod gguf_stream;
pub(crate) mod rewrite;

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use durable_file::Replacement;
use st_core::{Layout, Planned};

use crate::error::{
    CODE_INTERNAL, CODE_OUTPUT_EXISTS, CODE_OUTPUT_KIND, CODE_OUTPUT_TERMINAL, CODE_USAGE, Failure,
};
use crate::interruption;
use crate::remote;
#[cfg(feature = "remote")]
use crate::remote::NewObject;
use crate::terminal::{Console, escape};

/// Bytes between two looks at the progress.
const PIECE_LEN: usize = 1 << 20;

/// What happens to a file that is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overwrite {
    Refuse,
    Replace,
}

/// Whether to write, or to say what would be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    Write,
    Dry,
}

impl Run {
    /// Says in words what was written, or would be.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(crate) fn tell(self, text: &str, console: &mut Console) -> Result<(), Failure> {
        match self {
            Self::Write => {
                console.wrote(text);
                Ok(())
            }
            Self::Dry => console.text(|out, _| writeln!(out, "would write {text}")),
        }
    }
}

/// The destination of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// `-`.
    Stdout,
    /// A path.
    File(PathBuf),
    /// An object of an object store.
    #[cfg(feature = "remote")]
    Object(PathBuf),
}

impl Destination {
    pub(crate) fn new(path: &Path) -> Self {
        match path {
            _ if path.as_os_str() == "-" => Self::Stdout,
            #[cfg(feature = "remote")]
            _ if remote::is_object(path) => Self::Object(path.to_owned()),
            _ => Self::File(path.to_owned()),
        }
    }

    /// What to call it.
    pub(crate) fn label(&self) -> &Path {
        match self {
            Self::Stdout => Path::new("-"),
            Self::File(path) => path,
            #[cfg(feature = "remote")]
            Self::Object(url) => url,
        }
    }

    /// Whether what was written of it can be changed before it takes its place.
    pub(crate) const fn is_changeable(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Refuses, before any work is done, what could not be written in the end.
    ///
    /// # Errors
    ///
    /// If the file exists and may not be replaced, or is no regular file; if standard output is a terminal or is
    /// needed for JSON.
    pub(crate) fn check(&self, overwrite: Overwrite, run: Run, console: &Console) -> Result<(), Failure> {
        match self {
            Self::Stdout if console.is_json() && run == Run::Write => {
                Err(Failure::new(CODE_USAGE, "--json and the output `-` both need standard output")
                    .help("name an output file, or leave --json out"))
            }
            Self::Stdout if io::stdout().is_terminal() && run == Run::Write => {
                Err(Failure::new(CODE_OUTPUT_TERMINAL, "model files are not written to a terminal"))
            }
            Self::Stdout => Ok(()),
            Self::File(path) => {
                check_file(path, overwrite)?;
                if run == Run::Write { check_folder(path) } else { Ok(()) }
            }
            #[cfg(feature = "remote")]
            Self::Object(url) => remote::check_object(url, overwrite),
        }
    }

    /// Writes whatever `fill` writes. The file or object appears, or is replaced, once all of it has reached the disk or the store.
    ///
    /// # Errors
    ///
    /// Those of `fill`, and those of writing. The old file stays as it was.
    pub(crate) fn fill(
        &self,
        overwrite: Overwrite,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self {
            Self::Stdout => {
                interruption::output_is_stdout();
                let mut out = io::stdout().lock();
                fill(&mut out)?;
                out.flush().map_err(Failure::stdout)
            }
            Self::File(path) => {
                let mut file = create(path, overwrite)?;
                fill(&mut file)?;
                Ok(file.commit()?)
            }
            #[cfg(feature = "remote")]
            Self::Object(url) => {
                let mut object = NewObject::create(url, overwrite, None)?;
                fill(&mut object)?;
                object.finish().map_err(|failure| failure.in_file(url))
            }
        }
    }

    /// As [`fill`](Self::fill), of a file whose first bytes are known only when all others are written: those that `head` makes, if any,
    /// take the place of as many that `fill` wrote.
    ///
    /// # Errors
    ///
    /// Those of `fill` and `head`, and those of writing. The old file stays as it was.
    pub(crate) fn fill_head_last(
        &self,
        overwrite: Overwrite,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
        head: impl FnOnce() -> Result<Option<Vec<u8>>, Failure>,
    ) -> Result<(), Failure> {
        let Self::File(path) = self else {
            return self.fill(overwrite, fill);
        };
        let mut file = create(path, overwrite)?;
        fill(&mut file)?;
        if let Some(head) = head()? {
            replace_head(&mut file, &head)?;
        }
        Ok(file.commit()?)
    }

    /// The failure of a write to this place.
    pub(crate) fn write_failure(&self, error: &io::Error) -> Failure {
        match self {
            Self::Stdout => Failure::stdout(io::Error::new(error.kind(), error.to_string())),
            Self::File(path) => Failure::io("write the file", path, error),
            #[cfg(feature = "remote")]
            Self::Object(url) => remote::object_failure(url, error),
        }
    }

    /// Writes a model. The file appears, or is replaced, once all of it has reached the disk.
    ///
    /// # Errors
    ///
    /// Those of `pull`, and those of writing. The old file stays as it was.
    pub(crate) fn write(
        &self,
        layout: &Layout,
        overwrite: Overwrite,
        pull: impl FnMut(&Planned, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        match self {
            Self::Stdout => {
                interruption::output_is_stdout();
                stream(layout, io::stdout().lock(), pull).map_err(|stop| stop.failure(Failure::stdout))
            }
            Self::File(path) => {
                let mut file = create(path, overwrite)?;
                stream(layout, &mut file, pull)
                    .map_err(|stop| stop.failure(|error| file.write_error(error).into()))?;
                Ok(file.commit()?)
            }
            #[cfg(feature = "remote")]
            Self::Object(url) => {
                let mut object = NewObject::create(url, overwrite, Some(layout.file_len()))?;
                stream(layout, &mut object, pull)
                    .map_err(|stop| stop.failure(|error| remote::object_failure(url, &error)))?;
                object.finish().map_err(|failure| failure.in_file(url))
            }
        }
    }
}

/// What takes the place of a head that was planned, which is as long.
///
/// # Errors
///
/// If it is not.
pub(crate) fn same_len(planned: Option<&[u8]>, head: Option<&[u8]>) -> Result<Option<Vec<u8>>, Failure> {
    match planned.map(<[u8]>::len) == head.map(<[u8]>::len) {
        true => Ok(head.map(<[u8]>::to_vec)),
        false => Err(Failure::new(CODE_INTERNAL, "the head of the file has another length than planned")),
    }
}

/// Writes `head` over the first bytes of a file that has them.
///
/// # Errors
///
/// If the file does not take it.
pub(crate) fn replace_head(file: &mut Replacement, head: &[u8]) -> Result<(), Failure> {
    let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(head));
    written.map_err(|error| file.write_error(error).into())
}

/// Where the new file goes.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) destination: Destination,
    pub(crate) overwrite: Overwrite,
    pub(crate) run: Run,
}

impl Output {
    /// Writes the file, unless this is a dry run. It appears, or is replaced, as a whole.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn write(&self, file: &[u8], console: &Console) -> Result<(), Failure> {
        if self.run == Run::Dry {
            return Ok(());
        }
        let mut progress = console.progress("writing", file.len() as u64);
        self.destination.fill(self.overwrite, |out| {
            file.chunks(PIECE_LEN).try_for_each(|piece| {
                progress.advance(piece.len());
                out.write_all(piece).map_err(|error| self.destination.write_failure(&error))
            })
        })
    }
}

/// Why a layout was not written to its end.
enum Stop {
    /// The input, or tensors that do not fit the layout.
    Input(Failure),
    Write(io::Error),
}

impl Stop {
    fn failure(self, of_write: impl FnOnce(io::Error) -> Failure) -> Failure {
        match self {
            Self::Input(failure) => failure,
            Self::Write(error) => of_write(error),
        }
    }
}

fn stream<W: Write>(
    layout: &Layout,
    out: W,
    pull: impl FnMut(&Planned, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Stop> {
    let result = buffered(out, |out| layout.write_streamed(out, pull));
    let Err(error) = result else { return Ok(()) };
    // What the input or the layout had to say travels inside the `io::Error`.
    Err(match error.downcast::<Failure>() {
        Ok(failure) => Stop::Input(failure),
        Err(error) => match error.downcast::<st_core::Error>() {
            Ok(error) => Stop::Input(error.into()),
            Err(error) => Stop::Write(error),
        },
    })
}

/// Runs `work` over a buffer, in which small tensors are collected; chunks of large ones pass through directly.
///
/// # Errors
///
/// Those of `work`, and those of writing.
pub(crate) fn buffered<W: Write, E: From<io::Error>>(
    out: W,
    work: impl FnOnce(&mut BufWriter<W>) -> Result<(), E>,
) -> Result<(), E> {
    let mut out = BufWriter::with_capacity(256 << 10, out);
    let result = work(&mut out).and_then(|()| Ok(out.flush()?));
    // Taken apart rather than dropped: dropping would write the rest to a place that has just refused it.
    let _ = out.into_parts();
    result
}

/// Writes a small file under the same rules.
///
/// # Errors
///
/// If it exists and may not be replaced, or cannot be written.
pub(crate) fn write_file(path: &Path, bytes: &[u8], overwrite: Overwrite) -> Result<(), Failure> {
    let mut file = create(path, overwrite)?;
    file.write_all(bytes).map_err(|error| file.write_error(error))?;
    Ok(file.commit()?)
}

/// Writes a file in whatever order `fill` likes, under the same rules.
///
/// # Errors
///
/// Those of `fill`; if it exists and may not be replaced, or cannot be written. The old file stays as it was.
pub(crate) fn replace(
    path: &Path,
    overwrite: Overwrite,
    fill: impl FnOnce(&mut Replacement) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut file = create(path, overwrite)?;
    fill(&mut file)?;
    Ok(file.commit()?)
}

/// Begins a file under the same rules, to be committed once it is written.
///
/// # Errors
///
/// If it exists and may not be replaced, or cannot be created.
pub(crate) fn create(path: &Path, overwrite: Overwrite) -> Result<Replacement, Failure> {
    check_file(path, overwrite)?;
    // The exclusive form also refuses a file that appears while this one is being written.
    Ok(match overwrite {
        Overwrite::Refuse => Replacement::create_new(path)?,
        Overwrite::Replace => Replacement::create(path)?,
    })
}

/// Refuses inputs that do not exist. Called before the output is checked: if the two were exchanged, `--force` would
/// be wrong advice.
///
/// # Errors
///
/// If one does not exist.
pub(crate) fn check_inputs<'p, P: AsRef<Path> + ?Sized + 'p>(
    inputs: impl IntoIterator<Item = &'p P>,
) -> Result<(), Failure> {
    let is_missing = |path: &&Path| {
        let is_here = path.as_os_str() != "-" && !remote::is_url(path);
        is_here && path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    match inputs.into_iter().map(AsRef::as_ref).find(is_missing) {
        Some(path) => durable_file::open_regular(path, u64::MAX)
            .map_or_else(|error| Err(Failure::from(error).in_file(path)), |_| Ok(())),
        None => Ok(()),
    }
}

/// Refuses an output that is one of the inputs, for a command whose output is no new form of it: `--force` would lose the input.
///
/// # Errors
///
/// If it is one.
pub(crate) fn keep_inputs<'p>(
    output: &Path,
    inputs: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<(), Failure> {
    let Ok(place) = output.canonicalize() else { return Ok(()) };
    match inputs.into_iter().any(|input| input.canonicalize().is_ok_and(|input| input == place)) {
        true => Err(Failure::new(CODE_USAGE, "the output would replace an input")
            .in_file(output)
            .help("give the output another name")),
        false => Ok(()),
    }
}

/// Refuses a path that holds something already.
///
/// # Errors
///
/// If it exists and may not be replaced, or is no regular file.
pub(crate) fn check_file(path: &Path, overwrite: Overwrite) -> Result<(), Failure> {
    if remote::is_url(path) {
        return Err(Failure::remote_output(path));
    }
    // Of the link itself: a dangling one is in the way, too.
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    if path.metadata().is_ok_and(|target| !target.is_file()) {
        return Err(
            Failure::new(CODE_OUTPUT_KIND, "the output exists and is not a regular file").in_file(path)
        );
    }
    match overwrite {
        Overwrite::Refuse => Err(Failure::new(CODE_OUTPUT_EXISTS, "the output exists").in_file(path)),
        Overwrite::Replace if is_key_file(path) => {
            Err(Failure::new(CODE_OUTPUT_EXISTS, "the output is a secret key, which nothing replaces")
                .in_file(path)
                .help("give the output another name"))
        }
        Overwrite::Replace => Ok(()),
    }
}

/// Removes files of an older model, which would be read beside the new ones, with a note of each.
///
/// # Errors
///
/// If the operating system refuses it.
pub(crate) fn remove_old(files: &[PathBuf], console: &Console) -> Result<(), Failure> {
    files.iter().try_for_each(|file| {
        fs::remove_file(file).map_err(|error| Failure::io("remove a file of the old model", file, &error))?;
        console.remark(format_args!("removed a file of the old model: {}", escape::path(file)));
        Ok(())
    })
}

/// Files of a folder whose names are of an older model, sorted; none of a folder that is not there.
///
/// # Errors
///
/// If the folder cannot be listed.
pub(crate) fn old_files(folder: &Path, is_old: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: io::Error| Failure::io("list the folder", folder, &error);
    let mut old = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(old),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_str().is_some_and(&is_old) && entry.path().is_file() {
            old.push(entry.path());
        }
    }
    old.sort_unstable();
    Ok(old)
}

/// Refuses files of an older model that would stay beside a new one.
///
/// # Errors
///
/// If there are any and they may not be removed.
pub(crate) fn check_old(files: &[PathBuf], overwrite: Overwrite) -> Result<(), Failure> {
    match files.first().filter(|_| overwrite == Overwrite::Refuse) {
        Some(file) => {
            let what = "the folder holds another model, whose files would stay beside the new ones";
            let help = "choose another folder, or --force to remove the files of the old model";
            Err(Failure::new(CODE_OUTPUT_EXISTS, what).in_file(file).help(help))
        }
        None => Ok(()),
    }
}

/// Refuses a path in a folder that is not there, before the work whose result it could not hold.
fn check_folder(path: &Path) -> Result<(), Failure> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    match folder.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Failure::io("write the file", path, &io::ErrorKind::NotADirectory.into())),
        Err(error) => Err(Failure::io("write the file", path, &error)),
    }
}

/// Whether a file is one of a secret key, of those that are read here: by its lines.
fn is_key_file(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut begin));
    let is_of_key = |line: &str| {
        ["apr-secret-", "apr-sign-", "apr-locked-"].iter().any(|key| line.starts_with(key))
            || (line.starts_with("-----BEGIN ") && line.ends_with("PRIVATE KEY-----"))
            // minisign's, behind a comment: the algorithms of a secret key.
            || line.starts_with("RWRTY0Iy")
    };
    read.is_ok() && String::from_utf8_lossy(&begin).lines().take(64).any(|line| is_of_key(line.trim()))
}
