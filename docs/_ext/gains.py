"""What scenarios buy, as it was measured: ``gains-table`` and ``gains-by-accountant``.

The cells come from the figures that ``python -m benchmarks.gains`` stored: fits, not a
comparison of what is needed with what is provided.
"""

from html import escape
from pathlib import Path

import pandas as pd
from compatibility import list_table, plain
from docutils import nodes
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
        """Return the gain, or a dash with the number of its reason.

        Where more than one record may differ, what one record would need stands below.
        """
        if row["works"]:
            gain = _times(row["gain"])
            if row["records"] > 1:
                return f"{gain} ({_times(row['gain_over_one'])})"
            return gain
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
    # as they come: what is said of a parameter follows a comma
    plain_ones = ~frame["estimator"].str.contains(",")
    best = frame[(frame["accountant"] == "Best") & plain_ones]
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
    """Return the lines of scenarios by accountants, by estimator.

    Parameters
    ----------
    frame : DataFrame
        The stored figures.

    Returns
    -------
    dict of {str: list of str}
    """
    names = ":ref:`{0} <works-{0}>`".format
    return {
        name: _Cells(numbered=False).table(rows, "accountant", names)
        for name, rows in frame.groupby("estimator", sort=False)
    }


class GainsTable(SphinxDirective):
    """Scenarios by estimators, each by its best accountant."""

    def run(self):
        """Return the table's nodes."""
        return self.parse_text_to_nodes("\n".join(by_estimator(_stored(self.env))))


class GainsByAccountant(SphinxDirective):
    """Scenarios by accountants, in a fold for each estimator."""

    def run(self):
        """Return the folds' nodes."""
        found = []
        for name, lines in by_accountant(_stored(self.env)).items():
            head = f"<details><summary><code>{escape(name)}</code></summary>"
            found += [
                nodes.raw("", head, format="html"),
                *self.parse_text_to_nodes("\n".join(lines)),
                nodes.raw("", "</details>", format="html"),
            ]
        return found


def _stored(env):
    """Return the stored figures, of which the page depends."""
    env.note_dependency(str(STORED))
    return pd.read_csv(STORED)


def setup(app):
    """Register the directives."""
    app.add_directive("gains-table", GainsTable)
    app.add_directive("gains-by-accountant", GainsByAccountant)
    return {"parallel_read_safe": True}
