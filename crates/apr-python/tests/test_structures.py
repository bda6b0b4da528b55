"""apr.structures: what safestructures wrote, what we add, what is refused."""

import collections
import dataclasses
import enum
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from apr.safetensors import SafetensorError, safe_open
from apr.safetensors import numpy as numpy_files
from apr.structures import (
    Capture,
    DataProcessor,
    StructureError,
    TensorProcessor,
    UnsupportedTypeError,
    Variant,
    capture,
    load,
    load_file,
    register,
    save,
    save_file,
)
from apr.structures._capture import copied
from apr.structures._write import _order
from conftest import sidecars

PLUGINS_PAGE = Path(__file__).resolve().parents[3] / "docs/structures-plugins.md"
VECTORS = Path(__file__).resolve().parents[2] / "conformance/vectors/structures"
SCHEMA, VERSION = "_safestructures_schema_", "_safestructures_schema_version_"


def facts(value):
    """A value in the form of the sidecars."""
    if value is None:
        return {"none": None}
    if isinstance(value, np.ndarray):
        values = [str(x) if value.dtype.kind == "f" else x for x in value.ravel().tolist()]
        return {"ndarray": {"dtype": value.dtype.name, "shape": list(value.shape), "values": values}}
    if isinstance(value, dict):
        return {"dict": [[facts(key), facts(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple, set)):
        return {type(value).__name__: [facts(item) for item in value]}
    if dataclasses.is_dataclass(value):
        return {"dataclass": [[f.name, facts(getattr(value, f.name))] for f in dataclasses.fields(value)]}
    return {type(value).__name__: str(value) if type(value) in (int, float, complex) else value}


def schema_of(path):
    with safe_open(path, framework="np") as file:
        return file.metadata()[SCHEMA]


def file_of(schema, version="1.0.0", tensors=None):
    """The bytes of a file with this schema."""
    schema = schema if isinstance(schema, str) else json.dumps(schema)
    metadata = {SCHEMA: schema} | ({} if version is None else {VERSION: version})
    return numpy_files.save(tensors or {"0": np.frombuffer(b"abc", np.uint8)}, metadata=metadata)


def node(data_type, value, **fields):
    return {"data_type": data_type, "value": value, **fields}


def same(a, b):
    """Equal, and of the same types all the way down."""
    assert type(a) is type(b)
    if isinstance(a, (np.ndarray, np.generic)):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    elif isinstance(a, dict):
        assert list(a) == list(b)
        [same(x, y) for x, y in zip(a.values(), b.values())]
        [same(x, y) for x, y in zip(a, b)]
    elif isinstance(a, (list, tuple, collections.deque)):
        assert len(a) == len(b)
        [same(x, y) for x, y in zip(a, b)]
    elif isinstance(a, float):
        assert math.isnan(a) and math.isnan(b) or (a, math.copysign(1, a)) == (b, math.copysign(1, b))
    else:
        assert a == b


@pytest.mark.parametrize("entry", sidecars("structures"), ids=lambda entry: entry["file"])
def test_vectors_are_read_to_their_values_and_written_again(entry, tmp_path):
    path = VECTORS / entry["file"]
    value = load_file(path)
    assert facts(value) == entry["loads"]
    assert facts(load(path.read_bytes())) == entry["loads"]
    save_file(value, tmp_path / "again")
    assert schema_of(tmp_path / "again") == entry["schema"]


EVERYTHING = {
    "scalars": [None, True, False, 0, -7, 10**40, 1.5, -0.0, math.nan, math.inf, 5e-324, 1 + 2j, -0.0 + 1j],
    "texts": ["", 'é\n"\\\u007f\U0001f600', "\ud800"],
    "lists": ([], (), set(), frozenset(), ((1,), [[]])),
    "sets": [{1, "a", (2, None), frozenset({b"x"})}, frozenset({1.5, "b"})],
    "keys": {7: "a", (0, "x"): "b", None: "c", 2.5: "d", True: "e", "é": "f", frozenset({3}): "g", b"k": 8},
    "bytes": [b"", b"\x00\xff"],
    "deque": [collections.deque([1, 2], 5), collections.deque()],
    "dicts": [collections.OrderedDict(b=1, a=2), collections.Counter("hello"), collections.Counter()],
    "default": [collections.defaultdict(list, a=[1]), collections.defaultdict(None, b=2)],
    "scalar": [
        np.float32(1.5),
        np.int8(-1),
        np.bool_(True),
        np.float64(0.1),
        np.uint64(2**64 - 1),
        np.complex64(1j),
    ],
    "arrays": [np.arange(6, dtype=np.int16).reshape(2, 3), np.array(2.5), np.zeros((0, 3), np.float16)],
}


def test_every_type_comes_back():
    same(load(save(EVERYTHING)), EVERYTHING)


def test_file_and_bytes_are_the_same(tmp_path):
    save_file(EVERYTHING, tmp_path / "a", metadata={"who": "me"})
    assert load_file(str(tmp_path / "a")).keys() == EVERYTHING.keys()
    with safe_open(tmp_path / "a", framework="np") as file:
        assert file.metadata()["who"] == "me"
        assert file.metadata()[VERSION] == "1.0.0"
    same(load((tmp_path / "a").read_bytes()), load_file(tmp_path / "a"))


def test_schema_does_not_depend_on_the_process():
    code = (
        "import collections, dataclasses, sys; from apr.structures import save;"
        "sets = [frozenset(text) for text in ('', 'a', 'abcdef', 'xyz')];"
        "made = dataclasses.make_dataclass('Made', ['s'], frozen=True); row = collections.namedtuple('Row', 'a s');"
        "keys = [key for s in sets for key in (s, (s,), (1, s), made(s), row(0, (s, s)))];"
        "data = [set('abcdefgh'), frozenset([b'a', b'b', 'c', frozenset('xyz')]), dict.fromkeys(keys), set(keys)];"
        "sys.stdout.buffer.write(save(data))"
    )
    runs = []
    for seed in ("1", "2", "3"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout
        runs.append((json.loads(header(out))["__metadata__"], tensors(out)))
    assert runs[0] == runs[1] == runs[2]


def test_sets_of_what_is_nested_deeply_are_sorted():
    def nested(kind, value, depth):
        for _ in range(depth):
            value = kind([value])
        return value

    for kind in (tuple, frozenset):
        items = {nested(kind, value, 100) for value in ("b", "a")}
        same(load(save(items)), items)
    # Of two of which one begins with the other, the longer is the first.
    items = [(frozenset({1, 2}),), (1, 2), (1, "a"), (1,), (2,), ("a",), ("ab", 1), ()]
    assert sorted(set(items), key=_order) == items


def header(data):
    return data[8 : 8 + int.from_bytes(data[:8], "little")]


def tensors(data):
    return data[8 + int.from_bytes(data[:8], "little") :]


def test_no_tensor_is_a_dummy():
    data = save(7)
    assert numpy_files.load(data)["null"].tolist() == [0]


def test_tensors_are_numbered_as_safestructures_does():
    value = {"a": np.zeros(1), "b": [np.ones(1), np.ones(2)]}
    assert json.loads(json.loads(header(save(value)))["__metadata__"][SCHEMA])["value"] == {
        "a": node("numpy.ndarray", "0"),
        "b": node("list", [node("numpy.ndarray", "1"), node("numpy.ndarray", "2")]),
    }


def test_arrays_of_any_layout_are_saved_by_value():
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    views = [
        base.T,
        base[::-1, ::2],
        np.broadcast_to(base[0], (2, 4)),
        base.astype(">f4"),
        np.asfortranarray(base),
    ]
    for view, read in zip(views, load(save(views))):
        assert np.array_equal(view, read) and read.dtype == np.float32


def test_caller_is_left_alone():
    metadata = {"a": "b"}
    save(1, metadata)
    assert metadata == {"a": "b"}
    with pytest.raises(StructureError) as error:
        save(1, {VERSION: "1.0.0"})
    assert error.value.code == "ss-reserved-key"


class Color(enum.Enum):
    RED = 1
    GREEN = "g"
    ALIAS = 1


class Bits(enum.Flag):
    A = 1
    B = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.0
    norm: float = dataclasses.field(init=False, default=0.0)


Row = collections.namedtuple("Row", "left right")


def test_classes_by_name():
    names = {"point": Point, "color": Color, "row": Row}
    value = [Point(1, 2.5), Color.GREEN, Row(1, [np.int8(2)]), Color.ALIAS]
    data = save(value, dataclasses=names)
    same(load(data, dataclasses=names), value)
    # The same file for a reader without classes.
    point, green, row, _ = load(data)
    assert (dataclasses.is_dataclass(point), point.x, point.y, type(point).__name__) == (
        True,
        1,
        2.5,
        "point",
    )
    assert green == Variant("color", "GREEN")
    assert (row.left, row[1], type(row).__name__) == (1, [2], "row")
    # Nothing is lost on the way through such a program.
    assert json.loads(header(save(load(data)))) == json.loads(header(data))


def test_registered_classes():
    @register(name="test.Registered")
    @dataclasses.dataclass
    class Registered:
        a: int

    same(load(save(Registered(1))), Registered(1))
    assert register(Color, name="test.Color") is Color
    assert load(save(Color.RED)) is Color.RED
    with pytest.raises(ValueError):
        register(Bits, name="test.Color")
    with pytest.raises(TypeError):
        register(int)


def test_dataclass_without_name_is_what_safestructures_writes():
    data = save(Point(1))
    schema = json.loads(json.loads(header(data))["__metadata__"][SCHEMA])
    assert schema["data_type"] == "SafestructuresDataclass" and "name" not in schema
    assert type(load(data)).__name__ == "SafestructuresDataclass"
    assert load(data).norm == 0.0


def test_classes_refuse_what_does_not_fit():
    for fields in ({"z": node("int", "1")}, {}):
        data = file_of(node("SafestructuresDataclass", fields, name="p"))
        with pytest.raises(StructureError):
            load(data, dataclasses={"p": Point})
    for cls in (Color, Row):
        with pytest.raises(StructureError):
            load(file_of(node("SafestructuresDataclass", {}, name="p")), dataclasses={"p": cls})
    with pytest.raises(StructureError):
        load(
            file_of(node("apr:enum", node("None", None), name="c", variant="BLUE")), dataclasses={"c": Color}
        )
    with pytest.raises(TypeError):
        load(save(1), dataclasses={"x": 7})


@pytest.mark.parametrize("name", ["__class__", "__dict__", "a b", "", "class"])
def test_ad_hoc_classes_have_plain_fields_only(name):
    fields = {name: node("dict", {}, keys={})}
    for data_type in ("SafestructuresDataclass", "apr:namedtuple"):
        with pytest.raises(StructureError):
            load(file_of(node(data_type, fields, name="x")))


def test_variants_of_rust():
    held = [None, 0.5, (1, 2), {"knots": [1.5]}]
    value = [Variant("Activation", "V", value) for value in held]
    same(load(save(value)), value)


REFUSED = [
    ("", "ss-json"),
    ("[NaN]", "ss-json"),
    ("[1", "ss-json"),
    ("1" * 5000, "ss-json"),
    ('{"data_type": "int", "data_type": "int", "value": "1"}', "ss-duplicate"),
    ("null", "ss-type"),
    ({}, "ss-field-missing"),
    ({"data_type": "int"}, "ss-field-missing"),
    (node(1, None), "ss-type"),
    (node("int", "1", extra=None), "ss-field-unknown"),
    (node("int", 1), "ss-type"),
    *[
        (node("int", text), "ss-number")
        for text in ("", "1.0", " 1", "1_0", "+1", "007", "-0", "\u0663", "9" * 5000)
    ],
    *[(node("float", text), "ss-number") for text in ("", "one", " 1", "1_0", "0x1", "1e")],
    *[(node("complex", text), "ss-number") for text in ("", "j", "(1+2j", "1 + 2j", "1_0j", "(1+j)", "1+2")],
    (node("bool", "True"), "ss-type"),
    (node("NoneType", ""), "ss-type"),
    (node("str", None), "ss-type"),
    (node("list", {}), "ss-type"),
    (node("set", [node("list", [])]), "ss-type"),
    (node("set", [node("int", "1"), node("int", "1")]), "ss-duplicate"),
    (node("bytes", "0"), "ss-data-type"),
    (node("eval", "1"), "ss-data-type"),
    (node("apr:unknown", "0"), "ss-data-type"),
    (node("numpy.ndarray", "1"), "ss-tensor"),
    (node("numpy.ndarray", 0), "ss-type"),
    (node("apr:scalar", "0"), "ss-tensor-shape"),
    (node("dict", {}), "ss-field-missing"),
    (node("dict", {"a": None}, keys={}), "ss-keys"),
    (node("dict", {}, keys={"a": None}), "ss-keys"),
    (node("dict", {"a": node("None", None)}, keys={"a": node("list", [])}), "ss-type"),
    (
        node("dict", {x: node("None", None) for x in "ab"}, keys={x: node("int", "1") for x in "ab"}),
        "ss-key-collision",
    ),
    (node("apr:deque", [], maxlen="-1"), "ss-number"),
    (node("apr:deque", [node("None", None)], maxlen="0"), "ss-type"),
    (node("apr:defaultdict", {}, keys={}, factory="os.getcwd"), "ss-data-type"),
    (node("apr:defaultdict", {}, keys={}, factory="eval"), "ss-data-type"),
    (node("apr:namedtuple", {}), "ss-field-missing"),
    (node("apr:enum", None, name="E", variant="A"), "ss-type"),
]


@pytest.mark.parametrize(("schema", "code"), REFUSED)
def test_schemas_are_refused(schema, code):
    with pytest.raises(StructureError) as error:
        load(file_of(schema))
    assert error.value.code == code


def test_versions_are_checked(tmp_path):
    none = node("NoneType", None)
    assert load(file_of(none)) is None
    for version, code in [
        ("99", "ss-version"),
        ("1.0", "ss-version"),
        ("", "ss-version"),
        (None, "ss-no-version"),
    ]:
        (tmp_path / "x").write_bytes(file_of(none, version))
        for read in (lambda: load_file(tmp_path / "x"), lambda: load((tmp_path / "x").read_bytes())):
            with pytest.raises(StructureError) as error:
                read()
            assert error.value.code == code
    for metadata in (None, {"format": "pt"}):
        with pytest.raises(StructureError) as error:
            load(numpy_files.save({"a": np.zeros(1)}, metadata=metadata))
        assert error.value.code == "ss-no-schema"


# Modules of the standard library that nothing here uses; the last one does something when it is imported.
@pytest.mark.parametrize("name", ["this.s", "antigravity.webbrowser", "xdrlib.Packer", "__hello__.main"])
def test_nothing_is_imported(name, tmp_path):
    module = name.split(".")[0]
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    sys.path.insert(0, str(tmp_path))
    try:
        for data_type in (name, "evil.Class", "evil"):
            schemas = [
                node(data_type, "0"),
                node("list", [node(data_type, None)]),
                node("SafestructuresDataclass", {}, name=data_type),
                node("apr:namedtuple", {}, name=data_type),
                node("apr:enum", node("None", None), name=data_type, variant="X"),
                node("apr:defaultdict", {}, keys={}, factory=data_type),
            ]
            for schema in schemas:
                try:
                    load(file_of(schema))
                except UnsupportedTypeError as error:
                    assert error.code == "ss-data-type"
                else:
                    assert "name" in schema
        assert module not in sys.modules and "evil" not in sys.modules
    finally:
        sys.path.remove(str(tmp_path))


def nested(levels):
    return '{"data_type": "list", "value": [' * levels + "]}" * levels


def test_depth_and_size_are_bounded():
    value = load(file_of(nested(128)))
    assert load(save(value)) == value
    for text in (nested(129), nested(100_000), '{"data_type": "list", "value": ' + "[" * 100_000):
        with pytest.raises(StructureError) as error:
            load(file_of(text))
        assert error.value.code in ("ss-depth", "ss-json")
    cycle = []
    cycle.append(cycle)
    with pytest.raises(StructureError) as error:
        save(cycle)
    assert (error.value.code, error.value.path) == ("ss-depth", "[0]" * 128)
    items = node("list", [node("NoneType", None)] * 9)
    assert load(file_of(items), max_nodes=10) == [None] * 9
    # The second spells the field so that it is not counted beforehand.
    for text in (json.dumps(items), json.dumps(items).replace("data_type", "data\\u005ftype")):
        with pytest.raises(StructureError) as error:
            load(file_of(text), max_nodes=9)
        assert error.value.code == "ss-nodes"


def test_classes_made_for_a_file_are_bounded():
    many = [node("SafestructuresDataclass", {f"f{idx}": node("None", None)}) for idx in range(1001)]
    with pytest.raises(StructureError):
        load(file_of(node("list", many)))
    assert len(load(file_of(node("list", many[:1] * 2000)))) == 2000


def test_values_that_cannot_be_saved_are_named():
    class Own:
        pass

    for value in (
        Own(),
        1j.__class__,
        Point,
        range(3),
        bytearray(b"x"),
        Bits.A | Bits.B,
        np.ma.array([1], mask=[1]),
    ):
        with pytest.raises(UnsupportedTypeError) as error:
            save({"a": [value]})
        assert (error.value.code, error.value.path) == ("ss-data-type", ".a[0]")
        assert isinstance(error.value, TypeError) and isinstance(error.value, ValueError)
    with pytest.raises(UnsupportedTypeError):
        save(collections.defaultdict(lambda: 1))


@pytest.mark.parametrize("value", [{1: "a", "1": "b"}, {None: 1, "None": 2}, {(0, 1): 1, "(0, 1)": 2}])
def test_keys_with_one_text_are_refused(value):
    with pytest.raises(StructureError) as error:
        save([value])
    assert (error.value.code, error.value.path) == ("ss-key-collision", "[0]")


def test_errors_say_where_and_can_be_pickled():
    with pytest.raises(StructureError) as error:
        load(file_of(node("dict", {"a b": node("int", "x")}, keys={"a b": node("str", "a b")})))
    again = pickle.loads(pickle.dumps(error.value))
    for seen in (error.value, again):
        assert (seen.code, seen.path) == ("ss-number", "['a b']")
        assert str(seen) == "the text of an integer that Python can read expected, in `['a b']`"


def test_damaged_files_raise_and_nothing_else():
    data = save([1, "two", {"three": 3.5}, np.zeros(2, np.float32), b"x", Color.RED, {1, 2}])
    for at in range(len(data)):
        for byte in (0, 0x22, 0x7B, 0x5D, 0x39):
            damaged = data[:at] + bytes([byte]) + data[at + 1 :]
            try:
                load(damaged)
            except (StructureError, SafetensorError):
                pass


class Money:
    def __init__(self, cents, unit):
        self.cents, self.unit = cents, unit

    def __eq__(self, other):
        return (self.cents, self.unit) == (other.cents, other.unit)


class MoneyProcessor(DataProcessor):
    data_type = Money

    def serialize(self, data):
        return self.serializer.serialize(data.cents)

    def serialize_extra(self, data):
        return {"unit": data.unit}

    def deserialize(self, serialized, unit):
        return Money(self.serializer.deserialize(serialized), unit)


class Grid:
    def __init__(self, array):
        self.array = array


class GridProcessor(TensorProcessor):
    data_type = Grid

    def to_numpy(self, tensor):
        return tensor.array


def test_plugins_write_and_read():
    value = [Money(5, "EUR"), {"k": Money(10**20, "USD")}]
    data = save(value, plugins=MoneyProcessor)
    assert load(data, plugins=[MoneyProcessor]) == value
    schema = json.loads(json.loads(header(data))["__metadata__"][SCHEMA])
    assert schema["value"][0]["data_type"] == f"{__name__}.Money"
    # Without the plugin the type is unknown, though its module could be imported.
    with pytest.raises(UnsupportedTypeError):
        load(data)
    assert load(save(Grid(np.arange(3)), plugins=GridProcessor), plugins=GridProcessor).tolist() == [0, 1, 2]


def test_plugins_are_checked():
    class ForInt(MoneyProcessor):
        data_type = int

    with pytest.raises(ValueError):
        save(1, plugins=ForInt)
    with pytest.raises(ValueError):
        save(1, plugins=[MoneyProcessor, MoneyProcessor])
    for no_plugin in (object(), int, "os.system"):
        with pytest.raises(TypeError):
            load(save(1), plugins=no_plugin)

    class Greedy(MoneyProcessor):
        def serialize_extra(self, data):
            return {"value": "x"}

    with pytest.raises(KeyError):
        save(Money(1, "x"), plugins=Greedy)


def test_small_floats_of_numpy_keep_their_type(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    value = [np.array([1, 2], ml_dtypes.bfloat16), ml_dtypes.bfloat16(1.5)]
    save_file(value, tmp_path / "x")
    same(load_file(tmp_path / "x"), value)


def test_torch(tmp_path):
    torch = pytest.importorskip("torch")
    value = {
        "w": torch.arange(4.0).reshape(2, 2).T,
        "h": torch.ones(2, dtype=torch.bfloat16),
        "d": torch.ones(2, dtype=torch.float64),
        "p": torch.nn.Parameter(torch.ones(1)),
        "b": b"bytes",
        "s": np.float32(1),
    }
    save_file(value, tmp_path / "x")
    read = load_file(tmp_path / "x", framework="pt")
    assert all(torch.equal(read[key], value[key]) and read[key].dtype == value[key].dtype for key in "whdp")
    assert read["b"] == b"bytes" and read["s"] == np.float32(1)
    assert load(save(value), framework="pt")["h"].dtype == torch.bfloat16
    save_file(value, tmp_path / "x", widen_floats=True)
    assert all(load_file(tmp_path / "x", framework="pt")[key].dtype == torch.float32 for key in "whdp")


def test_jax(tmp_path):
    jnp = pytest.importorskip("jax.numpy")
    value = [jnp.arange(4, dtype=jnp.bfloat16), jnp.ones((2, 2))]
    save_file(value, tmp_path / "x")
    read = load_file(tmp_path / "x", framework="jax")
    assert all(bool((a == b).all()) and a.dtype == b.dtype for a, b in zip(value, read))
    save_file(value, tmp_path / "x", widen_floats=True)
    assert load_file(tmp_path / "x")[0].dtype == np.float32


@pytest.mark.parametrize("idx", range(4))
def test_examples_of_the_page_about_plugins_work(idx):
    blocks = PLUGINS_PAGE.read_text(encoding="utf-8").split("```python\n")[1:]
    assert len(blocks) == 4
    code = blocks[idx].split("```")[0]
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


class Layer:
    """What a module of torch has that `capture` uses."""

    def __init__(self, work, **inner):
        self.work, self.inner, self.before, self.after = work, inner, {}, {}

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, layer in self.inner.items():
            yield from layer.named_modules(f"{prefix}.{name}" if prefix else name)

    def _hook(self, hooks, hook, with_kwargs):
        assert with_kwargs
        hooks[id(hook)] = hook
        return type("Handle", (), {"remove": staticmethod(lambda: hooks.pop(id(hook)))})

    def register_forward_pre_hook(self, hook, *, with_kwargs):
        return self._hook(self.before, hook, with_kwargs)

    def register_forward_hook(self, hook, *, with_kwargs):
        return self._hook(self.after, hook, with_kwargs)

    def __call__(self, *args, **kwargs):
        for hook in list(self.before.values()):
            assert hook(self, args, kwargs) is None
        output = self.work(self, *args, **kwargs)
        for hook in list(self.after.values()):
            assert hook(self, args, kwargs, output) is None
        return output


Pair = collections.namedtuple("Pair", "first second")


def network():
    def grow(_, x, by=1):
        x += by
        return Pair(x, [x * 2])

    def whole(self, x):
        return self.inner["b"](self.inner["a"](x, by=3).first)

    return Layer(whole, a=Layer(grow), b=Layer(lambda _, x: {"out": x - 1, "n": 5}))


def test_calls_of_layers_survive_a_file(tmp_path):
    model, x = network(), np.zeros(2)
    with capture(model, ["*"]) as captured:
        model(x)
        model(x)
    assert isinstance(captured, Capture) and list(captured) == ["", "a", "b"]
    assert not any(layer.before or layer.after for _, layer in model.named_modules())
    # As they were when they went in, though the layer changed them in place.
    assert [call["args"][0].tolist() for call in captured["a"]] == [[0, 0], [3, 3]]
    assert [call["output"].first.tolist() for call in captured["a"]] == [[3, 3], [6, 6]]
    assert captured["a"][0]["kwargs"] == {"by": 3} and captured["b"][1]["output"]["out"].tolist() == [5, 5]
    captured.save_file(tmp_path / "calls.safetensors", {"run": "1"})
    same(load_file(tmp_path / "calls.safetensors", dataclasses={"Pair": Pair}), dict(captured))
    with safe_open(tmp_path / "calls.safetensors", "np") as file:
        assert file.metadata()["run"] == "1"


def test_layers_are_chosen_by_name():
    model = network()
    with capture(model, calls=1, inputs=False) as captured:
        for _ in range(3):
            model(np.zeros(2))
    assert {name: [list(call) for call in calls] for name, calls in captured.items()} == {"a": [["output"]], "b": [["output"]]}
    with capture(model, "b", outputs=False) as captured:
        model(np.zeros(2))
    assert [list(call) for call in captured["b"]] == [["args", "kwargs"]]
    for name in ("c", "[ab]", "A"):
        with pytest.raises(ValueError, match="no layer is called"):
            capture(model, ["a", name])


def test_a_layer_that_fails_leaves_no_hooks():
    def fail(*_):
        raise ArithmeticError

    model = Layer(lambda self, x: self.inner["a"](x), a=Layer(fail))
    with pytest.raises(ArithmeticError), capture(model, "a") as captured:
        model(1)
    assert not model.inner["a"].before and captured["a"] == [{"args": (1,), "kwargs": {}}]


def test_arrays_hold_the_memory_that_was_loaded():
    for made in (bytearray, memoryview):
        owner = bytearray(save({"w": np.ones(1_000)}))
        array = load(made(owner) if made is memoryview else owner)["w"]
        with pytest.raises(BufferError):
            owner.clear()
        assert array.sum() == 1_000


def test_arrays_of_types_that_no_file_has_are_named_by_their_place(tmp_path):
    for value in (np.array(["a"]), np.datetime64(1, "s"), np.array([object()]), np.zeros((), "V4")):
        for write in (save, lambda data: save_file(data, tmp_path / "f")):
            with pytest.raises(UnsupportedTypeError, match=r"Unknown dtype .* complex64, in `\.a\[1\]\.b`$") as caught:
                write({"x": np.ones(1), "a": [0, {"b": value}]})
            assert (caught.value.code, caught.value.path) == ("ss-data-type", ".a[1].b")
    with pytest.raises(UnsupportedTypeError) as caught:
        save(np.array(["a"]))
    assert caught.value.path == ""


def test_keys_with_frozensets_come_back():
    data = {frozenset("ab"): 1, (1, frozenset([2, (3,)])): 2, frozenset(): 3, (frozenset("a"),): 4}
    assert load(save(data)) == data
    schema = json.loads(json.loads(header(save(data)))["__metadata__"][SCHEMA])
    assert list(schema["value"]) == ["frozenset({'a', 'b'})", "(1, frozenset({2, (3,)}))", "frozenset()", "(frozenset({'a'}),)"]


def test_fields_come_back_as_they_were():
    @dataclasses.dataclass
    class Doubled:
        x: int
        y: int = 1

        def __post_init__(self):
            self.x *= 2
            self.made = True

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        x: int
        start: dataclasses.InitVar[int] = 3

        def __post_init__(self, start):
            object.__setattr__(self, "x", self.x + start)

    @dataclasses.dataclass
    class Needing:
        x: int
        start: dataclasses.InitVar[int]
        kind = "class"

        def __post_init__(self, start):
            self.x += start

    class Row(collections.namedtuple("Row", "x y", defaults=[5])):
        def __new__(cls, x, y=0):
            return super().__new__(cls, x + 1, y)

    classes = {cls.__name__: cls for cls in (Doubled, Frozen, Needing, Row)}
    for value in (Doubled(1), Frozen(1), Needing(1, 3), Row(1, 2)):
        again = load(save(value, dataclasses=classes), dataclasses=classes)
        assert type(again) is type(value) and again == value
        assert load(save(again, dataclasses=classes), dataclasses=classes) == value
    assert load(save(Doubled(1), dataclasses=classes), dataclasses=classes).made
    assert load(save(collections.namedtuple("Row", "x")(1)), dataclasses=classes) == tuple.__new__(Row, (1, 5))
    for fields in ("x y z", "y"):
        with pytest.raises(StructureError, match="refuses its fields: '[xz]' in one of file and class") as caught:
            load(save(collections.namedtuple("Row", fields)(*fields.split())), dataclasses=classes)
        assert caught.value.code == "ss-custom"
    assert copied(Row(1, 2)) == Row(1, 2)


def test_dataclasses_that_hold_more_than_fields_are_refused():
    @dataclasses.dataclass
    class Output(collections.OrderedDict):
        x: int = 1

    value = Output(2)
    value["x"] = 2
    assert load(save(value, dataclasses={"Output": Output}), dataclasses={"Output": Output}).x == 2
    value["other"] = 3
    for base, more in ((list, "append"), (set, "add")):
        made = dataclasses.make_dataclass("Made", [("x", int)], bases=(base,), eq=False)(1)
        assert type(load(save(made))).__name__ == "SafestructuresDataclass"
        getattr(made, more)(5)
        for data in (made, value):
            with pytest.raises(UnsupportedTypeError, match=r"elements beside its fields.*in `\[0\]`"):
                save([data])


def test_fields_without_a_value_are_none_again():
    @dataclasses.dataclass
    class Later:
        x: int
        y: int | None = dataclasses.field(init=False)

    later = Later(1)
    later.y = None
    assert load(save(later, dataclasses={"Later": Later}), dataclasses={"Later": Later}).y is None
