"""What every answer is accepted by: the one tolerance that all solvers and certificates share.

Kernels take it as an argument. What a single algorithm needs stands in its own file.
"""

RESIDUAL = 1e-8
"""Largest scaled residual that is called solved [1].

Half of a double's sixteen digits are left to rounding. Tighter, and correct answers of
ill-conditioned problems are refused; looser, and a wrong active set whose error is small
(a contact that slides a little where it should stick) passes for a solution.
"""
