"""`{contact-models}`: the table of contact models, read from their registry.

What a model says of itself stands there: how it is written on the command line, what solves a time
step, what it does where contacts last and at an impact.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

HEAD = (
    "class",
    "on the command line",
    "law",
    "a time step is solved by",
    "lasting contact (`EventDriven`)",
    "impact",
)


def setup(app):
    """Called by Sphinx."""
    app.add_directive("contact-models", ContactModels)
    return {"parallel_read_safe": True}


class ContactModels(SphinxDirective):
    """A table without options or content."""

    def run(self):
        """The table's nodes."""
        from stiction.contact.models import registry

        lines = [describe(entry) for entry in registry.BUILT_IN]
        group = nodes.tgroup(cols=len(HEAD))
        group += [nodes.colspec(colwidth=1) for _ in HEAD]
        group += nodes.thead("", row(HEAD))
        group += nodes.tbody("", *map(row, lines))
        return [nodes.table("", group)]


def describe(entry):
    """The cells of one model."""
    from stiction.contact.models import registry

    forms = ", ".join(f"`{form}`" for form in entry.forms)
    model = registry.parse_contact(next(iter(entry.forms)))
    after = model.at_impact
    ways = () if model.compiled is None else model.compiled.solver.rungs
    return (
        f"`{type(model).__name__}`",
        forms,
        model.law,
        ", ".join(f"`{way}`" for way in ways) or "a call from Python",
        model.sustained.kind.name.lower(),
        "itself" if after is model else f"`{type(after).__name__}`",
    )


def row(cells):
    """A row of text with `code` in it."""
    out = nodes.row()
    for cell in cells:
        parts = cell.split("`")
        kinds = [nodes.literal if i % 2 else nodes.Text for i in range(len(parts))]
        text = nodes.paragraph()
        for part, kind in zip(parts, kinds, strict=True):
            text += kind(part, part) if kind is nodes.literal else kind(part)
        out += nodes.entry("", text)
    return out
