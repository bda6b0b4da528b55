"""safetensors files as arrays of JAX: `apr.safetensors.flax`, by the name of what it makes."""

from __future__ import annotations

from .flax import load, load_file, save, save_file

__all__ = ["load", "load_file", "save", "save_file"]
