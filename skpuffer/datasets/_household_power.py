"""The power that one household drew in four years."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from skpuffer.kernel.numbers import check_option

from ._bunch import as_dataset, check_fetch_options, check_switches
from ._excerpts import described, read_excerpt
from ._fetch import RemoteTable, load_table

_NAME = "household_power_consumption.txt"
_SHA256 = "4259c9d7ece5dbee9ab8d53682baac68d791c864f0f64a52b4043cb3b90894b7"


def _table(ready_name: str, ready_sha256: str) -> RemoteTable:
    return RemoteTable(
        dataset="household_power",
        name=_NAME,
        sha256=_SHA256,
        urls=(
            "https://archive.ics.uci.edu/ml/machine-learning-databases/00235/"
            "household_power_consumption.zip",
            "https://archive.ics.uci.edu/static/public/235/individual+household+"
            "electric+power+consumption.zip",
        ),
        ready_name=ready_name,
        ready_sha256=ready_sha256,
    )


HOUSEHOLD_POWER_TABLES = {
    "hours": _table(
        "household_power_hourly.csv",
        "60a09d22aef676e8458c52b85f52347fe5712b790b6f64cf732378a3fb03be09",
    ),
    "minutes": _table(_NAME, _SHA256),
    "minutes_26_days": _table(
        "household_power_minute_26days.csv",
        "d4b7b8bf38e1aef2c8ee075a2eef9acb6a2c50aa573b94aeb64577cfdc1d5474",
    ),
}

_LAST_OF_26_DAYS = "2007-01-11 14:50"

HOUSEHOLD_POWER_CATEGORIES = {"has_missing_minutes": (0, 1)}

_MINUTE_BOUNDS = {
    "Global_active_power": (0, 12),
    "Global_reactive_power": (0, 2),
    "Voltage": (0, 260),
    "Global_intensity": (0, 60),
    "Sub_metering_1": (0, 100),
    "Sub_metering_2": (0, 100),
    "Sub_metering_3": (0, 100),
}

# An hour holds the sums of sixty minutes.
HOUSEHOLD_POWER_BOUNDS = {
    "hours": {
        **{name: (0, 60 * high) for name, (_, high) in _MINUTE_BOUNDS.items()},
        "Global_active_power_filled": (0, 720),
        "has_missing_minutes": (0, 1),
    },
    "minutes": _MINUTE_BOUNDS,
}

HOUSEHOLD_POWER_DESCR = """\
Household power
---------------

The electric power that one house in Sceaux, France, drew from 16 December 2006, 17:24
to 26 November 2010, 21:02, read every minute. By Georges Hebrail and Alice Berard.

:Features: by the minute Global_active_power (kW, mean of the minute),
    Global_reactive_power (kW), Voltage (V), Global_intensity (A), and the active energy
    (Wh) of Sub_metering_1 (kitchen), Sub_metering_2 (laundry) and Sub_metering_3 (water
    heater and air conditioner). By the hour their sums: divide Global_active_power by
    60 for kWh, which is the mean power of the hour in kW
:Target: Global_active_power, by the minute in "minutes" (2075259) and in
    "minutes_26_days" (the first 37287 of them), by the hour in "hours" (34589)
:Missing: 25979 minutes, "?" in the file, NaN here (4 in the first 26 days). In an hour
    they count as nothing: 502 hours are flagged by has_missing_minutes, and 421 of them
    are empty and hold 0, which is not a power. In Global_active_power_filled each
    missing minute is taken from the nearest earlier day that has it
:Licence: CC BY 4.0
:Citation: Hebrail, G. and Berard, A. (2006). Individual Household Electric Power
    Consumption. UCI Machine Learning Repository. https://doi.org/10.24432/C58K54

**Quirks.** The index is the time as recorded, of the reading or of the start of the
hour; no change to summer time is known. The first hour (36 minutes) and the last (3)
are cut off and not flagged.

**Categories and bounds** are meant to be taken as public by a private estimator. The
publisher states none: the bounds are round limits of a house's supply, chosen for this
package with the published file in view, which is sound only because that file is
public.

Power by the minute tells when people come home, sleep and wash: one household chose to
publish it. Its readings depend on each other, so hiding one of them takes more than
noise for one.
"""

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
        Folder of the data, by default scikit-learn's
        (:func:`sklearn.datasets.get_data_home`). If ``household_power_consumption.txt``
        (the publisher's file), or ``household_power_hourly.csv`` for hours, or
        ``household_power_minute_26days.csv`` for the first days, each also with
        ``.gz``, lies there or in its folder ``skpuffer_household_power``, it is read
        without a network; it must have the known checksum.
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
        Dictionary-like object, with the following attributes.

        - `data` : DataFrame or ndarray of shape (n_samples, 8) or (n_samples, 6)
        - `target` : Series or ndarray of shape (n_samples,)
              ``Global_active_power``: kW by the minute, the sum of 60 by the hour.
        - `frame` : DataFrame of shape (n_samples, 9) or (n_samples, 7) or None
              Data and target, only if `as_frame`.
        - `feature_names` : list of str
        - `target_names` : list of str
              The name of the target column.
        - `categories` : dict of str to list of int
              Codes of the flag of hours, to be taken as public.
        - `bounds` : dict of str to (low, high)
              Bounds of each column, to be taken as public; see `DESCR`.
        - `schema` : Schema
              All of that, and the target, as the code book that estimators read raw
              tables by.
        - `DESCR` : str
              Origin, units, licence, citation and quirks.
    (data, target) : tuple if `return_X_y`
        Data and target alone, of the types above.

    Raises
    ------
    OSError
        If the table is neither at hand nor within reach, or a file is not the
        published one.

    See Also
    --------
    load_household_power : The first year of hours or week of minutes, without a file.

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
    check_option(tuple(HOUSEHOLD_POWER_TABLES), series=series)
    check_fetch_options(
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )
    content, ready = load_table(
        HOUSEHOLD_POWER_TABLES[series],
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
    if ready and series != "minutes":
        frame = _parse_ready(content)
    else:
        frame = _parse_published(content)
        if series == "hours":
            frame = _by_the_hour(frame)
        elif series == "minutes_26_days":
            frame = frame.loc[:_LAST_OF_26_DAYS]
    return _as_series(frame, return_X_y, as_frame, HOUSEHOLD_POWER_DESCR)


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
        Data and target alone.

    See Also
    --------
    fetch_household_power : The whole series.

    References
    ----------
    Hebrail, G. and Berard, A. (2006). Individual Household Electric Power Consumption.
    UCI Machine Learning Repository. https://doi.org/10.24432/C58K54. CC BY 4.0.

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
    check_switches(return_X_y=return_X_y, as_frame=as_frame)
    name, chosen = _EXCERPTS[series]
    descr = described(HOUSEHOLD_POWER_DESCR, chosen)
    return _as_series(_parse_ready(read_excerpt(name)), return_X_y, as_frame, descr)


def _as_series(
    frame: pd.DataFrame, return_X_y: bool, as_frame: bool, descr: str
) -> Bunch | tuple[Any, Any]:
    """Pack hours or minutes; which they are, their columns say."""
    hours = "has_missing_minutes" in frame
    bounds = HOUSEHOLD_POWER_BOUNDS["hours" if hours else "minutes"]
    return as_dataset(
        frame,
        "Global_active_power",
        return_X_y=return_X_y,
        as_frame=as_frame,
        categories=HOUSEHOLD_POWER_CATEGORIES if hours else {},
        bounds={column: bounds[column] for column in frame},
        descr=descr,
    )


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
