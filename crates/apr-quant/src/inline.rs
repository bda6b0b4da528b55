//! Inlining of functions that the kernels of several types share.

/// Functions that are inlined into the kernels that call them, so that they are compiled for each SIMD level; a function that is not
/// inlined is compiled for the baseline. A WebAssembly module has one set of instructions, and engines are faster with functions that
/// are not inlined (decoding `Q4_0` in Node.js: 1,100 MiB/s instead of 86).
macro_rules! shared {
    ($($function:item)*) => {
        $(#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
        $function)*
    };
}

pub(crate) use shared;
