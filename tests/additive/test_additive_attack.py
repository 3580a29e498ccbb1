"""The best attack on an additive model: it sees all that is released, stage by stage.

The attacker knows both tables and every noisy vector, so he knows what each stage would
have summed on either table. The odds of all together are those of Gaussians as far
apart as the sums are.
"""

from unittest import mock

import numpy as np
import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.additive import _run
from skpuffer.additive._run import Problem, additive_release, execute
from skpuffer.releases import PublicContext
from skpuffer.scenarios import RecordScenario
from skpuffer.schema import Schema
from skpuffer.training import make_loss

from ..attack import assert_tight

LEVELS = {"levels": [0, 1], "missing_level": False}
PROBLEM = Problem(
    Schema({"a": LEVELS, "b": LEVELS}).binning(),
    (),
    make_loss("log_loss", 2),
    1,
)
N, ROUNDS = 400, 4


def tables(relation, weights):
    """Tables that differ in one record, of rare cells.

    All others are of the common cells and of one class. Functions are centred, so what
    pulls the common cells to that class pushes the rare ones away from it, and a record
    of theirs in that class is wrong in every round. Weights are those of a record, of
    what replaces it and of the others.
    """
    own = other = None
    if weights is not None:
        own, other = (np.append(w, np.full(N - 1, weights[2])) for w in weights[:2])
    codes = np.zeros((N, 2), dtype=np.uint8)
    y = np.zeros(N, dtype=int)
    canary = codes.copy(), y.copy()
    canary[0][0] = 1
    if relation == "replace":
        return (*canary, own), (codes, y, other)
    # absent, at the same public number of records
    return (*canary, own), (codes[1:], y[1:], other if other is None else other[1:])


class Attacker:
    """Run on one table, watched by who knows what the other would have given."""

    def __init__(self, relation, weights=None):
        self.relation = relation
        self.release = additive_release(
            PROBLEM,
            PublicContext(n_records=N),
            layout={"relation": relation},
            rounds=ROUNDS,
            assumptions=(),
        )
        self.worlds = tables(relation, weights)

    def run(self, world, noise, rng, certified=None):
        """Log odds of the first world against the second, and squared distance."""
        certified = noise if certified is None else certified
        (mine, y, weights), (theirs, other, counterweights) = (
            self.worlds if world == 0 else reversed(self.worlds)
        )
        odds, squares = [], []
        sums = _run.ResidualSums

        def see(stage, exact, counterpart, noisy):
            s = self.release.deviation(stage, noise)
            gap = exact - counterpart
            squares.append((gap @ gap) / self.release.deviation(stage, certified) ** 2)
            # of the table that was run against the other
            odds.append((noisy - (exact + counterpart) / 2) @ gap / s**2)

        def both(rows, y_mine, basis, loss, **options):
            left = sums(rows, y_mine, basis, loss, **options)
            rows = _run.CodedRows(theirs, PROBLEM.binning.n_cells)
            options["weights"] = counterweights
            right = sums(rows, other, basis, loss, **options)
            left.counterpart = right
            self.current = left
            return left

        release = self.release

        class Watched:
            stages, n_records = release.stages, release.n_records
            deviation = staticmethod(release.deviation)

            @staticmethod
            def noisy(stage, exact, noise, rng):
                released = release.noisy(stage, exact, noise, rng)
                if stage == 0:
                    counterpart = np.concatenate(
                        [
                            np.bincount(theirs[:, k], counterweights, minlength=2)
                            for k in range(2)
                        ]
                    )
                else:
                    counterpart = np.zeros_like(exact)
                    found = self.current.counterpart(self.parameters)
                    counterpart[: found.size] = found
                see(stage, exact, counterpart, released)
                return released

        call = sums.__call__

        def remember(this, parameters):
            if this is self.current:
                self.parameters = parameters
            return call(this, parameters)

        with (
            mock.patch.object(_run, "ResidualSums", both),
            mock.patch.object(sums, "__call__", remember),
            mock.patch.object(_run, "mean_curvature", return_value=np.ones(1)),
        ):
            execute(PROBLEM, Watched(), mine, y, noise, rng, weights)
        sign = 1 if world == 0 else -1
        return sign * sum(odds), sum(squares)


def calibrated(relation, attacker, epsilon=1.0):
    return PrivacyLoss(epsilon, 1e-5).calibrate(
        attacker.release, RecordScenario(relation=relation)
    )


#: Weights of a record, of what replaces it and of the others, in units of the largest.
HEAVY = 1.0, 0.25, 0.5


@pytest.mark.parametrize("weights", [None, HEAVY])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_a_canary_moves_all_stages_as_far_as_is_accounted_for(relation, weights):
    attacker = Attacker(relation, weights)
    found = calibrated(relation, attacker)
    moved = [
        attacker.run(0, found.noise, np.random.default_rng(seed))[1]
        for seed in range(5)
    ]
    whole = 1 / found.noise.std(1) ** 2
    assert max(moved) <= whole * (1 + 1e-9)
    # one that comes or goes attains it all; of two that replace each other both rows
    # would have to be as long and their residuals opposite
    assert np.mean(moved) > whole * (0.95 if relation == "add_remove" else 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [None, HEAVY])
def test_the_best_attacker_gets_what_is_promised_and_no_more(weights):
    attacker = Attacker("add_remove", weights)
    # so much that a few runs show it
    found = calibrated("add_remove", attacker, epsilon=6.0)

    def worlds(noise):
        return [
            lambda n, rng, world=world: np.array(
                [attacker.run(world, noise, rng)[0] for _ in range(n)]
            )[:, None]
            for world in (0, 1)
        ]

    assert_tight(
        found.certificate,
        found.noise,
        worlds,
        score=lambda noise: lambda outputs: outputs[:, 0],
        seed=0,
        n_draws=3000,
    )
