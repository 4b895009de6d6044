"""The script of a command with nothing around it is short; whatever is around it brings what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman.engines.scripts.delegate import texts_of
from tests.engines.scripts.running import ONE, plan_of, run_script, scripts_of, words_of, written

AROUND = (
    "attributes: {duration: 1h}",
    "retries: 2",
    "restart: on-failure",
    "on_failure: [{exit_codes: 3, action: ignore}]",
    "hooks: {before: [true]}",
    "checks: {alive: {exec: [true]}}",
    "steps: [{name: stage, path: note}]",
    "attributes: {stdout: out.txt}",
    "result_file: result",
    "ports: [{name: web}]",
    "when: always",
    "service: true",
)
NEXT = f"- {{name: other, command: [x], {ONE}}}"


def script_of(tmp_path: Path, task: str, also: str = "", head: str = "") -> str:
    plan = plan_of(f"- {{name: t, command: [x], {ONE}{task and f', {task}'}}}\n{also}", head)
    return next(
        "".join(texts_of([script]).values()) for script in scripts_of(plan, tmp_path) if script.name == "t"
    )


def is_short(script: str) -> bool:
    return "decide()" not in script


@pytest.mark.parametrize(
    "task", ["", "replicas: 1000", "attributes: {environment: {A: b}}", "parallelism: 3, replicas: 9"]
)
def test_nothing_is_around_it(tmp_path: Path, task: str) -> None:
    assert is_short(script_of(tmp_path, task, also=NEXT))


@pytest.mark.parametrize("task", AROUND)
def test_something_is_around_it(tmp_path: Path, task: str) -> None:
    assert not is_short(script_of(tmp_path, task, also=NEXT))


@pytest.mark.parametrize("task", ["max_failed: 1", "completions: 2", "success: {count: 1}"])
def test_its_replicas_are_counted(tmp_path: Path, task: str) -> None:
    assert not is_short(script_of(tmp_path, f"replicas: 3, {task}"))


def test_something_is_before_it_or_ends_with_it(tmp_path: Path) -> None:
    assert not is_short(script_of(tmp_path, "depends_on: other", also=NEXT))
    assert not is_short(script_of(tmp_path, "", also=NEXT.replace("command", "service: true, command")))
    assert not is_short(script_of(tmp_path, "", head="on_failure: [{exit_codes: 3, action: ignore}]\n"))


@pytest.mark.parametrize("around", ["", ", attributes: {duration: 1h}"])
@pytest.mark.parametrize(("code", "kind", "reason"), [(0, "succeeded", ""), (3, "failed", "exit")])
def test_both_ways_tell_the_same(tmp_path: Path, around: str, code: int, kind: str, reason: str) -> None:
    command = (
        "sh",
        "-c",
        f'echo "$PWD $0" >&2; cat; echo "$JOBMAN_ATTEMPT"; test -d "$JOBMAN_SCRATCH"; exit {code}',
    )
    (script,) = scripts_of(plan_of(f"- {{name: t, command: [x], {ONE}{around}}}", command=command), tmp_path)
    assert run_script(script, tmp_path).returncode == code
    assert written(tmp_path, "t.0") == b"1\n"
    ends = [
        (line.kind, line.key, line.exit_code, line.reason)
        for line in words_of(tmp_path)
        if line.kind != "task"
    ]
    assert ends == [("started", "t.0", None, ""), (kind, "t.0", code, reason)]
