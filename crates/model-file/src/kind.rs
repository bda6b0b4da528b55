//! Format detection.

use core::fmt;

use apr_container::v2;
use foreign_format::{PREFIX, sniff};
use read_at::ReadAt;

/// What a file is, by its content.
///
/// safetensors has no magic number: a file is one if a brace follows its eight length bytes and nothing else is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A format that this crate opens.
    Model(ModelFormat),
    /// A format that is recognized and not opened.
    Foreign(foreign_format::Format),
    /// None of these.
    Unknown,
}

/// A format that this crate opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelFormat {
    /// safetensors: named tensors after a JSON header. One file or a set of shards.
    SafeTensors,
    /// `.apr` version 1: the payload of one model.
    AprV1,
    /// `.apr` version 2: named tensors after an index.
    AprV2,
    /// GGUF: keys and values, and named tensors, many of them quantized.
    Gguf,
    /// A sealed file: a file of any format, encrypted in chunks and signed.
    Sealed,
    /// A format of another program: its tensors are read.
    #[cfg(feature = "foreign")]
    Foreign(foreign_format::Format),
}

impl FileKind {
    /// Bytes of the beginning of a file that [`of`](Self::of) reads.
    pub const PREFIX: usize = PREFIX;

    /// The kind of the file that begins with these bytes: [`PREFIX`](Self::PREFIX) of them, or all of a shorter file.
    ///
    /// An `.apr` file is recognized even if one bit of its magic number is wrong: its reader then reports the checksum mismatch.
    #[must_use]
    pub fn of(first: &[u8]) -> Self {
        if let Some(format) = ModelFormat::of_magic(first) {
            return Self::Model(format);
        }
        if let Some(format) = sniff(first) {
            return Self::of_foreign(format);
        }
        if first.get(8) == Some(&b'{') {
            return Self::Model(ModelFormat::SafeTensors);
        }
        ModelFormat::of_damaged_magic(first).map_or(Self::Unknown, Self::Model)
    }

    /// The kind by the first bytes of a source, and by the directory of a ZIP archive where such files are read.
    ///
    /// # Errors
    ///
    /// Those of the source.
    pub fn of_source(source: &dyn ReadAt) -> Result<Self, read_at::Error> {
        let mut first = [0; PREFIX];
        let len = usize::try_from(source.total_len()).map_or(PREFIX, |len| len.min(PREFIX));
        let (first, _) = first.split_at_mut(len);
        source.read_exact_at(0, first)?;
        match Self::of(first) {
            #[cfg(feature = "foreign")]
            kind if kind.foreign().is_some() || kind == Self::Unknown => {
                Self::identify(source.total_len(), |offset, out| source.read_exact_at(offset, out))
            }
            kind => Ok(kind),
        }
    }

    const fn of_foreign(format: foreign_format::Format) -> Self {
        #[cfg(feature = "foreign")]
        if foreign_tensors::is_supported(format) {
            return Self::Model(ModelFormat::Foreign(format));
        }
        Self::Foreign(format)
    }

    /// The format of another program, opened here or not.
    #[must_use]
    pub const fn foreign(self) -> Option<foreign_format::Format> {
        match self {
            #[cfg(feature = "foreign")]
            Self::Model(ModelFormat::Foreign(format)) => Some(format),
            Self::Foreign(format) => Some(format),
            Self::Model(_) | Self::Unknown => None,
        }
    }

    /// Whether the name may stand for the content: a name that ends as those of this project's formats do promises that no program
    /// runs anything in the file.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn fits(self, path: &std::path::Path) -> bool {
        let is_own = |ending: &std::ffi::OsStr| {
            ["safetensors", "apr", "gguf", "sealed"].iter().any(|own| ending.eq_ignore_ascii_case(own))
        };
        self.foreign().is_none() || !path.extension().is_some_and(is_own)
    }

    /// The kind of a file of `len` bytes, of which `read(offset, buf)` fills `buf` with those at `offset`: the directory of a ZIP
    /// archive is read as well.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn identify<E>(len: u64, mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut first = [0; PREFIX];
        let (first, _) = first.split_at_mut(usize::try_from(len).map_or(PREFIX, |len| len.min(PREFIX)));
        read(0, first)?;
        let kind = Self::of(first);
        if kind.foreign().is_none() && kind != Self::Unknown {
            return Ok(kind);
        }
        Ok(foreign_format::identify(len, read)?.map_or(kind, Self::of_foreign))
    }

    /// The format whose reader says what is wrong with the file: the detected one, otherwise safetensors.
    #[must_use]
    pub const fn expected(self) -> ModelFormat {
        match self {
            Self::Model(format) => format,
            Self::Foreign(_) | Self::Unknown => ModelFormat::SafeTensors,
        }
    }

    /// The format, if this crate opens it.
    #[must_use]
    pub const fn model(self) -> Option<ModelFormat> {
        match self {
            Self::Model(format) => Some(format),
            Self::Foreign(_) | Self::Unknown => None,
        }
    }

    /// One word for the format, if it is recognized.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Model(format) => Some(format.name()),
            Self::Foreign(format) => Some(format.name()),
            Self::Unknown => None,
        }
    }

    /// A noun with its article, to complete "this is ...".
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Model(format) => format.title(),
            Self::Foreign(format) => format.title(),
            Self::Unknown => "a file of an unknown format",
        }
    }
}

impl ModelFormat {
    /// Every format of this project.
    pub const ALL: [Self; 5] = [Self::SafeTensors, Self::AprV1, Self::AprV2, Self::Gguf, Self::Sealed];

    /// `safetensors`, `apr`, `gguf`, `sealed`, or the name of a foreign format such as `torch`, as descriptions name it; [`version`](Self::version) tells the two of `.apr` apart.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SafeTensors => "safetensors",
            Self::AprV1 | Self::AprV2 => "apr",
            Self::Gguf => "gguf",
            Self::Sealed => "sealed",
            #[cfg(feature = "foreign")]
            Self::Foreign(format) => format.name(),
        }
    }

    /// Major version of the format where versions are formats of their own: 1 or 2 of `.apr`.
    #[must_use]
    pub const fn version(self) -> Option<u32> {
        match self {
            Self::AprV1 => Some(1),
            Self::AprV2 => Some(2),
            _ => None,
        }
    }

    /// One word for the format and its version, as options of programs and metadata in files spell it.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::AprV1 => "apr1",
            Self::AprV2 => "apr2",
            _ => self.name(),
        }
    }

    /// The format that [`id`](Self::id) names.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.id() == id)
    }

    /// A noun with its article, to complete "this is ...".
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::SafeTensors => "a safetensors model",
            Self::AprV1 => "an .apr model (version 1)",
            Self::AprV2 => "an .apr model (version 2)",
            Self::Gguf => "a GGUF model",
            Self::Sealed => "a sealed file",
            #[cfg(feature = "foreign")]
            Self::Foreign(format) => format.title(),
        }
    }

    fn of_magic(first: &[u8]) -> Option<Self> {
        #[cfg(feature = "sealed")]
        if first.starts_with(&apr_sealed::MAGIC) {
            return Some(Self::Sealed);
        }
        if first.starts_with(&apr_container::v1::Header::MAGIC) {
            Some(Self::AprV1)
        } else if first.starts_with(&gguf_core::MAGIC) {
            Some(Self::Gguf)
        } else {
            v2::Magic::of(first).map(|_| Self::AprV2)
        }
    }

    /// The `.apr` format from whose magic number the first bytes differ in one bit.
    fn of_damaged_magic(first: &[u8]) -> Option<Self> {
        let first = u32::from_le_bytes(*first.first_chunk()?);
        let is_near = |magic: [u8; 4]| (first ^ u32::from_le_bytes(magic)).count_ones() == 1;
        if is_near(apr_container::v1::Header::MAGIC) {
            return Some(Self::AprV1);
        }
        [v2::Magic::Apr, v2::Magic::Apr2]
            .into_iter()
            .any(|magic| is_near(magic.bytes()))
            .then_some(Self::AprV2)
    }
}

impl fmt::Display for ModelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use alloc::vec::Vec;

    use apr_container::v2::Magic;

    use super::*;

    #[test]
    fn magic_numbers_are_recognized_even_with_one_wrong_bit() {
        let magics = [
            (&apr_container::v1::Header::MAGIC[..], ModelFormat::AprV1),
            (&Magic::Apr.bytes(), ModelFormat::AprV2),
            (&Magic::Apr2.bytes(), ModelFormat::AprV2),
            (b"GGUF", ModelFormat::Gguf),
            #[cfg(feature = "sealed")]
            (&apr_sealed::MAGIC, ModelFormat::Sealed),
        ];
        for (magic, format) in magics {
            let mut file = magic.to_vec();
            file.extend([1, 0, 0, 2, 0xc0, 0xfe, 0, 9, 1, 2, 3, 4]);
            assert_eq!(FileKind::of(&file), FileKind::Model(format), "{format:?}");
            assert_eq!(FileKind::of(&file).expected(), format);
            for bit in 0..32 {
                let mut damaged = file.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let found = FileKind::of(&damaged);
                match format {
                    ModelFormat::AprV1 | ModelFormat::AprV2 => {
                        assert!(
                            matches!(found, FileKind::Model(ModelFormat::AprV1 | ModelFormat::AprV2)),
                            "{bit}"
                        );
                    }
                    _ => assert_eq!(found.model(), None, "{format:?}, bit {bit}"),
                }
            }
        }
    }

    #[test]
    fn a_length_and_a_brace_begin_safetensors() {
        let mut file = 16_u64.to_le_bytes().to_vec();
        file.extend(b"{\"a\":{}}        ");
        assert_eq!(FileKind::of(&file), FileKind::Model(ModelFormat::SafeTensors));
        // One bit from the magic number of an .apr file.
        let near: Vec<u8> = [&b"APS\0\0\0\0\0{"[..], &[b' '; 16]].concat();
        assert_eq!(FileKind::of(&near).expected(), ModelFormat::SafeTensors);
        assert_eq!(FileKind::of(b""), FileKind::Unknown);
        assert_eq!(FileKind::of(b"APS2"), FileKind::Model(ModelFormat::AprV2));
    }

    #[test]
    fn archives_are_told_apart_by_their_directory() {
        let text = b"age,income,label\n1,2,3\n4,5,6\n";
        let read = |offset: u64, buf: &mut [u8]| {
            buf.copy_from_slice(&text[offset as usize..][..buf.len()]);
            Ok::<(), ()>(())
        };
        let kind = FileKind::identify(text.len() as u64, read).unwrap();
        assert_eq!(kind, FileKind::Foreign(foreign_format::Format::Csv));
        assert_eq!((kind.expected(), kind.title()), (ModelFormat::SafeTensors, "a table of text (CSV)"));
    }
}
