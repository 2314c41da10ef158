"""What a kernel does with arguments that its caller holds."""

import gc
import weakref
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from stiction.kernels.compile import kernel

Array = NDArray[np.float64]


class Pair(NamedTuple):
    """Two arrays and a number."""

    first: Array
    second: Array
    number: int


class Nest(NamedTuple):
    """A pair within another tuple."""

    pair: Pair
    third: Array


@kernel
def return_a_part(nest: Nest) -> Array:
    pair = nest.pair
    return pair.second


@kernel
def return_parts_in_a_tuple(nest: Nest) -> tuple[Array, Array]:
    (first, _, _), third = nest
    return third, first


@kernel
def replace_an_argument(x: Array, n: int) -> Array:
    for k in range(n):
        x = x + k
    return x


@kernel
def choose(nest: Nest, which: int) -> Array:
    if which == 0:  # noqa: SIM108  (two assignments of one variable are what is tested)
        chosen = nest.pair.first
    else:
        chosen = np.zeros(3)
    for _ in range(4):
        chosen = chosen + nest.third[0]
    return chosen


@kernel
def swap(nest: Nest, n: int) -> float:
    a, b = nest.pair.first, nest.third
    for _ in range(n):
        a, b = b, a
    return a[0]


@kernel
def sum_of_a_call(nest: Nest) -> float:
    kept = replace_an_argument(nest.pair.first, 3)
    again = return_a_part(Nest(Pair(kept, kept, nest.pair.number), nest.third))
    return again.sum() + kept.sum()


def nest() -> Nest:
    return Nest(Pair(np.full(3, 1.0), np.full(3, 2.0), 5), np.full(3, 3.0))


def test_a_part_of_an_argument_outlives_what_it_was_part_of():
    for _ in range(50):
        got = return_a_part(nest())
        third, first = return_parts_in_a_tuple(nest())
        gc.collect()
        np.empty((40, 3)).fill(7.0)  # takes memory that was given back
        assert got.tolist() == [2.0] * 3
        assert (third.tolist(), first.tolist()) == ([3.0] * 3, [1.0] * 3)


def test_an_argument_is_let_go_when_all_have():
    held = nest()
    seen = weakref.ref(held.pair.second)
    got = return_a_part(held)
    del held
    assert seen() is not None or got.base is not None
    del got
    gc.collect()
    assert seen() is None


def test_a_variable_of_an_arguments_name_may_change():
    x = np.full(3, 1.0)
    assert replace_an_argument(x, 4).tolist() == [7.0] * 3
    assert replace_an_argument(x, 0).tolist() == [1.0] * 3
    assert x.tolist() == [1.0] * 3


@pytest.mark.parametrize(("which", "expected"), [(0, 13.0), (1, 12.0)])
def test_a_variable_is_what_was_last_assigned_to_it(which, expected):
    assert choose(nest(), which).tolist() == [expected] * 3


@pytest.mark.parametrize(("n", "expected"), [(0, 1.0), (3, 3.0), (4, 1.0)])
def test_two_parts_can_change_places(n, expected):
    assert swap(nest(), n) == expected


def test_what_a_kernel_made_itself_is_handed_on():
    for _ in range(50):
        assert sum_of_a_call(nest()) == 24.0
