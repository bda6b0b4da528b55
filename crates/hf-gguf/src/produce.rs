//! Makes the values of outputs from ranges of the files, in pieces: memory does not grow with the model.

mod gather;
mod load;
mod numbers;

use alloc::vec::Vec;

use apr_quant::{Dtype, NonFinite, Quantizer};
use located_error::Subject;

use self::gather::Gatherer;
use crate::error::Error;
use crate::tensors::input::Input;
use crate::tensors::output::{Content, Output, Shift};
use crate::tensors::view::View;

/// Elements of a piece: a whole number of blocks of every type, and in the cache of a core with what becomes of them.
const PIECE: u64 = 1 << 16;

/// Values that the type of a tensor does not have. The reference implementation does not mention them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flaws {
    /// Finite values that are infinite in the new file.
    pub overflowed: u64,
    /// Values that are infinite or not a number in the folder.
    pub not_finite: u64,
}

/// Makes the values of outputs.
#[derive(Debug, Default)]
pub struct Producer {
    gatherer: Gatherer,
    flaws: Flaws,
    /// Of [`read`](Self::read).
    piece: Piece,
}

/// A piece of an output: what was read for it, and what became of that.
#[derive(Debug, Default)]
struct Piece {
    begin: u64,
    len: u64,
    raw: Vec<u8>,
    /// Where in `raw` the tensors that are stacked are; most have one.
    parts: Vec<Part>,
    values: Vec<f32>,
    out: Vec<u8>,
    flaws: Flaws,
}

/// What a piece has of an input.
#[derive(Debug)]
struct Part {
    input: usize,
    /// First byte in `raw`, and the one after the last.
    raw: (usize, usize),
    /// Elements of the piece before it, and its own.
    done: u64,
    count: u64,
}

impl Producer {
    /// With empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was found in the outputs so far.
    #[must_use]
    pub const fn flaws(&self) -> Flaws {
        self.flaws
    }

    /// Makes an output. `read` fills a buffer with the bytes of a tensor of the files from an offset on, `write` takes the new
    /// bytes with the number of elements that they are. Both are called on this thread; with the feature `rayon`, numbers are converted on the
    /// threads of the current pool at the same time.
    ///
    /// # Errors
    ///
    /// Those of `read` and `write`; [`ErrorKind::Quant`](crate::ErrorKind::Quant) for values that blocks cannot hold;
    /// [`ErrorKind::QuantizedShape`](crate::ErrorKind::QuantizedShape) for quantized tensors that contradict themselves.
    pub fn run<E: From<Error>>(
        &mut self,
        output: &Output,
        inputs: &[Input],
        mut read: impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
        mut write: impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { gatherer, flaws, .. } = self;
        let count = output.count();
        let load = |number: u64, piece: &mut Piece| {
            let begin = number * PIECE;
            piece.load(output, inputs, (begin, PIECE.min(count - begin)), gatherer, &mut read)
        };
        let make = |_, piece: &mut Piece| piece.make(output, inputs);
        let take = |_, piece: &mut Piece| {
            flaws.add(piece.flaws);
            write(&piece.out, piece.len)
        };
        in_order(count.div_ceil(PIECE), load, make, take)
    }

    /// As [`run`](Self::run), for an output with [sources](Output::sources): they are read where numbers are converted, by several threads
    /// at once with the feature `rayon`.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn run_shared<E: From<Error> + Send>(
        &mut self,
        output: &Output,
        inputs: &[Input],
        read: impl Fn(usize, u64, &mut [u8]) -> Result<(), E> + Sync,
        mut write: impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let count = output.count();
        let make = |number: u64, piece: &mut Piece| -> Result<(), E> {
            let begin = number * PIECE;
            // What it keeps is for outputs in another order.
            let mut gatherer = Gatherer::default();
            piece.load(output, inputs, (begin, PIECE.min(count - begin)), &mut gatherer, &mut &read)?;
            Ok(piece.make(output, inputs)?)
        };
        let take = |_, piece: &mut Piece| {
            self.flaws.add(piece.flaws);
            write(&piece.out, piece.len)
        };
        in_order(count.div_ceil(PIECE), |_, _| Ok(()), make, take)
    }

    /// Bytes of an output from an offset on; those of blocks begin and end with blocks.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn read<E: From<Error>>(
        &mut self,
        output: &Output,
        inputs: &[Input],
        offset: u64,
        out: &mut [u8],
        mut read: impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { gatherer, flaws, piece } = self;
        let (block_len, block_bytes) = (output.dtype.block_len() as u64, output.dtype.block_bytes());
        let mut begin = offset / block_bytes as u64 * block_len;
        for out in out.chunks_mut((PIECE / block_len) as usize * block_bytes) {
            let len = (out.len() / block_bytes) as u64 * block_len;
            piece.load(output, inputs, (begin, len), gatherer, &mut read)?;
            piece.make(output, inputs)?;
            flaws.add(piece.flaws);
            out.copy_from_slice(&piece.out);
            begin += len;
        }
        Ok(())
    }
}

/// As `apr_quant::pipelined`.
#[cfg(feature = "rayon")]
use apr_quant::pipelined as in_order;

/// One stage after the other, where there are no threads.
#[cfg(not(feature = "rayon"))]
fn in_order<T: Default, M, E: From<M>>(
    count: u64,
    mut load: impl FnMut(u64, &mut T) -> Result<(), E>,
    make: impl Fn(u64, &mut T) -> Result<(), M>,
    mut take: impl FnMut(u64, &mut T) -> Result<(), E>,
) -> Result<(), E> {
    let mut piece = T::default();
    (0..count).try_for_each(|number| {
        load(number, &mut piece)?;
        make(number, &mut piece)?;
        take(number, &mut piece)
    })
}

impl Flaws {
    const fn add(&mut self, more: Self) {
        self.overflowed += more.overflowed;
        self.not_finite += more.not_finite;
    }
}

impl Piece {
    /// Reads what elements `begin..begin + len` of an output are made from.
    fn load<E: From<Error>>(
        &mut self,
        output: &Output,
        inputs: &[Input],
        (begin, len): (u64, u64),
        gatherer: &mut Gatherer,
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        (self.begin, self.len) = (begin, len);
        self.raw.clear();
        self.parts.clear();
        match &output.content {
            Content::Constant(_) => Ok(()),
            Content::Blocks { codes, scales } => {
                let block_len = Dtype::MXFP4.block_len() as u64;
                let (first, count) = (begin / block_len, len / block_len);
                self.gather(codes, inputs, (0, first * CODES as u64, count * CODES as u64), gatherer, read)?;
                self.gather(scales, inputs, (0, first, count), gatherer, read)
            }
            Content::Views { views, .. } => {
                let mut done = 0;
                let mut first = 0;
                for view in views {
                    let count = view.count();
                    let from = (begin + done).max(first);
                    if from < first + count && done < len {
                        let part = (first + count - from).min(len - done);
                        self.gather(view, inputs, (done, from - first, part), gatherer, read)?;
                        done += part;
                    }
                    first += count;
                }
                Ok(())
            }
        }
    }

    /// Reads elements of a view.
    fn gather<E: From<Error>>(
        &mut self,
        view: &View,
        inputs: &[Input],
        (done, first, count): (u64, u64, u64),
        gatherer: &mut Gatherer,
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(input) = inputs.get(view.source()) else { return Ok(()) };
        let begin = self.raw.len();
        let end = begin + count as usize * input.stored_dtype().block_bytes();
        // No more than a piece has.
        self.raw.resize(end, 0);
        gatherer.gather(view, input, first, &mut self.raw[begin..], read)?;
        self.parts.push(Part { input: view.source(), raw: (begin, end), done, count });
        Ok(())
    }

    /// Makes the elements.
    fn make(&mut self, output: &Output, inputs: &[Input]) -> Result<(), Error> {
        let (begin, len) = (self.begin as usize, self.len as usize);
        let bytes = len / output.dtype.block_len() * output.dtype.block_bytes();
        self.out.clear();
        self.out.resize(bytes, 0);
        self.flaws = Flaws::default();
        let made = match &output.content {
            Content::Constant(values) => {
                let values = values.get(begin..begin + len).unwrap_or_default();
                encode(values, output.dtype, &mut self.out).map(|flaws| self.flaws = flaws)
            }
            Content::Blocks { .. } => {
                self.blocks();
                Ok(())
            }
            Content::Views { shift, .. } => self.convert(inputs, *shift, output.dtype),
        };
        made.map_err(|error| error.of(Subject::tensor(&output.name)))
    }

    /// Blocks of MXFP4 with their codes in the order of ggml: the first half of them in the lower bits.
    fn blocks(&mut self) {
        let [codes, scales] = &self.parts[..] else { return };
        let bytes = |part: &Part| self.raw.get(part.raw.0..part.raw.1).unwrap_or_default();
        let codes = bytes(codes).as_chunks::<CODES>().0;
        let (out, _) = self.out.as_chunks_mut::<{ CODES + 1 }>();
        for ((out, codes), scale) in out.iter_mut().zip(codes).zip(bytes(scales)) {
            out[0] = *scale;
            for (idx, place) in out[1..].iter_mut().enumerate() {
                let code = |idx: usize| codes[idx / 2] >> (idx % 2 * 4) & 15;
                *place = code(idx) | code(idx + CODES) << 4;
            }
        }
    }

    /// Turns what was read into elements of the new type.
    fn convert(&mut self, inputs: &[Input], shift: Shift, to: Dtype) -> Result<(), Error> {
        let Self { raw, parts, values, out, flaws, .. } = self;
        let (block_len, block_bytes) = (to.block_len() as u64, to.block_bytes());
        for Part { input, raw: (begin, end), done, count } in parts {
            let (Some(input), Some(raw)) = (inputs.get(*input), raw.get(*begin..*end)) else { continue };
            let place = (*done / block_len) as usize * block_bytes;
            let bytes = (*count / block_len) as usize * block_bytes;
            let Some(out) = out.get_mut(place..place + bytes) else { continue };
            let from = input.stored_dtype();
            if from == to && shift == Shift::None {
                out.copy_from_slice(raw);
                flaws.add(Flaws { overflowed: 0, not_finite: numbers::not_finite(to, out) });
                numbers::quiet(to, out);
                continue;
            }
            values.clear();
            values.resize(*count as usize, 0.0);
            numbers::decode(from, raw, values)?;
            numbers::add(input.dtype(), shift, values)?;
            flaws.add(encode(values, to, out)?);
        }
        Ok(())
    }
}

/// Bytes of the codes of a block of MXFP4.
const CODES: usize = 16;

fn encode(values: &[f32], to: Dtype, out: &mut [u8]) -> Result<Flaws, Error> {
    let (overflowed, not_finite) = numbers::beyond(to, values);
    let mut quantizer = Quantizer::new(to)?;
    // Blocks of what is not finite have no bytes that the reference implementation writes everywhere.
    if !to.is_quantized() || not_finite == 0 {
        quantizer = quantizer.non_finite(NonFinite::AsReference);
    }
    quantizer.quantize(values, values.len(), out)?;
    Ok(Flaws { overflowed, not_finite })
}
