"""Models of scikit-learn as `.apr` files, with their predictions compared before a file is written.

`export` writes a fitted estimator or pipeline, `plan` shows what would be written, and `check` compares any object that predicts
with the estimator. scikit-learn is not imported by this module: the estimator's own classes are used.
"""

from __future__ import annotations

from ._compare import PredictionsDiffer, Report, check
from ._estimators import plan
from ._export import export
from ._parts import NotExportable, Plan

__all__ = ["NotExportable", "Plan", "PredictionsDiffer", "Report", "check", "export", "plan"]
