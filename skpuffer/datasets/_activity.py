"""The activities of older people."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from os import PathLike
from pathlib import PurePosixPath
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from ._bunch import as_categories, as_dataset, check_fetch_options
from ._fetch import RemoteTable, load_table


def _assemble_activity(files: dict[str, bytes]) -> bytes:
    """Return one CSV of the trials: room, trial, sex, time and activity as printed.

    Parameters
    ----------
    files : dict of str to bytes
        Content of each trial's file by its path, whose last part is the trial's name.

    Returns
    -------
    bytes
    """
    by_trial = {PurePosixPath(path).name: text for path, text in files.items()}
    lines = [b"room,trial,sex,time_s,activity"]
    for trial in sorted(by_trial):
        start = f"S{trial[1]},{trial},{trial[-1]}".encode()
        for line in by_trial[trial].split():
            cells = line.split(b",")
            lines.append(b",".join((start, cells[0], cells[-1])))
    return b"\n".join([*lines, b""])


_SHA256 = "95068e85192f42e2b357a01ec4cc235ea939ed0324f67cb3406b471b5a24046e"

# Published as one file for each trial, in the order of their names: the one table of
# all of them is the same bytes, whoever made it.
ACTIVITY_TABLE = RemoteTable(
    dataset="activity",
    name="activity_older_people.csv",
    sha256=_SHA256,
    urls=(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/00427/"
        "Datasets_Healthy_Older_People.zip",
        "https://archive.ics.uci.edu/static/public/427/activity+recognition+with+"
        "healthy+older+people+using+a+batteryless+wearable+sensor.zip",
    ),
    ready_name="activity_older_people.csv",
    ready_sha256=_SHA256,
    part=r"d[12]p\d\d[FM]",
    assemble=_assemble_activity,
)


def _trials() -> Iterator[str]:
    """Names of the 87 trials: room, number, and the sex of who was there."""
    for room, sexes in (
        (1, "M" * 7 + "F" * 28 + "M" * 13 + "F" * 12),
        (2, "F" * 17 + "M" * 5 + "F" * 5),
    ):
        for number, sex in enumerate(sexes, 1):
            yield f"d{room}p{number:02}{sex}"


ACTIVITY_CATEGORIES = {
    "room": ("S1", "S2"),
    "trial": tuple(_trials()),
    "sex": ("F", "M"),
    "activity": (1, 2, 3, 4),
}

ACTIVITY_BOUNDS = {"time_s": (0, 3600), "activity": (1, 4)}

ACTIVITY_DESCR = """\
Activities of older people
--------------------------

What fourteen healthy people of 66 to 86 years were doing, as labelled while they wore a
batteryless sensor: 87 trials of scripted daily activities in two rooms, one row for
each reading of the sensor. Recorded at the University of Adelaide by Roberto Luis
Shinmoto Torres, Renuka Visvanathan, Damith Ranasinghe and others.

:Features: room (S1, S2), trial (the publisher's file), sex (its last letter), time_s
    (seconds from the trial's start)
:Target: activity, 1 sitting on the bed: 16406, 2 on a chair: 4911, 3 lying: 51520,
    4 walking: 2291 rows
:Missing: none
:Licence: the repository lists it as CC BY 4.0; the files themselves name no licence and
    ask to be cited. No row of it is shipped with this package.
:Citation: Shinmoto Torres, R. L., Ranasinghe, D. C., Shi, Q. and Sample, A. P. (2013).
    Sensor enabled wearable RFID technology for mitigating the risk of falls near beds.
    IEEE International Conference on RFID, 191-198. The data: UCI Machine Learning
    Repository, "Activity recognition with healthy older people using a batteryless
    wearable sensor", https://archive.ics.uci.edu/dataset/427

**Quirks.** Acceleration and radio columns of the published files are left out. There
is a row for each reading, so steps are irregular, and sparse where the sensor is not
read: resample to a fixed step for a chain in time. Times were rounded to 0.025 s and
printed with five digits. A trial is not a person: which of the fourteen was in which
trial is not known, so what is private about a trial is not what is private about a
person.

**Categories and bounds** are meant to be taken as public by a private estimator.
`categories` is the publisher's list; time_s ends at an hour, a round limit chosen for
this package (the longest trial takes 29 minutes).

The behaviour follows a script and tells nothing about how often older people walk or
lie. Use the table to study methods for series, not to judge people.
"""


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
        Folder of the data, by default scikit-learn's
        (:func:`sklearn.datasets.get_data_home`). If ``activity_older_people.csv``, also
        with ``.gz``, lies there or in its folder ``skpuffer_activity``, it is read
        without a network; it must have the known checksum. A download puts it together
        from the publisher's file for each trial.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame with a float and ``category`` columns and target a
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

        - `data` : DataFrame or ndarray of shape (75128, 4)
              room, trial, sex and time_s.
        - `target` : Series or ndarray of shape (75128,)
              ``activity``: 1 sitting on the bed, 2 on a chair, 3 lying, 4 walking.
        - `frame` : DataFrame of shape (75128, 5) or None
              Data and target, only if `as_frame`.
        - `feature_names` : list of str
        - `target_names` : list of str
              The name of the target column.
        - `categories` : dict of str to list
              Codes of each coded column, to be taken as public.
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
    check_fetch_options(
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )
    content, _ = load_table(
        ACTIVITY_TABLE,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
    book = {c: v for c, v in ACTIVITY_CATEGORIES.items() if c != "activity"}
    return as_dataset(
        as_categories(pd.read_csv(BytesIO(content), dtype={"time_s": float}), book),
        "activity",
        return_X_y=return_X_y,
        as_frame=as_frame,
        categories=ACTIVITY_CATEGORIES,
        bounds=ACTIVITY_BOUNDS,
        descr=ACTIVITY_DESCR,
    )
