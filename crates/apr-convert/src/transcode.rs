//! Converts the values of one tensor to another type, in pieces.

use apr_quant::{
    Dtype, ErrorKind as QuantErrorKind, ErrorMeter, ErrorReport, Quantizer, Repack, dequantize, pipelined,
    repack,
};

use crate::error::{Error, ErrorKind};

/// Elements of a piece: a whole number of blocks of every format, and in the cache of a core with what becomes of them.
const PIECE: u64 = 1 << 16;
/// Most pieces that are measured: four million elements.
const MEASURED: u64 = 64;
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
            Self::Spread => Some(n_pieces.div_ceil(MEASURED)),
            Self::Whole => Some(1),
            Self::Nothing => None,
        }
    }
}

/// Turns one tensor into another format: the calling thread writes, and reads unless threads can, while those of the pool that calls quantize. Whatever the
/// tensor's size, six pieces of half a mebibyte for each of up to eight threads are in memory, of more threads three; with weights of columns, rows.
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
}

/// A piece in its stages.
#[derive(Debug, Default)]
struct Buffers {
    begin: u64,
    len: u64,
    /// Bytes of the old tensor.
    consumed: u64,
    source: Vec<u8>,
    values: Vec<f32>,
    blocks: Vec<u8>,
    meter: ErrorMeter,
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
        })
    }

    /// Weighs errors: one weight per column, for each matrix of a stack. `AprQ4` and `AprQ8` have no weights.
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
        // Blocks of `.apr` files are not by rows, and nothing weighs their errors.
        self.weights = Some(weights).filter(|_| !matches!(self.to, Dtype::AprQ4 | Dtype::AprQ8));
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
        &self,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
        mut write: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<Option<ErrorReport>, E> {
        if let Some(change) = self.exact() {
            self.copy(change, &mut read, &mut write)?;
            return Ok(None);
        }
        let whole = self.whole(&mut read)?;
        let load = |idx, piece: &mut Buffers| self.load(idx, piece, &mut read);
        let make = |idx: u64, piece: &mut Buffers| self.make(piece, whole, self.is_measured(idx));
        self.process(whole, load, make, write)
    }

    /// As [`run`](Self::run), with pieces that are read where they are quantized, by the threads of the pool.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn run_shared<E: From<Error> + Send>(
        &self,
        read: impl Fn(u64, &mut [u8]) -> Result<(), E> + Sync,
        mut write: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<Option<ErrorReport>, E> {
        if let Some(change) = self.exact() {
            self.copy(change, &mut &read, &mut write)?;
            return Ok(None);
        }
        let whole = self.whole(&mut &read)?;
        let make = |idx: u64, piece: &mut Buffers| -> Result<(), E> {
            self.load(idx, piece, &mut &read)?;
            Ok(self.make(piece, whole, self.is_measured(idx))?)
        };
        self.process(whole, |_, _| Ok(()), make, write)
    }

    /// Passes all pieces through [`pipelined`].
    fn process<E: From<M>, M: Send>(
        &self,
        whole: Whole,
        load: impl FnMut(u64, &mut Buffers) -> Result<(), E>,
        make: impl Fn(u64, &mut Buffers) -> Result<(), M> + Sync,
        mut write: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<Option<ErrorReport>, E> {
        if self.to == Dtype::AprQ8 && self.count > 0 {
            write(Piece { bytes: &whole.scale, consumed: 0 })?;
        }
        let mut meter = ErrorMeter::new();
        pipelined(self.n_pieces(), load, make, |_, piece| {
            meter.append(&piece.meter);
            write(Piece { bytes: self.new_bytes(piece), consumed: piece.consumed })
        })?;
        Ok(self.sample.stride(self.n_pieces()).map(|_| meter.report()))
    }

    /// Whether the report has that piece.
    fn is_measured(&self, idx: u64) -> bool {
        self.sample.stride(self.n_pieces()).is_some_and(|stride| idx.is_multiple_of(stride))
    }

    /// The report of [`run`](Self::run), from the part of the tensor that [`Sample`] selects; none for a copy.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), as far as the sample shows them.
    pub fn estimate<E: From<Error>>(
        &self,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Option<ErrorReport>, E> {
        let stride = self.sample.stride(self.n_pieces());
        let Some(stride) = stride.filter(|_| self.exact().is_none()) else { return Ok(None) };
        let whole = self.whole(&mut read)?;
        let mut meter = ErrorMeter::new();
        let load = |idx, piece: &mut Buffers| self.load(idx * stride, piece, &mut read);
        let make = |_, piece: &mut Buffers| self.make(piece, whole, true);
        pipelined(self.n_pieces().div_ceil(stride.max(1)), load, make, |_, piece| {
            meter.append(&piece.meter);
            Ok(())
        })?;
        Ok(Some(meter.report()))
    }

    /// How the bytes change if no number does.
    fn exact(&self) -> Option<Repack> {
        if self.from == self.to { Some(|_| ()) } else { repack(self.from, self.to) }
    }

    fn copy<E: From<Error>>(
        &self,
        change: Repack,
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
        write: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let total = self.byte_len()?;
        let mut bytes = Vec::new();
        let mut begin = 0;
        while begin < total {
            let len = COPY.min(total - begin);
            bytes.resize(len as usize, 0);
            read(begin, &mut bytes)?;
            change(&mut bytes);
            write(Piece { bytes: &bytes, consumed: len })?;
            begin += len;
        }
        Ok(())
    }

    /// Elements of a matrix, which pieces do not cross with weights; else those of the tensor.
    const fn matrix_len(&self) -> u64 {
        if self.weights.is_some() { self.matrix_rows * self.columns } else { self.count }
    }

    /// Elements of a piece but the last one of a matrix: blocks run through the tensor, but weights belong to whole rows.
    const fn piece_len(&self) -> u64 {
        if self.weights.is_none() || self.columns == 0 {
            return PIECE;
        }
        let rows = PIECE / self.columns;
        self.columns * if rows == 0 { 1 } else { rows }
    }

    /// Pieces of a matrix.
    const fn n_pieces_of_matrix(&self) -> u64 {
        self.matrix_len().div_ceil(self.piece_len())
    }

    /// Pieces of the tensor.
    const fn n_pieces(&self) -> u64 {
        match self.count.checked_div(self.matrix_len()) {
            Some(matrices) => matrices * self.n_pieces_of_matrix(),
            None => 0,
        }
    }

    /// First element and number of elements of a piece.
    fn piece(&self, idx: u64) -> (u64, u64) {
        let (matrix, place) = (idx / self.n_pieces_of_matrix(), idx % self.n_pieces_of_matrix());
        let begin = place * self.piece_len();
        (matrix * self.matrix_len() + begin, self.piece_len().min(self.matrix_len() - begin))
    }

    /// The scale of `AprQ8` from all pieces; the default for other types.
    fn whole<E: From<Error>>(
        &self,
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Whole, E> {
        if self.to != Dtype::AprQ8 {
            return Ok(Whole::default());
        }
        let (mut largest, mut place) = (0.0, 0);
        let mut piece = Buffers::default();
        for idx in 0..self.n_pieces() {
            self.load(idx, &mut piece, read)?;
            self.decode(&mut piece)?;
            for (idx, value) in piece.values.iter().enumerate() {
                let element = piece.begin + idx as u64;
                if !value.is_finite() {
                    let error = apr_quant::Error::from(QuantErrorKind::NonFinite { element });
                    return Err(Error::from(error).into());
                }
                if value.abs() > largest {
                    (largest, place) = (value.abs(), element);
                }
            }
        }
        // Alone it has the scale of the whole tensor, or none.
        let mut block = [0; SCALE + 1];
        let made =
            Quantizer::new(self.to).and_then(|quantizer| quantizer.quantize(&[largest], 1, &mut block));
        made.map_err(|error| Error::from(error.offset_elements(place)))?;
        let [scale @ .., _] = block;
        Ok(Whole { largest, scale })
    }

    /// Reads a piece.
    fn load<E: From<Error>>(
        &self,
        idx: u64,
        piece: &mut Buffers,
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let of = |count: u64| apr_quant::byte_len(self.from, count, 1).map_err(Error::from);
        let (begin, len) = self.piece(idx);
        // `AprQ8` begins with its scale, which every piece needs in front.
        let head = if self.from == Dtype::AprQ8 { SCALE } else { 0 };
        let (offset, bytes) = match head {
            0 => (of(begin)?, of(len)?),
            _ => (begin + SCALE as u64, len),
        };
        let source = &mut piece.source;
        source.resize(head + bytes as usize, 0);
        if head > 0 {
            read(0, &mut source[..head])?;
        }
        read(offset, &mut source[head..])?;
        let with_scale = if begin == 0 { head as u64 } else { 0 };
        (piece.begin, piece.len, piece.consumed) = (begin, len, bytes + with_scale);
        Ok(())
    }

    /// Decodes, quantizes and, if that is asked for, measures a piece.
    fn make(&self, piece: &mut Buffers, whole: Whole, is_measured: bool) -> Result<(), Error> {
        self.decode(piece)?;
        self.encode(piece, whole)?;
        piece.meter = ErrorMeter::new();
        if is_measured {
            let values = piece.values.get(..piece.len as usize).unwrap_or_default();
            piece.meter.add_blocks(self.to, values, &piece.blocks)?;
        }
        Ok(())
    }

    fn decode(&self, piece: &mut Buffers) -> Result<(), Error> {
        piece.values.resize(piece.len as usize, 0.0);
        Ok(dequantize(self.from, &piece.source, &mut piece.values)?)
    }

    /// Quantizes the decoded values.
    fn encode(&self, piece: &mut Buffers, whole: Whole) -> Result<(), Error> {
        let mut quantizer = Quantizer::new(self.to)?;
        let Buffers { begin, len, values, blocks, .. } = piece;
        let row_len = match self.weights {
            Some(weights) => {
                // Their number fits memory as their weights do.
                let matrix = (*begin / self.matrix_len()) as usize;
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
        let made = quantizer.quantize(values, row_len, blocks);
        values.truncate(*len as usize);
        if self.to == Dtype::AprQ8 {
            blocks.truncate(SCALE + *len as usize);
        }
        Ok(made.map_err(|error| error.offset_elements(*begin))?)
    }

    /// The blocks of a piece, without those written before.
    fn new_bytes<'p>(&self, piece: &'p Buffers) -> &'p [u8] {
        let head = if self.to == Dtype::AprQ8 { SCALE } else { 0 };
        piece.blocks.get(head..).unwrap_or_default()
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

    fn made(transcoder: &Transcoder<'_>, source: &[u8]) -> (Vec<u8>, Option<ErrorReport>, u64) {
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
        let mut again = Vec::new();
        let shared = transcoder.run_shared(read, |piece| {
            again.extend_from_slice(piece.bytes);
            Ok::<(), Error>(())
        });
        let report = report.unwrap();
        assert!(again == out && shared.unwrap() == report);
        (out, report, consumed)
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
            let transcoder = Transcoder::new(Dtype::F32, dtype, &shape).unwrap().sample(Sample::Whole);
            let (blocks, report, consumed) = made(&transcoder, &source);
            assert_eq!(blocks.len() as u64, transcoder.byte_len().unwrap());
            assert!(blocks == at_once(dtype, &values, columns), "{dtype}");
            assert_eq!(consumed, source.len() as u64);
            assert_eq!(report.unwrap().count, values.len() as u64);
            // And back.
            let back = Transcoder::new(dtype, Dtype::F32, &shape).unwrap();
            let (again, _, consumed) = made(&back, &blocks);
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
            let transcoder = Transcoder::new(Dtype::F32, dtype, &[7, 45]).unwrap();
            let (blocks, _, _) = made(&transcoder, &source);
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
        let there = Transcoder::new(Dtype::AprQ4, Dtype::Q4_0, &shape).unwrap();
        let (blocks, report, consumed) = made(&there, &own);
        assert!(report.is_none() && consumed == own.len() as u64 && blocks != own);
        let (mut before, mut after) = (vec![0.0; 2 * count], vec![0.0; 2 * count]);
        dequantize(Dtype::AprQ4, &own, &mut before).unwrap();
        dequantize(Dtype::Q4_0, &blocks, &mut after).unwrap();
        assert!(before == after);
        let back = Transcoder::new(Dtype::Q4_0, Dtype::AprQ4, &shape).unwrap();
        assert!(made(&back, &blocks).0 == own);
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
        let (blocks, _, _) = made(&transcoder.importance(&weights).unwrap(), &bytes_of(&values));
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
        let transcoder = Transcoder::new(Dtype::I8, Dtype::I8, &shape).unwrap();
        let (copy, report, consumed) = made(&transcoder, &source);
        assert!(copy == source && report.is_none() && consumed == source.len() as u64);
        for to in [Dtype::AprQ8, Dtype::Q8_0] {
            let nothing = Transcoder::new(Dtype::F32, to, &[0, 32]).unwrap();
            assert_eq!(made(&nothing, &[]).0.len(), 0);
        }
        assert!(Transcoder::new(Dtype::F32, Dtype::Q8_0, &[2, 33]).is_err());
        assert!(Transcoder::new(Dtype::F32, Dtype::IQ1_S, &[2, 256]).is_err());
        assert!(Transcoder::new(Dtype::F32, Dtype::F16, &[u64::MAX, 2]).is_err());
    }

    #[test]
    fn types_of_apr_files_have_no_weights() {
        // Several pieces, and rows that are no whole blocks.
        let (rows, columns) = (3000, 33);
        let source = bytes_of(&numbers(rows * columns));
        let weights: Vec<f32> = (0..columns).map(|idx| 1.0 + idx as f32).collect();
        for dtype in [Dtype::AprQ4, Dtype::AprQ8] {
            let plain = Transcoder::new(Dtype::F32, dtype, &[rows as u64, columns as u64]).unwrap();
            let weighed = plain.clone().importance(&weights).unwrap();
            assert!(made(&plain, &source).0 == made(&weighed, &source).0, "{dtype}");
        }
    }

    #[test]
    fn an_estimate_is_near() {
        let values = numbers(160 * PIECE as usize);
        let source = bytes_of(&values);
        let read = |offset: u64, piece: &mut [u8]| -> Result<(), Error> {
            piece.copy_from_slice(&source[offset as usize..][..piece.len()]);
            Ok(())
        };
        let shape = [160, PIECE];
        let transcoder = Transcoder::new(Dtype::F32, Dtype::Q4_0, &shape).unwrap();
        let estimate = transcoder.estimate(read).unwrap().unwrap();
        let (_, report, _) = made(&transcoder.clone(), &source);
        assert_eq!(estimate, report.unwrap());
        let (_, whole, _) = made(&transcoder.sample(Sample::Whole), &source);
        let whole = whole.unwrap();
        assert_eq!((estimate.count, whole.count), (54 * PIECE, 160 * PIECE));
        assert!((estimate.relative_rmse() / whole.relative_rmse() - 1.0).abs() < 0.01);
    }
}
