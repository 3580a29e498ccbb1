"""The fetchers: parsing of both forms, conventions, counts of the real files."""

import gzip
import hashlib
import inspect
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import skpuffer.datasets
from skpuffer.datasets import (
    _measurements,
    fetch_activity,
    fetch_adult,
    fetch_german_credit,
    fetch_heart,
    fetch_household_power,
    fetch_rice,
    fetch_student,
)
from skpuffer.datasets._tables import published
from tests.refused import refused

FETCHERS = [
    fetch_activity,
    fetch_adult,
    fetch_german_credit,
    fetch_heart,
    fetch_household_power,
    fetch_rice,
    fetch_student,
]

# A few rows in the publisher's form and as ready CSV; the texts follow the quirks of
# the published files (blanks, comment line, full stops, quoted numbers, ARFF header).
ADULT_TRAIN = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, \
White, Male, 2174, 0, 40, United-States, <=50K
54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, \
Asian-Pac-Islander, Male, 0, 0, 60, South, >50K

"""
ADULT_TEST = """\
|1x3 Cross validator
25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, \
Black, Male, 0, 0, 40, ?, <=50K.
44, Private, 160323, Some-college, 10, Married-civ-spouse, Machine-op-inspct, \
Husband, Black, Female, 7688, 0, 40, United-States, >50K.

"""
HEART = """\
63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0
52.0,1.0,3.0,138.0,223.0,0.0,0.0,169.0,0.0,0.0,1.0,?,3.0,2
"""
STUDENT = (
    "school;sex;age;address;famsize;Pstatus;Medu;Fedu;Mjob;Fjob;reason;guardian;"
    "traveltime;studytime;failures;schoolsup;famsup;paid;activities;nursery;higher;"
    "internet;romantic;famrel;freetime;goout;Dalc;Walc;health;absences;G1;G2;G3\n"
    '"GP";"F";18;"U";"GT3";"A";4;4;"at_home";"teacher";"course";"mother";2;2;0;'
    '"yes";"no";"no";"no";"yes";"yes";"no";"no";4;3;4;1;1;3;6;"5";"6";7\n'
)
RICE_ROWS = """\
15231,525.5789794921875,229.7498779296875,85.09378814697266,0.9288820028305054,\
15617,0.5728955268859863,Cammeo
11434,404.7099914550781,161.07928466796875,90.8681869506836,0.8256921768188477,\
11591,0.8029495477676392,Osmancik
"""
RICE_ARFF = """\
% a remark
@RELATION Rice
@ATTRIBUTE Area Integer
@ATTRIBUTE Class {Cammeo, Osmancik}

@DATA
"""
GERMAN_CREDIT = """\
A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1
A12 48 A32 A410 5951 A61 A73 2 A92 A101 2 A121 22 A143 A152 1 A173 1 A191 A201 2
"""
POWER = """\
Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;\
Sub_metering_1;Sub_metering_2;Sub_metering_3
16/12/2006;17:58:00;4.216;0.418;234.840;18.400;0.000;1.000;17.000
16/12/2006;17:59:00;?;?;?;?;?;?;
16/12/2006;18:00:00;5.374;0.498;233.290;23.000;0.000;2.000;17.000
"""
POWER_HOURS = """\
datetime,Global_active_power,Global_reactive_power,Voltage,Global_intensity,\
Sub_metering_1,Sub_metering_2,Sub_metering_3,Global_active_power_filled,\
has_missing_minutes
2006-12-16 17:00:00,4.216,0.418,234.84,18.4,0,1,17,4.216,1
2006-12-16 18:00:00,5.374,0.498,233.29,23,0,2,17,5.374,0
"""
POWER_26_DAYS = """\
datetime,Global_active_power,Global_reactive_power,Voltage,Global_intensity,\
Sub_metering_1,Sub_metering_2,Sub_metering_3
2006-12-16 17:58:00,4.216,0.418,234.840,18.400,0.000,1.000,17.000
2006-12-16 18:00:00,5.374,0.498,233.290,23.000,0.000,2.000,17.000
"""
ACTIVITY = """\
room,trial,sex,time_s,activity
S1,d1p02M,M,0,3
S1,d1p02M,M,0.5,1
S2,d2p01F,F,0,4
"""


def ready(columns, text):
    rows = [
        line.replace(", ", ",").removesuffix(".")
        for line in text.splitlines()
        if line and not line.startswith("|")
    ]
    return "\n".join([",".join(columns), *rows, ""])


def columns(table):
    return published(table).columns


# (table, part, publisher's text, ready text)
SMALL = (
    ("adult", "train", ADULT_TRAIN, ready(columns("adult"), ADULT_TRAIN)),
    ("adult", "test", ADULT_TEST, ready(columns("adult"), ADULT_TEST)),
    ("activity", "all", ACTIVITY, ACTIVITY),
    (
        "german_credit",
        "all",
        GERMAN_CREDIT,
        ready(columns("german_credit"), GERMAN_CREDIT.replace(" ", ",")),
    ),
    ("household_power_hours", "hours", POWER, POWER_HOURS),
    ("household_power", "minutes_26_days", POWER, POWER_26_DAYS),
    ("heart", "all", HEART, ready(columns("heart"), HEART)),
    ("rice", "all", RICE_ARFF + RICE_ROWS, ready(columns("rice"), RICE_ROWS)),
    ("student", "mathematics", STUDENT, STUDENT),
)


@pytest.fixture(params=["publisher", "ready"])
def small(request, tmp_path, monkeypatch):
    """Put small tables of one form into a data home, with their own checksums."""
    for name, part, text, csv in SMALL:
        files = published(name).files
        table = replace(
            files[part],
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            ready_sha256=hashlib.sha256(csv.encode()).hexdigest(),
            urls=(),
        )
        monkeypatch.setitem(files, part, table)
        if request.param == "publisher":
            (tmp_path / table.name).write_text(text)
        else:
            (tmp_path / table.ready_name).write_text(csv)
    return tmp_path


def test_adult_rows(small):
    adult = fetch_adult(subset="all", data_home=small)
    frame = adult.frame
    assert frame["age"].tolist() == [39, 54, 25, 44]
    assert frame["income"].tolist() == ["<=50K", ">50K", "<=50K", ">50K"]
    assert frame["race"].tolist() == ["White", "Asian-Pac-Islander", "Black", "Black"]
    assert frame["workclass"].isna().tolist() == [False, True, False, False]
    assert frame["native-country"].isna().tolist() == [False, False, True, False]
    assert frame.isna().sum().sum() == 3
    assert frame.index.tolist() == [0, 1, 2, 3]
    for subset, rows in (("train", slice(2)), ("test", slice(2, 4))):
        part = fetch_adult(subset=subset, data_home=small).frame
        assert_frame_equal(part, frame.iloc[rows].reset_index(drop=True))


def test_heart_rows(small):
    heart = fetch_heart(data_home=small)
    assert heart.target.tolist() == [0, 2]
    assert heart.data["oldpeak"].tolist() == [2.3, 0.0]
    assert np.isnan(heart.data["ca"]).tolist() == [False, True]
    kinds = {column: heart.frame[column].dtype.kind for column in heart.frame}
    assert {column for column, kind in kinds.items() if kind == "f"} == {
        "oldpeak",
        "ca",
        "thal",
    }
    assert set(kinds.values()) == {"f", "i"}


def test_student_rows(small):
    student = fetch_student(data_home=small)
    assert student.target.tolist() == [7]
    assert student.data[["G1", "G2"]].to_numpy().tolist() == [[5, 6]]
    assert student.data["Mjob"].tolist() == ["at_home"]
    assert (student.frame.dtypes == "int64").sum() == 16


def test_rice_rows(small):
    rice = fetch_rice(data_home=small)
    assert rice.target.tolist() == ["Cammeo", "Osmancik"]
    # The file prints single precision in full: every digit must arrive.
    assert rice.data["Perimeter"].tolist() == [525.5789794921875, 404.7099914550781]
    assert rice.data["Area"].tolist() == [15231, 11434]


def test_german_credit_rows(small):
    credit = fetch_german_credit(data_home=small)
    assert credit.target.tolist() == [1, 2]
    assert credit.data["purpose"].tolist() == ["A43", "A410"]
    assert credit.data["credit_amount"].tolist() == [1169, 5951]
    assert (credit.frame.dtypes == "int64").sum() == 8


def test_measurements_rows(small):
    hours = fetch_household_power(data_home=small)
    assert hours.frame.index.strftime("%d %H:%M").tolist() == ["16 17:00", "16 18:00"]
    assert hours.target.tolist() == [4.216, 5.374]
    assert hours.data["Global_active_power_filled"].tolist() == [4.216, 5.374]
    assert hours.data["has_missing_minutes"].tolist() == [1, 0]
    minutes = fetch_household_power("minutes_26_days", data_home=small)
    # the missing minute is there, and empty
    assert minutes.frame.index.strftime("%M").tolist() == ["58", "59", "00"]
    assert minutes.frame.isna().all(axis=1).tolist() == [False, True, False]
    assert minutes.data["Voltage"].iloc[[0, 2]].tolist() == [234.84, 233.29]
    assert minutes.frame.shape == (3, 7)


def test_all_minutes_are_the_publishers(tmp_path, monkeypatch):
    digest = hashlib.sha256(POWER.encode()).hexdigest()
    tables = published("household_power").files
    for series in tables:
        table = replace(tables[series], sha256=digest, urls=())
        monkeypatch.setitem(tables, series, table)
    (tmp_path / "household_power_consumption.txt").write_text(POWER)
    # what lies beyond the days that the prepared file holds is left out of them
    monkeypatch.setattr(_measurements, "_LAST_OF_26_DAYS", "2006-12-16 17:59")
    everything = fetch_household_power("minutes", data_home=tmp_path).frame
    first = fetch_household_power("minutes_26_days", data_home=tmp_path).frame
    assert len(everything) == 3
    assert_frame_equal(first, everything.iloc[:2])


def test_missing_minutes_are_filled_from_the_nearest_day_that_has_them():
    index = pd.date_range("2020-01-01", periods=3 * 1440, freq="min", name="datetime")
    minutes = pd.DataFrame({"Global_active_power": 1.0}, index=index)
    minutes.iloc[:1440] = 2.0
    minutes.iloc[1440:] = np.nan
    minutes.iloc[2 * 1440 + 60 :] = 1.0
    hours = _measurements._by_the_hour(minutes)
    found = hours["Global_active_power_filled"].to_numpy()
    assert found.tolist() == [120.0] * 49 + [60.0] * 23
    assert hours["Global_active_power"].tolist() == [120.0] * 24 + [0.0] * 25 + (
        [60.0] * 23
    )
    assert hours["has_missing_minutes"].tolist() == [0] * 24 + [1] * 25 + [0] * 23


def test_activity_rows(small):
    activity = fetch_activity(data_home=small)
    assert activity.target.tolist() == [3, 1, 4]
    assert activity.data["time_s"].tolist() == [0.0, 0.5, 0.0]
    assert activity.data["trial"].tolist() == ["d1p02M", "d1p02M", "d2p01F"]


def test_activities_are_assembled_from_the_file_of_each_trial():
    trials = {
        "folder/S2_Dataset/d2p01F": b"0,0.27,1.008,-0.08,1,-63.5,2.4,924.25,4\n",
        "folder/S1_Dataset/d1p02M": b"0,0.9,0.1,0,1,-63,2,924,3\r\n"
        b"0.5,0.9,0.1,0,1,-63,2,924,1",
    }
    assert published("activity").files["all"].assemble(trials) == ACTIVITY.encode()


@pytest.mark.parametrize("fetch", FETCHERS)
def test_conventions_of_scikit_learn(small, fetch):
    bunch = fetch(data_home=small)
    X, y = fetch(data_home=small, return_X_y=True)
    assert isinstance(X, pd.DataFrame)
    assert isinstance(y, pd.Series)
    assert_frame_equal(X, bunch.data)
    assert y.equals(bunch.target)
    assert bunch.target_names == [y.name]
    assert bunch.feature_names == X.columns.tolist()
    assert_frame_equal(bunch.frame, X.assign(**{y.name: y})[bunch.frame.columns])

    arrays = fetch(data_home=small, as_frame=False)
    assert isinstance(arrays.data, np.ndarray)
    assert isinstance(arrays.target, np.ndarray)
    assert arrays.frame is None
    assert arrays.data.shape == X.shape
    assert arrays.target.shape == y.shape
    assert arrays.target.tolist() == y.tolist()
    assert (pd.isna(arrays.data) == X.isna().to_numpy()).all()
    numeric = fetch in (fetch_heart, fetch_household_power, fetch_rice)
    assert arrays.data.dtype == (np.float64 if numeric else object)


@pytest.mark.parametrize("fetch", FETCHERS)
def test_public_facts_cover_every_column(small, fetch):
    bunch = fetch(data_home=small)
    numeric = set(bunch.frame.select_dtypes("number"))
    assert set(bunch.bounds) == numeric
    assert set(bunch.categories) >= set(bunch.frame.columns) - numeric
    assert set(bunch.categories) <= set(bunch.frame.columns)
    assert all(low < high for low, high in bunch.bounds.values())
    for column, codes in bunch.categories.items():
        assert len(set(codes)) == len(codes) >= 2
        if column not in numeric:
            assert bunch.frame[column].cat.categories.tolist() == codes
    for word in ("CC BY 4.0", "Citation", "UCI", "https://", "Quirks", "public"):
        assert word in bunch.DESCR


def test_public_facts_are_copies(small):
    first = fetch_adult(data_home=small)
    first.categories["sex"].append("unknown")
    first.bounds["age"] = (0, 1)
    second = fetch_adult(data_home=small)
    assert second.categories["sex"] == ["Female", "Male"]
    assert second.bounds["age"] == (17, 90)


@pytest.mark.parametrize("fetch", FETCHERS)
@pytest.mark.parametrize(
    "bad",
    [
        {"as_frame": "yes"},
        {"return_X_y": 1},
        {"download_if_missing": None},
        {"n_retries": -1},
        {"n_retries": 0.5},
        {"delay": -1.0},
    ],
)
def test_options_are_checked_before_anything_is_read(tmp_path, fetch, bad):
    (name,) = bad
    home = tmp_path / "absent"
    with pytest.raises(ValueError, match=name):
        fetch(data_home=home, **bad)
    assert not home.exists()


def test_unknown_part_is_refused(tmp_path):
    with refused(
        ValueError,
        "parameter.option_unknown",
        name="subset",
        listed="'train', 'test', 'all'",
    ):
        fetch_adult(subset="dev", data_home=tmp_path)
    with refused(
        ValueError,
        "parameter.option_unknown",
        name="subject",
        listed="'mathematics', 'portuguese'",
    ):
        fetch_student("physics", data_home=tmp_path)
    with refused(ValueError, "parameter.option_unknown", name="series"):
        fetch_household_power("days", data_home=tmp_path)


@pytest.mark.parametrize("fetch", FETCHERS)
def test_missing_table_is_an_oserror(tmp_path, fetch):
    with refused(OSError, "dataset.download_forbidden"):
        fetch(data_home=tmp_path, download_if_missing=False)


def test_parameters_and_exports():
    common = {
        "data_home": None,
        "download_if_missing": True,
        "return_X_y": False,
        "as_frame": True,
        "n_retries": 3,
        "delay": 1.0,
    }
    own = {
        fetch_adult: {"subset": "train"},
        fetch_household_power: {"series": "hours"},
        fetch_student: {"subject": "mathematics"},
    }
    for fetch in FETCHERS:
        found = {
            name: parameter.default
            for name, parameter in inspect.signature(fetch).parameters.items()
        }
        assert found == own.get(fetch, {}) | common
    fetchers = [n for n in skpuffer.datasets.__all__ if n.startswith("fetch_")]
    assert fetchers == sorted(f.__name__ for f in FETCHERS)


# The published files themselves, when a folder of them is named.

REAL = os.environ.get("SKPUFFER_TEST_DATA")
needs_real_files = pytest.mark.skipif(
    REAL is None, reason="SKPUFFER_TEST_DATA names no folder of the published files"
)


@pytest.fixture(params=["publisher", "ready"])
def real(request, tmp_path):
    """Give a data home with the published files in one form."""
    if request.param == "ready":
        return Path(REAL)
    for path in (Path(REAL) / "original").iterdir():
        shutil.copy(path, tmp_path / path.name)
    for subject in ("mat", "por"):  # published as they are, under another name
        content = (Path(REAL) / f"student_{subject}.csv").read_bytes()
        packed = tmp_path / f"student-{subject}.csv.gz"
        packed.write_bytes(gzip.compress(content))
    return tmp_path


def counts(column):
    return column.value_counts().to_dict()


def missing(frame):
    cells = frame.isna().sum()
    return cells[cells > 0].to_dict()


def assert_public_facts_hold(bunch):
    """No value lies outside the published bounds and codes."""
    for column, (low, high) in bunch.bounds.items():
        assert bunch.frame[column].dropna().between(low, high).all(), column
    for column, codes in bunch.categories.items():
        assert set(bunch.frame[column].dropna()) <= set(codes), column


@needs_real_files
@pytest.mark.parametrize(
    "subset, rows, classes, empty, complete, repeated",
    [
        ("train", 32561, (24720, 7841), (1836, 1843, 583), 30162, 24),
        ("test", 16281, (12435, 3846), (963, 966, 274), 15060, 5),
    ],
)
def test_real_adult(real, subset, rows, classes, empty, complete, repeated):
    adult = fetch_adult(subset=subset, data_home=real, download_if_missing=False)
    assert adult.data.shape == (rows, 14)
    assert counts(adult.target) == dict(zip(("<=50K", ">50K"), classes, strict=True))
    columns = ("workclass", "occupation", "native-country")
    assert missing(adult.frame) == dict(zip(columns, empty, strict=True))
    assert len(adult.frame.dropna()) == complete
    assert adult.frame.duplicated().sum() == repeated
    dutch = adult.frame["native-country"].eq("Holand-Netherlands").sum()
    assert dutch == (1 if subset == "train" else 0)
    # The order of the codes of education is that of education-num.
    codes = adult.frame["education"].cat.codes + 1
    assert codes.equals(adult.frame["education-num"].astype(codes.dtype))
    assert_public_facts_hold(adult)


@needs_real_files
def test_real_adult_in_one(real):
    everyone = fetch_adult(subset="all", data_home=real, download_if_missing=False)
    assert everyone.frame.shape == (48842, 15)
    test = fetch_adult(subset="test", data_home=real, download_if_missing=False)
    assert_frame_equal(everyone.frame[32561:].reset_index(drop=True), test.frame)


@needs_real_files
def test_real_heart(real):
    heart = fetch_heart(data_home=real, download_if_missing=False)
    assert heart.data.shape == (303, 13)
    assert counts(heart.target) == {0: 164, 1: 55, 2: 36, 3: 35, 4: 13}
    assert (heart.target > 0).sum() == 139
    assert missing(heart.frame) == {"ca": 4, "thal": 2}
    assert len(heart.frame.dropna()) == 297
    assert_public_facts_hold(heart)


@needs_real_files
@pytest.mark.parametrize(
    "subject, rows, schools, sexes, means, zeros",
    [
        ("mathematics", 395, (349, 46), (208, 187), (10.909, 10.714, 10.415), 38),
        ("portuguese", 649, (423, 226), (383, 266), (11.399, 11.570, 11.906), 15),
    ],
)
def test_real_student(real, subject, rows, schools, sexes, means, zeros):
    student = fetch_student(subject, data_home=real, download_if_missing=False)
    assert student.data.shape == (rows, 32)
    assert counts(student.data["school"]) == dict(
        zip(("GP", "MS"), schools, strict=True)
    )
    assert counts(student.data["sex"]) == dict(zip("FM", sexes, strict=True))
    grades = student.frame[["G1", "G2", "G3"]]
    np.testing.assert_allclose(grades.mean(), means, atol=5e-4)
    assert (student.target == 0).sum() == zeros
    assert missing(student.frame) == {}
    assert_public_facts_hold(student)


@needs_real_files
def test_real_rice(real):
    rice = fetch_rice(data_home=real, download_if_missing=False)
    assert rice.data.shape == (3810, 7)
    assert counts(rice.target) == {"Osmancik": 2180, "Cammeo": 1630}
    assert rice.target.cat.codes.is_monotonic_increasing
    assert missing(rice.frame) == {}
    assert not rice.frame.duplicated().any()
    assert_public_facts_hold(rice)


@needs_real_files
def test_real_german_credit(real):
    credit = fetch_german_credit(data_home=real, download_if_missing=False)
    assert credit.data.shape == (1000, 20)
    assert counts(credit.target) == {1: 700, 2: 300}
    assert missing(credit.frame) == {}
    amount = credit.data["credit_amount"]
    assert (amount.min(), amount.max()) == (250, 18424)
    absent = {
        code
        for column, codes in credit.categories.items()
        for code in set(codes) - set(credit.frame[column])
    }
    assert absent == {"A47", "A95"}
    assert_public_facts_hold(credit)


@needs_real_files
def test_real_hours():
    hours = fetch_household_power(data_home=REAL, download_if_missing=False)
    assert hours.data.shape == (34589, 8)
    ends = hours.frame.index[[0, -1]].strftime("%Y-%m-%d %H:%M").tolist()
    assert ends == ["2006-12-16 17:00", "2010-11-26 21:00"]
    # the known mean of the known number of minutes that are not missing
    assert hours.target.sum() == pytest.approx(1.0916150 * 2049280, rel=5e-8)
    assert hours.data["has_missing_minutes"].sum() == 502
    assert (hours.target == 0).sum() == 421
    assert missing(hours.frame) == {}
    assert_public_facts_hold(hours)


@needs_real_files
def test_real_minutes():
    minutes = fetch_household_power(
        "minutes_26_days", data_home=REAL, download_if_missing=False
    )
    assert minutes.data.shape == (37287, 6)
    assert set(missing(minutes.frame).values()) == {4}
    assert (minutes.target.min(), minutes.target.max()) == (0.194, 9.132)
    assert minutes.target.mean() == pytest.approx(1.712, abs=5e-4)
    assert_public_facts_hold(minutes)


@needs_real_files
def test_real_minutes_add_up_to_the_prepared_hours(tmp_path):
    """Our way from the publisher's form to hours is that of the prepared file."""
    options = {"data_home": REAL, "download_if_missing": False}
    minutes = fetch_household_power("minutes_26_days", **options).frame
    published = minutes.assign(
        Date=minutes.index.strftime("%d/%m/%Y"), Time=minutes.index.strftime("%H:%M:%S")
    )[["Date", "Time", *minutes.columns]].to_csv(sep=";", na_rep="?", index=False)
    parsed = _measurements._parse_published(published.encode())
    assert_frame_equal(parsed, minutes, check_exact=True)
    hours = fetch_household_power("hours", **options).frame
    found = _measurements._by_the_hour(parsed)
    whole = len(found) - 1  # the last hour is cut off in the file of minutes
    assert_frame_equal(found[:whole], hours[:whole], check_exact=True)
    assert found["has_missing_minutes"].sum() == 2


@needs_real_files
def test_real_activity():
    activity = fetch_activity(data_home=REAL, download_if_missing=False)
    assert activity.data.shape == (75128, 4)
    assert counts(activity.target) == {1: 16406, 2: 4911, 3: 51520, 4: 2291}
    assert counts(activity.data["room"]) == {"S1": 52482, "S2": 22646}
    assert missing(activity.frame) == {}
    trial = activity.data["trial"]
    assert trial.drop_duplicates().tolist() == activity.categories["trial"]
    sexes = trial.astype(str).str[-1]
    assert (sexes == activity.data["sex"].astype(str)).all()
    same = (trial == trial.shift()).to_numpy()[1:]
    steps = pd.crosstab(
        activity.target[:-1][same], activity.target[1:].to_numpy()[same]
    )
    assert steps.to_numpy().tolist() == [
        [16173, 0, 119, 107],
        [4, 4831, 8, 57],
        [113, 2, 51363, 26],
        [89, 75, 13, 2061],
    ]
    assert_public_facts_hold(activity)


@needs_real_files
@pytest.mark.parametrize(
    "fetch, options",
    [
        (fetch_adult, {"subset": "train"}),
        (fetch_adult, {"subset": "test"}),
        (fetch_german_credit, {}),
        (fetch_heart, {}),
        (fetch_rice, {}),
    ],
)
def test_real_files_of_either_form_give_one_frame(fetch, options):
    frames = [
        fetch(data_home=home, download_if_missing=False, **options).frame
        for home in (Path(REAL), Path(REAL) / "original")
    ]
    assert_frame_equal(*frames, check_exact=True)


@needs_real_files
def test_real_adult_feeds_scikit_learn():
    adult = fetch_adult(data_home=REAL, download_if_missing=False)
    codes = OneHotEncoder(
        categories=[adult.categories["sex"]], sparse_output=False, drop="if_binary"
    )
    model = make_pipeline(
        make_column_transformer((codes, ["sex"]), ("passthrough", ["education-num"])),
        LogisticRegression(),
    )
    score = model.fit(adult.data, adult.target).score(adult.data, adult.target)
    assert score > 24720 / 32561  # better than the larger class alone
