"""Perceptron with one hidden layer, trained by noisy gradients."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer._template import _classes
from skpuffer._template._classes import (
    PrivateClassifierMixin,
)
from skpuffer._template._reading import (
    counted,
    without_secret,
)
from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    check_count,
    check_non_negative,
    check_option,
    check_positive,
)
from skpuffer.linear_model._base_sgd import (
    CLASS_CONSTRAINTS,
    PrivateTrainingMixin,
    checked_array,
)
from skpuffer.training import PerceptronGradients, make_loss
from skpuffer.training._perceptron import ACTIVATIONS
from skpuffer.utils._clipping import clip_rows
from skpuffer.utils._reading import validate_rows
from skpuffer.utils._sklearn import Interval, StrOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skpuffer.accountants import Accountant
    from skpuffer.kernel.numbers import Floats
    from skpuffer.releases import PublicContext
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.training import Gradients, Loss, Training
    from skpuffer.utils._types import RandomState, Table


class PrivateMLPClassifier(PrivateClassifierMixin, PrivateTrainingMixin):
    """Perceptron with one hidden layer, trained by noisy clipped gradients.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret to protect. None is one record, added or removed: differential
        privacy.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario.
    hidden_size : int, default=32
        Units of the hidden layer.
    activation : {'relu', 'tanh', 'logistic', 'identity'}, default='tanh'
        Activation of the hidden layer.
    alpha : float, default=0.0
        Weight of ``|w|**2 / 2`` next to the mean loss. It costs no privacy.
    clip_by : {'all', 'layer'}, default='all'
        Whether a record's gradient is scaled down as a whole, or each layer's part
        apart: to its own norm where `clip_norm` names two, else each to
        ``clip_norm / sqrt(2)`` (in l2).
    noise_by : {'all', 'layer'}, default='all'
        Whether the noise has one scale, or each layer's is in proportion to its clip
        norm; for ``clip_by='layer'``.
    data_norm : float, default=1.0
        Public bound of the l2 norm of a row; longer rows are scaled down to it.
    classes : array-like, default=None
        Public class labels. None takes those of `y` as public.
    class_weight : dict or tuple, default=None
        Public weight of each label, one for others; in proportion to the largest it
        multiplies a record's clipped gradient.
        ``('balanced', {'no': 0.99, 'yes': 0.01})`` is one over the number of classes
        times these public shares. None is one for all.
    max_iter : int, default=None
        Number of epochs. None follows the rule in the notes.
    training : Training, default=None
        How gradients are batched, clipped and followed; see
        :class:`~skpuffer.training.Training`. None follows the rule in the notes.
    schema : Schema, default=None
        Public code book of the table, with the `classes` of its target. Numbers are
        scaled by their bounds, levels become a column each, and rows lie in the unit
        ball. See :class:`~skpuffer.schema.Schema`.
    weight_bounds : pair (low, high), default=None
        Public bounds, ``0 <= low <= high``, to which `fit` clips a `sample_weight`.
        Noise covers a record of the largest.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    coefs_ : list of ndarray
        Noisy weights, of shape (n_features, hidden_size) and (hidden_size, n_outputs).
    intercepts_ : list of ndarray
        Noisy biases of the two layers.
    classes_ : ndarray of shape (n_classes,)
        Public class labels.
    n_steps_ : int
        Number of noisy gradient sums.
    n_iter_ : ndarray of shape (1,)
        Number of epochs begun.
    release_ : GradientRelease
        The release that was accounted and run.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added to each sum of clipped gradients.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map from raw columns to those that are read; only with a `schema`.
    n_features_in_ : int
        Number of features, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    Parameters left at None follow :func:`skpuffer.training.run_defaults`, from public
    facts alone: the number of records, the noise for the budget, and the curvature of
    the loss.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skpuffer.neural_network import PrivateMLPClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PrivateMLPClassifier(data_norm=5.0).fit(scale(X), y)
    >>> [w.shape for w in model.coefs_]
    [(30, 32), (32, 1)]
    """

    _release_name = "gradients of a perceptron"

    _parameter_constraints: dict[str, Any] = {
        **PrivateTrainingMixin._parameter_constraints,
        **CLASS_CONSTRAINTS,
        "hidden_size": [Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions({"relu", "tanh", "logistic", "identity"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "clip_by": [StrOptions({"all", "layer"})],
        "noise_by": [StrOptions({"all", "layer"})],
        "data_norm": [Interval(Real, 0, None, closed="neither")],
    }

    predict = _classes.predict
    predict_proba = _classes.predict_proba
    predict_log_proba = _classes.predict_log_proba

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        hidden_size: int = 32,
        activation: str = "tanh",
        alpha: float = 0.0,
        clip_by: str = "all",
        noise_by: str = "all",
        data_norm: float = 1.0,
        classes: ArrayLike | None = None,
        class_weight: dict[Any, float] | tuple[str, dict[Any, float]] | None = None,
        max_iter: int | None = None,
        training: Training | None = None,
        schema: Schema | None = None,
        weight_bounds: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.hidden_size = hidden_size
        self.activation = activation
        self.alpha = alpha
        self.clip_by = clip_by
        self.noise_by = noise_by
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.training = training
        self.schema = schema
        self.weight_bounds = weight_bounds
        self.random_state = random_state

    def _check_parameters(self, scenario: Scenario) -> None:
        # by plain code, whatever scikit-learn's switch for validation says
        super()._check_parameters(scenario)
        check_count(hidden_size=self.hidden_size)
        check_non_negative(alpha=self.alpha)
        check_positive(data_norm=self.data_norm)
        for name in ("clip_by", "noise_by"):
            check_option(("all", "layer"), **{name: getattr(self, name)})
        if self.noise_by == "layer" and self.clip_by != "layer":
            raise value_error("network.noise_by_layer_needs_clipping")

    def _check_clip_norm(self) -> None:
        norms = self._training.clip_norm
        if not isinstance(norms, tuple):
            super()._check_clip_norm()
            return
        if self.clip_by != "layer":
            raise value_error("network.clip_norm_per_layer_together")
        if len(norms) != 2:
            raise value_error("network.clip_norm_not_a_pair", norms=norms)

    def _loss(self) -> Loss:
        return make_loss("log_loss", len(self.classes_))

    def _l2(self, context: PublicContext) -> float:
        return float(self.alpha)

    def _clipping(self, default: float, order: float) -> dict[str, Any]:
        """One clip norm for all parameters, or one for each layer."""
        norms = self._training.clip_norm
        if not isinstance(norms, tuple):
            whole = super()._clipping(default, order)
            if self.clip_by == "all":
                return whole
            # Two parts of norm c / 2^(1/p) each, in the p-norm, make a gradient of norm
            # c at most: the sensitivity is that of one clip.
            norms = (whole["clip_norm"] / 2 ** (1 / order),) * 2
        # weights and biases of the two layers
        hidden = (self.n_features_in_ + 1) * self.hidden_size
        output = (self.hidden_size + 1) * self._n_outputs()
        return {
            "clip_norm": norms,
            "clip_order": order,
            "blocks": (hidden, output),
            "noise_proportions": norms if self.noise_by == "layer" else None,
        }

    _init_names = ("coefs_", "intercepts_")

    def _parameters(self, weights: Any, intercepts: Any) -> Floats:
        theirs = getattr(self._training.init, "activation", self.activation)
        if theirs != self.activation:
            raise value_error(
                "network.init_activation_differs",
                theirs=theirs,
                activation=self.activation,
            )
        d, h, k = self.n_features_in_, self.hidden_size, self._n_outputs()
        # one more layer than there is here, say
        if not len(weights) == len(intercepts) == 2:
            raise value_error(
                "network.init_layers_wrong",
                n_weights=len(weights),
                n_intercepts=len(intercepts),
            )
        layers = [
            np.vstack(
                [
                    checked_array("coefs_", matrix, shape) * unit,
                    checked_array("intercepts_", bias, shape[1:]),
                ]
            )
            for matrix, bias, shape, unit in zip(
                weights,
                intercepts,
                [(d, h), (h, k)],
                [self.data_norm, 1.0],
                strict=True,
            )
        ]
        return np.concatenate([layer.ravel() for layer in layers])

    def _gradients(self, X: Any, y: Any) -> Gradients:
        """Clipped gradients of the network on rows in units of `data_norm`."""
        return PerceptronGradients(
            self._loss(),
            X,
            y,
            n_classes=len(self.classes_),
            n_hidden=self.hidden_size,
            activation=self.activation,
            # so that default clip norms do not depend on the units of the data
            data_norm=float(self.data_norm),
            counted=None if self._of_no_target() is None else counted(y),
            weights=self._record_weights(y),
        )

    # -- post-processing ----------------------------------------------------------

    def _publish(self, value: Any, release: Any) -> None:
        # The released vector holds each layer's weights with its bias as the last row.
        # The first layer was trained on rows in units of `data_norm`, so its weights
        # are divided by that.
        super()._publish(value, release)
        d, h, k = self.n_features_in_, self.hidden_size, self._n_outputs()
        hidden, output = np.split(value, [(d + 1) * h])
        hidden, output = hidden.reshape(d + 1, h), output.reshape(h + 1, k)
        self.coefs_ = [hidden[:-1] / self.data_norm, output[:-1]]
        self.intercepts_ = [hidden[-1].copy(), output[-1].copy()]

    def decision_function(self, X: Table) -> Floats:
        """Return the score of each class, or of the second of two.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            A secret column is ignored; rows are scaled down as in training.

        Returns
        -------
        scores : ndarray of shape (n_records,) or (n_records, n_classes)
        """
        check_is_fitted(self)
        X = validate_rows(self, without_secret(self, X), reset=False)
        # by released weights alone: post-processing
        activate, _ = ACTIVATIONS[self.activation]
        # a longer row than any in training would leave what the network was fitted to
        hidden = clip_rows(X, self.data_norm) @ self.coefs_[0] + self.intercepts_[0]
        scores: Floats = activate(hidden) @ self.coefs_[1]
        scores += self.intercepts_[1]
        return scores.ravel() if scores.shape[1] == 1 else scores
