//! Functions that the loops of several formats share.

/// Functions that are compiled for the instructions of each loop that calls them: what is not inlined into the loop is compiled
/// without them. A WebAssembly module has one kind of instructions, and its engine is faster with functions of their own (`Q4_0` to
/// numbers in Node.js: 1,100 MiB/s instead of 86).
macro_rules! shared {
    ($($function:item)*) => {
        $(#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
        $function)*
    };
}

pub(crate) use shared;
