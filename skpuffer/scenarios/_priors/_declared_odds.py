"""The belief that public odds of the secret hold, at public rows without labels."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skpuffer.exceptions import Statement, scenario_error

from ._bounded import BoundedOdds
from ._rows import Laws, RowBelief, codes_of

#: A rate that is rounded to two digits is no contradiction.
_ROUNDED = 0.005


class DeclaredOdds(RowBelief):
    """A public classifier says how probable each value of the secret is, by the row.

    Records are believed to be like the public rows, and the secret given a row to have
    the classifier's probabilities. `rest` says what the label adds.

    Parameters
    ----------
    propensity : classifier, callable or array-like
        A classifier of the secret, fitted without the private rows; or a callable of
        `rows` that returns probabilities, or these, of shape (n_rows, n_values) or
        (n_rows,) for the second of two values.
    rows : data frame or array-like of shape (n_rows, n_columns)
        Public rows of the columns that are read; the secret is left out. Classifier and
        rows are read once: later changes in place do not count.
    rate : float or dict of {value: float}, default=None
        Share of the people with the second value, or with each. It is only compared
        with the mean probability over the rows.
    known : sequence of column names, default=()
        Columns of which an attacker may know any subset already. They must not be all
        that is read.
    rest : BoundedOdds, default=None
        How far what the rows do not have, such as the label, shifts the odds given the
        row. None is for releases that read these columns only.

    Notes
    -----
    Fitted probabilities are as good as the fit: if it is too coarse or shrunk, the
    columns reveal more about the secret than the belief says.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skpuffer.scenarios import AttributeScenario, BoundedOdds, DeclaredOdds
    >>> rows = pd.DataFrame({"age": np.arange(20, 80)})
    >>> probability = 0.4 + 0.2 * (rows["age"] - 20) / 60
    >>> prior = DeclaredOdds(probability, rows, rest=BoundedOdds(1.5))
    >>> told = AttributeScenario("secret", level="record", prior=prior).explain(0.1)
    >>> told[["eta", "gain", "fallback"]].round(2)
              eta  gain  fallback
    epsilon
    0.1      0.09   7.5       0.9
    """

    _shared = ("propensity", "rows")
    _compared = ("rate", "known")

    def __init__(
        self,
        propensity: Any,
        rows: Any,
        *,
        rate: Any = None,
        known: Sequence[Hashable] = (),
        rest: BoundedOdds | None = None,
    ) -> None:
        self.propensity = propensity
        self.rows = rows
        self.rate = rate
        self.known = known
        self.rest = rest

    def _laws(self, scenario: Any) -> Laws:
        table = self.table()
        frame = table.frame().drop(columns=scenario.column, errors="ignore")
        values, given = self._probabilities(frame, scenario)
        rate = given.mean(axis=0)
        self._check_rate(values, rate)
        if np.any(rate == 0):
            raise scenario_error("propensity.value_without_probability")
        # Bayes: what the rows weigh given a value of the secret
        masses = given.T / given.sum(axis=0)[:, None]
        return Laws(values, masses, codes_of(frame, self.known))

    def _probabilities(self, frame: pd.DataFrame, scenario: Any) -> tuple[Any, Any]:
        """Values of the secret, and the probability of each at each row."""
        source = self._read("propensity")
        rows = frame if self.table().named else frame.to_numpy()
        values = None
        guesses = hasattr(source, "predict_proba")
        # without classes it is not fitted, or itself a class
        unfitted = guesses and not hasattr(source, "classes_")
        if isinstance(source, str) or source is None or unfitted:
            raise scenario_error("propensity.source_invalid", source=source)
        if guesses:
            read = getattr(source, "feature_names_in_", None)
            if read is not None and scenario.column in list(read):
                raise scenario_error("propensity.reads_secret", column=scenario.column)
            if read is not None and self.table().named:
                missing = [name for name in read if name not in frame.columns]
                if missing:
                    raise scenario_error(
                        "propensity.rows_lack_columns", missing=missing
                    )
                rows = frame[list(read)]
            values = tuple(np.asarray(source.classes_).tolist())
            source = source.predict_proba
        given = source(rows) if callable(source) else source
        try:
            given = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.ndim == 1:
            given = np.column_stack([1 - given, given])
        fits = given.ndim == 2 and len(given) == len(frame) and given.shape[1] >= 2
        if not fits or not np.all((given >= 0) & (given <= 1)):
            raise scenario_error(
                "propensity.probabilities_shape_invalid", n_frame=len(frame)
            )
        if not np.allclose(given.sum(axis=1), 1, atol=1e-6):
            raise scenario_error("propensity.probabilities_not_sum_one")
        if values is None:
            values = tuple(range(given.shape[1]))
        return values, given

    def _check_rate(self, values: tuple[Any, ...], found: Any) -> None:
        """Refuse a rate that the mean probability contradicts."""
        if self.rate is None:
            return
        rate = self.rate
        if not isinstance(rate, dict):
            if len(values) != 2:
                raise scenario_error(
                    "propensity.rate_not_each_value", values=list(values)
                )
            rate = {values[1]: rate}
        for value, share in rate.items():
            if value not in values or not isinstance(share, int | float):
                raise scenario_error(
                    "propensity.rate_not_share_or_dict",
                    values=list(values),
                    rate=self.rate,
                )
            mean = float(found[values.index(value)])
            if not abs(share - mean) <= _ROUNDED:
                raise scenario_error(
                    "propensity.rate_contradicts_probabilities",
                    share=share,
                    value=value,
                    mean=mean,
                )

    def statement(self) -> Statement:
        """Return the belief in a sentence."""
        return Statement(
            "assume.belief_propensity",
            n_rows=len(self.table()),
            rest=self._rest_statement(),
        )
