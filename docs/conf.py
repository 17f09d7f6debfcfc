"""The documentation as a site: ``make docs`` builds it in build/docs, and any warning fails the build."""

project = "Attention autograder"
extensions = ["myst_parser"]
exclude_patterns: list[str] = []
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_show_copyright = False
myst_heading_anchors = 3  # links to headings, as GitHub makes them
myst_links_external_new_tab = False
