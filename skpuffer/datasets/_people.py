"""Tables of people: adults, credits, patients and students."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from skpuffer.kernel.numbers import check_option

from ._tables import as_categories, published


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
        Folder of the data, by default scikit-learn's. If ``adult.data``, ``adult.test``
        (the publisher's files) or ``adult_train.csv``, ``adult_test.csv`` (with a
        header), each also with ``.gz``, lie there or in its folder ``skpuffer_adult``,
        they are read without a network. Checksums must match.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame with integer and ``category`` columns and target a
        Series. If False, both are object arrays, a missing cell being NaN.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        With the attributes:

        - `data` : DataFrame or ndarray of shape (n_samples, 14)
        - `target` : Series or ndarray of shape (n_samples,)
              "<=50K" or ">50K", without the full stop of the publisher's test file.
        - `frame` : DataFrame of shape (n_samples, 15) or None
        - `feature_names`, `target_names` : list of str
        - `categories` : dict of str to list of str, to be taken as public
        - `bounds` : dict of str to (low, high), to be taken as public; see `DESCR`
        - `schema` : Schema of all of that, by which estimators read raw tables
        - `DESCR` : str, origin, licence, citation, quirks, and a note on harm
    (data, target) : tuple if `return_X_y`

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
    return published("adult").fetch(
        _parse_adult,
        _parts(subset),
        data_home=data_home,
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )


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
    return published("adult").shipped(
        _parse_adult,
        [f"adult_{part}_sample.csv.gz" for part in _parts(subset)],
        "4000 of the 32561 rows of the training part and 2000 of the 16281 of the test "
        "part, each drawn by np.sort(np.random.default_rng(0).choice(n_rows, size, "
        "replace=False))",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _parts(subset: str) -> tuple[str, ...]:
    return ("train", "test") if subset == "all" else (subset,)


def _parse_adult(content: bytes, ready: bool) -> pd.DataFrame:
    """Read either form of a part; `ready` says whether it has a header row."""
    frame = pd.read_csv(
        BytesIO(content),
        header=0 if ready else None,
        names=published("adult").columns,
        skipinitialspace=True,
        comment="|",  # the first line of adult.test
        na_values="?",
        keep_default_na=False,
    )
    frame["income"] = frame["income"].str.rstrip(".")
    return as_categories(frame, published("adult"))


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
        Folder of the data, by default scikit-learn's. If ``german.data`` (the
        publisher's file) or ``german_credit.csv`` (with a header), each also with
        ``.gz``, lies there or in its folder ``skpuffer_german_credit``, it is read
        without a network. Checksums must match.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame with integer and ``category`` columns and target a
        Series. If False, data is an object array and target an integer array.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        With the attributes:

        - `data` : DataFrame or ndarray of shape (1000, 20)
        - `target` : Series or ndarray of shape (1000,)
              ``class``, 1 (good) or 2 (bad).
        - `frame` : DataFrame of shape (1000, 21) or None
        - `feature_names`, `target_names` : list of str
        - `categories` : dict of str to list, to be taken as public
        - `bounds` : dict of str to (low, high), to be taken as public; see `DESCR`
        - `schema` : Schema of all of that, by which estimators read raw tables
        - `DESCR` : str, origin, licence, citation, quirks, and a note on harm
    (data, target) : tuple if `return_X_y`

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
    return published("german_credit").fetch(
        _parse_german_credit,
        data_home=data_home,
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )


def _parse_german_credit(content: bytes, ready: bool) -> pd.DataFrame:
    """Read either form of the table; `ready` says whether it is the CSV."""
    frame = pd.read_csv(
        BytesIO(content),
        sep="," if ready else " ",
        header=0 if ready else None,
        names=published("german_credit").columns,
    )
    return as_categories(frame, published("german_credit"))


def fetch_heart(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch | tuple[Any, Any]:
    """Load the Cleveland heart disease table (classification).

    ==============   =====================================
    Classes          5 (usually read as ``num > 0``)
    Samples total    303
    Dimensionality   13
    Features         numeric and numerically coded
    Missing          6 cells, in ca and thal
    ==============   =====================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data, by default scikit-learn's. If ``processed.cleveland.data``
        (the publisher's file) or ``heart_cleveland.csv`` (with a header), each also
        with ``.gz``, lies there or in its folder ``skpuffer_heart``, it is read without
        a network. Checksums must match.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame and target a Series. If False, data is a float
        array and target an integer array.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        With the attributes:

        - `data` : DataFrame or ndarray of shape (303, 13)
              Whole numbers are integers in the frame, except for ca and thal, whose
              missing cells are NaN.
        - `target` : Series or ndarray of shape (303,)
              ``num``, 0 to 4.
        - `frame` : DataFrame of shape (303, 14) or None
        - `feature_names`, `target_names` : list of str
        - `categories` : dict of str to list of int, to be taken as public
        - `bounds` : dict of str to (low, high), to be taken as public; see `DESCR`
        - `schema` : Schema of all of that, by which estimators read raw tables
        - `DESCR` : str, origin, licence, citation and quirks
    (data, target) : tuple if `return_X_y`

    References
    ----------
    Janosi, A., Steinbrunn, W., Pfisterer, M. and Detrano, R. (1989). Heart Disease.
    UCI Machine Learning Repository. https://doi.org/10.24432/C52P4X

    Examples
    --------
    >>> from skpuffer.datasets import fetch_heart
    >>> heart = fetch_heart()  # doctest: +SKIP
    >>> heart.data.shape, int((heart.target > 0).sum())  # doctest: +SKIP
    ((303, 13), 139)
    """
    return published("heart").fetch(
        _parse_heart,
        data_home=data_home,
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )


def load_heart(
    *, return_X_y: bool = False, as_frame: bool = True
) -> Bunch | tuple[Any, Any]:
    """Load the Cleveland heart disease table, which is shipped in full.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        As in :func:`fetch_heart`.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        As of :func:`fetch_heart`.
    (data, target) : tuple if `return_X_y`

    Examples
    --------
    >>> from skpuffer.datasets import load_heart
    >>> heart = load_heart()
    >>> heart.data.shape, int((heart.target > 0).sum())
    ((303, 13), 139)
    """
    return published("heart").shipped(
        _parse_heart,
        ["heart_cleveland.csv.gz"],
        "all rows and columns, with a header",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _parse_heart(content: bytes, ready: bool) -> pd.DataFrame:
    """Read either form of the table; `ready` says whether it has a header row."""
    columns = published("heart").columns
    frame = pd.read_csv(
        BytesIO(content),
        header=0 if ready else None,
        names=columns,
        na_values="?",
    )
    # written as floats; ca and thal stay floats, for they have missing cells
    fractional = ("oldpeak", "ca", "thal")
    return frame.astype({name: "int64" for name in columns if name not in fractional})


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
        Folder of the data, by default scikit-learn's. If ``student-mat.csv`` or
        ``student_mat.csv`` (``por`` for Portuguese), each also with ``.gz``, lies there
        or in its folder ``skpuffer_student``, it is read without a network. Checksums
        must match.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame with integer and ``category`` columns and target a
        Series. If False, data is an object array and target an integer array.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        With the attributes:

        - `data` : DataFrame or ndarray of shape (n_samples, 32)
              The last two columns are the grades G1 and G2.
        - `target` : Series or ndarray of shape (n_samples,)
              The final grade ``G3``.
        - `frame` : DataFrame of shape (n_samples, 33) or None
        - `feature_names`, `target_names` : list of str
        - `categories` : dict of str to list of str, to be taken as public
        - `bounds` : dict of str to (low, high), to be taken as public; see `DESCR`
        - `schema` : Schema of all of that, by which estimators read raw tables
        - `DESCR` : str, origin, licence, citation and quirks
    (data, target) : tuple if `return_X_y`

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
    check_option(tuple(published("student").files), subject=subject)
    return published("student").fetch(
        _parse_student,
        [subject],
        data_home=data_home,
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )


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

    Examples
    --------
    >>> from skpuffer.datasets import load_student
    >>> student = load_student("portuguese")
    >>> student.data.drop(columns=["G1", "G2"]).shape
    (649, 30)
    """
    known = published("student").files
    check_option(tuple(known), subject=subject)
    return published("student").shipped(
        _parse_student,
        [f"{known[subject].ready_name}.gz"],
        "both files, byte for byte",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _parse_student(content: bytes, ready: bool) -> pd.DataFrame:
    """Read the table: the publisher's file has a header, and both forms are one."""
    frame = pd.read_csv(BytesIO(content), sep=";", keep_default_na=False)
    return as_categories(frame, published("student"))
