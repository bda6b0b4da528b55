//! PyTorch and Paddle.
