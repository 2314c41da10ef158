"""What a step costs in clutter: bodies dropped into a bin, beside MuJoCo as it comes and tuned.

    python benchmarks/clutter.py [--seconds 1.0] [--limit 60] [--pile box:27 sphere:216:0.8:1:0.005]
    python benchmarks/clutter.py --times 3     with a budget of three times what `mj_step` takes
    python benchmarks/clutter.py --pile box:1000 --after 0.4 --seconds 0.04    of a heap that lies

A pile is shape:count[:friction[:ratio of masses[:time step]]]. Without `--pile` those up to 343
bodies are taken; `--pile box:1000 --limit 900` takes half an hour. `--after` lets `mj_step` move a
pile first, and begins there.

For every pile: steps taken within the limit, contacts at the end, milliseconds of processor time
(mean, median, p99, worst) of ours, of `mj_step` and of `mj_step` tuned against slip, the ratios of
the sums over the same steps, certificates, how many steps missed 1e-8, what answered; and how deep
bodies are within each other at the end, and how fast the fastest is.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import mujoco
import numpy as np
from compiled import compile_all

import stiction

PILES = (
    "box:8", "sphere:27", "box:27", "mixed:27:0.9", "box:27:0.5:100", "capsule:64", "box:125",
    "sphere:125", "sphere:216:0.8:1:0.005", "box:343",
)  # fmt: skip
SIZE = 0.05
"""Of a body [m]."""


def pile(count, shape, friction=0.5, ratio=1.0, dt=0.002):
    """A model of `count` bodies above a bin; every other one `ratio` times as heavy."""
    rng = np.random.default_rng(1)
    side, s = max(2, round(count ** (1 / 3))), SIZE
    sizes = {
        "sphere": f"{s}",
        "box": f"{s} {s * 0.8} {s * 0.6}",
        "capsule": f"{s * 0.5} {s * 0.6}",
    }
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.memory = dt, 500 * 2**20
    spec.default.geom.friction = [friction, 0.0, 0.0]
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    wide = side * 1.25 * s + 0.03
    spec.worldbody.add_geom(type=plane, size=[5, 5, 1])
    for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        spec.worldbody.add_geom(
            type=plane, size=[5, 5, 1], pos=[a * wide, b * wide, 0], quat=_facing(-a, -b)
        )
    middle = np.array([side / 2 - 0.5, side / 2 - 0.5, -0.7])
    for i in range(count):
        place = np.array([i % side, (i // side) % side, i // side**2]) - middle
        where = place * 2.3 * s + rng.normal(size=3) * 0.004
        turn = rng.normal(size=4)
        body = spec.worldbody.add_body(pos=where, quat=turn / np.linalg.norm(turn))
        body.add_freejoint()
        kind = ("sphere", "box", "capsule")[i % 3] if shape == "mixed" else shape
        size = [float(x) for x in sizes[kind].split()]
        mass = 0.5 if ratio == 1.0 else 0.05 * (1.0 if i % 2 else ratio)
        body.add_geom(
            type=getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}"),
            size=size + [0.0] * (3 - len(size)),
            mass=mass,
        )
    return spec.compile()


def _facing(x, y):
    """Quaternion that turns the z axis to (x, y, 0)."""
    found = np.zeros(4)
    mujoco.mju_quatZ2Vec(found, np.array([x, y, 0.0]))
    return found


def tune(model):
    """MuJoCo against slip: elliptic cone, impratio 100, stiff contacts, 20 noslip iterations."""
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100
    model.opt.iterations, model.opt.tolerance, model.opt.noslip_iterations = 100, 1e-10, 20
    model.geom_solref[:] = [2 * model.opt.timestep, 1]
    model.geom_solimp[:, :3] = [0.99, 0.999, 0.001]


def timed(step, steps, limit):
    """Milliseconds of processor time of up to `steps` calls within `limit` seconds."""
    times, begun = [], time.perf_counter()
    for _ in range(steps):
        before = time.thread_time()
        step()
        times.append(1e3 * (time.thread_time() - before))
        if time.perf_counter() - begun > limit:
            break
    return np.array(times)


def start(name, after):
    """Model and state of a pile, "shape:count[:friction[:ratio[:dt]]]", moved so many seconds."""
    shape, count, *rest = name.split(":")
    settings = dict(zip(("friction", "ratio", "dt"), map(float, rest), strict=False))
    model = pile(int(count), shape, **settings)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=round(after / model.opt.timestep))
    return model, data


def time_mujoco(name, tuned, after, steps, limit):
    """Milliseconds of `mj_step`, as it comes or `tuned`."""
    model, data = start(name, after)
    if tuned:
        tune(model)
    return timed(lambda: mujoco.mj_step(model, data), steps, limit)


def deepest(model, data):
    """Overlap in that state [mm]."""
    seen = mujoco.MjData(model)
    seen.qpos[:] = data.qpos
    mujoco.mj_forward(model, seen)
    return 1e3 * max([0.0, *(-seen.contact.dist)])


def compare(name, seconds, limit, after, budget, times):
    """Prints the lines of one pile. budget: of our steps [s]; times: the same over the mean of
    `mj_step`."""
    model, data = start(name, after)
    steps, columns = round(seconds / model.opt.timestep), {}
    if times is not None:
        columns["mj_step"] = time_mujoco(name, False, after, steps, limit)
        budget = 1e-3 * times * columns["mj_step"].mean()
    sim = stiction.Simulator(model, budget=budget, on_failure="best")
    sim.step(mujoco.MjData(model))
    sim.forget()
    worst, rungs = [], Counter()

    def ours():
        report = sim.step(data)
        worst.append(report.certificate.worst)
        rungs[report.rung] += 1

    columns = {"ours": timed(ours, steps, limit), **columns}
    taken = len(columns["ours"])
    if times is None:
        for other in ("mj_step", "tuned"):
            columns[other] = time_mujoco(name, other == "tuned", after, taken, limit)
    missed = sum(w > 1e-8 for w in worst)
    print(
        f"{name}: {taken} of {steps} steps, {data.ncon} contacts, certificate median "
        f"{np.median(worst):.1e} worst {max(worst):.1e}, {missed} above 1e-8, {dict(rungs)}, "
        f"overlap {deepest(model, data):.3f} mm, fastest {np.abs(data.qvel).max():.2f} m/s or rad/s"
    )
    for other, spent in columns.items():
        k = min(taken, len(spent))
        ratio = columns["ours"][:k].sum() / spent[:k].sum()
        print(
            f"   {other:8s} mean {spent.mean():9.3f} median {np.median(spent):9.3f} "
            f"p99 {np.percentile(spent, 99):9.2f} worst {spent.max():9.1f} ms   "
            f"ours / this {ratio:.2f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pile", nargs="+", default=PILES)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of wall time for each")
    parser.add_argument("--after", type=float, default=0.0, help="seconds by mj_step before")
    parser.add_argument("--budget", type=float, help="seconds for a step of ours")
    parser.add_argument("--times", type=float, help="the same, over the mean of mj_step")
    given = parser.parse_args()
    compile_all()
    for name in given.pile:
        compare(name, given.seconds, given.limit, given.after, given.budget, given.times)


if __name__ == "__main__":
    main()
