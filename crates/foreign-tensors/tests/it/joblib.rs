//! Pickled arrays: NumPy, joblib, scikit-learn, Paddle.

use crate::vectors::check;

#[test]
fn vectors() {
    check(&["joblib", "pickle", "hostile/pickle", "paddle"]);
}
