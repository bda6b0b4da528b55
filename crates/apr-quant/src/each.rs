//! Functions applied to each element of an array.
//!
//! `array::map` is a separate function, compiled without the instructions of its caller; a loop is compiled with them.

/// Applies `f` to each element.
#[inline(always)]
pub(crate) fn each<T: Copy, U: Copy + Default, const N: usize>(x: &[T; N], f: impl Fn(T) -> U) -> [U; N] {
    let mut out = [U::default(); N];
    for (out, &x) in out.iter_mut().zip(x) {
        *out = f(x);
    }
    out
}

/// Changes each element.
#[inline(always)]
pub(crate) fn changed<T: Copy, const N: usize>(x: &[T; N], f: impl Fn(T) -> T) -> [T; N] {
    let mut out = *x;
    for out in &mut out {
        *out = f(*out);
    }
    out
}
