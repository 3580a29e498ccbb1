"""What every accountant promises, as a class of tests."""

import importlib
import pkgutil

import skpuffer
from skpuffer.releases import GradientRelease
from skpuffer.testing._accountant_checks import AccountantSuite, forget, lying, said
from skpuffer.testing._cases import Offering, Rumour, query, unread
from tests.contracts import OfSuite

__all__ = [
    "AccountantContract",
    "N",
    "Offering",
    "Rumour",
    "contracts_in",
    "forget",
    "import_all",
    "lying",
    "query",
    "said",
    "unread",
]

N = 60


def import_all():
    """Import every module of the library, so that no subclass is missed."""
    for module in pkgutil.walk_packages(skpuffer.__path__, "skpuffer."):
        importlib.import_module(module.name)


class AccountantContract(OfSuite, AccountantSuite):
    """Inherit, and set `kind`, `modes`, and the methods that make cases."""

    def test_it_is_asked_about_runs_if_it_reads_them(self):
        assert bool(self._runs) == (GradientRelease in self.kind.reads)


def contracts_in(*modules):
    """Classes of these modules that hold an accountant to its contract."""
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, AccountantContract)
        and value.kind is not None
    ]
