//! PyTorch.

use crate::vectors::check;

#[test]
fn vectors() {
    check(&["torch", "hostile/torch"]);
}
