"""The release an estimator would make of a table, without fitting."""

from sklearn.base import clone

from skpuffer.accountants import GroupPrivacy
from skpuffer.base import Task
from skpuffer.releases import PublicContext
from skpuffer.scenarios import RecordScenario
from skpuffer.utils._reading import column_names, row_count

#: Nearly no noise, for comparisons with exact statistics.
NO_NOISE = GroupPrivacy(epsilon=1e24, alpha=2.0)


def release_of(estimator, X):
    """Return the release, and a function that encodes tables as it reads them."""
    estimator, scenario = clone(estimator), RecordScenario()
    estimator._check_parameters(scenario)
    encoded, _, reading = estimator._validate(X, None)
    context = PublicContext(
        n_records=row_count(X),
        feature_names=column_names(X),
        n_features=estimator.n_features_in_,
    )
    task = Task(
        scenario=scenario,
        accountant=NO_NOISE,
        context=context,
        X=encoded,
        reading=reading,
    )
    release = estimator._release(task)
    return release, lambda table: estimator._validate(table, None)[0]
