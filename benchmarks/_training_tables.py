"""Fifteen tables that the rule of trained classifiers was not chosen on.

Nobody looked at them either: they were named, with their targets and numbers of seeds,
before any fit on them; only the shares of the classes were seen. Nine are real; six are
drawn, for shapes that those do not have.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

from benchmarks._additive_tables import _published as published
from benchmarks._tables import encoded_adult
from skpuffer.datasets import (
    fetch_activity,
    fetch_adult,
    fetch_german_credit,
    fetch_heart,
    fetch_household_power,
    fetch_rice,
    fetch_student,
)


def _encoded(X, y):
    """Complete rows, categories one-hot, numbers as they are; labels as codes."""
    X = pd.DataFrame(X)
    complete = X.notna().all(axis=1).to_numpy()
    encoded = pd.get_dummies(X[complete], dtype=float)
    return encoded.to_numpy(float), np.unique(
        np.asarray(y)[complete], return_inverse=1
    )[1]


def german():
    """Good and bad credits: 1,000 rows, 3 in 10 of them bad."""
    return _encoded(*published(fetch_german_credit))


def heart():
    """Heart disease, present or not: some 300 rows."""
    X, y = published(fetch_heart)
    return _encoded(X, pd.to_numeric(pd.Series(np.asarray(y))).to_numpy() > 0)


def rice():
    """Two kinds of rice."""
    return _encoded(*published(fetch_rice))


def _student(subject):
    X, y = published(fetch_student, subject=subject)
    return _encoded(X.drop(columns=["G1", "G2"], errors="ignore"), np.asarray(y) >= 10)


def mathematics():
    """Pass or fail of 395 pupils, without their earlier grades."""
    return _student("mathematics")


def portuguese():
    """Pass or fail of 649 pupils, without their earlier grades: 1 in 6 fails."""
    return _student("portuguese")


def activity():
    """What older people do, by room, sex and time: four classes of 75,000 rows."""
    X, y = published(fetch_activity)
    keep = [c for c in X.columns if X[c].nunique() < 50 or X[c].dtype.kind in "fi"]
    return _encoded(X[keep], y)


def heating():
    """Whether a house is heated in an hour: the time, the voltage, other rooms."""
    X, _ = published(fetch_household_power)
    whole = (X["has_missing_minutes"] == 0).to_numpy()
    hours = pd.date_range("2006-12-16 17:00", periods=len(X), freq="h")
    frame = pd.DataFrame(
        {
            "hour": hours.hour.astype(str),
            "weekend": hours.day_of_week >= 5,
            "winter": np.cos(2 * np.pi * hours.day_of_year / 365),
            "kitchen": X["Sub_metering_1"].to_numpy(),
            "laundry": X["Sub_metering_2"].to_numpy(),
            "voltage": X["Voltage"].to_numpy(),
        }
    )
    return _encoded(frame[whole], (X["Sub_metering_3"] > 600).to_numpy()[whole])


def kitchen():
    """Whether a kitchen takes more than a kilowatt hour in an hour: 1 in 100."""
    X, y = published(fetch_household_power)
    whole = (X["has_missing_minutes"] == 0).to_numpy()
    hours = pd.date_range("2006-12-16 17:00", periods=len(X), freq="h")
    frame = pd.DataFrame(
        {
            "hour": hours.hour.astype(str),
            "weekend": hours.day_of_week >= 5,
            "active": np.asarray(y),
            "reactive": X["Global_reactive_power"].to_numpy(),
            "voltage": X["Voltage"].to_numpy(),
            "heating": X["Sub_metering_3"].to_numpy(),
        }
    )
    return _encoded(frame[whole], (X["Sub_metering_1"] > 1000).to_numpy()[whole])


def gains():
    """Who of the test part of Adult has capital gains: 1 in 12."""
    X, _ = published(fetch_adult, subset="test")
    gained = X["capital-gain"].to_numpy() > 0
    table = X.drop(columns=["capital-gain", "capital-loss", "fnlwgt"])
    y = pd.Series(pd.Categorical(gained), index=X.index)
    return encoded_adult(table, y)


def _drawn(n, d, **facts):
    facts = {"n_informative": 6, "n_redundant": 2, "flip_y": 0.02} | facts
    return lambda: make_classification(n, d, **facts)


def heavy():
    """Columns with tails of two degrees of freedom."""
    rng = np.random.default_rng(113)
    X = rng.standard_t(2, size=(10_000, 20))
    scores = X[:, :6] @ np.array([1, -1, 0.8, 0.6, -0.4, 0.2])
    return X, (scores + 2 * rng.standard_t(3, size=len(X)) > 1).astype(int)


#: The tables, and how many seeds the scores of each are means of.
LOADERS = {
    "german credit": (german, 16),
    "heart": (heart, 24),
    "rice": (rice, 8),
    "student, mathematics": (mathematics, 8),
    "student, Portuguese": (portuguese, 8),
    "activity": (activity, 1),
    "heating": (heating, 1),
    "kitchen": (kitchen, 1),
    "Adult, gains": (gains, 1),
    "one in ten": (_drawn(5_000, 15, weights=[0.9], random_state=101), 4),
    "one in a hundred": (
        _drawn(50_000, 20, weights=[0.99], class_sep=1.5, flip_y=0, random_state=102),
        1,
    ),
    "twenty classes": (
        _drawn(
            10_000,
            40,
            n_informative=20,
            n_classes=20,
            n_clusters_per_class=1,
            class_sep=1.5,
            random_state=103,
        ),
        1,
    ),
    "heavy tails": (heavy, 2),
    "wide": (_drawn(2_000, 500, n_informative=30, class_sep=2, random_state=104), 2),
    "a million rows": (
        _drawn(1_000_000, 10, weights=[0.7], class_sep=0.8, random_state=105),
        1,
    ),
}
