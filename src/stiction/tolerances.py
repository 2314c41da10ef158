"""Every tolerance, named, with its unit, its reason, and what breaks without it.

Kernels take tolerances as arguments: these are the defaults their callers pass.
"""

RESIDUAL = 1e-8
"""Largest scaled residual that is called solved [1].

Half of a double's sixteen digits are left to rounding. Tighter, and correct answers of
ill-conditioned problems are refused; looser, and a wrong active set whose error is small
(a contact that slides a little where it should stick) passes for a solution.
"""
