"""Queries run on simulated tables: once for each computation, and in parallel."""

import multiprocessing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skpuffer.distributions._weak_cache import MEMORY, life_of
from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.numbers import Floats, check_option
from skpuffer.releases import QueryRelease
from skpuffer.utils._checks import check_jobs
from skpuffer.utils._content import content_of

from ._base import finite_output

__all__ = ["check_running", "fresh_generator", "remembered_simulation", "run_tables"]

Result = TypeVar("Result")


class _Process:
    """Owner of what a worker process remembers."""


_PROCESS = _Process()

#: Simulations kept for one key.
_MOST = 32

#: Whose simulation it is, by its content: those of equal content find it there.
_DONE: WeakValueDictionary[Any, Any] = WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class _Entry:
    """What is remembered of one simulation."""

    content: Any
    written: frozenset[Any]
    shapes: Any
    value: Any


def check_running(n_jobs: Any, verbose: Any) -> None:
    """Refuse parameters by which no simulation can be run.

    Parameters
    ----------
    n_jobs : int or None
    verbose : bool

    Raises
    ------
    ValueError
    """
    try:
        check_jobs(n_jobs=n_jobs)
    except ValueError as error:
        raise ScenarioError(*error.args) from None
    check_option((False, True), verbose=verbose)


def fresh_generator(rng: Any) -> np.random.Generator:
    """Return a generator whose draws no other simulation has made.

    Parameters
    ----------
    rng : numpy.random.Generator or int

    Returns
    -------
    numpy.random.Generator
        A child of it, or of that of the seed: a simulation of the same seed draws from
        another stream.
    """
    return np.random.default_rng(rng).spawn(1)[0]


def run_tables(
    release: QueryRelease,
    tables: Iterable[tuple[Statement | str, Any, Any]],
    n_tables: int,
    *,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Floats:
    """Run a release on tables as they are drawn.

    Parameters
    ----------
    release : QueryRelease
    tables : iterable of (Statement or '', X, y)
        What a table is, for messages about public ones, else ''; and the arrays that
        the query reads. Drawn one after the other, whatever `n_jobs` is.
    n_tables : int
        How many there will be.
    n_jobs : int or None
        As joblib has it.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    outputs : ndarray of shape (n_tables, dim)
    """
    # without the context, which a worker process has no use for
    bare = replace(release, context=None)
    outputs: Any = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_output)(bare, *table) for table in tables
    )
    if verbose:
        from tqdm.auto import tqdm  # a display, wanted by few: not at import

        outputs = tqdm(outputs, total=n_tables, desc=release.name, unit="table")
    found: list[Floats] = []
    for output, shapes in outputs:
        _expect(release, shapes)
        # of foreign code shapes are known; of other queries their lengths are
        if len(output) != (len(found[0]) if found else release.dim or len(output)):
            raise ScenarioError(
                Statement("simulation.release_length_varies", name=release.name)
            )
        found.append(output)
    array = np.array(found)
    # remembered, and so shared by whoever asks
    array.setflags(write=False)
    return array


def _output(release: QueryRelease, what: object, X: Any, y: Any) -> tuple[Floats, Any]:
    """Output on one table, and the shapes of its parts where the query knows them."""
    try:
        output = finite_output(
            release, X, y, what or Statement("simulation.one_simulated_table")
        )
    except ScenarioError:
        raise
    except ValueError as error:
        if not what:
            raise
        raise ScenarioError(
            Statement(
                "simulation.release_not_computable",
                name=release.name,
                what=what,
                error=error,
            )
        ) from None
    return output, getattr(release.query, "shapes", None)


def _expect(release: QueryRelease, shapes: Any) -> None:
    """Let the query refuse a table that gives other shapes than simulated ones."""
    if shapes is not None:
        release.query.check_shapes(shapes)  # type: ignore[union-attr] # it has shapes


def remembered_simulation(
    scenario: Any,
    release: QueryRelease,
    made_of: tuple[Any, ...],
    find: Callable[[], Result],
) -> Result:
    """Return what a simulation finds, from memory if it was done before.

    Two simulations are one and the same if the query and all that the tables are made
    of have equal contents; see :func:`~skpuffer.utils._content.content_of`. Where that
    is not known, nothing is remembered, and nothing of an empirical prior either, whose
    rows are private. What is remembered lives as long as a scenario that asked for it,
    or a clone of it; in a worker process, which gets a new copy with every task, as
    long as the process.

    Parameters
    ----------
    scenario : Scenario
    release : QueryRelease
    made_of : tuple
        All that is found depends on, but for the query; begins with a name for it.
    find : callable
        The simulation.

    Returns
    -------
    object
        Shared by all who ask: not to be written to.
    """

    def content() -> Any:
        # all that `QueryRelease.run` reads
        of_sum = release.contribution, release.factor, release.units, release.dim
        run = release.query if release.query is not None else of_sum
        ball = release.ball
        within = None if ball is None else (float(ball.radius), np.array(ball.center))
        return content_of(type(release), run, release.is_sum, within, *made_of)

    before = None if scenario.needs_empirical else content()
    if before is None:
        return find()
    worker = multiprocessing.parent_process() is not None
    life = _PROCESS if worker else life_of(scenario)
    # of equal keys there may be several: functions of one code that read other values
    at = "simulation", before.key
    known: tuple[_Entry, ...] = ()
    for owner in (life, _DONE.get(at)):
        held = () if owner is None else MEMORY.held((owner,), at, ())
        known += tuple(entry for entry in held if entry not in known)
    for entry in known:
        # except for what the query itself has written since
        if before.equals(entry.content, entry.written):
            _expect(release, entry.shapes)
            _keep(life, at, entry, known)
            return cast(Result, entry.value)
    value = find()
    # A query is a function of its table. What it writes itself beside, such as a log,
    # has no part in that, and need not be the same the next time.
    written = before.written(content())
    if written is not None:
        shapes = getattr(release.query, "shapes", None)
        _keep(life, at, _Entry(before, written, shapes, value), known)
    return value


def _keep(life: Any, at: Any, entry: _Entry, known: tuple[_Entry, ...]) -> None:
    """Keep a simulation under a life, as the latest of its key."""
    others = tuple(one for one in known if one is not entry)
    MEMORY.keep((life,), at, (entry, *others)[:_MOST])
    # the first to ask that is still there
    _DONE.setdefault(at, life)
