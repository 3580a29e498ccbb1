"""Check that skpuffer is imported from where it was installed, and works."""

import doctest
import sys
from pathlib import Path

import skpuffer
import skpuffer.privacy._preview as preview
import skpuffer.summary._mean as mean

home = Path(skpuffer.__file__).parents[1]
if home == Path(__file__).parents[1]:
    sys.exit(f"skpuffer was imported from the source, {home}")
skpuffer.show_versions()
for module in (mean, preview):
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    if found.failed or not found.attempted:
        sys.exit(f"{found} in {module.__name__}")
# data files and stubs are there as well
skpuffer.datasets.load_heart()
print("an installed skpuffer works")
