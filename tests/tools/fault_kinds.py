"""Mechanical faults: what can go wrong in a line of source, as edits of its tree.

Names, docstrings, annotations, texts of errors and whatever is only for display are
left alone.
"""

import ast
from collections import Counter
from copy import copy, deepcopy
from dataclasses import dataclass, field
from functools import cache

_SWAPPED = {
    ast.Add: (ast.Sub, "sign"),
    ast.Sub: (ast.Add, "sign"),
    ast.Mult: (ast.Div, "sign"),
    ast.Div: (ast.Mult, "sign"),
    ast.Lt: (ast.LtE, "boundary"),
    ast.LtE: (ast.Lt, "boundary"),
    ast.Gt: (ast.GtE, "boundary"),
    ast.GtE: (ast.Gt, "boundary"),
    ast.Eq: (ast.NotEq, "not"),
    ast.NotEq: (ast.Eq, "not"),
    ast.Is: (ast.IsNot, "not"),
    ast.IsNot: (ast.Is, "not"),
    ast.In: (ast.NotIn, "not"),
    ast.NotIn: (ast.In, "not"),
    ast.And: (ast.Or, "connective"),
    ast.Or: (ast.And, "connective"),
}
_RENAMED = {
    "min": ("max", "extremum"),
    "max": ("min", "extremum"),
    "minimum": ("maximum", "extremum"),
    "maximum": ("minimum", "extremum"),
    "ceil": ("floor", "rounding"),
    "floor": ("ceil", "rounding"),
}
_FUNCTIONS = {"sqrt", "exp", "expm1", "log", "log1p", "log2", "sum", "prod", "norm"}
_DISPLAY = {"__repr__", "__str__", "_repr_html_", "describe"}
_SETTINGS = {"__all__", "_parameter_constraints"}
#: Keywords whose loss changes nothing but texts, types or speed.
_IDLE_KEYWORDS = {
    "dtype",
    "copy",
    "maxsize",
    "name",
    "otypes",
    "source",
    "stacklevel",
    "strict",
}
_NO_NUMBERS = (ast.List, ast.Tuple, ast.JoinedStr)


@dataclass(frozen=True)
class Fault:
    """One fault of one file.

    Parameters
    ----------
    file : str
    line : int
    kind : str
    before, after : str
        The expression or the head of the statement, as source.
    statement : str
        Head of the statement that holds it.
    nth : int
        Which it is of those in its file that read the same, from one.
    function : str
        Qualified name of what holds the line; empty at the level of the module.
    block : int or None
        First line of the innermost run of statements, where that is in a function.
    place : tuple of int
        Where the edit stands among those of its file.
    """

    file: str
    line: int
    kind: str
    before: str
    after: str
    statement: str
    nth: int
    function: str
    block: int | None
    place: int = field(compare=False)

    @property
    def key(self):
        """A description that moving lines and files does not change."""
        again = f" | {self.nth}" if self.nth > 1 else ""
        return (
            f"{self.function} | {self.kind} | {self.before} -> {self.after} | "
            f"{self.statement}{again}"
        )


@cache
def find_faults(source, file):
    """Return every fault that can be made of a source, as a tuple."""
    return tuple(fault for fault, _ in _Finder(source, file).found)


def inject(source, fault):
    """Return the tree of the source with one fault in it."""
    finder = _Finder(source, fault.file)
    found, (holder, name, index, new) = finder.found[fault.place]
    if found != fault:
        raise ValueError(f"{fault.file} has changed since the fault was found.")
    if index is None:
        setattr(holder, name, new)
    else:
        getattr(holder, name)[index] = new
    return ast.fix_missing_locations(finder.tree)


def blocks(tree):
    """Yield each run of statements within functions, and where its code begins."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for inner in _same_function(node):
            for name in ("body", "orelse", "finalbody"):
                run = getattr(inner, name, None)
                if isinstance(run, list) and not isinstance(inner, ast.ClassDef):
                    start = _start(run)
                    if start < len(run):
                        yield run, start


def _same_function(function):
    """The nodes of a function, without the functions within."""
    waiting = [function]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        ]


def _start(run):
    return int(bool(run) and _is_text(run[0]))


def _is_text(statement):
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _name(call):
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _head(node):
    """Source of an expression, or of a statement without its blocks."""
    node = copy(node)
    for name in ("body", "orelse", "finalbody", "handlers", "decorator_list"):
        if isinstance(getattr(node, name, None), list):
            setattr(node, name, [])
    return ast.unparse(node).strip()


class _Finder:
    """Walks a tree once and notes every edit, without making any."""

    def __init__(self, source, file):
        self.tree = ast.parse(source)
        self.file = file
        self.found = []
        self._alike = Counter()
        self._scope = ()
        self._block = None
        self._statement = ""
        self._walk_fields(self.tree)

    def _note(self, at, kind, new, before=None, after=None):
        holder, name, index = at
        old = getattr(holder, name)
        old = old if index is None else old[index]
        function = ".".join(self._scope)
        said = (kind, before or _head(old), after or _head(new), self._statement)
        self._alike[function, said] += 1
        fault = Fault(
            self.file,
            old.lineno,
            *said,
            self._alike[function, said],
            function,
            self._block,
            len(self.found),
        )
        self.found.append((fault, (holder, name, index, ast.copy_location(new, old))))

    # -- the walk -----------------------------------------------------------------

    def _walk_fields(self, node):
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            if isinstance(value, ast.AST):
                self._walk(value, (node, name, None))
            elif isinstance(value, list):
                self._walk_list(node, name, value)

    def _walk_list(self, node, name, value):
        outer = self._block
        if name in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.Module | ast.ClassDef):
                self._block = None
            elif isinstance(value, list) and _start(value) < len(value):
                in_function = self._block is not None or isinstance(
                    node, ast.FunctionDef | ast.AsyncFunctionDef
                )
                self._block = value[_start(value)].lineno if in_function else None
        for index, child in enumerate(value):
            if isinstance(child, ast.AST):
                self._walk(child, (node, name, index))
        self._block = outer

    def _walk(self, node, at):
        if self._is_left_alone(node):
            return
        outer = self._statement
        if isinstance(node, ast.stmt):
            self._statement = _head(node)
        self._walk_inside(node, at)
        self._statement = outer

    def _walk_inside(self, node, at):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._scope += (node.name,)
            self._walk_fields(node)
            self._scope = self._scope[:-1]
            return
        make = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if make is not None:
            make(node, at)
        self._walk_fields(node)

    def _is_left_alone(self, node):
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return True
        if _is_text(node):
            return True
        # what only types need, and nothing runs
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            return True
        if isinstance(node, ast.Call):
            return _name(node).endswith(("Error", "Unsupported", "Warning", "warn"))
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            return getattr(target, "id", None) in _SETTINGS
        return getattr(node, "name", None) in _DISPLAY

    # -- the kinds of fault, by the node they change ------------------------------

    def _of_binop(self, node, at):
        if any(
            isinstance(side, _NO_NUMBERS) or isinstance(getattr(side, "value", 0), str)
            for side in (node.left, node.right)
        ):
            return
        self._swap_operator(node, at)
        if isinstance(node.op, ast.Add | ast.Sub):
            self._note(at, "term", deepcopy(node.left))
            if isinstance(node.op, ast.Add):
                self._note(at, "term", deepcopy(node.right))
        elif isinstance(node.op, ast.Mult | ast.Div | ast.Pow):
            self._double(node, at)

    def _of_augassign(self, node, at):
        self._swap_operator(node, at)
        self._note(at, "term", ast.Pass())

    def _of_boolop(self, node, at):
        self._swap_operator(node, at)
        for index, value in enumerate(node.values):
            others = [deepcopy(v) for i, v in enumerate(node.values) if i != index]
            new = others[0] if len(others) == 1 else ast.BoolOp(node.op, others)
            self._note(
                at, "condition", new, after=f"without {_head(value)}: {_head(new)}"
            )

    def _swap_operator(self, node, at):
        if type(node.op) in _SWAPPED:
            other, kind = _SWAPPED[type(node.op)]
            new = deepcopy(node)
            new.op = other()
            self._note(at, kind, new)

    def _of_compare(self, node, at):
        for index, operator in enumerate(node.ops):
            if type(operator) in _SWAPPED:
                other, kind = _SWAPPED[type(operator)]
                new = deepcopy(node)
                new.ops[index] = other()
                self._note(at, kind, new)

    def _of_unaryop(self, node, at):
        if isinstance(node.op, ast.Not):
            self._note(at, "not", deepcopy(node.operand))
        elif isinstance(node.op, ast.USub):
            self._note(at, "sign", deepcopy(node.operand))

    def _of_constant(self, node, at):
        if not _is_number(node):
            return
        holder = at[0]
        if isinstance(holder, ast.keyword) and holder.arg in _IDLE_KEYWORDS:
            return
        indexes = isinstance(holder, ast.Slice | ast.Subscript)
        kind = "off by one" if indexes else "constant"
        if isinstance(node.value, int):
            self._note(at, kind, ast.Constant(node.value + 1))
        else:
            self._note(at, kind, ast.Constant(2 * node.value if node.value else 1.0))

    def _double(self, node, at):
        self._note(at, "factor", ast.BinOp(ast.Constant(2), ast.Mult(), deepcopy(node)))

    def _of_call(self, node, at):
        name = _name(node)
        if name == "TypeVar":
            return  # what types stand for, which nothing runs
        if name in _RENAMED:
            other, kind = _RENAMED[name]
            new = deepcopy(node)
            if isinstance(new.func, ast.Attribute):
                new.func.attr = other
            else:
                new.func.id = other
            self._note(at, kind, new)
        if name in _FUNCTIONS:
            self._double(node, at)
        if name == "nextafter":
            self._note(at, "rounding", deepcopy(node.args[0]))
        if name == "range":
            new = deepcopy(node)
            stop = min(1, len(node.args) - 1)
            new.args[stop] = ast.BinOp(new.args[stop], ast.Sub(), ast.Constant(1))
            self._note(at, "off by one", new)
        if name == "assuming":
            self._note(at, "assumption", deepcopy(node.func.value))
        if name.lstrip("_").startswith("check"):
            # what is checked goes by its name, so a keyword lost is no subtle fault
            values = [keyword.value for keyword in node.keywords] or node.args
            if values and not isinstance(at[0], ast.Expr):
                self._note(at, "check", deepcopy(values[-1]))
            return
        for index, keyword in enumerate(node.keywords):
            if keyword.arg is not None and keyword.arg not in _IDLE_KEYWORDS:
                new = deepcopy(node)
                del new.keywords[index]
                self._note(at, "keyword", new)

    def _of_tuple(self, node, at):
        if isinstance(node.ctx, ast.Load) and any(
            isinstance(part, ast.Starred) for part in node.elts
        ):
            for index in range(len(node.elts)):
                new = deepcopy(node)
                del new.elts[index]
                self._note(at, "assumption", new)

    def _of_expr(self, node, at):
        call = node.value
        if isinstance(call, ast.Call) and _name(call).lstrip("_").startswith("check"):
            self._note(at, "check", ast.Pass())

    def _of_if(self, node, at):
        if isinstance(node.body[-1], ast.Raise):
            if not node.orelse:
                self._note(at, "raise", ast.Pass())
            return
        new = deepcopy(node)
        new.test = ast.copy_location(ast.Constant(False), node.test)
        self._note(at, "branch", new)

    def _of_ifexp(self, node, at):
        self._note(at, "branch", deepcopy(node.body))
        self._note(at, "branch", deepcopy(node.orelse))
