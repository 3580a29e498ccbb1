"""The likelihood-ratio attack: how much likelier a model is that saw the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed
from scipy import sparse, stats

from skpuffer.utils._reading import is_frame, to_pandas
from skpuffer.utils._silence import muted, silence
from skpuffer.utils._sklearn import safe_indexing

from ._scores import likelihoods

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Booleans, Floats
    from skpuffer.utils._types import Array

__all__ = ["likelihood_ratios", "stacked"]

#: With fewer shadow models the variances of single records are mostly chance.
_FEW = 64

#: Smallest variance, of models that all agree.
_LEAST = 1e-12


def likelihood_ratios(
    model: Any,
    X: Any,
    y: Array,
    *,
    share: float,
    shadow: Any,
    n_shadows: int,
    online: bool,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> Floats:
    """Log-likelihood ratio of "was among those the model learned from" by record.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : table of shape (n, n_features)
    y : ndarray of shape (n,) or (n, n_targets)
        Members and others together.
    share : float
        Of all records that each shadow model learns from.
    shadow : estimator
        To be cloned.
    n_shadows : int
    online : bool
        Whether models that saw the record are compared with, or only the others.
    rng : numpy.random.Generator
    n_jobs : int or None

    Returns
    -------
    ndarray of shape (n,)

    References
    ----------
    Carlini et al. (2022), Membership inference attacks from first principles,
    Algorithm 1 and section VI (offline, global variance).
    """
    seen = _balanced(len(y), n_shadows, share, rng)
    seeds = rng.integers(2**31 - 1, size=n_shadows)
    sure = np.array(
        Parallel(n_jobs=n_jobs)(
            delayed(_of_shadow)(shadow, X, y, rows, int(seed))
            for rows, seed in zip(seen, seeds, strict=True)
        )
    )
    observed = likelihoods(model, X, y)
    out = _normal(sure, ~seen)
    if not online:
        # how rarely a model that did not see the record is as sure of it
        surprise: Floats = (observed - out.mean()) / out.std()
        return surprise
    ratio: Floats = _normal(sure, seen).logpdf(observed) - out.logpdf(observed)
    return ratio


def _balanced(
    n: int, n_shadows: int, share: float, rng: np.random.Generator
) -> Booleans:
    """Which shadow model sees which records: each as many times as any other."""
    times = min(max(round(share * n_shadows), 1), n_shadows - 1)
    ranks = rng.random((n_shadows, n)).argsort(axis=0)
    found: Booleans = ranks < times
    return found


def _of_shadow(shadow: Any, X: Any, y: Array, rows: Booleans, seed: int) -> Floats:
    # no callback hears of it, as a ledger would: what an attacker fits is no release
    fresh = muted(shadow)
    # a seed that all shadows share would give all of them the same noise
    states = {
        name: seed
        for name in fresh.get_params()
        if name == "random_state" or name.endswith("__random_state")
    }
    fresh.set_params(**states)
    # nor does anyone need to hear, a hundred times, that its noise is seeded
    with silence():
        at = np.flatnonzero(rows)
        fresh.fit(safe_indexing(X, at), y[at])
    return likelihoods(fresh, X, y)


def _normal(sure: Floats, kept: Booleans) -> Any:
    """Normal distribution by record, of those shadow models that are kept."""
    counts = kept.sum(axis=0)
    means = np.where(kept, sure, 0.0).sum(axis=0) / counts
    squares = (np.where(kept, sure - means, 0.0) ** 2).sum(axis=0)
    if len(sure) < _FEW:
        # one variance for all records: within records, not between them
        variance = np.full(len(means), squares.sum() / max(1, (counts - 1).sum()))
    else:
        variance = squares / (counts - 1)
    return stats.norm(means, np.sqrt(np.maximum(variance, _LEAST)))


def stacked(first: Any, second: Any) -> Any:
    """Rows of one table after those of another of the same kind."""
    if is_frame(first):
        frames = [nw.from_native(one, eager_only=True) for one in (first, second)]
        if type(first) is not type(second):
            frames = [nw.from_native(to_pandas(one)) for one in (first, second)]
        return nw.concat(frames, how="vertical").to_native()
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([first, second], format="csr")
    return np.concatenate([np.asarray(first), np.asarray(second)])
