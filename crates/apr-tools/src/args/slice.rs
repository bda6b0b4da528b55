//! Index expressions of arrays: `0:2,:,-1`.

use core::num::NonZeroU64;
use core::str::FromStr;

use st_core::Index;

/// An index expression as NumPy has it, without brackets: integers, `start:stop:step` with a positive step, and `...`, separated by
/// commas.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    text: String,
    indices: Vec<Index>,
}

impl Slice {
    /// As it was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// One index for each dimension, or an ellipsis for several.
    pub(crate) fn indices(&self) -> &[Index] {
        &self.indices
    }
}

impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim().trim_start_matches('[').trim_end_matches(']');
        let indices: Vec<Index> = text.split(',').map(index).collect::<Result<_, _>>()?;
        if indices.iter().filter(|&&index| index == Index::Ellipsis).count() > 1 {
            return Err("`...` can occur once".to_owned());
        }
        Ok(Self { text: text.to_owned(), indices })
    }
}

fn index(part: &str) -> Result<Index, String> {
    let part = part.trim();
    let number = |digits: &str| match digits.trim() {
        "" => Ok(None),
        digits => digits.parse().map(Some).map_err(|_| format!("`{digits}` is not an integer")),
    };
    if part == "..." {
        return Ok(Index::Ellipsis);
    }
    let fields: Vec<&str> = part.split(':').collect();
    match fields[..] {
        [only] => number(only)?.map(Index::Select).ok_or_else(|| "an index is missing".to_owned()),
        [start, stop] => {
            Ok(Index::Range { start: number(start)?, stop: number(stop)?, step: NonZeroU64::MIN })
        }
        [start, stop, step] => {
            let step = number(step)?.unwrap_or(1);
            let step = u64::try_from(step).ok().and_then(NonZeroU64::new);
            let step = step.ok_or("a step is at least 1")?;
            Ok(Index::Range { start: number(start)?, stop: number(stop)?, step })
        }
        _ => Err(format!("`{part}` is no index: expected an integer, start:stop or start:stop:step")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_those_of_numpy() {
        let slice: Slice = "0:2, :, -1, ..., ::3".parse().unwrap();
        let range = |start, stop, step| Index::Range { start, stop, step: NonZeroU64::new(step).unwrap() };
        let expected = [
            range(Some(0), Some(2), 1),
            Index::ALL,
            Index::Select(-1),
            Index::Ellipsis,
            range(None, None, 3),
        ];
        assert_eq!(slice.indices(), expected);
        for wrong in ["", "1,", "a", "1:2:3:4", "::0", "::-1", "...,...", "99999999999999999999"] {
            assert!(wrong.parse::<Slice>().is_err(), "{wrong}");
        }
    }
}
