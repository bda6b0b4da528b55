//! What a sealed file may cost: writing one holds less than 16 MiB for any size, and so does opening one and reading a
//! tensor, which reads little more than the tensor.
//!
//! `APR_SEALED_TENSORS` says of how many tensors of 4 MiB the file is made; 1,000 are 4 GiB.

use std::cell::Cell;
use std::fs::{self, File};
use std::time::Instant;

use apr_crypto::{Access, RecipientSecret, SigningKey, Trust};
use apr_sealed::{Part, Plan, SealOptions, SealedLimits, SealedReader};
use read_at::{FileSource, ReadAt};

use super::HEAP;

const TENSOR: usize = 4 << 20;
const PEAK: usize = 16 << 20;

/// A file that counts what is read of it.
struct Counting {
    file: FileSource,
    read: Cell<u64>,
}

impl ReadAt for Counting {
    fn total_len(&self) -> u64 {
        self.file.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        self.read.set(self.read.get() + out.len() as u64);
        self.file.read_exact_at(offset, out)
    }
}

pub(crate) fn one_tensor_of_many() {
    let n_tensors = std::env::var("APR_SEALED_TENSORS").map_or(12, |text| text.parse().unwrap());
    let name = |idx: usize| format!("blk.{idx}.ffn_down.weight");
    let parts = (0..n_tensors).map(|idx| Part::tensor(&name(idx), "F16", [1024, 2048], TENSOR as u64));
    let plan = Plan::new([Part::raw(100)].into_iter().chain(parts)).unwrap();
    let (recipient, signer) = (RecipientSecret::from_bytes(&[1; 32]), SigningKey::from_seed(&[2; 32]));
    let signed = SealOptions::default().signed_by(&signer);
    let both = signed.clone().for_recipient(recipient.public());
    let trust = Access::default().with_trust(Trust::Anyone);
    let path = std::env::temp_dir().join(format!("apr-sealed-memory-{}", std::process::id()));
    let tensor: Vec<u8> = (0..TENSOR).map(|idx| ((idx * idx) >> 7).to_le_bytes()[0]).collect();
    for (what, options, access) in
        [("signed", signed, trust), ("encrypted and signed", both, trust.with_recipient(&recipient))]
    {
        let begin = Instant::now();
        let (sealed, usage) = HEAP.measure(|| {
            apr_sealed::seal_file(&path, &plan, &options, |out| {
                out.write_all(&[7; 100])?;
                (0..n_tensors).try_for_each(|_| out.write_all(&tensor))
            })
        });
        sealed.unwrap();
        let len = fs::metadata(&path).unwrap().len();
        println!("{what}, {n_tensors} tensors, {len} bytes: sealed in {:?}, {usage:?}", begin.elapsed());
        assert!(usage.peak < PEAK, "{usage:?}");

        for idx in [0, n_tensors / 2, n_tensors - 1] {
            let file = FileSource::new(File::open(&path).unwrap()).unwrap();
            let source = Counting { file, read: Cell::new(0) };
            let begin = Instant::now();
            let (read, usage) = HEAP.measure(|| {
                let reader = SealedReader::open(&source, &access, &SealedLimits::default()).unwrap();
                reader.tensor(&name(idx)).unwrap()
            });
            assert!(read == tensor);
            let count = source.read.get();
            println!("  tensor {idx}: {count} bytes read in {:?}, {usage:?}", begin.elapsed());
            assert!(count < TENSOR as u64 * 102 / 100 + (64 << 10), "{count}");
            assert!(usage.peak < PEAK, "{usage:?}");
        }
        fs::remove_file(&path).unwrap();
    }
}
