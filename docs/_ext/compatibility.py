"""What works with what: ``compatibility-matrix`` at a glance, ``compatibility-table``.

The rows come from the code, which compares what each accountant needs with what each
scenario provides, so the tables cannot say anything else than the library does.
"""

import re
from itertools import groupby
from operator import itemgetter

from sphinx.util.docutils import SphinxDirective

from skpuffer.accountants import compatibility_table

HEADER = ("Scenario", "Release", "Works", "From which fact, or why not")
WIDTHS = (22, 18, 8, 52)


def plain(message):
    """Return a message of the library as reStructuredText that reads the same."""
    return re.sub(r"([\\*`_|])", r"\\\1", " ".join(message.split()))


def _runs(numbers):
    """Return ascending numbers as text, three or more in a row as a range."""
    runs = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(
        f"{run[0]}–{run[-1]}" if len(run) > 2 else " ".join(map(str, run))
        for run in runs
    )


def list_table(rows, widths, *options):
    """Return the lines of one list-table.

    Parameters
    ----------
    rows : iterable of sequence of str
        The cells of each row; the first row is the header.
    widths : sequence of int
        Of the columns, in parts of their sum.
    *options : str
        Further options of the directive.

    Returns
    -------
    list of str
    """
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        f"   :widths: {' '.join(map(str, widths))}",
        *(f"   {option}" for option in options),
        "",
    ]
    for first, *others in rows:
        lines.append(f"   * - {first}")
        lines += [f"     - {cell}" for cell in others]
    return [*lines, ""]


def _raw(html):
    return [".. raw:: html", "", f"   {html}", ""]


def _sorted_rows():
    return sorted(compatibility_table(), key=itemgetter("accountant"))


def matrix(rows):
    """Return the lines of the table of scenarios by accountants, and of its legend.

    Parameters
    ----------
    rows : sequence of dict
        Of :func:`skpuffer.accountants.compatibility_table`.

    Returns
    -------
    list of str
    """
    accountants, scenarios, releases = (
        list(dict.fromkeys(row[key] for row in rows))
        for key in ("accountant", "scenario", "release")
    )
    numbers = {release: number for number, release in enumerate(releases, 1)}
    cells = {}
    for row in rows:
        works = cells.setdefault((row["scenario"], row["accountant"]), [])
        if row["works"]:
            works.append(numbers[row["release"]])
    table = [("Scenario", *(f":ref:`{name} <works-{name}>`" for name in accountants))]
    table += [
        (f"``{scenario}``", *(_runs(cells[scenario, a]) or "–" for a in accountants))
        for scenario in scenarios
    ]
    legend = [f"{number}. {plain(release)}" for release, number in numbers.items()]
    widths = (20, *[8] * len(accountants))
    return [*list_table(table, widths, ":class: works-matrix"), *legend, ""]


class CompatibilityMatrix(SphinxDirective):
    """Scenarios by accountants: the kinds of release that work."""

    def run(self):
        """Return the table's nodes."""
        # the library may have changed though the page's source did not
        self.env.note_reread()
        return self.parse_text_to_nodes("\n".join(matrix(_sorted_rows())))


class CompatibilityTable(SphinxDirective):
    """A section for each accountant, with a list-table in a fold."""

    def run(self):
        """Return the sections' nodes."""
        self.env.note_reread()
        lines = []
        for accountant, group in groupby(_sorted_rows(), itemgetter("accountant")):
            group = list(group)
            works = sum(row["works"] for row in group)
            head = f"{works} of {len(group)} combinations work"
            cells = [
                (
                    f"``{row['scenario']}``",
                    plain(row["release"]),
                    "yes" if row["works"] else "no",
                    f"``{row['reason']}``" if row["works"] else plain(row["reason"]),
                )
                for row in group
            ]
            lines += [f".. _works-{accountant}:", "", accountant, "-" * len(accountant)]
            lines += ["", *_raw(f"<details><summary>{head}</summary>")]
            lines += list_table([HEADER, *cells], WIDTHS) + _raw("</details>")
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app):
    """Register the directives."""
    app.add_directive("compatibility-matrix", CompatibilityMatrix)
    app.add_directive("compatibility-table", CompatibilityTable)
    return {"parallel_read_safe": True}
