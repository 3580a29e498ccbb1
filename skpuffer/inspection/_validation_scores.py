"""Validation scores by budget: cross-validated, or read from a fitted search."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv, cross_validate
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel, delayed

from skpuffer.exceptions import SeededNoiseWarning, Statement, type_error, value_error
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import check_count, check_positive

from ._budget import budget_label, fallback_of, pick

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.utils._types import RandomState, Table


def check_budgets(epsilons: ArrayLike) -> Floats:
    """Return budgets as a sorted array without repetition."""
    values = [check_positive(epsilons=epsilon) for epsilon in np.ravel(epsilons)]
    if not values:
        raise value_error("inspection.epsilons_empty")
    return np.unique(values)


def cross_validated(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike | None,
    *,
    param_name: str,
    epsilons: Floats,
    reference: BaseEstimator | None,
    groups: ArrayLike | None,
    cv: Any,
    scoring: str | Callable[..., float] | None,
    n_repeats: int,
    n_jobs: int | None,
    verbose: int,
    params: Mapping[str, Any] | None,
    random_state: RandomState,
) -> tuple[Floats, Floats | None, str, Floats | None]:
    """Score an estimator at each budget, and its reference, on the same splits.

    Returns scores of shape (n_epsilons, n_repeats * n_splits), the ceiling, the axis
    label and, where a belief is declared, the largest epsilon at each budget whatever
    is believed.
    """
    # mistakes show themselves before the first of many fits
    n_repeats = check_count(n_repeats=n_repeats)
    _check_one_score(estimator, scoring)
    if reference is not None:
        _check_reference(reference, scoring)
    # parameters that do not fit together meet their error before any data is split
    private = [
        clone(estimator).set_params(**{param_name: e}) for e in epsilons.tolist()
    ]
    X, y, groups = indexable(X, y, groups)
    # as lists, so that every estimator meets the same splits, also shuffled ones
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    splits = list(splitter.split(X, y, groups))
    # repetitions draw noise anew on the same splits; the reference draws none
    draws = splits * n_repeats
    seeds = _seeds(private[0], random_state, len(draws))

    def task(
        model: Any,
        split: Any,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Any:
        return delayed(_one_score)(model, X, y, split, scoring, params, name)

    # one pool for all fits, so that no budget waits for another
    tasks = [
        task(clone(model).set_params(**seed), split, param_name, params)
        for model in private
        for seed, split in zip(seeds, draws, strict=True)
    ]
    if reference is not None:
        tasks += [task(reference, split) for split in splits]
    with warnings.catch_warnings():
        if random_state is not None:  # said once, by the display, not by every fit
            warnings.simplefilter("ignore", SeededNoiseWarning)
        results = Parallel(n_jobs=n_jobs, verbose=verbose)(tasks)

    n_private = len(private) * len(draws)
    shape = len(private), len(draws)
    scores = np.array([score for score, *_ in results])
    ceiling = None if reference is None else scores[n_private:]
    label = pick(label for _, label, _ in results[:n_private])
    held = [fallback for *_, fallback in results[:n_private]]
    fallbacks = None
    if None not in held:
        fallbacks = np.reshape(held, shape).astype(float).max(axis=1)
    return scores[:n_private].reshape(shape), ceiling, label, fallbacks


def _one_score(
    estimator: Any,
    X: Any,
    y: Any,
    split: Any,
    scoring: Any,
    params: Mapping[str, Any] | None,
    param_name: str | None,
) -> tuple[float, str | None, float | None]:
    """Fit and score on one split; name the axis from the certificate, if asked."""
    # scikit-learn's own fit and score, for routing, scorers and data frames
    result = cross_validate(
        estimator,
        X,
        y,
        cv=[split],
        scoring=scoring,
        params=params,
        error_score="raise",
        return_estimator=True,
    )
    if "test_score" not in result:
        raise ValueError(_ONE_SCORE)
    (fitted,) = result["estimator"]
    score = result["test_score"][0]
    if param_name is None:
        return score, None, None
    return score, budget_label(fitted, param_name), fallback_of(fitted, param_name)


_ONE_SCORE = Statement("inspection.one_score_wanted")


def _check_one_score(estimator: Any, scoring: Any) -> None:
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise value_error(
            "inspection.scoring_not_one_score", one_score=_ONE_SCORE, scoring=scoring
        )
    check_scoring(estimator, scoring=scoring)


def _check_reference(reference: Any, scoring: Any) -> None:
    if isinstance(reference, type) or not hasattr(reference, "fit"):
        raise type_error("inspection.reference_not_estimator", reference=reference)
    check_scoring(reference, scoring=scoring)


def _seeds(
    estimator: Any, random_state: RandomState, n_draws: int
) -> list[dict[str, int]]:
    """Return parameters that seed the noise of each split and repetition.

    The same for each budget, and different for each split: one seed for all would
    draw the same noise in all of them and hide its spread.
    """
    if random_state is None:
        return [{}] * n_draws
    names = [
        name for name in sorted(estimator.get_params(deep=True)) if _seeds_it(name)
    ]
    if not names:
        raise value_error(
            "inspection.no_random_state_to_seed",
            estimator_type=type(estimator).__name__,
        )
    rng, _ = noise_generator(random_state)
    table = rng.integers(np.iinfo(np.int32).max, size=(n_draws, len(names)))
    return [dict(zip(names, row, strict=True)) for row in table.tolist()]


def _seeds_it(name: str) -> bool:
    # a scenario's seed is that of its simulated tables, which are public
    *path, last = name.split("__")
    return last == "random_state" and "scenario" not in path


def searched(search: Any, param_name: str) -> tuple[Floats, Floats]:
    """Read budgets and scores from a fitted search.

    Scores are those of the candidate with the best mean at each budget.
    """
    results = search.cv_results_
    if f"param_{param_name}" not in results:
        raise value_error(
            "search.budget_not_searched",
            param_name=param_name,
            results=sorted(k[6:] for k in results if k.startswith("param_")),
        )
    # noise of one budget weighs more on a smaller sample
    if "n_resources" in results:
        raise value_error("search.successive_halving_not_comparable")
    metric = _metric(search)
    splits = range(search.n_splits_)
    scores = np.column_stack([results[f"split{i}_test_{metric}"] for i in splits])
    column = results[f"param_{param_name}"]
    used = ~np.ma.getmaskarray(column)  # a list of grids may leave the budget out
    values = np.asarray(np.ma.getdata(column)[used], dtype=float)
    scores = scores[used]
    if np.isnan(scores).any():
        raise value_error("search.fits_failed")
    # of candidates that differ in other parameters, the one a user would have chosen
    epsilons = np.unique(values)
    means = scores.mean(axis=1)
    best = [max(np.flatnonzero(values == e), key=means.__getitem__) for e in epsilons]
    return epsilons, scores[best]


def _metric(search: Any) -> str:
    """Name of the score that a search was refitted by."""
    if not search.multimetric_:
        return "score"
    if isinstance(search.refit, str):
        return search.refit
    raise value_error("search.several_scores_none_named")
