"""Mixin of estimators of moments: public bounds of every feature."""

from dataclasses import replace

from skpuffer.exceptions import ScenarioError, UnsupportedError
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario, RecordScenario
from skpuffer.utils._bounds import (
    BOUNDS_LEAK,
    are_empirical,
    check_bounds,
    resolve_bounds,
)

from ._moments import Averages, Moments

__all__ = ["BoundedColumnsMixin"]


class BoundedColumnsMixin:
    """Mixin for estimators with the parameter `bounds` that release moments."""

    def _check_parameters(self, scenario):
        check_bounds(self.bounds)
        if self.bounds is None and isinstance(scenario, RecordScenario):
            raise UnsupportedError(
                f"{type(self).__name__} needs public bounds of the features: without, "
                "nothing says how far one record moves what is released. Give the "
                "parameter 'bounds', a pair (low, high) or a dict of {column: (low, "
                "high)}; or a scenario whose public prior declares them."
            )

    def _leaks(self):
        return (BOUNDS_LEAK,) if are_empirical(self.bounds) else ()

    def _moment_release(self, scenario, context, X, *, order, name, query):
        """The release of the moments up to an order: a sum, where bounds are known.

        Without bounds it is the query itself, whose output distributions the scenario
        has to know.
        """
        d, n = context.n_features, context.n_records
        bounds = resolve_bounds(self.bounds, d, scenario=scenario, context=context, X=X)
        context = replace(context, bounds=bounds)
        if bounds is not None and order > 1 and isinstance(scenario, LawsScenario):
            raise ScenarioError(
                "The parameter 'laws' of the scenario speaks of means and deviations, "
                "but with 'bounds' it is means and second moments that leave. Leave "
                "'bounds' out."
            )
        if bounds is None:
            return QueryRelease(
                query=query,
                linear=Averages(n, d) if order == 1 else None,
                n_records=n,
                dim=order * d,
                name=name,
                context=context,
            )
        moments = Moments(tuple(range(d)), bounds, order)
        return QueryRelease(
            contribution=moments,
            is_sum=True,
            factor=1 / n,
            units=moments.units,
            sensitivity=moments.sensitivity.of_sum(1 / n),
            n_records=n,
            dim=moments.dim,
            name=name,
            context=context,
            assumptions=("values outside the public bounds are clipped to them",),
        )
