"""The package brings the program, as the command `apr` and as `python -m apr`: its answers are those that the program's own tests
hold it to."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from conftest import VECTORS

import apr

SNAPSHOTS = Path(__file__).parents[2] / "apr-tools/tests/snapshots"


MODULE = [sys.executable, "-m", "apr"]


def program(*args: str, **options):
    return subprocess.run([*MODULE, *args], capture_output=True, timeout=120, **options)


def test_the_distribution_brings_the_command():
    scripts = importlib.metadata.distribution("apr-tools").entry_points
    assert [(script.name, script.value) for script in scripts] == [("apr", "apr.__main__:main")]
    command = Path(sysconfig.get_path("scripts")) / ("apr.exe" if os.name == "nt" else "apr")
    for args in (["--version"], ["explain", "st-offsets"], ["inspect", "missing.safetensors"], ["--json", "nonsense", "x"]):
        ran, same = subprocess.run([command, *args], capture_output=True, timeout=120), program(*args)
        assert (ran.returncode, ran.stdout, ran.stderr) == (same.returncode, same.stdout, same.stderr), args


def sections(snapshot: str) -> list[tuple[list[str], int, str, str]]:
    """The runs of a snapshot: arguments, exit code, what it says on either stream."""
    runs = []
    for run in ("\n" + snapshot).split("\n$ apr")[1:]:
        command, _, rest = run.partition("\n")
        code, _, rest = rest.partition("\n--- stdout\n")
        out, _, err = rest.partition("--- stderr\n")
        runs.append((command.split(), int(code.removeprefix("exit ")), out, err))
    return runs


# Runs that need no files.
SELF_CONTAINED = sorted(
    path
    for path in SNAPSHOTS.glob("*.txt")
    for args, *_ in sections(path.read_text())
    if "--help" in args or args[:1] == ["explain"] or "missing.safetensors" in args
)


def test_there_are_answers_to_compare_with():
    assert len(SELF_CONTAINED) > 20


@pytest.mark.parametrize("path", SELF_CONTAINED, ids=lambda path: path.stem)
def test_answers_are_those_of_the_program(path, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    for args, code, out, err in sections(path.read_text()):
        ran = program(*args, cwd=tmp_path, env=environment)
        assert (ran.returncode, ran.stdout.decode(), ran.stderr.decode().rstrip("\n")) == (code, out, err.rstrip("\n"))


def test_version_is_that_of_the_package():
    ran = program("--version")
    assert (ran.returncode, ran.stdout.decode()) == (0, f"apr {apr.__version__}\n")


def test_modules_of_the_working_directory_do_not_run(tmp_path):
    here, script = tmp_path / "repository", tmp_path / "elsewhere" / "script.py"
    here.mkdir()
    script.parent.mkdir()
    for name in ("json", "sys", "subprocess", "apr", "encodings"):
        (here / f"{name}.py").write_text("open('ran', 'w')")
    script.write_text("import sys, apr; apr.convert(sys.argv[1], 'out.safetensors')")
    source = VECTORS / "gguf/files/tiny_llama_f32.gguf"
    ran = subprocess.run([sys.executable, script, source], cwd=here, capture_output=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert (here / "out.safetensors").is_file() and not (here / "ran").exists()


@pytest.mark.parametrize("name", ["tensors_align32.gguf", "tiny_llama_Q8_0.gguf"])
def test_files_are_inspected(name):
    ran = program(str(VECTORS / "gguf/files" / name))
    assert ran.returncode == 0 and b"GGUF" in ran.stdout and not ran.stderr


def test_a_closed_pipe_ends_it_quietly():
    path = VECTORS / "gguf/files/tiny_llama_f32.gguf"
    child = subprocess.Popen(
        [*MODULE, "tensors", str(path), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    child.stdout.close()
    assert (child.stderr.read(), child.wait(60)) == (b"", 0)
    child.stderr.close()


@pytest.mark.skipif(os.name != "posix", reason="streams are closed with POSIX's numbers")
def test_a_closed_stream_is_no_files_number(tmp_path):
    source = VECTORS / "gguf/files/tiny_llama_f32.gguf"
    place = tmp_path / "out.gguf"
    command = f'"{sys.executable}" -m apr quantize "{source}" --type q8_0 --no-provenance --output "{place}" >&- 2>&-'
    subprocess.run(["sh", "-c", command], timeout=120)
    assert place.read_bytes() == (VECTORS / "gguf/files/tiny_llama_Q8_0.gguf").read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_it():
    child = subprocess.Popen(
        [*MODULE, "inspect", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Programs in the background are started with interrupts ignored, and so would theirs be.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    # It reads its input; nothing says when it begins to.
    time.sleep(1.5)
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == -signal.SIGINT
    assert b"Traceback" not in child.stderr.read()
    child.stdin.close()
    child.stderr.close()


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("send", ["killpg", "kill"], ids=["from a terminal", "from a notebook"])
def test_an_interrupt_ends_a_quantization_and_leaves_nothing(send, tmp_path):
    source, place = tmp_path / "a.safetensors", tmp_path / "b.gguf"
    rows = 1 << 17
    header = b'{"w":{"dtype":"F32","shape":[%d,4096],"data_offsets":[0,%d]}}' % (rows, rows * 16384)
    with source.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        # A sparse file of zeros, which takes seconds to hash and to quantize.
        file.truncate(8 + len(header) + rows * 16384)
    child = subprocess.Popen(
        [sys.executable, "-c", f"import apr; print(flush=True); apr.quantize({str(source)!r}, {str(place)!r}, 'q4_k')"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    child.stdout.readline()
    time.sleep(0.7)
    getattr(os, send)(child.pid, signal.SIGINT)
    began = time.monotonic()
    error = child.communicate(timeout=60)[1]
    assert child.returncode == -signal.SIGINT and b"KeyboardInterrupt" in error
    assert time.monotonic() - began < 10
    assert os.listdir(tmp_path) == ["a.safetensors"]
