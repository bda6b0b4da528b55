"""Runs a plan of `apr.sklearn` in numpy, as the meaning of each step is specified.

It stands in for the native model in tests, and shares no code with what makes plans.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from plan_rules import LEAF, check

SPACES = frozenset("\x1c\x1d\x1e\x1f") | {chr(c) for c in range(0x110000) if chr(c).isspace()}


class Terms:
    """Counts the terms of texts."""

    def __init__(self, source: dict[str, Any]) -> None:
        self.source = source
        columns = source["columns"]
        order = range(len(source["vocabulary"])) if columns is None else columns.tolist()
        self.column = dict(zip(source["vocabulary"], order))
        self.stopped = frozenset(source["stop_words"])
        fold = source["accents"]
        self.fold = dict(zip(fold["from"].tolist(), fold["to"])) if fold else {}
        self.known: dict[tuple[str, str], bool] = {}

    def folded(self, text: str) -> str:
        fold, parts = self.source["accents"], []
        for character in text:
            code = ord(character)
            if code in self.fold:
                parts.append(self.fold[code])
            elif fold["hangul"] and 0xAC00 <= code <= 0xD7A3:
                at = code - 0xAC00
                codes = [0x1100 + at // 588, 0x1161 + at % 588 // 28, 0x11A7 + at % 28]
                parts.append("".join(map(chr, codes[: 3 if at % 28 else 2])))
            elif code < 128 or fold["others"] == "stay":
                parts.append(character)
        return "".join(parts)

    def holds(self, name: str, character: str) -> bool:
        key = (name, character)
        if key not in self.known:
            bounds = self.source["terms"][name]
            self.known[key] = bool(np.searchsorted(bounds, ord(character), side="right") % 2)
        return self.known[key]

    def words(self, text: str) -> list[str]:
        terms, found, at = self.source["terms"], [], 0
        for inside, run in itertools.groupby(text, lambda character: self.holds("class", character)):
            word = "".join(run)
            start, at = at, at + len(word)
            if not inside or len(word) < terms["least"]:
                continue
            beside = text[start - 1 : start] + text[at : at + 1]
            if terms["edges"] is None or not any(self.holds("edges", character) for character in beside):
                found.append(word)
        return found

    def terms(self, text: str) -> list[str]:
        least, most = self.source["ngram_min"], self.source["ngram_max"]
        text = text.lower() if self.source["lowercase"] else text
        text = self.folded(text) if self.source["accents"] else text
        kind = self.source["terms"]["kind"]
        if kind == "words":
            words = [word for word in self.words(text) if word not in self.stopped]
            return [
                " ".join(words[at : at + n])
                for n in range(least, most + 1)
                for at in range(len(words) - n + 1)
            ]
        runs = ((space, "".join(run)) for space, run in itertools.groupby(text, SPACES.__contains__))
        text = "".join(" " if space and len(run) > 1 else run for space, run in runs)
        if kind == "characters":
            return [text[at : at + n] for n in range(least, most + 1) for at in range(len(text) - n + 1)]
        found = []
        for inside, run in itertools.groupby(text, lambda character: character not in SPACES):
            word = f" {''.join(run)} "
            for n in range(least, most + 1) if inside else ():
                found += [word[at : at + n] for at in range(max(1, len(word) - n + 1))]
                if len(word) <= n:
                    break
        return found

    def counts(self, texts: list[str]) -> np.ndarray:
        rows = np.zeros((len(texts), len(self.column)))
        for row, text in zip(rows, texts):
            for term in self.terms(text):
                if term in self.column:
                    row[self.column[term]] += 1
        return np.minimum(rows, 1) if self.source["binary"] else rows


def logistic(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def run_shift_divide(step: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    rows = rows if step["shift"] is None else rows - step["shift"]
    return rows if step["divisor"] is None else rows / step["divisor"]


def run_scale_add(step: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    rows = rows * step["scale"] + step["add"]
    return rows if step["clip"] is None else np.clip(rows, *step["clip"])


def run_linear(step: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    return rows @ step["weights"].T + step["bias"]


def run_activation(step: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    return {"relu": lambda x: np.maximum(x, 0.0), "tanh": np.tanh, "logistic": logistic}[step["function"]](
        rows
    )


def run_trees(step: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    if step["precision"] == "single":
        with np.errstate(over="ignore"):
            rows = rows.astype(np.float32)
    sums = np.tile(step["start"], (len(rows), 1))
    split = step["features"] != LEAF
    n_splits, n_leaves = np.cumsum(split) - 1, np.cumsum(~split) - 1
    root = 0
    for number, size in enumerate(step["tree_nodes"].tolist()):
        right = second_children(split[root : root + size]) + root
        at = np.full(len(rows), root)
        live = np.flatnonzero(split[at])
        while len(live):
            node = at[live]
            feature = step["features"][node]
            x = rows[live, feature & 0x7FFF_FFFF]
            left = np.where(np.isnan(x), feature >> 31 == 1, x <= step["thresholds"][n_splits[node]])
            at[live] = np.where(left, node + 1, right[node - root])
            live = live[split[at[live]]]
        leaf = step["leaf_rows"][step["leaves"][n_leaves[at]]]
        if step["turn"] == "whole":
            sums += leaf
        else:
            sums[:, number % step["n_outputs"]] += leaf[:, 0]
        root += size
    return sums / step["divisor"]


def second_children(split: np.ndarray) -> np.ndarray:
    """Of each split of a tree in walk order, the place of its right child."""
    right, waiting = np.zeros(len(split), dtype=np.int64), []
    for place, is_split in enumerate(split.tolist()):
        if is_split:
            waiting.append(place)
        elif waiting:
            right[waiting.pop()] = place + 1
    return right


def dense(table: dict[str, Any]) -> np.ndarray:
    if table["kind"] == "dense":
        return table["values"]
    rows = np.zeros((len(table["row_starts"]) - 1, table["n_cols"]))
    for row, start, end in zip(rows, table["row_starts"], table["row_starts"][1:]):
        row[table["columns"][start:end]] = table["values"][start:end]
    return rows


def run_kernel(step: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    vectors, kernel = dense(step["vectors"]), step["kernel"]
    if kernel["kind"] == "rbf":
        like = np.stack([np.exp(-kernel["gamma"] * ((row - vectors) ** 2).sum(1)) for row in rows])
    else:
        product = kernel["gamma"] * (rows @ vectors.T) + kernel["coef0"]
        like = np.tanh(product) if kernel["kind"] == "sigmoid" else product ** kernel["degree"]
    ends = np.cumsum(step["n_support"].astype(np.int64))
    of = [slice(end - int(n), end) for n, end in zip(step["n_support"], ends)]
    pairs = itertools.combinations(range(len(of)), 2)
    scores = [
        like[:, of[i]] @ step["dual"][j - 1, of[i]] + like[:, of[j]] @ step["dual"][i, of[j]] + bias
        for (i, j), bias in zip(pairs, step["intercepts"])
    ]
    return np.stack(scores, axis=1)


class Heap:
    """The k nearest so far: the farthest on top. Which of equals stays depends on the order they come in."""

    def __init__(self, k: int) -> None:
        self.values, self.rows = [np.inf] * k, [0] * k

    def push(self, value: float, row: int) -> None:
        values, rows = self.values, self.rows
        if value >= values[0]:
            return
        at = 0
        while (child := 2 * at + 1) < len(values):
            if child + 1 < len(values) and values[child] < values[child + 1]:
                child += 1
            if value >= values[child]:
                break
            values[at], rows[at] = values[child], rows[child]
            at = child
        values[at], rows[at] = value, row


def reduced(metric: dict[str, Any], differences: np.ndarray) -> np.ndarray:
    """Distances before the root, added up feature by feature."""
    total = np.zeros(len(differences))
    for column in np.abs(differences).T:
        if metric["kind"] == "chebyshev":
            total = np.maximum(total, column)
        elif metric["kind"] == "minkowski":
            total += column ** metric["p"]
        else:
            total += column * column if metric["kind"] == "euclidean" else column
    return total


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1.0, lengths)


class Neighbours:
    """Finds the nearest rows."""

    def __init__(self, step: dict[str, Any]) -> None:
        self.step, self.metric, self.search = step, step["metric"], step["search"]
        self.samples = dense(step["samples"])
        if self.search["kind"] == "kd_tree":
            n = len(self.samples)
            order = self.search["order"].astype(np.int64)
            self.levels = 1 + max(0, int(np.floor(np.log2(max(1, (n - 1) / self.search["leaf_size"])))))
            self.nodes: dict[int, tuple[int, int]] = {}
            self.bounds: dict[int, np.ndarray] = {}
            stack = [(0, 0, n)]
            while stack:
                node, start, end = stack.pop()
                self.nodes[node] = (start, end)
                held = self.samples[order[start:end]]
                self.bounds[node] = np.stack([held.min(0), held.max(0)])
                if 2 * node + 1 < 2**self.levels - 1 and end - start >= 2:
                    middle = start + (end - start) // 2
                    stack += [(2 * node + 1, start, middle), (2 * node + 2, middle, end)]
            self.order = order.tolist()

    def nearest(self, row: np.ndarray) -> tuple[list[float], list[int]]:
        heap = Heap(self.step["k"])
        if self.metric["kind"] == "cosine":
            # Rounding may not make a distance negative: it would be a negative weight.
            far = np.clip(1.0 - unit(self.samples) @ unit(row[None])[0], 0.0, 2.0)
        else:
            far = reduced(self.metric, row - self.samples)
        distances = far.tolist()
        if self.search["kind"] == "in_order":
            for place, distance in enumerate(distances):
                heap.push(distance, place)
        else:
            self.descend(0, self.outside(0, row), row, distances, heap)
        root = {"euclidean": 0.5, "minkowski": 1.0 / self.metric.get("p", 1.0)}.get(self.metric["kind"], 1.0)
        return [value**root for value in heap.values], heap.rows

    def outside(self, node: int, row: np.ndarray) -> float:
        low, high = self.bounds[node]
        beyond = np.maximum(low - row, 0.0) + np.maximum(row - high, 0.0)
        return float(reduced(self.metric, beyond[None])[0])

    def descend(self, node: int, bound: float, row: np.ndarray, distances: list[float], heap: Heap) -> None:
        if bound > heap.values[0]:
            return
        left, right = 2 * node + 1, 2 * node + 2
        if left not in self.nodes:
            for place in self.order[slice(*self.nodes[node])]:
                heap.push(distances[place], place)
            return
        near, far = (left, self.outside(left, row)), (right, self.outside(right, row))
        for child, child_bound in (near, far) if near[1] <= far[1] else (far, near):
            self.descend(child, child_bound, row, distances, heap)


def run_neighbours(step: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    search, answer = Neighbours(step), step["answer"]
    out = np.zeros((len(rows), answer.get("n_classes") or answer["n_outputs"]))
    for row, result in zip(rows, out):
        distances, places = search.nearest(row)
        weights = np.ones(len(places))
        if step["weights"] == "by_distance":
            far = np.asarray(distances)
            weights = (far == 0).astype(float) if (far == 0).any() else 1.0 / far
        if answer["kind"] == "classes":
            np.add.at(result, answer["class_of"][places], weights)
        else:
            result[:] = weights @ answer["targets"][places] / weights.sum()
    return out


def run_centres(step: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    return np.sqrt(np.stack([((rows - centre) ** 2).sum(1) for centre in step["centres"]], axis=1))


def run_weigh(step: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    if step["sublinear"]:
        rows = np.where(rows > 0, 1.0 + np.log(np.where(rows > 0, rows, 1.0)), 0.0)
    rows = rows if step["idf"] is None else rows * step["idf"]
    if step["norm"] == "none":
        return rows
    lengths = np.abs(rows).sum(1) if step["norm"] == "l1" else np.sqrt((rows**2).sum(1))
    return rows / np.where(lengths == 0, 1.0, lengths)[:, None]


def run_normals(step: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    spread, columns = step["spread"], []
    for idx, (peak, mean) in enumerate(zip(step["peak"], step["means"])):
        if spread["kind"] == "variances":
            distance = ((rows - mean) ** 2 / spread["values"][idx]).sum(1)
        else:
            distance = (
                ((rows - mean) @ np.triu(spread["values"][min(idx, spread["n_factors"] - 1)])) ** 2
            ).sum(1)
        columns.append(peak - 0.5 * distance)
    return np.stack(columns, axis=1)


RUNS = {name.removeprefix("run_"): run for name, run in globals().items() if name.startswith("run_")}


def log_sum_exp(scores: np.ndarray) -> np.ndarray:
    top = scores.max(1)
    return top + np.log(np.exp(scores - top[:, None]).sum(1))


class Executor:
    """A plan that answers as the estimator does."""

    def __init__(self, plan: dict[str, Any]) -> None:
        check(plan)
        self.plan, self.head = plan, plan["head"]
        self.terms = Terms(plan["input"]) if plan["input"]["kind"] == "texts" else None

    def scores(self, X: Any) -> np.ndarray:
        """What the last step gives."""
        if self.terms is not None:
            rows = self.terms.counts(list(X))
        else:
            rows = np.asarray(X, dtype=np.float64)
            assert rows.ndim == 2 and rows.shape[1] == self.plan["input"]["n_features"]
            accepts = self.plan["input"]["accepts"]
            if accepts == "finite" and not np.isfinite(rows).all():
                raise ValueError("a feature is not finite")
            if accepts == "missing" and np.isinf(rows).any():
                raise ValueError("a feature is infinite")
        for step in self.plan["steps"]:
            rows = RUNS[step["kind"]](step, rows)
        return rows

    def places(self, scores: np.ndarray) -> np.ndarray:
        decide = self.head["decide"]
        if decide == "above_zero":
            return (scores[:, 0] > 0).astype(np.int64)
        if decide == "at_least_zero":
            return (scores[:, 0] >= 0).astype(np.int64)
        if decide == "smallest":
            return scores.argmin(1)
        if decide == "largest":
            return scores.argmax(1)
        if decide == "pairs_and_confidence":
            return self.confidence(scores).argmax(1)
        k = len(self.head["labels"]["values"])
        votes = np.zeros((len(scores), k))
        for pair, (i, j) in enumerate(itertools.combinations(range(k), 2)):
            votes[:, i] += scores[:, pair] > 0
            votes[:, j] += ~(scores[:, pair] > 0)
        return votes.argmax(1)

    def confidence(self, scores: np.ndarray) -> np.ndarray:
        """Votes and sums of pairs. At exactly 0 the first class gets the vote here, and the second where votes decide alone."""
        k = len(self.head["labels"]["values"])
        votes, sums = np.zeros((2, len(scores), k))
        for pair, (i, j) in enumerate(itertools.combinations(range(k), 2)):
            votes[:, i] += scores[:, pair] >= 0
            votes[:, j] += scores[:, pair] < 0
            sums[:, i] += scores[:, pair]
            sums[:, j] -= scores[:, pair]
        return votes + sums / (3 * (np.abs(sums) + 1))

    def predict(self, X: Any) -> np.ndarray:
        scores, head = self.scores(X), self.head
        if head["kind"] == "rows":
            scores = np.exp(scores) if head["link"] == "exp" else scores
            return scores[:, 0] if head["flat"] else scores
        if head["kind"] == "outliers":
            return np.where(scores[:, 0] < head["cut"], -1, 1)
        places = self.places(scores)
        if head["kind"] == "clusters":
            return places
        labels = head["labels"]
        values = np.asarray(labels["values"])
        return (values.astype(bool) if labels["kind"] == "booleans" else values)[places]

    def transform(self, X: Any) -> np.ndarray:
        return self.scores(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        scores = self.scores(X)
        share = self.head.get("share", {"kind": "softmax"})
        if share["kind"] == "as_they_are":
            return scores
        if share["kind"] == "share_of_sum":
            return scores / scores.sum(1, keepdims=True)
        if share["kind"] == "logistic":
            second = logistic(scores[:, 0] * share["factor"])
            return np.stack([1.0 - second, second], axis=1)
        assert share["kind"] == "softmax"
        return np.exp(scores - log_sum_exp(scores)[:, None])

    def score_samples(self, X: Any) -> np.ndarray:
        scores = self.scores(X)
        if self.head["kind"] == "clusters":
            return log_sum_exp(scores)
        divisor = self.head["divisor"]
        shares = scores[:, 0] / divisor if divisor else np.ones(len(scores))
        return -(2.0**-shares)

    def decision_function(self, X: Any) -> np.ndarray:
        if self.head["kind"] == "outliers":
            return self.score_samples(X) - self.head["offset"]
        scores = self.scores(X)
        if self.head["decision"] == "one_a_class":
            return self.confidence(scores)
        if self.head["decision"] == "one_a_pair":
            return -scores[:, 0] if scores.shape[1] == 1 else scores
        return scores[:, 0] if scores.shape[1] == 1 else scores
