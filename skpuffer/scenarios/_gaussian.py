"""Jointly Gaussian records: what a secret value says about all the others."""

import itertools
import math

import joblib
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from skpuffer.exceptions import ScenarioError
from skpuffer.releases import QueryRelease
from skpuffer.utils._checks import check_option

from ._base import BoundScenario, Scenario
from ._facts import QueryLaws, RecordShifts, arbitrary_coupling
from ._laws import Gaussian

__all__ = ["GaussianScenario"]

#: Coordinates of a secret whose corners are gone through one by one.
_MOST_CORNERS = 12
_WORST_CONDITION = 1e12


class GaussianScenario(Scenario):
    r"""The secret is a value in jointly Gaussian data, and the rest goes with it.

    Given another value of the secret all else moves by a known vector and keeps its
    covariance: with secret coordinates I, by :math:`\Sigma_{\cdot I} \Sigma_{II}^{-1}`
    times the difference of the values. The noise covers that move.

    Parameters
    ----------
    mean : array-like of shape (n_columns,) or (n_records * n_columns,), default=None
        None is zero. No move depends on it.
    covariance : array-like or data frame, square
        Of the columns of one record, or of all records stacked one after the other.
    secret : str, int or list of these, default=None
        The secret columns. None is all of them (for ``covariance_of='records'``).
    domain : pair (low, high), array-like of shape (n_values, n_secret) or float
        Values of the secret that must look alike; see `shape`.
    shape : {'box', 'ball', 'points'}, default='box'
        How `domain` is read: as bounds (numbers, or one for each secret column), as
        the radius of a Euclidean ball, or as a list of values.
    covariance_of : {'columns', 'records'}, default='columns'
        'columns': records are independent and alike. 'records': records depend on each
        other, such as a time series.
    level : {'record', 'dataset'}, default='record'
        'record': the secret is one record's value, any record's. 'dataset': it is the
        average of the secret columns over the table (for ``covariance_of='columns'``).
    columns : list of str, default=None
        Names of the columns, in the order of `covariance`; by them the columns of the
        data are found. None takes them from `covariance` if it is a data frame.
    protected : array-like of int, default=None
        Records whose value is secret, from zero, for ``covariance_of='records'``. None
        is all.

    Notes
    -----
    *Linear queries* (a release with its matrix `linear`) have Gaussian laws of one
    covariance for all values of a secret; their W_inf distance is the move of the mean
    and signs are kept: moves may cancel.

    *Other queries* are bounded by how far each record moves, under one coupling of the
    whole table, so certificates of several releases may be added up. That needs a
    contribution that says how far it moves with its record (a method
    ``move(gaps, norm)`` from moves of the features, of shape (n_records, n_features),
    to those of contributions, of shape (n_records,)).

    The laws of two secrets at different records have unequal covariances and are
    infinitely far apart, so only values of one record are kept apart.

    The variance that the query itself has is not used as noise.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Propositions 6.2 and F.1; the
    joint coupling is that of Proposition 6.4. Zhang, Ohrimenko and Cummings (2022),
    Attribute privacy, for secrets of the whole table.

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

    def __init__(
        self,
        mean=None,
        covariance=None,
        *,
        secret=None,
        domain=None,
        shape="box",
        covariance_of="columns",
        level="record",
        columns=None,
        protected=None,
    ):
        self.mean = mean
        self.covariance = covariance
        self.secret = secret
        self.domain = domain
        self.shape = shape
        self.covariance_of = covariance_of
        self.level = level
        self.columns = columns
        self.protected = protected

    def check(self):
        """Check the parameters; see the class."""
        check_option(("box", "ball", "points"), shape=self.shape)
        check_option(("columns", "records"), covariance_of=self.covariance_of)
        check_option(("record", "dataset"), level=self.level)
        covariance = self._covariance()
        self._mean(len(covariance))
        if self.covariance_of == "columns":
            if self.protected is not None:
                raise ScenarioError(
                    "The parameter 'protected' is for covariance_of='records': "
                    "independent records are all protected alike."
                )
            secret = self._secret_positions(len(covariance))
            _slopes(covariance, secret)
            self._moves(len(secret))
        elif self.level == "dataset":
            raise ScenarioError(
                "The parameter 'level' is 'dataset', which is for independent records "
                "(covariance_of='columns')."
            )

    def _covariance(self):
        if self.covariance is None:
            raise ScenarioError("The parameter 'covariance' is missing.")
        try:
            array = np.asarray(self.covariance, dtype=float)
        except (TypeError, ValueError):
            array = np.empty(0)
        square = array.ndim == 2 and array.shape[0] == array.shape[1] and array.size
        if not square or not np.all(np.isfinite(array)):
            raise ScenarioError(
                "The parameter 'covariance' must be a finite square matrix. Got shape "
                f"{array.shape}."
            )
        if np.abs(array - array.T).max() > 1e-10 * np.abs(array).max():
            raise ScenarioError("The parameter 'covariance' must be symmetric.")
        eigenvalues = np.linalg.eigvalsh(array)
        if eigenvalues[0] < -1e-10 * max(eigenvalues[-1], 0.0):
            raise ScenarioError(
                "The parameter 'covariance' must be positive semi-definite. Its least "
                f"eigenvalue is {eigenvalues[0]:g}."
            )
        return (array + array.T) / 2

    def _mean(self, size):
        mean = np.zeros(size) if self.mean is None else np.asarray(self.mean, float)
        if mean.shape != (size,) or not np.all(np.isfinite(mean)):
            raise ScenarioError(
                f"The parameter 'mean' must hold {size} finite numbers, as many as "
                f"'covariance' has rows. Got shape {mean.shape}."
            )
        return mean

    def _names(self):
        """Names of the columns of one record, or None."""
        names = self.columns
        if names is None and self.covariance_of == "columns":
            names = getattr(self.covariance, "columns", None)
        return None if names is None else list(names)

    def _secret_positions(self, n_columns):
        """Positions of the secret among the columns of one record."""
        if self.secret is None:
            if self.covariance_of == "columns":
                raise ScenarioError(
                    "The parameter 'secret' must name the secret columns. Got None."
                )
            return list(range(n_columns))
        names = self._names()
        if names is not None and len(names) != n_columns:
            raise ScenarioError(
                f"The parameter 'columns' has {len(names)} names for {n_columns} "
                "columns."
            )
        several = isinstance(self.secret, list | tuple | np.ndarray)
        found = []
        for name in self.secret if several else [self.secret]:
            if names is not None and name in names:
                found.append(names.index(name))
            elif isinstance(name, int | np.integer) and 0 <= name < n_columns:
                found.append(int(name))
            else:
                known = names or f"positions 0 to {n_columns - 1}"
                raise ScenarioError(
                    f"The parameter 'secret' names {name!r}; there are {known}."
                )
        if not found or len(set(found)) < len(found):
            raise ScenarioError(
                "The parameter 'secret' must name different columns. "
                f"Got {self.secret!r}."
            )
        return found

    def _moves(self, n_secret):
        """Differences of secret values that no other difference exceeds.

        Returns
        -------
        middle : ndarray of shape (n_secret,) or None
            Of the domain; None where it has none.
        moves : ndarray of shape (n_moves, n_secret) or float
            One of each pair of opposite differences, or the diameter of a ball.
        """
        if self.domain is None:
            raise ScenarioError(
                "The parameter 'domain' must say which values of the secret are to "
                "look alike, such as (low, high). Got None."
            )
        read = {
            "box": self._box_moves,
            "ball": self._ball_moves,
            "points": self._points_moves,
        }[self.shape]
        try:
            return read(n_secret)
        except (TypeError, ValueError) as error:
            if isinstance(error, ScenarioError):
                raise
            raise ScenarioError(
                f"The parameter 'domain' cannot be read with shape={self.shape!r}. "
                f"Got {self.domain!r}."
            ) from None

    def _ball_moves(self, n_secret):
        radius = float(self.domain)
        if not 0 < radius < math.inf:
            raise ScenarioError(
                "The parameter 'domain' must be the positive radius of a ball. "
                f"Got {self.domain!r}."
            )
        return None, 2 * radius

    def _box_moves(self, n_secret):
        low, high = self.domain
        low, high = (
            np.broadcast_to(np.asarray(side, dtype=float), n_secret)
            for side in (low, high)
        )
        if not (np.all(np.isfinite(low) & np.isfinite(high)) and np.all(low < high)):
            raise ScenarioError(
                "The parameter 'domain' must be a pair (low, high) of finite bounds "
                f"with low < high, one or {n_secret} of each. Got {self.domain!r}."
            )
        if n_secret > _MOST_CORNERS:
            raise ScenarioError(
                f"A box of {n_secret} secret columns has too many corners: use "
                "shape='ball' with the radius of a ball around it."
            )
        # a norm is convex: largest at a corner, and the same at the opposite one
        signs = np.array(list(itertools.product([1.0, -1.0], repeat=n_secret)))
        return (low + high) / 2, signs[: len(signs) // 2] * (high - low)

    def _points_moves(self, n_secret):
        points = np.asarray(self.domain, dtype=float)
        points = points[:, None] if points.ndim == 1 else points
        if points.shape[1:] != (n_secret,) or not np.all(np.isfinite(points)):
            raise ScenarioError(
                f"The parameter 'domain' must list finite values of the {n_secret} "
                f"secret columns, one a row. Got shape {points.shape}."
            )
        points = np.unique(points, axis=0)
        if len(points) < 2:
            raise ScenarioError("The parameter 'domain' lists fewer than two values.")
        i, j = np.triu_indices(len(points), 1)
        return None, np.unique(points[j] - points[i], axis=0)

    def bind(self, context):
        """Meet the public facts of a table; see :class:`Scenario`."""
        self.check()
        return _BoundGaussian(self, context)

    def __repr__(self):
        size = len(np.asarray(self.covariance)) if self.covariance is not None else 0
        parts = [f"covariance=<{size} x {size}, of {self.covariance_of}>"]
        if self.secret is not None:
            parts.append(f"secret={self.secret!r}")
        domain = repr(self.domain) if np.size(self.domain) <= 4 else "<given>"
        parts += [f"domain={domain}", f"shape={self.shape!r}", f"level={self.level!r}"]
        return f"GaussianScenario({', '.join(parts)})"


def _slopes(covariance, secret):
    """Move of every coordinate for one unit of each secret one.

    Returns
    -------
    ndarray of shape (n_coordinates, n_secret)

    Raises
    ------
    ScenarioError
        If the secret coordinates are constant, or determine each other.
    """
    inner = covariance[np.ix_(secret, secret)]
    try:
        if np.linalg.cond(inner) > _WORST_CONDITION:
            raise np.linalg.LinAlgError
        factor = cho_factor(inner)
    except np.linalg.LinAlgError:
        raise ScenarioError(
            "The covariance of the secret coordinates is singular or nearly so: a "
            "constant is no secret, and of columns that determine each other name one."
        ) from None
    return cho_solve(factor, covariance[secret]).T


class _BoundGaussian(BoundScenario):
    _facts = {QueryLaws: "_query_laws", RecordShifts: "_record_shifts"}

    def __init__(self, scenario, context):
        super().__init__(scenario, context)
        n = context.n_records
        covariance = scenario._covariance()
        size = len(covariance)
        self.covariance, self.mean = covariance, scenario._mean(size)
        self.series = scenario.covariance_of == "records"
        self.n_columns = size
        if self.series:
            if size % n:
                raise ScenarioError(
                    f"The parameter 'covariance' is of {size} numbers, which are no "
                    f"whole number of columns of the {n} records of the table."
                )
            self.n_columns = size // n
        self.secret = scenario._secret_positions(self.n_columns)
        self.middle, self.moves = scenario._moves(len(self.secret))
        self.features = self._features()
        self.protected = self._protected()

    def _features(self):
        """Columns of a record that the data has, as positions, or None if unknown."""
        context, names = self.context, self.scenario._names()
        if context.feature_map is not None:
            return None
        if context.feature_names is not None and names is not None:
            missing = [c for c in context.feature_names if c not in names]
            if missing:
                raise ScenarioError(
                    f"The covariance does not speak of the columns {missing!r} of the "
                    f"data; it has {names!r}."
                )
            return [names.index(name) for name in context.feature_names]
        everything = list(range(self.n_columns))
        others = [c for c in everything if c not in self.secret]
        for columns in (everything, others):
            if context.n_features in (None, len(columns)):
                return columns
        raise ScenarioError(
            f"The data has {context.n_features} columns, the covariance speaks of "
            f"{self.n_columns} for each record. Name the columns in both, or make them "
            "agree."
        )

    def _protected(self):
        n, given = self.context.n_records, self.scenario.protected
        if not self.series or given is None:
            return list(range(n))
        times = np.asarray(given)
        if (
            times.ndim != 1
            or not times.size
            or times.dtype.kind not in "iu"
            or not 0 <= times.min() <= times.max() < n
        ):
            raise ScenarioError(
                "The parameter 'protected' must list records of the table, as integers "
                f"from 0 to {n - 1}. Got {given!r}."
            )
        return np.unique(times).tolist()

    # -- moves --------------------------------------------------------------------

    def _coordinates(self):
        """Coordinates of the data among the stacked ones of a series."""
        starts = np.arange(self.context.n_records)[:, None] * self.n_columns
        return (starts + np.array(self.features)).ravel()

    def _series_slopes(self, record):
        """Stacked coordinates that are secret, and slopes of all."""
        inner = [record * self.n_columns + c for c in self.secret]
        return inner, _slopes(self.covariance, inner)

    def _gaps(self):
        """Largest moves of the features of each record, for each secret.

        Yields
        ------
        ndarray of shape (n_moved, n_features)
        """
        if not self.series:
            slopes = _slopes(self.covariance, self.secret)[self.features]
            moved = 1 if self.scenario.level == "record" else self.context.n_records
            yield np.tile(self._reach(slopes), (moved, 1))
            return
        at = self._coordinates()
        for record in self.protected:
            _, slopes = self._series_slopes(record)
            yield self._reach(slopes[at]).reshape(len(at) // len(self.features), -1)

    def _reach(self, slopes):
        """Largest absolute move of each coordinate over the domain."""
        if isinstance(self.moves, float):
            return self.moves * np.linalg.norm(slopes, axis=1)
        return np.abs(slopes @ self.moves.T).max(axis=1)

    # -- facts --------------------------------------------------------------------

    def provides(self, release):
        facts = set()
        if release.sensitivity is not None or self._moves_of(release) is not None:
            facts.add(RecordShifts)
        if isinstance(release, QueryRelease) and self._matrix(release) is not None:
            facts.add(QueryLaws)
        return frozenset(facts)

    def _moves_of(self, release):
        """How the release's contributions move with their records, or None."""
        known = getattr(release, "is_sum", False) or (
            getattr(release, "modulus", None) is not None
        )
        if not known or self.features is None:
            return None
        return getattr(release.contribution, "move", None)

    def _matrix(self, release):
        """Matrix of a linear query, of shape (dim, n_records, n_features), or None."""
        if release.linear is None or self.features is None:
            return None
        matrix = np.asarray(release.linear, dtype=float)
        n, d = self.context.n_records, len(self.features)
        if matrix.ndim != 2 or matrix.shape[1] != n * d:
            raise ScenarioError(
                f"The matrix of the release {release.name!r} has shape {matrix.shape}, "
                f"but the {n} stacked records have {n * d} numbers."
            )
        return matrix.reshape(len(matrix), n, d)

    def _secrets(self, matrix):
        """Slopes, mean and covariance of the output given each secret.

        Yields
        ------
        name : str
        slopes : ndarray of shape (dim, n_secret)
        mean : ndarray of shape (dim,)
            At the middle of the domain.
        covariance : ndarray of shape (dim, dim)
        """
        dim, n, _ = matrix.shape
        if self.series:
            at = self._coordinates()
            flat = matrix.reshape(dim, -1)
            whole = flat @ self.covariance[np.ix_(at, at)] @ flat.T
            mean = flat @ self.mean[at]
            for record in self.protected:
                inner, slopes = self._series_slopes(record)
                slopes = flat @ slopes[at]
                known = self.covariance[np.ix_(inner, inner)]
                yield (
                    f"record {record}",
                    slopes,
                    mean + slopes @ self._offset(self.mean[inner]),
                    whole - slopes @ known @ slopes.T,
                )
            return
        slope = _slopes(self.covariance, self.secret)[self.features]
        inner = self.covariance[np.ix_(self.features, self.features)]
        known = self.covariance[np.ix_(self.secret, self.secret)]
        whole = np.einsum("itf,fg,jtg->ij", matrix, inner, matrix)
        mean = matrix.sum(axis=1) @ self.mean[self.features]
        offset = self._offset(self.mean[self.secret])
        if self.scenario.level == "dataset":
            slopes = matrix.sum(axis=1) @ slope
            yield (
                "the table",
                slopes,
                mean + slopes @ offset,
                whole - slopes @ known @ slopes.T / n,
            )
            return
        # records that the query weighs alike move it alike
        blocks, first = np.unique(
            matrix.transpose(1, 0, 2).reshape(n, -1), axis=0, return_index=True
        )
        for block, record in zip(blocks, first, strict=True):
            slopes = block.reshape(dim, -1) @ slope
            yield (
                f"record {record}",
                slopes,
                mean + slopes @ offset,
                whole - slopes @ known @ slopes.T,
            )

    def _offset(self, mean):
        """From the mean of the secret to the middle of its domain."""
        return np.zeros(len(mean)) if self.middle is None else self.middle - mean

    def _query_laws(self, release, norm):
        laws, secrets, pairs = [], [], []
        units = 1.0 if release.units is None else np.asarray(release.units)
        for name, slopes, mean, covariance in self._secrets(self._matrix(release)):
            covariance = (covariance + covariance.T) / 2
            for move in self._extremes(slopes / np.reshape(units, (-1, 1)), norm):
                half = slopes @ move / 2
                pairs.append((len(laws), len(laws) + 1))
                for sign in (-1, 1):
                    laws.append(Gaussian(mean + sign * half, covariance))
                    secrets.append((name, tuple((sign * move / 2).tolist())))
        return QueryLaws(
            laws=(tuple(laws),),
            secrets=tuple(secrets),
            pairs=tuple(pairs),
            assumptions=self.statements(),
        )

    def _extremes(self, slopes, norm):
        """Differences of secret values among which the output's move is largest."""
        if not isinstance(self.moves, float):
            return self.moves
        dim = len(slopes)
        if norm == 2:
            # the direction of the largest singular value
            directions = np.linalg.svd(slopes)[2][:1]
        elif math.isinf(norm):
            directions = slopes
        elif dim <= _MOST_CORNERS:
            signs = np.array(list(itertools.product([1.0, -1.0], repeat=dim)))
            directions = signs[: len(signs) // 2] @ slopes
        else:
            raise ScenarioError(
                f"The move of {dim} coordinates in the {norm:g}-norm over a ball is "
                "out of reach: use Gaussian noise, or shape='box'."
            )
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        return self.moves * directions / np.where(lengths > 0, lengths, 1.0)

    def _record_shifts(self, release, norm):
        move = self._moves_of(release)
        if move is None:
            return self._any_record()
        norm = release.shift_norm(norm)
        shifts = np.zeros(1)
        for gaps in self._gaps():
            # sorted, so that the largest of each rank covers every secret
            one = np.sort(np.asarray(move(gaps, norm), dtype=float))[::-1]
            if len(shifts) < len(one):
                shifts = np.pad(shifts, (0, len(one) - len(shifts)))
            shifts[: len(one)] = np.maximum(shifts[: len(one)], one)
        shifts = shifts[: max(1, int(np.count_nonzero(shifts)))]
        return RecordShifts(
            count=len(shifts),
            shift=float(shifts[0]),
            shifts=shifts,
            relation="replace",
            coupling_id=self._coupling(),
            assumptions=(
                *self.statements(),
                *getattr(release.contribution, "move_assumptions", ()),
            ),
        )

    def _coupling(self):
        """Name of the move of the whole table, which no release changes, or None.

        Whether two releases read the same columns is known by name only.
        """
        names = self.context.feature_names
        if names is None:
            return None
        key = [
            self.covariance,
            self.secret,
            self.moves,
            self.features,
            names,
            self.scenario.covariance_of,
            self.scenario.level,
            self.protected,
            self.context.n_records,
        ]
        return f"gaussian:{joblib.hash(key)}"

    def _any_record(self):
        one = not self.series and self.scenario.level == "record"
        count = 1 if one else self.context.n_records
        return RecordShifts(
            count=count,
            shift=math.inf,
            relation="replace",
            coupling_id=arbitrary_coupling("replace", count),
            assumptions=(
                *self.statements()[:1],
                "how far a record moves the release is not read off the covariance, "
                f"so {'it' if one else 'each record'} may become any other",
                f"the number of records ({self.context.n_records}) is public",
            ),
        )

    def statements(self):
        """What the scenario assumes of the data and the attacker, in sentences."""
        scenario, n = self.scenario, self.context.n_records
        what = "any one record's value"
        if scenario.level == "dataset":
            what = "the average over the table"
        elif self.series and len(self.protected) < n:
            what = f"the value of any one of {len(self.protected)} of the {n} records"
        domain = {
            "box": "values within the stated bounds",
            "ball": "values within the stated ball",
            "points": "the stated values",
        }[scenario.shape]
        columns = "" if scenario.secret is None else f" in {scenario.secret!r}"
        records = "independent Gaussian records of"
        if self.series:
            records = "records that are jointly Gaussian with"
        return (
            f"the secret is {what}{columns}; kept apart are {domain}",
            f"the table holds {n} {records} the stated covariance",
            f"the number of records ({n}) is public",
        )
