import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stiction.contact.certificate.certificate import certify
from stiction.contact.certificate.grading import allocate, grade_blocks, set_scales
from stiction.contact.certificate.laws import Entry, Law
from stiction.contact.problem.blocks import row_velocities
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.islands.arrays import fill
from stiction.errors import InvalidInput

G = 9.81


def block(v, mu=0.5, m=2.0, h=0.01, **extra):
    """A block without rotation on the floor z = 0, moving at v (3,)."""
    return ContactProblem(
        mass=m * np.eye(3),
        velocity=v,
        force=[0, 0, -m * G],
        dt=h,
        normal=[[0, 0, 1]],
        tangent=[[[1, 0, 0], [0, 1, 0]]],
        friction=mu,
        **extra,
    )


def sliding(angle=0.3, speed=1.0, mu=0.5, m=2.0, h=0.01):
    """The block sliding, and its exact answer (velocity, normal, tangent)."""
    along = np.array([np.cos(angle), np.sin(angle)])
    problem = block([*(speed * along), 0.0], mu, m, h)
    left = speed - mu * G * h
    return problem, np.array([*(left * along), 0.0]), [m * G * h], [-mu * m * G * h * along]


def sticking(m=2.0, h=0.01):
    """The block slow enough to stop within the step, and its exact answer."""
    v = np.array([0.02, -0.01, 0.0])
    return block(v, 0.5, m, h), np.zeros(3), [m * G * h], [-m * v[:2]]


def test_a_block_that_slides_is_certified():
    for angle in np.linspace(0.0, 6.0, 13):
        certificate = certify(*sliding(angle))
        assert certificate.passed
        assert certificate.worst < 1e-14


def test_a_block_that_sticks_is_certified():
    assert certify(*sticking()).worst < 1e-15


def test_a_block_that_lifts_off_is_certified():
    problem = block([1.0, 0.0, 1.0])
    assert certify(problem, problem.free_velocity, [0.0]).worst < 1e-15


def wrong_answers():
    problem, v, f_n, f_t = sliding()
    m, h = 2.0, 0.01
    weight = m * G * h
    up, ahead = np.array([0, 0, 1.0]), np.array([1.0, 0, 0])
    along = np.array([np.cos(0.3), np.sin(0.3)])
    yield "sinking", problem, problem.free_velocity, [0.0], [[0, 0]], Entry.PENETRATION
    rising = block([0.0, 0.0, 1.0])
    yield "pulling", rising, np.zeros(3), [weight - m], [[0, 0]], Entry.ADHESION
    yield "pushing off", problem, v + 0.1 * up, [f_n[0] + 0.1 * m], f_t, Entry.COMPLEMENTARITY
    strong = 1.5 * np.array(f_t)
    v_strong = np.array([*(along * (1.0 - 1.5 * 0.5 * G * h)), 0.0])
    yield "outside the cone", problem, v_strong, f_n, strong, Entry.CONE
    v_driven = np.array([*(along * (1.0 + 0.5 * G * h)), 0.0])
    yield "along the motion", problem, v_driven, f_n, -np.array(f_t), Entry.FRICTION
    v_weak = np.array([*(along * (1.0 - 0.3 * G * h)), 0.0])
    yield "too little while sliding", problem, v_weak, f_n, 0.6 * np.array(f_t), Entry.FRICTION
    turned = np.array([-along[1], along[0]])
    v_turned = np.array([*(along + turned * 0.5 * G * h), 0.0])
    yield "across the motion", problem, v_turned, f_n, [turned * 0.5 * weight], Entry.FRICTION
    stuck = sticking()
    creep = np.array([1e-6, 0.0, 0.0])
    yield "creep", stuck[0], creep, stuck[2], stuck[3] + m * creep[:2], Entry.FRICTION
    yield "unbalanced", problem, v + 1e-6 * ahead, f_n, f_t, Entry.DYNAMICS


@pytest.mark.parametrize("case", list(wrong_answers()), ids=lambda case: case[0])
def test_each_kind_of_wrong_answer_is_rejected_by_its_law(case):
    _, problem, v, f_n, f_t, entry = case
    certificate = certify(problem, v, f_n, f_t)
    assert not certificate.passed
    assert certificate.scaled[entry] > 1e-7
    assert certificate.value[entry] > 0.0
    if entry != Entry.DYNAMICS:  # the answers obey mechanics, so nothing else gives them away
        assert certificate.scaled[Entry.DYNAMICS] < 1e-14


@pytest.mark.parametrize("size", [1e-4, 1e-6])
def test_a_violation_is_seen_in_proportion(size):
    problem, v, f_n, f_t = sliding()
    f_t = np.array(f_t)
    certificate = certify(problem, v, f_n, (1 + size) * f_t)
    assert certificate.cone == pytest.approx(size * np.hypot(*f_t[0]), rel=1e-6)
    certificate = certify(problem, v - [0, 0, size], f_n, f_t)
    assert certificate.penetration == pytest.approx(size)
    assert 0.1 * size < certificate.scaled[Entry.PENETRATION] < 2 * size


def test_not_a_number_is_infinitely_wrong():
    problem, v, f_n, f_t = sliding()
    nan, inf = np.nan, np.inf
    answers = [(v * nan, f_n, f_t), (v, [nan], f_t), (v, f_n, [[0, nan]]), (v, [inf], f_t)]
    for answer in answers:
        certificate = certify(problem, *answer)
        assert certificate.worst == inf
        assert not certificate.passed


def test_rest_is_certified_as_rest_and_nothing_else():
    problem = ContactProblem(
        mass=np.eye(3),
        velocity=np.zeros(3),
        force=np.zeros(3),
        dt=0.01,
        normal=[[0, 0, 1]],
        tangent=[[[1, 0, 0], [0, 1, 0]]],
        friction=0.5,
    )
    assert certify(problem, np.zeros(3), [0.0]).worst == 0.0
    assert certify(problem, [0, 0, 1e-12], [1e-12]).worst == np.inf


def pendulum(rate, limit):
    """A hinge held by dry friction and a joint row that must not open."""
    return ContactProblem(
        mass=np.diag([1.0, 3.0]),
        velocity=[rate, 0.2],
        force=[0, 0],
        dt=0.01,
        joint=[[0, 1]],
        joint_target=0.1,
        box=[[1, 0]],
        box_limit=limit,
    )


def test_joints_and_dry_friction_are_certified():
    held = certify(pendulum(0.5, 0.8), [0.0, 0.1], [], joint=[-0.3], box=[-0.5])
    dragged = certify(pendulum(0.5, 0.2), [0.3, 0.1], [], joint=[-0.3], box=[-0.2])
    welded = certify(pendulum(0.5, np.inf), [0.0, 0.1], [], joint=[-0.3], box=[-0.5])
    for certificate in (held, dragged, welded):
        assert certificate.worst < 1e-14


def test_wrong_joints_and_dry_friction_are_rejected():
    opened = certify(pendulum(0.5, 0.8), [0.0, 0.2], [], joint=[0.0], box=[-0.5])
    assert opened.worst_entry == Entry.JOINT
    assert opened.joint == pytest.approx(0.1)
    beyond = certify(pendulum(0.5, 0.2), [0.0, 0.1], [], joint=[-0.3], box=[-0.5])
    assert beyond.box_limit == pytest.approx(0.3)
    assert beyond.scaled[Entry.BOX_LIMIT] > 0.1
    driven = certify(pendulum(0.5, 0.2), [0.7, 0.1], [], joint=[-0.3], box=[0.2])
    weak = certify(pendulum(0.5, 0.2), [0.4, 0.1], [], joint=[-0.3], box=[-0.1])
    creeping = certify(pendulum(0.5, np.inf), [0.1, 0.1], [], joint=[-0.3], box=[-0.4])
    for certificate in (driven, weak, creeping):
        assert certificate.worst_entry == Entry.BOX_FRICTION
        assert certificate.worst > 0.1


def spinning(spin, ratio=0.02, limit=0.0, m=2.0, h=0.01):
    """A disc of unit inertia on the floor, spinning about the normal; dofs (height, angle)."""
    return ContactProblem(
        mass=np.diag([m, 1.0]),
        velocity=[0.0, spin],
        force=[-m * G, 0.0],
        dt=h,
        normal=[[1, 0]],
        box=[[0, 1]],
        box_limit=limit,
        box_contact=[0],
        box_friction=ratio,
    )


def test_torsional_friction_is_certified_against_the_normal_impulse():
    weight = 2.0 * G * 0.01
    edge = 0.02 * weight
    spun = spinning(1.0)
    assert certify(spun, [0, 1.0 - edge], [weight], box=[-edge]).worst < 1e-15
    stopped = spinning(0.9 * edge)
    assert certify(stopped, [0, 0], [weight], box=[-0.9 * edge]).worst < 1e-14
    helped = spinning(1.0, limit=0.1)
    assert certify(helped, [0, 0.9 - edge], [weight], box=[-0.1 - edge]).worst < 1e-14


def test_wrong_torsional_friction_is_rejected():
    weight = 2.0 * G * 0.01
    edge = 0.02 * weight
    spun = spinning(1.0)
    beyond = certify(spun, [0, 1 - 1.01 * edge], [weight], box=[-1.01 * edge])
    assert beyond.box_limit == pytest.approx(0.01 * edge)
    assert not beyond.passed
    weak = certify(spun, [0, 1 - 0.99 * edge], [weight], box=[-0.99 * edge])
    driven = certify(spun, [0, 1 + edge], [weight], box=[edge])
    for certificate in (weak, driven):
        assert certificate.worst_entry == Entry.BOX_FRICTION
        assert not certificate.passed
    rising = ContactProblem(**{**spun.arrays._asdict(), "velocity": [1.0, 1.0], "dt": 0.01})
    v = [1.0 - 0.01 * G, 1.0]
    assert certify(rising, v, [0.0], box=[0.0]).worst < 1e-15
    in_the_air = certify(rising, [v[0], 1.0 - edge], [0.0], box=[-edge])
    assert in_the_air.worst_entry in (Entry.BOX_LIMIT, Entry.BOX_FRICTION)
    pulled = certify(rising, [0.0, 1.0], [weight - 2.0], box=[edge])
    assert pulled.box_limit == pytest.approx(edge)  # a negative impulse allows none


@pytest.mark.parametrize("law", ["frictionless", "no-slip", "viscous", "convex"])
def test_torsional_friction_belongs_to_coulombs_law(law):
    weight = 2.0 * G * 0.01
    spun, helped = spinning(1.0), spinning(1.0, limit=0.1)
    assert certify(spun, [0, 1], [weight], box=[0.0], law=law).worst < 1e-15
    assert certify(helped, [0, 0.9], [weight], box=[-0.1], law=law).worst < 1e-15
    edge = 0.02 * weight
    refused = certify(spun, [0, 1 - edge], [weight], box=[-edge], law=law)
    assert refused.box_limit == pytest.approx(edge)
    assert not refused.passed


def test_frictionless_allows_no_tangential_impulse():
    problem, v, f_n, f_t = sliding()
    free = problem.velocity_from(f_n)
    assert certify(problem, free, f_n, law="frictionless").passed
    assert certify(problem, v, f_n, f_t, law="frictionless").worst_entry == Entry.CONE


def test_a_contact_without_friction_is_frictionless_under_coulomb_and_no_slip():
    problem = block([1.0, 0, 0], mu=0.0)
    f_n = [2.0 * G * 0.01]
    assert certify(problem, problem.velocity_from(f_n), f_n).passed
    assert certify(problem, problem.velocity_from(f_n), f_n, law="no-slip").passed
    f_t = [[-0.1, 0.0]]
    assert not certify(problem, problem.velocity_from(f_n, f_t), f_n, f_t).passed


def test_viscous_friction_is_implicit():
    m, h, mu_v = 2.0, 0.01, 30.0
    problem = block([1.0, 0.0, 0.0], m=m, h=h, viscosity=mu_v)
    left = m / (m + h * mu_v)
    f_n, f_t = [m * G * h], [[-h * mu_v * left, 0.0]]
    assert certify(problem, [left, 0, 0], f_n, f_t, law="viscous").worst < 1e-15
    explicit = [[-h * mu_v, 0.0]]
    wrong = certify(problem, problem.velocity_from(f_n, explicit), f_n, explicit, law="viscous")
    assert wrong.worst_entry == Entry.FRICTION
    assert "drag" in str(wrong)


def test_no_slip_holds_what_touches_and_leaves_what_is_ahead():
    m, h = 2.0, 0.01
    problem = block([1.0, 0.0, 0.0], m=m, h=h)
    f_n, f_t = [m * G * h], [[-m, 0.0]]
    assert certify(problem, np.zeros(3), f_n, f_t, law="no-slip").worst < 1e-15
    slips = certify(problem, problem.velocity_from(f_n), f_n, law="no-slip")
    assert slips.worst_entry == Entry.FRICTION
    assert slips.friction == pytest.approx(1.0)
    ahead = block([1.0, 0.0, 0.0], m=m, h=h, bound=-0.5)
    assert certify(ahead, ahead.free_velocity, [0.0], law="no-slip").passed
    held = ahead.velocity_from([0.0], f_t)
    assert certify(ahead, held, [0.0], f_t, law="no-slip").worst_entry == Entry.CONE


def test_convex_asks_for_the_cone_only():
    problem, _, f_n, f_t = sliding()
    weak = 0.5 * np.array(f_t)
    lifted = [1.1 * f_n[0]]
    assert certify(problem, problem.velocity_from(lifted, weak), lifted, weak, law="convex").passed
    strong = 2 * np.array(f_t)
    beyond = certify(problem, problem.velocity_from(f_n, strong), f_n, strong, law="convex")
    assert beyond.worst_entry == Entry.CONE


ROD = np.array([[1.6, -1.2], [-1.2, 3.4]])
"""Painleve's rod, tan(theta) = 2, in contact space."""


def test_the_rod_that_jams_is_certified():
    problem = ContactProblem.from_delassus(ROD, [-G * 0.01, -1.0], friction=1.3, dimension=2)
    f = np.linalg.solve(ROD, [G * 0.01, 1.0])
    assert f == pytest.approx([0.383385, 0.42943], abs=1e-5)
    assert certify(problem, [0.0, 0.0], f[:1], [[f[1], 0.0]]).worst < 1e-14


@pytest.mark.parametrize("mu", [10.0, 1e3, 1e6, 1e9, 1e12])
def test_lynch_and_mason_slip_under_any_large_friction(mu):
    # Sliding: f_t = -mu f_n, u_n = 0. Rounding in f_n must not count mu times.
    f_n = 0.1 / (1.6 + 1.2 * mu)
    f = np.array([f_n, -mu * f_n])
    problem = ContactProblem.from_delassus(ROD, [-0.1, 1.0], friction=mu, dimension=2)
    u = ROD @ f + [-0.1, 1.0]
    assert certify(problem, u, f[:1], [[f[1], 0.0]]).worst < 1e-14
    assert certify(problem, u, f[:1] + 1e-15, [[f[1], 0.0]]).worst < 1e-12


def test_the_two_readings_of_infinite_friction_differ():
    problem = ContactProblem.from_delassus(ROD, [-0.1, 1.0], friction=np.inf, dimension=2)
    f_coulomb, f_held = -1 / 12, -1 / 3.4
    slips = ROD[:, 1] * f_coulomb + [-0.1, 1.0]
    opens = ROD[:, 1] * f_held + [-0.1, 1.0]
    assert slips == pytest.approx([0.0, 0.716667], abs=1e-6)
    assert opens == pytest.approx([0.252941, 0.0], abs=1e-6)
    assert certify(problem, slips, [0.0], [[f_coulomb, 0.0]]).passed
    assert not certify(problem, opens, [0.0], [[f_held, 0.0]]).passed
    assert certify(problem, opens, [0.0], [[f_held, 0.0]], law="no-slip").passed
    assert not certify(problem, slips, [0.0], [[f_coulomb, 0.0]], law="no-slip").passed


def test_infinite_friction_holds_what_is_pressed():
    problem = block([1.0, 0.5, 0.0], mu=np.inf)
    f_n, f_t = [2.0 * G * 0.01], [[-2.0, -1.0]]
    assert certify(problem, np.zeros(3), f_n, f_t).worst < 1e-15
    weak = [[-1.9, -1.0]]
    assert not certify(problem, problem.velocity_from(f_n, weak), f_n, weak).passed


finite = st.floats(-3.0, 3.0, allow_subnormal=False)


@settings(max_examples=300, deadline=None)
@given(finite, finite, st.floats(0.01, 3.0), st.sampled_from([None, 2, 3, 4, 5, 8, 16]))
def test_every_pair_that_dissipates_most_is_certified_and_no_other(px, py, radius, facets):
    """Friction and slip of all kinds: the nearest point of the cone's section, and the rest."""
    target = np.array([px, py])
    f_t = nearest_point(target, radius, facets)
    slip = f_t - target  # against the section's outward normal: maximum dissipation
    f = np.array([radius, *f_t])
    problem = ContactProblem.from_delassus(np.eye(3), [-radius, *(slip - f_t)], friction=1.0)
    u = np.array([0.0, *slip])
    certificate = certify(problem, u, f[:1], [f_t], facets=facets)
    assert certificate.worst < 1e-11
    assert certificate.friction < 1e-11
    if np.hypot(*slip) > 1e-2 and facets != 2:
        turned = np.array([-slip[1], slip[0]])
        assert not certify(problem, [0.0, *(-slip)], f[:1], [f_t], facets=facets).passed
        if facets is None:
            assert not certify(problem, [0.0, *turned], f[:1], [f_t]).passed


def nearest_point(target, radius, facets):
    """Nearest point of disc or regular polygon, the long way round: all edges."""
    if facets is None:
        return target * min(1.0, radius / max(np.hypot(*target), 1e-300))
    angles = 2 * np.pi * np.arange(facets) / facets
    corners = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if facets == 2:
        return np.array([np.clip(target[0], -radius, radius), 0.0])
    middles = angles + np.pi / facets
    outward = np.stack([np.cos(middles), np.sin(middles)], axis=1)
    if (outward @ target <= radius * np.cos(np.pi / facets)).all():
        return target
    candidates = []
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = np.clip((target - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        candidates.append(a + along * (b - a))
    return min(candidates, key=lambda point: float(np.hypot(*(point - target))))


def test_polygon_and_circle_are_told_apart():
    problem, v, f_n, f_t = sliding(angle=np.pi / 8)
    assert certify(problem, v, f_n, f_t).passed
    assert not certify(problem, v, f_n, f_t, facets=4).passed
    corner = [[-0.5 * f_n[0], 0.0]]  # what four facets answer to a slip near tangent 1
    v = problem.velocity_from(f_n, corner)
    assert certify(problem, v, f_n, corner, facets=4).worst < 1e-14
    assert not certify(problem, v, f_n, corner).passed


def test_a_stack_of_extreme_masses_is_certified_and_its_light_part_watched():
    h = 1e-3
    for ratio in (1e3, 1e6):
        masses = np.array([1.0, ratio])
        problem = ContactProblem(
            mass=np.diag(masses),
            velocity=np.zeros(2),
            force=-G * masses,
            dt=h,
            normal=[[1, 0], [-1, 1]],
        )
        f = G * h * np.array([1.0 + ratio, ratio])
        assert certify(problem, np.zeros(2), f).worst < 1e-9
        creep = np.array([-1e-6 * G * h, 0.0])
        assert not certify(problem, creep, f + creep).passed


def test_a_gram_is_watched_beside_a_ton():
    masses = np.array([1e3, 1e-3])
    problem = ContactProblem(
        mass=np.diag(masses), velocity=[-10.0, -1e-3], force=[0, 0], dt=1e-3, normal=np.eye(2)
    )
    f = [1e4, 1e-6]
    assert certify(problem, [0, 0], f).passed
    off = certify(problem, [0.0, -1e-8], [1e4, 1e-6 - 1e-11])
    assert not off.passed
    assert off.where[off.worst_entry] == 1


def test_a_body_at_rest_that_others_run_into_has_their_scale():
    """A row of ten at rest but for noise, hit at the end: held to rounding is held."""
    n = 10
    rows = np.eye(n) - np.eye(n, k=-1)
    velocity = np.full(n, 1e-17)
    velocity[-1] = -1.0
    problem = ContactProblem(
        mass=np.eye(n), velocity=velocity, force=np.zeros(n), dt=1e-3, normal=rows
    )
    f = -np.cumsum(velocity[::-1])[::-1]
    noise = 1e-15 * np.random.default_rng(0).normal(size=n)
    assert certify(problem, noise, f).worst < 1e-12


def test_a_delassus_problem_is_graded_like_its_mass_problem():
    problem, v, f_n, f_t = sliding()
    W, free = np.diag([0.5, 0.5, 0.5]), [problem.free_velocity[2], *problem.free_velocity[:2]]
    contact_space = ContactProblem.from_delassus(W, free, friction=0.5)
    u = [v[2], v[0], v[1]]
    assert certify(contact_space, u, f_n, f_t).worst < 1e-14
    for weak in (0.9, 1.1):
        f_weak = weak * np.array(f_t)
        v_weak = problem.velocity_from(f_n, f_weak)
        theirs = certify(problem, v_weak, f_n, f_weak)
        ours = certify(contact_space, [v_weak[2], v_weak[0], v_weak[1]], f_n, f_weak)
        assert ours.worst_entry == theirs.worst_entry
        assert 0.3 < ours.worst / theirs.worst < 3.0
    unbalanced = certify(contact_space, [0.0, u[1] + 1e-6, u[2]], f_n, f_t)
    assert unbalanced.worst_entry == Entry.DYNAMICS


def test_a_gap_ahead_does_not_dull_the_certificate():
    """A contact far ahead has a bound of -10 m/s, and nothing moves at that speed."""
    arrays = {
        "mass": np.eye(2),
        "velocity": np.zeros(2),
        "force": [0.0, -G],
        "dt": 1e-3,
        "normal": [[0, 1], [0, 1]],
    }
    problem = ContactProblem(**arrays, bound=[0.0, -10.0])
    f = [G * 1e-3, 0.0]
    assert certify(problem, [0, 0], f).passed
    assert not certify(problem, [0, -1e-9], [f[0] - 1e-9, 0.0]).passed


def test_the_table_names_law_verdict_and_place():
    problem, v, f_n, f_t = sliding()
    text = str(certify(problem, v, f_n, f_t))
    assert text.startswith("coulomb certificate passed")
    failed = str(certify(problem, problem.free_velocity, [0.0]))
    assert "FAILED" in failed
    assert "penetration" in failed
    assert "at contact 0" in failed


def test_unknown_laws_facets_and_shapes_are_refused():
    problem, v, f_n, f_t = sliding()
    with pytest.raises(InvalidInput, match="no-slip"):
        certify(problem, v, f_n, f_t, law="sticky")
    with pytest.raises(InvalidInput, match="facets"):
        certify(problem, v, f_n, f_t, facets=1)
    with pytest.raises(InvalidInput, match="tangent"):
        certify(problem, v, f_n, np.zeros(2))
    with pytest.raises(InvalidInput, match="velocity"):
        certify(problem, v[:2], f_n, f_t)


def test_read_only_answers_are_graded_without_being_touched():
    problem, v, f_n, f_t = sliding()
    v.flags.writeable = False
    assert certify(problem, v, f_n, f_t).passed


def test_scales_are_spread_once_for_all_answers_of_a_problem_and_anew_for_the_next():
    problem = ContactProblem(
        mass=np.diag([1.0, 1.0]),
        velocity=[-1.0, 0.0],
        force=[0.0, 0.0],
        dt=1e-3,
        normal=[[1.0, 0.0], [-1.0, 1.0]],
        friction=[0.0, 0.0],
    )
    work, layout = fill(problem)
    b, newton, v_free = work.blocks, work.newton, work.request.v_free
    kept, fresh = allocate(2, layout.blocks), allocate(2, layout.blocks)

    def grade(grading):
        row_velocities(b, layout.blocks, newton.v, newton.u)
        return grade_blocks(
            b, layout.blocks, np.int64(Law.COULOMB), np.int64(0), 1e-8, newton.weight, newton.v,
            newton.u, newton.f, grading,
        )  # fmt: skip

    newton.v[:] = [-1.0, 1e-3]
    set_scales(b, v_free, kept)
    assert grade(kept) == grade(kept) > 1e-8
    b.velocity[0] = v_free[0] = newton.v[0] = -5.0
    for grading in (kept, fresh):
        set_scales(b, v_free, grading)
    assert grade(kept) == grade(fresh)
    np.testing.assert_array_equal(kept.sigma, fresh.sigma)
