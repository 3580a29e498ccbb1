"""The directive ``.. compatibility-table::``: what works with what.

The rows come from the code, which compares what each accountant needs with what each
scenario provides, so the table cannot say anything else than the library does.
"""

import re
from itertools import groupby
from operator import itemgetter

from sphinx.util.docutils import SphinxDirective

from skpuffer.accountants import compatibility_table

HEADER = ("Scenario", "Release", "Works", "From which fact, or why not")
WIDTHS = (22, 18, 8, 52)


def _plain(message):
    """Return a message of the library as reStructuredText that reads the same."""
    return re.sub(r"([\\*`_|])", r"\\\1", " ".join(message.split()))


def list_table(rows):
    """Return the lines of one list-table.

    Parameters
    ----------
    rows : iterable of sequence of str
        The cells of each row; the first row is the header.

    Returns
    -------
    list of str
    """
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        f"   :widths: {' '.join(map(str, WIDTHS))}",
        "",
    ]
    for first, *others in rows:
        lines.append(f"   * - {first}")
        lines += [f"     - {cell}" for cell in others]
    return [*lines, ""]


class CompatibilityTable(SphinxDirective):
    """One list-table for each accountant."""

    def run(self):
        """Return the tables' nodes."""
        # the library may have changed though the page's source did not
        self.env.note_reread()
        by_accountant = itemgetter("accountant")
        rows = sorted(compatibility_table(), key=by_accountant)
        lines = []
        for accountant, group in groupby(rows, key=by_accountant):
            cells = [
                (
                    f"``{row['scenario']}``",
                    _plain(row["release"]),
                    "yes" if row["works"] else "no",
                    f"``{row['reason']}``" if row["works"] else _plain(row["reason"]),
                )
                for row in group
            ]
            lines += [f".. rubric:: {accountant}", "", *list_table([HEADER, *cells])]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app):
    """Register the directive."""
    app.add_directive("compatibility-table", CompatibilityTable)
    return {"parallel_read_safe": True}
