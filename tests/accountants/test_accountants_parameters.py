"""Every parameter of every accountant and scenario is looked at before it is used."""

import copy

import pytest

from skpuffer.accountants import GeneralWasserstein
from skpuffer.accountants._base import known_accountants
from skpuffer.accountants._compatibility import _releases, _scenarios
from skpuffer.scenarios import GaussianScenario

#: How work is done, which changes no promise.
_APART = ("n_jobs", "verbose", "random_state")


class Nothing:
    """What is of no use as any parameter."""

    __hash__ = None

    def __repr__(self):
        return "Nothing()"


#: Values of which some are of use after all: names, and a field that draws apart.
VALUES = {
    "nothing": (Nothing(), ()),
    "a text": ("nonsense", ("column", "table", "value")),
    "a number": (-1.5, ("curvature", "value")),
}


def _cases():
    accountants = {kind.__name__: kind() for kind in known_accountants()}
    for name, one in (accountants | _scenarios()).items():
        for parameter in one.get_params(deep=False):
            if parameter not in _APART:
                yield pytest.param(one, parameter, id=f"{name}-{parameter}")


def ask(one):
    one.check()
    # what depends on the table is read with it
    if isinstance(one, GaussianScenario):
        release = _releases()["linear in the records, with its matrix"]
        GeneralWasserstein().calibrate(release, one)


@pytest.mark.parametrize("one, parameter", [*_cases()])
def test_what_is_of_no_use_is_refused_by_name(one, parameter):
    for value, apart in VALUES.values():
        if parameter in apart:
            continue
        changed = copy.copy(one)
        setattr(changed, parameter, value)
        with pytest.raises((ValueError, TypeError), match=f"'{parameter}'"):
            ask(changed)
