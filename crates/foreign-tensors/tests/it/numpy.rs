//! NumPy and MLX.

use crate::vectors::check;

#[test]
fn vectors() {
    check(&["numpy", "mlx", "hostile/numpy"]);
}
