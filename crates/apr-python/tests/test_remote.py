"""Files at URLs and behind objects that read ranges: requests, pins, faults, errors."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import VECTORS
from range_server import Handler, serving

import apr
from apr import gguf
from apr.safetensors import numpy as st
from apr.safetensors import safe_open

ARRAYS = {
    "a": np.arange(100_000, dtype=np.float32).reshape(100, 1000),
    "b": np.arange(300_000, dtype=np.float64).reshape(300, 1000),
    "c": np.arange(7, dtype=np.int8),
}
MODEL = st.save(ARRAYS, {"k": "v"})
# Bytes of the first request.
FIRST = 64 << 10

pytestmark = pytest.mark.usefixtures("plain_environment")


@pytest.fixture
def site():
    with serving({"/m.safetensors": MODEL}) as site:
        yield site


def sharded() -> dict[str, bytes]:
    """A model in two files, with an index."""
    files = {"/s/one.safetensors": st.save({"a": ARRAYS["a"]}), "/s/two.safetensors": st.save({"b": ARRAYS["b"], "c": ARRAYS["c"]})}
    names = {"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"}
    total = sum(array.nbytes for array in ARRAYS.values())
    index = {"metadata": {"total_size": total}, "weight_map": names}
    files["/s/model.safetensors.index.json"] = json.dumps(index).encode()
    return files


def gguf_file(folder: Path) -> bytes:
    path = folder / "m.gguf"
    tensors = {"w": np.ones((32, 65536), np.float32), "x": np.arange(4096, dtype=np.float32)}
    gguf.save(path, tensors, {"general.architecture": "demo"}, types={"w": "Q8_0"})
    return path.read_bytes()


def same(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert (found == expected).all()


def test_what_is_kept_on_disk_needs_no_bytes_again(site, tmp_path, monkeypatch):
    with apr.open(site.url("/m.safetensors")) as model:
        same(model["b"], ARRAYS["b"])
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("APR_BLOCK_CACHE", str(tmp_path / "blocks"))
    for bodies in (True, False):
        site.seen.clear()
        with apr.open(site.url("/m.safetensors")) as model:
            same(model["b"], ARRAYS["b"])
            same(model["c"], ARRAYS["c"])
        assert (len(site.seen) > 1) == bodies
    assert site.seen[0][1]["if-none-match"] == '"v1"'
    site.files["/m.safetensors"] = st.save({"b": ARRAYS["b"] + 1})
    site.tags["/m.safetensors"] = "v2"
    with apr.open(site.url("/m.safetensors")) as model:
        same(model["b"], ARRAYS["b"] + 1)


def test_opening_is_one_request_and_a_tensor_another(site):
    with safe_open(site.url("/m.safetensors"), "np") as file:
        assert site.ranges() == [(0, FIRST - 1)]
        assert sorted(file.keys()) == ["a", "b", "c"] and file.metadata() == {"k": "v"}
        assert file.info("b")["shape"] == [300, 1000]
        assert len(site.seen) == 1
        array = file["b"]
        same(array, ARRAYS["b"])
        assert len(site.seen) == 2 and site.seen[1][1]["if-match"] == '"v1"'
        assert site.bytes_asked() <= FIRST + ARRAYS["b"].nbytes + (64 << 10)
        array[0, 0] = 5
        same(file["b"], ARRAYS["b"])
        same(file["c"], ARRAYS["c"])
        same(file.get_slice("a")[3:5, ::2], ARRAYS["a"][3:5, ::2])
        assert bytes(file.get_bytes("c")) == ARRAYS["c"].tobytes()


def test_a_slice_reads_what_it_gives(site):
    with safe_open(site.url("/m.safetensors"), "np") as file:
        part = file.get_slice("b")[290:292]
        same(part, ARRAYS["b"][290:292])
        assert site.bytes_asked() <= 2 * FIRST


@pytest.mark.parametrize("backend", ["mmap", "pread", "read"])
def test_every_backend_gives_the_same(site, backend):
    with safe_open(site.url("/m.safetensors"), "np", backend=backend, writable=True) as file:
        for name, expected in ARRAYS.items():
            same(file[name], expected)
            assert file[name].flags.writeable
    found = st.load_file(site.url("/m.safetensors"), backend=backend)
    assert found.keys() == ARRAYS.keys()
    digests = apr.safetensors.digests(site.url("/m.safetensors"), backend=backend)
    assert digests["c"] == hashlib.sha256(ARRAYS["c"].tobytes()).hexdigest()
    apr.safetensors.verify(site.url("/m.safetensors"), digests, backend=backend)


def test_tensors_of_torch(site):
    torch = pytest.importorskip("torch")
    with safe_open(site.url("/m.safetensors"), framework="pt") as file:
        found = file.get_tensor("a")
        assert isinstance(found, torch.Tensor)
        same(found.numpy(), ARRAYS["a"])


def test_a_model_is_a_mapping(site):
    with apr.open(site.url("/m.safetensors?signature=secret")) as model:
        assert model.format == "safetensors" and model.path == site.url("/m.safetensors")
        assert len(site.seen) == 1 and model.shards == [model.path] and model.file_of("a") == model.path
        same(model["a"], ARRAYS["a"])
        assert site.seen[-1][0] == "/m.safetensors?signature=secret"
        assert "secret" not in repr(model) and model.metadata() == {"k": "v"}


def test_an_index_opens_its_shards():
    with serving(sharded()) as site:
        with apr.open(site.url("/s/model.safetensors.index.json")) as model:
            assert len(site.seen) == 3 and set(model) == set(ARRAYS)
            assert model.shards == [site.url("/s/one.safetensors"), site.url("/s/two.safetensors")]
            for name, expected in ARRAYS.items():
                same(model[name], expected)
            assert model.info("c")["dtype"] == "I8"
        site.seen.clear()
        with apr.open(site.url("/s/model.safetensors.index.json"), check=False) as model:
            assert len(site.seen) == 1
            same(model["c"], ARRAYS["c"])
            assert {path for path, _ in site.seen[1:]} == {"/s/two.safetensors"}


def test_a_set_that_does_not_fit_its_index_is_refused():
    files = sharded()
    files["/s/one.safetensors"] = st.save({"other": ARRAYS["a"]})
    with serving(files) as site:
        with pytest.raises(apr.SafetensorError, match="disagree"):
            apr.open(site.url("/s/model.safetensors.index.json"))
    del files["/s/one.safetensors"]
    with serving(files) as site:
        with pytest.raises(apr.AprError) as caught:
            apr.open(site.url("/s/model.safetensors.index.json"))
        assert caught.value.code == "rm-not-found"


def test_gguf_tensors_are_read_when_their_numbers_are_asked_for(tmp_path):
    content = gguf_file(tmp_path)
    local = gguf.open(tmp_path / "m.gguf")
    with serving({"/m.gguf": content}) as site:
        with gguf.open(site.url("/m.gguf")) as file:
            assert site.ranges() == [(0, (1 << 20) - 1)]
            assert file.metadata == local.metadata and list(file) == list(local)
            tensor = file["w"]
            assert (tensor.nbytes, tensor.shape, tensor.type) == (local["w"].nbytes, (32, 65536), "Q8_0")
            assert len(site.seen) == 1
            same(tensor.blocks, local["w"].blocks)
            assert len(site.seen) == 2
            same(tensor.dequantize(), local["w"].dequantize())
            assert len(site.seen) == 2 and not tensor.blocks.flags.writeable
        same(tensor.blocks, local["w"].blocks)
        with apr.open(site.url("/m.gguf")) as model:
            assert model.format == "gguf"
            same(model["x"], local["x"].array())
        site.files["/m.gguf"] = MODEL
        with pytest.raises(apr.AprError) as caught:
            gguf.open(site.url("/m.gguf"))
        assert caught.value.code == "gg-magic"


def test_files_of_other_programs(tmp_path):
    np.savez(tmp_path / "m.npz", **ARRAYS)
    with serving({"/m.npz": (tmp_path / "m.npz").read_bytes()}) as site:
        with apr.open(site.url("/m.npz")) as model:
            assert model.format == apr.open(tmp_path / "m.npz").format
            for name, expected in ARRAYS.items():
                same(model[name], expected)
            assert model.metadata() == apr.open(tmp_path / "m.npz").metadata()


def test_models_and_sealed_files(tmp_path):
    path = VECTORS / "apr" / "a0723_linreg_none_plain.apr"
    st.save_file(ARRAYS, tmp_path / "m.safetensors")
    apr.seal(tmp_path / "m.safetensors", tmp_path / "t.sealed", password="secret")
    files = {"/m.apr": path.read_bytes(), "/m.safetensors": MODEL, "/t.sealed": (tmp_path / "t.sealed").read_bytes()}
    with serving(files) as site:
        here, there = apr.load(path), apr.load(site.url("/m.apr"))
        row = np.ones((1, here.n_features), np.float32)
        assert there.predict(row) == here.predict(row)
        assert apr.inspect(site.url("/m.apr")) == apr.inspect(path)
        assert apr.inspect(site.url("/m.safetensors"))["tensors"] == apr.inspect(MODEL)["tensors"]
        site.seen.clear()
        sealed = apr.open_sealed(site.url("/t.sealed"), password="secret")
        opening = len(site.seen)
        assert set(sealed) == set(ARRAYS) and opening <= 3
        same(sealed["a"], ARRAYS["a"])
        assert len(site.seen) - opening <= 2
        same(sealed["b"], ARRAYS["b"])
        damaged = bytearray(files["/t.sealed"])
        damaged[len(damaged) // 2] ^= 1
        site.files["/t.sealed"] = bytes(damaged)
        with pytest.raises(apr.AprError) as caught:
            apr.open_sealed(site.url("/t.sealed"), password="secret").verify()
        assert caught.value.code.startswith(("cy-", "ac-"))
        for ask in (apr.load, apr.inspect, apr.open_sealed):
            with pytest.raises(apr.AprError) as caught:
                ask(site.url("/none"))
            assert caught.value.code == "rm-not-found"
        with pytest.raises(apr.AprError) as caught:
            apr.load(site.url("/t.sealed"))
        assert caught.value.code == "ac-encrypted"
    store = Store({"m.apr": path.read_bytes()})
    assert apr.load("m.apr", fs=store).predict(row) == here.predict(row)


def test_a_file_that_changes_is_refused(site):
    file = safe_open(site.url("/m.safetensors"), "np")
    site.tags["/m.safetensors"] = "v2"
    with pytest.raises(apr.AprError) as caught:
        file["b"]
    assert caught.value.code == "rm-changed" and caught.value.path == site.url("/m.safetensors")
    assert "(rm-changed)" in str(caught.value)
    model = apr.open(site.url("/m.safetensors"))
    site.tags["/m.safetensors"] = "v3"
    with pytest.raises(apr.AprError, match="changed"):
        model.get_slice("b")[-1]


def test_a_connection_that_breaks_is_resumed(site):
    site.faults = {0: lambda handler: handler.drop(), 2: lambda handler: handler.drop(200_000), 3: lambda handler: handler.status(503)}
    with safe_open(site.url("/m.safetensors"), "np") as file:
        assert len(site.seen) == 2
        same(file["b"], ARRAYS["b"])
    ranges = site.ranges()
    assert len(ranges) == 5 and ranges[4][0] == ranges[2][0] + 200_000, "from the byte where it broke"


@pytest.mark.parametrize(
    ("path", "fault", "code"),
    [
        ("/none", None, "rm-not-found"),
        ("/m.safetensors", lambda handler: handler.status(403), "rm-denied"),
        ("/m.safetensors", lambda handler: handler.status(418), "rm-status"),
        ("/m.safetensors", lambda handler: handler.status(302, location="ftp://127.0.0.1/x"), "rm-redirect"),
        ("/m.safetensors", lambda handler: handler.status(206, content_range="bytes 5-9/100"), "rm-range"),
    ],
)
def test_errors_have_codes(site, path, fault, code):
    for ask in (apr.open, gguf.open, lambda url: safe_open(url, "np"), st.load_file):
        if fault:
            site.faults = {len(site.seen): fault}
        with pytest.raises(apr.AprError) as caught:
            ask(site.url(path + "?token=secret"))
        assert caught.value.code == code and "secret" not in str(caught.value)
        assert caught.value.path == site.url(path)


def test_what_is_no_safetensors_file_is_named(site):
    site.files["/page"] = b"<!DOCTYPE html><html><head><title>Log in</title></head></html>"
    with pytest.raises(apr.SafetensorError, match="web page"):
        apr.open(site.url("/page"))
    site.files["/short"] = b"abc"
    with pytest.raises(apr.SafetensorError, match="header too small"):
        safe_open(site.url("/short"), "np")


def test_urls_that_are_not_read(monkeypatch, site):
    for url, code in [
        ("s3://bucket/m.safetensors", "rm-scheme"),
        ("http://models.example/m.safetensors", "rm-http"),
        ("https://user:secret@models.example/m", "rm-url"),
        ("hf://one-word", "rm-url"),
    ]:
        with pytest.raises(apr.AprError) as caught:
            apr.open(url)
        assert caught.value.code == code, url
        assert "secret" not in str(caught.value) and "secret" not in caught.value.path
    assert "allow_http=True" in str(pytest.raises(apr.AprError, apr.open, "http://models.example/m").value)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(apr.AprError) as caught:
        apr.open(site.url("/m.safetensors"))
    assert caught.value.code == "rm-offline" and site.seen == []


def test_the_hub_gets_its_token_and_no_other_host(monkeypatch):
    commit = "0123456789abcdef0123456789abcdef01234567"
    with serving({"/m": MODEL}) as elsewhere, serving({f"/o/n/resolve/{commit}/model.safetensors": MODEL}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.port}")
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        hub.redirects["/o/n/resolve/main/model.safetensors"] = elsewhere.url("/m")
        with apr.open("hf://o/n") as model:
            same(model["c"], ARRAYS["c"])
        assert [path for path, _ in hub.seen] == [
            "/o/n/resolve/main/model.safetensors.index.json",
            "/o/n/resolve/main/model.safetensors",
        ]
        assert all(headers["authorization"] == "Bearer hf_secret" for _, headers in hub.seen)
        assert elsewhere.seen and not any("authorization" in headers for _, headers in elsewhere.seen)


def test_files_of_the_hub_cache_need_no_request(monkeypatch, tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--o--n"
    snapshot = repository / "snapshots" / commit
    for folder in [snapshot, repository / "blobs", repository / "refs"]:
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    blob = repository / "blobs" / "b"
    blob.write_bytes(MODEL)
    if os.name == "nt":
        (snapshot / "model.safetensors").write_bytes(MODEL)
    else:
        (snapshot / "model.safetensors").symlink_to(Path("../../blobs/b"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for url in ["hf://o/n", "hf://o/n/model.safetensors", f"hf://o/n@{commit}"]:
        with apr.open(url) as model:
            for name, array in ARRAYS.items():
                same(model[name], array)
    same(st.load_file("hf://o/n/model.safetensors")["b"], ARRAYS["b"])
    for url in ["hf://o/n/other", "hf://o/other", "hf://o/n@other"]:
        assert pytest.raises(apr.AprError, apr.open, url).value.code == "rm-offline"
    monkeypatch.setenv("APR_NO_HUB_CACHE", "1")
    assert pytest.raises(apr.AprError, apr.open, "hf://o/n").value.code == "rm-offline"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_a_wait(site):
    def silent(handler: Handler) -> None:
        time.sleep(30)

    site.faults = {1: silent}
    program = (
        # A shell may have started the tests in the background, where SIGINT is ignored.
        "import signal, sys, apr.safetensors as s\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "f = s.safe_open(sys.argv[1], 'np')\n"
        "print('opened', flush=True)\n"
        "f['b']\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, site.url("/m.safetensors")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout.readline() == b"opened\n"
    while len(site.seen) < 2:
        time.sleep(0.01)
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=20)
    assert time.monotonic() - start < 10
    assert child.returncode == -signal.SIGINT and b"KeyboardInterrupt" in error


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_process_has_to_open_it_again(site):
    url = site.url("/m.safetensors")
    program = (
        "import os, sys, apr, apr.safetensors as s\n"
        "f = s.safe_open(sys.argv[1], 'np')\n"
        "first = f['b'].sum()\n"
        "if (child := os.fork()) == 0:\n"
        "    try:\n"
        "        f['b']\n"
        "    except OSError as error:\n"
        "        print(error, flush=True)\n"
        "    assert s.safe_open(sys.argv[1], 'np')['b'].sum() == first\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0 and f['b'].sum() == first\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, url], capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert b"open it again" in ran.stdout
    # Of a set, also a shard that was not opened before.
    with serving(sharded()) as site:
        index = site.url("/s/model.safetensors.index.json")
        program = program.replace("s.safe_open(sys.argv[1], 'np')", "apr.open(sys.argv[1])").replace("['b'].sum()", "['a'].sum()")
        ran = subprocess.run([sys.executable, "-c", program, index], capture_output=True, timeout=60)
    assert b"open it again" in ran.stdout, ran.stderr


def test_other_threads_run_while_one_waits(site):
    answer = threading.Event()

    def slow(handler: Handler) -> None:
        answer.wait(20)
        handler.status(503)

    site.faults = {1: slow}
    file = safe_open(site.url("/m.safetensors"), "np")
    found = []
    reader = threading.Thread(target=lambda: found.append(file["b"]))
    reader.start()
    while len(site.seen) < 2:
        time.sleep(0.001)
    # The server answers with a thread of this process: it could not, if the reader held the interpreter.
    answer.set()
    reader.join(20)
    same(found[0], ARRAYS["b"])


# Objects that read ranges.


class Store:
    """What stores of obstore have, over a dict: without ETags unless a test sets them."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.calls, self.changes = files, [], {}

    def head(self, path: str) -> dict:
        if path not in self.files:
            raise FileNotFoundError(path)
        return {"size": len(self.files[path]), "e_tag": None, "last_modified": self.changes.get(path)}

    def get_range(self, path: str, *, start: int, end: int) -> bytes:
        self.calls.append((path, start, end))
        return self.files[path][start:end]


@pytest.fixture
def memory():
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    yield fs
    fs.store.clear()


def test_a_file_system_of_fsspec(memory):
    files = sharded()
    for path, content in files.items():
        memory.pipe_file(path, content)
    memory.pipe_file("/m.safetensors", MODEL)
    calls = []
    cat_file = memory.cat_file

    def counted(path, start=None, end=None, **options):
        calls.append((path, start, end))
        return cat_file(path, start=start, end=end, **options)

    memory.cat_file = counted
    try:
        for path in ("/m.safetensors", "memory://m.safetensors"):
            calls.clear()
            with safe_open(path, "np", fs=memory) as file:
                assert [call[1:] for call in calls] == [(0, FIRST)]
                same(file["b"], ARRAYS["b"])
                assert len(calls) == 2
                same(file.get_slice("a")[1], ARRAYS["a"][1])
        with apr.open("/s/model.safetensors.index.json", fs=memory) as model:
            for name, expected in ARRAYS.items():
                same(model[name], expected)
            assert model.shards == ["/s/one.safetensors", "/s/two.safetensors"]
    finally:
        del memory.cat_file
    with pytest.raises(FileNotFoundError):
        apr.open("/none.safetensors", fs=memory)
    with pytest.raises(IsADirectoryError):
        apr.open("/s", fs=memory)


def test_gguf_of_a_file_system(memory, tmp_path):
    content = gguf_file(tmp_path)
    memory.pipe_file("/m.gguf", content)
    local = gguf.open(tmp_path / "m.gguf")
    with gguf.open("/m.gguf", fs=memory) as file:
        assert file.metadata == local.metadata and file.metadata_types == local.metadata_types
        same(file["w"].dequantize(), local["w"].dequantize())
    with apr.open("/m.gguf", fs=memory) as model:
        same(model["x"], local["x"].array())


def test_a_file_of_a_file_system_that_changes_is_refused(memory):
    memory.pipe_file("/m.safetensors", MODEL)
    file = safe_open("/m.safetensors", "np", fs=memory)
    same(file["a"], ARRAYS["a"])
    time.sleep(0.01)
    memory.pipe_file("/m.safetensors", MODEL[::-1])
    with pytest.raises(apr.AprError) as caught:
        file["b"]
    assert caught.value.code == "rm-changed"


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_stores_of_obstore(kind, tmp_path):
    stores = pytest.importorskip("obstore.store")
    store = stores.MemoryStore() if kind == "memory" else stores.LocalStore(prefix=str(tmp_path))
    for path, content in {**sharded(), "/m.safetensors": MODEL}.items():
        store.put(path[1:], content)
    with safe_open("m.safetensors", "np", fs=store) as file:
        for name, expected in ARRAYS.items():
            same(file[name], expected)
        time.sleep(0.01)
        store.put("m.safetensors", MODEL[::-1])
        with pytest.raises(apr.AprError) as caught:
            file["b"]
        assert caught.value.code == "rm-changed"
    with apr.open("s/model.safetensors.index.json", fs=store) as model:
        same(model["a"], ARRAYS["a"])
    with pytest.raises(FileNotFoundError):
        apr.open("none.safetensors", fs=store)


def test_a_store_without_etags():
    store = Store({"m.safetensors": MODEL})
    with safe_open("m.safetensors", "np", fs=store) as file:
        assert store.calls == [("m.safetensors", 0, FIRST)]
        same(file["b"], ARRAYS["b"])
        store.changes["m.safetensors"] = "later"
        with pytest.raises(apr.AprError) as caught:
            file["a"], file["b"]
        assert caught.value.code == "rm-changed"


def test_what_an_object_raises_arrives_as_it_is():
    store = Store({"m.safetensors": MODEL})
    file = safe_open("m.safetensors", "np", fs=store)

    class Mine(Exception):
        pass

    def fails(*_args, **_options):
        raise Mine("no")

    store.get_range = fails
    with pytest.raises(Mine):
        file["b"]
    with pytest.raises(Mine):
        apr.open("m.safetensors", fs=store)
    store.get_range = lambda path, *, start, end: b"short"
    with pytest.raises(apr.AprError) as caught:
        file["b"]
    assert caught.value.code == "rm-range"
    with pytest.raises(TypeError, match="fsspec"):
        apr.open("m.safetensors", fs=object())
    with pytest.raises(FileNotFoundError):
        apr.open("none", fs=store)


def test_threads_share_a_file_of_an_object(tmp_path):
    np.savez(tmp_path / "m.npz", **ARRAYS)
    store = Store({"m.npz": (tmp_path / "m.npz").read_bytes()})
    model = apr.open("m.npz", fs=store)
    failed = []

    def read():
        try:
            for _ in range(5):
                for name, expected in ARRAYS.items():
                    same(model[name], expected)
                model.metadata()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not failed


@pytest.mark.parametrize("name", ["tiny_llama_Q4_K_M.gguf"])
def test_vectors_over_http(name):
    path = next(VECTORS.rglob(name))
    with serving({f"/{name}": path.read_bytes()}) as site:
        here, there = gguf.open(path), gguf.open(site.url(f"/{name}"))
        assert list(here) == list(there) and here.metadata == there.metadata
        for tensor in here:
            same(there[tensor].blocks, here[tensor].blocks)
