"""The line that says that kernels compile."""

import io

import pytest

from stiction.kernels import notice


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def begun_long_ago(monkeypatch):
    monkeypatch.delenv("STICTION_QUIET", raising=False)
    monkeypatch.setattr(notice, "_told", False)
    monkeypatch.setattr(notice, "_count", 0)
    monkeypatch.setattr(notice, "_begun", -1e9)


def compile_three():
    for _ in range(3):
        notice.count_one()
    notice.clear()


def test_a_terminal_sees_a_count_that_goes_when_it_ends(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    compile_three()
    assert "(3 functions)" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_file_gets_one_plain_line(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("sys.stderr", file)
    compile_three()
    assert file.getvalue() == f"{notice.TEXT}\n"


def test_nothing_is_said_where_silence_is_asked_for_or_compiling_is_quick(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("sys.stderr", file)
    monkeypatch.setattr(notice, "_begun", None)
    compile_three()
    monkeypatch.setattr(notice, "_begun", -1e9)
    monkeypatch.setenv("STICTION_QUIET", "1")
    compile_three()
    assert file.getvalue() == ""
