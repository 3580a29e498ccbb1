"""Tables and pipelines that the tests of private pipelines share."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import (
    OneHotEncoder,
)

from skpuffer.accountants import PrivacyLoss
from skpuffer.compose import (
    PrivatePipeline,
)
from skpuffer.datasets import load_heart
from skpuffer.linear_model import (
    PrivateLogisticRegression,
)
from skpuffer.summary import PrivateStandardScaler

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 3))
Y = (X[:, 0] > 0).astype(int)
#: Other rows of the same kind.
PUBLIC = np.random.default_rng(1).uniform(-1, 1, (100, 3))


def scaler(**params):
    return PrivateStandardScaler(bounds=(-1, 1), **params)


def logistic(**params):
    return PrivateLogisticRegression(max_iter=5, **params)


def pipeline(*, epsilon=2.0, delta=1e-5, **params):
    accountant = params.pop("accountant", PrivacyLoss(epsilon, delta, noise="gaussian"))
    return PrivatePipeline(
        [("scaler", scaler()), ("model", logistic())], accountant=accountant, **params
    )


def refusal(steps, *, kind=ValueError, y=Y, table=X, **params):
    model = PrivatePipeline(steps, **params)
    with pytest.raises(kind) as caught:
        model.fit(table, y)
    assert not [name for name in vars(model) if name.endswith("_")]
    return str(caught.value)


def tables():
    """The heart data as frames: numbers, and codes as texts."""
    data = load_heart()
    table = data.data[["age", "chol", "cp"]].assign(
        cp=data.data["cp"].map("type {:g}".format)
    )
    return table, (data.target > 0).astype(int)


def mixed():
    return ColumnTransformer(
        [
            (
                "numbers",
                PrivateStandardScaler(bounds={"age": (20, 90), "chol": (100, 600)}),
                ["age", "chol"],
            ),
            ("codes", OneHotEncoder(handle_unknown="ignore"), ["cp"]),
        ]
    )


def made_up(n=80):
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": rng.integers(30, 80, n),
            "chol": rng.uniform(150, 400, n),
            "cp": [f"type {1 + i % 4}" for i in range(n)],
        }
    )


def in_polars(frame):
    return pl.DataFrame(frame.to_dict("list"))
