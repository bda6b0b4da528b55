"""URLs that the program reads: scan, convert, quantize."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import VECTORS
from range_server import Handler, Site, serving

import apr
from apr.safetensors import numpy as st

ARRAYS = {
    "a": np.linspace(-1, 1, 100_000, dtype=np.float32).reshape(100, 1000),
    "b": np.ones((4, 256), np.float32),
}
MODEL = st.save(ARRAYS, {"k": "v"})
# A query that may be in no message, and on no command line.
SECRET = "?signature=secret"

pytestmark = pytest.mark.usefixtures("plain_environment")


@pytest.fixture
def site():
    with serving({"/m.safetensors": MODEL}) as site:
        yield site


def asks(url: str, folder: Path):
    """Each function, asked about a URL."""
    yield lambda **more: apr.scan(url, **more)
    yield lambda **more: apr.convert(url, folder / "out.safetensors", **more)
    yield lambda **more: apr.quantize(url, folder / "out.gguf", "q8_0", **more)


def test_a_scan_says_of_a_url_what_it_says_of_the_file(site, tmp_path):
    class Call:
        def __reduce__(self):
            return os.system, ("true",)

    site.files["/bad.bin"] = pickle.dumps(Call())
    for name in ("m.safetensors", "bad.bin"):
        path = tmp_path / name
        path.write_bytes(site.files[f"/{name}"])
        here, there = apr.scan(path), apr.scan(site.url(f"/{name}{SECRET}"))
        assert there.files[0]["path"] == site.url(f"/{name}")
        for report in (here, there):
            del report.files[0]["path"]
        assert here == there and here.is_safe == (name == "m.safetensors")
    assert apr.scan(site.url("/bad.bin"), allow=["posix.system", "nt.system"]).is_safe
    with pytest.raises(ValueError, match="no name of a module"):
        apr.scan(site.url("/bad.bin"), allow=["system"])


def test_a_conversion_of_a_url_gives_the_bytes_of_the_file(site, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(MODEL)
    for number, options in enumerate([{}, {"select": ["b"], "set": {"k": "w"}}]):
        here, there = tmp_path / f"{number}h.safetensors", tmp_path / f"{number}t.safetensors"
        expected = apr.convert(path, here, **options)
        report = apr.convert(site.url(f"/m.safetensors{SECRET}"), there, **options)
        assert here.read_bytes() == there.read_bytes()
        assert report["input"] == site.url("/m.safetensors")
        assert {**expected, "input": "", "output": ""} == {**report, "input": "", "output": ""}
    # Metadata of another model, which may be elsewhere, too.
    apr.convert(path, tmp_path / "x.safetensors", no_metadata=True)
    report = apr.convert(tmp_path / "x.safetensors", tmp_path / "y.safetensors", metadata_from=site.url("/m.safetensors"))
    assert report["written"] and apr.open(tmp_path / "y.safetensors").metadata() == {"k": "v"}
    with pytest.raises(apr.AprError, match="base= is for folders"):
        apr.convert(path, tmp_path / "x.gguf", base=site.url("/base"))


def test_an_index_is_converted_with_its_shards(tmp_path):
    names = {"a": "one.safetensors", "b": "two.safetensors"}
    index = {"metadata": {"total_size": sum(array.nbytes for array in ARRAYS.values())}, "weight_map": names}
    files = {f"/s/{shard}": st.save({name: ARRAYS[name]}) for name, shard in names.items()}
    files["/s/model.safetensors.index.json"] = json.dumps(index).encode()
    with serving(files) as site:
        apr.convert(site.url("/s/model.safetensors.index.json"), tmp_path / "one.safetensors")
    found = st.load_file(tmp_path / "one.safetensors")
    assert found.keys() == ARRAYS.keys() and all((found[name] == array).all() for name, array in ARRAYS.items())


def test_a_quantization_of_a_url_gives_the_bytes_of_the_file(tmp_path):
    path = VECTORS / "gguf/files/tiny_llama_f32.gguf"
    with serving({"/m.gguf": path.read_bytes()}) as site:
        report = apr.quantize(site.url("/m.gguf"), tmp_path / "x.gguf", "q8_0", no_provenance=True)
    assert report["input"] == site.url("/m.gguf")
    assert (tmp_path / "x.gguf").read_bytes() == (path.parent / "tiny_llama_Q8_0.gguf").read_bytes()


@pytest.mark.parametrize(
    ("path", "fault", "code"),
    [
        ("/none", None, "rm-not-found"),
        ("/m.safetensors", lambda handler: handler.status(403), "rm-denied"),
        ("/m.safetensors", lambda handler: handler.status(302, location="ftp://127.0.0.1/x"), "rm-redirect"),
        ("/m.safetensors", lambda handler: handler.status(206, content_range="bytes 5-9/100"), "rm-range"),
    ],
)
def test_errors_are_those_of_other_functions(site, tmp_path, path, fault, code):
    for ask in (lambda: apr.open(site.url(path + SECRET)), *asks(site.url(path + SECRET), tmp_path)):
        if fault:
            site.faults = {len(site.seen): fault}
        with pytest.raises(apr.AprError) as caught:
            ask()
        assert caught.value.code == code and f"({code})" in str(caught.value) and "secret" not in str(caught.value)
        assert caught.value.path == site.url(path)
    assert os.listdir(tmp_path) == []


def test_urls_that_are_not_read(monkeypatch, site, tmp_path):
    for url, code in [
        ("s3://bucket/m.safetensors", "rm-scheme"),
        ("http://models.example/m.safetensors", "rm-http"),
        ("https://user:secret@models.example/m", "rm-url"),
        ("hf://one-word", "rm-url"),
    ]:
        for ask in asks(url, tmp_path):
            with pytest.raises(apr.AprError) as caught:
                ask()
            assert caught.value.code == code, url
            assert "fs=" not in str(caught.value) and "--allow-http" not in str(caught.value)
            assert ("allow_http=True" in str(caught.value)) == (code == "rm-http")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for ask in asks(site.url("/m.safetensors"), tmp_path):
        with pytest.raises(apr.AprError, match="unset HF_HUB_OFFLINE") as caught:
            ask()
        assert caught.value.code == "rm-offline" and site.seen == []


def test_plain_http_to_other_hosts_is_allowed_by_an_argument(monkeypatch, site, tmp_path):
    monkeypatch.setenv("HTTP_PROXY", site.url(""))
    for ask in asks("http://models.example/m.safetensors", tmp_path):
        site.seen.clear()
        ask(allow_http=True)
        assert site.seen[0][1]["host"] == "models.example"


def test_the_token_is_sent_to_the_hub(monkeypatch, tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    with serving({f"/o/n/resolve/{revision}/m.safetensors": MODEL for revision in ("main", commit)}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.port}")
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        for ask in asks("hf://o/n/m.safetensors", tmp_path):
            ask()
        assert hub.seen and all(headers["authorization"] == "Bearer hf_secret" for _, headers in hub.seen)


@pytest.mark.skipif(sys.platform != "linux", reason="command lines are read from /proc")
def test_a_query_is_on_no_command_line(site, tmp_path):
    lines: list[bytes] = []

    def look(handler: Handler) -> None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                lines.append(path.read_bytes())
            except OSError:
                continue  # It has ended.
        handler.status(503)

    for ask in asks(site.url(f"/m.safetensors{SECRET}"), tmp_path):
        site.faults = {len(site.seen): look}
        ask()
    assert site.seen[0][0].endswith(SECRET)
    assert any(b"apr.__main__" in line for line in lines) and not any(SECRET.encode() in line for line in lines)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("call", ["scan(url)", "convert(url, out)", "quantize(url, out, 'q8_0')"])
def test_ctrl_c_ends_a_wait(site: Site, call, tmp_path):
    site.faults = {0: lambda handler: time.sleep(30)}
    program = (
        # A shell may have started the tests in the background, where SIGINT is ignored.
        "import signal, sys, apr\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "url, out = sys.argv[1:]\n"
        f"apr.{call}\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, site.url("/m.safetensors"), str(tmp_path / "out.gguf")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not site.seen:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=20)
    assert child.returncode == -signal.SIGINT and b"KeyboardInterrupt" in error
    assert os.listdir(tmp_path) == []


def test_paths_that_look_like_no_url_are_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("none", "https:/host/none", "file://none", "-"):
        for ask in asks(name, tmp_path):
            with pytest.raises(FileNotFoundError):
                ask()


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "s3://bucket/m.safetensors"],
        ["tensors", "gs://bucket/m.safetensors"],
        ["get", "az://container/models", "-o", "copy"],
        ["put", "m.safetensors", "s3://bucket/"],
        ["convert", "m.safetensors", "s3://bucket/m.gguf"],
        ["quantize", "m.safetensors", "-o", "gs://bucket/m.gguf", "--type", "q8_0"],
        ["plan", "-o", "plan.json", "--from", "s3://bucket/models", "--to", "out", "--", "check", "{in}"],
    ],
)
def test_object_stores_are_refused_with_the_name_of_the_feature(tmp_path, words):
    st.save_file(ARRAYS, tmp_path / "m.safetensors")
    run = subprocess.run([sys.executable, "-m", "apr", *words], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 6 and "rm-scheme" in run.stderr and "feature `cloud`" in run.stderr, run.stderr
