"""`stiction warmup`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mujoco

SCENE = """
<mujoco>
  <asset><hfield name="hill" nrow="3" ncol="3" size="1 1 0.1 0.1"/></asset>
  <worldbody>
    {ground}
    <body pos="0 0 0.12"><freejoint/><geom type="box" size="0.1 0.1 0.1" condim="6"/></body>
    <body pos="0 0.5 0.3">
      <joint type="hinge" axis="1 0 0" frictionloss="0.1" limited="true" range="-1 1"/>
      <geom type="capsule" size="0.05 0.2"/>
      <body pos="0 0 0.4"><joint type="ball"/><geom name="tip" type="sphere" size="0.1"/></body>
    </body>
    <body pos="0 -0.5 0.11"><freejoint/><geom type="cylinder" size="0.1 0.1"/></body>
  </worldbody>
</mujoco>
"""
"""Every kind of row, with a ground to fill in."""

PLANE = '<geom type="plane" size="5 5 1"/>'
HILL = '<geom type="hfield" hfield="hill"/>'


def command() -> int:
    """Compiles for this machine all that steps, solvers and derivatives may need, so that nothing
    compiles in the middle of a run; for images and CI. What is compiled already is loaded."""
    from time import perf_counter

    from stiction.cli import DONE
    from stiction.cli.progress import share_bar
    from stiction.kernels.cache_directory import cache_directory

    begun = perf_counter()
    with share_bar() as tell:
        for i, (name, job) in enumerate(JOBS.items()):
            tell(i / len(JOBS), name)
            job()
    print(f"ready in {perf_counter() - begun:.0f} s; kernels are in {cache_directory()}")
    return DONE


def _load(ground: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    import mujoco

    model = mujoco.MjModel.from_xml_string(SCENE.format(ground=ground))
    return model, mujoco.MjData(model)


def _steps() -> None:
    from stiction.simulate import Simulator

    for ground in (PLANE, HILL):
        model, data = _load(ground)
        Simulator(model).step(data, 20)


def _derivatives() -> None:
    import numpy as np

    from stiction.simulate import Batch, Simulator

    for ground in (PLANE, HILL):
        model, data = _load(ground)
        simulator = Simulator(model)
        simulator.step(data, 20)
        found = simulator.derivatives(data)
        _ = found.smoothed(1e-3).A
        found.parameters("geom_friction")  # by differences
        Batch(model, 1).vjp(np.zeros((1, len(found.A))))


def _models() -> None:
    from stiction.contact.models.registry import forms, parse_contact
    from stiction.simulate import Simulator

    for form in forms():
        model, data = _load(PLANE)
        Simulator(model, contact=parse_contact(form)).step(data, 10)


def _events() -> None:
    from stiction.simulate import EventDriven, Simulator

    for integrator in ("rk4", "symplectic"):
        model, data = _load(PLANE)
        Simulator(model, stepper=EventDriven(integrator=integrator)).step(data, 10)


def _solvers() -> None:
    import numpy as np

    from stiction.contact import ContactProblem
    from stiction.contact.models.registry import forms, parse_contact
    from stiction.contact.problem.scaled import ScaledProblem
    from stiction.contact.solvers.attempt import Options
    from stiction.contact.solvers.table import SOLVERS

    axes = np.eye(3)
    problem = ContactProblem(
        mass=np.eye(3), velocity=[1.0, 0.0, -1.0], force=np.zeros(3), dt=0.01,
        normal=axes[2:], tangent=axes[None, :2], friction=0.5,
    )  # fmt: skip
    for name, solve in SOLVERS.items():
        solve(ScaledProblem(problem), None, Options(4 if name == "polygon" else 0))
    for form in forms():  # from arrays, as a step does that climbs its ladder
        parse_contact(form).solve(problem)


def _complementarity() -> None:
    import numpy as np

    from stiction import lcp

    for method in lcp.METHODS:
        lcp.solve(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-5.0, -6.0]), method=method)


def _rest() -> None:
    from stiction.kernels.stage import prepare_late

    prepare_late()


JOBS: dict[str, Callable[[], None]] = {
    "steps": _steps,
    "contact models": _models,
    "solvers": _solvers,
    "complementarity": _complementarity,
    "derivatives": _derivatives,
    "events": _events,
    "what is seldom needed": _rest,
}
"""What is run, a little of each: a kernel compiles when it is first called."""
