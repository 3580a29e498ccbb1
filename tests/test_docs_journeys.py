"""Three who know something else get to where they wanted by the pages alone.

The code is that of the pages, block by block; what is added here looks at what it left.
The third journey, an accountant that passes its contract, is run with the other pages
of *How to extend it* in ``test_docs_blocks``; here it is seen to fail when it should.
"""

import math
import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gennorm

from skpuffer.datasets import load_adult
from skpuffer.privacy import Notion

from .docs_blocks import DOCS, blocks_of, run_as_tests
from .test_docs_blocks import MODULES

pytestmark = pytest.mark.skipif(
    not DOCS.exists(), reason="the tests run apart from the repository"
)


def walk(page):
    """Run a page and return the names it leaves."""
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks_of(page):
            block.run(page, names)
    return names


def test_an_analyst_gets_from_a_csv_to_a_summary_and_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load_adult().frame.to_csv("adult.csv", index=False)
    left = walk("guide/first_release")
    summary, model = left["summary"], left["model"]
    for fitted in (summary, model):
        certificate = fitted.certificate_
        assert certificate.certified
        assert certificate.notion == Notion.APPROXIMATE_DP
        assert (certificate.epsilon, certificate.delta) == (1.0, 1e-5)
    people = left["people"]
    exact = people[["age", "education-num"]].agg(["mean", "std"])
    released = summary.result_.loc[["mean", "std"], exact.columns]
    assert 0 < np.abs(released - exact).to_numpy().max() < 0.5
    others = load_adult(subset="test")
    # 0.76 have the frequent income
    assert model.score(others.data, others.target) > 0.79
    assert 1 < left["both"].epsilon < 2


def test_a_researcher_gets_a_figure_of_a_paper():
    """Figure 1 of the paper on generalised Gaussian noise, against quadrature."""
    plt = pytest.importorskip("matplotlib.pyplot")
    left = walk("papers/generalized_gaussian")
    (axes,) = [plt.figure(number).axes for number in plt.get_fignums()]
    drawn = axes[0].get_lines()
    plt.close("all")
    assert len(drawn) >= len(left["shapes"])
    for beta, noise in zip(left["shapes"], left["noises"], strict=True):
        unit = gennorm(beta, scale=float(noise.scale))

        def excess(x, unit=unit):
            return max(0.0, unit.pdf(x - 1) - math.exp(1.5) * unit.pdf(x))

        reach = 12 * unit.std()
        delta, _ = quad(excess, -reach, reach, limit=500, points=[0, 0.5, 1])
        assert delta == pytest.approx(1e-5, rel=1e-3)


def test_an_engineer_gets_an_accountant_through_its_contract(tmp_path):
    """As printed it passes, with the other pages; with too little noise it does not."""
    assert "extend/accountant" in MODULES
    right = "scale_for(noise, math.inf, self.epsilon, shift)"

    def with_less_noise(code):
        assert code.count(right) == 1
        return code.replace(right, f"0.7 * {right}")

    ran = run_as_tests(["extend/accountant"], tmp_path, with_less_noise)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    # the contract notices, and so do the oracle and the attack
    for name in ("it_keeps_what_an_accountant", "the_scale_is", "an_attack_finds"):
        assert f"test_{name}" in ran.stdout
