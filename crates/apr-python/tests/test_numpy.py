"""numpy arrays to files and back."""

from __future__ import annotations

import array
import itertools
import mmap
import os
import pickle
import random
import stat
import subprocess
import sys
import textwrap
from concurrent import futures

import ml_dtypes
import numpy as np
import pytest

from apr.safetensors import SafetensorError, TensorSpec, Writer, _safe_open_handle, deserialize, safe_open, serialize
from apr.safetensors import serialize_file, set_metadata
from apr.safetensors.numpy import load, load_file, save, save_file

NATIVE = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64".split()
SMALL = (
    "bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn float6_e2m3fn "
    "float6_e3m2fn"
).split()


def numbers(dtype, shape):
    count = int(np.prod(shape))
    codes = np.arange(count) % 8
    return (codes if dtype != "bool" else codes % 2).astype(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", NATIVE + [getattr(ml_dtypes, name) for name in SMALL], ids=str)
@pytest.mark.parametrize("shape", [(), (8,), (2, 4), (3, 0, 2), (2, 3, 4)], ids=str)
def test_every_type_comes_back(dtype, shape, tmp_path):
    if shape == () and np.dtype(dtype).name.startswith(("float4", "float6")):
        pytest.skip("a single element does not end on a byte")
    original = numbers(dtype, shape)
    path = tmp_path / "a.safetensors"
    save_file({"a": original}, path)
    for loaded in (load(save({"a": original})), load_file(path), load_file(path, backend="pread")):
        assert loaded["a"].dtype == original.dtype
        assert loaded["a"].shape == original.shape
        assert loaded["a"].tobytes() == original.tobytes()


def views(base):
    yield "transposed", base.T
    yield "fortran", np.asfortranarray(base)
    yield "strided", base[::2, ::3]
    yield "reversed", base[::-1, ::-1]
    yield "column", base[:, 1]
    yield "broadcast", np.broadcast_to(base[0], (5, *base[0].shape))
    yield "swapped", np.swapaxes(base.reshape(2, 3, 4), 0, 2)
    yield "big", base.astype(base.dtype.newbyteorder(">"))
    yield "big and reversed", base.astype(base.dtype.newbyteorder(">"))[::-1].T
    yield "empty", base[:0].T
    yield "diagonal", np.diagonal(base)
    yield "unaligned", np.frombuffer(b"x" + base.tobytes(), dtype=base.dtype, offset=1).reshape(base.shape)


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64", "complex64", ml_dtypes.bfloat16], ids=str)
def test_any_strides_and_byte_order_are_saved_by_value(dtype, tmp_path):
    base = np.arange(24).reshape(4, 6).astype(dtype)
    for what, view in views(base):
        if np.dtype(dtype).name == "bfloat16" and what.startswith("big"):
            continue
        plain = np.array(view, dtype=dtype, order="C")
        data = save({"a": view})
        assert data == save({"a": plain}), what
        save_file({"a": view}, tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == data, what
        assert load(data)["a"].tobytes() == plain.tobytes(), what


def test_random_views_are_saved_by_value():
    choose = random.Random(7)
    for _ in range(300):
        rank = choose.randrange(1, 5)
        base = np.arange(np.prod(shape := [choose.randrange(1, 6) for _ in range(rank)])).reshape(shape)
        base = base.astype(choose.choice(["<i2", ">i2", "<f4", ">f4", "<f8", ">u8", "i1"]))
        index = tuple(
            slice(choose.choice([None, 0, 1]), None, choose.choice([1, 1, 2])) if choose.random() < 0.6
            else slice(None, None, -1)
            for _ in shape
        )
        view = base[index].transpose(choose.sample(range(rank), rank))
        expected = np.array(view, dtype=view.dtype.newbyteorder("<"), order="C")
        assert load(save({"a": view}))["a"].tobytes() == expected.tobytes()


def test_bytes_do_not_depend_on_the_order_of_what_is_given():
    arrays = {name: np.arange(3, dtype="i2") for name in "cab"}
    metadata = {"z": "1", "a": "2", "m": "3"}
    expected = save(arrays, metadata)
    for names in itertools.permutations(arrays):
        assert save({name: arrays[name] for name in names}, dict(reversed(metadata.items()))) == expected


def test_what_is_no_array_of_numbers_is_refused_by_name():
    for bad in (
        np.array([object()]),
        np.array(["text"]),
        np.array([b"text"]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([1], dtype="timedelta64[s]"),
        np.zeros(1, dtype="complex128"),
        np.zeros(1, dtype="longdouble"),
        np.zeros(1, dtype=[("a", "i4"), ("b", "f4")]),
    ):
        with pytest.raises(SafetensorError, match="Unknown dtype .*Supported dtypes: bool, int8.*tensor `a`"):
            save({"a": bad})
    with pytest.raises(AttributeError, match="`a` is of class list, not an array: save numpy.asarray of it"):
        save({"a": [1.0, 2.0]})
    with pytest.raises(TypeError, match="the name of a tensor is not a str: 1, of class int"):
        save({1: np.zeros(1)})
    with pytest.raises(TypeError, match="expected a mapping of names to arrays, found ndarray"):
        save(np.zeros(1))
    with pytest.raises(TypeError, match="the value of \"epoch\" is not a str: 3, of class int"):
        save({"a": np.zeros(1)}, {"epoch": 3})
    with pytest.raises(TypeError, match="the key is not a str: 3, of class int"):
        save({"a": np.zeros(1)}, {3: "epoch"})
    with pytest.raises(SafetensorError) as caught:
        save({"__metadata__": np.zeros(1)})
    assert caught.value.code == "st-reserved-name"
    with pytest.raises(SafetensorError):
        save({"a": np.zeros(1, dtype=ml_dtypes.float4_e2m1fn)})


def test_other_memory_counts_as_arrays():
    data = save({"a": array.array("d", [1, 2]), "b": memoryview(b"xyz"), "c": np.float32(1.5)})
    loaded = load(data)
    assert loaded["a"].tolist() == [1, 2]
    assert loaded["b"].tobytes() == b"xyz"
    assert loaded["c"] == 1.5


def test_anything_with_bytes_can_be_loaded(tmp_path):
    data = save({"a": np.arange(5.0), "b": np.zeros((0, 3))})
    path = tmp_path / "a"
    path.write_bytes(data)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        sources = [data, bytearray(data), memoryview(data), memoryview(bytearray(b"xx" + data))[2:], np.frombuffer(data, "u1")]
        for source in sources:
            loaded = load(source)
            assert loaded["a"].tolist() == [0, 1, 2, 3, 4]
            assert loaded["b"].shape == (0, 3)
            assert not loaded["a"].flags.writeable
            assert bytes(deserialize(source)[0][1]["data"]) == loaded["a"].tobytes()
        assert load(mapped[:])["a"].sum() == 10
    for wrong in ("text", 5, None, [1]):
        with pytest.raises(TypeError):
            load(wrong)


def test_arrays_are_views_and_writable_only_on_request(tmp_path):
    path = tmp_path / "a"
    save_file({"a": np.arange(6.0).reshape(2, 3)}, path)
    before = path.read_bytes()
    for backend in ("mmap", "read"):
        with pytest.raises(ValueError, match="read-only"):
            load_file(path, backend=backend)["a"][0] = 9
    for backend in ("mmap", "pread", "read"):
        loaded = load_file(path, backend=backend, writable=True)
        loaded["a"] += 1
        assert loaded["a"].sum() == 21
    assert path.read_bytes() == before
    assert load_file(path)["a"].sum() == 15


def test_arrays_outlive_the_file_and_its_name(tmp_path):
    path = tmp_path / "a"
    save_file({"a": np.arange(1000.0)}, path)
    with safe_open(path, framework="np") as file:
        a, part = file["a"], file.get_slice("a")
    path.unlink()
    assert a.sum() == part[:].sum() == 499500
    assert part[-1:0:-333].tolist() == [999, 666, 333]


def test_saving_over_the_file_that_is_mapped_keeps_the_old_view(tmp_path):
    path = tmp_path / "a"
    save_file({"a": np.zeros(1000)}, path)
    old = load_file(path)["a"]
    save_file({"a": old + 1}, path)
    assert old.sum() == 0
    assert load_file(path)["a"].sum() == 1000


def test_the_file_is_a_mapping(tmp_path):
    path = tmp_path / "a"
    save_file({"b": np.arange(3), "a": np.arange(4.0)}, path, {"k": "v"})
    with safe_open(path, framework="np") as file:
        assert file.keys() == ["a", "b"]
        assert file.offset_keys() == list(file) == ["b", "a"]
        assert len(file) == 2 and "a" in file and "x" not in file and 5 not in file
        assert [name for name, _ in file.items()] == list(file)
        assert sum(value.sum() for value in file.values()) == 9
        assert file.get("x") is None and file.get("x", 7) == 7 and file.get("a").sum() == 6
        assert file.metadata() == {"k": "v"}
        with pytest.raises(KeyError):
            file["x"]
        with pytest.raises(SafetensorError, match="File does not contain tensor x"):
            file.get_tensor("x")
    for call in (file.keys, file.metadata, lambda: file["a"], lambda: len(file), file.get_tensors):
        with pytest.raises(SafetensorError, match="File is closed"):
            call()


def test_options_are_checked(tmp_path):
    path = tmp_path / "a"
    save_file({"a": np.arange(3)}, path)
    for options, text in (
        ({"framework": "x"}, "framework x is invalid"),
        ({"framework": "np", "device": "x"}, "device x is invalid"),
        ({"framework": "np", "device": "cuda:x"}, "device cuda:x is invalid"),
        ({"framework": "np", "device": "cuda"}, "Device cuda:0 is not supported for framework numpy"),
        ({"framework": "np", "device": 1}, "Device 1 is not supported for framework numpy"),
        ({"framework": "np", "device": "mps:1"}, "device mps:1 is invalid: only mps or mps:0 is supported"),
    ):
        with pytest.raises(SafetensorError) as caught:
            safe_open(path, **options)
        assert str(caught.value) == text
    with pytest.raises(SafetensorError, match='backend "x" is invalid'):
        safe_open(path, "np", backend="x")
    with pytest.raises(FileNotFoundError) as caught:
        safe_open("notafile", framework="np")
    assert str(caught.value) == "No such file or directory: notafile"
    with pytest.raises(OSError):
        safe_open(tmp_path, framework="np")


def test_writable_arrays_can_be_written_to_and_the_file_stays(tmp_path):
    path = tmp_path / "a"
    save_file({"a": np.arange(5000, dtype="f4"), "b": np.zeros(3, "f2")}, path)
    before = path.read_bytes()
    for data in (before, bytearray(before), memoryview(before)):
        with pytest.raises(ValueError, match="read-only"):
            load(data)["a"][0] = 1
    loads = [lambda: load(before, writable=True), lambda: load(bytearray(before), writable=True)]
    loads += [lambda backend=backend: load_file(path, backend=backend, writable=True) for backend in ("mmap", "pread", "read")]
    for again in loads:
        arrays = again()
        arrays["a"][1:] *= 2
        arrays["b"] += 1
        assert arrays["a"].tolist() == [2 * idx for idx in range(5000)] and arrays["b"].tolist() == [1, 1, 1]
        assert again()["a"][4999] == 4999 and path.read_bytes() == before


def test_a_handle_opens_the_file_it_names(tmp_path):
    path = tmp_path / "a"
    save_file({"a": np.arange(3)}, path)
    with open(path, "rb") as handle, _safe_open_handle(handle, framework="np") as file:
        assert file["a"].tolist() == [0, 1, 2]
    with pytest.raises(AttributeError):
        _safe_open_handle("text", framework="np")


def test_specs_of_memory():
    numbers = np.arange(6, dtype="f4")
    spec = TensorSpec(dtype="float32", shape=[2, 3], data_ptr=numbers.ctypes.data, data_len=24)
    assert (spec.dtype, spec.shape, spec.data_len) == ("F32", [2, 3], 24)
    assert repr(spec).startswith("TensorSpec(dtype='F32', shape=[2, 3], data_ptr=")
    assert serialize({"a": spec}, {"k": "v"}) == save({"a": numbers.reshape(2, 3)}, {"k": "v"})
    assert TensorSpec(dtype="float4_e2m1fn_x2", shape=[2, 3], data_ptr=0, data_len=0).shape == [2, 6]
    wrong = TensorSpec(dtype="float32", shape=[2], data_ptr=numbers.ctypes.data, data_len=24)
    with pytest.raises(SafetensorError):
        serialize({"a": wrong})
    with pytest.raises(SafetensorError, match="no memory"):
        serialize({"a": TensorSpec(dtype="uint8", shape=[1], data_ptr=0, data_len=1)})
    with pytest.raises(SafetensorError, match='Unknown dtype "nonsense"'):
        TensorSpec(dtype="nonsense", shape=[1], data_ptr=0, data_len=0)
    with pytest.raises(TypeError):
        TensorSpec("float32", [1], 0, 0)
    with pytest.raises(TypeError):
        serialize({"a": {"dtype": "float32"}})


def test_new_files_follow_the_umask_and_old_ones_keep_their_rights(tmp_path):
    path = tmp_path / "a"
    before = os.umask(0o027)
    try:
        save_file({"a": np.zeros(1)}, path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    save_file({"a": np.ones(1)}, path, fsync=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_links_are_followed_and_stay(tmp_path):
    path, link = tmp_path / "a", tmp_path / "link"
    save_file({"a": np.zeros(1)}, path)
    link.symlink_to(path)
    save_file({"a": np.ones(1)}, link)
    assert link.is_symlink()
    assert load_file(path)["a"][0] == 1


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    save_file({"a": np.zeros(3)}, path)
    before = path.read_bytes()

    class Broken:
        """An array whose elements cannot be put in order."""

        dtype = np.dtype("float32")

        def __buffer__(self, flags):
            raise BufferError("no")

        def view(self, dtype):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        save_file({"a": np.ones(3), "b": Broken()}, path)
    with pytest.raises(SafetensorError):
        save_file({"__metadata__": np.ones(3)}, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a"]
    with pytest.raises(FileNotFoundError):
        save_file({"a": np.ones(3)}, tmp_path / "no" / "folder")
    with pytest.raises(OSError):
        serialize_file({}, tmp_path)


def test_metadata_can_be_changed(tmp_path):
    path = tmp_path / "a"
    save_file({"b": np.arange(5), "a": np.arange(4.0)}, path)
    tensors = {name: array.copy() for name, array in load_file(path).items()}
    for metadata in ({"k": "v"}, {"long": "x" * 10_000}, {"k": "w"}, None):
        set_metadata(path, metadata)
        with safe_open(path, framework="np") as file:
            assert file.metadata() == metadata
            assert all((file[name] == array).all() for name, array in tensors.items())
    with pytest.raises(FileNotFoundError):
        set_metadata(tmp_path / "x", {})


def test_errors_say_where_and_can_be_pickled():
    data = save({"a": np.zeros(2)})
    with pytest.raises(SafetensorError) as caught:
        load(data[:-1])
    error = caught.value
    assert error.code == "st-file-length"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.skipif(sys.platform != "linux", reason="counts pages as Linux does")
def test_only_what_is_touched_is_read(tmp_path):
    path = tmp_path / "a"
    save_file({"a": np.zeros((4096, 4096), "f4")}, path)
    program = textwrap.dedent(
        """
        import resource, sys
        import numpy as np
        from apr.safetensors import safe_open
        from apr.safetensors.numpy import load_file
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        load_file
        before = peak()
        with safe_open(sys.argv[1], framework="np", backend=sys.argv[2]) as file:
            part = file.get_slice("a")
            assert part[100:104, ::7].sum() == 0
            assert part[:, 5].shape == (4096,)
        print(peak() - before)
        """
    )
    # The column of the map is one page of each row's; read by position it is a few bytes of each.
    for backend, most in (("mmap", 40_000), ("pread", 8_000)):
        run = subprocess.run([sys.executable, "-c", program, path, backend], capture_output=True, text=True, check=True)
        assert int(run.stdout) < most, backend


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be shortened there")
def test_a_file_that_shrinks_is_survived_without_a_map(tmp_path):
    path = tmp_path / "a"
    for backend in ("pread", "read"):
        save_file({"a": np.arange(100_000.0)}, path)
        with safe_open(path, framework="np", backend=backend) as file:
            os.truncate(path, 1000)
            if backend == "read":
                assert file["a"].sum() == 4999950000
            else:
                with pytest.raises(SafetensorError, match="shorter|shrunk|shrank") as caught:
                    file["a"]
                assert caught.value.tensor == "a"
                with pytest.raises(SafetensorError):
                    file.get_slice("a")[50_000:]


def test_importing_the_package_imports_no_framework():
    program = "import sys, apr, apr.safetensors; print([m for m in ('numpy', 'torch', 'jax') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_threads_share_files_and_open_their_own(tmp_path):
    path = tmp_path / "a"
    save_file({"a": np.arange(1000.0), "b": np.arange(4).astype(ml_dtypes.bfloat16)}, path)
    shared = safe_open(path, framework="np", backend="pread")

    def work(number):
        total = 0.0
        for turn in range(125):
            backend = ("mmap", "pread", "read")[(number + turn) % 3]
            with safe_open(path, framework="np", backend=backend) as file:
                total += file["a"][turn] + file.get_slice("b")[-1:][0] + shared["a"][turn]
            if turn % 25 == 0:
                save_file({"a": file_of_one(number)}, tmp_path / f"own-{number}")
                assert (load_file(tmp_path / f"own-{number}")["a"] == number).all()
        return float(total)

    def file_of_one(number):
        return np.full((100, 3), number).T

    with futures.ThreadPoolExecutor(8) as pool:
        totals = list(pool.map(work, range(8)))
    assert totals == [2 * sum(range(125)) + 125 * 3.0] * 8


def test_many_files_can_be_held_open():
    pytest.importorskip("resource")
    # A map needs no open file: arrays of more files than a process may open.
    program = textwrap.dedent(
        """
        import resource, sys, tempfile
        import numpy as np
        from apr.safetensors.numpy import load_file, save_file
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        path = tempfile.mkdtemp() + "/a"
        save_file({"a": np.arange(3)}, path)
        held = [load_file(path)["a"] for _ in range(500)]
        print(sum(int(array.sum()) for array in held))
        """
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(run.stdout) == 1500


@pytest.mark.parametrize("writable", [False, True])
def test_arrays_hold_the_memory_that_they_show(writable, tmp_path):
    data = bytearray(save({"w": np.ones(2_000), "e": np.ones((0, 3)), "p": np.ones(4, ml_dtypes.float4_e2m1fn)}))
    (tmp_path / "f").write_bytes(data)
    with open(tmp_path / "f", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for owner, release in ((data, data.clear), (mapped, mapped.close)):
        arrays = load(owner, writable=writable)
        assert arrays["w"].flags.writeable == writable
        if writable:
            release()
        else:
            with pytest.raises(BufferError):
                release()
        assert arrays["w"].sum() == 2_000
        if writable:
            with pytest.raises((BufferError, AttributeError)):
                owned = arrays["w"]
                while isinstance(owned, np.ndarray):
                    owned = owned.base
                owned.obj.clear()
            continue
        del arrays
        release()


def test_a_memoryview_may_be_released_before_its_arrays():
    data = bytearray(save({"w": np.ones(2_000)}))
    view = memoryview(data)
    array = load(view)["w"]
    view.release()
    with pytest.raises(BufferError):
        data.clear()
    assert array.sum() == 2_000
    del array
    data.clear()


def test_every_error_has_its_attributes(tmp_path):
    bare = SafetensorError("text")
    assert (bare.code, bare.offset, bare.tensor) == (None, None, None)
    with pytest.raises(SafetensorError) as caught:
        save({"w": np.array(["x"])})
    assert (caught.value.code, caught.value.offset, caught.value.tensor) == ("st-dtype", None, "w")
    save_file({"a": np.ones(1)}, tmp_path / "f")
    with safe_open(tmp_path / "f", "np") as file, pytest.raises(SafetensorError) as caught:
        file.get_tensor("b")
    assert (caught.value.code, caught.value.tensor) == ("st-not-found", "b")
    with Writer(tmp_path / "g", {"a": ("F32", [1])}) as writer:
        for name, array in (("b", np.ones(1, np.float32)), ("a", np.ones(1)), ("a", np.ones((1, 1), np.float32))):
            with pytest.raises(SafetensorError) as caught:
                writer.write(name, array)
            assert (caught.value.code, caught.value.tensor) == (None, name)
        writer.write("a", np.ones(1, np.float32))


def test_masked_arrays_are_refused_by_name():
    for mask in ([False, True], False):
        with pytest.raises(SafetensorError, match="`w` is a masked array, whose mask no file can hold") as caught:
            save({"w": np.ma.masked_array([1.0, 2.0], mask=mask)})
        assert caught.value.tensor == "w"
