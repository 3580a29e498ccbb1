"""What a process remembers changes no answer.

Scenarios and accountants remember distances, simulations and laws, and clones of a
scenario share what is remembered. A key that lacks an input gives the answer of another
question. So each question is asked twice: right after all others that differ from it
in one input, and of a process that remembers nothing. The second answer takes longest;
each run compares a third of them, and a slow run all.
"""

from dataclasses import fields, replace
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skpuffer.accountants import (
    Best,
    GeneralWasserstein,
    PrivacyLoss,
    SlicedWasserstein,
)
from skpuffer.accountants._base import known_accountants
from skpuffer.accountants._compatibility import _releases, _scenarios
from skpuffer.distributions import PointMass
from skpuffer.exceptions import ScenarioError, UnsupportedError
from skpuffer.linear_model import PrivateRidge
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    PublicContext,
    QueryRelease,
    Sensitivity,
    VoteRelease,
)
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    CoupledSamples,
    MarkovChainScenario,
    OutputDistributions,
    OutputSamples,
)
from skpuffer.summary import PrivateMean, PrivateStatistic

from .accountants.contract import forget, said

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

N = 4


def larger(known, factor=1.5):
    return Sensitivity(
        add_remove={p: factor * value for p, value in known.add_remove.items()}
    )


def scaled(factor):
    """A contribution that differs by what its code refers to, and not by its code."""
    return lambda X, y=None: factor * np.asarray(X, dtype=float)


def average(factor):
    return lambda X, y=None: factor * np.mean(X, axis=0)


def releases_like(release):
    """The release, and others that differ from it in one input each."""
    yield "as it is", release
    if type(release) is QueryRelease:
        yield "factor", replace(release, factor=1.5 * release.factor)
        if release.linear is None:
            yield "records", replace(release, n_records=N + 2, context=None)
        if release.contribution is not None:
            for factor in (0.3, 0.7):
                yield f"adds {factor}", replace(release, contribution=scaled(factor))
        if release.query is not None:
            for factor in (0.3, 0.7):
                yield f"is {factor}", replace(release, query=average(factor))
        if release.modulus is not None:
            yield "modulus", replace(release, modulus=lambda gap: 0.4 * np.abs(gap))
        if release.linear is not None:
            yield "linear", replace(release, linear=0.5 * release.linear)
            uneven = np.array(release.linear)
            uneven[0, 0] *= 0.1
            yield "uneven", replace(release, linear=uneven)
        if release.sensitivity is not None:
            known = larger(release.sensitivity)
            yield "sensitivity", replace(release, sensitivity=known)
    if type(release) is AdaptiveRelease:
        first, second = release.stages
        wider = replace(first, sensitivity=larger(first.sensitivity))
        yield "stage", AdaptiveRelease(n_records=N, stages=(wider, second))
        uneven = (replace(first, share=0.2), replace(second, share=0.8))
        yield "shares", AdaptiveRelease(n_records=N, stages=uneven)
    if type(release) is GradientRelease:
        yield "steps", replace(release, n_steps=3)
        yield "clip", replace(release, clip_norm=0.5)
        if release.batch_size < N:
            yield "batch", replace(release, batch_size=1)
            for sampling in ("fixed_size", "with_replacement"):
                yield sampling, replace(release, sampling=sampling)
        if release.record is None:
            blocks = {"blocks": (1, 2), "clip_norm": (1.0, 1.0)}
            yield "blocks", replace(release, **blocks)
            for spread in ((1.0, 2.0), (2.0, 1.0)):
                uneven = replace(release, **blocks, noise_proportions=spread)
                yield f"noise {spread}", uneven
    if type(release) is VoteRelease:
        yield "queries", replace(release, n_queries=3, max_answers=3)
        yield "voters", replace(release, relation="add_remove_vote", n_teachers=N)
        for ratio, most in ((2.0, 1), (5.0, 1), (5.0, 2)):
            tested = {"threshold": 1.0, "threshold_noise_ratio": ratio}
            given = replace(release, n_queries=3, max_answers=most, **tested)
            yield f"threshold {ratio}, {most}", given


PRIOR = pd.DataFrame({"secret": [0, 0, 1, 1], "value": [0.0, 0.4, 0.6, 0.9]})


def other_draw(secret, rng):
    return rng.normal(2 * secret, size=(N, 1))


def other_pair(a, b, rng):
    noise = rng.normal(size=(N, 1))
    return noise + 2 * a, noise + 2 * b


#: Other values of a parameter, by scenario; a clone shares what is remembered.
CHANGES = {
    "AttributeScenario": [{"prior_as": "support"}, {"prior": PRIOR}],
    "AttributeScenario, a declared belief": [{"prior": BoundedOdds(2.0)}],
    "GroupScenario": [{"prior_as": "sample"}, {"prior": PRIOR}],
    "SimulatorScenario": [{"draw": other_draw}, {"secrets": [0, 2]}],
    "MarkovChainScenario": [
        {"transition": [[0.6, 0.4], [0.2, 0.8]]},
        {"initial": [0.5, 0.5]},
        {"protected": [0]},
        {"event_delta": 1e-6},
        {"table": "another"},
    ],
    "BlocksScenario of a chain": [
        {"scenario": MarkovChainScenario([[0.6, 0.4], [0.2, 0.8]])}
    ],
    "PrevalenceScenario": [{"low": 0}, {"event_delta": 1e-6}],
    "RecordScenario": [{"k": 2}, {"relation": "replace"}],
    "GaussianScenario": [{"covariance": 2 * np.eye(N)}, {"domain": (0, 2)}],
    "DiffusionScenario": [{"diameter": 2.0}, {"times": 2 * np.arange(1, N + 1)}],
    "DependenceScenario": [{"distance": 0.25}, {"norm": 1}],
    "LawsScenario": [{"laws": [(PointMass(0.0), PointMass(2.0))]}],
}
CHANGES["SimulatorScenario, draw_pair (an estimate)"] = [
    {"draw_pair": other_pair},
    {"confidence": 0.9},
]


def scenarios_like(name, scenario):
    for changes in CHANGES.get(name, CHANGES.get(name.partition(",")[0], [])):
        known = scenario.get_params(deep=False).keys()
        if changes.keys() <= known:
            yield str(sorted(changes)), clone(scenario).set_params(**changes)


def told(certificate):
    return {name: str(held) for name, held in said(certificate).items()}


def answer(accountant, release, scenario):
    """Noise and promise, or the refusal."""
    try:
        made = accountant.calibrate(release, scenario, 0)
        noise = made.noise.with_scale(1.0)
        given = accountant.certify(noise, release, scenario)
    except (UnsupportedError, ScenarioError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return repr(made.noise), told(made.certificate), told(given)


def accountants_for(release, scenario):
    """One accountant for each kind of fact."""
    found = {}
    for kind in known_accountants():
        if kind is not Best and (kind.recommended or kind is SlicedWasserstein):
            made = kind() if kind is SlicedWasserstein else kind(delta=1e-5)
            if made.supports(release, scenario):
                need = made._need(release, scenario.bind(release.context))
                found.setdefault(need, made)
    return found.values()


#: Where releases other than queries are asked about: the others treat them alike.
ASKED_IN_FULL = "RecordScenario"


#: Kinds of queries, where calibration takes long.
KINDS = {
    "MarkovChainScenario": ("sum", "linear"),
    "BlocksScenario": ("sum", "linear"),
    "SimulatorScenario,": ("sum", "any query, without"),
}


def questions_about(name):
    """Accountant, release and scenario by what differs, in one input at most."""
    base, seen = _scenarios(N)[name], set()
    for kind, release in _releases(N).items():
        if kind.startswith(KINDS.get(name.partition(" ")[0], "")) and (
            type(release) is QueryRelease or name == ASKED_IN_FULL
        ):
            for accountant in accountants_for(release, base):
                for how, other in releases_like(release):
                    yield (accountant, other, base), (kind, how)
                # once for each accountant
                if type(accountant) not in seen:
                    seen.add(type(accountant))
                    for what, scenario in scenarios_like(name, base):
                        yield (accountant, release, scenario), (kind, what)


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 8])
@pytest.mark.parametrize("name", [n for n in _scenarios(N) if "Subsample" not in n])
def test_no_answer_is_that_of_another_question(name, step):
    forget()
    questions = list(questions_about(name))
    warm = [answer(*asked) for asked, _ in questions]
    # other kinds of change in other scenarios
    some = slice(crc32(name.encode()) % step, None, step)
    for (asked, key), found in zip(questions[some], warm[some], strict=True):
        forget()
        assert found == answer(*asked), key
    # the answers differ, or a wrong one could not show
    assert len(set(map(str, warm))) > 3


def test_no_release_gets_the_fact_of_one_that_is_gone():
    """Python gives the identity of a release that is gone to the next one."""
    scenario = _scenarios(N)["AttributeScenario, level='record'"]
    one = next(iter(_releases(N).values()))
    bound = scenario.bind(one.context)
    for factor in range(1, 20):
        release = replace(one, factor=float(factor))
        assert bound.fact(OutputDistributions, release).scale == factor
        del release


def twice(X, y=None):
    return np.hstack([X, X])


def numbers_in(fact):
    """What a fact states in numbers and names, whatever else it holds."""
    held = {field.name: getattr(fact, field.name) for field in fields(fact)}
    plain = (bool, int, float, str, np.ndarray, type(None))
    return {name: str(v) for name, v in held.items() if isinstance(v, plain)}


NORMS = (1.0, 2.0, np.inf)
#: Facts that hold outputs, whatever the norm, and that take long to simulate.
OF_OUTPUTS = {CoupledSamples, OutputDistributions, OutputSamples}


@pytest.mark.parametrize("name", _scenarios(N))
def test_no_fact_is_that_of_another_norm(name):
    """One bound scenario is asked in all norms, and by each in turn a new one."""
    scenario, releases = _scenarios(N)[name], list(_releases(N).values())
    releases += [
        replace(one, contribution=twice, dim=2, sensitivity=None)
        for one in releases
        if type(one) is QueryRelease and one.is_sum
    ]
    for release in releases:
        try:
            bound = scenario.bind(release.context or PublicContext(n_records=N))
            offered = bound.provides(release)
        except ScenarioError:
            continue
        for kind in offered - OF_OUTPUTS:
            for norm in NORMS:
                fresh = scenario.bind(bound.context).fact(kind, release, norm)
                known = bound.fact(kind, release, norm)
                assert numbers_in(known) == numbers_in(fresh), (kind, norm)


# -- whole fits under one scenario -------------------------------------------------


def public_table(seed, n=80):
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "secret": secret,
            "near": rng.uniform(0, 0.5, n) + 0.1 * secret,
            "far": rng.uniform(0, 0.5, n) + 0.5 * secret,
            "target": rng.uniform(0, 0.5, n) + 0.05 * secret,
            "other": rng.uniform(0, 0.5, n) + 0.5 * secret,
            "label": rng.integers(0, 2, n),
            "same": secret,
        }
    )


TABLE = public_table(0)
PEOPLE = public_table(1, 40)


def median(factor):
    return lambda X: [factor * np.median(np.asarray(X)[:, 0])]


def fits_under(scenario, accountant):
    """Fits that differ from the first of their kind in one input."""
    given = {"scenario": scenario, "accountant": accountant}

    def mean(*columns, bounds=(0, 1), rows=PEOPLE, **changes):
        model = PrivateMean(**given | changes, bounds=bounds)
        return model.fit(rows[["secret", *columns]])

    def statistic(column, factor):
        model = PrivateStatistic(median(factor), **given)
        return model.fit(PEOPLE[["secret", column]])

    def ridge(target, bounds=(0, 1)):
        model = PrivateRidge(**given, target_bounds=bounds, solver="moments")
        return model.fit(PEOPLE[["secret", "near"]], PEOPLE[target])

    yield "mean", lambda: mean("near")
    yield "mean of another column", lambda: mean("far")
    yield "mean of two columns", lambda: mean("near", "far")
    yield "mean within other bounds", lambda: mean("near", bounds=(0, 2))
    yield "mean of fewer rows", lambda: mean("near", rows=PEOPLE[:20])
    looser = clone(accountant).set_params(epsilon=2.0)
    yield "mean at another budget", lambda: mean("near", accountant=looser)
    for target in ("target", "other"):
        yield f"ridge of {target}", lambda target=target: ridge(target)
    yield "ridge within other bounds", lambda: ridge("target", bounds=(0, 2))
    for column, factor in (("near", 1.0), ("near", 2.0), ("far", 1.0)):
        yield (
            f"{factor} times the median of {column}",
            lambda column=column, factor=factor: statistic(column, factor),
        )


FITTED_UNDER = {
    "a law": (
        AttributeScenario("secret", level="record", prior=TABLE, prior_as="law"),
        GeneralWasserstein(1.0, delta=1e-5),
    ),
    "a support": (
        AttributeScenario("secret", level="record", prior=TABLE, prior_as="support"),
        GeneralWasserstein(1.0, delta=1e-5),
    ),
    "moves of a record": (
        AttributeScenario("secret", level="record", prior=TABLE, prior_as="law"),
        PrivacyLoss(1.0, 1e-5),
    ),
    "all accountants": (
        AttributeScenario("secret", level="record", prior=TABLE, prior_as="law"),
        Best(1.0, delta=1e-5),
    ),
}


@pytest.mark.parametrize("name", FITTED_UNDER)
def test_no_fit_is_calibrated_for_another_one(name):
    """A key without the target took the first target's sensitivity for the second."""
    scenario, accountant = FITTED_UNDER[name]

    def tried(fit):
        try:
            made = fit()
        except (UnsupportedError, ScenarioError) as error:
            return type(error).__name__
        return repr(made.noise_), told(made.certificate_)

    fits = list(fits_under(scenario, accountant))
    forget()
    warm = [tried(fit) for _, fit in fits]
    # all accountants are asked at once where each alone is asked above
    some = slice(None, None, 3 if name == "all accountants" else 1)
    for (how, fit), found in zip(fits[some], warm[some], strict=True):
        forget()
        assert found == tried(fit), how
    assert len(set(map(str, warm))) > 4
