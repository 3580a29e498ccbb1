"""The least Gaussian noise that keeps a leakage within a budget."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize

from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import (
    Booleans,
    Floats,
    check_count,
    check_finite,
    check_non_negative,
    check_option,
    check_positive,
)
from skpuffer.utils._checks import check_covariance
from skpuffer.utils._types import RandomState

from ._atoms import Atoms, Bank
from ._channel import MixtureChannel
from ._gaussian import waterfill
from ._laws import GaussianLaw, NoiseLaw
from ._objective import (
    Candidate,
    DatasetLeakage,
    GivenOthersLeakage,
    Leakage,
    Objective,
    SecretLeakage,
)

#: Least variance along any direction, as a share of the largest.
_FLOOR = 1e-8

#: Variance, as a share of the largest, below which a direction counts as exact.
_EXACT = 1e-6

#: Least power of the noise, as a share of water-filling's: a budget that is met here
#: may well be met without any noise.
_LEAST_POWER = 1e-6

#: Likelihoods computed in one evaluation, at most about.
_WORK = 8_000_000

#: More than that, and starts are compared on fewer draws.
_SCREENED = 4_000_000

#: Nodes of the rules of one and two coordinates, about.
_RULE = {1: 401, 2: 3000}

#: What a budget may be about.
_LEAKAGES: dict[str, type[Leakage]] = {
    "dataset": DatasetLeakage,
    "columns": SecretLeakage,
    "columns_given_others": GivenOthersLeakage,
}

#: Most rounds of the fixed point.
_ROUNDS = 60


@dataclass(frozen=True, eq=False)
class FoundNoise:
    """Gaussian noise found for a budget; nothing is certified by it.

    Parameters
    ----------
    covariance : ndarray of shape (d, d)
        Covariance of the noise.
    power : float
        Its cost, E||B||² if no other cost was given.
    leakage : float
        Mutual information in nats on the bank of the search. Certify on a fresh one.
    exact, exact_entropy : ndarray of shape (d, k), float
        Orthonormal directions that get next to no noise, and the outputs' entropy
        there.
    at_floor : bool
        Whether the budget holds at the least noise that was tried.
    powers : mapping of str to float
        Cost found from each start, on fewer draws where there are many atoms.

    Examples
    --------
    >>> from skpuffer.information import Atoms, search_noise
    >>> atoms = Atoms([[-1.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    >>> found = search_noise(atoms, budget=0.5)
    >>> round(found.leakage, 3), round(found.power, 1), found.at_floor
    (0.5, 3.6, False)
    """

    covariance: Floats
    power: float
    leakage: float
    exact: Floats
    exact_entropy: float
    at_floor: bool
    powers: Mapping[str, float] = field(default_factory=dict)

    @property
    def law(self) -> GaussianLaw:
        """Law of the noise."""
        return GaussianLaw(self.covariance)


def search_noise(
    atoms: Atoms | Sequence[Atoms],
    budget: float,
    *,
    family: str = "scale",
    secret: str = "dataset",
    cost: ArrayLike | None = None,
    solver: str = "fixed_point",
    starts: Sequence[str] | None = None,
    max_secret_leakage: float = math.inf,
    sampled: bool = False,
    least_variance: float = 0.0,
    n_draws: int | None = None,
    random_state: RandomState = None,
) -> FoundNoise:
    """Return the cheapest Gaussian noise found whose leakage is the budget.

    Parameters
    ----------
    atoms : Atoms or sequence of Atoms
        With several priors, the same noise keeps the budget under each.
    budget : float
        In nats.
    family : {"scale", "eigen", "full"}, default="scale"
        A multiple of the water-filling noise; any variances along the eigenvectors of
        the outputs' covariance; any covariance.
    secret : {"dataset", "columns", "columns_given_others"}, default="dataset"
        Secret that the budget protects: MI(X; Y), the largest MI(S_i; Y) over the
        columns of the memberships, or the largest MI(S_i; Y | the others), for
        independent bits and the family "scale".
    cost : array-like of shape (d, d) or None, default=None
        Positive definite matrix C of the cost tr(C Σ); None is E||B||².
    solver : {"fixed_point", "sgd"}, default="fixed_point"
        "sgd" is the stochastic search by an augmented Lagrangian, slower.
    starts : sequence of str or None, default=None
        Any of "waterfill", "iso", "inverse" and "collapsed"; None takes all.
    max_secret_leakage : float, default=inf
        Limit in nats of KL(P_{Y | x} || P_Y) for any data set or value of a secret.
    sampled : bool, default=False
        Whether the atoms are a sample of a larger prior. Then each is left out of the
        mixture that it is compared with.
    least_variance : float, default=0.0
        Least variance of every direction, for a sample that may miss what varies.
    n_draws : int or None, default=None
        Draws of the bank. None takes a quadrature rule in few coordinates, and else
        about a second's work.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    FoundNoise

    Notes
    -----
    At the optimum C = (ν/2) Σ⁻¹ E Σ⁻¹ for the error E = E[Cov(M | Y)], that is Σ ∝ C^-½
    (C^½ E C^½)^½ C^-½. The search repeats this rule, each time scaled to the budget,
    from several starts.

    Examples
    --------
    >>> from skpuffer.information import Atoms, search_noise
    >>> found = search_noise(Atoms([[-1.0], [1.0]]), budget=0.5)
    >>> round(found.power, 4)
    0.5002
    """
    priors = _checked_priors(atoms)
    budget = check_positive(budget=budget)
    check_option(("scale", "eigen", "full"), family=family)
    check_option(tuple(_LEAKAGES), secret=secret)
    check_option(("fixed_point", "sgd"), solver=solver)
    kinds = STARTS if starts is None else tuple(starts)
    if not kinds:
        raise value_error("pac.search_starts_unknown", starts=STARTS)
    for kind in kinds:
        check_option(STARTS, starts=kind)
    most = check_positive(max_secret_leakage=max_secret_leakage, finite=False)
    floor = check_non_negative(least_variance=least_variance, finite=True)
    dim = priors[0].dim
    weight = np.eye(dim) if cost is None else check_covariance(cost=cost, least=1e-12)
    if len(weight) != dim:
        raise value_error("pac.search_cost_shape_wrong", dim=dim, shape=weight.shape)
    if secret != "dataset" and (sampled or any(a.n_secrets == 0 for a in priors)):
        raise value_error("pac.search_secret_needs_memberships", secret=secret)
    if secret == "columns_given_others" and family != "scale":
        raise value_error("pac.search_family_without_gradient", family=family)
    source, _ = noise_generator(random_state)
    # a stream of its own: atoms drawn by the same seed are made of the same numbers
    rng = np.random.default_rng(source.integers(2**63, size=4))
    kind_of = _LEAKAGES[secret]
    bare = kind_of(priors, [])
    enumerated = not sampled and not floor
    if enumerated and bare.bare() <= budget and bare.worst_bare() <= most:
        return _without_noise(bare)
    if n_draws is not None:
        n_draws = check_count(n_draws=n_draws)
    # a coordinate that is constant in enumerated atoms is public; a sample cannot tell
    free = np.ones(dim, dtype=bool) if floor else _varying(priors)
    basis = np.eye(dim)[:, free]
    reduced = [_projected(a, free) for a in priors]
    banks = [_bank(a, n_draws, secret != "dataset", rng) for a in reduced]
    leakage: Leakage = kind_of(reduced, banks)
    if sampled:
        leakage = DatasetLeakage(reduced, banks, sampled=True)
    search = _Search(
        leakage, budget, basis.T @ weight @ basis, floor, family, solver, rng
    )
    found, powers = search.best(kinds)
    if leakage.worst_value(GaussianLaw(found.covariance)) > most:
        found = search.objective.limited(found.covariance, most)
    # directions that get next to no noise
    values, vectors = np.linalg.eigh(found.covariance)
    exact = vectors[:, values <= _EXACT * values[-1]]
    return FoundNoise(
        basis @ found.covariance @ basis.T,
        found.cost,
        found.leakage,
        basis @ exact,
        max(a.projected_entropy(exact) for a in reduced) if exact.size else 0.0,
        found.at_floor,
        powers,
    )


class _Search:
    """The search in coordinates that all vary."""

    def __init__(
        self,
        leakage: Leakage,
        budget: float,
        weight: Floats,
        floor: float,
        family: str,
        solver: str,
        rng: np.random.Generator,
    ) -> None:
        self.family, self.solver, self.rng = family, solver, rng
        # of all priors, none of whose directions it lacks: their mean
        spread = np.mean([a.covariance for a in leakage.priors], axis=0)
        values, vectors = np.linalg.eigh(spread)
        self.basis = vectors[:, ::-1]
        # rounding takes small eigenvalues for none
        kept = np.maximum(values[::-1], 1e-12 * values[-1])
        self.filled = waterfill((self.basis * kept) @ self.basis.T, budget)
        if family == "eigen":
            # of which only the diagonal matters to noise along the eigenvectors
            weight = self._along(weight)
        least = _LEAST_POWER * float(np.sum(weight * self.filled))
        self.objective = Objective(leakage, budget, weight, floor, least)

    def _along(self, matrix: Floats) -> Floats:
        """What of a matrix is along the eigenvectors of the outputs' covariance."""
        along = np.einsum("ij,ik,kj->j", self.basis, matrix, self.basis)
        return np.asarray((self.basis * along) @ self.basis.T)

    def best(self, kinds: Sequence[str]) -> tuple[Candidate, dict[str, float]]:
        """The cheapest noise over all starts, and its cost from each."""
        objective = self.objective
        exact = all(b.kind == "quadrature" for b in objective.leakage.banks)
        if self.family == "scale":
            found = objective.scaled(self.filled, 1e-9 if exact else 1e-4)
            return found, {"waterfill": found.cost}
        shapes = dict(starting_shapes(kinds, self.filled, self.basis, objective))
        costs: dict[str, float] = {}
        if len(shapes) > 1 and _work(objective.leakage) > _SCREENED:
            # from few draws, all starts; from all draws, the best of them
            small = replace(objective, leakage=self._thinned())
            rough = {k: self._solve(small, v, 3e-3) for k, v in shapes.items()}
            costs = {name: found.cost for name, found in rough.items()}
            name = min(costs, key=costs.__getitem__)
            shapes = {name: rough[name].covariance}
        found_by = {
            name: self._solve(objective, shape, 1e-7 if exact else 3e-4)
            for name, shape in shapes.items()
        }
        costs |= {name: found.cost for name, found in found_by.items()}
        best = min(found_by.values(), key=lambda found: found.cost)
        return objective.scaled(best.covariance, 1e-9 if exact else 1e-4), costs

    def _thinned(self) -> Leakage:
        """The leakage on smaller banks."""
        leakage = self.objective.leakage
        share = _SCREENED / 4 / _work(leakage)
        return replace(
            leakage,
            banks=[
                Bank.stratified(a, max(int(len(b) * share), 64), self.rng, per_atom=0)
                for a, b in zip(leakage.priors, leakage.banks, strict=True)
            ],
        )

    def _solve(
        self, objective: Objective, shape: Floats, tolerance: float
    ) -> Candidate:
        if self.solver == "sgd":
            shape = augmented_lagrangian(objective, shape, self.rng, self._kept)
            return objective.scaled(shape, tolerance)
        return self._fixed(objective, objective.scaled(shape, tolerance), tolerance)

    def _kept(self, matrix: Floats) -> Floats:
        """A matrix, or what of it the family knows."""
        return self._along(matrix) if self.family == "eigen" else matrix

    def _fixed(
        self, objective: Objective, found: Candidate, tolerance: float
    ) -> Candidate:
        """Repeat the optimality condition, with damping, and keep the best."""
        best, damping = found, 1.0
        # a change so small moves the cost by its square
        least = math.sqrt(tolerance) / 30
        for _ in range(_ROUNDS):
            if found.mmse is None or found.at_floor:
                break
            shape = _floored(objective.stationary(self._kept(found.mmse())))
            shape *= found.cost / objective.cost(shape)
            mixed = damping * shape + (1 - damping) * found.covariance
            after = objective.scaled(mixed, tolerance)
            change = np.linalg.norm(after.covariance - found.covariance)
            settled = change < least * np.linalg.norm(found.covariance)
            if after.cost > found.cost:
                damping = max(damping / 2, 0.1)
            found = after
            best = min(best, found, key=lambda candidate: candidate.cost)
            if settled:
                break
        return best


def _checked_priors(atoms: Atoms | Sequence[Atoms]) -> list[Atoms]:
    """The priors as a list, all of outputs of one kind."""
    priors = [atoms] if isinstance(atoms, Atoms) else list(atoms)
    if not priors or not all(isinstance(a, Atoms) for a in priors):
        raise type_error("pac.search_atoms_wrong_type")
    if len({a.dim for a in priors}) > 1:
        raise value_error(
            "pac.search_atoms_dimensions_differ", dims=sorted({a.dim for a in priors})
        )
    if all(len(a.distinct_points) == 1 for a in priors):
        raise value_error("pac.search_atoms_constant")
    return priors


def _without_noise(bare: Leakage) -> FoundNoise:
    """The answer where the budget allows for everything."""
    dim = bare.priors[0].dim
    entropy = max(a.output_entropy for a in bare.priors)
    return FoundNoise(
        np.zeros((dim, dim)), 0.0, bare.bare(), np.eye(dim), entropy, True, {}
    )


def _varying(priors: Sequence[Atoms]) -> Booleans:
    """Return the coordinates that vary under any of the priors.

    Linear maps of them are kept: what seems not to vary may be rounding.
    """
    points = np.vstack([a.distinct_points for a in priors])
    return np.asarray(np.any(points != points[0], axis=0))


def _projected(atoms: Atoms, free: Booleans) -> Atoms:
    """The atoms without the coordinates that are constant."""
    return Atoms(atoms.points[:, free], atoms.weights, atoms.memberships)


def _bank(
    atoms: Atoms, n_draws: int | None, secrets: bool, rng: np.random.Generator
) -> Bank:
    """Draws for a search: a rule without randomness where that is cheap."""
    k = len(atoms.distinct_points)
    if n_draws is None:
        if atoms.dim <= 2 and k**2 * _RULE[atoms.dim] <= _WORK:
            return Bank.quadrature(atoms)
        # hundreds of secrets take as long as the atoms themselves
        share = 1 + atoms.n_secrets / 128 if secrets else 1
        n_draws = int(min(max(_WORK / (k * share), 4000), 20_000))
    return Bank.stratified(atoms, n_draws, rng, per_atom=2)


def _work(leakage: Leakage) -> int:
    """Likelihoods of one evaluation."""
    pairs = zip(leakage.priors, leakage.banks, strict=True)
    return sum(len(a.distinct_points) * len(bank) for a, bank in pairs)


def _floored(shape: Floats) -> Floats:
    """A shape whose eigenvalues are not too far apart to compute with."""
    values, vectors = np.linalg.eigh(shape)
    values = np.maximum(values, _FLOOR * values[-1])
    return np.asarray((vectors * values) @ vectors.T)


# -- where a search of noise starts, and how an augmented Lagrangian goes on -----------


#: Steps, and over how many of the last ones the noise is averaged.
_STEPS, _AVERAGED = 600, 200

#: Step length, as a share of the standard deviation of the noise, and its decay.
_RATE, _DECAY = 0.05, 0.01

#: Draws of one step.
_DRAWS = 2000


def augmented_lagrangian(
    objective: Objective,
    shape: Floats,
    rng: np.random.Generator,
    kept: Callable[[Floats], Floats],
) -> Floats:
    """Return a shape of little cost, (d, d), by Adam on the Cholesky factor.

    `kept` gives the part of a matrix that the family of noise knows. The multiplier
    rises as long as the budget is broken.
    """
    unit = objective.cost(shape)
    factor = np.linalg.cholesky(shape)
    multiplier, penalty = 0.0, 5.0 / objective.budget
    first, second = np.zeros_like(factor), np.zeros_like(factor)
    average = np.zeros_like(factor)
    size = np.sqrt(np.trace(shape) / len(shape))
    for step in range(1, _STEPS + 1):
        covariance = kept(factor @ factor.T)
        banks = [
            Bank.stratified(a, _DRAWS, rng, per_atom=0)
            for a in objective.leakage.priors
        ]
        leakage = replace(objective.leakage, banks=banks)
        value, mmse = leakage(GaussianLaw(covariance))
        # in budgets, and the cost in that of the start: no unit matters
        excess = (value - objective.budget) / objective.budget
        force = max(0.0, multiplier + 2 * penalty * objective.budget * excess)
        if mmse is None:
            raise value_error("pac.solver_gradient_unknown")
        half = np.linalg.solve(covariance, kept(mmse()))
        pull = np.linalg.solve(covariance, half.T)
        gradient = 2 * objective.weight @ factor / unit
        gradient -= force / objective.budget * pull @ factor
        gradient = np.tril(gradient)
        # Adam (Kingma and Ba, 2015)
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        rate = _RATE * size / (1 + _DECAY * step)
        moments = first / (1 - 0.9**step), second / (1 - 0.99**step)
        factor = factor - rate * moments[0] / (np.sqrt(moments[1]) + 1e-12)
        multiplier = max(0.0, multiplier + 0.5 * excess)
        if step > _STEPS - _AVERAGED:
            average += covariance / _AVERAGED
    return average


#: Kinds of starting shapes.
STARTS = ("waterfill", "iso", "inverse", "collapsed")

#: Variance of a direction that is given up, as a share of what it would get.
_COLLAPSED = 1e-6


def starting_shapes(
    kinds: Sequence[str],
    filled: Floats,
    basis: Floats,
    objective: Objective,
) -> Iterator[tuple[str, Floats]]:
    """Yield names in `kinds` with their shapes of noise (d, d).

    `filled` is the water-filling noise, `basis` the eigenvectors of the outputs'
    covariance, the largest variance first.
    """
    variances = np.einsum("ij,ik,kj->j", basis, filled, basis)
    if "waterfill" in kinds:
        yield "waterfill", filled
    if "iso" in kinds:
        yield "iso", np.eye(len(filled)) * variances.mean()
    if "inverse" in kinds and len(variances) > 1:
        yield "inverse", (basis * variances[::-1]) @ basis.T
    if "collapsed" in kinds:
        for name, chosen in _affordable(basis, objective):
            kept = np.where(chosen, _COLLAPSED, 1.0)
            yield f"collapsed {name}", (basis * (variances * kept)) @ basis.T


def _affordable(basis: Floats, objective: Objective) -> Iterator[tuple[str, Booleans]]:
    """Yield sets of directions whose exact release costs less than the budget.

    Single directions, the leading ones and the trailing ones.
    """
    d = len(basis)

    def cost_of(chosen: Booleans) -> float:
        directions = basis[:, chosen]
        return max(a.projected_entropy(directions) for a in objective.leakage.priors)

    seen = set()
    ranks = np.arange(d)
    single = [ranks == i for i in range(d)]
    for name, ends in (
        ("leading", [ranks < k for k in range(1, d)]),
        ("trailing", [ranks >= d - k for k in range(1, d)]),
        ("single", single if d > 2 else []),
    ):
        for chosen in ends:
            key, cost = chosen.tobytes(), cost_of(chosen)
            if cost >= objective.budget:
                if name == "single":
                    continue
                # more of them cost more
                break
            # directions that do not vary are no gain
            if key not in seen and cost > 0:
                seen.add(key)
                yield f"{name} {np.flatnonzero(chosen).tolist()}", chosen


# -- the least noise of a family that is not Gaussian ----------------------------------


#: Logarithm of the largest change of scale.
_REACH = 20.0


def search_law(
    atoms: Atoms,
    budget: float,
    family: Callable[[Floats], NoiseLaw],
    start: ArrayLike = (),
    *,
    bank: Bank,
) -> tuple[NoiseLaw, float]:
    """Return the law of least power in a family whose information is the budget.

    Each shape is scaled to the budget by a root search; shapes are compared by
    Nelder and Mead's method, all on one bank.

    Parameters
    ----------
    atoms : Atoms
    budget : float
        In nats, below the entropy of the outputs.
    family : callable
        Takes parameters, of shape (p,), and returns the law at any scale.
    start : array-like of shape (p,), default=()
        Parameters to start from; empty where only the scale is free.
    bank : Bank

    Returns
    -------
    law : NoiseLaw
    information : float
        On the bank in nats: certify it on a fresh one.

    Examples
    --------
    >>> from skpuffer.information import Atoms, Bank, LogisticMarginal, ProductLaw
    >>> from skpuffer.information import search_law
    >>> atoms = Atoms([[-1.0], [1.0]])
    >>> bank, shape = Bank.quadrature(atoms), ProductLaw(LogisticMarginal(), [1.0])
    >>> law, _ = search_law(atoms, 0.5, lambda _: shape, bank=bank)
    >>> round(float(law.covariance[0, 0]), 4)
    0.4963
    """
    budget = check_positive(budget=budget)
    start = check_finite(start=start)
    if budget >= atoms.output_entropy:
        raise value_error(
            "pac.budget_exceeds_output_entropy", output_entropy=atoms.output_entropy
        )

    def scaled(parameters: Floats) -> NoiseLaw:
        law = family(parameters)
        # from a spread as large as that of the outputs
        unit = math.sqrt(np.trace(atoms.covariance) / np.trace(law.covariance))

        def excess(log_scale: float) -> float:
            channel = MixtureChannel(atoms, law.scaled(unit * math.exp(log_scale)))
            information = channel.information(bank, "divergence").value
            return math.log(max(information, 1e-300) / budget)

        low = high = 0.0
        while excess(low) <= 0 and low > -_REACH:
            low -= 1.0
        while excess(high) > 0 and high < _REACH:
            high += 1.0
        if excess(low) <= 0 or excess(high) > 0:
            raise value_error("pac.family_never_meets_budget")
        root = float(brentq(excess, low, high, xtol=1e-10))
        # on the safe side of the root
        step = 1e-10
        while excess(root) > 0:
            root, step = root + step, 2 * step
        return law.scaled(unit * math.exp(root))

    best = scaled(start)
    if start.size:
        found = minimize(
            lambda parameters: float(np.trace(scaled(parameters).covariance)),
            start,
            method="Nelder-Mead",
            options={"xatol": 1e-5, "fatol": 1e-8, "maxiter": 200 * start.size},
        )
        best = scaled(found.x)
    return best, MixtureChannel(atoms, best).information(bank, "divergence").value
