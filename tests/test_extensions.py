"""Extensions go through public doors, and nothing goes through theirs unasked."""

import ast
import subprocess
import sys
from pathlib import Path

import skpuffer

ROOT = Path(skpuffer.__file__).parent

#: Private names of other rooms that extensions still take. It may only get shorter.
LEFT = {
    "skpuffer.accountants._base.check_order_or_delta",
    "skpuffer.accountants._additive._base._AdditiveAccountant",
    "skpuffer.accountants._additive._couplings.has_masses",
    "skpuffer.accountants._additive._couplings.mass_error",
    "skpuffer.accountants._composition._CompositionAccountant",
    "skpuffer.audit._released.Released",
    "skpuffer.audit._released.gaussian_noise",
    "skpuffer.audit._released.read_outputs",
    "skpuffer.distributions._distributions.cached_distribution_distance",
    "skpuffer.distributions._lattice_sum.LatticeSum",
    "skpuffer.distributions._lattice_sum.step_gap",
    "skpuffer.distributions._weak_cache.MEMORY",
    "skpuffer.distributions._weak_cache.remembered_with",
    "skpuffer.inspection._drawing.line_options",
    "skpuffer.inspection._drawing.pyplot",
    "skpuffer.inspection._noise_family.check_betas",
    "skpuffer.inspection._noise_family.density",
    "skpuffer.kernel.distribution._delta_on",
    "skpuffer.kernel.distribution._epsilon_on",
    "skpuffer.kernel.poisson_groups._Mixture",
    "skpuffer.kernel.poisson_groups._mixed_delta",
    "skpuffer.kernel.queries._vector",
    "skpuffer.noise._generalized_gaussian_loss.loss",
    "skpuffer.privacy_loss.allocation._lattice.between",
    "skpuffer.privacy_loss.allocation._lattice.sum_of_terms",
    "skpuffer.privacy_loss.allocation._sampled.check_gram",
    "skpuffer.privacy_loss.allocation._sampled.tilt_of",
    "skpuffer.privacy_loss.allocation._lattice.crossing",
    "skpuffer.privacy_loss.allocation._lattice.least_epsilon",
    "skpuffer.privacy_loss.allocation._lattice.sampled_crossing",
    "skpuffer.transport._masses.integer_masses",
    "skpuffer.transport._masses.rescale",
    "skpuffer.transport._masses.match",
}


def taken(path):
    """Names that a module takes through a private door of another room."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        # a relative import stays within the extension, which the next test says
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        module = node.module.split(".")
        if module[:1] != ["skpuffer"] or module[1] in ("utils", "extensions"):
            continue
        for each in node.names:
            if any(part.startswith("_") for part in (*module, each.name)):
                yield f"{node.module}.{each.name}"


def test_extensions_take_no_more_private_names():
    found = {
        name for path in (ROOT / "extensions").rglob("*.py") for name in taken(path)
    }
    assert found <= LEFT, "use a public name, or move the code into the extension"
    assert found >= LEFT, "these are gone: take them off the list"


def test_relative_imports_stay_within_an_extension():
    for path in (ROOT / "extensions").glob("*/**/*.py"):
        depth = len(path.relative_to(ROOT / "extensions").parts) - 1
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= depth, path


def test_no_extension_loads_until_it_is_asked_for():
    code = """
import importlib, sys, warnings
import numpy as np, skpuffer
warnings.simplefilter("ignore")
for room in skpuffer.__all__:
    if room.islower() and room != "show_versions":
        importlib.import_module(f"skpuffer.{room}")
from skpuffer import PrivateMean, PrivateSGDClassifier
rng = np.random.default_rng(0)
X, y = rng.uniform(-1, 1, (60, 2)), np.arange(60) % 2
PrivateMean(bounds=(-1, 1)).fit(X)
PrivateSGDClassifier(max_iter=2, classes=[0, 1]).fit(X, y)
loaded = lambda: {m for m in sys.modules if m.startswith("skpuffer.extensions")}
assert not loaded(), loaded()
from skpuffer.accountants import PAC
assert "skpuffer.extensions.pac" in loaded()
assert PAC is skpuffer.accountants.PAC
"""
    subprocess.run([sys.executable, "-c", code], check=True)
