"""Commands that people are told to type are for the engine they use."""

import pytest

from jobman.cli.calls import refused
from jobman.cli.state import Chosen, aimed, typed
from jobman.control.answers import Failure


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("jobman release 0f3a", "jobman -e kubernetes release 0f3a"),
        ("`jobman logs` shows what it said", "`jobman -e kubernetes logs` shows what it said"),
        ("jobman gate open 0f3a data", "jobman -e kubernetes gate open 0f3a data"),
        ("jobman -e kubernetes run --resume 0f3a", "jobman -e kubernetes run --resume 0f3a"),
        ("run it on a jobman service", "run it on a jobman service"),
        ("`jobman features` lists them", "`jobman features` lists them"),
    ],
)
def test_a_command_about_jobs_names_the_engine_where_it_is_not_the_usual_one(text, there, monkeypatch):
    monkeypatch.setattr(Chosen, "engine", "local")
    assert aimed(text) == text
    monkeypatch.setattr(Chosen, "engine", "kubernetes")
    assert (aimed(text), aimed(there)) == (there, there)


def test_what_is_typed_is_aimed_already(monkeypatch):
    monkeypatch.setattr(Chosen, "engine", "kubernetes")
    assert aimed(typed("logs -f 0f3a")) == typed("logs -f 0f3a")


def test_a_refusal_as_data_is_aimed_as_its_words_are(monkeypatch, capsys):
    monkeypatch.setattr(Chosen, "engine", "kubernetes")
    failure = Failure(
        code="no-such-job", message="no job is called x", advice="jobman list shows all", exit=1
    )
    for form in ("json", "table"):
        with pytest.raises(SystemExit):
            refused(failure, form)
        told = capsys.readouterr()
        assert "jobman -e kubernetes list shows" in told.out + told.err
