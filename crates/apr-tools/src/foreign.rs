//! Formats that are not safetensors, told by their first bytes, so that a refusal can name them.

/// A format this version does not read, and what to do with such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
}

/// Bytes of the beginning of a file that [`sniff`] looks at.
pub(crate) const SNIFFED: usize = 512;

const APR: &str = "name the file itself: in a folder or a set of shards only safetensors files are read";
const TORCH: &str = "load it where you trust it, with torch.load(..., weights_only=True), and save it with \
                     safetensors.torch.save_file";
const PICKLE: &str =
    "unpickling can run code: load it only where you trust it, then save the arrays as safetensors";

/// Format, offset of the magic, magic.
const MAGICS: &[(usize, &[u8], Foreign)] = &[
    (0, b"APRN", Foreign { name: "an .apr model (version 1)", help: APR }),
    (0, b"APR\0", Foreign { name: "an .apr model (version 2)", help: APR }),
    (0, b"APR2", Foreign { name: "an .apr model (version 2)", help: APR }),
    (
        0,
        b"\x89APRS\r\n\x1a",
        Foreign {
            name: "a sealed file",
            help: "`apr inspect FILE` says what opens it; `apr open FILE -o OUT` gives back what is inside",
        },
    ),
    (0, b"GGUF", Foreign { name: "a GGUF model", help: APR }),
    (
        0,
        b"tjgg",
        Foreign {
            name: "a GGML model (ggjt)",
            help: "convert it with the tools of llama.cpp, or fetch another version",
        },
    ),
    (
        0,
        b"lmgg",
        Foreign {
            name: "a GGML model",
            help: "convert it with the tools of llama.cpp, or fetch another version",
        },
    ),
    (
        0,
        b"PK\x03\x04",
        Foreign {
            name: "a ZIP archive (a PyTorch .pt or .pth file, .npz, .keras or plain .zip)",
            help: TORCH,
        },
    ),
    (
        0,
        b"\x93NUMPY",
        Foreign {
            name: "a NumPy .npy array",
            help: "save it with safetensors.numpy.save_file({\"name\": numpy.load(FILE)}, OUT)",
        },
    ),
    (
        0,
        b"\x89HDF\r\n\x1a\n",
        Foreign {
            name: "an HDF5 file (Keras .h5)",
            help: "read it with h5py and save the arrays as safetensors",
        },
    ),
    (
        4,
        b"TFL3",
        Foreign { name: "a TensorFlow Lite model", help: "export the original model to safetensors instead" },
    ),
    (0, b"\x1f\x8b", Foreign { name: "a gzip file", help: "unpack it first: gunzip FILE" }),
    (0, b"\x28\xb5\x2f\xfd", Foreign { name: "a Zstandard file", help: "unpack it first: zstd -d FILE" }),
    (0, b"BZh", Foreign { name: "a bzip2 file", help: "unpack it first: bunzip2 FILE" }),
    (0, b"\xfd7zXZ\0", Foreign { name: "an xz file", help: "unpack it first: unxz FILE" }),
    (257, b"ustar", Foreign { name: "a tar archive", help: "unpack it first: tar -xf FILE" }),
    (
        0,
        b"version https://git-lfs",
        Foreign {
            name: "a Git LFS pointer, not the model itself",
            help: "fetch the content it stands for: git lfs pull",
        },
    ),
    (0, b"\x7fELF", Foreign { name: "an executable", help: "name a model file" }),
    (0, b"%PDF-", Foreign { name: "a PDF document", help: "name a model file" }),
];

const WEB_PAGE: Foreign = Foreign {
    name: "a web page",
    help: "the download brought an error or login page instead of the model: fetch it again",
};

const INDEX: Foreign = Foreign {
    name: "JSON text",
    help: "an index of shards is recognised by its name: call it model.safetensors.index.json",
};

const ONNX: Foreign = Foreign {
    name: "an ONNX model",
    help: "read it with the onnx package and save its initializers as safetensors",
};

/// The format the bytes announce, if it is a known one.
///
/// `first` is the beginning of a file, [`SNIFFED`] bytes if it has as many.
pub(crate) fn sniff(first: &[u8]) -> Option<Foreign> {
    // A damaged safetensors file stays one: a header length within the format's limit, then a brace.
    if let Some((&length, [b'{', ..])) = first.split_first_chunk::<8>()
        && u64::from_le_bytes(length) <= st_core::MAX_HEADER_LEN
    {
        return None;
    }
    let by_magic = |(at, magic, foreign): &(usize, &[u8], Foreign)| {
        (first.get(*at..)?.starts_with(magic)).then_some(*foreign)
    };
    if let Some(foreign) = MAGICS.iter().find_map(by_magic) {
        return Some(foreign);
    }
    match first {
        // PROTO opcode of protocols 2 to 5. Older protocols have no magic.
        [0x80, 2..=5, ..] => {
            return Some(Foreign { name: "a pickle (PyTorch before 1.6, joblib or other)", help: PICKLE });
        }
        // Field 1 (ir_version, a small number), then producer name, domain or graph.
        [0x08, 1..=15, 0x12 | 0x1a | 0x22 | 0x3a | 0x42, ..] => return Some(ONNX),
        _ => {}
    }
    let text = first.trim_ascii_start();
    let begins = |word: &[u8]| text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    if begins(b"<!doctype html") || begins(b"<html") || begins(b"<?xml") {
        return Some(WEB_PAGE);
    }
    // Eight bytes of text are a header length beyond every limit, so no safetensors file is mistaken here.
    let is_text = first.len() >= 8
        && first[..8].iter().all(|&b| b == b'\n' || b == b'\r' || (b' '..=b'~').contains(&b));
    (is_text && text.starts_with(b"{")).then_some(INDEX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(first: &[u8]) -> Option<&'static str> {
        sniff(first).map(|foreign| foreign.name)
    }

    #[test]
    fn known_formats_are_named() {
        let mut tar = vec![b'a'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        for (first, part) in [
            (&b"APRN\x01\x00"[..], ".apr model (version 1)"),
            (b"APR\0\x02", "version 2"),
            (b"APR2....", "version 2"),
            (b"GGUF\x03\0\0\0", "GGUF"),
            (b"PK\x03\x04....", "ZIP"),
            (b"\x80\x02}q\x00X\x01\0", "pickle"),
            (b"\x93NUMPY\x01\0", "NumPy"),
            (b"\x89HDF\r\n\x1a\n", "HDF5"),
            (b"\x08\x08\x12\x07pytorch", "ONNX"),
            (b"\x1c\0\0\0TFL3", "TensorFlow Lite"),
            (b"\n <!DOCTYPE HTML>", "web page"),
            (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
            (b"{\n  \"metadata\": {", "JSON"),
            (&tar, "tar"),
        ] {
            assert!(name(first).is_some_and(|name| name.contains(part)), "{part}: {:?}", name(first));
        }
    }

    #[test]
    fn safetensors_headers_are_not_mistaken() {
        for n in [2u64, 8, 88, 0x12_0208, 0x0280, 0x8b1f, 100_000_000] {
            let mut first = n.to_le_bytes().to_vec();
            first.extend_from_slice(b"{\"__metadata__\":{}}");
            assert_eq!(name(&first), None, "{n}");
        }
        assert_eq!(name(b""), None);
    }
}
