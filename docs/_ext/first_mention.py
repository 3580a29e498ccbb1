"""The first mention of a word of the glossary on a page leads to the glossary.

So no word is used on a page without a way to what it means, whoever writes the page.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

GLOSSARY = Path(__file__).parents[1] / "glossary.rst"

#: Pages whose words are not explained: the API, which has its own links, the glossary
#: itself, and lists.
LEFT_OUT = re.compile(
    r"generated/|api$|glossary$|bibliography$|changelog$|(?:.*/)?sg_execution_times$"
)

#: Words that mean something else as well, and how they read in the sense of the field.
IN_THE_SENSE = {
    "calibration": r"calibration of (?:the )?noise",
    "epsilon": "ε",
    "estimate": r"(?<=an\s)estimates?",
    "fact": r"(?<!public )facts?",
    "gain": r"(?<!to )(?<!may )(?<!columns )(?<!model )gains?(?! more)(?! where)",
    "delta": "δ",
    "law": r"laws?(?= of| as| is|\b)",
    "order": r"(?:Rényi )?orders?(?= α| \d| of the promise| of a Rényi)|Rényi orders?",
    "prior": r"priors?",
    "relation": r"neighbouring relations?",
    "strategy": r"strateg(?:y|ies)",
    "belief": r"beliefs?",
    "world": r"(?:two|private|public) worlds",
    "release": r"releases?(?= is| of| may|,|\.)",
    "Wasserstein distance": r"W∞|Wasserstein distances?",
    "differential privacy": r"differential privacy|\bDP\b",
}

#: What holds no running text, or is a link already.
NOT_PROSE = (
    nodes.literal,
    nodes.literal_block,
    nodes.reference,
    nodes.term,
    nodes.title,
    addnodes.pending_xref,
    nodes.math,
    nodes.image,
)


def terms():
    """Return the words of the glossary with what they read as."""
    text = GLOSSARY.read_text(encoding="utf-8").partition(".. glossary::")[2]
    found = re.findall(r"^   (\S.*)$", text, re.MULTILINE)
    words = [word for word in found if not word.startswith(":")]
    unknown = IN_THE_SENSE.keys() - words
    assert not unknown, f"The glossary has no longer: {sorted(unknown)}"
    return {
        word: re.compile(rf"(?<!\w)(?:{IN_THE_SENSE.get(word, word + 's?')})(?!\w)")
        for word in sorted(words, key=len, reverse=True)
    }


def _link(word, shown):
    """Return a link to a word of the glossary that reads as it did."""
    return addnodes.pending_xref(
        "",
        nodes.inline("", shown, classes=["xref", "std", "std-term"]),
        refdomain="std",
        reftype="term",
        reftarget=word,
        refexplicit=True,
        refwarn=True,
    )


def link_first_mentions(app, doctree):
    """Make links of the first mentions on a page that are none yet."""
    page = app.env.docname
    if LEFT_OUT.match(page):
        return
    left = dict(TERMS)
    for linked in doctree.findall(addnodes.pending_xref):
        if linked.get("reftype") == "term":
            left.pop(linked["reftarget"], None)
    for text in list(doctree.findall(nodes.Text)):
        parents, node = [], text.parent
        while node is not None:
            parents.append(node)
            node = node.parent
        if any(isinstance(parent, NOT_PROSE) for parent in parents):
            continue
        parts, rest = [], str(text)
        while True:
            hits = [
                (hit.start(), -len(hit.group()), word, hit)
                for word, pattern in left.items()
                if (hit := pattern.search(rest))
            ]
            if not hits:
                break
            *_, word, hit = min(hits, key=lambda found: found[:3])
            parts += [nodes.Text(rest[: hit.start()]), _link(word, hit.group())]
            del left[word]
            rest = rest[hit.end() :]
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(rest)])


TERMS = terms()


def setup(app):
    """Connect the hook."""
    app.connect("doctree-read", link_first_mentions)
    return {"parallel_read_safe": True}
