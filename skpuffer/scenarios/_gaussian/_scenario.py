"""Jointly Gaussian records, which move with a secret value by linear regression."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import Statement, scenario_error
from skpuffer.kernel.numbers import Floats, check_option
from skpuffer.scenarios._base import Scenario, restating, stated
from skpuffer.utils._checks import check_covariance, check_name, check_sizes

from ._bound import MOST_CORNERS, BoundGaussian, half_the_signs, slopes_of


class GaussianScenario(Scenario):
    r"""The secret is a value in jointly Gaussian data, and the rest depends on it.

    Given another value of the secret coordinates I the conditional mean of all others
    moves by :math:`\Sigma_{\cdot I} \Sigma_{II}^{-1}` times the difference of the
    values, and their conditional covariance stays. The noise covers that move.

    Parameters
    ----------
    mean : array-like of shape (n_columns,) or (n_records * n_columns,), default=None
        None is zero. The noise does not depend on it.
    covariance : array-like or data frame, square
        Covariance of one record's columns, or of all records stacked.
    secret : str, int or list of these, default=None
        The secret columns. None is all of them (for ``covariance_of='records'``).
    domain : pair (low, high), array-like of shape (n_values, n_secret) or float
        Values of the secret that must look alike; see `shape`.
    shape : {'box', 'ball', 'points'}, default='box'
        How `domain` is read: bounds, the radius of a Euclidean ball, or a list.
    covariance_of : {'columns', 'records'}, default='columns'
        'columns': records are independent and alike. 'records': records are dependent.
    level : {'record', 'dataset'}, default='record'
        'record': one record's value. 'dataset': the average of the secret columns over
        the table (``covariance_of='columns'``).
    columns : list of str, default=None
        Names of the columns of `covariance`. None takes them from a data frame.
    protected : array-like of int, default=None
        Records whose value is secret (``covariance_of='records'``). None is all.
    table : str or None, default=None
        Public name of the table. Certificates of several releases on one named table
        may be added up (:func:`~skpuffer.privacy.compose`).

    Notes
    -----
    *Linear queries* (a release with its matrix `linear`) have Gaussian distributions of
    one covariance for all values of a secret. Their W_inf distance is the signed move
    of the mean. For several outputs and a ball of several secret columns only the
    longest move is offered (a bound in norms other than 1, 2 and inf).

    *Other queries* are bounded by how far each record moves, under one coupling of the
    whole table. The contribution needs a method ``move(gaps, norm)`` from moves of the
    features, of shape (n_records, n_features), to its moves, of shape (n_records,).

    Only values of one record are kept apart: the distributions of secrets at different
    records are infinitely far apart. The query's own variance is not used as noise.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Propositions 6.2, 6.4 and F.1;
    Zhang, Ohrimenko and Cummings (2022), Attribute privacy.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import GaussianScenario
    >>> times = np.arange(20)
    >>> covariance = 0.5 ** np.abs(times[:, None] - times)
    >>> scenario = GaussianScenario(
    ...     covariance=covariance, covariance_of="records", domain=(0, 1)
    ... )
    >>> average = np.full((1, 20), 1 / 20)
    >>> release = QueryRelease(
    ...     query=lambda X, y: average @ X, linear=average, n_records=20, dim=1
    ... )
    >>> certificate = GeneralWasserstein().calibrate(release, scenario).certificate
    >>> round(certificate.sensitivity, 6)
    0.149854
    """

    _bound = BoundGaussian

    def __init__(
        self,
        mean: ArrayLike | None = None,
        covariance: Any = None,
        *,
        secret: Hashable | Sequence[Hashable] | None = None,
        domain: ArrayLike | None = None,
        shape: str = "box",
        covariance_of: str = "columns",
        level: str = "record",
        columns: Sequence[str] | None = None,
        protected: ArrayLike | None = None,
        table: str | None = None,
    ) -> None:
        self.mean = mean
        self.covariance = covariance
        self.secret = secret
        self.domain = domain
        self.shape = shape
        self.covariance_of = covariance_of
        self.level = level
        self.columns = columns
        self.protected = protected
        self.table = table

    @property
    def independent_records(self) -> bool:  # type: ignore[override]
        """Whether records are taken to be drawn independently."""
        return self.covariance_of == "columns"

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_option(("box", "ball", "points"), shape=self.shape)
        check_option(("columns", "records"), covariance_of=self.covariance_of)
        check_option(("record", "dataset"), level=self.level)
        check_name(table=self.table)
        covariance = self._covariance()
        self._mean(len(covariance))
        if self.covariance_of == "columns":
            if self.protected is not None:
                raise scenario_error("gaussian.protected_needs_record_covariance")
            secret = self._secret_positions(len(covariance))
            slopes_of(covariance, secret)
            self._moves(len(secret))
        elif self.level == "dataset":
            raise scenario_error("gaussian.dataset_level_needs_column_covariance")

    def _covariance(self) -> Floats:
        if self.covariance is None:
            raise scenario_error("gaussian.covariance_missing")
        covariance = stated(check_covariance, covariance=self.covariance)
        # variances bound the other entries from above; from below nothing does, as the
        # dependence in a long series may fade
        stated(check_sizes, covariance=np.diag(covariance))
        return covariance

    def _mean(self, size: int) -> Floats:
        mean = np.zeros(size)
        if self.mean is not None:
            mean = stated(check_sizes, mean=self.mean)
        if mean.shape != (size,):
            raise scenario_error("gaussian.mean_invalid", size=size, shape=mean.shape)
        return mean

    def _names(self) -> list[str] | None:
        """Names of the columns of one record, or None."""
        names = self.columns
        if names is None and self.covariance_of == "columns":
            names = getattr(self.covariance, "columns", None)
        if names is not None and (isinstance(names, str) or not np.iterable(names)):
            raise scenario_error("gaussian.columns_not_names", names=names)
        return None if names is None else list(names)

    def _secret_positions(self, n_columns: int) -> list[int]:
        """Positions of the secret among the columns of one record."""
        if self.secret is None:
            if self.covariance_of == "columns":
                raise scenario_error("gaussian.secret_missing")
            return list(range(n_columns))
        names = self._names()
        if names is not None and len(names) != n_columns:
            raise scenario_error(
                "gaussian.column_names_count_differs",
                n_names=len(names),
                n_columns=n_columns,
            )
        secret: Any = self.secret
        several = isinstance(secret, list | tuple | np.ndarray)
        several = several and np.iterable(secret)  # no array of one number
        found = []
        for name in secret if several else [secret]:
            if names is not None and name in names:
                found.append(names.index(name))
            elif isinstance(name, int | np.integer) and 0 <= name < n_columns:
                found.append(int(name))
            else:
                known = names or Statement(
                    "gaussian.secret_positions_known", n_columns=n_columns - 1
                )
                raise scenario_error("gaussian.secret_unknown", name=name, known=known)
        if not found or len(set(found)) < len(found):
            raise scenario_error("gaussian.secret_repeated", secret=self.secret)
        return found

    def _moves(self, n_secret: int) -> tuple[Any, ...]:
        """Extreme differences of secret values, which dominate all others."""
        if self.domain is None:
            raise scenario_error("gaussian.domain_missing")
        read = {
            "box": self._box_moves,
            "ball": self._ball_moves,
            "points": self._points_moves,
        }[self.shape]
        with restating("gaussian.domain_unreadable_for_shape", shape=self.shape):
            middle, moves = read(n_secret)
            # noise covers the differences, which may be far smaller than the values
            check_sizes(domain=moves)
        return middle, moves

    def _ball_moves(self, n_secret: int) -> tuple[Any, ...]:
        radius = check_sizes(domain=self.domain)
        if radius.ndim or radius <= 0:
            raise scenario_error(
                "gaussian.ball_radius_not_positive", domain=self.domain
            )
        return None, 2 * float(radius)

    def _box_moves(self, n_secret: int) -> tuple[Floats, Floats]:
        sides: Any = self.domain
        low, high = sides
        low, high = (
            np.broadcast_to(check_sizes(domain=side), n_secret) for side in (low, high)
        )
        if not np.all(low < high):
            raise scenario_error(
                "gaussian.box_bounds_invalid", n_secret=n_secret, domain=self.domain
            )
        if n_secret > MOST_CORNERS:
            raise scenario_error("gaussian.box_too_many_corners", n_secret=n_secret)
        # a convex function is largest at a corner; a norm is equal at the opposite one
        return (low + high) / 2, half_the_signs(n_secret) * (high - low)

    def _points_moves(self, n_secret: int) -> tuple[Any, ...]:
        points = check_sizes(domain=self.domain)
        points = points[:, None] if points.ndim == 1 else points
        if points.shape[1:] != (n_secret,):
            raise scenario_error(
                "gaussian.points_invalid", n_secret=n_secret, shape=points.shape
            )
        points = np.unique(points, axis=0)
        if len(points) < 2:
            raise scenario_error("gaussian.points_fewer_than_two")
        # distances depend on differences only, so equal ones are listed once
        i, j = np.triu_indices(len(points), 1)
        return None, np.unique(points[j] - points[i], axis=0)

    def __repr__(self) -> str:
        size = len(np.asarray(self.covariance)) if self.covariance is not None else 0
        parts = [f"covariance=<{size} x {size}, of {self.covariance_of}>"]
        if self.secret is not None:
            parts.append(f"secret={self.secret!r}")
        given: Any = self.domain
        domain = repr(given) if np.size(given) <= 4 else "<given>"
        parts += [f"domain={domain}", f"shape={self.shape!r}", f"level={self.level!r}"]
        if self.table is not None:
            parts.append(f"table={self.table!r}")
        return f"GaussianScenario({', '.join(parts)})"
