"""Settings of the manual, which scripts/docs.sh builds with Sphinx (https://www.sphinx-doc.org).

Pages are Markdown (MyST). Doxygen reads the C headers, and the extension `c_reference` makes pages of its XML. Python's
reference comes from docstrings. The site needs no network: the theme uses the fonts of the reader's system.
"""

import hashlib
import logging
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs" / "extensions"))
sys.path.insert(0, str(ROOT / "bindings" / "python"))
sys.path.insert(0, str(ROOT / "cluster" / "python"))

project = "mdot"
author = "the authors of mdot"
release = re.search(r'MDOT_VERSION_STRING "([^"]+)"', (ROOT / "include/mdot/mdot_base.h").read_text()).group(1)
version = release

extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc", "c_reference", "table_pages",
              "python_commands", "mathml", "index_tables"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["extensions/README.md"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

breathe_projects = {"mdot": os.environ.get("MDOT_DOXYGEN_XML", str(ROOT / "build" / "docs" / "doxygen" / "xml"))}
breathe_default_project = "mdot"
breathe_domain_by_extension = {"h": "c"}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}

default_role = "code"  # `text` in docstrings
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"mdot {release}"
html_static_path = ["static"]
html_css_files = ["mdot.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}

# A section without pages is an empty list rather than a warning.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(lambda record: "glob pattern" not in str(record.msg))


def setup(app):
    """A change of an extension builds every page again."""
    code = b"".join(path.read_bytes() for path in sorted((ROOT / "docs" / "extensions").glob("*.py")))
    app.add_config_value("extensions_digest", hashlib.sha256(code).hexdigest(), "env")
