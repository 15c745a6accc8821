# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the site of the pages that stage.py put together."""

project = "Tether"
author = ""
copyright = "the authors of Tether, Apache License 2.0"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Tether"
html_logo = "../../docs/pictures/logo.svg"
html_favicon = "../../docs/pictures/logo.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
highlight_language = "text"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
# Examples of errors and of shells need not be valid in the language they are shown in.
suppress_warnings = ["misc.highlighting_failure"]
nitpicky = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse for files
