"""A member of the pool: an agent and its worker, with their part of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from math import ceil

import msgspec

from jobman.engines.local.cgroups import find
from jobman.engines.local.trees import MARKER, kill_all, marked
from jobman.tasks.agent_process import AgentOptions
from jobman.tasks.local_types import LocalType
from jobman.tasks.machine import Machine
from jobman.tasks.room import Amounts
from jobman.tasks.worker_process import group_of

_MOST_WORDS = 4096
_PATIENCE = 20.0
"""Seconds in which an agent ends that is told to."""
_LAST_TASK = 30.0
"""Seconds for which one that finishes its last tasks has its cores for itself."""
_SWEEP = 1.0


class Member:
    """An agent that was started, and what it was given."""

    def __init__(
        self,
        id_: str,
        type_: LocalType,
        needs: Amounts,
        gpus: Sequence[str],
        *,
        machine: Machine,
        place: str,
        now: float,
    ) -> None:
        self.id = id_
        self.type = type_
        self.needs = needs
        self.gpus = tuple(gpus)
        self.since = now
        self._leaves_since: float | None = None
        self._words, write = os.pipe()
        options = AgentOptions(
            broker=place,
            image=type_.image,
            command=type_.command,
            slots=type_.slots,
            id=id_,
            on_port=type_.on_port,
            folder=type_.folder,
            environment={**type_.environment, **_variables(needs, self.gpus, machine), MARKER: id_},
            memory=needs.memory or None,
            gives_up=True,
            words=write,
        )
        try:
            self.process = _spawn(options, write)
        finally:
            os.close(write)
        self.pidfd = os.pidfd_open(self.process.pid)

    @property
    def image(self) -> str:
        return self.type.image

    @property
    def is_leaving(self) -> bool:
        return self._leaves_since is not None

    def drain(self, now: float) -> None:
        """Let it finish what it executes, and end."""
        self._leaves_since = now
        self.process.send_signal(signal.SIGTERM)

    def holds(self, now: float) -> Amounts:
        """What nobody else may have meanwhile.

        A last task that does not end may wait for tasks of another image: that one must come to a core.
        """
        is_late = self._leaves_since is not None and now - self._leaves_since > _LAST_TASK
        return self.needs._replace(cpu=0) if is_late else self.needs

    def end(self) -> None:
        """Wait for one that was told to end; one that does not hear is killed, and its worker with it."""
        try:
            self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def close(self) -> str:
        """Clear away what it left; tells why its worker could not be started, where that was its end."""
        words = os.read(self._words, _MOST_WORDS).decode(errors="replace")
        os.close(self._words)
        os.close(self.pidfd)
        if self.process.returncode < 0:
            _sweep(self.id)
        return words


def _spawn(options: AgentOptions, words: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "jobman.tasks.agent_process", "--parent", str(os.getpid())]
    return subprocess.Popen(
        [*command, msgspec.json.encode(options).decode()],
        stdin=subprocess.DEVNULL,
        process_group=0,
        pass_fds=(words,),
    )


def _variables(needs: Amounts, gpus: Sequence[str], machine: Machine) -> dict[str, str]:
    """What copies of jobs are told, too; GPUs that were not given are hidden where there are any."""
    found = {"JOBMAN_CORES": str(ceil(needs.cpu / 1000)), "JOBMAN_GPUS": str(len(gpus))}
    return found | ({"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if machine.gpus else {})


def _sweep(id_: str) -> None:
    """An agent that was killed could not end what its worker had started."""
    kill_all(lambda: marked(id_), patience=_SWEEP)
    cage = find(group_of(id_))
    cage.kill()
    cage.remove()
