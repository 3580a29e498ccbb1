"""Attacks, drawn beside what is allowed."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from skpuffer.accountants import PrivacyLoss
from skpuffer.audit import (
    distinguishing_attack,
    largest_tpr,
    map_attack,
    membership_attack,
)
from skpuffer.exceptions import UncertifiedError
from skpuffer.inspection import AuditDisplay
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import Certificate
from tests.refused import refused

plt = pytest.importorskip("matplotlib.pyplot")

PURE = Certificate(notion="pure_dp", epsilon=1.0, relation="replace")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    return X[:200], y[:200], X[200:], y[200:]


def test_a_private_model_is_drawn_beside_its_certificate(parts):
    model = PrivateLogisticRegression(
        classes=[0, 1], accountant=PrivacyLoss(1.0, 1e-5), random_state=0
    ).fit(*parts[:2])
    display = AuditDisplay.from_estimator(model, *parts)
    ax = display.ax_
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert ax.get_xlim() == (1 / 200, 1)
    rates, allowed = display.bound_.get_data()
    expected = largest_tpr(model.certificate_, rates, relation="replace")
    assert np.allclose(allowed, expected)
    assert "PrivateLogisticRegression (AUC" in display.line_.get_label()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[-1] == "chance" and "allowed" in texts[1]


def test_the_curve_is_the_best_rule_at_each_rate(parts):
    model = DecisionTreeClassifier(max_depth=4).fit(*parts[:2])
    attack = membership_attack(model, *parts)
    display = AuditDisplay.from_attack(attack)
    assert display.bound_ is None
    rates, drawn = display.line_.get_data()
    fpr, tpr = attack.roc()
    for rate, height in zip(rates, drawn, strict=True):
        assert height == tpr[fpr <= rate * (1 + 1e-9)].max()
    band = display.ax_.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() >= 0 and band[:, 1].max() <= 1


def test_several_attacks_share_axes(parts):
    model = DecisionTreeClassifier().fit(*parts[:2])
    first = AuditDisplay.from_estimator(model, *parts, name="by heart")
    second = AuditDisplay.from_predictions(
        [True, False] * 20, np.arange(40.0), PURE, name="guesses", ax=first.ax_
    )
    assert second.ax_ is first.ax_
    labels = [line.get_label() for line in first.ax_.lines]
    assert labels.count("chance") == 1
    assert sum("by heart" in label for label in labels) == 1
    # what was there is still seen
    assert first.ax_.get_xlim()[0] == 1 / 200
    assert second.line_.get_color() != first.line_.get_color()


def test_two_worlds_of_any_secret_are_drawn():
    rng = np.random.default_rng(0)
    attack = distinguishing_attack(rng.normal(1, 1, 500), rng.normal(0, 1, 500))
    secret = Certificate(notion="pure_pufferfish", epsilon=2.0)
    display = AuditDisplay.from_attack(attack, secret)
    assert display.bound_ is not None
    line = display.plot(plot_chance_level=False, line_kw={"c": "red"}).line_
    assert line.get_color() == "red"
    assert len(display.ax_.lines) == 2


def test_a_certificate_that_bounds_no_attack_is_refused_before_drawing(parts):
    model = DecisionTreeClassifier().fit(*parts[:2])
    attack = membership_attack(model, *parts)
    _, ax = plt.subplots()
    with refused(UncertifiedError, "audit.estimate_promises_nothing"):
        AuditDisplay.from_attack(attack, PURE.as_estimate("peeked"), ax=ax)
    with refused(ValueError, "audit.certificate_not_of_membership"):
        AuditDisplay.from_attack(
            attack, Certificate(notion="pure_pufferfish", epsilon=2.0), ax=ax
        )
    assert not ax.lines
    with refused(ValueError, "audit.labels_of_one_kind"):
        AuditDisplay.from_predictions([True, True], [0.0, 1.0])


# -- guesses of a secret ---------------------------------------------------------------


def guesses(epsilons):
    points = [[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]
    attacks, certificates = [], []
    for epsilon in epsilons:
        noise = GaussianNoise((4 * 25 / (2 * epsilon)) ** 0.5)
        attacks.append(map_attack(points, noise, n_draws=500))
        certificates.append(
            Certificate(notion="renyi_pufferfish", epsilon=epsilon, alpha=4.0)
        )
    return attacks, certificates


def test_guesses_are_drawn_against_the_budget():
    epsilons = [8.0, 0.5, 2.0]
    attacks, certificates = guesses(epsilons)
    display = AuditDisplay.from_map_attacks(
        epsilons, attacks, certificates, name="round"
    )
    x, y = display.line_.get_data()
    assert list(x) == [0.5, 2.0, 8.0]
    assert list(y) == [attacks[i].accuracy for i in (1, 2, 0)]
    assert np.all(display.bound_.get_ydata() >= y)
    labels = [line.get_label() for line in display.ax_.lines]
    assert labels == ["round", "allowed (round)", "prior alone"]
    band = display.ax_.collections[0].get_paths()[0].vertices[:, 1]
    low, high = attacks[0].accuracy_interval()
    assert np.isclose(band, low).any() and np.isclose(band, high).any()
    again = AuditDisplay.from_map_attacks(
        epsilons, attacks, name="other", ax=display.ax_
    )
    assert again.bound_ is None
    labels = [line.get_label() for line in display.ax_.lines]
    assert labels.count("prior alone") == 1


def test_guesses_without_budgets_are_refused():
    attacks, certificates = guesses([1.0])
    with refused(ValueError, "inspection.guesses_not_per_budget", name="attacks"):
        AuditDisplay.from_map_attacks([1.0, 2.0], attacks)
    with refused(ValueError, "inspection.guesses_not_per_budget", name="certificates"):
        AuditDisplay.from_map_attacks([1.0], attacks, certificates * 2)
    with refused(ValueError, "inspection.guesses_epsilons_empty"):
        AuditDisplay.from_map_attacks([], [])
    with refused(ValueError, "parameter.not_positive", name="epsilons"):
        AuditDisplay.from_map_attacks([0.0], attacks)
    sliced = Certificate(notion="estimated", epsilon=1.0, alpha=4.0)
    with pytest.raises(UncertifiedError):
        AuditDisplay.from_map_attacks([1.0], attacks, [sliced])
    assert not plt.get_fignums()
