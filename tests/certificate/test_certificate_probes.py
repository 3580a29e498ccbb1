"""What is said of numbers that no rule speaks of: whether a change would show."""

import json

import pytest

from skpuffer.certificate import CertificateFileError, Finding, State, _check, check
from skpuffer.certificate._check import DEEPEST, _parsed, read_certificate
from skpuffer.certificate._rules import findings_of
from skpuffer.exceptions import stated
from skpuffer.privacy._written import digest_of_plain

from .test_certificate_rules import D1, HONEST, gaussian, of_priors


def signed(name_or_plain, **changes):
    plain = HONEST.get(name_or_plain) if isinstance(name_or_plain, str) else None
    plain = (plain or name_or_plain) | changes
    rest = {name: value for name, value in plain.items() if name != "digest"}
    return rest | {"digest": digest_of_plain(rest)}


def found_of(plain):
    """State and reason by field."""
    return {f.field: (f.state, f.reason) for f in check(plain).findings}


#: Certificates that take long to check once for each number of theirs.
SLOW = ("composed", "replaced in batches", "normal moves at a delta")
RECOMPUTED, OPEN = State.RECOMPUTED, State.NOT_RECOMPUTABLE
NOTHING = "no other number follows from it so closely that a change"
CHANGED = "changed by a hundredth, it would not give "


@pytest.mark.parametrize(
    "name, field, state, reason",
    [
        ("sensitivity", "curve.noise.scale", RECOMPUTED, f"{CHANGED}epsilon"),
        (
            "sensitivity",
            "curve.shift.radius",
            RECOMPUTED,
            f"{CHANGED}epsilon, norm, sensitivity",
        ),
        ("sensitivity", "n_records", OPEN, NOTHING),
        ("sensitivity", "n_releases", OPEN, NOTHING),
        # more than one record is a lie of the number before it
        ("sensitivity", "coupling_count", RECOMPUTED, "2, the number of records in"),
        ("delta", "curve.mu", RECOMPUTED, f"{CHANGED}delta, epsilon"),
        # of the orders of a table only the best shows
        ("table", "curve.orders[1]", RECOMPUTED, f"{CHANGED}delta, epsilon"),
        ("table", "curve.orders[0]", OPEN, NOTHING),
        ("counts", "curve.weights[0]", RECOMPUTED, "masses, which sum to 1"),
        # no event may have a mass above one, and below it no longer sums up
        ("counts", "curve.beyond", RECOMPUTED, f"{CHANGED}curve.weights"),
        ("sampled slices", "curve.most[0]", RECOMPUTED, "the square of the vector"),
        ("belief", "curve.overlap.odds", RECOMPUTED, f"{CHANGED}delta, epsilon"),
        ("events", "events[0][1]", RECOMPUTED, f"{CHANGED}curve.mu"),
        ("events", "events[1][0].curve.noise.scale", RECOMPUTED, CHANGED),
    ],
)
def test_a_number_is_told_by_what_no_longer_follows(name, field, state, reason):
    found = found_of(signed(name))
    own = [f for f in found if f == field or field.startswith((f"{f}.", f"{f}["))]
    assert (found[own[0]][0], reason in found[own[0]][1]) == (state, True), found


def test_every_finding_of_an_honest_certificate():
    """No more and no less, as of each it is said what is known."""
    states = {field: state for field, (state, _) in found_of(signed("gain")).items()}
    assert states == {
        "epsilon": RECOMPUTED,
        "rpp_epsilon": RECOMPUTED,
        "sensitivity": RECOMPUTED,
        "norm": RECOMPUTED,
        "gain": RECOMPUTED,
        "record_sensitivity": OPEN,
        "coupling_count": RECOMPUTED,
        "alpha": RECOMPUTED,
        "curve.noise.scale": RECOMPUTED,
        "curve.shift.radius": RECOMPUTED,
        "curve.shift.norm": RECOMPUTED,
        "curve.shift.dim": OPEN,
        "n_records": OPEN,
        "n_releases": OPEN,
        "notion": OPEN,
        "relation": OPEN,
        "coupling_id": OPEN,
        "composable": OPEN,
        "confidence": OPEN,
    }


def test_what_is_refuted_is_probed_no_further():
    report = check(signed("gain", gain=9.0))
    assert not report and report.of("recomputed")
    assert not any(f.field.startswith("curve.") for f in report.findings)


def test_numbers_are_left_as_they_were():
    plain = signed("belief")
    kept = json.dumps(plain)
    first = check(plain)
    assert json.dumps(plain) == kept
    assert check(plain) == first


def test_an_array_of_many_is_changed_as_one():
    values = {"a": [1.0] * 13, "b": [2.0] * 12, "c": [[1.0] * 7] * 2, "d": ["x"] * 13}
    known = dict(_check_numbers(values))
    assert set(known) == {"a", "c", *(f"b[{at}]" for at in range(12))}
    assert known["a"] == [1.0] * 13
    # a Gaussian, and twelve more that cost nothing
    curves = [gaussian(1.0), *[gaussian(0.0)] * 12]
    law = {"kind": "count_law", "curves": curves, "beyond": 0.0}
    law |= {"weights": [0.4, *[0.05] * 12]}
    plain = of_priors(law, epsilon=1.0, delta=0.4 * D1)
    _, reason = found_of(signed(plain))["curve.weights"]
    assert reason == "masses, which sum to 1"


def _check_numbers(plain):
    for path, value, _ in _check._numbers(plain, "", _check._setter([plain], 0)):
        yield path, value


def test_which_numbers_there_are():
    plain = {
        "schema": 1,
        "version": 5,
        "digest": 3,
        "none": 0,
        "zero": 0.0,
        "true": True,
        "text": "1",
        "far": float("inf"),
        "inner": {"version": 5, "rows": [[1.0, 2], ["x", 3.5]]},
    }
    assert dict(_check_numbers(plain)) == {
        "inner.version": 5,
        "inner.rows[0][0]": 1.0,
        "inner.rows[0][1]": 2,
        "inner.rows[1][1]": 3.5,
    }


@pytest.mark.parametrize(
    "value, less, more",
    [
        (1.0, 0.99, 1.01),
        (-2.0, -1.98, -2.02),
        (1, 0, 2),
        (150, 148, 152),
        (1000, 990, 1010),
        (True, True, True),
        ("inf", "inf", "inf"),
        (None, None, None),
        ([200, [1.0]], [198, [0.99]], [202, [1.01]]),
    ],
)
def test_a_number_is_changed_by_a_hundredth_or_by_one(value, less, more):
    assert _check._moved(value, -1) == less
    assert _check._moved(value, 1) == more


@pytest.mark.parametrize("limit", ["_MOST_TRIED", "_SECONDS"])
def test_what_takes_too_long_is_not_tried(limit, monkeypatch):
    monkeypatch.setattr(_check, limit, -1)
    found = found_of(signed("sensitivity"))
    assert found["curve.noise.scale"] == (
        OPEN,
        "there are too many numbers to see what follows from each",
    )
    assert found["epsilon"][0] == RECOMPUTED


def test_long_lists_of_fields_are_cut(monkeypatch):
    monkeypatch.setattr(_check, "_MOST_NAMED", 1)
    _, reason = found_of(signed("sensitivity"))["curve.shift.radius"]
    assert reason.endswith("it would not give epsilon and 2 more")


@pytest.mark.parametrize(
    "less, more, state, names",
    [
        (set(), set(), OPEN, None),
        # what shows in one direction alone may be untrue in the other
        ({"epsilon"}, set(), OPEN, None),
        (set(), {"epsilon"}, OPEN, None),
        ({"epsilon", "x"}, {"epsilon", "y"}, RECOMPUTED, "epsilon"),
        ({"y"}, {"x"}, RECOMPUTED, "x, y"),
    ],
)
def test_a_change_has_to_show_either_way(less, more, state, names, monkeypatch):
    tried = []

    def changed(plain, put, new, firm):
        tried.append((new, sorted(firm)))
        return less if new < 2.0 else more

    monkeypatch.setattr(_check, "_changed", changed)
    known = [Finding(field="epsilon", state=RECOMPUTED, reason="")]
    known += [Finding(field="delta", state=OPEN, reason="")]
    plain = {"epsilon": 1.0, "delta": 0.1, "gain": 2.0}
    (found,) = _check._probed(plain, known)
    assert tried == [(1.98, ["epsilon"]), (2.02, ["epsilon"])]
    assert (found.field, found.state) == ("gain", state)
    told = NOTHING if names is None else f"{CHANGED}{names}"
    assert found.reason.startswith(told)
    assert plain["gain"] == 2.0


@pytest.mark.parametrize(
    "field, new, firm, shown",
    [
        # no number of the schema is one
        ("confidence", 1.01, set(), {"the schema"}),
        ("epsilon", 0.9, set(), {"epsilon", "delta"}),
        # what was firm and is no longer confirmed shows, and what was not does not
        ("curve", None, {"epsilon"}, {"epsilon"}),
        ("curve", None, set(), set()),
        ("n_records", 11, {"epsilon"}, set()),
    ],
)
def test_what_a_change_would_leave_untrue(field, new, firm, shown):
    plain = json.loads(json.dumps(signed("delta")))
    kept = json.dumps(plain)
    put = _check._setter(plain, field)
    assert _check._changed(plain, put, new, firm) == shown
    assert json.dumps(plain) == kept


def test_a_number_is_known_by_its_field_or_as_part_of_an_array():
    known = [Finding(field="rows", state=RECOMPUTED, reason="")]
    plain = HONEST["delta"] | {"rows": [1.0, 2.0], "rows_more": 0.5}
    numbers = {f.field for f in _check._probed(plain, known)}
    assert {name for name in numbers if name.startswith("rows")} == {"rows_more"}


#: By certificate: numbers that by three hundredths less, or more, would not show. Of
#: all of them a norm and a dimension do not where one coordinate moves.
UNSEEN = {
    "added": {"curve.shift.norm": "-+", "curve.shift.dim": "-+"},
    "pure": {"curve.shift.norm": "-+"},
    "table": {"curve.orders[0]": "-+", "curve.epsilons[0]": "-+"},
    "table at an order": {
        # the next order of the table is the same, and what is known of it
        "alpha": "-+",
        "curve.orders[0]": "-+",
        "curve.orders[1]": "-+",
        "curve.epsilons[0]": "-+",
    },
    "events": {
        f"events[{at}][0].curve.shift.{name}": "-+"
        for at in (0, 1)
        for name in ("norm", "dim")
    },
    "rows of events": {
        # a promise at an order holds below it, and costs may be rounded up
        "alpha": "-",
        "events[0][0].curve.noise.scale": "+",
        **{
            f"events[{at}][0].curve.shift.{name}": "-+"
            for at in (0, 1)
            for name in ("norm", "dim")
        },
    },
    "sensitivity": {"curve.shift.dim": "-+"},
    "gain": {"curve.shift.dim": "-+"},
    "belief": {"curve.curve.shift.norm": "-+", "curve.curve.shift.dim": "-+"},
    # the smaller of two
    "worst": {
        f"curve.curves[1].{name}[{at}]": "-+"
        for name in ("orders", "epsilons")
        for at in (0, 1)
    },
    "coupling": {f"curve.shift.{name}": "-+" for name in ("radius", "norm", "dim")},
    "normal moves": {"curve.shift.norm": "-+", "curve.shift.dim": "-+"},
    "mean of slices": {
        "curve.vector.shift.norm": "-+",
        "curve.vector.shift.dim": "-+",
    },
    "sphere": {"curve.vector.shift.norm": "-+", "curve.vector.shift.dim": "-+"},
    "sampled slices": {
        "curve.vector.shift.norm": "-+",
        "curve.vector.shift.dim": "-+",
        # the shortfall of so few is more than all of them
        "curve.squares[0][0]": "-+",
        "curve.squares[0][1]": "-+",
    },
    "ellipsoid": {
        # of which it is said that the largest move is not recomputed
        "curve.noise.scale": "-",
        "curve.noise.covariance[0][0]": "-+",
        "curve.noise.covariance[1][1]": "-",
        "curve.shift.radius": "+",
        "curve.shift.norm": "-+",
        "curve.shift.dim": "-+",
    },
    "at most": {"epsilon_lower": "-"},
    "no epsilon": {"delta": "-+", "curve.mu": "-+"},
    "no delta": {"curve.shift.norm": "-+"},
    "an event and no more": {"curve.shift.norm": "-+"},
    "estimate": {"epsilon": "-+", "delta": "-+"},
    "information": {"mutual_information": "-+", "table_information": "-+"},
}


@pytest.mark.parametrize("name", [n for n in HONEST if n not in SLOW])
def test_a_number_that_is_off_by_three_hundredths_shows_but_for_those_named(name):
    plain = json.loads(json.dumps(HONEST[name]))
    firm = {f.field for f in findings_of(plain) if f.state == RECOMPUTED}
    unseen = {}
    for path, value, put in _check._numbers(plain, "", _check._setter([plain], 0)):
        for sign, said in ((-1, "-"), (1, "+")):
            by = sign if isinstance(value, int) else sign * 0.03 * value
            put(value + by)
            found = findings_of(plain)
            put(value)
            wrong = any(f.state == State.DOES_NOT_FOLLOW for f in found)
            held = {f.field for f in found if f.state == RECOMPUTED}
            if not wrong and firm <= held:
                unseen[path] = unseen.get(path, "") + said
    apart = {"n_records": "-+", "n_releases": "-+", "confidence": "-+"}
    if name == "sampled slices":
        apart["confidence"] = "-"
    assert unseen == {p: apart[p] for p in apart if p in unseen} | UNSEEN.get(name, {})


# -- reading ---------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["9007199254740992", "-9007199254740992"])
def test_whole_numbers_that_are_exact_are_read(token):
    assert _parsed(token) == int(token)


@pytest.mark.parametrize(
    "token", ["9007199254740993", "-9007199254740993", "100000000000000000"]
)
def test_others_are_no_values(token, tmp_path):
    assert _parsed(token) == "it is too large a number"
    plain = HONEST["delta"] | {"n_records": "@"}
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(plain).replace('"@"', token), encoding="utf-8")
    with pytest.raises(CertificateFileError, match="n_records is not valid: it is too"):
        read_certificate(file)


@pytest.mark.parametrize("deep, is_refused", [(DEEPEST - 1, False), (DEEPEST, True)])
def test_how_deep_it_may_be(deep, is_refused):
    inner = None
    for _ in range(deep):
        inner = [inner]
    words = "nested more than" if is_refused else "must"
    with pytest.raises(CertificateFileError, match=words):
        read_certificate(HONEST["delta"] | {"curve": inner})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_data_that_is_no_number(value):
    with pytest.raises(CertificateFileError, match="epsilon is not valid: it is no fi"):
        read_certificate(HONEST["delta"] | {"epsilon": value})


@pytest.mark.parametrize("value", [{1, 2}, object(), 1j, b"x"])
def test_data_that_json_cannot_hold(value):
    with pytest.raises(CertificateFileError, match="holds what JSON cannot"):
        read_certificate(HONEST["delta"] | {"epsilon": value})


SAID = stated("x").to_dict()


def test_the_digest_is_of_everything_else():
    plain = signed("sensitivity")
    assert read_certificate(plain) == json.loads(json.dumps(plain))
    for field, value in (("epsilon", 1.5), ("assumptions", [SAID]), ("source", SAID)):
        with pytest.raises(CertificateFileError, match="digest is not that"):
            read_certificate(plain | {field: value})


@pytest.mark.parametrize(
    "changes", [{"schema": "x"}, {"version": 2}, {"version": True}]
)
def test_another_schema_is_refused_before_its_fields(changes):
    with pytest.raises(CertificateFileError, match="certificate.(schema|version) must"):
        read_certificate({"schema": "skpuffer.certificate", "version": 5} | changes)
