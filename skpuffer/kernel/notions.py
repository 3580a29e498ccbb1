"""The privacy notions a certificate can be stated in, and what follows from each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skpuffer.exceptions import value_error


@dataclass(frozen=True, eq=False)
class Notion:
    """A privacy notion; equal to its name, and written as it.

    Parameters
    ----------
    name : str
        Identifier, as certificates write it.
    title : str
        Name in the literature, for people.
    follows : tuple of Notion
        Notions implied directly, at the same order, epsilon and delta; from a Rényi
        notion to an approximate one the numbers differ. Implications of these follow
        too.
    differential : bool
        Whether it is about neighbouring tables, and not about a prior.
    certified : bool
        Whether it is a promise at all.

    Examples
    --------
    >>> from skpuffer.privacy import Notion
    >>> Notion.RENYI_DP == "renyi_dp", str(Notion.RENYI_DP)
    (True, 'renyi_dp')
    >>> Notion.of("renyi_dp").title
    'Rényi differential privacy'
    """

    name: str
    title: str
    follows: tuple[Notion, ...] = ()
    differential: bool = False
    certified: bool = True

    APPROXIMATE_DP: ClassVar[Notion]
    APPROXIMATE_PUFFERFISH: ClassVar[Notion]
    APPROXIMATE_RENYI_PUFFERFISH: ClassVar[Notion]
    AVERAGED_SLICED_PUFFERFISH: ClassVar[Notion]
    AVERAGED_SLICED_RENYI_PUFFERFISH: ClassVar[Notion]
    ESTIMATED: ClassVar[Notion]
    GROUP_MUTUAL_INFORMATION: ClassVar[Notion]
    JOINT_SLICED_PUFFERFISH: ClassVar[Notion]
    JOINT_SLICED_RENYI_PUFFERFISH: ClassVar[Notion]
    MUTUAL_INFORMATION: ClassVar[Notion]
    PURE_DP: ClassVar[Notion]
    PURE_PUFFERFISH: ClassVar[Notion]
    RECORD_MUTUAL_INFORMATION: ClassVar[Notion]
    RENYI_DP: ClassVar[Notion]
    RENYI_PUFFERFISH: ClassVar[Notion]
    SA_AVERAGED_SLICED_RENYI_PUFFERFISH: ClassVar[Notion]
    SA_JOINT_SLICED_RENYI_PUFFERFISH: ClassVar[Notion]

    #: The notions of this library, by name.
    known: ClassVar[dict[str, Notion]] = {}

    @classmethod
    def of(cls, notion: Notion | str) -> Notion:
        """Return a notion, given it or the name of one that is known.

        Parameters
        ----------
        notion : Notion or str

        Returns
        -------
        Notion

        Raises
        ------
        ValueError
            If the name is unknown.
        """
        if isinstance(notion, Notion):
            return notion
        if notion not in cls.known:
            names = ", ".join(map(repr, cls.known))
            raise value_error("certificate.notion_unknown", names=names, notion=notion)
        return cls.known[notion]

    @property
    def approximate(self) -> Notion | None:
        """The (epsilon, delta) notion that a whole curve converts it to, if any."""
        return CONVERSIONS.get(self)

    @property
    def pufferfish(self) -> Notion:
        """The same about secrets under priors: itself, unless it is about tables."""
        return PUFFERFISH.get(self, self)

    def implies(self, notion: Notion | str) -> bool:
        """Whether a promise in another notion follows from one in this.

        Parameters
        ----------
        notion : Notion or str

        Returns
        -------
        bool
            About neighbouring tables that differ by a replaced record, where it makes
            a difference; see :meth:`Certificate.implies`.
        """
        # transitive: through all that follow, however many steps away
        return self == Notion.of(notion) or any(n.implies(notion) for n in self.follows)

    def __eq__(self, other: object) -> bool:
        known = isinstance(other, Notion | str)
        return self.name == str(other) if known else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Notion {self.name!r}>"

    def __reduce__(self) -> str | tuple[object, ...]:
        # a notion of this library is unpickled as the one that is there
        if Notion.known.get(self.name) is self:
            return Notion.of, (self.name,)
        return super().__reduce__()


def _known(name: str, title: str, *follows: Notion, **facts: bool) -> Notion:
    """Enter a notion under its name, and as an attribute of the class."""
    notion = Notion(name, title, follows, **facts)
    Notion.known[name] = notion
    setattr(Notion, name.upper(), notion)
    return notion


# From the weakest to the strongest, each beside what follows from it. Differential
# privacy bounds the divergence for each pair of neighbouring tables, and divergences
# are jointly convex: averaged over a prior of independent records, the bound holds for
# secrets about one of them (Kifer and Machanavajjhala 2014).
_known("estimated", "an estimate, no guarantee", certified=False)
# On average over one prior, and in nats: no likelihood ratio is bounded. What is said
# of the whole table holds of each function of it (data processing), a record's
# membership among them; what is said of single ones holds of no two at once.
_known(
    "record_mutual_information",
    "mutual information with each record's membership, seen by itself (PAC privacy)",
)
_known(
    "group_mutual_information",
    "mutual information with the secret of each group, seen by itself (PAC privacy)",
)
_known(
    "mutual_information",
    "mutual information with the whole table (PAC privacy)",
    Notion.RECORD_MUTUAL_INFORMATION,
    Notion.GROUP_MUTUAL_INFORMATION,
)
# Averages over subsamples. Nothing about the release itself follows from either: a loss
# that is rare weighs little in a mean.
_known(
    "sa_averaged_sliced_renyi_pufferfish",
    "subsampling-averaged, slice-averaged Rényi Pufferfish privacy",
)
_known(
    "sa_joint_sliced_renyi_pufferfish",
    "subsampling-averaged, jointly sliced Rényi Pufferfish privacy",
    Notion.SA_AVERAGED_SLICED_RENYI_PUFFERFISH,
)
# About slices of the output, one direction at a time, and not about the output: nothing
# about all of it follows. What holds of the output holds of each of its slices (data
# processing), and of their mean (Zhang and Vorobeychik, Proposition B.1). One random
# projection may keep an (epsilon, delta) promise by slices that rarely break theirs, so
# that no mean of the slices' own epsilons follows from it.
_known(
    "averaged_sliced_pufferfish",
    "the mean over slices of each one's ε in (ε, δ)-Pufferfish privacy",
)
_known("joint_sliced_pufferfish", "(ε, δ)-Pufferfish privacy of one random projection")
_known(
    "averaged_sliced_renyi_pufferfish",
    "slice-averaged Rényi Pufferfish privacy",
    Notion.AVERAGED_SLICED_PUFFERFISH,
)
_known(
    "joint_sliced_renyi_pufferfish",
    "jointly sliced Rényi Pufferfish privacy",
    Notion.AVERAGED_SLICED_RENYI_PUFFERFISH,
    Notion.JOINT_SLICED_PUFFERFISH,
)
_known(
    "approximate_pufferfish",
    "(ε, δ)-Pufferfish privacy",
    Notion.AVERAGED_SLICED_PUFFERFISH,
    Notion.JOINT_SLICED_PUFFERFISH,
)
_known(
    "approximate_renyi_pufferfish",
    "approximate Rényi Pufferfish privacy",
    Notion.APPROXIMATE_PUFFERFISH,
)
_known(
    "renyi_pufferfish",
    "Rényi Pufferfish privacy",
    Notion.APPROXIMATE_RENYI_PUFFERFISH,
    Notion.JOINT_SLICED_RENYI_PUFFERFISH,
)
_known("pure_pufferfish", "pure Pufferfish privacy", Notion.RENYI_PUFFERFISH)
_known(
    "approximate_dp",
    "(ε, δ)-differential privacy",
    Notion.APPROXIMATE_PUFFERFISH,
    differential=True,
)
_known(
    "renyi_dp",
    "Rényi differential privacy",
    Notion.RENYI_PUFFERFISH,
    Notion.APPROXIMATE_DP,
    differential=True,
)
_known(
    "pure_dp",
    "pure differential privacy",
    Notion.RENYI_DP,
    Notion.PURE_PUFFERFISH,
    differential=True,
)

#: What a whole curve converts a notion to. A notion that is not here converts to
#: nothing.
CONVERSIONS = {
    Notion.PURE_DP: Notion.APPROXIMATE_DP,
    Notion.RENYI_DP: Notion.APPROXIMATE_DP,
    Notion.APPROXIMATE_DP: Notion.APPROXIMATE_DP,
    Notion.PURE_PUFFERFISH: Notion.APPROXIMATE_PUFFERFISH,
    Notion.RENYI_PUFFERFISH: Notion.APPROXIMATE_PUFFERFISH,
    Notion.APPROXIMATE_RENYI_PUFFERFISH: Notion.APPROXIMATE_PUFFERFISH,
    Notion.APPROXIMATE_PUFFERFISH: Notion.APPROXIMATE_PUFFERFISH,
}

#: The Pufferfish notion that a differential one is, for a prior of independent records.
PUFFERFISH = {
    Notion.PURE_DP: Notion.PURE_PUFFERFISH,
    Notion.RENYI_DP: Notion.RENYI_PUFFERFISH,
    Notion.APPROXIMATE_DP: Notion.APPROXIMATE_PUFFERFISH,
}

#: Notions about slices of an output, and not about the output.
SLICED = (
    Notion.AVERAGED_SLICED_RENYI_PUFFERFISH,
    Notion.JOINT_SLICED_RENYI_PUFFERFISH,
    Notion.AVERAGED_SLICED_PUFFERFISH,
    Notion.JOINT_SLICED_PUFFERFISH,
)
