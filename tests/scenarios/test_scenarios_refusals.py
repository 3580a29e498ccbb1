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
from tests.refused import refused

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
        Statement(
            "scenario.fact_not_offered",
            scenario_type="RecordScenario",
            kind="OutputDistributions",
        ),
    ),
    "a secret twice": (
        simulator(secrets=[0, 0]).check,
        Statement("scenario.secret_twice"),
    ),
    "one secret": (
        simulator(secrets=[0]).check,
        Statement("scenario.fewer_than_two_secrets"),
    ),
    "no pairs": (
        simulator(pairs=[]).check,
        Statement("scenario.pairs_empty_or_invalid"),
    ),
    "pairs of three": (
        simulator(pairs=[(0, 1, 0)]).check,
        Statement("scenario.pairs_empty_or_invalid"),
    ),
    "pairs of no list": (simulator(pairs=3).check, Statement("scenario.pairs_invalid")),
    "a pair of another": (
        simulator(pairs=[(0, 2)]).check,
        Statement("scenario.pair_secret_unknown", secret=2),
    ),
    "a pair of itself": (
        simulator(pairs=[(1, 1)]).check,
        Statement("scenario.pair_secrets_equal", pair=(1, 1)),
    ),
    "secrets that are no keys": (
        simulator(secrets=[[0], [1]]).check,
        Statement("scenario.secrets_not_hashable_sequence"),
    ),
    # -- blocks
    "blocks of no scenario": (
        BlocksScenario("record").check,
        Statement("scenario.block_scenario_wrong_type"),
    ),
    "blocks of private rows": (
        BlocksScenario(attribute(prior="empirical")).check,
        Statement("scenario.block_prior_is_private"),
    ),
    "sizes in rows": (
        BlocksScenario(RecordScenario(), sizes=[[2]]).check,
        Statement("scenario.block_sizes_not_list"),
    ),
    "no sizes": (
        BlocksScenario(RecordScenario(), sizes=[]).check,
        Statement("scenario.block_sizes_not_list"),
    ),
    "size 0": (
        BlocksScenario(RecordScenario(), sizes=[2, 0]).check,
        Statement("parameter.count_too_small", name="sizes"),
    ),
    "blocks of no groups": (
        bound(lambda: BlocksScenario(RecordScenario())),
        Statement("blocks.groups_not_given"),
    ),
    "blocks that do not fit": (
        bound(lambda: BlocksScenario(RecordScenario(), sizes=2), n=5),
        Statement("blocks.records_not_whole_blocks", n_records=5, size=2),
    ),
    "blocks of too many": (
        bound(lambda: BlocksScenario(RecordScenario(), sizes=[2, 2]), n=5),
        Statement("blocks.sizes_sum_differs", sizes=4, n_records=5),
    ),
    "blocks that believe nothing": (
        BlocksScenario(RecordScenario(), sizes=2).explain,
        Statement("blocks.explain_without_belief"),
    ),
    # -- distances and distributions
    "distance without end": (
        DependenceScenario(distance=math.inf).check,
        Statement("dependence.distance_infinite"),
    ),
    "distance below 0": (
        DependenceScenario(distance=-1.0).check,
        Statement("parameter.is_negative", name="distance"),
    ),
    "norm below 1": (
        DependenceScenario(distance=1.0, norm=0.5).check,
        Statement("parameter.below_one", name="norm"),
    ),
    "no laws": (LawsScenario([]).check, Statement("laws.pairs_not_a_list")),
    "laws of numbers": (
        LawsScenario([(0.0, 1.0)]).check,
        Statement("laws.pairs_not_a_list"),
    ),
    "laws of three": (
        LawsScenario([(PointMass(0.0),) * 3]).check,
        Statement("laws.pairs_not_a_list"),
    ),
    "laws of no list": (
        LawsScenario(3).check,
        Statement("laws.pairs_not_a_list"),
    ),
    "laws of dimensions": (
        LawsScenario([(PointMass(0.0), PointMass([0.0, 1.0]))]).check,
        Statement("laws.dimensions_mixed", dims=[1, 2]),
    ),
    "laws of another release": (
        asked(
            lambda: LawsScenario([(PointMass(0.0), PointMass(1.0))]),
            OutputDistributions,
            query(dim=2),
        ),
        Statement(
            "laws.dimension_differs_from_release",
            n_coordinates=1,
            name="query",
            n_numbers=2,
        ),
    ),
    # -- groups
    "groups by a name": (
        GroupScenario("secret", prior="empirical").check,
        Statement("group.prior_not_public_table"),
    ),
    "groups by belief": (
        GroupScenario("secret", prior=BoundedOdds(4.0)).check,
        Statement("group.prior_declared_belief"),
    ),
    "groups of one row": (
        bound(
            lambda: GroupScenario(
                "secret", prior=TABLE.iloc[[0, 1, 2]], prior_as="law", n_worlds=3
            )
        ),
        Statement("group.single_row_group", column="secret"),
    ),
    # -- listed tables
    "tables of a row": (
        JointTableScenario([0, 1], [0.5, 0.5]).check,
        Statement("joint.tables_shape_invalid"),
    ),
    "tables of another size": (
        bound(lambda: JointTableScenario(PAIR, [0.5, 0.5]), n=3),
        Statement("joint.record_count_differs", n=2, n_records=3),
    ),
    "tables that are alike": (
        bound(lambda: JointTableScenario(PAIR, [1.0, 0.0])),
        Statement("joint.no_pair_possible"),
    ),
    "a record of none": (
        bound(lambda: JointTableScenario(PAIR, [0.5, 0.5], protected=[2])),
        Statement("scenario.protected_out_of_range", most=1),
    ),
    "a record below 0": (
        bound(lambda: JointTableScenario(PAIR, [0.5, 0.5], protected=[-1])),
        Statement("scenario.protected_out_of_range"),
    ),
    # -- simulators
    "no function": (
        simulator(draw=3).check,
        Statement("simulation.parameter_not_callable", name="draw"),
    ),
    "no function of pairs": (
        simulator(draw_pair=3).check,
        Statement("simulation.parameter_not_callable", name="draw_pair"),
    ),
    "one draw": (
        simulator(n_draws=1).check,
        Statement("parameter.count_too_small", name="n_draws"),
    ),
    "confidence without pairs": (
        simulator(confidence=0.9).check,
        Statement("simulation.confidence_needs_draw_pair"),
    ),
    "a number for a table": (
        asked(lambda: simulator(draw=lambda s, rng: 3.0), OutputSamples),
        Statement("simulation.draw_not_a_table", x_type="float"),
    ),
    "a table of another size": (
        asked(lambda: simulator(draw=lambda s, rng: np.ones((3, 1))), OutputSamples),
        Statement("simulation.record_count_differs", n=3, n_records=2),
    ),
    "one table for two": (
        asked(
            lambda: simulator(draw_pair=lambda a, b, rng: (np.ones((2, 1)),)),
            CoupledSamples,
        ),
        Statement("simulation.draw_pair_not_two_tables"),
    ),
    "outputs without end": (
        asked(simulator, OutputSamples, query(query=lambda X, y: np.array([math.inf]))),
        Statement("scenario.release_not_finite"),
    ),
    "outputs of several lengths": (
        asked(simulator, OutputSamples, query(query=lambda X, y: np.ones(2))),
        Statement("simulation.release_length_varies"),
    ),
    # -- attributes
    "a list for a column": (
        AttributeScenario(["secret"], level="record", prior=TABLE).check,
        Statement("attribute.several_secret_columns"),
    ),
    "a list for a target": (
        attribute(target=["value"]).check,
        Statement("attribute.target_not_one_column"),
    ),
    "no such column": (
        AttributeScenario("sex", level="record", prior=TABLE).check,
        Statement("prior.column_missing", which="column", name="sex"),
    ),
    "no such target": (
        attribute(target="sex").check,
        Statement("prior.column_missing", which="target", name="sex"),
    ),
    "several columns": (
        AttributeScenario(("secret", "value"), level="record", prior=TABLE).check,
        Statement("attribute.several_secret_columns"),
    ),
    "belief and table": (
        attribute(prior=[BoundedOdds(4.0), TABLE]).check,
        Statement("prior.beliefs_and_tables_mixed"),
    ),
    "belief about a place": (
        believed(column=-1).check,
        Statement("attribute.column_not_name_or_position"),
    ),
    "belief about a truth": (
        believed(column=True).check,
        Statement("attribute.column_not_name_or_position"),
    ),
    "belief with rows": (
        believed(prior_as="law").check,
        Statement("prior.parameter_needs_table", name="prior_as"),
    ),
    "belief with a target": (
        believed(target="value").check,
        Statement("prior.parameter_needs_table", name="target"),
    ),
    "no prior": (attribute(prior=[]).check, Statement("prior.empty_list")),
    "prior of nothing": (
        attribute(prior=[None]).check,
        Statement("prior.is_none"),
    ),
    "a table is not explained": (
        attribute().explain,
        Statement("attribute.explain_needs_declared_belief"),
    ),
    "a column among unnamed ones": (
        bound(believed, n_features=3),
        Statement("attribute.data_without_column_names", column="secret"),
    ),
    "the target for a secret": (
        bound(believed, feature_names=("value",), target_name="secret"),
        Statement("attribute.secret_is_target", column="secret"),
    ),
    "a place among named ones": (
        bound(lambda: believed(column=0), feature_names=("value",)),
        Statement("attribute.position_for_named_data", column=0),
    ),
    "a secret that is encoded": (
        bound(believed, feature_names=("Secret", "value")),
        Statement("attribute.secret_encoded_columns", column="secret"),
    ),
    "private rows without a fit": (
        bound(lambda: attribute(prior="empirical")),
        Statement("attribute.empirical_prior_outside_fit"),
    ),
    "a prior of few rows": (
        asked(
            lambda: attribute(prior_as="confidence", confidence=1 - 1e-9),
            OutputDistributions,
            query(contribution=lambda X, y: np.asarray(X, float), is_sum=True),
        ),
        Statement("attribute.prior_confidence_vacuous", confidence=0.999999999),
    ),
    # -- networks
    "no such node": (
        network(protected=["third"]),
        Statement("network.protected_not_a_node", name="third"),
    ),
    "moves of records": (
        network(moves={"one": 1.0, "other": 1.0}),
        Statement("network.moves_at_record_level"),
    ),
    "moves of one node": (
        network(level="attribute", moves={"one": 1.0}),
        Statement("network.moves_not_one_per_node"),
    ),
    "moves without end": (
        network(level="attribute", moves={"one": 1.0, "other": math.inf}),
        Statement("network.moves_not_finite"),
    ),
    "protected of no list": (
        network(protected=3),
        Statement("network.protected_not_a_list"),
    ),
    "protected of lists": (
        network(protected=[["one"]]),
        Statement("network.protected_not_a_list"),
    ),
    "parents of no dict": (
        network(parents=["one"]),
        Statement("network.parents_not_a_dict"),
    ),
    "no parents": (network(parents={}), Statement("network.parents_not_a_dict")),
    "parents of a number": (
        network(parents={"one": 3, "other": ()}),
        Statement("network.parents_not_a_sequence", name="one", parents=3),
    ),
    "a stranger for a parent": (
        network(parents={"one": ("third",), "other": ()}),
        Statement("network.parents_repeated_or_self", name="one"),
    ),
    "a parent twice": (
        network(parents={"one": (), "other": ("one", "one")}),
        Statement("network.parents_repeated_or_self", name="other"),
    ),
    "its own parent": (
        network(parents={"one": (), "other": ("other",)}),
        Statement("network.parents_repeated_or_self", name="other"),
    ),
    "parents in a circle": (
        network(parents={"one": ("other",), "other": ("one",)}),
        Statement("network.parents_cyclic"),
    ),
    "no tables": (network(tables=[]), Statement("network.tables_empty")),
    "a table for one node": (
        network(tables={"one": [0.5, 0.5]}),
        Statement("network.tables_not_one_per_node"),
    ),
    "a table of another shape": (
        network(tables=TABLES | {"other": [0.5, 0.5]}),
        Statement("network.table_shape_invalid", shape=(2, 2), name="other"),
    ),
    "a table that is no law": (
        network(tables=TABLES | {"one": [0.5, 0.6]}),
        Statement("network.node_table_invalid", name="one"),
    ),
    "very many outcomes": (
        network(
            parents={at: () for at in range(33)},
            tables={at: [0.5, 0.5] for at in range(33)},
        ),
        Statement("network.too_many_outcomes"),
    ),
    "nodes of another table": (
        bound(lambda: BayesianNetworkScenario(PARENTS, TABLES), n=3),
        Statement("network.nodes_differ_from_records", n_names=2, n_records=3),
    ),
    # -- Gaussian records
    "records that are alike": (
        GaussianScenario(
            covariance=EYE, secret=[0], domain=(0, 1), protected=[0]
        ).check,
        Statement("gaussian.protected_needs_record_covariance"),
    ),
    "records of one secret": (
        GaussianScenario(
            covariance=EYE, covariance_of="records", level="dataset", domain=(0, 1)
        ).check,
        Statement("gaussian.dataset_level_needs_column_covariance"),
    ),
    "no covariance": (
        GaussianScenario(secret=[0], domain=(0, 1)).check,
        Statement("gaussian.covariance_missing"),
    ),
    "a mean of another size": (
        GaussianScenario([0.0], EYE, secret=[0], domain=(0, 1)).check,
        Statement("gaussian.mean_invalid", size=2, shape=(1,)),
    ),
    "a text for names": (
        GaussianScenario(
            covariance=EYE, secret=["a"], domain=(0, 1), columns="ab"
        ).check,
        Statement("gaussian.columns_not_names"),
    ),
    "no secret": (
        GaussianScenario(covariance=EYE, domain=(0, 1)).check,
        Statement("gaussian.secret_missing"),
    ),
    "names for others": (
        GaussianScenario(
            covariance=EYE, secret=["a"], domain=(0, 1), columns=["a", "b", "c"]
        ).check,
        Statement("gaussian.column_names_count_differs", n_names=3, n_columns=2),
    ),
    "a secret of no column": (
        GaussianScenario(covariance=EYE, secret=[2], domain=(0, 1)).check,
        Statement("gaussian.secret_unknown", name=2),
    ),
    "a secret twice over": (
        GaussianScenario(covariance=EYE, secret=[0, 0], domain=(0, 1)).check,
        Statement("gaussian.secret_repeated"),
    ),
    "no secrets": (
        GaussianScenario(covariance=EYE, secret=[], domain=(0, 1)).check,
        Statement("gaussian.secret_repeated"),
    ),
    "no domain": (
        GaussianScenario(covariance=EYE, secret=[0]).check,
        Statement("gaussian.domain_missing"),
    ),
    "a ball of no radius": (
        GaussianScenario(covariance=EYE, secret=[0], domain=0.0, shape="ball").check,
        Statement("gaussian.ball_radius_not_positive"),
    ),
    "an empty box": (
        GaussianScenario(covariance=EYE, secret=[0], domain=(1, 1)).check,
        Statement("gaussian.box_bounds_invalid"),
    ),
    "a box of many corners": (
        GaussianScenario(
            covariance=np.eye(40), secret=list(range(40)), domain=(0, 1)
        ).check,
        Statement("gaussian.box_too_many_corners", n_secret=40),
    ),
    "records of another number": (
        bound(
            lambda: GaussianScenario(
                covariance=np.eye(3), covariance_of="records", domain=(0, 1)
            ),
            n=2,
        ),
        Statement("gaussian.covariance_not_whole_columns", size=3),
    ),
    # -- diffusions
    "times that stand still": (
        DiffusionScenario(1.0, times=[1.0, 1.0], diameter=1.0).check,
        Statement("diffusion.times_not_increasing"),
    ),
    "times below 0": (
        DiffusionScenario(1.0, times=[-1.0, 1.0], diameter=1.0).check,
        Statement("diffusion.times_not_increasing"),
    ),
    "no times": (
        DiffusionScenario(1.0, times=[], diameter=1.0).check,
        Statement("diffusion.times_not_increasing"),
    ),
    "times of another table": (
        bound(lambda: DiffusionScenario(1.0, times=[1.0, 2.0], diameter=1.0), n=3),
        Statement("diffusion.times_differ_from_records", n_times=2, n_records=3),
    ),
    "a query of another form": (
        lambda: DiffusionScenario(1.0, times=[1.0, 2.0], diameter=1.0).query_shift(
            1.0, form="mean"
        ),
        Statement("parameter.option_unknown", name="form"),
    ),
    # -- chains
    "a transition that is no square": (
        chain([[0.5, 0.5]]),
        Statement("markov.transition_not_square"),
    ),
    "a transition that is no law": (
        chain([[0.9, 0.2], [0.2, 0.8]]),
        Statement("markov.transition_row_invalid"),
    ),
    "no first record": (
        chain(CHAIN, None),
        Statement("markov.initial_missing"),
    ),
    "first records of others": (
        chain(CHAIN, [[0.5, 0.5], [0.4, 0.6]]),
        Statement("markov.initial_count_differs", n_listed=2, n_chains=1),
    ),
    "a first record that is no law": (
        chain(CHAIN, [0.5, 0.6]),
        Statement("markov.initial_invalid", n_states=2),
    ),
    "states of another number": (
        chain(states=[0.0, 1.0, 2.0]),
        Statement("markov.states_shape_invalid", k=2),
    ),
    "a state twice": (chain(states=[1.0, 1.0]), Statement("markov.states_repeated")),
    # -- prevalences
    "a rate above 1": (
        PrevalenceScenario(None, 0.1, 1.5).check,
        Statement("prevalence.rate_out_of_range", name="high"),
    ),
    "a list for the column of a prevalence": (
        PrevalenceScenario(["a"], 1, 2).check,
        Statement("prevalence.column_invalid"),
    ),
    "a list for a value": (
        PrevalenceScenario(None, 1, 2, value=[1]).check,
        Statement("prevalence.value_not_comparable"),
    ),
    "more than all": (
        bound(lambda: PrevalenceScenario(None, 1, 3), n=2),
        Statement("prevalence.count_exceeds_records", high=3, n=2),
    ),
    "a rate and a count": (
        PrevalenceScenario(None, 1, 0.5).check,
        Statement("prevalence.ends_kinds_mixed"),
    ),
    "worlds that change places": (
        PrevalenceScenario(None, 2, 1).check,
        Statement("prevalence.high_not_above_low"),
    ),
    "worlds that coincide": (
        PrevalenceScenario(None, 1, 1).check,
        Statement("prevalence.high_not_above_low"),
    ),
    "a law of counts": (
        PrevalenceScenario(None, 1, 2, law="binomial").check,
        Statement("prevalence.binomial_needs_rates"),
    ),
    "rates of one count": (
        bound(lambda: PrevalenceScenario(None, 0.5, 0.51), n=10),
        Statement("prevalence.counts_coincide", n=10, count=5),
    ),
    "a label of no target": (
        bound(lambda: PrevalenceScenario("a", 1, 2, relation="relabel"), n=4),
        Statement("prevalence.relabel_needs_target", column="a"),
    ),
    "worlds of three values": (
        lambda: PrevalenceScenario(None, 1, 2).worlds(np.zeros((4, 1)), [0, 1, 2, 0]),
        Statement("prevalence.value_not_named", n_labels=3),
    ),
    # -- public rows and declared odds
    "odds without end": (
        believed(prior=BoundedOdds(1e13)).check,
        Statement("odds.range_too_large"),
    ),
    "odds of one": (
        believed(prior=BoundedOdds(1.0)).check,
        Statement("odds.range_is_one"),
    ),
    "odds below one": (
        believed(prior=BoundedOdds(0.5)).check,
        Statement("parameter.below_one", name="w"),
    ),
    "a share of one": (
        believed(prior=BoundedOdds(2.0, share=1.0)).check,
        Statement("parameter.share_out_of_range", name="share"),
    ),
    "no better than chance": (
        believed(prior=BoundedInference(auc=0.5)).check,
        Statement("odds.auc_not_above_half", auc=0.5),
    ),
    "rest of a number": (
        believed(prior=BinnedLaw(TABLE, {"value": 2}, rest=2.0)).check,
        Statement("odds.rest_not_bounded_odds"),
    ),
    "rest without end": (
        believed(prior=BinnedLaw(TABLE, {"value": 2}, rest=BoundedOdds(1e13))).check,
        Statement("odds.rest_range_or_share"),
    ),
    "rest with a share": (
        believed(
            prior=BinnedLaw(TABLE, {"value": 2}, rest=BoundedOdds(2.0, share=0.1))
        ).check,
        Statement("odds.rest_range_or_share"),
    ),
    "bins of a number": (
        believed(prior=BinnedLaw(TABLE, 2)).check,
        Statement("prior.bins_not_dict_or_schema"),
    ),
    "rows without names": (
        believed(prior=BinnedLaw(TABLE.to_numpy(), {"value": 2})).check,
        Statement("prior.rows_without_names"),
    ),
    "rows without the secret": (
        believed(column="sex", prior=BinnedLaw(TABLE, {"value": 2})).check,
        Statement("prior.rows_lack_secret", column="sex"),
    ),
    "bins of another column": (
        believed(prior=BinnedLaw(TABLE, {"height": 2, "value": 2})).check,
        Statement("prior.bins_unknown_columns"),
    ),
    "rows of one secret": (
        believed(prior=BinnedLaw(TABLE.iloc[:2], {"value": 2})).check,
        Statement("prior.secret_one_value_only"),
    ),
    "missing rows": (
        believed(prior=BinnedLaw(TABLE.assign(value=math.nan), {"value": 2})).check,
        Statement("prior.rows_missing_values", name="value"),
    ),
    "infinite rows": (
        believed(prior=BinnedLaw(TABLE.assign(value=math.inf), {"value": 2})).check,
        Statement("prior.rows_infinite", name="value"),
    ),
    "no bins": (
        believed(prior=BinnedLaw(TABLE, {"value": 0})).check,
        Statement("prior.bins_not_one_bin"),
    ),
    "bins that descend": (
        believed(prior=BinnedLaw(TABLE, {"value": [0.6, 0.2]})).check,
        Statement("prior.bins_not_ascending_edges"),
    ),
    # -- subsets
    "a pool of three": (
        subsample((POOL, None, None), 4).check,
        Statement("subsample.pool_tuple_not_pair", n_pool=3),
    ),
    "a pool of a number": (
        subsample(3, 4).check,
        Statement("subsample.pool_not_a_table"),
    ),
    "a pool by another name": (
        subsample("mine", 4).check,
        Statement("subsample.pool_not_known_or_table"),
    ),
    "a share of all": (
        subsample(POOL, 1.0).check,
        Statement("subsample.size_share_out_of_range"),
    ),
    "groups without their secret": (
        subsample(groups=np.arange(8)).check,
        Statement("subsample.groups_without_secret_groups"),
    ),
    "secret groups of nothing": (
        subsample(secret="groups", prior="sampled").check,
        Statement("subsample.groups_missing"),
    ),
    "shares of independent draws": (
        subsample(POOL, 0.5, independent=True, stratify=True).check,
        Statement("subsample.stratify_with_independent"),
    ),
    "independent of a public pool": (
        subsample(POOL, 4, prior="sampled", independent=True).check,
        Statement("subsample.independent_with_public_pool"),
    ),
    "a design of a public pool": (
        subsample(POOL, 4, prior="design").check,
        Statement("subsample.design_with_public_pool"),
    ),
    "subsets of all": (
        bound(lambda: subsample(POOL, 8, prior="sampled"), n=8),
        Statement("subsample.size_too_large", given=8, n=8, n_pool=8),
    ),
    "too many to list": (
        bound(
            lambda: subsample(np.arange(200.0)[:, None], 100, prior="enumerated"), n=100
        ),
        Statement("subsample.too_many_subsets"),
    ),
    "targets of another number": (
        subsample((POOL, np.zeros(7)), 4, prior="sampled").check,
        Statement("subsample.pool_target_count_differs", n_records=8, n_targets=7),
    ),
    "classes of no target": (
        bound(lambda: subsample(POOL, 4, prior="sampled", stratify=True), n=4),
        Statement("subsample.stratify_without_target"),
    ),
    "a table of another subset": (
        bound(lambda: subsample(prior="sampled"), n=5),
        Statement(
            "subsample.size_differs_from_table", n_drawn=4, n_pool=8, n_records=5
        ),
    ),
    "groups of other records": (
        bound(
            lambda: subsample(secret="groups", prior="sampled", groups=np.arange(7)),
            n=4,
        ),
        Statement("subsample.groups_count_differs", n_groups=7, n_pool=8),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_by_its_reason(name):
    attempt, said = CASES[name]
    with refused((ScenarioError, ValueError, TypeError), said.code, **said.parameters):
        attempt()


def test_an_error_of_the_query_is_what_is_raised():
    with pytest.raises(ValueError, match="cannot reshape"):
        asked(simulator, OutputSamples, query(query=lambda X, y: X.reshape(7)))()


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
