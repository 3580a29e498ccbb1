"""Runs and scenarios that tests of caps at every history ask about."""

from skpuffer.accountants import HistoryUniformCap
from skpuffer.noise import GaussianNoise
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import Adjacency, RecordScenario
from tests.accountants.contract import Offering

SUBSAMPLINGS = ("worst_case", "log_moment", "mean_square")


def run(n, size, steps, sampling="fixed_size", **options):
    return GradientRelease(
        n_records=n, batch_size=size, n_steps=steps, sampling=sampling, **options
    )


def replaced(k):
    return RecordScenario(k=k, relation="replace")


def scale(release, scenario, epsilon, alpha, subsampling="worst_case", **options):
    accountant = HistoryUniformCap(epsilon, alpha, subsampling, **options)
    return accountant.calibrate(release, scenario).noise.scale


def cost(release, scenario, sigma, alpha, subsampling="worst_case", **options):
    accountant = HistoryUniformCap(alpha=alpha, subsampling=subsampling, **options)
    return accountant.certify(GaussianNoise(sigma), release, scenario).epsilon


def offering(release, **fields):
    """A bound scenario that offers one fact about records."""
    fact = Adjacency.arbitrary(fields.pop("count", 1), ("as given",))
    fact = Adjacency(**{**vars(fact), **fields})
    bound = replaced(1).bind(release.context)
    return Offering(bound, Adjacency, lambda release, norm: fact)
