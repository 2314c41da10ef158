"""What several tests read from MjData."""

import numpy as np


def state(data):
    """The bits of the state."""
    fields = ("qpos", "qvel", "act")
    return (
        b"".join(np.asarray(getattr(data, f)).tobytes() for f in fields)
        + np.float64(data.time).tobytes()
    )


def dense_jacobian(data, nv):
    """(nefc, nv) of the rows in data, kept sparse."""
    full = np.zeros((data.nefc, nv))
    for row in range(data.nefc):
        begin = data.efc_J_rowadr[row]
        columns = data.efc_J_colind[begin : begin + data.efc_J_rownnz[row]]
        full[row, columns] = data.efc_J[begin : begin + data.efc_J_rownnz[row]]
    return full
