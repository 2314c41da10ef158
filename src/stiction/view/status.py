"""The figures at the head of the panel, as HTML."""

from __future__ import annotations

from html import escape

from stiction.contact.problem.modes import Mode
from stiction.record.marks import COLOURS
from stiction.record.words import length, number, speed
from stiction.view.pace import Pace
from stiction.view.session import Session, View

HERE = "stiction-here"
"""Class of the figures: where it is, the panel is."""

_BOX = "font-size:0.85em;line-height:1.45;padding:0 1em 0.5em 1em"
_WARN = "background:#fff3cd;color:#5c3c00;border-radius:4px;padding:0.4em;margin-bottom:0.4em"


def status(session: Session, pace: Pace, views: tuple[View, ...], newtons: float) -> str:
    """What the session does now. `newtons`: force of the longest arrow."""
    parts = [f'<div class="{HERE}" style="{_BOX}">']
    if session.notice:
        parts.append(_warning(session.notice))
    state = "playing" if session.playing else "paused"
    parts.append(f"<b>{escape(session.name)}</b> {state}, t = {session.time:.2f} s<br/>")
    if session.playing:
        slow = ", slower than asked" if session.behind and pace.speed < 0.95 * session.speed else ""
        parts.append(f"{pace.frames:.0f} frames/s, {pace.speed:.2f} x real time{slow}<br/>")
    parts.append(f"worst certificate {session.worst:.1e}<br/>")
    parts += [_side(view) for view in views]
    if newtons > 0.0:
        parts.append(f"longest arrow {number(newtons)} N")
    parts.append("</div>")
    return "".join(parts)


def waiting(what: str) -> str:
    """In the place of figures while something takes its time."""
    return f'<div class="{HERE}" style="{_BOX}">{_warning(what)}</div>'


def _warning(text: str) -> str:
    return f'<div style="{_WARN}">{escape(text)}</div>'


def _side(view: View) -> str:
    counts = ", ".join(
        f'<span style="color:rgb{COLOURS[mode]}">&#9679;</span> {view.contacts.count(mode)} '
        f"{mode.name.lower()}"
        for mode in (Mode.STICK, Mode.SLIDE, Mode.SEPARATE)
    )
    figures = f"slip {speed(view.contacts.fastest)}, moved {length(view.travel)}"
    return f"<b>{escape(view.title)}</b><br/>{counts}<br/>{figures}<br/>"
