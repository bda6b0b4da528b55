//! The footer, before the library sees it: how deep columns are nested, and whether its parts agree.
//!
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>

use super::thrift::{Damage, LIST, STRUCT, Thrift};
use crate::error::ErrorKind;

/// Groups of columns in groups.
const MAX_DEPTH: usize = 64;

/// A column of the schema that has values.
struct Leaf {
    /// Its `Type`.
    physical: i8,
    /// Whether it has one value for each row.
    is_flat: bool,
}

impl From<Damage> for ErrorKind {
    fn from(_: Damage) -> Self {
        Self::Parquet {}
    }
}

/// Checks the schema, and whether each row group has its columns, of its types, with as many values as rows. The library reads the values of a
/// column chunk as the schema says, whatever the chunk says.
///
/// # Errors
///
/// [`ErrorKind::Parquet`] if it is not valid, [`ErrorKind::ParquetFooter`] if its parts disagree.
pub(crate) fn check(footer: &[u8]) -> Result<(), ErrorKind> {
    let (mut footer, mut number) = (Thrift(footer), 0);
    let (mut leaves, mut n_rows, mut total) = (None, None, 0_i64);
    while let Some(kind) = footer.field(&mut number)? {
        match (number, &leaves) {
            (2, None) => leaves = Some(schema(&mut footer, kind)?),
            (3, _) => n_rows = Some(footer.integer(kind)?),
            (4, Some(leaves)) => {
                for _ in 0..structs(&mut footer, kind)? {
                    total = total.saturating_add(row_group(&mut footer, leaves)?);
                }
            }
            // The fields are in the order of their numbers.
            (2 | 4, _) => return Err(ErrorKind::Parquet {}),
            _ => footer.skip(kind)?,
        }
    }
    match (leaves, n_rows) {
        (None, _) => Err(ErrorKind::Parquet {}),
        (Some(_), Some(n_rows)) if n_rows != total => {
            contradiction("the row groups have another number of rows than the file")
        }
        _ => Ok(()),
    }
}

fn contradiction<T>(what: &'static str) -> Result<T, ErrorKind> {
    Err(ErrorKind::ParquetFooter { what })
}

/// The length of a list of structures, which follow.
fn structs(footer: &mut Thrift<'_>, kind: u8) -> Result<u64, Damage> {
    let (kind, len) = if kind == LIST { footer.list()? } else { return Err(Damage::Invalid) };
    if kind == STRUCT || len == 0 { Ok(len) } else { Err(Damage::Invalid) }
}

/// The columns of the schema, whose elements have to be a tree. The library allocates for as many children as an element declares, and goes down by
/// recursion.
fn schema(footer: &mut Thrift<'_>, kind: u8) -> Result<Vec<Leaf>, Damage> {
    const REPEATED: i64 = 2;
    let n_elements = structs(footer, kind)?;
    let mut leaves = Vec::new();
    // Children that each group on the way to the next element still lacks.
    let mut missing: Vec<u64> = Vec::new();
    for idx in 0..n_elements {
        let (mut number, mut physical, mut repetition, mut n_children) = (0, -1, 0, 0);
        while let Some(kind) = footer.field(&mut number)? {
            match number {
                1 => physical = physical_type(footer.integer(kind)?)?,
                3 => repetition = footer.integer(kind)?,
                5 => n_children = footer.integer(kind)?,
                _ => footer.skip(kind)?,
            }
        }
        if let Some(missing) = missing.last_mut() {
            *missing -= 1;
        }
        let left = n_elements - idx - 1;
        let n_children = u64::try_from(n_children).ok().filter(|&count| count <= left);
        let n_children = n_children.ok_or(Damage::Invalid)?;
        // The root is no column.
        if n_children == 0 && idx > 0 {
            leaves.push(Leaf { physical, is_flat: missing.len() == 1 && repetition != REPEATED });
        }
        missing.push(n_children);
        while missing.last() == Some(&0) {
            missing.pop();
        }
        if missing.len() > MAX_DEPTH {
            return Err(Damage::Invalid);
        }
    }
    Ok(leaves)
}

/// The number of a physical type.
fn physical_type(number: i64) -> Result<i8, Damage> {
    i8::try_from(number).map_err(|_| Damage::Invalid)
}

/// Checks a row group, and returns how many rows it has.
fn row_group(footer: &mut Thrift<'_>, leaves: &[Leaf]) -> Result<i64, ErrorKind> {
    let (mut number, mut n_rows, mut n_chunks, mut n_values) = (0, 0, 0, None);
    while let Some(kind) = footer.field(&mut number)? {
        match number {
            1 => {
                n_chunks = structs(footer, kind)?;
                for idx in 0..n_chunks {
                    let leaf = usize::try_from(idx).ok().and_then(|idx| leaves.get(idx));
                    let (physical, found) = chunk(footer)?;
                    let Some(leaf) = leaf else { continue };
                    if physical.is_some_and(|physical| physical != leaf.physical) {
                        return contradiction(
                            "the values of a column are of another type than the schema says",
                        );
                    }
                    if leaf.is_flat && found.is_some() {
                        if n_values.is_some() && n_values != found {
                            return contradiction(
                                "the columns of a row group have different numbers of values",
                            );
                        }
                        n_values = found;
                    }
                }
            }
            3 => n_rows = footer.integer(kind)?,
            _ => footer.skip(kind)?,
        }
    }
    if n_chunks != leaves.len() as u64 {
        return contradiction("a row group has another number of columns than the schema");
    }
    if n_values.is_some_and(|n_values| n_values != n_rows) {
        return contradiction("the columns of a row group have another number of values than it has rows");
    }
    Ok(n_rows)
}

/// Type and number of the values of a column chunk; nothing of an encrypted one.
fn chunk(footer: &mut Thrift<'_>) -> Result<(Option<i8>, Option<i64>), Damage> {
    let (mut number, mut physical, mut n_values) = (0, None, None);
    while let Some(kind) = footer.field(&mut number)? {
        if number != 3 || kind != STRUCT {
            footer.skip(kind)?;
            continue;
        }
        let mut number = 0;
        while let Some(kind) = footer.field(&mut number)? {
            match number {
                1 => physical = Some(physical_type(footer.integer(kind)?)?),
                5 => n_values = Some(footer.integer(kind)?),
                _ => footer.skip(kind)?,
            }
        }
    }
    Ok((physical, n_values))
}
