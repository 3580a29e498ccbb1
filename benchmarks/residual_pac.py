"""Noise that bounds a mutual information: by the Gaussian bound, and exactly.

    python -m benchmarks.residual_pac [--quick] [--only PART ...]

After Zhang and Vorobeychik, *Breaking the Gaussian barrier: residual-PAC privacy for
automatic privatization*. The parts:

* ``studies``: outputs in one and two coordinates whose prior is known. The noise of
  each reading of Auto-PAC, of Efficient-PAC and of the exact search (SR-PAC, without a
  trained decoder), the mutual information that it really leaves, and the entropy of the
  input, so that the target can be held against what is achieved (figures 1 to 4);
* ``means``: the mean of a random half of 30 rows of Iris and of Rice. The same, beside
  differential privacy at the same success of a guess, and an attack on each;
* ``logits``: scores of a classifier on rows of which one is the secret: noise,
  accuracy, and what the accuracy shows of the leakage by Fano's inequality;
* ``membership``: a logistic regression on one of 512 halves of a table: noise and
  accuracy under a budget about who was drawn, under one about each record by itself,
  and by differential privacy at the same success of a guess;
* ``programs``: importances of a forest and centres of k-means, as scikit-learn has
  them, under budgets of either kind;
* ``certificates``: how often bounds by fresh draws fail, and how far above the truth
  they are;
* ``speed``: of an estimate and of a search, as ratios to the one matrix product that
  they need at least.

Rows are stored in ``benchmarks/results/residual_pac_<part>.csv``, those of the studies
in ``residual_pac.csv``. ``--quick`` takes few
of all and stores nothing. What must hold is checked in every run: the noise found is
never more than water-filling's, which is never more than the others', no budget is
exceeded by more than the draws of the search leave open, and no attack succeeds more
often than its budget allows.
"""

import argparse
import os
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, minmax_scale
from threadpoolctl import threadpool_limits

from benchmarks._report import print_table, versions, write_csv
from skpuffer.accountants import PAC, PrivacyLoss, ResidualPAC
from skpuffer.audit import bayes_attack, clopper_pearson, pool_attack
from skpuffer.datasets import fetch_rice
from skpuffer.exceptions import UnsupportedError
from skpuffer.information import (
    Atoms,
    Bank,
    MixtureChannel,
    closed_form,
    dp_equivalent,
    dp_mean_power,
    efficient,
    entropy_bound,
    fano_bound,
    log_det,
    posterior_success,
    proportional,
    published_dp_mean_power,
    search_noise,
    waterfill,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.noise import CorrelatedGaussianNoise
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios import OutputSamples, SubsampleScenario

#: Readings of the Gaussian bound, by the names of `PAC`.
GAUSSIAN = {
    "proportional": proportional,
    "closed_form": closed_form,
    "efficient": efficient,
    "waterfill": waterfill,
}
#: Families of the exact search, by the names of `ResidualPAC`.
EXACT = ("scale", "full")
DP_DELTA = 1e-6
#: Rows of the pool of which a half is drawn, and draws of it.
POOL, HALVES = 30, 4000


def mixture(means, deviation, masses, n=161):
    """Return a fine grid of weighted points for a mixture of normal distributions."""
    z = np.linspace(-4.5, 4.5, n)
    density = np.exp(-(z**2) / 2)
    density /= density.sum()
    points = [m + deviation * z for m in means]
    return np.concatenate(points), np.concatenate([p * density for p in masses])


def grid():
    """Return {±3} x {0, ±1/4, ±1/2}, turned by 30 degrees."""
    flat = [[a, b] for a in (-3, 3) for b in (-0.5, -0.25, 0, 0.25, 0.5)]
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    return np.array(flat) @ np.array([[c, s], [-s, c]])


def far_point():
    """Return 99 points of one interval, and one far from it."""
    return np.append(np.linspace(-1, 1, 99), 50.0)


STUDIES = {
    "±1": ([-1, 1], None),
    "bimodal": mixture([-3, 3], 0.5, [0.5, 0.5]),
    "one in ten": ([0, 1], [0.9, 0.1]),
    "16 in a row": (np.arange(16), None),
    "rare and far": mixture([0, 100], 1.0, [0.99, 0.01]),
    "99 and one far": (far_point(), None),
    "(±4, ±1)": ([[a, b] for a in (-4, 4) for b in (-1, 1)], None),
    "grid": (grid(), None),
}
BUDGETS = (0.05, 0.1, 0.2, 0.25, 0.35, 0.5, 0.6, 0.69, 0.8, 1.0, 1.25, 1.5, 2.0)


def studies(quick):
    """Yield the rows of known priors."""
    names = ("±1", "(±4, ±1)") if quick else STUDIES
    for name in names:
        points, weights = STUDIES[name]
        points = np.asarray(points, dtype=float)
        atoms = Atoms(points.reshape(len(points), -1), weights)
        bank = Bank.quadrature(atoms)
        for budget in (0.25, 0.5, 1.0) if quick else BUDGETS:
            for method, covariance in methods(atoms, budget, families=EXACT):
                yield {
                    "study": name,
                    "budget": budget,
                    "method": method,
                    "power": float(np.trace(covariance)),
                    **known(atoms, covariance, bank),
                    "entropy": atoms.entropy,
                }


def methods(atoms, budget, families, **options):
    """Yield each method and the covariance of its noise."""
    for method, make in GAUSSIAN.items():
        yield method, make(atoms.covariance, budget)
    for family in families:
        if atoms.dim == 1 and family != "scale":
            continue
        found = search_noise(atoms, budget, family=family, random_state=0, **options)
        yield family, found.covariance


def known(atoms, covariance, bank):
    """Return what a noise leaves, and what the most exposed atom leaks."""
    if not np.any(covariance):
        entropy = atoms.output_entropy
        worst = -np.log(atoms.distinct_weights.min())
        return {"information": entropy, "error": 0.0, "worst_leakage": worst}
    channel = MixtureChannel(atoms, covariance)
    found = channel.information(bank)
    return {
        "information": found.value,
        "error": found.standard_error,
        "worst_leakage": float(np.nanmax(channel.atom_leakage(bank))),
    }


def check_studies(frame):
    """Hold the order of powers, and budgets."""
    wide = frame.pivot_table(
        index=["study", "budget"], columns="method", values="power"
    )
    slack = 1 + 1e-6
    assert (wide["waterfill"] <= wide["closed_form"] * slack).all()
    assert (wide["waterfill"] <= wide["proportional"] * slack).all()
    assert (wide["scale"] <= wide["waterfill"] * slack).all()
    # from several starts, one of them water-filling's shape
    full = wide["full"].dropna()
    assert (full <= wide["scale"].loc[full.index] * (1 + 1e-3)).all()
    over = frame["information"] - frame["budget"]
    assert (over <= 5e-3 * frame["budget"] + 4 * frame["error"]).all(), over.max()


# -- means of random halves ------------------------------------------------------------


def pools(quick):
    """Yield the pools by name: rows in the unit cube."""
    tables = {"Iris": load_iris().data}
    if os.environ.get("SKPUFFER_TEST_DATA"):
        folder = os.environ["SKPUFFER_TEST_DATA"]
        rice = fetch_rice(data_home=folder, download_if_missing=False)
        tables["Rice"] = rice.data.to_numpy()
    for name in list(tables)[: 1 if quick else None]:
        rows = minmax_scale(tables[name])
        chosen = np.random.default_rng(0).choice(len(rows), POOL, replace=False)
        yield name, rows[chosen]


def means(quick):
    """Yield the rows of means of random halves of a pool."""
    for name, pool in pools(quick):
        rng = np.random.default_rng(1)
        members = rng.integers(0, 2, size=(HALVES // (8 if quick else 1), POOL))
        outputs = members @ pool / np.maximum(members.sum(axis=1, keepdims=True), 1)
        atoms = Atoms(outputs)
        samples = OutputSamples(
            draws=outputs,
            weights=atoms.prior,
            groups=np.zeros(len(outputs), dtype=int),
            secret="record",
            memberships=members,
        )
        bank = Bank.stratified(atoms, 8000, rng, per_atom=2)
        dim = pool.shape[1]
        norm = float(np.linalg.norm(pool, axis=1).max())
        budgets = (0.5, 0.0625) if quick else 2.0 ** -np.arange(1, 8)
        for budget in map(float, budgets):
            options = {"families": ("scale",), "sampled": True}
            made = list(methods(atoms, budget, **options))
            epsilon = dp_equivalent(budget, DP_DELTA)
            for clip_norm in (norm, 1.0):
                options = {"clip_norm": clip_norm, "dim": dim}
                power = dp_mean_power(
                    epsilon, DP_DELTA, denominator=POOL / 2, **options
                )
                said = f"DP, C = {'largest norm' if clip_norm == norm else 1}"
                made.append((said, np.eye(dim) * power / dim))
                power = published_dp_mean_power(
                    epsilon, DP_DELTA, n_records=POOL, **options
                )
                made.append((f"{said}, as published", np.eye(dim) * power / dim))
            for method, covariance in made:
                attack = pool_attack(
                    samples, CorrelatedGaussianNoise(covariance=covariance)
                )
                found = MixtureChannel(atoms, covariance).leave_one_out(bank)
                yield {
                    "data": name,
                    "budget": budget,
                    "method": method,
                    "power": float(np.trace(covariance)),
                    "gaussian": log_det(atoms.covariance, covariance),
                    "upper_estimate": found.value,
                    "error": found.standard_error,
                    "success": float(attack.accuracies.mean()),
                    "worst_success": float(attack.accuracies[attack.worst]),
                    "low": float(attack.intervals()[:, 0].max()),
                    "allowed": posterior_success(budget, 0.5),
                    "epsilon": epsilon,
                }


def check_means(frame):
    """No attack may succeed more often than its budget allows."""
    assert (frame["low"] <= frame["allowed"]).all()
    wide = frame.pivot_table(index=["data", "budget"], columns="method", values="power")
    assert (wide["waterfill"] <= wide["closed_form"] * (1 + 1e-6)).all()


# -- scores of a classifier ------------------------------------------------------------

TABLES = {
    "digits": partial(load_digits, return_X_y=True),
    "breast cancer": partial(load_breast_cancer, return_X_y=True),
    "wine": partial(load_wine, return_X_y=True),
}


def logits(quick):
    """Yield the rows of scores on rows of which one is the secret."""
    for name in ("wine",) if quick else TABLES:
        X, y = TABLES[name]()
        parts = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        scores = model.fit(parts[0], parts[2]).decision_function(parts[1])
        scores = scores.reshape(len(scores), -1)
        atoms, labels = Atoms(scores), parts[3]
        rng = np.random.default_rng(2)
        bank = Bank.stratified(atoms, 20 * len(scores), rng, per_atom=20)
        times = 4 if quick else 20
        n_classes = len(np.unique(y))
        budgets = (0.5, 2.0) if quick else (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
        for budget in budgets:
            if budget >= atoms.output_entropy:
                continue
            for method, covariance in methods(atoms, budget, families=EXACT):
                noise = rng.multivariate_normal(
                    np.zeros(atoms.dim), covariance, size=(times, len(scores))
                )
                noise = noise.reshape(times, len(scores), atoms.dim)
                right = np.mean(guessed(scores + noise) == labels)
                found = known(atoms, covariance, bank)
                yield {
                    "data": name,
                    "budget": budget,
                    "method": method,
                    "power": float(np.trace(covariance)),
                    "information": found["information"],
                    "error": found["error"],
                    "accuracy": float(right),
                    "clean_accuracy": float(np.mean(guessed(scores) == labels)),
                    "fano": fano_bound(float(right), n_classes),
                    "entropy": atoms.entropy,
                }


def guessed(scores):
    """Return the likeliest class of each row of scores."""
    if scores.shape[-1] > 1:
        return scores.argmax(axis=-1)
    return (scores[..., 0] > 0).astype(int)


def check_logits(frame):
    """Accuracies must be possible, and budgets kept but for the draws of a search."""
    over = frame["information"] - frame["budget"]
    # certificates, which these are not, cost a few per cent of noise at large budgets
    assert (over <= 0.03 * frame["budget"] + 4 * frame["error"]).all(), over.max()
    assert (frame["fano"] <= frame["information"] + 4 * frame["error"] + 0.02).all()


# -- fitted models of random halves ----------------------------------------------------


def cancer(quick):
    """Return the training rows in the unit cube and the others, with labels."""
    X, y = load_breast_cancer(return_X_y=True)
    # by the ranges of the columns, which stand for public bounds
    parts = train_test_split(
        minmax_scale(X), y, train_size=0.7, random_state=0, stratify=y
    )
    return [part[:120] for part in parts] if quick else parts


def drawn(release, X, y, secret, quick):
    """Return a scenario of random halves, bound to a pool."""
    scenario = SubsampleScenario(
        size=0.5, secret=secret, n_subsets=64 if quick else 512, stratify=True
    )
    context = PublicContext(
        n_records=scenario.table_size(len(X)), has_target=True, pool=(X, y)
    )
    return scenario.bind(context), replace(release, context=context)


def coefficients(X, y):
    """Return the coefficients and the intercept of a logistic regression."""
    model = LogisticRegression(max_iter=1000).fit(X, y)
    return np.append(model.coef_, model.intercept_)


def membership(quick):
    """Yield the rows of a logistic regression, by what its budget is about."""
    X, other_X, y, other_y = cancer(quick)
    release = QueryRelease(
        query=coefficients, n_records=len(X) // 2, dim=X.shape[1] + 1, name="LR"
    )
    rng = np.random.default_rng(0)
    budgets = (0.125,) if quick else 2.0 ** -np.arange(6, 1, -1.0)
    bordered = np.column_stack([other_X, np.ones(len(other_X))])
    for budget in map(float, budgets):
        for secret in ("dataset", "record"):
            bound, made = drawn(release, X, y, secret, quick)
            outputs = bound.fact(OutputSamples, made)
            for accountant in (PAC(budget), ResidualPAC(budget)):
                # a bound by the covariance is about the whole table
                if secret == "record" and isinstance(accountant, PAC):
                    continue
                found = accountant.calibrate(made, bound, random_state=0)
                noisy = outputs.draws + found.noise.sample(outputs.draws.shape, rng)
                right = (bordered @ noisy.T > 0) == other_y[:, None]
                attack = bayes_attack(
                    replace(outputs, secret=secret), found.noise, n_draws=10_000
                )
                certificate = found.certificate
                yield {
                    "budget": budget,
                    "about": secret,
                    "method": type(accountant).__name__,
                    "power": float(found.noise.variance(made.dim).sum()),
                    "table_information": certificate.table_information,
                    "certified": certificate.mutual_information,
                    "accuracy": float(right.mean()),
                    "low": float((attack.intervals()[:, 0] - attack.priors).max()),
                    "allowed": float(
                        (attack.allowed(certificate) - attack.priors).max()
                    ),
                    "epsilon": dp_equivalent(budget),
                }
        yield dp_row(budget, X, y, other_X, other_y, 2 if quick else 10)


def dp_row(budget, X, y, other_X, other_y, times):
    """Return the row of differential privacy at the same success of a guess."""
    epsilon = dp_equivalent(budget)
    model = PrivateLogisticRegression(
        accountant=PrivacyLoss(epsilon, delta=1e-5),
        classes=[0, 1],
        data_norm=float(np.sqrt(X.shape[1])) / 2,
    )
    scores = [
        clone(model)
        .set_params(random_state=i)
        .fit(X - 0.5, y)
        .score(other_X - 0.5, other_y)
        for i in range(times)
    ]
    return {
        "budget": budget,
        "about": "differential privacy",
        "method": "PrivacyLoss",
        "accuracy": float(np.mean(scores)),
        "epsilon": epsilon,
    }


def check_membership(frame):
    """A record costs less than the whole draw, and no attack is better than allowed."""
    assert not (frame["low"] > frame["allowed"]).any()
    assert not (frame["certified"] > frame["budget"] * (1 + 1e-9)).any()
    wide = frame.pivot_table(index="budget", columns=["about", "method"])["power"]
    assert (wide["record", "ResidualPAC"] < wide["dataset", "ResidualPAC"]).all()
    assert (wide["dataset", "ResidualPAC"] <= wide["dataset", "PAC"] * (1 + 1e-6)).all()


def importances(X, y):
    """Return the importances of a forest."""
    forest = RandomForestClassifier(n_estimators=30, max_depth=5, random_state=0)
    return forest.fit(X, y).feature_importances_


def centres(X, y):
    """Return the centres of two clusters, in one order."""
    found = KMeans(2, n_init=1, random_state=0).fit(X).cluster_centers_
    return found[np.argsort(found[:, 0])].ravel()


def programs(quick):
    """Yield the rows of importances and centres."""
    X, _, y, _ = cancer(quick)
    for name, query, dim in (
        ("importances of a forest", importances, X.shape[1]),
        ("centres of k-means", centres, 2 * X.shape[1]),
    ):
        release = QueryRelease(query=query, n_records=len(X) // 2, dim=dim, name=name)
        clean = query(X, y)
        rng = np.random.default_rng(0)
        for budget in (0.25,) if quick else (0.0625, 0.25, 1.0):
            for secret in ("dataset", "record"):
                bound, made = drawn(release, X, y, secret, quick)
                outputs = bound.fact(OutputSamples, made)
                accountant = ResidualPAC(budget, family="scale")
                try:
                    found = accountant.calibrate(made, bound, random_state=0)
                except UnsupportedError:  # kept without any noise
                    continue
                noisy = outputs.draws + found.noise.sample(outputs.draws.shape, rng)
                alike = [np.corrcoef(clean, one)[0, 1] for one in noisy]
                yield {
                    "program": name,
                    "budget": budget,
                    "about": secret,
                    "power": float(found.noise.variance(dim).sum()),
                    "spread": float(outputs.draws.var(axis=0).sum()),
                    "certified": found.certificate.mutual_information,
                    "table_information": found.certificate.table_information,
                    "correlation": float(np.mean(alike)),
                }


def check_programs(frame):
    """Budgets are kept."""
    assert (frame["certified"] <= frame["budget"] * (1 + 1e-9)).all()


# -- certificates and speed ------------------------------------------------------------


def certificates(quick):
    """Yield how often bounds fail, and how far above the truth they are."""
    gamma, times = 0.05, 40 if quick else 400
    n = 2000 if quick else 20_000
    corners = Atoms([[0, 0], [3, 0], [0, 1], [2, 2]], [0.4, 0.3, 0.2, 0.1])
    cases = {
        "±1": (Atoms([[-1.0], [1.0]]), np.eye(1)),
        "four points": (corners, np.array([[1.5, 0.3], [0.3, 0.8]])),
        "16 in a row": (Atoms(np.arange(16.0)[:, None]), np.eye(1)),
    }
    for name, (atoms, noise) in cases.items():
        channel = MixtureChannel(atoms, noise)
        truth = channel.information(Bank.quadrature(atoms)).value
        rng = np.random.default_rng(0)
        for interval in ("betting", "bernstein", "asymptotic"):
            above = np.empty(times)
            for k in range(times):
                entropies = channel.information(Bank.iid(atoms, n, rng)).entropies
                bound = entropy_bound(
                    entropies,
                    atoms.output_entropy,
                    len(atoms.distinct_points),
                    gamma=gamma,
                    method=interval,
                )
                above[k] = bound.upper - truth
            low, high = clopper_pearson(int((above < 0).sum()), times, 0.005)
            yield {
                "case": name,
                "interval": interval,
                "n_draws": n,
                "repetitions": times,
                "information": truth,
                "misses": int((above < 0).sum()),
                "low": low,
                "high": high,
                "slack": float(above.mean()),
            }


def check_certificates(frame):
    """Proved bounds fail no more often than stated, and are near the truth."""
    proved = frame[frame["interval"] != "asymptotic"]
    assert (proved["low"] <= 0.05).all()
    full = proved[(proved["n_draws"] == 20_000) & (proved["interval"] == "betting")]
    assert (full["slack"] <= 0.006).all()


def speed(quick):
    """Yield the seconds of an estimate and of a search on many atoms."""
    m, dim = (300, 8) if quick else (2000, 64)
    rng = np.random.default_rng(0)
    atoms = Atoms(rng.normal(size=(m, dim)) * np.linspace(2, 0.1, dim))
    noise = waterfill(atoms.covariance, 1.0)
    bank = Bank.stratified(atoms, m, rng, per_atom=1)
    points, draws = atoms.distinct_points, bank.normals

    def seconds(call):
        start = time.process_time()
        found = call()
        return time.process_time() - start, found

    floor = min(seconds(lambda: draws @ points.T)[0] for _ in range(5))
    channel = MixtureChannel(atoms, noise)
    took, found = seconds(lambda: channel.estimate(0))
    exact = channel.estimate(1, tolerance=0.001).value
    yield {
        "task": f"information of {m} atoms in {dim} dimensions to 0.5 %",
        "seconds": took,
        "products": took / floor,
        "error": abs(found.value / exact - 1),
    }
    took, found = seconds(
        lambda: search_noise(atoms, 1.0, family="eigen", random_state=0)
    )
    left = MixtureChannel(atoms, found.covariance).estimate(2, tolerance=0.001)
    yield {
        "task": f"search along the axes of {m} atoms in {dim} dimensions",
        "seconds": took,
        "products": took / floor,
        "error": abs(left.value - 1.0),
    }


def check_speed(frame):
    """Errors are what was asked for."""
    # two standard errors are asked for, and one fresh estimate is not the truth
    assert frame["error"].iloc[0] <= 0.0125
    assert frame["error"].iloc[1] <= 0.02


PARTS = {
    "studies": (studies, check_studies),
    "means": (means, check_means),
    "logits": (logits, check_logits),
    "membership": (membership, check_membership),
    "programs": (programs, check_programs),
    "certificates": (certificates, check_certificates),
    "speed": (speed, check_speed),
}


#: Where rows are stored, if not by the name of their part.
FILES = {"studies": "residual_pac.csv"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few of all, stores none")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    with threadpool_limits(1):
        for part in options.only:
            make, check = PARTS[part]
            frame = pd.DataFrame(make(options.quick))
            numbers = frame.select_dtypes("number").columns
            shown = frame.assign(**{k: frame[k].map("{:.5g}".format) for k in numbers})
            print(f"{part}:")
            print_table(shown.values.tolist(), tuple(shown.columns))
            check(frame)
            if not options.quick:
                used = versions("numpy", "scipy", "scikit-learn")
                write_csv(
                    frame.assign(**used).round(9),
                    FILES.get(part, f"residual_pac_{part}.csv"),
                )


if __name__ == "__main__":
    main()
