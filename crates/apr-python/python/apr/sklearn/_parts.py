"""What estimators are made into: parts, their pieces, and the refusal of what cannot be carried.

A step is a dict of plain values and numpy arrays, with the field names of the payload `Pipeline` and ``kind`` for its variant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, NoReturn, TypedDict

import numpy as np
import numpy.typing as npt

Accepts = Literal["finite", "missing", "anything"]
# From the strictest on: a pipeline takes what each of its steps takes.
ACCEPTS: tuple[Accepts, ...] = ("finite", "missing", "anything")

Step = dict[str, Any]
Head = dict[str, Any]
Floats = npt.NDArray[np.float64]

# Widths and places of features have 31 bits in a file, and one value means "leaf".
_MAX_WIDTH = 2**31 - 2


class Plan(TypedDict):
    """A model in plain values: ``input`` and ``head`` are dicts, ``steps`` a list of dicts, each with its ``kind``."""

    input: dict[str, Any]
    steps: list[Step]
    head: Head
    metadata: dict[str, Any]


class NotExportable(ValueError):
    """An estimator, or an option of it, that a file cannot carry. Nothing was written.

    Attributes:
        estimator: the name of its class.
        option: the parameter or attribute that is the reason, as ``name=value``; None if it is the class itself.
        path: where it is in a pipeline, such as ``steps[1]``; empty for the outermost estimator.
    """

    def __init__(
        self, estimator: str, reason: str, *, option: str | None, path: str, way_out: str | None
    ) -> None:
        shown = f"{estimator}({option})" if option else estimator
        place = f" at {path}" if path else ""
        super().__init__(f"cannot export {shown}{place}: {reason}" + (f"; {way_out}" if way_out else ""))
        self.estimator = estimator
        self.option = option
        self.path = path


@dataclasses.dataclass(frozen=True)
class Place:
    """Where an estimator stands: its path in the pipeline, and whether the rows that reach it are sparse."""

    path: str = ""
    sparse: bool = False

    def inner(self, idx: int, sparse: bool) -> Place:
        """The place of step ``idx``."""
        return Place(f"{self.path}.steps[{idx}]" if self.path else f"steps[{idx}]", sparse)


@dataclasses.dataclass(frozen=True)
class Part:
    """One estimator as steps and a head.

    Attributes:
        n_features: the width of its rows, as scikit-learn counts it; None if it takes texts.
        n_outputs: the width of what its last step gives.
        steps: may be empty if the input does all the work.
        head: how the last step's row is read.
        accepts: which numbers it takes.
        input: the input of texts; None for numbers.
        transforms: whether the steps are its ``transform``, so that others may follow.
        sparse: whether the rows that leave it are sparse.
    """

    n_features: int | None
    n_outputs: int
    steps: list[Step]
    head: Head
    accepts: Accepts = "finite"
    input: dict[str, Any] | None = None
    transforms: bool = False
    sparse: bool = False


Converter = Callable[[Any, Place], Part]


def refuse(
    estimator: Any,
    place: Place,
    reason: str,
    *,
    option: str | None = None,
    value: Any = None,
    way_out: str | None = None,
) -> NoReturn:
    """Raises `NotExportable`. ``option`` alone is shown with the estimator's own value of it."""
    shown = None
    if option is not None:
        value = getattr(estimator, option, None) if value is None else value
        text = getattr(value, "__name__", None) if callable(value) else repr(value)
        text = text or repr(value)
        shown = f"{option}={text if len(text) <= 60 else text[:57] + '...'}"
    raise NotExportable(type(estimator).__name__, reason, option=shown, path=place.path, way_out=way_out)


def reals(estimator: Any, place: Place, name: str, values: Any, *, infinite: bool = False) -> Floats:
    """The numbers as float64, row by row. Refused: NaN, and infinities unless ``infinite`` allows those below all numbers."""
    array = np.ascontiguousarray(dense(values), dtype=np.float64)
    sound = np.isfinite(array)
    if infinite:
        sound |= array == -np.inf
    if not sound.all():
        refuse(estimator, place, f"{name} holds numbers that are not finite", way_out="fit it on other data")
    return array


def dense(values: Any) -> Any:
    """The array of a sparse matrix; anything else as it is."""
    return values.toarray() if hasattr(values, "toarray") else values


def table(estimator: Any, place: Place, name: str, values: Any) -> dict[str, Any]:
    """Rows of numbers as a ``table``: dense, or the numbers that are there with their columns."""
    if not hasattr(values, "tocsr"):
        return {"kind": "dense", "values": reals(estimator, place, name, values)}
    rows = values.tocsr().copy()
    rows.sum_duplicates()
    rows.sort_indices()
    return {
        "kind": "sparse",
        "n_cols": int(rows.shape[1]),
        "row_starts": np.asarray(rows.indptr, dtype=np.uint64),
        "columns": np.asarray(rows.indices, dtype=np.uint32),
        "values": reals(estimator, place, name, rows.data),
    }


def width(estimator: Any, place: Place) -> int:
    """How many features the estimator was fitted with."""
    n_features = int(getattr(estimator, "n_features_in_", 0))
    if not 1 <= n_features <= _MAX_WIDTH:
        refuse(
            estimator, place, f"fitted with {n_features} features", way_out="fit it on a table of features"
        )
    return n_features


def linear(weights: Floats, bias: Any) -> Step:
    """Step `linear`: ``weights`` (outputs, features), ``bias`` a number or one for each output."""
    values = np.broadcast_to(np.asarray(bias, dtype=np.float64).ravel(), (len(weights),))
    return {"kind": "linear", "n_outputs": len(weights), "weights": weights, "bias": values.copy()}


def rows_head(what: Literal["prediction", "transform"], *, flat: bool = False, link: str = "none") -> Head:
    """The head of regressions and transformers. ``flat``: one number a row, not a row of one number."""
    return {"kind": "rows", "what": what, "link": link, "flat": flat}


def share(kind: str, factor: float | None = None) -> dict[str, Any]:
    """How probabilities come from scores."""
    return {"kind": kind} if factor is None else {"kind": kind, "factor": factor}


def classes_head(
    estimator: Any,
    place: Place,
    decide: str,
    *,
    share: dict[str, Any],
    decision: str = "none",
    n_scores: int | None = None,
) -> Head:
    """The head of classifiers. ``n_scores`` is compared with the number of labels."""
    labels = _labels(estimator, place)
    needed = {"above_zero": 1, "at_least_zero": 1, "largest": len(labels["values"])}.get(decide)
    if (
        n_scores is not None
        and needed is not None
        and (n_scores != needed or (needed == 1 and len(labels["values"]) != 2))
    ):
        refuse(
            estimator,
            place,
            "it knows one class alone"
            if len(labels["values"]) == 1
            else f"{n_scores} scores for {len(labels['values'])} classes",
            option="classes_",
            way_out="fit it with two classes or more",
        )
    return {"kind": "classes", "labels": labels, "decide": decide, "share": share, "decision": decision}


def _labels(estimator: Any, place: Place) -> dict[str, Any]:
    """``classes_`` as integers, texts, booleans or numbers."""
    values = np.asarray(estimator.classes_)
    if values.ndim != 1 or len(values) == 0:
        refuse(
            estimator,
            place,
            "labels of more than one column",
            option="classes_",
            way_out="fit one label a row",
        )
    items = values.tolist()
    kinds = {type(item) for item in items}
    if values.dtype.kind == "b" or kinds == {bool}:
        return {"kind": "booleans", "values": np.asarray(items, dtype=np.uint8)}
    if values.dtype.kind in "iu" or kinds == {int}:
        if not all(-(2**63) <= item < 2**63 for item in items):
            refuse(estimator, place, "integers beyond 64 bits as labels", option="classes_")
        return {"kind": "integers", "values": np.asarray(items, dtype=np.int64)}
    if values.dtype.kind == "f":
        return {"kind": "numbers", "values": reals(estimator, place, "classes_", values)}
    if kinds <= {str, np.str_}:
        texts = [str(item) for item in items]
        if not all(whole(text) for text in texts):
            refuse(estimator, place, "half a surrogate pair in a label", option="classes_")
        return {"kind": "texts", "values": texts}
    reason = "labels that are neither integers, texts, booleans nor floats, or a mixture of them"
    refuse(estimator, place, reason, option="classes_", way_out="encode them before fitting")


def whole(text: str) -> bool:
    """Whether a text can be written as UTF-8: it holds no half of a surrogate pair."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
