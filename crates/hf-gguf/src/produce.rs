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

/// Elements of a piece: a whole number of blocks of every type.
const PIECE: u64 = 1 << 18;

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
    raw: Vec<u8>,
    values: Vec<f32>,
    out: Vec<u8>,
    flaws: Flaws,
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
    /// bytes with the number of elements that they are.
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
        let count = output.count();
        let mut begin = 0;
        while begin < count {
            let len = PIECE.min(count - begin);
            self.piece(output, inputs, begin, len, &mut read)?;
            write(&self.out, len)?;
            begin += len;
        }
        Ok(())
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
        let (block_len, block_bytes) = (output.dtype.block_len() as u64, output.dtype.block_bytes());
        let mut begin = offset / block_bytes as u64 * block_len;
        for out in out.chunks_mut((PIECE / block_len) as usize * block_bytes) {
            let len = (out.len() / block_bytes) as u64 * block_len;
            self.piece(output, inputs, begin, len, &mut read)?;
            out.copy_from_slice(&self.out);
            begin += len;
        }
        Ok(())
    }

    /// Elements of an output, encoded.
    fn piece<E: From<Error>>(
        &mut self,
        output: &Output,
        inputs: &[Input],
        begin: u64,
        len: u64,
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.out.clear();
        let bytes = len / output.dtype.block_len() as u64 * output.dtype.block_bytes() as u64;
        // As many as a piece has.
        self.out.resize(bytes as usize, 0);
        let of_tensor = |error: Error| error.of(Subject::tensor(&output.name));
        let (views, shift) = match &output.content {
            Content::Constant(values) => {
                let values = values.get(begin as usize..(begin + len) as usize).unwrap_or_default();
                return Ok(self.encode(values.to_vec(), output.dtype).map_err(of_tensor)?);
            }
            Content::Blocks { codes, scales } => {
                return self.blocks(inputs, (codes, scales), begin, len, read);
            }
            Content::Views { views, shift } => (views, *shift),
        };
        // Tensors that are stacked may have different types; most have one.
        let mut done = 0;
        let mut first = 0;
        for view in views {
            let count = view.count();
            let from = (begin + done).max(first);
            if from < first + count && done < len {
                let part = (first + count - from).min(len - done);
                let Some(input) = inputs.get(view.source()) else { continue };
                self.raw.clear();
                self.raw.resize(part as usize * input.stored_dtype().block_bytes(), 0);
                self.gatherer.gather(view, input, from - first, &mut self.raw, read)?;
                self.convert(input, shift, output.dtype, done, part).map_err(of_tensor)?;
                done += part;
            }
            first += count;
        }
        Ok(())
    }

    /// Blocks of MXFP4 with their codes in the order of ggml: the first half of them in the lower bits.
    fn blocks<E: From<Error>>(
        &mut self,
        inputs: &[Input],
        (codes, scales): (&View, &View),
        begin: u64,
        len: u64,
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        const CODES: usize = 16;
        let block_len = Dtype::MXFP4.block_len() as u64;
        let (first, count) = (begin / block_len, len / block_len);
        let (Some(of_codes), Some(of_scales)) = (inputs.get(codes.source()), inputs.get(scales.source()))
        else {
            return Ok(());
        };
        self.raw.clear();
        self.raw.resize(count as usize * (CODES + 1), 0);
        let (raw_codes, raw_scales) = self.raw.split_at_mut(count as usize * CODES);
        self.gatherer.gather(codes, of_codes, first * CODES as u64, raw_codes, read)?;
        self.gatherer.gather(scales, of_scales, first, raw_scales, read)?;
        let (out, _) = self.out.as_chunks_mut::<{ CODES + 1 }>();
        for ((out, codes), scale) in out.iter_mut().zip(raw_codes.as_chunks::<CODES>().0).zip(&*raw_scales) {
            out[0] = *scale;
            for (idx, place) in out[1..].iter_mut().enumerate() {
                let code = |idx: usize| codes[idx / 2] >> (idx % 2 * 4) & 15;
                *place = code(idx) | code(idx + CODES) << 4;
            }
        }
        Ok(())
    }

    /// Turns `raw` into elements `done..done + count` of the piece.
    fn convert(
        &mut self,
        input: &Input,
        shift: Shift,
        to: Dtype,
        done: u64,
        count: u64,
    ) -> Result<(), Error> {
        let from = input.stored_dtype();
        let (block_len, block_bytes) = (to.block_len() as u64, to.block_bytes());
        let place = (done / block_len) as usize * block_bytes;
        if from == to && shift == Shift::None {
            if let Some(out) = self.out.get_mut(place..place + self.raw.len()) {
                out.copy_from_slice(&self.raw);
                numbers::quiet(to, out);
            }
            return Ok(());
        }
        self.values.clear();
        self.values.resize(count as usize, 0.0);
        numbers::decode(from, &self.raw, &mut self.values)?;
        numbers::add(input.dtype(), shift, &mut self.values)?;
        let mut out = core::mem::take(&mut self.out);
        let values = core::mem::take(&mut self.values);
        let bytes = (count / block_len) as usize * block_bytes;
        let encoded = match out.get_mut(place..place + bytes) {
            Some(out) => self.encode_into(&values, to, out),
            None => Ok(()),
        };
        (self.out, self.values) = (out, values);
        encoded
    }

    fn encode(&mut self, values: Vec<f32>, to: Dtype) -> Result<(), Error> {
        let mut out = core::mem::take(&mut self.out);
        let encoded = self.encode_into(&values, to, &mut out);
        self.out = out;
        encoded
    }

    fn encode_into(&mut self, values: &[f32], to: Dtype, out: &mut [u8]) -> Result<(), Error> {
        let (overflowed, not_finite) = numbers::beyond(to, values);
        self.flaws.overflowed += overflowed;
        self.flaws.not_finite += not_finite;
        let mut quantizer = Quantizer::new(to)?;
        // Blocks of what is not finite have no bytes that the reference implementation writes everywhere.
        if !to.is_quantized() || not_finite == 0 {
            quantizer = quantizer.non_finite(NonFinite::AsReference);
        }
        #[cfg(feature = "rayon")]
        quantizer.quantize_parallel(values, values.len(), out)?;
        #[cfg(not(feature = "rayon"))]
        quantizer.quantize(values, values.len(), out)?;
        Ok(())
    }
}
