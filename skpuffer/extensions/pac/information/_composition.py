"""What several releases of one input tell together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from skpuffer.exceptions import CompositionError, Statement, value_error
from skpuffer.kernel.numbers import Floats, check_finite, check_non_negative
from skpuffer.utils._checks import check_covariance, check_sizes


def compose_additive(budgets: ArrayLike, entropy: float | None = None) -> float:
    """Bound what releases of one input tell about the whole of it.

    Parameters
    ----------
    budgets : array-like of shape (n_releases,)
        Bounds of the mutual information between the **whole input** and each release,
        in nats. Bounds about single records or groups do not add up.
    entropy : float, default=None
        Entropy of a discrete input, in nats, which nothing exceeds.

    Returns
    -------
    budget : float

    Notes
    -----
    The noise must be independent, and no release chosen by what another one showed. For
    records and groups see :func:`compose_mixed`.

    Examples
    --------
    >>> from skpuffer.information import compose_additive
    >>> compose_additive([0.25, 0.5], entropy=0.7)
    0.7
    """
    total = float(_each(budgets=budgets).sum())
    if entropy is None:
        return total
    return min(total, check_non_negative(entropy=entropy))


def compose_residual(
    residuals: ArrayLike, entropy: float, *, discrete: bool = True
) -> float:
    r"""Bound what remains unknown of the whole input after several releases.

    Parameters
    ----------
    residuals : array-like of shape (n_releases,)
        Lower bounds of the entropy of the whole input given each release in nats.
    entropy : float
        Entropy of the input, in nats, at least each of the residuals.
    discrete : bool, default=True
        Whether the input is discrete: what remains is then never negative.

    Returns
    -------
    residual : float
        :math:`\sum_i h_i - (k - 1) H`.

    Examples
    --------
    >>> import math
    >>> from skpuffer.information import compose_residual
    >>> round(compose_residual([3, 2.5, 2.8], math.log(40)), 6)
    0.922241
    """
    left = _list(residuals=residuals)
    entropy = float(check_finite(entropy=entropy))
    if left.max() > entropy + 1e-9 * max(1.0, abs(entropy)):
        raise value_error("compose.residuals_exceed_entropy")
    total = float(left.sum()) - (len(left) - 1) * entropy
    return max(0.0, total) if discrete else total


def compose_mixed(information: ArrayLike, whole: ArrayLike) -> float:
    r"""Bound what several releases tell about one record or group.

    Parameters
    ----------
    information, whole : array-like of shape (n_releases,)
        Bounds of the mutual information, in nats, between each release and the record
        or group, and between each release and the whole input.

    Returns
    -------
    budget : float
        :math:`\min_j \big( I(U; Y_j) + \sum_{l \ne j} I(X; Y_l) \big)` in nats.

    Notes
    -----
    The sum of `information` alone bounds nothing. Take two fair bits: neither their
    exclusive or nor the second bit tells anything of the first. Together they tell all
    of it. The noise must be independent, and no release chosen by what another showed.

    Examples
    --------
    >>> from skpuffer.information import compose_mixed
    >>> compose_mixed([0.0, 0.0], [0.5, 0.25])
    0.25
    """
    about, whole = _each(information=information), _each(whole=whole)
    if about.shape != whole.shape:
        raise value_error(
            "compose.information_entries_not_per_release",
            n_secret=len(about),
            n_table=len(whole),
        )
    # a function of the input is told no more of than the input
    return float(whole.sum() - np.maximum(whole - about, 0).max())


def compose_exact(
    atoms: Sequence[ArrayLike],
    noise_covariances: Sequence[ArrayLike],
    inputs: Sequence[ArrayLike],
) -> tuple[Floats, Floats]:
    """Write several releases of one input as a single one.

    Parameters
    ----------
    atoms : sequence of array-like of shape (n_atoms, d_i)
        Outputs of each release, a row for each input of the prior.
    noise_covariances : sequence of array-like of shape (d_i, d_i)
        Covariances of the independent Gaussian noise of each release.
    inputs : sequence of array-like of shape (n_atoms,)
        Which input each row is of, for each release: the same ones in the same order.

    Returns
    -------
    atoms : ndarray of shape (n_atoms, sum of d_i)
    noise_covariance : ndarray of shape (sum of d_i, sum of d_i)

    Raises
    ------
    CompositionError
        If the rows are of other inputs, or in another order.

    Notes
    -----
    Compute any information about the input as for one release. Releases of the same
    output tell as much as one with the noise covariance divided by their number.

    Examples
    --------
    >>> from skpuffer.information import compose_exact
    >>> atoms, noise = compose_exact(
    ...     [[[0.0], [1.0]], [[5.0], [3.0]]], [[[2.0]], [[4.0]]], [["a", "b"]] * 2
    ... )
    >>> atoms.tolist(), noise.tolist()
    ([[0.0, 5.0], [1.0, 3.0]], [[2.0, 0.0], [0.0, 4.0]])
    """
    if not len(atoms) == len(noise_covariances) == len(inputs) or not len(atoms):
        raise value_error(
            "compose.exact_entries_not_per_release",
            n_atoms=len(atoms),
            n_noise_covariances=len(noise_covariances),
            n_inputs=len(inputs),
        )
    tables = [check_sizes(atoms=table) for table in atoms]
    noises = [check_covariance(noise_covariances=noise) for noise in noise_covariances]
    names = [np.asarray(name) for name in inputs]
    for table, noise, name in zip(tables, noises, names, strict=True):
        if table.ndim != 2 or noise.shape != (table.shape[1],) * 2:
            raise value_error(
                "compose.atoms_columns_mismatch_noise",
                table_shape=table.shape,
                noise_shape=noise.shape,
            )
        if name.shape != table.shape[:1]:
            raise value_error(
                "compose.inputs_rows_mismatch", shape=name.shape, n_table=len(table)
            )
        if not np.array_equal(name, names[0]):
            raise CompositionError(Statement("compose.inputs_differ_between_releases"))
    joint: Floats = block_diag(*noises)
    return np.hstack(tables), joint


def _list(**named: ArrayLike) -> Floats:
    ((name, _),) = named.items()
    values = check_finite(**named)
    if values.ndim != 1 or not values.size:
        raise value_error("compose.entries_shape_wrong", name=name, shape=values.shape)
    return values


def _each(**named: ArrayLike) -> Floats:
    values = _list(**named)
    ((name, _),) = named.items()
    check_non_negative(**{name: float(values.min())})  # type: ignore[arg-type]
    return values
