"""Five tables that no rule of the additive models was chosen on, nor looked at on.

They were named, with their targets and code books, before any fit. Bounds are round
numbers around what there may be.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, make_moons

from benchmarks._additive_tables import Table
from benchmarks._additive_tables import _published as published
from skpuffer.datasets import fetch_household_power, fetch_student
from skpuffer.schema import Category, Number, Schema


def iris():
    """Three species of 150 plants."""
    X, y = load_iris(return_X_y=True)
    columns = {
        "sepal length": (4, 8),
        "sepal width": (2, 5),
        "petal length": (1, 7),
        "petal width": (0, 3),
    }
    return Table(pd.DataFrame(X, columns=list(columns)), y, Schema(columns), [0, 1, 2])


def student_maths():
    """Pass or fail in mathematics of 395 pupils, with their earlier grades."""
    X, y = published(fetch_student, subject="mathematics")
    bounds = {
        "age": (15, 22),
        "absences": (0, 100),
        "G1": (0, 20),
        "G2": (0, 20),
        "Medu": (0, 4),
        "Fedu": (0, 4),
        "traveltime": (1, 4),
        "studytime": (1, 4),
        "failures": (0, 4),
    }
    columns = {
        name: Category(tuple(X[name].cat.categories))
        if isinstance(X[name].dtype, pd.CategoricalDtype)
        # all others are on a scale from 1 to 5
        else Number(*bounds.get(name, (1, 5)), integer=True)
        for name in X
    }
    return Table(X, (np.asarray(y) >= 10).astype(int), Schema(columns), [0, 1])


def heating():
    """Energy of a water heater and an air conditioner in some 34,000 hours."""
    X, _ = published(fetch_household_power)
    whole = (X["has_missing_minutes"] == 0).to_numpy()
    hours = pd.date_range("2006-12-16 17:00", periods=len(X), freq="h")
    frame = pd.DataFrame(
        {
            "hour": hours.hour,
            "weekend": np.where(hours.dayofweek >= 5, "yes", "no"),
            "week": (hours.dayofyear - 1) // 7,
            "kitchen": X["Sub_metering_1"].to_numpy(),
            "laundry": X["Sub_metering_2"].to_numpy(),
            "voltage": X["Voltage"].to_numpy() / 60,
        }
    )[whole]
    columns = {
        "hour": Number(0, 23, integer=True),
        "weekend": Category(("no", "yes"), missing_level=False),
        "week": Number(0, 52, integer=True),
        "kitchen": Number(0, 3000, amount=True),
        "laundry": Number(0, 3000, amount=True),
        "voltage": (220, 260),
    }
    watt_hours = X["Sub_metering_3"].to_numpy()[whole]
    return Table(frame, watt_hours, Schema(columns), (0.0, 1500.0))


def moons():
    """Two half moons in the first two of ten columns, of 4000 points."""
    rng = np.random.default_rng(0)
    X, y = make_moons(4000, noise=0.3, random_state=0)
    X = pd.DataFrame(np.column_stack([X, rng.normal(size=(len(X), 8))])).rename(
        columns=str
    )
    return Table(X, y, Schema({name: (-3, 4) for name in X}), [0, 1])


def cover(n=12_000):
    """Seven kinds of forest by terrain, soil and area, of very different shares."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "elevation": rng.normal(2900, 300, n),
            "slope": rng.gamma(3, 5, n),
            "aspect": rng.uniform(0, 360, n),
            "to water": rng.exponential(250, n),
            "shade": 255 * rng.beta(6, 2, n),
            "soil": rng.choice(list("abcdefghijkl"), n, p=np.arange(12, 0, -1) / 78),
            "area": rng.choice(["north", "south", "east", "west"], n),
        }
    )
    columns = {
        "elevation": (1800, 4000),
        "slope": (0, 70),
        "aspect": (0, 360),
        "to water": Number(0, 2000, amount=True),
        "shade": (0, 255),
        "soil": list("abcdefghijkl"),
        "area": ["north", "south", "east", "west"],
    }
    kinds = np.arange(7)
    height = (frame["elevation"].to_numpy()[:, None] - 2900) / 300
    best = np.linspace(-2.5, 2.5, 7)[rng.permutation(7)]
    scores = -1.5 * (height - best) ** 2
    scores += rng.normal(size=(12, 7))[pd.factorize(frame["soil"], sort=True)[0]]
    scores += rng.normal(size=(4, 7))[pd.factorize(frame["area"], sort=True)[0]]
    turn = np.deg2rad(frame["aspect"].to_numpy())[:, None] + kinds
    scores += np.cos(turn) - 0.3 * kinds * np.log1p(frame["to water"]).to_numpy()[
        :, None
    ] / np.log1p(2000)
    # the label is drawn from these log-odds
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    return Table(frame, y, Schema(columns), kinds.tolist())


#: The tables, and how many seeds the scores of each are means of.
LOADERS = {
    "iris": (iris, 60),
    "student, mathematics": (student_maths, 30),
    "heating": (heating, 6),
    "moons": (moons, 12),
    "cover": (cover, 6),
}
