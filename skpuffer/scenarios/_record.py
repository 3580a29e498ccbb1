"""Differential privacy and group privacy as a scenario."""

from skpuffer.exceptions import Statement
from skpuffer.kernel.facts import Adjacency, Fact
from skpuffer.kernel.numbers import Indices, check_count, check_option
from skpuffer.releases import PublicContext

from ._base import AnyRelease, BoundScenario, Scenario, offers, refuse_repeated
from ._coupling import relabelling

__all__ = ["RecordScenario"]


class RecordScenario(Scenario):
    """The secret is everything about any `k` records; all else may be known.

    This is differential privacy (`k=1`) and group privacy (`k>1`): the promise holds
    for each pair of tables that differ in `k` records, so for every prior of
    independent groups.

    Parameters
    ----------
    k : int, default=1
        How many records may belong together, such as the members of a household.
    relation : {'add_remove', 'replace', 'relabel'}, default='add_remove'
        Whether a record's presence is secret or its content. A replaced record leaves
        and another comes, which costs up to twice as much. 'relabel' is for a secret
        target (label differential privacy): the features may be known, and are not
        hidden. It costs less where a release states what a target alone moves, as the
        coefficients of linear models and their gradients do.

    References
    ----------
    Chaudhuri and Hsu (2011), Sample complexity bounds for differentially private
    learning, section 4 (label privacy).

    Examples
    --------
    >>> from skpuffer.scenarios import RecordScenario
    >>> RecordScenario(k=4, relation="replace")
    RecordScenario(k=4, relation='replace')
    """

    def __init__(self, k: int = 1, relation: str = "add_remove") -> None:
        self.k = k
        self.relation = relation

    @property
    def any_records(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether a record may become any other, and not its target alone."""
        # no prior is stated, so none can be used: only the release bounds a record's
        # influence
        return self.relation != "relabel"

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_count(k=self.k)
        check_option(("add_remove", "replace", "relabel"), relation=self.relation)

    def check_groups(self, groups: Indices) -> None:
        """Refuse ids that repeat: any records may be secret, of any groups."""
        refuse_repeated(groups, self)

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        # parameters may have been set since they were last checked
        self.check()
        return _BoundRecord(self, context)


class _BoundRecord(BoundScenario):
    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        # where nothing bounds one record's influence, no noise hides it
        return frozenset({Adjacency} if release.is_bounded else ())

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        k, relation = int(self.scenario.k), self.scenario.relation
        # what is taken as public, in the words of the relation: the certificate quotes
        # it
        what = {
            "add_remove": Statement("assume.record_added_or_removed"),
            "replace": Statement("assume.record_replaced"),
            "relabel": Statement("assume.record_given_another_target"),
        }[relation]
        who = (
            Statement("assume.record_one")
            if k == 1
            else Statement("assume.record_up_to_k", k=k)
        )
        public = Statement(
            "assume.neighbouring_tables",
            who=who,
            what=what,
            n_records=self.context.n_records,
        )
        if relation == "relabel":
            return Adjacency(
                count=k,
                move=float("inf"),
                relation="replace",
                relabelled=True,
                settled=True,
                coupling_id=relabelling(self.context, k),
                assumptions=(public,),
            )
        # a record may become any other: only the release's own sensitivity bounds the
        # move
        return Adjacency.arbitrary(k, (public,), relation, any_records=True)
