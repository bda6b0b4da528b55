//! Converts the values of one tensor to another type, in pieces.

use apr_quant::{
    Dtype, ErrorKind as QuantErrorKind, ErrorMeter, ErrorReport, Quantizer, Repack, dequantize_parallel,
    repack,
};

use crate::error::{Error, ErrorKind};

/// Elements of a piece: a whole number of blocks of every format, 1 MiB as `f32`.
const PIECE: u64 = 1 << 18;
/// Bytes that are copied at once: whole blocks of every format that is repacked.
const COPY: u64 = 18 << 16;
/// Row length that pieces have as far as the blocks are concerned: long enough that rows cost nothing, short enough to divide.
const VIRTUAL_ROW: usize = 4096;
/// Bytes in front of the codes of `AprQ8`: its scale.
const SCALE: usize = 4;

/// A piece of the new tensor.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Its bytes, to be written after those of the piece before.
    pub bytes: &'a [u8],
    /// Number of bytes of the old tensor that were read.
    pub consumed: u64,
}

/// The part of a tensor that the error report is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sample {
    /// Up to four million elements, in pieces spread over the tensor: looking costs more than quantizing.
    #[default]
    Spread,
    /// All.
    Whole,
    /// Nothing.
    Nothing,
}

impl Sample {
    /// Interval of the pieces that are measured.
    const fn stride(self, n_pieces: u64) -> Option<u64> {
        match self {
            Self::Spread => Some(n_pieces.div_ceil(16)),
            Self::Whole => Some(1),
            Self::Nothing => None,
        }
    }
}

/// Turns one tensor into another format, on the threads of the pool that calls. Whatever its size, some mebibytes are in
/// memory; with weights of columns, a row.
///
/// Blocks do not depend on where pieces end, so the bytes are those of the whole tensor quantized at once.
#[derive(Clone, Debug)]
pub struct Transcoder<'w> {
    from: Dtype,
    to: Dtype,
    columns: u64,
    rows: u64,
    /// Rows of one matrix of a stack.
    matrix_rows: u64,
    count: u64,
    weights: Option<&'w [f32]>,
    sample: Sample,
    buffers: Buffers,
}

#[derive(Clone, Debug, Default)]
struct Buffers {
    source: Vec<u8>,
    values: Vec<f32>,
    blocks: Vec<u8>,
}

/// The scale of `AprQ8`, which depends on all pieces.
#[derive(Clone, Copy, Debug, Default)]
struct Whole {
    /// The largest magnitude.
    largest: f32,
    /// The scale computed from it, as stored.
    scale: [u8; SCALE],
}

impl<'w> Transcoder<'w> {
    /// A tensor of this shape, the slowest dimension first, from one format to another.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Quant`] for rows that are no whole number of blocks of either format and for formats that are read only;
    /// [`ErrorKind::TooLong`].
    pub fn new(from: Dtype, to: Dtype, shape: &[u64]) -> Result<Self, Error> {
        let (&columns, rest) = shape.split_last().unwrap_or((&1, &[]));
        let product = |dims: &[u64]| {
            dims.iter().try_fold(1_u64, |count, dim| count.checked_mul(*dim)).ok_or(ErrorKind::TooLong)
        };
        let rows = product(rest)?;
        let count = rows.checked_mul(columns).ok_or(ErrorKind::TooLong)?;
        apr_quant::byte_len(from, columns, rows)?;
        apr_quant::byte_len(to, columns, rows)?;
        if from != to {
            Quantizer::new(to)?;
        }
        Ok(Self {
            from,
            to,
            columns,
            rows,
            matrix_rows: rest.last().copied().unwrap_or(1),
            count,
            weights: None,
            sample: Sample::default(),
            buffers: Buffers::default(),
        })
    }

    /// Weighs errors: one weight per column, for each matrix of a stack.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ImportanceLength`] for another number of weights.
    pub fn importance(mut self, weights: &'w [f32]) -> Result<Self, Error> {
        let matrices = self.rows.checked_div(self.matrix_rows).unwrap_or(0);
        let (found, expected) = (weights.len() as u64, self.columns.saturating_mul(matrices));
        if found != expected {
            return Err(ErrorKind::ImportanceLength { expected, found }.into());
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// The part of the tensor that the report is computed from.
    #[must_use]
    pub const fn sample(mut self, sample: Sample) -> Self {
        self.sample = sample;
        self
    }

    /// Bytes of the new tensor.
    ///
    /// # Errors
    ///
    /// None after [`new`](Self::new).
    pub fn byte_len(&self) -> Result<u64, Error> {
        Ok(apr_quant::byte_len(self.to, self.columns, self.rows)?)
    }

    /// Makes the tensor. `read` fills a buffer with the old tensor's bytes from an offset on, `write` takes the new ones. Nothing
    /// is reported of a tensor that is copied, or [repacked](repack) without a change to any number.
    ///
    /// # Errors
    ///
    /// Those of `read` and `write`; [`ErrorKind::Quant`] for values that the type cannot represent, by their index in the
    /// tensor.
    pub fn run<E: From<Error>>(
        &mut self,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
        mut write: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<Option<ErrorReport>, E> {
        if let Some(change) = self.exact() {
            self.copy(change, &mut read, &mut write)?;
            return Ok(None);
        }
        let whole = self.whole(&mut read)?;
        if self.to == Dtype::AprQ8 && self.count > 0 {
            write(Piece { bytes: &whole.scale, consumed: 0 })?;
        }
        let piece_len = self.piece_len();
        let stride = self.sample.stride(self.count.div_ceil(piece_len.max(1)));
        let mut meter = ErrorMeter::new();
        let (mut begin, mut idx) = (0, 0_u64);
        while begin < self.count {
            let len = self.len_at(begin, piece_len);
            let consumed = self.load(begin, len, &mut read)?;
            self.encode(begin, len, whole)?;
            if stride.is_some_and(|stride| idx.is_multiple_of(stride)) {
                self.measure(&mut meter, len).map_err(E::from)?;
            }
            write(Piece { bytes: self.new_bytes(), consumed })?;
            begin += len;
            idx += 1;
        }
        Ok(stride.map(|_| meter.report()))
    }

    /// The report of [`run`](Self::run), from the part of the tensor that [`Sample`] selects; none for a copy.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), as far as the sample shows them.
    pub fn estimate<E: From<Error>>(
        &mut self,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Option<ErrorReport>, E> {
        let piece_len = self.piece_len();
        let stride = self.sample.stride(self.count.div_ceil(piece_len.max(1)));
        let Some(stride) = stride.filter(|_| self.exact().is_none()) else { return Ok(None) };
        let whole = self.whole(&mut read)?;
        let mut meter = ErrorMeter::new();
        let mut begin = 0;
        while begin < self.count {
            let len = self.len_at(begin, piece_len);
            self.load(begin, len, &mut read)?;
            self.encode(begin, len, whole)?;
            self.measure(&mut meter, len).map_err(E::from)?;
            // Pieces that end with a matrix are shorter: the next measured one is chosen from the end of a full piece.
            begin = begin.saturating_add(len).saturating_add((stride - 1).saturating_mul(piece_len));
        }
        Ok(Some(meter.report()))
    }

    /// How the bytes change if no number does.
    fn exact(&self) -> Option<Repack> {
        if self.from == self.to { Some(|_| ()) } else { repack(self.from, self.to) }
    }

    fn copy<E: From<Error>>(
        &mut self,
        change: Repack,
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
        write: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let total = self.byte_len()?;
        let mut begin = 0;
        while begin < total {
            let len = COPY.min(total - begin);
            self.buffers.source.resize(len as usize, 0);
            read(begin, &mut self.buffers.source)?;
            change(&mut self.buffers.source);
            write(Piece { bytes: &self.buffers.source, consumed: len })?;
            begin += len;
        }
        Ok(())
    }

    /// Elements of a piece: blocks run through the tensor, but weights belong to whole rows.
    const fn piece_len(&self) -> u64 {
        if self.weights.is_none() {
            return PIECE;
        }
        let rows = PIECE / if self.columns == 0 { 1 } else { self.columns };
        self.columns * if rows == 0 { 1 } else { rows }
    }

    /// Elements of the piece that begins here: never beyond the tensor, with weights never beyond the matrix.
    fn len_at(&self, begin: u64, piece_len: u64) -> u64 {
        let end = match self.weights {
            Some(_) => {
                let matrix = self.matrix_rows * self.columns;
                (begin / matrix + 1) * matrix
            }
            None => self.count,
        };
        piece_len.min(end - begin)
    }

    /// The scale of `AprQ8` from all pieces; the default for other types.
    fn whole<E: From<Error>>(
        &mut self,
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Whole, E> {
        if self.to != Dtype::AprQ8 {
            return Ok(Whole::default());
        }
        let (mut largest, mut place) = (0.0, 0);
        let mut begin = 0;
        while begin < self.count {
            let len = PIECE.min(self.count - begin);
            self.load(begin, len, read)?;
            for (idx, value) in self.buffers.values.iter().enumerate() {
                let element = begin + idx as u64;
                if !value.is_finite() {
                    let error = apr_quant::Error::from(QuantErrorKind::NonFinite { element });
                    return Err(Error::from(error).into());
                }
                if value.abs() > largest {
                    (largest, place) = (value.abs(), element);
                }
            }
            begin += len;
        }
        // Alone it has the scale of the whole tensor, or none.
        let mut block = [0; SCALE + 1];
        let made =
            Quantizer::new(self.to).and_then(|quantizer| quantizer.quantize(&[largest], 1, &mut block));
        made.map_err(|error| Error::from(error.offset_elements(place)))?;
        let [scale @ .., _] = block;
        Ok(Whole { largest, scale })
    }

    /// Reads and decodes `len` elements from `begin` on; returns their number of bytes.
    fn load<E: From<Error>>(
        &mut self,
        begin: u64,
        len: u64,
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let of = |count: u64| apr_quant::byte_len(self.from, count, 1).map_err(Error::from);
        let Buffers { source, values, .. } = &mut self.buffers;
        values.resize(len as usize, 0.0);
        source.clear();
        // `AprQ8` begins with its scale, which every piece needs in front.
        let head = if self.from == Dtype::AprQ8 { SCALE } else { 0 };
        let (offset, bytes) = match head {
            0 => (of(begin)?, of(len)?),
            _ => (begin + SCALE as u64, len),
        };
        source.resize(head + bytes as usize, 0);
        if head > 0 {
            read(0, &mut source[..head])?;
        }
        read(offset, &mut source[head..])?;
        dequantize_parallel(self.from, source, values).map_err(Error::from)?;
        let with_scale = if begin == 0 { head as u64 } else { 0 };
        Ok(bytes + with_scale)
    }

    /// Quantizes the decoded values.
    fn encode(&mut self, begin: u64, len: u64, whole: Whole) -> Result<(), Error> {
        let mut quantizer = Quantizer::new(self.to)?;
        let Buffers { values, blocks, .. } = &mut self.buffers;
        let row_len = match self.weights {
            Some(weights) => {
                // Pieces do not cross matrices, whose number fits memory as their weights do.
                let matrix = (begin / (self.matrix_rows * self.columns)) as usize;
                let columns = self.columns as usize;
                let weights = weights.get(matrix * columns..).and_then(|weights| weights.get(..columns));
                quantizer = quantizer.importance(weights.unwrap_or_default());
                columns
            }
            // The largest number rides along, so that each piece gets the scale of the whole tensor.
            None if self.to == Dtype::AprQ8 => {
                values.push(whole.largest);
                values.len()
            }
            None if values.len().is_multiple_of(VIRTUAL_ROW) => VIRTUAL_ROW,
            None => values.len(),
        };
        let space = apr_quant::byte_len(self.to, row_len as u64, (values.len() / row_len.max(1)) as u64)?;
        blocks.resize(space as usize, 0);
        let made = quantizer.quantize_parallel(values, row_len, blocks);
        values.truncate(len as usize);
        if self.to == Dtype::AprQ8 {
            blocks.truncate(SCALE + len as usize);
        }
        Ok(made.map_err(|error| error.offset_elements(begin))?)
    }

    /// The blocks of this piece, without those written before.
    fn new_bytes(&self) -> &[u8] {
        let head = if self.to == Dtype::AprQ8 { SCALE } else { 0 };
        self.buffers.blocks.get(head..).unwrap_or_default()
    }

    fn measure(&self, meter: &mut ErrorMeter, len: u64) -> Result<(), Error> {
        let values = self.buffers.values.get(..len as usize).unwrap_or_default();
        Ok(meter.add_blocks(self.to, values, &self.buffers.blocks)?)
    }
}

#[cfg(test)]
mod tests {
    use apr_quant::dequantize;

    use super::*;

    /// Values that are difficult for every type, but within the range of each.
    fn numbers(count: usize) -> Vec<f32> {
        let mut state = 0x9e37_79b9_u32;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..count).map(|_| next() + next() + next()).collect()
    }

    fn bytes_of(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn made(transcoder: &mut Transcoder<'_>, source: &[u8]) -> (Vec<u8>, Option<ErrorReport>, u64) {
        let (mut out, mut consumed) = (Vec::new(), 0);
        let read = |offset: u64, piece: &mut [u8]| -> Result<(), Error> {
            piece.copy_from_slice(&source[offset as usize..][..piece.len()]);
            Ok(())
        };
        let report = transcoder.run(read, |piece| {
            out.extend_from_slice(piece.bytes);
            consumed += piece.consumed;
            Ok::<(), Error>(())
        });
        (out, report.unwrap(), consumed)
    }

    fn at_once(dtype: Dtype, values: &[f32], row_len: usize) -> Vec<u8> {
        let rows = values.len() / row_len;
        let mut out = vec![0; dtype.byte_len_of_rows(row_len as u64, rows as u64).unwrap() as usize];
        Quantizer::new(dtype).unwrap().quantize(values, row_len, &mut out).unwrap();
        out
    }

    #[test]
    fn pieces_give_the_bytes_of_the_whole() {
        // More than a piece, and the last one short.
        let (rows, columns) = (1100, 256);
        let values = numbers(rows * columns);
        let source = bytes_of(&values);
        for dtype in [Dtype::Q8_0, Dtype::Q4_0, Dtype::F16, Dtype::AprQ4, Dtype::AprQ8] {
            let shape = [rows as u64, columns as u64];
            let mut transcoder = Transcoder::new(Dtype::F32, dtype, &shape).unwrap().sample(Sample::Whole);
            let (blocks, report, consumed) = made(&mut transcoder, &source);
            assert_eq!(blocks.len() as u64, transcoder.byte_len().unwrap());
            assert!(blocks == at_once(dtype, &values, columns), "{dtype}");
            assert_eq!(consumed, source.len() as u64);
            assert_eq!(report.unwrap().count, values.len() as u64);
            // And back.
            let mut back = Transcoder::new(dtype, Dtype::F32, &shape).unwrap();
            let (again, _, consumed) = made(&mut back, &blocks);
            let mut decoded = vec![0.0; values.len()];
            dequantize(dtype, &blocks, &mut decoded).unwrap();
            assert!(again == bytes_of(&decoded), "{dtype}");
            assert_eq!(consumed, blocks.len() as u64, "{dtype}");
        }
    }

    #[test]
    fn own_formats_take_rows_of_any_length() {
        let values = numbers(7 * 45);
        let source = bytes_of(&values);
        for dtype in [Dtype::AprQ4, Dtype::AprQ8] {
            let mut transcoder = Transcoder::new(Dtype::F32, dtype, &[7, 45]).unwrap();
            let (blocks, _, _) = made(&mut transcoder, &source);
            assert!(blocks == at_once(dtype, &values, values.len()), "{dtype}");
        }
    }

    #[test]
    fn four_bits_change_their_layout_and_no_number() {
        // More than is copied at once.
        let (rows, columns) = (2_500, 512);
        let count = rows * columns;
        let own = at_once(Dtype::AprQ4, &numbers(count), count);
        assert!(own.len() as u64 > COPY / 2 && COPY.is_multiple_of(18));
        let own: Vec<u8> = [&own[..], &own[..]].concat();
        let shape = [2 * rows as u64, columns as u64];
        let mut there = Transcoder::new(Dtype::AprQ4, Dtype::Q4_0, &shape).unwrap();
        let (blocks, report, consumed) = made(&mut there, &own);
        assert!(report.is_none() && consumed == own.len() as u64 && blocks != own);
        let (mut before, mut after) = (vec![0.0; 2 * count], vec![0.0; 2 * count]);
        dequantize(Dtype::AprQ4, &own, &mut before).unwrap();
        dequantize(Dtype::Q4_0, &blocks, &mut after).unwrap();
        assert!(before == after);
        let mut back = Transcoder::new(Dtype::Q4_0, Dtype::AprQ4, &shape).unwrap();
        assert!(made(&mut back, &blocks).0 == own);
        // Blocks that cross rows do not exist in the other layout.
        assert!(Transcoder::new(Dtype::AprQ4, Dtype::Q4_0, &[3, 33]).is_err());
    }

    #[test]
    fn every_matrix_of_a_stack_has_its_weights() {
        let (matrices, rows, columns) = (3_usize, 5_usize, 256_usize);
        let values = numbers(matrices * rows * columns);
        let weights: Vec<f32> = numbers(matrices * columns).iter().map(|value| value.abs()).collect();
        let shape = [matrices as u64, rows as u64, columns as u64];
        let transcoder = Transcoder::new(Dtype::F32, Dtype::Q4_K, &shape).unwrap();
        let (blocks, _, _) = made(&mut transcoder.importance(&weights).unwrap(), &bytes_of(&values));
        let mut expected = Vec::new();
        for (values, weights) in values.chunks(rows * columns).zip(weights.chunks(columns)) {
            let mut out = vec![0; rows * 144];
            let quantizer = Quantizer::new(Dtype::Q4_K).unwrap().importance(weights);
            quantizer.quantize(values, columns, &mut out).unwrap();
            expected.extend(out);
        }
        assert!(blocks == expected);
        let transcoder = Transcoder::new(Dtype::F32, Dtype::Q4_K, &shape).unwrap();
        assert_eq!(transcoder.importance(&weights[1..]).unwrap_err().code(), "cv-importance-length");
    }

    #[test]
    fn elements_are_counted_from_the_start_of_the_tensor() {
        let (place, small) = (PIECE as usize + 37, 1e-45);
        let element = place as u64;
        for (dtype, number, fill, expected) in [
            (Dtype::Q8_0, f32::NAN, 0.5, QuantErrorKind::NonFinite { element }),
            (Dtype::AprQ8, f32::NAN, 0.5, QuantErrorKind::NonFinite { element }),
            (Dtype::Bf16, f32::NAN, 0.5, QuantErrorKind::NonFinite { element }),
            (Dtype::Bf16, f32::MAX, 0.5, QuantErrorKind::ScaleTooLarge { dtype: Dtype::Bf16, element }),
            (Dtype::AprQ8, -f32::MAX, 0.5, QuantErrorKind::ScaleTooLarge { dtype: Dtype::AprQ8, element }),
            (Dtype::AprQ8, -small, 0.0, QuantErrorKind::ScaleTooSmall { dtype: Dtype::AprQ8, element }),
            (Dtype::IQ4_NL, 0.25, 0.0, QuantErrorKind::ImportanceZero { dtype: Dtype::IQ4_NL, element }),
        ] {
            let mut values = vec![fill; 2 * PIECE as usize];
            values[place] = number;
            let source = bytes_of(&values);
            let weights = [0.0; 64];
            let mut transcoder = Transcoder::new(Dtype::F32, dtype, &[PIECE / 32, 64]).unwrap();
            if dtype == Dtype::IQ4_NL {
                transcoder = transcoder.importance(&weights).unwrap();
            }
            let read = |offset: u64, piece: &mut [u8]| -> Result<(), Error> {
                piece.copy_from_slice(&source[offset as usize..][..piece.len()]);
                Ok(())
            };
            let error = transcoder.run(read, |_| Ok::<(), Error>(())).unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::Quant(expected.into()), "{dtype}");
        }
    }

    #[test]
    fn equal_formats_are_copied_and_empty_tensors_are_nothing() {
        let source: Vec<u8> = (0..(3 << 20) + 5).map(|idx| idx as u8).collect();
        let shape = [source.len() as u64];
        let mut transcoder = Transcoder::new(Dtype::I8, Dtype::I8, &shape).unwrap();
        let (copy, report, consumed) = made(&mut transcoder, &source);
        assert!(copy == source && report.is_none() && consumed == source.len() as u64);
        for to in [Dtype::AprQ8, Dtype::Q8_0] {
            let mut nothing = Transcoder::new(Dtype::F32, to, &[0, 32]).unwrap();
            assert_eq!(made(&mut nothing, &[]).0.len(), 0);
        }
        assert!(Transcoder::new(Dtype::F32, Dtype::Q8_0, &[2, 33]).is_err());
        assert!(Transcoder::new(Dtype::F32, Dtype::IQ1_S, &[2, 256]).is_err());
        assert!(Transcoder::new(Dtype::F32, Dtype::F16, &[u64::MAX, 2]).is_err());
    }

    #[test]
    fn an_estimate_is_near() {
        let values = numbers(40 * PIECE as usize);
        let source = bytes_of(&values);
        let read = |offset: u64, piece: &mut [u8]| -> Result<(), Error> {
            piece.copy_from_slice(&source[offset as usize..][..piece.len()]);
            Ok(())
        };
        let shape = [40, PIECE];
        let mut transcoder = Transcoder::new(Dtype::F32, Dtype::Q4_0, &shape).unwrap();
        let estimate = transcoder.estimate(read).unwrap().unwrap();
        let (_, report, _) = made(&mut transcoder.clone(), &source);
        assert_eq!(estimate, report.unwrap());
        let (_, whole, _) = made(&mut transcoder.sample(Sample::Whole), &source);
        let whole = whole.unwrap();
        assert_eq!((estimate.count, whole.count), (14 * PIECE, 40 * PIECE));
        assert!((estimate.relative_rmse() / whole.relative_rmse() - 1.0).abs() < 0.01);
    }
}
