"""Pinocchio's dynamics, stiction's contact: a humanoid stands on a floor and is pushed.

    python examples/pinocchio_contact.py [seconds]

Pinocchio gives the mass matrix, the bias forces and the Jacobians of eight points under the feet;
one `ContactProblem` a step gives the velocity after it. No MuJoCo takes part.
"""

import sys

import numpy as np

import stiction

try:
    import pinocchio
except ImportError:
    sys.exit("examples/pinocchio_contact.py needs Pinocchio: pip install 'stiction[pinocchio]'")

DT = 0.002
FRICTION = 0.6
PUSH = -5.0
"""On the base, along x [N]."""
STIFFNESS, DAMPING = 3000.0, 300.0
"""Of the servo at every joint [N m/rad, N m s/rad]."""
CORNERS = [(x, y) for x in (-0.1, 0.1) for y in (-0.06, 0.06)]
"""Of a sole, from the end of the leg [m]."""


def build():
    """The sample humanoid, a frame at each corner of its soles, and a pose that stands on z = 0."""
    model = pinocchio.buildSampleModelHumanoid()
    pose, data = pinocchio.neutral(model), model.createData()
    pinocchio.framesForwardKinematics(model, data, pose)
    points = []
    for leg in ("rleg_effector_body", "lleg_effector_body"):
        joint = model.frames[model.getFrameId(leg)].parentJoint
        end = data.oMf[model.getFrameId(leg)].translation
        for x, y in CORNERS:
            corner = pinocchio.SE3(np.eye(3), end + np.array([x, y, 0.0]))
            place = data.oMi[joint].inverse() * corner
            name, kind = f"{leg}{len(points)}", pinocchio.FrameType.OP_FRAME
            points.append(model.addFrame(pinocchio.Frame(name, joint, 0, place, kind)))
    pose[2] -= end[2]
    return model, pose, points


def contact_problem(model, data, q, v, force, extra_mass, points):
    """The step's problem: rows of each point along z, x and y of the world."""
    mass = pinocchio.crba(model, data, q)
    mass = np.triu(mass) + np.triu(mass, 1).T  # Pinocchio fills the upper part
    bias = pinocchio.nonLinearEffects(model, data, q, v)
    pinocchio.computeJointJacobians(model, data, q)
    pinocchio.updateFramePlacements(model, data)
    axes = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
    rows = np.array([pinocchio.getFrameJacobian(model, data, p, axes)[:3] for p in points])
    gap = np.array([data.oMf[p].translation[2] for p in points])
    return stiction.ContactProblem(
        mass=mass + extra_mass, velocity=v, force=force - bias, dt=DT,
        normal=rows[:, 2], tangent=rows[:, :2], friction=FRICTION,
        bound=-np.maximum(gap, 0.0) / DT,
    )  # fmt: skip


def main(seconds=1.0):
    model, pose, points = build()
    data = model.createData()
    q, v, solution, worst = pose.copy(), np.zeros(model.nv), None, 0.0
    joints = np.r_[np.zeros(6), np.ones(model.nv - 6)]
    # Servos at the end of the step, k (pose - q - h v+) - d v+: what multiplies v+ joins the mass.
    servo = (DT * STIFFNESS + DAMPING) * joints
    for _ in range(round(float(seconds) / DT)):
        force = STIFFNESS * joints * pinocchio.difference(model, q, pose) - servo * v
        force[0] = PUSH
        problem = contact_problem(model, data, q, v, force, np.diag(DT * servo), points)
        solution = stiction.Coulomb().solve(problem, start=solution)
        worst = max(worst, solution.certificate.worst)
        before, v = v, solution.velocity
        q, moved_from = pinocchio.integrate(model, q, DT * v), q
    print(f"{model.nv} degrees of freedom, {len(points)} contacts, {seconds} s")
    weight = 9.81 * pinocchio.computeTotalMass(model)
    print(f"the floor carries {solution.normal.sum() / DT:.1f} N of {weight:.1f} N")
    slip = np.hypot(*problem.contact_velocity(v).tangent.T).max()
    print(f"the feet slip at {slip:.0e} m/s; largest violation of any law: {worst:.0e}")
    # Pinocchio's own forward dynamics, given our contact forces, comes to the same velocity.
    push = problem.normal.T @ solution.normal
    push += np.einsum("cti,ct->i", problem.tangent, solution.tangent)
    torque = force - servo * (v - before) + push / DT
    check = before + DT * pinocchio.aba(model, data, moved_from, before, torque)
    print(f"against Pinocchio's aba: {np.abs(check - v).max():.0e} m/s, rad/s")


if __name__ == "__main__":
    main(*sys.argv[1:])
