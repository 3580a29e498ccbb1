"""Weakly dependent records, at a stated W_inf distance from independent ones."""

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.facts import Fact, OutputSensitivity
from skpuffer.kernel.numbers import check_at_least_one, check_extent, check_option
from skpuffer.releases import PublicContext, convert_norm

from ._base import AnyRelease, BoundScenario, Scenario, offers

__all__ = ["DependenceScenario"]


class DependenceScenario(Scenario):
    """The secret is one record of a table of weakly dependent records.

    It suffices to bound how far dependence moves the query: if, given any value of a
    record, the query's distribution is within `distance` of what it would be for
    independent records with the same marginals, then two values of the record are at
    most ``2 * distance`` and the query's sensitivity to one record apart.

    Parameters
    ----------
    distance : float
        Bound, over all beliefs and secrets, on W_inf between the query's distribution
        given the secret and its distribution given the secret if records were
        independent with the same marginal distributions. In the units of the query's
        output: those of :class:`~skpuffer.summary.PrivateSummary` are counts where
        nothing else is asked for, and means otherwise.
    norm : float, default=2
        Norm of `distance`.
    pairs : {'same_index', 'all'}, default='same_index'
        Which secrets must look alike: two values of the same record, or also values of
        different ones, for which what a record moves counts twice.

    Notes
    -----
    The condition is about the query and cannot be checked here; the certificate states
    it. It never holds for Gaussian records that are dependent, whose distance from
    independent ones is infinite: use :class:`GaussianScenario`.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Proposition 6.1, which is about
    values of the same record; across records, two steps of one record lie between.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import DependenceScenario
    >>> release = QueryRelease(
    ...     query=lambda X, y: X.sum(),
    ...     n_records=100,
    ...     dim=1,
    ...     sensitivity=Sensitivity(add_remove={1: 1.0}, replace={1: 1.0}),
    ... )
    >>> scenario = DependenceScenario(distance=0.5)
    >>> GeneralWasserstein().calibrate(release, scenario).certificate.sensitivity
    2.0
    """

    def __init__(
        self, distance: float, norm: float = 2, pairs: str = "same_index"
    ) -> None:
        self.distance = distance
        self.norm = norm
        self.pairs = pairs

    def check(self) -> None:
        """Check the parameters; see the class."""
        distance = check_extent(distance=self.distance)
        if distance == float("inf"):
            raise ScenarioError(Statement("dependence.distance_infinite"))
        check_at_least_one(norm=self.norm)
        check_option(("same_index", "all"), pairs=self.pairs)

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        self.check()
        return _BoundDependence(self, context)


class _BoundDependence(BoundScenario):
    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        known = release.is_one_output and release.is_bounded
        return frozenset({OutputSensitivity} if known else ())

    @offers(OutputSensitivity)
    def _output_sensitivity(
        self, release: AnyRelease, norm: float
    ) -> OutputSensitivity:
        scenario = self.scenario
        assert release.sensitivity is not None  # or the fact is not on offer
        # across independent records: one record replaced (twice between two records)
        one = release.sensitivity.value("replace", norm, release.dim)
        # Triangle inequality for W_inf: to independent records, across, and back. In
        # units, a displacement grows at most as much as in the smallest one.
        distance = float(scenario.distance)
        if release.units is not None:
            distance /= min(release.units)
        distance = convert_norm(distance, float(scenario.norm), norm, release.dim)
        across = scenario.pairs == "all"
        which = (
            Statement("assume.values_any_two_records")
            if across
            else Statement("assume.values_one_record")
        )
        return OutputSensitivity(
            radius=2 * distance + (2 if across else 1) * one,
            coupling_id=None,
            assumptions=(
                Statement("assume.dependence_secret_any_record", which=which),
                Statement(
                    "assume.dependence_distance_bounded",
                    name=release.name,
                    distance=scenario.distance,
                    norm=scenario.norm,
                ),
                Statement(
                    "assume.dependence_count_public", n_records=self.context.n_records
                ),
            ),
        )
