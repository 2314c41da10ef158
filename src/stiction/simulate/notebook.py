"""What notebooks show of a step: its figures, and its contacts as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stiction.simulate.report import Report

LISTED_CONTACTS = 20
"""Contacts that are listed."""

_COLUMNS = ("bodies", "mode", "f_n [N]", "f_t [N]", "margin [N]", "slip [m/s]", "gap [m]")


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as HTML; cells are escaped."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def report_html(report: Report) -> str:
    """The step's time, certificate and rung; its contacts, the most loaded first."""
    contacts = sorted(report.contacts, key=lambda contact: -contact.force[0])
    rows = [
        (
            " - ".join(contact.bodies),
            contact.mode.name.lower(),
            f"{contact.force[0]:.4g}",
            f"{np.hypot(contact.force[1], contact.force[2]):.4g}",
            f"{contact.margin:.4g}",
            f"{np.hypot(contact.slip[0], contact.slip[1]):.2g}",
            f"{contact.gap:.2g}",
        )
        for contact in contacts[:LISTED_CONTACTS]
    ]
    more = len(contacts) - len(rows)
    passed = "passed" if report.certificate.passed else "not passed"
    head = (
        f"<p>t = {report.time:g} s, certificate {passed} (worst {report.certificate.worst:.1e}), "
        f"by {escape(report.rung)}</p>"
    )
    return head + html_table(_COLUMNS, rows) + (f"<p>and {more} more</p>" if more else "")
