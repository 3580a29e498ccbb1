"""What accountants promise under each of their options, kept in a file.

    python -m tests.accountants.options    # writes tests/oracles/accountants.json

Every accountant that needs no draws is asked about a few releases under scenarios of
each kind, with its parameters changed in turn. Kept are noise and certificate, or what
it is refused by.
"""

import functools
import inspect
import json
import math
import warnings
from pathlib import Path

from skpuffer import accountants
from skpuffer.accountants import Accountant
from tests.pinned_estimators import certificate_row, digest, error_row, near
from tests.scenarios.pinned import VARIANTS, N, releases_of

__all__ = ["KINDS", "differences", "read"]

_FILE = Path(__file__).parents[1] / "oracles" / "accountants.json"

#: What is estimated from draws, or goes by a solver, and has oracles of its own.
_LEFT_OUT = {
    "Best",
    "PAC",
    "RandomAllocation",
    "ResidualPAC",
    "SampledAllocation",
    "ShapedWasserstein",
    "SlicedWasserstein",
}

#: Accountants by name.
KINDS = {
    name: kind
    for name in accountants.__all__
    if inspect.isclass(kind := getattr(accountants, name))
    and issubclass(kind, Accountant)
    and kind is not Accountant
    and name not in _LEFT_OUT
}

#: Values of parameters besides the usual ones, by name.
_VALUES = {
    "epsilon": [0.3],
    "alpha": [3.0, math.inf, None],
    "delta": [0.01, None],
    "event_delta": [1e-4],
    "noise": ["gaussian", "laplace", "generalized_gaussian"],
    "bound": ["paper"],
    "use_prior_variance": [True],
    "q": [2],
    "method": ["approximate"],
    "max_distance": [2],
    "subsampling": ["mean_square"],
    "averaging": ["averaged"],
    "entropy": [0.3],
    "max_fallback": [2.0],
    "if_belief_suffices": ["cap"],
}

_LONG_SUMS = (
    accountants.DistributionAwareWasserstein,
    accountants.OverlapAmplification,
)

#: Scenarios under which options are tried, and others.
_TRIED = (
    "records 3 replace",
    "attribute, several, law",
    "attribute, two beliefs {}",
)

#: Under which all but these may take long.
_LONG = "long chain, one"
_OF_LONG = ("GeneralWasserstein", "GroupPrivacy", "PrivacyLoss", "RenyiDP")

_ASKED = (
    *_TRIED,
    "records 1 add_remove",
    "records 3 relabel",
    "attribute, whole table",
    "attribute, several, sample",
    "attribute, bins and odds {}",
    "group, two, law, None",
    "group, fewer, law, 4",
    "gaussian, ball, record",
    "gaussian, series, ball, protected",
    "chain, two",
    "chain, at the start",
    "chain, one, all",
    "prevalence, counts of None, replace",
    "prevalence, chances of None, replace, 0.05",
    "dependence same_index 1",
    "diffusion",
    "blocks [1, 3, 2], replaced records",
    "blocks [1, 3, 2], all pairs",
    "blocks [1, 3, 2], odds",
)
_RELEASES = ("sum in units", "smooth", "whole", "linear", "stages", "run", "votes")
_OF_OPTIONS = ("sum in units", "run", "stages")


def _made(kind):
    """Yield options by name, and an accountant with each."""
    yield "usual", kind()
    for name in inspect.signature(kind).parameters:
        for value in _VALUES.get(name, ()):
            # of which the sums over all moves take long
            if value == "generalized_gaussian" and kind in _LONG_SUMS:
                continue
            params = {name: value}
            known = kind().get_params()
            if value == "generalized_gaussian":
                params |= {"beta": 1.5, **({"alpha": 3.0} if "alpha" in known else {})}
            elif name == "noise" and "delta" in known:
                params["delta"] = 0.01
            yield f"{name}={value}", kind().set_params(**params)


@functools.cache
def _releases(scenario):
    given, about = VARIANTS[scenario]
    names = about.get("names", ("a", "b"))
    return given, {
        name: release
        for name, release in releases_of(
            names, about.get("n", N), about.get("target"), about.get("groups")
        )
        if name in _RELEASES
    }


def _answer(accountant, release, scenario, known):
    try:
        found = accountant.calibrate(release, scenario, random_state=0)
    except (ValueError, TypeError) as error:
        return error_row(error)
    told = certificate_row(found.certificate, known)
    return told | {"noise": [found.noise.family, digest(found.noise.scale)]}


def found(name):
    """Return answers of an accountant by scenario, release and option."""
    rows, known = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for option, accountant in _made(KINDS[name]):
            asked_of = _ASKED if option == "usual" else _TRIED
            for asked in (*asked_of, *((_LONG,) if name in _OF_LONG else ())):
                scenario, releases = _releases(asked)
                for kind, release in releases.items():
                    if option != "usual" and kind not in _OF_OPTIONS:
                        continue
                    key = f"{asked} | {kind} | {option}"
                    rows[key] = _answer(accountant, release, scenario, known)
    return rows


@functools.cache
def read():
    """Return what is kept, by accountant, question and field."""
    told = json.loads(_FILE.read_text(encoding="utf-8"))
    shared = told.pop("shared")
    return {
        name: {
            key: {part: shared[at] for part, at in row.items()}
            for key, row in rows.items()
        }
        for name, rows in told.items()
    }


def differences(name):
    """Return what is not as it is kept, in lines of accountant, option and field."""
    ours, kept = found(name), read().get(name, {})
    return [
        f"{name} | {key} | {part}: {one.get(part)!r}, and it was {other.get(part)!r}"
        for key in dict.fromkeys([*kept, *ours])
        for one, other in [(ours.get(key, {}), kept.get(key, {}))]
        for part in dict.fromkeys([*other, *one])
        if not near(one.get(part), other.get(part))
    ]


def _write():
    shared, parts = {}, []

    def text(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":"))

    for name in sorted(KINDS):
        lines = ",\n".join(
            f"  {text(key)}: "
            + text({k: shared.setdefault(text(v), len(shared)) for k, v in row.items()})
            for key, row in sorted(found(name).items())
        )
        parts.append(f" {text(name)}: {{\n{lines}\n }}")
    lines = ",\n".join(f"  {value}" for value in shared)
    parts.append(f' "shared": [\n{lines}\n ]')
    _FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    _write()
