"""The documentation site: `make docs` builds it, and a warning is an error."""

project = "grpo-core"
author = "The grpo-core authors"
copyright = "2026, The grpo-core authors"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "grpo-core"
