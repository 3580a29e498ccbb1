"""No fact changes under any option without being seen, nor does what a fact says."""

import pytest

from .pinned import VARIANTS, everything, near, read

KEPT = read()

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def found():
    return everything()


def test_the_variants_are_those_of_the_file():
    assert set(KEPT) == set(VARIANTS)


@pytest.mark.parametrize("name", KEPT)
def test_a_fact_is_what_it_was(found, name):
    assert set(found[name]) == set(KEPT[name])
    wrong = {
        key: (found[name][key], kept)
        for key, kept in KEPT[name].items()
        if not near(found[name][key], kept)
    }
    assert wrong == {}


#: The same parts in another order.
TURNED = {
    "attribute, in another order": "attribute, in order",
    "gaussian, points in another order": "gaussian, points, None",
    "chain, two turned": "chain, two",
    "long chain, two turned": "long chain, two",
    "laws turned": "laws",
    "group, turned, law, None": "group, two, law, None",
    "tables, beliefs turned": "tables, two beliefs",
    "network, two turned": "network, two",
    "blocks [3, 2, 1], chain": "blocks [1, 3, 2], chain",
}
#: What a list of parts has together: the largest of each.
LARGEST = ("count", "move", "moves", "radius", "delta", "survival", "window")


@pytest.mark.parametrize("turned", TURNED)
def test_parts_in_another_order_say_the_same(found, turned):
    one, other = found[turned], found[TURNED[turned]]
    assert one.keys() == other.keys()
    for key, row in one.items():
        if isinstance(row, dict):
            told = ({k: each.get(k) for k in LARGEST} for each in (row, other[key]))
            assert near(*told), key
