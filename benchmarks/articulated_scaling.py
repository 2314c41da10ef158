"""Cost of assembly beside that of the factorized mass matrix, and where one overtakes the other.

    python benchmarks/articulated_scaling.py [--quick]

Assembly is the compiled call, from MuJoCo's arrays to inverse inertia and bias; `forward` is the
one to joint accelerations; `python` is `inverse_inertia` itself, with its checks. The factorized
way is MuJoCo's, to the inertia alone: mj_jacBodyCom for each body, mj_solveM2 on all rows, and a
product. mj_factorM stands apart: mj_forward does it anyway.

Ways take turns, and each time is the least of the turns [us]: on a machine that is shared, more is
somebody else's. Exponents are fitted from 100 links on. `off` is the largest difference between
the two inertias, in units of their diagonals. Crossovers are interpolated between the chains
measured. Last come the times that `articulated_cost.py` holds, fitted to all of the above,
and how often they choose the way that was measured to be cheaper.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

# Before numpy, which reads them when imported: threads gain nothing at these sizes.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MUJOCO_GL", "disable")

import argparse
import importlib
import warnings
from collections.abc import Callable, Iterator
from time import perf_counter_ns

import articulated_cost as cost
import mujoco
import numpy as np
from scipy.optimize import nnls

from stiction import articulated
from stiction.articulated.compiled import articulate
from stiction.articulated.interface import body_arrays, handle_bodies, loop_arrays

BATCH = 2e6  # ns; calls are timed in batches of about this length
ROBOTS = ("humanoid", "humanoid_CMU", "dog", "quadruped")
Times = dict[str, float]


def chain(links: int) -> mujoco.MjModel:
    """A hanging chain of capsules, hinged about three axes in turn."""
    spec = mujoco.MjSpec()
    body = spec.worldbody
    for i in range(links):
        body = body.add_body(pos=[0, 0, -0.2])
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=np.eye(3)[i % 3])
        add_capsule(body)
    return compiled(spec)


def tree(links: int, seed: int = 0) -> mujoco.MjModel:
    """A floating tree, each link on one of the ten before it."""
    rng, spec = np.random.default_rng(seed), mujoco.MjSpec()
    bodies = [spec.worldbody.add_body()]
    bodies[0].add_freejoint()
    add_capsule(bodies[0])
    for i in range(1, links):
        body = bodies[int(rng.integers(max(0, i - 10), i))].add_body(pos=[0, 0, -0.2])
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=np.eye(3)[i % 3])
        add_capsule(body)
        bodies.append(body)
    return compiled(spec)


def add_capsule(body: mujoco.MjsBody) -> None:
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CAPSULE, fromto=[0, 0, 0, 0.02, 0, -0.2], size=[0.03, 0, 0]
    )


def compiled(spec: mujoco.MjSpec) -> mujoco.MjModel:
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return spec.compile()


def robots() -> Iterator[tuple[str, mujoco.MjModel]]:
    """dm_control's, if it is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ROBOTS:
            try:
                module = importlib.import_module(f"dm_control.suite.{name}")
            except ImportError:
                return
            common = importlib.import_module("dm_control.suite.common")
            if name == "quadruped":
                xml, assets = module.make_model(), common.ASSETS
            else:
                xml, assets = module.get_model_and_assets(*((10, True) if name == "dog" else ()))
            text = xml if isinstance(xml, str) else xml.decode()
            yield name, mujoco.MjModel.from_xml_string(text, assets)


def spread(model: mujoco.MjModel, count: int) -> list[int]:
    """`count` bodies that move, evenly numbered, the last among them."""
    moving = np.flatnonzero(model.body_treeid >= 0)
    return [int(b) for b in moving[np.linspace(0, len(moving) - 1, count + 1).astype(int)[1:]]]


def factorized(model: mujoco.MjModel, data: mujoco.MjData, bodies: list[int]) -> np.ndarray:
    """The inverse inertia from MuJoCo's factor of the mass matrix."""
    rows = np.empty((6 * len(bodies), model.nv))
    for i, body in enumerate(bodies):
        mujoco.mj_jacBodyCom(model, data, rows[6 * i + 3 :][:3], rows[6 * i :][:3], body)
    half = np.empty_like(rows)
    mujoco.mj_solveM2(model, data, half, rows, np.sqrt(data.qLDiagInv))
    return half @ half.T


def take_turns(calls: dict[str, Callable[[], object]], turns: int) -> Times:
    """Least time per call [us] of each."""
    counts, best = {}, dict.fromkeys(calls, np.inf)
    for label, call in calls.items():
        call()
        began = perf_counter_ns()
        call()
        counts[label] = max(1, int(BATCH / max(1, perf_counter_ns() - began)))
    for _ in range(turns):
        for label, call in calls.items():
            began = perf_counter_ns()
            for _ in range(counts[label]):
                call()
            best[label] = min(best[label], (perf_counter_ns() - began) / counts[label] / 1e3)
    return best


def measure(model: mujoco.MjModel, bodies: list[int], turns: int) -> Times:
    """Times of all ways on one model, and how far their results are apart."""
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
    mujoco.mj_forward(model, data)
    arrays, loops = body_arrays(model, data), loop_arrays(model, data, wanted=False)
    handles, wrenches = handle_bodies(model, bodies), np.zeros((len(bodies), 6))
    times = take_turns(
        {
            "assembly": lambda: articulate(arrays, loops, handles, wrenches, 0),
            "forward": lambda: articulate(arrays, loops, handles, wrenches, 1),
            "python": lambda: articulated.inverse_inertia(model, data, bodies, loops=False),
            "factorized": lambda: factorized(model, data, bodies),
            "factorization": lambda: mujoco.mj_factorM(model, data),
        },
        turns,
    )
    ours = articulated.inverse_inertia(model, data, bodies, loops=False)[0]
    theirs = factorized(model, data, bodies)
    scale = np.sqrt(theirs.diagonal().reshape(-1, 2, 3).max(axis=(0, 2)))
    scale = np.tile(np.repeat(scale, 3), len(bodies))
    times["off"] = float(np.abs((ours - theirs) / np.outer(scale, scale)).max())
    return times


LABELS = ("assembly", "forward", "python", "factorized", "factorization")
HEAD = (
    "| model | links | nv | bodies | "
    + " | ".join(LABELS)
    + " | off |\n"
    + "|---" * (5 + len(LABELS))
    + "|"
)


def line(label: str, model: mujoco.MjModel, bodies: list[int], times: Times) -> str:
    links = int(np.count_nonzero(model.body_dofnum))
    cells = " | ".join(f"{times[name]:.1f}" for name in LABELS)
    return f"| {label} | {links} | {model.nv} | {len(bodies)} | {cells} | {times['off']:.0e} |"


def crossing(sizes: list[int], ours: list[float], theirs: list[float]) -> str:
    """Number of links from which on ours is less, interpolated in logarithms."""
    gap = np.log(ours) - np.log(theirs)
    if gap[-1] >= 0:
        return f"> {sizes[-1]}"
    above = np.flatnonzero(gap >= 0)
    if not len(above):
        return f"< {sizes[0]}"
    i = int(above[-1])
    share = gap[i] / (gap[i] - gap[i + 1])
    return f"{np.exp(np.interp(share, [0, 1], np.log(sizes[i : i + 2]))):.0f}"


def fit(counts: list[np.ndarray], times: list[float]) -> str:
    """Times of the terms, none negative, that miss all measurements by the least ratio."""
    weights = 1.0 / np.array(times)
    found, _ = nnls(np.array(counts) * weights[:, None], np.ones(len(times)))
    miss = np.abs(np.array(counts) @ found * weights - 1.0)
    terms = ", ".join(f"{t:.2g}" for t in found)
    return f"({terms}), off by {np.median(miss):.0%} at the median, {miss.max():.0%} at most"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes and turns")
    quick = parser.parse_args().quick
    turns = 5 if quick else 15
    sizes = [10, 30, 100, 300, 1000] if quick else [10, 20, 50, 100, 200, 400, 700, 1000]
    few = [1, 2, 8] if quick else [1, 2, 4, 8, 16, 32]
    seen: list[tuple[cost.Work, Times]] = []

    def show(label: str, model: mujoco.MjModel, bodies: list[int]) -> Times:
        times = measure(model, bodies, turns)
        seen.append((cost.work(model, bodies), times))
        print(line(label, model, bodies, times), flush=True)
        return times

    print(f"Robots [us]\n\n{HEAD}")
    for name, model in robots():
        for count in (2, 4):
            show(name, model, spread(model, count))

    for kind, build in (("chain", chain), ("tree", tree)):
        models = {size: build(size) for size in sizes}
        crossings = []
        print(f"\nGrowth of a {kind} [us]\n\n{HEAD}")
        for count in few:
            rows = [
                show(kind, models[size], spread(models[size], count))
                for size in sizes
                if size >= count
            ]
            used = [size for size in sizes if size >= count]
            long = [i for i, size in enumerate(used) if size >= 100]
            for name in ("assembly", "forward", "factorized"):
                slope = np.polyfit(
                    np.log([used[i] for i in long]), np.log([rows[i][name] for i in long]), 1
                )[0]
                print(f"|  |  |  | {count} | {name}: exponent {slope:.2f} |")
            ours = [r["assembly"] for r in rows]
            given = [r["factorized"] for r in rows]
            whole = [r["factorized"] + r["factorization"] for r in rows]
            crossings.append((count, crossing(used, ours, given), crossing(used, ours, whole)))
        print(f"\nLinks of a {kind} from which on assembly costs less\n")
        print("| bodies | factor given | factor counted |\n|---|---|---|")
        for count, given_at, whole_at in crossings:
            print(f"| {count} | {given_at} | {whole_at} |")

    print("\nTimes of the terms [us], as in articulated_cost.py\n")
    print("ASSEMBLY", fit([w.assembly for w, _ in seen], [t["assembly"] for _, t in seen]))
    print("FACTORIZED", fit([w.factorized for w, _ in seen], [t["factorized"] for _, t in seen]))
    print(
        "FACTORIZATION",
        fit([w.factorization for w, _ in seen], [t["factorization"] for _, t in seen]),
    )
    right, loss = 0, []
    for w, t in seen:
        chosen = w.assembly @ cost.ASSEMBLY < w.factorized @ cost.FACTORIZED
        best = min(t["assembly"], t["factorized"])
        loss.append((t["assembly"] if chosen else t["factorized"]) / best)
        right += loss[-1] == 1.0
    print(f"\nThe times in use choose rightly {right} of {len(seen)} times; cost of a wrong choice")
    print(f"at most {max(loss):.2f} of the better one.")


if __name__ == "__main__":
    main()
