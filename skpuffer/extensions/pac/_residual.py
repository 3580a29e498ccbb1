"""Residual-PAC privacy: noise by the mutual information itself, then certified."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from skpuffer.exceptions import (
    Statement,
    UncertifiedError,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import (
    Floats,
    check_count,
    check_option,
    check_positive,
    check_probability,
)
from skpuffer.noise import LaplaceNoise, Noise
from skpuffer.releases import QueryRelease
from skpuffer.utils._checks import check_bool, check_covariance

from ._outputs import ExactBound, ExactPrior, Outputs
from ._pac import (
    Bounded,
    Setting,
    _InformationAccountant,
    check_ball,
    fresh_draws,
    seed_of,
)
from .information._certification import InformationBound, retry_scale
from .information._gaussian import waterfill
from .information._laws import GaussianLaw
from .information._output_model import OutputModel
from .information._search import FoundNoise, search_noise

#: Tries of a certificate by fresh tables, each of which costs runs of the query.
_TRIES, _STEP = 8, 1.15

#: Draws of noise for each of those tables.
_N_NOISE = 16

#: Entropies of single secrets that one step of a search computes, about.
_SEARCHED = 1_000_000

_METHODS = {"betting": "betting", "bernstein": "bernstein", "clt": "asymptotic"}

_NO_NOISE = Statement("assume.bound_without_noise")
_WATERFILL = Statement("assume.exact_covariance_for_certain")
_SOURCE = Statement("source.residual_pac")


class ResidualPAC(_InformationAccountant):
    """Gaussian noise that bounds a mutual information itself, with a certificate.

    Like :class:`PAC`, but the exact posterior of the prior gives the information, not a
    covariance. This takes less noise where outputs are far from Gaussian. It also gives
    budgets about single records or groups, where the scenario says that these are
    secret: much less noise, for a weaker promise.

    Parameters
    ----------
    budget : float, default=0.5
        Mutual information of the secret and the output in nats: of the whole table, or
        the largest over all records or groups, each by itself.
    family : {'scale', 'eigen', 'full'}, default='scale'
        Noise that is searched: multiples of water-filling's; any variances along the
        principal axes; any covariance. Laplace noise has 'scale' alone.
    certificate : {'exact_prior', 'sampled_prior'}, default='exact_prior'
        'exact_prior' is for scenarios that know all tables of their prior; otherwise it
        is an estimate. 'sampled_prior' certifies from fresh tables, for budgets about
        the whole table; the release needs a ball that holds its outputs.
    confidence : float, default=0.95
        Probability, over the draws of the certificate, that the budget is kept.
    interval : {'betting', 'bernstein', 'clt'}, default='betting'
        How the mean of the draws is bounded. 'clt', the normal approximation, leaves an
        estimate.
    noise : {'gaussian', 'laplace'}, default='gaussian'
        Laplace noise has independent coordinates in the proportions of water-filling.
        It is for an exact prior.
    cost : array-like of shape (dim, dim), default=None
        Positive definite matrix C of the cost tr(C S) of noise of covariance S, in the
        units of the output. None is the total variance in the units of the release.
    solver : {'fixed_point', 'sgd'}, default='fixed_point'
        Solver of the search: by the optimality condition, or by a stochastic gradient.
    n_draws : int, default=20000
        Draws of a certificate of an exact prior.
    n_tables : int, default=2000
        Fresh tables, on which the query is run, for a certificate of a sampled prior.
    max_secret_leakage : float, default=None
        Limit in nats of what any single table, or value of a secret, leaks by an
        estimate. The noise is scaled up until then. None is no limit.
    allow_no_noise : bool, default=False
        Whether a budget about single records or groups may be kept without any noise.

    Notes
    -----
    The noise is searched for on one set of draws and certified on fresh ones. Where the
    bound by the covariance needs less noise, it is used, and holds for certain.

    A budget about single records may hold without any noise: a sum of many bits tells
    next to nothing of each. So `table_information` of the certificate also bounds the
    information about the whole table, with a tenth of what may fail.

    References
    ----------
    Zhang and Vorobeychik (2025), Breaking the Gaussian barrier: Residual-PAC privacy
    for automatic privatization. Xiao and Devadas (2023), PAC privacy.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.accountants import ResidualPAC
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import SubsampleScenario
    >>> scenario = SubsampleScenario(
    ...     np.arange(10.0)[:, None], 5, prior="enumerated", secret="record"
    ... )
    >>> mean = QueryRelease(query=lambda X, y: X.mean(axis=0), n_records=5, dim=1)
    >>> found = ResidualPAC(budget=0.1).calibrate(mean, scenario, random_state=0)
    >>> found.certificate.notion, found.certificate.mutual_information <= 0.1
    (<Notion 'record_mutual_information'>, True)
    """

    def __init__(
        self,
        budget: float = 0.5,
        family: str = "scale",
        certificate: str = "exact_prior",
        *,
        confidence: float = 0.95,
        interval: str = "betting",
        noise: str = "gaussian",
        cost: ArrayLike | None = None,
        solver: str = "fixed_point",
        n_draws: int = 20_000,
        n_tables: int = 2000,
        max_secret_leakage: float | None = None,
        allow_no_noise: bool = False,
    ) -> None:
        self.budget = budget
        self.family = family
        self.certificate = certificate
        self.confidence = confidence
        self.interval = interval
        self.noise = noise
        self.cost = cost
        self.solver = solver
        self.n_draws = n_draws
        self.n_tables = n_tables
        self.max_secret_leakage = max_secret_leakage
        self.allow_no_noise = allow_no_noise

    def _check_parameters(self, noise: Noise) -> None:
        super()._check_parameters(noise)
        check_option(("scale", "eigen", "full"), family=self.family)
        check_option(("exact_prior", "sampled_prior"), certificate=self.certificate)
        check_probability(confidence=self.confidence)
        check_option(tuple(_METHODS), interval=self.interval)
        check_option(("fixed_point", "sgd"), solver=self.solver)
        check_option(("gaussian", "laplace"), noise=self.noise)
        others = self.family, self.certificate, self.cost, self.max_secret_leakage
        if self.noise == "laplace" and others != ("scale", "exact_prior", None, None):
            raise value_error("pac.laplace_with_other_options")
        check_count(n_draws=self.n_draws, least=100)
        check_count(n_tables=self.n_tables, least=100)
        if self.cost is not None:
            check_covariance(cost=self.cost, least=1e-12)
        if self.max_secret_leakage is not None:
            check_positive(max_secret_leakage=self.max_secret_leakage)
        check_bool(allow_no_noise=self.allow_no_noise)

    def _check_release(self, release: QueryRelease) -> None:
        if self.certificate == "sampled_prior":
            check_ball(release, "ResidualPAC(certificate='sampled_prior')")

    def _check_noise(self, noise: Noise, outputs: Outputs) -> None:
        if outputs.exact:
            outputs.law_of(noise)
        else:
            super()._check_noise(noise, outputs)

    @property
    def _bounds(self) -> str:
        return _METHODS[self.interval]

    # -- what the base asks for ---------------------------------------------------

    def _found(self, outputs: Outputs, rng: Generator) -> Setting:
        self._check_regime(outputs)
        if not outputs.exact:
            return self._found_of_sample(outputs, rng)
        if len(outputs.atoms.distinct_points) < 2:
            noise = outputs.noise(np.zeros_like(outputs.spread))
            return noise, self._by_fresh(noise, outputs, rng), ()
        found = self._searched(outputs, rng)
        if found.at_floor:
            self._check_no_noise(outputs)
        if not found.covariance.any():
            noise = outputs.noise(found.covariance)
            text = Statement(
                "pac.budget_allows_all",
                budget=float(self.budget),
                name=outputs.release.name,
            )
            return noise, self._by_fresh(noise, outputs, rng), (text,)
        return (*self._until_certified(found, outputs, rng), ())

    def _bounded(self, noise: Noise, outputs: Outputs, rng: Generator) -> Bounded:
        self._check_regime(outputs)
        gamma = 1 - float(self.confidence)
        if self._draws is not None:
            # the share of what may fail that was left to these draws
            gamma = min(gamma, self._draws[1])
        if gamma == 0:
            return self._by_covariance(noise, outputs)
        if outputs.exact:
            law = outputs.law_of(noise)
            prior = ExactPrior(outputs.atoms, outputs.by_column)
            if not law.covariance.any() or len(outputs.atoms.distinct_points) < 2:
                # an output tells as much as without any noise
                return self._without_noise(prior)
            bound = prior.bound(law, gamma, int(self.n_draws), self._bounds, rng)
            return self._of_exact(bound)
        covariance = outputs.covariance_of(noise)
        if self.certificate == "exact_prior":
            return self._estimated(covariance, outputs, rng)
        return self._of_model(self._model_bound(covariance, outputs, rng, gamma))

    def _by_fresh(self, noise: Noise, outputs: Outputs, rng: Generator) -> Bounded:
        """Bound what leaks by draws that can be made again."""
        seed = seed_of(rng)
        bounded = self._bounded(noise, outputs, np.random.default_rng(seed))
        return replace(bounded, draws=(seed, 1 - float(self.confidence)))

    # -- an exact prior -----------------------------------------------------------

    def _check_regime(self, outputs: Outputs) -> None:
        if outputs.exact and self.certificate == "sampled_prior":
            raise unsupported_error(
                "pac.sampled_certificate_for_known_outputs", name=outputs.release.name
            )

        if not outputs.exact and self.noise != "gaussian":
            raise unsupported_error(
                "pac.exact_noise_for_drawn_outputs",
                noise=self.noise,
                name=outputs.release.name,
            )

    def _cost(self, outputs: Outputs) -> Floats | None:
        """The matrix of the cost, for covariances in units."""
        if self.cost is None:
            return None
        units = outputs.units
        cost = check_covariance(cost=self.cost, least=1e-12)
        if cost.shape != (len(units),) * 2:
            raise value_error(
                "pac.cost_of_wrong_shape",
                n_units=len(units),
                name=outputs.release.name,
                shape=cost.shape,
            )
        return np.asarray(cost * np.outer(units, units))

    def _searched(self, outputs: Outputs, rng: Generator, **options: Any) -> FoundNoise:
        """Search the least noise, on draws that nothing else is read off."""
        limit, n_draws = self.max_secret_leakage, None
        if outputs.by_column and outputs.atoms.dim > 2:
            # each of many secrets is looked at in each draw
            fair = _SEARCHED // outputs.atoms.n_secrets
            n_draws = min(max(fair, 4000), 40_000)
        return search_noise(
            outputs.atoms,
            float(self.budget),
            family=self.family,
            secret="columns" if outputs.by_column else "dataset",
            cost=self._cost(outputs),
            solver=self.solver,
            max_secret_leakage=math.inf if limit is None else float(limit),
            n_draws=n_draws,
            random_state=rng,
            **options,
        )

    def _check_no_noise(self, outputs: Outputs) -> None:
        """Refuse a budget about single secrets that asks for no noise."""
        if not outputs.by_column or self.allow_no_noise:
            return
        # the least noise that was tried may still be what keeps it
        if ExactPrior(outputs.atoms, by_column=True).bare() > float(self.budget):
            return
        raise unsupported_error(
            "pac.budget_kept_without_noise",
            budget=float(self.budget),
            secret=outputs.fact.secret.removesuffix("s"),
            name=outputs.release.name,
            output_entropy=outputs.atoms.output_entropy,
        )

    def _until_certified(
        self, found: FoundNoise, outputs: Outputs, rng: Generator
    ) -> tuple[Noise, Bounded]:
        """Scale noise up until fresh draws certify it, if that is what is cheapest."""
        prior = ExactPrior(outputs.atoms, outputs.by_column)
        n, gamma = int(self.n_draws), 1 - float(self.confidence)
        # what is accounted for is the noise as it can be drawn
        noise, budget = outputs.noise(found.covariance), float(self.budget)
        if self.noise == "laplace":
            deviations = np.sqrt(np.diag(found.covariance)) * outputs.units
            noise = LaplaceNoise(tuple((deviations / math.sqrt(2)).tolist()))
            met = prior.on_budget(outputs.law_of(noise), budget, n, rng)
            noise = noise.with_scale(met * np.asarray(noise.scale))
        law = outputs.law_of(noise)
        if self._bounds == "asymptotic":
            return noise, self._by_fresh(noise, outputs, rng)
        aimed = prior.aimed(law, budget, gamma, n, self._bounds, rng)
        # by fresh draws each time, of which the last ones are those that are stated
        tried: list[tuple[ExactBound, Any]] = []

        def fresh(scale: float, share: float) -> InformationBound:
            seed = seed_of(rng)
            draws = np.random.default_rng(seed)
            bound = prior.bound(law.scaled(scale), share, n, self._bounds, draws)
            tried.append((bound, (seed, share)))
            return bound.secret

        try:
            scale, _ = retry_scale(fresh, aimed, budget, gamma)
        except UncertifiedError:
            certain = self._waterfilled(outputs)
            if certain is None:
                raise UncertifiedError(
                    Statement(
                        "pac.budget_uncertified_by_draws",
                        budget=budget,
                        name=outputs.release.name,
                        n_draws=n,
                    )
                ) from None
            return certain
        noise = noise.with_scale(scale * np.asarray(noise.scale))
        if not outputs.by_column:
            certain = self._waterfilled(outputs, law.scaled(scale).covariance)
            if certain is not None:
                return certain
        bound, draws = tried[-1]
        return noise, replace(self._of_exact(bound), draws=draws)

    def _waterfilled(
        self, outputs: Outputs, covariance: Floats | None = None
    ) -> tuple[Noise, Bounded] | None:
        """Noise by the covariance alone, where it costs no more than some other."""
        # of another kind of noise, or a limit that is an estimate, it says nothing
        if self.noise != "gaussian" or self.max_secret_leakage is not None:
            return None
        filled = waterfill(outputs.spread, float(self.budget))
        if covariance is not None:
            cost = self._cost(outputs)
            weight = np.eye(len(covariance)) if cost is None else cost
            if float(np.sum(weight * filled)) > float(np.sum(weight * covariance)):
                return None
        noise = outputs.noise(filled)
        return noise, self._by_covariance(noise, outputs)

    def _by_covariance(self, noise: Noise, outputs: Outputs) -> Bounded:
        """Bound what leaks for certain, without draws."""
        prior = ExactPrior(outputs.atoms, outputs.by_column)
        leaks = prior.by_covariance(outputs.law_of(noise))
        return Bounded(
            information=leaks,
            # what bounds the whole table bounds each record of it
            table=leaks if outputs.by_column else None,
            how=_WATERFILL,
            source=_SOURCE,
            draws=(0, 0.0),
        )

    def _without_noise(self, prior: ExactPrior) -> Bounded:
        return Bounded(
            information=prior.bare(),
            table=prior.atoms.output_entropy if prior.by_column else None,
            how=_NO_NOISE,
            source=_SOURCE,
        )

    def _of_exact(self, bound: ExactBound) -> Bounded:
        if bound.certain:
            return Bounded(
                information=bound.secret.upper, how=_WATERFILL, source=_SOURCE
            )
        certified = "assume.posterior_certified_by_draws"
        return Bounded(
            information=bound.secret.upper,
            table=bound.table,
            certified=bound.secret.certified,
            confidence=float(self.confidence),
            how=self._how(certified, bound.secret),
            source=_SOURCE,
        )

    def _how(self, certified: str, bound: InformationBound) -> Statement:
        """Say what a bound by draws rests on, by the code of one that is certified."""
        if not bound.certified:
            return Statement("assume.interval_asymptotic_only", n_draws=bound.n_draws)
        return Statement(
            certified,
            confidence=float(self.confidence),
            n_draws=bound.n_draws,
            method=self.interval,
        )

    # -- a sample of a larger prior -----------------------------------------------

    def _found_of_sample(self, outputs: Outputs, rng: Generator) -> Setting:
        """Search noise on a sample, and certify it by fresh tables if asked for."""
        found = self._searched(outputs, rng, sampled=True, least_variance=outputs.floor)
        noise = outputs.noise(found.covariance)
        covariance = outputs.covariance_of(noise)
        if self.certificate == "exact_prior" or self._bounds == "asymptotic":
            return noise, self._by_fresh(noise, outputs, rng), ()
        gamma = 1 - float(self.confidence)
        tried: list[tuple[int, float]] = []

        def bound(scale: float, share: float) -> InformationBound:
            tried.append((seed_of(rng), share))
            draws = np.random.default_rng(tried[-1][0])
            return self._model_bound(scale**2 * covariance, outputs, draws, share)

        try:
            scale, last = retry_scale(
                bound, 1.0, float(self.budget), gamma, factor=_STEP, n_tries=_TRIES
            )
        except UncertifiedError:
            raise UncertifiedError(
                Statement(
                    "pac.budget_uncertified_by_tables",
                    budget=float(self.budget),
                    name=outputs.release.name,
                    n_tables=int(self.n_tables),
                )
            ) from None
        noise = noise.with_scale(scale * np.asarray(noise.scale))
        return noise, replace(self._of_model(last), draws=tried[-1]), ()

    def _model_bound(
        self,
        covariance: Floats,
        outputs: Outputs,
        rng: Generator,
        gamma: float,
    ) -> InformationBound:
        """Bound what leaks through noise of a covariance, by fresh tables."""
        # learned from the tables at hand alone, and fixed before others are drawn
        model = OutputModel.fit(outputs.atoms.points, covariance, ball=outputs.ball)
        draws = fresh_draws(outputs, int(self.n_tables), rng)
        return model.bound(
            draws, gamma=gamma, rng=rng, n_noise=_N_NOISE, method=self._bounds
        )

    def _of_model(self, bound: InformationBound) -> Bounded:
        return Bounded(
            information=bound.upper,
            certified=bound.certified,
            confidence=float(self.confidence),
            how=self._how("assume.output_model_certified", bound),
            source=Statement("source.residual_pac_variational", source=_SOURCE),
        )

    def _estimated(
        self, covariance: Floats, outputs: Outputs, rng: Generator
    ) -> Bounded:
        """Estimate what leaks by outputs drawn of a larger prior."""
        prior = ExactPrior(outputs.atoms, by_column=False)
        return Bounded(
            information=prior.left_out(GaussianLaw(covariance), int(self.n_draws), rng),
            certified=False,
            confidence=1.0,
            how=Statement(
                "assume.larger_prior_plugged_in", n_outputs=len(outputs.fact.draws)
            ),
            source=_SOURCE,
        )
