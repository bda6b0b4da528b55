//! Importance matrices: the files of `llama-imatrix`, in both formats.

use alloc::collections::BTreeMap;

use gguf_core::{Gguf, Header};
use tensor_dtype::Dtype;

use crate::error::{Error, ErrorKind};

/// Ends of names in files of the newer kind.
const SUMS: &str = ".in_sum2";
const COUNTS: &str = ".counts";

/// Importance of each column of each tensor: mean squares of the activations that the columns were multiplied by when someone
/// ran the
/// model over a text.
///
/// ```
/// use apr_convert::Importance;
///
/// // The older kind: one tensor `w` of two columns, seen four times.
/// let mut file = vec![];
/// file.extend(1_i32.to_le_bytes());
/// file.extend(1_i32.to_le_bytes());
/// file.extend(b"w");
/// file.extend(4_i32.to_le_bytes());
/// file.extend(2_i32.to_le_bytes());
/// file.extend(8_f32.to_le_bytes());
/// file.extend(2_f32.to_le_bytes());
/// let importance = Importance::from_bytes(&file)?;
/// assert_eq!(importance.weights("w"), Some(&[2.0, 0.5][..]));
/// assert_eq!(Importance::from_bytes(&file[..20]).unwrap_err().code(), "cv-importance");
/// # Ok::<(), apr_convert::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Importance {
    weights: BTreeMap<String, Vec<f32>>,
    datasets: Vec<String>,
    chunks: Option<u32>,
}

impl Importance {
    /// Reads a file of either format: GGUF, or the older one, which has no magic number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Importance`] with the offset for an invalid file of the older format, [`ErrorKind::Gguf`] for an invalid
    /// GGUF file.
    pub fn from_bytes(file: &[u8]) -> Result<Self, Error> {
        let found =
            if file.starts_with(&gguf_core::MAGIC) { Self::of_gguf(file)? } else { Self::of_legacy(file)? };
        if found.weights.is_empty() {
            return Err(refused("the file has no importance of any tensor", 0));
        }
        Ok(found)
    }

    /// Weights of a tensor: one per column, for each matrix of a stack.
    #[must_use]
    pub fn weights(&self, tensor: &str) -> Option<&[f32]> {
        self.weights.get(tensor).map(Vec::as_slice)
    }

    /// Names of the tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.weights.keys().map(String::as_str)
    }

    /// How many weights a tensor of this shape takes: columns, for each matrix of a stack.
    #[must_use]
    pub fn expected(shape: &[u64]) -> u64 {
        let mut dims = shape.iter().rev();
        let columns = dims.next().copied().unwrap_or(1);
        columns.saturating_mul(dims.nth(1).copied().unwrap_or(1))
    }

    /// Whether there are weights for a tensor of this name and shape.
    #[must_use]
    pub fn applies_to(&self, tensor: &str, shape: &[u64]) -> bool {
        self.weights(tensor).is_some_and(|weights| weights.len() as u64 == Self::expected(shape))
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there is none; never of a file that was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Names of the texts that were used.
    #[must_use]
    pub fn datasets(&self) -> &[String] {
        &self.datasets
    }

    /// Pieces of text that were used.
    #[must_use]
    pub const fn chunks(&self) -> Option<u32> {
        self.chunks
    }

    fn insert(&mut self, name: &str, weights: Vec<f32>, offset: u64) -> Result<(), Error> {
        if weights.iter().any(|weight| !(weight.is_finite() && *weight >= 0.0)) {
            return Err(refused("an importance weight is negative or not finite", offset).of_tensor(name));
        }
        self.weights.insert(name.to_owned(), weights);
        Ok(())
    }

    fn of_gguf(file: &[u8]) -> Result<Self, Error> {
        let gguf = Gguf::from_bytes(file)?;
        let mut found = Self { datasets: datasets(&gguf), chunks: chunks(&gguf), ..Self::default() };
        for info in gguf.tensors() {
            let Some(name) = info.name().to_str().ok().and_then(|name| name.strip_suffix(SUMS)) else {
                continue;
            };
            let at = info.info_offset();
            let refused = |what: &'static str| refused(what, at).of_tensor(name);
            let floats = |info: &gguf_core::TensorInfo<'_>| {
                let data = gguf.tensor_data(info).filter(|_| info.dtype() == Dtype::F32);
                data.map(floats).ok_or_else(|| refused("sums and counts have to be F32"))
            };
            let counts = gguf.tensor(&format!("{name}{COUNTS}"));
            let counts = counts.map_err(|_| refused("sums without counts"))?;
            let (sums, counts) = (floats(info)?, floats(counts)?);
            if counts.is_empty() || sums.is_empty() {
                continue;
            }
            if !sums.len().is_multiple_of(counts.len()) {
                return Err(refused("as many sums as no number of columns has"));
            }
            let columns = sums.len() / counts.len();
            let per_matrix = sums.chunks(columns).zip(&counts);
            let mean = |(sums, count): (&[f32], &f32)| -> Vec<f32> {
                // Of an expert that was never chosen, nothing is known.
                sums.iter().map(|sum| if *count > 0.0 { sum / count } else { 1.0 }).collect()
            };
            found.insert(name, per_matrix.flat_map(mean).collect(), at)?;
        }
        Ok(found)
    }

    fn of_legacy(file: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader { file, at: 0 };
        let n_entries = reader.count("the number of entries is not sound")?;
        let mut found = Self::default();
        for _ in 0..n_entries {
            let at = reader.at as u64;
            let name_len = reader.count("the name is longer than the file")?;
            let name = reader.take(name_len, "the name is longer than the file")?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = core::str::from_utf8(name).map_err(|_| refused("the name is not UTF-8", at))?;
            let n_calls = reader.i32("the file ends within an entry")?;
            let len = reader.count("an entry has more weights than the file has bytes")?;
            let bytes = len.checked_mul(4).ok_or_else(|| refused("an entry is too long", at))?;
            let bytes = reader.take(bytes, "an entry has more weights than the file has bytes")?;
            let calls = if n_calls > 0 { n_calls as f32 } else { 1.0 };
            let weights = floats(bytes).into_iter().map(|sum| sum / calls).collect();
            found.insert(name, weights, at)?;
        }
        // What follows was added later, and need not be there.
        if let Ok(chunks) = reader.i32("") {
            found.chunks = u32::try_from(chunks).ok().filter(|chunks| *chunks > 0);
            let name = reader.count("").and_then(|len| reader.take(len, ""));
            found.datasets.extend(name.ok().map(|name| String::from_utf8_lossy(name).into_owned()));
        }
        Ok(found)
    }
}

fn refused(what: &'static str, offset: u64) -> Error {
    Error::from(ErrorKind::Importance { what }).at(offset)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let (floats, _) = bytes.as_chunks::<4>();
    floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn datasets(header: &Header<'_>) -> Vec<String> {
    let array = header.get("imatrix.datasets").and_then(|value| value.as_array());
    let names = array.into_iter().flat_map(|array| array.iter().take(64));
    names.filter_map(|value| Some(value.as_text()?.to_str_lossy().into_owned())).collect()
}

fn chunks(header: &Header<'_>) -> Option<u32> {
    header.get("imatrix.chunk_count")?.to_u64()?.try_into().ok()
}

struct Reader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], Error> {
        let rest = self.file.get(self.at..).unwrap_or_default();
        let bytes = rest.get(..len).ok_or_else(|| refused(what, self.at as u64))?;
        self.at += len;
        Ok(bytes)
    }

    fn i32(&mut self, what: &'static str) -> Result<i32, Error> {
        let bytes = self.take(4, what)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes)))
    }

    /// A number of things that take at least a byte each.
    fn count(&mut self, what: &'static str) -> Result<usize, Error> {
        let at = self.at as u64;
        let count = usize::try_from(self.i32(what)?).ok();
        let left = self.file.len() - self.at;
        count.filter(|count| (1..=left).contains(count)).ok_or_else(|| refused(what, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legacy(entries: &[(&str, i32, &[f32])], rest: &[u8]) -> Vec<u8> {
        let mut file = (entries.len() as i32).to_le_bytes().to_vec();
        for (name, calls, values) in entries {
            file.extend((name.len() as i32).to_le_bytes());
            file.extend(name.as_bytes());
            file.extend(calls.to_le_bytes());
            file.extend((values.len() as i32).to_le_bytes());
            file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        file.extend(rest);
        file
    }

    fn code_and_offset(file: &[u8]) -> (&'static str, Option<u64>) {
        let error = Importance::from_bytes(file).unwrap_err();
        (error.code(), error.offset())
    }

    #[test]
    fn the_older_kind() {
        let rest = [7_i32.to_le_bytes().as_slice(), &4_i32.to_le_bytes(), b"wiki"].concat();
        let file = legacy(&[("a", 2, &[4.0, 0.0]), ("b.weight", 0, &[3.0])], &rest);
        let found = Importance::from_bytes(&file).unwrap();
        assert_eq!((found.len(), found.chunks()), (2, Some(7)));
        assert_eq!(found.datasets(), ["wiki"]);
        assert_eq!(found.weights("a"), Some(&[2.0, 0.0][..]));
        assert_eq!(found.weights("b.weight"), Some(&[3.0][..]));
        // Cut anywhere in the entries, it is refused; what follows them is a courtesy.
        let entries = file.len() - rest.len();
        for len in 0..entries {
            assert_eq!(code_and_offset(&file[..len]).0, "cv-importance", "{len}");
        }
        for len in entries..file.len() {
            assert!(Importance::from_bytes(&file[..len]).is_ok());
        }
    }

    #[test]
    fn hostile_counts_allocate_nothing() {
        assert_eq!(code_and_offset(&i32::MAX.to_le_bytes()), ("cv-importance", Some(0)));
        assert_eq!(code_and_offset(&(-1_i32).to_le_bytes()), ("cv-importance", Some(0)));
        let mut file = legacy(&[("a", 1, &[1.0])], &[]);
        file[13..17].copy_from_slice(&i32::MAX.to_le_bytes());
        assert_eq!(code_and_offset(&file), ("cv-importance", Some(13)));
        file[4..8].copy_from_slice(&i32::MAX.to_le_bytes());
        assert_eq!(code_and_offset(&file), ("cv-importance", Some(4)));
        let file = legacy(&[("a", 1, &[f32::NAN])], &[]);
        assert_eq!(code_and_offset(&file), ("cv-importance", Some(4)));
    }

    fn gguf(sums: &[f32], counts: &[f32], counts_name: &str) -> Vec<u8> {
        let mut builder = gguf_core::GgufBuilder::new();
        builder.set("general.type", "imatrix").unwrap();
        builder.set("imatrix.chunk_count", 5_u32).unwrap();
        builder.set_texts("imatrix.datasets", ["wiki", "code"]).unwrap();
        builder.add_tensor("w.in_sum2", Dtype::F32, &[sums.len() as u64]).unwrap();
        builder.add_tensor(counts_name, Dtype::F32, &[counts.len() as u64]).unwrap();
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
        builder.layout().unwrap().to_vec(&[&bytes(sums), &bytes(counts)]).unwrap()
    }

    #[test]
    fn the_newer_kind() {
        let found = Importance::from_bytes(&gguf(&[4.0, 8.0, 5.0, 5.0], &[2.0, 0.0], "w.counts")).unwrap();
        // The second matrix was never used.
        assert_eq!(found.weights("w"), Some(&[2.0, 4.0, 1.0, 1.0][..]));
        assert_eq!((found.chunks(), found.datasets().len()), (Some(5), 2));
        assert_eq!(code_and_offset(&gguf(&[1.0], &[1.0], "v.counts")).0, "cv-importance");
        assert_eq!(code_and_offset(&gguf(&[1.0; 3], &[1.0; 2], "w.counts")).0, "cv-importance");
        assert_eq!(code_and_offset(&gguf(&[-1.0], &[1.0], "w.counts")).0, "cv-importance");
        let file = gguf(&[1.0], &[1.0], "w.counts");
        assert!(code_and_offset(&file[..40]).0.starts_with("gg-"));
    }

    #[test]
    fn stacks_have_weights_for_each_matrix() {
        assert_eq!(Importance::expected(&[4, 64]), 64);
        assert_eq!(Importance::expected(&[8, 4, 64]), 512);
        assert_eq!(Importance::expected(&[]), 1);
    }
}
