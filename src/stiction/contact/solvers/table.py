"""The solvers of a scaled contact problem by name; all take and return the same (`attempt.py`).

newton, reduced, structural, standard, search   Coulomb's law (`coulomb`)
interior point   Coulomb's law by sparse blocks, from nothing (`islands`)
conic        Coulomb's law on the circular cone, a fixed point of conic programs (`conic`)
driving      Coulomb's law on the circular cone, by Baraff's method (`baraff`)
lagrangian   least kinetic energy over the circular cone (`shell`)
polygon      least kinetic energy over the cone of a polygon (`shell`)
"""

from __future__ import annotations

from stiction.contact.solvers.attempt import Solver
from stiction.contact.solvers.baraff.solve import solve_by_driving
from stiction.contact.solvers.conic.solve import solve_by_cones
from stiction.contact.solvers.coulomb import solve as coulomb
from stiction.contact.solvers.islands.arrays import solve_interior_point
from stiction.contact.solvers.shell.solve import solve_by_lagrangian, solve_on_polygon

SOLVERS: dict[str, Solver] = {
    "newton": coulomb.solve_newton,
    "reduced": coulomb.solve_reduced,
    "structural": coulomb.solve_structural,
    "standard": coulomb.solve_standard,
    "search": coulomb.solve_search,
    "interior point": solve_interior_point,
    "conic": solve_by_cones,
    "driving": solve_by_driving,
    "lagrangian": solve_by_lagrangian,
    "polygon": solve_on_polygon,
}
