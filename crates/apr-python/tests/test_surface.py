"""What `help`, editors and notebooks show: documentation, signatures, stubs, short texts for large objects."""

from __future__ import annotations

import ast
import errno
import gzip
import inspect
import json
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import apr
from apr import _native, gguf
from apr.safetensors import numpy as st

STUBS = ast.parse(Path(_native.__file__).with_name("_native.pyi").read_text())
KINDS = inspect.Parameter


def documented() -> list[tuple[str, object]]:
    """The functions of the native module, its classes, and their methods."""
    found = [(name, value) for name, value in vars(_native).items() if callable(value)]
    for owner, value in found[:]:
        if isinstance(value, type) and not issubclass(value, Exception):
            found += [(f"{owner}.{name}", method) for name, method in vars(value).items() if name[0] != "_" and callable(method)]
    return found


def stub_of(name: str) -> ast.FunctionDef:
    """What the stubs say of a function, a method, or of making an object of a class."""
    place: ast.AST = STUBS
    for part in name.split("."):
        place = next(node for node in place.body if getattr(node, "name", None) == part)
    if isinstance(place, ast.ClassDef):
        return next(node for node in place.body if getattr(node, "name", None) == "__init__")
    return place


def parameters_of(stub: ast.FunctionDef) -> list[tuple]:
    args = stub.args
    plain = [(arg, KINDS.POSITIONAL_ONLY) for arg in args.posonlyargs] + [(arg, KINDS.POSITIONAL_OR_KEYWORD) for arg in args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    rows = [(arg.arg, kind, default) for (arg, kind), default in zip(plain, defaults, strict=True)]
    rows += [(arg.arg, KINDS.KEYWORD_ONLY, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return [
        (name, kind, KINDS.empty if default is None else ast.literal_eval(default))
        for name, kind, default in rows
        if name != "self"
    ]


def test_every_name_can_be_the_first_that_is_used():
    """Modules that import each other work or do not, depending on which of them comes first."""
    for name in apr.__all__:
        done = subprocess.run([sys.executable, "-I", "-c", f"import apr; apr.{name}"], capture_output=True, text=True)
        assert done.returncode == 0, f"{name}\n{done.stderr}"


def test_the_list_of_names_is_complete():
    assert set(apr.__all__) >= {*apr._MODULES, *apr._NAMES} and len(apr.__all__) == len(set(apr.__all__))
    assert all(getattr(apr, name) is not None for name in apr.__all__)


def test_options_of_the_program_are_named_as_arguments(tmp_path):
    source, target = tmp_path / "x.safetensors", tmp_path / "y.unknown"
    st.save_file({"a": np.ones(2, "f4")}, source)
    with pytest.raises(apr.AprError, match="format=") as refused:
        apr.convert(source, target)
    assert "--" not in str(refused.value)
    target.touch()
    with pytest.raises(apr.AprError, match="add force=True"):
        apr.convert(source, target, format="gguf")


def test_files_of_tensors_are_not_models_that_predict(tmp_path):
    st.save_file({"a": np.ones((2, 3, 4), "f4")}, tmp_path / "weights.safetensors")
    with pytest.raises(apr.AprError, match="apr.open gives the tensors") as refused:
        apr.load(tmp_path / "weights.safetensors")
    assert refused.value.code == "mo-no-model"
    with pytest.raises(apr.AprError, match="is a safetensors model, not a GGUF file: apr.open opens it"):
        gguf.open(tmp_path / "weights.safetensors")


def test_signatures_are_shown_once():
    rows = documented()
    assert len(rows) > 50
    for name, value in rows:
        doc = value.__doc__ or ""
        assert doc.strip(), name
        assert "--\n" not in doc and not doc.startswith(name.rpartition(".")[2] + "("), name


def test_stubs_have_the_signatures_of_the_module():
    for name, value in documented():
        makes_objects = not isinstance(value, type) or value.__text_signature__
        if not makes_objects or isinstance(value, type) and issubclass(value, Exception):
            continue
        signature = inspect.signature(value).parameters.values()
        found = [(each.name, each.kind, each.default) for each in signature if each.name != "self"]
        assert found == parameters_of(stub_of(name)), name


def test_help_shows_public_names_alone():
    for module in (apr, apr.safetensors, apr.gguf, apr.structures, apr.torch):
        shown = pydoc.plain(pydoc.render_doc(module))
        assert "_safe_open_handle" not in shown and "\n    --\n" not in shown, module
    assert callable(apr.safetensors._safe_open_handle)


def missing_files(path):
    """Every function that opens a file, asked for one that does not exist."""
    yield lambda: apr.safetensors.safe_open(path, "np")
    yield lambda: st.load_file(path)
    yield lambda: apr.open(path)
    yield lambda: apr.safetensors.set_metadata(path, {})
    yield lambda: apr.inspect(path)
    yield lambda: apr.load(path)
    yield lambda: apr.open_sealed(path)
    yield lambda: gguf.open(path)
    yield lambda: apr.quantize(path, "out.gguf", "q8_0")
    yield lambda: apr.convert(path, "out.gguf")
    yield lambda: apr.scan(path)
    yield lambda: apr.torch.load(path)


def test_a_missing_file_is_told_the_same_way_everywhere(tmp_path):
    path = tmp_path / "no such.safetensors"
    for ask in missing_files(path):
        with pytest.raises(FileNotFoundError) as caught:
            ask()
        error = caught.value
        assert (error.errno, error.filename) == (errno.ENOENT, str(path))
        assert str(error) == f"{error.strerror}: {path}"
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_the_system_refuses_has_its_number_and_the_file(tmp_path):
    path = tmp_path / "file" / "below.safetensors"
    path.parent.write_bytes(b"")
    for save in (lambda: st.save_file({"a": np.zeros(1)}, path), lambda: apr.inspect(path)):
        with pytest.raises(NotADirectoryError) as caught:
            save()
        assert (caught.value.errno, caught.value.filename) == (errno.ENOTDIR, str(path))


def test_a_refusal_says_its_reason_once():
    for data, start in (
        (b"\x00" * 4, "Error while deserializing: header too small"),
        (b"\xff" * 7 + b"\x7f{}", "Error while deserializing: header too large"),
    ):
        with pytest.raises(apr.SafetensorError) as caught:
            st.load(data)
        assert str(caught.value).startswith(start) and str(caught.value).count(start[-16:]) == 1


def shown_objects(folder: Path, tensors: dict[str, np.ndarray]):
    """A report, a model and a GGUF file with these tensors."""
    plain, blocks = folder / "a.safetensors", folder / "b.gguf"
    st.save_file(tensors, plain)
    return apr.quantize(plain, blocks, "q8_0"), apr.open(plain), gguf.open(blocks)


def test_large_objects_are_shown_as_one_line_and_as_tables(tmp_path):
    tensors = {f"layers.{idx}.weight": np.ones((2, 256), np.float32) for idx in range(301)}
    report, model, file = shown_objects(tmp_path, tensors)
    for shown in (report, model, file):
        assert len(repr(shown)) < 300 and "\n" not in repr(shown)
        html = shown._repr_html_()
        assert html.count("<tr>") == 201 and "<p>and 101 more</p>" in html
    assert len(report["tensors"]) == 301 and report == dict(report)
    assert "<td>F32</td>" in model._repr_html_() and "<td>Q8_0</td>" in file._repr_html_()
    model.close()
    assert "<td>F32</td>" not in model._repr_html_()


def test_names_in_tables_are_escaped(tmp_path):
    for shown in shown_objects(tmp_path, {"<script>alert(1)</script>&\u202e": np.ones((2, 256), np.float32)}):
        html = shown._repr_html_()
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;\\u202e" in html
        assert "<script" not in html and "\u202e" not in html


def test_a_checkpoint_is_shown_without_its_arrays(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path / "run")
    checkpoints.save(7, {"w": np.arange(5000.0)}, metrics={"loss": 0.5}, optimizer={"m": np.arange(9.0)}, optimizer_state={"x": 1})
    shown = repr(checkpoints.load(7))
    assert "step=7" in shown and "'loss': 0.5" in shown and "array" not in shown and "optimizer_state" not in shown


FOREIGN = {
    "web page": (b"<!DOCTYPE html>\n<html><head><title>Not found</title></head></html>", "is a web page", "download it again"),
    "pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 90868376\n",
        "is a Git LFS pointer, not the model itself",
        "git lfs pull",
    ),
    "gzip": (gzip.compress(b"no pickle", mtime=0), "is a gzip file", "gunzip"),
    "pickle": (pickle.dumps({"w": 1.0}), "is a pickle", "apr.sklearn.export"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_formats_are_named(name, tmp_path):
    content, title, help = FOREIGN[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    questions = (
        ("Error while deserializing header: ", path, [lambda: st.load_file(path), lambda: apr.safetensors.safe_open(path, "np")]),
        ("Error while deserializing: ", "this", [lambda: st.load(content), lambda: apr.safetensors.deserialize(content)]),
        (f"{path}: ", "this", [lambda: apr.load(path)]),
        (f"{path}: ", "this", [lambda: gguf.open(path), lambda: apr.open_sealed(path, any_signer=True)]),
        ("", "this", [lambda: apr.load(content)]),
    )
    # These read what is a pickle, compressed or not, by its content.
    if name == "pickle":
        for read in (lambda: apr.open(path), lambda: apr.inspect(path), lambda: apr.inspect(content)):
            with pytest.raises(apr.AprError, match="a pickle without arrays") as caught:
                read()
            assert caught.value.code == "ft-unsupported"
    else:
        opens = ("Error while opening shards: ", path) if name != "gzip" else (f"{path}: ", "this")
        questions += (
            (*opens, [lambda: apr.open(path)]),
            (f"{path}: ", "this", [lambda: apr.inspect(path)]),
            ("", "this", [lambda: apr.inspect(content)]),
        )
    for start, subject, asks in questions:
        for ask in asks:
            with pytest.raises((apr.SafetensorError, apr.AprError)) as caught:
                ask()
            text = str(caught.value)
            assert text.startswith(start) and f"{subject} {title}" in text and ", not a" in text and help in text, text
            assert "begins with" not in text and " bytes" not in text, text


def test_a_shard_of_another_format_is_named_with_its_file(tmp_path):
    st.save_file({"a": np.ones(2)}, tmp_path / "model-1.safetensors")
    (tmp_path / "model-2.safetensors").write_bytes(FOREIGN["pointer"][0])
    index = {"metadata": {}, "weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(apr.SafetensorError, match="model-2.safetensors is a Git LFS pointer"):
        apr.open(tmp_path)


def test_files_of_our_formats_are_named_where_another_is_wanted(tmp_path):
    plain, blocks = tmp_path / "a.gguf", tmp_path / "b.safetensors"
    st.save_file({"w": np.ones((2, 256), np.float32)}, plain)
    gguf.save(blocks, {"w": np.ones((2, 256), np.float32)})
    with pytest.raises(apr.SafetensorError, match="b.safetensors is a GGUF model, not a safetensors file: apr.gguf.open opens it"):
        st.load_file(blocks)
    with pytest.raises(apr.AprError, match="GGUF"):
        gguf.open(plain)


def test_a_file_of_an_unknown_format_is_not_compared_with_one(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(range(1, 200)))
    with pytest.raises(apr.AprError, match="not an .apr, sealed, safetensors or GGUF file") as caught:
        apr.inspect(path)
    assert caught.value.code == "ac-magic"


def test_types_are_those_of_the_oldest_python():
    """`collections.abc.Buffer` came with Python 3.12; type checkers know `typing_extensions` without a package."""
    folder = Path(apr.__file__).parent
    for path in (*folder.rglob("*.py"), *folder.rglob("*.pyi")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "collections.abc":
                assert "Buffer" not in [alias.name for alias in node.names], path
