"""The client of a manager of batch jobs, as the settings and the environment have it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobman.client.batch import BatchClient
from jobman.client.failures import Unreachable
from jobman.control.places import find_places
from jobman.engines.flux.engine import Flux
from jobman.engines.scripts.commands import Failed, NotThere
from jobman.engines.scripts.delegate import Delegate
from jobman.engines.slurm.engine import Slurm, user
from jobman.plan.model import Plan
from jobman.plan.satisfy import Match
from jobman.settings.slurm import BatchSite

DELEGATES: dict[str, type[Delegate]] = {"slurm": Slurm, "flux": Flux}


def open_batch(engine: str, values: Mapping[str, Any]) -> BatchClient:
    """A client for this user. Jobs leave word in `folder` of the settings, else below the home folder."""
    manager = DELEGATES[engine]()
    root = root_of(manager.site(values), engine)
    return BatchClient(manager, root=root, database=find_places().state / "batch.sqlite", owner=user())


def matches_there(engine: str, values: Mapping[str, Any], plans: Sequence[Plan]) -> tuple[list[Match], int]:
    """Which nodes of the manager could take each task of these plans, and how many nodes it has."""
    manager = DELEGATES[engine]()
    site = manager.site(values)
    try:
        nodes = manager.nodes()
        return [match for plan in plans for match in manager.matches(plan, nodes, site)], len(nodes)
    except NotThere as error:
        raise Unreachable(f"{error}.", error.advice) from error
    except Failed as error:
        raise Unreachable(f"{error}.", "`jobman nodes` asks for the same") from error


def root_of(site: BatchSite, engine: str) -> Path:
    """Where the folders of jobs are."""
    return Path(os.path.expandvars(site.folder or "~/.jobman/jobs")).expanduser() / engine
