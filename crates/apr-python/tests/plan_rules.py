"""What a plan of `apr.sklearn` must be: the rules of the layout, as assertions."""

from __future__ import annotations

from typing import Any

import numpy as np

LEAF = 0xFFFF_FFFF


def check(plan: dict[str, Any]) -> None:
    """Asserts every rule of the layout: kinds, lengths, widths, orders."""
    source, width = plan["input"], 0
    if source["kind"] == "numbers":
        width = source["n_features"]
        assert 1 <= width <= 2**31 - 2
        assert source["accepts"] in ("finite", "missing", "anything")
        assert plan["steps"]
    else:
        width = check_texts(source)
    for step in plan["steps"]:
        width = CHECKS[step["kind"]](step, width)
    check_head(plan["head"], width)


def ascending(values: Any) -> bool:
    values = list(values)
    return all(a < b for a, b in zip(values, values[1:]))


def floats(array: Any, *shape: int, infinite: bool = False) -> None:
    assert isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == shape, (
        array,
        shape,
    )
    assert (np.isfinite(array) | (infinite & (array == -np.inf))).all()


def check_texts(source: dict[str, Any]) -> int:
    assert 1 <= source["ngram_min"] <= source["ngram_max"] <= 64
    for words in (source["stop_words"], source["vocabulary"]):
        assert ascending(words) and all(words)
        "".join(words).encode()
    terms = source["terms"]
    assert terms["kind"] in ("words", "characters", "characters_within_words")
    if terms["kind"] == "words":
        assert terms["least"] >= 1
        for characters in (terms["class"], terms["edges"]):
            if characters is not None:
                assert characters.dtype == np.uint32 and len(characters) % 2 == 0 and ascending(characters)
                assert characters[-1] <= 0x110000
    else:
        assert not source["stop_words"]
    if source["accents"] is not None:
        fold = source["accents"]
        assert ascending(fold["from"]) and len(fold["from"]) == len(fold["to"])
        assert fold["others"] in ("stay", "dropped")
    n_terms = len(source["vocabulary"])
    assert n_terms >= 1
    if source["columns"] is not None:
        columns = list(source["columns"])
        assert sorted(columns) == list(range(n_terms)) and not ascending(columns)
    return n_terms


def check_shift_divide(step: dict[str, Any], width: int) -> int:
    for name in ("shift", "divisor"):
        if step[name] is not None:
            floats(step[name], width)
    assert step["divisor"] is None or (step["divisor"] != 0).all()
    return width


def check_scale_add(step: dict[str, Any], width: int) -> int:
    floats(step["scale"], width)
    floats(step["add"], width)
    assert step["clip"] is None or step["clip"][0] <= step["clip"][1]
    return width


def check_linear(step: dict[str, Any], width: int) -> int:
    floats(step["weights"], step["n_outputs"], width)
    floats(step["bias"], step["n_outputs"])
    return step["n_outputs"]


def check_activation(step: dict[str, Any], width: int) -> int:
    assert step["function"] in ("relu", "tanh", "logistic")
    return width


def check_trees(step: dict[str, Any], width: int) -> int:
    outputs, whole = step["n_outputs"], step["turn"] == "whole"
    assert whole or step["turn"] == "in_turns"
    floats(step["start"], outputs)
    floats(step["leaf_rows"], len(step["leaf_rows"]), outputs if whole else 1)
    assert np.isfinite(step["divisor"]) and step["divisor"] > 0
    assert step["thresholds"].dtype == {"single": np.float32, "double": np.float64}[step["precision"]]
    assert not np.isnan(step["thresholds"]).any()
    for name in ("tree_nodes", "features", "leaves"):
        assert step[name].dtype == np.uint32
    features = step["features"]
    split = features != LEAF
    assert step["tree_nodes"].sum() == len(features)
    assert split.sum() == len(step["thresholds"]) and (~split).sum() == len(step["leaves"])
    assert ((features[split] & 0x7FFF_FFFF) < width).all()
    assert sorted(set(step["leaves"].tolist())) == list(range(len(step["leaf_rows"])))
    at = 0
    for size in step["tree_nodes"].tolist():
        # One subtree is awaited; a split awaits one more, a leaf one less, and none only at the end.
        awaited = 1 + np.cumsum(np.where(split[at : at + size], 1, -1))
        assert awaited[-1] == 0 and (awaited[:-1] > 0).all()
        at += size
    assert len(step["tree_nodes"]) >= 1 if whole else len(step["tree_nodes"]) % outputs == 0
    return outputs


def check_table(table: dict[str, Any], width: int) -> int:
    if table["kind"] == "dense":
        floats(table["values"], len(table["values"]), width)
        return len(table["values"])
    assert table["n_cols"] == width and table["row_starts"][0] == 0
    assert table["row_starts"][-1] == len(table["columns"]) == len(table["values"])
    for start, end in zip(table["row_starts"], table["row_starts"][1:]):
        assert start <= end and ascending(table["columns"][start:end])
    assert (table["columns"] < width).all()
    return len(table["row_starts"]) - 1


def check_kernel(step: dict[str, Any], width: int) -> int:
    k = len(step["n_support"])
    n_vectors = check_table(step["vectors"], width)
    assert k >= 2 and step["n_support"].sum() == n_vectors
    floats(step["dual"], k - 1, n_vectors)
    floats(step["intercepts"], k * (k - 1) // 2)
    assert step["kernel"]["kind"] in ("rbf", "polynomial", "sigmoid")
    return k * (k - 1) // 2


def check_neighbours(step: dict[str, Any], width: int) -> int:
    n_rows = check_table(step["samples"], width)
    if step["samples"]["kind"] == "sparse":
        assert step["metric"]["kind"] in ("euclidean", "cosine")
    assert 1 <= step["k"] <= n_rows
    assert step["metric"]["kind"] in ("euclidean", "manhattan", "chebyshev", "minkowski", "cosine")
    assert step["metric"].get("p", 1) >= 1
    assert step["weights"] in ("uniform", "by_distance")
    if step["search"]["kind"] == "kd_tree":
        assert step["metric"]["kind"] != "cosine" and step["samples"]["kind"] == "dense"
        assert step["search"]["leaf_size"] >= 1 and sorted(step["search"]["order"]) == list(range(n_rows))
    answer = step["answer"]
    if answer["kind"] == "classes":
        assert (
            answer["n_classes"] <= n_rows
            and answer["class_of"].shape == (n_rows,)
            and (answer["class_of"] < answer["n_classes"]).all()
        )
        return answer["n_classes"]
    floats(answer["targets"], n_rows, answer["n_outputs"])
    return answer["n_outputs"]


def check_centres(step: dict[str, Any], width: int) -> int:
    floats(step["centres"], step["n_centres"], width)
    return step["n_centres"]


def check_weigh(step: dict[str, Any], width: int) -> int:
    assert step["norm"] in ("none", "l1", "l2") and isinstance(step["sublinear"], bool)
    if step["idf"] is not None:
        floats(step["idf"], width)
    return width


def check_normals(step: dict[str, Any], width: int) -> int:
    k = len(step["peak"])
    floats(step["peak"], k, infinite=True)
    floats(step["means"], k, width)
    spread = step["spread"]
    if spread["kind"] == "variances":
        floats(spread["values"], k, width)
        assert (spread["values"] > 0).all()
    else:
        assert spread["n_factors"] in (1, k)
        floats(spread["values"], spread["n_factors"], width, width)
    return k


CHECKS = {
    name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")
}


def check_head(head: dict[str, Any], width: int) -> None:
    if head["kind"] == "rows":
        assert head["what"] in ("prediction", "transform") and head["link"] in ("none", "exp")
        assert not head["flat"] or width == 1
    elif head["kind"] == "clusters":
        assert head["decide"] in ("smallest", "largest")
    elif head["kind"] == "outliers":
        assert width == 1 and head["divisor"] >= 0 and np.isfinite(head["cut"])
    else:
        assert head["kind"] == "classes"
        labels = head["labels"]
        assert labels["kind"] in ("integers", "texts", "booleans", "numbers") and ascending(labels["values"])
        k = len(labels["values"])
        decide, share = head["decide"], head["share"]["kind"]
        scores = {"largest": k, "pairs": k * (k - 1) // 2, "pairs_and_confidence": k * (k - 1) // 2}.get(
            decide, 1
        )
        assert width == scores and (scores != 1 or decide in ("largest", "pairs") or k == 2)
        assert share != "softmax" or decide == "largest"
        assert share != "logistic" or decide in ("above_zero", "at_least_zero")
        assert head["decision"] in ("none", "scores", "one_a_pair", "one_a_class")
