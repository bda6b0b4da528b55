"""`device="cuda"` of torch, by way of a device on the CPU in its place: which calls take the pipeline, types, shapes, what torch is told to do."""

from __future__ import annotations

import contextlib
import json
import threading
import weakref
from pathlib import Path
from typing import Any, ClassVar

import pytest
from memory_device import Source, readers_alive, written
from range_server import serving

torch = pytest.importorskip("torch")

import apr  # noqa: E402
from apr._accelerator import _devices, in_memory  # noqa: E402
from apr._accelerator._plan import Piece, Place  # noqa: E402
from apr.safetensors import SafetensorError, safe_open  # noqa: E402
from apr.safetensors.torch import iter_file, load_file, load_model, save, save_file, save_model  # noqa: E402
from test_apr import IDENTITY, RECIPIENT  # noqa: E402
from test_torch import DTYPES, of_type, raw  # noqa: E402

LARGE = 32 << 20


class Done:
    """An event of copies that are complete."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass


class Memory(_devices.Host):
    """A device of torch whose memory is that of the CPU."""

    made: ClassVar[list[Memory]] = []

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device, self.n_alive, self.lengths = device, 0, []
        self.made.append(self)

    def buffer(self, length: int) -> Any:
        self.lengths.append(length)
        return _devices.Pinned(torch.empty(length, dtype=torch.uint8, device="cpu"))

    def copy(self, buffer: Any, copies: Any) -> Any:
        for tensor, piece in copies:
            _devices.copy_piece(tensor, buffer, piece)
        return Done()

    def drain(self) -> None:
        pass


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> list[Memory]:
    """The devices that were opened for "cuda"."""
    monkeypatch.setitem(_devices.PIPELINED, "cuda", Memory)
    monkeypatch.setattr(Memory, "made", [])
    yield Memory.made
    assert readers_alive() == []


TENSORS = {
    "weight": torch.arange(60_000, dtype=torch.float32).reshape(200, 300),
    "half": torch.arange(1000).bfloat16(),
    "scalar": torch.tensor(0.5, dtype=torch.float64),
    "empty": torch.zeros(0, 7, dtype=torch.float16),
    "flags": torch.tensor([True, False]),
    "complex": torch.tensor([1 + 2j]),
}


def same(found: dict[str, Any], expected: dict[str, Any] = TENSORS) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape), name
        assert raw(found[name]) == raw(tensor), name


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_file(TENSORS, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("code", DTYPES)
def test_every_type(code: str, tmp_path: Path, device: list[Memory]) -> None:
    tensors = {"whole": of_type(code, (2, -1)), "empty": of_type(code, (3, 0))}
    save_file(tensors, tmp_path / "model.safetensors")
    same(load_file(tmp_path / "model.safetensors", device="cuda"), tensors)
    assert len(device) == 1


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:1", 0, 1, torch.device("cuda"), torch.device("cuda", 1)])
def test_names_of_devices(name: Any, path: Path, device: list[Memory]) -> None:
    same(load_file(path, device=name))
    same(dict(iter_file(path, name)))
    with safe_open(path, "pt", device=name) as file:
        same(file.get_tensors())
        same(dict(file.items()))
    with apr.open(path, "pt", name) as model:
        same(model.get_tensors())
    assert len(device) == 5
    assert {made.device.type for made in device} == {"cuda"}
    assert {made.device.index for made in device} == {1 if "1" in str(name) else 0}


@pytest.mark.parametrize("name", ["cpu", torch.device("cpu")])
def test_the_cpu_takes_no_pipeline(name: Any, path: Path, device: list[Memory]) -> None:
    same(load_file(path, device=name))
    same(dict(iter_file(path, name, pinned_bytes=8192)))
    assert not device


FORMS = ["cpu", None, "cuda", "cuda:1", torch.device("cuda"), 0, 1, True, "xpu", torch.device("xpu", 1)]
REFUSED = ["meta", torch.device("meta"), "CUDA", "nope", "cuda:x", "cpu:0", 1.5, -1]


@pytest.mark.parametrize("name", [*FORMS, *REFUSED], ids=repr)
def test_every_call_understands_devices_alike(name: Any, path: Path, device: list[Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    (path.parent / "shards").mkdir()
    index = shards(path.parent / "shards")
    apr.seal(path, path.with_suffix(".sealed"), recipients=RECIPIENT)
    sealed = apr.open_sealed(path.with_suffix(".sealed"), identity=IDENTITY)
    moved: list[Any] = []
    to = torch.Tensor.to
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, place: moved.append(place) or to(tensor, "cpu"))

    def result(call: Any) -> Any:
        device.clear()
        moved.clear()
        try:
            same(call())
        except SafetensorError as error:
            return str(error)
        return [str(made.device) for made in device], {str(place) for place in moved if place != "cpu"}

    calls = {
        "load_file": lambda: load_file(path, name),
        "load_file, pinned_bytes": lambda: load_file(path, name, pinned_bytes=1 << 20),
        "load_file of an index": lambda: load_file(index, name),
        "load_file of a sealed file": lambda: load_file(sealed, name),
        "iter_file": lambda: dict(iter_file(path, name)),
        "safe_open": lambda: safe_open(path, "pt", name).get_tensors(),
        "open": lambda: apr.open(path, "pt", name).get_tensors(),
        "open of an index": lambda: apr.open(index, "pt", name).get_tensors(),
    }
    results = {label: result(call) for label, call in calls.items()}
    expected = results["safe_open"]
    assert isinstance(expected, str) == any(name is refused for refused in REFUSED)
    assert results == dict.fromkeys(calls, expected)


def test_torch_says_that_there_is_no_device(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises((RuntimeError, AssertionError)) as expected:
        torch.zeros(1).to("cuda")
    for ask in (lambda: load_file(path, device="cuda"), lambda: list(iter_file(path, "cuda"))):
        with pytest.raises(type(expected.value)) as found:
            ask()
        assert str(found.value) == str(expected.value)
    assert readers_alive() == []


def test_pinned_memory_is_as_much_as_is_allowed(path: Path, device: list[Memory]) -> None:
    same(load_file(path, device="cuda", pinned_bytes=32 << 10))
    same(load_file(path, device="cuda"))
    first, second = device
    assert set(first.lengths) == {16 << 10} and len(first.lengths) <= 2
    assert second.lengths == [256 << 10], "one buffer for a small file"
    with pytest.raises(ValueError, match="8192"):
        load_file(path, device="cuda", pinned_bytes=1)


def test_only_large_tensors_are_loaded_alone_through_pinned_memory(tmp_path: Path, device: list[Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, place: tensor)
    tensors = {"large": torch.ones(LARGE, dtype=torch.uint8), "small": torch.ones(3)}
    save_file(tensors, tmp_path / "m.safetensors")
    with safe_open(tmp_path / "m.safetensors", "pt", device="cuda") as file:
        for ask in (file.get_tensor, file.__getitem__, file.get):
            assert torch.equal(ask("small"), tensors["small"])
            assert not device
            assert torch.equal(ask("large"), tensors["large"])
            assert len(device) == 1
            device.clear()
        file.get_slice("large")[:]
        assert not device and file.get("none") is None


def test_models(tmp_path: Path, device: list[Memory]) -> None:
    model, other = torch.nn.Linear(3, 4), torch.nn.Linear(3, 4)
    save_model(model, tmp_path / "m.safetensors")
    assert load_model(other, tmp_path / "m.safetensors", device="cuda") == (set(), [])
    assert torch.equal(model.weight, other.weight) and len(device) == 1


def shards(folder: Path) -> Path:
    files = {"one.safetensors": ["weight", "scalar"], "two.safetensors": ["half", "empty", "flags", "complex"]}
    for file, names in files.items():
        save_file({name: TENSORS[name] for name in names}, folder / file)
    index = {
        "metadata": {"total_size": sum(tensor.nbytes for tensor in TENSORS.values())},
        "weight_map": {name: file for file, names in files.items() for name in names},
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder / "model.safetensors.index.json"


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_sets_of_shards(where: str, tmp_path: Path, device: list[Memory]) -> None:
    index = shards(tmp_path)
    for given in (index, str(index), tmp_path):
        same(load_file(given, device=where))
        same(dict(iter_file(given, where)))
        with apr.open(given, "pt", where) as model:
            found = model.get_tensors()
            same(found)
            assert list(found) == list(model)
    assert len(device) == (9 if where == "cuda" else 0), "one run for all shards"


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_shards_are_in_the_order_of_their_names(where: str, tmp_path: Path, device: list[Memory]) -> None:
    files = {"one.safetensors": ["c", "a"], "two.safetensors": ["b"]}
    for file, names in files.items():
        written(tmp_path / file, {name: ("U8", [1], name.encode()) for name in names})
    weight_map = {"a": "one.safetensors", "b": "two.safetensors", "c": "one.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert list(load_file(tmp_path, where)) == [name for name, _ in iter_file(tmp_path, where)] == ["c", "a", "b"]
    with apr.open(tmp_path, "pt", where) as model:
        assert list(model.get_tensors()) == list(model) == ["a", "b", "c"]


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_a_tensor_that_a_shard_does_not_have(where: str, tmp_path: Path, device: list[Memory]) -> None:
    index = shards(tmp_path)
    text = json.loads(index.read_text())
    text["weight_map"]["ghost"] = "one.safetensors"
    index.write_text(json.dumps(text))
    with apr.open(index, "pt", where, check=False) as model, pytest.raises(SafetensorError, match="^File does not contain tensor ghost"):
        model.get_tensors()
    assert all(not made.lengths for made in device), "before anything is read"


@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("is_sealed", [False, True])
def test_an_iterator_keeps_no_tensor(is_sealed: bool, where: str, path: Path, device: list[Memory]) -> None:
    source: Any = path
    if is_sealed:
        apr.seal(path, path.with_suffix(".sealed"), recipients=RECIPIENT)
        source = apr.open_sealed(path.with_suffix(".sealed"), identity=IDENTITY)
    for name, tensor in (tensors := iter_file(source, where)):
        alive = weakref.ref(tensor)
        del tensor
        assert alive() is None, name
    assert list(tensors) == []


def test_a_remote_sealed_file_on_the_cpu_is_announced() -> None:
    source = Source([100] * 3, is_local=False)
    found = {name: raw(tensor) for name, tensor in in_memory(source, "cpu")}
    assert found == source.expected() and source.hints == [(0, 300)]


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_sealed_files(where: str, path: Path, device: list[Memory]) -> None:
    apr.seal(path, path.with_suffix(".sealed"), recipients=RECIPIENT)
    reader = apr.open_sealed(path.with_suffix(".sealed"), identity=IDENTITY)
    same(load_file(reader, device=where))
    same(dict(iter_file(reader, where)))
    assert len(device) == (2 if where == "cuda" else 0)


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_blocks_of_a_sealed_file_are_bytes(where: str, tmp_path: Path, device: list[Memory]) -> None:
    np = pytest.importorskip("numpy")
    apr.gguf.save(tmp_path / "m.gguf", {"w": np.ones((2, 256), np.float32)}, {"general.architecture": "demo"}, types={"w": "Q4_K"})
    apr.seal(tmp_path / "m.gguf", tmp_path / "m.sealed", recipients=RECIPIENT)
    reader = apr.open_sealed(tmp_path / "m.sealed", identity=IDENTITY)
    found = load_file(reader, device=where)["w"]
    assert (found.dtype, found.shape) == (torch.uint8, (288,)) and raw(found) == reader["w"].tobytes()


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_a_type_that_torch_lacks_is_refused_first(where: str, tmp_path: Path, device: list[Memory]) -> None:
    path = written(tmp_path / "m.safetensors", {"a": ("U8", [4], bytes(4)), "b": ("F6_E2M3", [4], bytes(3))})
    with pytest.raises(SafetensorError, match="Dtype not understood: F6_E2M3"):
        load_file(path, device=where)
    assert all(not made.lengths for made in device)
    apr.seal(path, tmp_path / "m.sealed", recipients=RECIPIENT)
    with pytest.raises(SafetensorError, match="Dtype not understood: F6_E2M3"):
        load_file(apr.open_sealed(tmp_path / "m.sealed", identity=IDENTITY), device=where)


def test_urls(device: list[Memory], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    shards(tmp_path)
    files = {f"/s/{path.name}": path.read_bytes() for path in tmp_path.iterdir()}
    with serving({"/m.safetensors": save(TENSORS), **files}) as site:
        same(load_file(site.url("/m.safetensors"), device="cuda"))
        same(load_file(site.url("/s/model.safetensors.index.json?signature=s"), device="cuda"))
    assert len(device) == 2


def test_other_formats_are_copied_one_by_one(tmp_path: Path, device: list[Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"w": torch.ones(3)}, tmp_path / "m.pt")
    moved = []
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, place: moved.append(place) or tensor)
    with apr.open(tmp_path / "m.pt", "pt", "cuda:1") as model:
        assert torch.equal(model.get_tensors()["w"], torch.ones(3))
    assert moved == ["cuda:1"] and not device


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_a_folder_with_another_format(where: str, tmp_path: Path, device: list[Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.ones(3)
    torch.save({"a": weight, "b": weight}, tmp_path / "pytorch_model.bin")
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, place: tensor)
    found = load_file(tmp_path, device=where)
    assert torch.equal(found["a"], weight) and found["a"].data_ptr() == found["b"].data_ptr() and not device


class FakeStream:
    """What `Cuda` asks of a stream of torch."""

    def __init__(self, log: list[Any], name: str) -> None:
        self.log, self.name = log, name

    def wait_stream(self, other: FakeStream) -> None:
        self.log.append(("wait", self.name, other.name))

    def record_event(self) -> Done:
        self.log.append(("record", self.name))
        return Done()

    def synchronize(self) -> None:
        self.log.append(("synchronize", self.name))


def test_copies_are_on_a_stream_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch is told to do, where there is no GPU to do it."""
    log: list[Any] = []
    empty = torch.empty

    @contextlib.contextmanager
    def within(what: str, value: Any) -> Any:
        log.append((what, getattr(value, "name", value)))
        yield
        log.append((f"end {what}",))

    def allocated(*args: Any, pin_memory: bool = False, device: Any, **kwargs: Any) -> Any:
        log.append(("empty", str(device), pin_memory))
        return empty(*args, device="cpu", **kwargs)

    cuda = torch.cuda
    monkeypatch.setattr(cuda, "init", lambda: log.append(("init",)))
    monkeypatch.setattr(cuda, "Stream", lambda device: FakeStream(log, f"side {device}"))
    monkeypatch.setattr(cuda, "current_stream", lambda device: FakeStream(log, f"current {device}"))
    monkeypatch.setattr(cuda, "stream", lambda stream: within("stream", stream))
    monkeypatch.setattr(cuda, "device", lambda device: within("device", str(device)))
    monkeypatch.setattr(torch, "empty", allocated)
    found = _devices.opened("cuda:1")
    buffer = found.buffer(8)
    tensor = found.tensor(Place("t", "I16", [2, 2], 0, 8))
    buffer.memory[:] = bytes(range(8))
    found.copy(buffer, [(tensor, Piece(0, 2, 4, 4)), (tensor, Piece(0, 0, 6, 2))])
    found.copy(buffer, [(tensor, Piece(0, 6, 0, 2))])
    found.drain()
    assert raw(tensor) == bytes([6, 7, 4, 5, 6, 7, 0, 1])
    buffer.release()
    assert buffer.tensor is None
    assert log == [
        ("init",),
        ("device", "cuda:1"),
        ("empty", "cpu", True),
        ("end device",),
        ("empty", "cuda:1", False),
        ("wait", "side cuda:1", "current cuda:1"),
        ("stream", "side cuda:1"),
        ("record", "side cuda:1"),
        ("end stream",),
        # No tensor is new.
        ("stream", "side cuda:1"),
        ("record", "side cuda:1"),
        ("end stream",),
        ("synchronize", "side cuda:1"),
    ]


def test_pinned_memory_is_not_freed_while_it_is_in_use() -> None:
    tensor = torch.zeros(8, dtype=torch.uint8)
    buffer, alive = _devices.Pinned(tensor), weakref.ref(tensor)
    part = buffer.memory[:4]
    del tensor
    buffer.release()
    assert alive() is not None and bytes(part) == bytes(4)
    part.release()
    del part
    assert alive() is None


def test_two_loads_at_once(path: Path, device: list[Memory]) -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(load_file(path, "cuda", pinned_bytes=8192))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(device) == 4
    for tensors in found:
        same(tensors)
