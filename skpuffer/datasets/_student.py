"""The student performance tables."""

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

_URLS = ("https://archive.ics.uci.edu/static/public/320/student+performance.zip",)
_MATHEMATICS = "e47f9ee225e1ee6e69b7564e6dac7123e80b8486677fe111f351964cef5dec80"
_PORTUGUESE = "a7594a11d7771c0efe1a740824e0e833da9c4cad07c39a9766a874575563fb3f"

# The publisher's files have a header already: both forms are the same bytes.
STUDENT_TABLES = {
    "mathematics": RemoteTable(
        dataset="student",
        name="student-mat.csv",
        sha256=_MATHEMATICS,
        urls=_URLS,
        ready_name="student_mat.csv",
        ready_sha256=_MATHEMATICS,
    ),
    "portuguese": RemoteTable(
        dataset="student",
        name="student-por.csv",
        sha256=_PORTUGUESE,
        urls=_URLS,
        ready_name="student_por.csv",
        ready_sha256=_PORTUGUESE,
    ),
}

STUDENT_CATEGORIES = {
    "school": ("GP", "MS"),
    "sex": ("F", "M"),
    "address": ("U", "R"),
    "famsize": ("LE3", "GT3"),
    "Pstatus": ("T", "A"),
    "Mjob": ("teacher", "health", "services", "at_home", "other"),
    "Fjob": ("teacher", "health", "services", "at_home", "other"),
    "reason": ("home", "reputation", "course", "other"),
    "guardian": ("mother", "father", "other"),
    **dict.fromkeys(
        (
            "schoolsup",
            "famsup",
            "paid",
            "activities",
            "nursery",
            "higher",
            "internet",
            "romantic",
        ),
        ("no", "yes"),
    ),
}

STUDENT_BOUNDS = {
    "age": (15, 22),
    "Medu": (0, 4),
    "Fedu": (0, 4),
    "traveltime": (1, 4),
    "studytime": (1, 4),
    "failures": (0, 4),
    "famrel": (1, 5),
    "freetime": (1, 5),
    "goout": (1, 5),
    "Dalc": (1, 5),
    "Walc": (1, 5),
    "health": (1, 5),
    "absences": (0, 93),
    "G1": (0, 20),
    "G2": (0, 20),
    "G3": (0, 20),
}

STUDENT_DESCR = """\
Student performance
-------------------

Students of two Portuguese secondary schools (GP: Gabriel Pereira, MS: Mousinho da
Silveira), with school reports and a questionnaire on family, habits and plans, and
their grades of three periods (0 to 20). One table for the course in mathematics (395
students), one for Portuguese (649). Collected by Paulo Cortez.

:Features: 30 attributes, and the grades G1 and G2 of the first two periods
:Target: G3, the final grade; mean 10.415 in mathematics, 11.906 in Portuguese
:Missing: none
:Licence: CC BY 4.0
:Citation: Cortez, P. (2008). Student Performance. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5TG7T

**Quirks.** G1 and G2 nearly determine G3: say whether you use them, and drop them for a
prediction at the start of the year. G3 = 0 (38 and 15 students) mixes true zeros with
students who left. 382 students are in both tables, without an identifier: two releases,
one of each table, concern these students twice.

**Categories and bounds** are meant to be taken as public by a private estimator, and
are the publisher's code book. There failures ends at 4, which stands for all larger
numbers, and absences at 93.

The students were minors or young adults of one region in 2005 and 2006, and the
questions touch on drink and romance: use the table to study methods, not to judge
people.
"""


def fetch_student(
    subject: str = "mathematics",
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch | tuple[Any, Any]:
    """Load a student performance table (regression).

    ==============   =====================================
    Samples total    395 (mathematics), 649 (Portuguese)
    Dimensionality   32
    Features         15 integer, 17 categorical
    Target           integer, 0 to 20
    Missing          none
    ==============   =====================================

    Parameters
    ----------
    subject : {"mathematics", "portuguese"}, default="mathematics"
        The course.
    data_home : str or path-like, default=None
        Folder of the data, by default scikit-learn's
        (:func:`sklearn.datasets.get_data_home`). If ``student-mat.csv`` or
        ``student_mat.csv`` (``por`` for Portuguese), each also with ``.gz``, lies there
        or in its folder ``skpuffer_student``, it is read without a network; it must
        have the known checksum.
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

        - `data` : DataFrame or ndarray of shape (n_samples, 32)
              The last two columns are the grades G1 and G2.
        - `target` : Series or ndarray of shape (n_samples,)
              The final grade ``G3``.
        - `frame` : DataFrame of shape (n_samples, 33) or None
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
              Origin, licence, citation and quirks.
    (data, target) : tuple if `return_X_y`
        Data and target alone, of the types above.

    Raises
    ------
    OSError
        If the table is neither at hand nor within reach, or a file is not the
        published one.

    See Also
    --------
    load_student : The same rows, without a file.

    References
    ----------
    Cortez, P. (2008). Student Performance. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5TG7T

    Examples
    --------
    >>> from skpuffer.datasets import fetch_student
    >>> student = fetch_student("portuguese")  # doctest: +SKIP
    >>> student.data.drop(columns=["G1", "G2"]).shape  # doctest: +SKIP
    (649, 30)
    """
    check_option(tuple(STUDENT_TABLES), subject=subject)
    check_fetch_options(
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )
    content, _ = load_table(
        STUDENT_TABLES[subject],
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
    return _as_student(content, return_X_y, as_frame, STUDENT_DESCR)


def load_student(
    subject: str = "mathematics", *, return_X_y: bool = False, as_frame: bool = True
) -> Bunch | tuple[Any, Any]:
    """Load a student performance table, which is shipped in full.

    Parameters
    ----------
    subject : {"mathematics", "portuguese"}, default="mathematics"
        The course.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        As in :func:`fetch_student`.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        As of :func:`fetch_student`.
    (data, target) : tuple if `return_X_y`
        Data and target alone.

    See Also
    --------
    fetch_student : The same from the publisher's file.

    References
    ----------
    Cortez, P. (2008). Student Performance. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5TG7T. CC BY 4.0.

    Examples
    --------
    >>> from skpuffer.datasets import load_student
    >>> student = load_student("portuguese")
    >>> student.data.drop(columns=["G1", "G2"]).shape
    (649, 30)
    """
    check_option(tuple(STUDENT_TABLES), subject=subject)
    check_switches(return_X_y=return_X_y, as_frame=as_frame)
    content = read_excerpt(f"{STUDENT_TABLES[subject].ready_name}.gz")
    descr = described(STUDENT_DESCR, "both files, byte for byte")
    return _as_student(content, return_X_y, as_frame, descr)


def _as_student(
    content: bytes, return_X_y: bool, as_frame: bool, descr: str
) -> Bunch | tuple[Any, Any]:
    frame = pd.read_csv(BytesIO(content), sep=";", keep_default_na=False)
    return as_dataset(
        as_categories(frame, STUDENT_CATEGORIES),
        "G3",
        return_X_y=return_X_y,
        as_frame=as_frame,
        categories=STUDENT_CATEGORIES,
        bounds=STUDENT_BOUNDS,
        descr=descr,
    )
