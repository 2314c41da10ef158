"""A frictional contact LCP that default solvers get wrong, solved and certified.

A peg of one milligram in a hole, 16 contacts with eight facets each: 160 unknowns, redundant
contacts, and numbers that span nine decades. It is what a contact simulator meets every day.
"""

from __future__ import annotations

import importlib.util

import numpy as np

import stiction.lcp
from stiction.reproduce import families
from stiction.reproduce.contact_lcps import stewart_trinkle


def violation(M: np.ndarray, q: np.ndarray, z: np.ndarray) -> float:
    """Largest |min(z, w)| in proportion to q, recomputed from the data."""
    w = M @ z + q
    # z and w have units of their own: impulses are measured by the velocity they make.
    size = np.abs(M).max(axis=0)
    return float(np.abs(np.minimum(z * np.where(size > 0, size, 1.0), w)).max() / np.abs(q).max())


def main() -> None:
    """Solves 20 such problems by each method and prints what came of it."""
    rng = np.random.default_rng(0)
    problems = []
    for _ in range(20):
        peg = families.scaled(families.peg(16, rng), momentum=1e-6, mass=1e-6)
        problems.append(stewart_trinkle(peg, facets=8))
    print("20 pegs in holes, 16 contacts, 160 unknowns; mass 1 mg, momentum 1e-6 N s")
    print(f"{'solver':34} {'says solved':>12} {'is solved':>10} {'worst violation':>16}")
    if importlib.util.find_spec("quantecon"):
        from quantecon.optimize import lcp_lemke

        report("quantecon lcp_lemke (default)", problems, lambda M, q: lcp_lemke(M, q)[:2])
    for method in ("lemke", "lexicographic", "search", "auto"):

        def ours(M: np.ndarray, q: np.ndarray, method: str = method) -> tuple[np.ndarray, bool]:
            result = stiction.lcp.solve(M, q, method)
            return result.z, result.status == "solved"

        report(f"stiction {method}", problems, ours)
    result = stiction.lcp.solve(*problems[0])
    print(f"\nthe first one: {result.status} by {result.method}, {result.pivots} pivots,")
    print(f"scaled residual {result.residual:.1e}, {result.seconds * 1e6:.0f} us")
    print(f"({result.status.advice})")


def report(name: str, problems: list, solve) -> None:
    """One line of the table: what the solver says, and what recomputing says."""
    says, true, worst = 0, 0, 0.0
    for M, q in problems:
        z, success = solve(M, q)
        off = violation(M, q, np.asarray(z)) if np.isfinite(z).all() else np.inf
        says += bool(success)
        true += off <= 1e-8
        worst = max(worst, off)
    print(f"{name:34} {says:9d}/20 {true:7d}/20 {worst:16.1e}")


if __name__ == "__main__":
    main()
