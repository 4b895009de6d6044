"""The words that run an image: what a program is told, on a stand-in that writes it down."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobman.engines.scripts.site import Job
from jobman.engines.scripts.units import unit_function
from tests.engines.scripts.running import ONE, plan_of, run_script, scripts_of, words_of, written

PROGRAM = """#!/bin/bash
echo "${0##*/} $*"
printf '%s\\n' "$APPTAINERENV_PATH" "${WORD-none}"
"""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Programs that run images, or rather would."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("apptainer", "podman", "mine"):
        (folder / name).write_text(PROGRAM)
        (folder / name).chmod(0o755)
    return folder


def told(tools: Path, task: str, *container: str) -> list[str]:
    """What the program of the settings was told for a task, line by line."""
    folder = tools.parent
    plan = plan_of(f"- {{name: work, image: 'example.org/a:1', {ONE}, {task}}}\n")
    (script,) = scripts_of(plan, folder, cwd=str(folder), container=container)
    run_script(script, folder, {"PATH": f"{tools}:{os.environ['PATH']}"})
    return written(folder, "work.0").decode().splitlines()


def test_apptainer_is_told_where_the_command_runs_and_inherits_the_rest(tools: Path) -> None:
    here = tools.parent
    scratch = f"{here}/jobman-0123456789ab-work.0-1"
    found = told(
        tools, "attributes: {environment: {WORD: hello, PATH: /own}}, command: [ls, -l]", "apptainer"
    )
    assert found == [
        f"apptainer exec --bind {here} --bind {scratch} --pwd {here} docker://example.org/a:1 ls -l",
        "/own",
        "hello",
    ]


def test_files_that_are_brought_to_a_place_of_their_own_are_seen_inside(tools: Path) -> None:
    place = tools.parent / "brought"
    found = told(tools, f'steps: [{{name: write, path: "{place}", content: a}}], command: [ls]', "apptainer")
    assert f"--bind {place} " in found[0]


def test_podman_is_told_the_names_of_variables_and_never_their_values(tools: Path) -> None:
    found = told(tools, "attributes: {environment: {WORD: a secret}}, command: [ls]", "podman")
    assert "--env WORD " in found[0]
    assert "a secret" not in found[0]
    assert "--name jobman-0123456789ab-work.0-1-0 " in found[0]
    assert "--workdir" not in found[0]
    assert found[0].endswith(" --entrypoint= example.org/a:1 ls")


def test_other_words_stand_before_the_command_as_they_are_written(tools: Path) -> None:
    assert (
        told(tools, "command: [ls]", "mine", "--in={image}", "$HOME")[0]
        == "mine --in=example.org/a:1 $HOME ls"
    )


def test_the_image_may_have_an_axis_in_it(tmp_path: Path) -> None:
    plan = plan_of(
        f"- {{name: work, image: 'a:{{{{tag}}}}', matrix: {{tag: ['1', '2']}}, {ONE}, command: ls}}\n"
    )
    job = Job(id="0123456789ab", name="job", folder=str(tmp_path), container=("mine", "{image}"))
    lines = unit_function(plan.units[0], 1, plan, job, (), ())
    assert '    wrap=(mine a:"${axis_tag}")' in lines


def test_a_program_that_is_not_there_is_named(tools: Path) -> None:
    told(tools, "command: [ls]", "no-such-program", "{cwd}", "{image}")
    (ended,) = [line for line in words_of(tools.parent) if line.kind == "failed"]
    assert ended.exit_code == 127
    assert b"there is no program no-such-program on " in written(tools.parent, "work.0", stream="err")
