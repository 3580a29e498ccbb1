"""The tools by which the tests and the shape of the code are judged."""

import ast
from pathlib import Path

import pytest

from .tools import fault_runs
from .tools.fault_kinds import blocks, find_faults, inject
from .tools.fault_runs import instrumented
from .tools.inject_faults import PACKAGE, ROOT, Coverage, draw, modules, sessions
from .tools.trace_fit import count, first_calls


@pytest.mark.parametrize(
    "line, kind, changed",
    [
        ("return a + b", "sign", "return a - b"),
        ("return a / b", "sign", "return a * b"),
        ("return -a", "sign", "return a"),
        ("return a * b", "factor", "return 2 * (a * b)"),
        ("return math.sqrt(a)", "factor", "return 2 * math.sqrt(a)"),
        ("return 0.5", "constant", "return 1.0"),
        ("return 3", "constant", "return 4"),
        ("return a - b", "term", "return a"),
        ("a += b", "term", "pass"),
        ("return np.minimum(a, b)", "extremum", "return np.maximum(a, b)"),
        ("return min(a, b)", "extremum", "return max(a, b)"),
        ("return a < b", "boundary", "return a <= b"),
        ("return a[1:]", "off by one", "return a[2:]"),
        ("return range(a, b)", "off by one", "return range(a, b - 1)"),
        ("return not a", "not", "return a"),
        ("return a is None", "not", "return a is not None"),
        ("return a and b", "connective", "return a or b"),
        ("return a and b", "condition", "return b"),
        ("return math.ceil(a)", "rounding", "return math.floor(a)"),
        ("return math.nextafter(a, b)", "rounding", "return a"),
        ("return f(a, norm=b)", "keyword", "return f(a)"),
        ("return (*a, 'why')", "assumption", "return ('why',)"),
        ("return a.assuming(b)", "assumption", "return a"),
        ("return a if b else c", "branch", "return c"),
        ("if a:\n        return b", "branch", "if False:\n        return b"),
        ("if a:\n        raise ValueError", "raise", "pass"),
        ("check_positive(a=a)", "check", "pass"),
        ("return check_positive(a=a)", "check", "return a"),
    ],
)
def test_each_kind_of_fault_makes_the_edit_it_names(line, kind, changed):
    source = f"def f(a, b, c):\n    {line}\n"
    expected = ast.unparse(ast.parse(f"def f(a, b, c):\n    {changed}\n"))
    made = [
        ast.unparse(inject(source, fault))
        for fault in find_faults(source, "f.py")
        if fault.kind == kind
    ]
    assert expected in made


def test_no_fault_is_made_of_words_or_display():
    source = '''
"""A module: 1 + 1."""
__all__ = ["a" + "b"]
if TYPE_CHECKING:
    from a import b
def f(a: int + 1) -> 2 + 2:
    """Returns a < 1."""
    warn(f"{a + 1}", stacklevel=2)
    raise ValueError("a" + str(a + 1))
class A:
    def __repr__(self):
        return "A" * 2
'''
    assert find_faults(source, "f.py") == ()


def test_every_fault_changes_the_tree_and_compiles():
    source = """
def f(a, b):
    if not a:
        raise ValueError
    for i in range(3):
        b -= max(a, i) * 2.0
    return (lambda c: c + 1)(b) if 0 < a <= b else g(b, norm=1)
"""
    faults = find_faults(source, "f.py")
    assert len({fault.place for fault in faults}) == len(faults) > 15
    for fault in faults:
        tree = inject(source, fault)
        compile(tree, "f.py", "exec")
        assert ast.unparse(tree) != ast.unparse(ast.parse(source))
        assert fault.key.startswith("f | ")


def test_faults_that_read_the_same_have_keys_of_their_own():
    source = "def f(a):\n    if a < 1:\n        return 1 + 1\n    return a < 1\n"
    faults = find_faults(source, "f.py")
    assert len({fault.key for fault in faults}) == len(faults)
    moved = find_faults("import math\n\n\n" + source, "g.py")
    assert [fault.key for fault in moved] == [fault.key for fault in faults]


def test_a_fault_is_found_again_only_in_the_source_it_was_found_in():
    (fault,) = [f for f in find_faults("a = b + c", "f.py") if f.kind == "sign"]
    with pytest.raises(ValueError, match="changed since"):
        inject("a = b - c", fault)


def test_blocks_begin_where_faults_say_theirs_does():
    source = """
X = 1 + 1
def f(a):
    "Words."
    b = a + 1
    if b:
        return b - 1
    else:
        b = b * 2
    return [i + 1 for i in b]
"""
    starts = {run[start].lineno for run, start in blocks(ast.parse(source))}
    assert starts == {5, 7, 9}
    found = {fault.line: fault.block for fault in find_faults(source, "f.py")}
    assert found == {2: None, 5: 5, 6: 5, 7: 7, 9: 9, 10: 5}


def test_an_instrumented_source_notes_what_it_ran_and_keeps_its_words():
    source = "def f(a):\n    'Words.'\n    if a:\n        return 1\n    return 2\n"
    space = {"__hits__": set()}
    exec(compile(instrumented("f.py", source), "f.py", "exec"), space)
    assert (space["f"](False), space["f"].__doc__) == (2, "Words.")
    assert space["__hits__"] == {"f.py:3"}
    space["f"](True)
    assert space["__hits__"] == {"f.py:3", "f.py:4"}


def test_faults_are_drawn_by_lines_and_by_seed():
    def body(n):
        return "def f(a):\n" + "".join(f"    a = a + {i}.5\n" for i in range(n))

    sources = {"long.py": body(300), "short.py": body(100), "words.py": "'Words.'\n"}
    drawn = draw(sources, 40, seed=1)
    assert draw(sources, 40, seed=1) == drawn
    assert draw(sources, 40, seed=2) != drawn
    assert sum(fault.file == "long.py" for fault in drawn) in (29, 30, 31)
    assert len({(fault.file, fault.line) for fault in drawn}) == len(drawn) == 40
    assert len({fault.kind for fault in drawn}) == 3


def test_tests_of_the_faulty_block_come_first_and_the_quick_ones_before():
    source = "def f(a):\n    return a + 1\n"
    fault = find_faults(source, "pkg/noise/_f.py")[0]
    near = Coverage({"n1": 3.0, "n2": 1.0, "n3": 0.1}, {"pkg/noise/_f.py:2": ["n1"]})
    near.runs["pkg/noise/_f.py:2"].append("n2")
    far = Coverage({"m": 0.2}, {"pkg/noise/_f.py:2": ["m"]})
    none = Coverage({"k": 0.1}, {"pkg/noise/_g.py:2": ["k"]})
    covered = {"tests/a.py": far, "tests/noise/b.py": near, "tests/c.py": none}
    order = [("tests/noise/b.py", ["n2", "n1"]), ("tests/a.py", ["m"])]
    rest = [("tests/noise/b.py", ["n3"])]
    assert sessions(fault, covered, 60.0) == (order + rest, pytest.approx(5.8), 0)
    chosen, _, left = sessions(fault, covered, 2.0)
    assert (chosen, left) == ([("tests/noise/b.py", ["n2"])], 2)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text(
        "def double(a):\n    return a + a\n\n\ndef half(a):\n    return a / 2\n"
    )
    (tmp_path / "tests" / "test_pkg.py").write_text(
        "import pkg\n\n\n"
        "def test_double():\n    assert pkg.double(3) == 6\n\n\n"
        "def test_half():\n    assert pkg.half(0) == 0\n"
    )
    (tmp_path / "tests" / "conftest.py").write_text(
        "from hypothesis import settings\n"
        "settings.register_profile('fixed', derandomize=True)\n"
    )
    return tmp_path


def test_a_known_fault_is_caught_and_an_unseen_one_survives(project, monkeypatch):
    # the project imports no more than these, and none of these faults asks for much:
    # limits are only there to end, so that a busy machine does not meet them
    monkeypatch.setattr(fault_runs, "LIBRARIES", ["hypothesis", "pytest"])
    # a process of its own finds the tools there, wherever pytest was started from
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    limits = {"limit": 1800.0, "memory": 2**40}
    file = "tests/test_pkg.py"
    passed, failed = fault_runs.run(project, "pkg", None, [(file, None)], **limits)
    assert failed is None
    assert [(test, hit) for test, _, hit in passed] == [
        (f"{file}::test_double", ["pkg/__init__.py:2"]),
        (f"{file}::test_half", ["pkg/__init__.py:6"]),
    ]
    source = (project / "pkg" / "__init__.py").read_text()
    faults = {f.key: f for f in find_faults(source, "pkg/__init__.py")}
    sign = faults["double | sign | a + a -> a - a | return a + a"]
    wanted = [(file, [f"{file}::test_half", f"{file}::test_double"])]
    passed, failed = fault_runs.run(project, "pkg", sign, wanted, **limits)
    assert [test for test, _, _ in passed] == [f"{file}::test_half"]
    assert failed[0] == f"{file}::test_double"
    factor = faults["half | factor | a / 2 -> 2 * (a / 2) | return a / 2"]
    assert fault_runs.run(project, "pkg", factor, wanted, **limits)[1] is None


def test_returns_are_steps_to_a_file_that_was_left():
    calls = [("a", "f"), ("a", "g"), ("b", "f"), ("a", "h"), ("c", "f"), ("b", "g")]
    assert count(calls) == (3, 2)


def test_a_function_counts_at_its_first_call_alone():
    import json

    def work():
        json.dumps([1])
        json.dumps([2])

    functions = [function for _, function in first_calls(work, "json")]
    assert functions[0] == "dumps"
    assert len(set(functions)) == len(functions)


def test_faults_are_made_in_the_kernel_and_in_rooms_that_are_there():
    # a part that is gone ends this with an error
    files = modules()
    kernel = (ROOT / PACKAGE / "kernel").glob("*.py")
    assert {path.relative_to(ROOT).as_posix() for path in kernel} <= files.keys()
