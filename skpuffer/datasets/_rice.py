"""The rice (Cammeo and Osmancik) table."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from ._bunch import as_categories, as_dataset, check_fetch_options
from ._fetch import RemoteTable, load_table

RICE_TABLE = RemoteTable(
    dataset="rice",
    name="Rice_Cammeo_Osmancik.arff",
    sha256="5475be95c1f908e6f4ac0e586ffa78a4291a691c5b444a10a9cda019ddc7ec86",
    urls=(
        "https://archive.ics.uci.edu/static/public/545/rice+cammeo+and+osmancik.zip",
    ),
    ready_name="rice.csv",
    ready_sha256="307084f7903e863f55737d9878c08cd6b017fceb0699801d1cca05439541c56f",
)

RICE_COLUMNS = (
    "Area",
    "Perimeter",
    "Major_Axis_Length",
    "Minor_Axis_Length",
    "Eccentricity",
    "Convex_Area",
    "Extent",
    "Class",
)

RICE_CATEGORIES = {"Class": ("Cammeo", "Osmancik")}

RICE_BOUNDS = {
    "Area": (5_000, 20_000),
    "Perimeter": (300, 600),
    "Major_Axis_Length": (100, 250),
    "Minor_Axis_Length": (50, 120),
    "Eccentricity": (0, 1),
    "Convex_Area": (5_000, 20_000),
    "Extent": (0, 1),
}

RICE_DESCR = """\
Rice (Cammeo and Osmancik)
--------------------------

3810 grains of two rice varieties grown in Turkey, photographed, with seven measures of
their shape in pixels. By Ilkay Cinar and Murat Koklu.

:Features: Area, Perimeter, Major_Axis_Length, Minor_Axis_Length, Eccentricity (of the
    ellipse with the same moments), Convex_Area (of the convex hull), Extent (area over
    that of the bounding box)
:Target: Class, 1630 Cammeo and 2180 Osmancik
:Missing: none
:Licence: CC BY 4.0
:Citation: Cinar, I. and Koklu, M. (2019). Rice (Cammeo and Osmancik). UCI Machine
    Learning Repository. https://doi.org/10.24432/C5MW4Z. The authors ask to cite Cinar,
    I. and Koklu, M. (2019). Classification of rice varieties using artificial
    intelligence methods. International Journal of Intelligent Systems and Applications
    in Engineering 7(3), 188-194.

**Quirks.** The rows are sorted by class, Cammeo first: shuffle before you split. The
scales of the columns differ by four orders of magnitude.

**Categories and bounds** are meant to be taken as public by a private estimator. The
classes are the publisher's, and Eccentricity and Extent lie in [0, 1] by definition.
The publisher gives no bounds for the sizes; the round numbers here were chosen for this
package with the published file in view, which is sound only because that file is
public. No person is described by this table: it is the plain control among the others.
"""


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
        Folder of the data, by default scikit-learn's
        (:func:`sklearn.datasets.get_data_home`). If ``Rice_Cammeo_Osmancik.arff`` (the
        publisher's file) or ``rice.csv`` (with a header), each also with ``.gz``, lies
        there or in its folder ``skpuffer_rice``, it is read without a network; it must
        have the known checksum.
    download_if_missing : bool, default=True
        If False, raise an OSError when the data are not there.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        If True, data is a DataFrame and target a ``category`` Series. If False, data
        is a float array and target an object array. True is the default of all
        fetchers here.
    n_retries : int, default=3
        Further attempts when a download fails.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        - `data` : DataFrame or ndarray of shape (3810, 7)
        - `target` : Series or ndarray of shape (3810,)
              "Cammeo" or "Osmancik".
        - `frame` : DataFrame of shape (3810, 8) or None
              Data and target, only if `as_frame`.
        - `feature_names` : list of str
        - `target_names` : list of str
              The name of the target column.
        - `categories` : dict of str to list of str
              The classes, to be taken as public.
        - `bounds` : dict of str to (low, high)
              Bounds of each feature, to be taken as public; see `DESCR`.
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
    check_fetch_options(
        download_if_missing=download_if_missing,
        return_X_y=return_X_y,
        as_frame=as_frame,
        n_retries=n_retries,
        delay=delay,
    )
    content, ready = load_table(
        RICE_TABLE,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
    return as_dataset(
        _parse_rice(content, ready),
        "Class",
        return_X_y=return_X_y,
        as_frame=as_frame,
        categories=RICE_CATEGORIES,
        bounds=RICE_BOUNDS,
        descr=RICE_DESCR,
    )


def _parse_rice(content: bytes, ready: bool) -> pd.DataFrame:
    """Read the rows of either form with one parser, so that they agree to the bit."""
    if not ready:
        content = content.partition(b"@DATA")[2]
    frame = pd.read_csv(
        BytesIO(content),
        header=0 if ready else None,
        names=RICE_COLUMNS,
    )
    return as_categories(frame, RICE_CATEGORIES)
