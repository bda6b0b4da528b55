"""Vectorizers: how a text becomes terms, and terms become numbers.

A file has no regular expressions and no tables of Unicode: what a pattern accepts is listed as characters here, with Python's own
tables, and stored.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._parts import Converter, Part, Place, Step, reals, refuse, rows_head, whole, width

_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_compiler: Any = importlib.import_module("re._compiler" if sys.version_info >= (3, 11) else "sre_compile")
_ops: Any = importlib.import_module("re._constants" if sys.version_info >= (3, 11) else "sre_constants")

Characters = npt.NDArray[np.uint32]
_MAX_NGRAM = 64
# What a class of characters may be made of: each takes one character, whatever stands beside it.
_ONE = (_ops.IN, _ops.LITERAL, _ops.NOT_LITERAL, _ops.ANY)
# Counts of a type that is too narrow start again from 0.
_COUNTS = ("int32", "int64", "uint32", "uint64", "float32", "float64")
_PATTERN_WAY_OUT = "use a run of one class of characters, such as r'(?u)\\b\\w\\w+\\b' or r'[a-z]+'"


@functools.cache
def _all_characters() -> str:
    return "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))


def _ranges(run: re.Pattern[str]) -> Characters:
    """Where a pattern that matches runs of a class starts and stops to match, over all characters."""
    bounds: list[int] = []
    for found in run.finditer(_all_characters()):
        # The text has no surrogates: beyond them a place is 0x800 below its character.
        first, last = (at if at < 0xD800 else at + 0x800 for at in (found.start(), found.end() - 1))
        if first < 0xD800 <= last:
            bounds += (first, 0xD800, 0xE000, last + 1)
        else:
            bounds += (first, last + 1)
    return np.asarray(bounds, dtype=np.uint32)


def _class_of(state: Any, node: Any) -> Characters:
    """The characters that one parsed node accepts, under the flags of its pattern."""
    once = _parser.SubPattern(state, [node])
    run = _parser.SubPattern(state, [(_ops.MAX_REPEAT, (1, _ops.MAXREPEAT, once))])
    return _ranges(_compiler.compile(run, state.flags))


@functools.cache
def class_of(pattern: str, flags: int = 0) -> Characters:
    """The characters that a pattern of one character accepts."""
    return _ranges(re.compile(f"(?:{pattern})+", flags))


def _within(inner: Characters, outer: Characters) -> bool:
    """Whether every character of one class is in another."""
    firsts, ends = inner[::2], inner[1::2]
    place = np.searchsorted(outer[::2], firsts, side="right").astype(np.int64) - 1
    return bool((place >= 0).all() and (ends <= outer[1::2][place]).all()) if len(outer) else len(inner) == 0


def words(pattern: str) -> dict[str, Any] | None:
    """The tokens that ``re.findall`` finds, as runs of one class of characters; None if they are not that.

    A pattern may have a group around everything, boundaries at its ends, and then only characters of one class, at least
    one of them repeated without limit.
    """
    parsed = _parser.parse(pattern)
    flags = parsed.state.flags
    if parsed.state.groups > 2:
        return None
    nodes = _unwrapped(list(parsed))
    boundary = (_ops.AT, _ops.AT_BOUNDARY)
    starts = bool(nodes) and nodes[0] == boundary
    nodes = nodes[1:] if starts else nodes
    ends = bool(nodes) and nodes[-1] == boundary
    nodes = _unwrapped(nodes[:-1] if ends else nodes)
    classes: dict[str, Characters] = {}
    least, is_open = 0, False
    for operation, value in nodes:
        if operation in _ONE:
            node, count = (operation, value), 1
        elif operation is _ops.MAX_REPEAT and value[1] is _ops.MAXREPEAT and len(value[2]) == 1:
            node, count = value[2][0], value[0]
            is_open = True
        else:
            return None
        if node[0] not in _ONE:
            return None
        least += count
        if repr(node) not in classes:
            classes[repr(node)] = _class_of(parsed.state, node)
    if not is_open or least < 1:
        return None
    accepted, *others = classes.values()
    if len(accepted) == 0 or any(not np.array_equal(accepted, other) for other in others):
        return None
    if not starts and not ends:
        return {"kind": "words", "class": accepted, "least": least, "edges": None}
    edges = class_of(r"\w", flags & (re.ASCII | re.UNICODE))
    if np.array_equal(accepted, edges):
        # A run of all word characters has a boundary at both ends anyway.
        return {"kind": "words", "class": edges, "least": least, "edges": None}
    if starts != ends or not _within(accepted, edges):
        return None
    return {"kind": "words", "class": accepted, "least": least, "edges": edges}


def _unwrapped(nodes: list[Any]) -> list[Any]:
    """What is in a group that holds everything and changes no flags."""
    if len(nodes) == 1 and nodes[0][0] is _ops.SUBPATTERN:
        _, added, removed, inner = nodes[0][1]
        if not added and not removed:
            return list(inner)
    return nodes


def _terms(estimator: Any, place: Place) -> dict[str, Any]:
    if estimator.analyzer == "char":
        return {"kind": "characters"}
    if estimator.analyzer == "char_wb":
        return {"kind": "characters_within_words"}
    terms = words(estimator.token_pattern)
    if terms is None:
        reason = "its tokens are not the runs of one class of characters"
        refuse(estimator, place, reason, option="token_pattern", way_out=_PATTERN_WAY_OUT)
    return terms


@functools.cache
def _folds() -> tuple[dict[int, str], dict[int, str]]:
    """What becomes of each character when accents are stripped: as ASCII, and as Unicode."""
    to_ascii: dict[int, str] = {}
    to_unicode: dict[int, str] = {}
    for character in _all_characters()[128:]:
        code = ord(character)
        if 0xAC00 <= code <= 0xD7A3:
            continue  # Hangul syllables: arithmetic.
        parts = unicodedata.normalize("NFKD", character)
        bare = "".join(part for part in parts if not unicodedata.combining(part))
        if bare != character:
            to_unicode[code] = bare
        ascii_only = parts.encode("ascii", "ignore").decode("ascii")
        if ascii_only:
            to_ascii[code] = ascii_only
    return to_ascii, to_unicode


def _accents(estimator: Any, place: Place) -> dict[str, Any] | None:
    chosen = estimator.strip_accents
    if not chosen:
        return None
    if chosen not in ("ascii", "unicode"):
        reason = "accents are stripped by Python code"
        refuse(estimator, place, reason, option="strip_accents", way_out="use 'ascii' or 'unicode'")
    fold = _folds()[0 if chosen == "ascii" else 1]
    return {
        "from": np.fromiter(fold, dtype=np.uint32, count=len(fold)),
        "to": list(fold.values()),
        "hangul": chosen == "unicode",
        "others": "dropped" if chosen == "ascii" else "stay",
    }


def _no_code(estimator: Any, place: Place) -> None:
    """Refuses options that are Python code, and texts that are elsewhere."""
    by_words = estimator.analyzer == "word"
    if not isinstance(estimator.analyzer, str):
        reason = "texts are taken apart by Python code"
        refuse(estimator, place, reason, option="analyzer", way_out="use 'word', 'char' or 'char_wb'")
    for option in ("preprocessor", *(("tokenizer",) if by_words else ())):
        if getattr(estimator, option) is not None:
            reason = "texts are changed by Python code"
            refuse(
                estimator, place, reason, option=option, way_out="do it before the vectorizer, on both sides"
            )
    if estimator.input != "content":
        refuse(estimator, place, "texts are read from files", option="input", way_out="use 'content'")
    if np.dtype(estimator.dtype).name not in (*_COUNTS, "bool"):
        refuse(estimator, place, "counts of a narrow type", option="dtype", way_out="use int64 or float64")


def _input(estimator: Any, place: Place) -> dict[str, Any]:
    _no_code(estimator, place)
    least, most = (int(bound) for bound in estimator.ngram_range)
    if not 1 <= least <= most <= _MAX_NGRAM:
        refuse(estimator, place, f"n-grams of other than 1 to {_MAX_NGRAM}", option="ngram_range")
    entries = sorted(estimator.vocabulary_.items()) if _are_texts(estimator.vocabulary_) else None
    if entries is None:
        reason = "a term that is empty, no text, or half a surrogate pair"
        refuse(estimator, place, reason, option="vocabulary", value="...", way_out="leave it out")
    columns = np.asarray([column for _, column in entries], dtype=np.uint32)
    in_order = np.array_equal(columns, np.arange(len(columns)))
    # Words that no text can hold stop nothing.
    stopped = (estimator.get_stop_words() or ()) if estimator.analyzer == "word" else ()
    return {
        "kind": "texts",
        "lowercase": bool(estimator.lowercase),
        "accents": _accents(estimator, place),
        "terms": _terms(estimator, place),
        "ngram_min": least,
        "ngram_max": most,
        "stop_words": sorted({word for word in stopped if _are_texts([word])}),
        "vocabulary": [term for term, _ in entries],
        "columns": None if in_order else columns,
        "binary": bool(estimator.binary) or np.dtype(estimator.dtype) == np.bool_,
    }


def _are_texts(terms: Sequence[Any] | dict[Any, Any]) -> bool:
    return all(isinstance(term, str) and term and whole(term) for term in terms)


def _weigh(transformer: Any, estimator: Any, place: Place, n_terms: int) -> Step:
    idf = getattr(transformer, "idf_", None)
    if idf is not None:
        idf = reals(estimator, place, "idf_", idf)
        if len(idf) != n_terms:
            refuse(estimator, place, f"{len(idf)} weights for {n_terms} terms", option="idf_", value="...")
    norm = {None: "none", "l1": "l1", "l2": "l2"}[transformer.norm]
    return {"kind": "weigh", "sublinear": bool(transformer.sublinear_tf), "norm": norm, "idf": idf}


def count_vectorizer(estimator: Any, place: Place) -> Part:
    """CountVectorizer: the input alone."""
    source = _input(estimator, place)
    n_terms = len(source["vocabulary"])
    return Part(None, n_terms, [], rows_head("transform"), "anything", source, transforms=True, sparse=True)


def tfidf_vectorizer(estimator: Any, place: Place) -> Part:
    """TfidfVectorizer: the input, and one step."""
    source = _input(estimator, place)
    n_terms = len(source["vocabulary"])
    steps = [_weigh(estimator._tfidf, estimator, place, n_terms)]
    return Part(
        None, n_terms, steps, rows_head("transform"), "anything", source, transforms=True, sparse=True
    )


def tfidf_transformer(estimator: Any, place: Place) -> Part:
    """TfidfTransformer, behind a CountVectorizer."""
    if not place.sparse:
        reason = "its rows are counts of terms, which only texts have here"
        refuse(estimator, place, reason, way_out="export it in one pipeline with its CountVectorizer")
    n_terms = width(estimator, place)
    steps = [_weigh(estimator, estimator, place, n_terms)]
    return Part(n_terms, n_terms, steps, rows_head("transform"), "anything", transforms=True, sparse=True)


CONVERTERS: dict[tuple[str, str], Converter] = {
    ("feature_extraction", "CountVectorizer"): count_vectorizer,
    ("feature_extraction", "TfidfVectorizer"): tfidf_vectorizer,
    ("feature_extraction", "TfidfTransformer"): tfidf_transformer,
}
