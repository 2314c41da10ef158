"""The one writer of HTML pages: a template, its values escaped, into one file.

Plotly's script is part of the file, so that it opens without a network.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import jinja2
import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs


def write_page(path: str | PathLike[str], template: str, *, title: str, **values: object) -> Path:
    """Writes the page that the template makes of the values; returns the path."""
    text = _templates.get_template(template).render(
        title=title, plotly=Markup(get_plotlyjs()), **values
    )
    path = Path(path)
    path.write_text(text, encoding="utf-8")
    return path


def drawn(figure: go.Figure) -> Markup:
    """The figure as a part of a page."""
    config = {"displayModeBar": False, "responsive": True}
    return Markup(figure.to_html(full_html=False, include_plotlyjs=False, config=config))


_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("stiction.record"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals["drawn"] = drawn
