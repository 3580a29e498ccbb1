"""Base of private searches: plan, announce once, try, and keep the best."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skpuffer._template import RELEASING
from skpuffer._template._intervals import noise_error
from skpuffer._template._preview import _labels, _made_up_target
from skpuffer._template._units import is_limited, kept_rows
from skpuffer.accountants import Accountant, OverlapAmplification, PrivacyLoss
from skpuffer.base import (
    DEFAULT_DELTA,
    DEFAULT_EPSILON,
    all_or_nothing,
    announce,
    announce_weakness,
    refuse_arguments,
    unnoised_steps,
)
from skpuffer.compose import PublicPreprocessing
from skpuffer.compose._delegation import delegates, inherit_tags
from skpuffer.compose._settled_steps import declared_steps
from skpuffer.exceptions import Statement, scenario_error, type_error, value_error
from skpuffer.kernel.draws import noise_generator, spawned
from skpuffer.kernel.numbers import check_count, check_probability
from skpuffer.privacy import Preview
from skpuffer.privacy_loss import RandomRuns
from skpuffer.privacy_loss._repetition import LEAST_MEAN, MOST_RUNS, MOST_SHAPE
from skpuffer.scenarios import RecordScenario
from skpuffer.utils._listeners import carries_listeners, tell
from skpuffer.utils._reading import as_table, row_count
from skpuffer.utils._sklearn import (
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    linked_to_docs,
    safe_indexing,
)

from ._accounting import (
    Outcome,
    SearchPlan,
    Trying,
    best_outcome,
    check_accountant,
    plan_search,
    run_trials,
    trial_accountant,
)
from ._candidates import (
    Candidate,
    Reading,
    candidate_of,
    check_held_out,
    check_whole,
    innermost,
    read_part,
    targets_of,
    with_parameters,
)
from ._scores import Score, score_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.privacy import Certificate
    from skpuffer.utils._types import Array, Table


#: Shapes of the distribution of the number of trials, by name.
_SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": np.inf}

#: No distribution: every candidate once, which need not be secret.
_EACH = "each"

#: What is taken of the estimator's methods.
_OFFERED = frozenset(
    {"predict", "predict_proba", "predict_log_proba", "decision_function", "score"}
)

#: What every certificate of a search rests on.
ASSUMED: tuple[Statement, ...] = (
    Statement("assume.candidates_and_held_out_public"),
    Statement("assume.trial_errors_not_hidden"),
)

#: What one with a random number of trials rests on besides.
_UNTOLD = Statement("assume.number_of_trials_untold")

#: What is said of one that tries every candidate.
_EVERY = Statement("assume.every_candidate_fitted_once")

#: What is said of labels where none are declared.
_LABELS = Statement("assume.class_labels_public")


@dataclass(frozen=True, kw_only=True)
class _Table:
    """The two parts of a table, as every candidate reads them."""

    readings: tuple[Reading, ...]
    score: Score
    n_scored: int
    tryings: tuple[Trying, ...] = ()
    steps: tuple[Any, ...] = ()


@delegates
@carries_listeners
@linked_to_docs
class BasePrivateSearch(
    CallbackSupportMixin,  # type: ignore[misc] # scikit-learn is untyped
    MetaEstimatorMixin,  # type: ignore[misc] # scikit-learn is untyped
    BaseEstimator,  # type: ignore[misc] # scikit-learn is untyped
):
    """Base of private searches, which differ in where candidates come from."""

    estimator: Any
    accountant: Accountant | None
    n_trials: float | None
    trials: str | float
    scoring: str | None
    validation_fraction: float
    row_wise: Collection[str]
    n_jobs: int | None
    random_state: Any

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit"])],
        "accountant": [Accountant, None],
        "n_trials": [Interval(Real, 1, None, closed="neither"), None],
        "trials": [
            StrOptions({*_SHAPES, _EACH}),
            Interval(Real, 0, MOST_SHAPE, closed="both"),
        ],
        "scoring": [str, None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "row_wise": ["array-like", set, frozenset],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator],
    }

    #: What to do instead of passing an argument that `fit` does not take.
    _remedies = {
        "groups": "search.groups_in_column",
        "sample_weight": "search.weights_refused",
    }

    @abstractmethod
    def _candidates(self, rng: np.random.Generator) -> Sequence[Mapping[str, Any]]:
        """Return the parameters of all candidates, without a look at the table."""

    @abstractmethod
    def _usual_trials(self, n_candidates: int) -> float:
        """Return how many trials there are on average if nothing is said."""

    # -- fit --------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Table, y: ArrayLike | None = None, **refused: Any) -> Self:
        """Search, and release the best candidate.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            Private records. A column the scenario names as the secret is dropped.
        y : array-like of shape (n_records,), default=None
            Private target.
        **refused : dict
            Nothing else is taken: ids of units are a column of `X`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the data is not as it must be, or no trial came to a
            model.
        UnsupportedError
            If no promise about the search follows from those of its trials.
        """
        refuse_arguments(self, refused)
        fitted: Self = self._fit_validated(X, y)
        return fitted

    # the estimator inside validates its own parameters, whatever is said here
    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def _fit_validated(self, X: Any, y: Any) -> Self:
        fitted: Self = self._fit_private(X, y)
        return fitted

    @all_or_nothing
    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit_private(self, X: Any, y: Any) -> Self:
        accountant, runs_of = self._checked()
        rng, seeded = noise_generator(self.random_state)
        callback = self._init_callback_context(max_subtasks=1)
        callback.call_on_fit_task_begin(estimator=self)
        candidates, assumed = self._made_candidates(rng), ASSUMED
        scenario = innermost(candidates[0].estimator).scenario
        if is_limited(scenario) and scenario.unit is None:
            raise scenario_error("search.ids_without_column")
        X, y, *_ = kept_rows(scenario, X, y, None, None, rng)
        runs = runs_of(len(candidates))
        # all of the table by one of them: what is no table is refused in its words
        found = candidates[0].reading(X, y, rng if seeded else None)
        if y is None:  # of what needs none there is nothing to score by
            _score_for(self.scoring, found.inner)
        if not all(one.declares_labels for one in candidates):
            # of all of it, as a part may lack a class
            labels = found.inner.classes_
            candidates = [one.with_labels(labels) for one in candidates]
            assumed = (*assumed, _LABELS)
        table = self._read(candidates, accountant, X, y, rng, seeded)
        plan = plan_search(
            accountant, table.readings, table.score, table.n_scored, runs, rng
        )
        certificate = _stated(plan.certificate, runs, assumed)
        if seeded:
            certificate = certificate.as_seeded()
        leaks = unnoised_steps()
        for leak in leaks:
            certificate = certificate.as_estimate(leak)
        # before a ledger hears of it: where warnings are errors, nothing is spent
        announce_weakness(self, certificate, callback.root_uuid)
        announce(self, certificate, seeded, exact=False, leaks=leaks)
        # One release, whatever the number of trials: a ledger may refuse it here, and
        # hears of none of the fits.
        ledger = callback.subcontext(task_name="release")
        metadata = {"certificate": certificate}
        ledger.call_on_fit_task_begin(estimator=self, metadata=metadata)
        tell(self, metadata, ledger)
        outcomes = self._outcomes(table, plan, runs, rng, seeded)
        if runs is None:
            # of every candidate in turn; of one that raised an error there is none
            scores = [table.score.of_total(o.score, table.n_scored) for o in outcomes]
            self.scores_ = np.where(np.isfinite(scores), scores, np.nan)
        best = best_outcome(outcomes)
        if best.estimator is None:
            raise value_error("search.no_trial_succeeded", owner=type(self).__name__)
        self._publish_best(candidates, table, plan, best, certificate)
        self.accountant_ = accountant
        ledger.call_on_fit_task_end(estimator=self, metadata=metadata)
        callback.call_on_fit_task_end(estimator=self, metadata=metadata)
        return self

    def _outcomes(
        self,
        table: _Table,
        plan: SearchPlan,
        runs: RandomRuns | None,
        rng: np.random.Generator,
        seeded: bool,
    ) -> list[Outcome]:
        """Run the trials, of which one is going to be published."""
        ready = [
            replace(
                trying,
                estimator=with_parameters(trying.estimator, accountant=plan.accountant),
                planned=found.whole,
                noise=plan.noise,
            )
            for trying, found in zip(table.tryings, plan.plans, strict=True)
        ]
        drawn = list(range(len(ready)))
        if runs is not None:
            drawn = rng.integers(len(ready), size=runs.draw(rng)).tolist()
        states = spawned(rng, len(drawn)) if seeded else [None] * len(drawn)
        outcomes = run_trials(ready, drawn, states, self.n_jobs)
        if not all(outcome.as_planned for outcome in outcomes):
            # of public facts, as noise is: so this tells nothing of the rows
            raise RuntimeError(
                Statement("search.accounted_other_fits", owner=type(self).__name__)
            )
        return outcomes

    def _publish_best(
        self,
        candidates: Sequence[Candidate],
        table: _Table,
        plan: SearchPlan,
        best: Outcome,
        certificate: Certificate,
    ) -> None:
        candidate = candidates[best.candidate]
        # the model's own is that of a fit by itself, and the best of several tells more
        inner = best.estimator
        inner.certificate_ = certificate
        if isinstance(inner, PublicPreprocessing):
            inner.estimator_.certificate_ = certificate
        self.candidates_ = [dict(one.params) for one in candidates]
        self.best_params_ = dict(candidate.params)
        self.best_index_ = best.candidate
        score, n_scored = table.score, table.n_scored
        self.best_score_ = float(score.of_total(best.score, n_scored))
        std = float(np.max(plan.noise.std(1)))
        self.best_score_std_ = float(score.width(std, n_scored))
        self.best_estimator_ = candidate.whole(
            table.steps[best.candidate], best.estimator
        )
        self.noise_ = plan.noise
        self.certificate_ = certificate

    # -- its parts ----------------------------------------------------------------

    def _checked(self) -> tuple[Accountant, Any]:
        """Check the parameters, as plain code can; return the accountant and runs."""
        accountant = self.accountant
        if accountant is None:
            # of what is no private estimator it is said later
            scenario = getattr(innermost(_last(self.estimator)), "scenario", None)
            plain = scenario is None or isinstance(scenario, RecordScenario)
            kind = PrivacyLoss if plain else OverlapAmplification
            accountant = kind(DEFAULT_EPSILON, delta=DEFAULT_DELTA)
        if not isinstance(accountant, Accountant):
            raise type_error("search.accountant_wrong_type", accountant=accountant)
        check_accountant(accountant)
        check_probability(validation_fraction=self.validation_fraction)
        if self.n_jobs == 0:
            raise value_error("search.n_jobs_zero")
        if self.trials == _EACH and self.n_trials is not None:
            raise value_error("search.n_trials_with_each")

        def runs_of(n_candidates: int) -> RandomRuns | None:
            if self.trials == _EACH:
                return None
            mean = self.n_trials
            if mean is None:
                mean = self._usual_trials(n_candidates)
            if not LEAST_MEAN <= mean <= MOST_RUNS:
                raise value_error(
                    "search.n_trials_out_of_range", n_trials=self.n_trials
                )
            trials = self.trials
            shape = _SHAPES[trials] if isinstance(trials, str) else trials
            return RandomRuns(float(mean), float(shape))

        return clone(accountant), runs_of

    def _made_candidates(self, rng: np.random.Generator) -> list[Candidate]:
        """Return the candidates, none of which has seen the table."""
        params = self._candidates(rng)
        if not params:
            raise value_error("search.grid_empty")
        declared = tuple(declared_steps(self.row_wise))
        made = [candidate_of(self.estimator, one, declared) for one in params]
        there = {name for one in made for name, _ in one.steps}
        if not {*declared} <= there:
            raise value_error(
                "search.row_wise_steps_unknown",
                unknown=sorted({*declared} - there, key=str),
                there=sorted(there),
            )
        return made

    def _held_out(self, n_records: int) -> int:
        """Return how many records are held out."""
        held = round(self.validation_fraction * n_records)
        if not 1 <= held < n_records:
            raise value_error(
                "search.validation_part_empty", held=held, n_records=n_records
            )
        return held

    def _read(
        self,
        candidates: Sequence[Candidate],
        accountant: Accountant,
        X: Any,
        y: Any,
        rng: np.random.Generator,
        seeded: bool,
    ) -> _Table:
        """Read both parts of the table by every candidate.

        What is refused is refused here, whichever of them is going to be tried.
        """
        X, y = _by_rows(X), _by_rows(y)
        n_records = row_count(X)
        held = self._held_out(n_records)
        order = rng.permutation(n_records)
        parts = np.sort(order[held:]), np.sort(order[:held])
        X_fit, X_held = (safe_indexing(X, part) for part in parts)
        y_fit, y_held = (safe_indexing(y, part) for part in parts)
        # by which an estimator knows whether its noise can be drawn again
        random_state = rng if seeded else None
        first = trial_accountant(accountant, float(accountant.epsilon))
        readings, tryings, steps = [], [], []
        score = None
        for candidate in candidates:
            made, X_read = candidate.fitted_steps(X_fit)
            candidate.check_by_record(made, X_fit)
            X_scored = candidate.mapped(made, X_held)
            reading = read_part(candidate.estimator, X_read, y_fit, random_state)
            scored = read_part(candidate.estimator, X_scored, y_held, random_state)
            # rows that the scenario rules out are refused by either part's plan
            planned = reading.plan(first)
            check_held_out(scored, planned)

            def whole(candidate: Candidate = candidate, made: Any = made) -> Reading:
                rows = candidate.mapped(made, X)
                return read_part(candidate.estimator, rows, y, random_state)

            check_whole(whole, planned)
            if score is None:
                score = _score_for(self.scoring, reading.inner)
            tryings.append(
                Trying(
                    estimator=candidate.estimator,
                    X_fit=X_read,
                    y_fit=y_fit,
                    X_score=X_scored,
                    y_score=targets_of(scored.inner, y_held),
                    score=score,
                )
            )
            # from here on nobody sees rows before the noise is known
            readings.append(reading.unread())
            steps.append(made)
        assert score is not None  # of at least one candidate
        return _Table(
            readings=tuple(readings),
            score=score,
            n_scored=held,
            tryings=tuple(tryings),
            steps=tuple(steps),
        )

    # -- a preview: the same, without the rows ------------------------------------

    def preview(
        self,
        n_records: int,
        *,
        n_features: int | None = None,
        feature_names: Sequence[str] | None = None,
        example: Table | None = None,
        classes: ArrayLike | None = None,
        target_name: str | None = None,
    ) -> Preview:
        """Return the noise of scores and the certificate of a search, before any.

        `fit` draws candidates anew from distributions, unless `random_state` is a seed.

        Parameters
        ----------
        n_records : int
            Number of records of the table, with those held out.
        n_features : int, default=None
            Number of its columns, with a secret one.
        feature_names : sequence of str, default=None
            Names of its columns.
        example : {array-like, data frame} of shape (n, n_columns), default=None
            Public or made-up rows with the columns and types of the table.
        classes : array-like, default=None
            Class labels of a classifier, where it does not declare them.
        target_name : str, default=None
            Name of the target, where a scenario needs it.

        Returns
        -------
        Preview
            With the noise on the sum of a score, and the deviation of `best_score_`.
        """
        n_records = check_count(n_records=n_records)
        accountant, runs_of = self._checked()
        # a copy of a generator, so that a fit afterwards draws what it would have drawn
        random_state = clone(self.random_state, safe=False)
        rng, seeded = noise_generator(random_state)
        candidates, assumed = self._made_candidates(rng), ASSUMED
        labels = _labels(innermost(candidates[0].estimator), classes)
        if labels is not None and not all(one.declares_labels for one in candidates):
            candidates = [one.with_labels(labels) for one in candidates]
            assumed = (*assumed, _LABELS)
        runs = runs_of(len(candidates))
        held = self._held_out(n_records)
        n_rows = 2 if labels is None else max(2, len(labels))
        told = {
            "n_features": n_features,
            "feature_names": feature_names,
            "example": example,
        }
        readings = []
        for candidate in candidates:
            inner = innermost(candidate.estimator)
            X = candidate.made_up(n_rows, told)
            y = _made_up_target(inner, n_rows, labels, target_name)
            reading = read_part(
                candidate.estimator, X, y, rng if seeded else None, made_up=True
            )
            readings.append(reading.unread(n_records - held))
        score = _score_for(self.scoring, readings[0].inner)
        plan = plan_search(accountant, readings, score, held, runs, rng)
        certificate = _stated(plan.certificate, runs, assumed)
        if seeded:
            certificate = certificate.as_seeded()
        announce_weakness(self, certificate)
        error = noise_error(plan.release, plan.noise)
        return Preview(
            estimator=type(self).__name__,
            noise=plan.noise,
            certificate=certificate,
            error=error,
            std={"best_score_": score.width(float(np.max(plan.noise.std(1))), held)},
        )

    # -- prediction: post-processing ------------------------------------------------

    def _offers(self, name: str) -> bool:
        if name not in _OFFERED:
            raise AttributeError(
                Statement(
                    "search.attribute_missing", owner=type(self).__name__, name=name
                )
            )
        getattr(self.estimator, name)  # raises its own AttributeError
        return True

    def _call(self, name: str, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the best estimator."""
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X, *args, **kwargs)

    @property
    def classes_(self) -> Array:
        """Public class labels of the best estimator."""
        check_is_fitted(self)
        classes: Array = self.best_estimator_.classes_
        return classes

    @property
    def n_features_in_(self) -> int:
        """Number of features, the secret column not counted."""
        check_is_fitted(self)
        count: int = self.best_estimator_.n_features_in_
        return count

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, if the data had names that are all strings."""
        check_is_fitted(self)
        names: Array = self.best_estimator_.feature_names_in_
        return names

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "certificate_")

    def __sklearn_tags__(self) -> Tags:
        tags = inherit_tags(super().__sklearn_tags__(), self.estimator)
        theirs = get_tags(self.estimator).input_tags
        for name in ("allow_nan", "categorical", "string", "positive_only", "sparse"):
            setattr(tags.input_tags, name, getattr(theirs, name))
        return tags


RELEASING.append(BasePrivateSearch)


def _stated(
    certificate: Certificate,
    runs: RandomRuns | None,
    assumed: Sequence[Statement],
) -> Certificate:
    """Return the certificate of a search with what it rests on besides its trials."""
    if runs is None:
        return certificate.assuming(*assumed, _EVERY)
    law = next(
        (name for name, shape in _SHAPES.items() if shape == runs.shape),
        Statement("assume.law_negative_binomial", shape=runs.shape),
    )
    number = Statement(
        "assume.number_of_trials_drawn_secretly", law=law, mean=runs.mean
    )
    return certificate.assuming(*assumed, _UNTOLD, number)


def _score_for(scoring: str | None, inner: Any) -> Score:
    """Return the score of a private estimator that has read a part of the table."""
    bounds = getattr(inner, "target_bounds", None)
    if inner.schema is not None and inner.schema.target_bounds is not None:
        bounds = inner.schema.target_bounds
    return score_of(scoring, inner, getattr(inner, "classes_", None), bounds)


def _last(estimator: Any) -> Any:
    """Return the last step of a pipeline, or what is none."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _by_rows(table: Any) -> Any:
    """Return a table, or a target, that can be taken apart by rows."""
    if hasattr(table, "tocsr"):
        return table.tocsr()
    return table if hasattr(table, "shape") else as_table(table)
