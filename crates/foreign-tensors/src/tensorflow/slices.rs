//! Parts of variables: each has a key of its own, which is made of the name and of where the part begins.
//!
//! Source: `tensorflow/core/util/saved_tensor_slice_util.cc` and `tensorflow/core/lib/strings/ordered_code.cc`.

use alloc::vec::Vec;

/// Begin and length of a part in one dimension; without a length it has all.
pub(super) type Extent = (u64, Option<u64>);

/// The key of a part.
pub(super) fn key(name: &str, extents: &[Extent]) -> Vec<u8> {
    let mut key = Vec::from([0]);
    for byte in name.bytes() {
        match byte {
            0 => key.extend_from_slice(&[0, 0xff]),
            0xff => key.extend_from_slice(&[0xff, 0]),
            byte => key.push(byte),
        }
    }
    key.extend_from_slice(&[0, 1]);
    let rank = (extents.len() as u64).to_be_bytes();
    let zeros = rank.iter().take_while(|byte| **byte == 0).count();
    key.push((rank.len() - zeros) as u8);
    key.extend(rank.iter().skip(zeros));
    for (start, len) in extents {
        push(&mut key, *start);
        match len {
            Some(len) => push(&mut key, *len),
            // -1.
            None => key.push(0x7f),
        }
    }
    key
}

/// Appends a number that is not negative: its first bits tell how many bytes there are.
fn push(key: &mut Vec<u8>, number: u64) {
    let bits = 64 - number.leading_zeros() as usize;
    // Each byte has seven bits of the number, and the sign is one bit.
    let len = bits / 7 + 1;
    let head = (u128::MAX << (128 - len)) >> (128 - 8 * len);
    let coded = u128::from(number) ^ head;
    key.extend(coded.to_be_bytes().iter().skip(16 - len));
}

/// Whether the parts, by begin and length in each dimension, fill a tensor exactly: each element is in one of them.
pub(super) fn are_exact(shape: &[u64], parts: &[Vec<(u64, u64)>]) -> bool {
    let count =
        |mut dims: &mut dyn Iterator<Item = u64>| Iterator::try_fold(&mut dims, 1_u64, u64::checked_mul);
    let mut sum = 0_u64;
    for (idx, part) in parts.iter().enumerate() {
        let is_inside = part.len() == shape.len()
            && part
                .iter()
                .zip(shape)
                .all(|((start, len), dim)| start.checked_add(*len).is_some_and(|end| end <= *dim));
        let len = count(&mut part.iter().map(|(_, len)| *len));
        let Some(next) = len.and_then(|len| sum.checked_add(len)) else { return false };
        sum = next;
        let overlaps = |other: &Vec<(u64, u64)>| {
            part.iter().zip(other).all(|((a, a_len), (b, b_len))| *a < b + b_len && *b < a + a_len)
        };
        if !is_inside || parts.iter().take(idx).any(overlaps) {
            return false;
        }
    }
    count(&mut shape.iter().copied()) == Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_writer() {
        assert_eq!(key("part", &[(0, Some(4)), (0, Some(4))]), b"\0part\0\x01\x01\x02\x80\x84\x80\x84");
        assert_eq!(key("a\0b", &[(7, None)]), b"\0a\0\xffb\0\x01\x01\x01\x87\x7f");
        assert_eq!(key("", &[]), b"\0\0\x01\0");
        for (number, expected) in [
            (0, &[0x80][..]),
            (63, &[0xbf]),
            (64, &[0xc0, 0x40]),
            (8191, &[0xdf, 0xff]),
            (8192, &[0xe0, 0x20, 0x00]),
            (1 << 55, &[0xff, 0x80, 0x80, 0, 0, 0, 0, 0, 0]),
        ] {
            let mut found = Vec::new();
            push(&mut found, number);
            assert_eq!(found, expected, "{number}");
        }
    }

    #[test]
    fn parts_fill_a_tensor_once() {
        let rows = |parts: &[(u64, u64)]| -> Vec<Vec<(u64, u64)>> {
            parts.iter().map(|rows| [*rows, (0, 4)].to_vec()).collect()
        };
        assert!(are_exact(&[10, 4], &rows(&[(0, 4), (4, 3), (7, 3)])));
        assert!(!are_exact(&[10, 4], &rows(&[(0, 4), (7, 3)])));
        assert!(!are_exact(&[10, 4], &rows(&[(0, 4), (4, 4), (6, 2)])));
        assert!(!are_exact(&[10, 4], &rows(&[(0, 4), (4, 7)])));
        assert!(!are_exact(&[10, 4], &rows(&[(0, 10), (u64::MAX, 2)])));
        assert!(are_exact(&[], &[Vec::new()]));
    }
}
