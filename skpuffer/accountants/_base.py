"""What every accountant is: it meets a release and a scenario, and sets the noise."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from sklearn.base import BaseEstimator

from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import Noise
from skpuffer.privacy import Certificate
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import BoundScenario, Scenario

__all__ = ["Accountant", "Calibration", "Unsupported", "as_asked", "bind"]

# How far from the budget, in parts of it, what the noise spends may be: above it by
# rounding alone, below it by as much as a search for the scale may leave.
_ABOVE, _BELOW = 1e-6, 1e-2


@dataclass(frozen=True)
class Calibration:
    """What calibration returns.

    Parameters
    ----------
    noise : Noise
        The noise that keeps the promise.
    certificate : Certificate
        What exactly is promised.
    """

    noise: Noise
    certificate: Certificate


class Unsupported(str):
    """The reason why something is not supported: a text that is false."""

    __slots__ = ()

    def __bool__(self):
        return False


class Accountant(BaseEstimator, ABC):
    """A way of counting the loss.

    An accountant holds parameters only. It never sees a data frame: it works from the
    facts a scenario offers about a release.
    """

    #: Facts it can work from, best first. Any one of them suffices.
    needs: tuple = ()

    #: Kinds of release it can account for.
    releases: tuple = (QueryRelease,)

    #: Whether to name it to users whose own choice does not do.
    recommended = True

    #: Order of the norm by which its noise wants gradients clipped.
    clip_order = 2.0

    @abstractmethod
    def check(self):
        """Check the parameters by plain code; raise an error that names the culprit."""

    @abstractmethod
    def calibrate(self, release, scenario, random_state=None):
        """Find the least noise that keeps the promise.

        Parameters
        ----------
        release : QueryRelease
            What is to be released.
        scenario : Scenario or BoundScenario
            What is secret. An unbound one is bound to the release's public facts.
        random_state : int, RandomState instance, Generator or None, default=None
            For accountants that simulate; the others ignore it.

        Returns
        -------
        Calibration
            With attributes `noise` and `certificate`.

        Raises
        ------
        UnsupportedError
            If this accountant cannot work with what the scenario offers.
        """

    @abstractmethod
    def certify(self, noise, release, scenario):
        """Find what a given noise promises.

        Parameters
        ----------
        noise : Noise
        release : QueryRelease
        scenario : Scenario or BoundScenario

        Returns
        -------
        Certificate
        """

    def supports(self, release, scenario):
        """Whether this accountant can account for the release under the scenario.

        Parameters
        ----------
        release : QueryRelease
        scenario : Scenario or BoundScenario

        Returns
        -------
        True or Unsupported
            `Unsupported` is false and reads as the reason why not, with the names of
            accountants that would do.
        """
        bound = bind(scenario, release)
        provided = bound.provides(release)
        known = isinstance(release, self.releases)
        if known and any(need in provided for need in self.needs):
            return True
        others = [
            kind.__name__
            for kind in known_accountants()
            if kind.recommended
            and isinstance(release, kind.releases)
            and any(need in provided for need in kind.needs)
        ]
        remedy = "use a scenario that offers more"
        if others:
            remedy = f"{' or '.join(others)} would do"
        elif known:
            remedy = (
                "give what bounds one record's influence (an estimator's bounds, "
                f"data_norm or sensitivity), or {remedy}"
            )
        if not known:
            kinds = " or ".join(kind.__name__ for kind in self.releases)
            return Unsupported(
                f"{type(self).__name__} accounts for a {kinds}, but the release "
                f"{release.name!r} is a {type(release).__name__}; {remedy}."
            )
        needs = " or ".join(need.__name__ for need in self.needs)
        offers = ", ".join(sorted(f.__name__ for f in provided)) or "nothing"
        return Unsupported(
            f"{type(self).__name__} needs {needs}, but "
            f"{type(bound.scenario).__name__} offers {offers} for the release "
            f"{release.name!r}; {remedy}."
        )

    def _require(self, release, bound):
        """The first fact type that both sides know, or an error with the reason."""
        answer = self.supports(release, bound)
        if not answer:
            raise UnsupportedError(str(answer))
        provided = bound.provides(release)
        return next(need for need in self.needs if need in provided)

    def _identity(self, bound, *releases):
        """Fields of a certificate that say what it is about."""
        return {
            "scenario": bound.describe(),
            "accountant": " ".join(repr(self).split()),
            "release": " + ".join(release.name for release in releases),
        }


def as_asked(certificate, epsilon):
    """State the budget asked for rather than the last digits of the way back.

    Parameters
    ----------
    certificate : Certificate
        Of the noise that was found, whatever it spends.
    epsilon : float

    Returns
    -------
    Certificate
        As it is, if the noise spends more than was asked or leaves some of it.
    """
    spent = certificate.epsilon / epsilon
    if not 1 - _BELOW <= spent <= 1 + _ABOVE:
        return certificate
    same = certificate.rpp_epsilon == certificate.epsilon
    asked = float(epsilon)
    return replace(
        certificate,
        epsilon=asked,
        rpp_epsilon=asked if same else certificate.rpp_epsilon,
    )


def bind(scenario, release):
    """Return a bound scenario, binding to the release's own public facts if need be."""
    if isinstance(scenario, BoundScenario):
        if scenario.context.n_records != release.n_records:
            raise ValueError(
                f"The scenario was bound to a table of {scenario.context.n_records} "
                f"records, the release {release.name!r} is of {release.n_records}."
            )
        return scenario
    if isinstance(scenario, Scenario):
        return scenario.bind(release.context)
    raise TypeError(
        "The parameter 'scenario' must be a scenario such as RecordScenario(). "
        f"Got {scenario!r}."
    )


def known_accountants(kind=Accountant):
    """Public accountant classes of this library, by name."""
    found = []
    for sub in kind.__subclasses__():
        ours = sub.__module__.partition(".")[0] == __name__.partition(".")[0]
        if ours and not sub.__name__.startswith("_"):
            found.append(sub)
        found.extend(known_accountants(sub))
    return sorted(set(found), key=lambda c: c.__name__)
