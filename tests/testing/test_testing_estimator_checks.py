"""Each check of what is said and kept can fail: estimators that leak, one way each."""

import logging
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

from skpuffer.summary import PrivateMean
from skpuffer.testing._estimator_checks import (
    check_no_canary_is_held,
    check_no_canary_is_quoted,
    check_nothing_unprivatised_on_self,
)

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")


def is_bad(X):
    return getattr(X, "dtype", np.dtype(float)).kind == "O"


class Leaky(PrivateMean):
    """Keeps or says what `_leak` makes of the exact mean and of the private rows."""

    def __init__(
        self, scenario=None, accountant=None, *, bounds=(-10, 10), random_state=None
    ):
        super().__init__(scenario, accountant, bounds=bounds, random_state=random_state)

    def _execute(self, task, release, noise, rng):
        self._leak(release.run(task.X, task.y), task.X)
        return super()._execute(task, release, noise, rng)

    def _leak(self, exact, X): ...


class Slots:
    __slots__ = ("kept",)

    def __init__(self, kept):
        self.kept = kept


def keeping(how):
    """An estimator whose attribute `_hint` is made of what is private."""

    class Keeping(Leaky):
        def _leak(self, exact, X):
            self._hint = how(exact, X)

    return Keeping()


WAYS = {
    "outright": lambda exact, X: exact,
    "a number": lambda exact, X: float(exact[0]),
    "rounded": lambda exact, X: f"{exact[0]:.3f}",
    "nested": lambda exact, X: {"a": [(exact,)]},
    "as a key": lambda exact, X: {tuple(exact.tolist()): 1},
    "in slots": lambda exact, X: Slots(exact),
    "in objects": lambda exact, X: np.array([exact, None], dtype=object),
    "in a closure": lambda exact, X: lambda: exact,
    "in a default": lambda exact, X: lambda kept=exact: kept,
    "in a method": lambda exact, X: Slots(exact).__init__,
    "in a partial": lambda exact, X: partial(max, exact),
    "in a frame": lambda exact, X: pd.DataFrame({"a": exact}),
    "in a set": lambda exact, X: {exact[0]},
    "in bytes": lambda exact, X: exact.tobytes(),
}


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_whatever_is_kept_without_noise_is_found(how):
    with pytest.raises(AssertionError, match="_hint.* carries no noise"):
        check_nothing_unprivatised_on_self(keeping(how))


@pytest.mark.parametrize(
    "form",
    [
        np.array,
        list,
        str,
        lambda column: column.astype(np.float32),
        lambda column: dict.fromkeys(column.tolist()),
        lambda column: column.tobytes(),
    ],
)
def test_records_that_are_kept_are_found_though_they_are_shuffled(form):
    def shuffled(exact, X):
        return form(np.random.default_rng().permutation(X[:, 0]))

    with pytest.raises(AssertionError, match="_hint.*holds a private value"):
        check_no_canary_is_held(keeping(shuffled))


def test_a_noisy_mean_alone_passes():
    for check in (
        check_nothing_unprivatised_on_self,
        check_no_canary_is_held,
        check_no_canary_is_quoted,
    ):
        check(Leaky())


class Pickled(Leaky):
    """Keeps the rows elsewhere, and sends them along with a pickle."""

    elsewhere = {}

    def _leak(self, exact, X):
        self.elsewhere["rows"] = X

    def __getstate__(self):
        return {**super().__getstate__(), **self.elsewhere}


def test_what_only_a_pickle_holds_is_found():
    with pytest.raises(AssertionError, match="a pickle holds"):
        check_no_canary_is_held(Pickled())


def warn_of(X):
    warnings.warn(f"strange: {X[5, 0]}", UserWarning, stacklevel=2)


@pytest.mark.parametrize(
    "say, place",
    [
        (lambda X: print(X[5]), "what was printed"),
        (lambda X: logging.getLogger("leaky").debug("row %s", X[5]), "logged"),
        (warn_of, "a warning"),
    ],
)
def test_what_a_good_fit_says_is_heard(say, place):
    class Saying(Leaky):
        def _leak(self, exact, X):
            say(X)

    with pytest.raises(AssertionError, match=f"quoted in .*{place}"):
        check_no_canary_is_held(Saying())


def refuse_in_words(X):
    raise ValueError(f"cannot read {X!r}")


def refuse_by_arguments(X):
    class Quiet(ValueError):
        def __str__(self):
            return "cannot read it"

    raise Quiet(X)


def refuse_with_a_cause(X):
    try:
        refuse_in_words(X)
    except ValueError as error:
        raise ValueError("cannot read it") from error


def refuse_with_a_context(X):
    try:
        refuse_in_words(X)
    except ValueError:
        raise ValueError("cannot read it") from None


def refuse_with_a_note(X):
    error = ValueError("cannot read it")
    error.add_note(f"in {X!r}")
    raise error


@pytest.mark.parametrize(
    "refuse",
    [
        refuse_in_words,
        refuse_by_arguments,
        refuse_with_a_cause,
        refuse_with_a_context,
        refuse_with_a_note,
        print,
        lambda X: warnings.warn(str(X), UserWarning, stacklevel=2),
    ],
)
def test_what_is_said_of_bad_data_is_heard(refuse):
    class Refusing(Leaky):
        def _validate(self, X, y):
            if is_bad(X):
                refuse(X)
            return super()._validate(X, y)

    with pytest.raises(AssertionError, match="a private value was quoted"):
        check_no_canary_is_quoted(Refusing())


def test_what_is_said_of_other_rows_is_heard():
    class Predicting(Leaky):
        def predict(self, X):
            refuse_in_words(X)

    with pytest.raises(AssertionError, match="predict quoted"):
        check_no_canary_is_quoted(Predicting())


def test_an_error_of_another_kind_and_what_it_leaves_are_found():
    class Crashing(Leaky):
        def _validate(self, X, y):
            if is_bad(X):
                raise KeyError("a slip of the pen")
            return super()._validate(X, y)

    class Leaving(Leaky):
        def fit(self, X, y=None):
            try:
                return super().fit(X, y)
            except ValueError:
                self.mean_ = 0.0
                raise

    with pytest.raises(AssertionError, match="KeyError"):
        check_no_canary_is_quoted(Crashing())
    with pytest.raises(AssertionError, match="left .*mean_"):
        check_no_canary_is_quoted(Leaving())
