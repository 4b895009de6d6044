"""Commands of the lab's Slurm."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def slurm(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SLURM_CONF": os.environ["JOBMAN_LAB_SLURM_CONF"]}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60)
