"""The accounting of each kind of release of many steps."""

from functools import singledispatch

from skpuffer.exceptions import UnsupportedError
from skpuffer.releases import GradientRelease, VoteRelease

from ._gradients import account_for_gradients, gradient_obstacle
from ._votes import account_for_votes

__all__ = ["account_for", "obstacle"]


@singledispatch
def account_for(release, noise, worlds, max_memory=500.0):
    """Find what dominates all steps of a release.

    Parameters
    ----------
    release : GradientRelease or VoteRelease
    noise : Noise
        Of one step.
    worlds : Neighbours
    max_memory : float, default=500.0
        In MiB, for the grid of a :class:`~skpuffer.privacy_loss.PrivacyLossCurve`.

    Returns
    -------
    Accounting

    Raises
    ------
    UnsupportedError
        If no bound is known.
    """
    raise UnsupportedError(
        f"Nothing is known of the steps of a {type(release).__name__}."
    )


@singledispatch
def obstacle(release, worlds):
    """Why nothing can be claimed for a release, or None if it can.

    Parameters
    ----------
    release : GradientRelease or VoteRelease
    worlds : Neighbours

    Returns
    -------
    str or None
        A sentence with the reason and the remedy.
    """
    return None


account_for.register(GradientRelease, account_for_gradients)
account_for.register(VoteRelease, account_for_votes)
obstacle.register(GradientRelease, gradient_obstacle)
