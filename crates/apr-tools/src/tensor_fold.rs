//! What is accumulated over the values of tensors: on all cores, while the next bytes are read.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use apr_quant::{Dtype, dequantize};
use model_file::{Histogram, Scan};

use crate::error::Failure;
use crate::input::{Tensor, decodable};
use crate::terminal::Console;

/// Bytes read at once, about: the cache of a core holds them.
const CHUNK: u64 = 512 << 10;
/// Chunks that wait for each worker.
const AHEAD: usize = 3;

/// Something that is collected from the values of a tensor, in any order.
pub(crate) trait Accumulate: Send {
    /// Adds whole values of plain elements.
    fn add(&mut self, dtype: Dtype, bytes: &[u8]);

    /// Adds what another one of the same tensor has collected.
    fn merge(&mut self, other: &Self);
}

impl Accumulate for Scan {
    fn add(&mut self, _: Dtype, bytes: &[u8]) {
        self.add(bytes);
    }

    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }
}

impl Accumulate for Histogram {
    fn add(&mut self, dtype: Dtype, bytes: &[u8]) {
        self.add(dtype, bytes);
    }

    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }
}

/// How the values of a tensor are read.
#[derive(Clone, Copy)]
enum Reading {
    /// As plain elements of this type.
    Plain(Dtype),
    /// As blocks of this type, which a worker decodes.
    Blocks(Dtype),
}

impl Reading {
    /// `None` for types whose values are not known.
    fn of(tensor: Tensor<'_>) -> Option<(Tensor<'_>, Self)> {
        tensor.check_order().ok()?;
        if let Some(dtype) = tensor.dtype().element() {
            return Some((tensor, Self::Plain(dtype)));
        }
        let dtype = decodable(tensor.dtype())?;
        let (len, bytes) = (dtype.block_len() as u64, dtype.block_bytes() as u64);
        let is_whole = bytes > 0
            && tensor.byte_len() % bytes == 0
            && tensor.byte_len() / bytes * len == tensor.elements();
        if is_whole && !matches!(dtype, Dtype::AprQ4 | Dtype::AprQ8) {
            return Some((tensor, Self::Blocks(dtype)));
        }
        let plain = tensor.dequantized(Dtype::F32).ok()?;
        Some((plain, Self::Plain(Dtype::F32)))
    }

    /// The type of the values that are added.
    const fn dtype(self) -> Dtype {
        match self {
            Self::Plain(dtype) => dtype,
            Self::Blocks(_) => Dtype::F32,
        }
    }

    const fn unit(self) -> u64 {
        match self {
            Self::Plain(dtype) | Self::Blocks(dtype) => dtype.block_bytes() as u64,
        }
    }
}

/// Bytes of a tensor on their way to a worker.
struct Piece {
    tensor_idx: usize,
    reading: Reading,
    bytes: Vec<u8>,
}

/// Collects something from the values of each tensor; `None` for types whose values are not known, and where `start` wants nothing.
///
/// # Errors
///
/// If a tensor cannot be read.
pub(crate) fn fold<A: Accumulate>(
    tensors: &[Tensor<'_>],
    label: &'static str,
    console: &Console,
    start: impl Fn(usize, Dtype) -> Option<A> + Sync,
) -> Result<Vec<Option<A>>, Failure> {
    let mut progress = console.progress(label, tensors.iter().map(|tensor| tensor.byte_len()).sum());
    let mut found: Vec<Option<A>> = Vec::new();
    let mut readings = Vec::new();
    for (idx, &tensor) in tensors.iter().enumerate() {
        let reading = Reading::of(tensor);
        let accumulator = reading.and_then(|(_, reading)| start(idx, reading.dtype()));
        readings.push(reading.filter(|_| accumulator.is_some()));
        found.push(accumulator);
    }
    // This thread reads.
    let n_workers = thread::available_parallelism().map_or(1, |n| n.get().saturating_sub(1)).clamp(1, 16);
    let (pieces, waiting) = sync_channel::<Piece>(AHEAD * n_workers);
    let (spent, spare) = channel::<Vec<u8>>();
    let waiting = Mutex::new(waiting);
    let partial = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..n_workers).map(|_| scope.spawn(|| work(&waiting, &spent, &start))).collect();
        let read = readings.iter().enumerate().try_for_each(|(idx, reading)| {
            let Some((tensor, reading)) = reading else { return Ok(()) };
            progress.item(tensor.name());
            read_pieces((idx, tensor, *reading), &pieces, &spare, |len| progress.advance(len))
        });
        drop(pieces);
        let parts: Vec<_> =
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect();
        read.map(|()| parts)
    })?;
    for (idx, part) in partial {
        if let Some(whole) = found.get_mut(idx).and_then(Option::as_mut) {
            whole.merge(&part);
        }
    }
    Ok(found)
}

fn read_pieces(
    (tensor_idx, tensor, reading): (usize, &Tensor<'_>, Reading),
    pieces: &SyncSender<Piece>,
    spare: &Receiver<Vec<u8>>,
    mut advance: impl FnMut(usize),
) -> Result<(), Failure> {
    let step = CHUNK - CHUNK % reading.unit();
    let mut offset = 0;
    while offset < tensor.byte_len() {
        let len = step.min(tensor.byte_len() - offset);
        let mut bytes = spare.try_recv().unwrap_or_default();
        // At most CHUNK, which fits any usize.
        bytes.resize(len as usize, 0);
        tensor.read(offset, &mut bytes)?;
        advance(bytes.len());
        offset += len;
        // Workers end after this channel only.
        let _ = pieces.send(Piece { tensor_idx, reading, bytes });
    }
    Ok(())
}

/// What one worker collects, by tensor.
fn work<A: Accumulate>(
    waiting: &Mutex<Receiver<Piece>>,
    spent: &Sender<Vec<u8>>,
    start: &(impl Fn(usize, Dtype) -> Option<A> + Sync),
) -> Vec<(usize, A)> {
    let mut collected: Vec<(usize, A)> = Vec::new();
    let mut decoded = Vec::new();
    let mut bytes_of = Vec::new();
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Piece { tensor_idx, reading, bytes }) = next else { return collected };
        // Pieces come in the order of the tensors.
        if collected.last().is_none_or(|&(idx, _)| idx != tensor_idx) {
            collected.extend(start(tensor_idx, reading.dtype()).map(|fresh| (tensor_idx, fresh)));
        }
        if let Some((_, accumulator)) = collected.last_mut() {
            match reading {
                Reading::Plain(dtype) => accumulator.add(dtype, &bytes),
                Reading::Blocks(dtype) => {
                    decoded.resize(bytes.len() / dtype.block_bytes() * dtype.block_len(), 0.0);
                    // Whole blocks of a type that is decoded.
                    if dequantize(dtype, &bytes, &mut decoded).is_ok() {
                        bytes_of.clear();
                        bytes_of.extend(decoded.iter().flat_map(|value: &f32| value.to_le_bytes()));
                        accumulator.add(Dtype::F32, &bytes_of);
                    }
                }
            }
        }
        // The reader may have ended.
        let _ = spent.send(bytes);
    }
}
