"""Coefficients off noisy sums: solved for, in the units of the data, with errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._reading import without_secret
from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import check_option, check_probability
from skpuffer.summary._mean import check_independent, marks_of
from skpuffer.utils._reading import validate_rows

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Booleans, Floats, Indices
    from skpuffer.utils._bounds import Bounds
    from skpuffer.utils._types import Table


#: Eigenvalue of a noisy matrix, in deviations of its noise, with which coefficients
#: along its vector are known at all.
_KNOWN = 3.0

#: The same with which their errors are known too.
_SHARP = 6.0

#: Share of a coefficient that lies along a direction of which nothing is known, as a
#: square, from which nothing is said of it.
_TRACE = 0.01

#: Part of an error by which an interval is longer than noise and sampling make it, from
#: which it is marked as wide.
_WIDE = 0.5


@dataclass(frozen=True)
class Moments:
    """A noisy symmetric matrix of (1, columns, target), and how noise enters it.

    Parameters
    ----------
    products : ndarray of shape (width, width)
        Symmetric.
    size : float
        Noisy number of records, fit to divide by.
    noise : ndarray of shape (dim,)
        Deviations.
    which, row, column, share : ndarray
        The noise `which` is in the product of `row` and `column`, times `share`.
    """

    products: Floats
    size: float
    noise: Floats
    which: Indices
    row: Indices
    column: Indices
    share: Floats

    def times(self, vector: Floats) -> Floats:
        """Noise of the product with a vector: of each entry, of shape (dim, width)."""
        found = np.zeros((len(self.noise), len(vector)))
        part = self.share * vector[self.column] * self.noise[self.which]
        np.add.at(found, (self.which, self.row), part)
        return found

    def noise_along(self, vector: Floats, design: Floats) -> Floats:
        """Return the same in the coordinates of coefficients, of shape (dim, k)."""
        return self.times(vector)[:, :-1] @ design


@dataclass(frozen=True)
class Resolved:
    """A noisy matrix and its inverse, as far as noise lets it be known.

    Parameters
    ----------
    matrix, inverse : ndarray of shape (k, k)
        The inverse is that of a matrix whose unresolved eigenvalues are held large, so
        that coefficients along them stay small.
    lost : ndarray of shape (k, n)
        Directions in which nothing is known, orthonormal.
    resolution : float
        Smallest eigenvalue in deviations of its noise.
    is_lost, is_blurred : ndarray of bool of shape (k,)
        Coefficients of which nothing is known, and those with errors that are not known
        well: where noise makes the matrix large, they come out small.
    """

    matrix: Floats
    inverse: Floats
    lost: Floats
    resolution: float
    is_lost: Booleans
    is_blurred: Booleans


def resolve(moments: Moments, design: Floats) -> Resolved:
    """Return the matrix of the columns in the coordinates of coefficients."""
    A = design.T @ moments.products[:-1, :-1] @ design
    values, vectors = np.linalg.eigh(A)
    whole = np.vstack([design @ vectors, np.zeros(len(A))])
    spread = np.array([np.linalg.norm(moments.times(v) @ v) for v in whole.T])
    with np.errstate(divide="ignore"):
        resolution = np.where(spread > 0, values / spread, np.inf)
    lost = resolution < _KNOWN
    # slopes along what is not resolved are held small, so that predictions are
    values = np.where(lost, np.maximum(np.abs(values), _KNOWN * spread), values)
    return Resolved(
        matrix=A,
        inverse=(vectors / values) @ vectors.T,
        lost=vectors[:, lost],
        resolution=float(resolution.min()),
        is_lost=_along(vectors[:, lost]),
        is_blurred=_along(vectors[:, resolution < _SHARP]),
    )


def _along(vectors: Floats) -> Booleans:
    """Return which coefficients lie along some orthonormal vectors to some part."""
    found: Booleans = np.sum(vectors**2, axis=1) > _TRACE
    return found


@dataclass(frozen=True)
class Units:
    """Columns of a table that are coded as (value - middle) / half.

    Parameters
    ----------
    columns : list of int
    middle, half : ndarray of shape (k,)
    """

    columns: list[int]
    middle: Floats
    half: Floats

    def design(self, fit_intercept: bool) -> Floats:
        """Slopes of (1, coded columns) for coefficients of either kind."""
        if fit_intercept:
            return np.eye(len(self.middle) + 1)
        # slopes of raw columns, which are zero together
        return np.vstack([self.middle, np.diag(self.half)])

    def back(self, fit_intercept: bool) -> Floats:
        """Constant and slopes of the raw columns for those of the design."""
        k = len(self.middle)
        found = np.zeros((k + 1, k + fit_intercept))
        if fit_intercept:
            found[1:, 1:] = np.diag(1 / self.half)
            found[0] = [1.0, *(-self.middle / self.half)]
        else:
            found[1:] = np.eye(k)
        return found


@dataclass(frozen=True)
class CodedColumns:
    """Columns as they are summed: numbers in [-1, 1], levels as zeros and ones.

    Parameters
    ----------
    numbers : tuple of int
        Columns that are numbers.
    bounds : Bounds
        Bounds of these.
    levels : tuple of tuple of int
        Columns of zeros and ones, of which a record has at most one: a tuple for each
        category.
    """

    numbers: tuple[int, ...]
    bounds: Bounds
    levels: tuple[tuple[int, ...], ...]

    @property
    def columns(self) -> list[int]:
        """Columns of the table, in the order in which they are coded."""
        return [*self.numbers, *(at for block in self.levels for at in block)]

    @property
    def units(self) -> Units:
        """Units of the columns, levels as they are."""
        ones = np.ones(len(self.columns) - len(self.numbers))
        middle = np.concatenate([self.bounds.middle, 0 * ones])
        return Units(self.columns, middle, np.concatenate([self.bounds.half, ones]))

    def coded(self, X: Floats) -> Floats:
        """Return a one and the coded columns of each row, of shape (n, 1 + k)."""
        n_numbers = len(self.numbers)
        X = X[:, self.columns]
        found: Floats = np.column_stack(
            [
                np.ones(len(X)),
                self.bounds.normalise(X[:, :n_numbers]),
                np.clip(X[:, n_numbers:], 0.0, 1.0),
            ]
        )
        return found


def coded_columns(context: Any, bounds: Bounds) -> dict[str, Any]:
    """Return which columns are numbers, levels and marks, for a contribution."""
    marks = tuple(marks_of(context).values())
    levels = getattr(context.feature_map, "level_blocks", ())
    coded = {at for block in levels for at in block} | {*marks}
    numbers = tuple(at for at in range(len(bounds.low)) if at not in coded)
    return {
        "numbers": numbers,
        "bounds": bounds.select(numbers),
        # what all others are compared with has no column
        "levels": tuple(block[1:] for block in levels if len(block) > 1),
        "marks": marks,
    }


class CoefficientsMixin:
    """Mixin of linear models whose coefficients have errors, in the data's units."""

    fit_intercept: bool
    coef_: Floats
    intercept_: Any
    intercept_std_: Any
    n_complete_: float
    resolution_: float

    #: Resolution below which all intervals are wider than they need be.
    _sharp_from = -np.inf

    def _set_slopes(
        self,
        release: Any,
        units: Units,
        found: Any,
        means: Floats,
        scale: float = 1.0,
        shift: float = 0.0,
        beyond: Floats | float = 0.0,
        is_blurred: Booleans | bool = False,
    ) -> None:
        """Set coefficients and their errors, in the units of the data."""
        back = scale * units.back(self.fit_intercept)
        slopes = back @ found.slopes
        slopes[0] += shift if self.fit_intercept else 0.0
        names = self._column_names(release.context)  # type: ignore[attr-defined] # of its base
        self._places = np.array(units.columns, dtype=np.intp)
        self._names = ["intercept", *names[self._places].tolist()]
        lost = np.abs(back) @ found.is_lost > 0
        self._beyond = np.abs(back) @ np.broadcast_to(beyond, back.shape[1:])
        self._blurred = np.abs(back) @ np.broadcast_to(is_blurred, back.shape[1:]) > 0
        self._std_errors = {}
        for of, part in (
            ("table", found.of_noise),
            ("population", found.of_noise + found.of_sample),
        ):
            variances = np.diag(back @ part @ back.T)
            # below zero by rounding alone, where columns are as good as dependent
            unknown = lost | (variances < 0)
            spread = np.sqrt(np.maximum(variances, 0.0))
            self._std_errors[of] = np.where(unknown, np.inf, spread)
        means = units.middle + units.half * np.clip(means, -1, 1)
        at = {column: place for place, column in enumerate(units.columns)}
        marks = marks_of(release.context).items()
        self._means = {mark: (c, float(means[at[c]])) for c, mark in marks}
        spread = self._std_errors["table"]
        self.intercept_, self.intercept_std_ = float(slopes[0]), float(spread[0])
        self.coef_, self.coef_std_ = np.zeros((2, len(names)))
        self.coef_[self._places] = slopes[1:]
        self.coef_std_[self._places] = spread[1:]
        self.resolution_ = found.resolution

    def _scores(self, X: Table) -> Floats:
        """Return constant and slopes times columns; noisy means for what is missing."""
        check_is_fitted(self)
        X = validate_rows(self, without_secret(self, X), reset=False)
        X = np.array(X, dtype=float)
        for mark, (column, mean) in self._means.items():
            X[X[:, mark] > 0, column] = mean
        found: Floats = X @ np.ravel(self.coef_) + self.intercept_
        return found

    def confidence_interval(
        self, level: float = 0.95, *, of: str = "population"
    ) -> dict[str, tuple[Any, Any]]:
        """Return intervals around coefficients and constant; it costs no budget.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of each entry by itself, in (0, 1).
        of : {'population', 'table'}, default='population'
            Whether an interval is for the population of independent records, or for a
            fit without noise on this very table.

        Returns
        -------
        dict of {str: (low, high)}
            For `coef_` and `intercept_`. Infinite where the noise drowns the moments.

        Raises
        ------
        UnsupportedError
            If units have several rows, or records depend on each other ('population').
        """
        _, half = self._errors(level, of)
        of_coef = np.zeros_like(self.coef_)
        of_coef[..., self._places] = half[1:]
        constant, of_constant = self.intercept_, float(half[0])
        return {
            "coef_": (self.coef_ - of_coef, self.coef_ + of_coef),
            "intercept_": (constant - of_constant, constant + of_constant),
        }

    def _errors(self, level: float, of: str) -> tuple[Floats, Floats]:
        """Standard errors and half widths of the constant and of what is estimated."""
        check_is_fitted(self)
        check_option(("population", "table"), of=of)
        width = float(stats.norm.isf((1 - check_probability(level=level)) / 2))
        if of == "population":
            check_independent(self)
        spread: Floats = self._std_errors[of]
        return spread, width * spread + self._beyond

    def to_frame(self, level: float = 0.95, *, of: str = "population") -> pd.DataFrame:
        """Return the coefficients as a table, a row each, the constant first."""
        spread, half = self._errors(level, of)
        estimate = np.append(self.intercept_, np.ravel(self.coef_)[self._places])
        away = np.maximum(np.abs(estimate) - self._beyond, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            tested = 2 * stats.norm.sf(away / spread)
        blurred = self._blurred | (self.resolution_ < self._sharp_from)
        frame = pd.DataFrame(
            {
                "column": self._names,
                "statistic": "coefficient",
                "estimate": estimate,
                "std_error": spread,
                "low": estimate - half,
                "high": estimate + half,
                "p_value": tested,
                "n": getattr(self, "n_complete_", np.nan),
                "wide": blurred | ~(self._beyond <= _WIDE * spread) | np.isinf(spread),
            }
        )
        return frame if self.fit_intercept else frame[1:].reset_index(drop=True)

    def summary(self, level: float = 0.95, *, of: str = "population") -> str:
        """Return the coefficients, their errors and tests as a text to be printed."""
        found = self.to_frame(level, of=of)
        tail = f"{(1 - level) / 2:.3g}", f"{(1 + level) / 2:.3g}"
        table = pd.DataFrame(
            {
                "": found["column"].astype(str),
                "coef": found["estimate"],
                "std err": found["std_error"],
                "z": found["estimate"] / found["std_error"],
                "P>|z|": found["p_value"].map("{:.3f}".format),
                f"[{tail[0]}": found["low"],
                f"{tail[1]}]": found["high"],
            }
        )
        n = getattr(self, "n_complete_", None)
        heads = {} if n is None else {"Records": f"{n:,.0f}"}
        heads |= self._heads()
        heads["Errors"] = "sampling and noise" if of == "population" else "noise"
        lines = [f"{name + ':':<14}{text:>20}" for name, text in heads.items()]
        body = table.to_string(index=False, float_format="{:.4g}".format)
        return "\n".join([*lines, "", body, *_of_lost(found)])

    def _heads(self) -> dict[str, str]:
        """What a summary says of the whole fit."""
        return {}


def _of_lost(found: pd.DataFrame) -> list[str]:
    """Say of which coefficients nothing is known, if there are any."""
    columns = found["column"][np.isinf(found["std_error"])].tolist()
    if not columns:
        return []
    return ["", str(Statement("linear.moments_drown", columns=columns))]
