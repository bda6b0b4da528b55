//! Types without blocks: floats and integers.

/// `F32`: the same bits.
pub(crate) mod float32 {
    use crate::importance::Importance;

    #[inline(always)]
    pub(crate) fn encode(x: &[f32; 1], _importance: Option<Importance<'_, 1>>, out: &mut [u8; 4]) {
        *out = x[0].to_le_bytes();
    }

    #[inline(always)]
    pub(crate) fn decode(block: &[u8; 4], out: &mut [f32; 1]) {
        out[0] = f32::from_le_bytes(*block);
    }
}

/// `F64`: every `f32` is exact; decoding rounds to the nearest `f32`.
pub(crate) mod float64 {
    use crate::importance::Importance;

    #[inline(always)]
    pub(crate) fn encode(x: &[f32; 1], _importance: Option<Importance<'_, 1>>, out: &mut [u8; 8]) {
        *out = f64::from(x[0]).to_le_bytes();
    }

    #[inline(always)]
    pub(crate) fn decode(block: &[u8; 8], out: &mut [f32; 1]) {
        out[0] = f64::from_le_bytes(*block) as f32;
    }
}

/// `F16`.
pub(crate) mod half {
    use crate::half_float::{f16_bits, f16_value};
    use crate::importance::Importance;

    #[inline(always)]
    pub(crate) fn encode(x: &[f32; 1], _importance: Option<Importance<'_, 1>>, out: &mut [u8; 2]) {
        *out = f16_bits(x[0]).to_le_bytes();
    }

    #[inline(always)]
    pub(crate) fn decode(block: &[u8; 2], out: &mut [f32; 1]) {
        out[0] = f16_value(u16::from_le_bytes(*block));
    }
}

/// `BF16`.
pub(crate) mod brain {
    use crate::half_float::{bf16_bits, bf16_value};
    use crate::importance::Importance;

    #[inline(always)]
    pub(crate) fn encode(x: &[f32; 1], _importance: Option<Importance<'_, 1>>, out: &mut [u8; 2]) {
        *out = bf16_bits(x[0]).to_le_bytes();
    }

    #[inline(always)]
    pub(crate) fn decode(block: &[u8; 2], out: &mut [f32; 1]) {
        out[0] = bf16_value(u16::from_le_bytes(*block));
    }
}

macro_rules! integers {
    ($($(#[$doc:meta])* $module:ident: $integer:ty;)*) => {
        $($(#[$doc])*
        pub(crate) mod $module {
            #[inline(always)]
            pub(crate) fn decode(block: &[u8; size_of::<$integer>()], out: &mut [f32; 1]) {
                #[allow(clippy::cast_lossless, reason = "one line for all widths")]
                let value = <$integer>::from_le_bytes(*block) as f32;
                out[0] = value;
            }
        })*
    };
}

integers! {
    /// `I8`.
    int8: i8;
    /// `I16`.
    int16: i16;
    /// `I32`: the nearest float.
    int32: i32;
    /// `I64`: the nearest float.
    int64: i64;
}
