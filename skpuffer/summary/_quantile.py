"""Private quantiles of columns, as exact as ranks allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.releases import SelectionRelease
from skpuffer.scenarios import LawsScenario
from skpuffer.utils._checks import check_positive, check_probability
from skpuffer.utils._sklearn import StrOptions

from ._mean import BoundedColumnsMixin
from ._rank_scores import MOST, RankScores, grid_size

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.noise import Noise
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import BoundsLike, Floats, RandomState

__all__ = ["PrivateQuantile"]


class PrivateQuantile(BoundedColumnsMixin, PrivateEstimatorMixin):
    """Quantiles of each feature, chosen by noisy ranks; the median by default.

    What leaves is a value for each quantile, chosen by how many records lie on the
    wrong side of it. Its error is about the logarithm of the range over epsilon, in
    ranks, so it falls with the number of records and with the budget. The value is the
    middle of one of 2**52 equal cells within the bounds, or a multiple of `resolution`.
    So its last digits say nothing of a record.

    Parameters
    ----------
    scenario : Scenario, default=None
        What is secret. None is one record, added or removed: differential privacy.
    accountant : Accountant, default=None
        How the loss is counted: :class:`~skpuffer.accountants.PrivacyLoss` or
        :class:`~skpuffer.accountants.RenyiDP`;
        :class:`~skpuffer.accountants.GroupPrivacy` for a pure promise
        (``alpha=float("inf"), noise="laplace"``); or
        :class:`~skpuffer.accountants.Best`, which asks these. Scores have noise of
        their own, Gumbel or exponential, whatever noise is asked for. None is (1,
        1e-5)-differential privacy by the first under a `RecordScenario`, the same
        numbers by the last otherwise.
    quantiles : float or array-like of float, default=0.5
        Levels in (0, 1). Of k levels of a feature, the choices cost what those of
        log2(k + 1) medians do, rounded up. Of many, :class:`PrivateCDF` may cost less.
    bounds : pair (low, high), dict of {column: (low, high)} or 'empirical', \
            default=None
        Public bounds of the features: numbers, or arrays of shape (n_features,), all
        lows before all highs; in a dict by name for a data frame, else by position.
        What lies outside is clipped. They may be wide: their logarithm counts. None
        takes the range the scenario declares (that of its public prior).
        ``'empirical'`` reads the range off the private data, warns, and leaves an
        estimate for a certificate.
    resolution : float or array-like of shape (n_features,), default=None
        Public distance of the values that a feature can have, from its lower bound: 1
        for whole numbers. One of these is released, whatever lies between them. None is
        for features whose values hardly ever repeat: between two neighbours of those
        that do, nothing says how many lie on either of them. A step that holds about
        two of the scale's ranks errs less than None, by an eighth; how wide that is
        depends on the density there, which is not public.
    schema : Schema, default=None
        Public code book of the table: raw columns are read by it, texts and gaps among
        them, and `bounds` are its own. See :class:`~skpuffer.schema.Schema`.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles, n_features) or (n_features,)
        Within the bounds, and of each feature in the order of the levels, as
        :func:`numpy.quantile` has them; of one dimension if `quantiles` is a number.
    certificate_ : Certificate
        What was promised, in which notion, under which assumptions.
    noise_ : GumbelNoise or ExponentialNoise
        The noise that was added to scores, in records.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map from raw columns to those that are read, whose names are
        ``feature_map_.names``; only with a `schema`.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    PrivateCDF : The whole distribution function at once, on a public grid.
    PrivateSummary : Quantiles by group and beside other statistics.

    Notes
    -----
    *Mechanism.* Between records it is the exponential mechanism (Gumbel noise on
    scores). On a resolution, a single quantile is chosen by permute-and-flip
    (exponential noise), which errs less at the same scale, wherever the accountant sets
    a scale that is about as small: for few features, or a pure promise.

    *Several quantiles* of one feature are chosen in rounds: the middle one first, then
    those on either side of it, each among the records between two that were chosen
    before. Records of one round are disjoint, so that it costs what one choice does,
    and the quantiles are in order. The difference of two of them, such as that between
    the quartiles, is private as they are. On a resolution, records of one multiple are
    told apart at random.

    *Quantiles near the ends* cost more where records are added or removed: the range of
    the scores is ``2 max(q, 1 - q)`` then, and two where one is replaced.

    References
    ----------
    Smith (2011), Privacy-preserving statistical estimation with optimal convergence
    rates, for the exponential mechanism over intervals between records; Kaplan, Schnapp
    and Stemmer (2022), Differentially private approximate quantiles, for rounds;
    McKenna and Sheldon (2020), for permute-and-flip.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.summary import PrivateQuantile
    >>> X = np.random.default_rng(0).normal(size=(100_000, 1))
    >>> quartiles = PrivateQuantile(quantiles=[0.25, 0.5, 0.75], bounds=(-1e3, 1e3))
    >>> found = quartiles.fit(X).quantiles_[:, 0]
    >>> bool(np.allclose(found, [-0.67, 0, 0.67], atol=0.02))
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "quantiles": ["array-like", float],
        "bounds": ["array-like", dict, StrOptions({"empirical"}), None],
        "resolution": ["array-like", float, int, None],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        quantiles: float | ArrayLike = 0.5,
        bounds: BoundsLike = None,
        resolution: float | ArrayLike | None = None,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.quantiles = quantiles
        self.bounds = bounds
        self.resolution = resolution
        self.schema = schema
        self.random_state = random_state

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        if isinstance(scenario, LawsScenario):
            raise ScenarioError(Statement("quantile.laws_for_scores"))
        levels = np.asarray(self.quantiles, dtype=object)
        if levels.ndim > 1 or levels.size == 0:
            raise ValueError(
                Statement("quantile.levels_out_of_range", quantiles=self.quantiles)
            )
        for q in levels.ravel().tolist():
            check_probability(quantiles=q)
        if self.resolution is not None:
            steps = np.asarray(self.resolution, dtype=object)
            if steps.ndim > 1:
                raise ValueError(
                    Statement("quantile.resolution_invalid", resolution=self.resolution)
                )
            for step in steps.ravel().tolist():
                check_positive(resolution=step)

    def _release(self, task: Task) -> SelectionRelease:
        context: Any = task.context
        bounds = self._public_bounds(task)
        if bounds is None:
            raise ValueError(Statement("quantile.bounds_missing"))
        # a level that is asked for twice is chosen once
        levels = tuple(np.unique(np.asarray(self.quantiles, float)).tolist())
        steps = self._resolutions(bounds)
        return SelectionRelease(
            n_records=context.n_records,
            scores=tuple(
                RankScores(position, levels, low, high, step)
                for position, (low, high, step) in enumerate(
                    zip(bounds.low, bounds.high, steps, strict=True)
                )
            ),
            name="quantiles",
            context=context,
            assumptions=(Statement("assume.values_clipped"),),
        )

    def _resolutions(self, bounds: Any) -> list[float | None]:
        """Distance of the candidates of each feature."""
        d = len(bounds.low)
        if self.resolution is None:
            return [None] * d
        given = np.asarray(self.resolution, dtype=float)
        if given.ndim and given.size != d:
            raise ValueError(
                Statement(
                    "quantile.resolution_count_differs", size=given.size, n_features=d
                )
            )
        steps = np.broadcast_to(given, d).tolist()
        for low, high, step in zip(bounds.low, bounds.high, steps, strict=True):
            size = grid_size(low, high, step)
            if not 2 <= size <= MOST:
                raise ValueError(
                    Statement(
                        "quantile.resolution_too_coarse"
                        if size < 2
                        else "quantile.resolution_too_fine",
                        step=step,
                        low=low,
                        high=high,
                        most=MOST,
                    )
                )
        return list(steps)

    def _execute(
        self, task: Task, release: Any, noise: Noise, rng: np.random.Generator
    ) -> Floats:
        chosen: Floats = release.choose(task.X, noise, rng)
        return chosen

    def _publish(self, value: Any, release: Any) -> None:
        levels = np.asarray(self.quantiles, dtype=float)
        chosen = value.reshape(len(release.scores), -1).T
        # in the order asked for, of which the release has each level once
        found = chosen[np.unique(levels.ravel(), return_inverse=True)[1]]
        self.quantiles_ = found if levels.ndim else found[0]
