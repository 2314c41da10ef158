"""A finger slides a block to a goal 30 cm away, planned by iLQR through exact contact.

Run with: python examples/slide_to_goal.py [picture] [iterations]

The planner runs twice: with the steps and derivatives of stiction, and with mj_step and its finite
differences. The exact simulator carries both plans out.
"""

import sys

import mujoco
import numpy as np

import stiction

try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("examples/slide_to_goal.py needs matplotlib: pip install 'stiction[demo]'")

XML = """
<mujoco><option timestep="0.01"/>
  <worldbody><geom type="plane" size="1 1 1" friction="0.4"/>
    <body pos="0 0 .05"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
      <joint type="slide" axis="0 0 1"/><joint axis="0 0 1"/>
      <geom type="box" size=".05 .05 .05" mass="0.5" friction="0.4"/></body>
    <body pos="-.07 0 .05"><joint name="x" type="slide" axis="1 0 0" damping="0.5"/>
      <joint name="y" type="slide" axis="0 1 0" damping="0.5"/>
      <geom type="sphere" size=".02" mass="0.2" condim="1" priority="1"/></body>
  </worldbody><actuator><motor joint="x"/><motor joint="y"/></actuator></mujoco>"""
MODEL = mujoco.MjModel.from_xml_string(XML)
NV, STEPS, EFFORT = MODEL.nv, 60, 1e-3
GOAL, WEIGHT = np.zeros((2, 2 * NV))
GOAL[0] = 0.3
WEIGHT[[0, 1, 3]], WEIGHT[[NV, NV + 1, NV + 3]] = 1e3, 1e2  # the block: where it is, and at rest


class Engine:
    """A step and its derivatives, by stiction or by MuJoCo."""

    def __init__(self, exact):
        self.sim = stiction.Simulator(MODEL) if exact else None
        self.data = mujoco.MjData(MODEL)

    def put(self, x, u):
        self.data.qpos[:], self.data.qvel[:], self.data.ctrl[:] = x[:NV], x[NV:], u

    def step(self, x, u):
        self.put(x, u)
        self.sim.step(self.data) if self.sim else mujoco.mj_step(MODEL, self.data)
        return np.concatenate([self.data.qpos, self.data.qvel])

    def slopes(self, x, u):
        self.put(x, u)
        if self.sim:
            return (found := self.sim.derivatives(self.data)).A, found.B
        A, B = np.zeros((2 * NV, 2 * NV)), np.zeros((2 * NV, 2))
        mujoco.mjd_transitionFD(MODEL, self.data, 1e-6, True, A, B, None, None)
        return A, B

    def run(self, plan, path=None, gains=None):
        states, controls = [np.zeros(2 * NV)], []
        for k, u in enumerate(plan):
            controls.append(u if gains is None else u + gains[k] @ (states[-1] - path[k]))
            states.append(self.step(states[-1], controls[-1]))
        return np.array(states), np.array(controls)


def cost(states, controls):
    return 0.5 * WEIGHT @ (states[-1] - GOAL) ** 2 + 0.5 * EFFORT * (controls**2).sum()


def plan(engine, iterations):
    (states, controls), caution = engine.run(np.full((STEPS, 2), [2.5, 0.0])), 0.1
    for _ in range(iterations):
        value, hessian = WEIGHT * (states[-1] - GOAL), np.diag(WEIGHT)
        change, gains = np.zeros_like(controls), [None] * STEPS
        for k in reversed(range(STEPS)):
            A, B = engine.slopes(states[k], controls[k])
            inverse = -np.linalg.inv(B.T @ hessian @ B + (EFFORT + caution) * np.eye(2))
            change[k] = inverse @ (B.T @ value + EFFORT * controls[k])
            gains[k] = inverse @ (B.T @ hessian @ A)
            value = A.T @ (value + hessian @ B @ change[k])
            hessian = A.T @ hessian @ (A + B @ gains[k])
        tried = engine.run(controls + change, states, gains)
        better = cost(*tried) < cost(states, controls)
        states, controls = tried if better else (states, controls)
        caution *= 0.3 if better else 5.0
    return controls


if __name__ == "__main__":
    given, judge = dict(enumerate(sys.argv)), Engine(exact=True)
    plt.figure(figsize=(6, 3.5))
    for name in ("stiction", "mj_step"):
        states, controls = judge.run(plan(Engine(exact=name == "stiction"), int(given.get(2, 25))))
        end = f"{1e3 * states[-1, 0]:.1f} mm, {1e3 * states[-1, NV]:.1f} mm/s"
        print(f"planned by {name}: cost {cost(states, controls):.4f}, the block ends at {end}")
        plt.plot(0.01 * np.arange(STEPS + 1), states[:, NV], label=f"planned by {name}")
    plt.axhline(0.0, color="gray", linestyle=":")
    plt.gca().set(xlabel="time [s]", ylabel="speed of the block [m/s]")
    plt.legend()
    plt.savefig(given.get(1, "slide_to_goal.png"), bbox_inches="tight")
