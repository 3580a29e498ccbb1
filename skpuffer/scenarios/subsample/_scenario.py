"""The secret of who was drawn of a pool."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.numbers import Indices, check_count, check_option, check_real
from skpuffer.releases import PublicContext
from skpuffer.scenarios._base import BoundScenario, Scenario, refuse_repeated
from skpuffer.scenarios._simulation import check_running
from skpuffer.utils._reading import read_groups, row_count
from skpuffer.utils._types import Table

from ._bound import BoundSubsample
from ._pool import check_classes, check_pool, pool_rows

__all__ = ["SubsampleScenario"]


class SubsampleScenario(Scenario):
    """The secret is who was drawn of a pool: the table is a random subset of it.

    For accountants that bound a mutual information (PAC privacy): the query is run on
    random subsets of the pool, and the noise set by how much its outputs differ. So it
    is for any query that is one vector, such as the parameters of a forest, whether or
    not one record's influence on it is bounded.

    Parameters
    ----------
    pool : 'known' or table or (X, y), default='known'
        'known' takes the table that is given to `fit` for the pool. A subset of it is
        drawn within `fit`, and the query is run on that alone. The attacker is assumed
        to know all rows of the pool: they are not protected, only who of it was drawn.
        A table, with its targets where the model has any, is a public pool; what is
        given to `fit` is then a subset of it that somebody has drawn.
    size : int or float, default=0.5
        Records of a subset. A float is a share of the pool, in (0, 1).
    secret : {'dataset', 'record', 'groups'}, default='dataset'
        What a budget is about. 'dataset' is all of who was drawn. 'record' is each
        record's membership, seen by itself: a weaker promise, which says nothing of two
        records at once. 'groups' are those of `groups`, each seen by itself.
    groups : array-like of shape (n_pool,) or callable, default=None
        With ``secret='groups'``: public ids of the pool's records, where the secret of
        a group is which of its records were drawn. Or a callable of the memberships, a
        mask of the pool's records, that returns a label, or a sequence of labels, one
        for each secret. None takes the `groups` given to `fit` of a known pool.
    prior : {'design', 'enumerated', 'sampled'}, default='design'
        - 'design': `n_subsets` subsets are drawn beforehand from the public
          `random_state`, and the one that is run is one of these. That is the prior,
          by design, so all of it is known.
        - 'enumerated': all subsets, of a small pool.
        - 'sampled': all subsets, of which `n_subsets` are drawn to learn from. The one
          that is run is drawn anew.
    n_subsets : int, default=512
        Subsets drawn, and fits of the model. By design the whole table leaks no more
        than ``log(n_subsets)`` nats.
    independent : bool, default=False
        Whether each record is drawn by itself with one probability, the share that
        `size` is of the pool. The number of records that are drawn is then secret.
    stratify : bool, default=False
        Whether the classes of the target have the same shares in each subset as in the
        pool, up to rounding.
    random_state : int, default=0
        Seed of the subsets. It is public and has nothing to do with the noise, nor with
        which of them is run.
    n_jobs : int, default=None
        How many processes run the query on the subsets, as joblib has it.
    verbose : bool, default=False
        Whether to show a progress bar of the subsets.

    See Also
    --------
    SimulatorScenario : Tables that a simulator draws given a secret.
    JointTableScenario : All tables that may be, with their probabilities.

    Notes
    -----
    Every fit of a known pool draws a subset of its own, by a generator of its own from
    which nothing else is drawn. The number of records that a query is told is that of
    the subset, or the expected one where records are drawn independently.

    Subsets are run once in a process for all budgets: outputs are remembered by what
    pool, subsets and query are, wherever that can be told. By design, and where all
    subsets are gone through, the first is run twice: a query that is another vector
    then is refused.

    References
    ----------
    Xiao and Devadas (2023), PAC privacy: automatic privacy measurement and control of
    data processing. Zhang and Vorobeychik, Breaking the Gaussian barrier: Residual-PAC
    privacy for automatic privatization.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import OutputSamples, SubsampleScenario
    >>> scenario = SubsampleScenario(np.arange(10.0)[:, None], 5, prior="enumerated")
    >>> mean = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=5, dim=1)
    >>> samples = scenario.bind(mean.context).fact(OutputSamples, mean)
    >>> samples.draws.shape, round(samples.entropy, 4), samples.draws.var().round(4)
    ((252, 1), 5.5294, np.float64(0.9167))
    """

    _purpose = Statement("subsample.needs_mutual_information_accountant")

    def __init__(
        self,
        pool: "str | Table | tuple[Table, ArrayLike]" = "known",
        size: float = 0.5,
        *,
        secret: str = "dataset",
        groups: ArrayLike | Callable[[Any], Any] | None = None,
        prior: str = "design",
        n_subsets: int = 512,
        independent: bool = False,
        stratify: bool = False,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.pool = pool
        self.size = size
        self.secret = secret
        self.groups = groups
        self.prior = prior
        self.n_subsets = n_subsets
        self.independent = independent
        self.stratify = stratify
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def draws_from_pool(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether the table given is the pool."""
        return isinstance(self.pool, str)

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_pool(self.pool)
        check_option(("dataset", "record", "groups"), secret=self.secret)
        check_option(("design", "enumerated", "sampled"), prior=self.prior)
        check_option((False, True), independent=self.independent)
        check_option((False, True), stratify=self.stratify)
        check_count(random_state=self.random_state, least=0)
        check_running(self.n_jobs, self.verbose)
        self._check_size()
        try:
            check_count(n_subsets=self.n_subsets, least=2)
        except ValueError as error:
            raise ScenarioError(
                Statement("subsample.single_subset_certain", error=error)
            ) from None
        if self.groups is not None:
            if self.secret != "groups":
                raise ScenarioError(
                    Statement(
                        "subsample.groups_without_secret_groups", secret=self.secret
                    )
                )
            if not callable(self.groups):
                self._check_ids()
        self._check_together()
        # of a pool that is at hand all is known by now
        if not self.draws_from_pool:
            self.drawn(row_count(pool_rows(self.pool)[0]))

    def _check_ids(self) -> None:
        """Refuse groups that are no ids."""
        try:
            read_groups(self.groups)
        except (TypeError, ValueError) as error:
            raise ScenarioError(
                Statement("subsample.groups_ids_invalid", error=error)
            ) from None

    def _check_size(self) -> None:
        """Refuse a size that is neither a count nor a share."""
        size: Any = self.size
        if isinstance(size, int | np.integer) and not isinstance(size, bool):
            check_count(size=size)
        elif not 0 < check_real(size=size) < 1:
            raise ScenarioError(
                Statement("subsample.size_share_out_of_range", size=size)
            )

    def _check_together(self) -> None:
        """Refuse parameters that contradict each other."""
        if self.independent and self.stratify:
            raise ScenarioError(Statement("subsample.stratify_with_independent"))
        if self.draws_from_pool:
            return
        if self.prior == "design":
            raise ScenarioError(Statement("subsample.design_with_public_pool"))
        if self.independent:
            raise ScenarioError(Statement("subsample.independent_with_public_pool"))
        if self.stratify:
            check_classes(pool_rows(self.pool)[1])
        if self.secret == "groups" and self.groups is None:
            raise ScenarioError(Statement("subsample.groups_missing"))

    def drawn(self, n_pool: int) -> int:
        """Return how many records are drawn of a pool.

        Parameters
        ----------
        n_pool : int

        Returns
        -------
        int
            The expected number, rounded, of records that are drawn independently.

        Raises
        ------
        ScenarioError
            If it is none of them, or all.
        """
        given = self.size
        share = not isinstance(given, int | np.integer)
        n = round(given * n_pool) if share else int(given)
        if not 1 <= n < n_pool:
            facts = {"given": given, "n": n, "n_pool": n_pool, "most": n_pool - 1}
            raise ScenarioError(
                Statement("subsample.size_too_small", **facts)
                if n < 1
                else Statement("subsample.size_too_large", **facts)
            )
        return n

    def table_size(self, n_given: int) -> int:
        """Return how many records a query is run on."""
        return self.drawn(n_given) if self.draws_from_pool else n_given

    def check_groups(self, groups: Indices) -> None:
        """Refuse ids that no secret is about."""
        if self.secret == "record":
            refuse_repeated(groups, self)
        if self.secret == "groups" and not self.draws_from_pool:
            raise ScenarioError(Statement("subsample.groups_of_table_given"))

    def declared_groups(self, context: PublicContext) -> None:
        """Return None: groups are of the pool, and not of the table."""
        return

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        self.check()
        return BoundSubsample(self, context)

    def __repr__(self) -> str:
        pool: Any = repr(self.pool)
        if not isinstance(self.pool, str):
            try:
                pool = f"<{row_count(pool_rows(self.pool)[0])} records>"
            except (ValueError, IndexError):  # no table, as a fit will say
                pool = f"<{type(self.pool).__name__}>"
        given = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in ("pool", "size", "groups", "n_jobs", "verbose")
        }
        rest = "".join(f", {name}={value!r}" for name, value in sorted(given.items()))
        return f"SubsampleScenario(pool={pool}, size={self.size!r}{rest})"
