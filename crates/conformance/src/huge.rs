//! Files too large to store, built in memory from their recipes among the vectors.

use core::fmt::Write as _;

use crate::matrix::{Outcome, Suite};
use crate::vectors::{OfficialVerdict, Recipe, Vectors};
use crate::{official, reading};

const ABOUT: &str = "\
Headers of 40 to 100 MB, built in memory from the recipes among the vectors. The strict verdict is that of the
default limits.";

/// Runs every recipe: half a minute in a release build, and 1 GiB.
#[must_use]
pub fn suite(vectors: &Vectors) -> Suite {
    let mut suite =
        Suite::new("safetensors: huge headers", ABOUT, &["ours, strict", "ours, compat", "crate 0.8.0"]);
    for recipe in &vectors.recipes {
        let Some(file) = build(&recipe.name) else {
            let unknown = || Outcome::Wrong("no builder for this recipe".to_owned());
            suite.record(&recipe.name, &recipe.name, [unknown(), unknown(), unknown()]);
            continue;
        };
        suite.record(&recipe.name, &recipe.name, outcomes(recipe, &file));
    }
    suite
}

fn outcomes(recipe: &Recipe, file: &[u8]) -> [Outcome; 3] {
    let sized = (file.len() as u64 != recipe.size)
        .then(|| Outcome::Wrong(format!("{} bytes built, {} recorded", file.len(), recipe.size)));
    let judged = match official::call(|| safetensors::SafeTensors::deserialize(file)) {
        Ok(table) if recipe.n_tensors == Some(table.len()) => Outcome::Expected("read"),
        Ok(table) => Outcome::Wrong(format!("{} tensors", table.len())),
        Err(refusal) => match &recipe.official {
            OfficialVerdict::Refuse { variant } if refusal.to_string() == *variant => {
                Outcome::Expected("refused")
            }
            _ => Outcome::Wrong(refusal.to_string()),
        },
    };
    [
        sized.unwrap_or_else(|| reading::strict(&recipe.strict, file)),
        reading::compat(&recipe.official, file),
        judged,
    ]
}

/// Builds the file of a recipe; [`None`] if there is no recipe of this name.
///
/// # Examples
///
/// ```
/// assert_eq!(conformance::huge::build("header_100000001").map(|file| file.len()), Some(100_000_009));
/// ```
#[must_use]
pub fn build(recipe: &str) -> Option<Vec<u8>> {
    const ENTRY: &str = "\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]";
    match recipe {
        "name_90_million" => Some(file(&format!("{{\"{}\":{{{ENTRY}}}}}", "n".repeat(90_000_000)), 1)),
        "metadata_4_million_entries" => {
            let mut header = String::from("{\"__metadata__\":{");
            join(&mut header, 4_000_000, |out, i| write!(out, "\"k{i}\":\"\""));
            header.push_str("}}");
            Some(file(&header, 0))
        }
        "unknown_field_19_million_nulls" => {
            let mut header = format!("{{\"a\":{{{ENTRY},\"x\":[");
            join(&mut header, 19_000_000, |out, _| out.write_str("null"));
            header.push_str("]}}");
            Some(file(&header, 1))
        }
        "million_tensors" => Some(file(&tensors_header(1_000_000), 1_000_000)),
        "shape_20_million_ones" => {
            let mut header = String::from("{\"a\":{\"dtype\":\"U8\",\"shape\":[");
            join(&mut header, 20_000_000, |out, _| out.write_str("1"));
            header.push_str("],\"data_offsets\":[0,1]}}");
            Some(file(&header, 1))
        }
        "header_100000001" => {
            let mut header = String::from("{}");
            header.push_str(&" ".repeat(99_999_999));
            Some(file(&header, 0))
        }
        "metadata_one_value_90_million" => {
            Some(file(&format!("{{\"__metadata__\":{{\"k\":\"{}\"}}}}", "v".repeat(90_000_000)), 0))
        }
        _ => None,
    }
}

/// A header of `count` one-byte tensors `t0`, `t1`, ...
#[must_use]
pub fn tensors_header(count: usize) -> String {
    let mut header = String::from("{");
    join(&mut header, count, |out, i| {
        write!(out, "\"t{i}\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[{i},{}]}}", i + 1)
    });
    header.push('}');
    header
}

/// A whole file: the length, the header, and `data_len` zero bytes.
#[must_use]
pub fn file(header: &str, data_len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + header.len() + data_len);
    out.extend_from_slice(&(header.len() as u64).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.resize(out.len() + data_len, 0);
    out
}

fn join(out: &mut String, count: usize, mut item: impl FnMut(&mut String, usize) -> core::fmt::Result) {
    for i in 0..count {
        if i > 0 {
            out.push(',');
        }
        item(out, i).expect("a string takes everything");
    }
}
