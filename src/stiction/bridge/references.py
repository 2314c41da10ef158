"""Numbers by which a model's arrays refer to each other: each within what it refers to.

MuJoCo compiles them and trusts them since: one that points past an array reads and writes memory
that belongs to others. `mj_validateReferences` knows those that a file may have wrong; what follows
from the tree of bodies alone (where a body's joints begin, which degrees of freedom are its
ancestors') is worked out here again and compared, the rest is held against the sizes of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mujoco
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Refuse = Callable[[str, int, str], Exception]
"""The error that names field and index, with a reason."""

INDICES = {
    "nnames": (
        "name_bodyadr name_jntadr name_geomadr name_siteadr name_camadr name_lightadr name_meshadr "
        "name_skinadr name_hfieldadr name_texadr name_matadr name_pairadr name_excludeadr "
        "name_eqadr name_tendonadr name_actuatoradr name_sensoradr name_numericadr name_textadr "
        "name_tupleadr name_keyadr name_pluginadr"
    ),
    "nbody": "jnt_bodyid geom_bodyid site_bodyid cam_bodyid light_bodyid skin_bonebodyid",
    "nbody or none": "cam_targetbodyid light_targetbodyid",
    "nmocap or none": "body_mocapid",
    "nplugin or none": "body_plugin geom_plugin actuator_plugin sensor_plugin",
    "nmat or none": "geom_matid site_matid skin_matid tendon_matid",
    "ntex or none": "light_texid mat_texid",
    "nactuator or none": "jnt_actuatorid tendon_actuatorid",
    "ntree or none": "tendon_treeid",
    "nbvh or none": "bvh_child",
    "noct or none": "oct_child",
    "nmeshgraph or none": "mesh_graphadr",
    "nv": "M_colind D_colind B_colind ten_J_colind D_diag",
    "nM": "mapM2M",
    "nC or none": "mapM2D",
    "nD": "mapD2M",
    "ngeom": "pair_geom1 pair_geom2",
    "npaths or none": "mesh_pathadr skin_pathadr hfield_pathadr tex_pathadr",
    "npluginattr or none": "plugin_attradr",
}
"""Fields that count something, by the size that they stay below; none is -1. Names come first: what
is refused is called by its name."""

RANGES = (
    ("body_bvhadr", "body_bvhnum", "nbvh"),
    ("mesh_vertadr", "mesh_vertnum", "nmeshvert"),
    ("mesh_faceadr", "mesh_facenum", "nmeshface"),
    ("mesh_normaladr", "mesh_normalnum", "nmeshnormal"),
    ("mesh_texcoordadr", "mesh_texcoordnum", "nmeshtexcoord"),
    ("mesh_bvhadr", "mesh_bvhnum", "nbvh"),
    ("mesh_octadr", "mesh_octnum", "noct"),
    ("mesh_polyadr", "mesh_polynum", "nmeshpoly"),
    ("mesh_polyvertadr", "mesh_polyvertnum", "nmeshpolyvert"),
    ("mesh_polymapadr", "mesh_polymapnum", "nmeshpolymap"),
    ("skin_vertadr", "skin_vertnum", "nskinvert"),
    ("skin_faceadr", "skin_facenum", "nskinface"),
    ("skin_boneadr", "skin_bonenum", "nskinbone"),
    ("skin_bonevertadr", "skin_bonevertnum", "nskinbonevert"),
    ("actuator_actadr", "actuator_actnum", "na"),
    ("plugin_stateadr", "plugin_statenum", "npluginstate"),
    ("numeric_adr", "numeric_size", "nnumericdata"),
    ("text_adr", "text_size", "ntextdata"),
    ("tuple_adr", "tuple_size", "ntupledata"),
)
"""Where parts of arrays begin, how long they are, and the size of the array."""

FILLED = (
    ("tendon_adr", "tendon_num", "nwrap"),
    ("actuator_ctrladr", "actuator_ctrlnum", "nu"),
    ("actuator_outadr", "actuator_outnum", "nout"),
    ("sensor_adr", "sensor_dim", "nsensordata"),
    ("ten_J_rowadr", "ten_J_rownnz", "nJten"),
    ("D_rowadr", "D_rownnz", "nD"),
    ("B_rowadr", "B_rownnz", "nB"),
)
"""The same of parts that come one after another and fill the array."""

_SENSOR = mujoco.mjtSensor
DIMENSIONS = {
    3: (
        "ACCELEROMETER VELOCIMETER GYRO FORCE TORQUE MAGNETOMETER BALLANGVEL FRAMEPOS FRAMEXAXIS "
        "FRAMEYAXIS FRAMEZAXIS FRAMELINVEL FRAMEANGVEL FRAMELINACC FRAMEANGACC SUBTREECOM "
        "SUBTREELINVEL SUBTREEANGMOM GEOMNORMAL"
    ),
    4: "BALLQUAT FRAMEQUAT",
    2: "CAMPROJECTION",
    6: "GEOMFROMTO",
}
"""Sensors that write several numbers, whatever their `sensor_dim` says."""

UNUSED = ("actuator_history", "sensor_history")
"""Zero where a model has no history, which others are refused for."""

_WIDTH = {
    int(mujoco.mjtJoint.mjJNT_FREE): (7, 6),
    int(mujoco.mjtJoint.mjJNT_BALL): (4, 3),
    int(mujoco.mjtJoint.mjJNT_SLIDE): (1, 1),
    int(mujoco.mjtJoint.mjJNT_HINGE): (1, 1),
}
"""Entries of qpos and qvel by the type of joint."""


def check_indices(model: mujoco.MjModel, refuse: Refuse) -> None:
    """Raises what `refuse` makes of a number that refers to nothing."""
    for size, names in INDICES.items():
        least, most = (-1 if size.endswith("none") else 0), getattr(model, size.split()[0])
        for name in names.split():
            values = getattr(model, name)
            _first(
                name, values, (values < least) | (values >= max(most, 1 + least)), refuse,
                f"{least} to {most - 1} exist",
            )  # fmt: skip
    for name, lengths, size in RANGES:
        begin, length = getattr(model, name), getattr(model, lengths)
        most = getattr(model, size)
        _first(lengths, length, length < 0, refuse, "a number of things is not negative")
        used = length > 0
        end = begin.astype(np.int64) + length
        wrong = used & ((begin < 0) | (end > most))
        _first(name, begin, wrong, refuse, f"with {lengths} it leaves the {most} of {size}")
    for name, lengths, size in FILLED:
        begin, length = getattr(model, name), getattr(model, lengths)
        _first(lengths, length, length < 0, refuse, "a number of things is not negative")
        end = np.append(begin[1:], getattr(model, size)).astype(np.int64)
        wrong = (end - begin != length) | (begin < 0)
        _first(name, begin, wrong, refuse, f"with {lengths} it does not lead to the next one")
    _check_sensors(model, refuse)
    _check_actuators(model, refuse)
    for name in UNUSED:
        values = getattr(model, name)
        _first(name, values, values != 0, refuse, "the model was compiled without history")
    parent = model.body_parentid
    wrong = (parent < 0) | (parent >= np.maximum(np.arange(model.nbody), 1))
    _first("body_parentid", parent, wrong, refuse, "a parent comes before its children")
    room = np.append(model.jnt_qposadr[1:], model.nq) - model.jnt_qposadr
    width = np.array([_WIDTH[int(kind)][0] for kind in model.jnt_type], np.int64)
    if width.sum() != model.nq:
        why = "the joint was compiled for another number of coordinates"
        _first("jnt_type", model.jnt_type, width != room, refuse, why)
    for name, given, expected in _structure(model):
        _first(name, given, given != expected, refuse, "the tree of bodies says otherwise")
    _check_fields(model, refuse)
    _check_volumes(model, refuse)
    _check_meshes(model, refuse)


def _first(
    name: str, values: Ints, wrong: NDArray[np.bool_], refuse: Refuse, why: str, begin: int = 0
) -> None:
    """Refuses the first of the values of a field, from its entry `begin` on, that is wrong."""
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise refuse(name, begin + at[0], f"is {values[at]}: {why}")


def _starts(number: Ints, none: int = -1) -> Ints:
    """Where parts of those lengths begin, one after another; `none` for the empty ones."""
    return np.where(number > 0, np.cumsum(number) - number, none)


def _structure(model: mujoco.MjModel) -> Iterator[tuple[str, Ints, Ints]]:
    """(field, as it is, as it follows from bodies' parents and joints' types and bodies)."""
    nbody, parent = model.nbody, model.body_parentid
    bodies = np.arange(nbody)
    positions, dofs = (
        np.array([_WIDTH[int(kind)][k] for kind in model.jnt_type], np.int64) for k in (0, 1)
    )
    joints = np.bincount(model.jnt_bodyid, minlength=nbody)
    geoms = np.bincount(model.geom_bodyid, minlength=nbody)
    number = np.bincount(model.jnt_bodyid, weights=dofs, minlength=nbody).astype(np.int64)
    yield "jnt_qposadr", model.jnt_qposadr, _starts(positions)
    yield "jnt_dofadr", model.jnt_dofadr, _starts(dofs)
    yield "jnt_bodyid", model.jnt_bodyid, np.sort(model.jnt_bodyid)
    yield "geom_bodyid", model.geom_bodyid, np.sort(model.geom_bodyid)
    yield "body_jntnum", model.body_jntnum, joints
    yield "body_jntadr", model.body_jntadr, _starts(joints)
    yield "body_geomnum", model.body_geomnum, geoms
    yield "body_geomadr", model.body_geomadr, _starts(geoms)
    yield "body_dofnum", model.body_dofnum, number
    yield "body_dofadr", model.body_dofadr, _starts(number)
    owner = np.repeat(model.jnt_bodyid, dofs)
    yield "dof_bodyid", model.dof_bodyid, owner
    yield "dof_jntid", model.dof_jntid, np.repeat(np.arange(model.njnt), dofs)
    root, weld = bodies.copy(), bodies.copy()
    last = np.full(nbody, -1)  # degree of freedom that a body hangs on
    tree, trees = np.full(nbody, -1), 0
    before = np.full(model.nv, -1)
    begins = _starts(number)
    for body in range(1, nbody):
        up = parent[body]
        root[body] = body if up == 0 else root[up]
        weld[body] = body if number[body] or model.body_mocapid[body] >= 0 else weld[up]
        last[body], tree[body] = last[up], tree[up]
        if number[body] and tree[body] < 0:
            tree[body], trees = trees, trees + 1
        if number[body]:
            own = np.arange(begins[body], begins[body] + number[body])
            before[own] = np.concatenate([[last[up]], own[:-1]])
            last[body] = own[-1]
    yield "body_rootid", model.body_rootid, root
    yield "body_weldid", model.body_weldid, weld
    yield "dof_parentid", model.dof_parentid, before
    yield "body_treeid", model.body_treeid, tree
    yield "dof_treeid", model.dof_treeid, tree[owner]
    if model.ntree == trees:
        grown = tree[tree >= 0]
        size, moves = np.bincount(grown, minlength=trees), np.bincount(tree[owner], minlength=trees)
        yield "tree_bodynum", model.tree_bodynum, size
        yield (
            "tree_bodyadr",
            model.tree_bodyadr,
            np.array([int(np.argmax(tree == k)) for k in range(trees)], np.int64),
        )
        yield "tree_dofnum", model.tree_dofnum, moves
        yield "tree_dofadr", model.tree_dofadr, _starts(moves)
    depth = np.zeros(model.nv, np.int64)
    columns: list[Ints] = []
    for dof in range(model.nv):
        alone = before[dof] < 0 or model.dof_simplenum[dof] > 0
        above = np.zeros(0, np.int64) if alone else columns[before[dof]]
        columns.append(np.append(above, dof))
        depth[dof] = len(columns[dof])
    yield "M_rownnz", model.M_rownnz, depth
    yield "M_rowadr", model.M_rowadr, np.cumsum(depth) - depth
    if model.nC == depth.sum():
        yield "M_colind", model.M_colind, np.concatenate([*columns, np.zeros(0, np.int64)])


def _check_sensors(model: mujoco.MjModel, refuse: Refuse) -> None:
    """Sensors have room for what they write."""
    for dimension, names in DIMENSIONS.items():
        kinds = [int(getattr(_SENSOR, f"mjSENS_{name}")) for name in names.split()]
        wrong = np.isin(model.sensor_type, kinds) & (model.sensor_dim < dimension)
        why = f"sensors of its type have {dimension} numbers"
        _first("sensor_dim", model.sensor_dim, wrong, refuse, why)
    _first("sensor_dim", model.sensor_dim, model.sensor_dim < 1, refuse, "a sensor has a number")


def _check_actuators(model: mujoco.MjModel, refuse: Refuse) -> None:
    """Those with dynamics have activations, those between sites have both; wrapping begins, ends
    and goes on at sites."""
    wrong = model.actuator_actnum < _activations(model)
    why = "its dynamics have more activations"
    _first("actuator_actnum", model.actuator_actnum, wrong, refuse, why)
    kind, second = model.actuator_trntype, model.actuator_trnid[:, 1]
    place, crank = int(mujoco.mjtTrn.mjTRN_SITE), int(mujoco.mjtTrn.mjTRN_SLIDERCRANK)
    wrong = (kind == place) & ((second < -1) | (second >= model.nsite))
    wrong |= (kind == crank) & ((second < 0) | (second >= model.nsite))
    why = f"its second site is one of {model.nsite}"
    _first("actuator_trnid", second, wrong, refuse, why)
    wrap = mujoco.mjtWrap
    site, joint, pulley = (
        int(k) for k in (wrap.mjWRAP_SITE, wrap.mjWRAP_JOINT, wrap.mjWRAP_PULLEY)
    )
    for begin, length in zip(model.tendon_adr, model.tendon_num, strict=True):
        kinds = model.wrap_type[begin : begin + length]
        if (kinds == joint).all():
            continue
        round_ = (kinds != site) & (kinds != pulley)
        beside = np.pad(kinds == site, 1)
        wrong = (kinds == joint) | (round_ & ~(beside[:-2] & beside[2:]))
        _first("wrap_type", kinds, wrong, refuse, "a tendon wraps between two sites", int(begin))


def _activations(model: mujoco.MjModel) -> NDArray[np.int64]:
    """(nu,) activations that the dynamics of actuators write: a motor or a servo has one for each
    part that its parameters switch on, and may have none."""
    dynamics, gain = model.actuator_dynprm, model.actuator_gainprm
    kind, parts = model.actuator_dyntype, mujoco.mjtDyn
    needed = (kind != int(parts.mjDYN_NONE)).astype(np.int64)
    # Slew, temperature, bristles, current and integral of a motor; slew and integral of a servo.
    motor = (dynamics[:, [7, 2, 5, 0]] > 0.0).sum(1) + (gain[:, 5] > 0.0)
    servo = (dynamics[:, 1] > 0.0).astype(np.int64) + (gain[:, 0] > 0.0)
    needed = np.where(kind == int(parts.mjDYN_DCMOTOR), motor, needed)
    return np.where(kind == int(parts.mjDYN_PID), servo, needed)


def _check_fields(model: mujoco.MjModel, refuse: Refuse) -> None:
    """Height fields and textures lie one after another, as large as they are."""
    for name, size, parts in (
        ("hfield_adr", model.nhfielddata, (model.hfield_nrow, model.hfield_ncol)),
        ("tex_adr", model.ntexdata, (model.tex_height, model.tex_width, model.tex_nchannel)),
    ):
        begin = getattr(model, name)
        extent = np.ones(len(begin), np.int64)
        for part in parts:
            extent *= np.maximum(part, 0)
        end = np.append(begin[1:], size)
        wrong = (begin < 0) | (begin + extent != end)
        _first(name, begin, wrong, refuse, "its extent does not fill what was compiled for it")


def _check_volumes(model: mujoco.MjModel, refuse: Refuse) -> None:
    """Hierarchies of bounding volumes: children come after their parents, leaves exist."""
    owners = [(model.body_bvhadr[i], model.body_bvhnum[i], model.ngeom) for i in range(model.nbody)]
    owners += [
        (model.mesh_bvhadr[i], model.mesh_bvhnum[i], model.mesh_facenum[i])
        for i in range(model.nmesh)
    ]
    for begin, length, leaves in owners:
        child = model.bvh_child[begin : begin + length]
        least = np.arange(length)[:, None]
        wrong = (child != -1) & ((child <= least) | (child >= length))
        _first("bvh_child", child, wrong, refuse, "a child comes after its parent", int(begin))
        leaf = model.bvh_nodeid[begin : begin + length]
        wrong = (leaf < -1) | (leaf >= leaves)
        _first("bvh_nodeid", leaf, wrong, refuse, f"-1 to {leaves - 1} exist", int(begin))
        wrong = (leaf < 0) & (child < 0).any(axis=1)
        _first("bvh_nodeid", leaf, wrong, refuse, "what has no children is a leaf", int(begin))


def _check_meshes(model: mujoco.MjModel, refuse: Refuse) -> None:
    """What meshes say of their own vertices and faces."""
    for mesh in range(model.nmesh):
        vertices, faces = int(model.mesh_vertnum[mesh]), int(model.mesh_facenum[mesh])
        for name, begin, length, least, most in (
            ("mesh_face", model.mesh_faceadr[mesh], faces, 0, vertices),
            ("mesh_facenormal", model.mesh_faceadr[mesh], faces, 0, model.mesh_normalnum[mesh]),
            ("mesh_polyvertadr", model.mesh_polyadr[mesh], model.mesh_polynum[mesh], 0,
             model.nmeshpolyvert),
            ("mesh_extrema", mesh, 1, -1, vertices),
        ):  # fmt: skip
            values = getattr(model, name)[begin : begin + length]
            wrong = (values < least) | (values >= most)
            _first(name, values, wrong, refuse, f"{least} to {most - 1} exist", int(begin))
        start = int(model.mesh_graphadr[mesh])
        if start >= 0 and not _is_graph(model.mesh_graph[start:], vertices):
            raise refuse("mesh_graphadr", mesh, "leads to no convex hull of the mesh (mesh_graph)")
    for name, most in (
        ("mesh_polyvert", int(model.mesh_vertnum.max(initial=0))),
        ("mesh_polymap", int(model.mesh_polynum.max(initial=0))),
    ):
        values = getattr(model, name)
        _first(name, values, (values < 0) | (values >= most), refuse, f"0 to {most - 1} exist")


def _is_graph(graph: Ints, vertices: int) -> bool:
    """Whether it begins with the hull of a mesh with so many vertices: how many of them it has, how
    many faces, where each one's edges begin, its number in the mesh, the edges' ends, each list
    ended by -1, and the faces."""
    if len(graph) < 2:
        return False
    own, faces = int(graph[0]), int(graph[1])
    edges = own + 3 * faces
    if own < 1 or faces < 1 or len(graph) < 2 + 2 * own + edges + 3 * faces:
        return False
    begin, number, ends, corners = np.split(
        graph[2 : 2 + 2 * own + edges + 3 * faces], np.cumsum([own, own, edges])
    )
    return bool(
        ((begin >= 0) & (begin < edges)).all()
        and ((number >= 0) & (number < vertices)).all()
        and ((ends >= -1) & (ends < own)).all()
        and ends[-1] == -1
        and ((corners >= 0) & (corners < vertices)).all()
    )
