"""Certificates of every kind: of each accountant, and of each kind of curve."""

import json
import math
import warnings
from collections.abc import Mapping
from functools import cache
from itertools import chain

import numpy as np

from skpuffer.accountants import GroupPrivacy, OverlapAmplification, PrivacyLoss
from skpuffer.accountants._additive._couplings import (
    AtomMoves,
    CouplingCurve,
    GaussianMoves,
)
from skpuffer.kernel.composed_curves import CountLawCurve, RepeatedCurve, WorstCurve
from skpuffer.kernel.pairs import (
    MovedPair,
    ReplacePoissonPair,
    SubsetGroupPair,
    SubsetPair,
)
from skpuffer.kernel.poisson_groups import GaussianPoissonGroup, GaussianPoissonPair
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    Shift,
)
from skpuffer.privacy import Certificate, compose, parallel
from skpuffer.privacy_loss import (
    BestRunCurve,
    BoundedRangePair,
    GaussianCurve,
    PrivacyLossCurve,
    PurePair,
    RandomRuns,
    RenyiCurve,
)
from skpuffer.privacy_loss._overlap import OverlapCurve, WorstOverlapCurve
from skpuffer.privacy_loss._overlap._kinds import (
    FiniteOverlap,
    NearOverlap,
    NormalOverlap,
    OddsOverlap,
    WorstOverlap,
)
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import AttributeScenario, BoundedOdds, RecordScenario
from tests.accountants import test_accountants_contract as of_the_library
from tests.accountants.contract import contracts_in
from tests.extensions import test_extensions_contract as of_extensions

__all__ = ["CERTIFICATES", "CONTRACTS", "data_of", "of_contract", "signature"]


@cache
def of_contract(name):
    """Data of certificates of one accountant, for all that its contract asks it about.

    One for each make of curve, notion and relation: others differ in numbers only.
    """
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for test in _contracts(name):
            for mode in test.modes:
                for growth in test.growths:
                    certificate = test().found(mode, growth).certificate
                    plain = json.loads(json.dumps(certificate.to_dict()))
                    found.setdefault(signature(plain), plain)
    return {f"{name}-{at}": plain for at, plain in enumerate(found.values())}


def _contracts(name=None):
    """Contracts of one accountant, or of all."""
    return [
        test
        for test in contracts_in(of_the_library, of_extensions)
        if name in (None, test.kind.__name__)
    ]


class _OfContracts(Mapping):
    """Data of certificates of all accountants, made when they are asked for.

    Not when tests are collected, which every process does.
    """

    #: Names of the accountants, in the order of their contracts.
    accountants = tuple(dict.fromkeys(test.kind.__name__ for test in _contracts()))

    def __getitem__(self, name):
        return of_contract(name.rpartition("-")[0])[name]

    def __iter__(self):
        return chain.from_iterable(map(of_contract, self.accountants))

    def __len__(self):
        # a list would ask for its length first
        return sum(1 for _ in self)


CONTRACTS = _OfContracts()


def signature(plain):
    """What kind of certificate it is: notion, relation, and kinds within its curve."""

    def kinds(value):
        if isinstance(value, dict):
            own = value.get("kind") or value.get("family")
            return frozenset({own}).union(*map(kinds, value.values()))
        if isinstance(value, list):
            return frozenset().union(*map(kinds, value))
        return frozenset()

    return plain["notion"], plain["relation"], kinds([plain["curve"], plain["events"]])


def of_curve(curve, delta=1e-3, alpha=None, **fields):
    """A certificate of a curve, at a delta or an order."""
    usual = {
        "notion": "approximate_dp" if alpha is None else "renyi_dp",
        "relation": "replace",
        "coupling_id": "replace:2",
        "coupling_count": 2,
        "composable": True,
        "assumptions": ("two records are replaced",),
    }
    if alpha is None:
        numbers = {"delta": delta, "epsilon": float(curve.epsilon(delta))}
    else:
        epsilon = float(curve.renyi(alpha))
        numbers = {"alpha": alpha, "epsilon": epsilon, "rpp_epsilon": epsilon}
    return Certificate(curve=curve, **{**usual, **numbers, **fields})


def belief(overlap, plain=None):
    plain = LaplaceNoise(1.0).curve(1.0) if plain is None else plain
    fields = {"notion": "approximate_pufferfish", "record": "a row"}
    return of_curve(OverlapCurve(plain, overlap), 0.01, **fields)


def about_distributions(curve, **options):
    fields = {"relation": None, "coupling_id": None, "coupling_count": None}
    alpha = options.get("alpha")
    notion = "approximate_pufferfish" if alpha is None else "renyi_pufferfish"
    return of_curve(curve, notion=notion, composable=False, **fields, **options)


def steps(*pairs):
    return of_curve(PrivacyLossCurve(tuple(pairs)), 1e-3)


NORMAL = GaussianNoise(1.5).curve(1.0)
FIRST, SECOND = (0.4, 0.3, 0.1, 0.2), (0.1, 0.2, 0.3, 0.4)


def query(**options):
    known = {1: 1.0, 2: 1.0}
    return QueryRelease(
        query=lambda X, y: X.sum(axis=0),
        n_records=100,
        dim=1,
        sensitivity=Sensitivity(add_remove=known, replace=known),
        **options,
    )


def single(**options):
    accountant = GroupPrivacy(**options)
    return accountant.calibrate(query(), RecordScenario()).certificate


def composed():
    return compose([single(delta=1e-5, noise="gaussian")] * 2 + [_run()])


def _run():
    release = of_the_library.run(sampling="full_batch", batch_size=None)
    accountant = PrivacyLoss(delta=1e-5)
    return accountant.calibrate(release, RecordScenario()).certificate


def believing():
    scenario = AttributeScenario("a", level="record", prior=BoundedOdds(20.0))
    return OverlapAmplification(delta=1e-3).calibrate(query(), scenario).certificate


def pairwise():
    from tests.accountants import test_accountants_pairwise as cases

    accountant = OverlapAmplification(0.3, delta=0.05)
    return accountant.certify(GaussianNoise(1.0), cases.total(), cases.believing())


#: Certificates that the contracts of accountants do not make.
CERTIFICATES = {
    "composed": composed,
    "composed losses": lambda: compose([single(alpha=4.0), _run()], alpha=4.0),
    "composed table": lambda: compose(
        [single(alpha=4.0, noise="generalized_cauchy"), _run()], alpha=4.0
    ),
    "counted": lambda: compose([single(delta=1e-5, noise="gaussian")], counts=[5]),
    "counted pure": lambda: compose(
        [single(alpha=math.inf, noise="laplace")], counts=[3]
    ),
    "converted": lambda: single(alpha=4.0, noise="gaussian").to_approximate(1e-5),
    "estimated": lambda: single(alpha=4.0).as_estimate("the bounds were peeked at"),
    "parallel": lambda: parallel([single(epsilon=0.5), single(epsilon=1.0)]),
    "parallel same": lambda: parallel([single(epsilon=1.0)] * 2),
    "shifted prior": lambda: about_distributions(
        GaussianNoise(2.0).curve(1.0), alpha=3.0, sensitivity=1.0, norm=2.0
    ).under_prior_shift(0.5),
    "believed": believing,
    "pair by pair": pairwise,
    "subset": lambda: steps((SubsetPair(NORMAL, 0.2), 5)),
    "subset of a group": lambda: steps((SubsetGroupPair(NORMAL, 50, 8, 2), 4)),
    "moved": lambda: steps((MovedPair(NORMAL, NORMAL, 3, 0.05), 4)),
    "replaced in batches": lambda: steps((ReplacePoissonPair(NORMAL, 0.2), 4)),
    "group replaced": lambda: steps((GaussianPoissonPair(NORMAL, 0.2, 1, 2), 3)),
    "group": lambda: steps((GaussianPoissonGroup(NORMAL, 0.2, 2), 3)),
    "choices": lambda: steps((BoundedRangePair(0.4), 3)),
    "pure steps": lambda: steps((PurePair(0.3), 5), (BoundedRangePair(0.2), 2)),
    "worst": lambda: of_curve(WorstCurve((GaussianCurve(0.3), NORMAL))),
    "repeated": lambda: of_curve(RepeatedCurve(GaussianCurve(0.3), 4)),
    "best run": lambda: of_curve(
        BestRunCurve(GaussianCurve(0.3), RandomRuns(10.0, 1.0)), 1e-4
    ),
    "best run at an order": lambda: of_curve(
        BestRunCurve(GaussianCurve(0.3), RandomRuns(4.0, math.inf)), alpha=8.0
    ),
    "believed best run": lambda: belief(
        OddsOverlap(3.0), BestRunCurve(NORMAL, RandomRuns(3.0, 0.0))
    ),
    "law of counts": lambda: of_curve(
        CountLawCurve((GaussianCurve(0.2), GaussianCurve(0.4)), (0.7, 0.2999), 1e-4),
        notion="approximate_pufferfish",
        composable=False,
    ),
    "table": lambda: of_curve(RenyiCurve((2.0, 8.0, 32.0), (0.1, 0.4, 1.6)), 1e-4),
    "normals": lambda: belief(NormalOverlap(0.5)),
    "normals within odds": lambda: belief(NormalOverlap(0.5, 1.5)),
    "values": lambda: belief(FiniteOverlap(FIRST, SECOND)),
    "values within odds": lambda: belief(FiniteOverlap(FIRST, SECOND, 1.2)),
    "near values": lambda: belief(NearOverlap(FiniteOverlap(FIRST, SECOND), 0.01)),
    "worst of beliefs": lambda: belief(
        WorstOverlap((OddsOverlap(4.0), NormalOverlap(0.2)))
    ),
    "side by side": lambda: of_curve(
        WorstOverlapCurve(
            (
                OverlapCurve(NORMAL, OddsOverlap(3.0)),
                OverlapCurve(NORMAL, OddsOverlap(4.0, 0.1)),
            )
        ),
        notion="approximate_pufferfish",
        composable=False,
    ),
    "l2 laplace": lambda: of_curve(
        L2LaplaceNoise(2.0).curve(Shift(1.0, norm=2, dim=3)), alpha=3.0
    ),
    "generalized gaussian": lambda: of_curve(
        GeneralizedGaussianNoise(1.0, beta=1.5).curve(Shift(0.4, norm=1, dim=3))
    ),
    "generalized cauchy": lambda: of_curve(
        GeneralizedCauchyNoise(1.0, exponent=4.0).curve(0.4), alpha=5.0
    ),
    "cauchy delta": lambda: of_curve(
        GeneralizedCauchyNoise(1.0).curve(0.4), 0.05, notion="approximate_dp"
    ),
    "laplace in l2": lambda: of_curve(
        LaplaceNoise((1.0, 2.0)).curve(Shift(1.0, norm=2, dim=2, weights=(1.0, 3.0)))
    ),
    "lengths only": lambda: about_distributions(
        CouplingCurve(
            GaussianNoise(2.0),
            Shift(3.0, dim=2),
            (AtomMoves(np.array([0.5, 3.0]), np.array([0.9, 0.1])),),
            event_delta=0.01,
            mass_error=1e-6,
        ),
        alpha=3.0,
    ),
    "correlated moves": lambda: about_distributions(
        CouplingCurve(
            CorrelatedGaussianNoise(1.0, covariance=[[2.0, 0.5], [0.5, 1.0]]),
            Shift(3.0, dim=2),
            (
                AtomMoves(
                    np.array([1.0, 2.0]),
                    np.array([0.5, 0.5]),
                    np.array([[1.0, 0.0], [0.0, 2.0]]),
                ),
            ),
        ),
        alpha=3.0,
    ),
    "normal moves": lambda: about_distributions(
        CouplingCurve(
            LaplaceNoise(2.0),
            Shift(math.inf, norm=1),
            (GaussianMoves(np.array([0.5]), np.array([[0.2]])),),
        ),
    ),
}


@cache
def data_of(name):
    """Data of one of `CERTIFICATES`, as it comes back from JSON."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.loads(json.dumps(CERTIFICATES[name]().to_dict(), allow_nan=False))
