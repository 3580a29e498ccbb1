"""Plan of a private pipeline: what each step gets of one budget, before it is spent."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._plan import FitPlan
from skpuffer._template._preview import preview_of
from skpuffer._template._reading import split_secrets
from skpuffer._template._units import is_limited
from skpuffer.accountants._base import AUTO, check_order_or_delta, mean_square
from skpuffer.accountants._budget_split import (
    common_scale,
    relative_noise,
    shares_of_least_error,
)
from skpuffer.base import PrivateEstimatorMixin, scenario_and_accountant
from skpuffer.exceptions import (
    CompositionError,
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.privacy import Certificate, Preview, compose
from skpuffer.scenarios import RecordScenario
from skpuffer.utils._reading import as_table, is_frame, matching_names
from skpuffer.utils._silence import muted, silence
from skpuffer.utils._sklearn import VisualBlock

from ._delegation import inherit_tags
from ._feature_map import FeatureMap
from ._fixed_steps import Chain, as_read
from ._settled_steps import (
    AS_IT_IS,
    Flow,
    is_passed_over,
    settle_all,
    under,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.accountants import Accountant
    from skpuffer.utils._types import Array


#: What two certificates of one promise have in common: all but words and gains.
_PROMISE = (
    "notion",
    "epsilon",
    "alpha",
    "delta",
    "event_delta",
    "mutual_information",
    "confidence",
    "relation",
    "curve",
    "coupling_id",
    "coupling_count",
    "table",
    "n_records",
    "record",
    "composable",
    "n_releases",
)

#: Why steps with noise from a seed leave an estimate.
_SEEDED_STEPS = Statement("pipeline.seeded_noise_dependent")

#: Part of a budget that a split may leave before another one is looked for.
_UNSPENT = 0.01

#: How many made-up rows a private transformer is fitted to, to see what it returns.
_MADE_UP = 64


@dataclass(frozen=True, kw_only=True)
class PipelinePreview:
    """The release and promise of a pipeline, from public facts alone.

    Parameters
    ----------
    steps : dict of {str: Preview}
        Preview of each private step, by name.
    epsilons : dict of {str: float}
        Share of each in the budget.
    certificate : Certificate
        That of all of them together.

    Examples
    --------
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.compose import make_private_pipeline
    >>> from skpuffer.linear_model import PrivateRidge
    >>> from skpuffer.summary import PrivateStandardScaler
    >>> model = make_private_pipeline(
    ...     PrivateStandardScaler(bounds=(0, 100)),
    ...     PrivateRidge(target_bounds=(0, 1)),
    ...     accountant=PrivacyLoss(1.0, noise="gaussian"),
    ...     shares={"privatestandardscaler": 1, "privateridge": 1},
    ... )
    >>> preview = model.preview(10_000, n_features=5)
    >>> [round(epsilon, 2) for epsilon in preview.epsilons.values()]
    [0.68, 0.68]
    >>> round(preview.certificate.epsilon, 2)
    1.0
    """

    steps: Mapping[str, Preview]
    epsilons: Mapping[str, float]
    certificate: Certificate

    def __str__(self) -> str:
        lines = ["Preview of PrivatePipeline: nothing has been spent"]
        for name, step in self.steps.items():
            lines.append(f"  {name} ({step.estimator}), epsilon {self._epsilon(name)}")
            lines += [f"    {title:<6} {value}" for title, value in step._rows()]
        return "\n".join([*lines, str(self.certificate)])

    def _epsilon(self, name: str) -> str:
        return f"{self.epsilons[name]:.4g}" if name in self.epsilons else "none"

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td style='text-align:left'>{html.escape(text)}</td>"
                for text in (
                    name,
                    step.estimator,
                    self._epsilon(name),
                    *(value for _, value in step._rows()),
                )
            )
            + "</tr>"
            for name, step in self.steps.items()
        )
        head = "".join(
            f"<th style='text-align:left'>{title}</th>"
            for title in ("step", "estimator", "epsilon", "noise", "error")
        )
        return (
            "<table class='skpuffer-preview'>"
            "<caption style='text-align:left'><b>Preview of PrivatePipeline: nothing "
            f"has been spent</b></caption><tr>{head}</tr>{rows}</table>"
            f"{self.certificate._repr_html_()}"
        )


@dataclass(frozen=True)
class Unit:
    """One private step, as it is to be fitted.

    Parameters
    ----------
    estimator : private estimator
        A copy of the step, with what the pipeline gives it.
    is_fixed : bool
        Whether it keeps an accountant, and so a budget, of its own.
    """

    estimator: PrivateEstimatorMixin
    is_fixed: bool

    def with_budget(self, accountant: Accountant | None, epsilon: float | None) -> Any:
        """A copy that may spend so much, or what it was told itself."""
        copy: Any = clone(self.estimator)
        if not self.is_fixed:
            assert accountant is not None  # there is one where a step has none
            copy.accountant = clone(accountant).set_params(epsilon=epsilon)
        return copy


@dataclass(frozen=True)
class Budget:
    """The most that all steps of a pipeline may cost together.

    Parameters
    ----------
    accountant : Accountant or None
        None where each step has one of its own, and nothing is said of the whole.
    shares : dict of {str: float} or None
        Proportions of the epsilons of steps; None is by expected error.
    """

    accountant: Any
    shares: Mapping[str, float] | None

    @property
    def at(self) -> dict[str, Any]:
        """Where the composition is read, as arguments of :func:`compose`."""
        if self.accountant is None:
            return {}
        delta = getattr(self.accountant, "delta", None)
        if delta is not None:
            return {"delta": delta}
        alpha = getattr(self.accountant, "alpha", None)
        return {"alpha": check_order_or_delta(alpha, None)}

    def composed(self, certificates: Sequence[Certificate]) -> Certificate:
        """Return what several releases promise together.

        That is an estimate where noise came from a seed: composition needs independent
        noise, and what another fit drew from the seed may be the same.
        """
        fresh = [replace(c, seeded=False) for c in certificates]
        total = compose(fresh, **self.at)
        if any(c.seeded for c in certificates):
            total = replace(total, seeded=True).as_estimate(_SEEDED_STEPS)
        return total


@dataclass(frozen=True, kw_only=True)
class PipelinePlan:
    """The budget of each private step, and the promise of all together.

    Parameters
    ----------
    estimators : dict of {str: private estimator}
        Unfitted, each with its accountant.
    plans : dict of {str: FitPlan}
        The release that each would make.
    previews : dict of {str: Preview}
    copies : dict of {str: private estimator}
        Those that were planned, which know what is public of the table.
    """

    estimators: dict[str, Any]
    copies: dict[str, Any]
    plans: dict[str, FitPlan]
    certificate: Certificate
    previews: dict[str, Preview]

    @property
    def epsilons(self) -> dict[str, float]:
        """Budget of each step, where it is an epsilon."""
        return {
            name: float(one.accountant.epsilon)
            for name, one in self.estimators.items()
            if hasattr(one.accountant, "epsilon")
        }


def differing(planned: Certificate, found: Certificate) -> list[str]:
    """Return what two certificates promise differently, by field."""
    one, other = planned.to_dict(), found.to_dict()
    return [name for name in _PROMISE if one[name] != other[name]]


class _Planner:
    """Plans a step in place of fitting it; remembers how."""

    def __init__(
        self,
        units: Mapping[str, Unit],
        budget: Budget,
        y: Any,
        n_records: int,
        groups: Any,
        last: str,
        n_units: int | None,
    ) -> None:
        self.units, self.budget = units, budget
        self.y, self.n_records, self.groups = y, n_records, groups
        self.n_units = n_records if n_units is None else n_units
        self.last = last
        self.reads: dict[str, tuple[Any, FeatureMap | None]] = {}

    def __call__(self, name: str, node: Any, flow: Flow) -> Any:
        """Note where a private step's rows come from, and put a stand-in for it."""
        unit = self.units[name]
        scenario = unit.estimator.scenario
        # blocks of records are those of a scenario of their own; by exact type, as
        # another one may read its facts through the map
        kind = type(getattr(scenario, "scenario", scenario))
        if flow.released and kind not in (RecordScenario, type(None)):
            raise unsupported_error(
                "pipeline.scenario_of_raw_columns",
                name=name,
                released=list(flow.released),
                scenario_type=type(scenario).__name__,
            )
        features = flow.feature_map()
        if features is not None:
            features.check_by_record(flow.base)
        self.reads[name] = flow.base, features
        if name == self.last:
            return node
        return self._stand_in(name, flow)

    def _stand_in(self, name: str, flow: Flow) -> Any:
        """The step, fitted to made-up rows: only what columns it returns is asked."""
        accountant = self.budget.accountant
        whole = getattr(accountant, "epsilon", None)
        # nobody hears of it, not even a callback of the step's own
        copy = muted(self.units[name].with_budget(accountant, whole))
        if is_limited(copy.scenario):
            # of as many rows by themselves, as ids are not made up
            count = getattr(copy.scenario, "count", 1)
            single = {"unit": None, "max_rows": None, "sizes": "private", "k": count}
            known = copy.scenario.get_params(deep=False).keys() & single
            made = {name: single[name] for name in known}
            copy.scenario = clone(copy.scenario).set_params(**made)
        before = AS_IT_IS if flow.steps or flow.is_cut else None
        if before is not None:
            # between zero and one, where most functions have values
            rng = np.random.default_rng(0)
            X: Any = rng.uniform(size=(_MADE_UP, int(flow.rows.shape[1])))
        else:
            names = matching_names(flow.base)
            width = None if names is not None else int(flow.base.shape[1])
            X = copy._made_up(_MADE_UP, width, names, None)
        y = self.y
        if y is not None:
            places = np.arange(_MADE_UP) % len(y)
            y = y.iloc[places] if hasattr(y, "iloc") else np.asarray(y)[places]
        groups = None if self.groups is None else np.arange(_MADE_UP)
        with silence():
            return copy._fit_private(X, y, None, groups, feature_map=before)

    def planned(
        self, name: str, accountant: Accountant | None, epsilon: float | None
    ) -> tuple[Any, Any, FitPlan]:
        """Return a step with a budget, a copy that was planned, and its plan."""
        base, features = self.reads[name]
        estimator = self.units[name].with_budget(accountant, epsilon)
        copy = clone(estimator)
        by_units = is_limited(copy.scenario) and copy._reads_units()
        n_records = self.n_units if by_units else self.n_records
        with silence():
            plan = copy._plan_unread(
                base,
                self.y,
                n_records=n_records,
                groups=self.groups,
                feature_map=features,
            )
        return estimator, copy, plan


def plan_steps(
    steps: Sequence[tuple[str, Any]],
    units: Mapping[str, Unit],
    budget: Budget,
    flow: Flow,
    y: Any,
    n_records: int,
    groups: Any = None,
    n_units: int | None = None,
) -> PipelinePlan:
    """Split one budget among the private steps, before any of it is spent."""
    planner = _Planner(units, budget, y, n_records, groups, steps[-1][0], n_units)
    settle_all(steps, flow, planner)
    found = {
        n: planner.planned(n, None, None) for n, unit in units.items() if unit.is_fixed
    }
    free = [name for name, unit in units.items() if not unit.is_fixed]
    if free:
        found |= _split(planner, free, [plan.whole for _, _, plan in found.values()])
    wholes = [found[name][2].whole for name in units]
    certificate = wholes[0] if len(wholes) == 1 else budget.composed(wholes)
    if budget.accountant is not None and not free:
        _refuse_more(budget, wholes)
    return PipelinePlan(
        estimators={name: found[name][0] for name in units},
        copies={name: found[name][1] for name in units},
        plans={name: found[name][2] for name in units},
        certificate=certificate,
        previews={name: preview_of(*found[name][1:]) for name in units},
    )


def _refuse_more(budget: Budget, certificates: Sequence[Certificate]) -> None:
    """Refuse budgets of steps that are together above that of the pipeline."""
    total, most = budget.composed(certificates), float(budget.accountant.epsilon)
    if total.epsilon is None or total.epsilon > most * (1 + 1e-6):
        raise value_error(
            "pipeline.steps_over_budget", epsilon=total.epsilon, most=most
        )


def _split(
    planner: _Planner, free: Sequence[str], fixed: list[Certificate]
) -> dict[str, tuple[Any, Any, FitPlan]]:
    """Plan the steps that share what the budget leaves them."""
    accountant = planner.budget.accountant
    most = float(accountant.epsilon)
    if len(free) == 1 and not fixed:
        return {free[0]: planner.planned(free[0], accountant, most)}
    alone = _split_by(accountant, planner, free, fixed)
    families = {plan.calibration.noise.family for _, _, plan in alone.values()}
    if getattr(accountant, "noise", None) != AUTO:
        return alone
    is_gaussian = families == {"gaussian"}
    if is_gaussian and _spent(planner, alone, fixed) >= most * (1 - _UNSPENT):
        return alone
    try:
        gaussian = clone(accountant).set_params(noise="gaussian")
        together = _split_by(gaussian, planner, free, fixed)
    except ValueError:
        # a pure promise, say, which that family does not keep
        return alone
    errors = [_squared_error(plans, alone) for plans in (together, alone)]
    if is_gaussian and not all(map(math.isfinite, errors)):
        # of one family, what errs less is what spends more
        errors = [-_spent(planner, plans, fixed) for plans in (together, alone)]
    return together if errors[0] < errors[1] else alone


def _spent(
    planner: _Planner,
    plans: Mapping[str, tuple[Any, Any, FitPlan]],
    fixed: Sequence[Certificate],
) -> float:
    """Epsilon of all steps together."""
    parts = [plan.whole for _, _, plan in plans.values()]
    total = planner.budget.composed([*fixed, *parts]).epsilon
    # of a mutual information no epsilon is split, and none got here
    return math.inf if total is None else total


def _squared_error(
    plans: Mapping[str, tuple[Any, Any, FitPlan]],
    units: Mapping[str, tuple[Any, Any, FitPlan]],
) -> float:
    """Sum of squared errors, each relative to what the noise is added to.

    That is read off other plans of the same releases: families cover sensitivities in
    norms of their own. Infinite where one of them is not known.
    """
    total = 0.0
    for name, (_, _, unit) in units.items():
        release, noise = unit.release, unit.calibration.noise
        relative = relative_noise(release, noise, unit.certificate.sensitivity)
        if relative is None or noise.is_zero:
            return math.inf
        other = plans[name][2].calibration.noise
        dim = release.dim or 1
        total += relative**2 * mean_square(other, dim) / mean_square(noise, dim)
    return total


def _split_by(
    accountant: Any,
    planner: _Planner,
    free: Sequence[str],
    fixed: list[Certificate],
) -> dict[str, tuple[Any, Any, FitPlan]]:
    """Plan the steps that share a budget, each by a copy of one accountant."""
    budget = planner.budget
    most = float(accountant.epsilon)
    if budget.shares is None:
        probes = [
            planner.planned(name, accountant, most / len(free))[2] for name in free
        ]
        shares = shares_of_least_error(
            [
                relative_noise(
                    p.release, p.calibration.noise, p.certificate.sensitivity
                )
                for p in probes
            ]
        )
    else:
        whole = sum(budget.shares.values())
        shares = [budget.shares[name] / whole for name in free]
    if fixed and budget.composed(fixed).epsilon >= most:  # type: ignore[operator]
        raise value_error(
            "pipeline.nothing_left_for_steps", most=most, steps=list(free)
        )

    def at(scale: float) -> dict[str, tuple[Any, Any, FitPlan]]:
        pairs = zip(free, shares, strict=True)
        return {
            name: planner.planned(name, accountant, scale * share)
            for name, share in pairs
        }

    def total(scale: float) -> float:
        parts = [plan.whole for _, _, plan in at(scale).values()]
        epsilon = budget.composed([*fixed, *parts]).epsilon
        if epsilon is None:
            raise CompositionError(Statement("pipeline.information_not_split"))
        return epsilon

    return at(common_scale(total, most, shares))


def as_planned(name: str, plan: PipelinePlan | None) -> Any:
    """Refuse a release that is not the one which was planned."""
    if plan is None:
        return None
    planned = plan.plans[name].certificate

    def approve(found: FitPlan) -> None:
        other = differing(planned, found.certificate)
        if other:
            raise unsupported_error(
                "pipeline.step_promises_otherwise",
                name=name,
                fields=other,
                reasons=found.leaks
                or (Statement("pipeline.accounting_depends_on_rows"),),
            )

    return approve


# -- what is made of the fitted steps of a pipeline, all of it post-processing ---------


def flat_steps(steps: Any) -> Iterator[tuple[str, Any]]:
    """Steps, with those of nested pipelines in their place."""
    for name, node in steps:
        # one with a cache stays as it is, and is refused under its name
        cached = type(node) is Pipeline and (
            node.memory is not None or node.transform_input is not None
        )
        if type(node) is Pipeline and not cached:
            for part, one in flat_steps(node.steps):
                yield under(name, part), one
        else:
            yield name, node


def private_steps(steps: Any) -> Iterator[tuple[str, Any]]:
    """Private steps, at any depth."""
    for name, node in steps:
        if isinstance(node, PrivateEstimatorMixin):
            yield name, node
        # by exact type, as the steps are fitted
        parts: Any = ()
        if type(node) is Pipeline:
            parts = node.steps
        elif type(node) is FeatureUnion:
            parts = node.transformer_list
        elif type(node) is ColumnTransformer:
            parts = [pair[:2] for pair in node.transformers]
        yield from private_steps((under(name, part), one) for part, one in parts)


def check_names(pipeline: Any) -> None:
    for pair in pipeline.steps:
        good = isinstance(pair, tuple | list) and len(pair) == 2
        if not good or not isinstance(pair[0], str):
            raise value_error("pipeline.steps_not_named_pairs")
    if not pipeline.steps:
        raise value_error("pipeline.steps_empty")
    pipeline._validate_names([name for name, _ in pipeline.steps])
    pipeline._check_estimators_are_instances([step for _, step in pipeline.steps])


def step_or_slice(pipeline: Any, which: Any) -> Any:
    """Return a step, or a pipeline of some of them."""
    fitted = hasattr(pipeline, "steps_")
    steps = pipeline.steps_ if fitted else list(pipeline.steps)
    if not isinstance(which, slice):
        found = dict(steps)[which] if isinstance(which, str) else steps[which][1]
        return found
    if which.step not in (1, None):
        raise value_error("pipeline.slice_step_not_one")
    part = steps[which]
    if not fitted:
        return type(pipeline)(**{**pipeline.get_params(deep=False), "steps": part})
    return Pipeline(
        [
            (name, step if is_passed_over(step) else FrozenEstimator(step))
            for name, step in part
        ]
    )


def call_last(pipeline: Any, name: str, X: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a method of the last step on rows that went through the others."""
    check_is_fitted(pipeline)
    if name == "inverse_transform":
        for _, step in reversed(pipeline.steps_):
            if not is_passed_over(step):
                X = step.inverse_transform(X)
        return X
    fitted = [step for _, step in private_steps(pipeline.steps_)]
    raw = without_step_secrets(fitted, as_table(X), pipeline.n_features_in_)
    raw = pipeline._validate(raw, reset=False)
    *before, (_, last) = pipeline.steps_
    rows = Chain(
        [(n, step) for n, step in before if not is_passed_over(step)]
    ).transform(raw)
    if is_passed_over(last):
        return rows
    out = getattr(last, name)(as_read(last, rows), *args, **kwargs)
    # a private step behind others saw arrays, so names and index are set here
    if name == "transform" and is_frame(out) and isinstance(out, pd.DataFrame):
        out.columns = list(pipeline.get_feature_names_out())
        if isinstance(raw, pd.DataFrame):
            out.index = raw.index
    return out


def offers(pipeline: Any, name: str) -> bool:
    (*before, last) = (step for _, step in flat_steps(pipeline.steps))
    asked = [last]
    if name == "inverse_transform":
        asked += before
    if name == "set_output":
        # of what a 'transform' returns
        name = "transform"
    for step in asked:
        if is_passed_over(step) and name in ("transform", "inverse_transform"):
            continue
        getattr(step, name)  # raises its own AttributeError
    return True


def names_out(pipeline: Any, input_features: ArrayLike | None = None) -> Array:
    """Return the names of what `transform` returns, or the last step reads."""
    check_is_fitted(pipeline)
    steps = [pair for pair in pipeline.steps_ if not is_passed_over(pair[1])]
    if steps and not hasattr(steps[-1][1], "transform"):
        steps = steps[:-1]
    names: Any = input_features
    if names is None:
        names = getattr(pipeline, "feature_names_in_", None)
    if names is None:
        names = np.array(
            [f"x{i}" for i in range(pipeline.n_features_in_)], dtype=object
        )
    return Chain(steps).get_feature_names_out(names)


def visual_block(pipeline: Any) -> VisualBlock:
    """Return how scikit-learn draws a pipeline."""
    names, steps = zip(*pipeline.steps, strict=True)
    return VisualBlock(
        "serial",
        steps,
        names=[
            f"{name}: {step if is_passed_over(step) else type(step).__name__}"
            for name, step in pipeline.steps
        ],
        name_details=[str(step) for step in steps],
        dash_wrapped=False,
    )


def tags_of_steps(tags: Tags, steps: Any) -> Tags:
    """Fill the tags of a pipeline with those of its first and its last step."""
    steps = [step for _, step in flat_steps(steps) if not is_passed_over(step)]
    if not steps:
        return tags
    tags = inherit_tags(tags, steps[-1])
    first = get_tags(steps[0]).input_tags
    for name in ("allow_nan", "categorical", "string", "positive_only"):
        setattr(tags.input_tags, name, getattr(first, name))
    return tags


def split_step_secrets(
    steps: Iterable[Any], X: Any, secret: Any = None
) -> tuple[Any, Any]:
    """Raw rows without the secrets of the steps' scenarios, and their values."""
    scenarios = [scenario_and_accountant(step)[0] for step in steps]
    return split_secrets(scenarios, X, secret)


def without_step_secrets(steps: Iterable[Any], X: Any, width: int) -> Any:
    """Raw rows without the secrets, if they are there."""
    if matching_names(X) is None and getattr(X, "shape", ())[1:] == (width,):
        return X
    return split_step_secrets(steps, X)[0]
