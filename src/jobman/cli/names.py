"""`jobman __jobs`: names and ids of jobs, one per line, for completion. It never starts a service."""

from __future__ import annotations

import sys

_MOST = 200


def names() -> None:
    """Print names and ids of your newest jobs; nothing where no service runs."""
    from jobman.cli.calls import open_client
    from jobman.client import Refused, Unreachable

    try:
        page = open_client(start=False).jobs_page(mine=True, limit=_MOST)
    except (Unreachable, Refused):
        return
    words = dict.fromkeys([*(job.name for job in page.items), *(job.id for job in page.items)])
    sys.stdout.writelines(f"{word}\n" for word in words)
