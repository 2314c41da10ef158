"""Formulas as MathML, which browsers draw themselves: nothing is fetched, no script runs.

docutils translates LaTeX to MathML for its own HTML; this lets Sphinx use it. It knows most of
LaTeX, not all: what it does not know is a warning.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def setup(app):
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (draw_inline, None), (draw_block, None))
    return {"parallel_read_safe": True}


def draw_inline(self, node):
    """A formula within a line."""
    self.body.append(translate(node, as_block=False))
    raise nodes.SkipNode


def draw_block(self, node):
    """A formula in lines of its own."""
    self.body.append(f'<div class="math">{translate(node, as_block=True)}</div>')
    raise nodes.SkipNode


def translate(node, as_block):
    """The formula as MathML, or as it stands where it cannot be translated."""
    formula = node.astext().strip()
    try:
        return tex2mathml(formula, as_block=as_block)
    except MathError as error:
        logger.warning("%s in %r", error, formula, location=node)
        return formula
