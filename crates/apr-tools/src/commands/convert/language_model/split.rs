//! The files of the new model: one, or several of limited size.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use apr_convert::Importance;
use durable_file::Replacement;
use gguf_core::{GgufBuilder, Layout};
use hf_gguf::{Flaws, Producer, SplitLimit, split};

use super::new_model::NewModel;
use crate::error::{CODE_NO_SPACE, CODE_USAGE, Failure};
use crate::input::Tensor;
use crate::output::{self, Destination, Output, buffered};
use crate::terminal::human::bytes;
use crate::terminal::{Console, Progress};

/// Most files that are kept open until all of them can take their places.
const MAX_OPEN: usize = 256;

/// Reads a number of bytes, with K, M or G for decimal multiples.
pub(super) fn parse_limit(text: &str) -> Result<u64, String> {
    let scales = [('K', 1_000), ('M', 1_000_000), ('G', 1_000_000_000)];
    let scale = scales.into_iter().find(|(unit, _)| text.ends_with(*unit));
    let number = text.strip_suffix(['K', 'M', 'G']).unwrap_or(text);
    let number: Option<u64> = if number.starts_with('+') { None } else { number.parse().ok() };
    let limit = number.and_then(|number| number.checked_mul(scale.map_or(1, |(_, scale)| scale)));
    limit
        .filter(|limit| *limit > 0)
        .ok_or_else(|| "a number of bytes, or of K, M or G, such as 4G".to_owned())
}

/// When another file begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    limit: SplitLimit,
    /// Whether the first file holds keys alone.
    keys_first: bool,
    /// The only file that is written, from 1.
    only: Option<u32>,
}

impl Limits {
    pub(super) fn new(max_tensors: Option<u64>, max_bytes: Option<u64>, keys_first: bool) -> Self {
        let limit = match (max_tensors, max_bytes) {
            (Some(count), _) => SplitLimit::Tensors(count),
            (None, Some(bytes)) => SplitLimit::Bytes(bytes),
            (None, None) => SplitLimit::None,
        };
        Self { limit, keys_first, only: None }
    }

    /// One of the files alone, if there is a number.
    pub(super) const fn only(self, number: Option<u32>) -> Self {
        Self { only: number, ..self }
    }

    /// Whether the first file, which has the keys of the model, is written.
    pub(super) const fn has_first(&self) -> bool {
        matches!(self.only, None | Some(1))
    }
}

/// A file to be.
pub(super) struct NewFile {
    pub(super) place: Destination,
    pub(super) layout: Layout,
    /// The first of its tensors.
    first: usize,
}

/// What the files are made of, and where they go.
pub(super) struct Work<'w> {
    pub(super) model: &'w NewModel<'w>,
    pub(super) sources: &'w [Vec<Tensor<'w>>],
    pub(super) importance: Option<&'w Importance>,
    pub(super) output: &'w Output,
}

/// The files to be.
pub(super) struct Files(pub(super) Vec<NewFile>);

/// Divides the tensors among files.
///
/// # Errors
///
/// If there would be too many files, several of standard output, or not the one that is wanted.
pub(super) fn plan(
    model: &NewModel<'_>,
    limits: Limits,
    destination: &Destination,
) -> Result<Files, Failure> {
    let lens: Vec<u64> = model.tensors.iter().map(|tensor| tensor.byte_len).collect();
    let ranges = split(&lens, limits.limit, limits.keys_first);
    if ranges.len() > MAX_OPEN {
        let what = format!(
            "the model would be divided into {} files, and at most {MAX_OPEN} are written",
            ranges.len()
        );
        return Err(Failure::new(CODE_USAGE, what).help("choose a larger --split-max-size"));
    }
    let count = ranges.len();
    let mut files = Vec::with_capacity(count);
    for (idx, range) in ranges.into_iter().enumerate() {
        let mut builder = if idx == 0 { model.keys.clone() } else { GgufBuilder::new() };
        if count > 1 {
            // Compared with the most files above.
            builder.set("split.no", idx as u16)?;
            builder.set("split.count", count as u16)?;
            builder.set("split.tensors.count", i32::try_from(lens.len()).unwrap_or(i32::MAX))?;
        }
        for tensor in &model.tensors[range.clone()] {
            let output = model.output(tensor);
            builder.add_tensor(&output.name, tensor.dtype, &output.shape)?;
        }
        let place = if count == 1 { destination.clone() } else { part_of(destination, idx, count)? };
        files.push(NewFile { place, layout: builder.layout()?, first: range.start });
    }
    match limits.only {
        Some(number) => Files(files).only(number),
        None => Ok(Files(files)),
    }
}

/// The name of one of several files.
fn part_of(destination: &Destination, idx: usize, count: usize) -> Result<Destination, Failure> {
    match destination {
        Destination::Stdout => {
            Err(Failure::new(CODE_USAGE, "several files cannot be written to standard output")
                .help("name an output file, or leave out what divides the model"))
        }
        Destination::File(path) => {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{stem}-{:05}-of-{count:05}.gguf", idx + 1);
            Ok(Destination::File(path.with_file_name(name)))
        }
        #[cfg(feature = "remote")]
        Destination::Object(url) => {
            Err(Failure::new(CODE_USAGE, "several files are not written to an object store")
                .in_file(url)
                .help(
                    "write them to a folder, and send it with `apr put`; or leave out what divides the model",
                ))
        }
    }
}

impl Files {
    /// One of them, counted from 1.
    ///
    /// # Errors
    ///
    /// If there is no such file.
    fn only(mut self, number: u32) -> Result<Self, Failure> {
        let count = self.0.len();
        match number as usize {
            number if number <= count => Ok(Self(vec![self.0.swap_remove(number - 1)])),
            number => {
                let what = format!("there is no file {number}: the model is divided into {count}");
                Err(Failure::new(CODE_USAGE, what).help("--dry-run lists the files"))
            }
        }
    }

    /// Length of all files.
    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|file| file.layout.file_len()).sum()
    }

    /// What comes before the tensors of the first.
    pub(super) fn head(&self) -> Option<&[u8]> {
        self.0.first().map(|file| file.layout.header_bytes())
    }

    /// Makes the tensors and writes the files, the first in the end with the head that `head` makes, if any. None takes its place before all
    /// are written.
    ///
    /// # Errors
    ///
    /// If a file of the folder cannot be read, a tensor not be made, or a file not be written; files that exist are not changed.
    pub(super) fn write(
        &self,
        work: &Work<'_>,
        console: &Console,
        head: impl FnOnce() -> Result<Option<Vec<u8>>, Failure>,
    ) -> Result<Flaws, Failure> {
        let Work { model, sources, importance, output } = *work;
        let mut progress = console.progress("converting", self.len());
        let mut producer = Producer::new();
        let mut write_one = |file: &NewFile, out: &mut dyn Write, progress: &mut Progress| {
            file.write(out, progress, |idx, progress, write| {
                let Some(tensor) = model.tensors.get(file.first + idx) else { return Ok(()) };
                progress.item(&model.output(tensor).name);
                model.make(tensor, sources, importance, &mut producer, write)
            })
        };
        if let [file] = &self.0[..] {
            let fill = |out: &mut dyn Write| write_one(file, out, &mut progress);
            file.place.fill_head_last(output.overwrite, fill, head)?;
            return Ok(producer.flaws());
        }
        let paths: Vec<PathBuf> = self.0.iter().map(|file| file.place.label().to_owned()).collect();
        paths.iter().try_for_each(|path| output::check_file(path, output.overwrite))?;
        let mut written: Vec<Replacement> = Vec::with_capacity(paths.len());
        for (file, path) in self.0.iter().zip(&paths) {
            console.detail(format_args!("writing {}", crate::terminal::escape::path(path)));
            let mut new = output::create(path, output.overwrite)?;
            write_one(file, &mut new, &mut progress)?;
            written.push(new);
        }
        if let Some((first, head)) = written.first_mut().zip(head()?) {
            output::replace_head(first, &head)?;
        }
        written.into_iter().try_for_each(|new| Ok::<(), Failure>(new.commit()?))?;
        Ok(producer.flaws())
    }
}

/// Refuses to begin what the disk cannot hold.
///
/// # Errors
///
/// If the file system says that it has less space.
pub(super) fn check_space(len: u64, output: &Output) -> Result<(), Failure> {
    let Destination::File(path) = &output.destination else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(available) = durable_file::available_space(folder) else { return Ok(()) };
    if available >= len {
        return Ok(());
    }
    let what = format!("the new file has {}, and the disk has space for {}", bytes(len), bytes(available));
    Err(Failure::new(CODE_NO_SPACE, what).in_file(folder))
}

impl NewFile {
    /// Writes the file; `make` is asked for each of its tensors.
    fn write(
        &self,
        out: &mut dyn Write,
        progress: &mut Progress,
        mut make: impl FnMut(
            usize,
            &mut Progress,
            &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
        ) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut stop = None;
        let written = buffered(out, |out| {
            self.layout.write_streamed(out, |planned, sink| {
                let mut done = 0;
                let made = make(planned.idx, progress, &mut |piece| {
                    done += piece.len();
                    sink.write_all(piece).map_err(|error| self.place.write_failure(&error))
                });
                progress.advance(done);
                made.map_err(|failure| {
                    stop = Some(failure);
                    io::Error::other("stopped")
                })
            })
        });
        written.map_err(|error| stop.take().unwrap_or_else(|| self.place.write_failure(&error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_bytes_or_decimal_multiples() {
        for (text, expected) in
            [("1", Some(1)), ("300M", Some(300_000_000)), ("4G", Some(4_000_000_000)), ("2K", Some(2000))]
        {
            assert_eq!(parse_limit(text).ok(), expected, "{text}");
        }
        for text in ["", "0", "M", "1.5G", "+1G", "-1", "1GB", "1 G", "99999999999999999999", "99999999999G"]
        {
            assert!(parse_limit(text).is_err(), "{text}");
        }
    }
}
