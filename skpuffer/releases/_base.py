"""What every release is: something computed from a table whose public facts it has."""

import numpy as np

from ._context import PublicContext

__all__ = ["Release"]


class Release:
    """Something computed from a table, with what is known of no release by default.

    A subclass is a frozen dataclass with the fields `n_records`, `dim`, `name`,
    `context` and `assumptions`, and says more of itself where more is known.
    """

    # What a record contributes, where it is heard by itself.
    contribution = None
    # Whether the release is a sum of contributions.
    is_sum = False
    # How far it moves with one contribution, where it is no sum.
    modulus = None
    # Public unit of each coordinate; None is one.
    units = None
    # Whether it is made of whole numbers, which integer noise can hide.
    is_integer = False

    def _meet_context(self):
        """Take the public facts of the table, making them where none are given."""
        if self.context is None:
            context = PublicContext(n_records=self.n_records)
            object.__setattr__(self, "context", context)
        if self.context.n_records != self.n_records:
            raise ValueError(
                f"The parameter 'n_records' is {self.n_records}, but the context is of "
                f"{self.context.n_records} records."
            )

    @property
    def unit_array(self):
        """The units as an array, or 1.0."""
        return 1.0 if self.units is None else np.asarray(self.units)

    @property
    def moves_with_contributions(self):
        """Whether it is known how far it moves when one contribution does."""
        return self.is_sum or self.modulus is not None
