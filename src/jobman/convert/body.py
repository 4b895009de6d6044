"""What a script does besides its options: whether it starts steps, or only prepares one `srun` at its end."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobman.convert.allocation import Allocation
from jobman.convert.options import Option, Table, Where
from jobman.convert.remarks import Remarks
from jobman.convert.words import expanded, shell_words

_LAUNCHER = re.compile(
    r"(?:^|[\s;&|(`!])(srun|mpirun|mpiexec(?:\.hydra)?|orterun|prterun|prun|ibrun)(?=\s|$)"
)
_SRUN = re.compile(r"^srun\s")
_PREPARES = re.compile(
    r"^(?:(?:export\s+)?\w+=|(?:export|unset|module|ml|source|\.|set|shopt|ulimit|umask|cd|conda\s+activate"
    r"|spack\s+load)(?:\s|$))"
)
_OWN_TO_A_COPY = re.compile(
    r"\$\{?(?:SLURM_(?:PROCID|LOCALID|NODEID|TASK_PID)|RANDOM|HOSTNAME|BASHPID|\$|PPID)"
)
SRUN = Table(
    (
        Option("ntasks", "n"),
        Option("nodes", "N"),
        Option("cpus-per-task", "c"),
        Option("ntasks-per-node", also=("tasks-per-node",)),
        Option("cpu-bind"),
        Option("mpi"),
        Option("hint"),
        Option("distribution", "m"),
        Option("unbuffered", "u", "nothing"),
        Option("kill-on-bad-exit", "K", "maybe"),
        Option("exact", takes="nothing"),
        Option("exclusive", takes="maybe"),
        Option("overlap", takes="nothing"),
        Option("quiet", "Q", "nothing"),
    )
)
"""Options of `srun` with which a task of copies means the same; with others the line is left to srun."""


class FinalStep(NamedTuple):
    """A script that only prepares and then starts its copies: what every copy runs."""

    text: str


def launcher_in(text: str) -> str | None:
    """The first program by which the script would start copies."""
    for line in _code_lines(text):
        if found := _LAUNCHER.search(line):
            return found[1]
    return None


def final_step(text: str, allocation: Allocation) -> FinalStep | None:
    """The script with its last `srun COMMAND` as the command alone; None where it is no such script."""
    lines = text.split("\n")
    code = [number for number, line in enumerate(lines) if _is_code(line)]
    if not code or any(lines[number].rstrip().endswith("\\") for number in code):
        return None
    *before, last = code
    if not all(_only_prepares(lines[number]) for number in before):
        return None
    command = _copies_of(lines[last].strip(), allocation)
    if command is None:
        return None
    return FinalStep("\n".join([*lines[:last], f"exec {command}", *lines[last + 1 :]]))


def _only_prepares(line: str) -> bool:
    plain = line.strip()
    return (
        bool(_PREPARES.match(plain))
        and shell_words(plain) is not None
        and not _OWN_TO_A_COPY.search(expanded(plain))
    )


def _copies_of(line: str, allocation: Allocation) -> str | None:
    """The command of `srun [options] COMMAND`, where its copies are those of the allocation."""
    words = shell_words(line) if _SRUN.match(line) else None
    if words is None or _OWN_TO_A_COPY.search(expanded(line)):
        return None
    remarks = Remarks()
    given, command = SRUN.read(words[1:], Where(), remarks, stops=True)
    if remarks.have_errors() or not command or command[0].text.startswith("$"):
        return None
    asked = {one.option.name: one.value for one in given}
    return line[command[0].start :] if _is_all(asked, allocation) else None


def _is_all(asked: dict[str, str | None], allocation: Allocation) -> bool:
    """Whether a step takes the allocation as it is."""
    wanted = {
        "ntasks": (allocation.tasks,),
        "nodes": (allocation.nodes or allocation.node_count,),
        "cpus-per-task": (allocation.cpus_per_task or 1,),
        "ntasks-per-node": (allocation.ntasks_per_node,),
    }
    known = {"$SLURM_NTASKS": "ntasks", "$SLURM_CPUS_PER_TASK": "cpus-per-task", "$SLURM_NNODES": "nodes"}
    return all(
        asked[name]
        in (*(str(number) for number in numbers), *(text for text, of in known.items() if of == name))
        for name, numbers in wanted.items()
        if asked.get(name) is not None
    )


def _is_code(line: str) -> bool:
    plain = line.strip()
    return bool(plain) and not plain.startswith("#")


def _code_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if _is_code(line)]
