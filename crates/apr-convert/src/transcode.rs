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
/// Most pieces of [`Sample::Few`].
const FEW: u64 = 4;
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
    /// Up to a quarter of a million elements, which shows whether a tensor is lost.
    Few,
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
            Self::Few => Some(n_pieces.div_ceil(FEW)),
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
mod tests;
