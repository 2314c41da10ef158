"""How a solve ended: one word for the user, one integer for the kernels."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Code(IntEnum):
    """What a kernel returns, since compiled code cannot hold a `Status`. Same names."""

    SOLVED = 0
    RAY = 1
    INFEASIBLE = 2
    CYCLE = 3
    ERROR = 4
    SINGULAR = 5
    UNSUITABLE = 6
    PIVOT_LIMIT = 7
    NODE_LIMIT = 8


class Status(StrEnum):
    """How a solve ended. A member is its own word (`"ray"`); `advice` says what to do."""

    advice: str

    def __new__(cls, word: str, advice: str) -> Status:
        """A member that equals `word`."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.advice = advice
        return member

    SOLVED = (
        "solved",
        "The residual, recomputed from the problem's own arrays, is within tolerance.",
    )
    RAY = (
        "ray",
        "The entering variable can grow for ever (Yamane and Nakamura's 'no solution'). This "
        "proves that there is no solution only if M is copositive-plus, as positive "
        "semidefinite matrices are; for any other M try method='auto' or 'search'.",
    )
    INFEASIBLE = (
        "infeasible",
        "Proved: no z satisfies the inequalities, so no method can help; look for the "
        "contradiction in the problem itself.",
    )
    CYCLE = (
        "cycle",
        "A basis came back, so the method would go round for ever; the problem is degenerate: "
        "use method='lexicographic' or 'principal', whose rules forbid it.",
    )
    ERROR = (
        "error",
        "No answer's residual, recomputed from the problem, is within tolerance, and no proof was "
        "found that there is none: rounding won, or the problem has no solution though its "
        "inequalities have; if you chose the method, try 'auto' or 'search'.",
    )
    SINGULAR = (
        "singular",
        "No usable pivot was left: the principal minors that the method needs vanish; try "
        "method='lemke' or 'auto'.",
    )
    UNSUITABLE = (
        "unsuitable",
        "M is not of the class that the method needs (negative curvature was met, for "
        "example); use method='lemke', 'search' or 'auto', which take any matrix.",
    )
    PIVOT_LIMIT = (
        "pivot limit",
        "The limit on pivots came first; raise it, or give a warm start.",
    )
    NODE_LIMIT = (
        "node limit",
        "The limit on search nodes came first; raise it, or try method='lexicographic'.",
    )

    @property
    def code(self) -> Code:
        """The integer that kernels return for this status."""
        return Code[self.name]

    @classmethod
    def from_code(cls, code: int) -> Status:
        """The status for what a kernel returned."""
        return cls[Code(code).name]
