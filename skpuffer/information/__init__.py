"""Information that leaks of a finite prior through noise: channels and their budgets.

``Atoms`` is a finite prior, ``MixtureChannel`` adds noise, and a ``Bank`` of draws
gives every answer, in nats. ``search_noise`` and ``search_law`` find noise for a budget
but certify nothing: fix the noise, then read fresh draws by ``entropy_bound``, or by
``density_bound`` where the atoms are a sample.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
