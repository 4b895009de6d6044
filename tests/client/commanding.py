"""The command line on a real cluster, as a user has it: what is typed, and what comes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.engines.kubernetes.cluster import image


class Answer(NamedTuple):
    """What a user sees of one command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Jobman = Callable[..., Answer]


def config_for(
    namespace: str, folder: Path, source: Path, server: str | None = None, user: str | None = None
) -> Path:
    """A kubeconfig whose context has this namespace; perhaps with another server, or acting as somebody."""
    data = yaml.safe_load(source.read_text())
    for context in data["contexts"]:
        context["context"]["namespace"] = namespace
    for cluster in data["clusters"]:
        if server is not None:
            cluster["cluster"]["server"] = server
        if "certificate-authority" in cluster["cluster"]:
            authority = source.parent / cluster["cluster"]["certificate-authority"]
            cluster["cluster"]["certificate-authority"] = str(authority.resolve())
    for entry in data["users"]:
        for key in ("client-certificate", "client-key", "tokenFile"):
            if key in entry["user"]:
                entry["user"][key] = str((source.parent / entry["user"][key]).resolve())
        if user is not None:
            entry["user"]["as"] = user
    path = folder / f"{source.stem}-{namespace}.conf"
    path.write_text(yaml.safe_dump(data))
    return path


def command_with(config: Path, tmp_path: Path) -> Jobman:
    (tmp_path / "home").mkdir(exist_ok=True)
    names = ("PATH", "PYTHONPATH", "LANG", "COVERAGE_PROCESS_START")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    environment |= {"HOME": str(tmp_path / "home"), "KUBECONFIG": str(config)}
    environment |= {"JOBMAN_STATE": str(tmp_path / "state")}

    def run(*words: str) -> Answer:
        command = [sys.executable, "-m", "jobman.cli.main", "-e", "kubernetes", *words]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert not (tmp_path / "state").exists(), "a service was started"
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


def submitted(jobman: Jobman, *words: str) -> str:
    answer = jobman("submit", *words)
    assert answer.code == 0, answer.err
    job = answer.out.split()[0]
    assert f"jobman -e kubernetes logs -f {job}" in answer.err
    return job


def command(jobman: Jobman, script: str, *options: str) -> str:
    return submitted(jobman, "-i", image(), *options, "--", "sh", "-c", script)


def document(tmp_path: Path, **task: Any) -> str:
    whole = {
        "version": 1,
        "name": "written",
        "tasks": [
            {
                "name": "work",
                "image": image(),
                "command": ["true"],
                "resources": {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]},
                **task,
            }
        ],
    }
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(whole))
    return str(path)


def until(look: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.3)


def state_of(jobman: Jobman, job: str) -> str:
    return str(jobman("details", job, "-o", "json").data["state"])
