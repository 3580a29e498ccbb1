"""Fits whose bounds are released first: two releases under one certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from skpuffer._template._reading import read_table as read_rows
from skpuffer._template._reading import split_secret
from skpuffer._template._units import by_units, kept_rows, with_sizes
from skpuffer._template._weights import read_weights
from skpuffer.accountants._base import AUTO, check_order_or_delta
from skpuffer.accountants._budget_split import (
    common_scale,
    relative_noise,
    shares_of_least_error,
)
from skpuffer.base import scenario_and_accountant, unnoised_steps
from skpuffer.exceptions import Statement, unsupported_error
from skpuffer.kernel.draws import noise_generator
from skpuffer.privacy import compose
from skpuffer.releases import QueryRelease
from skpuffer.utils._reading import is_frame, is_lazy, read_table, to_pandas
from skpuffer.utils._silence import silence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skpuffer._template._plan import FitPlan
    from skpuffer.privacy import Certificate

    from ._private_bounds import PrivateBounds

#: What a certificate says of parts that are drawn from one seed.
_SEEDED = Statement("pipeline.seeded_noise_dependent")

#: What two certificates of one promise have in common, but for the curve.
_PROMISE = (
    "notion",
    "epsilon",
    "alpha",
    "delta",
    "event_delta",
    "mutual_information",
    "relation",
    "composable",
    "n_releases",
)

# Up to which a noise in units of the bounds is the one that was planned: scales are
# found by a search. And the part of an epsilon that is left, far above what a noise
# that is so much smaller costs.
_SAME, _LEFT = 1e-7, 1e-5


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The release of bounds, and the fit within them, each with its budget.

    Parameters
    ----------
    finder, model : private estimator
        Unfitted. The bounds of the model stand for any.
    certificate : Certificate
        Certificate of the model's release, for all bounds that may be found.
    plan : FitPlan
        Plan of the model, as a whole with the bounds.
    """

    finder: Any
    model: Any
    certificate: Certificate
    plan: FitPlan


def split_budget(
    estimator: Any, finder: PrivateBounds, plan: Callable[[Any, Any], FitPlan]
) -> Parts:
    """Split the budget of a fit between its bounds and the rest.

    Parameters
    ----------
    estimator : private estimator
        Estimator whose parameter `bounds` is the finder.
    plan : callable
        Returns the plan of one of both, with an accountant.
    """
    scenario, accountant = scenario_and_accountant(estimator)
    most = getattr(accountant, "epsilon", None)
    if most is None:
        name = type(accountant).__name__
        raise unsupported_error("bounds.finder_without_epsilon", accountant_type=name)
    parts = _parts_of(estimator, finder, scenario)
    given = [clone(accountant), clone(accountant)]
    if finder.accountant is not None:
        given[0] = clone(finder.accountant)
    at: dict[str, Any] = {"delta": getattr(accountant, "delta", None)}
    if at["delta"] is None:
        alpha = getattr(accountant, "alpha", None)
        at = {"alpha": check_order_or_delta(alpha, None)}

    def plans(epsilons: Sequence[float]) -> list[FitPlan]:
        if finder.accountant is None:
            given[0].set_params(epsilon=epsilons[0])
        given[1].set_params(epsilon=epsilons[1])
        with silence():
            return [plan(*pair) for pair in zip(parts, map(clone, given), strict=True)]

    def together(found: Sequence[FitPlan]) -> Certificate:
        return compose([replace(p.whole, seeded=False) for p in found], **at)

    half = [most / 2, most / 2]
    for one, found in zip(given, plans(half), strict=True):
        _keep_family(one, found)
    shares = _shares(finder, plans(half))

    def total(scale: float) -> float:
        cost = together(plans([scale * share for share in shares])).epsilon
        return np.inf if cost is None else float(cost)

    scale = common_scale(total, float(most) * (1 - _LEFT), shares)
    of_bounds, of_model = plans([scale * share for share in shares])
    whole = together([of_bounds, of_model])
    whole.refuse_above({"epsilon": ("epsilon", most)}, type(estimator).__name__)
    for part, one in zip(parts, given, strict=True):
        part.accountant = clone(one)
    return Parts(
        finder=parts[0],
        model=parts[1],
        certificate=of_model.certificate,
        plan=replace(of_model, whole=whole),
    )


def _keep_family(accountant: Any, plan: FitPlan) -> None:
    """Keep to the noise that is chosen, whatever the bounds are and the epsilon."""
    if (
        getattr(accountant, "noise", None) == AUTO
        and type(plan.release) is QueryRelease
    ):
        accountant.set_params(noise=plan.calibration.noise.family)


def _shares(finder: PrivateBounds, plans: Sequence[FitPlan]) -> list[float]:
    """Return in which proportion epsilons are, by expected error."""
    if finder.accountant is not None:
        # of a budget of its own nothing is scaled
        return [1e-9, 1 - 1e-9]
    return shares_of_least_error(
        [
            relative_noise(p.release, p.calibration.noise, p.certificate.sensitivity)
            for p in plans
        ]
    )


def _parts_of(estimator: Any, finder: PrivateBounds, scenario: Any) -> tuple[Any, Any]:
    """Return the finder and the estimator, each to be fitted by itself."""
    # without callbacks, which hear of the parts
    first, second = (
        clone(type(part)(**part.get_params(deep=False))) for part in (finder, estimator)
    )
    first.scenario, second.scenario = clone(scenario), clone(scenario)
    schema = getattr(estimator, "schema", None)
    if schema is not None:
        first.schema = schema if first.schema is None else first.schema
        second.bounds = None
    else:
        # any will do: noise is in proportion to them
        steps = getattr(estimator, "resolution", None)
        wide = 1000.0 * float(np.max(1.0 if steps is None else steps))
        second.bounds = (-wide, wide)
    rng, seeded = noise_generator(estimator.random_state)
    if seeded:
        first.random_state, second.random_state = rng.integers(2**31, size=2).tolist()
    return first, second


def plan_within(
    finder: PrivateBounds, estimator: Any, X: Any, y: Any, **public: Any
) -> FitPlan:
    """Return the plan of a fit to a table of which this is a made-up excerpt."""

    def planned(part: Any, accountant: Any) -> FitPlan:
        copy = clone(part)
        copy.accountant = accountant
        rows = _columns_of(estimator, X) if type(part) is type(finder) else X
        plan: FitPlan = copy._plan_unread(rows, y, **public)
        return plan

    return split_budget(estimator, finder, planned).plan


@dataclass(frozen=True, kw_only=True)
class _Given:
    """A table as a fit was given it, of which both parts read rows."""

    X: Any
    y: Any
    secret: Any
    groups: Any
    weights: Any
    units: Any
    feature_map: Any
    given: Any

    def read(self, part: Any, X: Any, weights: Any) -> tuple[Any, Any]:
        """Check the parameters of a part, and read its rows once for all plans."""
        part._validate_params()
        opening = part._opening(self.y)
        scenario, beside = opening.scenario, (self.groups, self.feature_map, self.given)
        table = read_rows(part, scenario, X, self.y, self.secret, *beside)
        table = by_units(part, scenario, table, self.units)
        if part._weight_bounds is not None or table.by_units:
            weighting = part._weighting(table.by_units)
            table = read_weights(weights, table, weighting, part._weight_bounds)
        return opening, table

    def fit(self, part: Any, X: Any, **more: Any) -> None:
        """Fit one of the parts."""
        beside = {"feature_map": self.feature_map, "given": self.given}
        part._fit_private(X, self.y, self.secret, self.groups, **beside, **more)


def _given(
    scenario: Any,
    rng: np.random.Generator,
    X: Any,
    y: Any,
    secret: Any,
    groups: Any,
    feature_map: Any,
    given: Any,
    weights: Any,
) -> _Given:
    """Drop rows beyond those that are kept of a unit, once for both parts."""
    given = X if given is None else given
    scenario = with_sizes(scenario, given, groups)
    X, y, secret, groups, weights, units = kept_rows(
        scenario, X, y, secret, groups, rng, weights, given
    )
    if feature_map is None:
        given = X if units is not None else given
        X, secret = split_secret(scenario, X, secret)
    return _Given(
        X=X,
        y=y,
        secret=secret,
        groups=groups,
        weights=weights,
        units=units,
        feature_map=feature_map,
        given=given,
    )


def fit_within(
    finder: PrivateBounds, estimator: Any, X: Any, y: Any, *beside: Any
) -> None:
    """Release bounds, then what is asked within them, and add both up."""
    if is_lazy(X):
        raise unsupported_error("bounds.finder_of_lazy")
    secret, groups, feature_map, approve, raw, weights = beside
    scenario, _ = scenario_and_accountant(estimator)
    rng, seeded = noise_generator(estimator.random_state)
    callback = estimator._init_callback_context(max_subtasks=2)
    callback.call_on_fit_task_begin(estimator=estimator)
    leaks = unnoised_steps()
    given = _given(scenario, rng, X, y, secret, groups, feature_map, raw, weights)
    narrow = _columns_of(estimator, given.X)
    tables: dict[bool, Any] = {}

    def planned(part: Any, accountant: Any) -> FitPlan:
        first = type(part) is type(finder)
        if first not in tables:
            of = (narrow, None) if first else (given.X, given.weights)
            tables[first] = given.read(part, *of)
        opening, table = tables[first]
        opening = replace(opening, accountant=accountant)
        plan: FitPlan = part._plan_fit(opening, table, None)
        return plan

    parts = split_budget(estimator, finder, planned)

    def fit(name: str, part: Any, table: Any, **more: Any) -> None:
        task = callback.subcontext(task_name=f"fit-{name}")
        with task.propagate_callback_context(part):
            task.call_on_fit_task_begin(estimator=estimator)
            given.fit(part, table, **more)
            task.call_on_fit_task_end(estimator=estimator)

    first = parts.finder
    fit("bounds", first, narrow)
    model = clone_with(parts.model, first)
    check = partial(_check_promise, parts.certificate, approve)
    fit("values", model, given.X, weights=given.weights, approve=check)
    _take_over(estimator, model, first)
    total = _total(parts.plan.whole, [first.certificate_, model.certificate_], leaks)
    if seeded:
        total = replace(total, seeded=True).as_estimate(_SEEDED)
    estimator.certificate_ = replace(total, errors=model.certificate_.errors)
    callback.call_on_fit_task_end(estimator=estimator)


def _columns_of(estimator: Any, X: Any) -> Any:
    """Return the columns of a data frame whose bounds are asked for."""
    chosen = getattr(estimator, "_bounded_columns", None)
    if chosen is None or estimator.schema is not None:
        return X
    table = read_table(X)
    if not is_frame(table):
        return X
    table = to_pandas(table)
    return table[[name for name in chosen(table) if name in table.columns]]


def clone_with(model: Any, finder: Any) -> Any:
    """Return a copy of an estimator with the bounds that were found."""
    copy = clone(model)
    if copy.schema is not None:
        copy.schema = finder.to_schema()
    else:
        copy.bounds = finder._pairs
    return copy


def _check_promise(planned: Certificate, approve: Any, found: FitPlan) -> None:
    """Refuse a release that promises something else than whatever bounds are found."""
    one, other = planned.to_dict(), found.certificate.to_dict()
    fields = [name for name in _PROMISE if one[name] != other[name]]
    if not _same(one["curve"], other["curve"]):
        fields.append("curve")
    if fields:
        raise unsupported_error("bounds.finder_changes_promise", fields=fields)
    if approve is not None:
        approve(replace(found, certificate=planned))


def _same(one: Any, other: Any) -> bool:
    """Whether two curves are of the same noise, each in units of its bounds."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        one, other = _in_units(one), _in_units(other)
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return bool(np.isclose(one, other, rtol=_SAME, atol=0.0))
    return bool(one == other)


def _in_units(curve: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a curve of noise and shift whose coordinates are in units of the shift."""
    shift, noise = curve.get("shift"), curve.get("noise")
    if not isinstance(shift, Mapping) or not isinstance(noise, Mapping):
        return curve
    weights, scale = shift.get("weights"), noise.get("scale")
    if weights is None or scale is None:
        return curve
    scale = np.divide(scale, weights).tolist()
    return {
        **curve,
        "shift": {**shift, "weights": 1.0},
        "noise": {**noise, "scale": scale},
    }


def _take_over(estimator: Any, model: Any, finder: Any) -> None:
    """Set the attributes of the fit within bounds that were found."""
    given = estimator.get_params(deep=False)
    for name, value in vars(model).items():
        if name not in given and "callback" not in name:
            setattr(estimator, name, value)
    estimator.found_bounds_ = finder._pairs
    estimator.accountant_ = scenario_and_accountant(estimator)[1]


def _total(
    planned: Certificate, parts: Sequence[Certificate], leaks: Sequence[Statement]
) -> Certificate:
    """Return what both promise together: an estimate, where a step before leaked."""
    if leaks or not all(part.certified for part in parts):
        for leak in leaks or (Statement("pipeline.accounting_depends_on_rows"),):
            planned = planned.as_estimate(leak)
        return planned
    at: dict[str, Any] = {"alpha": planned.alpha}
    if planned.alpha is None:
        at = {"delta": planned.delta}
    return compose([replace(part, seeded=False) for part in parts], **at)
