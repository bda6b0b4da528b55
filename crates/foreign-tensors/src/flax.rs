//! Flax parameters in MessagePack.
