"""GGUF files read and written, beside the reference's own files and gguf-py."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from conftest import VECTORS, sidecars
from test_damage import damaged
from test_program import program

import apr
from apr import gguf

FOLDER = VECTORS / "gguf"
FILES = FOLDER / "files"
VERDICTS = {entry["file"]: entry for entry in sidecars("gguf")}


def verdict(path, **options):
    try:
        file = gguf.open(path, **options)
        assert len(file.metadata) == len(file.metadata_types)
        for name in file:
            assert file[name].blocks.size == file[name].nbytes
    except apr.AprError as error:
        assert error.path == str(path) and error.code in str(error)
        return {"code": error.code} if error.offset is None else {"code": error.code, "offset": error.offset}
    return "accept"


@pytest.mark.parametrize("backend", ["mmap", "read"])
@pytest.mark.parametrize("level", ["strict", "compat"])
def test_verdicts_are_those_of_the_crate(level, backend):
    assert len(VERDICTS) > 80
    for name, expected in VERDICTS.items():
        assert verdict(FOLDER / name, compat=level == "compat", backend=backend) == expected[level], name


def test_tensors_are_views_that_outlive_the_file():
    with gguf.open(FILES / "tiny_llama_Q4_K_M.gguf") as file:
        types = {tensor.type for tensor in file.values()}
        tensor = file["blk.0.attn_q.weight"]
    assert types == {"F32", "Q5_0", "Q8_0"}
    assert (len(file), dict(file)) == (0, {})
    assert tensor.shape == tensor.ggml_shape[::-1]
    assert tensor.blocks.dtype == np.uint8 and not tensor.blocks.flags.writeable
    assert tensor.dequantize().dtype == np.float32
    with pytest.raises(ValueError, match="no elements"):
        tensor.array()


def test_numbers_are_those_of_gguf_py():
    official = pytest.importorskip("gguf")
    count = 0
    for path in sorted(FILES.glob("*.gguf")):
        if path.name.endswith("_be.gguf") or path.name == "v1_minimal.gguf":
            continue
        file, reader = gguf.open(path), official.GGUFReader(path)
        assert list(file) == [tensor.name for tensor in reader.tensors]
        for theirs in reader.tensors:
            ours = file[theirs.name]
            assert ours.type == theirs.tensor_type.name
            assert ours.ggml_shape == tuple(int(dim) for dim in theirs.shape)
            assert ours.blocks.tobytes() == theirs.data.tobytes()
            try:
                expected = official.quants.dequantize(theirs.data, theirs.tensor_type)
            except NotImplementedError:
                continue
            found = ours.dequantize().reshape(expected.shape)
            # Theirs multiply in another order.
            assert np.allclose(found, expected, rtol=1e-5, atol=1e-6, equal_nan=True), (path.name, theirs.name)
            count += 1
        fields = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
        assert list(file.metadata) == list(fields)
        for key, field in fields.items():
            expected = field.contents()
            if isinstance(expected, float) and expected != expected:
                assert file.metadata[key] != file.metadata[key]
            else:
                assert file.metadata[key] == expected, key
    assert count > 50


def test_written_files_are_read_by_gguf_py(tmp_path):
    official = pytest.importorskip("gguf")
    rng = np.random.default_rng(5)
    matrix = rng.standard_normal((6, 256), np.float32)
    tensors = {"a": matrix, "b": matrix.astype(np.float16), "c": np.arange(7, dtype=np.int32), "d": matrix}
    metadata = {
        "general.architecture": "demo",
        "demo.block_count": 2,
        "demo.scale": 0.5,
        "demo.flag": True,
        "demo.words": ["eins", "zwei", "drei"],
        "demo.numbers": [1, -2, 3],
        "demo.wide": np.uint64(7),
        "demo.array": np.array([1.5, 2.5], np.float64),
    }
    gguf.save(tmp_path / "x.gguf", tensors, metadata, types={"d": "Q8_0"})
    reader = official.GGUFReader(tmp_path / "x.gguf")
    found = {tensor.name: tensor for tensor in reader.tensors}
    assert [found[name].tensor_type.name for name in "abcd"] == ["F32", "F16", "I32", "Q8_0"]
    assert np.array_equal(found["a"].data, matrix) and np.array_equal(found["c"].data, tensors["c"])
    assert found["d"].data.tobytes() == official.quants.quantize(matrix, official.GGMLQuantizationType.Q8_0).tobytes()
    assert {key: reader.get_field(key).contents() for key in metadata} == {
        **metadata,
        "demo.wide": 7,
        "demo.array": [1.5, 2.5],
    }
    file = gguf.open(tmp_path / "x.gguf")
    assert file.metadata_types == {
        "general.architecture": "string",
        "demo.block_count": "u32",
        "demo.scale": "f32",
        "demo.flag": "bool",
        "demo.words": "array[string]",
        "demo.numbers": "array[i32]",
        "demo.wide": "u64",
        "demo.array": "array[f64]",
    }


@pytest.mark.parametrize("path", sorted(FILES.glob("*.gguf")), ids=lambda path: path.stem)
def test_files_are_written_as_they_were(path, tmp_path):
    if path.stem.endswith("_be"):
        return
    file = gguf.open(path, compat=True)
    gguf.save(tmp_path / "again", file, file.metadata, metadata_types=file.metadata_types)
    again = gguf.open(tmp_path / "again")
    assert repr(again.metadata) == repr(file.metadata) and again.metadata_types == file.metadata_types
    assert {name: (t.type, t.shape, t.blocks.tobytes()) for name, t in again.items()} == {
        name: (t.type, t.shape, t.blocks.tobytes()) for name, t in file.items()
    }
    if file.version == 3 and not any(kind.startswith("array[array") for kind in file.metadata_types.values()):
        assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_big_endian_numbers_are_turned_round_and_blocks_refused(tmp_path):
    little = gguf.open(FILES / "tensors_int_f64.gguf")
    big = gguf.open(FILES / "tensors_int_f64_be.gguf", compat=True)
    assert big.byte_order == "big" and list(big) == list(little)
    for name in little:
        assert np.array_equal(big[name].array(), little[name].array())
        assert np.array_equal(big[name].dequantize(), little[name].dequantize())
    gguf.save(tmp_path / "little", big)
    assert gguf.open(tmp_path / "little")[name].blocks.tobytes() == little[name].blocks.tobytes()
    blocks = gguf.GgufTensor("x", "Q8_0", (32,), np.zeros(34, np.uint8), True)
    with pytest.raises(apr.AprError) as refused:
        blocks.dequantize()
    assert refused.value.code == "gg-byte-order"


TYPES = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "TQ2_0"]


@pytest.mark.parametrize("kind", TYPES)
def test_arrays_are_quantized(kind, tmp_path):
    numbers = np.random.default_rng(1).standard_normal((3, 512), np.float32)
    gguf.save(tmp_path / "x", {"w": numbers}, types=kind.lower())
    tensor = gguf.open(tmp_path / "x")["w"]
    assert tensor.type == kind
    error = np.sqrt(np.mean((tensor.dequantize() - numbers) ** 2))
    assert error < (0.9 if kind == "TQ2_0" else 0.4 if kind == "Q2_K" else 0.2)


@pytest.mark.parametrize("order", ["<", ">"])
def test_any_layout_of_arrays_is_saved_by_value(order, tmp_path):
    base = np.arange(60, dtype=f"{order}f4").reshape(6, 10)
    arrays = {"f": np.asfortranarray(base), "s": base[::-2, ::3], "t": base.T, "d": base.astype(f"{order}f8"), "h": base.astype(f"{order}f2"), "i": base.astype(f"{order}i8")}
    gguf.save(tmp_path / "x", arrays)
    file = gguf.open(tmp_path / "x")
    for name, array in arrays.items():
        assert np.array_equal(file[name].array(), array), name
        assert file[name].array().dtype == array.dtype.newbyteorder("<")


def test_bfloat16_arrays_stay_what_they_are(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    numbers = np.array([1.5, -2.25, 3e38, np.inf], ml_dtypes.bfloat16)
    gguf.save(tmp_path / "x", {"w": numbers})
    tensor = gguf.open(tmp_path / "x")["w"]
    assert tensor.type == "BF16" and np.array_equal(tensor.array(), numbers)
    assert np.array_equal(tensor.dequantize(), numbers.astype(np.float32))


def test_output_arrays_are_checked():
    tensor = gguf.open(FILES / "tiny_llama_f32.gguf")["output_norm.weight"]
    out = np.empty(tensor.shape, np.float32)
    assert tensor.dequantize(out) is out and np.array_equal(out, tensor.array())
    for wrong in (out.astype(np.float64), out[:-1], np.empty((*tensor.shape, 2), np.float32)[..., 0]):
        with pytest.raises(ValueError):
            tensor.dequantize(wrong)


ROW = np.zeros((2, 256), np.float32)
REFUSED = {
    "rows that are no whole number of blocks": (lambda: ({"w": ROW[:, :100]}, None, {"types": "Q4_K"}), apr.AprError),
    "a number that the type cannot hold": (lambda: ({"w": ROW + np.nan}, None, {"types": "Q8_0"}), apr.AprError),
    "a type that is read only": (lambda: ({"w": ROW}, None, {"types": "IQ2_XXS"}), apr.AprError),
    "a type of other files": (lambda: ({"w": ROW}, None, {"types": "AprQ4"}), ValueError),
    "no type": (lambda: ({"w": ROW}, None, {"types": "q9"}), ValueError),
    "an array of a type that files do not have": (lambda: ({"w": ROW.astype(np.uint8)}, None, {}), TypeError),
    "numbers that would become others": (lambda: ({"w": ROW}, None, {"types": "I8"}), TypeError),
    "a name that is too long": (lambda: ({"w" * 64: ROW}, None, {}), apr.AprError),
    "too many dimensions": (lambda: ({"w": np.zeros((1,) * 5, np.float32)}, None, {}), apr.AprError),
    "a key that is none": (lambda: ({}, {"": 1}, {}), apr.AprError),
    "a number beyond 64 bits": (lambda: ({}, {"k": 1 << 64}, {}), ValueError),
    "a number beyond its type": (lambda: ({}, {"k": 300}, {"metadata_types": {"k": "u8"}}), ValueError),
    "a text as a list": (lambda: ({}, {"k": "abc"}, {"metadata_types": {"k": "array[string]"}}), TypeError),
    "no type of a value": (lambda: ({}, {"k": 1}, {"metadata_types": {"k": "u24"}}), ValueError),
    "a list of lists": (lambda: ({}, {"k": [[1]]}, {}), TypeError),
    "a list of this and that": (lambda: ({}, {"k": [1, "a"]}, {}), TypeError),
    "an empty list": (lambda: ({}, {"k": []}, {}), ValueError),
    "nothing": (lambda: ({}, {"k": None}, {}), TypeError),
    "an alignment that is none": (lambda: ({"w": ROW}, {"general.alignment": 3}, {}), apr.AprError),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_and_the_old_file_stays(what, tmp_path):
    make, error = REFUSED[what]
    tensors, metadata, options = make()
    path = tmp_path / "x.gguf"
    path.write_bytes(b"old")
    with pytest.raises(error) as refused:
        gguf.save(path, tensors, metadata, **options)
    if error is apr.AprError:
        assert refused.value.code.startswith(("gg-", "q-"))
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_failure_on_the_way_leaves_the_old_file(tmp_path):
    class Odd:
        dtype, shape, ndim = np.dtype(np.float32), (4,), 1
        calls = 0

        def __array__(self, dtype=None, copy=None):
            Odd.calls += 1
            if Odd.calls > 1:
                raise RuntimeError("gone")
            return np.zeros(4, np.float32)

    path = tmp_path / "x.gguf"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="gone"):
        gguf.save(path, {"a": np.zeros(4, np.float32), "b": Odd()})
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        gguf.open(tmp_path / "none")
    with pytest.raises(OSError, match="regular"):
        gguf.open(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    for backend in ("mmap", "read"):
        with pytest.raises(apr.AprError):
            gguf.open(tmp_path / "empty", backend=backend)
    with pytest.raises(ValueError, match="backend"):
        gguf.open(tmp_path / "empty", backend="pread")


def test_a_count_beyond_the_file_is_refused_at_once(tmp_path):
    for tensors, keys in ((1 << 62, 0), (0, 1 << 62), (1 << 20, 1 << 20)):
        (tmp_path / "x").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, tensors, keys) + bytes(64))
        with pytest.raises(apr.AprError) as refused:
            gguf.open(tmp_path / "x")
        assert refused.value.code.startswith("gg-")


def test_damage_is_refused(tmp_path):
    choose = random.Random(7)
    contents = [path.read_bytes() for path in sorted(FOLDER.rglob("*.gguf")) if path.stat().st_size < 200_000]
    path = tmp_path / "damaged.gguf"
    for _ in range(1500):
        path.write_bytes(damaged(choose.choice(contents), choose))
        try:
            file = gguf.open(path, compat=choose.random() < 0.5, backend=choose.choice(["mmap", "read"]))
            repr(file.metadata)
            for tensor in file.values():
                # numpy has no more dimensions than its own, and none without end.
                if tensor.nbytes < 1 << 20:
                    tensor.dequantize()
        except apr.AprError as error:
            assert error.code.startswith(("gg-", "q-"))
        except (ValueError, MemoryError):
            pass


@pytest.mark.parametrize(
    ("kind", "options"),
    [("q8_0", {}), ("q4_0", {}), ("q4_k_m", {}), ("q4_0", {"pure": True}), ("bf16", {}), ("Q4_1", {})],
)
def test_quantize_makes_the_bytes_of_llama_quantize(kind, options, tmp_path):
    name = f"tiny_llama_{kind.upper()}{'_pure' if options else ''}.gguf"
    report = apr.quantize(FILES / "tiny_llama_f32.gguf", tmp_path / "x.gguf", kind, no_provenance=True, **options)
    assert (tmp_path / "x.gguf").read_bytes() == (FILES / name).read_bytes()
    assert report["bytes"] == (FILES / name).stat().st_size and report["written"]
    assert {row["to"] for row in report["tensors"]} >= {"F32"}


def test_quantize_takes_the_options_of_the_program(tmp_path):
    weights = {"a.weight": np.random.default_rng(3).standard_normal((8, 256), np.float32), "b.weight": np.ones((8, 256), np.float32)}
    apr.safetensors.numpy.save_file(weights, tmp_path / "x.safetensors")
    source, target = tmp_path / "x.safetensors", tmp_path / "-x.gguf"
    report = apr.quantize(source, target, "q4_k", tensor_type={"^b": "f16"}, dry_run=True)
    assert not target.exists() and {row["name"]: row["to"] for row in report["tensors"]} == {"a.weight": "Q4_K", "b.weight": "F16"}
    apr.quantize(source, target, "q4_k", exclude=["b.*"])
    assert {name: tensor.type for name, tensor in gguf.open(target).items()} == {"a.weight": "Q4_K"}
    apr.quantize(source, target, "q4_k", select=["b.*"], force=True)
    assert [*gguf.open(target)] == ["b.weight"]
    with pytest.raises(apr.AprError, match="add force=True") as refused:
        apr.quantize(source, target, "q8_0")
    assert refused.value.code == "cli-output-exists" and refused.value.path == str(target)
    apr.quantize(source, target, "q8_0", force=True)
    with pytest.raises(apr.AprError, match="q9"):
        apr.quantize(source, tmp_path / "y.gguf", "q9")
    with pytest.raises(FileNotFoundError):
        apr.quantize(tmp_path / "none.gguf", tmp_path / "y.gguf", "q8_0")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(4))
    with pytest.raises(apr.AprError) as refused:
        apr.quantize(tmp_path / "bad.gguf", tmp_path / "y.gguf", "q8_0")
    assert refused.value.code.startswith("gg-") and not (tmp_path / "y.gguf").exists()


@pytest.mark.parametrize("kind", ["q4_0", "q8_0", "q4_k", "q6_k", "f16"])
def test_quantized_models_predict(kind, tmp_path):
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((40, 6))
    rows[::2] += 3.0
    lines = ["a,b,c,d,e,f,group", *(",".join(f"{x:.3f}" for x in row) + f",{idx % 2}" for idx, row in enumerate(rows))]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    layers = ["--hidden", "256,256", "--epochs", "20"]
    trained = program("train", "mlp", "--data", "table.csv", "--target", "group", *layers, "-o", "mlp.apr", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    report = apr.quantize(tmp_path / "mlp.apr", tmp_path / "small.apr", kind)
    assert report["bytes"] < 0.6 * (tmp_path / "mlp.apr").stat().st_size
    rows = np.round(rows, 3).astype(np.float32)
    exact, small = apr.load(tmp_path / "mlp.apr"), apr.load(tmp_path / "small.apr")
    theirs, ours = exact.predict(rows), small.predict(rows)
    assert ours.shape == theirs.shape and np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.99


@pytest.mark.parametrize(("kind", "array"), [("F16", np.float32([1, 7e4])), ("F32", np.float64([0, 1e39]))])
def test_numbers_that_a_type_cannot_hold_are_refused(tmp_path, kind: str, array: np.ndarray) -> None:
    with pytest.raises(apr.AprError, match="infinite") as caught:
        gguf.save(tmp_path / "a.gguf", {"a": array}, types=kind)
    assert caught.value.code == "q-scale-too-large" and not (tmp_path / "a.gguf").exists()
    gguf.save(tmp_path / "b.gguf", {"a": np.float64([1, np.inf])}, types="F32")
    assert np.isinf(gguf.open(tmp_path / "b.gguf")["a"].array()[1])


@pytest.mark.parametrize("value", [1e300, [0.0, -1e39]])
def test_finite_numbers_do_not_become_infinite(tmp_path, value):
    path = tmp_path / "m.gguf"
    with pytest.raises(ValueError, match="beyond the range of 32-bit floats"):
        gguf.save(path, {}, metadata={"x": value})
    gguf.save(path, {}, metadata={"x": float("inf"), "y": value}, metadata_types={"y": "array[f64]" if isinstance(value, list) else "f64"})
    assert gguf.open(path).metadata["x"] == float("inf")
