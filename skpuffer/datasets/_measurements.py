"""Tables of measurements: activities, power and rice."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from os import PathLike
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from skpuffer.kernel.numbers import check_option

from ._tables import PublishedTable, as_categories, published

_LAST_OF_26_DAYS = "2007-01-11 14:50"

_EXCERPTS = {
    "hours": (
        "household_power_hours.csv.gz",
        "the first 8760 hours (365 days), without the columns Global_reactive_power, "
        "Voltage and Global_intensity",
    ),
    "minutes": (
        "household_power_minutes.csv.gz",
        "the first 10080 minutes (7 days), without the columns Global_reactive_power, "
        "Voltage and Global_intensity",
    ),
}


def fetch_activity(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch | tuple[Any, Any]:
    """Load the activities of older people (sequences of four states).

    ==============   =====================================
    Classes          4
    Samples total    75128, in 87 trials
    Dimensionality   4
    Features         time, 3 categorical
    Missing          none
    ==============   =====================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data, by default scikit-learn's. If ``activity_older_people.csv``,
        also with ``.gz``, lies there or in its folder ``skpuffer_activity``, it is read
        without a network. Checksums must match. A download puts it together from the
        publisher's file for each trial.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame with a float and ``category`` columns and target a
        Series. If False, data is an object array and target an integer array.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        With the attributes:

        - `data` : DataFrame or ndarray of shape (75128, 4)
              room, trial, sex and time_s.
        - `target` : Series or ndarray of shape (75128,)
              ``activity``: 1 sitting on the bed, 2 on a chair, 3 lying, 4 walking.
        - `frame` : DataFrame of shape (75128, 5) or None
        - `feature_names`, `target_names` : list of str
        - `categories` : dict of str to list, to be taken as public
        - `bounds` : dict of str to (low, high), to be taken as public; see `DESCR`
        - `schema` : Schema of all of that, by which estimators read raw tables
        - `DESCR` : str, origin, licence, citation and quirks
    (data, target) : tuple if `return_X_y`

    References
    ----------
    Shinmoto Torres, R. L., Ranasinghe, D. C., Shi, Q. and Sample, A. P. (2013). Sensor
    enabled wearable RFID technology for mitigating the risk of falls near beds. IEEE
    International Conference on RFID, 191-198.

    Examples
    --------
    >>> from skpuffer.datasets import fetch_activity
    >>> activity = fetch_activity()  # doctest: +SKIP
    >>> activity.frame["trial"].nunique()  # doctest: +SKIP
    87
    """
    return published("activity").fetch(
        _parse_activity,
        data_home=data_home,
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )


def _parse_activity(content: bytes, ready: bool) -> pd.DataFrame:
    frame = pd.read_csv(BytesIO(content), dtype={"time_s": float})
    return as_categories(frame, published("activity"))


def fetch_household_power(
    series: str = "hours",
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch | tuple[Any, Any]:
    """Load the power that one household drew (time series).

    ==============   ============================================
    Samples total    34589 hours, 2075259 minutes
    Dimensionality   8 (hours), 6 (minutes)
    Features         real; hours also a flag
    Target           real, active power
    Missing          25979 minutes, as NaN; flagged in hours
    ==============   ============================================

    Parameters
    ----------
    series : {"hours", "minutes", "minutes_26_days"}, default="hours"
        Sums by the hour, all minutes, or those of the first 26 days.
    data_home : str or path-like, default=None
        Folder of the data, by default scikit-learn's. If
        ``household_power_consumption.txt`` (the publisher's file), or
        ``household_power_hourly.csv`` for hours, or
        ``household_power_minute_26days.csv`` for the first days, each also with
        ``.gz``, lies there or in its folder ``skpuffer_household_power``, it is read
        without a network. Checksums must match.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame and target a Series, both with the times as index.
        If False, both are float arrays, without the times.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        With the attributes:

        - `data` : DataFrame or ndarray of shape (n_samples, 8) or (n_samples, 6)
        - `target` : Series or ndarray of shape (n_samples,)
              ``Global_active_power``: kW by the minute, the sum of 60 by the hour.
        - `frame` : DataFrame of shape (n_samples, 9) or (n_samples, 7) or None
        - `feature_names`, `target_names` : list of str
        - `categories` : dict of str to list of int, to be taken as public
        - `bounds` : dict of str to (low, high), to be taken as public; see `DESCR`
        - `schema` : Schema of all of that, by which estimators read raw tables
        - `DESCR` : str, origin, units, licence, citation and quirks
    (data, target) : tuple if `return_X_y`

    Notes
    -----
    The publisher's file has 133 MB, and holds all three series.

    References
    ----------
    Hebrail, G. and Berard, A. (2006). Individual Household Electric Power Consumption.
    UCI Machine Learning Repository. https://doi.org/10.24432/C58K54

    Examples
    --------
    >>> from skpuffer.datasets import fetch_household_power
    >>> power = fetch_household_power("hours")  # doctest: +SKIP
    >>> power.target.index[0], power.target.iloc[0] / 60  # doctest: +SKIP
    (Timestamp('2006-12-16 17:00:00'), 2.53...)
    """
    check_option(("hours", *published("household_power").files), series=series)
    return _power(series).fetch(
        partial(_parse_power, series),
        [series],
        data_home=data_home,
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )


def load_household_power(
    series: str = "hours", *, return_X_y: bool = False, as_frame: bool = True
) -> Bunch | tuple[Any, Any]:
    """Load the beginning of the household power series, which is shipped.

    The first 8760 hours, or the first 10080 minutes, of what
    :func:`fetch_household_power` loads in full.

    Parameters
    ----------
    series : {"hours", "minutes"}, default="hours"
        Sums by the hour, or minutes.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        As in :func:`fetch_household_power`.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        As of :func:`fetch_household_power`, without the columns
        Global_reactive_power, Voltage and Global_intensity. `DESCR` says how the rows
        were chosen.
    (data, target) : tuple if `return_X_y`

    Examples
    --------
    >>> from skpuffer.datasets import load_household_power
    >>> power = load_household_power("minutes")
    >>> power.frame["Global_active_power"].head(2)
    datetime
    2006-12-16 17:24:00    4.216
    2006-12-16 17:25:00    5.360
    ...
    """
    check_option(tuple(_EXCERPTS), series=series)
    name, chosen = _EXCERPTS[series]
    return _power(series).shipped(
        partial(_parse_power, "excerpt"),
        [name],
        chosen,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _power(series: str) -> PublishedTable:
    return published("household_power" + "_hours" * (series == "hours"))


def _parse_power(series: str, content: bytes, ready: bool) -> pd.DataFrame:
    """Read a series from the prepared file of it, or from the publisher's minutes."""
    if ready and series != "minutes":
        return _parse_ready(content)
    frame = _parse_published(content)
    if series == "hours":
        return _by_the_hour(frame)
    return frame.loc[:_LAST_OF_26_DAYS] if series == "minutes_26_days" else frame


def _parse_ready(content: bytes) -> pd.DataFrame:
    """Read prepared hours or minutes; a minute that is not there is missing."""
    frame = pd.read_csv(
        BytesIO(content), index_col="datetime", parse_dates=["datetime"]
    )
    flags = {"has_missing_minutes": "int64"} if "has_missing_minutes" in frame else {}
    step = "h" if flags else "min"
    return frame.astype(float).asfreq(step).astype(flags)


def _parse_published(content: bytes) -> pd.DataFrame:
    """Read the publisher's minutes."""
    frame = pd.read_csv(BytesIO(content), sep=";", na_values="?")
    days = frame.pop("Date") + " " + frame.pop("Time")
    frame.index = pd.DatetimeIndex(
        pd.to_datetime(days, format="%d/%m/%Y %H:%M:%S"), name="datetime"
    )
    return frame.astype(float).asfreq("min")


def _by_the_hour(minutes: pd.DataFrame) -> pd.DataFrame:
    """Sum minutes by the hour, as the prepared file does, to three decimals."""
    # a missing minute takes the reading of the same minute on the nearest earlier day
    power = minutes["Global_active_power"]
    of_day = minutes.index.hour * 60 + minutes.index.minute
    filled = power.groupby(of_day).ffill()
    sums = minutes.assign(Global_active_power_filled=filled).resample("h").sum()
    missing = power.isna().resample("h").max().astype("int64")
    return sums.round(3).assign(has_missing_minutes=missing)


def fetch_rice(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch | tuple[Any, Any]:
    """Load the rice (Cammeo and Osmancik) table (classification).

    ==============   =====================================
    Classes          2
    Samples total    3810, sorted by class
    Dimensionality   7
    Features         real, positive
    Missing          none
    ==============   =====================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the data, by default scikit-learn's. If ``Rice_Cammeo_Osmancik.arff``
        (the publisher's file) or ``rice.csv`` (with a header), each also with ``.gz``,
        lies there or in its folder ``skpuffer_rice``, it is read without a network.
        Checksums must match.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame and target a ``category`` Series. If False, data is
        a float array and target an object array.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        With the attributes:

        - `data` : DataFrame or ndarray of shape (3810, 7)
        - `target` : Series or ndarray of shape (3810,)
              "Cammeo" or "Osmancik".
        - `frame` : DataFrame of shape (3810, 8) or None
        - `feature_names`, `target_names` : list of str
        - `categories` : dict of str to list of str, to be taken as public
        - `bounds` : dict of str to (low, high), to be taken as public; see `DESCR`
        - `schema` : Schema of all of that, by which estimators read raw tables
        - `DESCR` : str, origin, licence, citation and quirks
    (data, target) : tuple if `return_X_y`

    References
    ----------
    Cinar, I. and Koklu, M. (2019). Classification of rice varieties using artificial
    intelligence methods. International Journal of Intelligent Systems and Applications
    in Engineering 7(3), 188-194. https://doi.org/10.24432/C5MW4Z (the data)

    Examples
    --------
    >>> from skpuffer.datasets import fetch_rice
    >>> rice = fetch_rice()  # doctest: +SKIP
    >>> rice.data.shape, rice.categories["Class"]  # doctest: +SKIP
    ((3810, 7), ['Cammeo', 'Osmancik'])
    """
    return published("rice").fetch(
        _parse_rice,
        data_home=data_home,
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )


def _parse_rice(content: bytes, ready: bool) -> pd.DataFrame:
    """Read the rows of either form with one parser, so that they agree to the bit."""
    if not ready:
        content = content.partition(b"@DATA")[2]
    frame = pd.read_csv(
        BytesIO(content),
        header=0 if ready else None,
        names=published("rice").columns,
    )
    return as_categories(frame, published("rice"))
