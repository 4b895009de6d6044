"""The report at the end of a run tells the truth about every real component."""

import os
import subprocess
from pathlib import Path

import pytest

from lab.components import FOLDER, Component, discover, state

ROOT = Path(__file__).parents[2]

READY = "echo JOBMAN_LAB_URL=here"
ABSENT = "echo looking; echo no such thing on this machine; exit 3"
BROKEN = "echo lost >&2; exit 1"


def write_script(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    script = folder / name
    script.write_text(f"#!/bin/sh\n# component {name}: The {name}\n{body}\n")
    script.chmod(0o755)


@pytest.fixture
def lab(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    folder = pytester.path / "lab"
    write_script(folder, "database", READY)
    write_script(folder, "cluster", ABSENT)
    return folder


def run(pytester: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(source)
    return pytester.runpytest_subprocess("-p", "tests.components", "--strict-markers", *arguments)


def report(result: pytest.RunResult) -> list[str]:
    """What the run printed after the head of the report, to its very end."""
    return result.outlines[result.outlines.index("real components") + 1 :]


TWO_TESTS_EACH = """
import os
import pytest

@pytest.mark.component("database")
@pytest.mark.parametrize("number", [1, 2])
def test_database(number):
    assert os.environ["JOBMAN_LAB_URL"] == "here"

@pytest.mark.component("cluster")
@pytest.mark.parametrize("number", [1, 2])
def test_cluster(number):
    raise AssertionError("must not run")
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_a_run_ends_with_one_line_per_component(pytester, lab, workers):
    result = run(pytester, TWO_TESTS_EACH, *workers)
    result.assert_outcomes(passed=2, skipped=2)
    assert report(result) == [
        "  cluster   not run: no such thing on this machine",
        "  database  ran (2 tests)",
    ]


@pytest.mark.slow
def test_a_component_nobody_selected_is_still_listed(pytester, lab):
    assert report(run(pytester, TWO_TESTS_EACH, "-m", "not component")) == [
        "  cluster   not run: no such thing on this machine",
        "  database  not run: no selected test asks for it",
    ]


@pytest.mark.slow
def test_a_failing_test_has_met_its_component(pytester, lab):
    source = """
import pytest

@pytest.fixture
def connection():
    raise OSError("refused")

@pytest.mark.component("database")
def test_body():
    assert False

@pytest.mark.component("database")
def test_setup(connection):
    pass
"""
    assert report(run(pytester, source))[-1] == "  database  ran (2 tests)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mark", "body"),
    [
        ("pytest.mark.skip(reason='too old')", "pass"),
        ("pytest.mark.usefixtures()", "pytest.skip('too old')"),
    ],
    ids=["mark", "body"],
)
def test_a_test_that_skips_itself_gives_its_reason(pytester, lab, mark, body):
    source = f"""
import pytest

@pytest.mark.component("database")
def test_plain():
    pass

@pytest.mark.component("database")
@{mark}
def test_skipping():
    {body}
"""
    assert report(run(pytester, source))[-1] == "  database  ran (1 test), and 1 test not run: too old"


def test_an_unknown_component_stops_the_run(pytester, lab):
    pytester.makepyfile("import pytest\n\n@pytest.mark.component('databse')\ndef test(): pass\n")
    result = pytester.runpytest_inprocess("-p", "tests.components")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*asks for the component 'databse', unknown to lab/"])


def test_a_broken_script_is_named(tmp_path):
    write_script(tmp_path, "queue", BROKEN)
    assert state(discover(tmp_path)["queue"]).reason == "queue status queue is broken (exit code 1): lost"


def test_only_executable_files_with_a_head_are_components(tmp_path):
    write_script(tmp_path, "database", READY)
    write_script(tmp_path, "draft", READY)
    (tmp_path / "draft").chmod(0o644)
    assert discover(tmp_path) == {"database": Component("database", "The database", tmp_path / "database")}


@pytest.mark.parametrize("component", discover().values(), ids=lambda each: each.name)
def test_the_scripts_of_the_lab_keep_the_contract(component):
    answer = state(component)
    assert "is broken" not in answer.reason
    assert "gave no" not in answer.reason


def test_the_lab_has_the_components_that_tests_ask_for_today():
    assert {"bash", "fish", "libyaml", "podman", "postgres", "registry", "slurm", "zsh"} <= set(
        discover(FOLDER)
    )


@pytest.mark.parametrize(
    "shell", [pytest.param(name, marks=pytest.mark.component(name)) for name in ("bash", "fish", "zsh")]
)
def test_a_shell_that_is_said_to_be_ready_runs(shell):
    program = os.environ[f"JOBMAN_LAB_{shell.upper()}"]
    answer = subprocess.run([program, "-c", "echo ready"], check=True, capture_output=True, text=True)
    assert answer.stdout == "ready\n"
