"""Facts of an attribute scenario whose prior is a declared belief."""

import re
from collections.abc import Hashable, Iterable
from typing import Any

import joblib
import numpy as np

from skpuffer.exceptions import PrivacyWarning, Statement, scenario_error
from skpuffer.kernel.facts import Adjacency, Fact
from skpuffer.privacy_loss._overlap import (
    Overlap,
    PairwiseOverlap,
    WorstOverlap,
    pairwise_overlap,
)
from skpuffer.privacy_loss._overlap._pairwise import ROOM_OF_PAIRS
from skpuffer.releases import PublicContext
from skpuffer.scenarios._attribute._pair_costs import pair_costs
from skpuffer.scenarios._base import (
    AnyRelease,
    BoundScenario,
    RecordScenario,
    Rows,
    kind_of_units,
    name_of_units,
    offers,
)
from skpuffer.scenarios._facts import RecordBelief
from skpuffer.scenarios._priors._binned_law import BinnedLaw
from skpuffer.scenarios._priors._coding import check_target, target_of, target_statement
from skpuffer.scenarios._priors._rows import RowBelief
from skpuffer.scenarios._priors._tables import bound_arrays
from skpuffer.utils._silence import warn

#: What words of a name are separated by.
_BETWEEN = r"[\s_=.:|/-]+"

#: What encoders put between the name of a column and one of its values: race_White,
#: race=White, race__White, race[T.White].
_ENCODED = rf"(?:{_BETWEEN}|\[(?:t\.)?)(?P<value>.+?)\]?"

#: Where a word ends without a separator: isRace, HTTPRace, race1, 1race.
_ENDS = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
    r"|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)


def named_after(
    secret: str, names: Iterable[Hashable], values: Iterable[Any] = ()
) -> tuple[list[Hashable], list[Hashable]]:
    """Return the columns that are named after the secret, certainly and perhaps."""
    texts = {text.casefold() for value in values for text in _texts(value)}
    encoded = re.compile(re.escape(secret.casefold()) + _ENCODED)
    spelt, words = _spelling(secret), _words(secret)
    certain, likely = [], []
    for name in names:
        text = str(name)
        # with and without what a step put before it
        own = text.rpartition("__")[2]
        found = [encoded.fullmatch(part.casefold()) for part in (text, own)]
        held = [match["value"].strip() for match in found if match]
        misspelt = name != secret and spelt in {_spelling(text), _behind_step(text)}
        if misspelt or not texts.isdisjoint(held):
            certain.append(name)
        elif held or (name != secret and _within(words, _words(text))):
            likely.append(name)
    return certain, likely


def _spelling(text: str) -> str:
    """Name without regard to case and separators; as it is where it has none else."""
    folded = text.casefold()
    return re.sub(_BETWEEN, " ", folded).strip() or folded


def _behind_step(text: str) -> str:
    """Spelling of a name without what a step put before it."""
    # not the separators at its end, which may be two: race__
    return _spelling(re.sub(rf"{_BETWEEN}$", "", text).rpartition("__")[2])


def _words(text: str) -> list[str]:
    """Words of a name, split at separators, capitals and numbers."""
    return re.findall(r"[^\W_]+", _ENDS.sub(" ", text).casefold())


def _within(words: list[str], among: list[str]) -> bool:
    """Whether words follow each other among others."""
    n = len(words)
    starts = range(len(among) - n + 1 if n else 0)
    return any(among[i : i + n] == words for i in starts)


def _texts(value: Any) -> Iterable[str]:
    yield str(value)
    # the number one, of whatever type a table keeps it in
    if isinstance(value, int | float) and float(value).is_integer():
        yield from (str(int(value)), str(float(value)))


class BoundBelief(BoundScenario):
    """Facts of an attribute scenario; see :class:`AttributeScenario`."""

    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        # a table whose width is known and whose columns are not
        unnamed = context.feature_names is None and context.n_features is not None
        if unnamed and isinstance(scenario.column, str):
            raise scenario_error(
                "attribute.data_without_column_names", column=scenario.column
            )
        if context.target_name is not None and scenario.column == context.target_name:
            raise scenario_error("attribute.secret_is_target", column=scenario.column)
        if context.feature_names is not None and not isinstance(scenario.column, str):
            raise scenario_error(
                "attribute.position_for_named_data", column=scenario.column
            )
        check_target(scenario, context)
        encoded, self._doubtful = self._named_after()
        if encoded:
            raise scenario_error(
                "attribute.secret_encoded_columns",
                encoded=encoded,
                column=scenario.column,
            )
        for belief in scenario._beliefs():
            belief.check_covers(scenario, context)

    def _named_after(self) -> tuple[list[Hashable], list[Hashable]]:
        """Columns whose names say that they hold the secret, certainly and perhaps."""
        scenario, names = self.scenario, self.context.feature_names
        if names is None:
            return [], []
        of_rows = [b for b in scenario._beliefs() if isinstance(b, RowBelief)]
        values = {value for b in of_rows for value in b.laws(scenario).values}
        certain, likely = named_after(scenario.column, names, values)
        # public rows say what a column is whose name is no value's
        return certain, [] if of_rows else likely

    def check_rows(self, X: Rows) -> Rows:
        """Return rows as they are; warn of columns that may be the secret, encoded."""
        # by their names alone: what is in the columns is private
        if self._doubtful:
            secret = self.scenario.column
            warn(
                Statement(
                    "attribute.columns_named_like_secret",
                    doubtful=self._doubtful,
                    secret=secret,
                ),
                PrivacyWarning,
            )
        return X

    @property
    def target_assumption(self) -> Statement:
        """Which column the target is, beside the secret."""
        return target_statement(self.scenario, self.context)

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        # where nothing bounds one record's influence, no noise hides it
        return frozenset({RecordBelief, Adjacency} if release.is_bounded else ())

    @property
    def _count(self) -> int:
        """How many records are taken together for one."""
        if self.context.of_units:
            return 1
        alone = self.scenario.level == "record"
        return int(self.scenario.max_rows or 1) if alone else self.context.n_records

    def _statements(self) -> tuple[Statement, ...]:
        """What is taken for granted of the table, whatever is believed."""
        column, names = self.scenario.column, self.context.feature_names
        read = Statement("assume.no_column_read_holds_secret")
        if names is not None:
            read = Statement(
                "assume.no_listed_column_holds_secret", columns=list(names)
            )
        what = Statement("assume.secret_named_column", column=column)
        named = isinstance(column, str)
        if not named:
            what = Statement("assume.secret_column_at_position", column=column)
        whose, who = (
            Statement("assume.secret_of_each_record"),
            Statement("assume.one_record_per_person"),
        )
        others = Statement("assume.other_records_independent")
        number = Statement("assume.number_of_records", n_records=self.context.n_records)
        if self.scenario.max_rows is not None:
            whose = Statement(
                "assume.secret_of_unit",
                unit=name_of_units(self.scenario),
                max_rows=int(self.scenario.max_rows),
            )
            who = Statement("assume.no_record_outside_unit")
            others = Statement("assume.other_units_independent")
        elif self.scenario.level != "record":
            whose = Statement("assume.secret_of_records_together")
            who = Statement("assume.no_record_outside_these")
            others = Statement("assume.records_outside_independent")
            number = Statement("assume.number_of_these_records")
        return (
            Statement(
                "assume.belief_secret_column"
                if named
                else "assume.belief_secret_position",
                what=what,
                whose=whose,
                read=read,
            ),
            Statement(
                "assume.belief_nothing_else_depends",
                who=who,
                others=others,
                number=number,
            ),
        )

    @offers(RecordBelief)
    def _belief(self, release: AnyRelease, norm: float) -> RecordBelief:
        scenario = self.scenario
        overlap, wider = believed(scenario)
        trust = scenario.trust
        beliefs = tuple(one.statement() for one in scenario._beliefs())
        together, anyone = None, None
        if scenario.max_rows is not None:
            unit, max_rows = scenario.unit, int(scenario.max_rows)
            together = Statement("assume.together_one_unit", max_rows=max_rows)
            anyone = RecordScenario(1, "replace", unit=unit, max_rows=max_rows)
        elif scenario.level != "record":
            together = Statement("assume.together_all_records", count=self._count)
        return RecordBelief(
            count=self._count,
            together=together,
            anyone=anyone,
            overlap=overlap,
            wider=wider,
            pairwise=self._pairwise(release, norm),
            record=self._record(overlap),
            belief=beliefs[0]
            if len(beliefs) == 1
            else Statement("assume.belief_any_of", beliefs=beliefs),
            # a sample of what is believed is none of it
            certified=trust != "sample",
            confidence=float(scenario.confidence) if trust == "confidence" else 1.0,
            assumptions=(*self._statements(), *_READINGS.get(trust, ())),
        )

    def _pairwise(self, release: AnyRelease, norm: float) -> PairwiseOverlap | None:
        """Overlap with what each pair of records costs, where records are coded."""
        scenario, context = self.scenario, self.context
        (belief, *others) = scenario._beliefs()
        if others or not isinstance(belief, BinnedLaw) or scenario.trust != "law":
            return None
        # rows of units are weighed, and those of the belief are not
        if context.of_units:
            return None
        # of what is not read record by record no pair is known
        if release.contribution is None:
            return None
        laws = belief.laws(scenario)
        names = context.feature_names or ()
        # a column that is left to the rest takes values that are no atom's
        if not set(names) <= set(belief.covered(scenario)) or norm != 2:
            return None
        if laws.masses.shape[1] > _MOST_ATOMS or context.n_features is None:
            return None
        frame, target = belief.atoms(scenario), target_of(scenario, context)
        y = frame[target].to_numpy() if target in frame.columns else None
        # of a target that is not read nothing is paid, and of one that is read and not
        # covered any may be
        X, y = bound_arrays(context, frame, y if context.has_target else None)
        if y is None and context.has_target and belief.rest is None:
            return None
        costs = pair_costs(release, X, y, norm)
        if costs is None:
            return None
        # the output is rounded: of records that nearly agree, to different numbers
        costs = np.where(costs > 0, np.minimum(costs + ROOM_OF_PAIRS, 1.0), 0.0)
        parts = belief.parts(scenario)
        return None if len(parts) > _MOST_PARTS else pairwise_overlap(parts, costs)

    def _record(self, overlap: Overlap) -> str | None:
        """Of what of a record the beliefs speak, in a table with a name."""
        scenario, context = self.scenario, self.context
        # nothing shows that a position is one and the same column in two releases
        if scenario.table is None or not isinstance(scenario.column, str):
            return None
        beliefs = scenario._beliefs()
        parts = [
            part
            for part in (belief.speaks_of(scenario, context) for belief in beliefs)
            if part is not None
        ]
        if len(parts) < len(beliefs):
            return None
        digest = joblib.hash(overlap.to_dict())[:16]
        if scenario.max_rows is not None:
            unit = name_of_units(scenario)
            parts.append(Statement("prior.speaks_rows_of_unit", unit=unit))
        elif scenario.level != "record":
            parts.append(Statement("prior.speaks_records_together", count=self._count))
        # a name, by which certificates tell beliefs apart
        return str(
            Statement(
                "prior.speaks_of_record",
                parts=tuple(parts),
                column=scenario.column,
                digest=digest,
            )
        )

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        return Adjacency.arbitrary(
            self._count,
            (
                *self._statements(),
                Statement("assume.belief_not_used_one")
                if self._count == 1
                else Statement("assume.belief_not_used_each"),
            ),
            units=kind_of_units(self.scenario),
        )


#: Records that are told apart pair by pair; beyond, the belief as a whole counts.
_MOST_ATOMS = 2500

#: Pairs of distributions, of which each is a problem of its own.
_MOST_PARTS = 12

#: What `prior_as` says of beliefs that are read from public rows.
_READINGS = {
    "sample": (Statement("assume.public_rows_sample"),),
    "support": (Statement("assume.public_rows_support_fallback"),),
    "confidence": (Statement("assume.public_rows_sample_with_confidence"),),
}


def believed(scenario: Any) -> tuple[Overlap, tuple[tuple[str, Overlap], ...]]:
    """Overlap under several beliefs, each of which is to be kept, and if one is off."""
    beliefs = scenario._beliefs()
    overlaps = [belief.overlap(scenario) for belief in beliefs]
    # one belief is off at a time, beside the others as they are
    wider = [
        (str(name), _worst([*overlaps[:i], other, *overlaps[i + 1 :]]))
        for i, belief in enumerate(beliefs)
        for name, other in belief.wider(scenario)
    ]
    return _worst(overlaps), tuple(wider)


def _worst(overlaps: list[Overlap]) -> Overlap:
    """Overlap of whichever belief leaves least to hide."""
    return overlaps[0] if len(overlaps) == 1 else WorstOverlap(tuple(overlaps))
