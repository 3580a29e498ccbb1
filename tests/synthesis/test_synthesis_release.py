"""What leaves: sensitivities by brute force, an attack, and nothing of exact counts."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.accountants._budget_split import stage_layout
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.releases import AdaptiveRelease
from skpuffer.scenarios import RecordScenario
from skpuffer.schema import Category, Schema
from skpuffer.synthesis._plan import Plan, TableCells
from skpuffer.synthesis._structure import Budget, Structure, affordable

from ..attack import assert_tight

SHARES = (0.2, 0.1, 0.7)
RELATIONS = ("add_remove", "replace")
LEVELS = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1], "y": [0, 1]}
SCHEMA = Schema(
    {name: Category(tuple(v), missing_level=False) for name, v in LEVELS.items()}
)


def plan_of(target, linked=True):
    cells = TableCells(SCHEMA, target, 16)
    sizes = cells.n_cells
    if target is None:
        return Plan(cells, Structure(sizes, linked=linked))
    return Plan(cells, Structure(sizes[:-1], sizes[-1], linked), 3)


class Replayed:
    """A release whose noisy vectors were fixed before: it keeps the exact ones."""

    def __init__(self, release, history):
        self.stages, self.norm = release.stages, release.norm
        self.n_records, self.deviation = release.n_records, release.deviation
        self.context, self.history, self.exact = release.context, history, []

    def noisy(self, stage, exact, noise, rng):
        self.exact.append(exact)
        return self.history[stage]


def exact_stages(plan, release, noise, history, rows):
    replayed = Replayed(release, history)
    frame = pd.DataFrame(rows, columns=list(LEVELS))
    classes, cells = plan.split(plan.cells(frame))
    plan.mechanism(replayed, noise).run(classes, cells, None)
    return replayed.exact


def histories(release, plan, seeds):
    """What may have been released: noise alone, and one of sharp margins."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        yield [rng.normal(2, 3, stage.dim) for stage in release.stages]
    # all mass in the first cells, and every link worth it: here the bounds are met
    sharp = [np.zeros(stage.dim) for stage in release.stages]
    at = 0
    for n in plan.structure.n_cells:
        for _ in range(plan.structure.n_classes):
            sharp[0][at] = 40.0
            sharp[0][at + 1 : at + n] = 3.0
            at += n
    if len(sharp) > 1:
        sharp[1][:] = 1e6
    yield sharp


#: What the last record may be; a target outside of the classes counts as nothing, as a
#: record that is not there.
NOBODY = (0, 0, 0, None)
KINDS = list(product(*LEVELS.values()))
REST = [(0, 0, 0, 0), (1, 2, 1, 1), (0, 1, 1, 0)]


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("target", ["y", None])
def test_sensitivities_by_brute_force(target, relation, norm):
    plan = plan_of(target)
    release = AdaptiveRelease(
        n_records=4,
        stages=plan.structure.stages(SHARES, norm),
        relation=relation,
        norm=norm,
    )
    noise = {1.0: LaplaceNoise(0.1), 2.0: GaussianNoise(0.1)}[norm]
    most = np.zeros(3)
    for history in histories(release, plan, 1):
        found = [
            exact_stages(plan, release, noise, history, [*REST, last]) for last in KINDS
        ]
        nobody = [*REST, NOBODY] if target else REST
        others = found
        if relation == "add_remove":
            others = [exact_stages(plan, release, noise, history, nobody)]
        for one, two in product(found, others):
            moves = [np.linalg.norm(a - b, norm) for a, b in zip(one, two, strict=True)]
            most = np.maximum(most, moves)
    stated = [s.sensitivity.value(relation, norm, s.dim) for s in release.stages]
    assert np.all(most <= np.array(stated) * (1 + 1e-12))
    # the bounds are attained
    np.testing.assert_allclose(most, stated, rtol=1e-9)


@pytest.mark.parametrize("n_columns", [1, 2, 5])
def test_sensitivities_by_hand(n_columns):
    v, pairs = n_columns, n_columns * (n_columns - 1) // 2
    stages = Structure((3,) * v, 2).stages(SHARES, 2.0)
    assert len(stages) == (3 if pairs else 1)
    assert sum(stage.share for stage in stages) == pytest.approx(1)
    expected = [(v, 2 * v, v**0.5, (2 * v) ** 0.5)]
    expected += [(pairs, 2 * pairs, pairs**0.5, 2 * pairs**0.5)]
    expected += expected[:1]
    for stage, bounds in zip(stages, expected, strict=False):
        found = [
            stage.sensitivity.value(relation, norm, stage.dim)
            for norm in (1, 2)
            for relation in RELATIONS
        ]
        assert found == pytest.approx(bounds)


def test_scores_are_read_against_what_was_released():
    """Against the exact margins one record would move a score by more."""
    plan = plan_of(None)
    release = AdaptiveRelease(n_records=4, stages=plan.structure.stages(SHARES, 2.0))
    rows = [(0, 0, 0, 0), (1, 2, 1, 1), (0, 1, 1, 0), (1, 0, 1, 0)]
    first, second = (
        exact_stages(plan, release, GaussianNoise(0.1), history, rows)
        for history in list(histories(release, plan, 2))[:2]
    )
    np.testing.assert_array_equal(first[0], second[0])
    assert not np.allclose(first[1], second[1])


def test_what_is_read_is_a_function_of_what_was_released():
    plan = plan_of("y")
    release = AdaptiveRelease(n_records=400, stages=plan.structure.stages(SHARES, 2.0))
    rng = np.random.default_rng(0)
    noise = GaussianNoise(0.5)
    frame = pd.DataFrame(
        {name: rng.choice(levels, 400) for name, levels in LEVELS.items()}
    ).assign(b=lambda d: 2 * d["a"])
    classes, cells = plan.split(plan.cells(frame))
    mechanism = plan.mechanism(release, noise)
    released = mechanism.run(classes, cells, rng)
    assert released.shape == (release.dim,)
    model = mechanism.read(released)
    again = plan.mechanism(release, noise).read(released.copy())
    assert model.edges == again.edges
    assert (0, 1) in model.edges
    for one, two in zip(model.tables, again.tables, strict=True):
        np.testing.assert_array_equal(one, two)
    assert model.masses.sum() == pytest.approx(400)
    # whatever order: margins of every table are those of the columns
    for (i, j), table in zip(model.edges, model.tables, strict=True):
        np.testing.assert_allclose(table.sum(axis=1), model._group_margins[j])
        np.testing.assert_allclose(table.sum(axis=2), model._group_margins[i])


def test_a_level_that_nobody_has_may_come():
    """No level is dropped by exact counts: an empty one has noise like the others."""
    plan = plan_of(None, linked=False)
    release = AdaptiveRelease(n_records=50, stages=plan.structure.stages(SHARES, 2.0))
    frame = pd.DataFrame({name: [0] * 50 for name in LEVELS})
    mechanism = plan.mechanism(release, GaussianNoise(2.0))
    some = np.zeros(3)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = mechanism.read(mechanism.run(*plan.split(plan.cells(frame)), rng))
        some += model.margins[1][0] > 0
    assert np.all(some >= 3)


# -- what the noise allows -----------------------------------------------------------


def test_structures_by_hand():
    wishes = [Structure((10, 20), 4), Structure((10, 20, 4))]
    # root of the cells of a mean margin * sqrt(columns) * sd / n
    budget = Budget(1.0, "add_remove", 2.0)
    assert wishes[0].noise_share(100, budget) == pytest.approx(
        (40**0.5 + 80**0.5) / 2 * 2**0.5 / 100
    )
    assert wishes[1].noise_share(100, budget) == pytest.approx(
        (10**0.5 + 20**0.5 + 2) / 3 * 3**0.5 / 100
    )
    replaced = Budget(1.0, "replace", 1.0)
    assert wishes[0].noise_share(100, replaced) == pytest.approx(
        (40**0.5 + 80**0.5) / 2 * 4 / 100
    )
    assert affordable(wishes, 10_000, budget, SHARES) == wishes[0]
    assert affordable(wishes, 400, budget, SHARES) == wishes[1]
    poor = affordable(wishes, 20, budget, SHARES)
    assert poor == Structure((10, 20, 4), linked=False)
    # many pairs and Laplace noise: no score tells anything of 6000 records
    many = Structure((2,) * 40)
    laplace = Budget(1.0, "replace", 1.0)
    assert many.score_noise(6000, laplace, SHARES) == pytest.approx(2 * 780 / 600)
    assert many.noise_share(6000, laplace) == pytest.approx(2**0.5 * 80 / 6000)
    assert not affordable([many], 6000, laplace, SHARES).linked
    # all goes to the margins then
    (stage,) = poor.stages(SHARES, 2.0)
    assert (stage.share, stage.dim) == (1.0, 34)


def test_one_column_and_one_beside_a_target():
    one = TableCells(Schema({"a": [0, 1]}), None, 16)
    assert not Plan.within(
        one, 10_000, Budget(1, "add_remove", 2.0), SHARES
    ).structure.n_pairs
    both = TableCells(Schema({"a": [0, 1], "y": [0, 1]}), "y", 16)
    plan = Plan.within(both, 10_000, Budget(1, "add_remove", 2.0), SHARES)
    assert (plan.kind, plan.structure.n_pairs) == ("classes", 0)


# -- an attack -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "relation, accountant, columns",
    [
        pytest.param(
            relation,
            PrivacyLoss(1.5, 0.05),
            list(LEVELS),
            id=relation,
            marks=pytest.mark.slow,
        )
        for relation in RELATIONS
    ]
    # a sum of many Laplace losses comes near its bound too rarely to be caught
    + [
        pytest.param(
            "replace",
            GroupPrivacy(1.5, alpha=np.inf, noise="laplace"),
            ["a"],
            id="pure",
        )
    ],
)
def test_the_best_attacker_gets_what_is_promised_and_no_more(
    relation, accountant, columns, n_trials
):
    """He knows all records but one, and both ways in which each stage was computed."""
    scenario = RecordScenario(relation=relation)
    layout = stage_layout(accountant, scenario)
    plan = plan_of("y")
    if columns == ["a"]:
        one = TableCells(SCHEMA.select(columns), None, 16)
        plan = Plan(one, Structure((2,)))
    stages = plan.structure.stages(SHARES, layout.norm)
    release = AdaptiveRelease(n_records=4, stages=stages, **layout._asdict())
    found = accountant.calibrate(release, scenario)
    rest = [(0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0)]
    other = NOBODY if relation == "add_remove" else (0, 0, 0, 0)
    tables = [
        plan.split(plan.cells(pd.DataFrame(rows, columns=list(LEVELS))))
        for rows in ([*rest, (1, 2, 1, 1)], [*rest, other])
    ]

    def ratio(noise, history):
        """Log-likelihood ratio of the tables: stage by stage, given those before."""
        exact = []
        for classes, cells in tables:
            replayed = Replayed(release, history)
            plan.mechanism(replayed, noise).run(classes, cells, None)
            exact.append(replayed.exact)
        total = 0.0
        for stage, (out, *both) in enumerate(zip(history, *exact, strict=True)):
            scale = release.unit(stage) * float(noise.scale)
            power = layout.norm
            first, second = (np.sum((np.abs(out - e) / scale) ** power) for e in both)
            total += (second - first) / power
        return total

    def worlds(noise):
        def draw(table):
            def drawn(n, rng):
                mechanism = plan.mechanism(release, noise)
                ends = np.cumsum([stage.dim for stage in stages])[:-1]
                outputs = (mechanism.run(*table, rng) for _ in range(n))
                return [[ratio(noise, np.split(out, ends))] for out in outputs]

            return drawn

        return [draw(table) for table in tables]

    assert_tight(
        found.certificate,
        found.noise,
        worlds,
        seed=1,
        n_draws=n_trials(4000, least=4000),
        score=lambda noise: lambda outputs: outputs[:, 0],
    )


def test_fewer_tables_are_scaled_to_the_same_sensitivity():
    structure = plan_of("y").structure
    assert structure.table_scale(3, 2.0) == 1.0
    assert structure.table_scale(2, 1.0) == 1.5
    assert structure.table_scale(2, 2.0) == pytest.approx(1.5**0.5)
