//! Arrays, element by element.
//!
//! `array::map` is a function of its own, compiled without the instructions that the code around it may use; a loop is not.

/// The function of each element.
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
