"""A table, a budget and a ledger: release, preview and report from one object."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import narwhals as nw
import numpy as np
from scipy.optimize import brentq
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from skpuffer._template._reading import declared_classes
from skpuffer.accountants import Best, OverlapAmplification, PrivacyLoss
from skpuffer.accountants._budget_split import certificate_of_share
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.compose import audit_pipeline
from skpuffer.exceptions import (
    BudgetExceededError,
    CompositionError,
    LedgerError,
    Statement,
    UncertifiedError,
    type_error,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import (
    check_count,
    check_option,
    check_positive,
    check_probability,
    check_real,
)
from skpuffer.ledger import PrivacyLedger
from skpuffer.ledger._store import process_name, strict_json
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.privacy import compose
from skpuffer.scenarios import RecordScenario, Scenario
from skpuffer.schema import Schema
from skpuffer.summary import PrivateBounds, PrivateSummary
from skpuffer.summary._keys import promised_by_keys, unlisted
from skpuffer.synthesis import PrivateTableSynthesizer
from skpuffer.utils._documents import written
from skpuffer.utils._listeners import unheard
from skpuffer.utils._reading import is_lazy
from skpuffer.utils._silence import parts_of

from ._report import released_table, report_parts

if TYPE_CHECKING:
    import os

    from skpuffer.accountants import Accountant
    from skpuffer.privacy import Certificate, Preview

#: How often a search for the epsilon of a share halves what it looks in.
_HALVINGS = 8

#: How much of a share is rounding.
_ROUNDING = 1e-6

#: Methods that release something.
_VERBS = ("summary", "bounds", "fit", "search", "synthesize")

#: Formats of a report, by the ending of a file.
_FORMATS = {".html": "html", ".htm": "html", ".md": "markdown"}


class Session:
    """Release numbers and models of one table under one budget.

    Each call spends a share of the budget and returns a fitted estimator. A ledger file
    keeps the budget and what was released, so that a later process can go on.

    Parameters
    ----------
    table : data frame or lazy data frame
        Private records, as narwhals reads them. The table is never stored.
    schema : Schema or dict
        Public :class:`~skpuffer.schema.Schema` of the table.
    scenario : Scenario, default=None
        The secret. None is one record, or all rows of one `unit`, added or removed.
    unit, max_rows : str and int, default=None
        Column of ids whose rows are protected together, and how many rows of each
        count.
    epsilon : float, default=1.0
        Total budget, in nats, of all that this session ever releases.
    delta : float, default=1e-5
        Total delta, in (0, 1), well below one over the number of records.
    ledger : str, path-like or PrivacyLedger, default='budget.db'
        File of the budget, made if missing; else of the same schema, scenario and
        budget.
    size : {'private', 'public'} or int, default='private'
        Whether the number of records is private, and released with noise where needed.
        Estimators that need the exact number are refused unless it is 'public', as
        under a scenario that adds or removes no record. A number is declared in its
        place.
    level : float, default=0.95
        Confidence level of the intervals in the report, in (0, 1).

    Attributes
    ----------
    ledger : PrivacyLedger
    schema : Schema
    scenario : Scenario

    Raises
    ------
    LedgerError
        If the ledger file cannot be used, or belongs to another session.

    Notes
    -----
    *Shares* of a budget add up to one. A share of 0.2 is the noise with which five
    releases of Gaussian noise promise exactly (`epsilon`, `delta`) together; the
    epsilon of each alone is 0.415 for (1, 1e-5). A release of other noise gets the
    largest epsilon that leaves the other shares whole. Under another scenario than
    :class:`~skpuffer.scenarios.RecordScenario` a share is that of epsilon and of delta.

    *Spending.* The file has every release before its noise is drawn: a process that is
    killed afterwards has spent the share.

    Examples
    --------
    >>> from skpuffer import Session
    >>> from skpuffer.datasets import load_adult
    >>> from skpuffer.linear_model import PrivateLinearRegression
    >>> people = load_adult().frame
    >>> columns = {"education-num": (1, 16), "hours-per-week": (1, 99)}
    >>> session = Session(people, columns, ledger=":memory:")
    >>> model = session.fit(
    ...     PrivateLinearRegression(), target="hours-per-week", share=0.5
    ... )
    >>> model.to_frame()["column"].tolist()
    ['intercept', 'education-num']
    >>> session
    Session(epsilon=1.0, delta=1e-05, left=0.5, ledger=':memory:')
    """

    def __init__(
        self,
        table: Any,
        schema: Schema | Mapping[Hashable, Any],
        *,
        scenario: Scenario | None = None,
        unit: str | None = None,
        max_rows: int | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        ledger: str | os.PathLike[str] | PrivacyLedger = "budget.db",
        size: int | str = "private",
        level: float = 0.95,
    ) -> None:
        self.schema = schema if isinstance(schema, Schema) else Schema(schema)
        if scenario is None:
            scenario = RecordScenario(unit=unit, max_rows=max_rows)
        elif unit is not None or max_rows is not None:
            raise value_error("session.unit_beside_scenario")
        self.scenario = _sized(scenario, self.schema, size)
        self.scenario.check()
        self._level = check_probability(level=level)
        self._epsilon = check_positive(epsilon=epsilon)
        self._delta = check_probability(delta=delta)
        self._table = table
        lacking = {*self.schema.names, self.schema.target, self.scenario.unit}
        lacking -= {None, *nw.from_native(table).collect_schema().names()}
        if lacking:
            found = sorted(map(str, lacking))
            raise value_error("session.columns_missing", lacking=found)
        # what all releases under this scenario promise, or more
        self._of_records = type(scenario) is RecordScenario
        self._notion = f"approximate_{'dp' if self._of_records else 'pufferfish'}"
        limits: dict[Any, Any] = {self._notion: (self._epsilon, self._delta)}
        if not isinstance(ledger, PrivacyLedger):
            ledger = PrivacyLedger(ledger, limits)
        if ledger.limits != limits:
            raise LedgerError(Statement("session.limits_differ", path=ledger.path))
        self.ledger = ledger
        # one release at a time, whose entries are those made meanwhile
        self._lock = threading.RLock()
        settings = {
            "schema": self.schema.to_json(),  # a text, whose columns keep their order
            "scenario": _described(self.scenario),
            "size": getattr(self.scenario, "size", None),
        }
        ledger.add_note(strict_json({"session": settings}), first=True)
        held = _noted(ledger, "session")[0]
        for name, value in settings.items():
            if strict_json(value) != strict_json(held[name]):
                said = {"path": ledger.path, "name": name}
                raise LedgerError(Statement("session.differs_from_file", **said))

    @classmethod
    def open(
        cls,
        ledger: str | os.PathLike[str] | PrivacyLedger,
        table: Any,
        *,
        scenario: Scenario | None = None,
        level: float = 0.95,
    ) -> Self:
        """Open the session of a ledger file again, with its schema and its budget.

        Parameters
        ----------
        ledger : str, path-like or PrivacyLedger
        table : data frame or lazy data frame
            The same private table as before.
        scenario : Scenario, default=None
            The same as before, if it was no
            :class:`~skpuffer.scenarios.RecordScenario`.
        level : float, default=0.95
            Confidence level of intervals, in (0, 1).

        Returns
        -------
        Session
        """
        if not isinstance(ledger, PrivacyLedger):
            ledger = PrivacyLedger(ledger)
        held = _noted(ledger, "session")[0]
        told = dict(held["scenario"])
        if told.pop("class") != RecordScenario.__name__ and scenario is None:
            raise LedgerError(Statement("session.scenario_not_given"))
        # ceilings of a session are one pair
        limits: Any = ledger.limits
        ((epsilon, delta),) = limits.values()
        return cls(
            table,
            Schema.from_json(held["schema"]),
            scenario=RecordScenario(**told) if scenario is None else scenario,
            epsilon=epsilon,
            delta=delta,
            ledger=ledger,
            size=held["size"] or "private",
            level=level,
        )

    # -- what is left ------------------------------------------------------------------

    @property
    def left(self) -> float:
        """Share of the budget that is left, in [0, 1]."""
        if not self._of_records:
            remaining: Any = self.ledger.remaining()
            return float(remaining[self._notion]) / self._epsilon
        total = self.ledger.total()

        def excess(share: float) -> float:
            return self._excess(total, self._reference(share))

        if excess(1.0) <= 0 or excess(_ROUNDING) > 0:
            return float(excess(1.0) <= 0)
        # costs grow with the share
        return float(brentq(excess, _ROUNDING, 1.0, xtol=_ROUNDING / 4))

    def _excess(self, *certificates: Certificate | None) -> float:
        """How far releases together are above the budget: a logarithm."""
        known = [one for one in certificates if one is not None]
        found: Any = compose(known, delta=self._delta)
        # entries that were made elsewhere may promise less than the session
        if found.coupling_id != known[-1].coupling_id:
            raise LedgerError(Statement("session.weaker_entry", path=self.ledger.path))
        return math.log(max(found.epsilon, 1e-300) / self._epsilon)

    def _reference(self, share: float) -> Certificate:
        """Certificate of Gaussian noise that costs a share of the budget."""
        whole = PrivacyLoss(self._epsilon, self._delta, noise="gaussian")
        # whatever is said of the number of records
        plain = clone(self.scenario).set_params(size=None)
        return certificate_of_share(whole, plain, share)

    # -- releases ----------------------------------------------------------------------

    def summary(self, *, share: float | None = None, **options: Any) -> PrivateSummary:
        """Release counts, means, spreads and other statistics, all at once.

        Parameters
        ----------
        share : float, default=None
            Share of the total budget, in (0, 1]. None where an accountant is given.
        **options : dict
            Parameters of :class:`~skpuffer.summary.PrivateSummary`, such as `by`,
            `columns` and `statistics`.

        Returns
        -------
        PrivateSummary
            Fitted.

        Raises
        ------
        BudgetExceededError
            If so much is not left.
        """
        found: PrivateSummary = self._released(share, "summary", **options)
        return found

    def bounds(self, *, share: float | None = None, **options: Any) -> PrivateBounds:
        """Release narrower bounds of numbers whose public bounds are far too wide.

        Parameters
        ----------
        share : float, default=None
            As in :meth:`summary`.
        **options : dict
            A list of `columns`, and parameters of
            :class:`~skpuffer.summary.PrivateBounds`.

        Returns
        -------
        PrivateBounds
            Fitted. Its ``to_schema()`` is the `schema` for a later release.
        """
        found: PrivateBounds = self._released(share, "bounds", **options)
        return found

    def fit(
        self,
        model: Any,
        *,
        target: Hashable = None,
        columns: Sequence[Hashable] | None = None,
        share: float | None = None,
    ) -> Any:
        """Fit a copy of a private model.

        Parameters
        ----------
        model : estimator
            A private estimator. Its own scenario, accountant and schema are kept.
        target : str, default=None
            Column to predict. None is the target of the schema.
        columns : list of str, default=None
            Features. None takes all columns of the schema but the target.
        share : float, default=None
            As in :meth:`summary`.

        Returns
        -------
        estimator
            The fitted copy.

        Raises
        ------
        BudgetExceededError
            If so much is not left.
        UnsupportedError
            If the model needs the exact number of records, and this is private.
        """
        return self._released(share, "fit", model, target=target, columns=columns)

    def search(
        self, model: Any, param_grid: Any, *, share: float | None = None, **options: Any
    ) -> PrivateGridSearchCV:
        """Search the parameters of a private model, and release the best one.

        Every candidate is fitted once, as this adds up with other releases without
        loss.

        Parameters
        ----------
        model : estimator
            A private classifier or regressor, without an accountant.
        param_grid : dict or list of dict
            Candidates, as in scikit-learn.
        share : float, default=None
            As in :meth:`summary`.
        **options : dict
            `target` and `columns` as in :meth:`fit`, and parameters of
            :class:`~skpuffer.model_selection.PrivateGridSearchCV`.

        Returns
        -------
        PrivateGridSearchCV
            Fitted.
        """
        asked = model, param_grid
        found: PrivateGridSearchCV = self._released(share, "search", *asked, **options)
        return found

    def synthesize(
        self, *, share: float | None = None, **options: Any
    ) -> PrivateTableSynthesizer:
        """Release a model of the table, from which synthetic rows are drawn.

        Parameters
        ----------
        share : float, default=None
            As in :meth:`summary`.
        **options : dict
            A list of `columns`, and parameters of
            :class:`~skpuffer.synthesis.PrivateTableSynthesizer`.

        Returns
        -------
        PrivateTableSynthesizer
            Fitted. Its ``sample(n)`` draws rows, at no further cost.
        """
        found: PrivateTableSynthesizer = self._released(share, "synthesize", **options)
        return found

    def preview(
        self,
        what: Any,
        *arguments: Any,
        share: float | None = None,
        n_records: int | None = None,
        **options: Any,
    ) -> Preview:
        """Return the error and the promise of a release, without spending anything.

        No row is read, and the release that follows has this very noise.

        Parameters
        ----------
        what : estimator or {'summary', 'bounds', 'fit', 'search', 'synthesize'}
            A model, or the name of a method.
        *arguments : tuple
            Arguments of that method.
        share : float, default=None
            As in :meth:`summary`.
        n_records : int, default=None
            A public guess at the number of records.
        **options : dict
            Options of the method.

        Returns
        -------
        Preview
            It has the noise, the expected error and the certificate.

        Examples
        --------
        >>> import pandas as pd
        >>> from skpuffer import Session
        >>> ages = pd.DataFrame({"age": 400 * [20, 30, 40, 50, 60]})
        >>> session = Session(ages, {"age": (18, 90)}, ledger=":memory:")
        >>> preview = session.preview("summary", share=0.5, n_records=2000)
        >>> preview.std["result_"].loc[["mean"]].round(1)
        column     age
        statistic
        mean       0.2
        """
        if not isinstance(what, str):
            what, arguments = "fit", (what, *arguments)
        check_option(_VERBS, what=what)
        with self._lock:
            asked, found = self._planned(share, what, *arguments, **options)
        if found is None:
            raise unsupported_error("session.groups_not_known", by=asked.model.by)
        if n_records is None:
            return found
        rows = self.schema.draw(check_count(n_records=n_records))
        if self.scenario.unit is not None:
            rows[self.scenario.unit] = np.arange(n_records) // self.scenario.max_rows
        with unheard():
            model = self._fitted(asked, rows)
        # as of a fit: the deviations of `mean_` are `mean_std_`
        names = [name for name in vars(model) if hasattr(model, f"{name}std_")]
        return replace(found, std={n: getattr(model, f"{n}std_") for n in names})

    # -- its parts ---------------------------------------------------------------------

    def _asked(
        self,
        what: str,
        *arguments: Any,
        target: Hashable = None,
        columns: Sequence[Hashable] | None = None,
        **options: Any,
    ) -> _Asked:
        """The model that a method fits, the columns it reads, and its target."""
        schema = self.schema.with_target(None)
        if what == "summary":
            return _Asked(PrivateSummary(columns=columns, **options), schema, None)
        if what in ("bounds", "synthesize"):
            if what == "synthesize" and self.schema.classes is not None:
                options = {"target": self.schema.target} | options
            made = PrivateBounds if what == "bounds" else PrivateTableSynthesizer
            part = schema if columns is None else schema.select(columns)
            return _Asked(made(**options), part, None)
        model, *rest = arguments
        model = clone(model)
        if target is None and get_tags(model).target_tags.required:
            target = self.schema.target
            if target is None:
                raise value_error("session.target_missing", model=type(model).__name__)
        if target is not None or columns is None:
            known = self.schema.target if target is None else target
            schema = self.schema.with_target(known)
        schema = schema if columns is None else schema.select(columns)
        if what == "search":
            model = PrivateGridSearchCV(model, *rest, **{"trials": "each"} | options)
        return _Asked(model, schema, target)

    def _equip(self, asked: _Asked) -> None:
        """Give a model the scenario and the code book of the session."""
        model, name = asked.model, type(asked.model).__name__
        audit = audit_pipeline(model)
        if not hasattr(model, "preview") or not audit.is_private:
            why = [step.estimator for step in (*audit.leaks, *audit.scores)]
            raise value_error("session.model_not_private", model=name, why=why)
        for part in parts_of(model, set()):
            if not isinstance(part, PrivateEstimatorMixin):
                continue
            if part.scenario is None:
                part.scenario = clone(self.scenario)
            if _described(part.scenario) != _described(self.scenario):
                raise value_error("session.scenario_differs", model=name)
            size = getattr(part.scenario, "size", None)
            # or a release of the bounds of the model
            alone = part is model or part is getattr(model, "_finder", None)
            knows = alone and part._takes_any_size
            if size not in (None, "public") and not knows:
                raise unsupported_error("session.size_needed", model=name, size=size)
        inner = model.estimator if isinstance(model, PrivateGridSearchCV) else model
        own = inner.get_params(deep=False)
        ways = ["schema", "categories"]
        if getattr(inner, "_finder", None) is None:
            ways.append("bounds")  # else they are found within those of the code book
        told = [own.get(key) is not None for key in ways]
        if "schema" in own and not any(told):
            inner.set_params(schema=asked.schema)

    def _fitted(self, asked: _Asked, table: Any) -> Any:
        """Fit a model to the columns of a table that it reads."""
        lazy, target, unit = is_lazy(table), asked.target, self.scenario.unit
        frame: Any = nw.from_native(table)
        X = table
        if getattr(_reader(asked.model), "schema", None) is None:
            beside = {unit, target if lazy else None} - {None}
            X = nw.to_native(frame.select([*asked.schema.names, *beside]))
        if target is None:
            return asked.model.fit(X)
        return asked.model.fit(X, target if lazy else nw.to_native(frame[target]))

    def _previewed(self, asked: _Asked) -> Preview:
        """What a model would release of this table."""
        told: dict[str, Any] = {}
        reader, table = _reader(asked.model), self._table
        if getattr(reader.scenario, "size", None) in (None, "public"):
            count: Any = nw.from_native(table).lazy().select(nw.len()).collect()
            told["n_records"] = int(count.item())
        if getattr(reader, "schema", None) is None:
            told["feature_names"] = asked.schema.names
            last = getattr(asked.model, "_previewed", reader)
            if is_classifier(last) and declared_classes(last) is None:
                told["classes"] = asked.schema.classes
        if asked.target is not None:
            told["target_name"] = str(asked.target)
        found: Preview = asked.model.preview(**told)
        return found

    def _planned(
        self, share: float | None, what: str, *arguments: Any, **options: Any
    ) -> tuple[_Asked, Preview | None]:
        """A model with its accountant, and what it would release."""
        asked = self._asked(what, *arguments, **options)
        self._equip(asked)
        model, table = asked.model, self._table
        holder = model if hasattr(model, "accountant") else _reader(model)
        if (share is None) == (holder.accountant is None):
            raise value_error("session.cost_not_one", model=type(model).__name__)
        # which groups there are is not known before
        keyed = isinstance(model, PrivateSummary) and unlisted(model, table)

        def offered(accountant: Accountant) -> Preview | None:
            holder.set_params(accountant=accountant)
            return None if keyed else self._previewed(asked)

        if share is None:
            return asked, offered(clone(holder.accountant))
        return asked, self._of_share(model, check_real(share=share), offered)

    def _of_share(
        self, model: Any, share: float, offered: Callable[[Accountant], Preview | None]
    ) -> Preview | None:
        """Give a model the largest epsilon that leaves the other shares whole."""
        # read first: another process may spend some meanwhile
        rest, left = [self.ledger.total()], self.left
        if not 0 < share <= 1:
            raise value_error("session.share_out_of_range", share=share)
        if share > left + 10 * _ROUNDING:
            said = {"share": share, "left": left}
            raise BudgetExceededError(Statement("session.share_not_left", **said))
        if not self._of_records:
            kind: Any = OverlapAmplification if hasattr(model, "param_grid") else Best
            return offered(kind(share * self._epsilon, delta=share * self._delta))
        share = min(share, left)
        whole: Any = self._reference(share).epsilon
        # what is spent, and what the other shares will cost
        if left - share > _ROUNDING / 2:
            rest.append(self._reference(left - share))

        def fits(part: float) -> tuple[bool, Preview | None]:
            found = offered(PrivacyLoss(part * whole, self._delta, noise="gaussian"))
            try:
                if found is None:
                    known = promised_by_keys(model, self._table)
                else:
                    known = found.certificate
                return self._excess(*rest, known) <= _ROUNDING / 2, found
            except (CompositionError, UncertifiedError):
                pass  # the ledger says why it does not add up
            return True, found

        low, part = 0.0, 1.0
        for halved in range(_HALVINGS):
            kept, found = fits(part)
            if kept and part == 1:
                return found
            low = part if kept else low
            part = low + 0.5 ** (halved + 1)
        if low:
            return fits(low)[1]
        failed: Any = {"model": type(model).__name__, "share": share}
        raise value_error("session.share_too_small", **failed)

    def _released(
        self, share: float | None, what: str, *arguments: Any, **options: Any
    ) -> Any:
        """Fit, and keep what was released in the ledger's file."""
        with self._lock:
            asked, _ = self._planned(share, what, *arguments, **options)
            model, left = asked.model, self.left
            last = max(self.ledger.report().index, default=0)
            model.set_callbacks(*getattr(model, "_skl_callbacks", ()), self.ledger)
            self._fitted(asked, self._table)
            entries = self.ledger.report()
            own = (entries.index > last) & (entries["process"] == process_name())
            of = getattr(model, "by", None) if asked.target is None else asked.target
            named = [] if of is None else map(str, np.atleast_1d(of))
            note = {
                "title": ", ".join([type(model).__name__, *named]),
                "entries": entries.index[own].tolist(),
                "share": max(0.0, left - self.left),
                "table": released_table(model, self._level),
            }
            self.ledger.add_note(json.dumps({"release": note}, default=str))
            return model

    # -- what was released -------------------------------------------------------------

    def report(
        self, path: str | os.PathLike[str] | None = None, *, format: str | None = None
    ) -> str:
        """Return all that was released, what it cost and what was promised.

        It covers earlier processes too, reads no row, and may be published.

        Parameters
        ----------
        path : str or path-like, default=None
            File to write to.
        format : {'text', 'html', 'markdown'}, default=None
            None is that of the ending of `path` ('.html', '.md'), or 'text'.

        Returns
        -------
        str
        """
        format = format or _FORMATS.get(Path(path or "").suffix.lower(), "text")
        check_option(("text", "html", "markdown"), format=format)
        parts = report_parts(
            _noted(self.ledger, "release"),
            self.ledger.report(),
            self.ledger.total(),
            {"epsilon": self._epsilon, "delta": self._delta, "left": self.left},
            self.scenario,
        )
        text = written(parts, format)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def close(self) -> None:
        """Close the ledger file until it is needed again."""
        self.ledger.close()

    def __reduce__(self) -> NoReturn:
        raise type_error("session.not_pickled", path=self.ledger.path)

    def __repr__(self) -> str:
        shown = f"epsilon={self._epsilon}, delta={self._delta}, left={self.left:.4g}"
        return f"Session({shown}, ledger={self.ledger.path!r})"


class _Asked(NamedTuple):
    """A model as it was asked for, the columns it reads, and its target."""

    model: Any
    schema: Schema
    target: Any


def _sized(scenario: Any, schema: Schema, size: int | str) -> Any:
    """The scenario with what is said of the number of records."""
    # by exact type: others take the number for a fact
    if type(scenario) is not RecordScenario or scenario.size is not None:
        return clone(scenario)
    size = size if schema.size is None else schema.size
    # without additions neighbouring tables have the same number
    hidden = scenario.relation == "add_remove" or size != "private"
    return clone(scenario).set_params(size=size if hidden else None)


def _noted(ledger: PrivacyLedger, kind: str) -> list[Any]:
    """What the notes of a ledger hold of sessions or of releases."""
    own = [note for note in ledger.notes() if note.startswith(f'{{"{kind}":')]
    found = [json.loads(note)[kind] for note in own]
    if kind == "session" and not found:
        raise LedgerError(Statement("session.none_in_file", path=ledger.path))
    return found


def _described(value: Any) -> Any:
    """What tells a scenario from another, as plain data without rows of its prior."""
    if isinstance(value, int | str):
        return value
    if isinstance(value, list | tuple):
        return [_described(part) for part in value]
    if hasattr(value, "get_params") and not isinstance(value, type):
        # what is said of the number of records may differ
        held = value.get_params(deep=False) | {"class": type(value).__name__}
        known = {k: v for k, v in held.items() if v is not None and k != "size"}
        return {name: _described(part) for name, part in known.items()}
    text = value.to_csv() if hasattr(value, "to_csv") else repr(value)
    return sha256(text.encode()).hexdigest()


def _reader(model: Any) -> Any:
    """The estimator that reads the table, within a search or public preprocessing."""
    is_private = isinstance(model, PrivateEstimatorMixin)
    return model if is_private else getattr(model, "estimator", model)
