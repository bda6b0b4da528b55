//! A language model as payload (`docs/payloads.md`, section 9) and as tensors.

use alloc::format;
use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};
use st_core::Dtype;

use crate::checks;
use crate::error::Error;
use crate::ngram_lm::{MAX_ORDER, NgramCounts, NgramLm, NgramLmParts, Smoothing};
use crate::payload::fields::read;
use crate::tensors::Tensors;
use crate::vocabulary::Vocabulary;

const SMOOTHING: &str = "smoothing";
const CONSTANT: &str = "smoothing_constant";
const WORDS: &str = "words";
const WORD_ENDS: &str = "word_ends";

impl Smoothing {
    const fn stored(self) -> (u32, f64) {
        match self {
            Self::AddK(k) => (0, k),
            Self::AbsoluteDiscount(discount) => (1, discount),
        }
    }

    const fn of_stored(variant: u64, constant: f64) -> Option<Self> {
        match variant {
            0 => Some(Self::AddK(constant)),
            1 => Some(Self::AbsoluteDiscount(constant)),
            _ => None,
        }
    }
}

stored_model! {
    NgramLm "NgramLm" [NgramLm] form 1 of 1
    // Samples are texts, so it has no number of features.
    n_features: |_| None;
}

impl NgramLm {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        let (variant, constant) = self.smoothing.stored();
        out.usize(self.order())?;
        out.variant(variant)?;
        out.f64(constant)?;
        self.words.encode(out)?;
        out.usize(self.tables.len())?;
        self.tables.iter().try_for_each(|table| {
            out.u32s(table.tokens())?;
            out.usize(table.len())?;
            table.counts().try_for_each(|count| out.u64(count))
        })
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let order = input.usize()?;
        let smoothing = Smoothing::of_stored(input.variant(2)?.into(), input.f64()?);
        let smoothing = smoothing.unwrap_or(Smoothing::AddK(f64::NAN));
        let words = Vocabulary::decode(input)?;
        let n_tables = input.count(16)?;
        checks::expect_len("tables", order, n_tables)?;
        checks::expect("order", order <= MAX_ORDER, "must be 1 to 16")?;
        let mut tables = Vec::new();
        for _ in 0..n_tables {
            tables.push(read(input, |fields| NgramCounts { tokens: fields.u32s(), counts: fields.u64s() })?);
        }
        Ok(Self::from_parts(NgramLmParts { smoothing, words, tables })?)
    }

    /// The model that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        let mut order = 0;
        while order < MAX_ORDER && tensors.contains(&tokens_name(order + 1)) {
            order += 1;
        }
        tensors.expect_only(&|name| {
            [SMOOTHING, CONSTANT, WORDS, WORD_ENDS].contains(&name)
                || (1..=order).any(|n| name == tokens_name(n) || name == counts_name(n))
        })?;
        Self::from_parts(tensors.parts(|parts| {
            let constant = parts.wide_number(CONSTANT);
            let smoothing = Smoothing::of_stored(parts.integer(SMOOTHING), constant);
            parts.check(SMOOTHING, smoothing.is_some(), "must be 0 or 1");
            let smoothing = smoothing.unwrap_or(Smoothing::AddK(f64::NAN));
            let words = parts.take(|tensors| Vocabulary::take_from(tensors, WORDS, WORD_ENDS));
            let mut tables = Vec::with_capacity(order);
            for n in 1..=order {
                // A token beyond 32 bits is beyond the vocabulary too.
                let tokens = parts.places(&tokens_name(n));
                tables.push(NgramCounts { tokens, counts: parts.integers(&counts_name(n)) });
            }
            NgramLmParts { smoothing, words, tables }
        })?)
    }
}

fn tokens_name(n: usize) -> alloc::string::String {
    format!("tokens_{n}")
}

fn counts_name(n: usize) -> alloc::string::String {
    format!("counts_{n}")
}

impl NgramLm {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let (variant, constant) = self.smoothing.stored();
        tensors.push_integers(SMOOTHING, &[1], &[variant.into()])?;
        tensors.push_f64(CONSTANT, &[1], &[constant])?;
        self.words.push_to(tensors, WORDS, WORD_ENDS)?;
        for (n, table) in (1..).zip(&self.tables) {
            let tokens = table.tokens().iter().copied().flat_map(u32::to_le_bytes).collect();
            tensors.push(&tokens_name(n), Dtype::U32, &[table.len(), n], tokens)?;
            let counts: Vec<u64> = table.counts().collect();
            tensors.push_u64(&counts_name(n), &[counts.len()], &counts)?;
        }
        Ok(())
    }
}
