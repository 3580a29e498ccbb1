"""Cost of accounting, as ratios to other libraries at the same question.

    python -m benchmarks.accounting [--quick] [--quilts] [--extremes]

CPU time on one thread, nothing remembered from one question to the next:

* epsilon of the subsampled Gaussian mechanism at delta = 1e-5, for noise multipliers,
  sampling rates and numbers of steps on a grid; dp-accounting's privacy-loss
  distributions (its default interval of 1e-4) answer the same questions, both
  directions each, and the largest relative difference is printed;
* the noise multiplier for an epsilon at rate 0.01 and 10,000 steps, for records that
  are added or removed and for records that are replaced, found by ours and by
  dp-accounting's own calibration;
* epsilon of 10, 30 and 100 different subsampled Gaussian runs together;
* the noise multiplier for delta = 1e-12 and 10^6 steps, and epsilon of 10^8 and 10^10
  steps, which no peer here has the memory for (``--extremes``: these alone, beside
  figures that stay);
* the noise of a Markov quilt for 10^3 and for 10^6 records of a chain (``--quilts``:
  these alone, beside figures that stay).

Peak memory is that of Python's allocations. prv-accountant answers where it is
installed. Stores the figures with versions in ``benchmarks/results/accounting.csv``.
``--quick`` takes a few questions, no peer, and stores nothing; peers that are missing
are skipped. What must hold on every machine is checked in every run.
"""

import argparse
import itertools
import time
import tracemalloc
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, read_csv, write_csv
from skpuffer.accountants import MarkovQuilt, PrivacyLoss
from skpuffer.accountants import _composition as _steps
from skpuffer.kernel import distribution as _loss_curve
from skpuffer.noise import GaussianNoise
from skpuffer.privacy import compose
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity
from skpuffer.scenarios import MarkovChainScenario, RecordScenario

DELTA = 1e-5
N_RECORDS = 100_000
GRID = list(
    itertools.product(
        (0.6, 1.0, 2.0), (0.001, 0.01, 0.1), (1, 10, 100, 1000, 10_000, 100_000)
    )
)
BUDGETS = (0.5, 1.0, 2.0, 4.0, 8.0)
RELATIONS = ("add_remove", "replace")
TOGETHER = (10, 30, 100)
TINY = 1e-12
CHAINS = {
    "settled": ([[0.9, 0.1], [0.2, 0.8]], "stationary"),
    "from one state": ([[0.9, 0.1], [0.2, 0.8]], [1.0, 0.0]),
    "slow": ([[0.99, 0.01], [0.02, 0.98]], "stationary"),
    "slow, from one state": ([[0.99, 0.01], [0.02, 0.98]], [1.0, 0.0]),
}


def forget():
    """Empty every cache, so that each question is asked for the first time."""
    for module in (_loss_curve, _steps):
        for thing in vars(module).values():
            if hasattr(thing, "cache_clear"):
                thing.cache_clear()


def release(rate, n_steps):
    return GradientRelease(
        n_records=N_RECORDS, batch_size=round(rate * N_RECORDS), n_steps=n_steps
    )


def our_epsilon(scale, rate, n_steps):
    certificate = PrivacyLoss(delta=DELTA).certify(
        GaussianNoise(scale), release(rate, n_steps), RecordScenario()
    )
    return certificate.epsilon


def our_scale(epsilon, rate, n_steps, relation):
    accountant = PrivacyLoss(epsilon=epsilon, delta=DELTA)
    scenario = RecordScenario(relation=relation)
    return accountant.calibrate(release(rate, n_steps), scenario).noise.scale


def their_epsilon(scale, rate, n_steps):
    from dp_accounting.pld import privacy_loss_distribution as pld

    one = pld.from_gaussian_mechanism(scale, sampling_prob=rate)
    return one.self_compose(n_steps).get_epsilon_for_delta(DELTA)


def their_scale(epsilon, rate, n_steps, relation):
    import dp_accounting

    neighbours = dp_accounting.NeighboringRelation
    named = {"add_remove": neighbours.ADD_OR_REMOVE_ONE}
    neighbour = named.get(relation, neighbours.REPLACE_ONE)

    def event(scale):
        gaussian = dp_accounting.GaussianDpEvent(scale)
        sampled = dp_accounting.PoissonSampledDpEvent(rate, gaussian)
        return dp_accounting.SelfComposedDpEvent(sampled, n_steps)

    return dp_accounting.calibrate_dp_mechanism(
        lambda: dp_accounting.pld.PLDAccountant(neighbour),
        event,
        epsilon,
        DELTA,
        dp_accounting.ExplicitBracketInterval(0.3, 50.0),
        tol=1e-3,
    )


def different_runs(n):
    """Noise, rate and steps of so many runs, no two of them alike."""
    rng = np.random.default_rng(0)
    noise, rate = rng.uniform(0.7, 4.0, n), rng.integers(100, 5000, n) / N_RECORDS
    steps = rng.integers(1, 200, n)
    return list(zip(noise.tolist(), rate.tolist(), steps.tolist(), strict=True))


def certified(runs):
    return [
        PrivacyLoss(delta=DELTA).certify(
            GaussianNoise(scale), release(rate, n_steps), RecordScenario()
        )
        for scale, rate, n_steps in runs
    ]


def our_sum(certificates):
    return compose(certificates, delta=DELTA).epsilon


def their_sum(runs):
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = pld.identity()
    for scale, rate, n_steps in runs:
        one = pld.from_gaussian_mechanism(scale, sampling_prob=rate)
        total = total.compose(one.self_compose(n_steps))
    return total.get_epsilon_for_delta(DELTA)


def extreme_scale(epsilon, rate, relation):
    accountant = PrivacyLoss(epsilon=epsilon, delta=TINY)
    scenario = RecordScenario(relation=relation)
    return accountant.calibrate(release(rate, 10**6), scenario).noise.scale


def quilt_scale(n, chain):
    known = {1: 1.0, 2: 1.0}
    count = QueryRelease(
        query=lambda X, y: X.sum(),
        n_records=n,
        dim=1,
        sensitivity=Sensitivity(add_remove=known, replace=known),
    )
    scenario = MarkovChainScenario(*CHAINS[chain])
    return (
        MarkovQuilt(epsilon=1.0, noise="laplace").calibrate(count, scenario).noise.scale
    )


def prv_epsilon(scale, rate, n_steps):
    from prv_accountant.dpsgd import DPSGDAccountant

    accountant = DPSGDAccountant(scale, rate, n_steps, eps_error=0.01, delta_error=1e-9)
    return accountant.compute_epsilon(delta=DELTA, num_steps=n_steps)[2]


def timed(ask, *question):
    forget()
    start = time.process_time()
    answer = ask(*question)
    return answer, time.process_time() - start


def peak(ask, *question):
    """Mebibytes that an answer takes at its largest."""
    forget()
    tracemalloc.start()
    ask(*question)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


def epsilons(cells, peers):
    rows = []
    for cell in cells:
        ours, seconds = timed(our_epsilon, *cell)
        row = {"question": "epsilon", "noise": cell[0], "rate": cell[1]}
        row |= {"steps": cell[2], "ours": ours, "seconds": seconds}
        row["mebibytes"] = peak(our_epsilon, *cell)
        if peers:
            row["theirs"], row["their_seconds"] = timed(their_epsilon, *cell)
        rows.append(row)
    return pd.DataFrame(rows)


def scales(budgets, peers, n_steps):
    rows = []
    for relation, epsilon in itertools.product(RELATIONS, budgets):
        question = (epsilon, 0.01, n_steps, relation)
        ours, seconds = timed(our_scale, *question)
        row = {"question": "noise", "relation": relation, "epsilon": epsilon}
        row |= {"rate": 0.01, "steps": n_steps, "ours": ours, "seconds": seconds}
        if peers:
            row["theirs"], row["their_seconds"] = timed(their_scale, *question)
        rows.append(row)
    return pd.DataFrame(rows)


def together(numbers, peers):
    rows = []
    for n in numbers:
        runs = different_runs(n)
        parts = certified(runs)
        ours, seconds = timed(our_sum, parts)
        row = {"question": "together", "releases": n, "ours": ours, "seconds": seconds}
        row["mebibytes"] = peak(our_sum, parts)
        if peers:
            row["theirs"], row["their_seconds"] = timed(their_sum, runs)
        rows.append(row)
    return pd.DataFrame(rows)


def extremes(quick):
    """Questions of very many steps and very small delta."""
    cells = list(itertools.product((0.5, 8.0), (0.001, 0.01), RELATIONS))
    rows = []
    for epsilon, rate, relation in cells[2:3] if quick else cells:
        question = epsilon, rate, relation
        ours, seconds = timed(extreme_scale, *question)
        row = {"question": "extreme noise", "relation": relation, "epsilon": epsilon}
        row |= {"rate": rate, "steps": 10**6, "ours": ours, "seconds": seconds}
        rows.append(row | {"mebibytes": peak(extreme_scale, *question)})
    for cell in ((100.0, 0.01, 10**8), (1000.0, 0.01, 10**10)):
        ours, seconds = timed(our_epsilon, *cell)
        row = {"question": "extreme epsilon", "noise": cell[0], "rate": cell[1]}
        row |= {"steps": cell[2], "ours": ours, "seconds": seconds}
        # by the central limit theorem: of one Gaussian, to 1e-4 and better here
        row["gaussian"] = GaussianCurve(cell[1] / cell[0] * cell[2] ** 0.5).epsilon(
            DELTA
        )
        rows.append(row | {"mebibytes": peak(our_epsilon, *cell)})
    return pd.DataFrame(rows)


def quilts(quick):
    rows = []
    for chain in list(CHAINS)[: 1 if quick else None]:
        for n in (10**3, 10**6):
            ours, seconds = timed(quilt_scale, n, chain)
            row = {"question": "quilt", "chain": chain, "records": n}
            row |= {"ours": ours, "seconds": seconds}
            rows.append(row | {"mebibytes": peak(quilt_scale, n, chain)})
    return pd.DataFrame(rows)


def check_extremes(sums, extreme, quilt):
    """What must hold on every machine of sums, many steps and long chains."""
    assert sums["ours"].is_monotonic_increasing, sums
    assert extreme["mebibytes"].max() < 100, extreme
    known = extreme.dropna(subset="gaussian")
    assert (known["ours"] / known["gaussian"] - 1).between(-1e-4, 2e-4).all(), known
    # the noise of a long chain is that of one long enough to mix
    apart = quilt.groupby("chain")["ours"].agg(np.ptp) / quilt["ours"].mean()
    assert apart.max() < 1e-9, quilt
    if "theirs" in sums:
        assert ((sums["ours"] / sums["theirs"] - 1).abs() < 0.01).all(), sums


def check(found, noise):
    """What must hold on every machine: of answers, and of the memory they take."""
    for _, cells in found.groupby(["noise", "rate"]):
        assert cells.sort_values("steps")["ours"].is_monotonic_increasing, cells
    assert found["mebibytes"].max() < 200, found
    for row in noise.itertuples():
        accountant = PrivacyLoss(delta=DELTA)
        certificate = accountant.certify(
            GaussianNoise(row.ours),
            release(row.rate, row.steps),
            RecordScenario(relation=row.relation),
        )
        # the noise found buys the budget asked for, and little more
        assert 0.999 < certificate.epsilon / row.epsilon <= 1, row
    if "theirs" in found:
        apart = (found["ours"] - found["theirs"]).abs() / found["theirs"].clip(1e-6)
        assert apart.max() < 0.01, found


def show(frame, what):
    print(f"\n{what}: CPU seconds on one thread")
    print_table(
        [["ours, median", f"{frame.seconds.median():.4f}"]]
        + [["ours, largest", f"{frame.seconds.max():.4f}"]]
    )
    if "mebibytes" in frame:
        print(f"largest memory: {frame.mebibytes.max():.0f} MiB")
    if "theirs" in frame:
        ratio = frame.seconds / frame.their_seconds
        print_table(
            [["dp-accounting, median", f"{frame.their_seconds.median():.4f}"]]
            + [["ratio, median", f"{ratio.median():.3f} x"]]
            + [["ratio, largest", f"{ratio.max():.3f} x"]]
        )
        gap = (frame.ours - frame.theirs) / frame.theirs.clip(lower=1e-6)
        print(f"relative difference: {gap.min():+.1e} to {gap.max():+.1e}")


def store_alone(measure, what):
    """Measure some questions alone; other figures stay as they are stored."""
    with threadpool_limits(1):
        measure(quick=True)  # imports and first calls
        found = measure(quick=False).assign(numpy=np.__version__)
    show(found, what)
    stored = read_csv("accounting.csv", found.columns)
    others = stored[~stored["question"].isin(found["question"])]
    write_csv(pd.concat([others, found], ignore_index=True), "accounting.csv")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--quilts", action="store_true", help="nothing else")
    parser.add_argument("--extremes", action="store_true", help="nothing else")
    options = parser.parse_args()
    quick = options.quick
    if options.quilts:
        return store_alone(quilts, "Markov quilts")
    if options.extremes:
        return store_alone(extremes, "very many steps")
    peers = find_spec("dp_accounting") is not None
    cells = GRID[3::9] if quick else GRID
    with threadpool_limits(1):
        our_epsilon(1.0, 0.01, 2)  # imports and first calls
        if peers:
            their_epsilon(1.0, 0.01, 2)
        found = epsilons(cells, peers and not quick)
        noise = scales(BUDGETS[1:2] if quick else BUDGETS, peers and not quick, 10_000)
        check(found, noise)
        sums = together(TOGETHER[:1] if quick else TOGETHER, peers and not quick)
        extreme, quilt = extremes(quick), quilts(quick)
        check_extremes(sums, extreme, quilt)
    show(found, f"epsilon, {len(found)} cells")
    for relation, part in noise.groupby("relation"):
        show(part, f"noise multiplier, {relation}")
    show(sums, "different releases together")
    for question, part in extreme.groupby("question"):
        show(part, question)
    for n, part in quilt.groupby("records"):
        show(part, f"Markov quilts, {n} records")
    if find_spec("prv_accountant") is not None and not quick:
        answer, seconds = timed(prv_epsilon, 1.0, 0.01, 1000)
        ours, mine = timed(our_epsilon, 1.0, 0.01, 1000)
        print(
            f"\nprv-accountant, noise 1, rate 0.01, 1000 steps: {answer:.4f} (upper) "
            f"in {seconds / mine:.0f} x our time; ours {ours:.4f}"
        )
    if not quick:
        frame = pd.concat([found, noise, sums, extreme, quilt], ignore_index=True)
        frame["numpy"] = np.__version__
        frame["dp_accounting"] = version("dp-accounting") if peers else ""
        write_csv(frame, "accounting.csv")


if __name__ == "__main__":
    main()
