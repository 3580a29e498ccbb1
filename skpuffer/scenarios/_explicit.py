"""Output distributions given explicitly."""

from collections.abc import Sequence

from skpuffer.distributions._distributions import Distribution
from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.facts import Fact, OutputDistributions
from skpuffer.releases import PublicContext

from ._base import AnyRelease, BoundScenario, Scenario, offers

__all__ = ["LawsScenario"]


class LawsScenario(Scenario):
    """Pairs of distributions of the query's output that must look alike.

    Also the form of distribution privacy (Chen and Ohrimenko, 2023): a list of pairs
    of distributions the data may have been drawn from.

    Parameters
    ----------
    laws : list of (Distribution, Distribution)
        The output under the two secrets of a pair, under one prior; in the units of
        the output.

    References
    ----------
    Pierquin et al. (2024), Definition C.1 and Proposition C.3.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import LawsScenario
    >>> healthy = Discrete([0, 1, 2, 3], [8, 9, 20, 3])
    >>> infected = Discrete([1, 2, 3, 4], [3, 20, 9, 8])
    >>> scenario = LawsScenario([(healthy, infected)])
    >>> count = QueryRelease(query=lambda X, y: X.sum(), n_records=9, dim=1)
    >>> GeneralWasserstein().calibrate(count, scenario).certificate.sensitivity
    2.0
    """

    def __init__(self, laws: Sequence[tuple[Distribution, Distribution]]) -> None:
        self.laws = laws

    def check(self) -> None:
        """Check the parameters; see the class."""
        try:
            pairs = [tuple(pair) for pair in self.laws]
        except TypeError:
            pairs = []
        if not pairs or any(
            len(pair) != 2 or not all(isinstance(one, Distribution) for one in pair)
            for pair in pairs
        ):
            raise ScenarioError(Statement("laws.pairs_not_a_list"))
        try:
            for one in {one for pair in pairs for one in pair}:
                one.check()
        except ValueError as error:
            raise ScenarioError(
                Statement("laws.distribution_out_of_range", error=error)
            ) from None
        dims = {one.dim for pair in pairs for one in pair}
        if len(dims) > 1:
            raise ScenarioError(Statement("laws.dimensions_mixed", dims=sorted(dims)))

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        self.check()
        return _BoundLaws(self, context)


class _BoundLaws(BoundScenario):
    @property
    def _dim(self) -> int:
        dim: int = self.scenario.laws[0][0].dim
        return dim

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        if not release.is_one_output:
            return frozenset()  # given are the distributions of one output
        # said here, so that `supports` does not promise what a fit refuses
        if release.dim != self._dim:
            raise ScenarioError(
                Statement(
                    "laws.dimension_differs_from_release",
                    n_coordinates=self._dim,
                    name=release.name,
                    n_numbers=release.dim,
                )
            )
        return frozenset({OutputDistributions})

    @offers(OutputDistributions)
    def _output_distributions(
        self, release: AnyRelease, norm: float
    ) -> OutputDistributions:
        flat = tuple(one for pair in self.scenario.laws for one in pair)
        n = len(flat)
        return OutputDistributions(
            distributions=(flat,),
            # each distribution is a secret of its own, next to its partner
            secrets=tuple(range(n)),
            pairs=tuple((i, i + 1) for i in range(0, n, 2)),
            certified=all(one.certified for one in flat),
            assumptions=(
                Statement("assume.output_follows_given_laws", name=release.name, n=n),
            ),
        )

    def describe(self) -> str:
        return f"LawsScenario({len(self.scenario.laws)} pairs of distributions)"
