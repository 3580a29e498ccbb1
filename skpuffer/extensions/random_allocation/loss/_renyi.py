"""Rényi divergences of random bins, from the Gram matrix of what each bin adds."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from skpuffer.exceptions import value_error
from skpuffer.kernel.curves import conversion_terms, log_delta_of_orders
from skpuffer.kernel.noise import gaussian_delta, gaussian_epsilon, root_above
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_finite,
    check_option,
    check_probability,
)
from skpuffer.privacy_loss.allocation._sampled import check_gram

from ._bands import Band, Renewal
from ._recursion import interpolated, largest_order

# Epsilons times bins that are treated at once: bounds the memory.
_BLOCK = 2**18


def closed_add_delta(gram: Any, epsilon: Any) -> Floats:
    """Bound the hockey-stick divergence in the direction "add", in closed form.

    By Jensen's inequality the log of the mixture's density over Q's is at least the
    mean of that of its components, which is Gaussian under Q.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        Inner products of the means in units of the noise's variance, or a covariance
        that bounds them.
    epsilon : float or array-like
        In nats, of any sign.

    Returns
    -------
    ndarray of the shape of `epsilon`
        In [0, 1]; exact where there is a single bin.

    References
    ----------
    Schuchardt and Kalinin (2026), Sampling-free privacy accounting for matrix
    mechanisms under random allocation, Lemma 3.4 (the Rényi divergence).
    """
    gram = check_gram(gram)
    # with the loss bounded by l ~ N(-drop, spread²), the mean of (1 - exp(epsilon+l))₊
    # is the trade-off of two Gaussians `spread` apart, at an epsilon that is less by
    # what the mean of exp(l) falls short of one
    drop, square = np.trace(gram) / (2 * len(gram)), gram.mean()
    short = max(0.0, float(drop - square / 2))
    moved = np.asarray(epsilon, float) - short
    return np.asarray(gaussian_delta(moved, np.sqrt(square)))


def unamplified_delta(gram: Any, epsilon: Any) -> Floats:
    """Bound the hockey-stick divergence in both directions by a known bin's.

    By joint convexity it is at most the mean of the components' divergences.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        Inner products of the means in units of the noise's variance. The diagonal
        counts.
    epsilon : float or array-like
        In nats, of any sign.

    Returns
    -------
    ndarray of the shape of `epsilon`
        In [0, 1]; exact where there is a single bin.
    """
    norms, counts = np.unique(np.sqrt(np.diag(check_gram(gram))), return_counts=True)
    weights = counts / counts.sum()
    epsilon = np.asarray(epsilon, float)
    at = epsilon.reshape(-1, 1)
    found = np.empty(len(at))
    for part in gen_batches(len(at), max(1, _BLOCK // len(norms))) if len(at) else ():
        found[part] = gaussian_delta(at[part], norms) @ weights
    return np.minimum(found, 1.0).reshape(epsilon.shape)


def renyi_add(gram: Any, orders: Any) -> Floats:
    """Bound the Rényi divergence in the direction "add", in closed form.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        Inner products of the means in units of the noise's variance, or a covariance
        that bounds them.
    orders : float or array-like
        Above one and finite, whole or not.

    Returns
    -------
    ndarray of the shape of `orders`
        In nats. For many bins far above the truth near order one;
        :func:`closed_add_delta` bounds a delta better.

    References
    ----------
    Schuchardt and Kalinin (2026), Lemma 3.4.
    """
    gram, orders = check_gram(gram), check_finite(orders=orders)
    if np.any(orders <= 1):
        raise value_error("allocation.orders_not_above_one", least=orders.min())
    drop = np.trace(gram) / (2 * len(gram))
    return np.asarray(drop + (orders - 1) * gram.mean() / 2)


#: Operations of one pass over the counts: some tenths of a second.
MAX_OPERATIONS = 1e7

# Order beyond which nothing is computed: a bound for any order follows without.
_LARGEST = 256

# Widths of the bands that are looked at.
_WIDTHS = (1, 2, 3, 4, 5, 6, 8, 12, 16)

#: Orders of the conversions to an epsilon or a delta.
ORDERS = tuple(range(2, 129))


class DirectedCosts(NamedTuple):
    """Rényi divergences in both directions in nats.

    Parameters
    ----------
    remove : ndarray
        Divergences of the releases with the record from those without.
    add : ndarray
        Divergences of those without the record from those with it.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.privacy_loss.allocation import renyi_allocation
    >>> costs = renyi_allocation(np.eye(10) / 4, orders=[2, 8])
    >>> costs.remove.round(4).tolist(), costs.add.round(4).tolist()
    ([0.028, 0.1138], [0.1375, 0.2125])
    """

    remove: Floats
    add: Floats


def renyi_remove(
    gram: Any,
    orders: Any,
    bandwidth: int | None = None,
    max_operations: float = MAX_OPERATIONS,
) -> Floats:
    """Bound the Rényi divergence in the direction "remove".

    Entries of the Gram matrix further than `bandwidth` from the (cyclic) diagonal are
    bounded by the largest of them. One pass over the bins serves all orders.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        Inner products of the means in units of the noise's variance, or upper bounds.
    orders : float or array-like
        Above one. Between whole orders the bound is interpolated from above.
    bandwidth : int, default=None
        None takes for each order the widest that `max_operations` allow, and orders 2,
        3 and 4 of a small matrix in closed form. With all positive diagonals the
        divergence is exact at whole orders, up to rounding up.
    max_operations : float, default=1e7
        Operations of one pass.

    Returns
    -------
    ndarray of the shape of `orders`
        In nats.

    Raises
    ------
    ValueError
        If `bandwidth` is given and takes more than `max_operations`.

    References
    ----------
    Schuchardt and Kalinin (2026), Sampling-free privacy accounting for matrix
    mechanisms under random allocation, Lemmas 3.2 and 3.3. Lines 27 to 29 of their
    Algorithm 1 weigh a new count with the wrong state, and prove too much.
    """
    gram = check_gram(gram)
    orders, order = largest_order(orders)
    if bandwidth is None:
        found, _ = _best_remove(gram, min(order, _LARGEST), max_operations)
    else:
        band = Band.of(gram, check_count(bandwidth=bandwidth))
        if band.cost(order) > max_operations:
            raise value_error(
                "allocation.bandwidth_too_many_operations",
                bandwidth=bandwidth,
                cost=band.cost(order),
                order=order,
                max_operations=max_operations,
            )
        found = band.divergences(order)
    return np.minimum(_unamplified(gram, orders), interpolated(found, orders))


def renyi_allocation(
    gram: Any, orders: Any, max_operations: float = MAX_OPERATIONS
) -> DirectedCosts:
    """Bound the Rényi divergences in both directions, by the best of all ways.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        Inner products of the means in units of the noise's variance.
    orders : float or array-like
        Above one.
    max_operations : float, default=1e7
        Operations of one pass over the counts.

    Returns
    -------
    DirectedCosts
        Each of the shape of `orders`.
    """
    gram = check_gram(gram)
    orders, order = largest_order(orders)
    most = min(order, _LARGEST)
    found, exact = _best_remove(gram, most, max_operations)
    if not exact:
        # the same along each diagonal, from above: wider bands are affordable
        ways = (Renewal(gram, width) for width in _WIDTHS)
        found = np.minimum(found, _least(ways, most, max_operations)[0])
    remove = np.minimum(_unamplified(gram, orders), interpolated(found, orders))
    return DirectedCosts(remove, renyi_add(gram, orders))


def renyi_delta(
    gram: Any,
    epsilon: Any,
    direction: str | None = None,
    orders: Any = ORDERS,
    max_operations: float = MAX_OPERATIONS,
) -> Floats:
    """Bound the hockey-stick divergence by Rényi divergences and closed forms.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        Inner products of the means in units of the noise's variance.
    epsilon : float or array-like
        In nats, of any sign.
    direction : {'remove', 'add'}, default=None
        None takes the larger of both, each the least of its own bounds.
    orders : array-like of shape (n_orders,), default=(2, 3, ..., 128)
        Orders of the Rényi divergences in the direction "remove".
    max_operations : float, default=1e7
        Operations of one pass over the counts.

    Returns
    -------
    ndarray of the shape of `epsilon`
        In [0, 1].

    References
    ----------
    Canonne, Kamath and Steinke (2020), The discrete Gaussian, Proposition 12.
    """
    check_option((None, "remove", "add"), direction=direction)
    gram, epsilon = check_gram(gram), np.asarray(epsilon, float)
    found = []
    if direction != "add":
        alphas, _ = largest_order(orders)
        costs = renyi_allocation(gram, alphas, max_operations).remove
        found.append(np.exp(log_delta_of_orders(alphas, costs, epsilon)))
    if direction != "remove":
        # never above what the Rényi divergence of the same Gaussian implies
        found.append(closed_add_delta(gram, epsilon))
    return np.minimum(unamplified_delta(gram, epsilon), np.max(found, axis=0))


def renyi_epsilon(
    gram: Any,
    delta: float,
    direction: str | None = None,
    orders: Any = ORDERS,
    max_operations: float = MAX_OPERATIONS,
) -> float:
    """Bound epsilon at a delta by Rényi divergences; see :func:`renyi_delta`.

    Parameters
    ----------
    gram : array-like of shape (n_bins, n_bins)
        As for :func:`renyi_delta`, as are the others.
    delta : float
        In (0, 1).
    direction : {'remove', 'add'}, default=None
    orders : array-like of shape (n_orders,), default=(2, 3, ..., 128)
    max_operations : float, default=1e7

    Returns
    -------
    float
        At least zero in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.privacy_loss.allocation import renyi_epsilon
    >>> round(renyi_epsilon(np.eye(100) / 1.1**2, 1e-5), 3)
    0.923
    """
    check_option((None, "remove", "add"), direction=direction)
    gram, delta = check_gram(gram), check_probability(delta=delta)
    # the longest mean alone needs no more, in either direction
    most = gaussian_epsilon(delta, math.sqrt(float(np.diag(gram).max())))

    def least(curve: Any) -> float:
        if most == 0 or curve(gram, 0.0) <= delta:
            return 0.0
        return root_above(
            lambda e: float(curve(gram, e)), delta, 0.0, most * (1 + 1e-9)
        )

    found = [0.0]
    if direction != "add":
        alphas, _ = largest_order(orders)
        costs = renyi_allocation(gram, alphas, max_operations).remove
        found.append(float(np.min(costs + conversion_terms(alphas, delta))))
    if direction != "remove":
        found.append(
            least(
                lambda g, e: np.minimum(closed_add_delta(g, e), unamplified_delta(g, e))
            )
        )
    return min(max(found), least(unamplified_delta))


def _unamplified(gram: Floats, orders: Floats) -> Floats:
    """Return the Rényi divergence if the bin were known, of the shape of `orders`.

    At the order a, exp((a - 1) R) is convex in the pair: at most its mean over bins.
    """
    norms, rest = np.diag(gram), orders[..., np.newaxis] - 1
    mean = logsumexp((rest + 1) * rest / 2 * norms, axis=-1) - math.log(len(gram))
    # near order one rounding may undercut the mean of the exponents
    return np.maximum(mean / (orders - 1), orders / 2 * norms.mean())


def _best_remove(
    gram: Floats, order: int, max_operations: float
) -> tuple[Floats, bool]:
    """Bounds at the orders 2, 3, ..., `order`, and whether all of them are exact."""
    closed = _closed(gram, order, max_operations)
    if len(closed) == order - 1:
        return closed, True
    ways = (Band.of(gram, width) for width in _WIDTHS)
    found, exact = _least(ways, order, max_operations)
    found[: len(closed)] = np.minimum(found[: len(closed)], closed)
    return found, exact


def _least(
    ways: Iterable[Band | Renewal], order: int, max_operations: float
) -> tuple[Floats, bool]:
    """Least bounds at whole orders of several ways, each as far as it is affordable."""
    chosen: list[tuple[Band | Renewal, int]] = []
    for way in ways:
        most = order
        while most >= 2 and way.cost(most) > max_operations:
            most -= 1
        if most < 2:
            break
        # a finer way replaces coarser ones that go no further
        chosen = [each for each in chosen if each[1] > most] + [(way, most)]
        if way.shared == 0:
            break
    best = np.full(order - 1, math.inf)
    for way, most in chosen:
        best[: most - 1] = np.minimum(best[: most - 1], way.divergences(most))
    return best, len(chosen) == 1 and chosen[0][0].shared == 0


def _closed(gram: Floats, order: int, max_operations: float) -> Floats:
    """Return divergences at the orders 2, 3 and 4, if affordable, in closed form.

    Sums over all pairs, triples and quadruples of bins.
    """
    top, n_bins = float(gram.max()), len(gram)
    near = np.exp(gram - top)
    # products of matrices take some fiftieth of the time of other operations
    sums = [near.sum()]
    if order > 2 and n_bins**3 / 50 <= max_operations:
        square = near @ near
        sums.append((square * near).sum())
        if order > 3 and n_bins**4 / 50 <= max_operations:
            total = 0.0
            for row in near:
                both = row * near
                total += row @ ((both @ near) * both).sum(axis=1)
            sums.append(total)
    alpha = np.arange(2.0, len(sums) + 2)
    raised = top * alpha * (alpha - 1) / 2
    found = np.log(sums) + raised - alpha * math.log(n_bins)
    found += 1e-15 * (raised + n_bins + 100)
    return np.maximum(found / (alpha - 1), 0.0)
