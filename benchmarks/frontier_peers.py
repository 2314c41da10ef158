"""Drake, PyBullet and DART on the scenes of `frontier.py`, where they are installed.

    pip install drake pybullet dartpy

Each is given the bodies, masses, inertias, shapes, friction and initial motion of the compiled
MuJoCo model, and hands back where bodies are in MuJoCo's `qpos`: one measure serves all. Bodies
that slide on a joint are driven by what drives them in MuJoCo: a force, or a servo of the same
stiffness and damping.
How each is set up, from its manual and by trying on the stack and the pinch at 1 ms:

Drake     `MultibodyPlant` in discrete time with its default approximation, `lagged`, which the
          SAP solver solves; hydroelastic contact, as point contact has one point for two boxes,
          which cannot stand on each other. Spheres have point contact: hydroelastic ones are
          polyhedra, which do not roll. Free bodies are compliant, others rigid. Moduli are those
          of the least error: 1e9 Pa where bodies rest, less where they slide fast (`MODULI`).
PyBullet  200 iterations (50 by default) without an early end, exact cone (its default), no
          damping of free bodies (0.04 by default); friction is the product of two, so that each
          geom has the root. Servos are motors with a limit of force, as its manual has grippers.
DART      Dantzig's solver (its default) and DART's own collision detection, which has most corners;
          others where it loses contacts (`DETECTORS`). Sleeping is off: what sleeps is not
          simulated. Its friction is a pyramid.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from frontier_bodies import (
    BOX,
    CAPSULE,
    CYLINDER,
    PLANE,
    SPHERE,
    bodies_of,
    matrix,
    quaternion,
    shapes_of,
)
from frontier_scenes import Ended

PACKAGES = {"drake": "drake", "bullet": "pybullet", "dart": "dartpy"}
_MODULES = {"drake": "pydrake", "bullet": "pybullet", "dart": "dartpy"}
GRAVITY = (0.0, 0.0, -9.81)
MODULI = {"sliding": 1e6, "bin": 1e7}
"""Pa, of Drake's free bodies, by scene; otherwise `STIFF`."""
STIFF = 1e9
DETECTORS = {"arch": "FCLCollisionDetector", "bin": "OdeCollisionDetector"}
"""DART's collision detection, by scene; otherwise its own."""
ITERATIONS = 200
"""Of PyBullet's solver."""


def missing():
    """Names of peers that are not installed."""
    return [name for name, module in _MODULES.items() if find_spec(module) is None]


class Peer:
    """An engine with the bodies of a model; `place_of` and `travel_of` say where they are."""

    def __init__(self, scene, model, data):
        self.scene = scene
        self.bodies = bodies_of(model, data)
        self.ground = shapes_of(model, 0, np.zeros(3))
        self.start = data.qpos.copy()
        self.build(model.opt.timestep)

    def qpos(self):
        qpos = self.start.copy()
        for index, body in enumerate(self.bodies):
            if body.axis is not None:
                qpos[body.qpos] = self.start[body.qpos] + self.travel_of(index)
                continue
            place, turn = self.place_of(index)
            qpos[body.qpos : body.qpos + 3] = place - turn @ body.center
            qpos[body.qpos + 3 : body.qpos + 7] = quaternion(turn)
        return qpos


@contextmanager
def silence():
    """Keeps what C code prints off the terminal."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


class Bullet(Peer):
    """PyBullet."""

    def build(self, step):
        import pybullet
        from pybullet_utils.bullet_client import BulletClient

        with silence():  # it prints a line for every connection
            self.client = client = BulletClient(pybullet.DIRECT)
        client.setGravity(*GRAVITY)
        client.setPhysicsEngineParameter(
            fixedTimeStep=step, numSolverIterations=ITERATIONS, numSubSteps=0,
            solverResidualThreshold=0.0,
        )  # fmt: skip
        for shape in self.ground:
            fixed = client.createMultiBody(0, self._shape([shape]))
            client.changeDynamics(fixed, -1, lateralFriction=shape.friction**0.5)
        self.handles = [self._body(body) for body in self.bodies]
        self.pushed = [
            (handle, body.drive.force)
            for handle, body in zip(self.handles, self.bodies, strict=True)
            if body.drive is not None and not body.drive.servo
        ]

    def _shape(self, shapes):
        client = self.client
        kinds = {
            PLANE: client.GEOM_PLANE, BOX: client.GEOM_BOX, SPHERE: client.GEOM_SPHERE,
            CAPSULE: client.GEOM_CAPSULE, CYLINDER: client.GEOM_CYLINDER,
        }  # fmt: skip
        if len(shapes) == 1 and shapes[0].kind == PLANE:
            return client.createCollisionShape(client.GEOM_PLANE, planeNormal=[0, 0, 1])
        return client.createCollisionShapeArray(
            shapeTypes=[kinds[shape.kind] for shape in shapes],
            radii=[shape.size[0] for shape in shapes],
            lengths=[2 * shape.size[1] for shape in shapes],
            halfExtents=[shape.size.tolist() for shape in shapes],
            collisionFramePositions=[shape.place.tolist() for shape in shapes],
            collisionFrameOrientations=[self._turn(shape.turn) for shape in shapes],
        )

    @staticmethod
    def _turn(turn):
        return np.roll(quaternion(turn), -1).tolist()  # its quaternions end with the real part

    def _body(self, body):
        client, shape = self.client, self._shape(body.shapes)
        if body.axis is None:
            handle, link = client.createMultiBody(
                body.mass, shape, -1, body.place.tolist(), self._turn(body.turn)
            ), -1  # fmt: skip
            client.resetBaseVelocity(handle, body.velocity[:3].tolist(), body.velocity[3:].tolist())
        else:
            handle, link = client.createMultiBody(
                0, linkMasses=[body.mass], linkCollisionShapeIndices=[shape],
                linkVisualShapeIndices=[-1], linkPositions=[body.place.tolist()],
                linkOrientations=[self._turn(body.turn)], linkParentIndices=[0],
                linkInertialFramePositions=[[0, 0, 0]],
                linkInertialFrameOrientations=[[0, 0, 0, 1]],
                linkJointTypes=[client.JOINT_PRISMATIC],
                linkJointAxis=[(body.turn.T @ body.axis).tolist()],
            ), 0  # fmt: skip
            drive = body.drive
            client.setJointMotorControl2(
                handle, 0, client.VELOCITY_CONTROL,
                targetVelocity=drive.closing if drive.servo else 0.0,
                force=drive.most if drive.servo else 0.0,
            )  # fmt: skip
        client.changeDynamics(
            handle, link, lateralFriction=body.shapes[0].friction ** 0.5, linearDamping=0,
            angularDamping=0, jointDamping=0, localInertiaDiagonal=body.inertia.tolist(),
        )  # fmt: skip
        return handle

    def advance(self, steps):
        client = self.client
        for _ in range(steps):
            for handle, force in self.pushed:
                client.setJointMotorControl2(handle, 0, client.TORQUE_CONTROL, force=force)
            client.stepSimulation()

    def place_of(self, index):
        place, turn = self.client.getBasePositionAndOrientation(self.handles[index])
        return np.array(place), matrix(np.roll(turn, 1))

    def travel_of(self, index):
        return self.client.getJointState(self.handles[index], 0)[0]


class Dart(Peer):
    """DART."""

    def build(self, step):
        import dartpy

        self.dart = dartpy
        self.world = world = dartpy.simulation.World()
        world.setGravity(GRAVITY)
        world.setTimeStep(step)
        sleep = world.getDeactivationOptions()
        sleep.mEnabled = False
        world.setDeactivationOptions(sleep)
        detector = DETECTORS.get(self.scene, "DARTCollisionDetector")
        world.getConstraintSolver().setCollisionDetector(getattr(dartpy.collision, detector)())
        fixed = dartpy.dynamics.Skeleton("ground")
        self._add(fixed.createWeldJointAndBodyNodePair()[1], self.ground)
        fixed.setMobile(False)
        world.addSkeleton(fixed)
        self.pairs = [self._body(body) for body in self.bodies]

    def _add(self, node, shapes):
        dynamics = self.dart.dynamics
        for shape in shapes:
            size = shape.size
            made: Any = {
                PLANE: lambda size=size: dynamics.PlaneShape([0, 0, 1], 0.0),
                BOX: lambda size=size: dynamics.BoxShape(2 * size),
                SPHERE: lambda size=size: dynamics.SphereShape(size[0]),
                CAPSULE: lambda size=size: dynamics.CapsuleShape(size[0], 2 * size[1]),
                CYLINDER: lambda size=size: dynamics.CylinderShape(size[0], 2 * size[1]),
            }[shape.kind]()
            held = node.createShapeNode(made)
            held.setRelativeTransform(self._pose(shape.place, shape.turn))
            held.createCollisionAspect()
            held.createDynamicsAspect().setFrictionCoeff(shape.friction)

    def _pose(self, place, turn):
        pose = self.dart.math.Isometry3()
        pose.set_translation(place)
        pose.set_rotation(turn)
        return pose

    def _body(self, body):
        skeleton = self.dart.dynamics.Skeleton(body.name)
        pose = self._pose(body.place, body.turn)
        if body.axis is None:
            joint, node = skeleton.createFreeJointAndBodyNodePair()
        else:
            joint, node = skeleton.createPrismaticJointAndBodyNodePair()
            joint.setAxis(body.turn.T @ body.axis)
            joint.setTransformFromParentBodyNode(pose)
            if body.drive.speed:
                joint.setActuatorType(self.dart.dynamics.ActuatorType.VELOCITY)
            elif body.drive.servo:
                joint.setSpringStiffness(0, body.drive.stiffness)
                joint.setRestPosition(0, body.drive.place)
                joint.setDampingCoefficient(0, body.drive.damping)
        node.setInertia(self.dart.dynamics.Inertia(body.mass, np.zeros(3), np.diag(body.inertia)))
        self._add(node, body.shapes)
        self.world.addSkeleton(skeleton)
        if body.axis is None:
            joint.setTransform(pose)
            turned = body.turn.T @ body.velocity.reshape(2, 3).T
            joint.setVelocities(np.concatenate([turned[:, 1], turned[:, 0]]))
        return joint, node

    def advance(self, steps):
        pushed = [
            (joint, body.drive.speed or body.drive.force)
            for (joint, _), body in zip(self.pairs, self.bodies, strict=True)
            if body.drive is not None and (body.drive.speed or not body.drive.servo)
        ]
        for _ in range(steps):
            for joint, command in pushed:
                joint.setCommand(0, command)
            self.world.step()

    def place_of(self, index):
        pose = self.pairs[index][1].getWorldTransform()
        return np.array(pose.translation()), np.array(pose.rotation())

    def travel_of(self, index):
        return self.pairs[index][0].getPosition(0)


class Drake(Peer):
    """Drake, hydroelastic contact."""

    def build(self, step):
        from pydrake import math
        from pydrake.geometry import SceneGraph
        from pydrake.multibody import plant as plants
        from pydrake.multibody import tree
        from pydrake.multibody.math import SpatialVelocity
        from pydrake.systems.analysis import Simulator
        from pydrake.systems.framework import DiagramBuilder

        self.math, self.tree, self.step = math, tree, step
        builder = DiagramBuilder()
        self.plant, _ = plants.AddMultibodyPlantSceneGraph(
            builder, plants.MultibodyPlant(step), SceneGraph()
        )
        plant = self.plant
        plant.set_discrete_contact_approximation(plants.DiscreteContactApproximation.kLagged)
        plant.set_contact_model(plants.ContactModel.kHydroelasticWithFallback)
        plant.mutable_gravity_field().set_gravity_vector(np.array(GRAVITY))
        self._add(plant.world_body(), self.ground, rigid=True)
        self.parts = [self._body(body) for body in self.bodies]
        plant.Finalize()
        diagram = builder.Build()
        self.simulator = Simulator(diagram)
        self.context = plant.GetMyMutableContextFromRoot(self.simulator.get_mutable_context())
        drives = [body.drive for body in self.bodies if body.drive is not None]
        if drives:
            forces = [drive.force for drive in drives]
            plant.get_actuation_input_port().FixValue(self.context, forces)
            if drives[0].servo:
                wanted = [drive.place for drive in drives] + [drive.speed for drive in drives]
                port = plant.get_desired_state_input_port(tree.default_model_instance())
                port.FixValue(self.context, wanted)
        for part, body in zip(self.parts, self.bodies, strict=True):
            if body.axis is None:
                pose = math.RigidTransform(math.RotationMatrix(body.turn), body.place)
                plant.SetFreeBodyPose(self.context, part, pose)
                velocity = SpatialVelocity(body.velocity[3:], body.velocity[:3])
                plant.SetFreeBodySpatialVelocity(self.context, part, velocity)
        self.taken = 0
        self.simulator.Initialize()

    def _add(self, part, shapes, rigid):
        from pydrake import geometry
        from pydrake.multibody.plant import CoulombFriction

        for i, shape in enumerate(shapes):
            size = shape.size
            made: Any = {
                PLANE: lambda size=size: geometry.HalfSpace(),
                BOX: lambda size=size: geometry.Box(*(2 * size)),
                SPHERE: lambda size=size: geometry.Sphere(size[0]),
                CAPSULE: lambda size=size: geometry.Capsule(size[0], 2 * size[1]),
                CYLINDER: lambda size=size: geometry.Cylinder(size[0], 2 * size[1]),
            }[shape.kind]()
            properties = geometry.ProximityProperties()
            friction = CoulombFriction(shape.friction, shape.friction)
            geometry.AddContactMaterial(friction=friction, properties=properties)
            hint = size[0] / 2
            if rigid:
                geometry.AddRigidHydroelasticProperties(hint, properties)
            elif shape.kind != SPHERE:
                modulus = MODULI.get(self.scene, STIFF)
                geometry.AddCompliantHydroelasticProperties(hint, modulus, properties)
            pose = self.math.RigidTransform(self.math.RotationMatrix(shape.turn), shape.place)
            name = f"{part.name()}{i}"
            self.plant.RegisterCollisionGeometry(part, pose, made, name, properties)

    def _body(self, body):
        tree, plant = self.tree, self.plant
        unit = tree.UnitInertia(*(body.inertia / body.mass))
        part = plant.AddRigidBody(body.name, tree.SpatialInertia(body.mass, np.zeros(3), unit))
        self._add(part, body.shapes, rigid=body.axis is not None)
        if body.axis is None:
            return part
        pose = self.math.RigidTransform(self.math.RotationMatrix(body.turn), body.place)
        joint = plant.AddJoint(
            tree.PrismaticJoint(
                body.name,
                plant.AddFrame(tree.FixedOffsetFrame(body.name, plant.world_frame(), pose)),
                part.body_frame(),
                body.turn.T @ body.axis,
            )
        )
        actuator = plant.AddJointActuator(body.name, joint)
        if body.drive.servo:
            stiffness = max(body.drive.stiffness, 1e-9)  # it takes no 0
            actuator.set_controller_gains(tree.PdControllerGains(p=stiffness, d=body.drive.damping))
        return joint

    def advance(self, steps):
        self.taken += steps
        try:
            self.simulator.AdvanceTo(self.taken * self.step)
        except RuntimeError as error:
            raise Ended("not solved") from error

    def place_of(self, index):
        pose = self.plant.EvalBodyPoseInWorld(self.context, self.parts[index])
        return pose.translation(), pose.rotation().matrix()

    def travel_of(self, index):
        return self.parts[index].get_translation(self.context)


ENGINES = {"drake": Drake, "bullet": Bullet, "dart": Dart}
