"""What follows from a Rényi promise that holds on an event."""

from skpuffer.kernel.curves import renyi_to_approximate
from skpuffer.kernel.numbers import check_probability

__all__ = ["approximate_renyi_to_approximate"]


def approximate_renyi_to_approximate(
    alpha: float,
    epsilon: float,
    delta_event: float,
    delta_conversion: float | None = None,
    conversion: str = "tight",
) -> tuple[float, float]:
    """Turn an approximate Rényi promise into an (epsilon, delta) one.

    Pierquin et al. (2024), Proposition 4.1.

    Parameters
    ----------
    alpha, epsilon : float
        Order, and Rényi cost on the events where the promise holds.
    delta_event : float
        Mass outside of these events, for each pair of secrets.
    delta_conversion : float, default=None
        Delta of the conversion itself; None takes `delta_event` once more.
    conversion : {'tight', 'basic'}, default='tight'
        As in :func:`renyi_to_approximate`.

    Returns
    -------
    epsilon : float
    delta : float
        ``delta_event + (1 - delta_event) * delta_conversion``, or ``2 * delta_event``
        in the printed form (``conversion='basic'`` with `delta_conversion` None).
    """
    delta_event = check_probability(delta_event=delta_event)
    if delta_conversion is None:
        epsilon = renyi_to_approximate(alpha, epsilon, delta_event, conversion)
        return epsilon, min(1.0, 2 * delta_event)
    # anything may happen outside the events, and inside them the conversion may fail
    delta_conversion = check_probability(delta_conversion=delta_conversion)
    epsilon = renyi_to_approximate(alpha, epsilon, delta_conversion, conversion)
    return epsilon, delta_event + (1 - delta_event) * delta_conversion
