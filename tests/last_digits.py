"""The attack of Mironov (2012) on the last digits of what is released."""

import math

import numpy as np


def reachable(noise, scale):
    """Whether NumPy's Laplace sampler can return a number, as Mironov asks."""
    # it returns scale * log(v), with v a multiple of 2**-53
    near = np.rint(np.exp(-np.abs(noise) / scale) * 2.0**53)
    tries = near[:, None] + np.arange(-8, 9)
    tries = np.maximum(tries, 1) * 2.0**-53
    # by the logarithm of C, as the sampler does: NumPy's own differs in the last digit
    logs = np.reshape([math.log(v) for v in tries.ravel()], tries.shape)
    return (scale * logs == -np.abs(noise)[:, None]).any(axis=1)
