//! Values of every element type as `f32` or `f64`.
//!
//! Small floats follow the OCP 8-bit Floating Point Specification (OFP8) 1.0 (E4M3, E5M2) and the OCP
//! Microscaling Formats (MX) Specification 1.0 (E8M0, E3M2, E2M3, E2M1). The FNUZ variants have one more in
//! the exponent bias, no negative zero, and 0x80 as their only NaN. All of them are exact in `f32`.
//!
//! The format does not specify in which order sub-byte elements fill a byte. Here the first element takes the
//! lowest bits, as in the packed types of the frameworks that write them.

use half::{bf16, f16};

use tensor_dtype::Dtype;
use tensor_dtype::Elements;

/// Layout of a float of at most 8 bits.
#[derive(Clone, Copy)]
struct Minifloat {
    mantissa_bits: u32,
    exponent_bits: u32,
    bias: u32,
    specials: Specials,
}

#[derive(Clone, Copy)]
enum Specials {
    /// All codes are finite.
    None,
    /// The greatest exponent means infinity or NaN.
    Ieee,
    /// All exponent and mantissa bits set mean NaN.
    AllOnes,
    /// Negative zero means NaN.
    NegativeZero,
}

impl Minifloat {
    const fn of(dtype: Dtype) -> Option<Self> {
        let (exponent_bits, mantissa_bits, bias, specials) = match dtype {
            Dtype::F4 => (2, 1, 1, Specials::None),
            Dtype::F6E2M3 => (2, 3, 1, Specials::None),
            Dtype::F6E3M2 => (3, 2, 3, Specials::None),
            Dtype::F8E4M3 => (4, 3, 7, Specials::AllOnes),
            Dtype::F8E5M2 => (5, 2, 15, Specials::Ieee),
            Dtype::F8E4M3Fnuz => (4, 3, 8, Specials::NegativeZero),
            Dtype::F8E5M2Fnuz => (5, 2, 16, Specials::NegativeZero),
            _ => return None,
        };
        Some(Self { mantissa_bits, exponent_bits, bias, specials })
    }

    /// The value of a code, whose bits above the sign are zero.
    const fn to_f32(self, code: u8) -> f32 {
        let code = code as u32;
        let sign = code >> (self.exponent_bits + self.mantissa_bits);
        let max_exponent = (1 << self.exponent_bits) - 1;
        let exponent = code >> self.mantissa_bits & max_exponent;
        let max_mantissa = (1 << self.mantissa_bits) - 1;
        let mantissa = code & max_mantissa;
        let magnitude = match self.specials {
            Specials::Ieee if exponent == max_exponent => {
                if mantissa == 0 {
                    f32::INFINITY
                } else {
                    f32::NAN
                }
            }
            Specials::AllOnes if exponent == max_exponent && mantissa == max_mantissa => f32::NAN,
            Specials::NegativeZero if sign == 1 && exponent == 0 && mantissa == 0 => return f32::NAN,
            _ => {
                // Subnormals have exponent 1 without the implicit bit; both parts are exact.
                let implicit = if exponent == 0 { 0 } else { 1 << self.mantissa_bits };
                let scale = if exponent == 0 { 1 } else { exponent };
                (implicit + mantissa) as f32 * power_of_two(127 + scale - self.bias - self.mantissa_bits)
            }
        };
        if sign == 1 { -magnitude } else { magnitude }
    }
}

/// 2^(biased - 127) for a biased exponent of a normal number.
const fn power_of_two(biased: u32) -> f32 {
    f32::from_bits(biased << 23)
}

/// OCP MX E8M0: 2^(code - 127).
const fn e8m0_to_f32(code: u8) -> f32 {
    match code {
        // 2^-127 is subnormal in an f32.
        0 => f32::from_bits(1 << 22),
        255 => f32::NAN,
        _ => power_of_two(code as u32),
    }
}

/// Fields of 4, 6 or 8 bits, the first in the lowest bits of the first byte.
#[derive(Clone, Debug)]
struct Fields<'data> {
    data: &'data [u8],
    bits: u32,
    next: usize,
    count: usize,
}

impl<'data> Fields<'data> {
    fn new(data: &'data [u8], bits: u32) -> Self {
        let count = (data.len() as u64 * 8 / u64::from(bits)) as usize;
        Self { data, bits, next: 0, count }
    }
}

impl Iterator for Fields<'_> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.next == self.count {
            return None;
        }
        // A group of four fields begins on a byte and spans `bits / 2` bytes: no bit count overflows.
        let (group, field) = (self.next / 4, self.next as u32 % 4);
        let bit = field * self.bits;
        let at = group * (self.bits as usize / 2) + bit as usize / 8;
        let low = *self.data.get(at)?;
        let high = self.data.get(at + 1).copied().unwrap_or_default();
        self.next += 1;
        let field = u16::from_le_bytes([low, high]) >> (bit % 8);
        Some((field & ((1 << self.bits) - 1)) as u8)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.count - self.next;
        (left, Some(left))
    }
}

/// Values of all codes of a small float; codes of less than 8 bits use the front of the table.
const fn table(dtype: Dtype) -> [f32; 256] {
    let mut values = [0.0; 256];
    let mut code = 0;
    while code < 1 << dtype.bits() {
        values[code] = match Minifloat::of(dtype) {
            Some(minifloat) => minifloat.to_f32(code as u8),
            None => e8m0_to_f32(code as u8),
        };
        code += 1;
    }
    values
}

/// A static table; in small builds, computed when it is needed: eight of them take 8 KB.
#[cfg(not(apr_small))]
type Codes = &'static [f32; 256];
#[cfg(apr_small)]
type Codes = alloc::boxed::Box<[f32; 256]>;

macro_rules! tables {
    ($($dtype:ident,)*) => {
        #[cfg(not(apr_small))]
        fn table_of(dtype: Dtype) -> Option<Codes> {
            match dtype {
                $(Dtype::$dtype => {
                    static TABLE: [f32; 256] = table(Dtype::$dtype);
                    Some(&TABLE)
                })*
                _ => None,
            }
        }

        #[cfg(apr_small)]
        fn table_of(dtype: Dtype) -> Option<Codes> {
            matches!(dtype, $(Dtype::$dtype)|*).then(|| Codes::new(table(dtype)))
        }
    };
}

tables! {
    F4,
    F6E2M3,
    F6E3M2,
    F8E5M2,
    F8E4M3,
    F8E8M0,
    F8E4M3Fnuz,
    F8E5M2Fnuz,
}

macro_rules! decoder {
    ($(#[$doc:meta])* $name:ident, $source:ident -> $out:ty { $($variant:ident: $element:ty, $convert:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<'data>($source<'data>);

        #[derive(Clone, Debug)]
        enum $source<'data> {
            Small(Fields<'data>, Codes),
            $($variant(Elements<'data, $element>),)*
        }

        impl<'data> $name<'data> {
            pub(crate) fn new(dtype: Dtype, data: &'data [u8]) -> Option<Self> {
                Some(Self(match dtype {
                    $(Dtype::$variant => $source::$variant(Elements::new(data)),)*
                    _ => $source::Small(Fields::new(data, dtype.bits()), table_of(dtype)?),
                }))
            }
        }

        impl Iterator for $name<'_> {
            type Item = $out;

            #[inline]
            fn next(&mut self) -> Option<$out> {
                match &mut self.0 {
                    $source::Small(fields, table) => fields.next().map(|code| table[usize::from(code)].into()),
                    $($source::$variant(elements) => elements.next().map($convert),)*
                }
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                match &self.0 {
                    $source::Small(fields, _) => fields.size_hint(),
                    $($source::$variant(elements) => elements.size_hint(),)*
                }
            }
        }

        impl ExactSizeIterator for $name<'_> {}
    };
}

decoder! {
    /// The elements of a float tensor as `f32`; every value is exact. See
    /// [`TensorView::to_f32`](crate::TensorView::to_f32).
    ToF32, F32Source -> f32 {
        F16: f16, f16::to_f32;
        Bf16: bf16, bf16::to_f32;
        F32: f32, |value| value;
    }
}

decoder! {
    /// The elements of a tensor as `f64`; 64-bit integers are rounded to nearest, all else is exact. See
    /// [`TensorView::to_f64`](crate::TensorView::to_f64).
    ToF64, F64Source -> f64 {
        Bool: u8, f64::from;
        U8: u8, f64::from;
        I8: i8, f64::from;
        I16: i16, f64::from;
        U16: u16, f64::from;
        F16: f16, f64::from;
        Bf16: bf16, f64::from;
        I32: i32, f64::from;
        U32: u32, f64::from;
        F32: f32, f64::from;
        F64: f64, |value| value;
        I64: i64, |value| value as f64;
        U64: u64, |value| value as f64;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn decode(dtype: Dtype, data: &[u8]) -> Vec<f32> {
        ToF32::new(dtype, data).unwrap().collect()
    }

    #[test]
    fn sub_byte_elements_start_in_the_lowest_bits() {
        assert_eq!(decode(Dtype::F4, &[0x21, 0xf7]), [0.5, 1.0, 6.0, -6.0]);
        // Codes 1, 2, 3, 0x3f in three bytes.
        assert_eq!(decode(Dtype::F6E2M3, &[0x81, 0x30, 0xfc]), [0.125, 0.25, 0.375, -7.5]);
        assert_eq!(decode(Dtype::F6E3M2, &[0x81, 0x30, 0xfc]), [0.0625, 0.125, 0.1875, -28.0]);
    }

    #[test]
    fn extremes_of_the_8_bit_floats() {
        assert_eq!(decode(Dtype::F8E4M3, &[0x7e, 0x01, 0x80]), [448.0, 1.0 / 512.0, 0.0]);
        assert!(decode(Dtype::F8E4M3, &[0x7f, 0xff]).iter().all(|value| value.is_nan()));
        assert_eq!(decode(Dtype::F8E5M2, &[0x7b, 0x7c, 0xfc]), [57344.0, f32::INFINITY, f32::NEG_INFINITY]);
        assert_eq!(decode(Dtype::F8E4M3Fnuz, &[0x7f, 0x01]), [240.0, 1.0 / 1024.0]);
        assert_eq!(decode(Dtype::F8E5M2Fnuz, &[0x7f, 0xff]), [57344.0, -57344.0]);
        assert!(decode(Dtype::F8E5M2Fnuz, &[0x80])[0].is_nan());
        assert_eq!(
            decode(Dtype::F8E8M0, &[0, 1, 127, 254]),
            [2f32.powi(-127), f32::MIN_POSITIVE, 1.0, 2f32.powi(127)]
        );
    }

    #[test]
    fn integers_become_f64_only() {
        assert!(ToF32::new(Dtype::U8, &[1]).is_none());
        assert!(ToF64::new(Dtype::C64, &[0; 8]).is_none());
        let values: Vec<f64> = ToF64::new(Dtype::I64, &(-3i64).to_le_bytes()).unwrap().collect();
        assert_eq!(values, [-3.0]);
    }

    #[test]
    fn sub_byte_elements_go_on_over_many_bytes() {
        // Codes 0, 1, 2, ... in 4 and in 6 bits.
        let codes = (0..12).flat_map(|at| [(2 * at) % 16 + ((2 * at + 1) % 16) * 16]).collect::<Vec<u8>>();
        let values = table_of(Dtype::F4).unwrap();
        assert!(ToF32::new(Dtype::F4, &codes).unwrap().eq((0..24).map(|code| values[code % 16])));
        let codes: Vec<u8> = (0..5u32)
            .flat_map(|group| {
                let packed = (0..4).fold(0, |packed, at| packed | (4 * group + at) << (6 * at));
                packed.to_le_bytes()[..3].to_vec()
            })
            .collect();
        let values = table_of(Dtype::F6E3M2).unwrap();
        assert!(ToF32::new(Dtype::F6E3M2, &codes).unwrap().eq((0..20).map(|code| values[code])));
    }

    #[test]
    fn specials_are_where_the_specifications_put_them() {
        for (dtype, nan, infinite) in [
            (Dtype::F4, 0, 0),
            (Dtype::F6E2M3, 0, 0),
            (Dtype::F6E3M2, 0, 0),
            (Dtype::F8E4M3, 2, 0),
            (Dtype::F8E5M2, 6, 2),
            (Dtype::F8E8M0, 1, 0),
            (Dtype::F8E4M3Fnuz, 1, 0),
            (Dtype::F8E5M2Fnuz, 1, 0),
        ] {
            let values = table_of(dtype).unwrap();
            assert_eq!(values.iter().filter(|value| value.is_nan()).count(), nan, "{dtype}");
            assert_eq!(values.iter().filter(|value| value.is_infinite()).count(), infinite, "{dtype}");
        }
        assert!(decode(Dtype::F8E8M0, &[255])[0].is_nan());
    }

    #[test]
    fn tables_hold_what_the_layouts_say() {
        for dtype in Dtype::ELEMENTS {
            if let Some(values) = table_of(dtype) {
                assert_eq!(values.map(f32::to_bits), table(dtype).map(f32::to_bits), "{dtype}");
                let used = 1 << dtype.bits();
                assert!(values[used..].iter().all(|value| *value == 0.0));
            }
        }
        assert_eq!(Dtype::ELEMENTS.into_iter().filter_map(table_of).count(), 8);
    }

    #[test]
    fn sizes_are_exact() {
        assert_eq!(ToF32::new(Dtype::F6E3M2, &[0; 6]).unwrap().len(), 8);
        let mut values = ToF64::new(Dtype::F32, &[0; 8]).unwrap();
        values.next();
        assert_eq!(values.len(), 1);
        let mut values = ToF32::new(Dtype::F4, &[0; 2]).unwrap();
        values.next();
        assert_eq!((values.len(), values.count()), (3, 3));
    }
}
