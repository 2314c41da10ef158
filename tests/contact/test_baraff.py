import numpy as np
import pytest

from stiction import lcp
from stiction.contact.certificate.certificate import certify
from stiction.contact.models.baraff import Baraff
from stiction.contact.problem.problem import ContactProblem
from stiction.errors import InvalidInput
from stiction.reproduce.families import SINGLE_BODIES, STACKS, grasp, peg, single_body, stack
from stiction.status import Status

G = 9.81


def on_plane(points, axes=((0, 0, 1), (1, 0, 0), (0, 1, 0))):
    """Normal and tangent rows of one free body that touches at `points` (nc, 3), seen from its
    centre; coordinates are its linear and angular velocity."""
    rows = [[np.concatenate([axis, np.cross(p, axis)]) for axis in axes] for p in points]
    rows = np.array(rows, dtype=float)
    return rows[:, 0], rows[:, 1:]


def square(height, half=0.05):
    return np.array([[x, y, -height] for x in (-half, half) for y in (-half, half)])


def block_mass(m=2.0, half=0.05):
    return np.diag([m] * 3 + [m * (2 * half) ** 2 / 6] * 3)


def planar(points, normals):
    """Rows of one planar body (x, y, angle) that touches at `points` with `normals` (nc, 2)."""
    rows = []
    for (x, y), n in zip(points, normals, strict=True):
        pair = []
        for d in (n, (n[1], -n[0])):
            pair.append([d[0], d[1], x * d[1] - y * d[0]])
        rows.append([*pair, [0.0, 0.0, 0.0]])
    rows = np.array(rows, dtype=float)
    return rows[:, 0], rows[:, 1:]


# --- The acceleration level -----------------------------------------------------------


@pytest.mark.parametrize("off", [0.99, 1.01])
@pytest.mark.parametrize("heading", [0.0, 0.7, 2.5])
def test_a_block_on_an_incline_sticks_below_the_friction_angle_only(off, heading):
    mu, m = 0.5, 2.0
    angle = np.arctan(off * mu)
    normal, tangent = on_plane(square(0.05))
    along = np.array([np.cos(heading), np.sin(heading)])
    force = m * G * np.array([*(np.sin(angle) * along), -np.cos(angle), 0, 0, 0])
    result = Baraff().forces(block_mass(m), np.zeros(6), force, normal, tangent, mu)
    assert result.status is Status.SOLVED
    assert result.residual < 1e-12
    total = result.friction_force.sum(axis=0)
    if off < 1.0:
        assert np.abs(result.acceleration).max() < 1e-13
        assert total == pytest.approx(-m * G * np.sin(angle) * along)
    else:
        expected = G * (np.sin(angle) - mu * np.cos(angle))
        assert result.acceleration[:2] == pytest.approx(expected * along)
        assert np.hypot(*total) == pytest.approx(mu * m * G * np.cos(angle))


@pytest.mark.parametrize("off", [0.99, 1.01])
def test_a_block_pressed_on_a_wall_holds_if_friction_carries_its_weight(off):
    mu, m = 0.6, 2.0
    press = off * m * G / mu
    points = np.array([[-0.05, y, z] for y in (-0.05, 0.05) for z in (-0.05, 0.05)])
    normal, tangent = on_plane(points, axes=((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    force = [-press, 0, -m * G, 0, 0, 0]
    # The weight acts at the contact's plane, so that no moment tips the block.
    force[4] = -m * G * 0.05
    result = Baraff().forces(block_mass(m), np.zeros(6), force, normal, tangent, mu)
    assert result.status is Status.SOLVED
    if off > 1.0:
        assert np.abs(result.acceleration).max() < 1e-12
        assert result.friction_force[:, 1].sum() == pytest.approx(m * G)
    else:
        assert result.acceleration[2] < -0.05
        assert result.acceleration[2] == pytest.approx(mu * press / m - G)


def test_a_four_legged_table_balances_its_load():
    a, b, m, at = 0.4, 0.3, 10.0, np.array([0.15, -0.1])
    legs = np.array([[x, y, -0.7] for x in (-a, a) for y in (-b, b)])
    normal, tangent = on_plane(legs)
    weight = m * G
    force = [0, 0, -weight, -at[1] * weight, at[0] * weight, 0]
    mass = np.diag([m, m, m, 1.0, 1.2, 2.0])
    result = Baraff().forces(mass, np.zeros(6), force, normal, tangent, 0.3)
    assert result.status is Status.SOLVED
    assert (result.normal_force >= 0.0).all()
    assert result.normal_force.sum() == pytest.approx(weight)
    assert result.normal_force @ legs[:, :2] == pytest.approx(weight * at)


def ladder(mu, m=5.0, length=2.0, angle=1.0):
    """A ladder against a frictionless wall: forces on (x, y, angle) at its middle."""
    half = 0.5 * length * np.array([np.cos(angle), np.sin(angle)])
    normal, tangent = planar([half * [-1, -1], half], [(0.0, 1.0), (-1.0, 0.0)])
    mass = np.diag([m, m, m * length**2 / 12])
    return mass, np.zeros(3), [0, -m * G, 0], normal, tangent, [mu, 0.0]


@pytest.mark.parametrize("off", [0.99, 1.01])
def test_a_ladder_stands_where_the_floor_is_rough_enough(off):
    angle = 1.0
    least = 0.5 / np.tan(angle)
    result = Baraff().forces(*ladder(off * least, angle=angle))
    assert result.status is Status.SOLVED
    if off > 1.0:
        assert np.abs(result.acceleration).max() < 1e-12
        assert result.normal_force == pytest.approx([5.0 * G, 5.0 * G * least])
    else:
        assert result.acceleration[1] < -1e-3


@pytest.mark.parametrize("off", [0.99, 1.01])
def test_two_bars_with_a_hinge_stand_by_friction_at_both_feet(off):
    # An inverted V of two bars of length 1, hinged at the top; each pushes its foot outward with
    # (m g / 2) / tan(angle) and presses with m g.
    angle, m = 1.1, 3.0
    mu = off * 0.5 / np.tan(angle)
    half = 0.5 * np.array([np.cos(angle), np.sin(angle)])
    left_n, left_t = planar([-half], [(0.0, 1.0)])
    right_n, right_t = planar([half * [1, -1]], [(0.0, 1.0)])
    zero = np.zeros((1, 3))
    normal = np.block([[left_n, zero], [zero, right_n]])
    tangent = np.concatenate(
        [
            np.concatenate([left_t, np.zeros((1, 2, 3))], axis=2),
            np.concatenate([np.zeros((1, 2, 3)), right_t], axis=2),
        ]
    )
    top, other = half, half * [-1, 1]
    joint = np.array(
        [[1, 0, -top[1], -1, 0, other[1]], [0, 1, top[0], 0, -1, -other[0]]], dtype=float
    )
    joint = np.concatenate([joint, joint[:1] + joint[1:]])  # a redundant row
    mass = np.diag([m, m, m / 12] * 2)
    force = [0, -m * G, 0] * 2
    result = Baraff().forces(
        mass, np.zeros(6), force, normal, tangent, mu, joint=joint, joint_rate=np.zeros(3)
    )
    assert result.status is Status.SOLVED
    assert joint @ result.acceleration == pytest.approx(0.0, abs=1e-12)
    if off > 1.0:
        assert np.abs(result.acceleration).max() < 1e-11
        assert result.normal_force == pytest.approx([m * G, m * G])
        assert np.abs(joint[:2].T @ result.joint_force[:2]).max() > 0.0
    else:
        assert result.acceleration[1] < -1e-3


@pytest.mark.parametrize("heading", np.linspace(0.0, 6.0, 7))
def test_dynamic_friction_slows_a_block_by_mu_g_against_its_velocity(heading):
    mu, m = 0.3, 2.0
    normal, tangent = on_plane(square(0.05))
    along = np.array([np.cos(heading), np.sin(heading), 0, 0, 0, 0])
    force = [0, 0, -m * G, 0, 0, 0]
    result = Baraff(static=10.0).forces(block_mass(m), 3.0 * along, force, normal, tangent, mu)
    assert result.status is Status.SOLVED
    assert result.sliding.all()
    assert result.acceleration == pytest.approx(-mu * G * along, abs=1e-12)


def test_the_rates_of_the_rows_are_part_of_the_accelerations():
    # A bead on the inside of a turning drum: its centripetal acceleration asks for a force.
    result = Baraff().forces(
        np.eye(3), [2.0, 0, 0], np.zeros(3), [[0, 0, 1.0]], [[[1.0, 0, 0], [0, 1.0, 0]]], 0.25,
        normal_rate=[-8.0], tangent_rate=[[0.0, 0.5]],
    )  # fmt: skip
    assert result.normal_force == pytest.approx([8.0])
    assert result.friction_force[0] == pytest.approx([-2.0, 0.0])
    still = Baraff().forces(
        np.eye(3), np.zeros(3), [0, 0, -10.0], [[0, 0, 1.0]], [[[1.0, 0, 0], [0, 1.0, 0]]], 0.25,
        tangent_rate=[[0.0, 0.5]],
    )  # fmt: skip
    assert still.friction_force[0] == pytest.approx([0.0, -0.5])
    assert still.residual < 1e-14


def test_static_and_dynamic_contacts_stand_side_by_side():
    # A box turns about one corner, which sticks, while the other three slide.
    m = 2.0
    points = square(0.05)
    normal, tangent = on_plane(points)
    spin = np.array([0.0, 0.0, 3.0])
    velocity = np.concatenate([-np.cross(spin, points[0]), spin])
    result = Baraff().forces(block_mass(m), velocity, [0, 0, -m * G, 0, 0, 0], normal, tangent, 0.4)
    assert result.sliding.tolist() == [False, True, True, True]
    assert result.status is Status.SOLVED
    assert result.acceleration[5] < 0.0


def test_where_all_contacts_slide_forces_exist_just_if_the_lcp_of_the_normals_has_a_solution():
    counts = {Status.SOLVED: 0, Status.RAY: 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        arrays = single_body("face on surface", rng)
        velocity, mu = rng.standard_normal(6), rng.uniform(0.2, 4.0)
        slip = arrays.tangent @ velocity
        along = slip / np.linalg.norm(slip, axis=1, keepdims=True)
        columns = arrays.normal - mu * np.einsum("ij,ijk->ik", along, arrays.tangent)
        inverse = np.linalg.inv(arrays.mass)
        reference = lcp.solve(
            arrays.normal @ inverse @ columns.T, arrays.normal @ inverse @ arrays.force
        )
        result = Baraff().forces(
            arrays.mass, velocity, arrays.force, arrays.normal, arrays.tangent, mu
        )
        assert (result.status is Status.SOLVED) == (reference.status is Status.SOLVED)
        assert (result.impulse is None) == (result.status is not Status.RAY)
        counts[result.status] += 1
    assert min(counts.values()) > 5


# --- Painleve -------------------------------------------------------------------------

ROD = np.array([[1.6, -1.2], [-1.2, 3.4]])


def rod(mu, side):
    """The rod of half-length 1, m = 1, tan(theta) = 2, its foot sliding toward `side` x."""
    foot = -np.array([1.0, 2.0]) / np.sqrt(5.0)
    normal, tangent = planar([foot], [(0.0, 1.0)])
    return np.diag([1, 1, 1 / 3]), [side, 0, 0], [0, -G, 0], normal, tangent, mu


def test_the_painleve_rod_has_the_contact_space_of_the_literature():
    mass, _, _, normal, tangent, _ = rod(1.0, 1.0)
    rows = np.concatenate([normal, tangent[:, 0]])
    assert rows @ np.linalg.inv(mass) @ rows.T == pytest.approx(ROD)


def test_the_painleve_rod_is_pressed_hard_just_before_it_jams():
    result = Baraff().forces(*rod(1.3, -1.0))
    assert result.status is Status.SOLVED
    assert result.normal_force == pytest.approx([245.25])
    assert result.friction_force[0] == pytest.approx([1.3 * 245.25, 0.0])


@pytest.mark.parametrize("mu", [4 / 3, 1.01 * 4 / 3, 2.0, 50.0])
def test_a_jamming_rod_gets_an_impulse_direction_and_no_number(mu):
    result = Baraff().forces(*rod(mu, -1.0))
    assert result.status is Status.RAY
    assert np.isnan(result.acceleration).all()
    assert np.isnan(result.normal_force).all()
    assert result.residual == np.inf
    assert result.impulse.normal == pytest.approx([1.0])
    assert result.impulse.tangent[0] == pytest.approx([mu, 0.0])
    # No force along it ever parts the contact.
    assert ROD[0] @ [1.0, mu] <= 1e-12


def test_the_rod_slides_the_other_way_with_any_friction():
    for mu in (1.3, 2.0, 50.0):
        result = Baraff().forces(*rod(mu, 1.0))
        assert result.status is Status.SOLVED
        assert result.normal_force == pytest.approx([G / (1.6 + 1.2 * mu)])


def test_an_impulse_stops_the_jamming_rod():
    problem = ContactProblem.from_delassus(
        ROD, [-G * 0.01, -1.0], friction=2.0, dimension=2, dt=0.01
    )
    solution = Baraff().solve(problem)
    assert solution.status is Status.SOLVED
    assert solution.normal == pytest.approx([0.383385])
    assert solution.tangent[0, 0] == pytest.approx(0.42943)
    assert np.abs(solution.velocity).max() < 1e-14


# --- The velocity level ---------------------------------------------------------------


def problems(count=20):
    for kind in SINGLE_BODIES:
        yield kind, [single_body(kind, np.random.default_rng(s)) for s in range(count)]
    for size in STACKS:
        yield f"stack {size}", [stack(*size, np.random.default_rng(s)) for s in range(count)]
    yield "peg 32", [peg(32, np.random.default_rng(s)) for s in range(count)]
    yield "grasp", [grasp(2, np.random.default_rng(s), mu=0.3) for s in range(count)]


def test_families_are_solved_and_no_wrong_answer_is_called_solved():
    tried = passed = 0
    for name, family in problems():
        here = 0
        for arrays in family:
            problem = arrays.problem()
            solution = Baraff().solve(problem)
            again = certify(
                problem, solution.velocity, solution.normal, solution.tangent, law="coulomb"
            )
            assert again.passed == (solution.status is Status.SOLVED), name
            here += again.passed
        assert here >= 19, name
        tried += len(family)
        passed += here
    assert passed >= tried - 1  # of 440, all at the time of writing


def test_it_agrees_with_itself_from_a_warm_start():
    arrays = stack(3, 16, np.random.default_rng(2))
    first = Baraff().solve(arrays.problem())
    again = Baraff().solve(arrays.problem(), first)
    assert again.status is Status.SOLVED
    assert again.pivots == 0
    assert again.velocity == pytest.approx(first.velocity, abs=1e-10)


@pytest.mark.parametrize("copies", [2, 100])
def test_contacts_given_many_times_change_nothing(copies):
    arrays = single_body("face on surface", np.random.default_rng(5))
    once = Baraff().solve(arrays.problem())
    many = arrays.problem(
        bound=0.0,
        normal=np.tile(arrays.normal, (copies, 1)),
        tangent=np.tile(arrays.tangent, (copies, 1, 1)),
        friction=np.tile(arrays.friction, copies),
    )
    solution = Baraff().solve(many)
    assert solution.status is Status.SOLVED
    assert solution.velocity == pytest.approx(once.velocity, abs=1e-9)


def test_joints_and_dry_friction_in_them_are_kept():
    # A block on the floor, held in x by a joint, against dry friction in y.
    def problem(limit):
        return ContactProblem(
            mass=2.0 * np.eye(3),
            velocity=[0.5, 0.3, 0.0],
            force=[0, 0, -2.0 * G],
            dt=0.01,
            normal=[[0, 0, 1]],
            tangent=[[[1, 0, 0], [0, 1, 0]]],
            friction=0.1,
            joint=[[1, 0, 0], [2, 0, 0]],
            box=[[0, 1, 0]],
            box_limit=limit,
        )

    slides = Baraff().solve(problem(0.1))
    assert slides.status is Status.SOLVED
    assert slides.box == pytest.approx([-0.1])
    assert slides.velocity == pytest.approx([0, 0.3 - 0.05 - 0.1 * G * 0.01, 0], abs=1e-12)
    held = Baraff().solve(problem(5.0))
    assert held.status is Status.SOLVED
    assert held.velocity == pytest.approx(np.zeros(3), abs=1e-12)


def test_the_static_coefficient_overrides_that_of_the_problem():
    problem = ContactProblem(
        mass=np.eye(3),
        velocity=[1.0, 0, 0],
        force=[0, 0, -G],
        dt=0.01,
        normal=[[0, 0, 1]],
        tangent=[[[1, 0, 0], [0, 1, 0]]],
        friction=0.5,
    )
    solution = Baraff(static=0.2).solve(problem)
    assert solution.status is Status.SOLVED
    assert solution.velocity[0] == pytest.approx(1.0 - 0.2 * G * 0.01)


def test_bad_input_is_named():
    mass, velocity, force, normal, tangent, _ = rod(1.0, 1.0)
    with pytest.raises(InvalidInput, match="friction"):
        Baraff().forces(mass, velocity, force, normal, tangent, -1.0)
    with pytest.raises(InvalidInput, match="tangent_rate"):
        Baraff().forces(mass, velocity, force, normal, tangent, 1.0, tangent_rate=[1.0])
    with pytest.raises(InvalidInput, match="sliding"):
        Baraff().forces(mass, np.zeros(3), force, normal, tangent, 1.0, sliding=[True])
    with pytest.raises(InvalidInput, match="static"):
        Baraff(static=[-1.0]).forces(mass, velocity, force, normal, tangent, 1.0)


def test_no_contact_at_all_is_free_motion():
    result = Baraff().forces(np.eye(2), [1.0, 0.0], [3.0, 4.0], np.zeros((0, 2)))
    assert result.status is Status.SOLVED
    assert result.acceleration == pytest.approx([3.0, 4.0])
