"""The Python API: documents in, problems and plans out."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

import jobman
from jobman.settings import load_settings

GOOD = "version: 1\nname: hello\ntasks: [{command: [echo], resources: {type: node, count: 1}}]\n"
WARNED = "tasks: [{command: [echo], resources: {type: node, count: 1}}]\n"
WRONG = "version: 1\ntasks: [{command: [echo], resources: {type: node, count: 0}, replicas: 0}]\n"
TYPED = """\
version: 1
parameters: {nodes: 1, factor: 1.5, wait: false, title: none, limit: 1h}
tasks:
- command: ["run", "{{title}}", "{{factor}}"]
  resources: {type: node, count: "{{nodes}}"}
  service: "{{wait}}"
  attributes: {duration: "{{limit}}"}
- {command: go, resources: {type: node, count: 1}}
"""


@pytest.fixture(autouse=True)
def bare_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def codes(spec):
    return [problem.code for problem in spec.problems]


# -- loading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_is_loaded_by_its_path(kind):
    Path("job.yaml").write_text(GOOD)
    spec = jobman.load(kind("job.yaml"))
    assert (spec.ok, spec.problems, spec.plan().name) == (True, [], "hello")


def test_a_text_is_loaded_and_named():
    (problem, *_) = jobman.loads(WRONG, name="mine").problems
    assert str(problem.place) == "mine:2:58"


def test_a_text_without_a_name_is_called_a_text():
    assert str(jobman.loads(WRONG).problems[0].place).startswith("<text>:")


def test_standard_input_is_loaded_by_a_dash(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(GOOD.encode())))
    assert jobman.load("-").plan().name == "hello"


def test_all_documents_of_a_file_are_loaded():
    Path("jobs.yaml").write_text(f"{GOOD}---\n{GOOD.replace('hello', 'bye')}")
    assert [spec.plan().name for spec in jobman.load_all("jobs.yaml")] == ["hello", "bye"]


def test_one_document_is_also_all_of_them():
    Path("job.yaml").write_text(GOOD)
    assert [spec.ok for spec in jobman.load_all("job.yaml")] == [True]


@pytest.mark.parametrize("load", [jobman.load, lambda path: jobman.load_all(path)[0]])
def test_a_missing_file_is_a_problem_and_no_exception(load):
    spec = load("nowhere.yaml")
    assert (spec.ok, codes(spec)) == (False, ["JS001"])


def test_several_documents_where_one_is_asked_for_are_a_problem():
    Path("jobs.yaml").write_text(f"{GOOD}---\n{GOOD}")
    spec = jobman.load("jobs.yaml")
    assert (spec.ok, codes(spec)) == (False, ["JS115"])
    assert not jobman.loads(f"{GOOD}---\n{GOOD}").ok


def test_an_empty_text_is_a_problem():
    assert codes(jobman.loads("")) == ["JS007"]


# -- problems -----------------------------------------------------------------------------------------------


def test_the_problems_stand_in_the_order_of_the_file():
    spec = jobman.loads(WRONG)
    assert not spec.ok
    assert [(problem.code, str(problem.place)) for problem in spec.problems] == [
        ("JS406", "<text>:2:58"),
        ("JS204", "<text>:2:72"),
    ]


def test_a_warning_does_not_count_unless_strict():
    spec = jobman.loads(WARNED)
    assert (spec.ok, codes(spec), spec.problems[0].severity) == (True, ["JS110"], "warning")
    assert spec.plan().units
    strict = jobman.loads(WARNED, strict=True)
    assert (strict.ok, strict.problems[0].severity) == (False, "error")


def test_the_plan_of_a_wrong_document_raises_with_all_problems():
    spec = jobman.loads(WRONG, name="job.yaml")
    with pytest.raises(jobman.SpecError) as raised:
        spec.plan()
    assert str(raised.value) == 'job.yaml:2:58: JS406: "0" is not a count (and 1 more)'
    assert list(raised.value.problems) == spec.problems


def test_the_text_of_one_error_speaks_of_no_other():
    with pytest.raises(jobman.SpecError) as raised:
        jobman.loads(WRONG.replace(", replicas: 0", ""), name="job.yaml").plan()
    assert str(raised.value) == 'job.yaml:2:58: JS406: "0" is not a count'


def test_the_text_of_an_error_without_a_place_starts_with_the_code():
    with pytest.raises(jobman.SpecError, match=r"^JS001: there is no file nowhere\.yaml$"):
        jobman.load("nowhere.yaml").plan()


def test_the_text_of_an_error_passes_over_warnings():
    with pytest.raises(jobman.SpecError, match="JS406"):
        jobman.loads(WRONG.replace("version: 1\n", "")).plan()


# -- parameters ---------------------------------------------------------------------------------------------


def test_parameters_are_given_as_python_values():
    values = {"nodes": 4, "factor": 2.5, "wait": True, "title": "my run", "limit": 90}
    unit = jobman.loads(TYPED, parameters=values).plan().units[0]
    assert unit.command == ("run", "my run", "2.5")
    assert (unit.totals[0].nodes, unit.service, unit.duration) == (4, True, 90.0)


def test_parameters_that_are_not_given_keep_their_defaults():
    unit = jobman.loads(TYPED, parameters={}).plan().units[0]
    assert (unit.command, unit.totals[0].nodes, unit.service, unit.duration) == (
        ("run", "none", "1.5"),
        1,
        False,
        3600.0,
    )


@pytest.mark.parametrize(
    ("values", "code"),
    [({"nodes": "two"}, "JS803"), ({"nodes": 1.5}, "JS803"), ({"wait": 1}, "JS803"), ({"ndoes": 1}, "JS802")],
)
def test_a_parameter_of_another_type_or_name_is_a_problem(values, code):
    assert code in codes(jobman.loads(TYPED, parameters=values))


# -- settings -----------------------------------------------------------------------------------------------

FLAVORED = "version: 1\ntasks: [{command: [echo], resources: tiny}]\n"
SETTINGS = "flavors: [{name: tiny, resources: {requests: {cpu: 2}}}]\n"


@pytest.mark.parametrize("kind", [str, Path, load_settings], ids=["text", "path", "object"])
def test_settings_are_given_as_a_path_or_an_object(kind):
    Path("settings.yaml").write_text(SETTINGS)
    spec = jobman.loads(FLAVORED, settings=kind("settings.yaml"))
    assert spec.plan().units[0].totals[0].amounts == {"core": 2}


def test_without_settings_those_of_the_user_are_taken(tmp_path):
    assert not jobman.loads(FLAVORED).ok
    (tmp_path / "home" / ".jobman").mkdir(parents=True)
    (tmp_path / "home" / ".jobman" / "settings.yaml").write_text(SETTINGS)
    assert jobman.loads(FLAVORED).ok


def test_wrong_settings_raise():
    Path("settings.yaml").write_text("colour: blue\n")
    with pytest.raises(jobman.SpecError, match="JS101"):
        jobman.loads(GOOD, settings="settings.yaml")
