"""The kernel alone makes certificates and draws noise, and refuses false claims."""

import ast
import io
import math
import re
import sys
import tokenize
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import skpuffer
from skpuffer.accountants import GroupPrivacy
from skpuffer.exceptions import Statement, UncertifiedError
from skpuffer.kernel.certificates import Claim, Names, prove
from skpuffer.kernel.facts import Adjacency, Fact
from skpuffer.kernel.run import run
from skpuffer.kernel.sums import sensitivity_bound
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Notion
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario
from tests.refused import refused
from tests.scenarios.pinned import Records

PACKAGE = Path(skpuffer.__file__).parent
KERNEL = sorted((PACKAGE / "kernel").glob("*.py"))
RELEASE = QueryRelease(
    query=lambda X, y: np.sum(X, axis=0),
    n_records=10,
    dim=1,
    sensitivity=Sensitivity(add_remove={1: 1.0, 2: 1.0}),
)
NOISE = GaussianNoise(2.0)
FACT = Fact(assumptions=(Statement("plain.text", text="the rows are independent"),))
NAMES = Names(release=RELEASE.name, accountant="Own()", scenario="Own()")
CLAIM = Claim(
    notion=Notion.RENYI_DP, epsilon=0.25, alpha=2.0, curve=NOISE.curve(1.0), delta=0.0
)


def modules_of(path):
    """Modules that a file imports as it runs, not for types alone."""
    tree = ast.parse(path.read_text("utf-8"))
    typed = {
        id(node)
        for each in ast.walk(tree)
        if isinstance(each, ast.If) and "TYPE_CHECKING" in ast.unparse(each.test)
        for node in ast.walk(each)
    }
    for node in ast.walk(tree):
        if id(node) in typed:
            continue
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("path", KERNEL, ids=lambda path: path.stem)
def test_the_kernel_imports_arrays_formulas_a_cipher_and_itself(path):
    for module in modules_of(path):
        first = module.partition(".")[0]
        ours = module == "skpuffer.exceptions" or module.startswith("skpuffer.kernel")
        known = first in sys.stdlib_module_names | {"numpy", "scipy", "randomgen"}
        assert known or ours, module


def functions_of(path):
    tree = ast.parse(path.read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def lines_of_code(path):
    """Numbers of lines that hold code: no docstring, no comment, no blank line."""
    text = path.read_text("utf-8")
    blank = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
    blank |= {tokenize.DEDENT, tokenize.ENDMARKER}
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in blank:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node) is not None:
            first = node.body[0]
            found -= set(range(first.lineno, first.end_lineno + 1))
    return found


def test_the_kernel_can_be_read_in_a_day():
    assert len(KERNEL) <= 30
    assert sum(len(lines_of_code(path)) for path in KERNEL) <= 5_250


@pytest.mark.parametrize("path", KERNEL, ids=lambda path: path.stem)
def test_no_function_of_the_kernel_is_long(path):
    code = lines_of_code(path)
    for node in functions_of(path):
        length = len(code & set(range(node.lineno, node.end_lineno + 1)))
        assert length <= 40, (node.name, length)


@pytest.mark.parametrize("path", KERNEL, ids=lambda path: path.stem)
def test_public_signatures_of_the_kernel_have_types(path):
    for node in functions_of(path):
        if node.name.startswith("_") and not node.name.endswith("__"):
            continue
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        every += [each for each in (given.vararg, given.kwarg) if each is not None]
        types = [each.annotation for each in every] + [node.returns]
        for each in filter(None, types):
            names = {n.id for n in ast.walk(each) if isinstance(n, ast.Name)}
            assert "Any" not in names, node.name


@pytest.mark.parametrize("path", KERNEL, ids=lambda path: path.stem)
def test_the_kernel_dispatches_by_type_and_not_by_branches(path):
    for node in functions_of(path):
        tests = [n.test for n in ast.walk(node) if isinstance(n, ast.If | ast.IfExp)]
        branches = [test for test in tests if "isinstance(" in ast.unparse(test)]
        assert len(branches) < 2, node.name


def calls(name):
    """Files outside the kernel that call a function or a method of a name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path in KERNEL:
            continue
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if f"{name}(" in text else ():
            if isinstance(node, ast.Call):
                called = node.func
                found = getattr(called, "id", None) or getattr(called, "attr", None)
                if found == name:
                    yield path.relative_to(PACKAGE).as_posix(), node


def test_no_other_module_makes_a_certificate():
    assert not [path for path, _ in calls("Certificate")]


def test_no_other_module_draws_noise_for_a_release():
    # rooms that attack, draw pictures, or ask an accountant what it knows
    apart = ("audit/", "extensions/", "inspection/", "testing/")
    apart += ("accountants/_compatibility.py", "synthesis/", "distributions/")
    drawing = [
        path
        for path, node in calls("sample")
        # of two arguments, a shape and a generator: noise, or a sample of a world
        if len(node.args) == 2 and not path.startswith(apart)
    ]
    assert not drawing


def test_its_page_names_all_of_it_and_files_that_are_there():
    page = (PACKAGE / "kernel" / "README.md").read_text("utf-8")
    named = set(re.findall(r"`([\w/.]+)`", page))
    assert {path.stem for path in KERNEL} - {"__init__"} <= named
    for name in named:
        if "/" in name or name.endswith(".py"):
            root = PACKAGE.parent if name.startswith("tests/") else PACKAGE
            assert (root / name).exists(), name


def test_what_a_rule_leaves_out_is_assumed_all_the_same():
    release = replace(RELEASE, assumptions=("nobody else is told",))
    made = prove(NOISE, release, FACT, lambda noise: CLAIM, NAMES)
    assert [str(text) for text in made.assumptions] == [
        "the rows are independent",
        "nobody else is told",
    ]
    assert made.epsilon == CLAIM.epsilon and made.release == RELEASE.name


@pytest.mark.parametrize(
    "code, lie",
    [
        ("proof.cost_not_a_number", {"epsilon": math.nan}),
        ("proof.cost_not_a_number", {"epsilon": -0.1}),
        ("proof.cost_not_a_number", {"rpp_epsilon": math.nan}),
        ("proof.states_no_cost", {"epsilon": None}),
        ("proof.delta_out_of_range", {"delta": 1.0}),
        ("proof.delta_out_of_range", {"delta": math.nan}),
        ("proof.delta_out_of_range", {"delta": 1e-6, "event_delta": 1e-5}),
        ("proof.delta_out_of_range", {"event_delta": -1e-9}),
        ("proof.confidence_out_of_range", {"confidence": 1.5}),
        ("proof.confidence_out_of_range", {"confidence": math.nan}),
        ("proof.estimate_adds_up", {"notion": "estimated", "composable": True}),
        ("proof.estimate_says_more", {"notion": "estimated", "rpp_epsilon": 1.0}),
        ("proof.order_out_of_range", {"alpha": 1.0}),
        ("proof.order_out_of_range", {"alpha": math.nan}),
    ],
)
def test_a_claim_that_cannot_be_is_refused(code, lie):
    with refused(UncertifiedError, code, accountant="Own()"):
        prove(NOISE, RELEASE, FACT, lambda noise: replace(CLAIM, **lie), NAMES)


def test_nothing_read_off_private_rows_becomes_a_promise():
    peeked = replace(FACT, reads_private_rows=True)
    with refused(UncertifiedError, "proof.private_rows_were_read"):
        prove(NOISE, RELEASE, peeked, lambda noise: CLAIM, NAMES)
    estimate = replace(CLAIM, notion=Notion.ESTIMATED)
    assert not prove(NOISE, RELEASE, peeked, lambda noise: estimate, NAMES).certified


def test_who_pays_is_told_before_anything_is_drawn():
    certificate = GroupPrivacy(1.0).certify(NOISE, RELEASE, RecordScenario())
    order = []

    def execute(noise, rng):
        order.append("drawn")
        return noise.sample(1, rng)

    def refuse():
        order.append("told")
        raise PermissionError

    rng = np.random.default_rng(0)
    with pytest.raises(PermissionError):
        run(certificate, NOISE, RELEASE, execute, rng, refuse)
    assert order == ["told"]
    run(certificate, NOISE, RELEASE, execute, rng, lambda: order.append("told"))
    assert order == ["told", "told", "drawn"]
    other = replace(RELEASE, name="another")
    with refused(UncertifiedError, "proof.other_release"):
        run(certificate, NOISE, other, execute, rng, lambda: order.append("told"))
    assert order == ["told", "told", "drawn"]
    # what was composed pays for several releases, whatever its name
    several = replace(certificate, n_releases=2)
    with refused(UncertifiedError, "proof.other_release"):
        run(several, NOISE, RELEASE, execute, rng, lambda: order.append("told"))
    assert order == ["told", "told", "drawn"]


@pytest.mark.parametrize("moves", [(5.0, 0.1, 0.1), (5.0, 5.0, 1.9), (5.0, 5.0, 5.0)])
def test_records_with_bounds_of_their_own_are_no_arbitrary_ones(moves):
    """One that goes anywhere does not stand for others, of which a prior is known."""
    known = {1: 1.0, 2: 1.0}
    release = QueryRelease(
        n_records=3,
        dim=1,
        contribution=Records(),
        is_sum=True,
        sensitivity=Sensitivity(add_remove=known, replace={1: 2.0, 2: 2.0}),
    )
    fact = Adjacency(
        count=3,
        move=max(moves),
        moves=np.array(moves),
        relation="replace",
        coupling_id="of these",
    )
    bound = sensitivity_bound(fact, release, 2)
    assert bound.radius == pytest.approx(sum(min(2.0, move) for move in moves))
    assert bound.arbitrary == (min(moves) >= 2.0)
    assert (bound.coupling_id == fact.coupling_id) == (min(moves) < 2.0)
