"""Distributions of what is released: the query's own, with Gaussian noise added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skpuffer.accountants import Calibration
from skpuffer.distributions import Discrete, Distribution, Gaussian, Support
from skpuffer.exceptions import (
    type_error,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_finite
from skpuffer.noise import GaussianNoise, Noise
from skpuffer.scenarios import OutputDistributions, OutputSamples

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats


@dataclass(frozen=True)
class Outputs:
    """Output distributions by secret, before noise.

    Parameters
    ----------
    prior : ndarray of shape (n_secrets,) or None
        Masses of the secrets, where known.
    pairs : tuple of (int, int) or None
        Pairs that must look alike; None is all.
    scale : float
        The output moves by this factor times the distributions' own coordinates.
    """

    distributions: tuple[Distribution, ...]
    secrets: tuple[Any, ...]
    prior: Floats | None = None
    pairs: tuple[tuple[int, int], ...] | None = None
    scale: float = 1.0


def read_outputs(outputs: Any) -> Outputs:
    """Read what is given of the query's output under each secret."""
    if isinstance(outputs, OutputDistributions):
        found = _of_distributions(outputs)
    elif isinstance(outputs, OutputSamples):
        found = _of_samples(outputs)
    elif isinstance(outputs, Sequence) and any(
        isinstance(one, Distribution) for one in outputs
    ):
        found = Outputs(tuple(outputs), tuple(range(len(outputs))))
    else:
        means = check_finite(outputs=outputs)
        if means.ndim not in (1, 2):
            raise value_error("audit.released_outputs_wrong_shape", shape=means.shape)
        rows = means.reshape(len(means), -1)
        found = Outputs(
            tuple(Discrete(row[None]) for row in rows), tuple(range(len(rows)))
        )
    laws = found.distributions
    if len(laws) < 2:
        raise value_error("audit.outputs_below_two_secrets", n_laws=len(laws))
    for law in laws:
        _refuse_unknown(law)
    if len({law.dim for law in laws}) > 1:
        raise value_error(
            "audit.released_outputs_lengths_mixed",
            lengths=sorted({law.dim for law in laws}),
        )
    return found


def gaussian_noise(noise: Noise | Calibration) -> GaussianNoise:
    """Return the Gaussian noise that is given, by itself or in a calibration."""
    found = noise.noise if isinstance(noise, Calibration) else noise
    if not isinstance(found, Noise):
        raise type_error("audit.noise_not_a_noise", noise=noise)
    if not isinstance(found, GaussianNoise):
        raise unsupported_error("audit.noise_not_gaussian", family=found.family)
    return found


@dataclass(frozen=True)
class Released:
    """Distribution of an output with Gaussian noise: a mixture of Gaussians.

    Parameters
    ----------
    atoms : ndarray of shape (n_atoms, dim)
        Means of the components.
    log_weights : ndarray of shape (n_atoms,)
    covariance : ndarray of shape (dim, dim)
        Covariance of each of them.
    """

    atoms: Floats
    log_weights: Floats
    covariance: Floats

    @classmethod
    def of(cls, law: Distribution, noise: GaussianNoise, scale: float) -> Self:
        """Add noise to the distribution of an output."""
        covariance = noise.covariance_matrix(law.dim)
        if isinstance(law, Gaussian):
            spread = covariance + scale**2 * law.covariance
            return cls(scale * law.mean[None], np.zeros(1), spread)
        assert isinstance(law, Discrete)
        kept = law.masses > 0
        atoms = scale * law.points[kept].astype(float)
        return cls(atoms, np.log(law.masses[kept]), covariance)


def _refuse_unknown(law: Any) -> None:
    if not isinstance(law, Discrete | Gaussian):
        raise unsupported_error(
            "audit.mixture_not_computed", law_type=type(law).__name__
        )
    if isinstance(law, Support):
        raise unsupported_error("audit.support_without_masses")


def _of_distributions(fact: OutputDistributions) -> Outputs:
    if fact.common_part_removed:
        raise unsupported_error("audit.distributions_of_contribution_only")
    if len(fact.distributions) != 1:
        raise unsupported_error(
            "audit.several_priors", n_distributions=len(fact.distributions)
        )
    given = fact.distributions[0]
    here = [i for i, law in enumerate(given) if law is not None]
    place = {i: at for at, i in enumerate(here)}
    known = None if fact.probabilities is None else fact.probabilities[0]
    prior = None
    if known is not None:
        masses = np.asarray(known, dtype=float)[here]
        prior = masses / masses.sum()
    return Outputs(
        tuple(law for law in given if law is not None),
        tuple(fact.secrets[i] for i in here),
        prior,
        tuple((place[i], place[j]) for i, j in fact.pairs if {i, j} <= place.keys()),
        fact.scale,
    )


def _of_samples(fact: OutputSamples) -> Outputs:
    groups = np.unique(fact.groups)
    laws, masses = [], []
    for group in groups:
        rows = fact.groups == group
        mass = float(fact.weights[rows].sum())
        laws.append(Discrete(fact.draws[rows], fact.weights[rows] / mass))
        masses.append(mass)
    prior = np.array(masses) / sum(masses)
    return Outputs(tuple(laws), tuple(groups.tolist()), prior)
