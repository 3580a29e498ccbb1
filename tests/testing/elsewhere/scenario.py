"""A scenario: records near the secret tell of it, and no others."""

from numbers import Integral

from skpuffer.exceptions import Statement
from skpuffer.scenarios import Adjacency, BoundScenario, Scenario, offers
from skpuffer.words import add_words

add_words("nearby", {"apart": "records more than {width} apart are independent"})


class NearbyScenario(Scenario):
    """The secret is one record, of which records further off than a width tell nothing.

    Parameters
    ----------
    width : int, default=1
        Records further apart in the order of the table are independent.
    """

    def __init__(self, width=1):
        self.width = width

    def check(self):
        width = self.width
        if not isinstance(width, Integral) or isinstance(width, bool) or width < 1:
            raise ValueError(f"The parameter 'width' must be from 1 on. Got {width!r}.")

    def bind(self, context):
        self.check()  # parameters may have been set since they were last checked
        return _BoundNearby(self, context)


class _BoundNearby(BoundScenario):
    def provides(self, release):
        # where nothing bounds one record's influence, no noise hides it
        return frozenset({Adjacency} if release.is_bounded else ())

    def near(self):
        return min(2 * self.scenario.width + 1, self.context.n_records)

    @offers(Adjacency)
    def _adjacency(self, release, norm):
        apart = Statement("nearby.apart", width=self.scenario.width)
        return Adjacency.arbitrary(self.near(), (apart,), "replace")
