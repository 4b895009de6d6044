"""A stand-in for `flux`: it writes down how it is called, and answers as Flux does who submits or looks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_PROGRAM = r"""#!/usr/bin/env python3
import json, os, re, sys
from pathlib import Path

here = Path(os.environ["STAND_IN"])
words = sys.argv[1:]
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(words) + "\n")
troubles = here / "troubles"
if words[0] in ("submit", "batch") and "--dry-run" not in words and troubles.exists():
    left = troubles.read_text().splitlines()
    troubles.write_text("\n".join(left[1:]))
    if left and left[0]:
        kind, _, text = left[0].partition("|")
        if kind == "lost":
            sys.exit(text)
    else:
        kind, text = "", ""
else:
    kind, text = "", ""
listed = here / "jobs"
jobs = json.loads(listed.read_text()) if listed.exists() else []

def value(name):
    found = [word.partition("=")[2] for word in words if word.startswith(f"--{name}=")]
    return found[-1] if found else ""

def directives(script):
    lines = [line for line in Path(script).read_text().splitlines() if line.startswith("#flux: --job-name=")]
    return re.sub(r"^#flux: --job-name='?(.*?)'?$", r"\1", lines[0])

def add(name):
    jobs.append({"jobid": f"f{len(jobs) + 1}", "name": name, "state": "SCHED",
                 "urgency": int(value("urgency") or 16), "userid": os.geteuid()})
    print(jobs[-1]["jobid"])

if words[:1] == ["--version"]:
    print("commands: 0.88.0")
elif "--dry-run" in words or words[:2] == ["config", "get"]:
    print("{}")
elif words[0] == "python":
    lines = sys.stdin.read().splitlines()
    pairs = [line for line in lines if len(line.split()) == 2]
    wanted = dict(line.split() for line in pairs)
    with (here / "urgencies").open("a") as place:
        place.write("".join(f"{line}\n" for line in pairs))
    for job in jobs:
        job["urgency"] = int(wanted.get(job["jobid"], job["urgency"]))
    print("\n" * (len(lines) - len(wanted)), end="")
elif words[0] in ("submit", "batch"):
    script = next(word for word in words if word.endswith(".sh"))
    if value("cc"):
        for number in value("cc").split(","):
            add(value("job-name").replace("{cc}", number))
    else:
        add(value("job-name") or directives(script))
elif words[0] == "jobs":
    print(json.dumps({"jobs": jobs}))
elif words[0] == "cancel":
    for job in jobs:
        if job["jobid"] in words:
            job.update(state="INACTIVE", result="CANCELED", t_inactive=1.0)
listed.write_text(json.dumps(jobs))
if kind == "arrived":
    sys.exit(text)
"""


class StandIn:
    """Where the stand-in is, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "bin" / "flux"
        program.parent.mkdir(parents=True)
        program.write_text(_PROGRAM)
        program.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "STAND_IN": str(folder),
        }

    def fails(self, *troubles: str) -> None:
        """What the next submissions come to: `lost|WORDS` before they arrive, or `arrived|WORDS` after."""
        (self.folder / "troubles").write_text("\n".join(troubles))

    @property
    def calls(self) -> list[list[str]]:
        place = self.folder / "calls"
        return [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []

    def called(self, *words: str) -> list[list[str]]:
        """The calls that began so, but for questions."""
        found = [call for call in self.calls if call[: len(words)] == list(words)]
        return [call for call in found if "--dry-run" not in call]

    @property
    def urgencies(self) -> list[str]:
        """What was held or released, in order: a job and its urgency."""
        place = self.folder / "urgencies"
        return place.read_text().splitlines() if place.exists() else []

    @property
    def jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder / "jobs").read_text())
        return found

    def change(self, name: str, **values: Any) -> None:
        """Have the job of this name as Flux would tell of it later."""
        jobs = self.jobs
        for job in jobs:
            if job["name"].startswith(name):
                job.update(values)
        (self.folder / "jobs").write_text(json.dumps(jobs))
