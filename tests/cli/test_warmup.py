"""`stiction warmup`."""

import subprocess
import sys

from stiction import cli

STEP = """
import mujoco, numba, numpy as np, stiction
from numba.core import event
from stiction.cli.warmup import PLANE, SCENE
model = mujoco.MjModel.from_xml_string(SCENE.format(ground=PLANE))
with event.install_recorder("numba:compile") as compiled:
    stiction.Simulator(model).step(mujoco.MjData(model), 5)
    stiction.Coulomb().solve(
        stiction.ContactProblem(
            mass=np.eye(3), velocity=[1.0, 0.0, -1.0], force=np.zeros(3), dt=0.01,
            normal=np.eye(3)[2:], tangent=np.eye(3)[None, :2], friction=0.5,
        )
    )
print(len(compiled.buffer))
"""


def test_what_was_warmed_up_does_not_compile_in_another_process(capsys):
    assert cli.main(["warmup"]) == 0
    assert capsys.readouterr().out.startswith("ready in")
    done = subprocess.run(
        [sys.executable, "-c", STEP], capture_output=True, text=True, check=True, timeout=300
    )
    assert int(done.stdout) == 0
