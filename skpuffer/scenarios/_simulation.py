"""Queries run on simulated tables: once for each fit, and in parallel."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.numbers import Floats, check_option
from skpuffer.releases import QueryRelease
from skpuffer.utils._checks import check_jobs

from ._base import finite_output

__all__ = ["check_running", "fresh_generator", "run_tables", "simulated_once"]

Result = TypeVar("Result")


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
    # shared by whoever asks
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


def simulated_once(
    bound: Any, release: QueryRelease, key: tuple[Any, ...], find: Callable[[], Result]
) -> Result:
    """Return what a simulation finds, once for a bound scenario and a release.

    No other fit shares it. A query or a simulator may read anything, so two calls of
    one function can mean two computations.

    Parameters
    ----------
    bound : BoundScenario
    release : QueryRelease
    key : tuple
        What else tells the simulations of one bound scenario apart.
    find : callable
        The simulation.

    Returns
    -------
    object
        Shared by all who ask: not to be written to.
    """
    known = vars(bound).setdefault("_known_simulations", {})
    # by identity, which a release that is kept cannot lose to another one
    at = id(release), *key
    if at not in known:
        known[at] = release, find()
    return cast(Result, known[at][1])
