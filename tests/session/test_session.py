"""The door for analysts: shares of one budget, reports, and what is never kept."""

import copy
import json
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer import Session
from skpuffer.accountants import PrivacyLoss
from skpuffer.cluster import PrivateKMeans
from skpuffer.compose import PrivatePipeline
from skpuffer.datasets import load_adult
from skpuffer.exceptions import (
    BudgetExceededError,
    LedgerError,
    NotComposableError,
    UnsupportedError,
)
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLinearRegression, PrivateLogisticRegression
from skpuffer.naive_bayes import PrivateCategoricalNB
from skpuffer.privacy import compose
from skpuffer.scenarios import AttributeScenario, BoundedInference, RecordScenario
from skpuffer.schema import Number, Schema
from skpuffer.summary import (
    PrivateBounds,
    PrivateCDF,
    PrivateMean,
    PrivateQuantile,
    PrivateSummary,
)
from tests.engines import lazy_frame
from tests.refused import codes_of, refused

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

#: A number and a text that are in the table once, and nowhere else.
CANARY, SONG = 7351.0625, "kanarienvogel"
BOOK = Schema(
    {"age": (18, 90), "sex": ["F", "M"], "pay": (0, 10_000), "rich": ["no", "yes"]},
    target="rich",
)


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 91, n).astype(float),
            "pay": rng.uniform(0, 10_000, n),
            "sex": rng.choice(["F", "M"], n).astype(object),
            "person": np.arange(n) // 2,
        }
    )
    table["rich"] = np.where(table["pay"] > 5000, "yes", "no")
    table.loc[3, ["pay", "sex"]] = CANARY, SONG
    return table


TABLE = people()


def session(table=TABLE, schema=BOOK, ledger=":memory:", **options):
    return Session(table, schema, ledger=ledger, **options)


# -- shares ----------------------------------------------------------------------------


def promised(held):
    """Epsilon of all entries, composed anew from the ledger's certificates."""
    spent = held.ledger._spent
    counts = {spent.certificates[kind]: n for kind, n in spent._counts.items() if n}
    return compose(counts, delta=1e-5, counts=counts.values()).epsilon


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_shares_of_gaussian_noise_spend_the_budget_to_the_end(epsilon):
    held = session(epsilon=epsilon, size="public")
    held.summary(share=0.2, by="sex")
    held.fit(PrivateLogisticRegression(), share=0.3)
    held.fit(PrivateMean(), columns=["age"], share=0.1)
    assert held.left == pytest.approx(0.4, abs=1e-4)
    held.synthesize(share=0.4)
    assert held.left < 1e-4
    assert promised(held) == pytest.approx(epsilon, rel=1e-4)
    before = held.ledger.report()
    for share in (0.01, 1.0):
        with pytest.raises(BudgetExceededError):
            held.summary(share=share)
    pd.testing.assert_frame_equal(before, held.ledger.report())


def test_shares_that_sum_to_one_are_all_there():
    held = session(epsilon=4.0)
    for share in (0.1, 0.2, 0.3, 0.1, 0.1, 0.2):
        held.summary(share=share, columns=["age"])
    assert held.left < 1e-4
    notes = [json.loads(note) for note in held.ledger.notes()[1:]]
    assert [note["release"]["entries"] for note in notes] == [[i] for i in range(1, 7)]


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_releases_of_other_noise_use_nearly_all_of_their_share(share):
    held = session()
    held.fit(PrivateQuantile(), columns=["age"], share=share)
    assert 0.9 * share <= 1 - held.left <= share


ASKED = st.sampled_from(["summary", "regression", "bounds", "quantile", "own", "open"])
SHARES = st.sampled_from([0.02, 0.1, 0.25, 0.4, 0.7, 1.0])


@settings(deadline=None, max_examples=8)
@given(calls=st.lists(st.tuples(ASKED, SHARES), min_size=2, max_size=8))
def test_no_sequence_of_calls_costs_more_than_the_budget(calls):
    held = session(epsilon=2.0)
    for what, share in calls:
        left, n_entries = held.left, len(held.ledger.report())
        if what == "open":
            held = Session.open(held.ledger, TABLE)
            assert held.left == left
            continue
        own = PrivateMean(accountant=PrivacyLoss(share, 1e-6, noise="laplace"))
        ask, *model = {
            "summary": (held.summary,),
            "bounds": (held.bounds,),
            "quantile": (held.fit, PrivateQuantile()),
            "regression": (held.fit, PrivateLinearRegression()),
            "own": (held.fit, own),
        }[what]
        options = {} if what == "own" else {"share": share}
        options |= {"target": "pay"} if what == "regression" else {}
        try:
            ask(*model, columns=["age"], **options)
        except BudgetExceededError:
            assert what == "own" or share > left
            assert len(held.ledger.report()) == n_entries
            assert held.left == left
        else:
            assert len(held.ledger.report()) == n_entries + 1
            # what was asked for, and no more
            assert what == "own" or left - held.left <= share + 1e-4
            assert promised(held) <= 2.0 * (1 + 1e-6)
    assert held.report().count("epsilon alone") == 1


def test_threads_that_ask_at_once_share_one_budget():
    held = session()

    def ask(_):
        try:
            return held.summary(share=0.6, columns=["age"])
        except BudgetExceededError:
            return None

    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(ask, range(4))]
    assert sum(one is not None for one in found) == 1
    assert len(held.ledger.report()) == 1
    assert held.left == pytest.approx(0.4, abs=1e-4)


@pytest.mark.parametrize(
    "what",
    [
        PrivateMean(),
        PrivateQuantile(),
        PrivateBounds(),
        PrivateLinearRegression(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_preview_has_the_noise_of_the_release_and_spends_nothing(what):
    held, target = session(), "pay" if hasattr(what, "target_bounds") else None
    options = {"columns": ["age"], "target": target, "share": 0.3}
    preview = held.preview(what, **options)
    assert held.left == 1 and held.ledger.total() is None
    model = held.fit(what, **options)
    assert not hasattr(what, "certificate_")
    assert model.certificate_.epsilon == pytest.approx(preview.certificate.epsilon)
    np.testing.assert_allclose(model.noise_.scale, preview.noise.scale)


def test_a_preview_has_deviations_for_a_guess_at_the_number_of_records():
    held = session()
    preview = held.preview("summary", columns=["age"], share=0.5, n_records=600)
    # of the guess, whatever the table holds
    more = held.preview("summary", columns=["age"], share=0.5, n_records=60_000)
    std, less = (p.std["result_"].loc["mean", "age"] for p in (preview, more))
    assert 70 < std / less < 140
    found = held.summary(columns=["age"], share=0.5).result_std_
    expected = preview.std["result_"].loc[["count", "mean"], "age"]
    np.testing.assert_allclose(expected, found.loc[["count", "mean"], "age"], rtol=0.2)
    assert "mean" in str(preview) and "mean" in preview._repr_html_()


@pytest.mark.parametrize("what", ["summary", "synthesize"])
def test_a_preview_does_not_read_a_private_number_of_records(what):
    first, other = (session(people(n)).preview(what, share=0.5) for n in (600, 900))
    assert first.certificate.n_records is None
    # deviations as well, of which some need a number of records
    assert str(first) == str(other)


@pytest.mark.parametrize("share", [0, -0.1, 1.5, np.nan, None])
def test_shares_that_are_none_are_refused_before_anything_is_drawn(share):
    held = session()
    for ask in (held.summary, held.bounds):
        with pytest.raises(ValueError, match=r"share"):
            ask(share=share)
    assert held.ledger.total() is None


# -- what is fitted --------------------------------------------------------------------


def test_the_number_of_records_is_private_unless_it_is_said_to_be_public():
    held = session()
    assumed = codes_of(held.summary(share=0.1).certificate_.assumptions)
    assert "assume.neighbouring_tables_size_private" in assumed
    for ask in (
        lambda: held.fit(PrivateLogisticRegression(), share=0.1),
        lambda: held.fit(PrivateKMeans(), share=0.1),
        lambda: held.search(PrivateLogisticRegression(), {"C": [1.0]}, share=0.5),
    ):
        with refused(UnsupportedError, "session.size_needed"):
            ask()
    own = PrivateLogisticRegression(RecordScenario(size="public"))
    assert held.fit(own, share=0.1).certificate_.n_records == len(TABLE)
    # one record is replaced by another, so that their number is the same
    replaced = session(scenario=RecordScenario(relation="replace"))
    assert replaced.fit(PrivateLogisticRegression(), share=0.5).certificate_.certified


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        make_pipeline(StandardScaler(), PrivateLogisticRegression()),
        make_pipeline(PrivateLogisticRegression()),
    ],
)
def test_a_model_that_is_not_private_as_a_whole_is_refused(model):
    held = session(size="public")
    with refused(ValueError, "session.model_not_private"):
        held.fit(model, share=0.1)


def test_a_search_and_a_pipeline_are_single_releases_of_their_share():
    held = session(epsilon=8.0, size="public")
    search = held.search(PrivateLogisticRegression(), {"C": [0.1, 1.0]}, share=0.5)
    assert search.best_params_["C"] in (0.1, 1.0)
    assert held.left == pytest.approx(0.5, abs=1e-3)
    # what is known of the best of a random number of trials adds up by Rényi costs
    with refused(ValueError, "session.share_too_small"):
        held.search(
            PrivateLogisticRegression(), {"C": [1.0, 2.0]}, share=0.05, trials="poisson"
        )
    steps = [("bounds", PrivateBounds(schema=BOOK)), ("m", PrivateLogisticRegression())]
    held.fit(PrivatePipeline(steps), share=0.3)
    # the ledger hears of both of its releases
    assert len(held.ledger.report()) == 3
    text = held.report()
    assert "PrivateGridSearchCV" in text and "score" in text
    assert text.count("PrivatePipeline, rich") == 3


def test_seeds_and_other_scenarios_are_refused():
    held = session()
    with pytest.raises(NotComposableError):
        held.fit(PrivateMean(random_state=0), columns=["age"], share=0.1)
    for other in (RecordScenario(k=2), RecordScenario(unit="person", max_rows=2)):
        with refused(ValueError, "session.scenario_differs"):
            held.fit(PrivateMean(other), columns=["age"], share=0.1)
    assert held.left == 1
    limited = session(unit="person", max_rows=2)
    with refused(ValueError, "session.scenario_differs"):
        of_more = RecordScenario(unit="person", max_rows=3)
        limited.fit(PrivateMean(of_more), columns=["age"], share=0.1)
    for beside in ({"unit": "person"}, {"max_rows": 2}):
        with refused(ValueError, "session.unit_beside_scenario"):
            session(scenario=RecordScenario(), **beside)
    with pytest.raises(ValueError, match="'k'"):
        session(scenario=RecordScenario(k=0))


def test_an_unknown_secret_of_each_person_is_one_scenario_of_many():
    held = session(
        scenario=AttributeScenario(
            "sex", level="record", prior=BoundedInference(auc=0.7)
        )
    )
    held.fit(PrivateLogisticRegression(), share=0.5)
    assert held.ledger.total().epsilon <= 0.5 * (1 + 1e-6)
    assert held.left == pytest.approx(0.5, abs=0.05)
    assert "AttributeScenario" in held.report()


def test_a_share_under_another_scenario_is_that_of_epsilon_and_of_delta():
    held = session(scenario=AttributeScenario("sex", prior=BoundedInference(auc=0.7)))
    said = held.preview("summary", columns=["age"], share=0.25).certificate
    assert said.epsilon == pytest.approx(0.25, rel=0.01)
    assert said.delta == pytest.approx(0.25e-5)


def test_all_rows_of_a_unit_are_protected_together():
    held = session(unit="person", max_rows=2)
    model = held.fit(
        PrivateLinearRegression(), target="pay", columns=["age"], share=0.5
    )
    assert model.scenario.unit == "person"
    assert held.preview("summary", share=0.2, n_records=300).std
    held.summary(share=0.5, by="sex")
    text = held.report()
    assert "all rows of one of the values of 'person'" in text
    assert "value of this table" in text and "of the population" not in text


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_lazy_frames_are_summed_where_they_lie(engine):
    held = session(lazy_frame(engine, TABLE.drop(columns="person")))
    summary = held.summary(share=0.3, by="sex", columns=["age"])
    assert summary.to_frame()["n"].max() < 1000
    # a lazy table is read by bounds, and not by a code book
    model = PrivateLinearRegression(bounds=(18, 90), target_bounds=(0, 10_000))
    held.fit(model, columns=["age"], target="pay", share=0.3)
    assert held.left == pytest.approx(0.4, abs=1e-4)


def test_bounds_that_were_found_serve_a_later_release():
    wide = Schema({"pay": Number(0, 1e9, missing=False)})
    held = session(TABLE.drop(index=3), wide, epsilon=4.0)
    found = held.bounds(share=0.3).to_schema()
    # a cell beside those that hold records may seem to hold some
    assert found["pay"].high <= 2**21
    mean = held.fit(PrivateMean(schema=found), share=0.3)
    assert abs(mean.mean_[0] - TABLE["pay"].mean()) < 0.1 * found["pay"].high


def test_groups_that_nobody_listed_are_released_too():
    held = session(schema=BOOK.without("sex"), epsilon=4.0)
    summary = held.summary(by="sex", columns=["age"], share=0.5)
    assert set(summary.result_.index) == {"F", "M"}
    assert SONG not in held.report()
    with refused(UnsupportedError, "session.groups_not_known"):
        held.preview("summary", by="sex", columns=["age"], share=0.1)


@pytest.mark.parametrize("size", ["private", "public"])
def test_groups_that_nobody_listed_cost_no_more_than_their_share(size):
    held = session(schema=BOOK.without("sex"), size=size)
    held.summary(by="sex", columns=["age"], share=0.1)
    assert 0.9 - 1e-5 < held.left < 0.905


def test_bounds_are_found_within_a_fit_and_need_no_number_of_records():
    held = session(epsilon=4.0)
    model = held.fit(PrivateSummary(bounds=PrivateBounds()), share=0.5)
    low, high = model.found_bounds_["age"]
    assert BOOK["age"].low <= low < high <= BOOK["age"].high
    assert held.left == pytest.approx(0.5, abs=0.01)


# -- a week later, in another process --------------------------------------------------


def elsewhere(code, folder):
    """Run code in a new process, in a folder that holds the table."""
    TABLE.to_pickle(folder / "table.pkl")
    head = f"""
        import os, pandas as pd, skpuffer
        from skpuffer.summary import PrivateMean
        os.chdir({str(folder)!r})
        table = pd.read_pickle("table.pkl")
    """
    code = textwrap.dedent(head) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False)
    return done.returncode


def test_another_process_goes_on_with_what_is_left(tmp_path):
    path = tmp_path / "budget.db"
    held = session(ledger=path)
    held.summary(share=0.4, by="sex")
    held.close()
    code = """
        held = skpuffer.Session.open("budget.db", table)
        assert abs(held.left - 0.6) < 1e-4, held
        held.fit(PrivateMean(), columns=["age"], share=0.35)
        assert "1. PrivateSummary, sex" in held.report("report.html")
        try:
            held.summary(share=0.5)
        except skpuffer.exceptions.BudgetExceededError:
            os._exit(7)
    """.replace("skpuffer.exceptions", "__import__('skpuffer.exceptions').exceptions")
    assert elsewhere(code, tmp_path) == 7
    assert held.left == pytest.approx(0.25, abs=1e-3)
    text = held.report()
    assert text.count("PrivateMean") == 2 and "25.0%" in text
    assert "<table>" in (tmp_path / "report.html").read_text("utf-8")
    again = session(ledger=path)
    assert again.report() == text
    # the order of columns is kept
    assert Session.open(path, TABLE).schema == BOOK and list(BOOK) != sorted(BOOK)


def test_a_killed_process_has_spent_its_share(tmp_path):
    path = tmp_path / "budget.db"
    held = session(ledger=path)
    code = """
        PrivateMean._publish = lambda *_: os._exit(9)
        held = skpuffer.Session.open("budget.db", table)
        held.fit(PrivateMean(), columns=["age"], share=0.5)
    """
    assert elsewhere(code, tmp_path) == 9
    assert held.left == pytest.approx(0.5, abs=1e-4)
    assert "PrivateMean, whose result was not kept" in held.report()
    with pytest.raises(BudgetExceededError):
        held.summary(share=0.6)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": BOOK.without("sex")},
        {"scenario": RecordScenario(k=2)},
        {"unit": "person", "max_rows": 2},
        {"size": "public"},
        {"epsilon": 2.0},
        {"delta": 1e-6},
    ],
    ids=str,
)
def test_a_ledger_of_another_session_is_refused(tmp_path, change):
    path = tmp_path / "budget.db"
    session(ledger=path)
    session(ledger=path)
    with pytest.raises(LedgerError):
        session(ledger=path, **change)


def test_a_ledger_without_a_session_is_refused_or_taken_over(tmp_path):
    path = tmp_path / "budget.db"
    ledger = PrivacyLedger(path, {"approximate_dp": (1.0, 1e-5)})
    with ledger:
        PrivateMean(accountant=PrivacyLoss(0.5, 1e-5), bounds=(0, 1)).fit([[0.5]] * 9)
    with refused(LedgerError, "session.none_in_file"):
        Session.open(path, TABLE)
    held = session(ledger=path)
    assert held.left < 0.8 and "was not kept" in held.report()
    secret = AttributeScenario("sex", level="record", prior=BoundedInference(auc=0.7))
    other = session(scenario=secret, ledger=tmp_path / "other.db")
    with refused(LedgerError, "session.scenario_not_given"):
        Session.open(other.ledger, TABLE)
    assert Session.open(other.ledger, TABLE, scenario=secret).left == 1
    with refused(ValueError, "session.columns_missing"):
        Session.open(path, TABLE.drop(columns="sex"))


def test_an_entry_that_protects_less_than_the_session_is_not_reported_as_more():
    held = session(scenario=RecordScenario(k=2))
    held.summary(share=0.2)
    with held.ledger:
        mean = PrivateMean(accountant=PrivacyLoss(0.1, 1e-5), bounds=(0, 1))
        mean.fit([[0.5]] * 9)
    for ask in (held.report, lambda: held.summary(share=0.2)):
        with refused(LedgerError, "session.weaker_entry"):
            ask()


# -- reports, and what is never kept ---------------------------------------------------


def test_no_cell_is_in_a_report_or_the_ledger_and_no_session_is_copied(tmp_path):
    held = session(ledger=tmp_path / "budget.db", epsilon=50.0, size="public")
    held.summary(share=0.2, by="sex", statistics=["count", "mean", "max", "histogram"])
    held.fit(PrivateLogisticRegression(), share=0.2)
    held.synthesize(share=0.2)
    texts = [held.report(format=form) for form in ("text", "html", "markdown")]
    held.close()
    kept = (tmp_path / "budget.db").read_bytes().decode("latin-1")
    for text in (*texts, kept, repr(held), str(held)):
        assert SONG not in text and str(CANARY) not in text
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with refused(TypeError, "session.not_pickled"):
            copied(held)


def test_reports_show_what_is_released_in_every_format(tmp_path):
    held = session(epsilon=3.0)
    assert "Nothing was released" in held.report()
    summary = held.summary(share=0.5, by="sex", columns=["age"])
    held.fit(PrivateQuantile(), columns=["age"], share=0.2)
    held.fit(PrivateCDF(), columns=["age"], share=0.1)
    row = summary.to_frame().iloc[3]
    for ending, form in {"txt": "text", "html": "html", "md": "markdown"}.items():
        text = held.report(tmp_path / f"report.{ending}")
        assert text == held.report(format=form)
        assert (tmp_path / f"report.{ending}").read_text("utf-8") == text
        for number in ("estimate", "low", "high"):
            assert f"{row[number]:.5g}" in text
        assert f"{held.left:.1%}" in text and "PrivateQuantile" in text
        assert "50.0%" in text
        # of the function
        assert all(f"{q}%" in text for q in (25, 75))
    total = held.ledger.total().epsilon
    assert f"{np.exp(total):.3g} times as likely" in text
    assert f"{np.exp(total) / (1 + np.exp(total)):.1%}" in text
    with pytest.raises(ValueError, match="format"):
        held.report(format="pdf")


def test_what_a_report_shows_is_never_markup():
    names = {"<b>x</b>": (0, 1), "g": ["a|b", "<script>"]}
    table = pd.DataFrame({"<b>x</b>": [0.5] * 300, "g": 150 * ["a|b", "<script>"]})
    held = session(table, names)
    held.summary(share=0.5, by="g")
    assert "<b>x" not in held.report(format="html")
    assert "<script>" not in held.report(format="html")
    lines = held.report(format="markdown").splitlines()
    assert (
        len({line.replace("\\|", "").count("|") for line in lines if "a\\|b" in line})
        == 1
    )


# -- the wage regression ---------------------------------------------------------------


@pytest.mark.parametrize("size", ["private", "public"])
def test_hours_by_education_are_about_as_sure_as_without_privacy(size):
    """50,000 records, drawn with replacement from the Adult table that is shipped."""
    adult = load_adult(subset="all").frame
    table = adult.sample(50_000, replace=True, random_state=0)
    columns = {"education-num": (1, 16), "hours-per-week": (1, 99)}
    x, y = (table[name].to_numpy(float) for name in columns)
    slope = np.polyfit(x, y, 1)
    left = y - np.polyval(slope, x)
    width = np.sqrt(left.var() / x.var() / len(x))
    held = session(table, columns, size=size)
    model = held.fit(PrivateLinearRegression(), target="hours-per-week", share=1.0)
    found = model.to_frame().set_index("column").loc["education-num"]
    assert found["low"] <= slope[0] <= found["high"]
    assert found["std_error"] <= 1.6 * width
    assert model.certificate_.epsilon == pytest.approx(1.0)


def test_generic_tables_hold_every_released_number():
    mean = PrivateMean(bounds=(0, 1)).fit(np.full((100, 2), 0.5))
    frame = mean.to_frame()
    np.testing.assert_array_equal(frame["estimate"], mean.mean_)
    low, high = mean.confidence_interval(of="population")["mean_"]
    np.testing.assert_array_equal(frame["low"], low)
    np.testing.assert_array_equal(mean.to_frame(of="population")["high"], high)
    bounds = PrivateBounds(bounds=(0, 1)).fit(np.full((100, 2), 0.5))
    np.testing.assert_array_equal(
        bounds.to_frame()["estimate"], np.concatenate(bounds.bounds_)
    )
    with refused(UnsupportedError, "release.no_confidence_intervals"):
        bounds.to_frame(of="table")
    model = PrivateLogisticRegression().fit([[0.0, 1], [1.0, 0]] * 50, [0, 1] * 50)
    assert model.to_frame()["column"].tolist() == [0, 1, ""]


@pytest.mark.parametrize("size", ["private", "public"])
def test_classes_and_synthetic_rows_need_no_number_of_records(size):
    """With hardly any noise they are what they are of a public number."""
    table = people(3000).drop(index=3)
    held = session(table, epsilon=1e5, delta=1e-9, size=size)
    model = held.fit(PrivateCategoricalNB(), share=0.3)
    counts = table["rich"].value_counts()[["no", "yes"]]
    np.testing.assert_allclose(model.class_count_, counts, atol=1)
    rows = held.synthesize(share=0.3)
    assert abs(rows.n_samples_ - len(table)) <= 1
    np.testing.assert_allclose(rows.marginal("rich").to_numpy(), counts, atol=2)
    shares = rows.marginal(["sex", "rich"]).to_numpy() / len(table)
    expected = pd.crosstab(table["sex"], table["rich"]).to_numpy() / len(table)
    np.testing.assert_allclose(shares[[0, 1, 2, 3]], expected.ravel(), atol=0.01)
