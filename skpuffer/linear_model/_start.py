"""Where a training run starts: parameters that are public, or released before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import CompositionError, EstimatedGuaranteeWarning, Statement
from skpuffer.privacy import Certificate, compose
from skpuffer.utils._warn import warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats

__all__ = [
    "Start",
    "checked_array",
    "read_init",
    "refuse_other_classes",
    "refuse_other_schema",
]

#: What a certificate says of a start that nothing is known of.
_PUBLIC = Statement("assume.init_fitted_without_rows")

#: What it says of one that has a certificate.
_RELEASED = Statement("assume.init_has_own_certificate")


@dataclass(frozen=True, kw_only=True)
class Start:
    """Parameters from which a run goes on.

    Parameters
    ----------
    parameters : ndarray of shape (dim,)
    assumption : Statement
        What the certificate of the run takes for granted of them.
    certificate : Certificate or None, default=None
        Of their own release, where it is to be added to that of the run.
    name : {'init', 'warm_start'}, default='init'
        Parameter that asks for it.
    """

    parameters: Floats
    assumption: Statement
    certificate: Certificate | None = None
    name: str = "init"

    def covering(self, run: Certificate) -> Certificate:
        """Return the certificate of the run and of its start together.

        Parameters
        ----------
        run : Certificate

        Returns
        -------
        Certificate
            An estimate, with a warning, where that of the start is one.

        Raises
        ------
        CompositionError
            If the two promises cannot be added. What holds of each alone says nothing
            of a model that shows both.
        """
        if self.certificate is None:
            return run
        weak = (
            Statement("linear.start_is_estimate")
            if not self.certificate.certified
            else None
        )
        if weak is None and self.certificate.seeded:
            weak = Statement("linear.start_noise_from_seed")
        if weak is not None:
            warn(
                Statement("linear.start_makes_fit_estimate", name=self.name, weak=weak),
                EstimatedGuaranteeWarning,
            )
            return run.as_estimate(
                Statement(
                    "assume.init_certificate_weak",
                    assumption=self.assumption,
                    weak=weak,
                    certificate=repr(self.certificate),
                )
            )
        # an estimate stays one, whatever was promised before it
        if not run.certified:
            return run.assuming(
                Statement(
                    "assume.init_certificate_kept",
                    assumption=self.assumption,
                    certificate=repr(self.certificate),
                )
            )
        try:
            return compose([self.certificate, run])
        except CompositionError as error:
            raise CompositionError(
                Statement(
                    "linear.start_certificate_not_addable", name=self.name, error=error
                )
            ) from None


def read_init(
    init: Any, names: tuple[str, str], columns: Sequence[str] | None
) -> tuple[Any, Any, Statement, Certificate | None]:
    """Read what `init` holds: a fitted estimator, or a pair of coefficients.

    Parameters
    ----------
    init : estimator or tuple
    names : (str, str)
        Attributes of an estimator, of weights and of intercepts.
    columns : sequence of str or None
        Names of the features, where they are known.

    Returns
    -------
    weights, intercepts : object
        As they were given.
    assumption : Statement
    certificate : Certificate or None

    Raises
    ------
    ValueError
        If it is neither, or not fitted.
    """
    if isinstance(init, tuple):
        if len(init) != 2:
            raise ValueError(
                Statement(
                    "linear.init_not_estimator_or_pair",
                    names=list(names),
                    n_init=len(init),
                )
            )
        return *init, _PUBLIC, None
    if not all(hasattr(init, name) for name in names):
        raise ValueError(
            Statement(
                "linear.init_not_fitted",
                names=list(names),
            )
        )
    theirs = getattr(init, "feature_names_in_", None)
    # coefficients of other columns, or in another order, would be read wrongly
    if columns is not None and theirs is not None and list(theirs) != list(columns):
        raise ValueError(
            Statement(
                "linear.init_columns_differ", theirs=list(theirs), columns=list(columns)
            )
        )
    certificate = getattr(init, "certificate_", None)
    released = isinstance(certificate, Certificate)
    return (
        *(getattr(init, name) for name in names),
        _RELEASED if released else _PUBLIC,
        certificate if released else None,
    )


def refuse_other_schema(init: Any, schema_map: Any) -> None:
    """Refuse a start that read its columns by another code book.

    Parameters
    ----------
    init : estimator or tuple
    schema_map : Encoding
        By which this model reads.

    Raises
    ------
    ValueError
    """
    theirs = getattr(getattr(init, "feature_map_", None), "schema", None)
    mine = schema_map.schema
    # the same coefficients would be of other columns, or in another unit
    if theirs is not None and theirs.without(theirs.target) != mine.without(
        mine.target
    ):
        raise ValueError(Statement("linear.init_schema_differs"))


def refuse_other_classes(init: Any, classes: ArrayLike) -> None:
    """Refuse a start whose scores are of other classes, or in another order."""
    theirs = getattr(init, "classes_", None)
    if theirs is not None and not np.array_equal(theirs, classes):
        raise ValueError(
            Statement(
                "linear.init_classes_differ",
                init_classes=np.asarray(theirs).tolist(),
                classes=np.asarray(classes).tolist(),
            )
        )


def checked_array(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """Return coefficients as finite numbers of a shape, or say what is wrong.

    Parameters
    ----------
    name : str
        For the message.
    value : array-like
        Leading axes of length one may be missing.
    shape : tuple of int

    Returns
    -------
    ndarray of shape `shape`

    Raises
    ------
    ValueError
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim < len(shape):
        array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise ValueError(
            Statement(
                "linear.init_array_shape_wrong",
                name=name,
                shape=shape,
                given_shape=array.shape,
            )
        )
    return array
