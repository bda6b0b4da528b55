"""Pickles from a grammar over names that files of models use, and dumps of real objects with parts exchanged.

Payloads are functions that lie in a file as values. A loader that calls one, or a library that the object is used with, is a finding.
"""

from __future__ import annotations

import gzip
import io
import pickle
import pickletools
import random
import struct
import zipfile
import zlib
from collections.abc import Callable

CANARY = "apr-canary-was-here"

TORCH = "torch.nn.modules"
CLASSES = [
    (f"{TORCH}.linear", "Identity"),
    (f"{TORCH}.linear", "Linear"),
    (f"{TORCH}.linear", "NonDynamicallyQuantizableLinear"),
    (f"{TORCH}.container", "Sequential"),
    (f"{TORCH}.container", "ModuleList"),
    (f"{TORCH}.container", "ModuleDict"),
    (f"{TORCH}.container", "ParameterList"),
    (f"{TORCH}.activation", "ReLU"),
    (f"{TORCH}.activation", "MultiheadAttention"),
    (f"{TORCH}.loss", "MSELoss"),
    (f"{TORCH}.rnn", "LSTM"),
    (f"{TORCH}.normalization", "LayerNorm"),
    (f"{TORCH}.transformer", "TransformerEncoderLayer"),
    ("argparse", "Namespace"),
    ("types", "SimpleNamespace"),
    ("uuid", "UUID"),
    ("joblib.numpy_pickle", "NumpyArrayWrapper"),
    ("torch.distributed.checkpoint.metadata", "Metadata"),
    ("sklearn.linear_model._base", "LinearRegression"),
    ("sklearn.pipeline", "Pipeline"),
    ("sklearn.preprocessing._function_transformer", "FunctionTransformer"),
    ("sklearn.feature_selection._univariate_selection", "SelectKBest"),
    ("sklearn.utils._bunch", "Bunch"),
]
CONTAINERS = [
    ("collections", "OrderedDict"),
    ("collections", "Counter"),
    ("collections", "defaultdict"),
    ("collections", "deque"),
    ("builtins", "dict"),
    ("builtins", "list"),
    ("builtins", "set"),
    ("builtins", "bytearray"),
    ("torch", "Size"),
]
# Functions that files of models call, and how many arguments they take.
FUNCTIONS = {
    ("torch._utils", "_rebuild_tensor"): 4,
    ("torch._utils", "_rebuild_tensor_v2"): 6,
    ("torch._utils", "_rebuild_parameter"): 3,
    ("torch._utils", "_rebuild_parameter_with_state"): 4,
    ("torch._utils", "_rebuild_qtensor"): 7,
    ("torch._utils", "_rebuild_sparse_tensor"): 2,
    ("torch._utils", "_rebuild_wrapper_subclass"): 8,
    ("torch._utils", "_rebuild_device_tensor_from_numpy"): 4,
    ("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"): 4,
    ("torch._utils", "_rebuild_nested_tensor"): 4,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): 4,
    ("torch._tensor", "_rebuild_from_type_v2"): 4,
    ("torch.nn.parameter", "Parameter"): 2,
    ("torch.nn.parameter", "Buffer"): 1,
    ("torch.serialization", "_get_layout"): 1,
    ("numpy._core.multiarray", "scalar"): 2,
    ("numpy._core.multiarray", "_reconstruct"): 3,
    ("numpy._core.numeric", "_frombuffer"): 4,
    ("numpy.random._pickle", "__randomstate_ctor"): 1,
    ("numpy.random._pickle", "__bit_generator_ctor"): 1,
    ("numpy.ma.core", "_mareconstruct"): 4,
    ("copyreg", "_reconstructor"): 3,
    ("functools", "partial"): 1,
    ("collections", "OrderedDict"): 1,
    ("collections", "defaultdict"): 1,
    ("builtins", "dict"): 1,
    ("builtins", "list"): 1,
    ("builtins", "bytearray"): 1,
    ("builtins", "slice"): 3,
    ("pathlib", "PurePosixPath"): 1,
    ("decimal", "Decimal"): 1,
    ("sklearn.tree._tree", "Tree"): 3,
    ("sklearn.neighbors._kd_tree", "newObj"): 1,
    ("sklearn._loss._loss", "CyHalfSquaredError"): 0,
}
# Functions that are harmless by themselves, and of use to who gets a library to call them.
PLANTED = [
    ("torch.jit._pickle", "restore_type_tag"),
    ("torch.jit._pickle", "build_intlist"),
    ("torch.jit._pickle", "build_tensorlist"),
    ("torch.storage", "_load_from_bytes"),
]
# Names of packages whose other names are in honest files.
NEIGHBORS = [
    (("numpy", "save"), (CANARY, 1)),
    (("numpy", "savetxt"), (CANARY, [1])),
    (("numpy", "memmap"), (CANARY, "u1", "w+", 0, 9)),
    (("numpy", "load"), ("/etc/hostname",)),
    (("numpy", "fromfile"), ("/etc/hostname", "u1")),
    (("numpy", "genfromtxt"), ("/etc/hostname",)),
    (("numpy.testing._private.utils", "runstring"), ("1", {})),
    (("joblib", "load"), ("/etc/hostname",)),
    (("joblib", "dump"), (1, CANARY)),
    (("joblib.memory", "Memory"), (CANARY,)),
    (("torch", "load"), ("/etc/hostname",)),
    (("torch", "save"), (1, CANARY)),
    (("torch", "from_file"), (CANARY, True, 9)),
    (("torch.hub", "load"), ("a/b", "c")),
    (("torch.jit", "load"), ("/etc/hostname",)),
    (("torch.serialization", "load"), ("/etc/hostname",)),
    (("torch._utils", "_import_dotted_name"), ("os.system",)),
    (("torch.utils.cpp_extension", "load_inline"), ("x", "int x;")),
    (("pathlib", "Path.touch"), (CANARY,)),
    (("sklearn.datasets", "load_files"), ("/etc/ssl",)),
    (("sklearn.datasets._base", "get_data_home"), (CANARY,)),
    (("sklearn.externals.array_api_compat", "torch"), ()),
]
HOOKS = [
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
]
MAPPINGS = [
    *HOOKS,
    "_parameters",
    "_buffers",
    "_modules",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs",
]
# Attributes that loaders and libraries look up.
ATTRIBUTES = (
    "detach requires_grad_ requires_grad to as_subclass forward items keys values get __iter__ copy update data dtype device "
    "_untyped_storage untyped_storage set_ _compiled_call_impl _call_impl _slow_forward extra_repr named_parameters state_dict read "
    "shape append extend add hook register_hook _backward_hooks all_weights _flat_weights numpy __array__ reshape train _apply call "
    "activation dropout norm1 func score_func steps fit predict transform get_params __sklearn_tags__ _repr_html_ _get_tags __call__ "
    "__setstate__ __reduce__ default_factory"
).split()
MAPPING_METHODS = ["items", "keys", "values", "get", "update", "copy", "__iter__"]

VOCABULARY = {module for module, _ in [*CLASSES, *CONTAINERS, *FUNCTIONS, *PLANTED]}


def named(name: tuple[str, str]) -> bytes:
    return b"c" + "\n".join(name).encode() + b"\n"


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def value_of(value: object) -> bytes:
    """A plain value, without the frame of a pickle."""
    return pickle.dumps(value, 2)[2:-1]


def tuple_of(*values: bytes) -> bytes:
    return b"(" + b"".join(values) + b"t"


def command() -> bytes:
    """A pickle that runs a command."""
    return b"\x80\x02" + named(("os", "system")) + tuple_of(text(f"touch {CANARY}")) + b"R."


class Grammar:
    """Random pickles: objects with states, calls, containers with attributes of their own."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.memo, self.known = rng, 0, list[int]()

    def pickle(self) -> bytes:
        dropped = b"".join(self.value(4) + b"0" for _ in range(self.rng.randrange(3)))
        root = self.rng.choice((self.object, self.object, self.call, self.mapping))
        return b"\x80\x03" + dropped + root(4) + b"."

    def keep(self, code: bytes) -> bytes:
        """The code, with its value in the memo, where later values find it."""
        if self.memo < 250:
            self.known.append(self.memo)
            code += b"q" + bytes([self.memo])
            self.memo += 1
        return code

    def recall(self) -> bytes:
        return b"h" + bytes([self.rng.choice(self.known)])

    def ordered(self, items: list[tuple[bytes, bytes]]) -> bytes:
        code = named(("collections", "OrderedDict")) + b")R"
        return code + (b"(" + b"".join(key + value for key, value in items) + b"u" if items else b"")

    def leaf(self) -> bytes:
        rng = self.rng
        leaves: list[Callable[[], bytes]] = [
            lambda: rng.choice([b"N", b"\x88", b")", b"]", b"}"]),
            lambda: b"K" + bytes([rng.randrange(9)]),
            lambda: text(rng.choice(ATTRIBUTES)),
            lambda: b"B" + struct.pack("<I", len(command())) + command(),
            lambda: self.ordered([]),
            lambda: named(rng.choice(PLANTED)),
            lambda: named(rng.choice(CONTAINERS)),
            lambda: named(rng.choice([*FUNCTIONS])),
            lambda: named(("torch", rng.choice(["float32", "int8", "strided"]))),
            lambda: named(("builtins", rng.choice(["bytes", "dict", "list", "str", "int", "getattr"]))),
        ]
        return rng.choice(leaves)()

    def value(self, depth: int) -> bytes:
        if self.known and self.rng.random() < 0.3:
            return self.recall()
        if depth <= 0 or self.rng.random() < 0.3:
            return self.leaf()
        return self.rng.choice([self.object, self.object, self.call, self.mapping, self.sequence])(depth - 1)

    def action(self, depth: int) -> bytes:
        """A value that a library might call."""
        if self.rng.random() < 0.3:
            return self.value(depth)
        if self.known and self.rng.random() < 0.5:
            return self.recall()
        return named(self.rng.choice(PLANTED)) if depth <= 0 or self.rng.random() < 0.6 else self.object(depth - 1)

    def sequence(self, depth: int) -> bytes:
        return tuple_of(*(self.value(depth) for _ in range(self.rng.randrange(4))))

    def mapping(self, depth: int) -> bytes:
        rng = self.rng
        key = lambda: text(rng.choice(ATTRIBUTES)) if rng.random() < 0.8 else b"K\0"  # noqa: E731
        code = self.ordered([(key(), self.action(depth)) for _ in range(rng.randrange(1, 4))])
        if rng.random() < 0.5:
            methods = [text(rng.choice(MAPPING_METHODS)) + self.action(depth) for _ in range(rng.randrange(1, 3))]
            code += b"}(" + b"".join(methods) + b"ub"
        return self.keep(code)

    def object(self, depth: int) -> bytes:
        rng = self.rng
        module, name = rng.choice(CLASSES)
        # In the memo before its state: it may refer to itself.
        code = self.keep(named((module, name)) + b")\x81")
        items: dict[str, bytes] = {}
        if module.startswith(TORCH):
            items = {key: self.ordered([]) for key in MAPPINGS} | {"training": b"\x89"}
            for key in rng.sample(MAPPINGS, rng.randrange(3)):
                inner = b"K\0" if key in HOOKS else text(rng.choice(ATTRIBUTES))
                items[key] = self.ordered([(inner, self.action(depth)) for _ in range(rng.randrange(1, 3))])
        for key in dict.fromkeys(rng.choices(ATTRIBUTES, k=rng.randrange(4))):
            # A value that is there may hold entries of the memo.
            if key not in items:
                items[key] = self.action(depth)
        state = b"}" + (b"(" + b"".join(text(key) + value for key, value in items.items()) + b"u" if items else b"")
        if items and rng.random() < 0.15:
            state = self.ordered([(text(key), value) for key, value in items.items()])
            state += b"}(" + text(rng.choice(["items", "keys"])) + self.action(depth) + b"ub"
        return code + state + b"b"

    def call(self, depth: int) -> bytes:
        rng = self.rng
        function = rng.choice([*FUNCTIONS])
        makers: list[Callable[[], bytes]] = [lambda: self.value(depth)] * FUNCTIONS[function]
        if makers and rng.random() < 0.6:
            makers[0] = lambda: self.object(depth)
        if function[1] == "_rebuild_parameter_with_state" and rng.random() < 0.5:
            makers[0] = lambda: named(("torch.nn.parameter", "Parameter")) + b")R"
            makers[3] = lambda: self.mapping(depth)
        if function[1] == "_rebuild_from_type_v2":
            inner = rng.choice([*FUNCTIONS][:11])
            makers[0] = lambda: named(inner)
            makers[1] = lambda: named(rng.choice([("torch", "Tensor"), ("torch.nn.parameter", "Parameter")]))
            makers[2] = lambda: tuple_of(
                *(self.object(depth) if n == 0 and rng.random() < 0.5 else self.value(depth) for n in range(FUNCTIONS[inner]))
            )
        return self.keep(named(function) + tuple_of(*(make() for make in makers)) + b"R")


def neighbor(rng: random.Random) -> bytes:
    """A call or a value of a name that an allowlist of prefixes would accept."""
    name, arguments = rng.choice(NEIGHBORS)
    code = named(name)
    module, _, attribute = "\n".join(name).rpartition("\n")
    values = [value_of(argument) for argument in arguments]
    uses = [
        code + tuple_of(*values) + b"R.",
        named(("argparse", "Namespace")) + b")\x81}(" + text("f") + code + b"ub.",
        named(("functools", "partial")) + tuple_of(code) + b"R.",
        f"(i{module}\n{attribute}\n.".encode(),
        b"(" + code + b"".join(values) + b"o.",
        named(("sklearn.preprocessing._function_transformer", "FunctionTransformer")) + b")\x81}(" + text("func") + code + b"ub.",
    ]
    return b"\x80\x02" + rng.choice(uses)


def exchanged(rng: random.Random, dumped: bytes) -> bytes:
    """A dump of protocol 2 with some of its names exchanged for others, or with texts that are keys of states renamed."""
    out, position = b"", 0
    operations = list(pickletools.genops(dumped))
    names = [n for n, (opcode, _, _) in enumerate(operations) if opcode.name == "GLOBAL"]
    texts = [n for n, (opcode, argument, _) in enumerate(operations) if opcode.name == "BINUNICODE" and str(argument).isidentifier()]
    chosen = set(rng.sample(names, min(len(names), rng.randrange(1, 3)))) | set(rng.sample(texts, min(len(texts), rng.randrange(2))))
    for n, (_, _, start) in enumerate(operations):
        end = operations[n + 1][2] if n + 1 < len(operations) else len(dumped)
        if n in chosen:
            others = [*CLASSES, *CONTAINERS, *FUNCTIONS, *PLANTED, *(name for name, _ in NEIGHBORS)]
            code = named(rng.choice(others)) if n in names else text(rng.choice(ATTRIBUTES))
            out, position = out + dumped[position:start] + code, end
    return out + dumped[position:]


def contained(rng: random.Random, code: bytes) -> tuple[str, bytes]:
    """The pickle in one of its containers: a suffix and the bytes."""
    kind = rng.choice(["pkl", "pt", "joblib", "npz", "npy", "gz"])
    if kind == "gz":
        return "pkl.gz", gzip.compress(code, mtime=0)
    if kind in ("pkl", "joblib"):
        return kind, zlib.compress(code) if kind == "joblib" and rng.random() < 0.3 else code
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    array = b"\x93NUMPY\x01\0" + struct.pack("<H", 118) + header.ljust(117) + b"\n" + code
    if kind == "npy":
        return kind, array
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        if kind == "npz":
            archive.writestr("a.npy", array)
        else:
            for name, content in (("data.pkl", code), ("byteorder", b"little"), ("version", b"3\n")):
                archive.writestr(f"archive/{name}", content)
    return kind, out.getvalue()


def real_dumps() -> list[bytes]:
    """Dumps of objects of the libraries that are installed, in protocol 2."""
    objects: list[object] = []
    try:
        import torch

        objects += [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), torch.nn.MultiheadAttention(4, 2)]
        objects += [torch.nn.TransformerEncoderLayer(4, 2, 8), torch.nn.LSTM(4, 4), torch.nn.Parameter(torch.zeros(2))]
    except Exception:
        pass
    try:
        import numpy as np
        from sklearn import ensemble, feature_selection, linear_model, neighbors, pipeline, preprocessing, svm, tree

        rows, targets = np.random.default_rng(1).normal(size=(24, 4)), np.arange(24) % 2
        steps = [preprocessing.StandardScaler(), feature_selection.SelectKBest(k=2), linear_model.LogisticRegression()]
        models = [tree.DecisionTreeClassifier(max_depth=2), ensemble.GradientBoostingClassifier(n_estimators=2), svm.SVC()]
        models += [neighbors.KNeighborsClassifier(), linear_model.SGDClassifier(), pipeline.make_pipeline(*steps)]
        models += [ensemble.HistGradientBoostingClassifier(max_iter=2), preprocessing.FunctionTransformer(np.log1p)]
        objects += [model.fit(rows, targets) for model in models]
        objects += [np.random.default_rng(1), np.ma.masked_array([1, 2], [0, 1])]
    except Exception:
        pass
    return [pickle.dumps(value, 2) for value in objects]


DUMPS: list[bytes] = []


def make(rng: random.Random) -> tuple[str, bytes]:
    suffix, data = contained(rng, Grammar(rng).pickle())
    return f"x.{suffix}", data


def make_neighbor(rng: random.Random) -> tuple[str, bytes]:
    suffix, data = contained(rng, neighbor(rng))
    return f"n.{suffix}", data


def make_exchanged(rng: random.Random) -> tuple[str, bytes]:
    if not DUMPS:
        DUMPS.extend(real_dumps() or [pickle.dumps({"a": 1}, 2)])
    suffix, data = contained(rng, exchanged(rng, rng.choice(DUMPS)))
    return f"d.{suffix}", data
