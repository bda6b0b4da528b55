"""Files of NumPy, joblib, h5py or onnx.

    write_arrays.py FOLDER COUNT SEED numpy|joblib|hdf5|onnx
"""

from __future__ import annotations

import gzip
import pickle
import sys

import numpy as np
from writing import NAMES, Writing, row_of

writing = Writing()
pick = writing.random

PLAIN = [name for name in NAMES if "float8" not in name and name != "bfloat16"]


def plain() -> np.ndarray:
    """An array of a type of NumPy, in either byte order, perhaps a view."""
    dtype = np.dtype(pick.choice(PLAIN))
    if pick.random() < 0.2:
        dtype = dtype.newbyteorder(">")
    return writing.view(writing.array(dtype))


def numpy_files() -> None:
    for number in range(writing.count):
        kind = number % 4
        if kind == 0:
            file, array = f"array_{number}.npy", plain()
            with open(writing.folder / file, "wb") as stream:
                version = pick.choice([None, (1, 0), (2, 0), (3, 0)])
                np.lib.format.write_array(stream, array, version=version, allow_pickle=False)
            writing.expect(file, {"": row_of(array)})
            continue
        arrays = {writing.name().replace("/", "_"): plain() for _ in range(pick.randint(1, 6))}
        if kind == 3:
            file = f"arrays_{number}.pkl"
            tree = {"outer": arrays, "list": [plain(), plain()], "epoch": 3}
            if pick.random() < 0.3:
                tree["tied"] = tree["list"][0]
            protocol = pick.choice(range(6))
            opened = pick.choice([open, open, open, gzip.open])
            with opened(writing.folder / file, "wb") as stream:
                pickle.dump(tree, stream, protocol=protocol)
            rows = {f"outer.{name}": row_of(array) for name, array in arrays.items()}
            rows |= {f"list.{idx}": row_of(array) for idx, array in enumerate(tree["list"])}
            if "tied" in tree:
                rows["tied"] = rows["list.0"]
            writing.expect(file, rows)
            continue
        file = f"arrays_{number}.npz"
        (np.savez if kind == 1 else np.savez_compressed)(writing.folder / file, **arrays)
        writing.expect(file, {name: row_of(array) for name, array in arrays.items()})


def joblib_files() -> None:
    import joblib

    for number in range(writing.count):
        rows: dict = {}

        def tree(prefix: str, depth: int):
            if depth == 0 or (prefix and pick.random() < 0.5):
                if pick.random() < 0.15:
                    return pick.choice([1, 2.5, "text", None, True, (1, 2)])
                array = plain()
                rows[prefix] = row_of(array)
                return array
            join = lambda key: f"{prefix}.{key}" if prefix else str(key)
            if prefix and pick.random() < 0.3:
                return [tree(join(idx), depth - 1) for idx in range(pick.randint(1, 4))]
            keys = {writing.name() for _ in range(pick.randint(1, 4))}
            return {key: tree(join(key), depth - 1) for key in sorted(keys)}

        value = tree("", pick.randint(1, 3))
        compress = pick.choice([0] * 8 + [("zlib", 3), ("gzip", 6)] * 3 + [("bz2", 3), ("xz", 3), ("lzma", 3)])
        file = f"value_{number}.joblib"
        joblib.dump(value, writing.folder / file, compress=compress, protocol=pick.choice([2, 3, 4, 5]))
        writing.expect(file, rows, refused=not rows)


def hdf5_files() -> None:
    import h5py

    libraries = ["earliest", "v108", "v110", "v112", "v114", "latest"]
    for number in range(writing.count):
        rows: dict = {}
        file = f"data_{number}.h5"
        low = pick.randrange(len(libraries))
        options = {"libver": (libraries[low], "latest"), "track_order": pick.random() < 0.3}
        if pick.random() < 0.1:
            options |= {"userblock_size": 512}
        elif pick.random() < 0.1:
            options |= {"fs_strategy": "page", "fs_page_size": 4096}
        with h5py.File(writing.folder / file, "w", **options) as root:
            groups = [("", root)]
            for number in range(pick.choice([1, 3, 12, 40])):
                prefix, group = pick.choice(groups)
                name = f"{writing.name().replace('/', '-').replace('.', '-')}{number}"
                path = f"{prefix}{name}"
                if pick.random() < 0.25:
                    groups.append((f"{path}.", group.create_group(name, track_order=pick.random() < 0.3)))
                    continue
                array = plain()
                extra: dict = {}
                if array.ndim and array.size and pick.random() < 0.6:
                    extra["chunks"] = tuple(pick.randint(1, size + 2) for size in array.shape)
                    extra["maxshape"] = tuple(pick.choice([None, size + 2]) for size in array.shape)
                    if pick.random() < 0.5:
                        extra["maxshape"] = None
                        extra["chunks"] = tuple(min(*pair) for pair in zip(extra["chunks"], array.shape))
                    extra["compression"] = pick.choice([None, "gzip"])
                    extra["shuffle"] = pick.random() < 0.3
                    extra["fletcher32"] = pick.random() < 0.3
                if array.size and pick.random() < 0.2 and array.ndim:
                    # Partly written, the rest is the fill value.
                    extra["fillvalue"] = array.reshape(-1)[0] if array.dtype.kind != "c" else None
                    dataset = group.create_dataset(name, shape=array.shape, dtype=array.dtype, **extra)
                    dataset[: array.shape[0] // 2 + 1] = array[: array.shape[0] // 2 + 1]
                    array = dataset[()]
                else:
                    dataset = group.create_dataset(name, data=array, **extra)
                rows[path] = row_of(array)
                if pick.random() < 0.1:
                    link = f"{name}-link"
                    group[link] = pick.choice([dataset, h5py.SoftLink(dataset.name)])
                    rows[f"{prefix}{link}"] = rows[path]
                for key in range(pick.choice([0, 0, 2, 10])):
                    dataset.attrs[f"attribute {key}"] = pick.choice([1, "text", [1.5, 2.5]])
        writing.expect(file, rows, refused=not rows)


def onnx_files() -> None:
    import hashlib

    import onnx
    from onnx import TensorProto, helper, numpy_helper

    raw = [helper.tensor_dtype_to_np_dtype(kind) for kind in helper.get_all_tensor_dtypes() if kind not in (0, 8)]
    packed = {"int4": "I4", "uint4": "U4", "float4_e2m1fn": "F4", "int2": "I2", "uint2": "U2"}

    def tensor(name: str) -> tuple:
        dtype = np.dtype(pick.choice([dtype for dtype in raw if dtype.name in NAMES or dtype.name in packed]))
        if dtype.name in packed:
            shape = writing.shape()
            bits = int(packed[dtype.name][1:])
            codes = writing.numbers.integers(0, 2**bits, shape).astype(np.uint8)
            per_byte = 8 // bits
            flat = codes.reshape(-1)
            flat = np.concatenate([flat, np.zeros(-len(flat) % per_byte, np.uint8)]).reshape(-1, per_byte)
            data = sum((flat[:, at].astype(np.uint16) << (bits * at) for at in range(per_byte))).astype(np.uint8).tobytes()
            proto = TensorProto(name=name, dims=shape, data_type=helper.np_dtype_to_tensor_dtype(dtype))
            if pick.random() < 0.5:
                proto.int32_data.extend(data)
            else:
                proto.raw_data = data
            return proto, [packed[dtype.name], list(shape), hashlib.sha256(data).hexdigest()]
        array = writing.array(dtype)
        if pick.random() < 0.5:
            return numpy_helper.from_array(array, name), row_of(array)
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        field = helper.tensor_dtype_to_field(kind)
        proto = TensorProto(name=name, dims=array.shape, data_type=kind)
        flat = array.reshape(-1)
        if dtype.kind == "b":
            flat = flat.view("u1")
        if dtype.kind == "c":
            flat = flat.view(f"f{dtype.itemsize // 2}")
        elif field == "int32_data" and "float" in dtype.name:
            flat = flat.view(f"u{dtype.itemsize}")
        if dtype.kind in "fc" and field in ("float_data", "double_data"):
            # The bits of signalling NaNs are not kept on the way through Python's numbers.
            flat = np.nan_to_num(flat)
            array = (flat.view(dtype) if dtype.kind == "c" else flat).reshape(array.shape)
        getattr(proto, field).extend(flat.tolist())
        return proto, row_of(array)

    for number in range(writing.count):
        rows: dict = {}
        graph = helper.make_graph([], "graph", [], [])
        names = {f"{writing.name()}{idx}" for idx in range(pick.randint(1, 8))}
        for name in sorted(names):
            proto, row = tensor(name)
            if pick.random() < 0.3:
                proto.ClearField("name")
                graph.node.append(helper.make_node("Constant", [], [name], value=proto))
            else:
                graph.initializer.append(proto)
            rows[name] = row
        if pick.random() < 0.3:
            proto, rows["inner"] = tensor("inner")
            branches = [helper.make_graph([], kind, [], [], initializer=[proto]) for kind in ("then", "else")]
            del branches[1].initializer[:]
            node = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
            graph.node.append(node)
        model = helper.make_model(graph)
        file = f"model_{number}.onnx"
        if pick.random() < 0.3:
            onnx.save(
                model,
                writing.folder / file,
                save_as_external_data=True,
                all_tensors_to_one_file=pick.random() < 0.6,
                location=None,
                size_threshold=pick.choice([0, 64]),
                convert_attribute=pick.random() < 0.5,
            )
        else:
            onnx.save(model, writing.folder / file)
        writing.expect(file, rows)


{"numpy": numpy_files, "joblib": joblib_files, "hdf5": hdf5_files, "onnx": onnx_files}[sys.argv[4]]()
