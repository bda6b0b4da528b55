//! zstd without C.

use alloc::vec;
use alloc::vec::Vec;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use ruzstd::io::Read as _;

use super::{Bound, WINDOW_LOG_MAX};
use crate::codec::{Sink, Source};
use crate::error::{Error, ErrorKind};

const BUFFER_LEN: usize = 128 << 10;

fn failed(reason: &'static str) -> Error {
    ErrorKind::Decompression { algorithm: "zstd", reason }.into()
}

/// The encoder has one useful level; files record the requested level.
pub(super) fn compress(
    _level: i32,
    _len: u64,
    out: &mut dyn Sink,
    write: &mut dyn FnMut(&mut dyn Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut plain = Vec::new();
    write(&mut plain)?;
    out.put(&compress_to_vec(plain.as_slice(), CompressionLevel::Fastest))
}

/// Decompressed bytes of one or several frames.
pub(super) struct ZstdSource<'s> {
    stored: &'s [u8],
    decoder: FrameDecoder,
    bound: Bound,
    produced: u64,
    buffer: Vec<u8>,
    /// The bytes of `buffer` not yet consumed.
    ready: core::ops::Range<usize>,
    in_frame: bool,
}

impl<'s> ZstdSource<'s> {
    pub(super) fn new(stored: &'s [u8], bound: Bound) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(1 << WINDOW_LOG_MAX);
        let buffer_len = usize::try_from(bound.len()).unwrap_or(BUFFER_LEN).clamp(64, BUFFER_LEN);
        Self {
            stored,
            decoder,
            bound,
            produced: 0,
            buffer: vec![0; buffer_len],
            ready: 0..0,
            in_frame: false,
        }
    }
}

impl Source for ZstdSource<'_> {
    fn fill(&mut self) -> Result<&[u8], Error> {
        while self.ready.is_empty() {
            if !self.in_frame {
                if self.stored.is_empty() && self.produced > 0 {
                    break;
                }
                self.decoder
                    .reset(&mut self.stored)
                    .map_err(|_| failed("damaged, or a window over 8 MiB"))?;
                self.in_frame = true;
            }
            if !self.decoder.is_finished() {
                let strategy = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.stored, strategy).map_err(|_| failed("damaged"))?;
            }
            let read = self.decoder.read(&mut self.buffer).map_err(|_| failed("damaged"))?;
            if read == 0 && self.decoder.is_finished() {
                self.in_frame = false;
                if self.stored.is_empty() {
                    break;
                }
            }
            self.produced += read as u64;
            self.bound.check(self.produced)?;
            self.ready = 0..read;
        }
        Ok(self.buffer.get(self.ready.clone()).unwrap_or_default())
    }

    fn consume(&mut self, len: usize) {
        self.ready.start = (self.ready.start + len).min(self.ready.end);
    }
}
