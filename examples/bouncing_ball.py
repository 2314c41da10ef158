"""Events instead of steps: a ball that bounces, with the time of every impact located.

    python examples/bouncing_ball.py

Dropped from 1 m with restitution 0.8, the n-th bounce is 0.8^(2n) m high and the ball is at rest
after t = sqrt(2 / g) (1 + e) / (1 - e) = 4.06 s, after infinitely many impacts.
"""

import mujoco
import numpy as np

import stiction

RADIUS, RESTITUTION = 0.05, 0.8
XML = f"""
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 0.1"/>
    <body pos="0 0 {1 + RADIUS}"><freejoint/><geom size="{RADIUS}" mass="1"/></body>
  </worldbody>
</mujoco>"""


def main(seconds=2.5):
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    stepper = stiction.EventDriven(dt=0.01, restitution=RESTITUTION)
    simulator = stiction.Simulator(model, stepper=stepper)
    lowest, tops, rising = np.inf, [], False
    while data.time < seconds:
        before = data.qvel[2]
        simulator.step(data)
        height, speed = data.qpos[2] - RADIUS, data.qvel[2]
        lowest = min(lowest, height)
        if rising and before > 0.0 >= speed:  # the top is within this step: speed^2 / 2 g above
            tops.append(height + speed**2 / (2 * 9.81))
        rising = speed > 0.0
    for number, top in enumerate(tops, 1):
        exact = RESTITUTION ** (2 * number)
        print(f"bounce {number}: {top:.6f} m, exact {exact:.6f} m")
    print(f"deepest overlap {max(0.0, -lowest):.0e} m")


if __name__ == "__main__":
    main()
