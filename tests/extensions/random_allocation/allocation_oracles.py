"""Reference values of random bins, and the Gram matrices they are for."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

from skpuffer.noise.strategies import banded_inverse_square_root, banded_square_root

FOLDER = Path(__file__).parents[2] / "oracles"


def oracles(name):
    return json.loads((FOLDER / name).read_text("utf-8"))


def means_of(row):
    """Means of a row of the oracles, in clip norms, one row for each bin."""
    n_batches, epochs = row["n_batches"], row.get("epochs", 1)
    if row["strategy"] == "identity":
        return np.tile(np.eye(n_batches), epochs)
    families = {"bsr": banded_square_root, "bisr": banded_inverse_square_root}
    strategy = families[row["strategy"]](row["bandwidth"])
    return strategy.means(n_batches, n_batches * epochs)


def gram_of(row):
    """Gram matrix in units of the noise, of a row of the oracles."""
    means = means_of(row)
    return means @ means.T / row["sigma"] ** 2


def ids(row):
    return "-".join(str(value) for value in row.values())


def enumerated(gram, order):
    """Rényi divergence of a whole order, by all tuples of bins."""
    n_bins = len(gram)
    exponents = [
        sum(gram[i, j] for i, j in itertools.combinations(bins, 2))
        for bins in itertools.product(range(n_bins), repeat=order)
    ]
    return (logsumexp(exponents) - order * math.log(n_bins)) / (order - 1)
