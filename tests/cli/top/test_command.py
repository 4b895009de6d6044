"""The command `jobman top`, where it cannot be shown."""

import sys

import pytest


def test_what_is_no_terminal_is_refused_and_other_commands_are_named(jobman, service):
    answer = jobman("top")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("jobman: top needs a terminal\n")
    assert "`jobman queue`" in answer.err
    assert service.requests == []


def test_there_is_no_top_as_data(jobman, service):
    answer = jobman("-o", "json", "top")
    assert answer.code == 2
    assert "jobman queue" in answer.err


@pytest.fixture
def terminal(monkeypatch):
    """The command believes that somebody watches."""

    class Terminal:
        @staticmethod
        def isatty():
            return True

    class Streams:
        stdin = stdout = Terminal()

    monkeypatch.setattr("jobman.cli.top.command.sys", Streams())


def test_without_the_library_it_is_said_how_to_get_it(jobman, service, terminal, monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("textual.", "jobman.cli.top.screen"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    answer = jobman("top")
    assert (answer.code, answer.out) == (4, "")
    assert answer.err == "jobman: top needs the package textual\n        pip install 'jobman[top]'\n"


def test_a_service_that_does_not_answer_is_told_before_the_screen_is_taken(jobman, terminal, monkeypatch):
    pytest.importorskip("textual")
    monkeypatch.setenv("JOBMAN_SERVER", "http://localhost:1")
    assert jobman("top").code == 5
