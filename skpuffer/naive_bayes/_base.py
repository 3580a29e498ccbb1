"""What naive Bayes classifiers share: public classes, priors, and prediction."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._classes import PrivateClassifierMixin
from skpuffer._template._raw_tables import check_records
from skpuffer._template._reading import class_indices, declared_classes, without_secret
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.exceptions import Statement
from skpuffer.kernel.queries import NORMS
from skpuffer.kernel.releases import PUBLIC_TARGET
from skpuffer.releases import Sensitivity
from skpuffer.summary._cells import grouped_sensitivity
from skpuffer.summary._mean import relation_of, weighting_in
from skpuffer.summary._weighted import weighted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.summary._gaps import Stacked
    from skpuffer.utils._types import Array, Table


class PrivateNaiveBayes(PrivateClassifierMixin, PrivateEstimatorMixin):
    """Base of naive Bayes classifiers by one noisy sum over records.

    A subclass has the parameters `schema`, `classes` and `bounds`, reads rows and says
    the log-likelihood of each class.
    """

    # -- what a subclass says -----------------------------------------------------

    @abstractmethod
    def _read_rows(self, X: Any) -> tuple[Any, Any]:
        """Read rows in a fit, and say how: public."""

    @abstractmethod
    def _log_likelihood(self, X: Any) -> Floats:
        """Log-likelihood of rows, the secret column gone, given each class."""

    # -- fit ----------------------------------------------------------------------

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        X, reading = self._read_rows(X)
        check_records(self, X)
        return X, class_indices(self, X, y), reading

    def _public_facts(self, task: Task) -> Statement:
        """What is taken as public, for the certificate."""
        return Statement(
            "assume.values_clipped_labels_found"
            if declared_classes(self) is None
            else "assume.values_clipped_labels_public",
            classes=task.context.classes,
        )

    fit = WeightedFit()

    def _weighted(self, task: Task, contribution: ByClass) -> tuple[Any, Any]:
        """Return a contribution, times weights where there are any, and its sum."""
        if task.weighting is None:
            return contribution, contribution.total
        found = weighted(
            contribution,
            weighting=task.weighting,
            relation=relation_of(task.scenario),
            norm=task.accountant.unit_order,
        )
        return found, found.of_targets

    # -- post-processing ----------------------------------------------------------

    def predict_joint_log_proba(self, X: Table) -> Floats:
        """Return the log joint probability of each row and class."""
        check_is_fitted(self)
        likelihood = self._log_likelihood(without_secret(self, X))
        with np.errstate(divide="ignore"):  # of a class that has no mass
            joint: Floats = likelihood + np.log(self.class_prior_)
        return joint

    def predict(self, X: Table) -> Array:
        """Return the most likely label of each row."""
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        labels: Array = self.classes_[best]
        return labels

    def predict_log_proba(self, X: Table) -> Floats:
        """Return the logarithm of :meth:`predict_proba`."""
        joint = self.predict_joint_log_proba(X)
        logarithms: Floats = joint - logsumexp(joint, axis=1, keepdims=True)
        return logarithms

    def predict_proba(self, X: Table) -> Floats:
        """Return the probability of each class."""
        probabilities: Floats = np.exp(self.predict_log_proba(X))
        return probabilities


def without_lack(value: Floats, release: Any) -> tuple[Floats, float, float]:
    """Return a noisy sum, its number of heaviest records, and the largest weight."""
    weighting, n = weighting_in(release), float(release.n_records)
    if weighting is None:
        return value, n, 1.0
    if not weighting.varies:
        return value, n, weighting.largest
    lacking = value[-1] / release.contribution.lack
    return value[:-1], float(np.clip(n - lacking, 1.0, n)), weighting.largest


#: Deviations of its noise by which a sum must be below the number of records before
#: labels are taken to be missing.
_BEYOND_NOISE = 4.0


def labelled(total: float, deviation: float, n_records: float) -> float:
    """Return the number of records that have a class, from the noisy sum of all sizes.

    All records count, unless more lack a class than the noise of the sum explains.
    """
    if n_records - total <= _BEYOND_NOISE * deviation:
        return n_records
    return max(float(total), 1.0)


# -- contribution of a record in the block of its class --------------------------------


@dataclass(frozen=True)
class ByClass:
    """Contribution of a record that stands in the block of its class.

    A record of no class, whose code is negative, contributes nothing.

    Parameters
    ----------
    block : Stacked
        Contribution of a record within its block.
    """

    block: Stacked
    n_classes: int

    needs_target = True
    move_assumptions = (PUBLIC_TARGET,)

    @property
    def dim(self) -> int:
        """Number of coordinates, class by class."""
        return self.n_classes * self.block.dim

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the sum; see :class:`Sensitivity`.

        Classes compose in parallel: a record fills one block at most, and one that is
        replaced may leave a block for another. A record of no class moves less.
        """
        alone = self.block.sensitivity
        grouped = grouped_sensitivity(alone)
        # where the class alone changes, one block is left for another and no more
        relabel = {
            norm: float(np.linalg.norm([alone.add_remove[norm]] * 2, norm))
            for norm in NORMS
        }
        return Sensitivity(grouped.add_remove, grouped.replace, relabel)

    def __call__(self, X: Floats, y: ArrayLike) -> Floats:
        """Contributions, of shape (n, dim)."""
        y = np.asarray(y).astype(np.intp)
        out = np.zeros((len(y), self.n_classes, self.block.dim))
        rows = np.flatnonzero(y >= 0)
        out[rows, y[rows]] = self._blocks(X)[rows]
        return out.reshape(len(y), -1)

    def _blocks(self, X: Floats) -> Floats:
        blocks: Floats = self.block(X)
        return blocks

    def total(self, X: Floats, y: ArrayLike, weights: Floats | None = None) -> Floats:
        """Sum of the contributions, of shape (dim,), without making them."""
        y = np.asarray(y)
        out = np.zeros((self.n_classes, self.block.dim))
        for code in range(self.n_classes):
            mine = np.flatnonzero(y == code)
            if len(mine):
                blocks = self._blocks(X[mine])
                out[code] = (
                    blocks.sum(axis=0) if weights is None else weights[mine] @ blocks
                )
        return out.ravel()

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity to moves of features, the class staying; see `Moments.move`."""
        moves: Floats = self.block.move(gaps, norm)
        return moves
