"""Models in another format: `apr convert` as a function. The program does the work, in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ._program import path_word, report_of

__all__ = ["convert"]


def convert(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    format: str | None = None,
    object: str = "",
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    rename: Mapping[str, str] | None = None,
    set: Mapping[str, str] | None = None,
    unset: Iterable[str] = (),
    no_metadata: bool = False,
    allow_empty: bool = False,
    dequantize: str | None = None,
    void_as_bf16: bool = False,
    compression: str | None = None,
    layout: str | None = None,
    order: str | None = None,
    align: int | None = None,
    header_room: int | None = None,
    metadata_from: str | os.PathLike[str] | None = None,
    compat: bool = False,
    type: str | None = None,
    pre: str | None = None,
    model_name: str | None = None,
    metadata: str | os.PathLike[str] | None = None,
    base: str | os.PathLike[str] | None = None,
    imatrix: str | os.PathLike[str] | None = None,
    split_max_tensors: int | None = None,
    split_max_size: int | str | None = None,
    no_tensor_first_split: bool = False,
    no_provenance: bool = False,
    tensors_only: bool = False,
    force: bool = False,
    dry_run: bool = False,
    allow_unverified: bool = False,
    no_size_limit: bool = False,
    allow_http: bool = False,
    time_limit: int | None = None,
) -> dict[str, Any]:
    """Writes a model in another format, one tensor at a time, without running anything in it.

    `src` is a file of any format that `apr.open` reads: PyTorch, NumPy, ONNX, HDF5, Keras, TensorFlow, Flax, Paddle, GGUF, `.apr`,
    safetensors. Of a tensor with several names one copy is written, and the metadata have each other name with the one kept.

    Values of `set` are texts; of GGUF they may begin with their type (`{"my.count": "u32:7"}`), and "@FILE" is the text of a file.

    A folder with a language model of Hugging Face, config.json beside its tensors, becomes a GGUF file that programs for language
    models load, with tokenizer and parameters, unless `tensors_only`; so does a repository, "hf://ORG/NAME[@REVISION]". Of a URL, the
    ranges that are needed are read, and nothing but `dst` is written.

    Args:
        src, dst: the path or URL of the model, and the new file, whose ending says its format unless `format` does: "safetensors",
            "gguf", "apr1", "apr2", "npz", "npy".
        object: the nested object to read, by its keys: "model", "state_dict.ema".
        select, exclude: patterns of names; `*` is any text, `?` one character. A tensor that cannot be represented has to be
            left out.
        rename: new names by patterns of the old ones: {"encoder.*": "*"}.
        set, unset, no_metadata: entries of the metadata to write, to leave out, and whether to begin without any.
        allow_empty: write a file without tensors if `src` has none, which is refused otherwise.
        dequantize: what quantized tensors become, "f32" or "f16".
        void_as_bf16: read two-byte elements without a type, which NumPy and MLX write for bfloat16, as such.
        type: what the tensors of a language model become: "auto", "f16", "bf16", "q8_0", "q4_k_m" or another of `apr.quantize`.
        pre, model_name, metadata: the name of the tokenizer's rules, the model's name, and a JSON file with more of its description.
        base: of an adapter, the folder or repository of the model that it was trained on, of which config.json is read.
        imatrix: the importance of weights for the types that use one.
        split_max_tensors, split_max_size, no_tensor_first_split: the most tensors or bytes ("2G") of each of several files.
        no_provenance: leave out what the file was made of.
        tensors_only: of such a folder write tensors under their own names.
        force: replace `dst` if it exists, in one step.
        dry_run: write nothing; the report has the sizes.
        allow_http: read http:// URLs of other hosts than this machine.
        time_limit: seconds that all requests for URLs may take together.
        The rest: the options of `apr convert`, under their names.

    Returns:
        The report of `apr convert --json`, a dict: "bytes", "tensors", "metadata", "lost" (what the new file does not hold) and
        more.

    Raises:
        AprError: what the program refuses, with its `code`, and the `name` of the tensor concerned; for a URL also "rm-not-found",
            "rm-denied", "rm-changed", "rm-gave-up" and the other codes of `docs/remote.md`.
        OSError: a file cannot be read or written.
        KeyboardInterrupt: the program was ended, and what it had begun to write is removed.
    """
    # Every argument is an option of the program of the same name, but for these.
    options: dict[str, Any] = {**locals(), "object": object or None}
    del options["src"], options["dst"]
    for name in ("metadata_from", "metadata", "base", "imatrix"):
        options[name] = None if options[name] is None else path_word(options[name])
    return report_of("convert", src, path_word(dst), **options)
