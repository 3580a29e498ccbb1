"""What weakens a promise, said in warnings."""

from skpuffer.exceptions import (
    EstimatedGuaranteeWarning,
    PrivacyLeakWarning,
    PrivacyWarning,
    SeededNoiseWarning,
)
from skpuffer.utils._warn import warn

__all__ = ["announce", "warn"]


def announce(estimator, certificate, seeded, exact, leaks=()):
    """Warn of what weakens a promise, before anything leaves."""
    name = type(estimator).__name__
    if seeded:
        warn(
            f"{name} drew its noise from a seed. Use random_state=None for anything "
            "that is released.",
            SeededNoiseWarning,
        )
    if exact:
        why = "under the scenario no pair of secrets moves it"
        if certificate.epsilon:
            why = "the promise rests on what it varies by under the prior"
        warn(
            f"{name} is released exactly, without any noise: {why}. See that this is "
            "what you meant.",
            PrivacyWarning,
        )
    for leak in leaks:
        warn(f"{name}: {leak}.", PrivacyLeakWarning)
    if not certificate.certified and not leaks:
        warn(
            f"{name} set its noise from laws that are only known through samples: the "
            "certificate is an estimate, no guarantee. Say what is known of the prior "
            "(prior_as=...) for a promise.",
            EstimatedGuaranteeWarning,
        )
