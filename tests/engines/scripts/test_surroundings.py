"""A command finds the environment of submission and what the document adds, whatever the names in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.scripts.running import ONE, plan_of, run_script, scripts_of, words_of, written

OURS = (
    *("J", "KEY", "LOG", "PIECE", "INDEX", "U", "NODE", "NODES", "STATE", "CODE", "REASON", "HERE", "TIMERS"),
    *(
        "name",
        "kind",
        "command",
        "cwd",
        "step",
        "rules",
        "retries",
        "duration",
        "grace",
        "at",
        "each",
        "copies",
    ),
    *("GOOD", "MEMBERS", "IDS", "PID", "STOP", "ATTEMPT", "environment", "INHERITED", "OWN", "CDPATH"),
)
VALUE = "a 'b' \"c\" $d\ne"
TASK = f"- {{name: t, command: [x], {ONE}}}"


def surroundings(folder: Path, key: str = "t.0") -> dict[str, str]:
    entries = written(folder, key).decode().split("\0")[:-1]
    return dict(entry.split("=", 1) for entry in entries)


@pytest.mark.parametrize("name", OURS)
def test_a_variable_of_the_document_may_have_any_name(tmp_path: Path, name: str) -> None:
    plan = plan_of(TASK, command=("env", "-0"), environment={name: VALUE})
    (script,) = scripts_of(plan, tmp_path)
    done = run_script(script, tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert surroundings(tmp_path)[name] == VALUE


@pytest.mark.parametrize("task", [TASK, TASK.replace("name:", "attributes: {duration: 1h}, name:")])
@pytest.mark.parametrize("name", OURS)
def test_a_variable_of_submission_may_have_any_name(tmp_path: Path, name: str, task: str) -> None:
    (script,) = scripts_of(plan_of(task, command=("env", "-0")), tmp_path)
    done = run_script(script, tmp_path, {name: VALUE})
    assert (done.returncode, done.stderr) == (0, b"")
    assert surroundings(tmp_path)[name] == VALUE


def test_the_document_comes_before_submission_and_jobman_before_both(tmp_path: Path) -> None:
    own = {"X": "document", "JOBMAN_RANK": "7"}
    (script,) = scripts_of(plan_of(TASK, command=("env", "-0"), environment=own), tmp_path)
    run_script(script, tmp_path, {"X": "submission", "JOBMAN_TASK": "other", "Y": "submission"})
    found = surroundings(tmp_path)
    assert [found[name] for name in ("X", "Y", "JOBMAN_RANK", "JOBMAN_TASK")] == [
        "document",
        "submission",
        "0",
        "t",
    ]


def test_axes_may_have_any_name(tmp_path: Path) -> None:
    plan = plan_of(
        TASK.replace("name: t,", "name: t, matrix: {a: [x]},"),
        command=(
            "sh",
            "-c",
            'printf "%s\\0" "name=$name" "values=$values" "J=$J" "$@"',
            "-",
            "{{name}}+{{values}}+{{J}}",
        ),
        matrix={"J": ("1", "2"), "name": ("p", "q"), "values": ("r", "s")},
        replicas=8,
    )
    (script,) = scripts_of(plan, tmp_path)
    run_script(script, tmp_path, SLURM_ARRAY_TASK_ID="5")
    *found, word = written(tmp_path, "t.5").decode().split("\0")[:-1]
    assert (found, word) == (["name=p", "values=s", "J=2"], "p+s+2")


def test_a_path_of_the_document_is_the_path_of_its_commands_alone(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "hello").write_text("#!/bin/sh\necho hello\n")
    (tools / "hello").chmod(0o755)
    (script,) = scripts_of(plan_of(TASK, command=("hello",), environment={"PATH": str(tools)}), tmp_path)
    assert run_script(script, tmp_path).returncode == 0
    assert written(tmp_path, "t.0") == b"hello\n"


def test_a_program_that_is_not_on_that_path_is_told(tmp_path: Path) -> None:
    (script,) = scripts_of(plan_of(TASK, command=("ls",), environment={"PATH": "/nowhere"}), tmp_path)
    assert run_script(script, tmp_path).returncode == 127
    (ended,) = (line for line in words_of(tmp_path) if line.kind == "failed")
    assert (ended.reason, ended.message) == ("launch-failed", "there is no program ls on here")


@pytest.mark.parametrize("name", ["copy", "work", "place", "echo", "exec", "tell", "wait"])
def test_a_program_may_be_called_like_a_function_of_the_script(tmp_path: Path, name: str) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / name).write_text("#!/bin/sh\necho it is me\n")
    (tools / name).chmod(0o755)
    (script,) = scripts_of(plan_of(TASK, command=(name,)), tmp_path)
    run_script(script, tmp_path, PATH=f"{tools}:/usr/bin:/bin")
    assert written(tmp_path, "t.0") == b"it is me\n"


def test_what_the_prologue_exports_reaches_the_command(tmp_path: Path) -> None:
    plan = plan_of(TASK, command=("env", "-0"))
    (script,) = scripts_of(plan, tmp_path, prologue=("export LOADED=yes", "J=mine"))
    run_script(script, tmp_path)
    assert surroundings(tmp_path)["LOADED"] == "yes"
