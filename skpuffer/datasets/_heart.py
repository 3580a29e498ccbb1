"""The Cleveland heart disease table."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from ._bunch import as_dataset, check_fetch_options, check_switches
from ._excerpts import described, read_excerpt
from ._fetch import RemoteTable, load_table

HEART_TABLE = RemoteTable(
    dataset="heart",
    name="processed.cleveland.data",
    sha256="a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
    urls=(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/"
        "processed.cleveland.data",
        "https://archive.ics.uci.edu/static/public/45/heart+disease.zip",
    ),
    ready_name="heart_cleveland.csv",
    ready_sha256="a5195b7562ca4f48bda400649bfee2a7d7ed70ff72fb5cc0c486c68fd68f7f62",
)

HEART_COLUMNS = (
    "age",
    "sex",
    "cp",
    "trestbps",
    "chol",
    "fbs",
    "restecg",
    "thalach",
    "exang",
    "oldpeak",
    "slope",
    "ca",
    "thal",
    "num",
)

# Written as floats in the file; ca and thal stay floats, for they have missing cells.
_FRACTIONAL = ("oldpeak", "ca", "thal")

HEART_CATEGORIES = {
    "sex": (0, 1),
    "cp": (1, 2, 3, 4),
    "fbs": (0, 1),
    "restecg": (0, 1, 2),
    "exang": (0, 1),
    "slope": (1, 2, 3),
    "ca": (0, 1, 2, 3),
    "thal": (3, 6, 7),
    "num": (0, 1, 2, 3, 4),
}

HEART_BOUNDS = {
    "age": (0, 120),
    "sex": (0, 1),
    "cp": (1, 4),
    "trestbps": (50, 250),
    "chol": (50, 600),
    "fbs": (0, 1),
    "restecg": (0, 2),
    "thalach": (40, 220),
    "exang": (0, 1),
    "oldpeak": (0, 10),
    "slope": (1, 3),
    "ca": (0, 3),
    "thal": (3, 7),
    "num": (0, 4),
}

HEART_DESCR = """\
Heart disease, Cleveland
------------------------

303 patients of the Cleveland Clinic Foundation, 13 clinical attributes, and the state
of their coronary vessels: 0 for no narrowing over one half, 1 to 4 for disease.
Collected by Andras Janosi, William Steinbrunn, Matthias Pfisterer and Robert Detrano,
donated by David Aha.

:Features: age (years), sex (1 male), cp (chest pain: 1 typical angina, 2 atypical, 3
    other pain, 4 none), trestbps (resting blood pressure, mmHg), chol (cholesterol,
    mg/dl), fbs (fasting sugar over 120 mg/dl), restecg (0 normal, 1 ST-T abnormal, 2
    hypertrophy), thalach (highest heart rate), exang (angina by exercise), oldpeak (ST
    depression), slope (1 up, 2 flat, 3 down), ca (vessels coloured, 0 to 3), thal (3
    normal, 6 fixed defect, 7 reversible defect)
:Target: num, 0: 164, 1: 55, 2: 36, 3: 35, 4: 13 patients. The usual task is num > 0
    (139 patients)
:Missing: "?" in the file, NaN here: ca 4 and thal 2 cells; 297 rows are complete
:Licence: CC BY 4.0
:Citation: Janosi, A., Steinbrunn, W., Pfisterer, M. and Detrano, R. (1989). Heart
    Disease. UCI Machine Learning Repository. https://doi.org/10.24432/C52P4X

**Quirks.** The coded columns are numbers, not categories: encode cp, restecg, slope and
thal before using a linear model. Many copies in circulation have a binary target, lack
the six incomplete rows or recode cp and thal; this is the publisher's file.

**Categories and bounds** are meant to be taken as public by a private estimator.
`categories` is the publisher's code book, as are the bounds of the coded columns. The
bounds of age, trestbps, chol, thalach and oldpeak are round limits of what is measured
in patients, chosen for this package; the publisher states none. The patients were
examined because disease was suspected, so the rates are not those of a population.
"""


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
        Folder of the data, by default scikit-learn's
        (:func:`sklearn.datasets.get_data_home`). If ``processed.cleveland.data`` (the
        publisher's file) or ``heart_cleveland.csv`` (with a header), each also with
        ``.gz``, lies there or in its folder ``skpuffer_heart``, it is read without a
        network; it must have the known checksum.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame and target a Series. If False, data is a float
        array and target an integer array. True is the default of all fetchers here.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        - `data` : DataFrame or ndarray of shape (303, 13)
              Whole numbers are integers in the frame, except for ca and thal, whose
              missing cells are NaN.
        - `target` : Series or ndarray of shape (303,)
              ``num``, 0 to 4.
        - `frame` : DataFrame of shape (303, 14) or None
              Data and target, only if `as_frame`.
        - `feature_names` : list of str
        - `target_names` : list of str
              The name of the target column.
        - `categories` : dict of str to list of int
              The publisher's codes of each coded column, to be taken as public.
        - `bounds` : dict of str to (low, high)
              Bounds of each column, to be taken as public; see `DESCR`.
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
    load_heart : The same rows, without a file.

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
    check_fetch_options(
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )
    content, ready = load_table(
        HEART_TABLE,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
    return _as_heart(_parse_heart(content, ready), return_X_y, as_frame, HEART_DESCR)


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
        Data and target alone.

    See Also
    --------
    fetch_heart : The same from the publisher's file.

    References
    ----------
    Janosi, A., Steinbrunn, W., Pfisterer, M. and Detrano, R. (1989). Heart Disease.
    UCI Machine Learning Repository. https://doi.org/10.24432/C52P4X. CC BY 4.0.

    Examples
    --------
    >>> from skpuffer.datasets import load_heart
    >>> heart = load_heart()
    >>> heart.data.shape, int((heart.target > 0).sum())
    ((303, 13), 139)
    """
    check_switches(return_X_y=return_X_y, as_frame=as_frame)
    frame = _parse_heart(read_excerpt("heart_cleveland.csv.gz"), True)
    descr = described(HEART_DESCR, "all rows and columns, with a header")
    return _as_heart(frame, return_X_y, as_frame, descr)


def _as_heart(
    frame: pd.DataFrame, return_X_y: bool, as_frame: bool, descr: str
) -> Bunch | tuple[Any, Any]:
    return as_dataset(
        frame,
        "num",
        return_X_y=return_X_y,
        as_frame=as_frame,
        categories=HEART_CATEGORIES,
        bounds=HEART_BOUNDS,
        gaps=("ca", "thal"),
        units={"age": "years", "trestbps": "mmHg", "chol": "mg/dl"},
        descr=descr,
    )


def _parse_heart(content: bytes, ready: bool) -> pd.DataFrame:
    """Read either form of the table; `ready` says whether it has a header row."""
    frame = pd.read_csv(
        BytesIO(content),
        header=0 if ready else None,
        names=HEART_COLUMNS,
        na_values="?",
    )
    return frame.astype(
        {column: "int64" for column in HEART_COLUMNS if column not in _FRACTIONAL}
    )
