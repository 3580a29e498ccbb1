"""What a certificate states is measured on a run, not read in its text."""

import itertools
import math
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, norm
from sklearn.base import clone

from skpuffer.accountants import Best, OverlapAmplification, PrivacyLoss, RenyiDP
from skpuffer.accountants._compatibility import _scenarios
from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import ScenarioError, UnsupportedError
from skpuffer.kernel import sampling as schemes
from skpuffer.kernel.draws import secret_generator
from skpuffer.kernel.run import ON_GRID, add_noise, noise_grid
from skpuffer.linear_model import (
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
    _base_sgd,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.privacy_loss import GaussianPoissonPair
from skpuffer.releases import GradientRelease, Optimiser, PublicContext
from skpuffer.scenarios import AttributeScenario, BoundedOdds, RecordScenario
from skpuffer.schema import Schema
from skpuffer.svm import PrivateLinearSVC
from skpuffer.testing import all_estimators
from skpuffer.testing._canaries import NUMBER, reachable, sings
from skpuffer.testing._estimator_checks import _arguments, _set
from skpuffer.training import LinearGradients, Logistic, Training, train
from skpuffer.utils._listeners import listen, stop_listening

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

PRIVATE = [
    entry
    for entry in all_estimators()
    if any(name.endswith("accountant") for name in entry.instance.get_params())
]


# -- the grid ------------------------------------------------------------------------


@pytest.mark.parametrize("entry", PRIVATE, ids=lambda entry: entry.name)
def test_what_is_said_to_be_on_a_grid_is(entry, monkeypatch):
    told = []

    def watched(exact, noise, rng, *, n_records, integer=False):
        value = add_noise(exact, noise, rng, n_records=n_records, integer=integer)
        told.append((value, noise_grid(noise, n_records, integer=integer)))
        return value

    for name, module in list(sys.modules.items()):
        if name.startswith("skpuffer.") and vars(module).get("add_noise") is add_noise:
            monkeypatch.setattr(module, "add_noise", watched)
    model = _set(entry.instance, random_state=None).fit(*_arguments(entry.instance))
    if ON_GRID in model.certificate_.assumptions:
        if hasattr(model, "predict") and not told:
            model.predict(_arguments(entry.instance)[0])  # votes
        assert told
        for value, grid in told:
            assert np.array_equal(value / grid, np.rint(value / grid))


class Mutates:
    """Listener that writes into a row of the table before noise is drawn."""

    def __init__(self, X, row):
        self.X, self.row = X, row

    def on_fit_task_begin(self, estimator, context, *, metadata=None):
        self.X[3] = self.row


@pytest.mark.parametrize("value", [7.0, -1e30])
@pytest.mark.parametrize("entry", PRIVATE, ids=lambda entry: entry.name)
def test_a_table_that_a_callback_changes_is_read_before_or_after(
    entry, value, monkeypatch
):
    """Never a part of each: what is added up is that of one of two tables."""
    told = []

    def watched(exact, noise, rng, *, n_records, integer=False):
        told.append(np.array(exact, dtype=float))
        return add_noise(exact, noise, rng, n_records=n_records, integer=integer)

    for name, module in list(sys.modules.items()):
        if name.startswith("skpuffer.") and vars(module).get("add_noise") is add_noise:
            monkeypatch.setattr(module, "add_noise", watched)

    def first_sum(changed, during):
        X, *others = _arguments(entry.instance)
        X, told[:] = np.array(X), []
        if changed and not during:
            X[3] = value
        mutates = Mutates(X, value if changed else X[3].copy())
        listen(mutates)
        try:
            _set(entry.instance, random_state=0).fit(X, *others)
        finally:
            stop_listening(mutates)
        return told[0] if told else None

    sums = [first_sum(*how) for how in ((True, True), (False, False), (True, False))]
    if sums[0] is not None:
        assert any(np.allclose(sums[0], each, rtol=1e-12) for each in sums[1:])


NAMES = sorted(
    scheme.name
    for scheme in vars(schemes).values()
    if isinstance(scheme, type)
    and issubclass(scheme, schemes.SamplingScheme)
    and isinstance(getattr(scheme, "name", None), str)
)


@pytest.mark.parametrize("family", [GaussianNoise, LaplaceNoise])
@pytest.mark.parametrize("sampling", NAMES)
def test_sums_of_gradients_and_their_noise_are_on_the_grid(
    sampling, family, monkeypatch
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(64, 3))
    batch = {} if sampling == "full_batch" else {"batch_size": 16}
    release = GradientRelease(
        n_records=64,
        n_steps=8,
        sampling=sampling,
        clip_norm=0.3,
        clip_order=family.norm,
        optimiser=Optimiser(learning_rate=0.1),
        **batch,
    )
    drawn = []

    def watched(noise, shape, rng):
        drawn.append(noise.scale)
        return sample(noise, shape, rng)

    sample = family.sample
    monkeypatch.setattr(family, "sample", watched)
    for noise in (family(0.7), family(1e-3)):
        steps = []
        gradients = LinearGradients(Logistic(), X, X[:, 0] > 0)
        train(gradients, release, noise, secret_generator(), record=steps)
        assert len(steps) == 8
        # a power of two: no finer than this, whatever room is made for it
        grid = noise_grid(noise, 64)
        for step in steps:
            for value in (step.clipped_sum, step.noise):
                assert np.array_equal(value / grid, np.rint(value / grid))
        assert any(np.any(step.clipped_sum) for step in steps)
        # each of two sums is rounded by half a step; noise has room for twice that
        rounded = 2 * np.linalg.norm(np.full(gradients.dim, grid), family.norm)
        assert drawn[-1] >= noise.scale * (1 + rounded / release.total_clip_norm)


# -- private values under every scenario ---------------------------------------------


def scenarios():
    """Scenarios under which some fit passes, empirical priors among them."""
    n = 60
    table = pd.DataFrame(_arguments(PrivateSGDClassifier())[0] * 0.9)
    table.columns = [f"x{i}" for i in range(3)]
    known = table.assign(secret=np.arange(n) % 2, target=np.arange(n) // 2 % 2)
    empirical = {"level": "record", "prior": "empirical"}
    return {
        **{name: each for name, each in _scenarios(n).items() if "Law" not in name},
        "empirical, law": AttributeScenario("secret", **empirical, prior_as="law"),
        "empirical": AttributeScenario("secret", **empirical),
        "AttributeScenario, level='record'": AttributeScenario(
            "secret", level="record", prior=known, prior_as="law", target="target"
        ),
        "AttributeScenario, level='dataset'": AttributeScenario(
            "secret", level="dataset", prior=known, prior_as="law", target="target"
        ),
        "AttributeScenario, a declared belief": AttributeScenario(
            "secret", level="record", prior=BoundedOdds(4.0)
        ),
    }


ACCOUNTANTS = [Best(1.0, delta=1e-5), PrivacyLoss(1.0, 1e-5), OverlapAmplification(1.0)]

#: Estimators of each kind of release.
KINDS = (
    "PrivateAdditiveClassifier",
    "PrivateKMeans",
    "PrivateLogisticRegression",
    "PrivateMean",
    "PrivateQuantile",
    "PrivateRidge",
    "PrivateSGDClassifier",
    "PrivateSummary",
)


def fit_under(estimator, scenario, accountant, name):
    X, *rest = _arguments(estimator)
    X[5] = NUMBER, 0.0, 0.0
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(3)])
    secret = np.arange(len(X)) % 2
    # a secret of the whole table is the same in each record
    if getattr(scenario, "level", None) == "dataset" or "Group" in name:
        secret[:] = 1
    if getattr(scenario, "column", None) == "secret":
        frame["secret"] = secret
    target = [pd.Series(y, name="target") for y in rest]
    fresh = clone(estimator).set_params(scenario=scenario, accountant=accountant)
    return fresh.fit(frame, *target)


@pytest.mark.parametrize("name", scenarios())
def test_no_pickle_and_no_memory_holds_a_private_value(name):
    scenario, fitted = scenarios()[name], 0
    for entry in PRIVATE:
        if entry.name not in KINDS:
            continue
        for accountant in ACCOUNTANTS:
            try:
                model = fit_under(entry.instance, scenario, accountant, name)
            except (UnsupportedError, ScenarioError, ValueError):
                continue
            fitted += 1
            assert not sings(pickle.dumps(model)), (entry.name, accountant)
            remembered = list(MEMORY._entries.items())
            for path, leaf in reachable([vars(model), remembered]).items():
                held = leaf
                if not isinstance(leaf, str | bytes):
                    held = np.asarray(leaf).tobytes()
                assert not sings(held), (entry.name, path)
            break
    if name.startswith(("empirical", "Record", "Attribute")):
        assert fitted > 2


@pytest.mark.parametrize("entry", PRIVATE, ids=lambda entry: entry.name)
def test_a_release_that_is_kept_knows_nothing_of_its_table(entry):
    """But the number of records: no rows, names or labels, whoever may read them."""
    model = clone(entry.instance)
    fitted = model.fit(*_arguments(model))
    release = vars(fitted).get("release_")
    if release is None:
        pytest.skip("no release is kept")
    context = release.context
    assert type(context) is PublicContext
    assert context == PublicContext(n_records=release.n_records)
    assert context.empirical is None and context.pool is None
    assert getattr(release, "query", None) is None


# -- how far a record moves a sum ----------------------------------------------------

REGRESSION = (-3.0, 5.0, 1.0)


def models():
    """Trained models by name, with all their labels or ends of their targets."""
    for classes in ([0, 1], [0, 1, 2]):
        for loss in ("log_loss", "hinge", "huber_hinge"):
            model = PrivateSGDClassifier(
                loss=loss, training=Training(n_steps=2), classes=classes
            )
            yield f"{loss}, {len(classes)} classes", model, classes
    for loss in ("squared_error", "huber"):
        model = PrivateSGDRegressor(
            loss=loss, training=Training(n_steps=2), target_bounds=(-3, 5)
        )
        yield loss, model, REGRESSION
    yield "logistic", PrivateLogisticRegression(classes=[0, 1]), (0, 1)
    yield "vectors", PrivateLinearSVC(classes=[0, 1]), (0, 1)
    ridge = PrivateRidge(target_bounds=(-3, 5), solver="gradient")
    yield "ridge", ridge, REGRESSION
    yield "perceptron", PrivateMLPClassifier(classes=[0, 1], max_iter=1), (0, 1)


MODELS = {name: about for name, *about in models()}

#: Of one record, with a norm of one at most.
ROWS = [[1, 0, 0], [-1, 0, 0], [0.57, 0.57, 0.57], [0, 0, 0], [0, 0.3, 0]]
OTHERS = np.random.default_rng(0).uniform(-0.4, 0.4, (5, 3))


class _SeenError(Exception):
    """Ends a fit before its run."""


def moved(model, X, y, monkeypatch):
    """Clipped sums of a table at parameters near and far, and what is stated."""
    seen = {}

    def watched(gradients, release, noise, rng, **options):
        seen.update(gradients=gradients, release=release)
        # sums are clipped by what a run has measured before
        train(gradients, release, noise, rng, **options)
        raise _SeenError

    monkeypatch.setattr(_base_sgd, "train", watched)
    with pytest.raises(_SeenError):
        model._fit_private(
            X, y, None, None, approve=lambda plan: seen.update(plan=plan)
        )
    gradients = seen["gradients"]
    rng = np.random.default_rng(1)
    at = [scale * rng.normal(size=gradients.dim) for scale in (0, 1, 1, 5, 5, 50, 1e3)]
    sums = [gradients.clipped_sum(p, None, seen["release"]) for p in at]
    return np.array(sums), seen["plan"].certificate.sensitivity


#: Of noise of any shape: near one and between two and infinity too.
NORMS = (1.0, 1.1, 1.5, 2.0, 4.0, np.inf)

MOMENTS = PrivateRidge(solver="moments", target_bounds=(-1, 1))
#: A table whose target may be missing: such a record counts as nothing.
PAY = Schema({"a": (0, 1), "b": (0, 1), "y": (-1, 1)}, target="y")
#: Estimators that plan one release, by name.
PLANNED = {
    entry.name: entry.instance
    for entry in PRIVATE
    if hasattr(entry.instance, "_plan_fit")
} | {"PrivateRidge, moments": MOMENTS}


def planned(model):
    """What a fit of any record is going to release, and its table."""
    model = clone(model).set_params(scenario=None, accountant=None)
    X, *rest = _arguments(model)
    y = rest[0] if rest else None
    if model.schema is PAY:
        X = pd.DataFrame({"a": [0.0, 1.0, 0.3], "b": [1.0, 0.0, 0.3]})
        y = pd.Series([-1.0, 1.0, None], name="y")
    plans = []

    def seen(plan):
        plans.append(plan)
        raise _SeenError

    with pytest.raises(_SeenError):
        model._fit_private(X, y, None, None, approve=seen)
    return plans[0], X


@pytest.mark.parametrize("name", PLANNED)
def test_a_record_that_may_go_further_never_moves_less(name):
    """A gap is a bound: whatever is charged for it covers all shorter ones."""
    plan, X = planned(PLANNED[name])
    contribution = getattr(plan.release, "contribution", None)
    if not hasattr(contribution, "move"):
        pytest.skip("no move of a record is read")
    ways = np.random.default_rng(0).dirichlet([0.3] * X.shape[1], 20)
    for way, p in itertools.product((*np.eye(X.shape[1]), *ways), NORMS):
        moves = contribution.move(np.geomspace(1e-2, 100, 301)[:, None] * way, p)
        assert np.all(np.diff(moves) >= -1e-12)


SUMMED = PLANNED | {
    "PrivateRidge, missing targets": PrivateRidge(solver="moments", schema=PAY),
    "PrivateLinearRegression, missing": PrivateLinearRegression(schema=PAY),
    "PrivateRidge, no intercept": clone(MOMENTS).set_params(fit_intercept=False),
}


@pytest.mark.parametrize("name", SUMMED)
def test_no_record_adds_more_to_a_sum_than_stated(name):
    """Records of any length and label, and none, in each norm that is stated."""
    plan, _ = planned(SUMMED[name])
    release, task, rng = plan.release, plan.task, np.random.default_rng(0)
    if not getattr(release, "is_sum", False):
        pytest.skip("no sum of contributions")
    rows = np.asarray(task.X)[:60]
    # where these are no codes of cells, which have no others
    if not np.array_equal(rows, np.trunc(rows)):
        far = rng.normal(size=(60, rows.shape[1])) * 10.0 ** rng.uniform(-2, 4, (60, 1))
        rows = np.vstack([rows, np.sign(far), np.zeros_like(far[:1]), far])
    targets = None
    if task.y is not None:
        targets = rng.choice(np.unique(task.y), len(rows))
    added = np.asarray(release.contribution(rows, targets), dtype=float)
    pairs = added[rng.integers(len(added), size=(2, 2000))]
    for p in (1.0, 2.0, np.inf):
        lengths = abs(release.factor) * np.linalg.norm(added, p, axis=1)
        moves = abs(release.factor) * np.linalg.norm(pairs[0] - pairs[1], p, axis=1)
        for relation, found in (("add_remove", lengths), ("replace", moves)):
            most = release.sensitivity.value(relation, p, release.dim)
            assert found.max() <= most * (1 + 1e-9)


@pytest.mark.parametrize("clip_norm", [0.1, 20.0])
@pytest.mark.parametrize("relation", ["add_remove", "replace", "relabel"])
@pytest.mark.parametrize("name", MODELS)
def test_no_record_moves_a_sum_further_than_stated(
    name, relation, clip_norm, monkeypatch
):
    """All moves are tried, label to label and at both ends of a target.

    Half of the stated distance would not do: the moves come near to all of it.
    """
    model, labels = MODELS[name]
    given = {
        "scenario": RecordScenario(relation=relation),
        "accountant": PrivacyLoss(1.0, 1e-5),
        "data_norm": 1.0,
        "training__sampling": "full_batch",
        "training__clip_norm": clip_norm,
    }
    known = model.get_params()
    if "training" not in known and clip_norm != 0.1:
        pytest.skip("its clip norm is no parameter")
    given = {key: at for key, at in given.items() if key.partition("__")[0] in known}
    model = clone(model).set_params(**given)
    labels_of_others = [labels[at % len(labels)] for at in range(5)]
    sums = {}
    for place, row in enumerate(ROWS):
        for label in labels:
            X, y = np.vstack([OTHERS, [row]]), [*labels_of_others, label]
            sums[place, label], stated = moved(clone(model), X, y, monkeypatch)
    if relation == "add_remove":
        gone, _ = moved(clone(model), OTHERS, labels_of_others, monkeypatch)
        moves = [one - gone for one in sums.values()]
    else:
        moves = [
            one - other
            for (place, _), one in sums.items()
            for (again, _), other in sums.items()
            if relation == "replace" or place == again
        ]
    furthest = np.linalg.norm(moves, axis=2).max()
    assert furthest <= stated * (1 + 1e-9)
    # where clipping or the relation decides, and not the widest step of a network
    attained = clip_norm == 0.1 or (
        relation == "relabel" and name not in ("perceptron", "huber")
    )
    if attained:
        assert furthest > 0.7 * stated


# -- groups in Poisson batches -------------------------------------------------------


def log_densities(k, rate, move):
    """Of a sum of noise of scale one, which records of a group move where drawn."""
    x = np.linspace(-25, 25, 20_001)
    chances = binom.logpmf(np.arange(k + 1), k, rate)
    means = move * np.arange(k + 1)
    return logsumexp(chances[:, None] + norm.logpdf(x - means[:, None]), axis=0)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.6, 0.95])
@pytest.mark.parametrize("first, second", [(1, 0), (0, 2), (3, 0), (1, 1), (2, 3)])
@pytest.mark.parametrize("mu", [0.4, 1.5])
def test_groups_in_poisson_batches_cost_what_two_tables_do(first, second, mu, rate):
    """Two tables whose groups move a sum to either side, at any rate."""
    pair = GaussianPoissonPair(
        GaussianNoise(1 / mu).curve(1.0), rate=rate, first=first, second=second
    )
    p, q = log_densities(first, rate, mu), log_densities(second, rate, -mu)
    step = 50 / 20_000
    epsilon = np.array([0.0, 0.2, 1.0, 3.0])
    for curve, ahead, behind in ((pair.delta, p, q), (pair.reverse, q, p)):
        excess = np.exp(ahead) - np.exp(epsilon[:, None] + behind)
        truth = np.maximum(excess, 0).sum(axis=1) * step
        np.testing.assert_allclose(curve(epsilon), truth, rtol=1e-3, atol=1e-7)
    orders = (1.5, 2.0, 4.0, 9.0)
    costs = pair.renyi_costs(orders)
    truth = np.array([renyi(alpha, p, q) for alpha in orders])
    assert np.all(costs >= truth * (1 - 1e-6))
    # so noise of 0.7 times the scale would be found out
    assert np.all(0.7**2 * np.array(costs) <= truth)


def renyi(alpha, ahead, behind):
    step = 50 / 20_000
    logarithm = logsumexp(alpha * ahead + (1 - alpha) * behind) + math.log(step)
    return float(logarithm / (alpha - 1))


@pytest.mark.parametrize("rate", [0.2, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_a_certificate_covers_groups_in_both_directions(relation, k, rate):
    """Of a run of one step, for two tables: the group is there, or is another one."""
    release = GradientRelease(
        n_records=100, n_steps=1, sampling="poisson", batch_size=round(rate * 100)
    )
    scenario, noise = RecordScenario(k=k, relation=relation), GaussianNoise(1.5)
    p = log_densities(k, rate, 1 / 1.5)
    q = log_densities(0 if relation == "add_remove" else k, rate, -1 / 1.5)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        found = PrivacyLoss(1.0, 1e-5).certify(noise, release, scenario)
        for ahead, behind in ((p, q), (q, p)):
            excess = np.exp(ahead) - np.exp(epsilon + behind)
            truth = float(np.maximum(excess, 0).sum() * 50 / 20_000)
            assert found.curve.delta(epsilon) >= truth - 1e-6
    for alpha in (2.0, 8.0):
        found = RenyiDP(1.0, alpha=alpha, delta=None).certify(noise, release, scenario)
        truth = max(renyi(alpha, p, q), renyi(alpha, q, p))
        assert found.epsilon >= truth * (1 - 1e-6)
