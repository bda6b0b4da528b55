//! zstd through the reference library.

use alloc::vec;
use alloc::vec::Vec;

use zstd::stream::raw::{DParameter, Decoder, Encoder, InBuffer, Operation, OutBuffer};

use super::{Bound, WINDOW_LOG_MAX};
use crate::codec::{Sink, Source};
use crate::error::{Error, ErrorKind};

/// Preferred input length of the library: one block.
const BUFFER_LEN: usize = 128 << 10;

fn failed(reason: &'static str) -> Error {
    ErrorKind::Decompression { algorithm: "zstd", reason }.into()
}

/// The error of an encoder that cannot be created or cannot continue; with valid parameters, the only cause is memory.
fn no_memory(_: std::io::Error) -> Error {
    ErrorKind::OutOfMemory { bytes: BUFFER_LEN as u64 }.into()
}

pub(super) fn compress(
    level: i32,
    len: u64,
    out: &mut dyn Sink,
    write: &mut dyn FnMut(&mut dyn Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut encoder = Encoder::new(level).map_err(no_memory)?;
    encoder.set_pledged_src_size(Some(len)).map_err(no_memory)?;
    let mut sink = ZstdSink { encoder, out, buffer: vec![0; BUFFER_LEN] };
    write(&mut sink)?;
    sink.finish()
}

struct ZstdSink<'s> {
    encoder: Encoder<'static>,
    out: &'s mut dyn Sink,
    buffer: Vec<u8>,
}

impl ZstdSink<'_> {
    fn finish(mut self) -> Result<(), Error> {
        loop {
            let mut output = OutBuffer::around(self.buffer.as_mut_slice());
            let left = self.encoder.finish(&mut output, true).map_err(no_memory)?;
            self.out.put(output.as_slice())?;
            if left == 0 {
                return Ok(());
            }
        }
    }
}

impl Sink for ZstdSink<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut input = InBuffer::around(bytes);
        while input.pos() < bytes.len() {
            let mut output = OutBuffer::around(self.buffer.as_mut_slice());
            self.encoder.run(&mut input, &mut output).map_err(no_memory)?;
            self.out.put(output.as_slice())?;
        }
        Ok(())
    }
}

/// Decompressed bytes of one or several frames.
pub(super) struct ZstdSource<'s> {
    stored: &'s mut dyn Source,
    decoder: Decoder<'static>,
    bound: Bound,
    produced: u64,
    buffer: Vec<u8>,
    /// The bytes of `buffer` not yet consumed.
    ready: core::ops::Range<usize>,
    between_frames: bool,
}

impl<'s> ZstdSource<'s> {
    pub(super) fn new(stored: &'s mut dyn Source, bound: Bound) -> Result<Self, Error> {
        let mut decoder = Decoder::new().map_err(no_memory)?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(no_memory)?;
        // A small payload needs no large buffer.
        let buffer_len = usize::try_from(bound.len()).unwrap_or(BUFFER_LEN).clamp(64, BUFFER_LEN);
        let between_frames = false;
        Ok(Self {
            stored,
            decoder,
            bound,
            produced: 0,
            buffer: vec![0; buffer_len],
            ready: 0..0,
            between_frames,
        })
    }
}

impl Source for ZstdSource<'_> {
    fn fill(&mut self) -> Result<&[u8], Error> {
        while self.ready.is_empty() {
            let input = self.stored.fill()?;
            let is_end = input.is_empty();
            if is_end && self.between_frames {
                break;
            }
            let status = self
                .decoder
                .run_on_buffers(input, &mut self.buffer)
                .map_err(|_| failed("damaged, or a window over 8 MiB"))?;
            if is_end && status.bytes_written == 0 {
                return Err(failed("ends inside a frame"));
            }
            self.stored.consume(status.bytes_read);
            self.between_frames = status.remaining == 0;
            self.produced += status.bytes_written as u64;
            self.bound.check(self.produced)?;
            self.ready = 0..status.bytes_written;
        }
        Ok(self.buffer.get(self.ready.clone()).unwrap_or_default())
    }

    fn consume(&mut self, len: usize) {
        self.ready.start = (self.ready.start + len).min(self.ready.end);
    }
}
