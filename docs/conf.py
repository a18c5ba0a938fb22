"""Settings of Sphinx, which builds the documents as a site (`make docs`)."""

import dataclasses
import importlib.metadata

project = "Weft"
author = "The Weft authors"
project_copyright = f"2026, {author}"
version = release = importlib.metadata.version("weft")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
highlight_language = "text"  # of blocks without a language: commands and their output
html_theme = "furo"
html_title = "Weft"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    f"{mode}_css_variables": {"code-font-size": "77%"} for mode in ("light", "dark")
}
html_copy_source = html_show_sourcelink = False

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # the page of changes has versions under its title

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_mock_imports = ["torch", "functorch"]  # the page of weft.torch needs no PyTorch
napoleon_google_docstring = False
# Else each type "array" of a parameter would be taken for a reference to a member of this name.
autodoc_default_options = {"exclude-members": "array"}
default_role = "code"  # single backticks in docstrings name things of Python or of the hardware


def fields(app, what, name, obj, options, lines):
    """Add the fields of a Config to its description, each with its text of `--help`."""
    if name == "weft.config.Config":
        lines += ["", ".. rubric:: Fields", ""]
        for field in dataclasses.fields(obj):
            text = field.metadata["text"]
            lines += [f"``{field.name}``", f"   {text[0].upper()}{text[1:].rstrip('.')}.", ""]


def setup(app):
    app.connect("autodoc-process-docstring", fields)
