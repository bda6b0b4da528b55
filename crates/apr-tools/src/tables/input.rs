//! Where tables and texts come from.

use alloc::rc::Rc;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

#[cfg(feature = "tables")]
use apr_table::ald::Ald;
use clap::{Args, ValueEnum};
use foreign_format::Format;
use model_file::FileKind;
#[cfg(feature = "tables")]
use read_at::FileSource;

use crate::error::Failure;
use crate::foreign;
use crate::secrets::Keys;
use crate::terminal::Console;

/// How a table is read: the options of comma-separated values and of archives.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct Dialect {
    /// The character between columns, or `tab`.
    #[arg(long, value_name = "C", default_value = ",", value_parser = delimiter)]
    pub(crate) delimiter: u8,
    /// Whether the first line names the columns: auto is if no cell of it is a number.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) header: Header,
    /// Of a .npz archive, the array with the rows [default: the only one of two dimensions, or X].
    #[cfg(feature = "tables")]
    #[arg(long, value_name = "NAME")]
    pub(crate) array: Option<String>,
}

impl Dialect {
    /// Text with commas, without names.
    pub(crate) const COMMAS: Self = Self {
        delimiter: b',',
        header: Header::No,
        #[cfg(feature = "tables")]
        array: None,
    };
}

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Header {
    #[default]
    Auto,
    Yes,
    No,
}

fn delimiter(text: &str) -> Result<u8, &'static str> {
    match *text.as_bytes() {
        _ if matches!(text, "tab" | "\\t") => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n.+-".contains(&byte) => {
            Ok(byte)
        }
        _ => Err("write one character such as `,` or `;`, or `tab`"),
    }
}

/// Where a table or a list of texts comes from.
pub(crate) struct Input {
    pub(super) label: PathBuf,
    pub(super) content: Content,
    /// What opens it, and whose signature it must have.
    pub(super) keys: Rc<Keys>,
}

/// What an input holds, by its first bytes.
#[cfg_attr(not(feature = "tables"), expect(dead_code, reason = "only refused"))]
pub(super) enum Content {
    /// Text, or what is refused as such.
    Text(BufReader<Box<dyn Read>>),
    /// An Arrow IPC stream or file.
    Arrow(BufReader<Box<dyn Read>>),
    Parquet(File),
    /// A dataset of alimentar; with the tables, it has been opened.
    #[cfg(feature = "tables")]
    Ald(Box<Ald>),
    #[cfg(not(feature = "tables"))]
    Ald(File),
    /// One array of NumPy, or an archive of them.
    #[cfg(feature = "tables")]
    Arrays(FileSource, Format),
    #[cfg(not(feature = "tables"))]
    Arrays(File, Format),
}

impl Input {
    /// Opens a regular file; `-` is standard input.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or is neither a text nor a table.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let content = match path.as_os_str() == "-" {
            true => piped(path)?,
            false => opened(path)?,
        };
        Ok(Self { label: path.to_owned(), content, keys: Rc::default() })
    }

    /// With keys that are for the table alone.
    ///
    /// # Errors
    ///
    /// If there are some, and the table is of a format without encryption and signatures.
    pub(crate) fn with_keys(mut self, keys: &Rc<Keys>) -> Result<Self, Failure> {
        match &self.content {
            Content::Ald(_) => {}
            content => keys.refuse_for(content.title(), &self.label)?,
        }
        self.keys = Rc::clone(keys);
        Ok(self)
    }

    /// With keys that are for a model, too: those that decrypt are used if the table is encrypted, and a signature is demanded of it
    /// if its format can have one.
    pub(crate) fn with_shared_keys(mut self, keys: &Rc<Keys>) -> Self {
        self.keys = match self.content.is_encrypted() {
            true => Rc::clone(keys),
            false => Rc::new(keys.without_identity()),
        };
        self
    }

    fn is_encrypted(&self) -> bool {
        self.content.is_encrypted()
    }

    /// Says what a reader of it should know.
    pub(crate) fn tell_notes(&self, console: &Console) {
        #[cfg(feature = "tables")]
        if let Content::Ald(dataset) = &self.content {
            dataset.notes().into_iter().for_each(|note| console.remark(note));
        }
        #[cfg(not(feature = "tables"))]
        let _ = console;
    }

    pub(crate) fn label(&self) -> &Path {
        &self.label
    }

    /// The input as text.
    ///
    /// # Errors
    ///
    /// If it is a table that is no text.
    pub(crate) fn text(self) -> Result<BufReader<Box<dyn Read>>, Failure> {
        match self.content {
            Content::Text(text) => Ok(text),
            content => {
                Err(content.refused_as("text", &self.label).help("name the column of texts with --column"))
            }
        }
    }
}

/// Whether a file is a dataset that is encrypted.
pub(crate) fn is_encrypted(path: &Path) -> bool {
    path.as_os_str() != "-" && Input::open(path).is_ok_and(|input| input.is_encrypted())
}

impl Content {
    pub(super) fn of(read: Box<dyn Read>) -> io::Result<Self> {
        let mut read = BufReader::with_capacity(64 << 10, read);
        // Some writers of Arrow files hand over the first six bytes alone.
        let begin = read.fill_buf()?;
        let is_file = begin.starts_with(b"ARROW1") && begin.get(6).is_none_or(|byte| *byte == 0);
        let is_arrow = is_file || begin.starts_with(&[0xff, 0xff, 0xff, 0xff]);
        Ok(if is_arrow { Self::Arrow(read) } else { Self::Text(read) })
    }

    /// Refuses a table where `expected` is read.
    pub(super) fn refused_as(&self, expected: &str, path: &Path) -> Failure {
        let kind = self.format().map_or(FileKind::Unknown, FileKind::Foreign);
        foreign::refusal(kind, expected, path)
    }

    /// The format, if it is no text.
    fn format(&self) -> Option<Format> {
        match self {
            Self::Text(_) => None,
            Self::Arrow(_) => Some(Format::Arrow),
            Self::Parquet(_) => Some(Format::Parquet),
            Self::Ald(_) => Some(Format::Ald),
            Self::Arrays(_, format) => Some(*format),
        }
    }

    fn title(&self) -> &'static str {
        self.format().map_or("a table of text", Format::title)
    }

    fn is_encrypted(&self) -> bool {
        match self {
            #[cfg(feature = "tables")]
            Self::Ald(dataset) => dataset.encryption().is_some(),
            _ => false,
        }
    }
}

/// Standard input.
fn piped(path: &Path) -> Result<Content, Failure> {
    let content =
        Content::of(Box::new(io::stdin())).map_err(|error| Failure::io("read the file", path, &error))?;
    let Content::Text(text) = &content else { return Ok(content) };
    // Read from the end, or in two passes.
    let magics = [
        (&b"PAR1"[..], Format::Parquet),
        (b"ALDF", Format::Ald),
        (b"\x93NUMPY", Format::Npy),
        (b"PK\x03\x04", Format::Npz),
    ];
    match magics.into_iter().find(|(magic, _)| text.buffer().starts_with(magic)) {
        Some((_, format)) => {
            let failure = foreign::refusal(FileKind::Foreign(format), "a table from a pipe", path);
            Err(failure.help("it is not read from its beginning to its end: give the file by its name, or write an Arrow IPC stream"))
        }
        None => Ok(content),
    }
}

fn opened(path: &Path) -> Result<Content, Failure> {
    let regular = durable_file::open_regular(path, u64::MAX).map_err(|error| match path.is_dir() {
        true => Failure::from(error).help("name one table: the files of a folder are not read as one"),
        false => error.into(),
    })?;
    let len = regular.len();
    let mut file = regular.into_file();
    let failed = |error: io::Error| Failure::io("read the file", path, &error);
    let kind = foreign::of_open(&mut file, len).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    match kind.and_then(FileKind::foreign) {
        Some(Format::Parquet) => return Ok(Content::Parquet(file)),
        #[cfg(feature = "tables")]
        Some(format @ (Format::Npy | Format::Npz)) => {
            return Ok(Content::Arrays(FileSource::with_len(file, len), format));
        }
        #[cfg(not(feature = "tables"))]
        Some(format @ (Format::Npy | Format::Npz)) => return Ok(Content::Arrays(file, format)),
        #[cfg(feature = "tables")]
        Some(Format::Ald) => {
            let dataset = Ald::open(FileSource::with_len(file, len));
            return dataset
                .map(|dataset| Content::Ald(Box::new(dataset)))
                .map_err(|error| Failure::from(error).in_file(path));
        }
        #[cfg(not(feature = "tables"))]
        Some(Format::Ald) => return Ok(Content::Ald(file)),
        Some(Format::Arrow) => {}
        Some(format) if format.is_text() => {}
        _ => {
            if let Some(kind) = kind {
                let failure = foreign::refusal(kind, "a table or text", path);
                return Err(match kind.foreign() {
                    Some(_) => failure,
                    None => failure.help("name a table here: the model is another argument; docs/tables.md lists the formats of tables"),
                });
            }
        }
    }
    match (Content::of(Box::new(file)).map_err(failed)?, kind) {
        // Feather version 1.
        (Content::Text(_), Some(kind)) if kind.foreign() == Some(Format::Arrow) => {
            let failure = foreign::refusal(kind, "an Arrow IPC stream or file", path);
            Err(failure
                .help("write it again with pyarrow.feather.write_feather(TABLE, OUT): version 1 is not read"))
        }
        (content, _) => Ok(content),
    }
}
