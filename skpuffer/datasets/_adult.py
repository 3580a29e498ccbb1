"""The Adult (census income) table."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from skpuffer.kernel.numbers import check_option

from ._bunch import as_categories, as_dataset, check_fetch_options, check_switches
from ._excerpts import described, read_excerpt
from ._fetch import RemoteTable, load_table

_FLAT = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
_ZIP = "https://archive.ics.uci.edu/static/public/2/adult.zip"

ADULT_TABLES = {
    "train": RemoteTable(
        dataset="adult",
        name="adult.data",
        sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        urls=(_FLAT + "adult.data", _ZIP),
        ready_name="adult_train.csv",
        ready_sha256="f2c62076f19504d99a38b22badf445a7f42530ade6b827acf78dd143fbce38bb",
    ),
    "test": RemoteTable(
        dataset="adult",
        name="adult.test",
        sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        urls=(_FLAT + "adult.test", _ZIP),
        ready_name="adult_test.csv",
        ready_sha256="f6b1801c5d231515ea5ff04d4444997bacd57e04876e94710cb9b9bd5549c033",
    ),
}

ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)

# The publisher's code book (adult.names), spelt as there, with its order, except for
# education, which follows education-num 1..16.
ADULT_CATEGORIES = {
    "workclass": (
        "Private",
        "Self-emp-not-inc",
        "Self-emp-inc",
        "Federal-gov",
        "Local-gov",
        "State-gov",
        "Without-pay",
        "Never-worked",
    ),
    "education": (
        "Preschool",
        "1st-4th",
        "5th-6th",
        "7th-8th",
        "9th",
        "10th",
        "11th",
        "12th",
        "HS-grad",
        "Some-college",
        "Assoc-voc",
        "Assoc-acdm",
        "Bachelors",
        "Masters",
        "Prof-school",
        "Doctorate",
    ),
    "marital-status": (
        "Married-civ-spouse",
        "Divorced",
        "Never-married",
        "Separated",
        "Widowed",
        "Married-spouse-absent",
        "Married-AF-spouse",
    ),
    "occupation": (
        "Tech-support",
        "Craft-repair",
        "Other-service",
        "Sales",
        "Exec-managerial",
        "Prof-specialty",
        "Handlers-cleaners",
        "Machine-op-inspct",
        "Adm-clerical",
        "Farming-fishing",
        "Transport-moving",
        "Priv-house-serv",
        "Protective-serv",
        "Armed-Forces",
    ),
    "relationship": (
        "Wife",
        "Own-child",
        "Husband",
        "Not-in-family",
        "Other-relative",
        "Unmarried",
    ),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
    "native-country": (
        "United-States",
        "Cambodia",
        "England",
        "Puerto-Rico",
        "Canada",
        "Germany",
        "Outlying-US(Guam-USVI-etc)",
        "India",
        "Japan",
        "Greece",
        "South",
        "China",
        "Cuba",
        "Iran",
        "Honduras",
        "Philippines",
        "Italy",
        "Poland",
        "Jamaica",
        "Vietnam",
        "Mexico",
        "Portugal",
        "Ireland",
        "France",
        "Dominican-Republic",
        "Laos",
        "Ecuador",
        "Taiwan",
        "Haiti",
        "Columbia",
        "Hungary",
        "Guatemala",
        "Nicaragua",
        "Scotland",
        "Thailand",
        "Yugoslavia",
        "El-Salvador",
        "Trinadad&Tobago",
        "Peru",
        "Hong",
        "Holand-Netherlands",
    ),
    "income": ("<=50K", ">50K"),
}

ADULT_BOUNDS = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "hours-per-week": (1, 99),
}

ADULT_DESCR = """\
Adult (census income)
---------------------

48842 adults (32561 in the training part, 16281 in the test part), 14 attributes, and
whether the person earned more than 50 000 dollars a year. Extracted by Ronny Kohavi and
Barry Becker from the 1994 US census bureau data (current population survey): people
older than 16 with an income over 100 dollars and at least one hour of work a week.

:Target: income, "<=50K" or ">50K" (24720 / 7841 in train, 12435 / 3846 in test)
:Missing: "?" in the file, missing (NaN) here: workclass 1836 / 963, occupation
    1843 / 966, native-country 583 / 274 cells in train / test
:Licence: CC BY 4.0
:Citation: Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5XW20

**Quirks.** fnlwgt is the survey's sampling weight, not a feature of the person.
education-num is an ordinal coding of education. capital-gain is zero for most people
and cut off at 99999. "Holand-Netherlands" occurs once in train and never in test;
"South" and other spellings are the publisher's. 24 rows of train and 5 of test repeat
another.

**Categories and bounds** are meant to be taken as public by a private estimator.
`categories` is the publisher's code book. Of `bounds`, education-num numbers the codes
of that book; age (over 16, cut off at 90), hours-per-week (at least 1, two digits) and
capital-gain (five digits) follow the survey's coding. The others are not documented:
the upper bound of capital-loss is the largest value in the published file, that of
fnlwgt a round number above its largest. They are public because this file is; for a
table of your own, take bounds from its code book, never from its rows.

**Harm and bias.** The rows record who earned what in the USA of 1994, with the
inequalities of that time between sexes and races; sex is binary, race has five codes
chosen by the survey, and the smaller groups have few rows. A model that predicts income
here learns those inequalities, also through columns that stand in for sex and race
(relationship, marital-status, occupation). The 50 000 dollar line is arbitrary and
splits groups very unevenly. Use the table to study methods, not to decide about people,
and report errors by group: noise added for privacy costs small groups most.
"""


def fetch_adult(
    *,
    subset: str = "train",
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch | tuple[Any, Any]:
    """Load the Adult (census income) table (classification).

    ==============   =====================================
    Classes          2
    Samples total    48842 (32561 train, 16281 test)
    Dimensionality   14
    Features         6 integer, 8 categorical
    Missing          3 columns
    ==============   =====================================

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The publisher's split; "all" is train followed by test.
    data_home : str or path-like, default=None
        Folder of the data, by default scikit-learn's
        (:func:`sklearn.datasets.get_data_home`). If ``adult.data``, ``adult.test``
        (the publisher's files) or ``adult_train.csv``, ``adult_test.csv`` (with a
        header), each also with ``.gz``, lie there or in its folder
        ``skpuffer_adult``, they are read without a network; they must have the known
        checksum.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame with integer and ``category`` columns and target a
        Series. If False, both are object arrays, a missing cell being NaN. Unlike in
        scikit-learn True is the default, as the table is of mixed type.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        - `data` : DataFrame or ndarray of shape (n_samples, 14)
        - `target` : Series or ndarray of shape (n_samples,)
              "<=50K" or ">50K", without the full stop of the publisher's test file.
        - `frame` : DataFrame of shape (n_samples, 15) or None
              Data and target, only if `as_frame`.
        - `feature_names` : list of str
        - `target_names` : list of str
              The name of the target column.
        - `categories` : dict of str to list of str
              The publisher's code book of each categorical column, to be taken as
              public.
        - `bounds` : dict of str to (low, high)
              Bounds of each numeric column, to be taken as public; see `DESCR`.
        - `schema` : Schema
              All of that, and the target, as the code book that estimators read raw
              tables by.
        - `DESCR` : str
              Origin, licence, citation, quirks, and a note on harm.
    (data, target) : tuple if `return_X_y`
        Data and target alone, of the types above.

    Raises
    ------
    OSError
        If the table is neither at hand nor within reach, or a file is not the
        published one.

    See Also
    --------
    load_adult : A sample of the rows, without a file.

    Notes
    -----
    ``?`` becomes a missing value. The categories of a column are those of the code
    book, whatever the rows hold, so train and test have the same dtypes.

    References
    ----------
    Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5XW20

    Examples
    --------
    >>> from skpuffer.datasets import fetch_adult
    >>> adult = fetch_adult()  # doctest: +SKIP
    >>> adult.data.shape  # doctest: +SKIP
    (32561, 14)
    >>> adult.categories["sex"], adult.bounds["age"]  # doctest: +SKIP
    (['Female', 'Male'], (17, 90))
    """
    check_option(("train", "test", "all"), subset=subset)
    check_fetch_options(
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )
    frames = [
        _parse_adult(
            *load_table(
                ADULT_TABLES[part],
                data_home=data_home,
                download_if_missing=download_if_missing,
                n_retries=n_retries,
                delay=delay,
            )
        )
        for part in _parts(subset)
    ]
    return _as_adult(frames, return_X_y, as_frame, ADULT_DESCR)


def load_adult(
    *, subset: str = "train", return_X_y: bool = False, as_frame: bool = True
) -> Bunch | tuple[Any, Any]:
    """Load a sample of the Adult (census income) table, which is shipped.

    4000 rows of the training part and 2000 of the test part of what :func:`fetch_adult`
    loads in full, drawn uniformly without replacement.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        From which part of the publisher's split; "all" is train followed by test.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        As in :func:`fetch_adult`.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        As of :func:`fetch_adult`; `DESCR` says how the rows were drawn.
    (data, target) : tuple if `return_X_y`
        Data and target alone.

    See Also
    --------
    fetch_adult : The whole table.

    References
    ----------
    Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5XW20. CC BY 4.0.

    Examples
    --------
    >>> from skpuffer.datasets import load_adult
    >>> adult = load_adult()
    >>> adult.data.shape
    (4000, 14)
    >>> adult.target.value_counts().to_dict()
    {'<=50K': 3036, '>50K': 964}
    """
    check_option(("train", "test", "all"), subset=subset)
    check_switches(return_X_y=return_X_y, as_frame=as_frame)
    frames = [
        _parse_adult(read_excerpt(f"adult_{part}_sample.csv.gz"), True)
        for part in _parts(subset)
    ]
    chosen = (
        "4000 of the 32561 rows of the training part and 2000 of the 16281 of the test "
        "part, each drawn by np.sort(np.random.default_rng(0).choice(n_rows, size, "
        "replace=False))"
    )
    return _as_adult(frames, return_X_y, as_frame, described(ADULT_DESCR, chosen))


def _parts(subset: str) -> tuple[str, ...]:
    return ("train", "test") if subset == "all" else (subset,)


def _as_adult(
    frames: list[pd.DataFrame], return_X_y: bool, as_frame: bool, descr: str
) -> Bunch | tuple[Any, Any]:
    return as_dataset(
        pd.concat(frames, ignore_index=True),
        "income",
        return_X_y=return_X_y,
        as_frame=as_frame,
        categories=ADULT_CATEGORIES,
        bounds=ADULT_BOUNDS,
        descr=descr,
        amounts=("capital-gain", "capital-loss"),
        gaps=("workclass", "occupation", "native-country"),
        units={
            "age": "years",
            "education-num": "code of education",
            "capital-gain": "dollars",
            "capital-loss": "dollars",
            "hours-per-week": "hours",
        },
    )


def _parse_adult(content: bytes, ready: bool) -> pd.DataFrame:
    """Read either form of a part; `ready` says whether it has a header row."""
    frame = pd.read_csv(
        BytesIO(content),
        header=0 if ready else None,
        names=ADULT_COLUMNS,
        skipinitialspace=True,
        comment="|",  # the first line of adult.test
        na_values="?",
        keep_default_na=False,
    )
    frame["income"] = frame["income"].str.rstrip(".")
    return as_categories(frame, ADULT_CATEGORIES)
