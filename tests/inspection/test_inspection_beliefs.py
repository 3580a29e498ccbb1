"""What public rows tell of a secret, beside what is declared."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from skpuffer.exceptions import ScenarioError
from skpuffer.inspection import BeliefDisplay, audit_belief
from skpuffer.scenarios import AttributeScenario, BoundedInference, BoundedOdds
from tests.refused import refused

#: Two normal distributions this far apart are told from each other with an AUC of .72.
MU = np.sqrt(2) * norm.ppf(0.72)


@pytest.fixture(scope="module")
def public():
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 6000)
    return pd.DataFrame(
        {
            "height": MU * sex + rng.normal(size=6000),
            "sex": np.where(sex, "m", "f"),
            "luck": rng.choice(["a", "b", "c"], 6000),
        }
    )


def scenario(prior):
    return AttributeScenario("sex", level="record", prior=prior)


GUESS = LogisticRegression()


def test_what_public_rows_tell(public):
    numbers = public[["sex", "height"]]
    audit = audit_belief(scenario(BoundedInference(0.72)), numbers, guesser=GUESS)
    found = audit.columns.loc["height"]
    # log odds of normal distributions are normal again, of spread mu within each
    # kind; mixed half and half their quantiles lie symmetrically
    assert found["auc"] == pytest.approx(0.72, abs=0.02)
    grid = np.linspace(-5, 5, 4001)
    mixed = (norm.cdf(grid, -(MU**2) / 2, MU) + norm.cdf(grid, MU**2 / 2, MU)) / 2
    top = grid[np.searchsorted(mixed, 0.95)]
    assert found["odds_90"] == pytest.approx(np.exp(2 * top), rel=0.1)
    assert found["odds_98"] > found["odds_90"]
    # and what is left to hide is what is declared, but for chance
    etas = audit.etas
    assert etas["measured"].to_numpy() == pytest.approx(etas["declared"], abs=0.02)
    # nothing assumed of more people: a smaller range for the rest, and a point at
    # which the share itself is all that is left
    assert audit.shares["w"].is_monotonic_decreasing
    assert audit.shares.iloc[-1, -1] >= 0.2
    assert "0.72" in str(audit.columns.round(2)) and "share" in str(audit)
    assert audit.counts.to_dict() == public["sex"].value_counts().to_dict()
    # two values are one pair
    assert "pair" not in str(audit) and f"m: {audit.counts['m']:,}" in str(audit)


def test_the_pair_that_is_told_apart_is_named_and_nothing_is_cut_off():
    rng = np.random.default_rng(0)
    kind = np.repeat(["a", "b", "a value with a long name"], [900, 900, 200])
    height = np.where(kind == "b", 2.0, 0.0) + rng.normal(size=2000)
    public = pd.DataFrame({"sex": kind, "height": height})
    audit = audit_belief(scenario(BoundedOdds(4.0)), public, guesser=GUESS)
    assert audit.columns["pair"].str.contains("b").all()
    # the odds of two values that are alike do not range as far
    assert (audit.columns["odds_90"] > 10).all()
    told = str(audit)
    assert "a value with a long name: 200" in told and "..." not in told


def test_the_telling_column_comes_first(public):
    audit = audit_belief(scenario(BoundedOdds(1.5)), public, epsilon=0.1, cv=2)
    assert list(audit.columns.index) == ["all columns", "height", "luck"]
    assert audit.columns.loc["luck", "auc"] == pytest.approx(0.5, abs=0.03)
    assert not audit.etas["covers"].item()
    wide = audit_belief(
        scenario(BoundedOdds(1e4)), public[["sex", "height"]], guesser=GUESS
    )
    assert wide.etas["covers"].all()


def test_what_is_drawn(public):
    pytest.importorskip("matplotlib")
    numbers = public[["sex", "height"]]
    asked = scenario(BoundedOdds(4.0))
    display = BeliefDisplay.from_scenario(asked, numbers, guesser=GUESS)
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == ["height", "all columns"]
    widths = [bar.get_width() + 1 for bar in display.ax_.patches]
    assert display.audit.columns["odds_90"].iloc[0] == pytest.approx(widths[3])
    drawn = display.plot(kind="roc").ax_.lines
    # of coins whose odds keep within the range, the best at each rate
    rates = np.array([0.0, 0.1, 1 / 3, 0.9, 1.0])
    bound = display.declared_roc(rates)
    assert bound == pytest.approx(4 * rates / (1 + 3 * rates), abs=1e-3)
    assert drawn[0].get_ydata()[-1] == pytest.approx(1.0)
    # a guess that keeps to the belief stays below it
    false, true = display.audit.roc
    wide = BeliefDisplay(audit=display.audit, scenario=scenario(BoundedOdds(1e3)))
    assert np.all(true <= wide.declared_roc(false) + 0.02)


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda t: t.drop(columns="sex"), "audit.public_secret_column_missing"),
        (lambda t: t.assign(sex="f"), "audit.public_secret_column_unusable"),
        (lambda t: t[["sex"]], "audit.public_no_guessing_columns"),
        (lambda t: t.to_numpy(), "audit.public_not_named_frame"),
        (
            lambda t: t.assign(name=[f"n{i}" for i in range(len(t))]),
            "audit.public_column_too_many_levels",
        ),
    ],
)
def test_bad_public_rows(public, change, match):
    with refused(ScenarioError, match):
        audit_belief(scenario(BoundedOdds(2.0)), change(public), guesser=GUESS)


def test_only_beliefs_are_audited(public):
    with refused(TypeError, "audit.scenario_not_attribute"):
        audit_belief(BoundedOdds(2.0), public)
    with refused(ScenarioError, "attribute.explain_needs_declared_belief"):
        audit_belief(scenario(public), public)
    with refused(ValueError, "parameter.count_too_small", name="cv"):
        audit_belief(scenario(BoundedOdds(2.0)), public, cv=1)
