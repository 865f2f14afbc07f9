"""Sphinx's settings. stage.py puts the pages where Sphinx reads them; build.sh runs both."""

import re

project = "residua"
copyright = "MIT or Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["README.md"]  # index.md is the first page
source_suffix = {".md": "markdown"}

# Links to headings, as GitHub names them.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_typehints = "none"  # the docstrings tell types, and shapes too
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "residua"
html_show_sphinx = False
html_copy_source = False


nitpick_ignore = [("py:class", "numpy.ndarray")]  # NumPy's pages are not looked up


sentences = {}


def keep_sentences(app, what, name, object, options, lines):
    """Napoleon takes what stands before a colon in a property's docstring for a type; these are sentences."""
    if what in ("property", "attribute"):
        sentences[name] = list(lines)


def escape_norms(app, what, name, object, options, lines):
    """In a docstring ||r|| is a norm; reStructuredText would look for a substitution."""
    lines[:] = [line.replace("|", "\\|") for line in sentences.get(name, lines)]


def leave_private_out(app, what, name, object, options, signature, answer):
    """Without the arguments that are no caller's: their names start with an underscore."""
    return signature and re.sub(r", _\w+=\w+", "", signature), answer


def setup(app):
    app.connect("autodoc-process-docstring", keep_sentences, priority=400)  # before napoleon, whose priority is 500
    app.connect("autodoc-process-docstring", escape_norms, priority=600)
    app.connect("autodoc-process-signature", leave_private_out)
