"""Adaptive release: sums over records in turn, each after the noisy ones before it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_count, check_option, check_positive
from skpuffer.noise._on_grid import add_noise

from ._query import QueryRelease
from ._sensitivity import NORMS, Sensitivity

if TYPE_CHECKING:
    from skpuffer.noise import Noise

__all__ = ["AdaptiveRelease", "Stage"]

#: Norms in which shares can be laid out: those of Gaussian and of Laplace noise.
_LAYOUTS = (2.0, 1.0)

#: Relations of neighbouring tables in which shares can be laid out.
_RELATIONS = ("add_remove", "replace")

#: What rounding may leave of the sum of the shares.
_DIGITS = 1e-9


@dataclass(frozen=True)
class Stage:
    """One sum over records of an adaptive release, or several of one kind.

    Parameters
    ----------
    name : str
    dim : int
        Length of the vector.
    sensitivity : Sensitivity
        Of one vector to one arbitrary record, whatever has been released before: a
        bound for every sum that the noisy vectors of earlier stages may lead to.
    share : float
        Part of the whole release's privacy, in (0, 1], of all repetitions together: of
        mu squared where shares are laid out in l2 (Gaussian noise), of epsilon where
        they are in l1 (Laplace noise).
    times : int, default=1
        How many such vectors are released.

    Examples
    --------
    >>> from skpuffer.releases import AdaptiveRelease, Sensitivity, Stage
    >>> one = Sensitivity(add_remove={2: 1.0})
    >>> sums, counts = Stage("sums", 2, one, 0.75), Stage("counts", 1, one, 0.25)
    >>> release = AdaptiveRelease(n_records=100, stages=(sums, counts))
    >>> [round(stage.unit("add_remove", norm=2), 3) for stage in release.stages]
    [1.155, 2.0]
    """

    name: str
    dim: int
    sensitivity: Sensitivity
    share: float
    times: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.sensitivity, Sensitivity):
            raise TypeError(
                Statement(
                    "release.stage_sensitivity_wrong_type", sensitivity=self.sensitivity
                )
            )
        checked = {
            "dim": check_count(dim=self.dim),
            "times": check_count(times=self.times),
            "share": check_positive(share=self.share),
        }
        # a frozen dataclass: plain numbers, so that stages hash and compare by value
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def unit(self, relation: str, norm: float) -> float:
        """Return the unit in which the stage spends its share of one.

        Parameters
        ----------
        relation : {'add_remove', 'replace'}
        norm : {1.0, 2.0}

        Returns
        -------
        float
            ``sensitivity * (times / share) ** (1 / norm)``.
        """
        one = self.sensitivity.value(relation, norm, self.dim)
        # nothing to hide would be released exactly, whatever relation is asked later
        if not 0 < one < math.inf:
            raise ValueError(
                Statement(
                    "release.stage_sensitivity_not_positive",
                    name=self.name,
                    norm=norm,
                    sensitivity=one,
                )
            )
        return check_positive(unit=one * (self.times / self.share) ** (1 / norm))


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveRelease(QueryRelease):
    """Several sums over records, each after the noisy ones before it, as one release.

    What a stage sums may depend on all that was released before. It is accounted for
    once, as a single vector would be: every promise that Gaussian or Laplace noise
    makes of a vector follows for the whole. There is no vector to compute beforehand,
    so an estimator releases stage by stage, by :meth:`noisy`.

    Parameters
    ----------
    n_records : int
    stages : sequence of Stage
        Their shares sum to one.
    relation : {'add_remove', 'replace'}, default='replace'
        Relation of neighbouring tables by which shares are laid out. The promise holds
        under the other one too, of which the whole has another sensitivity.
    norm : {2.0, 1.0}, default=2.0
        Norm in which they are: 2 suits Gaussian noise, 1 Laplace noise.
    name : str, default='query'
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of Statement
        What is taken as public or true, in sentences; written in the certificate.
    query, dim, contribution, is_sum, is_integer, factor, units : optional
    modulus, modulus_norm, shift_ceiling, sensitivity, slack, linear, ball : optional
        Of one vector, see :class:`QueryRelease`; refused here.

    Attributes
    ----------
    dim : int
        Number of all coordinates that are released.
    sensitivity : Sensitivity
        Of all stages side by side, each in its unit.

    Notes
    -----
    In units of the stages, record by record, stage i moves by at most
    ``r_i = sensitivity_i / unit_i`` given whatever was released before. The pair of
    noisy vectors of a stage is then dominated by one of fixed distributions: Gaussians
    r_i apart in l2, or Laplace distributions of one coordinate r_i apart in l1. So is
    the whole adaptive sequence by their product (Dong, Roth and Su 2022, Theorem 3.2;
    Zhu, Dong and Wang 2022, Theorem 10). The product of the Gaussians is one Gaussian
    pair at the distance ``sqrt(sum(r_i**2))``; that of Laplace distributions is
    dominated by one pair at ``sum(r_i)``, see :class:`~skpuffer.noise.LaplaceNoise`. If
    k records differ, every r_i is k times as large, so the same holds. For other
    families of noise no such law is known here, and accountants refuse them.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy; Zhu, Dong and Wang (2022),
    Optimal accounting of differential privacy via characteristic function.

    Examples
    --------
    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.releases import AdaptiveRelease, Sensitivity, Stage
    >>> from skpuffer.scenarios import RecordScenario
    >>> one = Sensitivity(add_remove={2: 1.0})
    >>> release = AdaptiveRelease(
    ...     n_records=100,
    ...     stages=[Stage("counts", 8, one, share=0.2), Stage("sums", 3, one, 0.8, 4)],
    ...     relation="add_remove",
    ... )
    >>> noise = PrivacyLoss(1.0).calibrate(release, RecordScenario()).noise
    >>> [round(release.deviation(stage, noise), 2) for stage in range(2)]
    [8.34, 8.34]
    """

    # what a stage computes depends on noise
    is_one_output: ClassVar[bool] = False

    stages: tuple[Stage, ...]
    relation: str = "replace"
    norm: float = 2.0
    # there is no contribution that a record could move
    shift_ceiling: float = 0.0

    def __post_init__(self) -> None:
        check_count(n_records=self.n_records)
        check_option(_RELATIONS, relation=self.relation)
        norm = check_option(_LAYOUTS, norm=check_positive(norm=self.norm))
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "stages", self._checked_stages())
        # what a single vector may have besides, and the stages have not
        mine = {"dim": self._total_dim(), "sensitivity": self._whole()}
        for field, default in _OF_ONE_VECTOR.items():
            given = getattr(self, field)
            # `dataclasses.replace` gives back what was found before; a matrix has no
            # single truth value, and is none of the defaults
            usual = not isinstance(given, np.ndarray) and given in (
                default,
                mine.get(field),
            )
            if not usual:
                raise ValueError(
                    Statement("release.adaptive_field_not_allowed", field=field)
                )
        for field, value in mine.items():
            object.__setattr__(self, field, value)
        object.__setattr__(self, "is_bounded", True)
        self._meet_context()

    def _checked_stages(self) -> tuple[Stage, ...]:
        stages = tuple(self.stages)
        for stage in stages:
            if not isinstance(stage, Stage):
                raise TypeError(Statement("release.stages_wrong_type", stage=stage))
        total = math.fsum(stage.share for stage in stages)
        if not math.isclose(total, 1.0, rel_tol=0, abs_tol=_DIGITS):
            raise ValueError(Statement("release.stage_shares_sum", total=total))
        return stages

    def _total_dim(self) -> int:
        return sum(stage.dim * stage.times for stage in self.stages)

    def _whole(self) -> Sensitivity:
        """Sensitivity of all vectors side by side, each in units of its stage."""
        units = [stage.unit(self.relation, self.norm) for stage in self.stages]
        moves = {
            relation: {
                norm: _side_by_side(
                    (
                        stage.sensitivity.value(relation, norm, stage.dim) / unit
                        for stage, unit in zip(self.stages, units, strict=True)
                    ),
                    [stage.times for stage in self.stages],
                    norm,
                )
                for norm in NORMS
            }
            for relation in (*_RELATIONS, "relabel")
        }
        return Sensitivity(**moves)

    def unit(self, stage: int) -> float:
        """Return the unit of a stage: its noise is in proportion to it.

        Parameters
        ----------
        stage : int
            Position in `stages`.

        Returns
        -------
        float
        """
        return self.stages[stage].unit(self.relation, self.norm)

    def noisy(
        self, stage: int, exact: Any, noise: "Noise", rng: np.random.Generator
    ) -> Floats:
        """Return one vector of a stage with the noise that was calibrated.

        It is to be called for each stage at most `times` times, which is what was
        accounted for.

        Parameters
        ----------
        stage : int
            Position in `stages`.
        exact : ndarray of `dim` numbers, of any shape
        noise : Noise
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of the shape of `exact`

        Raises
        ------
        ValueError
            If the vector has not as many coordinates as its stage says, or is NaN or
            infinite somewhere, which no noise hides.
        """
        exact = np.asarray(exact, dtype=float)
        of = self.stages[stage]
        if exact.size != of.dim:
            raise ValueError(
                Statement(
                    "release.stage_dimension_mismatch",
                    name=of.name,
                    dim=of.dim,
                    size=exact.size,
                )
            )
        if not np.all(np.isfinite(exact)):
            raise ValueError(Statement("release.stage_not_finite", name=of.name))
        # in units of the stage, as the noise is: what it is multiplied by is public
        unit = self.unit(stage)
        return unit * add_noise(exact / unit, noise, rng, n_records=self.n_records)

    def deviation(self, stage: int, noise: "Noise") -> float:
        """Return the standard deviation of the noise of a stage's coordinates.

        Parameters
        ----------
        stage : int
            Position in `stages`.
        noise : Noise
            As calibrated.

        Returns
        -------
        float
        """
        return self.unit(stage) * float(np.max(noise.std(1)))

    def noise_error(self, noise: "Noise") -> Floats:
        """Return that of all stages; see :meth:`.VoteRelease.noise_error`."""
        # in a row, each in its own units
        return np.repeat(
            [self.deviation(i, noise) for i in range(len(self.stages))],
            [stage.dim * stage.times for stage in self.stages],
        )

    def run(self, X: Any, y: Any = None) -> NoReturn:
        """Refuse: there is no exact vector before the noisy ones are known.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,), default=None

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(Statement("release.adaptive_not_run_whole", name=self.name))


#: Fields of a single vector, with their defaults.
_OF_ONE_VECTOR = {
    field.name: field.default
    for field in fields(QueryRelease)
    if field.name
    not in ("n_records", "name", "context", "assumptions", "shift_ceiling")
}


def _side_by_side(moves: Iterable[float], times: list[int], norm: float) -> float:
    """Norm of moves in blocks of their own, each of which comes several times."""
    return float(np.linalg.norm(np.repeat(list(moves), times), norm))
