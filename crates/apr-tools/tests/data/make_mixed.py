"""Writes a table with missing values and categories, and what pipelines of scikit-learn predict of it.

    python make_mixed.py

needs scikit-learn 1.9.1 and pyarrow. `mixed.csv` and `mixed.parquet` are the rows of the training, `asked.csv` and `asked.parquet` other rows, among them a
category that the training does not have. `mixed.json` has, for each strategy of `SimpleImputer` for the numbers (categories are filled by the most
frequent one), the probabilities of `kind` by `LogisticRegression(C=1)` and the values of `price` by `Ridge(alpha=1)` for the asked rows, after
`OneHotEncoder(handle_unknown="ignore")` or `OrdinalEncoder`, which gives unknown categories -1.
"""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

HERE = Path(__file__).parent
NUMBERS = ["age", "income"]
CATEGORIES = ["city", "plan"]
CITIES = {"Oslo": 3.0, "Porto": -2.0, "Riga, old": 0.5}
PLANS = {"basic": 0.0, "plus": 2.5}


def rows(count: int, seed: int) -> list[dict[str, object]]:
    made = []
    chance = random.Random(seed)
    for _ in range(count):
        age, income = chance.randrange(18, 70), chance.randrange(4, 60) / 4
        city, plan = chance.choice(list(CITIES)), chance.choice(list(PLANS))
        value = 0.1 * age + 0.5 * income + CITIES[city] + PLANS[plan] + chance.gauss(0, 1)
        kind = "high" if value > 14 else "middle" if value > 11 else "low"
        row = {"age": age, "income": income, "city": city, "plan": plan, "kind": kind, "price": round(value, 3)}
        for name in NUMBERS + CATEGORIES:
            if chance.random() < 0.12:
                row[name] = None
        made.append(row)
    return made


def write(name: str, table: list[dict[str, object]]) -> None:
    with (HERE / f"{name}.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    columns = pa.Table.from_pylist(table)
    # A dictionary, as pandas writes its categories.
    columns = columns.set_column(2, "city", columns["city"].dictionary_encode())
    pyarrow.parquet.write_table(columns, HERE / f"{name}.parquet", compression="zstd")


def features(table: list[dict[str, object]]) -> np.ndarray:
    missing = lambda name: None if name in CATEGORIES else np.nan  # noqa: E731
    cells = [[row[name] if row[name] is not None else missing(name) for name in NUMBERS + CATEGORIES] for row in table]
    return np.array(cells, dtype=object)


def main() -> None:
    train, asked = rows(90, 1), rows(25, 2)
    asked[3]["city"] = "Bergen"
    write("mixed", train)
    write("asked", asked)
    x, x_asked = features(train), features(asked)
    found = {}
    for strategy in ("mean", "median", "most_frequent"):
        for encoding in ("one-hot", "ordinal"):
            encoder = (
                OneHotEncoder(handle_unknown="ignore", sparse_output=False)
                if encoding == "one-hot"
                else OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
            )
            categories = make_pipeline(SimpleImputer(missing_values=None, strategy="most_frequent"), encoder)
            prepare = lambda: ColumnTransformer(  # noqa: E731
                [("numbers", SimpleImputer(strategy=strategy), [0, 1]), ("categories", categories, [2, 3])]
            )
            classes = make_pipeline(prepare(), LogisticRegression(C=1, tol=1e-10, max_iter=100_000))
            classes.fit(x, [row["kind"] for row in train])
            values = make_pipeline(prepare(), Ridge(alpha=1)).fit(x, [row["price"] for row in train])
            found[f"{strategy.replace('_', '-')} {encoding}"] = {
                "classes": list(classes.classes_),
                "probabilities": classes.predict_proba(x_asked).round(7).tolist(),
                "values": values.predict(x_asked).round(7).tolist(),
            }
    made = {"scikit-learn": sklearn.__version__, "found": found}
    (HERE / "mixed.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
