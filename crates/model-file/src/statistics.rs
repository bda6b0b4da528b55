//! What the values of a tensor are: counts of special values, extremes, a histogram.

mod histogram;

use alloc::boxed::Box;
use alloc::vec::Vec;

use apr_quant::SimdLevel;
use st_core::{Dtype, TensorView};

pub use self::histogram::Histogram;

/// Counts and extremes of the values of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Number of values; a complex number has two.
    pub count: u64,
    /// Values that are NaN.
    pub nan: u64,
    /// Values that are infinite.
    pub infinite: u64,
    /// Values other than zero below the smallest normal number of the type, of floats of 16, 32 and 64 bits.
    pub subnormal: u64,
    /// Values that are zero.
    pub zeros: u64,
    /// The least and the greatest finite value; `None` if there is no finite value.
    pub range: Option<(f64, f64)>,
    /// Whether all values are the same finite number, of two values or more.
    pub is_constant: bool,
}

/// Collects [`Statistics`] from the bytes of a tensor, in pieces of any order.
///
/// ```
/// use model_file::Scan;
/// use st_core::Dtype;
///
/// let mut scan = Scan::new(Dtype::F32).ok_or("a type without values")?;
/// [1.5_f32, f32::NAN, -2.0].iter().for_each(|value| scan.add(&value.to_le_bytes()));
/// let found = scan.finish();
/// assert_eq!((found.count, found.nan, found.range), (3, 1, Some((-2.0, 1.5))));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scan {
    dtype: Dtype,
    count: u64,
    nan: u64,
    infinite: u64,
    subnormal: u64,
    zeros: u64,
    /// The extremes as integers in the order of the values: integers themselves, floats by their bits with the sign turned.
    extremes: Option<(i128, i128)>,
    /// How often each byte occurs, of types of at most 8 bits.
    bytes: Option<Box<[u64; 256]>>,
}

/// Values that are looked at together: the fastest cache holds them, and no count overflows 16 bits.
const BLOCK: usize = 2048;

/// What most blocks of floats are known by.
struct Extremes<K> {
    /// Keys of the extremes.
    low: K,
    high: K,
    /// Whether there are zeros or subnormal numbers.
    has_small: bool,
}

/// The order of floats as an order of integers: their bits, those of negative ones turned.
macro_rules! key {
    ($int:ident, $bits:expr) => {{
        let bits: $int = $bits;
        bits ^ ((bits >> ($int::BITS - 1)) & $int::MAX)
    }};
}

/// Defines a function that gives the extremes of finite values; `None` if others are among them, or for no whole number of rows.
macro_rules! extremes_of_floats {
    ($name:ident, $float:ident, $int:ident, $lanes:literal) => {
        #[inline(always)]
        fn $name(words: &[[u8; size_of::<$float>()]]) -> Option<Extremes<$int>> {
            const INF: $float = $float::INFINITY;
            let (mut low, mut high, mut least) = ([INF; $lanes], [-INF; $lanes], [INF; $lanes]);
            let mut nan = [0 as $int; $lanes];
            let (rows, []) = words.as_chunks::<$lanes>() else { return None };
            // As many lanes as the compiler makes vectors of. Not `min` and `max`: the rules of those for NaN take more instructions.
            for row in rows {
                for lane in 0..$lanes {
                    let value = $float::from_le_bytes(row[lane]);
                    low[lane] = if value < low[lane] { value } else { low[lane] };
                    high[lane] = if value > high[lane] { value } else { high[lane] };
                    least[lane] = if value.abs() < least[lane] { value.abs() } else { least[lane] };
                    nan[lane] |= -$int::from(value.is_nan());
                }
            }
            let least = least.into_iter().fold(INF, $float::min);
            let low = low.into_iter().fold(INF, $float::min);
            let high = high.into_iter().fold(-INF, $float::max);
            let key = |value: $float| key!($int, value.to_bits() as $int);
            let is_finite = low > -INF && high < INF && nan == [0; $lanes];
            (is_finite && low <= high).then(|| Extremes {
                low: key(low),
                high: key(high),
                has_small: least < $float::MIN_POSITIVE,
            })
        }
    };
}

extremes_of_floats!(extremes_32, f32, i32, 16);
extremes_of_floats!(extremes_64, f64, i64, 16);

/// The same of floats of 16 bits, by those of infinity and of the least normal number.
#[inline(always)]
fn extremes_16<const INF: i16, const MIN: i16>(words: &[[u8; 2]]) -> Option<Extremes<i16>> {
    const LANES: usize = 16;
    let (mut low, mut high, mut least) = ([i16::MAX; LANES], [i16::MIN; LANES], [i16::MAX; LANES]);
    let (rows, []) = words.as_chunks::<LANES>() else { return None };
    for row in rows {
        for lane in 0..LANES {
            let bits = i16::from_le_bytes(row[lane]);
            let key = key!(i16, bits);
            low[lane] = low[lane].min(key);
            high[lane] = high[lane].max(key);
            least[lane] = least[lane].min(bits & i16::MAX);
        }
    }
    let (low, high) = (low.into_iter().min()?, high.into_iter().max()?);
    let has_small = least.into_iter().min()? < MIN;
    // The key of the negative infinity is the complement of that of the positive one.
    let is_finite = low > !INF && high < INF;
    (is_finite && low <= high).then_some(Extremes { low, high, has_small })
}

/// Scans floats by their bits. `$inf` are the bits of infinity, `$min` those of the least normal number, `$extremes` one of the functions
/// above.
macro_rules! scan_floats {
    ($self:ident, $bytes:ident, $uint:ident, $int:ident, $inf:expr, $min:expr, $extremes:expr) => {{
        const INF: $int = $inf;
        let (words, _) = $bytes.as_chunks::<{ size_of::<$int>() }>();
        let magnitude = |word: &[u8; size_of::<$int>()]| $int::from_le_bytes(*word) & $int::MAX;
        let simd = SimdLevel::best();
        for words in words.chunks(BLOCK) {
            let extremes = simd.run(
                #[inline(always)]
                || $extremes(words),
            );
            let has_small = if let Some(Extremes { low, high, has_small }) = extremes {
                $self.extend(low.into(), high.into());
                has_small
            } else {
                let (mut low, mut high) = ($int::MAX, $int::MIN);
                for word in words {
                    $self.nan += u64::from(magnitude(word) > INF);
                    $self.infinite += u64::from(magnitude(word) == INF);
                    if magnitude(word) < INF {
                        let key = key!($int, $int::from_le_bytes(*word));
                        (low, high) = (low.min(key), high.max(key));
                    }
                }
                if low <= high {
                    $self.extend(low.into(), high.into());
                }
                true
            };
            if has_small {
                let count =
                    |limit| words.iter().map(|word| $uint::from(magnitude(word) < limit)).sum::<$uint>();
                let (zeros, small): (u64, u64) = (count(1).into(), count($min).into());
                $self.zeros += zeros;
                $self.subnormal += small - zeros;
            }
        }
        words.len() as u64
    }};
}

/// The same of integers.
macro_rules! scan_integers {
    ($self:ident, $bytes:ident, $int:ident, $uint:ident) => {{
        let (words, _) = $bytes.as_chunks::<{ size_of::<$int>() }>();
        let simd = SimdLevel::best();
        for words in words.chunks(BLOCK) {
            let (low, high, zeros) = simd.run(
                #[inline(always)]
                || {
                    words.iter().fold(($int::MAX, $int::MIN, 0), |(low, high, zeros), word| {
                        let value = $int::from_le_bytes(*word);
                        (low.min(value), high.max(value), zeros + $uint::from(value == 0))
                    })
                },
            );
            $self.zeros += u64::from(zeros);
            $self.extend(low.into(), high.into());
        }
        words.len() as u64
    }};
}

/// How the codes of a type of 8 bits are ordered, by keys.
struct Codes<K> {
    /// Of a code; it is its own inverse.
    key: K,
    /// The key of zero, of integers.
    zero: i8,
    /// The key behind that of the greatest finite value, of floats.
    end: Option<i8>,
}

/// Codes that are looked at together.
const LANES: usize = 32;
// A lane counts up to the number of rows.
const _: () = assert!(BLOCK / LANES < 256);

impl<K: Fn(u8) -> i8> Codes<K> {
    /// The least and the greatest key, and the number of zeros, of at most [`BLOCK`] codes.
    #[inline(always)]
    fn extremes(&self, block: &[u8]) -> (i8, i8, u64) {
        if self.end.is_some() { float_extremes(block) } else { self.integer_extremes(block) }
    }

    #[inline(always)]
    fn integer_extremes(&self, block: &[u8]) -> (i8, i8, u64) {
        let (mut low, mut high, mut zeros) = ([i8::MAX; LANES], [i8::MIN; LANES], [0_u8; LANES]);
        let (rows, rest) = block.as_chunks::<LANES>();
        for row in rows {
            for lane in 0..LANES {
                let key = (self.key)(row[lane]);
                low[lane] = low[lane].min(key);
                high[lane] = high[lane].max(key);
                zeros[lane] += u8::from(key == self.zero);
            }
        }
        let zeros = zeros.into_iter().map(u64::from).sum::<u64>();
        let low = low.into_iter().fold(i8::MAX, i8::min);
        let high = high.into_iter().fold(i8::MIN, i8::max);
        rest.iter().fold((low, high, zeros), |(low, high, zeros), &code| {
            let key = (self.key)(code);
            (low.min(key), high.max(key), zeros + u64::from(key == self.zero))
        })
    }
}

/// The same of floats, which are sign and magnitude. Without their keys: as integers without sign, the greatest code is the least negative
/// value, if there is one, and the least code otherwise the least positive one; as integers with a sign, likewise of the greatest value.
#[inline(always)]
fn float_extremes(block: &[u8]) -> (i8, i8, u64) {
    let (mut least, mut most) = ([u8::MAX; LANES], [0; LANES]);
    let (mut low, mut high, mut zeros) = ([i8::MAX; LANES], [i8::MIN; LANES], [0_u8; LANES]);
    let mut add = |lane: usize, code: u8| {
        least[lane] = least[lane].min(code);
        most[lane] = most[lane].max(code);
        low[lane] = low[lane].min(code as i8);
        high[lane] = high[lane].max(code as i8);
        zeros[lane] += u8::from(code & 0x7f == 0);
    };
    let (rows, rest) = block.as_chunks::<LANES>();
    rows.iter().for_each(|row| row.iter().enumerate().for_each(|(lane, &code)| add(lane, code)));
    rest.iter().enumerate().for_each(|(lane, &code)| add(lane, code));
    let least = least.into_iter().fold(u8::MAX, u8::min) as i8;
    let most = most.into_iter().fold(0, u8::max) as i8;
    let low = low.into_iter().fold(i8::MAX, i8::min);
    let high = high.into_iter().fold(i8::MIN, i8::max);
    let ends = [if most < 0 { most } else { least }, if high < 0 { low } else { high }];
    let [low, high] = ends.map(|code| key!(i8, code));
    (low, high, zeros.into_iter().map(u64::from).sum())
}

impl Scan {
    /// Of an element type; `None` of block types, which are shown as plain floats by
    /// [`Tensor::dequantized`](crate::Tensor::dequantized).
    #[must_use]
    pub fn new(dtype: Dtype) -> Option<Self> {
        let is_small = (1..=8).contains(&dtype.bits());
        (dtype.bits() > 0).then(|| Self {
            dtype,
            count: 0,
            nan: 0,
            infinite: 0,
            subnormal: 0,
            zeros: 0,
            extremes: None,
            bytes: is_small.then(|| Box::new([0; 256])),
        })
    }

    /// Adds whole values; of types of 4 and 6 bits, whole groups of bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let count = match self.dtype {
            Dtype::F32 | Dtype::C64 => {
                scan_floats!(self, bytes, u32, i32, f32::INFINITY.to_bits() as i32, 1 << 23, extremes_32)
            }
            Dtype::F64 => {
                scan_floats!(self, bytes, u64, i64, f64::INFINITY.to_bits() as i64, 1 << 52, extremes_64)
            }
            Dtype::F16 => scan_floats!(self, bytes, u16, i16, 0x7c00, 1 << 10, extremes_16::<0x7c00, 0x400>),
            Dtype::Bf16 => scan_floats!(self, bytes, u16, i16, 0x7f80, 1 << 7, extremes_16::<0x7f80, 0x80>),
            Dtype::I8 => self.scan_codes(bytes, &Codes { key: |code| code as i8, zero: 0, end: None }),
            Dtype::U8 => {
                let key = |code| (code ^ 0x80) as i8;
                self.scan_codes(bytes, &Codes { key, zero: i8::MIN, end: None })
            }
            Dtype::F8E4M3 | Dtype::F8E5M2 => {
                let end = Some(if self.dtype == Dtype::F8E4M3 { 0x7f } else { 0x7c });
                self.scan_codes(bytes, &Codes { key: |code| key!(i8, code as i8), zero: 0, end })
            }
            Dtype::I16 => scan_integers!(self, bytes, i16, u16),
            Dtype::U16 => scan_integers!(self, bytes, u16, u16),
            Dtype::I32 => scan_integers!(self, bytes, i32, u32),
            Dtype::U32 => scan_integers!(self, bytes, u32, u32),
            Dtype::I64 => scan_integers!(self, bytes, i64, u64),
            Dtype::U64 => scan_integers!(self, bytes, u64, u64),
            dtype => {
                let counts = self.bytes.as_mut();
                if let Some(counts) = counts.filter(|_| dtype.bits() != 6) {
                    count_bytes(bytes, counts);
                } else {
                    self.add_values(bytes);
                }
                0
            }
        };
        self.count += count;
    }

    /// Adds what another scan of the same tensor has found.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.subnormal += other.subnormal;
        self.zeros += other.zeros;
        if let Some((low, high)) = other.extremes {
            self.extend(low, high);
        }
        for (mine, more) in self
            .bytes
            .iter_mut()
            .flat_map(|bytes| bytes.iter_mut())
            .zip(other.bytes.iter().flat_map(|bytes| bytes.iter()))
        {
            *mine += more;
        }
    }

    /// What was found.
    #[must_use]
    pub fn finish(mut self) -> Statistics {
        if let Some(counts) = self.bytes.take() {
            let all: [u8; 256] = core::array::from_fn(|byte| byte as u8);
            let per_byte = 8 / self.dtype.bits().max(1) as usize;
            let mut values = values(self.dtype, &all);
            for &count in counts.iter() {
                for _ in 0..per_byte {
                    let value = values.next().unwrap_or(0.0);
                    if count > 0 {
                        self.add_value(value, count);
                    }
                }
            }
        }
        // 0 and -0 are two keys; two integers of 64 bits may round to one value.
        let is_one = |(low, high)| low == high || self.zeros == self.count;
        let is_constant =
            self.count > 1 && self.nan + self.infinite == 0 && self.extremes.is_some_and(is_one);
        Statistics {
            count: self.count,
            nan: self.nan,
            infinite: self.infinite,
            subnormal: self.subnormal,
            zeros: self.zeros,
            // Zeros have no sign here.
            range: self.extremes.map(|(low, high)| (self.value(low) + 0.0, self.value(high) + 0.0)),
            is_constant,
        }
    }

    fn extend(&mut self, low: i128, high: i128) {
        let (least, greatest) = self.extremes.unwrap_or((low, high));
        self.extremes = Some((least.min(low), greatest.max(high)));
    }

    /// Adds values of 8 bits; blocks with values that are not finite only to the number of each code. How many were added beside those.
    fn scan_codes<K: Fn(u8) -> i8>(&mut self, bytes: &[u8], codes: &Codes<K>) -> u64 {
        let simd = SimdLevel::best();
        let (mut count, mut range) = (0, (i8::MAX, i8::MIN));
        for block in bytes.chunks(BLOCK) {
            let (low, high, zeros) = simd.run(
                #[inline(always)]
                || codes.extremes(block),
            );
            let is_finite = codes.end.is_none_or(|end| !end < low && high < end);
            match self.bytes.as_mut().filter(|_| !is_finite) {
                Some(counts) => count_bytes(block, counts),
                None => {
                    count += block.len() as u64;
                    self.zeros += zeros;
                    range = (range.0.min(low), range.1.max(high));
                }
            }
        }
        if count > 0 {
            let ends = [range.0, range.1].map(|key| (codes.key)(key as u8) as u8);
            values(self.dtype, &ends).map(key_of_value).for_each(|key| self.extend(key, key));
        }
        count
    }

    fn add_values(&mut self, bytes: &[u8]) {
        for value in values(self.dtype, bytes) {
            self.add_value(value, 1);
        }
    }

    /// A value of a type of at most 8 bits.
    fn add_value(&mut self, value: f64, count: u64) {
        self.count += count;
        if value.is_nan() {
            self.nan += count;
        } else if value.is_infinite() {
            self.infinite += count;
        } else {
            self.zeros += if value == 0.0 { count } else { 0 };
            let key = key_of_value(value);
            self.extend(key, key);
        }
    }

    /// The value of a key.
    fn value(&self, key: i128) -> f64 {
        // Keys came from numbers of these widths.
        match self.dtype {
            Dtype::I16 | Dtype::U16 | Dtype::I32 | Dtype::U32 | Dtype::I64 | Dtype::U64 => key as f64,
            Dtype::F32 | Dtype::C64 => {
                let key = key as i32;
                f64::from(f32::from_bits((key ^ ((key >> 31) & i32::MAX)) as u32))
            }
            Dtype::F16 | Dtype::Bf16 => {
                let key = key as i16;
                let bits = (key ^ ((key >> 15) & i16::MAX)) as u16;
                values(self.dtype, &bits.to_le_bytes()).next().unwrap_or(0.0)
            }
            // Of types of at most 8 bits, the key is that of the value as 64 bits.
            _ => {
                let key = key as i64;
                f64::from_bits((key ^ ((key >> 63) & i64::MAX)) as u64)
            }
        }
    }
}

/// The key of a value of a type of at most 8 bits.
fn key_of_value(value: f64) -> i128 {
    key!(i64, value.to_bits() as i64).into()
}

/// Adds how often each byte occurs. Neighbours are counted in tables of their own: where they are the same, one count would wait for the
/// other.
fn count_bytes(bytes: &[u8], counts: &mut [u64; 256]) {
    // No count of 32 bits overflows.
    for bytes in bytes.chunks(1 << 30) {
        let mut tables = [[0_u32; 256]; 4];
        let (groups, rest) = bytes.as_chunks::<4>();
        for group in groups {
            for (table, &byte) in tables.iter_mut().zip(group) {
                table[usize::from(byte)] += 1;
            }
        }
        rest.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        for table in tables {
            counts.iter_mut().zip(table).for_each(|(count, more)| *count += u64::from(more));
        }
    }
}

/// The values of plain elements; none of bytes that are no whole elements.
fn values(dtype: Dtype, bytes: &[u8]) -> impl Iterator<Item = f64> + use<> {
    let n_values = (bytes.len() as u64 * 8).checked_div(dtype.bits().into()).unwrap_or(0) as usize;
    let shape = [n_values];
    let values = TensorView::new(dtype, &shape, bytes).and_then(|view| Ok(view.to_f64()?.collect()));
    values.unwrap_or_else(|_| Vec::new()).into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(dtype: Dtype, bytes: &[u8]) -> Statistics {
        let mut scan = Scan::new(dtype).expect("an element type");
        scan.add(bytes);
        scan.finish()
    }

    /// The same value by value, by the conversion of the format's crate.
    fn expected(dtype: Dtype, bytes: &[u8]) -> (u64, u64, u64, Option<(f64, f64)>) {
        let (mut nan, mut infinite, mut zeros, mut range) = (0, 0, 0, None);
        for value in values(dtype, bytes) {
            nan += u64::from(value.is_nan());
            infinite += u64::from(value.is_infinite());
            zeros += u64::from(value == 0.0);
            if value.is_finite() {
                let (low, high) = range.unwrap_or((value, value));
                range = Some((f64::min(low, value), f64::max(high, value)));
            }
        }
        (nan, infinite, zeros, range)
    }

    #[test]
    fn every_type_is_counted_as_its_values_are() {
        let mut seed = 7_u32;
        for dtype in Dtype::ELEMENTS {
            if dtype == Dtype::C64 {
                continue;
            }
            // With bit 6 off in every byte, all floats are finite; some blocks have a zero, others none.
            for (len, mask) in
                [(0, 0xff), (24, 0xff), (24 * 13, 0xff), (24 * 1_000, 0xff), (24 * 4_096, 0xbf)]
            {
                let bytes: Vec<u8> = (0..len)
                    .map(|_| {
                        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        match (dtype, seed >> 29) {
                            (Dtype::Bool, _) => (seed >> 24) as u8 & 1,
                            (_, 0) => 0xff,
                            (_, 1) => 0,
                            _ => (seed >> 16) as u8,
                        }
                    })
                    .map(|byte: u8| byte & mask)
                    .collect();
                let found = scan(dtype, &bytes);
                let (nan, infinite, zeros, range) = expected(dtype, &bytes);
                assert_eq!(found.count, len as u64 * 8 / u64::from(dtype.bits()), "{dtype}");
                assert_eq!((found.nan, found.infinite, found.zeros), (nan, infinite, zeros), "{dtype} {len}");
                assert_eq!(found.range, range, "{dtype} {len}");
                let mut halves = (Scan::new(dtype).unwrap(), Scan::new(dtype).unwrap());
                halves.0.add(&bytes[len / 48 * 24..]);
                halves.1.add(&bytes[..len / 48 * 24]);
                halves.0.merge(&halves.1);
                assert_eq!(halves.0.finish(), found, "{dtype} {len}");
            }
        }
    }

    #[test]
    fn signs_of_all_pairs_of_codes_are_told_apart() {
        for dtype in [Dtype::F8E4M3, Dtype::F8E5M2, Dtype::I8, Dtype::U8] {
            for pair in 0..=u16::MAX {
                let bytes = pair.to_le_bytes();
                let found = scan(dtype, &bytes);
                let (nan, infinite, zeros, range) = expected(dtype, &bytes);
                assert_eq!(
                    (found.nan, found.infinite, found.zeros),
                    (nan, infinite, zeros),
                    "{dtype} {pair}"
                );
                assert_eq!(found.range, range, "{dtype} {pair}");
            }
        }
    }

    #[test]
    fn special_values_are_told_apart() {
        let floats = [
            0.0,
            -0.0,
            f32::MIN_POSITIVE,
            1e-40,
            -1e-45,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            -f32::NAN,
            f32::MAX,
        ];
        let bytes: Vec<u8> = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
        let found = scan(Dtype::F32, &bytes);
        assert_eq!((found.count, found.nan, found.infinite, found.subnormal, found.zeros), (10, 2, 2, 2, 2));
        assert_eq!(found.range, Some((f64::from(-1e-45_f32), f64::from(f32::MAX))));
        assert!(!found.is_constant);
        let wide: Vec<u8> =
            [1e300, -1e300, 5e-324].iter().flat_map(|value: &f64| value.to_le_bytes()).collect();
        let found = scan(Dtype::F64, &wide);
        assert_eq!((found.infinite, found.subnormal, found.range), (0, 1, Some((-1e300, 1e300))));
    }

    #[test]
    fn constants_are_exact() {
        let big = [i64::MAX, i64::MAX - 1].map(i64::to_le_bytes).concat();
        assert!(!scan(Dtype::I64, &big).is_constant);
        assert!(scan(Dtype::I64, &[i64::MAX; 2].map(i64::to_le_bytes).concat()).is_constant);
        assert!(scan(Dtype::F32, &[0.0_f32, -0.0].map(f32::to_le_bytes).concat()).is_constant);
        assert!(!scan(Dtype::F32, &1.0_f32.to_le_bytes()).is_constant);
        assert!(!scan(Dtype::F16, &[0x00, 0x7c, 0x00, 0x7c]).is_constant);
        assert!(scan(Dtype::F4, &[0x33, 0x33]).is_constant);
    }
}
