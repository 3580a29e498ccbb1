"""Transformer that scales rows down to a public norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from skpuffer._template._all_or_nothing import all_or_nothing
from skpuffer.exceptions import Statement
from skpuffer.utils._clipping import check_clipping, clip_rows
from skpuffer.utils._doc_links import linked_to_docs
from skpuffer.utils._reading import all_finite, read_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.utils._types import Matrix, Table

__all__ = ["RowNormClipper"]


@linked_to_docs
class RowNormClipper(
    OneToOneFeatureMixin,  # type: ignore[misc] # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc] # as above
    BaseEstimator,  # type: ignore[misc] # as above
):
    """Scale each row whose norm exceeds a public bound down to it.

    After it no record moves a sum of rows by more than `norm`, whatever it holds. It
    learns nothing from data, so it may stand before a private estimator.

    Parameters
    ----------
    norm : float, default=1.0
        Public bound of a row's norm, in the units of the features.
    ord : {1, 2, inf}, default=2
        Order of the norm.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    sklearn.preprocessing.Normalizer : Scales every row to norm one, short ones too.

    Examples
    --------
    >>> from skpuffer.preprocessing import RowNormClipper
    >>> RowNormClipper(norm=5.0).fit_transform([[3.0, 4.0], [6.0, 8.0]])
    array([[3., 4.],
           [3., 4.]])
    """

    def __init__(self, norm: float = 1.0, *, ord: float = 2):
        self.norm = norm
        self.ord = ord

    @all_or_nothing
    def fit(self, X: Table, y: ArrayLike | None = None) -> Self:
        """Validate the parameters and the names of the features; learn nothing.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer.
        """
        # nothing is kept of the rows, so that refits on other tables are the same
        check_clipping(self.norm, self.ord)
        self._validate(X, reset=True)
        return self

    def transform(self, X: Table) -> Matrix:
        """Scale long rows down.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_records, n_features)

        Returns
        -------
        X : {ndarray, CSR matrix} of shape (n_records, n_features)
            Rows of norm `norm` at most.
        """
        # row by row, so one record's norm is no matter of another's
        return clip_rows(self._validate(X, reset=False, copy=True), self.norm, self.ord)

    def _validate(self, X: Table, **options: Any) -> Matrix:
        """Check rows, of which no value is quoted in an error."""
        options |= {"dtype": [np.float64, np.float32], "accept_sparse": "csr"}
        options |= {"ensure_all_finite": False}
        rows: Matrix = validate_data(self, read_numbers(X), **options)
        # a row with an infinite entry has no multiple of norm `norm`
        if not all_finite(rows):
            raise ValueError(Statement("preprocessing.rows_not_finite"))
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # nothing to learn, so `PublicPreprocessing` takes it as it is
        tags.requires_fit = False
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
