"""The German credit table."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from ._bunch import as_categories, as_dataset, check_fetch_options
from ._fetch import RemoteTable, load_table

GERMAN_CREDIT_TABLE = RemoteTable(
    dataset="german_credit",
    name="german.data",
    sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    urls=(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/german/"
        "german.data",
        "https://archive.ics.uci.edu/static/public/144/statlog+german+credit+data.zip",
    ),
    ready_name="german_credit.csv",
    ready_sha256="07cbd34fa936a7ffdfa7a7ab05ad374cb22e4fd7167b9f0eb8a1e30e2fe2a341",
)

GERMAN_CREDIT_COLUMNS = (
    "checking_status",
    "duration",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings_status",
    "employment",
    "installment_rate",
    "personal_status_sex",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "other_installment_plans",
    "housing",
    "existing_credits",
    "job",
    "num_dependents",
    "telephone",
    "foreign_worker",
    "class",
)


def _codes(attribute: int, first: int, last: int) -> tuple[str, ...]:
    """Codes of an attribute of the publisher's book, such as A30 to A34."""
    return tuple(f"A{attribute}{value}" for value in range(first, last + 1))


GERMAN_CREDIT_CATEGORIES = {
    "checking_status": _codes(1, 1, 4),
    "credit_history": _codes(3, 0, 4),
    "purpose": _codes(4, 0, 10),
    "savings_status": _codes(6, 1, 5),
    "employment": _codes(7, 1, 5),
    "personal_status_sex": _codes(9, 1, 5),
    "other_debtors": _codes(10, 1, 3),
    "property": _codes(12, 1, 4),
    "other_installment_plans": _codes(14, 1, 3),
    "housing": _codes(15, 1, 3),
    "job": _codes(17, 1, 4),
    "telephone": _codes(19, 1, 2),
    "foreign_worker": _codes(20, 1, 2),
    "class": (1, 2),
}

GERMAN_CREDIT_BOUNDS = {
    "duration": (0, 100),
    "credit_amount": (0, 20_000),
    "installment_rate": (1, 4),
    "residence_since": (1, 4),
    "age": (18, 100),
    "existing_credits": (1, 4),
    "num_dependents": (1, 2),
    "class": (1, 2),
}

GERMAN_CREDIT_DESCR = """\
German credit
-------------

1000 people who took a credit from a bank in southern Germany, 20 attributes, and
whether the credit turned out good (1) or bad (2). Donated by Hans Hofmann.

:Features: 7 numeric (duration in months, credit_amount in Deutsche Mark, age in years;
    installment_rate, residence_since, existing_credits and num_dependents are small
    whole numbers) and 13 categorical, in the publisher's codes (A11 to A202)
:Target: class, 1 (good): 700, 2 (bad): 300 people
:Missing: none
:Licence: CC BY 4.0
:Citation: Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning
    Repository. https://doi.org/10.24432/C5NC77

**Quirks.** The published file separates by blanks and has no header: the names of the
columns were chosen for this package. The publisher weighs a bad credit taken for a good
one five times as heavily as the reverse. Sex can be read only from
personal_status_sex, and the published code book is known to be wrong in parts: the
corrected edition is "South German Credit". A47 (purpose) and A95 (personal_status_sex)
are in the book but in no row.

**Categories and bounds** are meant to be taken as public by a private estimator.
`categories` is the publisher's code book. The publisher states no bounds; those of the
small whole numbers are the values found, those of duration, credit_amount and age round
numbers, all chosen for this package with the published file in view, which is sound
only because that file is public.

**Harm and bias.** The rows are credits of the 1970s that were granted; who was refused
is not in the table, bad credits were drawn more often than they occur, and sex, age and
origin go with both. Use the table to study methods, not to decide about people.
"""


def fetch_german_credit(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch | tuple[Any, Any]:
    """Load the German credit table (classification).

    ==============   =====================================
    Classes          2 (1 good, 2 bad)
    Samples total    1000
    Dimensionality   20
    Features         7 integer, 13 categorical
    Missing          none
    ==============   =====================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data, by default scikit-learn's
        (:func:`sklearn.datasets.get_data_home`). If ``german.data`` (the publisher's
        file) or ``german_credit.csv`` (with a header), each also with ``.gz``, lies
        there or in its folder ``skpuffer_german_credit``, it is read without a
        network; it must have the known checksum.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame with integer and ``category`` columns and target a
        Series. If False, data is an object array and target an integer array. Unlike
        in scikit-learn True is the default, as the table is of mixed type.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        - `data` : DataFrame or ndarray of shape (1000, 20)
        - `target` : Series or ndarray of shape (1000,)
              ``class``, 1 (good) or 2 (bad).
        - `frame` : DataFrame of shape (1000, 21) or None
              Data and target, only if `as_frame`.
        - `feature_names` : list of str
        - `target_names` : list of str
              The name of the target column.
        - `categories` : dict of str to list
              The publisher's code book of each coded column, to be taken as public.
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

    References
    ----------
    Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository.
    https://doi.org/10.24432/C5NC77

    Examples
    --------
    >>> from skpuffer.datasets import fetch_german_credit
    >>> credit = fetch_german_credit()  # doctest: +SKIP
    >>> credit.data.shape, int((credit.target == 2).sum())  # doctest: +SKIP
    ((1000, 20), 300)
    """
    check_fetch_options(
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )
    content, ready = load_table(
        GERMAN_CREDIT_TABLE,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
    return as_dataset(
        _parse_german_credit(content, ready),
        "class",
        return_X_y=return_X_y,
        as_frame=as_frame,
        categories=GERMAN_CREDIT_CATEGORIES,
        bounds=GERMAN_CREDIT_BOUNDS,
        amounts=("credit_amount",),
        units={"duration": "months", "credit_amount": "Deutsche Mark", "age": "years"},
        descr=GERMAN_CREDIT_DESCR,
    )


def _parse_german_credit(content: bytes, ready: bool) -> pd.DataFrame:
    """Read either form of the table; `ready` says whether it is the CSV."""
    frame = pd.read_csv(
        BytesIO(content),
        sep="," if ready else " ",
        header=0 if ready else None,
        names=GERMAN_CREDIT_COLUMNS,
    )
    book = {c: v for c, v in GERMAN_CREDIT_CATEGORIES.items() if c != "class"}
    return as_categories(frame, book)
