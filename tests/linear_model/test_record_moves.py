"""Models that pay for how far a secret moves a record, and for no more."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import PrivacyLoss, RenyiDP
from skpuffer.exceptions import NoGainWarning
from skpuffer.kernel.steps import GradientSteps, steps_of
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Notion
from skpuffer.releases import GradientRelease, Optimiser, PublicContext
from skpuffer.scenarios import (
    Adjacency,
    AttributeScenario,
    DiffusionScenario,
    GaussianScenario,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import (
    Hinge,
    LinearGradients,
    Logistic,
    RecordGradient,
    Training,
    train,
)
from tests.attack import assert_tight, with_share_of_noise
from tests.refused import refused, says, statements_in

#: How far the secret moves a record, in units of the norm of rows.
MOVE = 0.02
NORM = 6.0


def cancer():
    """A real table with names, in public units."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return pd.DataFrame(StandardScaler().fit_transform(X), columns=X.columns), y


@pytest.fixture(scope="module")
def held_out():
    """400 private rows, the others to score on, and a scenario of public rows.

    The secret is which of two devices made the slide, and moves the mean radius: of
    the public rows either way is believed.
    """
    X, y = cancer()
    order = np.random.default_rng(0).permutation(len(X))
    private, public = order[:400], order[400:500]
    rows = X.iloc[public].assign(diagnosis=y.iloc[public].to_numpy())
    moved = rows.assign(**{"mean radius": rows["mean radius"] + MOVE * NORM})
    prior = pd.concat([rows.assign(device=0), moved.assign(device=1)])
    # within the ball, so that scaling rows down takes nothing off
    longest = np.linalg.norm(prior.drop(columns=["diagnosis", "device"]), axis=1)
    prior = prior[np.tile((longest[:100] < NORM) & (longest[100:] < NORM), 2)]

    def scenario(prior_as="law", **options):
        return AttributeScenario(
            "device",
            level="record",
            prior=prior,
            prior_as=prior_as,
            target="diagnosis",
            **options,
        )

    rest = order[400:]
    return (
        (X.iloc[private], y.iloc[private].rename("diagnosis")),
        (X.iloc[rest], y.iloc[rest]),
        scenario,
    )


#: Models on noisy gradients whose loss is smooth.
MODELS = {
    "logistic": PrivateLogisticRegression(solver="gradient", data_norm=NORM),
    "huber_hinge": PrivateLinearSVC(width=2.0, data_norm=NORM),
    "squared": PrivateSGDRegressor(target_bounds=(0, 1), data_norm=NORM),
}


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_small_move_gains_at_the_radius_of_the_rule(held_out, name):
    train_rows, test_rows, scenario = held_out

    def fitted(**options):
        model = clone(MODELS[name]).set_params(random_state=0, **options)
        model.fit(*train_rows)
        right = (model.predict(test_rows[0]) > 0.5) == test_rows[1]
        return model, float(np.mean(right))

    model, accuracy = fitted(scenario=scenario(), accountant=PrivacyLoss(1.0, 1e-5))
    certificate, release = model.certificate_, model.release_
    assert certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert certificate.gain >= 20
    # the same release, radius and clip norm under differential privacy
    plain = PrivacyLoss(1.0, 1e-5).calibrate(
        release, RecordScenario(relation="replace")
    )
    assert plain.noise.scale / model.noise_.scale == pytest.approx(certificate.gain)
    # and even with the short clip norm that is best there, four times less
    assert 2 * 0.3 / certificate.sensitivity > 3
    # a noise that is next to none, and no projection
    _, free = fitted(accountant=PrivacyLoss(1e3, 0.5))
    assert accuracy >= free - 0.015
    radius = release.optimiser.radius
    assert says(
        certificate.assumptions,
        "assume.gradient_projected_lipschitz",
        radius=radius,
    )
    (moved,) = (
        one
        for one in statements_in(certificate.assumptions)
        if one.code == "assume.gradient_record_move_bounded"
    )
    assert moved.parameters["shift"] == pytest.approx(0.02)


def test_the_rule_takes_no_ball_that_a_start_is_outside_of(held_out):
    (X, y), _, scenario = held_out
    model = clone(MODELS["logistic"]).set_params(
        scenario=scenario(), accountant=PrivacyLoss(1.0, 1e-5), training__n_steps=1
    )
    at_zero = model.fit(X, y).release_.optimiser.radius
    for length, expected in (
        (0.9 * at_zero, at_zero),
        (1.1 * at_zero, 1.1 * at_zero),
        (1e3 * at_zero, None),  # in so large a ball, corners bound the move better
    ):
        weights = np.full((1, X.shape[1]), length / X.shape[1] ** 0.5 / NORM)
        model.set_params(
            training__init=(weights, [0.0]), training__learning_rate=1e-12
        ).fit(X, y)
        assert model.release_.optimiser.radius == pytest.approx(expected)
        np.testing.assert_allclose(model.coef_, weights, rtol=1e-6)


def test_no_ball_is_asked_for_where_no_move_is_known(monkeypatch):
    """Each would be calibrated for, which takes long where many accountants are."""
    asked, calibrate = [], PrivacyLoss.calibrate

    def recorded(self, release, *args, **kwargs):
        asked.append(release.optimiser and release.optimiser.radius)
        return calibrate(self, release, *args, **kwargs)

    monkeypatch.setattr(PrivacyLoss, "calibrate", recorded)
    chain = MarkovChainScenario([[0.5, 0.5], [0.5, 0.5]])
    X = np.arange(60).reshape(-1, 1) % 2.0
    for radius in (None, 2.0):
        asked.clear()
        model = PrivateSGDClassifier(
            chain, PrivacyLoss(), training=Training(radius=radius, n_steps=3)
        )
        # each record by itself: differential privacy promises as much
        with pytest.warns(NoGainWarning):
            model.fit(X, X[:, 0])
        assert set(asked) == {radius} and len(asked) <= 3


def test_a_hinge_pays_its_corner_and_a_network_any_record(held_out):
    (X, y), _, scenario = held_out
    hinge = PrivateLinearSVC(scenario(), loss="hinge", data_norm=NORM).fit(X, y)
    assert hinge.release_.optimiser.radius is None
    assert hinge.certificate_.gain == pytest.approx(2.0, rel=1e-6)
    assert says(hinge.certificate_.assumptions, "assume.gradient_corner_bound")
    network = PrivateMLPClassifier(
        scenario(), data_norm=NORM, training=Training(n_steps=2)
    ).fit(X, y)
    assert network.certificate_.notion is Notion.APPROXIMATE_DP
    assert network.certificate_.gain == 1.0
    assert says(network.certificate_.assumptions, "assume.clipping_only_network")
    # nor is scaling down to another norm than l2 a projection
    model = MODELS["logistic"]
    accountant = PrivacyLoss(1.0, 1e-5, noise="laplace")
    other = clone(model).set_params(
        scenario=scenario(), accountant=accountant, training__n_steps=2
    )
    other.fit(X, y)
    assert other.release_.record is None
    assert says(other.certificate_.assumptions, "assume.clipping_only_other_norm")


@pytest.mark.parametrize("prior_as", ["sample", "confidence"])
def test_what_is_known_from_a_sample_bounds_no_move(held_out, prior_as):
    (X, y), _, scenario = held_out
    model = PrivateLogisticRegression(
        scenario(prior_as),
        solver="gradient",
        data_norm=NORM,
        training=Training(n_steps=2),
    ).fit(X, y)
    assert model.certificate_.notion is Notion.APPROXIMATE_DP
    assert model.certificate_.gain == 1.0
    assert model.release_.optimiser.radius is None


def test_differential_privacy_is_as_without_moves():
    X, y = cancer()
    model = PrivateLogisticRegression(data_norm=NORM, training=Training(n_steps=2)).fit(
        X, y
    )
    assert model.release_.record is None
    assert model.release_.optimiser.radius is None
    model.set_params(training__radius=0.25).fit(X, y)
    scaled = np.append(model.coef_ * NORM, model.intercept_ / 0.5)
    assert np.linalg.norm(scaled) <= 0.25 * (1 + 1e-12)
    assert model.certificate_.notion is Notion.APPROXIMATE_DP


def test_certificates_of_one_table_add_up(held_out):
    (X, y), _, scenario = held_out
    model = PrivateLogisticRegression(
        scenario(table="slides of 2024"),
        RenyiDP(1.0, None, alpha=4),
        solver="gradient",
        data_norm=NORM,
    ).fit(X, y)
    assert model.certificate_.notion is Notion.RENYI_PUFFERFISH
    assert model.certificate_.composable
    assert "slides of 2024" in model.certificate_.coupling_id


# -- many records that move ------------------------------------------------------------


def record_of(loss, **facts):
    return RecordGradient(
        **{"loss": loss, "data_norm": 1.0, "intercept": 0.0, "n_classes": 2} | facts
    )


def run_of(record, n, radius=None, **facts):
    return GradientRelease(
        **{
            "n_records": n,
            "n_steps": 3,
            "sampling": "full_batch",
            "record": record,
            "optimiser": Optimiser(learning_rate=1.0, radius=radius),
        }
        | facts
    )


def test_a_series_pays_the_sum_of_its_own_moves():
    n = 400
    lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    series = GaussianScenario(
        covariance=0.7**lags,
        covariance_of="records",
        domain=([-0.1], [0.1]),
        protected=[200],
    )
    record = record_of(Logistic())
    found = PrivacyLoss(1.0, 1e-5).calibrate(run_of(record, n, 4.0), series)
    # the record itself moves by 0.2, and the others by a power of 0.7 of that
    expected = np.sum(np.minimum(2.0, (5**2 / 16) * 0.2 * 0.7 ** lags[200]))
    assert found.certificate.sensitivity == pytest.approx(expected, rel=1e-5)
    one = PrivacyLoss(1.0, 1e-5).calibrate(
        run_of(record, n, 4.0), RecordScenario(relation="replace")
    )
    # of the 400 records not even one
    assert found.noise.scale < one.noise.scale
    assert found.certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    # a hinge gains a factor of two, as each of them may come or go
    hinge = PrivacyLoss(1.0, 1e-5).calibrate(run_of(record_of(Hinge()), n), series)
    assert hinge.certificate.sensitivity == pytest.approx(n, rel=1e-5)


@pytest.mark.parametrize(
    "model, radii",
    [
        (PrivateLogisticRegression(solver="gradient"), [15.2, 7.6, 3.8, 1.9]),
        (PrivateSGDRegressor(target_bounds=(-1, 1)), [3.2, 2.2, 1.5, 1.0]),
    ],
    ids=["classifier", "regressor"],
)
def test_the_ball_of_the_rule_shrinks_as_more_records_move(model, radii):
    n, norm = 60, np.hypot(1, 0.5)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 1)), rng.choice([-1, 1], size=n)
    found = []
    for rate in (20.0, 1.0, 0.0001):
        # paths that stay together for long move more records
        scenario = DiffusionScenario(
            curvature=rate, times=np.arange(n) + 1e-9, diameter=0.004
        )
        fitted = (
            clone(model).set_params(scenario=scenario, training__n_steps=2).fit(X, y)
        )
        found.append(fitted.release_.optimiser.radius * norm)
    assert found[0] == pytest.approx(radii[0]) and found[2] < found[1] <= found[0]
    # none between those of the rule
    assert np.abs(np.subtract.outer(found, radii)).min(axis=1) == pytest.approx(0)


def test_batches_that_are_dealt_pay_the_worst_deal():
    n = 6
    times = np.log(1 / np.array([0.6, 0.5, 0.4, 0.3, 0.2, 0.1]))
    scenario = DiffusionScenario(curvature=1.0, times=times, diameter=0.1)
    # scores of one at most, where gradients are 1-Lipschitz
    facts = {"sampling": "shuffled_epochs", "batch_size": 2, "n_steps": 3}
    context = PublicContext(n_records=n, n_features=1)
    release = run_of(record_of(Logistic()), n, 1.0, context=context, **facts)
    found = PrivacyLoss(1.0, 1e-5).calibrate(release, scenario).certificate
    # those that move most share a batch, the next ones another
    assert found.sensitivity == pytest.approx(
        np.linalg.norm([0.11, 0.07, 0.03]), rel=1e-6
    )
    assert found.epsilon_lower is None


@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_no_deal_of_records_into_batches_costs_more(size):
    """Each deal is tried, of batches whose sizes differ by one too."""
    moves = np.array([0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.005])
    scenario = DiffusionScenario(curvature=1.0, times=np.log(0.1 / moves), diameter=0.1)
    n, steps = len(moves), -(-len(moves) // size)
    release = run_of(
        record_of(Logistic()),
        n,
        1.0,
        context=PublicContext(n_records=n, n_features=1),
        sampling="shuffled_epochs",
        batch_size=size,
        n_steps=steps,
    )
    found = PrivacyLoss(1.0, 1e-5).calibrate(release, scenario).certificate
    worst = max(
        sum(moves[part].sum() ** 2 for part in np.array_split(order, steps))
        for order in map(np.array, itertools.permutations(range(n)))
    )
    assert found.sensitivity**2 >= worst
    assert found.sensitivity**2 == pytest.approx(worst, rel=0.1)


@pytest.mark.parametrize("sampling", ["full_batch", "poisson"])
def test_a_move_pays_for_the_rounding_of_the_sum_that_it_moves(sampling):
    """Two sums of so many float64 may be rounded apart by more than it."""
    found = []
    for n in (10**3, 10**7):
        size = None if sampling == "full_batch" else n // 10
        release = run_of(
            record_of(Logistic()), n, 1.0, sampling=sampling, batch_size=size
        )
        fact = Adjacency(count=2, move=1e-6, relation="replace", coupling_id=None)
        (first, second) = steps_of(release, fact).moves
        assert second == pytest.approx(1e-6 / release.total_clip_norm)
        found.append(first - second)
        assert first - second >= 4 * n * np.finfo(float).eps
    assert found[1] == pytest.approx(1e4 * found[0], rel=1e-3)


@pytest.mark.parametrize(
    "fact",
    [
        {"certified": False},
        {"delta": 1e-6},
        {"move": 0.0},
        {"move": np.inf},
        {"relation": "add_remove"},
    ],
    ids=lambda fact: next(iter(fact)),
)
def test_what_is_not_certain_moves_a_record_to_any_other(fact):
    release = run_of(record_of(Logistic()), 5, 4.0)
    known = {"count": 1, "move": 0.02, "relation": "replace", "coupling_id": None}
    assert steps_of(release, Adjacency(**known)).moves is not None
    assert steps_of(release, Adjacency(**known | fact)).moves is None


@pytest.mark.parametrize(
    "sampling, kept", [("poisson", True), ("fixed_size", True), ("with_replacement", 0)]
)
def test_many_small_moves_are_charged_at_every_batch_where_that_is_less(sampling, kept):
    release = run_of(record_of(Logistic()), 100, 1.0, sampling=sampling, batch_size=20)
    # together 0.5 of a clip norm, and 8 clip norms are what forty others may move a
    # batch by in the mean
    fact = Adjacency(
        count=40,
        move=0.0125,
        relation="replace",
        coupling_id=None,
        any_records=True,
    )
    steps = GradientSteps(
        release, "replace", 40, moves=GradientSteps.known_moves(release, fact)
    )
    if not kept:
        assert steps.moves is None
        return
    found = steps.under(GaussianNoise(1.0), 100.0)
    assert found.shift.radius == pytest.approx(0.5)
    assert found.curve.mu == pytest.approx(0.5 * np.sqrt(3))
    far = replace(fact, move=1.0)
    assert GradientSteps.known_moves(release, far) is None


def test_many_classes_pay_for_a_move_of_their_rows():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    scenario = GaussianScenario(
        covariance=np.corrcoef(X.T), secret=[0], domain=([-0.05], [0.05])
    )
    model = PrivateLogisticRegression(scenario, solver="gradient", data_norm=5.0)
    model.fit(X, y)
    move = 0.1 * np.linalg.norm(np.corrcoef(X.T)[0]) / 5.0
    radius = model.release_.optimiser.radius
    slope = np.sqrt(2) + np.hypot(1, 0.5) * radius / 2
    assert model.certificate_.sensitivity == pytest.approx(slope * move, rel=1e-5)
    assumptions = model.certificate_.assumptions
    assert says(assumptions, "assume.gradient_record_move_bounded")
    assert says(assumptions, "assume.targets_public")


# -- what is executed ------------------------------------------------------------------


def test_gradients_are_taken_in_the_ball_alone(monkeypatch):
    X, y = cancer()
    X = X.to_numpy(np.float32) / 20
    seen = []
    taken = LinearGradients.clipped_sum

    def watched(self, parameters, index, release):
        seen.append((float(np.linalg.norm(parameters)), self.rows.dtype))
        return taken(self, parameters, index, release)

    monkeypatch.setattr(LinearGradients, "clipped_sum", watched)
    scenario = GaussianScenario(
        covariance=np.eye(X.shape[1]) * 1e-4,
        secret=[0],
        domain=([-0.01], [0.01]),
    )
    model = PrivateSGDClassifier(
        scenario, data_norm=1.0, training=Training(n_steps=5, radius=0.5)
    )
    # a start from outside of the ball is projected as well
    first = PrivateSGDClassifier(training=Training(learning_rate=50.0, n_steps=5)).fit(
        X, y
    )
    # of other rows, say
    model._released = replace(first._released, certificate=None)
    assert np.linalg.norm(model._released.parameters) > 0.5
    seen.clear()
    model.set_params(training__warm_start=True).fit(X, y)
    assert len(seen) == 5
    assert max(length for length, _ in seen) <= 0.5 * (1 + 1e-12)
    # what a record moves is not rounded away
    assert {dtype for _, dtype in seen} == {np.dtype(np.float64)}
    assert model.release_.clipped.radius == 0.5


@pytest.mark.parametrize(
    "gradients, words",
    [
        (lambda X, y: LinearGradients(Hinge(), X, y, intercept_scale=0.0), "other"),
        (lambda X, y: LinearGradients(Logistic(), X, y), "intercept"),
        (
            lambda X, y: LinearGradients(
                Logistic(), X.astype(np.float32), y, intercept_scale=0.0
            ),
            "float64",
        ),
        (
            lambda X, y: LinearGradients(Logistic(), 2 * X, y, intercept_scale=0.0),
            "norm one",
        ),
    ],
    ids=["loss", "intercept", "float32", "long rows"],
)
def test_a_run_of_other_gradients_is_refused(gradients, words):
    X, y = np.array([[1.0], [-0.5]]), np.array([0, 1])
    release = run_of(record_of(Logistic()), 2, 1.0)
    with refused(
        ValueError,
        (
            "gradient.record_needs_float64",
            "gradient.record_of_other_gradients",
            "gradient.record_rows_not_scaled",
        ),
    ) as error:
        train(gradients(X, y), release, GaussianNoise(1.0), np.random.default_rng(0))
    assert words in str(error.value)


@pytest.mark.parametrize(
    "model",
    [
        PrivateLinearSVC(loss="hinge", training=Training(radius=2.0)),
        PrivateSGDClassifier(loss="hinge", training=Training(radius=2.0)),
    ],
)
def test_a_ball_is_refused_for_a_loss_with_a_corner(model):
    X, y = cancer()
    with refused(ValueError, "linear.radius_loss_has_corner"):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize(
    "name, value",
    [("training__radius", 0.0), ("training__radius", np.inf), ("width", -1.0)],
)
def test_wrong_widths_and_radii_are_refused_by_name(name, value):
    X, y = cancer()
    with pytest.raises(ValueError, match=f"'{name.removeprefix('training__')}'"):
        PrivateLinearSVC().set_params(**{name: value}).fit(X, y)


def one_record(move):
    """A scenario of one record that moves by so much, its class staying."""
    prior = pd.DataFrame({"s": [0, 1], "x": [1.0, 1.0 - move], "y": [1, 1]})
    return AttributeScenario(
        "s", level="record", prior=prior, prior_as="law", target="y"
    )


def test_an_attacker_finds_that_noise_for_a_move_is_missing():
    # a record on either side of the corner of a hinge: its gradient comes or goes
    scenario = one_record(0.02)
    context = PublicContext(
        n_records=3, feature_names=("x",), n_features=1, classes=(0, 1)
    )
    record = record_of(Hinge())
    release = run_of(record, 3, clip_norm=0.5, n_steps=2, context=context)
    found = PrivacyLoss(2.0, 0.05).calibrate(release, scenario)
    assert found.certificate.gain == pytest.approx(2.0, rel=1e-6)

    def runs(x, n, rng):
        """Noise-free sums and noises, of shape (n, 2)."""
        gradients = LinearGradients(
            Hinge(), [[x], [0.3], [-0.4]], [1, 1, 0], intercept_scale=0.0
        )
        steps = []
        # steps so small that the parameters stay beside the corner
        small = Optimiser(learning_rate=1e-12)
        train(
            gradients,
            replace(release, n_steps=2 * n, optimiser=small),
            found.noise,
            rng,
            initial=[1 / 0.99],
            record=steps,
        )
        drawn = np.array([(step.clipped_sum[0], step.noise[0]) for step in steps])
        return drawn.reshape(n, 2, 2).sum(axis=1).T[..., None]

    n, rng = 1500, np.random.default_rng(0)
    assert_tight(
        found.certificate,
        found.noise,
        with_share_of_noise([runs(x, n, rng) for x in (1.0, 0.98)], found.noise),
        seed=0,
        n_draws=n,
    )


@pytest.mark.parametrize("sampling", ["poisson", "fixed_size"])
def test_sampled_batches_pay_less_for_a_small_move(sampling):
    facts = {"sampling": sampling, "batch_size": 20, "n_steps": 50}
    context = PublicContext(
        n_records=400, feature_names=("x",), n_features=1, classes=(0, 1)
    )
    release = run_of(record_of(Logistic()), 400, 4.0, context=context, **facts)
    accountant = PrivacyLoss(1.0, 1e-5)
    found = accountant.calibrate(release, one_record(0.02))
    plain = accountant.calibrate(release, RecordScenario(relation="replace"))
    certificate = found.certificate
    assert certificate.gain == pytest.approx(plain.noise.scale / found.noise.scale)
    assert certificate.gain > 3
    assert certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    again = accountant.certify(found.noise, release, one_record(0.02))
    assert again.epsilon == pytest.approx(1.0, rel=1e-3)
    assert again.gain is None
    if sampling != "poisson":
        return
    # a record that may move as far as any other is one
    far = accountant.calibrate(release, one_record(1.9))
    assert far.noise.scale <= plain.noise.scale * (1 + 1e-9)
