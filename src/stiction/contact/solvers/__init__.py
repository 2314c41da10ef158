"""One folder per algorithm; `table.py` has those that take a scaled problem, as `attempt.py` says.

`coulomb`, `conic`, `baraff`, `drumwright` and `shell` work on dense arrays. What works on blocks
shares the memory and the linear system of `blocks`: `proximal`, `interior_point` and `stiffening`
solve an island, and `islands` says which of them is tried when.
"""
