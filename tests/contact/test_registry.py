"""Contact models describe themselves: one class and one registration, and all parts know them."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from mjcf import BOX, load

import stiction
from stiction import cli
from stiction.contact import ContactModel, Frictionless, Viscous, register
from stiction.contact.models import registry
from stiction.contact.models.description import Kind
from stiction.errors import InvalidInput


class Icy(ContactModel):
    """As if the floor were of ice."""

    name = "icy"
    law = "frictionless"

    def solve_island(self, problem, start):
        return Frictionless().solve_island(problem, start)


@pytest.fixture
def icy(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    return register(Icy)


def test_one_class_and_one_registration_run_in_a_simulator(icy):
    model, data = load(BOX)
    data.qvel[0] = 1.0
    report = stiction.Simulator(model, registry.parse_contact("icy")).step(data)
    assert report.rungs == ("pivoting",)
    assert report.certificate.passed
    assert data.qvel[0] == 1.0
    events = stiction.Simulator(model, icy(), stepper=stiction.EventDriven())
    assert events.step(data).certificate.passed


def test_one_class_and_one_registration_run_on_the_command_line(icy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("box.xml").write_text(BOX, encoding="utf-8")
    assert cli.main(["run", "box.xml", "--contact", "icy", "--time", "0.01"]) == 0
    assert "box, icy" in capsys.readouterr().out
    assert (tmp_path / "stiction-runs" / "box-icy" / "report.html").is_file()


def test_one_class_and_one_registration_are_offered_by_the_page(icy):
    pytest.importorskip("viser", reason="the extra `view` is not installed")
    pytest.importorskip("mjviser", reason="the extra `view` is not installed")
    from stiction.view import Live
    from stiction.view.page import Page

    model, data = load(BOX)
    data.qvel[0] = 1.0
    live = Live(lambda: (model, data, None), contact="icy", beside="nothing")
    with Page(live) as page:
        offered = next(
            handle
            for handle in page._server.gui._gui_input_handle_from_uuid.values()
            if getattr(handle, "label", "") == "Contact model"
        )
        assert set(offered.options) == set(registry.forms())
        assert "icy" in offered.options
    live.step()
    assert live.time > 0.0
    assert live.ours.data.qvel[0] == 1.0


def test_a_name_can_be_taken_once(icy):
    with pytest.raises(InvalidInput, match="'icy' is taken by Icy"):
        register(icy)
    with pytest.raises(InvalidInput, match="no name"):
        register(type("Nameless", (Icy,), {"name": ""}))


def test_models_of_other_packages_are_found_by_their_entry_points(monkeypatch):
    point = EntryPoint("drag", "stiction.contact.models.viscous:Viscous", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    registry._installed.cache_clear()
    try:
        assert registry.parse_contact("drag:2").coefficient == 2.0
        assert "drag" in registry.forms()
    finally:
        registry._installed.cache_clear()


def test_every_model_is_registered_by_its_own_name():
    for name, entry in registry.entries().items():
        assert entry.load().name == name
        for form in entry.forms:
            assert registry.contact_name(registry.parse_contact(form)) == form


def test_what_a_model_says_of_itself_goes_together():
    for form in registry.forms():
        model = registry.parse_contact(form)
        model.check_simulated()
        compiled, sustained = model.compiled, model.sustained
        assert compiled is None or compiled.law.name.lower().replace("_", "-") == model.law
        assert (sustained.kind is Kind.DRY) == (model.law in ("coulomb", "convex"))
        assert (sustained.viscosity > 0.0) == (model.law == "viscous")
    assert Viscous(1.0).at_impact.law == "frictionless"


def test_the_names_need_no_compiled_code():
    code = (
        "import sys\nfrom stiction.contact.models import registry\n"
        "assert 'coulomb:8' in registry.forms()\n"
        "assert not {'numba', 'mujoco', 'scipy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("page", ["README.md", "docs/guide/choosing-a-model.md"])
def test_the_tables_of_models_have_a_row_for_each(page):
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for entry in registry.BUILT_IN:
        model = registry.parse_contact(next(iter(entry.forms)))
        ways = () if model.compiled is None else model.compiled.solver.rungs
        solver = ", ".join(f"`{way}`" for way in ways) or "called from Python"
        found = [row for row in rows if f"`{type(model).__name__}(" in row]
        assert found, f"{entry.name} is missing"
        assert all(solver in row for row in found), f"{entry.name} is solved by {solver}"
