"""By how much each number may differ, what is a lie, and what stays open: rule by rule.

The certificates are written by hand, of numbers that are known in closed form, so that
nothing here is made by what the check is to judge.
"""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from skpuffer.accountants import PrivacyLoss
from skpuffer.certificate import Finding, Report, State, check, schema
from skpuffer.certificate._curves import recomputed
from skpuffer.certificate._rules import _compared, findings_of
from skpuffer.certificate._structure import check_structure
from skpuffer.summary import PrivateQuantile

FIELDS = dict.fromkeys(schema()["properties"])


def shift(radius=1.0, **options):
    usual = {"norm": 2.0, "dim": 1, "structure": "vector", "weights": None}
    return {"kind": "shift", "radius": radius, **usual, **options}


def shifted(scale=1.0, radius=1.0, family="gaussian", **options):
    noise = {"family": family, "scale": scale}
    return {"kind": "shifted_noise", "noise": noise, "shift": shift(radius, **options)}


def gaussian(mu):
    return {"kind": "gaussian", "mu": mu}


def pair(curve, kind="symmetric_pair", **fields):
    return {"kind": kind, "curve": curve, **fields}


def losses(*steps):
    return {
        "kind": "privacy_loss",
        "steps": [list(step) for step in steps],
        "max_memory": 500.0,
    }


def stated(curve, **fields):
    """All of a certificate about tables, of which a record is replaced."""
    usual = {
        "schema": "skpuffer.certificate",
        "version": 5,
        "notion": "approximate_dp",
        "relation": "replace",
        "coupling_id": "replace:2",
        "coupling_count": 2,
        "composable": True,
        "seeded": False,
        "confidence": 1.0,
        "delta": 0.0,
        "event_delta": 0.0,
        "rpp_epsilon": "inf",
        "assumptions": [],
        "columns": None,
        "n_records": 10,
        "n_releases": 1,
        "source": "",
        "scenario": "",
        "accountant": "",
        "choice": "",
        "errors": [],
        "release": "",
        "digest": "sha256:" + 64 * "0",
        "curve": curve,
    }
    return FIELDS | usual | fields


def at_order(curve, alpha, epsilon, **fields):
    usual = {"notion": "renyi_dp", "alpha": alpha, "epsilon": epsilon}
    return stated(curve, **usual | {"rpp_epsilon": epsilon} | fields)


def of_priors(curve, **fields):
    usual = {
        "notion": "approximate_pufferfish",
        "relation": None,
        "coupling_id": None,
        "coupling_count": None,
        "composable": False,
    }
    return stated(curve, **usual | fields)


def normal_delta(mu, epsilon):
    """Balle and Wang (2018), Theorem 5."""
    first = stats.norm.cdf(mu / 2 - epsilon / mu)
    second = stats.norm.cdf(-mu / 2 - epsilon / mu)
    return float(first - math.exp(epsilon) * second)


def normal_epsilon(mu, delta):
    return optimize.brentq(lambda e: normal_delta(mu, e) - delta, 0, 100, xtol=1e-14)


def order_delta(alpha, cost, epsilon):
    """Canonne, Kamath and Steinke (2020), Proposition 12."""
    grown = math.exp((alpha - 1) * (cost - epsilon))
    return grown * (1 - 1 / alpha) ** alpha / (alpha - 1)


def order_epsilon(alpha, cost, delta):
    return cost + math.log(order_delta(alpha, 0.0, 0.0) / delta) / (alpha - 1)


def slices(kind="averaged_sliced_renyi_pufferfish", **fields):
    return {"notion": kind, "confidence": 0.9, "profile": "uniform:2"} | fields


D1 = normal_delta(1.0, 1.0)
TABLE = {"kind": "renyi", "orders": [2.0, 8.0], "epsilons": [0.1, 0.4]}
MEAN = {"kind": "mean_square_of_slices", "vector": shifted(2.0), "square": 0.2}
SPHERE = {"kind": "shift_over_sphere", "vector": shifted(2.0), "square": 0.25, "dim": 1}
SAMPLED = {
    "kind": "sampled_joint_slices",
    "vector": shifted(2.0),
    "squares": [[0.2, 0.1]],
    "weights": [0.5, 0.5],
    "most": [0.25],
    "shortfall": math.sqrt(math.log(4 / 0.1) / 4),
}
ELLIPSOID = {
    "kind": "ellipsoid",
    "noise": {
        "family": "correlated_gaussian",
        "scale": 2.0,
        "covariance": [[4.0, 0.0], [0.0, 1.0]],
    },
    "shift": shift(3.0, dim=2),
    "mu": 1.5,
    "room": 0.0,
}
COUPLING = {
    "kind": "coupling",
    "noise": {"family": "gaussian", "scale": 1.0},
    "shift": shift(2.0),
    "couplings": [
        {"kind": "atom_moves", "radii": [0.0, 2.0], "masses": [0.5, 0.5], "steps": None}
    ],
    "event_delta": 0.0,
    "mass_error": 0.0,
}
# moves that are N(0.5, 0.2): the mean of exp(a (z / 2)²) in closed form
NORMALS = COUPLING | {
    "noise": {"family": "gaussian", "scale": 2.0},
    "shift": shift("inf"),
    "couplings": [{"kind": "gaussian_moves", "mean": [0.5], "covariance": [[0.2]]}],
}
_LEFT = 1 - 2 * 3 * 0.2 / 4
NORMALS_AT_3 = (3 * 0.25 / 4 / _LEFT - math.log(_LEFT) / 2) / 2
ODDS = {"kind": "odds_overlap", "odds": 4.0, "share": 0.0}


def under_belief(curve, overlap=ODDS, kind="overlap"):
    return {"kind": kind, "curve": curve, "overlap": overlap, "wider": []}


def odds_left(odds, epsilon):
    """Largest of w q / (1 + (w - 1) q) - e^ε q over q, by its own search."""
    found = optimize.minimize_scalar(
        lambda q: math.exp(epsilon) * q - odds * q / (1 + (odds - 1) * q),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return -float(found.fun)


def believed_delta(mu, odds, epsilon):
    eta = odds_left(odds, epsilon)
    return eta * normal_delta(mu, math.log1p(math.expm1(epsilon) / eta))


_B = believed_delta(2.0, 4.0, 0.5)
_GAIN = 2.0 / optimize.brentq(lambda mu: normal_delta(mu, 0.5) - _B, 0.1, 5, xtol=1e-14)
BELIEVED = of_priors(
    under_belief(shifted(0.5)), epsilon=0.5, delta=_B, gain=_GAIN, noise_gain=_GAIN
)
_EVENTS = [[pair(shifted(2.0)), 4], [pair(shifted(1.0)), 2]]
ADDED = stated(
    gaussian(math.sqrt(3)),
    events=_EVENTS,
    epsilon=1.0,
    delta=normal_delta(math.sqrt(3), 1.0),
)
ROWS = at_order(
    {"kind": "renyi", "orders": [2.0, 4.0], "epsilons": [3.0, 6.0]},
    2.0,
    3.0,
    events=_EVENTS,
)
SENSITIVE = at_order(shifted(2.0, 2.0), 4.0, 2.0, sensitivity=2.0, norm=2.0)
GAINING = SENSITIVE | {"record_sensitivity": 1.0, "gain": 0.5}
COMPOSED = stated(
    losses((pair(gaussian(0.6)), 1), (pair(gaussian(0.8)), 1)), epsilon=1.0, delta=D1
)
BEST = {
    "kind": "best_run",
    "curve": gaussian(0.3),
    "runs": {"kind": "random_runs", "mean": 4.0, "shape": "inf"},
}


def _normal_moves_delta(epsilon):
    """Of a normal move, over its two scales of noise."""
    found, _ = integrate.quad(
        lambda z: (
            stats.norm.pdf(z)
            * normal_delta(abs(0.5 + math.sqrt(0.2) * z) / 2 + 1e-9, epsilon)
        ),
        -12,
        12,
        points=[-0.5 / math.sqrt(0.2), 0.0],
        epsabs=1e-14,
    )
    return found


#: Honest certificates by name, whose numbers follow from one another.
HONEST = {
    "delta": stated(gaussian(1.0), epsilon=1.0, delta=D1),
    "order": at_order(gaussian(1.0), 4.0, 2.0),
    "added": at_order(
        shifted(),
        4.0,
        2.0,
        rpp_epsilon=8.0,
        relation="add_remove",
        coupling_id="add_remove:1",
        coupling_count=1,
    ),
    "pure": at_order(shifted(2.0, family="laplace"), "inf", 0.5, notion="pure_dp"),
    "event": of_priors(
        gaussian(1.0), epsilon=1.0, delta=0.1 + 0.9 * D1, event_delta=0.1
    ),
    "event taken off": of_priors(
        gaussian(1.0), epsilon=1.0, delta=0.1 + D1, event_delta=0.1
    ),
    "table": stated(TABLE, epsilon=order_epsilon(8.0, 0.4, 1e-3), delta=1e-3),
    "table at an order": at_order(TABLE, 3.0, 0.4),
    "composed": COMPOSED,
    "events": ADDED,
    "rows of events": ROWS,
    "sensitivity": SENSITIVE,
    "gain": GAINING,
    "belief": BELIEVED,
    "worst": stated(
        {"kind": "worst_curve", "curves": [gaussian(1.0), TABLE]},
        epsilon=1.0,
        delta=D1,
    ),
    "coupling": of_priors(COUPLING, epsilon=1.0, delta=0.5 * normal_delta(2.0, 1.0)),
    "normal moves": of_priors(
        NORMALS,
        notion="renyi_pufferfish",
        alpha=3.0,
        epsilon=NORMALS_AT_3,
        rpp_epsilon=NORMALS_AT_3,
    ),
    "normal moves at a delta": of_priors(
        NORMALS, epsilon=0.4, delta=_normal_moves_delta(0.4)
    ),
    "counts": of_priors(
        {
            "kind": "count_law",
            "curves": [gaussian(1.0), gaussian(2.0)],
            "weights": [0.6, 0.3],
            "beyond": 0.1,
        },
        epsilon=1.0,
        delta=0.1 + 0.6 * D1 + 0.3 * normal_delta(2.0, 1.0),
    ),
    "mean of slices": of_priors(
        MEAN, alpha=4.0, epsilon=0.4, rpp_epsilon=0.5, **slices(confidence=1.0)
    ),
    "sphere": of_priors(
        SPHERE,
        alpha=4.0,
        epsilon=0.5,
        rpp_epsilon=0.5,
        **slices("joint_sliced_renyi_pufferfish"),
    ),
    "sampled slices": of_priors(
        SAMPLED,
        alpha=2.0,
        epsilon=0.25,
        rpp_epsilon=0.25,
        **slices("joint_sliced_renyi_pufferfish"),
    ),
    "ellipsoid": of_priors(
        ELLIPSOID, notion="renyi_pufferfish", alpha=4.0, epsilon=4.5, rpp_epsilon=4.5
    ),
    "at most": stated(gaussian(1.0), epsilon=1.0, delta=D1, epsilon_lower=1.0),
    "replaced in batches": stated(
        losses((pair(shifted(), "replace_poisson_pair", rate=1.0), 1)),
        epsilon=1.0,
        delta=normal_delta(2.0, 1.0),
    ),
    # what asks for no epsilon may leave some of its delta
    "no epsilon": stated(gaussian(0.1), epsilon=0.0, delta=0.5),
    "no delta": stated(shifted(2.0, family="laplace"), epsilon=0.5),
    "an event and no more": of_priors(
        shifted(2.0, family="laplace"), epsilon=0.5, delta=0.1, event_delta=0.1
    ),
    "estimate": stated(
        None, notion="estimated", epsilon=1.0, delta=D1, composable=False
    ),
    "information": stated(
        None, notion="mutual_information", mutual_information=0.1, table_information=0.2
    ),
}


def wrong_in(plain):
    return {f.field: f for f in findings_of(plain) if f.state == State.DOES_NOT_FOLLOW}


def with_value(plain, path, value):
    """A copy with another value at a path of keys."""
    if not path:
        return value
    key, *rest = path
    new = list(plain) if isinstance(plain, list) else dict(plain)
    new[key] = with_value(plain[key], rest, value)
    return new


@pytest.mark.parametrize("name", HONEST)
def test_what_is_honest_passes(name):
    check_structure(HONEST[name])
    assert not wrong_in(HONEST[name])


@pytest.mark.parametrize("name", sorted(set(HONEST) - {"estimate", "information"}))
def test_the_number_of_the_promise_is_recomputed(name):
    report = Report(tuple(findings_of(HONEST[name])), "")
    assert report.is_promise_recomputed


GRID, ASKED, EXACT = 1e-3, 2e-3, 1e-6


@pytest.mark.parametrize(
    "name, path, below, above",
    [
        # what is exact is met exactly; a search for the noise may leave a little of it
        ("delta", "epsilon", EXACT, ASKED),
        ("delta", "delta", 10 * EXACT, 1e-2),
        ("order", "epsilon", EXACT, EXACT),
        ("order", "rpp_epsilon", EXACT, EXACT),
        ("pure", "epsilon", EXACT, EXACT),
        ("table", "epsilon", GRID, ASKED),
        ("table", "delta", GRID, 1e-2),
        ("table at an order", "epsilon", EXACT, EXACT),
        ("composed", "epsilon", GRID, ASKED),
        ("composed", "delta", GRID, 1e-2),
        ("worst", "epsilon", GRID, ASKED),
        ("coupling", "epsilon", EXACT, ASKED),
        ("coupling", "delta", 10 * EXACT, 1e-2),
        ("normal moves", "epsilon", EXACT, EXACT),
        ("normal moves at a delta", "epsilon", 5e-4, ASKED),
        ("belief", "epsilon", 1e-5, ASKED),
        ("belief", "delta", 1e-4, 1e-2),
        ("belief", "gain", EXACT, EXACT),
        ("gain", "gain", EXACT, EXACT),
        ("events", "curve.mu", EXACT, EXACT),
        ("rows of events", "curve.epsilons.0", GRID, 2e-2),
        ("rows of events", "curve.epsilons.1", GRID, 2e-2),
        ("sensitivity", "sensitivity", 1e-9, 1e-9),
        ("counts", "epsilon", EXACT, ASKED),
        ("sphere", "curve.square", EXACT, EXACT),
        ("mean of slices", "rpp_epsilon", EXACT, EXACT),
        ("at most", "epsilon_lower", None, EXACT),
        ("sampled slices", "curve.shortfall", EXACT, None),
        ("ellipsoid", "curve.mu", None, EXACT),
    ],
)
def test_a_number_may_differ_by_so_much_and_no_more(name, path, below, above):
    keys = [int(k) if k.isdigit() else k for k in path.split(".")]
    field = path[:-2] + f"[{keys[-1]}]" if isinstance(keys[-1], int) else path
    value = HONEST[name]
    for key in keys:
        value = value[key]
    # where there is no bound, the half or the double will do
    factors = {0.5: False} if below is None else {1 - 0.9 * below: False}
    factors |= {2.0: False} if above is None else {1 + 0.9 * above: False}
    factors |= {} if below is None else {1 - 1.1 * below: True}
    factors |= {} if above is None else {1 + 1.1 * above: True}
    for factor, is_wrong in factors.items():
        changed = with_value(HONEST[name], keys, value * factor)
        assert (field in wrong_in(changed)) == is_wrong, factor


@pytest.mark.parametrize("alpha", [None, 4.0])
def test_the_best_of_runs_may_cost_a_little_more_than_is_read_off(alpha):
    """Where one run is read at fewer points; and not less than by more of them."""
    made = recomputed(BEST)
    if alpha is None:
        found = made.epsilon(1e-4, 1.0)
        plain, below = stated(BEST, epsilon=found, delta=1e-4), GRID
    else:
        found = made.renyi(alpha)
        plain, below = at_order(BEST, alpha, found), EXACT
    for factor, is_wrong in (
        (1 - 1.1 * below, True),
        (1 - 0.9 * below, False),
        (1 + 4.9e-3, False),
        (1 + 5.1e-3, True),
    ):
        assert ("epsilon" in wrong_in(plain | {"epsilon": factor * found})) == is_wrong


def allocation(replaced, count=1):
    dealt = pair(shifted(2.0), "allocation_pair", n_batches=4, n_steps=8)
    return losses((dealt | {"replaced": replaced}, count))


#: Two of the four batches' eight steps hold the record: known, or all added up.
@pytest.mark.parametrize("replaced, most", [(False, 0.5), (True, 1.0)])
def test_an_allocation_lies_between_two_gaussians(replaced, most):
    plain = stated(allocation(replaced), delta=1e-3)
    low = normal_epsilon(0.5 * math.sqrt(2 / 4), 1e-3)
    high = normal_epsilon(most * math.sqrt(2), 1e-3)
    for epsilon, is_wrong in (
        (low * (1 - 1.1e-6), True),
        (low * (1 - 0.9e-6), False),
        (high * (1 + 0.9e-6), False),
        (high * (1 + 1.1e-6), True),
    ):
        found = wrong_in(plain | {"epsilon": epsilon})
        assert ("epsilon" in found) == is_wrong
    (left,) = open_in(plain | {"epsilon": (low + high) / 2}, "epsilon")
    assert left.reason.startswith(f"it lies between {low:.6g} and {high:.6g}, as it")
    # and several of them, or one beside another step, lie between nothing known
    for curve in (allocation(replaced, 2), losses(*allocation(replaced)["steps"] * 2)):
        (left,) = open_in(stated(curve, epsilon=high, delta=1e-3), "epsilon")
        assert "'allocation_pair' are bounds that are found by a search" in left.reason


def test_an_allocation_of_other_noise_lies_between_nothing_known():
    dealt = pair(shifted(2.0, family="laplace"), "allocation_pair", n_batches=4)
    curve = losses((dealt | {"n_steps": 8, "replaced": False}, 1))
    (left,) = open_in(stated(curve, epsilon=1.0, delta=1e-3), "epsilon")
    assert "'allocation_pair' are bounds that are found by a search" in left.reason


def test_pair_by_pair_is_no_more_than_without():
    curve = under_belief(shifted(0.5), kind="pairwise_overlap_curve")
    plain = of_priors(curve, epsilon=0.5, delta=_B)
    (left,) = open_in(plain, "epsilon")
    assert left.reason.startswith("it lies between 0 and 0.5")
    assert not wrong_in(plain | {"epsilon": 0.5 * (1 + 1e-7)})
    assert "is not between 0 and 0.5" in reason(plain | {"epsilon": 0.501}, "epsilon")


def open_in(plain, field):
    return [
        f
        for f in findings_of(plain)
        if f.field == field and f.state == State.NOT_RECOMPUTABLE
    ]


def reason(plain, field):
    return wrong_in(plain)[field].reason


#: Honest certificate, what is changed in it, and the only fields that are then wrong.
SLICED = "joint_sliced_renyi_pufferfish"
LIES = {
    "less than the event": (
        "event",
        {"delta": 0.05, "event_delta": 0.1},
        {"delta": "0.05 is less than the event's 0.1", "epsilon": "less than inf"},
    ),
    "event at an order": ("order", {"event_delta": 1e-9}, {"delta", "event_delta"}),
    "delta at an order": ("order", {"delta": 1e-9}, {"delta"}),
    "event of renyi": (
        "normal moves",
        {"event_delta": 0.1, "delta": 0.1},
        {"event_delta": "is none of the notion 'renyi_pufferfish'"},
    ),
    "finite without an order": (
        "delta",
        {"rpp_epsilon": 1.0},
        {"rpp_epsilon": "finite without an order"},
    ),
    "finite without epsilon": (
        "order",
        {"epsilon": None},
        {"rpp_epsilon": "finite without", "epsilon": "is missing"},
    ),
    "order without": (
        "delta",
        {"notion": "renyi_dp"},
        {"alpha": "is missing, in the notion 'renyi_dp'"},
    ),
    "order too many": (
        "order",
        {"notion": "approximate_dp"},
        {"alpha": "is given, in the notion 'approximate_dp'"},
    ),
    "pure at an order": (
        "order",
        {"notion": "pure_dp"},
        {"alpha": "4.0 is no order of the notion 'pure_dp'"},
    ),
    "no order of renyi": (
        "pure",
        {"notion": "renyi_dp"},
        {"alpha": "inf is no order of the notion 'renyi_dp'"},
    ),
    "gain of nothing": ("order", {"gain": 2.0}, {"gain": "follows from nothing"}),
    "gain without the sensitivity": (
        "gain",
        {"sensitivity": None},
        {"gain": "follows from nothing"},
    ),
    "gain that is left out": (
        "gain",
        {"gain": None},
        {"gain": "is not stated, and record_sensitivity over sensitivity gives 0.5"},
    ),
    "gain without a bound": (
        "gain",
        {"sensitivity": 0.0, "curve": shifted(2.0, 0.0), "epsilon": 0.0}
        | {"rpp_epsilon": 0.0},
        {"gain": "0.5 is less than inf"},
    ),
    "noise gain alone": (
        "belief",
        {"gain": 1.0},
        {"gain": f"1 is less than {_GAIN:.6g}, noise_gain"},
    ),
    "noise gain too large": (
        "belief",
        {"gain": _GAIN * (1 + 1.1e-5), "noise_gain": _GAIN * (1 + 1.1e-5)},
        {"noise_gain": "is more than"},
    ),
    "sensitivity in another norm": (
        "sensitivity",
        {"norm": 1.0},
        {"sensitivity": "2 in the 1.0-norm is none of the shifts"},
    ),
    "events of another kind": (
        "composed",
        {"events": _EVENTS},
        {"events": "a 'privacy_loss' curve is composed of no others"},
    ),
    "information of an epsilon": (
        "delta",
        {"mutual_information": 0.1},
        {"mutual_information": "is none of the notion 'approximate_dp'"},
    ),
    "epsilon of information": (
        "information",
        {"epsilon": 1.0},
        {"epsilon": "is none of the notion 'mutual_information'"},
    ),
    "information that is left out": (
        "information",
        {"mutual_information": None},
        {"mutual_information": "is missing, in the notion 'mutual_information'"},
    ),
    "epsilon that is left out": ("delta", {"epsilon": None}, {"epsilon"}),
    "curve of an estimate": ("estimate", {"curve": gaussian(1.0)}, {"curve"}),
    "events of an estimate": ("estimate", {"events": _EVENTS}, {"curve"}),
    "estimate to compose": ("estimate", {"composable": True}, {"composable"}),
    "no relation": ("delta", {"relation": None}, {"relation", "coupling_id"}),
    "no coupling": (
        "delta",
        {"coupling_id": None},
        {"composable": "is said without a coupling to compose in"},
    ),
    "another relation": (
        "delta",
        {"relation": "add_remove"},
        {"coupling_id": "is about 'replace', and the relation is not"},
    ),
    "another count": (
        "delta",
        {"coupling_count": 1},
        {"coupling_count": "1 is less than 2, the number of records in coupling_id"},
    ),
    "count of a long name": (
        "delta",
        {"coupling_id": "replace:2 of a window", "coupling_count": 1},
        {"coupling_count": "1 is less than 2"},
    ),
    "slices of no notion": (
        "delta",
        {"curve": MEAN, "notion": "approximate_pufferfish", "delta": 0.0}
        | {"relation": None, "coupling_id": None, "composable": False},
        {"notion": "does not go with a 'mean_square_of_slices' curve"},
    ),
    "notion without slices": (
        "order",
        {"notion": SLICED, "relation": None, "coupling_id": None}
        | {"composable": False},
        {"notion": f"{SLICED!r} does not go with a 'gaussian' curve"},
    ),
    "slices to compose": (
        "mean of slices",
        {"composable": True, "coupling_id": "slices"},
        {"composable": "is said of a promise about slices of one output"},
    ),
    "long slices": (
        "mean of slices",
        {"curve": MEAN | {"square": 0.25 * (1 + 1.1e-6)}, "epsilon": 0.5 + 5.5e-7},
        {"curve.square": "exceeds 0.25"},
    ),
    "an epsilon without a delta": ("delta", {"delta": 0.0}, {"epsilon"}),
    "less without a delta": ("no delta", {"epsilon": 0.49}, {"epsilon"}),
    "less beside an event": ("an event and no more", {"epsilon": 0.49}, {"epsilon"}),
    "too small for none": ("no epsilon", {"delta": 0.01}, {"epsilon"}),
    "certain of a sample": (
        "sampled slices",
        {"confidence": 1.0},
        {"curve.shortfall": "is of a sample, and leaves no confidence of 1"},
    ),
    "more pairs of a sample": (
        "sampled slices",
        {"curve": SAMPLED | {name: 3 * SAMPLED[name] for name in ("squares", "most")}},
        {"curve.shortfall": "of a confidence of 0.9"},
    ),
    "more certain of a sample": (
        "sampled slices",
        {"confidence": 0.91},
        {"curve.shortfall": "of a confidence of 0.91"},
    ),
    "subsets of others": (
        "replaced in batches",
        {"relation": "add_remove", "coupling_id": "add_remove:2"},
        {"relation": "'add_remove' is not what a 'replace_poisson_pair' is about"},
    ),
    "subset of others": (
        "replaced in batches",
        {"curve": losses((pair(shifted(0.5), "subset_pair", rate=1.0), 1))}
        | {"relation": "add_remove", "coupling_id": "add_remove:2"},
        {"relation": "'add_remove' is not what a 'subset_pair' is about"},
    ),
    "batches of others": (
        "replaced in batches",
        {"curve": losses((pair(shifted(0.5), "poisson_pair", rate=1.0), 1))},
        {"relation": "'replace' is not what a 'poisson_pair' is about"},
    ),
    "masses": (
        "counts",
        {
            "curve": {"kind": "count_law", "curves": [gaussian(1.0)], "weights": [0.8]}
            | {"beyond": 0.1},
            "delta": 0.1 + 0.8 * D1,
        },
        {"curve.weights": "sums to 0.9, and masses sum to 1"},
    ),
    "lower bound above": (
        "delta",
        {"epsilon_lower": 1.1},
        {"epsilon_lower": "1.1 is above epsilon"},
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_refuted_for_what_it_is(name):
    base, changes, wrong = LIES[name]
    found = wrong_in(HONEST[base] | changes)
    assert set(found) == set(wrong)
    for field, words in wrong.items() if isinstance(wrong, dict) else ():
        assert words in found[field].reason


#: Kinds of curves that speak of priors, and of no two tables.
OF_PRIORS = {
    "coupling": COUPLING,
    "ellipsoid": ELLIPSOID,
    "overlap": under_belief(gaussian(1.0)),
    "pairwise_overlap_curve": under_belief(
        gaussian(1.0),
        {"kind": "pairwise_overlap", "overlaps": [ODDS], "costs": [[1.0]]}
        | {"groups": None},
        "pairwise_overlap_curve",
    ),
    "worst_overlap_curve": {
        "kind": "worst_overlap_curve",
        "curves": [under_belief(gaussian(1.0))],
    },
    "count_law": HONEST["counts"]["curve"],
    "markov_quilt": {
        "kind": "markov_quilt",
        "quilts": [{"kind": "quilts"}],
        "parts": [
            {"kind": "quilt_part", "move": 1.0, "slack": 0.0, "dim": 1, "units": None}
            | {"smallest": 1.0, "largest": 1.0, "noise": COUPLING["noise"]}
        ],
        "method": "exact",
        "max_distance": None,
    },
    "mean_square_of_slices": MEAN,
    "joint_slices": {
        "kind": "joint_slices",
        "vector": None,
        "squares": [[0.2]],
        "weights": [1.0],
    },
    "sampled_joint_slices": SAMPLED,
    "shift_over_sphere": SPHERE,
}


@pytest.mark.parametrize("kind", OF_PRIORS)
@pytest.mark.parametrize("notion", ["pure_dp", "renyi_dp", "approximate_dp"])
def test_a_curve_of_priors_promises_nothing_of_tables(kind, notion):
    inner = OF_PRIORS[kind]
    for curve in (inner, {"kind": "repeated", "curve": inner, "times": 2}):
        plain = stated(curve, notion=notion)
        check_structure(plain)
        found = [
            f.reason
            for f in findings_of(plain)
            if f.field == "notion" and f.state == State.DOES_NOT_FOLLOW
        ]
        assert any("is about tables" in words for words in found)


@pytest.mark.parametrize("kind", OF_PRIORS)
def test_the_best_of_runs_is_known_for_tables_alone(kind):
    best = BEST | {"curve": OF_PRIORS[kind]}
    for curve, path in (
        (best, "curve.curve"),
        ({"kind": "worst_curve", "curves": [best]}, "curve.curves[0].curve"),
    ):
        lie = of_priors(curve)
        assert f"one run has a {kind!r} curve" in reason(lie, path)
    # the other way round, a belief about the best run, it is no lie
    plain = of_priors(under_belief(BEST))
    assert not {f for f in wrong_in(plain) if f.startswith("curve")}


@pytest.mark.parametrize(
    "curve, path",
    [
        (
            under_belief(
                gaussian(1.0),
                {"kind": "finite_overlap", "odds": 1.0}
                | {"first": [0.5, 0.5 + 2e-9], "second": [0.5, 0.5]},
            ),
            "overlap.first",
        ),
        (
            under_belief(
                gaussian(1.0),
                {"kind": "finite_overlap", "odds": 1.0}
                | {"first": [0.5, 0.5], "second": [0.5, 0.5 - 2e-9]},
            ),
            "overlap.second",
        ),
        (
            COUPLING
            | {"couplings": [COUPLING["couplings"][0] | {"masses": [0.5, 0.4]}]},
            "couplings[0].masses",
        ),
        (
            COUPLING
            | {
                "couplings": [
                    COUPLING["couplings"][0] | {"masses": [[0.5, 0.5], [0.5, 0.4]]}
                ]
            },
            "couplings[0].masses[1]",
        ),
        (HONEST["counts"]["curve"] | {"beyond": 0.1 + 2e-6}, "weights"),
        (SAMPLED | {"weights": [0.5, 0.4]}, "weights"),
    ],
)
def test_masses_sum_to_one(curve, path):
    path = f"curve.{path}"
    assert "and masses sum to 1" in reason(of_priors(curve), path)
    assert not any(p.startswith(path[:-3]) for p in wrong_in(of_priors(COUPLING)))


@pytest.mark.parametrize(
    "norm, weights, radii",
    [
        (2.0, None, [0.0, 5.0]),
        (1.0, None, [0.0, 7.0]),
        ("inf", None, [0.0, 4.0]),
        (2.0, [3.0, 2.0], [0.0, math.sqrt(5)]),
    ],
)
def test_lengths_of_moves_are_those_of_the_steps(norm, weights, radii):
    moves = COUPLING["couplings"][0] | {"steps": [[0.0, 0.0], [-3.0, 4.0]]}

    def coupling(**changed):
        return of_priors(
            COUPLING
            | {
                "shift": shift(9.0, norm=norm, dim=2) | {"weights": weights},
                "couplings": [COUPLING["couplings"][0], moves | changed],
            }
        )

    place = "curve.couplings[1].radii"
    # neither says where the other comes from, and lengths alone have nothing beside
    assert not any(
        f.field.endswith("radii") for f in findings_of(coupling(radii=radii))
    )
    short = [[0.0, 0.0], [-2.9, 4.0 * 0.99]]
    for lie in (
        {"radii": radii, "steps": short},
        {"radii": [1e-9, radii[1]]},
        {"radii": [radii[0], radii[1] * (1 + 2e-6)]},
    ):
        assert "not the lengths of the steps" in reason(coupling(**lie), place)
    for odd in (
        {"radii": [*radii, radii[1]]},
        {"radii": radii, "steps": []},
        {"radii": radii, "steps": [[0.0, 0.0], [-3.0, 4.0, 0.0]]},
        {"radii": radii, "steps": [[0.0], [radii[1]]]},
    ):
        assert "no step of the same kind" in reason(coupling(**odd), place)
        # nor does what cannot be read there excuse masses that are lost
        both = wrong_in(coupling(**odd, masses=[0.005, 0.005]))
        assert {place, "curve.couplings[1].masses"} <= set(both)


def test_what_one_part_keeps_from_being_computed_excuses_no_other():
    ragged = COUPLING["couplings"][0] | {"masses": [[0.5, 0.5], [1.0]]}
    lost = COUPLING["couplings"][0] | {"masses": [0.005, 0.005]}
    curve = COUPLING | {"couplings": [ragged, lost]}
    assert "curve.couplings[1].masses" in wrong_in(of_priors(curve))
    # nor what was found of it before, nor what comes behind
    vector = ELLIPSOID | {"kind": "shifted_noise"}
    vector["shift"] = shift(3.0, dim=2) | {"weights": [1.0, 2.0]}
    sampled = SAMPLED | {"vector": vector, "weights": [0.5, 0.4]}
    parts = [sampled, COUPLING | {"couplings": [lost]}]
    curve = {"kind": "worst_curve", "curves": parts}
    found = findings_of(of_priors(curve, confidence=0.9))
    assert not any(f.field == "curve" for f in found)
    wrong = wrong_in(of_priors(curve, confidence=0.9))
    ends = {path.rpartition(".")[2] for path in wrong}
    assert {"weights", "masses"} <= ends
    reasons = [f.reason for f in found if f.state == State.NOT_RECOMPUTABLE]
    assert any("weighted moves is a search" in text for text in reasons)


def test_masses_are_held_to_nine_digits_and_those_of_counts_to_six():
    values = {"kind": "finite_overlap", "first": [0.5, 0.5 + 9e-10], "odds": 1.0}
    near = under_belief(gaussian(1.0), values | {"second": [0.5, 0.5 - 9e-10]})
    counts = HONEST["counts"]["curve"] | {"beyond": 0.1 + 9e-7}
    for curve in (near, counts):
        assert not any(f.startswith("curve") for f in wrong_in(of_priors(curve)))


def test_events_of_a_group_cost_the_worst_way_to_change_it():
    """Two that are added cost more than one that is replaced, or the other way."""
    x, width = [-12.0 + 0.005 * k for k in range(5_201)], 0.005
    group = pair(shifted(), "gaussian_poisson_group", rate=0.3, count=2)

    def law(means):
        return sum(w * stats.norm.pdf(x, m) for m, w in means.items())

    added = law({0: 0.49, 1: 0.42, 2: 0.09}), law({0: 1.0})
    replaced = law({0: 0.7, 1: 0.3}), law({0: 0.7, -1: 0.3})
    costs = {}
    for order in (2.0, 4.0):
        for p, q in (added, added[::-1], replaced):
            mean = (p**order * q ** (1 - order)).sum() * width
            costs[order] = max(costs.get(order, 0.0), math.log(mean) / (order - 1))
    curve = {"kind": "renyi", "orders": [2.0, 4.0], "epsilons": [0.0, 0.0]}
    curve["epsilons"] = [3 * costs[2.0], 3 * costs[4.0]]
    honest = at_order(curve, 2.0, 3 * costs[2.0], events=[[group, 3]])
    assert not wrong_in(honest)
    for at in range(2):
        lie = with_value(
            honest, ["curve", "epsilons", at], 0.99 * curve["epsilons"][at]
        )
        assert f"curve.epsilons[{at}]" in wrong_in(lie)


@pytest.mark.parametrize(
    "notion",
    [
        f"{estimated}{how}_sliced_renyi_pufferfish"
        for estimated in ("", "sa_")
        for how in ("averaged", "joint")
    ],
)
def test_a_promise_about_slices_has_a_curve_of_slices(notion):
    for curve in OF_PRIORS.values():
        said = "does not go with a" in str(wrong_in(of_priors(curve, notion=notion)))
        assert said == ("slices" not in curve["kind"] and "sphere" not in curve["kind"])


@pytest.mark.parametrize("scale", [[2.0, 50.0], [50.0, 2.0]])
def test_a_move_is_no_longer_than_where_the_noise_is_least(scale):
    noise = {"family": "gaussian", "scale": scale}
    plain = HONEST["ellipsoid"] | {"curve": ELLIPSOID | {"noise": noise}}
    assert not wrong_in(plain)
    longer = with_value(plain, ["curve", "mu"], 1.5 * (1 + 1.1e-6))
    assert "exceeds what the shift allows" in reason(longer, "curve.mu")


def test_costs_at_orders_that_are_not_integrated_are_named():
    batches = pair(shifted(), "replace_poisson_pair", rate=0.5)
    curve = {"kind": "renyi", "orders": [2.0, 1000.0, 2000.0]}
    curve["epsilons"] = [_half_replaced_at_2(), 9999.0, 9999.0]
    plain = at_order(curve, 2.0, curve["epsilons"][0], events=[[batches, 1]])
    found = {
        f.state: f.reason for f in findings_of(plain) if f.field == "curve.epsilons"
    }
    assert found == {
        State.RECOMPUTED: "1 of 3 costs, those of the events, added",
        State.NOT_RECOMPUTABLE: "costs at 2 orders from 1000 to 2000 are not "
        "integrated here",
    }
    (first,) = wrong_in(with_value(plain, ["curve", "epsilons", 0], 0.1)).keys() - {
        "epsilon",
        "rpp_epsilon",
    }
    assert first == "curve.epsilons[0]"


def _half_replaced_at_2():
    """By three distributions of which two are mixed with the third by halves."""

    def divergence(e):
        grown = math.log1p(2 * math.expm1(e))
        share = math.exp(e - grown)
        once, twice = normal_delta(1.0, grown), normal_delta(2.0, grown)
        return 0.5 * ((1 - share) * once + share * twice)

    total, _ = integrate.quad(
        lambda e: (math.exp(e) + math.exp(-2 * e)) * divergence(e), 0, 20, limit=200
    )
    return math.log1p(2 * total)


@pytest.mark.parametrize("relation", [None, "replace", "add_remove"])
def test_a_promise_of_secrets_is_the_same_at_any_relation(relation):
    """A value is replaced in two steps in promises about tables alone."""
    plain = HONEST["normal moves"] | {"relation": relation}
    assert not wrong_in(plain)
    lie = plain | {"rpp_epsilon": 0.9 * NORMALS_AT_3}
    assert "the epsilon at the same order" in reason(lie, "rpp_epsilon")


@pytest.mark.parametrize("kind", ["joint_slices", "sampled_joint_slices"])
@pytest.mark.parametrize("row", [0, 1])
def test_no_slice_moves_more_than_the_whole_vector(kind, row):
    squares = [[0.2, 0.1], [0.1, 0.25]]
    curve = SAMPLED | {"kind": kind, "most": [0.25, 0.25], "squares": squares}
    if kind == "joint_slices":
        curve = {k: v for k, v in curve.items() if k not in ("most", "shortfall")}
    plain = HONEST["sampled slices"] | {"curve": curve, "epsilon": 0.25}
    name = "most" if "most" in curve else "squares"
    assert f"curve.{name}" not in wrong_in(plain)
    # in any of its rows
    value = 0.26 if name == "most" else [0.0, 0.26]
    longer = with_value(plain, ["curve", name, row], value)
    assert f"curve.{name}" in wrong_in(longer)


def test_costs_of_events_that_were_added_are_counted():
    (found,) = [
        f for f in findings_of(HONEST["rows of events"]) if f.field == "curve.epsilons"
    ]
    assert found.reason == "2 of 2 costs, those of the events, added"


@pytest.mark.parametrize("coupling", ["households:3", "replace:all", "a window", "x:"])
def test_couplings_of_other_kinds_say_nothing_of_relations(coupling):
    for relation in ("replace", "add_remove"):
        found = wrong_in(
            HONEST["delta"] | {"coupling_id": coupling, "relation": relation}
        )
        assert not found


@pytest.mark.parametrize("changes", [{"curve": None}, {"epsilon": None}])
def test_a_gain_without_a_curve_or_an_epsilon_is_left_open(changes):
    (left,) = open_in(HONEST["belief"] | changes, "noise_gain")
    assert "what other noise would need is not stated" in left.reason


@pytest.mark.parametrize(
    "plain",
    [
        # a bound on what is learnt holds for whatever rests on the same table
        HONEST["information"] | {"coupling_id": None, "relation": None},
        of_priors(None, sensitivity=1.0, norm=2.0),
        of_priors(None, notion=SLICED, alpha=4.0, epsilon=1.0, rpp_epsilon=1.0),
        HONEST["information"] | {"notion": "record_mutual_information"},
        HONEST["information"] | {"notion": "group_mutual_information"},
    ],
)
def test_what_is_left_out_contradicts_nothing(plain):
    wrong = wrong_in(plain).keys() - {"epsilon"}
    assert not wrong


# -- what stays open -------------------------------------------------------------------


@pytest.mark.parametrize(
    "base, changes, field, words",
    [
        ("estimate", {}, "epsilon", "an estimate, whose curve is left out"),
        ("delta", {"curve": None}, "epsilon", "no curve that it could be read off"),
        ("information", {}, "mutual_information", "outputs under the prior"),
        ("information", {}, "table_information", "outputs under the prior"),
        ("information", {"entropy": 1.0}, "entropy", "outputs under the prior"),
        ("information", {"prior_success": 0.1}, "prior_success", "outputs under"),
        ("information", {"worst_leakage": 0.1}, "worst_leakage", "outputs under"),
        ("at most", {}, "epsilon_lower", "no more than epsilon, and how near"),
        ("delta", {"sensitivity": 1.0}, "sensitivity", "states no shift of the noise"),
        ("gain", {}, "record_sensitivity", "how far any record moves"),
        ("belief", {"curve": gaussian(1.0)}, "noise_gain", "what other noise would"),
        ("delta", {"curve": gaussian("inf")}, "delta", "stated gives no number"),
        (
            "events",
            {"events": [[pair(shifted(family="laplace")), 3]]},
            "events",
            "the events are not all Gaussian",
        ),
        (
            "events",
            {"events": [[pair(shifted(), "poisson_pair", rate=0.5), 3]]},
            "events",
            "the events are not all Gaussian",
        ),
        (
            "belief",
            {"curve": under_belief(TABLE)},
            "noise_gain",
            "it takes a search over compositions",
        ),
        (
            "belief",
            {"gain": 1.1, "noise_gain": 1.1},
            "noise_gain",
            "less than what the plain curve would need",
        ),
        ("table", {}, "curve.epsilons", "of what they are costs is not stated"),
        ("added", {"curve": gaussian(1.0)}, "rpp_epsilon", "how far a replaced record"),
        ("added", {"rpp_epsilon": 4.0}, "rpp_epsilon", "how far a replaced record"),
        (
            "mean of slices",
            {"curve": MEAN | {"vector": None}},
            "rpp_epsilon",
            "nothing is stated of the whole vector",
        ),
        (
            "mean of slices",
            {"curve": MEAN | {"vector": None}},
            "curve",
            "how far the whole vector moves is not stated",
        ),
        ("mean of slices", {}, "curve.square", "no more than 0.25"),
        (
            "mean of slices",
            {"curve": MEAN | {"square": 0.25}},
            "curve.square",
            "no more than 0.25",
        ),
        ("ellipsoid", {}, "curve.mu", "the moves that it is the longest of"),
        ("delta", {}, "notion", "a premise: that the facts behind the noise"),
        ("delta", {}, "relation", "a premise: that neighbouring tables differ so"),
        ("delta", {}, "coupling_id", "a premise: that this is the coupling"),
        ("delta", {}, "composable", "a premise: that other releases rest on"),
        ("delta", {}, "confidence", "a premise: that the public sample was drawn"),
        ("delta", {"profile": "p"}, "profile", "a premise: that the slices are these"),
        ("delta", {"table": "t"}, "table", "a premise: that this is the table"),
        ("delta", {"record": "r"}, "record", "a premise: that this is what"),
        ("delta", {"assumptions": ["a"]}, "assumptions", "a premise: that they are"),
    ],
)
def test_what_does_not_follow_from_the_file_is_said(base, changes, field, words):
    (left,) = open_in(HONEST[base] | changes, field)
    assert words in left.reason


@pytest.mark.parametrize("length", [0.5, 1.0, 3.0])
def test_a_value_is_replaced_in_two_steps(length):
    plain = HONEST["added"] | {"curve": shifted(length, length)}
    (found,) = [f for f in findings_of(plain) if f.field == "rpp_epsilon"]
    assert (found.state, found.found) == (State.RECOMPUTED, pytest.approx(8.0))
    assert "the cost of twice the shift" in found.reason


@pytest.mark.parametrize(
    "notion, alpha",
    [
        ("pure_dp", "inf"),
        ("renyi_dp", 4.0),
        ("renyi_pufferfish", 4.0),
        ("averaged_sliced_renyi_pufferfish", 4.0),
        ("joint_sliced_renyi_pufferfish", 4.0),
    ],
)
def test_what_holds_without_an_event_has_none(notion, alpha):
    event = {"event_delta": 0.1, "delta": 0.1}
    plain = stated(None, notion=notion, alpha=alpha, epsilon=1.0) | event
    assert reason(plain, "event_delta") == f"is none of the notion {notion!r}"


@pytest.mark.parametrize(
    "notion, alpha",
    [
        ("pure_pufferfish", "inf"),
        ("approximate_renyi_pufferfish", 4.0),
        ("sa_averaged_sliced_renyi_pufferfish", 4.0),
        ("sa_joint_sliced_renyi_pufferfish", 4.0),
        ("approximate_pufferfish", None),
    ],
)
def test_what_holds_outside_of_an_event_may_have_one(notion, alpha):
    event = {"event_delta": 0.1, "delta": 0.1}
    plain = stated(None, notion=notion, alpha=alpha, epsilon=1.0) | event
    assert not wrong_in(plain).keys() & {"event_delta", "delta", "alpha"}


def quilts(family="laplace", units=None):
    """One record without a quilt, whose near set is the whole table of one."""
    part = OF_PRIORS["markov_quilt"]["parts"][0]
    chain = {"kind": "markov_chain", "initial": [0.5, 0.5], "n_records": 1}
    chain |= {"transition": [[0.7, 0.3], [0.3, 0.7]], "protected": None, "pairs": None}
    noise = {"family": family, "scale": 2.0}
    part = part | {"noise": noise, "move": 3.0, "slack": 0.5, "units": units}
    return OF_PRIORS["markov_quilt"] | {"quilts": [chain], "parts": [part]}


@pytest.mark.parametrize("family, norm", [("laplace", 1.0), ("gaussian", 2.0)])
def test_a_near_set_and_the_slack_are_the_sensitivity(family, norm):
    plain = of_priors(
        quilts(family),
        alpha=4.0,
        notion="renyi_pufferfish",
        sensitivity=3.5,
        norm=norm,
    )
    found = {f.field: f for f in findings_of(plain)}
    assert found["sensitivity"].state == found["norm"].state == State.RECOMPUTED
    assert "sensitivity" in wrong_in(plain | {"sensitivity": 3.4})
    assert "sensitivity" in wrong_in(plain | {"norm": 3.0 - norm})
    part = quilts()["parts"][0]
    for lost in (
        {"alpha": None},
        {"curve": quilts() | {"parts": [part, part]}},
        {"curve": quilts() | {"parts": [part | {"kind": "run_part"}]}},
    ):
        (left,) = open_in(plain | lost, "sensitivity")
        assert "which quilt sets it depends on a search" in left.reason


def test_an_estimate_is_no_promise_that_is_confirmed():
    for name in ("estimate", "information"):
        assert not Report(tuple(findings_of(HONEST[name])), "").is_promise_recomputed


def test_no_premise_is_named_where_nothing_is_said():
    plain = of_priors(gaussian(1.0), epsilon=1.0, delta=D1)
    left = {f.field for f in findings_of(plain) if f.state == State.NOT_RECOMPUTABLE}
    assert left == {"notion", "confidence"}


# -- comparing and reporting -----------------------------------------------------------


@pytest.mark.parametrize(
    "stated, found, state",
    [
        (1.0 - 0.9e-3, 1.0, State.RECOMPUTED),
        (1.0 - 1.1e-3, 1.0, State.DOES_NOT_FOLLOW),
        (1.0 + 0.9e-2, 1.0, State.RECOMPUTED),
        (1.0 + 1.1e-2, 1.0, State.DOES_NOT_FOLLOW),
        (4.0 - 3.9e-3, 4.0, State.RECOMPUTED),
        (4.0 - 4.1e-3, 4.0, State.DOES_NOT_FOLLOW),
        (-1.0 - 0.9e-3, -1.0, State.RECOMPUTED),
        (-1.0 - 1.1e-3, -1.0, State.DOES_NOT_FOLLOW),
        # what is next to nothing is met to rounding
        (9e-15, 0.0, State.RECOMPUTED),
        (-9e-15, 0.0, State.RECOMPUTED),
        (1.1e-14, 0.0, State.DOES_NOT_FOLLOW),
        (-1.1e-14, 0.0, State.DOES_NOT_FOLLOW),
        (math.inf, math.inf, State.RECOMPUTED),
        (math.inf, 1.0, State.DOES_NOT_FOLLOW),
        (1e300, math.inf, State.DOES_NOT_FOLLOW),
        (1.0, math.nan, State.DOES_NOT_FOLLOW),
    ],
)
def test_numbers_are_compared_in_parts_of_what_was_found(stated, found, state):
    compared = _compared("x", stated, found, "of old", 1e-3, 1e-2)
    assert compared.state == state
    assert (compared.field, compared.stated) == ("x", stated)
    assert compared.found == found or math.isnan(found)
    if state == State.DOES_NOT_FOLLOW:
        assert ("less" if stated < found else "more") in compared.reason
    assert "of old" in compared.reason


def test_a_report_holds_only_if_no_finding_contradicts():
    def finding(field, state):
        return Finding(field=field, state=state, reason="why")

    good = finding("epsilon", State.RECOMPUTED)
    bad = finding("delta", State.DOES_NOT_FOLLOW)
    left = finding("epsilon", State.NOT_RECOMPUTABLE)
    other = finding("gain", State.RECOMPUTED)
    for findings, notion, follows, is_confirmed, verdict in (
        ((good,), "renyi_dp", True, True, "the number of the promise follows"),
        ((good, bad, bad), "renyi_dp", False, True, "REFUTED, as of delta\n"),
        ((left, other), "renyi_dp", True, False, "NOT CONFIRMED"),
        ((), "renyi_dp", True, False, "NOT CONFIRMED"),
        ((good,), "estimated", True, True, "an estimate, which promises nothing"),
    ):
        report = Report(findings, notion, ("taken",))
        assert (report.follows, report.is_promise_recomputed) == (follows, is_confirmed)
        assert bool(report) is follows
        assert f"Certificate of the notion {notion!r}: {verdict}" in str(report)
        assert "taken for granted, and not checked\n    - taken" in str(report)
        told = report.to_dict()
        assert (told["follows"], told["is_promise_recomputed"]) == (
            follows,
            is_confirmed,
        )
        assert told["assumptions"] == ["taken"]
        assert [f["state"] for f in told["findings"]] == [f.state for f in findings]
        assert report.of("does not follow") == tuple(f for f in findings if f == bad)


@pytest.mark.parametrize("quantiles", [0.5, [0.1, 0.5, 0.9]])
def test_certificates_of_quantiles_are_confirmed(quantiles):
    """Their delta falls so steeply that a search leaves a few parts in a hundred."""
    model = PrivateQuantile(
        accountant=PrivacyLoss(1.0), quantiles=quantiles, bounds=(0, 1)
    )
    certificate = model.fit(np.linspace(0, 1, 50)[:, None]).certificate_
    assert check(certificate).follows
