"""Sphinx configuration."""

import os
import sys
import tomllib
from pathlib import Path

import skpuffer

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "skpuffer"
author = "The skpuffer developers"
copyright = f"2026, {author}"
version = release = skpuffer.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "api_listing",
    "compatibility",
    "first_mention",
    "gains",
    "table_models",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "**/GALLERY_HEADER.rst"]
default_role = "literal"
smartquotes = False  # names and values are quoted to be copied

# With a network: links into the documentation of the libraries we stand on. Off unless
# asked for, so that a build needs nothing but what is installed.
if os.environ.get("SKPUFFER_DOCS_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "matplotlib": ("https://matplotlib.org/stable", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "python": ("https://docs.python.org/3", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

# Every reference leads somewhere. Names of other libraries are looked up above, where
# there is a network; without one nothing is known of them.
nitpicky = True
nitpick_ignore_regex = []
if "sphinx.ext.intersphinx" not in extensions:
    nitpick_ignore_regex += [
        ("py:.*", rf"{library}\..*")
        for library in ("enum", "fractions", "numpy", "sklearn")
    ]

# -- API pages ----------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
with open(HERE.parent / "pyproject.toml", "rb") as file:
    _docstrings = tomllib.load(file)["tool"]["numpydoc_validation"]
# Beside the form, the content: missing docstrings (GL08), parameters that are missing
# (PR01) or do not exist (PR02), Returns (RT01) and Yields (YD01). Asked of the imported
# objects, because a dataclass has no signature in its source.
numpydoc_validation_checks = {
    *_docstrings["checks"],
    "GL08",
    "PR01",
    "PR02",
    "RT01",
    "YD01",
}
numpydoc_validation_exclude = set(_docstrings["exclude"])
numpydoc_validation_overrides = {
    key.removeprefix("override_"): value
    for key, value in _docstrings.items()
    if key.startswith("override_")
}

# -- Figures of pages: scripts in figures/, drawn when the page is built ---------------

plot_basedir = str(HERE)
plot_formats = [("png", 120)]
plot_include_source = False
plot_html_show_formats = False
plot_html_show_source_link = False

# -- Gallery ------------------------------------------------------------------------

# Examples read SKPUFFER_EXAMPLE_SIZE themselves: "small" for a quick build.
os.environ.setdefault("MPLBACKEND", "Agg")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skpuffer",),
    "reference_url": {"skpuffer": None},
    "abort_on_example_error": True,
    "parallel": True,  # as many at a time as sphinx has processes
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": "True",
}

# -- HTML ---------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"skpuffer {release}"
html_static_path = ["_static"]
html_css_files = ["skpuffer.css"]
# Other versions, where publish.py put these pages beside them. The theme's own list
# needs the address of the site, and each version would have to be built for it.
html_js_files = ["versions.js"]
html_theme_options = {
    "logo": {"text": "skpuffer"},
    "navbar_end": ["versions", "theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
html_show_sourcelink = False
# pages without children need no list of them
html_sidebars = {
    page: []
    for page in ("install", "glossary", "compatibility", "bibliography", "changelog")
}
