//! Formats recognized by their first bytes.

use crate::Format;
use crate::format::NAMES_TOOLS;
use crate::text::{index, text};
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
    (Format::CatBoost, 0, b"CBM1"),
    // The first key of UBJSON, after the type and the eight bytes of its length.
    (Format::XgBoost, 0, b"{L\0\0\0\0\0\0\0\x07learner"),
    (Format::XgBoost, 0, b"{i\x07learner"),
    (Format::XgBoost, 0, b"{U\x07learner"),
    // Before `.json`, until XGBoost 3.0.
    (Format::XgBoost, 0, b"binf"),
    (Format::TensorRt, 0, b"ftrt"),
    (Format::TensorRt, 0, b"ptrt"),
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
        return Some(match readable {
            Some(pointer) if NAMES_TOOLS && format == Format::GitLfs && pointer.contains("\n<<<<<<< ") => {
                Format::GitLfsConflict
            }
            _ => format,
        });
    }
    if NAMES_TOOLS
        && readable.is_none()
        && let Some(format) = by_pattern(first)
    {
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

/// Formats whose magic number has a part that varies.
fn by_pattern(first: &[u8]) -> Option<Format> {
    match first {
        // The version of the format in two digits.
        [_, _, _, _, b'E', b'T', b'0'..=b'9', b'0'..=b'9', ..] => Some(Format::ExecuTorch),
        // An object whose first key has less than 256 bytes.
        [b'{', b'L', 0, 0, 0, 0, 0, 0, 0, 1..=255, letter, ..] if letter.is_ascii_graphic() => {
            Some(Format::Ubjson)
        }
        _ => None,
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
            (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", Format::ErrorReply),
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
    fn models_of_libraries_of_trees_are_recognized() {
        for (first, format) in [
            (&b"{L\0\0\0\0\0\0\0\x07learner{L\0\0\0\0\0\0\0\x0aattributes"[..], Format::XgBoost),
            (b"{L\0\0\0\0\0\0\0\x07version[#L\0\0\0\0\0\0\0\x03", Format::Ubjson),
            (b"{\"learner\":{\"attributes\":{}", Format::XgBoost),
            (b"{\r\n  \"learner\" : {\n    \"attributes\": {}", Format::XgBoost),
            (b"{\"learner\":3}\n{\"learner\":4}\n", Format::Json),
            (b"binf\0\0\0\x3f\x04\0\0\0\0\0\0\0", Format::XgBoost),
            (b"tree\nversion=v4\nnum_class=1\n", Format::LightGbm),
            (b"tree\r\nversion=v3\r\n", Format::LightGbm),
            (b"tree\nversion\n", Format::Text),
            (b"{\"name\":\"tree\",\"version\":\"v4\",\"num_class\":1,", Format::LightGbmDump),
            (b"{\"name\":\"tree\",\"version\":\"v4\"}\n", Format::Json),
            (b"CBM1\x98\x21\0\0\x10\0\0\0\0\0\x0a\0", Format::CatBoost),
            (b"CBM1,x\n1,2\n", Format::Csv),
            (b"{\n  \"features_info\":\n    {\n      \"float_features\":", Format::CatBoost),
        ] {
            assert_eq!(sniff(first), Some(format), "{}", first.escape_ascii());
        }
    }

    #[test]
    fn programs_for_devices_are_recognized() {
        for (first, format) in [
            (&b"\x20\0\0\0ET12\0\0\0\0\0\0\0\0"[..], Format::ExecuTorch),
            (b"\x34\0\0\0ET13eh00", Format::ExecuTorch),
            (b"ftrt\0\0\0\0\0\0\0\0", Format::TensorRt),
            (b"<?xml version=\"1.0\"?>\n<net name=\"Model0\" version=\"11\">", Format::OpenVino),
            (b"<net\n name=\"Model0\"", Format::OpenVino),
            (b"<?xml version=\"1.0\"?>\n<PMML version=\"4.4\">", Format::Xml),
            (b"<Error><Code>AccessDenied</Code>", Format::ErrorReply),
            (
                b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code>",
                Format::ErrorReply,
            ),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", Format::GitLfs),
            (
                b"version https://git-lfs.github.com/spec/v1\n<<<<<<< HEAD\noid sha256:00\nsize 1\n=======\n",
                Format::GitLfsConflict,
            ),
        ] {
            assert_eq!(sniff(first), Some(format), "{}", first.escape_ascii());
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
