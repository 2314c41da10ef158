"""The papers' experiments, each at a tiny size, and what they are made of."""

import json
import re
from functools import cache

import numpy as np
import pytest

from stiction import experiments, lcp
from stiction.contact import Coulomb, NoSlip
from stiction.contact.polyhedral import stewart_trinkle
from stiction.errors import InvalidInput, StictionError
from stiction.experiments import (
    baraff_mechanisms,
    baraff_timing,
    drumwright_grasp,
    drumwright_quadruped,
    families,
    lloyd_peg,
    lloyd_single,
    textbook,
    yamane_chains,
    yamane_squat,
    yamane_tap_dance,
)
from stiction.experiments.__main__ import main
from stiction.experiments.problems import contact_lcp, impulses_of, repeated
from stiction.experiments.report import markdown, write_report
from stiction.experiments.result import Table, exponent
from stiction.status import Status


def silent(share, text):
    assert 0.0 <= share <= 1.0
    assert text


TINY = {
    "drumwright-grasp": lambda: drumwright_grasp.measure(1, 3, 30, (1, 2, 3), True, silent),
    "drumwright-quadruped": lambda: drumwright_quadruped.measure(0.05, True, silent),
    "lloyd-peg": lambda: lloyd_peg.measure((8, 12), (16,), 1, 1, True, silent),
    "lloyd-single": lambda: lloyd_single.single(1, 1, True, silent),
    "lloyd-stack": lambda: lloyd_single.stacks(((1, 4), (2, 8)), 1, 1, True, silent),
    "yamane-squat": lambda: yamane_squat.measure(10, 5, True, silent),
    "yamane-tap-dance": lambda: yamane_tap_dance.measure(10, 5, True, silent),
    "yamane-chains": lambda: yamane_chains.measure(0.002, True, silent),
    "baraff-mechanisms": lambda: baraff_mechanisms.measure(
        {"block-feeder": 0.02, "jack": 0.02}, True, silent
    ),
    "baraff-timing": lambda: baraff_timing.measure((8, 12), 1, 1, True, silent),
}


@cache
def tiny(name):
    return TINY[name]()


def test_all_experiments_of_the_papers_are_there():
    assert set(TINY) == set(experiments.NAMES)


@pytest.mark.parametrize("name", experiments.NAMES)
def test_an_experiment_runs_without_a_failure_of_ours(name):
    result = tiny(name)
    assert result.name == name
    assert result.counts["failures"] == 0
    assert result.counts["solves"] > 0
    assert result.notes
    for table in result.tables:
        assert table.rows, table.title
        assert all(len(row) == len(table.columns) for row in table.rows), table.title
    json.dumps(result.numbers(), allow_nan=False)


def test_the_report_needs_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr("stiction.experiments.report.render", lambda picture: b"\x89PNG")
    path = tmp_path / "report.html"
    results = [tiny(name) for name in experiments.NAMES]
    write_report(results, path)
    page = path.read_text(encoding="utf-8")
    # The plotting library's own text names addresses; no tag of the page may load one.
    assert not re.findall(
        r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(?:https?:)?//", page
    )
    assert "data:image/png;base64," in page
    for result in results:
        assert f'id="{result.name}"' in page
        assert all(table.title.replace("'", "&#x27;") in page for table in result.tables)


def test_reproduce_writes_a_report_and_the_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(lloyd_peg, "run", lambda quick, progress: tiny("lloyd-peg"))
    assert main(["lloyd-peg", "--quick", "--out", str(tmp_path)]) == 0
    numbers = json.loads((tmp_path / "lloyd-peg.json").read_text(encoding="utf-8"))
    assert numbers["name"] == "lloyd-peg"
    assert numbers["machine"]["numpy"] == np.__version__
    assert (tmp_path / "report.html").exists()


def test_an_unknown_experiment_is_answered_with_a_near_one(capsys):
    with pytest.raises(InvalidInput, match="lloyd-peg"):
        experiments.resolve("lloyd-pegs")
    assert main(["lloyd-pegs"]) == 2
    assert "lloyd-peg" in capsys.readouterr().err


def test_all_stands_for_every_experiment_once():
    assert experiments.resolve(["lloyd-peg", "all"])[0] == "lloyd-peg"
    assert sorted(experiments.resolve(["lloyd-peg", "all"])) == sorted(experiments.NAMES)


def test_a_report_without_the_plotting_library_says_what_to_install(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("stiction.experiments.report.import_module", missing)
    with pytest.raises(StictionError, match="plotly"):
        write_report([], tmp_path / "report.html")


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


def test_regularization_rescues_the_textbook_lemke_on_redundant_contacts():
    matrix, free = stewart_trinkle(families.grasp(2, mu=100.0), 4)
    z, status, _ = textbook.regularized(matrix, free)
    assert len(free) == 216
    assert status is Status.SOLVED
    assert np.abs(np.minimum(z, matrix @ z + free)).max() < 1e-3


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


def test_a_power_law_has_its_exponent():
    assert exponent((1.0, 2.0, 4.0), (3.0, 12.0, 48.0)) == pytest.approx(2.0)


def test_a_table_becomes_markdown():
    table = Table("t", ("a", "b"), (("x", 1.23456), (None, 2)))
    assert markdown(table) == "| a | b |\n| --- | --- |\n| x | 1.235 |\n|  | 2 |"
