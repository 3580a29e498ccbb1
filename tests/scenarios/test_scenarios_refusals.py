"""What scenarios refuse, each by its reason, before anything is promised by them."""

import math

import numpy as np
import pandas as pd
import pytest

from skpuffer.distributions import PointMass
from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.scenarios import (
    AttributeScenario,
    BayesianNetworkScenario,
    BinnedLaw,
    BlocksScenario,
    BoundedInference,
    BoundedOdds,
    CoupledSamples,
    DependenceScenario,
    DiffusionScenario,
    GaussianScenario,
    GroupScenario,
    JointTableScenario,
    LawsScenario,
    MarkovChainScenario,
    OutputDistributions,
    OutputSamples,
    PrevalenceScenario,
    RecordScenario,
    SimulatorScenario,
    SubsampleScenario,
)

TABLE = pd.DataFrame({"secret": [0, 0, 1, 1], "value": [0.0, 0.5, 0.5, 1.0]})
CHAIN = [[0.9, 0.1], [0.2, 0.8]]
PARENTS = {"one": (), "other": ("one",)}
TABLES = {"one": [0.5, 0.5], "other": [[0.9, 0.1], [0.2, 0.8]]}
PAIR = [[0, 0], [1, 1]]
EYE = np.eye(2)
POOL = np.linspace(0.0, 1.0, 8)[:, None]


def query(n=2, dim=1, **options):
    usual = {"query": lambda X, y: np.asarray(X, float).mean(axis=0)}
    return QueryRelease(n_records=n, dim=dim, **usual | options)


def bound(scenario, n=2, **context):
    return lambda: scenario().bind(PublicContext(n_records=n, **context))


def asked(scenario, kind, release=None):
    release = release or query()
    return lambda: scenario().bind(release.context).fact(kind, release)


def attribute(**options):
    usual = {"level": "record", "prior": TABLE, "prior_as": "law"}
    return AttributeScenario("secret", **usual | options)


def believed(**options):
    usual = {"level": "record", "prior": BoundedOdds(4.0)}
    return AttributeScenario(**{"column": "secret"} | usual | options)


def chain(transition=CHAIN, *given, **options):
    return MarkovChainScenario(transition, *given, **options).check


def network(parents=PARENTS, tables=TABLES, **options):
    return BayesianNetworkScenario(parents, tables, **options).check


def draw(secret, rng):
    return rng.normal(secret, size=(2, 1))


def simulator(draw=draw, draw_pair=None, **options):
    return SimulatorScenario(draw, draw_pair, **{"secrets": [0, 1]} | options)


def subsample(*given, **options):
    return SubsampleScenario(*given or (POOL, 4), **options)


CASES = {
    # -- pairs, secrets and records
    "no such fact": (
        asked(RecordScenario, OutputDistributions),
        "RecordScenario does not offer OutputDistributions for the release",
    ),
    "a secret twice": (
        simulator(secrets=[0, 0]).check,
        "A secret is there twice",
    ),
    "one secret": (
        simulator(secrets=[0]).check,
        "A scenario needs at least two secrets to keep apart",
    ),
    "no pairs": (
        simulator(pairs=[]).check,
        "'pairs' must be 'all' or a non-empty list",
    ),
    "pairs of three": (
        simulator(pairs=[(0, 1, 0)]).check,
        "'pairs' must be 'all' or a non-empty list",
    ),
    "pairs of no list": (simulator(pairs=3).check, "'pairs' must be 'all' or a list"),
    "a pair of another": (
        simulator(pairs=[(0, 2)]).check,
        "'pairs' names the secret 2, which is not there",
    ),
    "a pair of itself": (
        simulator(pairs=[(1, 1)]).check,
        r"A pair needs two different secrets. Got \(1, 1\)",
    ),
    "secrets that are no keys": (
        simulator(secrets=[[0], [1]]).check,
        "Secrets must be a sequence of hashable values",
    ),
    # -- blocks
    "blocks of no scenario": (
        BlocksScenario("record").check,
        "'scenario' must be a scenario for one block",
    ),
    "blocks of private rows": (
        BlocksScenario(attribute(prior="empirical")).check,
        "takes the private rows as its prior, but blocks need public ones",
    ),
    "sizes in rows": (
        BlocksScenario(RecordScenario(), sizes=[[2]]).check,
        "'sizes' must list block sizes",
    ),
    "no sizes": (
        BlocksScenario(RecordScenario(), sizes=[]).check,
        "'sizes' must list block sizes",
    ),
    "size 0": (BlocksScenario(RecordScenario(), sizes=[2, 0]).check, "'sizes'"),
    "blocks of no groups": (
        bound(lambda: BlocksScenario(RecordScenario())),
        "'sizes' is None, which takes the groups that the table comes with",
    ),
    "blocks that do not fit": (
        bound(lambda: BlocksScenario(RecordScenario(), sizes=2), n=5),
        "The table has 5 records, which are no whole number of blocks of 2",
    ),
    "blocks of too many": (
        bound(lambda: BlocksScenario(RecordScenario(), sizes=[2, 2]), n=5),
        "'sizes' adds up to 4 records, but the table has 5",
    ),
    "blocks that believe nothing": (
        BlocksScenario(RecordScenario(), sizes=2).explain,
        "declares no belief about a block",
    ),
    # -- distances and distributions
    "distance without end": (
        DependenceScenario(distance=math.inf).check,
        "'distance' is infinite, so that nothing bounds the query",
    ),
    "distance below 0": (DependenceScenario(distance=-1.0).check, "'distance'"),
    "norm below 1": (DependenceScenario(distance=1.0, norm=0.5).check, "'norm'"),
    "no laws": (LawsScenario([]).check, "'laws' must be a non-empty list of pairs"),
    "laws of numbers": (
        LawsScenario([(0.0, 1.0)]).check,
        "'laws' must be a non-empty list of pairs",
    ),
    "laws of three": (
        LawsScenario([(PointMass(0.0),) * 3]).check,
        "'laws' must be a non-empty list of pairs",
    ),
    "laws of no list": (
        LawsScenario(3).check,
        "'laws' must be a non-empty list of pairs",
    ),
    "laws of dimensions": (
        LawsScenario([(PointMass(0.0), PointMass([0.0, 1.0]))]).check,
        r"'laws' mixes distributions of different dimension: \[1, 2\]",
    ),
    "laws of another release": (
        asked(
            lambda: LawsScenario([(PointMass(0.0), PointMass(1.0))]),
            OutputDistributions,
            query(dim=2),
        ),
        "'laws' describes an output of 1 coordinates; the release 'query' has 2",
    ),
    # -- groups
    "groups by a name": (
        GroupScenario("secret", prior="empirical").check,
        "'prior' must be a public table with rows of all groups",
    ),
    "groups by belief": (
        GroupScenario("secret", prior=BoundedOdds(4.0)).check,
        "'prior' is a declared belief, which has no rows of the groups",
    ),
    "groups of one row": (
        bound(
            lambda: GroupScenario(
                "secret", prior=TABLE.iloc[[0, 1, 2]], prior_as="law", n_worlds=3
            )
        ),
        r"'prior' has one row only of the groups \[.*1.*\] of 'secret'",
    ),
    # -- listed tables
    "tables of a row": (
        JointTableScenario([0, 1], [0.5, 0.5]).check,
        r"'tables' must be an array of shape .* Got shape \(2,.*\)",
    ),
    "tables of another size": (
        bound(lambda: JointTableScenario(PAIR, [0.5, 0.5]), n=3),
        "'tables' lists tables of 2 records, but the data has 3",
    ),
    "tables that are alike": (
        bound(lambda: JointTableScenario(PAIR, [1.0, 0.0])),
        "No two secrets that must look alike have a positive probability|two secrets",
    ),
    "a record of none": (
        bound(lambda: JointTableScenario(PAIR, [0.5, 0.5], protected=[2])),
        "'protected' must list records of the table, as integers from 0 to 1",
    ),
    "a record below 0": (
        bound(lambda: JointTableScenario(PAIR, [0.5, 0.5], protected=[-1])),
        "'protected' must list records of the table",
    ),
    # -- simulators
    "no function": (simulator(draw=3).check, "The parameter 'draw' must be callable"),
    "no function of pairs": (
        simulator(draw_pair=3).check,
        "The parameter 'draw_pair' must be callable",
    ),
    "one draw": (simulator(n_draws=1).check, "'n_draws'"),
    "confidence without pairs": (
        simulator(confidence=0.9).check,
        "'confidence' needs 'draw_pair': independent draws bound no displacement",
    ),
    "a number for a table": (
        asked(lambda: simulator(draw=lambda s, rng: 3.0), OutputSamples),
        "'draw' and 'draw_pair' must return tables. Got an object of type float",
    ),
    "a table of another size": (
        asked(lambda: simulator(draw=lambda s, rng: np.ones((3, 1))), OutputSamples),
        "The simulator drew a table of 3 records, but the data has 2: draw as many",
    ),
    "one table for two": (
        asked(
            lambda: simulator(draw_pair=lambda a, b, rng: (np.ones((2, 1)),)),
            CoupledSamples,
        ),
        "'draw_pair' must return two tables",
    ),
    "outputs without end": (
        asked(simulator, OutputSamples, query(query=lambda X, y: np.array([math.inf]))),
        "is NaN or infinite on",
    ),
    "outputs of several lengths": (
        asked(simulator, OutputSamples, query(query=lambda X, y: np.ones(2))),
        "is a vector of another length on one simulated table",
    ),
    "a query that fails": (
        asked(simulator, OutputSamples, query(query=lambda X, y: X.reshape(7))),
        "cannot be computed on a|cannot reshape",
    ),
    # -- attributes
    "a list for a column": (
        AttributeScenario(["secret"], level="record", prior=TABLE).check,
        "'column'",
    ),
    "a list for a target": (
        attribute(target=["value"]).check,
        "'target' must name one column",
    ),
    "no such column": (
        AttributeScenario("sex", level="record", prior=TABLE).check,
        "'column' names 'sex', but the prior has the columns",
    ),
    "no such target": (
        attribute(target="sex").check,
        "'target' names 'sex', but the prior has the columns",
    ),
    "several columns": (
        AttributeScenario(("secret", "value"), level="record", prior=TABLE).check,
        "'column'",
    ),
    "belief and table": (
        attribute(prior=[BoundedOdds(4.0), TABLE]).check,
        "'prior' mixes declared beliefs and tables",
    ),
    "belief about a place": (
        believed(column=-1).check,
        "'column' must be the name of a column or, for data without names",
    ),
    "belief about a truth": (
        believed(column=True).check,
        "'column' must be the name of a column or, for data without names",
    ),
    "belief with rows": (
        believed(prior_as="law").check,
        "'prior_as' is about the rows of a prior table",
    ),
    "belief with a target": (
        believed(target="value").check,
        "'target' is about the rows of a prior table",
    ),
    "no prior": (attribute(prior=[]).check, "'prior' is an empty list"),
    "prior of nothing": (
        attribute(prior=[None]).check,
        "'prior' must be a table, a callable, a list of these, or 'empirical'. Got",
    ),
    "a table is not explained": (
        attribute().explain,
        "'prior' is a table, whose worth depends on what is released",
    ),
    "a column among unnamed ones": (
        bound(believed, n_features=3),
        "'column' names 'secret', but the data has no column names",
    ),
    "the target for a secret": (
        bound(believed, feature_names=("value",), target_name="secret"),
        "'column' names the target 'secret', which every model is made to tell",
    ),
    "a place among named ones": (
        bound(lambda: believed(column=0), feature_names=("value",)),
        "'column' is the position 0, for data without names",
    ),
    "a secret that is encoded": (
        bound(believed, feature_names=("Secret", "value")),
        r"The data has the columns \['Secret'\], which are named after the secret",
    ),
    "private rows without a fit": (
        bound(lambda: attribute(prior="empirical")),
        "'prior' is 'empirical', so the private rows are needed",
    ),
    "a prior of few rows": (
        asked(
            lambda: attribute(prior_as="confidence", confidence=1 - 1e-9),
            OutputDistributions,
            query(contribution=lambda X, y: np.asarray(X, float), is_sum=True),
        ),
        "too few rows for prior_as='confidence': .* .delta = 1.",
    ),
    # -- networks
    "no such node": (
        network(protected=["third"]),
        "'protected' names 'third', which is no node of 'parents'",
    ),
    "moves of records": (
        network(moves={"one": 1.0, "other": 1.0}),
        "'moves' goes with level='attribute'",
    ),
    "moves of one node": (
        network(level="attribute", moves={"one": 1.0}),
        "'moves' must name each node once",
    ),
    "moves without end": (
        network(level="attribute", moves={"one": 1.0, "other": math.inf}),
        "'moves' must be finite. Got inf",
    ),
    "protected of no list": (
        network(protected=3),
        "'protected' must be a list of nodes",
    ),
    "protected of lists": (
        network(protected=[["one"]]),
        "'protected' must be a list of nodes",
    ),
    "parents of no dict": (
        network(parents=["one"]),
        "'parents' must be a dict from each node",
    ),
    "no parents": (network(parents={}), "'parents' must be a dict from each node"),
    "parents of a number": (
        network(parents={"one": 3, "other": ()}),
        "'parents' of 'one' must be a sequence of nodes. Got 3",
    ),
    "a stranger for a parent": (
        network(parents={"one": ("third",), "other": ()}),
        "'parents' of 'one' must be other nodes, each once",
    ),
    "a parent twice": (
        network(parents={"one": (), "other": ("one", "one")}),
        "'parents' of 'other' must be other nodes, each once",
    ),
    "its own parent": (
        network(parents={"one": (), "other": ("other",)}),
        "'parents' of 'other' must be other nodes, each once",
    ),
    "parents in a circle": (
        network(parents={"one": ("other",), "other": ("one",)}),
        "'parents' has a cycle through",
    ),
    "no tables": (network(tables=[]), "'tables' holds no belief"),
    "a table for one node": (
        network(tables={"one": [0.5, 0.5]}),
        "'tables' must hold one table for each node of 'parents'",
    ),
    "a table of another shape": (
        network(tables=TABLES | {"other": [0.5, 0.5]}),
        r"'tables' must have shape \(2, 2\) for 'other'",
    ),
    "a table that is no law": (
        network(tables=TABLES | {"one": [0.5, 0.6]}),
        "For the node 'one': ",
    ),
    "very many outcomes": (
        network(
            parents={at: () for at in range(33)},
            tables={at: [0.5, 0.5] for at in range(33)},
        ),
        "outcomes, more than the .* that can be enumerated",
    ),
    "nodes of another table": (
        bound(lambda: BayesianNetworkScenario(PARENTS, TABLES), n=3),
        "The network has 2 nodes, but the table has 3 records",
    ),
    # -- Gaussian records
    "records that are alike": (
        GaussianScenario(
            covariance=EYE, secret=[0], domain=(0, 1), protected=[0]
        ).check,
        "'protected' is for covariance_of='records'",
    ),
    "records of one secret": (
        GaussianScenario(
            covariance=EYE, covariance_of="records", level="dataset", domain=(0, 1)
        ).check,
        "'level' is 'dataset', which is for independent records",
    ),
    "no covariance": (
        GaussianScenario(secret=[0], domain=(0, 1)).check,
        "'covariance' is missing",
    ),
    "a mean of another size": (
        GaussianScenario([0.0], EYE, secret=[0], domain=(0, 1)).check,
        r"'mean' must hold 2 finite numbers, .* Got shape \(1,\)",
    ),
    "a text for names": (
        GaussianScenario(
            covariance=EYE, secret=["a"], domain=(0, 1), columns="ab"
        ).check,
        "'columns' must be a list of names",
    ),
    "no secret": (
        GaussianScenario(covariance=EYE, domain=(0, 1)).check,
        "'secret' must name the secret columns. Got None",
    ),
    "names for others": (
        GaussianScenario(
            covariance=EYE, secret=["a"], domain=(0, 1), columns=["a", "b", "c"]
        ).check,
        "'columns' has 3 names for 2 columns",
    ),
    "a secret of no column": (
        GaussianScenario(covariance=EYE, secret=[2], domain=(0, 1)).check,
        "'secret' names 2; there are",
    ),
    "a secret twice over": (
        GaussianScenario(covariance=EYE, secret=[0, 0], domain=(0, 1)).check,
        "'secret' must name different columns",
    ),
    "no secrets": (
        GaussianScenario(covariance=EYE, secret=[], domain=(0, 1)).check,
        "'secret' must name different columns",
    ),
    "no domain": (
        GaussianScenario(covariance=EYE, secret=[0]).check,
        "'domain' must say which values of the secret are to look alike",
    ),
    "a ball of no radius": (
        GaussianScenario(covariance=EYE, secret=[0], domain=0.0, shape="ball").check,
        "'domain' must be the positive radius of a ball",
    ),
    "an empty box": (
        GaussianScenario(covariance=EYE, secret=[0], domain=(1, 1)).check,
        r"'domain' must be a pair \(low, high\) of finite bounds with low < high",
    ),
    "a box of many corners": (
        GaussianScenario(
            covariance=np.eye(40), secret=list(range(40)), domain=(0, 1)
        ).check,
        "A box of 40 secret columns has too many corners",
    ),
    "records of another number": (
        bound(
            lambda: GaussianScenario(
                covariance=np.eye(3), covariance_of="records", domain=(0, 1)
            ),
            n=2,
        ),
        "'covariance' is of 3 numbers, which are no whole number of columns",
    ),
    # -- diffusions
    "times that stand still": (
        DiffusionScenario(1.0, times=[1.0, 1.0], diameter=1.0).check,
        "'times'",
    ),
    "times below 0": (
        DiffusionScenario(1.0, times=[-1.0, 1.0], diameter=1.0).check,
        "'times'",
    ),
    "no times": (DiffusionScenario(1.0, times=[], diameter=1.0).check, "'times'"),
    "times of another table": (
        bound(lambda: DiffusionScenario(1.0, times=[1.0, 2.0], diameter=1.0), n=3),
        "'times' names 2 times, but the table has 3 records",
    ),
    "a query of another form": (
        lambda: DiffusionScenario(1.0, times=[1.0, 2.0], diameter=1.0).query_shift(
            1.0, form="mean"
        ),
        "'form'",
    ),
    # -- chains
    "a transition that is no square": (
        chain([[0.5, 0.5]]),
        "'transition' must be a square matrix",
    ),
    "a transition that is no law": (
        chain([[0.9, 0.2], [0.2, 0.8]]),
        "The row .* of the parameter 'transition' is not a distribution",
    ),
    "no first record": (
        chain(CHAIN, None),
        "'initial' must be 'stationary' or a distribution of the first record. Got",
    ),
    "first records of others": (
        chain(CHAIN, [[0.5, 0.5], [0.4, 0.6]]),
        "'initial' has 2 distributions for 1 chains",
    ),
    "a first record that is no law": (
        chain(CHAIN, [0.5, 0.6]),
        "'initial' must be 'stationary' or a distribution of the 2 states",
    ),
    "states of another number": (
        chain(states=[0.0, 1.0, 2.0]),
        "'states' must have one record for each of the 2 states",
    ),
    "a state twice": (chain(states=[1.0, 1.0]), "'states' names a record twice"),
    # -- prevalences
    "a rate above 1": (
        PrevalenceScenario(None, 0.1, 1.5).check,
        "'high' is a float, so it is a rate and must be in the range",
    ),
    "a list for the column of a prevalence": (
        PrevalenceScenario(["a"], 1, 2).check,
        "'column' must be the name of a column, its position, or None",
    ),
    "a list for a value": (
        PrevalenceScenario(None, 1, 2, value=[1]).check,
        "'value' must be a number, a text or another value that can be compared",
    ),
    "more than all": (
        bound(lambda: PrevalenceScenario(None, 1, 3), n=2),
        "'high' counts 3 records, and the table has 2",
    ),
    "a rate and a count": (
        PrevalenceScenario(None, 1, 0.5).check,
        "'low' and 'high' must be of one kind",
    ),
    "worlds that change places": (
        PrevalenceScenario(None, 2, 1).check,
        "'high' must exceed 'low'",
    ),
    "worlds that coincide": (
        PrevalenceScenario(None, 1, 1).check,
        "'high' must exceed 'low'",
    ),
    "a law of counts": (
        PrevalenceScenario(None, 1, 2, law="binomial").check,
        "law='binomial' takes rates",
    ),
    "rates of one count": (
        bound(lambda: PrevalenceScenario(None, 0.5, 0.51), n=10),
        "are the same count of 10 records, 5: the two worlds coincide",
    ),
    "a label of no target": (
        bound(lambda: PrevalenceScenario("a", 1, 2, relation="relabel"), n=4),
        "relation='relabel' is for a value of the target",
    ),
    "worlds of three values": (
        lambda: PrevalenceScenario(None, 1, 2).worlds(np.zeros((4, 1)), [0, 1, 2, 0]),
        "'value' must name the value that is more or less common: the column has 3",
    ),
    # -- public rows and declared odds
    "odds without end": (
        believed(prior=BoundedOdds(1e13)).check,
        "'w' must be at most .*: a row that shifts the odds further gives",
    ),
    "odds of one": (
        believed(prior=BoundedOdds(1.0)).check,
        "'w' is 1: if a row tells nothing of the secret, no noise is needed",
    ),
    "odds below one": (believed(prior=BoundedOdds(0.5)).check, "'w'"),
    "a share of one": (believed(prior=BoundedOdds(2.0, share=1.0)).check, "'share'"),
    "no better than chance": (
        believed(prior=BoundedInference(auc=0.5)).check,
        "'auc' must be above 0.5: at 0.5 the row tells nothing",
    ),
    "rest of a number": (
        believed(prior=BinnedLaw(TABLE, {"value": 2}, rest=2.0)).check,
        "'rest' must be a BoundedOdds",
    ),
    "rest without end": (
        believed(prior=BinnedLaw(TABLE, {"value": 2}, rest=BoundedOdds(1e13))).check,
        "'rest' must have a range 'w' of at most .* and no 'share'",
    ),
    "rest with a share": (
        believed(
            prior=BinnedLaw(TABLE, {"value": 2}, rest=BoundedOdds(2.0, share=0.1))
        ).check,
        "'rest' must have a range 'w' of at most .* and no 'share'",
    ),
    "bins of a number": (
        believed(prior=BinnedLaw(TABLE, 2)).check,
        "'bins' must be a dict of columns and their bins, or a Schema",
    ),
    "rows without names": (
        believed(prior=BinnedLaw(TABLE.to_numpy(), {"value": 2})).check,
        "'rows' of BinnedLaw must be a data frame with names",
    ),
    "rows without the secret": (
        believed(column="sex", prior=BinnedLaw(TABLE, {"value": 2})).check,
        "'rows' has no column 'sex', the secret",
    ),
    "bins of another column": (
        believed(prior=BinnedLaw(TABLE, {"height": 2, "value": 2})).check,
        r"'bins' names \['height'\], which the parameter 'rows' does not have",
    ),
    "rows of one secret": (
        believed(prior=BinnedLaw(TABLE.iloc[:2], {"value": 2})).check,
        "'rows' has one value only: two are needed to keep apart",
    ),
    "missing rows": (
        believed(prior=BinnedLaw(TABLE.assign(value=math.nan), {"value": 2})).check,
        "'value' of the parameter 'rows' has missing values",
    ),
    "infinite rows": (
        believed(prior=BinnedLaw(TABLE.assign(value=math.inf), {"value": 2})).check,
        "'value' of the parameter 'rows' is infinite",
    ),
    "no bins": (
        believed(prior=BinnedLaw(TABLE, {"value": 0})).check,
        "must be at least one bin",
    ),
    "bins that descend": (
        believed(prior=BinnedLaw(TABLE, {"value": [0.6, 0.2]})).check,
        "must be ascending edges between bins, or their number",
    ),
    # -- subsets
    "a pool of three": (
        subsample((POOL, None, None), 4).check,
        r"'pool' is a tuple, so it must be a pair \(X, y\). Got 3 entries",
    ),
    "a pool of a number": (
        subsample(3, 4).check,
        "'pool' must be 'known' or a table",
    ),
    "a pool by another name": (
        subsample("mine", 4).check,
        "'pool' must be 'known', which takes the table given to fit",
    ),
    "a share of all": (
        subsample(POOL, 1.0).check,
        r"'size' is a float, so it is a share of the pool and must be in the range",
    ),
    "groups without their secret": (
        subsample(groups=np.arange(8)).check,
        "'groups' goes with secret='groups'",
    ),
    "secret groups of nothing": (
        subsample(secret="groups", prior="sampled").check,
        "'groups' must give the ids of the pool's records, or a callable",
    ),
    "shares of independent draws": (
        subsample(POOL, 0.5, independent=True, stratify=True).check,
        "'stratify' keeps the shares of classes",
    ),
    "independent of a public pool": (
        subsample(POOL, 4, prior="sampled", independent=True).check,
        "'independent' is for a table drawn within the fit",
    ),
    "a design of a public pool": (
        subsample(POOL, 4, prior="design").check,
        "'prior' is 'design', by which the table is drawn within the fit",
    ),
    "subsets of all": (
        bound(lambda: subsample(POOL, 8, prior="sampled"), n=8),
        "'size' .8. asks for subsets of 8 records of a 'pool'",
    ),
    "too many to list": (
        bound(
            lambda: subsample(np.arange(200.0)[:, None], 100, prior="enumerated"), n=100
        ),
        "'prior' is 'enumerated', and there are about",
    ),
    "targets of another number": (
        subsample((POOL, np.zeros(7)), 4, prior="sampled").check,
        "'pool' has 8 records and 7 targets: give one for each",
    ),
    "classes of no target": (
        bound(lambda: subsample(POOL, 4, prior="sampled", stratify=True), n=4),
        "'stratify' keeps the shares of the classes of a target, which the pool lacks",
    ),
    "a table of another subset": (
        bound(lambda: subsample(prior="sampled"), n=5),
        "'size' says that 4 of the pool's 8 records are drawn, but the table has 5",
    ),
    "groups of other records": (
        bound(
            lambda: subsample(secret="groups", prior="sampled", groups=np.arange(7)),
            n=4,
        ),
        "'groups' has 7 ids, and the pool has 8 records",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_by_its_reason(name):
    attempt, words = CASES[name]
    with pytest.raises((ScenarioError, ValueError, TypeError), match=words):
        attempt()


def test_what_a_mean_over_listed_tables_takes_for_granted():
    three = JointTableScenario([[0, 0], [1, 1], [0, 1]], [0.5, 0.25, 0.25])
    assert asked(lambda: three, OutputSamples)().assumptions == (
        Statement("assume.joint_secret_whole_table"),
        Statement(
            "assume.joint_table_listed",
            n_tables=3,
            belief=Statement("assume.joint_stated_probabilities"),
        ),
        Statement("assume.joint_count_public", n=2),
        Statement("assume.joint_average_over_tables"),
    )
