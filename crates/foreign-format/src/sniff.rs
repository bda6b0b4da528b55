//! Formats recognized by their first bytes.

use crate::Format;
use crate::zip;

/// Bytes of the beginning of a file that [`sniff`] looks at.
pub const PREFIX: usize = 1024;

/// Longest header of a safetensors file, a limit of that format.
const SAFETENSORS_HEADER: u64 = 100_000_000;

/// A table of LevelDB, as the index of a TensorFlow checkpoint is one: the first key is empty. Its last bytes are a magic number.
const TABLE_BEGIN: &[u8] = b"\0\0";
const TABLE_MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();
const TABLE_FOOTER: u64 = 48;

/// HDF5 begins at byte 0 or after a user block of any content, whose length is 512 or a larger power of two.
const HDF5_MAGIC: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
const MAX_USER_BLOCK: u64 = 1 << 20;

/// Longest JSON in which the first file of an index is looked for after [`PREFIX`].
const MAX_INDEX: u64 = 16 << 20;

/// Format, offset of the magic number, magic number.
const MAGICS: &[(Format, usize, &[u8])] = &[
    (Format::Ggml, 0, b"tjgg"),
    (Format::Ggml, 0, b"fmgg"),
    (Format::Ggml, 0, b"lmgg"),
    (Format::Npy, 0, b"\x93NUMPY"),
    (Format::Hdf5, 0, HDF5_MAGIC),
    (Format::Hdf5, 512, HDF5_MAGIC),
    (Format::NetCdf, 0, b"CDF\x01"),
    (Format::NetCdf, 0, b"CDF\x02"),
    (Format::NetCdf, 0, b"CDF\x05"),
    (Format::Mat, 0, b"MATLAB 5.0 MAT-file"),
    (Format::Mat, 0, b"MATLAB 7.3 MAT-file"),
    (Format::TfLite, 4, b"TFL3"),
    // The first pickle is one number, in protocol 2 unless asked otherwise; 4 and 5 put it into a frame.
    (Format::TorchLegacy, 0, b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"),
    (Format::TorchLegacy, 0, b"\x80\x03\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"),
    (
        Format::TorchLegacy,
        0,
        b"\x80\x04\x95\x0d\0\0\0\0\0\0\0\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
    ),
    (
        Format::TorchLegacy,
        0,
        b"\x80\x05\x95\x0d\0\0\0\0\0\0\0\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
    ),
    (Format::TorchLegacy, 0, b"L119547037146038801333356L\n."),
    (Format::Parquet, 0, b"PAR1"),
    (Format::Parquet, 0, b"PARE"),
    (Format::Arrow, 0, b"ARROW1"),
    (Format::Arrow, 0, b"FEA1"),
    (Format::Ald, 0, b"ALDF"),
    (Format::Orc, 0, b"ORC"),
    (Format::Avro, 0, b"Obj\x01"),
    (Format::Sqlite, 0, b"SQLite format 3\0"),
    (Format::Gzip, 0, b"\x1f\x8b\x08"),
    (Format::Zstd, 0, b"\x28\xb5\x2f\xfd"),
    (Format::Bzip2, 0, b"BZh"),
    (Format::Xz, 0, b"\xfd7zXZ\0"),
    (Format::ZFile, 0, b"ZF0x"),
    (Format::Lz4, 0, b"\x04\x22\x4d\x18"),
    (Format::SevenZip, 0, b"7z\xbc\xaf\x27\x1c"),
    (Format::Rar, 0, b"Rar!\x1a\x07"),
    (Format::Tar, 257, b"ustar"),
    (Format::GitLfs, 0, b"version https://git-lfs"),
    (Format::Executable, 0, b"\x7fELF"),
    (Format::Executable, 0, b"MZ"),
    (Format::Pdf, 0, b"%PDF-"),
    (Format::Image, 0, b"\x89PNG\r\n\x1a\n"),
    (Format::Image, 0, b"\xff\xd8\xff"),
    (Format::Image, 0, b"GIF8"),
];

/// The format that the beginning of a file announces, if it is a known one.
///
/// `first` is the beginning of the file, [`PREFIX`] bytes if it has as many. Returns `None` for a file that may be safetensors,
/// which has no magic number, and for unknown formats.
#[must_use]
pub fn sniff(first: &[u8]) -> Option<Format> {
    let first = first.get(..PREFIX).unwrap_or(first);
    let begins_safetensors = first.split_first_chunk().is_some_and(|(&length, rest)| {
        // A damaged safetensors file stays one: a header length within the format's limit, then a brace.
        rest.starts_with(b"{") && u64::from_le_bytes(length) <= SAFETENSORS_HEADER
    });
    if begins_safetensors {
        return None;
    }
    let readable = readable(first);
    let has = |&&(_, at, magic): &&(Format, usize, &[u8])| {
        // Text can begin with a short magic number of letters: `MZ,intensity` names two columns.
        let is_proof = magic.len() > 4 || readable.is_none();
        is_proof && first.get(at..).is_some_and(|bytes| bytes.starts_with(magic))
    };
    if let Some(&(format, ..)) = MAGICS.iter().find(has) {
        return Some(format);
    }
    if first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06") {
        return Some(zip::by_first_member(first));
    }
    if first.len() >= 16 && first.iter().all(|&byte| byte == 0) {
        return Some(Format::Zeros);
    }
    // What follows has no magic number, or a short one. None of it can be the header length of a safetensors file.
    let (&length, _) = first.split_first_chunk()?;
    if u64::from_le_bytes(length) <= SAFETENSORS_HEADER {
        return None;
    }
    if is_text_pickle(first) {
        return Some(Format::Pickle);
    }
    match readable {
        Some(readable) => Some(text(readable)),
        None => binary(first),
    }
}

/// The format of a file of `len` bytes. `read(offset, buf)` fills `buf` with the bytes at `offset`, all of which are in the file.
///
/// # Errors
///
/// Those of `read`.
pub fn identify<E>(
    len: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Option<Format>, E> {
    let mut buf = [0; PREFIX];
    let take = usize::try_from(len).map_or(PREFIX, |len| len.min(PREFIX));
    let first = &mut buf[..take];
    read(0, first)?;
    match sniff(first) {
        Some(format) if zip::is_archive(first) => {
            Ok(Some(zip::by_directory(len, &mut read)?.unwrap_or(format)))
        }
        // safetensors has no magic number, but a brace.
        None if first.get(8) == Some(&b'{') => Ok(None),
        format if format.is_none_or(|format| format == Format::Zeros || format.is_text()) => {
            let mut magic = [0; 8];
            if first.starts_with(TABLE_BEGIN) && len >= TABLE_FOOTER {
                read(len - magic.len() as u64, &mut magic)?;
                if magic == TABLE_MAGIC {
                    return Ok(Some(Format::TfCheckpoint));
                }
            }
            let mut at = PREFIX as u64;
            while at <= MAX_USER_BLOCK && len.saturating_sub(at) >= magic.len() as u64 {
                read(at, &mut magic)?;
                if magic == *HDF5_MAGIC {
                    return Ok(Some(Format::Hdf5));
                }
                at *= 2;
            }
            match format {
                Some(format @ (Format::Json | Format::ShardIndex)) => {
                    index(format, len, first, &mut read).map(Some)
                }
                format => Ok(format),
            }
        }
        format => Ok(format),
    }
}

/// Formats of bytes without a long magic number.
fn binary(first: &[u8]) -> Option<Format> {
    match first {
        // The opcode PROTO, of protocols 2 to 5.
        [0x80, 2..=5, ..] => Some(Format::Pickle),
        // A map of few entries, then a short string: its first key.
        [0x81..=0x8f, 0xa1..=0xbf, letter, ..] if letter.is_ascii_graphic() => Some(Format::MessagePack),
        // The same with more entries.
        [0xde, _, _, 0xa1..=0xbf, letter, ..] if letter.is_ascii_graphic() => Some(Format::MessagePack),
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Some(Format::Zlib),
        // Properties, the size of the dictionary, an unknown length or one below 2^40.
        [0x5d, 0, 0, _, _, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..]
        | [0x5d, 0, 0, _, _, _, _, _, _, _, 0, 0, 0, ..] => Some(Format::Lzma),
        // A message of Protocol Buffers: field 1, a small version; then field 2 or a later one.
        [0x08, version @ 1..=31, rest @ ..] => protobuf(*version, rest),
        _ => None,
    }
}

/// ONNX, SavedModel and Core ML all begin with a version as field 1.
fn protobuf(version: u8, rest: &[u8]) -> Option<Format> {
    match rest {
        [0x12, rest @ ..] => {
            // Field 2: the producer's name (ONNX); a graph, beginning with what is known about it (SavedModel); a description,
            // beginning with the name of its first input (Core ML). Its length comes first, 7 bits a byte.
            let len_bytes = rest.iter().take(5).take_while(|&&byte| byte >= 0x80).count();
            match rest.get(len_bytes + 1..) {
                Some([0x0a, inner @ ..]) => {
                    let len_bytes = inner.iter().take(5).take_while(|&&byte| byte >= 0x80).count();
                    let is_named = inner.get(len_bytes + 1) == Some(&0x0a);
                    Some(if is_named || version != 1 { Format::CoreMl } else { Format::SavedModel })
                }
                Some([letter, ..]) if letter.is_ascii_graphic() => Some(Format::Onnx),
                _ if version == 1 => Some(Format::SavedModel),
                _ => Some(Format::Onnx),
            }
        }
        // The producer's version, its domain, the graph, operator sets.
        [0x1a | 0x22 | 0x3a | 0x42, ..] => Some(Format::Onnx),
        _ => None,
    }
}

/// The bytes as text, if they are.
fn readable(first: &[u8]) -> Option<&str> {
    let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
    let text = match core::str::from_utf8(first) {
        Ok(text) => text,
        // The prefix may end within a character.
        Err(error) if error.error_len().is_none() => {
            core::str::from_utf8(&first[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_readable = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\x0c');
    text.chars().all(is_readable).then_some(text)
}

/// The format of a text file, by its first words.
fn text(readable: &str) -> Format {
    let text = readable.trim_ascii_start();
    let begins = |word: &str| {
        text.as_bytes().get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
    };
    if begins("<!doctype html") || begins("<html") || begins("<head") || begins("<!--") {
        Format::WebPage
    } else if begins("<?xml") || begins("<error") {
        Format::Xml
    } else if let Some(json) = text.strip_prefix('{') {
        let first_key_is = |keys: &[&str]| {
            let key = json.trim_ascii_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
            key.is_some_and(|key| keys.contains(&key))
        };
        let mut scan = FirstShard::default();
        if scan.feed(readable.as_bytes()) == Some(true) {
            Format::TorchIndex
        } else if scan.strings.is_some() || first_key_is(&["metadata"]) {
            Format::ShardIndex
        } else if first_key_is(&["error", "errors", "message", "detail", "code", "status"]) {
            Format::ErrorReply
        } else {
            Format::Json
        }
    } else if begins("[{") || begins("[\n") {
        Format::Json
    } else if is_table(readable) {
        Format::Csv
    } else {
        Format::Text
    }
}

/// Endings of files of PyTorch.
const TORCH: [&str; 4] = [".bin", ".pt", ".pth", ".ckpt"];

/// Looks in JSON for the first file that an index of shards names, byte by byte.
#[derive(Default)]
struct FirstShard {
    /// Strings since `weight_map`: a tensor, then its file. `None` before it.
    strings: Option<u8>,
    is_open: bool,
    is_escaped: bool,
    /// The last bytes of the string, after zeros.
    last: u128,
}

impl FirstShard {
    const KEY: u128 = u128::from_be_bytes(*b"\0\0\0\0\0\0weight_map");

    /// Whether the first file is one of PyTorch; `None` as long as that is not known.
    fn feed(&mut self, bytes: &[u8]) -> Option<bool> {
        bytes.iter().find_map(|byte| self.step(*byte))
    }

    fn step(&mut self, byte: u8) -> Option<bool> {
        if !self.is_open {
            self.is_open = byte == b'"';
            self.last = 0;
            return (self.strings == Some(0) && byte == b'}').then_some(false);
        }
        if byte == b'"' && !self.is_escaped {
            self.is_open = false;
            self.strings = match self.strings {
                None => (self.last == Self::KEY).then_some(0),
                Some(0) => Some(1),
                Some(_) => {
                    let last = self.last.to_be_bytes();
                    return Some(TORCH.iter().any(|ending| last.ends_with(ending.as_bytes())));
                }
            };
            return None;
        }
        self.is_escaped = byte == b'\\' && !self.is_escaped;
        self.last = self.last << 8 | u128::from(byte);
        None
    }
}

/// The format of JSON whose first file may be named after its first bytes, from which it looks like `format`.
fn index<E>(
    format: Format,
    len: u64,
    first: &[u8],
    read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Format, E> {
    let mut scan = FirstShard::default();
    let mut found = scan.feed(first);
    let (mut at, mut piece) = (first.len() as u64, [0; PREFIX]);
    while found.is_none() && at < len && len <= MAX_INDEX {
        let take = usize::try_from(len - at).map_or(PREFIX, |left| left.min(PREFIX));
        read(at, &mut piece[..take])?;
        found = scan.feed(&piece[..take]);
        at += take as u64;
    }
    Ok(match found {
        Some(true) => Format::TorchIndex,
        Some(false) => Format::ShardIndex,
        None => format,
    })
}

/// Pickles of protocols 0 and 1 are nearly text: a class by module and name, or a container put into the memo.
fn is_text_pickle(first: &[u8]) -> bool {
    match first {
        [b'(', b'd' | b'i' | b'l' | b't', b'p' | b'q', number, ..] => {
            number.is_ascii_digit() || first[2] == b'q'
        }
        // What protocol 1 begins a dict or a list with.
        [b'}' | b']', b'q', 0, ..] => true,
        [b'c', rest @ ..] | [b'(', b'c' | b'i', rest @ ..] => {
            let mut lines = rest.split(|&byte| byte == b'\n');
            let mut is_name = || {
                let is_word = |&b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
                lines.next().is_some_and(|line| !line.is_empty() && line.iter().all(is_word))
            };
            // A word on each of two lines is text as well; a pickle goes on with an opcode.
            is_name() && is_name() && matches!(lines.next(), Some([b'(' | b')' | b'.' | b'p' | b'q', ..]))
        }
        _ => false,
    }
}

/// Whether the first lines have equally many fields, and more than one.
fn is_table(text: &str) -> bool {
    let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).take(2);
    let (Some(head), Some(row)) = (lines.next(), lines.next()) else { return false };
    [',', ';', '\t'].iter().any(|&separator| {
        let fields = |line: &str| line.matches(separator).count();
        fields(head) > 0 && fields(head) == fields(row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_formats_are_named() {
        let mut tar = [b'a'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        for (first, format) in [
            (&b"PK\x03\x04...."[..], Format::Zip),
            (b"\x80\x02}q\x00X\x01\0", Format::Pickle),
            (b"cnumpy.core.multiarray\n_reconstruct\np0\n", Format::Pickle),
            (b"(dp0\nVw\np1\n\xff", Format::Pickle),
            (b"}q\0(X\x05\0\0\0outer", Format::Pickle),
            (b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", Format::TorchLegacy),
            (b"\x80\x03\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", Format::TorchLegacy),
            (b"L119547037146038801333356L\n.M\xe9\x03.", Format::TorchLegacy),
            (b"\x93NUMPY\x01\0", Format::Npy),
            (b"\x89HDF\r\n\x1a\n", Format::Hdf5),
            (b"CDF\x01\0\0\0\x08", Format::NetCdf),
            (b"CDF\x05\0\0\0\0", Format::NetCdf),
            (b"\x08\x08\x12\x07pytorch", Format::Onnx),
            (b"\x08\x01\x12\xef\x3b\x0a\xdb\x0a\x12\xab\x0a", Format::SavedModel),
            (b"\x08\x04\x12\x20\x0a\x10\x0a\x05image", Format::CoreMl),
            (b"\x1c\0\0\0TFL3", Format::TfLite),
            (b"\x81\xa6params\x81", Format::MessagePack),
            (b"\xde\x00\x10\xa3w_0\xc7", Format::MessagePack),
            (b"PAR1\x15\x04\x15\x10", Format::Parquet),
            (b"\x5d\0\0\x40\0\xff\xff\xff\xff\xff\xff\xff\xff\0", Format::Lzma),
            (b"\x5d\0\0\x80\0\x10\0\0\0\0\0\0\0\0", Format::Lzma),
            (b"ZF0x1f             \x20\x20\x78\x9c", Format::ZFile),
            (b"ARROW1\0\0", Format::Arrow),
            (b"\n <!DOCTYPE HTML>", Format::WebPage),
            (b"\xef\xbb\xbf<html>", Format::WebPage),
            (b"version https://git-lfs.github.com/spec/v1\n", Format::GitLfs),
            (b"{\n  \"metadata\": {", Format::ShardIndex),
            (b"{\"error\":\"Invalid username or password.\"}", Format::ErrorReply),
            (b"{\"architectures\": [\"BertModel\"]}", Format::Json),
            (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", Format::Xml),
            (b"age,size\n1,2\n", Format::Csv),
            (b"MZ,intensity\n1,2\n", Format::Csv),
            (b"x^2;y\n1;2\n", Format::Csv),
            (b"Repository not found, or access denied\n", Format::Text),
            (&[0; 4096], Format::Zeros),
            (&tar, Format::Tar),
        ] {
            assert_eq!(sniff(first), Some(format), "{:?}", first.get(..40).unwrap_or(first));
        }
    }

    #[test]
    fn an_index_is_one_of_the_shards_that_it_names() {
        for (weight_map, format) in [
            (r#"{"a": "pytorch_model-00001-of-00002.bin", "b": "x.safetensors"}"#, Format::TorchIndex),
            ("\n{\t\"a\\\\\\\"b\"\n: \"model.pt\"", Format::TorchIndex),
            (r#"{"a.bin": "model-00001-of-00002.safetensors"}"#, Format::ShardIndex),
            (r#"{"a": "weights"}"#, Format::ShardIndex),
            (r#"{"a": "model.bi"#, Format::ShardIndex),
            (r#"{"a\"#, Format::ShardIndex),
            ("{}", Format::ShardIndex),
            ("", Format::ShardIndex),
        ] {
            let index = alloc::format!(r#"{{"metadata": {{"total_size": 8}}, "weight_map": {weight_map}"#);
            assert_eq!(sniff(index.as_bytes()), Some(format), "{weight_map}");
        }
    }

    #[test]
    fn the_first_file_of_an_index_may_be_named_late() {
        let metadata = alloc::format!(r#"{{"metadata": {{"note": "{}"}}, "weight_map": "#, "x ".repeat(5000));
        let other = alloc::format!(r#"{{"note": "{}", "weight_map": "#, "x\\\"".repeat(1000));
        let name = alloc::format!(r#"{{"weight_map": {{"{}": "a.pth", "b": "#, "x".repeat(1018));
        for (begin, rest, format) in [
            (&metadata, r#"{"a": "pytorch_model.bin"}}"#, Format::TorchIndex),
            (&metadata, r#"{"a": "model.safetensors"}}"#, Format::ShardIndex),
            (&other, r#"{"a": "model.pt"}}"#, Format::TorchIndex),
            (&other, "{}}", Format::ShardIndex),
            (&other, "", Format::Json),
            (&name, "", Format::TorchIndex),
        ] {
            let file = [begin.as_bytes(), rest.as_bytes()].concat();
            let mut bytes = 0;
            let read = |offset: u64, out: &mut [u8]| {
                bytes += out.len();
                out.copy_from_slice(&file[offset as usize..][..out.len()]);
                Ok::<(), core::convert::Infallible>(())
            };
            assert_eq!(identify(file.len() as u64, read), Ok(Some(format)), "{rest}");
            assert!(bytes < file.len() + 200, "{bytes}");
        }
    }

    #[test]
    fn an_index_of_a_checkpoint_is_recognized_by_its_end() {
        let mut index = alloc::vec![0_u8; 100];
        index[2] = 6;
        index[5] = 1;
        index.extend_from_slice(&TABLE_MAGIC);
        for (index, format) in
            [(&index[..], Some(Format::TfCheckpoint)), (&index[..107], None), (&index[61..], None)]
        {
            let read = |offset: u64, out: &mut [u8]| {
                out.copy_from_slice(&index[offset as usize..][..out.len()]);
                Ok::<(), core::convert::Infallible>(())
            };
            assert_eq!(identify(index.len() as u64, read), Ok(format));
        }
    }

    #[test]
    fn hdf5_is_recognized_after_user_blocks() {
        for content in [b' ', 0, 0xf7] {
            for len in [512_usize, 1024, 2048, 1 << 20] {
                let mut file = alloc::vec![content; len];
                file.extend_from_slice(HDF5_MAGIC);
                let of = |file: &[u8]| {
                    let read = |offset: u64, out: &mut [u8]| {
                        out.copy_from_slice(&file[offset as usize..][..out.len()]);
                        Ok::<(), core::convert::Infallible>(())
                    };
                    identify(file.len() as u64, read).unwrap()
                };
                assert_eq!(of(&file), Some(Format::Hdf5), "{len}");
                assert_ne!(of(&file[1..]), Some(Format::Hdf5), "{len}");
                file[..9].copy_from_slice(b"\0\x04\0\0\0\0\0\0{");
                assert!(len == 512 || of(&file).is_none(), "{len}");
            }
        }
    }

    #[test]
    fn safetensors_files_are_not_mistaken_even_if_damaged() {
        for n in [0, 2_u64, 8, 88, 0x12_0208, 0x0280, 0x8b1f, 0x9c78, 100_000_000] {
            for text in ["{\"__metadata__\":{}}", "\"__metadata__\":{}}"] {
                let mut first = n.to_le_bytes().to_vec();
                first.extend_from_slice(text.as_bytes());
                assert_eq!(sniff(&first), None, "{n}: {text}");
            }
        }
        assert_eq!(sniff(b""), None);
    }

    #[test]
    fn every_format_has_a_name_of_its_own() {
        for (idx, format) in Format::ALL.iter().enumerate() {
            assert!(Format::ALL[..idx].iter().all(|other| other.name() != format.name()), "{format:?}");
            assert!(format.help().len() > 10, "{format:?}");
        }
    }
}
