"""Scripts for tests, and what becomes of them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import jobman.convert
from jobman.api import loads
from jobman.convert import Converted
from jobman.convert.options import Where
from jobman.convert.remarks import Remarks
from jobman.convert.sbatch_options import SBATCH
from jobman.convert.words import Word

NOW = datetime(2031, 3, 4, 12, 15, tzinfo=timezone(timedelta(hours=1)))
convert: Any = jobman.convert.convert
convert_sbatch: Any = jobman.convert.convert_sbatch
"""Without types: a test looks into the document, and fails where there is none."""
SRUN_INSIDE = "srun ./first\nsrun ./second"


def script(*lines: str, body: str = "true", shell: str = "/bin/bash") -> str:
    return "\n".join([f"#!{shell}", *(f"#SBATCH {line}" for line in lines), body, ""])


def converted(*lines: str, body: str = "true", above: str = "", **more) -> Any:
    """A script with these options in its lines, and others on the command line."""
    words = [Word(word, 0, 0) for word in above.split()]
    given, _ = SBATCH.read(words, Where(), Remarks())
    return convert_sbatch("job.sh", script(*lines, body=body), NOW, given=given, **more)


def document(*lines: str, **more) -> Any:
    found = converted(*lines, **more)
    assert found.document is not None, found.problems
    return found.document


def part(*lines: str, **more) -> Any:
    """The task or the group that a script becomes."""
    found = document(*lines, **more)
    [one] = found.get("tasks") or found["groups"]
    return one


def codes(found: Converted) -> list[str]:
    return [problem.code for problem in found.problems]


def complaints(found: Converted) -> list[str]:
    """What `jobman check` has against a document, warnings about the site's own names apart."""
    spec = loads(found.text())
    return [f"{each.code} {each.message}" for each in spec.problems if each.code not in ("JS806", "JS807")]
