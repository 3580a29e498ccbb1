"""Cost of accounting for generalised Gaussian noise, and of a noisy vote.

    python -m benchmarks.noise_families [--quick]

CPU time on one thread, the median of several runs, nothing remembered in between:

* epsilon at delta = 1e-5 of one release, exactly, for several shapes;
* epsilon of 1000 releases composed, for several shapes: the whole answer, on grids that
  are refined until it is good to 5e-5, and the finest of these grids alone; beside it
  dp-accounting's own Gaussian of the same standard deviation on a grid of that step,
  and prv-accountant with the same noise as a custom privacy-loss variable;
* one noisy argmax for each of 10,000 queries with 10 classes, and the time of sampling
  the noise alone.

Stores the figures with versions in ``benchmarks/results/noise_families.csv``.
``--quick`` takes few shapes and runs, no peer, and stores nothing; peers that are
missing are skipped. What must hold on every machine is checked in every run.
"""

import argparse
import math
import time
from importlib.util import find_spec
from statistics import median
from unittest import mock

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import PrivacyLoss
from skpuffer.accountants import _composition as _steps
from skpuffer.ensemble import noisy_argmax
from skpuffer.kernel import distribution as _loss_curve
from skpuffer.kernel.pairs import ShiftPair
from skpuffer.noise import GeneralizedGaussianNoise, Shift
from skpuffer.noise import _generalized_gaussian_loss as _gg_splits
from skpuffer.noise import generalized_gaussian as _generalized_gaussian
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario

DELTA = 1e-5
BETAS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
N_STEPS = 1000

#: Budget that the noise of 1000 releases is set for, so that all questions are alike.
EPSILON = 4.0


def forget():
    """Empty every cache, so that each question is asked for the first time."""
    for module in (_loss_curve, _steps, _generalized_gaussian, _gg_splits):
        for thing in vars(module).values():
            if hasattr(thing, "cache_clear"):
                thing.cache_clear()


def timed(n_runs, ask, *question):
    """Answer a question; with the median of CPU seconds it took."""
    ask(*question)  # imports and first calls
    seconds = []
    for _ in range(n_runs):
        forget()
        start = time.process_time()
        answer = ask(*question)
        seconds.append(time.process_time() - start)
    return answer, median(seconds)


def run(n_steps, dim=1):
    return GradientRelease(
        n_records=100, n_steps=n_steps, sampling="full_batch", dim=dim
    )


def one_epsilon(noise):
    return noise.epsilon(DELTA, 1.0)


def our_epsilon(noise):
    certificate = PrivacyLoss(delta=DELTA).certify(
        noise, run(N_STEPS), RecordScenario()
    )
    return certificate.epsilon


def finest_step(noise):
    """Step of the finest grid that our answer takes, in nats; None without a grid."""
    steps, on = [], _loss_curve._epsilon_on

    def noted(*question):
        steps.append(question[2])
        return on(*question)

    forget()
    with mock.patch.object(_loss_curve, "_epsilon_on", noted):
        our_epsilon(noise)
    return min(steps, default=None)


def one_grid(noise, step):
    """Epsilon by that one grid, from the noise's trade-off on."""
    steps = ((ShiftPair(noise.curve(Shift(1.0))), N_STEPS),)
    return _loss_curve._epsilon_on(steps, DELTA, step, 1e7)[0]


def dp_accounting_gaussian(scale, interval):
    from dp_accounting.pld import privacy_loss_distribution as pld

    one = pld.from_gaussian_mechanism(scale, value_discretization_interval=interval)
    return one.self_compose(N_STEPS).get_epsilon_for_delta(DELTA)


def prv_accountant(noise):
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PrivacyRandomVariable

    class Loss(PrivacyRandomVariable):
        """The privacy loss of a release that moves by one."""

        def cdf(self, t):
            return noise.loss_cdf(np.asarray(t, dtype=float), 1.0)

        def rdp(self, alpha):
            return noise.renyi(float(alpha), 1.0)

    accountant = PRVAccountant(
        Loss(), eps_error=0.01, delta_error=1e-8, max_self_compositions=N_STEPS
    )
    return accountant.compute_epsilon(DELTA, N_STEPS)[1]


def single(betas, n_runs):
    rows = []
    for beta in betas:
        noise = GeneralizedGaussianNoise(1.0, beta=beta)
        epsilon, seconds = timed(n_runs, one_epsilon, noise)
        rows.append({"question": "one release", "beta": beta, "scale": 1.0})
        rows[-1] |= {"epsilon": epsilon, "seconds": seconds}
    return pd.DataFrame(rows)


def composed(betas, n_runs, peers):
    rows = []
    for beta in betas:
        unit = GeneralizedGaussianNoise(1.0, beta=beta)
        accountant = PrivacyLoss(EPSILON, DELTA, noise=unit)
        noise = accountant.calibrate(run(N_STEPS), RecordScenario()).noise
        epsilon, seconds = timed(n_runs, our_epsilon, noise)
        row = {"question": f"{N_STEPS} releases", "beta": beta, "scale": noise.scale}
        row |= {"epsilon": epsilon, "seconds": seconds}
        if peers and find_spec("dp_accounting") is not None:
            step = finest_step(noise) or 5e-4
            row["step"] = step
            _, row["one_grid_seconds"] = timed(n_runs, one_grid, noise, step)
            theirs, seconds = timed(n_runs, dp_accounting_gaussian, noise.std(), step)
            row |= {"dp_accounting_gaussian": theirs, "dp_accounting_seconds": seconds}
        # its custom variables must have no atoms
        if peers and beta > 1 and find_spec("prv_accountant") is not None:
            theirs, seconds = timed(1, prv_accountant, noise)
            row |= {"prv_accountant": theirs, "prv_accountant_seconds": seconds}
        rows.append(row)
    return pd.DataFrame(rows)


def votes(betas, n_runs, n_queries):
    rng = np.random.default_rng(0)
    counts = rng.multinomial(250, np.full(10, 0.1), size=n_queries)
    rows = []
    for beta in betas:
        noise = GeneralizedGaussianNoise(20.0, beta=beta)
        _, seconds = timed(n_runs, noisy_argmax, counts, noise, rng)
        _, sampling = timed(n_runs, noise.sample, counts.shape, rng)
        rows.append({"question": f"{n_queries} votes", "beta": beta, "scale": 20.0})
        rows[-1] |= {"seconds": seconds, "sampling_seconds": sampling}
    return pd.DataFrame(rows)


def check(first, many, elected):
    """What must hold on every machine: of answers, and as ratios of times."""
    # at one scale, a rounder shape has lighter tails and is given away sooner
    assert first.sort_values("beta")["epsilon"].is_monotonic_increasing, first
    # the noise found buys the budget asked for, and little more
    assert many["epsilon"].between(0.999 * EPSILON, EPSILON).all(), many
    # a vote is its noise, and little more
    assert (elected["seconds"] / elected["sampling_seconds"]).max() < 5, elected


def milliseconds(seconds):
    return "" if math.isnan(seconds) else f"{1e3 * seconds:.2f}"


def show(frame, columns):
    """Print times in milliseconds."""
    print(f"\n{frame.question.iloc[0]}: CPU milliseconds on one thread")
    rows = [
        [f"β = {row['beta']:g}", *(milliseconds(row[c]) for c in columns)]
        for _, row in frame.iterrows()
    ]
    print_table(rows, ["", *(c.removesuffix("_seconds") for c in columns)])


def compare(frame):
    """Print ratios of our times to the peers', like with like."""
    pairs = (
        ("one_grid_seconds", "dp_accounting_seconds"),
        ("seconds", "dp_accounting_seconds"),
        ("seconds", "prv_accountant_seconds"),
    )
    for ours, theirs in pairs:
        if theirs in frame:
            ratio = frame[ours] / frame[theirs]
            what = "one grid" if ours == "one_grid_seconds" else "whole answer"
            name = theirs.removesuffix("_seconds")
            print(f"{what} over {name}: {ratio.min():.3f} to {ratio.max():.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    betas = (1.5, 3.0) if quick else BETAS
    n_runs = 2 if quick else 7
    with threadpool_limits(1):
        first = single(betas, n_runs)
        many = composed(betas, n_runs, peers=not quick)
        elected = votes(betas, n_runs, 1000 if quick else 10_000)
    check(first, many, elected)
    show(first, ["seconds"])
    peers = [c for c in many if c.endswith("_seconds")]
    show(many, ["seconds", *peers])
    compare(many)
    show(elected, ["seconds", "sampling_seconds"])
    if not quick:
        frame = pd.concat([first, many, elected], ignore_index=True)
        packages = ["numpy", "scipy"]
        packages += [p for p in ("dp-accounting",) if find_spec("dp_accounting")]
        packages += [p for p in ("prv-accountant",) if find_spec("prv_accountant")]
        for package, number in versions(*packages).items():
            frame[package] = number
        write_csv(frame, "noise_families.csv")


if __name__ == "__main__":
    main()
