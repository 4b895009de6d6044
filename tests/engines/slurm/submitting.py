"""A process that submits a job, and may be killed while it does: `python -m` of this, with its conditions."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from jobman.client.failures import Refused, Unreachable
from tests.engines.slurm.ground import Ground


def main(folder: str, key: str) -> None:
    ground = Ground("faults", Path(os.environ["SLURM_CONF"]), Path(folder))
    document = (ground.folder / "document").read_text()
    try:
        submitted = ground.client.submit(ground.submission(document), key=key)
    except (Refused, Unreachable) as error:
        sys.exit(f"{error}")
    print(json.dumps([job.id for job in submitted.jobs]))


if __name__ == "__main__":
    main(*sys.argv[1:])
