"""The tables of the gains benchmark, and a scenario of each kind that suits them."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from skpuffer.datasets import load_adult, load_household_power
from skpuffer.distributions import Discrete
from skpuffer.scenarios import (
    AttributeScenario,
    BayesianNetworkScenario,
    BinnedLaw,
    BlocksScenario,
    BoundedInference,
    BoundedOdds,
    DeclaredOdds,
    DependenceScenario,
    DiffusionScenario,
    GaussianScenario,
    GroupScenario,
    JointTableScenario,
    LawsScenario,
    MarkovChainScenario,
    PrevalenceScenario,
    RecordScenario,
    Scenario,
    SimulatorScenario,
)

#: Records of a household.
MEMBERS = 4
#: Rows of a prior that is given as a table; pairs of them are compared.
PRIOR_ROWS = 200


@dataclass(frozen=True)
class Table:
    """What is fitted: rows in the unit ball, and a target of either kind.

    Parameters
    ----------
    name : str
        What it is, for the reader.
    X : DataFrame
        Features, each within `bounds`.
    label : Series
        Of two classes.
    number : Series
        In [0, 1], for regressors.
    bounds : tuple of float
        Public bounds of every feature.
    """

    name: str
    X: pd.DataFrame
    label: pd.Series
    number: pd.Series
    bounds: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Case:
    """A scenario and the table it is about.

    Parameters
    ----------
    scenario : Scenario
    table : Table
    in_words : str
        What is secret, for the reader.
    """

    scenario: Scenario
    table: Table
    in_words: str


@lru_cache(maxsize=2)
def census(n):
    """Return n private rows of Adult, and the others as public ones with the race."""
    frame = load_adult().frame
    frame = frame[frame["race"].notna()].sample(frac=1, random_state=0)
    X = pd.DataFrame(
        {
            # by round public bounds, so that four features stay in the unit ball
            "age": frame["age"].clip(17, 97).sub(17) / 80,
            "education-num": frame["education-num"].sub(1) / 15,
            "capital-gain": np.log1p(frame["capital-gain"]) / np.log1p(99_999),
            "capital-loss": np.log1p(frame["capital-loss"]) / np.log1p(9_999),
        }
    ).reset_index(drop=True)
    label = pd.Series(frame["income"].cat.codes.to_numpy(dtype=int), name="label")
    number = pd.Series(frame["hours-per-week"].to_numpy() / 100, name="number")
    race = pd.Series(np.where(frame["race"] == "White", "white", "other"), name="race")
    private = Table("Adult", X[:n] / 2, label[:n], number[:n], (0.0, 0.5))
    public = pd.concat([X / 2, label, number, race], axis=1)[n:]
    return private, public.reset_index(drop=True)


@lru_cache(maxsize=2)
def power(n):
    """Return n hours of household power, high or low, and the chain of other hours."""
    hours = load_household_power("hours").data["Global_active_power_filled"]
    kilowatts = hours.to_numpy() / 60
    states = (kilowatts > 1).astype(int)
    half = len(states) // 2  # the first half is public
    counts = np.ones((2, 2))
    np.add.at(counts, (states[: half - 1], states[1:half]), 1)
    values = states[half : half + n].astype(float)
    day = (np.arange(half, half + n) % 24 >= 12).astype(int)
    table = Table(
        "household power by the hour",
        pd.DataFrame({"power": values}),
        pd.Series(day, name="label"),
        pd.Series(np.clip(kilowatts[half : half + n] / 6, 0, 1), name="number"),
    )
    return table, counts / counts.sum(axis=1, keepdims=True)


def _households(n):
    """Ill or not, likelier where another of the household is."""
    rng = np.random.default_rng(0)
    first = rng.random(n // MEMBERS) < 0.3
    others = (
        rng.random((n // MEMBERS, MEMBERS - 1)) < np.where(first, 0.5, 0.2)[:, None]
    )
    ill = np.column_stack([first, others]).ravel().astype(float)
    return Table(
        "made households of four",
        pd.DataFrame({"ill": ill}),
        pd.Series(np.arange(n) % 2, name="label"),
        pd.Series(np.arange(n) % 10 / 10, name="number"),
    )


def _small_move(public):
    """A secret that moves every record by 0.02, and goes with nothing else."""
    rows = public.drop(columns="race")[:PRIOR_ROWS]
    moved = rows.assign(age=rows["age"] + 0.02, secret="yes")
    return pd.concat([rows.assign(secret="no"), moved], ignore_index=True)


def _odds(public, features):
    """Race from public features alone; what the label adds is declared."""
    propensity = LogisticRegression(max_iter=1000).fit(public[features], public["race"])
    return DeclaredOdds(propensity, public[features], rest=BoundedOdds(2.0))


def _network():
    """One member, and the others given the first."""
    others = [f"member {i}" for i in range(2, MEMBERS + 1)]
    return BayesianNetworkScenario(
        parents={"first": (), **{other: ("first",) for other in others}},
        tables={
            "first": [0.7, 0.3],
            **{other: [[0.8, 0.2], [0.5, 0.5]] for other in others},
        },
    )


def _joint():
    """The same by enumeration."""
    tables = np.array(np.meshgrid(*[[0, 1]] * MEMBERS, indexing="ij"))
    tables = tables.reshape(MEMBERS, -1).T
    ill = np.where(tables[:, :1] == 1, [0.5], [0.2])
    masses = np.where(tables[:, 0] == 1, 0.3, 0.7)
    given = np.where(tables[:, 1:] == 1, ill, 1 - ill)
    return JointTableScenario(tables, masses * given.prod(axis=1))


def _simulator(table):
    """A survey that was made in one of two ways, which differ by 0.02."""
    base, label = table.X, table.label

    def draw(way, rng):
        rows = rng.integers(len(base), size=len(base))
        return base.iloc[rows].reset_index(drop=True) + 0.02 * way, label.iloc[rows]

    def draw_pair(way, other, rng):
        seed = rng.integers(2**32)
        return (
            draw(way, np.random.default_rng(seed)),
            draw(other, np.random.default_rng(seed)),
        )

    return SimulatorScenario(draw, draw_pair, secrets=[0, 1], n_draws=50)


def _output_laws():
    """Two laws of a mean that differ by a hundredth."""
    return Discrete([0.10, 0.20], [1, 1]), Discrete([0.11, 0.21], [1, 1])


def cases(n):
    """Return a case of each kind, by name; series are two or three times as long.

    Parameters
    ----------
    n : int
        Records of a table, a multiple of the members of a household.

    Returns
    -------
    dict of {str: Case}
    """
    adult, public = census(n)
    series, _ = power(2 * n)
    long, chain = power(3 * n)
    households = _households(n)
    features = list(adult.X)
    hours = np.arange(2 * n)
    one = Table("Adult", adult.X[["age"]], adult.label, adult.number, adult.bounds)

    def race(prior, level="record", **options):
        return AttributeScenario("race", level=level, prior=prior, **options)

    law = public[: 2 * PRIOR_ROWS]
    markov = MarkovChainScenario(chain, event_delta=1e-6)
    quartered = {"age": 4, "education-num": 3, "number": 2}
    bins = {**quartered, "capital-gain": 2, "capital-loss": 2}
    found = {
        "RecordScenario": (
            RecordScenario(relation="replace"),
            adult,
            "all of one record, as in differential privacy",
        ),
        "PrevalenceScenario": (
            PrevalenceScenario("race", n // 10, n // 10 + MEMBERS),
            adult,
            "whether four more people are of one race",
        ),
        "AttributeScenario, a small move": (
            AttributeScenario(
                "secret", level="record", prior=_small_move(public), prior_as="law"
            ),
            adult,
            "a value that moves one feature by 0.02",
        ),
        "AttributeScenario, a table": (
            race(law, prior_as="law"),
            adult,
            "one person's race, by a public table",
        ),
        "AttributeScenario, level='dataset'": (
            race(law, "dataset", prior_as="law"),
            adult,
            "a race that all records share, by a public table",
        ),
        "BoundedOdds(4)": (
            race(BoundedOdds(4.0)),
            adult,
            "one person's race, odds within a range of 4",
        ),
        "BoundedInference(.72)": (
            race(BoundedInference(0.72)),
            adult,
            "one person's race, guessed with an AUC of .72 at most",
        ),
        "DeclaredOdds": (
            race(_odds(public, features)),
            adult,
            "one person's race, by a public classifier; 2 for the label",
        ),
        "BinnedLaw": (
            race(BinnedLaw(public, bins)),
            adult,
            "one person's race, by binned public rows",
        ),
        "GaussianScenario": (
            GaussianScenario(
                covariance=0.7 ** np.abs(hours[:, None] - hours),
                covariance_of="records",
                domain=(0, 1),
            ),
            series,
            "one hour's power, correlation .7 from hour to hour",
        ),
        "DiffusionScenario": (
            DiffusionScenario(0.1, times=hours + 1, diameter=1.0),
            series,
            "the start of a path that forgets a tenth of it an hour",
        ),
        "MarkovChainScenario": (
            markov,
            long,
            "whether power was high in one hour of a chain",
        ),
        "BlocksScenario of a chain": (
            BlocksScenario(markov, sizes=len(long.X) // 60),
            long,
            "the same, in independent stretches of 50 hours",
        ),
        "BlocksScenario of records": (
            BlocksScenario(RecordScenario(MEMBERS, "replace"), sizes=MEMBERS),
            adult,
            "all of a household of four",
        ),
        "BayesianNetworkScenario": (
            BlocksScenario(_network(), sizes=MEMBERS),
            households,
            "one member's illness, in blocks of one network each",
        ),
        "JointTableScenario": (
            BlocksScenario(_joint(), sizes=MEMBERS),
            households,
            "the same, in blocks of one joint table each",
        ),
        "DependenceScenario": (
            DependenceScenario(0.001),
            adult,
            "one record, the others moving the output by 0.001 at most",
        ),
        "GroupScenario": (
            GroupScenario("race", prior=law, prior_as="law"),
            adult,
            "which race the whole table is about, one output for each",
        ),
        "SimulatorScenario": (
            _simulator(adult),
            adult,
            "which of two ways a survey was made, 50 draws, no confidence",
        ),
        "LawsScenario": (
            LawsScenario([_output_laws()]),
            one,
            "which of two laws the output has, both of one number",
        ),
    }
    return {name: Case(*parts) for name, parts in found.items()}
