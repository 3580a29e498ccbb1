"""The target among the columns of public rows."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.numbers import Indices
from skpuffer.releases import PublicContext

__all__ = ["check_target", "target_leaks", "target_of", "target_statement", "text_of"]

#: Values of a column that are told apart; of more numbers, tenths of the records are.
_MOST_LEVELS = 64

#: How often the target may differ from the secret, relative to chance, and how likely
#: an agreement by chance may be.
_DIFFERENT, _BY_CHANCE = 0.1, 1e-6


def check_target(scenario: Any, context: PublicContext) -> None:
    """Refuse a target of another name than the one that is declared."""
    names = {scenario.target, context.target_name}
    if len(names) > 1 and all(isinstance(name, str) for name in names):
        raise ScenarioError(
            Statement(
                "target.name_differs_from_data",
                target=scenario.target,
                target_name=context.target_name,
            )
        )


def target_of(scenario: Any, context: PublicContext) -> Hashable | None:
    """Name of the target among the columns of public rows, or None."""
    # of several, one name says nothing
    if context.n_targets > 1:
        return None
    if scenario.target is not None:
        name: Hashable = scenario.target
        return name
    return context.target_name


def target_statement(scenario: Any, context: PublicContext) -> Statement:
    """Return what a certificate says of which column the target is."""
    name = target_of(scenario, context)
    target = (
        Statement("assume.target_unnamed")
        if name is None
        else Statement("assume.target_named", name=name)
    )
    if name is not None and name == scenario.column:
        return Statement("assume.target_is_secret", target=target)
    return Statement(
        "assume.target_is_not_secret", target=target, column=scenario.column
    )


def target_leaks(
    scenario: Any, y: Any, secret: Any, name: Hashable | None
) -> tuple[Statement, ...]:
    """Return a sentence if the target is nearly the secret; refuse if it is the secret.

    Parameters
    ----------
    scenario : Scenario
    y : array-like of shape (n_records,) or (n_records, n_targets), or None
        Targets as they came.
    secret : array-like of shape (n_records,) or None
        None where it is not known.
    name : str or None
        Of the target.

    Returns
    -------
    tuple of str

    Raises
    ------
    ScenarioError
        If the target is a recoding of the secret, and agrees with it beyond chance.

    Notes
    -----
    What the target is called proves nothing, so the values are compared, whatever codes
    either has. The target is nearly the secret if one of them is guessed from the other
    with at most a tenth of the errors that independent columns of the same shares have,
    and independent columns would agree so well with a probability below 1e-6. Numbers
    of many values are compared by tenths of the records.

    The answer depends on private rows. It can only take a promise away, and one record
    changes it only for tables at the threshold. A table that differs from a refused one
    in one record is near, and gets no promise either.
    """
    inner = getattr(scenario, "scenario", scenario)
    column = getattr(inner, "column", None)
    if y is None or secret is None or column is None:
        return ()
    if column in (name, getattr(inner, "target", None)):
        return ()
    leaks: tuple[Statement, ...] = ()
    for target in np.asarray(y, dtype=object).reshape(len(secret), -1).T:
        equal, nearly = _agreement(_codes_of_target(target), _codes_of_target(secret))
        if equal:
            raise ScenarioError(Statement("target.is_secret_recoded", column=column))
        if nearly:
            leaks = (Statement("target.nearly_secret_recoded", column=column),)
    return leaks


def _codes_of_target(values: Any) -> Indices:
    """Code of each value, or of the tenth of the records it is in where there are many.

    What is missing has a code of its own.
    """
    texts = pd.Series(np.asarray(values, dtype=object)).map(text_of)
    codes, levels = pd.factorize(texts)
    if len(levels) <= min(_MOST_LEVELS, max(2, len(codes) // 10)):
        return np.asarray(codes, dtype=np.intp)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float)
    if np.isnan(numbers).mean() > 0.5:
        numbers = pd.util.hash_array(texts.to_numpy(dtype=object)).astype(float)
    edges = np.nanquantile(numbers, np.linspace(0, 1, 11)[1:-1])
    found: Indices = np.searchsorted(np.unique(edges), numbers)
    return found


def text_of(value: Any) -> str:
    """Return the text of a cell, an empty one if it has none."""
    try:
        return str(value)
    except Exception:  # a cell may be anything, and must neither raise nor be quoted
        return ""


def _agreement(first: Indices, second: Indices) -> tuple[bool, bool]:
    """Whether two codes are one another's recoding, and whether they nearly are."""
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    n, freedom = len(first), (table.shape[0] - 1) * (table.shape[1] - 1)
    if not freedom:
        return False, False
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / n
    statistic = 2 * special.rel_entr(table, expected).sum()
    if stats.chi2.sf(statistic, freedom) >= _BY_CHANCE:
        return False, False
    nearly = any(
        n - side.max(axis=1).sum()
        <= _DIFFERENT * (n - (side.sum(axis=0) ** 2).sum() / n)
        for side in (table, table.T)
    )
    return bool(
        np.all((table > 0).sum(axis=0) == 1) and len(set(table.shape)) == 1
    ), nearly
