//! Where tables and texts come from.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use foreign_format::Format;
use model_file::FileKind;

use crate::error::Failure;
use crate::foreign;

/// How a text of comma-separated values is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub(crate) struct Dialect {
    /// The character between columns, or `tab`.
    #[arg(long, value_name = "C", default_value = ",", value_parser = delimiter)]
    pub(crate) delimiter: u8,
    /// Whether the first line names the columns: auto is if no cell of it is a number.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) header: Header,
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
}

/// What an input holds, by its first bytes.
#[cfg_attr(not(feature = "tables"), expect(dead_code, reason = "only refused"))]
pub(super) enum Content {
    /// Text, or what is refused as such.
    Text(BufReader<Box<dyn Read>>),
    /// An Arrow IPC stream or file.
    Arrow(BufReader<Box<dyn Read>>),
    Parquet(File),
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
        Ok(Self { label: path.to_owned(), content })
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
        let kind = match self {
            Self::Text(_) => FileKind::Unknown,
            Self::Arrow(_) => FileKind::Foreign(Format::Arrow),
            Self::Parquet(_) => FileKind::Foreign(Format::Parquet),
        };
        foreign::refusal(kind, expected, path)
    }
}

/// Standard input.
fn piped(path: &Path) -> Result<Content, Failure> {
    let content = Content::of(Box::new(io::stdin())).map_err(|error| Failure::io("read", path, &error))?;
    match &content {
        Content::Text(text) if text.buffer().starts_with(b"PAR1") => {
            let failure = foreign::refusal(FileKind::Foreign(Format::Parquet), "a table from a pipe", path);
            Err(failure.help("the footer of Parquet is read first: give the file by its name, or write an Arrow IPC stream"))
        }
        _ => Ok(content),
    }
}

fn opened(path: &Path) -> Result<Content, Failure> {
    let regular = durable_file::open_regular(path, u64::MAX)?;
    let len = regular.len();
    let mut file = regular.into_file();
    let failed = |error: io::Error| Failure::io("read", path, &error);
    let kind = foreign::of_open(&mut file, len).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    match kind.and_then(FileKind::foreign) {
        Some(Format::Parquet) => return Ok(Content::Parquet(file)),
        Some(Format::Arrow) => {}
        Some(format) if format.is_text() => {}
        _ => {
            if let Some(kind) = kind {
                return Err(foreign::refusal(kind, "a table or text", path));
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
