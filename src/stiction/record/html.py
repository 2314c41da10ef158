"""The one writer of HTML pages: a template, its values escaped, into one file.

Plotly's script is part of the file, compressed, so that it opens without a network and stays small:
the browser unpacks it (`DecompressionStream`, in all browsers since 2023) and draws the figures.
"""

from __future__ import annotations

import base64
import gzip
from functools import cache
from os import PathLike
from pathlib import Path

import jinja2
import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs


def write_page(path: str | PathLike[str], template: str, *, title: str, **values: object) -> Path:
    """Writes the page that the template makes of the values; returns the path."""
    text = _templates.get_template(template).render(title=title, plotly=_packed_plotly(), **values)
    path = Path(path)
    path.write_text(text, encoding="utf-8")
    return path


def drawn(figure: go.Figure) -> Markup:
    """The figure as a part of a page, drawn once Plotly is there."""
    described = figure.to_json().replace("</", "<\\/")
    return Markup(
        f'<div class="plot" style="height: {figure.layout.height}px">'
        f'<script type="application/json">{described}</script></div>'
    )


@cache
def _packed_plotly() -> Markup:
    """Base64 of the script, compressed."""
    return Markup(base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9)).decode())


_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("stiction.record"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals["drawn"] = drawn
