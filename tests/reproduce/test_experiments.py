"""The papers' experiments, each at a tiny size, and what they are made of."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest
from markupsafe import escape

from stiction import cli, lcp, reproduce
from stiction.contact import Coulomb, NoSlip
from stiction.errors import InvalidInput
from stiction.reproduce import (
    baraff_mechanisms,
    baraff_timing,
    drumwright_grasp,
    drumwright_quadruped,
    fackler_miranda,
    families,
    frame_lcps,
    lloyd_peg,
    lloyd_single,
    pivot_search,
    textbook,
    yamane_chains,
    yamane_squat,
    yamane_tap_dance,
)
from stiction.reproduce.contact_lcps import stewart_trinkle
from stiction.reproduce.problems import contact_lcp, impulses_of, repeated
from stiction.reproduce.report import markdown, write_report
from stiction.reproduce.result import Table, exponent, fit, read
from stiction.reproduce.viscous_ways import BothWays
from stiction.reproduce.walking import Walker, readable, walk_together
from stiction.simulate import EventDriven
from stiction.status import Status

PAGES = Path(__file__).parents[2] / "docs" / "experiments"


def silent(share, text):
    assert 0.0 <= share <= 1.0
    assert text


TINY = {
    "drumwright-grasp": lambda: drumwright_grasp.run_sized(1, 2, 2, 30, (1, 2, 3), True, silent),
    "drumwright-quadruped": lambda: drumwright_quadruped.run_sized(0.05, True, silent),
    "lloyd-peg": lambda: lloyd_peg.run_sized((8, 12), (16,), 1, 1, True, silent),
    "lloyd-single": lambda: lloyd_single.single(1, 1, True, silent),
    "lloyd-stack": lambda: lloyd_single.stacks(((1, 4), (2, 8)), 1, 1, True, silent),
    "yamane-squat": lambda: yamane_squat.run_sized(10, 5, True, silent),
    "yamane-tap-dance": lambda: yamane_tap_dance.run_sized(10, 5, True, silent),
    "yamane-chains": lambda: yamane_chains.run_sized(0.002, True, silent),
    "baraff-mechanisms": lambda: baraff_mechanisms.run_sized(
        {"block-feeder": 0.02, "jack": 0.02}, True, silent
    ),
    "baraff-timing": lambda: baraff_timing.run_sized((8, 12), 1, 1, True, silent),
}


@cache
def tiny(name):
    return TINY[name]()


def test_all_experiments_of_the_papers_are_there():
    assert set(TINY) == set(reproduce.NAMES)


@pytest.mark.parametrize("name", reproduce.NAMES)
def test_an_experiment_runs_without_a_failure_of_ours(name):
    result = tiny(name)
    assert result.name == name
    assert result.counts["failures"] == 0
    assert result.counts["solves"] > 0
    assert result.notes
    assert result.claims
    assert {claim.holds for claim in result.claims} <= {"yes", "in part", "no"}
    for table in result.tables:
        assert table.rows, table.title
        assert all(len(row) == len(table.columns) for row in table.rows), table.title
    json.dumps(result.numbers(), allow_nan=False)


def test_numbers_on_disk_are_the_result_again(tmp_path):
    result = tiny("lloyd-stack")
    path = tmp_path / "lloyd-stack.json"
    path.write_text(json.dumps(result.numbers()), encoding="utf-8")
    assert read(path) == result


@pytest.mark.skipif(not PAGES.is_dir(), reason="the pages are in the repository only")
@pytest.mark.parametrize("name", reproduce.NAMES)
def test_an_experiment_has_a_page_with_its_claims(name):
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    for heading in ("What the paper did", "What we did", "Where we differ, and why"):
        assert f"## {heading}" in page
    numbers = page.split("<!-- numbers -->")[1].split("<!-- end of numbers -->")[0]
    assert "| claim | theirs | ours | holds |" in numbers
    shown = re.findall(r"\]\(([^)]+\.png)\)", numbers)
    assert shown
    assert all((PAGES / file).is_file() for file in shown)
    assert f"({name}.md)" in (PAGES / "index.md").read_text(encoding="utf-8")


def test_the_report_needs_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr("stiction.reproduce.report.render", lambda picture: b"\x89PNG")
    path = tmp_path / "report.html"
    results = [tiny(name) for name in reproduce.NAMES]
    write_report(results, path)
    page = path.read_text(encoding="utf-8")
    # The plotting library's own text names addresses; no tag of the page may load one.
    assert not re.findall(
        r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(?:https?:)?//", page
    )
    assert "data:image/png;base64," in page
    for result in results:
        assert f'id="{result.name}"' in page
        shown = [table.title for table in result.tables] + [claim.ours for claim in result.claims]
        assert all(str(escape(words)) in page for words in shown)


def test_reproduce_writes_a_report_and_the_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lloyd_peg, "run", lambda quick, progress: tiny("lloyd-peg"))
    assert cli.main(["reproduce", "lloyd-peg", "--quick", "--out", str(tmp_path)]) == 0
    numbers = json.loads((tmp_path / "lloyd-peg.json").read_text(encoding="utf-8"))
    assert numbers["name"] == "lloyd-peg"
    assert numbers["machine"]["numpy"] == np.__version__
    assert (tmp_path / "report.html").exists()
    assert "lloyd-peg" in capsys.readouterr().out


def test_ctrl_c_keeps_the_experiments_that_are_done(tmp_path, monkeypatch, capsys):
    def stop(quick, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(lloyd_peg, "run", lambda quick, progress: tiny("lloyd-peg"))
    monkeypatch.setattr(baraff_timing, "run", stop)
    words = ["reproduce", "lloyd-peg", "baraff-timing", "--out", str(tmp_path)]
    assert cli.main(words) == 1
    assert "1 of 2 experiments are kept" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"lloyd-peg.json", "report.html"}


def test_a_failure_of_ours_is_an_exit_code(tmp_path, monkeypatch):
    failed = replace(tiny("lloyd-peg"), counts={"solves": 3, "failures": 1})
    monkeypatch.setattr(lloyd_peg, "run", lambda quick, progress: failed)
    assert cli.main(["reproduce", "lloyd-peg", "--out", str(tmp_path)]) == 1


def test_an_unknown_experiment_is_answered_with_a_near_one(capsys):
    with pytest.raises(InvalidInput, match="lloyd-peg"):
        reproduce.resolve("lloyd-pegs")
    assert cli.main(["reproduce", "lloyd-pegs"]) == 2
    assert "lloyd-peg" in capsys.readouterr().err
    assert cli.main(["reproduce"]) == 2
    assert "yamane-squat" in capsys.readouterr().err


def test_all_stands_for_every_experiment_once():
    assert reproduce.resolve(["lloyd-peg", "all"])[0] == "lloyd-peg"
    assert sorted(reproduce.resolve(["lloyd-peg", "all"])) == sorted(reproduce.NAMES)


# --- What the experiments are made of -------------------------------------------------


def test_the_textbook_lemke_solves_what_is_not_degenerate():
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = rng.standard_normal((12, 12))
        matrix, free = rows @ rows.T, rng.standard_normal(12)
        for delta in (None, 1e-9):
            z, status, _ = textbook.lemke(matrix, free, delta)
            assert status is Status.SOLVED
            np.testing.assert_allclose(z, lcp.solve(matrix, free).z, atol=1e-8)


def test_the_textbook_lemke_reports_a_ray():
    z, status, _ = textbook.lemke(np.array([[-1.0]]), np.array([-1.0]))
    assert status is Status.RAY
    assert not z.any()


def test_an_error_of_the_textbook_is_one_of_the_equations_and_not_of_signs():
    matrix, free = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([-1.0, -0.5])
    z, status, _ = textbook.lemke(matrix, free, 1.0)  # of ties this wide z0 leaves at once
    assert status is Status.SOLVED
    assert (matrix @ z + free).min() < -0.1


def test_lemke_of_fackler_and_miranda_solves_redundant_contacts():
    matrix, free = stewart_trinkle(families.grasp(2, mu=1.0), 4)
    z, status, _ = fackler_miranda.Lemke()(matrix, free)
    assert len(free) == 216
    assert status is Status.SOLVED
    assert np.abs(np.minimum(z, matrix @ z + free)).max() < 1e-3


def test_the_printed_search_finds_a_shortest_sequence_of_pivots():
    problem = families.peg(8, np.random.default_rng(3)).problem()
    matrix, free = contact_lcp(problem, 4, forces=True)
    active = pivot_search.pressing(matrix, free, 4)
    found = pivot_search.search_contacts(matrix, free, active, 4)
    assert found.status is Status.SOLVED
    assert np.abs(np.minimum(found.z, matrix @ found.z + free)).max() < 2 * pivot_search.EPSILON
    assert 0 < found.pivots <= found.computed
    assert found.pivots <= textbook.lemke(matrix, free, 1e-10)[2]


def test_contacts_inside_of_the_area_of_a_foot_are_left_out():
    rows = "".join(
        f"<geom type='sphere' size='.01' pos='{x} {y} 0'/>" for x in (0, 0.1, 0.2) for y in (0, 0.1)
    )
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .0099'><freejoint/>"
        f"{rows}</body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    kept = frame_lcps.corners(model, data)
    assert data.ncon == 6
    np.testing.assert_allclose(sorted(set(data.contact.pos[kept, 0].round(6))), [0.0, 0.2])
    assert len(kept) == 4


def test_the_assembled_lcp_is_that_of_the_contact_model():
    problem = families.peg(8, np.random.default_rng(3)).problem()
    matrix, free = contact_lcp(problem, 8)
    normal, tangent = impulses_of(lcp.solve(matrix, free).z, problem.nc, 8)
    expected = Coulomb(8).solve(problem)
    velocity = problem.velocity_from(normal, tangent, np.zeros(0), np.zeros(0))
    np.testing.assert_allclose(velocity, expected.velocity, atol=1e-8)
    forces, same = contact_lcp(problem, 8, forces=True)
    np.testing.assert_allclose(forces[:8, :8], matrix[:8, :8] * problem.dt)
    np.testing.assert_array_equal(same, free)


def test_the_assembled_lcp_eliminates_joints():
    problem = families.single_body("face on surface", np.random.default_rng(1)).problem(
        joint=np.eye(6)[3:], joint_target=np.array([0.0, 0.1, 0.0])
    )
    matrix, free = contact_lcp(problem, 4)
    expected = Coulomb(4).solve(problem)
    speed = problem.normal @ expected.velocity
    z = lcp.solve(matrix, free).z
    np.testing.assert_allclose((matrix @ z + free)[: problem.nc], speed, atol=1e-8)


def test_repeated_contacts_leave_the_motion_as_it_is():
    problem = families.grasp(2, duplicates=1).problem()
    more = repeated(problem, 3)
    assert more.nc == 36
    np.testing.assert_allclose(
        NoSlip().solve(more).velocity, NoSlip().solve(problem).velocity, atol=1e-12
    )


def test_viscous_forces_by_lemke_are_those_by_principal_pivoting():
    both = BothWays(10.0)
    walker = Walker("viscous", both, 0.02, stepper=EventDriven())
    walk_together([walker], lambda share: None)
    assert walker.end == "walked"
    assert len(both.ppm) >= walker.steps == 20
    assert both.failures == 0
    assert both.apart < 1e-6


def test_a_failure_is_told_without_advice():
    told = readable(
        "error: at t = 4 s the impact of NoSlip() missed the "
        "tolerance 1e-06: 2 of world and foot. The state is as before the step. Try again."
    )
    assert told == (
        "at t = 4 s the impact of NoSlip() missed the tolerance 1e-06: 2 of world and foot."
    )


def test_a_power_law_has_its_exponent():
    assert exponent((1.0, 2.0, 4.0), (3.0, 12.0, 48.0)) == pytest.approx(2.0)
    line = fit("ours", (1.0, 2.0, 4.0), (3.0, 12.0, 48.0))
    assert line.name == "ours, n^2.0"
    np.testing.assert_allclose(line.y, (3.0, 48.0))


def test_a_table_becomes_markdown():
    table = Table("t", ("a", "b"), (("x", 1.23456), (None, 2)))
    assert markdown(table) == "| a | b |\n| --- | --- |\n| x | 1.23 |\n|  | 2 |"
