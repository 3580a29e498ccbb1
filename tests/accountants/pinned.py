"""What accountants promise at what noise, case by case, as it is kept in a file.

    python -m tests.accountants.pinned    # writes tests/oracles/certificates.json

Cases are those of the contracts of accountants, and a few accountants under every
scenario of the table of what works. The numbers of the former were
recomputed by `skpuffer.certificate.check`, which shares no code with what made them
(`tests/certificate`); all are kept so that none changes without being seen.
"""

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from skpuffer.accountants import (
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    MarkovQuilt,
    OverlapAmplification,
    PrivacyLoss,
)
from skpuffer.accountants._compatibility import _releases, _scenarios
from skpuffer.releases import GradientRelease

from . import test_accountants_contract as contracts
from .contract import AccountantContract

__all__ = ["CASES", "SCENARIOS", "answers", "calibrated", "kept", "near", "read"]

_FILE = Path(__file__).parents[1] / "oracles" / "certificates.json"

#: Fields that are of the file, or texts for readers that hold rounded numbers.
_APART = (
    "schema",
    "version",
    "digest",
    "choice",
    "accountant",
    "scenario",
    "release",
    "n_releases",
)

#: Numbers of an array that are kept one by one, and not as their sum.
_FEW = 12

#: What is estimated from draws, or takes long, and has oracles of its own.
_LEFT_OUT = ("RandomAllocation", "SampledAllocation", "SampledPrivacyLoss")

#: By which every fact of a scenario is read, and what they are asked about.
_ASKED = (
    GroupPrivacy,
    GeneralWasserstein,
    DistributionAwareWasserstein,
    MarkovQuilt,
    PrivacyLoss,
    OverlapAmplification,
)
_RELEASES = (
    "sum over records (mean, histogram, …)",
    "linear in the records, with its matrix",
    "any query, with a sensitivity",
    "any query, without one",
    "gradients, sampling='full_batch'",
)


def _of_contracts():
    for test in vars(contracts).values():
        if not (isinstance(test, type) and issubclass(test, AccountantContract)):
            continue
        if test.kind is None or test.__name__.startswith("_"):
            continue
        if test.kind.__name__ in _LEFT_OUT:
            continue
        for mode in test.modes:
            for growth in test.growths:
                name = f"{test.__name__.removeprefix('Test')} {mode} {growth}"
                yield name, (test, mode, growth)


#: How each case of a contract is made, by name.
CASES = dict(_of_contracts())

#: Scenarios of the table of what works.
SCENARIOS = tuple(_scenarios())


def calibrated(name):
    """Return the calibration of a case of a contract."""
    test, mode, growth = CASES[name]
    made = test()
    release, scenario = made.case(growth)
    return made.make(mode).calibrate(release, scenario, random_state=0)


def answers(scenario):
    """Return the calibrations under a scenario, by accountant and release.

    What an accountant refuses is not among them.
    """
    found, releases = {}, _releases()
    for kind in _ASKED:
        accountant = kind(delta=1e-3)
        for name in _RELEASES:
            asked = releases[name]
            if isinstance(asked, GradientRelease):
                asked = replace(asked, clip_order=accountant.clip_order)
            try:
                made = accountant.calibrate(
                    asked, _scenarios()[scenario], random_state=0
                )
            except ValueError:
                continue
            found[f"{kind.__name__} | {name}"] = made
    return found


def kept(found, with_curve=True):
    """Return plain data of a calibration, without what is usual or for display."""
    plain = json.loads(json.dumps(found.certificate.to_dict()))
    apart = (
        _APART if with_curve else (*_APART, "curve", "events", "n_records", "source")
    )
    data = {
        name: value
        for name, value in plain.items()
        if name not in apart and value not in (None, [], 0.0)
    }
    scale = np.ravel(found.noise.scale).tolist()
    return _brief(data | {"noise": found.noise.family, "scale": scale})


def _brief(value):
    """Data with long arrays of numbers replaced by what they add up to."""
    if isinstance(value, dict):
        return {name: _brief(part) for name, part in value.items()}
    if isinstance(value, list):
        flat = np.ravel(value) if _is_numbers(value) else ()
        if len(flat) > _FEW:
            ends = [float(flat[0]), float(flat[-1])]
            return {"size": len(flat), "sum": float(np.sum(flat)), "ends": ends}
        return [_brief(part) for part in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _is_numbers(value):
    try:
        return np.asarray(value).dtype.kind in "if"
    except ValueError:
        return False


def near(one, other, rel=1e-6):
    """Whether plain data is the same but for the last digits of its numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            near(one[key], other[key], rel) for key in one
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            near(a, b, rel) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, float) or isinstance(other, float):
        numbers = all(isinstance(x, float | int) for x in (one, other))
        return numbers and math.isclose(one, other, rel_tol=rel, abs_tol=1e-12)
    return one == other


def read():
    """Return what is kept: data by case, and by scenario, accountant and release."""
    told = json.loads(_FILE.read_text(encoding="utf-8"))
    sentences = told["sentences"]

    def whole(row):
        return row | {
            "assumptions": [sentences[at] for at in row.get("assumptions", [])]
        }

    cases = {name: whole(row) for name, row in told["contracts"].items()}
    asked = {
        scenario: {name: whole(row) for name, row in rows.items()}
        for scenario, rows in told["scenarios"].items()
    }
    return cases, asked


def _write():
    sentences = {}

    def short(row):
        at = [sentences.setdefault(s, len(sentences)) for s in row["assumptions"]]
        return row | {"assumptions": at}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = {name: short(_row(calibrated(name))) for name in CASES}
        asked = {
            scenario: {n: short(_row(f, False)) for n, f in answers(scenario).items()}
            for scenario in SCENARIOS
        }
    told = {"contracts": cases, "scenarios": asked, "sentences": list(sentences)}
    lines = [
        f" {json.dumps(part)}: {{\n"
        + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items())
        + "\n }"
        for part, rows in told.items()
        if isinstance(rows, dict)
    ]
    sentences = json.dumps(told["sentences"], indent=2, ensure_ascii=False)
    lines.append(f' "sentences": {sentences}')
    _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _row(found, with_curve=True):
    return {"assumptions": []} | kept(found, with_curve)


if __name__ == "__main__":
    _write()
