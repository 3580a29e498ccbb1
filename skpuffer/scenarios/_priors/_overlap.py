"""Whether rows that are said to be public are those of the private table."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator

from skpuffer.exceptions import Statement
from skpuffer.kernel.noise import gaussian_mu
from skpuffer.kernel.numbers import Floats, check_positive, check_probability
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.privacy_loss._overlap import Overlap, OverlapCurve, amplified_budgets
from skpuffer.releases import PublicContext
from skpuffer.utils._reading import matching_names, to_pandas
from skpuffer.utils._sklearn import NestedParametersMixin

from ._coding import text_of
from ._tables import ReferenceTable


#: What is said of public rows, by who has them, that private records were taken for.
def holds_private_rows(subject: Statement) -> Statement:
    """Say of public rows that private ones are among them."""
    return Statement("prior.holds_private_records", subject=subject)


#: Steps that numbers are rounded to, in standard deviations of the public column. The
#: first tells rows apart, the second finds rows that were rounded or blurred.
_STEPS = (1e-4, 1e-2)

#: Least step, relative to the size of the numbers: six digits are kept of a copy.
_LEAST_STEP = 1e-5

#: Private rows that are looked for; of more every k-th one is.
_MOST_ROWS = 8192

#: Distinct rows whose shares no two tables have by chance.
_TELLING = 32

#: Texts that mean the same as a missing cell, or as a number.
_SPELT = {"true": "1", "false": "0", "none": "", "nan": "", "<na>": "", "nat": ""}

#: Cells of one column: numbers, and hashes of what is no number.
_Cells = tuple[Floats, Any]


def columns_of(table: Any, names: Any = None) -> dict[Hashable, pd.Series]:
    """Return the columns of a table by name."""
    if sparse.issparse(table):
        columns = table.tocsc()
        return {i: columns[:, [i]] for i in range(table.shape[1])}
    if isinstance(table, ReferenceTable):
        table = table._frame
    frame, named = to_pandas(table), matching_names(table)
    if named is None:
        named = tuple(range(frame.shape[1]) if names is None else names)
    return {name: frame.iloc[:, i] for i, name in enumerate(named)}


def prior_leaks(
    scenario: Any, X: Any, y: Any, secret: Any, target: Hashable | None
) -> tuple[Statement, ...]:
    """Return sentences if public rows of a scenario hold private records."""
    for table, column, declared in scenario.public_rows():
        target = target if declared is None else declared
        names = None
        if not table.named:
            # laid out as the data, which may lack the secret
            names = [name for name in table.columns if name != target]
            if X.shape[1] != len(names):
                names = [name for name in names if name != column]
            if X.shape[1] != len(names):
                continue
        mine = columns_of(X, names)
        for name, values in ((target, y), (column, secret)):
            if name is not None and values is not None and np.size(values) == len(X):
                mine[name] = values
        if shares_records(mine, columns_of(table), (column, target)):
            return (holds_private_rows(Statement("prior.subject_prior")),)
    return ()


def shares_records(
    private: Mapping[Hashable, Any],
    public: Mapping[Hashable, Any],
    apart: tuple[Any, ...] = (),
) -> bool:
    """Tell whether public rows hold private ones, more than chance explains.

    Raw rows are compared in the columns that both tables have: numbers after rounding,
    texts as they are spelt. A private row that is unique counts as found if it occurs
    among the public rows. Rows are compared with the columns in `apart` (the secret,
    the target) and without, and without columns of which no cell is in both tables.

    Notes
    -----
    The chance that honest tables share a unique row is estimated from how often rows of
    each table are found among its other rows: the geometric mean of the two bounds what
    independent draws of two laws share (Cauchy and Schwarz). Each counts three more
    coincidences than it saw, and the chance is at most 1.5 times that of the private
    table. If shuffled private columns are found more often (as in a grid of all
    values), that share is the chance. Rows are shared if those found exceed 1.25 times
    these odds by four standard deviations and by three in a hundred of the smaller
    table.

    The answer depends on private rows. It can only take a promise away. One record
    changes it only for tables at the threshold.
    """
    names = [name for name in private if name in public]
    plain = [name for name in names if name not in apart]
    if not plain:
        return False
    cells = {name: _cells(private[name], public[name]) for name in names}
    hashes = [
        {name: _hashes(cells[name], step, i) for i, name in enumerate(names)}
        for step in _STEPS
    ]
    # a column that is coded differently has no cell in both tables
    some = {name: (mine[:512], theirs) for name, (mine, theirs) in hashes[-1].items()}
    # the oldest NumPy has no table of hashes beyond int64
    alike = [name for name in names if np.isin(*some[name], kind="sort").any()]
    sets = [plain, alike, [name for name in plain if name in alike]]
    return any(
        _shared(
            [of[name][0] for name in one],
            [of[name][1] for name in one],
            is_whole=set(plain) <= set(one),
        )
        for of in hashes
        for one in dict.fromkeys(map(tuple, sets))
        if one
    )


def _shared(mine: list[Any], theirs: list[Any], is_whole: bool) -> bool:
    """Whether rows, given by the hashes of their cells, are shared."""
    own, times = np.unique(_sum(mine), return_counts=True)
    other, counts = np.unique(_sum(theirs), return_counts=True)
    # the same rows; of few distinct ones even honest tables have the same shares
    if is_whole and np.array_equal(own, other):
        often = counts / times
        if np.ptp(often) == 0 and (often[0] == 1 or len(own) >= _TELLING):
            return True
    alone = own[times == 1]
    if not len(alone):
        return False
    found = _among(alone, other).sum()
    # cheap, before anything is estimated
    if found < 3 or found < 0.03 * min(len(alone), len(other)):
        return False
    n, size = len(alone), len(other)
    ours = _twins(times, 0.5, size)
    public = _twins(counts, max(0.5, 1 - n / counts.sum()), size)
    chance = min(1.5 * ours, np.sqrt(ours * public))
    rng = np.random.default_rng(0)
    made_up = np.setdiff1d(_sum([rng.permutation(column) for column in mine]), own)
    if len(made_up):
        chance = max(chance, _among(made_up, other).mean())
    chance = min(1.0, 1.25 * chance / (1 + 0.25 * chance))
    beyond = found - n * chance - 4 * np.sqrt(n * chance * (1 - chance) + 1)
    return bool(beyond > 0.03 * min(n, size))


def _among(rows: Any, other: Any) -> Any:
    """Which rows are among others, which are sorted."""
    return other[np.searchsorted(other, rows) % len(other)] == rows


def _twins(counts: Any, share: float, size: int) -> float:
    """Chance that a row, unique in a part of a table, is among other rows."""
    unique = counts * share ** (counts - 1.0)
    twins = unique[counts > 1].sum() + 3
    other = -np.expm1(counts * np.log1p(-share)).sum() if share < 1 else len(counts)
    rate = twins / (unique.sum() + 3)
    return float(min(1.0, rate * max(1.0, size / other)))


def _cells(private: Any, public: Any) -> tuple[_Cells, _Cells]:
    """Numbers and hashes of texts of two columns, spelt alike."""
    pair = [_series(one) for one in (private, public)]
    if len(pair[0]) > _MOST_ROWS:
        pair[0] = pair[0].iloc[:: len(pair[0]) // _MOST_ROWS]
    try:
        # dates are spelt in many ways
        if any(pd.api.types.is_datetime64_any_dtype(one.dtype) for one in pair):
            pair = [
                pd.to_datetime(one, errors="coerce", utc=True, format="mixed")
                for one in pair
            ]
            pair = [one.dt.as_unit("us").astype("int64") for one in pair]
        return _read(pair[0]), _read(pair[1])
    except Exception:  # a cell may be anything, and must neither raise nor be quoted
        empty = [(np.zeros(len(one)), np.zeros(len(one), np.uint64)) for one in pair]
        return empty[0], empty[1]


def _series(column: Any) -> pd.Series:
    if sparse.issparse(column):
        column = column.toarray()
    if isinstance(column, pd.Series):
        column = column.reset_index(drop=True)
    else:
        column = pd.Series(np.asarray(column).ravel())
    # an object may be equal to any other, and raise whatever it is asked
    return column.map(text_of) if column.dtype == object else column


def _read(column: pd.Series) -> _Cells:
    if pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind != "c":
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
        return numbers, np.zeros(len(column), np.uint64)
    codes, levels = pd.factorize(column)
    # the last one is that of missing cells
    texts = [str(level).strip().lower() for level in levels] + [""]
    texts = [_SPELT.get(text, text) for text in texts]
    numbers = np.array([_number(text) for text in texts])
    hashes = pd.util.hash_array(np.array(texts, dtype=object), categorize=False)
    hashes[[not text for text in texts]] = 0
    return numbers[codes], hashes[codes]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _hashes(pair: tuple[_Cells, _Cells], step: float, place: int) -> list[Any]:
    """Hashes of the cells of two columns, of numbers as they are rounded."""
    public = pair[1][0]
    known = public[np.isfinite(public)]
    width = 0.0
    with np.errstate(all="ignore"):
        if len(known):
            width = max(step * known.std(), _LEAST_STEP * np.abs(known).mean())
        if not (np.isfinite(width) and width > 0):
            width = 1.0
        found = []
        for numbers, texts in pair:
            # off the middle, on which declared numbers often are
            cells = np.floor(numbers / width + 0.377) + 0.0
            hashes = np.where(np.isnan(numbers), texts, cells.view(np.uint64))
            # each bit of a cell must reach all of its hash, as rows are sums of these
            found.append(pd.util.hash_array(hashes + np.uint64(place)))
    return found


def _sum(columns: list[Any]) -> Any:
    """One hash for each row."""
    with np.errstate(over="ignore"):
        return np.add.reduce(columns)


# -- what may be believed of one record, given the value of a secret -------------------


class Belief(NestedParametersMixin, BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn is untyped
    """A possible belief about one record given the value of a secret.

    It holds parameters only. It is declared, and the promise is made to whoever
    believes it: nothing is learnt from the private rows.
    """

    @abstractmethod
    def check(self, scenario: Any = None) -> None:
        """Check the parameters by plain code; an error names the parameter."""

    @abstractmethod
    def overlap(self, scenario: Any = None) -> Overlap:
        """Return how far the record's distributions given two values overlap."""

    @abstractmethod
    def wider(self, scenario: Any = None) -> tuple[tuple[Statement, Overlap], ...]:
        """Return what would be so if the belief is off, each under a name."""

    @abstractmethod
    def statement(self) -> Statement:
        """Return the belief in a sentence, for the certificate."""

    @abstractmethod
    def speaks_of(self, scenario: Any, context: PublicContext) -> Statement | None:
        """Return of what of a record it speaks, the same for equal beliefs only.

        None if that is not known.
        """

    def check_covers(self, scenario: Any, context: PublicContext) -> None:
        """Refuse a table of which more is read than the belief speaks of."""
        return


# -- what a declared belief is worth, before anything is fitted ------------------------


def explained(
    overlap: Overlap,
    wider: Sequence[tuple[str, Overlap]],
    epsilon: ArrayLike,
    delta: float,
) -> pd.DataFrame:
    """Return what an overlap buys at each budget, under Gaussian noise."""
    delta = check_probability(delta=delta)
    budgets = [check_positive(epsilon=one) for one in np.atleast_1d(epsilon).tolist()]
    rows = []
    for budget in budgets:
        # the whole run is one number, mu, to which noise is inversely proportional
        mus = [gaussian_mu(*each) for each in amplified_budgets(overlap, budget, delta)]
        mu = min(mus, default=math.inf)
        curve = GaussianCurve(mu)
        rows.append(
            {
                "eta": max(overlap.etas(budget)),
                "gain": mu / gaussian_mu(budget, delta),
                "fallback": curve.epsilon(delta),
                **{
                    f"with {name}": OverlapCurve(curve, other).epsilon(delta)
                    for name, other in wider
                },
            }
        )
    return pd.DataFrame(rows, index=pd.Index(budgets, name="epsilon"))
