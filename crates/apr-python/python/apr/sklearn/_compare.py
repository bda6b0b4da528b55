"""A model's answers beside those of the estimator it was made of, on rows that the caller brings."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._tables import table
from ._estimators import convert, members, plan
from ._parts import Floats, Head, Place, Plan, dense, whole

# Beside this part of the terms of a sum, what is left of it near 0 is rounding.
_ROUNDING = 1e-6
_SHOWN = 5
# Numbers at a time that sparse rows are made dense for.
_BLOCK = 1 << 22


@dataclasses.dataclass(frozen=True)
class Report:
    """What was compared, and written.

    Attributes:
        outputs: the methods that were compared.
        rows_compared: rows of the sample.
        differences: of each output that is numbers, the largest relative difference.
        near_zero: rows with a number that is the small rest of a sum: its difference is relative to the sum's terms.
        differences_float32: the same as ``differences`` where scikit-learn computes with a float32 sample as it is; empty for
            other samples.
        path: the file; None if nothing was written.
        bytes: its size.
    """

    outputs: tuple[str, ...]
    rows_compared: int
    differences: dict[str, float]
    near_zero: int = 0
    differences_float32: dict[str, float] = dataclasses.field(default_factory=dict)
    path: str | os.PathLike[str] | None = None
    bytes: int | None = None

    @property
    def largest_difference(self) -> float:
        """The largest relative difference of all outputs."""
        return max(self.differences.values(), default=0.0)

    def _repr_html_(self) -> str:
        file = "" if self.path is None else f"{os.fspath(self.path)!r}, {self.bytes:,} bytes: "
        caption = f"{file}{self.rows_compared:,} rows compared"
        rows = ((output, f"{self.differences.get(output, 0.0):.3g}") for output in self.outputs)
        return table(caption, ("output", "largest relative difference"), rows, len(self.outputs))


class PredictionsDiffer(ValueError):
    """A model does not answer as the estimator does. Nothing was written.

    Attributes:
        output: the method.
        count: how many rows differ.
        rows: the first of them: (place in the sample, the estimator's answer, the model's).
    """

    def __init__(
        self, estimator: Any, output: str, total: int, rows: list[tuple[int, Any, Any]], count: int
    ) -> None:
        shown = "; ".join(
            f"row {idx}: {_short(theirs)} there, {_short(ours)} here" for idx, theirs, ours in rows
        )
        name = type(estimator).__name__
        super().__init__(
            f"{output} of {count} of {total} rows is not what scikit-learn's {name} says: {shown}"
        )
        self.output = output
        self.count = count
        self.rows = rows


def _short(answer: Any) -> str:
    """An answer as text, cut where rows are wide."""
    text = str(answer)
    return text if len(text) <= 200 else text[:197] + "..."


def outputs_of(head: Head) -> tuple[str, ...]:
    """The methods that a head answers."""
    if head["kind"] == "rows":
        return ("predict",) if head["what"] == "prediction" else ("transform",)
    if head["kind"] == "outliers":
        return ("predict", "decision_function", "score_samples")
    if head["kind"] == "clusters":
        return (
            ("predict", "transform")
            if head["decide"] == "smallest"
            else ("predict", "predict_proba", "score_samples")
        )
    carried = {
        "predict_proba": head["share"]["kind"] != "none",
        "decision_function": head["decision"] != "none",
    }
    return ("predict", *(name for name, is_there in carried.items() if is_there))


class _Sample:
    """The caller's rows: as the estimator takes them, and as the model does."""

    def __init__(self, sample: Any, made: Plan) -> None:
        self.is_text = made["input"]["kind"] == "texts"
        self.single: Any = None
        if self.is_text:
            self.rows: Any = _texts(sample)
            self.count = len(self.rows)
        else:
            self.rows = _numbers(sample, made)
            self.count = int(self.rows.shape[0])
        if self.count == 0:
            raise ValueError("the sample has no rows: predictions are compared on at least one")
        if not self.is_text:
            dtypes = _dtypes(self.rows)
            if any(dtype.kind == "f" and dtype.itemsize != 8 for dtype in dtypes):
                narrow = all(dtype.itemsize < 8 for dtype in dtypes)
                self.single, self.rows = self.rows if narrow else None, self.rows.astype(np.float64)
            elif any(dtype.kind in "iu" for dtype in dtypes):
                # Models take floats, and scikit-learn computes some mixtures of integers in another order.
                self.rows = self.rows.astype(np.float64)

    def of_model(self, method: Any) -> Any:
        """A method of the model on all rows; sparse rows are made dense in blocks."""
        if self.is_text:
            return method(self.rows)
        if not hasattr(self.rows, "tocsr"):
            return method(np.ascontiguousarray(self.rows, dtype=np.float64))
        step = max(1, _BLOCK // self.rows.shape[1])
        blocks = [
            method(np.ascontiguousarray(self.rows[at : at + step].toarray(), dtype=np.float64))
            for at in range(0, self.count, step)
        ]
        return np.concatenate([np.asarray(block) for block in blocks])


def _texts(sample: Any) -> list[str]:
    if isinstance(sample, (str, bytes)):
        raise TypeError("the sample is one text: give a list of texts")
    # Elements of columns of pyarrow are objects of their own.
    texts: list[str] = sample.to_pylist() if hasattr(sample, "to_pylist") else list(sample)
    for idx, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"the sample has {type(text).__name__} at {idx}: a text is a str")
        if not whole(text):
            raise ValueError(f"text {idx} of the sample has half a surrogate pair")
    return texts


def _numbers(sample: Any, made: Plan) -> Any:
    """Rows with two dimensions of numbers, in the kind of table they came in."""
    names = getattr(sample, "columns", None)
    if hasattr(sample, "tocsr"):
        table = sample.tocsr()
    else:
        table = sample if names is not None else np.asarray(sample)
    if len(table.shape) != 2:
        raise ValueError(f"the sample has {len(table.shape)} dimensions: give rows of features")
    n_features = made["input"]["n_features"]
    if table.shape[1] != n_features:
        raise ValueError(
            f"the sample has {table.shape[1]} features: the estimator was fitted with {n_features}"
        )
    known = made["metadata"]["feature_names"]
    if names is not None and known is not None and [str(name) for name in names] != known:
        raise ValueError(
            "the sample's columns have other names, or another order, than those the estimator was fitted with"
        )
    for dtype in _dtypes(table):
        if dtype.kind not in "biuf":
            raise TypeError(
                f"the sample holds {dtype}: give numbers, with sample.astype(float) if they are some"
            )
    return table


def _dtypes(table: Any) -> list[np.dtype[Any]]:
    if hasattr(table, "columns"):
        # Types of pandas' own, such as Int64 and category, have no numpy kind; those of texts and objects are refused.
        return [dtype if isinstance(dtype, np.dtype) else np.dtype(object) for dtype in table.dtypes]
    return [table.dtype]


def _far(theirs: Floats, ours: Floats) -> Floats:
    """How far numbers are from each other; equal infinities and two NaN are not far, other ones infinitely."""
    same = (theirs == ours) | (np.isnan(theirs) & np.isnan(ours))
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.where(same, 0.0, np.abs(ours - theirs))
    return np.where(np.isnan(far), np.inf, far)


def _largest(far: Floats, beside: Any) -> float:
    """The largest of finite differences relative to something."""
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.where(far > 0, far / beside, 0.0)
    return float(relative[np.isfinite(relative)].max(initial=0.0))


def _taken(rows: Any, places: npt.NDArray[np.intp]) -> Any:
    """Some of the rows, in the kind of table they are in."""
    if isinstance(rows, list):
        return [rows[place] for place in places]
    return rows.iloc[places] if hasattr(rows, "iloc") else rows[places]


def _terms(estimator: Any, output: str, rows: Any, head: Head) -> tuple[Any, bool]:
    """Sums of absolute terms for the cells of an output, and whether its cells are roots of sums.

    Rounding is relative to them: a decision near 0 is what is left of large terms.
    """
    if output == "predict_proba":
        return 1.0, False
    if head["kind"] == "outliers":
        return 0.5 + abs(head["offset"]), False
    inner = members(estimator)
    for member in inner[:-1]:
        rows = member.transform(rows)
    steps = convert(inner[-1], Place(sparse=hasattr(rows, "tocsr"))).steps
    if output == "score_samples":
        peak = np.abs(steps[-1]["peak"])
        return float(peak[np.isfinite(peak)].max(initial=0.0)), False
    if head.get("link") == "exp" or any(step["kind"] not in _SUMS for step in steps) or not steps:
        return None, False
    values = np.asarray(dense(rows), dtype=np.float64)
    sums = np.abs(values)
    for step in steps:
        sums = _SUMS[step["kind"]](step, sums)
    if head.get("decision") == "one_a_class":
        sums = sums.sum(1, keepdims=True)
    elif head.get("flat") or (output == "decision_function" and sums.shape[1] == 1):
        sums = sums[:, 0]
    return sums, steps[-1]["kind"] == "centres"


def _sums_linear(step: dict[str, Any], sums: Floats) -> Floats:
    return np.asarray(sums @ np.abs(step["weights"]).T + np.abs(step["bias"]))


def _sums_shift_divide(step: dict[str, Any], sums: Floats) -> Floats:
    sums = sums if step["shift"] is None else sums + np.abs(step["shift"])
    return sums if step["divisor"] is None else sums / np.abs(step["divisor"])


def _sums_scale_add(step: dict[str, Any], sums: Floats) -> Floats:
    return np.asarray(sums * np.abs(step["scale"]) + np.abs(step["add"]))


def _sums_activation(step: dict[str, Any], sums: Floats) -> Floats:
    return sums


def _sums_centres(step: dict[str, Any], sums: Floats) -> Floats:
    """Of squared distances."""
    return np.asarray((sums**2).sum(1)[:, None] + (step["centres"] ** 2).sum(1))


def _sums_kernel(step: dict[str, Any], sums: Floats) -> Floats:
    """A bound for every pair: all vectors, with all their factors."""
    kernel = step["kernel"]
    like = np.ones((len(sums), step["dual"].shape[1]))
    if kernel["kind"] == "polynomial":
        held = step["vectors"]
        if held["kind"] == "dense":
            products = sums @ np.abs(held["values"]).T
            like = np.asarray((abs(kernel["gamma"]) * products + abs(kernel["coef0"])) ** kernel["degree"])
    total = like @ np.abs(step["dual"]).sum(0)
    return np.asarray(total[:, None] + np.abs(step["intercepts"]))


_SUMS = {
    "linear": _sums_linear,
    "shift_divide": _sums_shift_divide,
    "scale_add": _sums_scale_add,
    "activation": _sums_activation,
    "centres": _sums_centres,
    "kernel": _sums_kernel,
}


@dataclasses.dataclass
class _Comparison:
    estimator: Any
    head: Head
    rtol: float
    atol: float
    near_zero: npt.NDArray[np.bool_]
    # Of a block: the place of its first row, and the rows of the whole sample.
    start: int = 0
    total: int | None = None

    def output(self, name: str, rows: Any, ours: Any, *, labels_only: bool = False) -> float | None:
        """Compares one output, and returns the largest relative difference; None for labels."""
        theirs = getattr(self.estimator, name)(rows)
        if name == "predict" and self.head["kind"] != "rows":
            theirs, ours = np.asarray(theirs), np.asarray(ours)
            self.same_shape(name, theirs, ours)
            equal = np.asarray(theirs, dtype=object) == np.asarray(ours, dtype=object)
            self.judge(name, ~np.asarray(equal, dtype=bool), theirs, ours)
            return None
        theirs = np.asarray(dense(theirs), dtype=np.float64)
        ours = np.asarray(dense(ours), dtype=np.float64)
        self.same_shape(name, theirs, ours)
        far = _far(theirs, ours)
        if labels_only:
            return _largest(far, np.abs(theirs))
        return self.numbers(name, rows, theirs, ours, far)

    def numbers(self, name: str, rows: Any, theirs: Floats, ours: Floats, far: Floats) -> float:
        """Judges numbers by themselves, then those that are too far by the terms they are the sum of."""
        close = far <= self.atol + self.rtol * np.where(np.isfinite(theirs), np.abs(theirs), 0.0)
        largest = _largest(far[close], np.abs(theirs[close]))
        places = np.flatnonzero(~close.reshape(len(close), -1).all(1))
        if len(places) == 0:
            return largest
        terms, squared = _terms(self.estimator, name, _taken(rows, places), self.head)
        if terms is not None:
            some, others = theirs[places], ours[places]
            # Distances are roots of sums.
            rest = _far(some**2, others**2) if squared else far[places]
            saved = ~close[places] & (rest <= self.rtol * _ROUNDING * terms)
            largest = max(largest, _largest(np.where(saved, rest, 0.0), terms))
            close[places] |= saved
            self.near_zero[places] |= saved.reshape(len(saved), -1).any(1)
        self.judge(name, ~close, theirs, ours)
        return largest

    def same_shape(self, name: str, theirs: Any, ours: Any) -> None:
        if theirs.shape != ours.shape:
            rows = [(0, f"an array of {theirs.shape}", f"one of {ours.shape}")]
            raise PredictionsDiffer(self.estimator, name, len(theirs), rows, len(theirs))

    def judge(self, name: str, wrong: npt.NDArray[np.bool_], theirs: Any, ours: Any) -> None:
        places = np.flatnonzero(wrong.reshape(len(wrong), -1).any(1))
        if len(places):
            first = [
                (self.start + int(place), theirs[place].tolist(), ours[place].tolist())
                for place in places[:_SHOWN]
            ]
            raise PredictionsDiffer(self.estimator, name, self.total or len(theirs), first, len(places))


def compare(estimator: Any, made: Plan, model: Any, sample: Any, rtol: float, atol: float) -> Report:
    """`check` with a plan that is there already."""
    rows = _Sample(sample, made)
    names = outputs_of(made["head"])
    if rows.is_text and names == ("transform",):
        return _compare_terms(estimator, made, model, rows, rtol, atol)
    answers = {name: rows.of_model(getattr(model, name)) for name in names}
    judge = _Comparison(estimator, made["head"], rtol, atol, np.zeros(rows.count, dtype=bool))
    if rows.single is not None and not _takes_float64(estimator, names[0], rows.rows):
        # Fitted with float32, some estimators refuse other rows: then theirs are all there is.
        rows.rows, rows.single = rows.single, None
    found = {name: judge.output(name, rows.rows, answers[name]) for name in names}
    narrow: dict[str, float | None] = {}
    if rows.single is not None:
        narrow = {name: judge.output(name, rows.single, answers[name], labels_only=True) for name in names}
    return Report(
        outputs=names,
        rows_compared=rows.count,
        differences={name: value for name, value in found.items() if value is not None},
        near_zero=int(judge.near_zero.sum()),
        differences_float32={name: value for name, value in narrow.items() if value is not None},
    )


def _compare_terms(estimator: Any, made: Plan, model: Any, rows: _Sample, rtol: float, atol: float) -> Report:
    """Texts to rows as wide as a vocabulary: a block at a time, because both sides are made dense."""
    step = max(1, _BLOCK // len(made["input"]["vocabulary"]))
    near_zero, largest = 0, 0.0
    for at in range(0, rows.count, step):
        texts = rows.rows[at : at + step]
        judge = _Comparison(
            estimator, made["head"], rtol, atol, np.zeros(len(texts), dtype=bool), at, rows.count
        )
        largest = max(largest, judge.output("transform", texts, model.transform(texts)) or 0.0)
        near_zero += int(judge.near_zero.sum())
    return Report(("transform",), rows.count, {"transform": largest}, near_zero)


def _takes_float64(estimator: Any, name: str, rows: Any) -> bool:
    try:
        getattr(estimator, name)(rows[:1])
    except (TypeError, ValueError):
        return False
    return True


def check(estimator: Any, model: Any, sample: Any, *, rtol: float = 1e-5, atol: float = 0.0) -> Report:
    """Compares any object that predicts with the estimator it should equal.

    Labels, clusters and outliers have to be equal. Of numbers, the difference has to be at most ``atol`` plus ``rtol`` times
    scikit-learn's number; where a number is the small rest of a sum, at most a millionth of ``rtol`` times the sum's terms.

    Args:
        estimator: what was exported.
        model: has `predict`, and `predict_proba`, `decision_function`, `score_samples`, `transform` where the plan has them.
            It is given float64 rows (n, features), or a list of texts.
        sample: rows as the estimator takes them: an array, a sparse matrix, a DataFrame, or a list of texts. A float32 sample is
            compared as float64; as it is, only labels have to be equal, and the differences are reported.
        rtol, atol: see above.

    Raises:
        PredictionsDiffer: if they differ, with the output and the first rows.
        NotExportable: if the estimator cannot be exported.
        TypeError, ValueError: if the sample is empty, or is not numbers or texts in the estimator's shape.
    """
    return compare(estimator, plan(estimator), model, sample, rtol, atol)


def names_of(names: Sequence[str], made: Plan) -> list[str]:
    """Names for the features of a plan, compared with their number."""
    given = [str(name) for name in names]
    if made["input"]["kind"] == "texts":
        raise ValueError("names of features are for numbers: texts have terms")
    if len(given) != made["input"]["n_features"]:
        raise ValueError(f"{len(given)} names for {made['input']['n_features']} features")
    twice = next((name for name, count in collections.Counter(given).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"two features have the name {twice!r}: tables could not tell them apart")
    return given
