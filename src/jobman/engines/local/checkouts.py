"""Checkouts: a revision of a git repository, brought into a folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from jobman.engines.endings import why
from jobman.engines.local.orders import CannotRun

_PATIENCE = 600.0


async def check_out(repository: str, revision: str | None, target: Path) -> None:
    """Clone a repository and check out a branch, tag or commit of it; raises CannotRun."""
    await _git(target.parent, "clone", "--quiet", "--no-checkout", "--", repository, str(target))
    commit = "HEAD" if revision is None else await _commit(repository, revision, target)
    await _git(target, "checkout", "--quiet", "--detach", commit)


async def _commit(repository: str, revision: str, checkout: Path) -> str:
    # A branch of the origin is not yet a branch here.
    for name in (f"refs/remotes/origin/{revision}", f"refs/tags/{revision}", revision):
        found = await _ask(
            checkout, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        if found is not None:
            return found.strip()
    raise CannotRun(f"{repository} has no revision `{revision}`")


async def _ask(cwd: Path, *arguments: str) -> str | None:
    try:
        return await _git(cwd, *arguments)
    except CannotRun:
        return None


async def _git(cwd: Path, *arguments: str) -> str:
    # Nobody is there to answer a question about a password.
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS": "true"}
    try:
        process = await asyncio.create_subprocess_exec(
            *("git", *arguments),
            cwd=cwd,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise CannotRun(f"git cannot be run: {why(error)}") from None
    try:
        output, errors = await asyncio.wait_for(process.communicate(), _PATIENCE)
    except (TimeoutError, asyncio.CancelledError) as error:
        process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise CannotRun(f"git gave no answer within {_PATIENCE:.0f} s") from None
        raise
    if process.returncode:
        said = errors.decode(errors="replace").strip().splitlines()
        raise CannotRun(f"git: {said[-1] if said else 'failed without a word'}")
    return output.decode(errors="replace")
