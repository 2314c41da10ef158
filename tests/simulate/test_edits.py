"""Edits of a compiled model: none brings the process down."""

import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mjcf import load

import stiction

FUZZ = Path(__file__).with_name("fuzz_edits.py")


def fuzz(seed, count, seconds):
    ran = subprocess.run(
        [sys.executable, str(FUZZ), str(seed), str(count)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    last = ran.stderr.splitlines()[-1:]
    assert ran.returncode == 0, f"seed {seed}: {ran.returncode} after {last}"
    refused, taken = (int(word) for word in ran.stdout.split()[-2:])
    assert refused + taken == count
    assert refused > 0.2 * count
    assert taken > 0.1 * count


def test_random_edits_are_taken_or_refused_by_name():
    fuzz(0, 300, 300)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 11))
def test_thousands_of_random_edits_are_taken_or_refused_by_name(seed):
    fuzz(seed, 1000, 900)


@pytest.mark.parametrize(
    ("field", "at", "value"),
    [
        ("body_geomadr", 2, 40),
        ("body_geomnum", 2, 3),
        ("body_dofadr", 3, 1),
        ("body_weldid", 3, 9),
        ("body_treeid", 3, 7),
        ("geom_matid", 0, 12),
        ("dof_parentid", 3, 8),
        ("dof_jntid", 3, 2**31 - 1),
        ("M_rownnz", 1, 3),
        ("M_colind", 2, 99),
        ("sensor_history", 0, 5),
        ("sensor_adr", 1, 900),
        ("sensor_dim", 2, 1),
        ("mesh_vertadr", 0, 2**31 - 1),
        ("mesh_face", 0, 99),
        ("mesh_graph", 5, 10**6),
        ("bvh_child", 0, 0),
        ("bvh_nodeid", 1, 10**6),
        ("hfield_nrow", 0, 9),
        ("tendon_adr", 1, 0),
        ("wrap_type", 0, int(mujoco.mjtWrap.mjWRAP_CYLINDER)),
        ("name_geomadr", 1, -9),
        ("tuple_adr", 0, 2**31 - 1),
        ("actuator_trnid", 7, 2**31 - 1),
        ("actuator_outadr", 1, 2**31 - 1),
        ("eq_type", 2, int(mujoco.mjtEq.mjEQ_FLEXVERT)),
    ],
)
def test_a_number_that_refers_to_nothing_is_refused_by_its_field(field, at, value):
    text = FUZZ.read_text().split('EVERY_KIND = """')[1].split('"""')[0]
    model = mujoco.MjModel.from_xml_string(text)
    simulator = stiction.Simulator(model)
    values = getattr(model, field)
    assert values.flat[at] != value
    values.flat[at] = value
    named = {"hfield_nrow": "hfield_adr", "mesh_graph": "mesh_graphadr"}.get(field, field)
    for attempt in (simulator.refresh, lambda: stiction.Simulator(model)):
        with pytest.raises(stiction.InvalidInput, match=named):
            attempt()


def test_materials_and_meshes_that_exist_can_be_swapped():
    text = FUZZ.read_text().split('EVERY_KIND = """')[1].split('"""')[0]
    model = mujoco.MjModel.from_xml_string(text)
    simulator = stiction.Simulator(model)
    model.geom_matid[:] = np.arange(model.ngeom) % 2 - 1
    model.geom_group[:] = 2
    simulator.refresh()
    simulator.step(mujoco.MjData(model), 3)


MOTOR = """
<mujoco><option integrator="implicitfast"/><worldbody>
  <body><joint name="a" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body>
</worldbody><actuator><dcmotor joint="a" motorconst=".1" resistance="1"/></actuator></mujoco>"""


@pytest.mark.parametrize("field", ["actuator_dynprm", "actuator_gainprm"])
def test_a_motor_without_activations_steps_until_an_edit_asks_for_some(field):
    model, data = load(MOTOR)
    assert model.na == 0
    theirs, simulator = mujoco.MjData(model), stiction.Simulator(model)
    data.ctrl[:] = theirs.ctrl[:] = 0.5
    simulator.step(data, 50)
    mujoco.mj_step(model, theirs, 50)
    np.testing.assert_allclose(data.qvel, theirs.qvel, rtol=0.0, atol=1e-12)
    getattr(model, field)[0, :] = 1.0
    with pytest.raises(stiction.InvalidInput, match="actuator_actnum"):
        simulator.step(data)
