"""From an estimator to a file."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any

from .. import _native
from ._compare import PredictionsDiffer, Report, compare, names_of
from ._estimators import plan
from ._parts import NotExportable, Plan


def _built(made: Plan) -> _native.Model:
    """The plan as a model: encoded, and decoded again from the bytes."""
    return _native.load(_native.build_pipeline(made))


@contextlib.contextmanager
def _naming_what_stays(path: str | os.PathLike[str]) -> Iterator[None]:
    """An old file would otherwise be loaded as if it were the one that was refused."""
    try:
        yield
    except (NotExportable, PredictionsDiffer) as error:
        if os.path.lexists(path):
            error.args = (f"{error}; {os.fspath(path)!r} is an older file and stays as it was",)
        raise


def export(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    sample: Any,
    rtol: float = 1e-5,
    atol: float = 0.0,
    feature_names: Sequence[str] | None = None,
    compression: str | None = None,
    metadata: dict[str, Any] | None = None,
    **save_options: Any,
) -> Report:
    """Writes a fitted estimator as an `.apr` file, if what the file predicts is what the estimator predicts.

    The model is made, encoded, decoded again from its bytes, and asked about every row of ``sample``; only then it is written, in
    one step. The sample is not stored.

    Args:
        estimator: a fitted estimator of scikit-learn, or a pipeline.
        path: where the file goes; an old one is replaced, or stays as it was, which the error then says.
        sample: rows that the estimator takes, at least one: an array, a sparse matrix, a DataFrame, or a list or column of texts.
        rtol, atol: how far numbers may differ, see `check`.
        feature_names: names to store, if the estimator was not fitted with some.
        compression, metadata, save_options: as for `apr.save`.

    Raises:
        NotExportable: if the class, or an option, cannot be carried.
        PredictionsDiffer: if an answer differs. Nothing was written.
        TypeError, ValueError: if the sample does not fit.
        OSError: if the file cannot be written.
    """
    with _naming_what_stays(path):
        made = plan(estimator)
        if feature_names is not None:
            made["metadata"]["feature_names"] = names_of(feature_names, made)
        model = _built(made)
        report = compare(estimator, made, model, sample, rtol, atol)
    stored = model.metadata
    stored["custom"]["apr.sklearn"] |= {
        "rows_compared": report.rows_compared,
        "largest_relative_difference": report.largest_difference,
    }
    given = metadata or {}
    stored["custom"] |= given.get("custom", {})
    stored |= {key: value for key, value in given.items() if key != "custom"}
    model.save(path, compression=compression, metadata=stored, **save_options)
    return dataclasses.replace(report, path=path, bytes=os.stat(path).st_size)
