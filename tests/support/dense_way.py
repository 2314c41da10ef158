"""Random mechanisms, and the dense way to what assembly and disassembly find."""

import mujoco
import numpy as np

from stiction import articulated

AGREE = 1e-9
AXES = np.eye(3)
HINGE, SLIDE = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE
BALL, FREE = mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE

GRIPPED = """
<mujoco>
  <default><default class="rod"><geom type="capsule" size=".03"/></default></default>
  <worldbody>
    <body name="base" mocap="true"><geom size=".02"/></body>
    <body name="arm" pos="0 0 1">
      <joint axis="0 1 0"/>
      <geom class="rod" fromto="0 0 0 .3 0 0"/>
      <body name="forearm" pos=".3 0 0">
        <joint type="ball"/>
        <geom class="rod" fromto="0 0 0 .3 .1 0"/>
        <body name="hand" pos=".3 .1 0">
          <geom type="box" size=".03 .04 .02"/>
          <site name="grip" pos=".05 0 0"/>
        </body>
      </body>
    </body>
    <body name="box" pos=".6 .1 1">
      <freejoint/>
      <geom type="box" size=".05 .03 .04"/>
      <site name="held"/>
    </body>
    <body name="ball" pos="1 1 1"><freejoint/><geom size=".05"/></body>
  </worldbody>
  <equality>{}</equality>
</mujoco>"""


def compiled(spec):
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return spec.compile()


def add_link(parent, rng, kind=HINGE, armature=0.0, density=1000.0):
    body = parent.add_body(pos=[0.02, 0.0, -0.2] + 0.02 * rng.normal(size=3))
    if kind == FREE:
        body.add_freejoint()
    elif kind is not None:
        axis = rng.normal(size=3)
        body.add_joint(type=kind, axis=axis / np.linalg.norm(axis), armature=armature)
    size = rng.uniform(0.02, 0.05, 3)
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=size, pos=[0, 0, -0.1], density=density)
    return body


def chain(links, kind=HINGE, armature=0.0, seed=0):
    rng, spec = np.random.default_rng(seed), mujoco.MjSpec()
    body = spec.worldbody
    for _ in range(links):
        body = add_link(body, rng, kind, armature)
    return compiled(spec)


def forest(links, seed, roots=2):
    """Random trees of all joints, some of several, some bodies without one, some armature."""
    rng, spec = np.random.default_rng(seed), mujoco.MjSpec()
    bodies = [
        add_link(spec.worldbody, rng, [FREE, BALL, HINGE, None][int(rng.integers(4))])
        for _ in range(roots)
    ]
    for _ in range(links - roots):
        kind = [HINGE, HINGE, SLIDE, BALL, None][int(rng.integers(5))]
        armature = float(rng.choice([0.0, 0.01, 1.0]))
        body = add_link(bodies[int(rng.integers(len(bodies)))], rng, kind, armature)
        if kind == HINGE and rng.random() < 0.4:
            body.add_joint(
                type=HINGE, axis=rng.normal(size=3), armature=float(rng.choice([0, 0.1]))
            )
        bodies.append(body)
    return compiled(spec)


def state(model, seed=0, speed=1.0):
    """Random positions, velocities and forces."""
    rng, data = np.random.default_rng(seed), mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
    data.qvel = speed * rng.normal(size=model.nv)
    data.qfrc_applied = rng.normal(size=model.nv)
    data.xfrc_applied = rng.normal(size=(model.nbody, 6))
    data.ctrl = rng.uniform(-1, 1, model.nu)
    mujoco.mj_forward(model, data)
    return data


def jacobian(model, data, body, point=None, dot=False):
    """(6, nv) angular rows, then linear ones, at a point [m], the body's centre unless given."""
    rows = np.zeros((2, 3, model.nv))
    place = data.xipos[body] if point is None else point
    (mujoco.mj_jacDot if dot else mujoco.mj_jac)(model, data, rows[1], rows[0], place, body)
    return rows.reshape(6, model.nv)


def mass_matrix(model, data):
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    return full


def reference(model, data, bodies, wrenches, rows=None, target=None):
    """Inertia, bias and qacc by the dense way, under rows qacc = target."""
    mass = mass_matrix(model, data)
    J = np.concatenate([jacobian(model, data, b) for b in bodies])
    drift = np.concatenate([jacobian(model, data, b, dot=True) for b in bodies]) @ data.qvel
    upper = np.linalg.cholesky(mass).T  # coordinates x = upper qacc have unit mass
    J_w = np.linalg.solve(upper.T, J.T).T
    force = np.linalg.solve(upper.T, data.qfrc_smooth)
    held, start = np.eye(model.nv), np.zeros(model.nv)
    if rows is not None:
        inverse = np.linalg.pinv(np.linalg.solve(upper.T, rows.T).T, rcond=1e-8)
        held -= inverse @ np.linalg.solve(upper.T, rows.T).T
        start = inverse @ target
    inertia = J_w @ held @ J_w.T
    bias = J_w @ (held @ force + start) + drift
    qacc = np.linalg.solve(upper, held @ (force + J_w.T @ wrenches) + start)
    return inertia, bias, qacc


def per_entry(angular, linear):
    """Scales of six entries; what only slides, or only turns, is measured by links of 0.1 m."""
    return np.repeat([max(angular, linear / 0.1), max(linear, angular * 0.1)], 3) + 1e-12


def check(model, data, bodies, seed=0, tolerance=AGREE, **held):
    wrenches = np.random.default_rng(seed).normal(size=6 * len(bodies))
    inertia, bias, qacc = reference(model, data, bodies, wrenches, **held)
    own_inertia, own_bias = articulated.inverse_inertia(model, data, bodies)
    own_qacc = articulated.accelerations(model, data, bodies, wrenches)
    size = np.sqrt(inertia.diagonal().clip(0)).reshape(-1, 2, 3).max(axis=(0, 2))
    scale = np.tile(per_entry(*size), len(bodies))
    assert np.abs((own_inertia - inertia) / np.outer(scale, scale)).max() < tolerance
    assert np.array_equal(own_inertia, own_inertia.T)
    size = np.abs(bias).reshape(-1, 2, 3).max(axis=(0, 2))
    assert np.abs((own_bias - bias) / np.tile(per_entry(*size), len(bodies))).max() < tolerance
    mass = mass_matrix(model, data)
    off = own_qacc - qacc
    assert np.sqrt(off @ mass @ off) < tolerance * np.sqrt(qacc @ mass @ qacc)
