"""Errors and warnings of skpuffer.

Errors that concern a parameter are ``ValueError`` as well, so code written for
scikit-learn keeps catching them.
"""

import math
import numbers
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any, ClassVar

__all__ = [
    "BudgetExceededError",
    "CompositionError",
    "EmpiricalPriorWarning",
    "EstimatedGuaranteeWarning",
    "InfiniteDistanceError",
    "LedgerError",
    "LedgerRefusal",
    "NoGainWarning",
    "NotComposableError",
    "PrivacyLeakWarning",
    "PrivacyWarning",
    "QueryBudgetError",
    "ScaleWarning",
    "ScenarioError",
    "SeededNoiseWarning",
    "Statement",
    "UncertifiedError",
    "UnsupportedError",
    "VersionWarning",
    "WeakPromiseWarning",
]


class _Shown(str):
    """Text of a value that is no plain data, with the `repr` of the value."""

    shown: str

    def __repr__(self) -> str:
        return self.shown


def _plain(value: object) -> Any:
    """Copy of plain data; the text of anything else, so that no object is kept."""
    if value is None or type(value) in (bool, int, float, str, _Shown, Statement):
        return value
    if isinstance(value, numbers.Number) and hasattr(value, "item"):
        return value.item()
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return kind(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(key): _plain(held) for key, held in value.items()}
    shown = repr(value)
    try:
        text = _Shown(value)
    except Exception:  # an error must not end in another one
        text = _Shown(shown)
    text.shown = shown
    return text


_renderer: Callable[["Statement"], str] = repr


def rendered_by(renderer: Callable[["Statement"], str]) -> None:
    """Register the function that writes a statement in words."""
    global _renderer
    _renderer = renderer


def _written(value: object) -> object:
    """Plain data as JSON holds it; numbers that it cannot hold say so."""
    if isinstance(value, Statement):
        return {"code": value.code, "parameters": _written(value._parameters)}
    if isinstance(value, dict):
        return {str(key): _written(held) for key, held in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_written(held) for held in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def _read(value: object) -> object:
    if isinstance(value, list):
        return [_read(held) for held in value]
    if isinstance(value, dict):
        if value.keys() == {"code", "parameters"}:
            return stated(value)
        if value.keys() == {"number"}:
            return float(value["number"])
        return {name: _read(held) for name, held in value.items()}
    return value


class Statement:
    """An assumption, a reason or a refusal as data: its code and its parameters.

    ``str`` writes it in words. Programs compare codes and parameters, because the
    words may change with any version.

    Parameters
    ----------
    code : str
        Names what is stated, as ``topic.what_is_stated``.
    **parameters : object
        Values that the words show. Numbers, texts and collections of them are copied;
        of anything else the text alone is kept.

    Examples
    --------
    >>> from skpuffer.summary import PrivateMean
    >>> try:
    ...     PrivateMean(bounds=(1, 0)).fit([[0.5]])
    ... except ValueError as error:
    ...     statement = error.args[0]
    >>> type(statement).__name__, "." in statement.code
    ('Statement', True)
    """

    __slots__ = ("_parameters", "code")
    code: str
    _parameters: dict[str, object]

    def __init__(self, code: str, /, **parameters: object) -> None:
        held = {name: _plain(value) for name, value in parameters.items()}
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "_parameters", held)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters that the words show, copied at each reading."""
        return {name: _plain(value) for name, value in self._parameters.items()}

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(name)

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _with_parameters, (self.code, self._parameters)

    def __str__(self) -> str:
        return _renderer(self)

    # as a text may be read, but no list of letters
    __iter__: ClassVar[None] = None

    def __contains__(self, words: object) -> bool:
        return isinstance(words, str) and words in str(self)

    def __getitem__(self, at: int | slice) -> str:
        return str(self)[at]

    def lower(self) -> str:
        """Return its words in lower case, to look for some among them."""
        return str(self).lower()

    def __repr__(self) -> str:
        given = "".join(
            f", {name}={value!r}" for name, value in self._parameters.items()
        )
        return f"Statement({self.code!r}{given})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Statement):
            return NotImplemented
        # as JSON holds them: what is read back equals what was written
        mine, others = _written(self._parameters), _written(other._parameters)
        return self.code == other.code and mine == others

    def __hash__(self) -> int:
        return hash(self.code)

    def to_dict(self) -> dict[str, object]:
        """Return code, parameters and words as plain data."""
        return {
            "code": self.code,
            "parameters": _written(self._parameters),
            "text": str(self),
        }


def _with_parameters(code: str, parameters: dict[str, object]) -> Statement:
    return Statement(code, **parameters)


def stated(value: "Statement | str | dict[str, Any]") -> Statement:
    """Return the statement that a text makes, or that was written as plain data."""
    if isinstance(value, Statement):
        return value
    if isinstance(value, str):
        return Statement("plain.text", text=value)
    parameters = {name: _read(held) for name, held in value["parameters"].items()}
    return Statement(value["code"], **parameters)


class ScenarioError(ValueError):
    """The scenario cannot be read against the public facts it was bound to.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.exceptions import ScenarioError
    >>> from skpuffer.scenarios import AttributeScenario
    >>> public = pd.DataFrame({"sex": [0, 1], "height": [165, 178]})
    >>> try:
    ...     AttributeScenario("race", level="record", prior=public).check()
    ... except ScenarioError as error:
    ...     print(error)
    The parameter 'column' names 'race', but the prior has the columns ['sex',
    'height'].
    """


class UnsupportedError(ValueError):
    """This accountant cannot account for this release under this scenario.

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.exceptions import UnsupportedError
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> mean = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=10, dim=2)
    >>> try:
    ...     GroupPrivacy().calibrate(mean, RecordScenario())
    ... except UnsupportedError as error:
    ...     print(error)
    GroupPrivacy needs Adjacency, but RecordScenario offers nothing for the release
    'query'; ...
    """


class InfiniteDistanceError(UnsupportedError):
    """Output distributions are infinitely far apart: no finite noise covers that.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.distributions import Gaussian
    >>> from skpuffer.exceptions import InfiniteDistanceError
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import LawsScenario
    >>> scenario = LawsScenario([(Gaussian(0.0, 1.0), Gaussian(0.0, 2.0))])
    >>> count = QueryRelease(query=lambda X, y: X.sum(axis=0), n_records=10, dim=1)
    >>> try:
    ...     GeneralWasserstein().calibrate(count, scenario)
    ... except InfiniteDistanceError as error:
    ...     print(error)
    W_inf between the output's distributions in the release 'query' given 0 and 1 is
    infinite ...
    """


class CompositionError(ValueError):
    """These certificates must not be added up.

    Examples
    --------
    >>> from skpuffer.exceptions import CompositionError
    >>> from skpuffer.privacy import Certificate, compose
    >>> once = Certificate(notion="renyi_pufferfish", epsilon=1.0, alpha=2.0)
    >>> try:
    ...     compose([once, once])
    ... except CompositionError as error:
    ...     print(error)
    Certificate(notion='renyi_pufferfish', epsilon=1, alpha=2) is not composable: ...
    """


class UncertifiedError(ValueError):
    """A guarantee was asked for that no certificate gives.

    A certificate may hold an estimate only, or noise may cost more than the budget.

    Examples
    --------
    >>> from skpuffer.exceptions import UncertifiedError
    >>> from skpuffer.privacy import Certificate
    >>> promised = Certificate(notion="pure_dp", epsilon=1.0)
    >>> estimate = promised.as_estimate("its bounds were read from the private data")
    >>> try:
    ...     estimate.to_approximate(delta=1e-5)
    ... except UncertifiedError as error:
    ...     print(error)
    This certificate is an estimate and gives no guarantee, so not an (epsilon,
    delta) promise either. ...
    """


class QueryBudgetError(ValueError):
    """More queries were put than the release paid for, or than it may answer.

    Examples
    --------
    >>> from skpuffer.ensemble import PATEAggregator
    >>> from skpuffer.exceptions import QueryBudgetError
    >>> aggregator = PATEAggregator(n_teachers=50, n_classes=2, n_queries=1)
    >>> try:
    ...     aggregator.aggregate([[48, 2], [1, 49]])
    ... except QueryBudgetError as error:
    ...     print(error)
    2 queries were put to the release 'votes', of whose n_queries=1 there are 1
    left. ...
    """


class LedgerError(ValueError):
    """A ledger's file or ceilings are not as they must be.

    Examples
    --------
    >>> from skpuffer.exceptions import LedgerError
    >>> from skpuffer.ledger import PrivacyLedger
    >>> try:
    ...     PrivacyLedger("missing_folder/releases.db", {"pure_dp": 1.0})
    ... except LedgerError as error:
    ...     print(error)
    The folder '...missing_folder' of the ledger is missing. Make it.
    """


class LedgerRefusal(BaseException):
    """A ledger refuses a release: nothing was drawn, and nothing is fitted.

    It is no ``Exception``, so that scikit-learn's searches stop instead of going on
    without the release (``error_score``).

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.exceptions import LedgerRefusal
    >>> from skpuffer.ledger import PrivacyLedger
    >>> from skpuffer.summary import PrivateMean
    >>> ledger = PrivacyLedger(":memory:", {"approximate_dp": (0.5, 1e-5)})
    >>> try:
    ...     PrivateMean(bounds=(0, 1)).set_callbacks(ledger).fit(np.eye(4))
    ... except LedgerRefusal as refusal:
    ...     print(type(refusal).__name__)
    BudgetExceededError
    """


class BudgetExceededError(LedgerRefusal):
    """With this release a ledger's total would be above a ceiling.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.exceptions import BudgetExceededError
    >>> from skpuffer.ledger import PrivacyLedger
    >>> from skpuffer.summary import PrivateMean
    >>> ledger = PrivacyLedger(":memory:", {"approximate_dp": (0.5, 1e-5)})
    >>> try:
    ...     PrivateMean(bounds=(0, 1)).set_callbacks(ledger).fit(np.eye(4))
    ... except BudgetExceededError as error:
    ...     print(error)
    The ledger refuses this release (Certificate(notion='approximate_dp', epsilon=1,
    delta=1e-05)): with it the total of 1 release would be 1, and the ceiling is ...
    """


class NotComposableError(LedgerRefusal):
    """This release does not add up with those in the ledger, or with no ceiling.

    Examples
    --------
    >>> from skpuffer.exceptions import NotComposableError
    >>> from skpuffer.ledger import PrivacyLedger
    >>> from skpuffer.privacy import Certificate
    >>> ledger = PrivacyLedger(":memory:", {"pure_dp": 1.0})
    >>> released = Certificate(notion="approximate_dp", epsilon=0.5, delta=1e-6)
    >>> try:
    ...     ledger.enter(released)
    ... except NotComposableError as error:
    ...     print(error)
    The ledger refuses this release (Certificate(notion='approximate_dp',
    epsilon=0.5, delta=1e-06)): it promises the notion of none of its ceilings ...
    """


class PrivacyWarning(UserWarning):
    """Base class of the warnings that concern a privacy promise.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skpuffer.exceptions import PrivacyWarning
    >>> from skpuffer.summary import PrivateMean
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PrivacyWarning)
    ...     try:
    ...         PrivateMean(bounds="empirical").fit(np.eye(4))
    ...     except PrivacyWarning as warning:
    ...         print(type(warning).__name__)
    PrivacyLeakWarning
    """


class PrivacyLeakWarning(PrivacyWarning):
    """Something was taken from the private data and is not covered by the promise.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skpuffer.exceptions import PrivacyLeakWarning
    >>> from skpuffer.summary import PrivateMean
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     mean = PrivateMean(bounds="empirical").fit(np.eye(4))
    >>> any(issubclass(w.category, PrivacyLeakWarning) for w in caught)
    True
    """


class EmpiricalPriorWarning(PrivacyLeakWarning):
    """The training data was taken as the prior, so the noise scale depends on it.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.exceptions import EmpiricalPriorWarning
    >>> from skpuffer.scenarios import AttributeScenario
    >>> from skpuffer.summary import PrivateMean
    >>> table = pd.DataFrame({"sex": [0, 0, 1, 1], "height": [160, 170, 168, 182]})
    >>> itself = AttributeScenario("sex", level="record", prior="empirical")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = PrivateMean(itself, GeneralWasserstein(), bounds=(150, 200)).fit(table)
    >>> any(w.category is EmpiricalPriorWarning for w in caught)
    True
    """


class EstimatedGuaranteeWarning(PrivacyWarning):
    """Noise was set from samples of a distribution: the certificate is an estimate.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.exceptions import EstimatedGuaranteeWarning
    >>> from skpuffer.scenarios import SimulatorScenario
    >>> from skpuffer.summary import PrivateMean
    >>> draw = lambda secret, rng: rng.uniform(secret, 1.0, size=(10, 1))
    >>> scenario = SimulatorScenario(draw=draw, secrets=[0.0, 0.5], n_draws=20)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     mean = PrivateMean(scenario, GeneralWasserstein(), bounds=(0, 1))
    ...     _ = mean.fit(np.full((10, 1), 0.5))
    >>> any(w.category is EstimatedGuaranteeWarning for w in caught)
    True
    """


class NoGainWarning(PrivacyWarning):
    """The scenario takes no less noise than differential privacy, which promises more.

    Compared with as many replaced records as the secret may change.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from skpuffer.exceptions import NoGainWarning
    >>> from skpuffer.scenarios import AttributeScenario
    >>> from skpuffer.summary import PrivateMean
    >>> public = pd.DataFrame({"group": [0, 1], "x": [0.0, 1.0]})
    >>> scenario = AttributeScenario(
    ...     "group", level="record", prior=public, prior_as="law"
    ... )
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     mean = PrivateMean(scenario, bounds=(0, 1)).fit(public[["x"]])
    >>> any(w.category is NoGainWarning for w in caught)
    True
    """


class SeededNoiseWarning(PrivacyWarning):
    """The noise was drawn from a seed: fit for tests, not for a release.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skpuffer.exceptions import SeededNoiseWarning
    >>> from skpuffer.summary import PrivateMean
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     mean = PrivateMean(bounds=(0, 1), random_state=0).fit(np.eye(4))
    >>> [w.category is SeededNoiseWarning for w in caught]
    [True]
    """


class ScaleWarning(UserWarning):
    """By public facts rows are of another scale than the norm that noise is set for.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from skpuffer.exceptions import ScaleWarning
    >>> from skpuffer.linear_model import PrivateRidge
    >>> from skpuffer.schema import Schema
    >>> table = pd.DataFrame({"age": [25.0, 60.0]})
    >>> schema = Schema({"age": (0, 90)})
    >>> model = PrivateRidge(schema=schema, data_norm=1e5, target_bounds=(0, 1))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = model.fit(table, [0.2, 0.8])
    >>> any(w.category is ScaleWarning for w in caught)
    True
    """


class VersionWarning(UserWarning):
    """A pickle was written by another version of skpuffer than reads it.

    The meaning of its attributes may have changed. Fit again, or load it by the named
    version.

    Examples
    --------
    >>> import warnings
    >>> from skpuffer.exceptions import VersionWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", VersionWarning)  # refuse such pickles
    >>> issubclass(VersionWarning, UserWarning)
    True
    """


class WeakPromiseWarning(PrivacyWarning):
    """The promise asked for is worth little, or the classes declared look like numbers.

    A delta of one over the number of records or more allows for publishing somebody's
    record; an epsilon above ten is hardly a promise by itself.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.exceptions import WeakPromiseWarning
    >>> from skpuffer.summary import PrivateMean
    >>> mean = PrivateMean(accountant=PrivacyLoss(1.0, delta=0.1), bounds=(0, 1))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     mean = mean.fit(np.eye(20))
    >>> any(w.category is WeakPromiseWarning for w in caught)
    True
    """


def reason_of(error: Exception) -> Statement:
    """Return what an error states; of one with words of its own, these."""
    said = error.args[0] if len(error.args) == 1 else None
    return said if isinstance(said, Statement) else stated(str(error))


# The errors that the package raises most. Each takes the code of a statement and its
# parameters.


def value_error(code: str, /, **parameters: object) -> ValueError:
    """Return an error about the value of a parameter."""
    return ValueError(Statement(code, **parameters))


def type_error(code: str, /, **parameters: object) -> TypeError:
    """Return an error about the type of a parameter."""
    return TypeError(Statement(code, **parameters))


def scenario_error(code: str, /, **parameters: object) -> ScenarioError:
    """Return an error about a scenario and the table it is bound to."""
    return ScenarioError(Statement(code, **parameters))


def unsupported_error(code: str, /, **parameters: object) -> UnsupportedError:
    """Return an error about what cannot be accounted for."""
    return UnsupportedError(Statement(code, **parameters))
