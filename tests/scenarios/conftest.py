"""The contract is no test module by name; its assertions explain all the same."""

import pytest

pytest.register_assert_rewrite("skpuffer.testing._scenario_checks")
