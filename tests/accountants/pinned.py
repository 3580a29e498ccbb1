"""What accountants promise at what noise, case by case, as it is kept in a file.

    python -m tests.accountants.pinned    # writes tests/oracles/certificates.json

Cases are those of the contracts of accountants, and a few accountants under every
scenario of the table of what works. One of each kind of the former is recomputed in
`tests/certificate` by `skpuffer.certificate.check`, which shares no code with what made
it; all are kept so that none changes without being seen.
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
    HistoryUniformCap,
    MarkovQuilt,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.accountants._compatibility import _releases, _scenarios
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity
from skpuffer.scenarios import PrevalenceScenario, RecordScenario
from tests.extensions import test_extensions_contract as of_extensions

from . import test_accountants_contract as of_the_library
from .contract import contracts_in

__all__ = [
    "CASES",
    "SCENARIOS",
    "answers",
    "calibrated",
    "facts",
    "kept",
    "near",
    "read",
]

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

#: What is estimated from draws, takes long or goes by a solver of another library whose
#: releases end elsewhere, and has oracles of its own.
_LEFT_OUT = (
    "RandomAllocation",
    "SampledAllocation",
    "SampledPrivacyLoss",
    "ShapedWasserstein",
)

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


#: What every release says of itself here, to be found in the certificate.
_STATED = "what the release takes for granted"


def _of_contracts():
    for test in contracts_in(of_the_library, of_extensions):
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


def _moving(**options):
    known = {1: 2.0, 2: 1.0}
    usual = {"sensitivity": Sensitivity(add_remove=known, replace=known), "dim": 3}
    return QueryRelease(query=len, n_records=60, **usual | options)


def _run(**options):
    size = None if options.get("sampling") == "full_batch" else 6
    usual = {"n_records": 60, "n_steps": 6, "batch_size": size, "dim": 4}
    return GradientRelease(**usual | options)


_SELECTION = _releases(60)["choices by noisy scores (quantiles)"]
_VOTES = _releases(60)["votes of teachers"]
_GROUP = RecordScenario(3, relation="replace")
_FLAT = {"noise": "generalized_gaussian", "beta": 1.5}
_PURE = {"alpha": math.inf, "noise": "laplace"}
_BY_CHANCE = PrevalenceScenario(None, 0.4, 0.6, law="binomial")
_IN_BLOCKS = {"blocks": (1, 3), "clip_norm": (1.0, 2.0)}

#: Accountant, release and scenario of what neither contracts nor scenarios ask for.
_MORE = {
    "pure choices": (GroupPrivacy(**_PURE), _SELECTION, RecordScenario()),
    "pure choices of a group": (GroupPrivacy(**_PURE), _SELECTION, _GROUP),
    "choices": (PrivacyLoss(delta=1e-5), _SELECTION, _GROUP),
    "choices at an order": (RenyiDP(alpha=4.0, delta=None), _SELECTION, _GROUP),
    "votes": (PrivacyLoss(delta=1e-5), _VOTES, _GROUP),
    "flat noise": (
        GroupPrivacy(delta=1e-5, **_FLAT),
        _moving(dim=1),
        RecordScenario(),
    ),
    "flat noise at an order": (
        GroupPrivacy(alpha=3.0, **_FLAT),
        _moving(),
        RecordScenario(),
    ),
    "integers": (
        GroupPrivacy(delta=1e-3, noise="discrete_laplace"),
        _moving(is_integer=True),
        RecordScenario(),
    ),
    "prevalence": (PrivacyLoss(delta=1e-4), _run(), _BY_CHANCE),
    "prevalence of all": (
        PrivacyLoss(delta=1e-4),
        _run(sampling="full_batch"),
        _BY_CHANCE,
    ),
    "prevalence at an order": (
        RenyiDP(alpha=4.0, delta=None),
        _run(sampling="full_batch"),
        PrevalenceScenario(None, 20, 23),
    ),
    **{
        f"group in {sampling}": (
            PrivacyLoss(delta=1e-4),
            _run(sampling=sampling),
            _GROUP,
        )
        for sampling in ("poisson", "fixed_size", "with_replacement")
    },
    **{
        f"group in {sampling} at an order": (
            RenyiDP(alpha=4.0, delta=None),
            _run(sampling=sampling, n_steps=10),
            _GROUP,
        )
        for sampling in ("poisson", "fixed_size", "full_batch", "shuffled_epochs")
    },
    "blocks": (PrivacyLoss(delta=1e-4), _run(**_IN_BLOCKS), RecordScenario()),
    "history of blocks": (
        HistoryUniformCap(),
        _run(**_IN_BLOCKS),
        RecordScenario(relation="replace"),
    ),
    "history of slices in blocks": (
        HistoryUniformCap(subsampling="mean_square", averaging="averaged"),
        _run(**_IN_BLOCKS),
        RecordScenario(relation="replace"),
    ),
}
CASES |= {f"more {name}": made for name, made in _MORE.items()}


def calibrated(name):
    """Return the calibration of a case."""
    accountant, release, scenario = CASES[name]
    if isinstance(accountant, type):
        made = accountant()
        accountant, (release, scenario) = made.make(release), made.case(scenario)
    release = replace(release, assumptions=(*release.assumptions, _STATED))
    return accountant.calibrate(release, scenario, random_state=0)


def answers(scenario):
    """Return the calibrations under a scenario, by accountant and release.

    What an accountant refuses is not among them.
    """
    found, releases = {}, _releases()
    for kind in _ASKED:
        accountant = kind(delta=1e-3)
        for name in _RELEASES:
            asked = releases[name]
            asked = replace(asked, assumptions=(*asked.assumptions, _STATED))
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


def facts(scenario):
    """Return what each fact under a scenario takes for granted, by kind and release."""
    found, releases = {}, _releases()
    for name in _RELEASES:
        release = releases[name]
        bound = _scenarios()[scenario].bind(release.context)
        for kind in sorted(bound.provides(release), key=lambda kind: kind.__name__):
            try:
                fact = bound.fact(kind, release, 2)
            except ValueError:
                continue
            found[f"{kind.__name__} | {name}"] = {
                "assumptions": list(map(str, fact.assumptions)),
                "certified": bool(fact.certified),
                "delta": float(fact.delta),
            }
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
    if isinstance(value, dict) and value.keys() == {"code", "parameters", "text"}:
        return value["text"]  # a statement in words
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
    """Return what is kept: data by case, and answers and facts by scenario."""
    told = json.loads(_FILE.read_text(encoding="utf-8"))
    sentences = told["sentences"]

    def whole(row):
        return row | {
            "assumptions": [sentences[at] for at in row.get("assumptions", [])]
        }

    cases = {name: whole(row) for name, row in told["contracts"].items()}
    asked, known = (
        {
            scenario: {name: whole(row) for name, row in rows.items()}
            for scenario, rows in told[part].items()
        }
        for part in ("scenarios", "facts")
    )
    return cases, asked, known


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
        known = {
            scenario: {name: short(row) for name, row in facts(scenario).items()}
            for scenario in SCENARIOS
        }
    told = {"contracts": cases, "scenarios": asked, "facts": known}
    lines = [
        f" {json.dumps(part)}: {{\n"
        + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items())
        + "\n }"
        for part, rows in told.items()
        if isinstance(rows, dict)
    ]
    sentences = json.dumps(list(sentences), indent=2, ensure_ascii=False)
    lines.append(f' "sentences": {sentences}')
    _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _row(found, with_curve=True):
    return {"assumptions": []} | kept(found, with_curve)


if __name__ == "__main__":
    _write()
