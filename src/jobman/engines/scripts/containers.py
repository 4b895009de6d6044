"""Images: the words before a command that run it in a container, and what they must know of a copy.

A program that stays around its command, such as apptainer, needs nothing else. One that only asks for a
container, such as podman, has to be told the environment, and what it started has to be ended by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files

from jobman.engines.peers import shouted
from jobman.engines.scripts.given import FOLDER, is_given
from jobman.engines.scripts.quoting import array, number, quoted
from jobman.engines.scripts.site import Job
from jobman.plan.model import Unit
from jobman.spec.steps import Write

Known = Callable[[Unit, tuple[str, ...]], tuple[str, ...]]
"""The words of a program for a unit, and for the places that it must see."""
CLEARING = 10.0
"""Seconds beyond the grace of a command in which its container is ended and removed."""
_AT_RUN = ("{cwd}", "{scratch}", "{name}", "{environment}", "{init}")
"""What only a copy knows."""
_OWN = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD")
"""Variables that the program needs as they are outside, whatever the document says of them."""


def is_contained(unit: Unit, job: Job) -> bool:
    """Whether a unit runs in a container."""
    return bool(unit.image and job.container) and not (job.no_container or unit.local)


def clearing(unit: Unit, job: Job) -> float:
    """How much longer than its grace the end of a command may take."""
    return CLEARING if any("{name}" in word for word in _words(unit, 0, job)) else 0.0


def lines(unit: Unit, tag: int, job: Job, grace: float, axes: Sequence[str]) -> Iterator[str]:
    """The words before a command as `wrap`, and those before what runs beside it as `inside`."""
    words = _words(unit, tag, job)
    if not words:
        return
    if not _asks(words):
        yield array("wrap", words, axes)
        yield 'inside=("${wrap[@]}")'
        return
    names = " ".join(_variables(unit))
    given = _given(tag, job) if is_given(unit) else ""
    said = " ".join(quoted(word) for word in ("run", number(grace), names, given))
    own = " ".join(f'"${{{name}-}}"' for name in _OWN)
    yield 'wrap=(/bin/bash -c "$CONTAINER" container'
    yield f"    {said} {own} {len(words)}"
    yield f"    {' '.join(quoted(word, axes) for word in words)})"
    yield 'inside=("${wrap[@]}") inside[4]=inside'


def function(unit: Unit, job: Job) -> Iterator[str]:
    """The program around a container, where there must be one."""
    if _asks(_words(unit, 0, job)):
        yield f"CONTAINER={quoted(_program())}"


def checked(unit: Unit) -> Iterator[str]:
    """Commands that ask how it is ask inside."""
    checks = unit.policies.checks
    if checks is None:
        return
    for name, check in (("ready", checks.ready), ("alive", checks.alive), ("begun", checks.started)):
        if check is not None and check.exec:
            yield f'{name}=("${{{name}[@]:0:6}}" "${{inside[@]}}" "${{{name}[@]:6}}")'


def _words(unit: Unit, tag: int, job: Job) -> tuple[str, ...]:
    """The words before a command; none where it runs as it is."""
    if not is_contained(unit, job):
        return ()
    known = _KNOWN.get(job.container[0]) if len(job.container) == 1 else None
    words = (job.container[0], *known(unit, tuple(_places(unit, tag, job)))) if known else job.container
    return tuple(word.replace("{image}", unit.image or "") for word in words)


def _places(unit: Unit, tag: int, job: Job) -> Iterator[str]:
    """Where there is something that a command looks for at the same place inside."""
    yield from ("{cwd}", "{scratch}")
    for step in unit.steps:
        place = step.path if isinstance(step, Write) else step.to or step.path
        if place.startswith("/"):
            yield place
    if any(secret.variable is None for secret in unit.policies.secrets):
        yield _given(tag, job)


def _given(tag: int, job: Job) -> str:
    return f"{job.folder}/{FOLDER}/{tag}"


def _asks(words: Sequence[str]) -> bool:
    return any(place in word for word in words for place in _AT_RUN)


def _variables(unit: Unit) -> Iterator[str]:
    yield from unit.matrix
    yield from unit.environment
    for port in unit.policies.ports:
        if port.name is not None:
            yield f"PORT_{shouted(port.name)}"


@cache
def _program() -> str:
    return files("jobman.engines.scripts").joinpath("runtime", "container.sh").read_text()


def _engine(gpus: tuple[str, ...]) -> Known:
    """The words of programs that ask for a container, which are those of podman but for the GPUs."""

    def words(unit: Unit, places: tuple[str, ...]) -> tuple[str, ...]:
        mounts = (f"type=bind,source={place},target={place}" for place in places)
        return (
            *("run", "--rm", "--quiet", "--name", "{name}", "--network", "host", "--log-driver", "none"),
            *("{init}", "{environment}", "--security-opt", "label=disable"),
            *(word for mount in mounts for word in ("--mount", mount)),
            *(("--workdir", "{cwd}") if unit.cwd is not None else ()),
            *(gpus if _has_gpus(unit) else ()),
            # The command is the document's alone, whatever entry point the image has.
            *("--entrypoint=", "{image}"),
        )

    return words


def _apptainer(unit: Unit, places: tuple[str, ...]) -> tuple[str, ...]:
    binds = [word for place in places for word in ("--bind", place)]
    image = "{image}" if (unit.image or "").endswith(".sif") else "docker://{image}"
    return ("exec", *binds, "--pwd", "{cwd}", *(("--nv",) if _has_gpus(unit) else ()), image)


_KNOWN: dict[str, Known] = {
    "apptainer": _apptainer,
    "singularity": _apptainer,
    "podman": _engine(("--device", "nvidia.com/gpu=all")),
    "docker": _engine(("--gpus", "all")),
}


def _has_gpus(unit: Unit) -> bool:
    return any("gpu" in part.each for alternative in unit.alternatives for part in alternative)
