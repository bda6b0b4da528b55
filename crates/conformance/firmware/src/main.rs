//! Models in the flash of a microcontroller: verified, asked, and refused where they must be.
//!
//! What is printed goes to the debugger (semihosting); the exit status is 0 if everything went as it should. The models are
//! written by `examples/firmware_models.rs` of the crate around this one; `cargo xtask firmware` does all of it.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod board;
mod heap;

use alloc::vec;
use core::panic::PanicInfo;

use apr_container::{
    DecodePayload, Embedded, Error, ReadOptions, UncheckedSignature, embed_model, verify_signature,
};
use apr_crypto::VerifyingKey;
use apr_models::{Classifier, LinearRegression, RandomForestClassifier};

use crate::board::{exit, print};
use crate::heap::Heap;

/// Bytes of memory for everything that is allocated.
const HEAP_LEN: usize = 32 << 10;

#[global_allocator]
static HEAP: Heap<HEAP_LEN> = Heap::new();

/// Whose models are taken.
static MAKER: &[u8; VerifyingKey::LEN] = include_bytes!(concat!(env!("FIRMWARE_MODELS"), "/key.bin"));

static LINEAR: Embedded<LinearRegression> = embed_model!(concat!(env!("FIRMWARE_MODELS"), "/linear.apr"));
static FOREST: Embedded<RandomForestClassifier> =
    embed_model!(concat!(env!("FIRMWARE_MODELS"), "/forest.apr"));
static TAMPERED: Embedded<LinearRegression> = embed_model!(concat!(env!("FIRMWARE_MODELS"), "/tampered.apr"));
static LARGE: Embedded<LinearRegression> = embed_model!(concat!(env!("FIRMWARE_MODELS"), "/large.apr"));

/// Samples that are predicted.
const N_ROWS: usize = 4;

/// Where the vector of exceptions leads when the processor starts.
pub(crate) fn main() -> ! {
    let status = match all() {
        Ok(()) => 0,
        Err(error) => {
            print!("unexpected: {error}\n");
            1
        }
    };
    print!("flash: {} bytes\n", board::flash_len());
    print!("heap at the end: {} bytes\n", HEAP.current());
    exit(status)
}

fn all() -> Result<(), Error> {
    let checked = ReadOptions::STRICT.with_unchecked_signature(UncheckedSignature::Allow);

    HEAP.restart();
    verify(&LINEAR)?;
    say_heap("verified");

    let view = LINEAR.view_with(&checked)?;
    let sample: [f32; N_ROWS * 24] = core::array::from_fn(|at| value(at / 24, at % 24));
    say_heap("linear checked");
    HEAP.restart();
    let mut numbers = [0.0; N_ROWS];
    view.predict_into(&sample, &mut numbers)?;
    say("linear in place:", numbers.map(f32::to_bits));
    say_heap("linear in place");

    HEAP.restart();
    let model = LINEAR.load_with(&checked)?;
    model.predict_into(&sample, &mut numbers)?;
    drop(model);
    say("linear loaded:", numbers.map(f32::to_bits));
    say_heap("linear loaded");

    HEAP.restart();
    verify(&FOREST)?;
    let forest = FOREST.load_with(&checked)?;
    let n_features = apr_models::Model::n_features(&forest).unwrap_or_default();
    let rows = vec![0.0; N_ROWS * n_features];
    let rows = rows.iter().enumerate().map(|(at, _)| value(at / n_features, at % n_features));
    let rows: alloc::vec::Vec<f32> = rows.collect();
    let mut classes = [0; N_ROWS];
    Classifier::predict_into(&forest, &rows, &mut classes)?;
    drop((forest, rows));
    say("forest loaded:", classes.map(|class| class as u32));
    say_heap("forest loaded");

    // Its checksum is right, its signature is another model's.
    say_refusal("tampered", verify(&TAMPERED));
    // Valid and signed, but larger than the heap.
    HEAP.restart();
    verify(&LARGE)?;
    say_refusal("large", LARGE.load_with(&checked).map(drop));
    Ok(())
}

fn verify<M: DecodePayload>(model: &Embedded<M>) -> Result<(), Error> {
    let maker = VerifyingKey::from_bytes(MAKER)?;
    verify_signature(model.file(), &maker, &ReadOptions::STRICT).map(drop)
}

/// Value of a feature: the rule of `examples/firmware_models.rs`.
fn value(row: usize, column: usize) -> f32 {
    ((row * 7 + column * 3) % 11) as f32 * 0.25 - 1.0
}

fn say(what: &str, bits: [u32; N_ROWS]) {
    print!("{what}");
    bits.iter().for_each(|bits| print!(" {bits:08x}"));
    print!("\n");
}

fn say_refusal(what: &str, outcome: Result<(), Error>) {
    print!("{what}: {}\n", outcome.err().map_or("accepted", |error| error.code()));
}

fn say_heap(what: &str) {
    print!("heap {what}: {} bytes\n", HEAP.peak());
}

/// Out of memory among others: there is nothing to unwind to.
#[panic_handler]
fn stop(info: &PanicInfo<'_>) -> ! {
    print!("panic: {}\n", info.message());
    exit(2)
}
