"""Pytrees of JAX: parameters of Flax, states of Optax, objects of `flax.nnx`.

A file has the leaves by the path that leads to them. Containers, named tuples among them, are those of the tree that is filled.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from . import _arrays
from ._files import Part, TensorFile, as_numpy, flat, free_name, listed
from ._states import Fill

NAME = "jax"

_SCALARS = (bool, int, float, complex, str)


def _nnx() -> Any:
    return sys.modules.get("flax.nnx")


def is_module(value: Any) -> bool:
    """Whether it is an object of `flax.nnx`, which is filled in place."""
    nnx = _nnx()
    kinds = (getattr(nnx, name, None) for name in ("Module", "Object", "Pytree", "Optimizer", "Rngs"))
    return nnx is not None and isinstance(value, tuple(kind for kind in kinds if isinstance(kind, type)))


def is_tree(value: Any) -> bool:
    """Whether it is more than a mapping from names to arrays of other libraries. Tensors of torch alone are for torch's own module."""
    # Keys of a mapping need not be of one type here: what is wrong with them is said where they are written.
    leaves = jax.tree_util.tree_leaves(list(value.values()) if isinstance(value, Mapping) else value)
    if not (is_module(value) or has_arrays(leaves)) and any(map(_arrays.is_torch, leaves)):
        return False
    if not isinstance(value, Mapping):
        return bool(leaves) and not jax.tree_util.all_leaves([value])
    return any(isinstance(item, jax.Array) or not jax.tree_util.all_leaves([item]) for item in value.values())


def has_arrays(value: Any) -> bool:
    """Whether arrays of JAX are in it. A tree may also be one of numpy's, of which JAX knows no more than how it is nested."""
    return is_module(value) or any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(value))


def class_name(model: Any) -> str:
    return "" if isinstance(model, Mapping) else type(model).__name__


def _part_of_path(key: Any) -> str:
    found = (getattr(key, name, None) for name in ("key", "name", "idx"))
    return str(next((part for part in found if part is not None), key))


def _flattened(tree: Any, saved: Mapping[str, list[str]] | None = None) -> tuple[dict[str, Any], dict[str, list[str]], Any]:
    """The leaves by name, the paths to those whose names do not tell them, and what puts them together again.

    A name that several paths have, such as `a.b`, is given as it was when the paths of `saved` were; one of no path in it is free.
    """
    leaves, treedef = jax.tree_util.tree_flatten_with_path(tree)
    names_saved: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
    for name, path in (saved or {}).items():
        names_saved[tuple(path)].append(name)
    paths = [tuple(map(_part_of_path, path)) for path, _ in leaves]
    plain = [".".join(path) or "value" for path in paths]
    counts = collections.Counter(plain)
    named: dict[str, Any] = {}
    unclear: dict[str, list[str]] = {}
    # Names that were saved are not for other paths.
    taken = dict.fromkeys(saved or {})
    for path, text, (_, leaf) in zip(paths, plain, leaves, strict=True):
        # Keys 1 and "1" have the same path.
        left = names_saved.get(path)
        name = left.pop(0) if left else free_name(text, taken)
        named[name], taken[name] = leaf, None
        if counts[text] > 1 or name != text:
            unclear[name] = list(path)
    return named, unclear, treedef


def _pure(value: Any) -> Any:
    """Of an object of `flax.nnx` its variables as dictionaries, with shared ones once; other trees are themselves."""
    nnx = _nnx()
    return nnx.to_pure_dict(nnx.state(value)) if is_module(value) else value


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def pack(tree: Any, copy: bool) -> tuple[Part, dict[str, Any]]:
    """The leaves of a tree."""
    tensors: dict[str, Any] = {}
    values: dict[str, Any] = {}
    keys: dict[str, str] = {}
    named, unclear, _ = _flattened(_pure(tree))
    for name, leaf in named.items():
        if _is_key(leaf):
            keys[name] = str(jax.random.key_impl(leaf))
            tensors[name] = jax.random.key_data(leaf)
        elif _arrays.is_array(leaf):
            tensors[name] = leaf
        elif type(leaf) in _SCALARS:
            values[name] = leaf
        else:
            raise TypeError(f"leaf `{name}` is a {type(leaf).__name__}, which no file can hold: leave it out of the tree")
    notes = {"values": values, "keys": keys, "paths": unclear}
    return flat(tensors, copy), {kind: found for kind, found in notes.items() if found}


def prepare(target: Any, file: TensorFile, notes: Mapping[str, Any], strict: bool) -> Fill:
    """Of a tree one like the target with the leaves that were saved, each on the devices of its place; objects of `flax.nnx` are filled."""
    values, keys = notes.get("values", {}), notes.get("keys", {})
    named, _, treedef = _flattened(_pure(target), notes.get("paths"))
    missing = [name for name in named if name not in file.table and name not in values]
    unexpected = [name for name in (*file.table, *values) if name not in named]
    if missing or strict and unexpected:
        raise ValueError(
            f"the trees differ: the checkpoint lacks {listed(missing) or 'nothing'} and has also {listed(unexpected) or 'nothing'}"
        )
    leaves = [
        _checked(name, leaf, values[name]) if name in values else _like(name, leaf, as_numpy(file, name), keys.get(name))
        for name, leaf in named.items()
    ]
    tree = jax.tree_util.tree_unflatten(treedef, leaves)
    if not is_module(target):
        return lambda: tree

    def fill() -> Any:
        nnx = _nnx()
        state = nnx.state(target)
        nnx.replace_by_pure_dict(state, tree)
        nnx.update(target, state)
        return target

    return fill


def _checked(name: str, leaf: Any, value: Any) -> Any:
    """A number or text of the checkpoint, which may only replace one of its type."""
    if type(leaf) is not type(value):
        raise ValueError(f"`{name}` has the type {type(value).__name__} in the checkpoint, {type(leaf).__name__} in the tree")
    return value


def _like(name: str, leaf: Any, array: np.ndarray, key: str | None) -> Any:
    """An array of the checkpoint in the place of a leaf."""
    if key is not None or _is_key(leaf):
        if key is None or not _is_key(leaf) or str(jax.random.key_impl(leaf)) != key:
            raise ValueError(f"`{name}` is a key of {key or 'no generator'} in the checkpoint, and another kind of leaf in the tree")
        return _put(jax.random.wrap_key_data(np.array(array), impl=key), leaf)
    if type(leaf) in _SCALARS:
        # Compiled steps make arrays of counters that are numbers of Python in a tree that is new.
        return _checked(name, leaf, array if array.shape else array.item())
    shape, dtype = np.shape(leaf), getattr(leaf, "dtype", None)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"`{name}` is {array.dtype}{list(array.shape)} in the checkpoint, {dtype}{list(shape)} in the tree")
    if not isinstance(leaf, jax.Array):
        return array[()] if isinstance(leaf, np.generic) else np.array(array)
    if leaf.weak_type and not shape:
        # Of weak type again: a strong one would promote other arrays.
        weak = jax.numpy.asarray(array.item())
        if weak.dtype == dtype:
            return _put(weak, leaf)
    return _put(np.array(array), leaf)


def _put(value: Any, leaf: Any) -> Any:
    """A value where the leaf is. What is free to move stays so: compiled functions tell the two apart."""
    return jax.device_put(value, leaf.sharding) if getattr(leaf, "committed", True) else jax.device_put(value)


def pack_optimizer(optimizer: Any, model: Any, copy: bool) -> tuple[Part, dict[str, Any]]:
    return pack(optimizer, copy)


def prepare_optimizer(target: Any, file: TensorFile, notes: Mapping[str, Any], model: Any) -> Fill:
    return prepare(target, file, notes, True)
