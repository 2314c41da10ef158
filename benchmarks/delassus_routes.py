"""A step that a contact model's ladder solves, posed by assembly and by the factored mass.

    python benchmarks/delassus_routes.py [--quick]

A chain of spheres on hinges lies on the floor, some of its links touching it. The contact model is
one that compiled steps do not solve, so that every step goes to the ladder. Ways take turns, and
each time is the least of the turns, of a whole step [ms]: on a machine that is shared, more is
somebody else's. `worst` is the certificate by assembly: long chains are ill-conditioned.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

# Before numpy, which reads them when imported: threads gain nothing at these sizes.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MUJOCO_GL", "disable")

import argparse
from time import perf_counter

import mujoco
import numpy as np

import stiction

WAYS = ("factorized", "assembly")


def chain(links: int, contacts: int) -> mujoco.MjModel:
    """Spheres in a row on the floor, of which `contacts` can touch it."""
    touching = set(np.linspace(0, links - 1, contacts).astype(int).tolist())
    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[99, 99, 1])
    body = spec.worldbody.add_body(pos=[0, 0, 0.05])
    body.add_freejoint()
    for i in range(links):
        touches = int(i in touching)
        body.add_geom(size=[0.05, 0, 0], contype=touches, conaffinity=touches)
        if i < links - 1:
            body = body.add_body(pos=[0.1, 0, 0])
            body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=np.eye(3)[1 + i % 2], damping=0.1)
    return spec.compile()


def measure(model: mujoco.MjModel, turns: int) -> tuple[float, float, float]:
    """Time of a step [ms] by each way, from the same state, and the last one's certificate."""
    contact = stiction.Coulomb(facets=4, solver="search")
    simulators = [stiction.Simulator(model, contact=contact, delassus=way) for way in WAYS]
    best = [np.inf, np.inf]
    for _ in range(turns):
        for i, simulator in enumerate(simulators):
            data = mujoco.MjData(model)
            began = perf_counter()
            report = simulator.step(data)
            best[i] = min(best[i], 1e3 * (perf_counter() - began))
    return best[0], best[1], report.certificate.worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes and turns")
    quick = parser.parse_args().quick
    print("| contacts | links | nv | factorized ms | assembly ms | ratio | worst |")
    print("|---" * 7 + "|")
    for contacts in (2, 8, 32):
        for links in (50, 400) if quick else (50, 100, 200, 400, 800):
            model = chain(links, contacts)
            factorized, assembly, worst = measure(model, 3 if quick else 10)
            print(
                f"| {contacts} | {links} | {model.nv} | {factorized:.1f} | {assembly:.1f} "
                f"| {factorized / assembly:.2f} | {worst:.0e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
