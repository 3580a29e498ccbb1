"""Random generators for noise: the operating system's entropy unless seeded."""

import numpy as np
from sklearn.utils import check_random_state


def noise_generator(
    random_state: int | np.random.RandomState | np.random.Generator | None,
) -> tuple[np.random.Generator, bool]:
    """Return a generator for noise.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        None draws fresh entropy from the operating system. NumPy's global state is
        never used, as scikit-learn's `check_random_state` would: a call to
        ``np.random.seed`` anywhere in the process would make the noise predictable.

    Returns
    -------
    rng : numpy.random.Generator
    seeded : bool
        Whether the noise can be reproduced by whoever knows the seed.
    """
    if random_state is None:
        return np.random.default_rng(), False
    if isinstance(random_state, np.random.Generator):
        return random_state, True
    if isinstance(random_state, np.random.RandomState):
        # drawn from the state, so that a second fit differs, as users expect
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4)), True
    check_random_state(random_state)  # scikit-learn's message for what is not a seed
    return np.random.default_rng(random_state), True
