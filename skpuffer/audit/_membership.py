"""Guessing who was among the records that a model learned from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed
from scipy import sparse, special, stats
from sklearn.utils.validation import check_is_fitted

from skpuffer.exceptions import Statement, reason_of, value_error
from skpuffer.kernel.numbers import check_count, check_option, check_probability
from skpuffer.utils._reading import (
    as_table,
    column_names,
    is_frame,
    read_labels,
    row_count,
    to_pandas,
)
from skpuffer.utils._silence import muted, silence
from skpuffer.utils._sklearn import safe_indexing

from ._allowed import RELATIONS, promises_at
from ._scored import ScoredAttack
from ._scores import kind_of, likelihoods, losses, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Booleans, Floats
    from skpuffer.privacy import Certificate
    from skpuffer.utils._types import Array, RandomState, Table

    Score = Callable[[Any, Any, Array], Floats]


def one_run_p_value(
    right: int, n_guesses: int, n_records: int, points: Iterable[tuple[float, float]]
) -> float:
    """Bound the probability of as many right guesses about coins in one run.

    Each of `points` is a promised (epsilon, delta), and the least bound counts
    (Steinke, Nasr and Jagielski, 2023, Theorem 5.2 and appendix D).
    """
    least = 1.0
    for epsilon, delta in points:
        # each guess is as good as randomised response at most
        q = special.expit(epsilon)
        beta = stats.binom.sf(right - 1, n_guesses, q)
        worst = 0.0
        if delta > 0 and right > 0:
            # the largest mean mass of the counts just below, of any number of them
            below = stats.binom.pmf(np.arange(right - 1, -1, -1), n_guesses, q)
            worst = float(np.max(np.cumsum(below) / np.arange(1, right + 1)))
        least = min(least, float(beta + 2 * n_records * delta * worst))
    return least


_SCORES = ("loss", "lira")
_VARIANTS = ("online", "offline")


@dataclass(frozen=True, eq=False, repr=False)
class MembershipAttack(ScoredAttack):
    """Hold scores of members and of others, and say how well they distinguish them.

    :func:`membership_attack` makes one; or make one of the scores of your own
    experiment.

    Parameters
    ----------
    scores : ndarray of shape (n_records,)
        Scores that grow with the odds that the record is a member.
    labels : ndarray of bool of shape (n_records,)
        Whether it is.
    confidence : float, default=0.95
        Confidence of intervals and of comparisons.
    relation : {'replace', 'add_remove'}, default='replace'
        How members were drawn: 'replace' as a sample of fixed size, 'add_remove' by a
        coin for each record.

    Notes
    -----
    A certificate bounds rates on average over who is a member, and over fits. Members
    must have been drawn at random from those that are attacked. The intervals take
    scores as independent, each from a fit of its own. Scores of many records by one
    model share its noise, and the interval then speaks of this model.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.audit import MembershipAttack
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate([rng.normal(1, 1, 500), rng.normal(0, 1, 500)])
    >>> attack = MembershipAttack(scores, np.repeat([True, False], 500))
    >>> attack
    MembershipAttack(n_members=500, n_others=500, auc=0.77...)
    >>> low, high = attack.tpr_at(0.1).tpr_interval
    >>> bool(low < 0.389 < high)
    True
    """

    relation: str = "replace"

    _kinds: ClassVar[tuple[str, str]] = ("members", "others")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option(RELATIONS, relation=self.relation)

    @property
    def _relation(self) -> str | None:
        return self.relation

    def one_run_p_value(
        self, certificate: Certificate, n_guesses: int | None = None
    ) -> float:
        """Bound how likely a run that keeps a promise is attacked as well as this one.

        For many records in one run, whatever the dependence of their scores: a fair
        coin must have decided for each record whether it is a member. The largest
        scores are guessed to be members, the least to be none. It needs fewer fits than
        :meth:`exceeds`, and has less power.

        Parameters
        ----------
        certificate : Certificate
            A promise about one record that is added or removed.
        n_guesses : int, default=None
            Even, half of either kind, and chosen beforehand. None is a tenth of the
            records.

        Returns
        -------
        p_value : float
            At most this is the probability of as many right guesses, if the promise
            holds.

        Raises
        ------
        ValueError
            If ``relation='add_remove'`` is missing here or in the certificate, or there
            are fewer records than guesses.

        References
        ----------
        Steinke, Nasr and Jagielski (2023), Privacy auditing with one (1) training run,
        Theorem 5.2 and appendix D, at the best point of the certificate's curve.

        Examples
        --------
        >>> import numpy as np
        >>> from skpuffer.audit import MembershipAttack
        >>> from skpuffer.privacy import Certificate
        >>> rng = np.random.default_rng(0)
        >>> member = rng.random(1000) < 0.5
        >>> told = rng.random(1000) < 0.9
        >>> scores = np.where(told, member, ~member) + rng.normal(0, 0.1, 1000)
        >>> attack = MembershipAttack(scores, member, relation="add_remove")
        >>> promise = Certificate(notion="pure_dp", epsilon=1.0, relation="add_remove")
        >>> bool(attack.one_run_p_value(promise) < 0.001)
        True
        """
        if self.relation != "add_remove":
            raise value_error("audit.one_run_needs_coin")
        n = len(self.scores)
        if n_guesses is None:
            n_guesses = max(2, n // 20 * 2)
        n_guesses = check_count(n_guesses=n_guesses, least=2)
        if n_guesses % 2 or n_guesses > n:
            raise value_error(
                "audit.guesses_odd_or_many", n_scores=n, n_guesses=n_guesses
            )
        order = np.argsort(self.scores, kind="stable")
        half = n_guesses // 2
        right = self.labels[order[-half:]].sum() + (~self.labels[order[:half]]).sum()
        points = promises_at(certificate, "add_remove", n)
        return one_run_p_value(int(right), n_guesses, n, points)


def membership_attack(
    model: Any,
    X_members: Table,
    y_members: ArrayLike,
    X_others: Table,
    y_others: ArrayLike,
    *,
    score: str | Score = "loss",
    shadow: Any = None,
    n_shadows: int = 16,
    variant: str = "online",
    relation: str = "replace",
    confidence: float = 0.95,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> MembershipAttack:
    """Guess which records a fitted model has learned from.

    Parameters
    ----------
    model : estimator
        Fitted, private or not: a classifier, a regressor or a pipeline that ends in
        one.
    X_members : {array-like, sparse matrix, data frame} of shape (n_members, n_features)
        Records it was fitted to, as it takes them.
    y_members : array-like of shape (n_members,)
        Their targets.
    X_others : {array-like, sparse matrix, data frame} of shape (n_others, n_features)
        Records it was not fitted to, of the same population: chance must have decided
        which are members.
    y_others : array-like of shape (n_others,)
        Their targets.
    score : {'loss', 'lira'} or callable, default='loss'
        Score that an attacker looks at, larger for members.

        - 'loss': the log of its label's probability, its margin where a classifier has
          no probabilities, minus the squared error of a regressor.
        - 'lira': the likelihood ratio of being a member, by shadow models fitted to
          random parts of all records. Better at few false alarms, and slower.
        - callable of (model, X, y): a number for each record.
    shadow : estimator, default=None
        For 'lira': model that an attacker fits. None clones `model`.
    n_shadows : int, default=16
        For 'lira': number of shadow models. Below 64 one variance is for all records.
    variant : {'online', 'offline'}, default='online'
        For 'lira': whether shadow models that saw the record are compared with as well.
    relation : {'replace', 'add_remove'}, default='replace'
        How members were drawn; see :class:`MembershipAttack`.
    confidence : float, default=0.95
        Confidence of intervals and of comparisons.
    random_state : int, Generator, RandomState or None, default=None
        For 'lira': seed of the parts, and of the shadow models.
    n_jobs : int, default=None
        For 'lira': number of parallel jobs, as in joblib.

    Returns
    -------
    MembershipAttack
        Computed from private records: it is not covered by the model's certificate.

    Raises
    ------
    ValueError
        If tables and targets do not fit each other or the model.

    See Also
    --------
    largest_auc : What a certificate allows.
    skpuffer.inspection.AuditDisplay : The attack, drawn.

    References
    ----------
    Yeom et al. (2018), Privacy risk in machine learning; Carlini et al. (2022),
    Membership inference attacks from first principles.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skpuffer.audit import membership_attack
    >>> X, y = make_classification(600, flip_y=0.2, random_state=0)
    >>> model = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    >>> membership_attack(model, X[:300], y[:300], X[300:], y[300:])
    MembershipAttack(n_members=300, n_others=300, auc=0.6...)
    """
    confidence = check_probability(confidence=confidence)
    check_option(RELATIONS, relation=relation)
    if not callable(score):
        check_option(_SCORES, score=score)
    check_option(_VARIANTS, variant=variant)
    n_shadows = check_count(n_shadows=n_shadows, least=2)
    check_is_fitted(model)
    kind = None if callable(score) else kind_of(model)
    X_members, y_members = _records(X_members, y_members, "members")
    X_others, y_others = _records(X_others, y_others, "others")
    _refuse_other_columns(X_members, X_others)
    if kind in ("probability", "margin"):
        refuse_unknown(model, y_members, "y_members")
        refuse_unknown(model, y_others, "y_others")
    n, m = len(y_members), len(y_others)
    if score == "lira":
        scores = likelihood_ratios(
            model,
            stacked(X_members, X_others),
            np.concatenate([y_members, y_others]),
            share=n / (n + m),
            shadow=model if shadow is None else shadow,
            n_shadows=n_shadows,
            online=variant == "online",
            rng=_generator(random_state),
            n_jobs=n_jobs,
        )
    else:
        rule = score if callable(score) else losses
        parts = [
            _checked(rule(model, X, y), len(y))
            for X, y in ((X_members, y_members), (X_others, y_others))
        ]
        scores = np.concatenate(parts)
    return MembershipAttack(
        scores=scores,
        labels=np.repeat([True, False], [n, m]),
        confidence=confidence,
        relation=relation,
    )


def _generator(random_state: RandomState) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    return np.random.default_rng(random_state)


def _records(X: Any, y: Any, name: str) -> tuple[Any, Array]:
    """Records and their targets, as many of each."""
    X = as_table(X)
    try:
        targets = read_labels(y)
    except (TypeError, ValueError) as error:
        reason = reason_of(error)
        raise type(error)(
            Statement("audit.targets_unreadable", name=name, reason=reason)
        ) from None
    if targets is None or targets.ndim not in (1, 2):
        raise value_error("audit.target_not_per_record", name=name)
    if row_count(X) != len(targets):
        raise value_error(
            "audit.records_and_targets_unequal",
            name=name,
            n_records=row_count(X),
            n_targets=len(targets),
        )
    if not len(targets):
        raise value_error("audit.no_record_given", name=name)
    return X, targets


def _refuse_other_columns(members: Any, others: Any) -> None:
    names = column_names(members), column_names(others)
    if is_frame(members) != is_frame(others) or names[0] != names[1]:
        raise value_error("audit.tables_columns_differ")
    if members.shape[1:] != others.shape[1:]:
        raise value_error(
            "audit.tables_column_counts_differ",
            members_shape=members.shape,
            others_shape=others.shape,
        )


def _checked(scores: Any, n: int) -> Floats:
    found = np.asarray(scores)
    if found.shape != (n,) or found.dtype.kind not in "biuf":
        raise value_error(
            "audit.score_not_per_record",
            shape=found.shape,
            dtype=found.dtype,
            n_records=n,
        )
    return found.astype(float)


# -- the likelihood-ratio attack: how much likelier a model is that saw the record -----


#: With fewer shadow models the variances of single records are mostly chance.
_FEW = 64

#: Smallest variance, of models that all agree.
_LEAST = 1e-12


def likelihood_ratios(
    model: Any,
    X: Any,
    y: Array,
    *,
    share: float,
    shadow: Any,
    n_shadows: int,
    online: bool,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> Floats:
    """Log-likelihood ratio of "was among those the model learned from" by record.

    `share` is the share of records that each shadow model learns from (Carlini et al.,
    2022, Algorithm 1 and section VI: offline, global variance).
    """
    seen = _balanced(len(y), n_shadows, share, rng)
    seeds = rng.integers(2**31 - 1, size=n_shadows)
    sure = np.array(
        Parallel(n_jobs=n_jobs)(
            delayed(_of_shadow)(shadow, X, y, rows, int(seed))
            for rows, seed in zip(seen, seeds, strict=True)
        )
    )
    observed = likelihoods(model, X, y)
    out = _normal(sure, ~seen)
    if not online:
        # how rarely a model that did not see the record is as sure of it
        surprise: Floats = (observed - out.mean()) / out.std()
        return surprise
    ratio: Floats = _normal(sure, seen).logpdf(observed) - out.logpdf(observed)
    return ratio


def _balanced(
    n: int, n_shadows: int, share: float, rng: np.random.Generator
) -> Booleans:
    """Which shadow model sees which records: each as many times as any other."""
    times = min(max(round(share * n_shadows), 1), n_shadows - 1)
    ranks = rng.random((n_shadows, n)).argsort(axis=0)
    found: Booleans = ranks < times
    return found


def _of_shadow(shadow: Any, X: Any, y: Array, rows: Booleans, seed: int) -> Floats:
    # no callback hears of it, as a ledger would: what an attacker fits is no release
    fresh = muted(shadow)
    # a seed that all shadows share would give all of them the same noise
    states = {
        name: seed
        for name in fresh.get_params()
        if name == "random_state" or name.endswith("__random_state")
    }
    fresh.set_params(**states)
    # nor does anyone need to hear, a hundred times, that its noise is seeded
    with silence():
        at = np.flatnonzero(rows)
        fresh.fit(safe_indexing(X, at), y[at])
    return likelihoods(fresh, X, y)


def _normal(sure: Floats, kept: Booleans) -> Any:
    """Normal distribution by record, of those shadow models that are kept."""
    counts = kept.sum(axis=0)
    means = np.where(kept, sure, 0.0).sum(axis=0) / counts
    squares = (np.where(kept, sure - means, 0.0) ** 2).sum(axis=0)
    if len(sure) < _FEW:
        # one variance for all records: within records, not between them
        variance = np.full(len(means), squares.sum() / max(1, (counts - 1).sum()))
    else:
        variance = squares / (counts - 1)
    return stats.norm(means, np.sqrt(np.maximum(variance, _LEAST)))


def stacked(first: Any, second: Any) -> Any:
    """Rows of one table after those of another of the same kind."""
    if is_frame(first):
        frames = [nw.from_native(one, eager_only=True) for one in (first, second)]
        if type(first) is not type(second):
            frames = [nw.from_native(to_pandas(one)) for one in (first, second)]
        return nw.concat(frames, how="vertical").to_native()
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([first, second], format="csr")
    return np.concatenate([np.asarray(first), np.asarray(second)])
