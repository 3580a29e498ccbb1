"""Conformance checks of private estimators, next to scikit-learn's own checks.

Run them on an estimator of your own:

>>> from skpuffer.linear_model import PrivateLogisticRegression
>>> from skpuffer.testing import check_private_estimator
>>> check_private_estimator(PrivateLogisticRegression())
"""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import sys
import warnings
from contextlib import contextmanager
from functools import partial
from typing import Any

import joblib
import numpy as np
from scipy.stats import chi2
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skpuffer.accountants import PrivacyLoss
from skpuffer.base import FLOATING_POINT, UNTOUCHED_ROWS
from skpuffer.exceptions import PrivacyWarning, SeededNoiseWarning
from skpuffer.kernel.run import CHOSEN_ON_GRID, ON_GRID, SUMS_ON_GRID
from skpuffer.noise import Noise
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    QueryRelease,
    SelectionRelease,
    VoteRelease,
)

from ._canaries import NUMBER, TEXT, listen, reachable, sings
from ._suite import Check, run_all


def _data(seed=0, n=60):
    """Small numeric data with a binary target."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1  # both classes are there, whatever was drawn
    return X, y


def _arguments(estimator, seed=0):
    X, y = _data(seed)
    return (X, y) if get_tags(estimator).target_tags.required else (X,)


def _parameter(estimator, name):
    """Full name of the one nested parameter called `name`."""
    found = [
        key
        for key in estimator.get_params(deep=True)
        if key == name or key.endswith(f"__{name}")
    ]
    assert found, f"{type(estimator).__name__} has no parameter {name!r}"
    # of the outermost estimator that has it
    return min(found, key=len)


def _set(estimator, **params):
    """A clone with parameters set wherever they are nested."""
    fresh = clone(estimator)
    return fresh.set_params(**{_parameter(fresh, k): v for k, v in params.items()})


@contextmanager
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def _fit(estimator, seed=0):
    with _quiet():
        return estimator.fit(*_arguments(estimator, seed))


def _private_part(estimator):
    """The estimator whose `_publish` receives the noisy vector: itself, or inside."""
    if hasattr(estimator, "_publish") or _is_search(estimator):
        return estimator
    return estimator.get_params(deep=True)["estimator"]


def _is_search(estimator):
    """Whether what it publishes is the best of several fits, by its noisy score."""
    return hasattr(estimator, "_publish_best")


class _Drawn:
    """A noise that keeps what is drawn of it."""

    def __init__(self, noise: Noise) -> None:
        self._noise, self.values = noise, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._noise, name)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        drawn = self._noise.sample(shape, rng)
        self.values.append(np.ravel(drawn))
        return drawn


def _recording(estimator):
    """A clone that keeps the noisy vector it published, and the noise of its steps."""
    # A subclass, made on the fly: it sees what the template passes between its hooks,
    # so that the check holds for any estimator that is fitted by it.
    part = clone(_private_part(estimator))

    if _is_search(part):

        class Searching(type(part)):
            def _publish_best(self, candidates, table, plan, best, certificate):
                super()._publish_best(candidates, table, plan, best, certificate)
                self.published = np.array([best.score])

        Searching.__name__ = type(part).__name__
        return Searching(**part.get_params(deep=False))

    class Recording(type(part)):
        def _execute(self, task, release, noise, rng):
            if isinstance(release, AdaptiveRelease):
                drawn = _Drawn(noise)
                value = super()._execute(task, release, drawn, rng)
                # all that was accounted for, in units of the stages
                self.stage_draws = np.concatenate(drawn.values)
                assert self.stage_draws.size == release.dim
                return value
            if isinstance(release, SelectionRelease):
                drawn = _Drawn(noise)
                value = super()._execute(task, release, drawn, rng)
                # a choice, and noise of its own for each candidate
                assert len(drawn.values) == release.dim
                self.stage_draws = np.concatenate(drawn.values)
                return value
            if isinstance(release, QueryRelease):
                return super()._execute(task, release, noise, rng)
            self._record = []
            return super()._execute(task, release, noise, rng, record=self._record)

        def _publish(self, value, release):
            super()._publish(value, release)
            if isinstance(release, VoteRelease):
                # teachers that answer later: what they say of some public rows
                asked = hasattr(self, "noisy_votes_")
                rows = _data(seed=2)[0]
                value = self.noisy_votes_ if asked else self.noisy_votes(rows)
            self.published = np.array(value)
            if hasattr(self, "_record"):
                self.noise_draws = np.array([step.noise for step in self._record])

    Recording.__name__ = type(part).__name__
    return Recording(**part.get_params(deep=False))


def check_noise_is_of_the_certified_scale(
    estimator: BaseEstimator, n_fits: int = 40
) -> None:
    """Noise of every released vector has the scale that was certified.

    The spread is over fits, or over the steps of a training run or the answers of a
    vote, of which there must be as many as were accounted.
    """
    # One fit of a query draws one vector, a training run or a vote many: gather as many
    # draws, each in units of the standard deviation that was certified.
    values = []
    for _ in range(n_fits):
        fresh = _fit(_recording(_set(estimator, random_state=None)))
        # a query is one draw a fit, and so are stages in turn
        once = getattr(fresh, "stage_draws", fresh.published)
        draws = getattr(fresh, "noise_draws", once[None])
        values.extend(draws / fresh.noise_.std(draws.shape[1]))
        if hasattr(fresh, "noise_draws"):
            assert len(draws) == _n_noisy(fresh)
            if len(values) >= n_fits:
                break
        # of long vectors fewer fits say as much
        if len(values) >= 8 and (len(values) - 1) * len(values[0]) >= 10 * n_fits:
            break
    values = np.array(values)
    # the same data each time, so that what is left after centring is noise
    centred = values - values.mean(axis=0)
    degrees = (len(values) - 1) * values.shape[1]
    # Laplace noise has heavier tails than the Gaussian the chi-square test assumes, so
    # the margin is wide
    total = np.sum(centred**2)
    low, high = chi2.ppf([1e-7, 1 - 1e-7], degrees)
    assert 0.7 * low < total < 1.4 * high, (
        f"the published vectors spread {np.sqrt(total / degrees):.3g} times the noise "
        "the certificate rests on"
    )


def _n_noisy(fitted):
    """Number of noisy vectors that the release accounted for."""
    release = fitted.release_
    if isinstance(release, GradientRelease):
        return release.n_steps
    # without the noise there must be whole votes, one of each teacher in every query
    votes = fitted.published - fitted.noise_draws
    np.testing.assert_allclose(votes, np.round(votes), atol=1e-6)
    np.testing.assert_allclose(votes.sum(axis=1), release.n_teachers)
    return len(votes)


def check_budget_monotone(estimator: BaseEstimator) -> None:
    """More budget means less noise, and the certificate says what was asked."""
    spreads = []
    for epsilon in (0.25, 1.0, 4.0):
        accountant = PrivacyLoss(epsilon=epsilon, delta=1e-4)
        fitted = _fit(_set(estimator, accountant=accountant))
        assert 0.99 * epsilon < fitted.certificate_.epsilon <= epsilon
        assert fitted.certificate_.delta == 1e-4
        release = getattr(fitted, "release_", None)
        steps = 1
        if isinstance(release, GradientRelease):
            # the number of steps may follow from the budget: noise per clipped
            # gradient, of all steps together
            steps = release.n_steps * release.total_clip_norm**2
        spreads.append(np.max(fitted.noise_.std()) / np.sqrt(steps))
    assert spreads[0] > spreads[1] > spreads[2] > 0


def check_noise_does_not_depend_on_data(estimator: BaseEstimator) -> None:
    """Two tables of one shape get exactly the same noise family and scale."""
    # a scale that reads the rows would itself be a release, and one without noise
    one, other = _fit(clone(estimator), seed=0), _fit(clone(estimator), seed=1)
    assert one.noise_ == other.noise_
    assert one.certificate_ == other.certificate_


def check_parameters_unchanged(estimator: BaseEstimator) -> None:
    """Fitting writes nothing into the parameters, nested ones included."""
    fresh = clone(estimator)
    # by content: a parameter that was changed in place is the same object
    before = joblib.hash(fresh.get_params(deep=True))
    _fit(fresh)
    assert joblib.hash(fresh.get_params(deep=True)) == before


def _held(estimator):
    """Leaves of a fitted estimator, except those that stay with the curator.

    Whatever an attribute is called, whoever is given the object has it.
    """
    kept = getattr(estimator, "_curator_only", ())
    held = {name: value for name, value in vars(estimator).items() if name not in kept}
    return reachable(held)


def check_nothing_unprivatised_on_self(estimator: BaseEstimator) -> None:
    """Check that no attribute varies with the data but not with the noise.

    Private names and whatever the attributes refer to included.
    """
    fits = {
        (seed, data): _held(_fit(_set(estimator, random_state=seed), data))
        for seed in (0, 1)
        for data in (0, 1)
    }

    def same(one, other, path):
        a, b = fits[one].get(path), fits[other].get(path)
        return type(a) is type(b) and np.array_equal(a, b, equal_nan=_is_float(a))

    # What two seeds leave the same carries no noise; that must be the same for two
    # tables as well. (A leaf that varies with the seed is noisy or drawn, and may
    # differ.)
    for path in set().union(*fits.values()):
        if same((0, 0), (1, 0), path):
            assert same((0, 0), (0, 1), path), (
                f"{path} of the fitted estimator depends on the private data but "
                "carries no noise"
            )


def _is_float(value):
    return getattr(getattr(value, "dtype", None), "kind", "") == "f"


def _with_canaries(estimator):
    """Data with a canary: one record of it is a number that nobody says by chance."""
    X, *rest = _arguments(estimator)
    # within all bounds, so that no clipping changes it
    X[5] = NUMBER, 0.0, 0.0
    return X, *rest


def check_no_canary_is_held(estimator: BaseEstimator) -> None:
    """No attribute, no pickle and nothing that `fit` says holds a private value."""
    fresh = _set(estimator, random_state=0)
    with listen() as said:
        fresh.fit(*_with_canaries(estimator))
    # whatever is reachable counts, and so does what a pickle stores beside attributes
    assert said.error is None, f"{said.error!r} on good data"
    assert not said.songs, f"a private value was quoted in {said.songs}"
    for path, leaf in _held(fresh).items():
        text = leaf if isinstance(leaf, str) else None
        data = leaf if isinstance(leaf, bytes) else np.asarray(leaf).tobytes()
        quoted = sings(data) if text is None else sings(text)
        assert not quoted and not sings(path), f"{path} holds a private value"
    for name in getattr(fresh, "_curator_only", ()):
        vars(fresh).pop(name, None)
    assert not sings(pickle.dumps(fresh)), "a pickle holds a private value"


def _bad_arguments(estimator):
    """Arguments of `fit` that cannot be taken, each with canaries and a name."""
    X, *rest = _with_canaries(estimator)
    cells = X.astype(object)
    for name, cell in {
        "text": TEXT,
        "an object": {TEXT: NUMBER},
        "a complex number": NUMBER + 1j,
        "a missing value": None,
        "NaN": np.nan,
        "infinity": np.inf,
    }.items():
        bad = cells.copy()
        bad[4, 1] = cell
        yield f"{name} in X", (bad, *rest)
        if rest:
            target = np.array(rest[0], dtype=object)
            target[[3, 4]] = cell, NUMBER
            yield f"{name} in y", (X, target)
    for name, table in {
        "one dimension": X[5],
        "three dimensions": X[None],
        "a number": NUMBER,
        "complex X": X + 1j,
        "complex objects": cells + 1j,
        "text": np.full(X.shape, TEXT),
        "ragged rows": [[NUMBER], [NUMBER, TEXT]],
        "a dict": {TEXT: X[5]},
        "a mask": np.ma.masked_equal(X, 0.0),
        "dates and text": np.array(
            [[np.datetime64("NaT", "D"), TEXT, NUMBER]] * len(X)
        ),
    }.items():
        yield name, (table, *rest)
    for name, target in {
        "text as y": np.full(len(X), TEXT),
        "complex y": np.full(len(X), NUMBER + 1j),
        "numbers as y": X[:, 0],
        "a short y": np.full(3, NUMBER),
        "two columns of y": X[:, :2] + 1j,
        "sets as y": [{TEXT, NUMBER}] * len(X),
    }.items():
        if rest:
            yield name, (X, target)


def check_no_canary_is_quoted(estimator: BaseEstimator) -> None:
    """Bad data is refused, or warned of, without a word of what is in it.

    Neither in `fit` nor afterwards, and nothing is fitted by it.
    """
    takes_classes = "classes" in clone(estimator).get_params(deep=False)
    fitted = _fit(clone(estimator))
    for name, arguments in _bad_arguments(estimator):
        fresh = clone(estimator)
        if takes_classes:  # else labels are public by default
            fresh.set_params(classes=[0, 1])
        with listen() as said:
            fresh.fit(*arguments)
        assert not said.songs, f"{name}: a private value was quoted in {said.songs}"
        if said.error is not None:
            assert isinstance(said.error, ValueError | TypeError), (
                f"{name}: {said.error!r}"
            )
            if _is_private(estimator):  # what learns nothing is never unfitted
                _assert_unfitted(fresh)
        # rows to predict for are private too
        for method in ("predict", "transform"):
            if hasattr(fitted, method):
                with listen() as said:
                    getattr(fitted, method)(arguments[0])
                assert not said.songs, f"{name}: {method} quoted in {said.songs}"


def check_fresh_noise_every_time(estimator: BaseEstimator) -> None:
    """Without a seed no two fits agree, whatever NumPy's global state is."""
    values = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002  (that it has no effect is what is checked)
        fresh = _fit(_recording(_set(estimator, random_state=None)))
        values.append(fresh.published)
    same = values[0] == values[1]
    # noise on the integers is now and then the same in one coordinate, not in all
    assert not (np.all(same) if fresh.noise_.integer else np.any(same))


def check_seed_warns(estimator: BaseEstimator) -> None:
    """A seed reproduces the noise, warns, and is written in the certificate."""
    values = []
    for _ in range(2):
        fresh = _recording(_set(estimator, random_state=7))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fresh.fit(*_arguments(fresh))
        assert any(issubclass(w.category, SeededNoiseWarning) for w in caught)
        assert fresh.certificate_.seeded
        values.append(fresh.published)
    np.testing.assert_array_equal(values[0], values[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeededNoiseWarning)
        unseeded = _set(estimator, random_state=None)
        unseeded.fit(*_arguments(unseeded))


def check_refit_independent(estimator: BaseEstimator) -> None:
    """A second fit forgets the first."""
    # a seed, so that fits of the same data are the same to the last digit
    fresh = _recording(_set(estimator, random_state=3))
    _fit(fresh, seed=0)
    again = _fit(fresh, seed=1).published
    once = _fit(_recording(_set(estimator, random_state=3)), seed=1).published
    np.testing.assert_array_equal(again, once)


def _assert_unfitted(estimator):
    """Assert that nothing of a failed fit is left."""
    left = [n for n in vars(estimator) if n.endswith("_") and not n.startswith("_")]
    assert not left, f"a failed fit left {left}"
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return
    raise AssertionError("a failed fit left the estimator fitted")


def _expect(error, match, estimator, *arguments):
    """Assert that `fit` raises an error that names `match`, and leaves nothing."""
    try:
        with _quiet():
            estimator.fit(*arguments)
    except error as raised:
        assert match in str(raised), f"{match!r} is not named in: {raised}"
    else:
        raise AssertionError(f"{match!r} was accepted")
    _assert_unfitted(estimator)


def check_bad_budget_refused(estimator: BaseEstimator) -> None:
    """Bad privacy parameters are refused whatever scikit-learn's switches say."""
    bad = {
        "epsilon": PrivacyLoss(epsilon=0.0, delta=1e-5),
        "delta": PrivacyLoss(epsilon=1.0, delta=1.0),
    }
    # the switch saves time in deployments; it must not turn the privacy off
    for skip in (False, True):
        with config_context(skip_parameter_validation=skip):
            for name, accountant in bad.items():
                fresh = _set(estimator, accountant=accountant)
                _expect(ValueError, name, fresh, *_arguments(fresh))


def check_failed_refit_leaves_nothing(estimator: BaseEstimator) -> None:
    """Data that is refused leaves the estimator unfitted, even after a good fit.

    An old certificate beside a failed fit would be taken for the new one's.
    """
    fresh = _fit(clone(estimator))
    X, *rest = _arguments(fresh)
    if get_tags(estimator).input_tags.allow_nan:
        # read by a code book, which gives missing values a cell
        _expect(ValueError, "Complex", fresh, X + 1j, *rest)
        return
    X = X.copy()
    X[3, 1] = np.nan
    _expect(ValueError, "NaN", fresh, X, *rest)


def check_certificate_is_plain_data(estimator: BaseEstimator) -> None:
    """The certificate can be printed, stored as JSON, shown and pickled."""
    fitted = _fit(clone(estimator))
    certificate = fitted.certificate_
    assert json.loads(json.dumps(certificate.to_dict()))["assumptions"]
    assert "Certificate" in str(certificate)
    assert "<table" in certificate._repr_html_()
    again = pickle.loads(pickle.dumps(fitted))
    assert again.certificate_ == certificate
    assert again.noise_ == fitted.noise_


def check_certificate_names_its_limits(estimator: BaseEstimator) -> None:
    """The certificate says what last digits tell, and names steps fitted before it."""
    said = _fit(clone(estimator)).certificate_.assumptions
    digits = (CHOSEN_ON_GRID, FLOATING_POINT, ON_GRID, SUMS_ON_GRID)
    # of a search the model has digits, and so has its score
    most = 2 if _is_search(estimator) else 1
    assert 1 <= sum(map(said.count, digits)) <= most
    assert said.count(UNTOUCHED_ROWS) == 1


class _Recorder:
    """A callback that hears of releases, and may refuse them."""

    max_propagation_depth = None

    def __init__(self, refuse: bool = False):
        self.refuse, self.certificates = refuse, []

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(
        self, estimator: Any, context: Any, *, metadata: Any = None
    ) -> None:
        if context.task_name == "release":
            self.certificates.append(metadata["certificate"])
            if self.refuse:
                raise RuntimeError("the ledger refuses")

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None
    ) -> None: ...


def check_release_is_announced(estimator: BaseEstimator) -> None:
    """A callback hears of the certificate before noise is drawn, and may refuse."""
    recorder = _Recorder()
    fresh = clone(estimator).set_callbacks(recorder)
    _fit(fresh)
    assert len(recorder.certificates) == 1
    assert recorder.certificates[0].epsilon == fresh.certificate_.epsilon
    # nothing may be left then: noise that was drawn before a refusal is a release
    fresh = clone(estimator).set_callbacks(_Recorder(refuse=True))
    _expect(RuntimeError, "refuses", fresh, *_arguments(fresh))


class _Interrupter(_Recorder):
    """A callback that raises at its n-th hook, whichever that is."""

    def __init__(self, at: int, error: BaseException):
        self.at, self.error = at, error

    def _count(self):
        self.at -= 1
        if self.at == 0:
            raise self.error

    def setup(self, estimator: Any, context: Any) -> None:
        self._count()

    def teardown(self, estimator: Any, context: Any) -> None:
        self._count()

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self._count()

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        self._count()


def _fit_with_raising_hook(estimator, at, error):
    """Fit, except for an error at the n-th hook of a callback."""
    estimator.set_callbacks(_Interrupter(at, error))
    try:
        _fit(estimator)
    finally:
        estimator.set_callbacks()


def _fit_with_raising_call(estimator, at, error):
    """Fit, with an error at the n-th call that takes the estimator first."""
    arguments = _arguments(estimator)
    left = at

    # a profiler sees every call, so that no method of the template is left out
    def count(frame, event, _):
        nonlocal left
        if event != "call" or not frame.f_code.co_argcount:
            return
        if frame.f_locals.get(frame.f_code.co_varnames[0]) is estimator:
            left -= 1
            if left == 0:
                sys.setprofile(None)
                raise error

    before = sys.getprofile()
    with _quiet():
        sys.setprofile(count)
        try:
            estimator.fit(*arguments)
        finally:
            sys.setprofile(before)


def _interrupted(estimator, fit, error):
    """Yield the estimator after fits that were interrupted, at later and later moments.

    At each of the first eight, and then at fewer and fewer: what a fit has set by one
    moment, it has set by the later ones too.
    """
    fitted = _fit(clone(estimator))
    # the call of `fit` itself is the first, when nothing has begun
    at = 0 if fit is _fit_with_raising_hook else 1
    while True:
        at += 1 + at // 8
        again = copy.copy(fitted)
        try:
            fit(again, at, error)
        except type(error):
            yield again
        else:
            return


def check_interrupted_fit_leaves_nothing(estimator: BaseEstimator) -> None:
    """A fit that is interrupted, at whatever moment, leaves nothing behind.

    Interrupts come from a user, or from a callback, which may raise in its last hook as
    well: all is released by then, but a fit that raised is no fit.
    """
    interruptions = [(_fit_with_raising_call, KeyboardInterrupt())]
    if hasattr(estimator, "set_callbacks"):
        interruptions.append((_fit_with_raising_hook, KeyboardInterrupt()))
        interruptions.append((_fit_with_raising_hook, RuntimeError()))
    unfitted = set(vars(clone(estimator)))
    for fit, error in interruptions:
        moments = 0
        for again in _interrupted(estimator, fit, error):
            left = sorted(set(vars(again)) - unfitted)
            assert not left, f"a fit that was interrupted left {left}"
            if get_tags(estimator).requires_fit:
                _assert_unfitted(again)
            moments += 1
        assert moments > 1


def _is_private(estimator):
    return "accountant" in inspect.signature(type(estimator)).parameters or any(
        key.endswith("__accountant") for key in estimator.get_params(deep=True)
    )


_CHECKS = (
    check_noise_is_of_the_certified_scale,
    check_budget_monotone,
    check_noise_does_not_depend_on_data,
    check_parameters_unchanged,
    check_nothing_unprivatised_on_self,
    check_no_canary_is_held,
    check_no_canary_is_quoted,
    check_fresh_noise_every_time,
    check_seed_warns,
    check_refit_independent,
    check_bad_budget_refused,
    check_failed_refit_leaves_nothing,
    check_certificate_is_plain_data,
    check_certificate_names_its_limits,
    check_release_is_announced,
    check_interrupted_fit_leaves_nothing,
)


def privacy_checks(estimator: BaseEstimator) -> list[Check]:
    """Return the checks that apply to an estimator.

    Parameters
    ----------
    estimator : estimator
        An instance that can be fitted on small numeric data.

    Returns
    -------
    checks : list of (str, callable)
        Names, and functions without arguments.
    """
    checks = _CHECKS if _is_private(estimator) else (check_no_canary_is_quoted,)
    if _is_search(estimator):
        # what it publishes varies by more than noise: by which trial was the best
        checks = tuple(
            c for c in checks if c is not check_noise_is_of_the_certified_scale
        )
    return [(check.__name__, partial(check, estimator)) for check in checks]


def check_private_estimator(estimator: BaseEstimator) -> None:
    """Raise an AssertionError by the first privacy check that an estimator fails.

    Parameters
    ----------
    estimator : estimator
        An instance that can be fitted on small numeric data.
    """
    run_all(privacy_checks(estimator))
