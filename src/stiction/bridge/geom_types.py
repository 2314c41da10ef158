"""MuJoCo's types of geoms as integers, which kernels can compare."""

import mujoco

PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, HFIELD = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}"))
    for name in ("PLANE", "SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX", "MESH", "HFIELD")
)
