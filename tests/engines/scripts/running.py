"""Scripts of Slurm, compiled from a document and run by a plain bash in the place of a node."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from jobman.api import loads
from jobman.engines.scripts.delegate import texts_of
from jobman.engines.scripts.folder import FOLDERS, Folder
from jobman.engines.scripts.records import Line, read_logs
from jobman.engines.scripts.site import Job
from jobman.engines.slurm.compile import Script, compile_plan
from jobman.plan.model import Plan
from jobman.settings import settings_from_text
from jobman.settings.slurm import SlurmSite

NODE = {"SLURM_JOB_NODELIST": "here", "SLURM_JOB_NUM_NODES": "1", "SLURMD_NODENAME": "here"}
"""What Slurm tells a script that has one node."""
SETTINGS = settings_from_text("resource_types: [fpga, matlab, nic]\n", "settings.yaml")
ONE = "resources: {type: slot, count: 1, with: [{type: core, count: 1}]}"


def plan_of(tasks: str, head: str = "", **changed: Any) -> Plan:
    """The plan of some tasks; the first of them may be changed to what YAML would not let through."""
    text = f"version: 1\nname: job\n{head}tasks:\n{tasks}"
    plan = loads(text, name="job.yaml", settings=SETTINGS).plan()
    first = msgspec.structs.replace(plan.units[0], **changed)
    return msgspec.structs.replace(plan, units=(first, *plan.units[1:]))


def scripts_of(plan: Plan, folder: Path | str, site: SlurmSite | None = None, **more: Any) -> list[Script]:
    job = Job(id="0123456789ab", name=plan.name or "job", folder=str(folder), file="job.yaml", **more)
    return compile_plan(plan, job, site or SlurmSite())


def run_script(
    script: Script, folder: Path, environment: Mapping[str, str] | None = None, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """Run one, as `sbatch` would on a node, until it ends."""
    place = lay_out(script, folder)
    found = {"PATH": os.environ["PATH"], "TMPDIR": str(folder), **NODE, **(environment or {}), **more}
    return subprocess.run(["bash", str(place)], env=found, cwd=folder, capture_output=True, timeout=60)


def lay_out(script: Script, folder: Path) -> Path:
    """The folder of its job, with the script in it."""
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "ids").touch()
    for name, text in texts_of([script]).items():
        (folder / "scripts" / f"{name}.sh").write_text(text)
    return folder / "scripts" / f"{script.name}.sh"


def words_of(folder: Path) -> list[Line]:
    return read_logs(folder / "log")


def written(folder: Path, key: str, attempt: int = 1, stream: str = "out") -> bytes:
    (found,) = (path for path in Folder(folder).outputs(key, attempt) if path.suffix == f".{stream}")
    return found.read_bytes()
