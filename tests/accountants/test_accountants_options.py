"""No option of an accountant changes its answer without being seen."""

import pytest

from .options import KINDS, differences, read


def test_the_accountants_are_those_of_the_file():
    assert set(read()) == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_an_accountant_answers_as_it_did(name):
    assert differences(name) == []
