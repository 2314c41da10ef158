"""MuJoCo's types of geoms as integers, which kernels can compare."""

import mujoco

SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, HFIELD = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}"))
    for name in ("SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX", "MESH", "HFIELD")
)
