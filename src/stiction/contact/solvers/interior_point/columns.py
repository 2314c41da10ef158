"""Columns of the interior point's state: a row for each block, all of it side by side.

One array, not one each: Numba compiles a function the faster the fewer arrays it takes, and what
belongs to a block lies in a few lines of the processor's cache.
"""

MU = 0
"""Friction coefficient."""
X, Y = 1, 4
"""Three each: impulse of a cone or line, and its slack."""
P, Q = 7, 10
"""Three each: slacks of intervals, of a block that is one or of rows 3 to 5."""
RHO = 13
"""Six: what is left of y = .. and u = p - q, by row."""
SLIP = 19
"""Two: direction of u_t."""
LAM = 21
"""Three: the scaled pair, W x = W^-1 y."""
SCALING = 24
"""Seven, of `cone.scale`."""
GOAL, GOAL_P, GOAL_Q = 31, 34, 37
"""Three each: right sides of the complementarities."""
DX, DY, DP, DQ = 40, 43, 46, 49
"""Three each: directions."""
DF = 52
"""Six: direction of the impulses, by row."""
COLUMNS = 58

TANGENT = 0
"""Of the array of paths (`continuation.py`): eighteen, the tangent, as DX to DF stand here."""
KEPT_F, KEPT_X, KEPT_Y, KEPT_P, KEPT_Q = 18, 24, 27, 30, 33
"""Six, and three each: the point that the path was at."""
RHO_START = 36
"""Six: RHO at its start, taken negative."""
PATH_COLUMNS = 42
