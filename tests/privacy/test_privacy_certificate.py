"""The certificate: plain data, never upgraded, legible."""

import dataclasses
import hashlib
import itertools
import json
import math
import pickle
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from skpuffer.accountants import (
    Best,
    GeneralWasserstein,
    GroupPrivacy,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.audit import largest_tpr
from skpuffer.distributions import PointMass, Samples
from skpuffer.exceptions import (
    CompositionError,
    SeededNoiseWarning,
    UncertifiedError,
    stated,
)
from skpuffer.noise import GaussianNoise, LaplaceNoise, Shift
from skpuffer.privacy import (
    Certificate,
    Notion,
    compose,
    mixed_information,
    parallel,
)
from skpuffer.privacy._written import _SINCE, VERSION, digest_of_plain
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    DependenceScenario,
    LawsScenario,
    RecordScenario,
)
from skpuffer.summary import PrivateMean
from tests.refused import refused

RELEASE = QueryRelease(
    query=lambda X, y: X.mean(axis=0),
    n_records=100,
    dim=1,
    sensitivity=Sensitivity(add_remove={1: 0.01, 2: 0.01}),
)
EVENT = Certificate(
    notion="approximate_renyi_pufferfish",
    epsilon=1.0,
    alpha=2.0,
    delta=0.01,
    event_delta=0.01,
    curve=GaussianCurve(1.0),
)


def group(**options):
    options = {"noise": "gaussian"} | options
    return GroupPrivacy(**options).calibrate(RELEASE, RecordScenario()).certificate


def points(distance, **options):
    scenario = LawsScenario([(PointMass(0), PointMass(distance))])
    return GeneralWasserstein(**options).calibrate(RELEASE, scenario).certificate


CERTIFICATES = {
    "renyi_dp": lambda: group(epsilon=1.0, alpha=4),
    "pure_dp": lambda: group(epsilon=1.0, alpha=math.inf, noise="laplace"),
    "approximate_dp": lambda: group(epsilon=1.0, delta=1e-5),
    "renyi_pufferfish": lambda: points(0.005, epsilon=1.0, alpha=4),
    "pure_pufferfish": lambda: points(
        0.005, epsilon=1.0, alpha=math.inf, noise="laplace"
    ),
    "approximate_pufferfish": lambda: points(0.005, epsilon=1.0, delta=1e-5),
    "approximate_renyi_pufferfish": lambda: EVENT,
    "estimated": lambda: group(epsilon=1.0).as_estimate("the bounds were peeked at"),
}


@pytest.fixture(params=CERTIFICATES, ids=str)
def certificate(request):
    made = CERTIFICATES[request.param]()
    assert made.notion.name == request.param
    return made


def test_what_is_left_out_promises_nothing():
    made = Certificate(notion="renyi_pufferfish")
    known = {
        f.name: value
        for f in dataclasses.fields(made)
        if (value := getattr(made, f.name)) not in (None, "", ())
    }
    assert known == {
        "notion": Notion.RENYI_PUFFERFISH,
        "delta": 0.0,
        "event_delta": 0.0,
        "confidence": 1.0,
        "rpp_epsilon": math.inf,
        "composable": False,
        "seeded": False,
        "n_releases": 1,
    }


def test_what_each_notion_is_about():
    """A notion that is new is about priors, and a promise."""
    differential = {n.name for n in Notion.known.values() if n.differential}
    assert differential == {"pure_dp", "renyi_dp", "approximate_dp"}
    estimates = {n.name for n in Notion.known.values() if not n.certified}
    assert estimates == {"estimated"}


def test_frozen(certificate):
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.epsilon = 0.1


def test_pickle(certificate):
    again = pickle.loads(pickle.dumps(certificate))
    assert again == certificate
    assert again.to_dict() == certificate.to_dict()


def test_plain_data_is_strict_json(certificate):
    plain = certificate.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["notion"] == certificate.notion.name
    assert plain["epsilon"] == certificate.epsilon
    assert float(plain["rpp_epsilon"]) == certificate.rpp_epsilon


def test_it_comes_back_from_json(certificate):
    text = json.dumps(certificate.to_dict(), allow_nan=False)
    again = Certificate.from_dict(json.loads(text))
    assert again.to_dict() == certificate.to_dict()
    if not certificate.certified:
        assert again.curve is None
        certificate = dataclasses.replace(certificate, curve=None)
    assert again == certificate
    assert again.notion is certificate.notion


def test_text_comes_back_as_text(certificate):
    """Whatever users call their releases: infinity is a number in numbers only."""
    named = dataclasses.replace(
        certificate, release="inf", assumptions=("nan", "kind"), relation=None
    )
    again = Certificate.from_dict(named.to_dict())
    assert again.release == "inf" and again.assumptions == (
        stated("nan"),
        stated("kind"),
    )


@pytest.mark.parametrize("name", ["epsilon", "confidence", "event_delta", "curve"])
def test_a_field_that_is_missing_or_unknown_is_no_default(name):
    """What is left out would say that the promise is certain, or all of it."""
    plain = CERTIFICATES["renyi_dp"]().to_dict()
    with pytest.raises(ValueError, match=f"missing are .'{name}'.*unknown .'since'"):
        Certificate.from_dict(
            {key: value for key, value in plain.items() if key != name} | {"since": 1}
        )


def test_what_is_not_known_does_not_come_back():
    plain = CERTIFICATES["renyi_dp"]().to_dict()
    with refused(ValueError, "certificate.notion_unknown"):
        Certificate.from_dict(plain | {"notion": "my_dp"})
    with refused(ValueError, "table.data_kind_unknown", key="kind", plain="my_curve"):
        Certificate.from_dict(plain | {"curve": {"kind": "my_curve", "mu": 1.0}})
    with refused(ValueError, "table.data_fields_missing", plain="gaussian"):
        Certificate.from_dict(plain | {"curve": {"kind": "gaussian", "sigma": 1.0}})
    noise = {"family": "my_noise", "scale": 1.0}
    curve = {"kind": "shifted_noise", "noise": noise, "shift": Shift(1.0).to_dict()}
    with refused(ValueError, "table.data_kind_unknown", key="family", plain="my_noise"):
        Certificate.from_dict(plain | {"curve": curve})


def test_a_subclass_does_not_come_back_as_its_base():
    """What it adds or changes is not written, so nothing else may stand for it."""

    class TighterCurve(GaussianCurve):
        def epsilon(self, delta):
            return 0.0

    class OtherNoise(GaussianNoise):
        pass

    class Namesake(LaplaceNoise):
        family = "laplace"

    for curve in (
        TighterCurve(1.0),
        OtherNoise(1.0).curve(1.0),
        Namesake(1.0).curve(1.0),
    ):
        certificate = dataclasses.replace(CERTIFICATES["renyi_dp"](), curve=curve)
        with refused(ValueError, "table.data_kind_unknown"):
            Certificate.from_dict(certificate.to_dict())


def test_html_parses_and_escapes(certificate):
    nasty = dataclasses.replace(
        certificate,
        scenario="AttributeScenario('<b>&\"')",
        assumptions=("x < y & y > z", "<script>alert(1)</script>"),
    )
    root = ET.fromstring(nasty._repr_html_())
    text = "".join(root.itertext())
    assert "AttributeScenario('<b>&\"')" in text
    assert "<script>alert(1)</script>" in text
    assert root.findall(".//b") == root.findall("./b")
    # five lines, and the rest folded
    assert 3 <= len(root.findall("./table/tr")) <= 5
    assert len(root.findall("./details/table/tr")) >= 5


def test_text_states_the_promise(certificate):
    text = certificate.details()
    assert certificate.notion.title in text
    assert f"ε = {certificate.epsilon:.4g}" in text
    if certificate.delta:
        assert f"δ = {certificate.delta:.4g}" in text
    if certificate.alpha is not None:
        order = "∞" if math.isinf(certificate.alpha) else f"{certificate.alpha:g}"
        assert f"α = {order}" in text
    assert all(str(assumption) in text for assumption in certificate.assumptions)
    assert ("ESTIMATE ONLY" in text) is not certificate.certified
    assert ("must not be added" in text) is not certificate.composable


def lines_of(certificate):
    """Lines by name, as `print` shows them."""
    lines = str(certificate).splitlines()[1:-1]
    found = dict(line.strip().split("  ", 1) for line in lines)
    assert len(found) == len(lines) <= 5
    return {name: said.strip() for name, said in found.items()}


PEOPLE = np.random.default_rng(0).uniform(0, 10, (300, 1))
BELIEVED = AttributeScenario(0, level="record", prior=BoundedOdds(3.0))


@pytest.mark.parametrize(
    "scenario, accountant",
    [
        (RecordScenario(), PrivacyLoss(1.0)),
        (RecordScenario(), PrivacyLoss(8.0, noise="gaussian")),
        (RecordScenario(relation="replace"), RenyiDP(1.0, alpha=4, delta=None)),
        (RecordScenario(size="private"), PrivacyLoss(1.0)),
        (RecordScenario(), GroupPrivacy(0.5, alpha=np.inf, noise="laplace")),
        (BELIEVED, Best(0.5, delta=1e-5)),
        (DependenceScenario(0.1), GeneralWasserstein(1.0, alpha=4)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_five_lines_say_what_the_numbers_are(scenario, accountant):
    X = np.column_stack([PEOPLE > 5, PEOPLE]) if scenario is BELIEVED else PEOPLE
    model = PrivateMean(scenario, accountant, bounds=(0, 10)).fit(X)
    certificate = model.certificate_
    lines = lines_of(certificate)
    assert list(lines) == ["protected", "not protected", "budget", "noise", "next"]
    noise = f"mean: standard deviation {model.mean_std_[0]:.3g}"
    gain = certificate.gain
    assert lines["noise"].startswith(noise)
    assert ("; gain " in lines["noise"]) == (gain is not None)
    ((name, least, most),) = certificate.errors
    assert (name, least) == ("mean", most) and least == pytest.approx(
        model.mean_std_[0]
    )
    assert Certificate.from_dict(certificate.to_dict()).errors == certificate.errors
    if certificate.alpha == math.inf:
        # a bound holds as it is shown
        most, said = math.exp(certificate.epsilon), lines["budget"]
        assert most <= float(re.search("at most (.*)-fold", said)[1]) <= 1.01 * most
    else:
        # no less than any attack may find, and not much more
        most = 100 * largest_tpr(certificate, 0.01)
        said = float(re.search("at most (.*) % true", lines["budget"])[1])
        assert most <= said <= 1.4 * most
    both = "two like this one cost"
    adds = certificate.composable and scenario is not BELIEVED
    assert (both in lines["next"]) == adds
    if adds:
        total = compose([certificate] * 2)
        assert total.errors == 2 * certificate.errors
        assert f"{both} ε = {total.epsilon:.4g}" in lines["next"]
    size = certificate.n_records is not None and scenario is not BELIEVED
    size = size and not isinstance(scenario, DependenceScenario)
    assert ("the number of records" in lines["not protected"]) == size


def test_a_promise_that_may_fail_says_so_before_any_detail():
    sure = PrivateMean(bounds=(0, 10)).fit(PEOPLE).certificate_
    assert "confidence" not in str(sure)
    assert (
        "confidence 0.99"
        in lines_of(dataclasses.replace(sure, confidence=0.99))["budget"]
    )


def test_a_seeded_release_is_added_to_nothing_in_five_lines_either():
    model = PrivateMean(bounds=(0, 10), random_state=0)
    with pytest.warns(SeededNoiseWarning):
        model.fit(PEOPLE)
    assert "two like this one" not in str(model.certificate_)


def test_no_gain_is_no_advice_where_records_depend_on_each_other():
    scenario = DependenceScenario(0.1)
    accountant = GeneralWasserstein(1.0, alpha=4)
    model = PrivateMean(scenario, accountant, bounds=(0, 10)).fit(PEOPLE)
    assert model.certificate_.gain <= 1
    assert "one independent record" in model.certificate_.details()


def test_an_estimate_says_why_and_gives_nothing():
    estimate = CERTIFICATES["estimated"]()
    assert not estimate.certified
    assert not estimate.composable
    assert estimate.rpp_epsilon == math.inf
    assert "the bounds were peeked at" in str(estimate)
    assert "ESTIMATE ONLY" in estimate._repr_html_()
    with refused(UncertifiedError, "certificate.estimate_no_guarantee"):
        estimate.to_approximate(1e-5)


IN_PART = {"averaged_sliced_pufferfish", "joint_sliced_pufferfish"}
APPROXIMATE = {"approximate_pufferfish"} | IN_PART
AVERAGED = {"averaged_sliced_renyi_pufferfish", "averaged_sliced_pufferfish"}
# the mean of the slices' own epsilons does not follow from one random projection
JOINT = {"joint_sliced_renyi_pufferfish", "joint_sliced_pufferfish"} | AVERAGED
RENYI = {"renyi_pufferfish", "approximate_renyi_pufferfish"} | APPROXIMATE | JOINT

INFORMATION = {
    "mutual_information",
    "record_mutual_information",
    "group_mutual_information",
}

IMPLIED = {
    "pure_dp": {
        n
        for n in Notion.known
        if n != "estimated" and n[:3] != "sa_" and n not in INFORMATION
    },
    "renyi_dp": {"renyi_dp", "approximate_dp"} | RENYI,
    "approximate_dp": {"approximate_dp"} | APPROXIMATE,
    "pure_pufferfish": {"pure_pufferfish"} | RENYI,
    "renyi_pufferfish": RENYI,
    "approximate_renyi_pufferfish": {"approximate_renyi_pufferfish"} | APPROXIMATE,
    "approximate_pufferfish": APPROXIMATE,
    "estimated": {"estimated"},
    # about slices: nothing of the whole output follows
    "joint_sliced_renyi_pufferfish": JOINT,
    "averaged_sliced_renyi_pufferfish": AVERAGED,
    "joint_sliced_pufferfish": {"joint_sliced_pufferfish"},
    "averaged_sliced_pufferfish": {"averaged_sliced_pufferfish"},
    # means over subsamples: nothing of the release follows
    "sa_joint_sliced_renyi_pufferfish": {
        "sa_joint_sliced_renyi_pufferfish",
        "sa_averaged_sliced_renyi_pufferfish",
    },
    "sa_averaged_sliced_renyi_pufferfish": {"sa_averaged_sliced_renyi_pufferfish"},
    # what the table leaks bounds what single secrets do, and no likelihood ratio
    "mutual_information": INFORMATION,
    "record_mutual_information": {"record_mutual_information"},
    "group_mutual_information": {"group_mutual_information"},
}


def test_what_implies_what():
    assert set(IMPLIED) == set(Notion.known.values())
    for one, other in itertools.product(Notion.known.values(), repeat=2):
        implied = Certificate(notion=one, epsilon=1.0).implies(other)
        assert implied is (other in IMPLIED[one]), (one, other)


def test_no_pufferfish_promise_implies_differential_privacy():
    for notion in Notion.known.values():
        if "pufferfish" in notion.name:
            assert not any(
                Certificate(notion=notion, epsilon=1.0).implies(dp)
                for dp in ("pure_dp", "renyi_dp", "approximate_dp")
            )


def test_unknown_notion():
    with refused(ValueError, "certificate.notion_unknown", notion="magic"):
        Certificate(notion="magic", epsilon=1.0)
    with refused(ValueError, "certificate.notion_unknown", notion="magic"):
        Certificate(notion="pure_dp", epsilon=1.0).implies("magic")


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_conversion_needs_a_probability(delta):
    with refused(
        ValueError, ("parameter.is_nan", "parameter.probability_out_of_range")
    ):
        group(epsilon=1.0).to_approximate(delta)


@pytest.mark.parametrize("delta", ["0.1", None, 0.1j])
def test_conversion_needs_a_number(delta):
    with refused(TypeError, "parameter.not_real_number", name="delta"):
        group(epsilon=1.0).to_approximate(delta)


def test_without_both_sensitivities_there_is_no_gain():
    known = {"sensitivity": 2.0, "record_sensitivity": 1.0}
    assert Certificate(notion="pure_dp", epsilon=1.0, **known).gain == 0.5
    for name, value in known.items():
        assert Certificate(notion="pure_dp", epsilon=1.0, **{name: value}).gain is None
    # by the noise itself where that was compared, whatever the sensitivities say
    for more in ({}, known):
        made = Certificate(notion="pure_dp", epsilon=1.0, noise_gain=3.0, **more)
        assert made.gain == 3.0


def test_conversion_takes_the_whole_curve():
    certificate = group(epsilon=1.0, alpha=4)
    converted = certificate.to_approximate(1e-5)
    assert converted.notion is Notion.APPROXIMATE_DP
    assert converted.alpha is None and converted.delta == 1e-5
    assert converted.rpp_epsilon == math.inf
    # exact for Gaussian noise of mu = sqrt(2 * epsilon / alpha)
    assert converted.epsilon == pytest.approx(GaussianCurve(0.5**0.5).epsilon(1e-5))
    assert converted.coupling_id == certificate.coupling_id


def test_conversion_pays_for_the_event():
    with refused(ValueError, "certificate.delta_below_event", event=0.01, delta=0.01):
        EVENT.to_approximate(0.01)
    assert EVENT.to_approximate(0.02).epsilon == pytest.approx(
        GaussianCurve(1.0).epsilon(0.01)
    )
    assert EVENT.to_approximate(0.02).notion is Notion.APPROXIMATE_PUFFERFISH


def test_the_event_survives_a_conversion():
    """An (eps, delta) promise that rests on an event must not shed it afterwards."""
    converted = EVENT.to_approximate(0.02)
    with refused(ValueError, "certificate.delta_below_event", event=0.01):
        converted.to_approximate(1e-5)
    again = converted.to_approximate(0.015)
    assert again.epsilon == pytest.approx(GaussianCurve(1.0).epsilon(0.005))


def test_conversion_without_a_curve():
    with refused(UncertifiedError, "certificate.no_curve_to_convert"):
        Certificate(notion="renyi_dp", epsilon=1.0, alpha=2.0).to_approximate(1e-5)


def test_a_mutual_information_never_reads_as_epsilon():
    certificate = Certificate(notion="estimated", mutual_information=0.125)
    assert "mutual information ≤ 0.125 nats" in certificate.details()
    assert "ε" not in certificate.details().splitlines()[1]
    assert repr(certificate) == (
        "Certificate(notion='estimated', mutual_information=0.125)"
    )


@pytest.mark.parametrize(
    "distance, gain, text",
    [
        (0.004, 5.0, "5 times less noise than RecordScenario(relation='replace')"),
        (
            0.02,
            1.0,
            "none: RecordScenario(relation='replace') would have needed no more",
        ),
        (
            0.05,
            0.4,
            "none: RecordScenario(relation='replace') would have needed no more",
        ),
        (0.0, math.inf, "complete: the pairs of secrets do not move it"),
    ],
)
def test_gain_over_record_scenario(distance, gain, text):
    certificate = points(distance, epsilon=1.0)
    assert certificate.gain == pytest.approx(gain)
    assert text in certificate.details()


def test_gain_is_not_spoken_of_where_it_makes_no_sense():
    assert group(epsilon=1.0).gain is None
    assert "  gain" not in str(group(epsilon=1.0))


def test_confidence_is_shown():
    certificate = dataclasses.replace(EVENT, confidence=0.99)
    assert "0.99 (over the public sample)" in certificate.details()


def test_samples_are_never_a_promise():
    """A sample's W_inf misses rare atoms and bounds nothing: it is labelled."""
    scenario = LawsScenario([(Samples([0.0, 1.0]), PointMass(0))])
    certificate = GeneralWasserstein().calibrate(RELEASE, scenario).certificate
    assert certificate.notion is Notion.ESTIMATED
    assert certificate.sensitivity == 1.0
    assert certificate.rpp_epsilon == math.inf
    assert not certificate.composable


def test_data_of_a_certificate_names_its_schema_and_version():
    plain = Certificate(notion="pure_dp", epsilon=1.0, alpha=math.inf).to_dict()
    assert (plain["schema"], plain["version"]) == ("skpuffer.certificate", 5)
    assert Certificate.from_dict(plain).epsilon == 1.0
    for wrong in ({"schema": "other"}, {"schema": None}, {"version": "1"}):
        with refused(ValueError, "certificate.data_schema_wrong"):
            Certificate.from_dict(plain | wrong)
    with pytest.raises(ValueError, match="newer"):
        Certificate.from_dict(plain | {"version": VERSION + 1})
    del plain["schema"]
    with pytest.raises(ValueError, match="schema"):
        Certificate.from_dict(plain)


def first_line(**fields):
    return Certificate(**fields).details().split("\n")[1]


def test_a_renyi_promise_says_what_it_is_in_the_usual_words():
    curve = GaussianCurve(1.0)
    for notion in ("renyi_dp", "renyi_pufferfish"):
        fields = {"notion": notion, "epsilon": 2.0, "alpha": 4.0, "curve": curve}
        # 4.3772 of the curve, whatever epsilon is at the order
        assert first_line(**fields).endswith("; that is (4.378, 1e-05)")
        assert "that is" in Certificate(**fields)._repr_html_()
        # a delta that is small beside one over the number of records
        for n, delta in ((99_999, 1e-5), (10**5, 1e-6), (10**8, 1e-9)):
            shown = first_line(n_records=n, **fields).partition("that is (")[2]
            epsilon, said = (float(part) for part in shown.strip(")").split(", "))
            assert said == pytest.approx(delta)
            # never less than is certified
            assert 0 <= epsilon - curve.epsilon(delta) < 1e-3 * epsilon


@pytest.mark.parametrize("notion", Notion.known.values(), ids=str)
def test_only_what_converts_says_so(notion):
    """Never of slices, averages, information and estimates."""
    fields = {"notion": notion, "epsilon": 2.0, "alpha": 4.0, "curve": GaussianCurve(1)}
    converts = notion.certified and notion.approximate is not None
    assert ("that is" in first_line(**fields)) == converts
    for alpha in (None, math.inf):
        assert "that is" not in first_line(**fields | {"alpha": alpha})
    assert "that is" not in first_line(**fields | {"curve": None})
    # all of delta is taken by an event that no noise buys back
    assert "that is" not in first_line(**fields | {"event_delta": 1e-3, "delta": 1e-3})


def test_a_model_card_says_all_that_the_text_does():
    certificate = Certificate(
        notion="renyi_dp",
        epsilon=1.0,
        alpha=4.0,
        curve=GaussianCurve(0.5),
        scenario="AttributeScenario('a_b*c', prior=<table>)",
        assumptions=("one [sic]", "two"),
    )
    card = certificate.to_card()
    parts = ("Certificate", "Assumptions", "Check")
    assert list(card) == ["Privacy", *(f"Privacy/{part}" for part in parts)]
    assert "python -m skpuffer.certificate FILE" in card["Privacy/Check"]
    assert card["Privacy"].startswith("This is a guarantee.\n\n- **protected**")
    assert card["Privacy/Assumptions"] == "- one \\[sic]\n- two"
    text = card["Privacy/Certificate"]
    # nothing that Markdown or a browser would take for markup
    assert "'a\\_b\\*c', prior=&lt;table&gt;" in text
    assert all(line.startswith("- **") for line in text.splitlines())
    assert len(text.splitlines()) == len(certificate.details().splitlines()) - 4
    assert json.loads(json.dumps(card)) == card
    estimate = certificate.as_estimate("rows were read").to_card()
    assert "no guarantee" in estimate["Privacy"]
    assert "rows were read" in estimate["Privacy/Assumptions"]
    assert (
        "Privacy/Assumptions" not in Certificate(notion="pure_dp", epsilon=1).to_card()
    )


def test_skops_takes_the_sections():
    card = pytest.importorskip("skops.card").Card(None, template=None)
    made = Certificate(notion="pure_dp", epsilon=1.0, assumptions=("it is so",))
    card.add(**made.to_card())
    assert "### Assumptions" in card.render() or "## Assumptions" in card.render()
    assert "it is so" in card.render()


def test_what_was_changed_since_it_was_written_is_not_read():
    plain = CERTIFICATES["renyi_dp"]().to_dict()
    for change in ({"epsilon": 0.9}, {"assumptions": []}, {"digest": None}):
        with refused(ValueError, "certificate.data_digest_differs"):
            Certificate.from_dict(plain | change)


@pytest.mark.parametrize(
    "name", [key for key in CERTIFICATES["renyi_dp"]().to_dict() if key != "gain"]
)
def test_nothing_is_left_out_of_what_is_read(name):
    """Least of all that by which a change is seen; the gain is for readers alone."""
    plain = CERTIFICATES["renyi_dp"]().to_dict()
    del plain[name]
    if name != "digest":
        plain["digest"] = digest_of_plain(plain)
    codes = ("fields_wrong", "schema_wrong", "digest_differs")
    with refused(ValueError, tuple(f"certificate.data_{code}" for code in codes)):
        Certificate.from_dict(plain)


def test_the_digest_is_of_what_is_meant_and_not_of_how_it_is_written():
    plain = CERTIFICATES["renyi_dp"]().to_dict()
    rest = {name: value for name, value in plain.items() if name != "digest"}

    # one implementation in a few lines, as the guide describes it
    def canonical(value):
        if isinstance(value, dict):
            parts = (f"{json.dumps(k)}:{canonical(value[k])}" for k in sorted(value))
            return "{" + ",".join(parts) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(canonical, value)) + "]"
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return f"{value:.17g}" if number else json.dumps(value)

    own = hashlib.sha256(canonical(rest).encode("ascii")).hexdigest()
    assert plain["digest"] == f"sha256:{own}"
    assert Certificate.from_dict(plain | {"confidence": 1, "delta": 0})


@pytest.mark.parametrize("version", range(1, VERSION))
def test_data_of_an_older_version_is_still_read(version):
    since = [name for name, first in _SINCE.items() if first > version]
    fresh = CERTIFICATES["renyi_dp"]()
    for certificate in (fresh, fresh.as_seeded()):
        plain = certificate.to_dict() | {"version": version}
        if version < 4:
            # what was said was words alone
            plain["assumptions"] = [said["text"] for said in plain["assumptions"]]
            plain["source"] = plain["source"]["text"]
        plain = {name: held for name, held in plain.items() if name not in since}
        del plain["digest"]
        if version > 1:
            plain["digest"] = digest_of_plain(plain)
        again = Certificate.from_dict(plain)
        said = dataclasses.replace(
            again, assumptions=certificate.assumptions, source=certificate.source
        )
        assert said == certificate
        assert list(map(str, again.assumptions)) == list(
            map(str, certificate.assumptions)
        )
    for unknown in since[-1:]:
        with pytest.raises(ValueError, match=f"unknown .*{unknown}"):
            Certificate.from_dict(plain | {unknown: None})


def test_seeded_certificates_add_up_with_nothing():
    fresh = CERTIFICATES["renyi_dp"]()
    budget = Certificate(
        notion="mutual_information", mutual_information=0.1, composable=True
    )
    # the same certificates are added up without the seed
    assert compose([fresh, fresh]).n_releases == parallel([fresh, fresh]).n_releases
    for own, together in ((fresh, compose), (fresh, parallel), (budget, compose)):
        with refused(CompositionError, "compose.noise_from_seed"):
            together([own.as_seeded(), own])
        with refused(CompositionError, "compose.noise_from_seed"):
            together([own.as_seeded()])
    secret = dataclasses.replace(
        budget, notion="record_mutual_information", table_information=0.2
    )
    with refused(CompositionError, "compose.noise_from_seed"):
        mixed_information([secret, secret.as_seeded()])


def test_a_certificate_states_what_its_curve_is_composed_of():
    gaussian = [group(epsilon=1.0, delta=1e-5), group(epsilon=2.0, delta=1e-5)]
    both = compose(gaussian, counts=[3, 1])
    assert [count for _, count in both.events] == [3, 1]
    scales = [pair.curve.noise.scale for pair, _ in both.events]
    assert scales == [c.curve.noise.scale for c in gaussian]
    squares = sum(n * pair.curve.gaussian_mu**2 for pair, n in both.events)
    assert both.curve.mu == pytest.approx(math.sqrt(squares))
    # what is read off another curve is not made of these
    assert both.to_approximate(1e-6).events == both.events
    assert Certificate.from_dict(both.to_dict()) == both
