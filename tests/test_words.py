"""Every statement has its words, all words are used, and no English lies elsewhere."""

import ast
import copy
import importlib.resources
import json
import pickle
import string
import tomllib
from dataclasses import FrozenInstanceError
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import skpuffer
from skpuffer.exceptions import Statement, stated

PACKAGE = Path(skpuffer.__file__).parent
WORDS = {
    f"{topic}.{name}": template
    for topic, templates in tomllib.loads(
        importlib.resources.files("skpuffer.words")
        .joinpath("english.toml")
        .read_text("utf-8")
    ).items()
    for name, template in templates.items()
}


@cache
def trees():
    """Every module of the package as a tree, by its path."""
    return {
        path.relative_to(PACKAGE): ast.parse(path.read_text("utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def parameters_of(template):
    fields = [name for _, name, _, _ in string.Formatter().parse(template)]
    return {name.partition(".")[0].partition("[")[0] for name in fields if name}


def made(tree):
    """Calls that make a statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Statement":
            yield node


def texts(node):
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}


def test_every_statement_has_words_that_show_its_parameters():
    n_made = 0
    for path, tree in trees().items():
        for call in made(tree):
            given = {keyword.arg for keyword in call.keywords}
            if not isinstance(call.args[0], ast.Constant) or None in given:
                continue
            code, place = call.args[0].value, f"{path}:{call.lineno}"
            assert code in WORDS, place
            assert parameters_of(WORDS[code]) == given, f"{place}: {code}"
            n_made += 1
    assert n_made > 100


def test_all_words_are_used():
    used = set().union(*map(texts, trees().values()))
    assert not sorted(set(WORDS) - used - {"plain.text"})


#: Rooms whose errors are not of statements: what stands alone, and what tests others.
APART = {"certificate", "testing"}


def test_errors_are_raised_with_statements_and_not_with_prose():
    raised = [
        (path, node)
        for path, tree in trees().items()
        if path.parts[0] not in APART
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
    ]
    for path, node in raised:
        for given in node.exc.args:
            prose = isinstance(given, ast.Constant | ast.JoinedStr)
            assert not prose or " " not in ast.unparse(given), f"{path}:{node.lineno}"
    assert len(raised) > 100


HELD = Statement(
    "plain.text",
    text=Statement(
        "pipeline.leak",
        name=np.str_("a"),
        leak=["inf", float("inf"), np.float64(2.0), (1, None), {"b": True}],
    ),
)


def test_a_statement_comes_back_from_json_and_pickles():
    assert stated(json.loads(json.dumps(HELD.to_dict(), allow_nan=False))) == HELD
    assert pickle.loads(pickle.dumps(HELD)) == HELD
    assert hash(HELD) == hash(stated(HELD.to_dict()))
    assert Statement("plain.text", text="another") != HELD


def test_a_statement_keeps_no_object():
    class Rows:
        def __repr__(self):
            return "rows"

    kept = Statement("plain.text", text=Rows()).parameters["text"]
    assert isinstance(kept, str)
    assert (str(kept), repr(kept)) == ("rows", "rows")
    mutable = [1]
    statement = Statement("plain.text", text=mutable)
    mutable.append(2)
    assert statement.parameters["text"] == [1]


def test_a_statement_never_changes():
    statement = Statement("plain.text", text="a", names=["b"])
    with pytest.raises(FrozenInstanceError):
        statement.code = "plain.other"
    with pytest.raises(FrozenInstanceError):
        statement.parameters = {}
    with pytest.raises(FrozenInstanceError):
        del statement.code
    statement.parameters["names"].append("c")
    statement.parameters["text"] = "d"
    assert statement == Statement("plain.text", text="a", names=["b"])
    assert copy.deepcopy(statement) == statement


def test_a_code_of_another_version_is_shown_as_it_is():
    assert "later.news" in str(Statement("later.news", number=3))


def test_a_statement_is_searched_as_its_words_are():
    statement = Statement("assume.refusal_of_missing_uncovered")
    words = str(statement)
    assert statement[:7] == words[:7] and statement.lower() == words.lower()
    assert "missing" in statement and "zebra" not in statement
    assert 3 not in statement and not np.iterable(statement)
