"""MuJoCo's module with steps of ours, for MuJoCo's own tests."""

import weakref

import mujoco

import stiction


class Steps:
    """`mujoco` with steps of ours."""

    def __init__(self):
        self._simulators = weakref.WeakKeyDictionary()

    def __getattr__(self, name):
        return getattr(mujoco, name)

    def mj_step(self, model, data):
        simulator = self._simulators.get(data)
        if simulator is None or simulator.model is not model:
            simulator = self._simulators[data] = stiction.Simulator(model)
        simulator.step(data)

    def mj_resetData(self, model, data):
        self._simulators.pop(data, None)
        mujoco.mj_resetData(model, data)

    def mj_resetDataKeyframe(self, model, data, key):
        self._simulators.pop(data, None)
        mujoco.mj_resetDataKeyframe(model, data, key)
