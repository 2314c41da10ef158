"""Mass and friction of a block, from a recording of how it moved when it was pushed.

Run with: python examples/identify_push.py [picture]

Recorded are positions to a tenth of a millimetre, and the force. Rollouts from where it began carry
their derivatives along, dx+ = A dx + P dp, and Gauss-Newton fits the path.
"""

import sys

import mujoco
import numpy as np

import stiction

try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("examples/identify_push.py needs matplotlib: pip install 'stiction[demo]'")

XML = """
<mujoco><option timestep="0.01"/>
  <worldbody><geom type="plane" size="9 9 1" friction="0.01"/>
    <body pos="0 0 .05"><freejoint/>
      <geom type="box" size=".1 .1 .05" mass="{mass}" friction="{mu}"/></body>
  </worldbody></mujoco>"""
STEPS = 80
TRUTH = {"mass": 1.8, "mu": 0.37}


def force(k):
    """Of the push in step k [N]: it swells and ends, and the block slides on."""
    return np.array([16.0 * np.sin(np.pi * k / 40) ** 2 + 8.0, 0, 0, 0, 0, 0]) * (k < 40)


def roll_out(mass, mu, slopes=False):
    """(x positions (STEPS,), their derivatives (STEPS, 2) by mass and mu)."""
    model = mujoco.MjModel.from_xml_string(XML.format(mass=mass, mu=mu))
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    data.qvel[0] = 0.5
    moved, path, by = np.zeros((12, 2)), [], []
    for k in range(STEPS):
        data.xfrc_applied[1] = force(k)
        if slopes:
            J = sim.derivatives(data)
            found = J.parameters(["body_mass", "geom_friction"])
            own = np.stack([found["body_mass"][:, 1], found["geom_friction"][:, 1, 0]], axis=1)
            moved = J.A @ moved + own
            by.append(moved[0])
        sim.step(data)
        path.append(data.qpos[0])
    return np.array(path), np.array(by)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    recorded = roll_out(**TRUTH)[0] + 1e-4 * rng.normal(size=STEPS)
    guess = np.array([1.0, 0.2])
    paths = []
    for turn in range(8):
        path, slopes = roll_out(*guess, slopes=True)
        paths.append(path)
        error = 1e3 * np.sqrt(((path - recorded) ** 2).mean())
        print(f"{turn}: mass {guess[0]:.4f} kg, mu {guess[1]:.4f}, path off by {error:.3f} mm")
        step = np.linalg.lstsq(slopes, recorded - path, rcond=None)[0]
        guess = guess + step * min(1.0, 0.5 / np.abs(step / guess).max())
    off = 100.0 * np.abs(guess / list(TRUTH.values()) - 1.0)
    print(f"found within {off[0]:.2f} % of the mass and {off[1]:.2f} % of mu")
    plt.figure(figsize=(6, 3.5))
    time = 0.01 * np.arange(1, STEPS + 1)
    for turn, path in enumerate(paths[:4]):
        plt.plot(time, path, label=f"guess {turn}", color="C0", alpha=0.3 + 0.2 * turn)
    plt.plot(time, recorded, "k.", markersize=3, label="recorded")
    plt.gca().set(xlabel="time [s]", ylabel="block [m]")
    plt.legend()
    target = sys.argv[1] if len(sys.argv) > 1 else "identify_push.png"
    plt.savefig(target, bbox_inches="tight")
