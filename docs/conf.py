"""The documents as a site: what Sphinx reads, and how it shows it. `make docs` builds it."""

import importlib.metadata

project = "Weft"
author = "The Weft authors"
copyright = f"2026, {author}"  # Sphinx's own name for it
version = release = importlib.metadata.version("weft")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["myboard.py"]
html_theme = "furo"
html_title = "Weft"
html_static_path = ["_static"]
html_copy_source = html_show_sourcelink = False

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # the page of changes has versions under its title

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_use_ivar = True
default_role = "code"  # single backticks in docstrings name things of Python or of the hardware
