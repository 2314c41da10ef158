"""The simulator's own copy of a model: same bodies, options and margins that suit the stepper.

The user's model is never written to. What is changed in it is followed at every call, but for
meshes and height fields, which need `OwnModel.refresh`. The copy has no textures.
"""

from __future__ import annotations

import copy
import ctypes
import mmap
import sys

import mujoco

from stiction.bridge.changes import Fields
from stiction.bridge.layout import check_layout, offset, size_of
from stiction.bridge.validation import check_model, check_options

_OPT = offset("mjModel", "opt")
_OPT_SIZE = size_of("mjOption")
_DISABLE, _ENABLE = mujoco.mjtDisableBit, mujoco.mjtEnableBit
_OFF = (
    int(_DISABLE.mjDSBL_ISLAND)  # nothing here reads MuJoCo's islands
    | int(_DISABLE.mjDSBL_WARMSTART)
    | int(_DISABLE.mjDSBL_EULERDAMP)  # damping is implicit in our own solve
)
_NEVER = int(_ENABLE.mjENBL_SLEEP) | int(_ENABLE.mjENBL_SPECULATIVE)


def adopt_options(opt: mujoco.MjOption) -> None:
    """Makes options those that the steps need."""
    opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    opt.jacobian = mujoco.mjtJacobian.mjJAC_SPARSE
    opt.solver = mujoco.mjtSolver.mjSOL_CG  # the one that prepares nothing
    opt.disableflags |= _OFF
    opt.enableflags &= ~_NEVER


def release_textures(model: mujoco.MjModel) -> None:
    """Gives the memory of a model's textures back to the system, where it takes it: they read as
    black from then on. No step looks at them, and they may be nearly all of a model."""
    advise = getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None
    if advise is None or model.ntexdata < mmap.PAGESIZE:
        return
    start = model.tex_data.ctypes.data
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (start + model.tex_data.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        advise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), mmap.MADV_DONTNEED)


class OwnModel:
    """A copy of `source` for stepping; see the module's head."""

    def __init__(self, source: mujoco.MjModel) -> None:
        self.source = source
        self.refresh()

    def refresh(self) -> None:
        """Copies the source anew, as it is now."""
        check_model(self.source)
        self.model = copy.copy(self.source)
        release_textures(self.model)
        check_layout(self.model, mujoco.MjData(self.model))
        self.address = int(self.model._address)
        self.fields = Fields(self.source)
        self._adopt()

    def follow(self) -> bool:
        """Takes over what was changed in the source, but for meshes and height fields; whether
        anything was. Where the change is refused nothing is taken over, and it is refused again."""
        if not self.fields.edited:
            return False
        if self.fields.options_only:
            check_options(self.source)
            self._copy_options()
        else:
            self.take_over()
        return True

    def take_over(self) -> None:
        """Takes over the source as it is, but for meshes and height fields."""
        check_model(self.source)
        self.fields.write_to(self.model)
        self._copy_options()

    def _copy_options(self) -> None:
        ctypes.memmove(self.address + _OPT, self.source._address + _OPT, _OPT_SIZE)
        self.fields.note()
        self._adopt()

    def _adopt(self) -> None:
        """Makes the copy's options and margins those that suit the stepper."""
        self.model.geom_gap[:] = 0.0
        self.model.pair_gap[:] = 0.0
        adopt_options(self.model.opt)

    @property
    def size(self) -> float:
        """Radius of the largest geom that can move [m]: what lengths are compared with. Not the
        model's extent, which grows with how large the floor is drawn."""
        m = self.model
        moving = m.geom_rbound[m.body_weldid[m.geom_bodyid] > 0]
        largest = float(moving.max(initial=0.0))
        return largest if largest > 0.0 else float(m.stat.extent)

    @property
    def smallest(self) -> float:
        """Radius of the smallest geom that can move and touch others [m], or 0 without any."""
        m = self.model
        touches = (m.geom_contype | m.geom_conaffinity) != 0
        radius = m.geom_rbound[touches & (m.body_weldid[m.geom_bodyid] > 0)]
        return min((float(each) for each in radius if each > 0.0), default=0.0)

    @property
    def has_adhesion(self) -> bool:
        """Whether geoms or actuators pull at contacts."""
        m = self.model
        return bool(m.flg_adhesion or (m.actuator_trntype == mujoco.mjtTrn.mjTRN_BODY).any())

    @property
    def has_derivatives(self) -> bool:
        """Whether smooth forces depend on velocity: damping, servos, fluids."""
        m = self.model
        flags = m.opt.disableflags
        damped = not flags & _DISABLE.mjDSBL_DAMPER and any(
            values.any()
            for values in (
                m.dof_damping, m.dof_dampingpoly, m.tendon_damping, m.tendon_dampingpoly
            )
        )  # fmt: skip
        driven = bool(m.nu) and not flags & _DISABLE.mjDSBL_ACTUATION
        fluid = bool(m.opt.density or m.opt.viscosity)
        return bool(damped or driven or fluid)
