"""Docstrings of this project as reStructuredText: they are plain text with Markdown's `code`.

What a docstring may hold, paragraph by paragraph:

    text             with `code` in single backticks
    formulas, code   indented
    terms            `name: what it is`, or in columns `name   what it is`; what is longer goes on
                     in indented lines
"""

import re

from sphinx.util.nodes import make_refnode

HOMES = ("stiction", "stiction.lcp", "stiction.scenes", "stiction.record")
COLON = re.compile(r"([\w`][\w`., ]*):\s+(\S.*)")
COLUMNS = re.compile(r"(\w[\w, ]*?\s{2,})\S")


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", rewrite)
    app.connect("autodoc-process-signature", name_aliases)
    app.connect("missing-reference", find_public_name)
    return {"parallel_read_safe": True}


def rewrite(app, what, name, obj, options, lines):
    """Puts reStructuredText in the place of a docstring's lines."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    lines[:] = [line for part in paragraphs for line in [*convert(part.split("\n")), ""]]


def convert(paragraph):
    """One paragraph's lines."""
    if all(line.startswith("  ") for line in paragraph):
        return ["::", "", *("    " + line for line in paragraph)]
    terms = as_terms(paragraph)
    if terms is None:
        # In one piece, so that `code` that runs over a line's end is whole.
        return [escape(" ".join(line.strip() for line in paragraph))]
    return [f"* ``{term}``: {escape(text)}" for term, text in terms]


def as_terms(paragraph):
    """[(term, text)] of a paragraph that explains one term after another, or None."""
    whole = []
    for line in paragraph:
        if line.startswith(" ") and whole:
            whole[-1].append(line)
        else:
            whole.append([line])
    starts = [COLUMNS.match(lines[0]) for lines in whole]
    widths = [len(found[1]) for found in starts if found]
    column = min(widths, default=0)
    terms = []
    for lines, start in zip(whole, starts, strict=True):
        first, rest = lines[0], [line.strip() for line in lines[1:]]
        width = len(start[1]) if start else column  # a long term may reach beyond its column
        found = COLON.fullmatch(first)
        if width and first[width - 1 : width] == " " and first[width : width + 1].strip():
            terms.append((first[:width].strip(), " ".join([first[width:], *rest])))
        elif found and not width and (len(whole) > 1 or rest or len(found[1].split()) == 1):
            terms.append((found[1].replace("`", ""), " ".join([found[2], *rest])))
        else:
            return None
    return terms


def escape(text):
    """Text with the marks of reStructuredText made harmless and `code` as code."""
    return "".join(
        f"``{part}``" if index % 2 else re.sub(r"([\\*|_])", r"\\\1", part)
        for index, part in enumerate(text.split("`"))
    )


def name_aliases(app, what, name, obj, options, signature, returns):
    """Signatures in which Sphinx left its own mark around the names of `autodoc_type_aliases`."""
    return tuple(
        text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text)
        for text in (signature, returns)
    )


def find_public_name(app, env, node, contnode):
    """Links a name in the module that defines it to its public page:
    `stiction.contact.problem.problem.ContactProblem` to `stiction.ContactProblem`."""
    known = env.domains.python_domain.objects
    short = node.get("reftarget", "").rsplit(".", 1)[-1]
    for home in HOMES:
        found = known.get(f"{home}.{short}")
        if found:
            return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, contnode)
    return None
