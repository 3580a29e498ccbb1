"""What scenarios buy, as it was measured: ``gains-table`` and ``gains-by-accountant``.

The cells come from the figures that ``python -m benchmarks.gains`` stored: fits, not a
comparison of what is needed with what is provided.
"""

from pathlib import Path

import pandas as pd
from compatibility import list_table, plain
from sphinx.util.docutils import SphinxDirective

STORED = Path(__file__).parents[2] / "benchmarks" / "results" / "gains.csv"


def _times(gain):
    """Return a gain to three digits; in full where it is larger."""
    return "∞" if gain == float("inf") else f"{float(f'{gain:.3g}'):,.10g}×"


class _Cells:
    """Cells of a table, and the reasons that they refer to by number, if at all."""

    def __init__(self, numbered):
        self.numbered, self.reasons = numbered, {}

    def cell(self, row):
        """Return the gain, or a dash with the number of its reason."""
        if row["works"]:
            return _times(row["gain"])
        if not self.numbered:
            return "–"
        number = self.reasons.setdefault(row["reason"], len(self.reasons) + 1)
        return f"–\\ :sup:`{number}`"

    def table(self, rows, column, names):
        """Return the lines of scenarios by what a column of the figures holds."""
        found = {(r["scenario"], r[column]): self.cell(r) for _, r in rows.iterrows()}
        scenarios = rows["scenario"].unique()
        columns = rows[column].unique()
        lines = [("Scenario", *(names(name) for name in columns))]
        for name in scenarios:
            cells = (found[name, other] for other in columns)
            lines.append((f"``{name}``", *cells))
        widths = (20, *[8] * len(columns))
        return list_table(lines, widths, ":class: works-matrix")

    def legend(self):
        """Return the lines of the reasons, by their numbers."""
        return [*(f"{i}. {plain(why)}." for why, i in self.reasons.items()), ""]


def by_estimator(frame):
    """Return the lines of scenarios by estimators, of what was fitted, and of why not.

    Parameters
    ----------
    frame : DataFrame
        The stored figures.

    Returns
    -------
    list of str
    """
    best = frame[frame["accountant"] == "Best"]
    cells = _Cells(numbered=True)
    lines = cells.table(best, "estimator", "``{}``".format)
    first = frame.iloc[0]
    used = ", ".join(f"{p} {first[p]}" for p in ("numpy", "scipy", "scikit-learn"))
    lines += [*cells.legend(), "What was fitted:", ""]
    about = best.drop_duplicates("scenario")
    rows = [("Scenario", "What is secret", "Table", "Records", "May differ")]
    for _, row in about.iterrows():
        differ = best.loc[best["scenario"] == row["scenario"], "records"].max()
        counted = f"{differ:,.0f}" if differ == differ else "–"
        rows.append(
            (
                f"``{row['scenario']}``",
                plain(row["secret"]),
                plain(row["table"]),
                f"{row['n']:,}",
                counted,
            )
        )
    lines += list_table(rows, (24, 36, 18, 10, 12))
    return [*lines, f"Made with Python {first['python']}, {used}.", ""]


def by_accountant(frame):
    """Return the lines of scenarios by accountants, for one estimator of each release.

    Parameters
    ----------
    frame : DataFrame
        The stored figures.

    Returns
    -------
    list of str
    """
    named = frame[frame["accountant"] != "Best"]
    cells, lines = _Cells(numbered=False), []
    for name in named["estimator"].unique():
        rows = named[named["estimator"] == name]
        lines += [f"``{name}``:", ""]
        lines += cells.table(rows, "accountant", ":ref:`{0} <works-{0}>`".format)
    return lines


class _FromFigures(SphinxDirective):
    """A table of the stored figures."""

    def run(self):
        """Return the table's nodes."""
        self.env.note_dependency(str(STORED))
        lines = self.lines(pd.read_csv(STORED))
        return self.parse_text_to_nodes("\n".join(lines))


class GainsTable(_FromFigures):
    """Scenarios by estimators, each by its best accountant."""

    lines = staticmethod(by_estimator)


class GainsByAccountant(_FromFigures):
    """Scenarios by accountants."""

    lines = staticmethod(by_accountant)


def setup(app):
    """Register the directives."""
    app.add_directive("gains-table", GainsTable)
    app.add_directive("gains-by-accountant", GainsByAccountant)
    return {"parallel_read_safe": True}
