"""Part of the template of a fit that reads raw tables by a code book."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags

from skpuffer.exceptions import Statement
from skpuffer.schema import Schema
from skpuffer.schema._agreement import check_agreement, check_same_book

if TYPE_CHECKING:
    from skpuffer.scenarios import Scenario

__all__ = ["SCHEMA_BEHIND_PREPROCESSING", "CodeBookMixin"]

#: Why there is no code book within public preprocessing.
SCHEMA_BEHIND_PREPROCESSING = Statement("schema.behind_public_preprocessing")


class CodeBookMixin:
    """Mixin of estimators with the parameter `schema`, part of their template.

    A subclass says on which scale numbers reach it, or how else a table is read by its
    code book (:meth:`_read_by`); everything else is the same for all.
    """

    get_params: Callable[..., dict[str, Any]]

    #: Public code book of the table: a parameter of the estimators that read by it.
    schema: Schema | None = None

    #: How numbers of a code book reach the estimator; see :class:`Encoding`.
    _schema_scale: str = "unit_ball"

    def _reads_missing(self) -> bool:
        """Whether missing values are read, and not refused."""
        return bool(get_tags(self).input_tags.allow_nan)

    def _check_schema(self, target_name: Any) -> None:
        """Check the code book against the other parameters and the target's name.

        Before any row is read: what is refused here tells nothing of the data.

        Parameters
        ----------
        target_name : str or None
        """
        schema: Any = self.schema
        if not isinstance(schema, Schema):
            raise TypeError(
                Statement("schema.not_a_schema", schema_type=type(schema).__name__)
            )
        check_agreement(schema, self.get_params(deep=False))
        if target_name in schema.names:
            raise ValueError(
                Statement("schema.target_among_features", target_name=target_name)
            )
        wrong = None
        if is_classifier(self) and schema.target_bounds is not None:
            wrong = Statement("schema.number_for_classifier")
        if is_regressor(self) and schema.classes is not None:
            wrong = Statement("schema.category_for_regressor")
        if wrong is not None:
            raise ValueError(
                Statement(
                    "schema.target_of_wrong_kind", target=schema.target, wrong=wrong
                )
            )

    def _schema_map(self, scenario: Scenario, feature_map: Any) -> Any:
        """Return the public map from raw columns to what the estimator reads.

        Parameters
        ----------
        scenario : Scenario
        feature_map : object or None
            Other public preprocessing, beside which there is no code book.
        """
        schema: Any = self.schema
        if feature_map is not None:
            raise ValueError(SCHEMA_BEHIND_PREPROCESSING)
        position = scenario.secret_position(schema.names, len(schema))
        if position is not None:
            schema = schema.without(schema.names[position])
        if scenario.code_book is not None:
            check_same_book(schema, scenario.code_book)
        return self._read_by(schema)

    def _read_by(self, schema: Schema) -> Any:
        """Return how a table is read by its code book, without the secret."""
        return schema.encoding(self._schema_scale)

    def _publish_schema(self, schema_map: Any) -> None:
        """Set what is public of the raw columns."""
        names = schema_map.schema.names
        self.feature_map_ = schema_map
        # of the raw columns, as scikit-learn has it for whatever takes a table
        self.n_features_in_ = len(names)
        if all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
