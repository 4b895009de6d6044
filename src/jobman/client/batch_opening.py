"""The client of a manager of batch jobs, as the settings and the environment have it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobman.client.batch import BatchClient
from jobman.control.places import find_places
from jobman.engines.scripts.delegate import Delegate
from jobman.engines.slurm.engine import Slurm, user

DELEGATES: dict[str, type[Delegate]] = {"slurm": Slurm}


def open_batch(engine: str, values: Mapping[str, Any]) -> BatchClient:
    """A client for this user. Jobs leave word in `folder` of the settings, else below the home folder."""
    manager = DELEGATES[engine]()
    site = manager.site(values)
    root = Path(os.path.expandvars(site.folder or "~/.jobman/jobs")).expanduser() / engine
    return BatchClient(manager, root=root, database=find_places().state / "batch.sqlite", owner=user())
