//! CRC-32C (Castagnoli), eight bytes at a time, and the mask that is stored.
//!
//! Source: `crc32c.h` of TensorFlow and LevelDB.

/// Tables for the bytes of a word: the first is that of one byte, each next one that of a byte further ahead.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            tables[0][byte] = crc;
        }
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
            {
                let before = tables[table - 1][byte];
                tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            }
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// The value of a table for a byte: never out of range.
fn look_up(table: &[u32; 256], byte: u8) -> u32 {
    table.get(usize::from(byte)).copied().unwrap_or_default()
}

/// The checksum of all bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = &TABLES;
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(u32::MAX, |crc, word| {
        let [a, b, c, d, e, f, g, h] = (u64::from_le_bytes(*word) ^ u64::from(crc)).to_le_bytes();
        look_up(t7, a)
            ^ look_up(t6, b)
            ^ look_up(t5, c)
            ^ look_up(t4, d)
            ^ look_up(t3, e)
            ^ look_up(t2, f)
            ^ look_up(t1, g)
            ^ look_up(t0, h)
    });
    let crc = rest.iter().fold(crc, |crc, byte| (crc >> 8) ^ look_up(t0, crc as u8 ^ byte));
    !crc
}

/// The checksum as it is stored.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_rfc_3720() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let bytes: [u8; 32] = core::array::from_fn(|at| at as u8);
        assert_eq!(crc32c(&bytes), 0x46dd_794e);
        assert_eq!(masked(b""), 0xa282_ead8);
    }
}
