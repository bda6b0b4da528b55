//! What is accumulated over the values of tensors, on all cores.

use core::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use apr_quant::{Dtype, dequantize};
use model_file::{Histogram, Scan};

use crate::error::Failure;
use crate::input::{Tensor, decodable};
use crate::terminal::Console;
use crate::threads::on_all_cores;

/// Bytes read at once, about: the cache of a core holds them.
const CHUNK: u64 = 512 << 10;
/// Bytes that one thread looks at, about, before it takes the next.
const SPAN: u64 = 64 * CHUNK;
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

/// A tensor whose values are looked at.
struct Wanted<'t> {
    tensor_idx: usize,
    tensor: Tensor<'t>,
    reading: Reading,
}

impl Wanted<'_> {
    /// Ranges of its bytes, at most `max` bytes each, of whole units.
    fn ranges(&self, max: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        ranges(0..self.tensor.byte_len(), max - max % self.reading.unit())
    }
}

fn ranges(of: Range<u64>, step: u64) -> impl Iterator<Item = Range<u64>> {
    // At most CHUNK or SPAN, which fit any usize.
    of.clone().step_by(step as usize).map(move |begin| begin..of.end.min(begin + step))
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
    let mut found: Vec<Option<A>> = Vec::new();
    let mut wanted = Vec::new();
    for (tensor_idx, &tensor) in tensors.iter().enumerate() {
        let reading = Reading::of(tensor);
        let accumulator = reading.and_then(|(_, reading)| start(tensor_idx, reading.dtype()));
        let read = reading.filter(|_| accumulator.is_some());
        wanted.extend(read.map(|(tensor, reading)| Wanted { tensor_idx, tensor, reading }));
        found.push(accumulator);
    }
    let readers: Option<Vec<_>> = wanted.iter().map(|wanted| wanted.tensor.shared()).collect();
    let parts = match readers {
        Some(readers) => all_read(&wanted, &readers, label, console, &start)?,
        None => one_reads(&wanted, label, console, &start)?,
    };
    for (idx, part) in parts {
        if let Some(whole) = found.get_mut(idx).and_then(Option::as_mut) {
            whole.merge(&part);
        }
    }
    Ok(found)
}

/// What parts of tensors hold, each read by the thread that looks at it.
fn all_read<A: Accumulate>(
    wanted: &[Wanted<'_>],
    readers: &[impl Fn(u64, &mut [u8]) -> Result<(), Failure> + Sync],
    label: &'static str,
    console: &Console,
    start: &(impl Fn(usize, Dtype) -> Option<A> + Sync),
) -> Result<Vec<(usize, A)>, Failure> {
    // Without the tensors, which threads cannot share.
    let spans: Vec<_> = wanted
        .iter()
        .zip(readers)
        .flat_map(|(wanted, read)| {
            let Wanted { tensor_idx, reading, .. } = *wanted;
            wanted.ranges(SPAN).map(move |span| (tensor_idx, reading, read, span))
        })
        .collect();
    let parts = on_all_cores(label, console, spans.len(), |idx| {
        let (tensor_idx, reading, read, span) = &spans[idx];
        let Some(mut accumulator) = start(*tensor_idx, reading.dtype()) else { return Ok(None) };
        let (mut bytes, mut decoder) = (Vec::new(), Decoder::default());
        for range in ranges(span.clone(), CHUNK - CHUNK % reading.unit()) {
            bytes.resize((range.end - range.start) as usize, 0);
            read(range.start, &mut bytes)?;
            decoder.add(&mut accumulator, *reading, &bytes);
        }
        Ok(Some((*tensor_idx, accumulator)))
    })?;
    Ok(parts.into_iter().flatten().collect())
}

/// What parts of tensors hold, read by this thread, because the source has one reader, while others look at it.
fn one_reads<A: Accumulate>(
    wanted: &[Wanted<'_>],
    label: &'static str,
    console: &Console,
    start: &(impl Fn(usize, Dtype) -> Option<A> + Sync),
) -> Result<Vec<(usize, A)>, Failure> {
    let mut progress = console.progress(label, wanted.iter().map(|wanted| wanted.tensor.byte_len()).sum());
    let n_workers = thread::available_parallelism().map_or(1, |n| n.get().saturating_sub(1)).clamp(1, 16);
    let (pieces, waiting) = sync_channel::<Piece>(AHEAD * n_workers);
    let (spent, spare) = channel::<Vec<u8>>();
    let waiting = Mutex::new(waiting);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..n_workers).map(|_| scope.spawn(|| work(&waiting, &spent, start))).collect();
        let read = wanted.iter().try_for_each(|wanted| {
            progress.item(wanted.tensor.name());
            let Wanted { tensor_idx, tensor, reading } = *wanted;
            wanted.ranges(CHUNK).try_for_each(|range| {
                let mut bytes = spare.try_recv().unwrap_or_default();
                bytes.resize((range.end - range.start) as usize, 0);
                tensor.read(range.start, &mut bytes)?;
                progress.advance(bytes.len());
                // Workers end after this channel only.
                let _ = pieces.send(Piece { tensor_idx, reading, bytes });
                Ok(())
            })
        });
        drop(pieces);
        let parts = workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect();
        read.map(|()| parts)
    })
}

/// What one worker collects, by tensor.
fn work<A: Accumulate>(
    waiting: &Mutex<Receiver<Piece>>,
    spent: &Sender<Vec<u8>>,
    start: &(impl Fn(usize, Dtype) -> Option<A> + Sync),
) -> Vec<(usize, A)> {
    let mut collected: Vec<(usize, A)> = Vec::new();
    let mut decoder = Decoder::default();
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Piece { tensor_idx, reading, bytes }) = next else { return collected };
        // Pieces come in the order of the tensors.
        if collected.last().is_none_or(|&(idx, _)| idx != tensor_idx) {
            collected.extend(start(tensor_idx, reading.dtype()).map(|fresh| (tensor_idx, fresh)));
        }
        if let Some((_, accumulator)) = collected.last_mut() {
            decoder.add(accumulator, reading, &bytes);
        }
        // The reader may have ended.
        let _ = spent.send(bytes);
    }
}

/// Space for the values of blocks.
#[derive(Default)]
struct Decoder {
    values: Vec<f32>,
    bytes: Vec<u8>,
}

impl Decoder {
    /// Adds the values of whole units.
    fn add<A: Accumulate>(&mut self, accumulator: &mut A, reading: Reading, bytes: &[u8]) {
        match reading {
            Reading::Plain(dtype) => accumulator.add(dtype, bytes),
            Reading::Blocks(dtype) => {
                self.values.resize(bytes.len() / dtype.block_bytes() * dtype.block_len(), 0.0);
                // Whole blocks of a type that is decoded.
                if dequantize(dtype, bytes, &mut self.values).is_ok() {
                    self.bytes.clear();
                    self.bytes.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
                    accumulator.add(Dtype::F32, &self.bytes);
                }
            }
        }
    }
}
