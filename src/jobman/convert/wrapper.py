"""The lines that go before a script: what Slurm would have told it, and a stand-in for `srun`.

All of it is plain sh, so that whatever shell the script asks for can run it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import Literal, NamedTuple

from jobman.convert.allocation import Allocation
from jobman.convert.remarks import Remarks
from jobman.convert.values import Indexes
from jobman.spec.problems import Place

Form = Literal["script", "copies", "group"]
"""One script on one node; a copy per slot; a script that leads a group of nodes."""
_SHELLS = ("bash", "sh", "dash", "ksh")
MOST_BYTES = 100_000
"""Linux takes 128 KiB in one argument, and the lines before the script need room, too."""


class Interpreter(NamedTuple):
    """The first line of a script."""

    words: tuple[str, ...]

    @property
    def is_shell(self) -> bool:
        program = self.words[1] if self.words[0].endswith("/env") and len(self.words) > 1 else self.words[0]
        return program.rpartition("/")[2] in _SHELLS


def interpreter_of(text: str) -> Interpreter | None:
    """What `#!` names; None where the text is no script."""
    first = text.split("\n", 1)[0]
    words = first[2:].split() if first.startswith("#!") else []
    return Interpreter(tuple(words)) if words else None


def sound_interpreter(name: str, text: str, remarks: Remarks) -> Interpreter | None:
    """What runs the script; none where it is no script or too long."""
    interpreter, size = interpreter_of(text), len(text.encode("utf-8", "replace"))
    if interpreter is None:
        remarks.add("JC108", Place(name, 1, 1, 1, 2), text.split("\n", 1)[0])
    elif text.split("\n", 1)[0].endswith("\r"):
        remarks.add("JC114", Place(name, 1, 1, 1, 2))
        return None
    elif size > MOST_BYTES:
        remarks.add("JC109", Place(name, 1, 1, 1, 2), size=size, limit=MOST_BYTES)
        return None
    return interpreter


class Facts(NamedTuple):
    """What the lines tell the script."""

    form: Form
    name: str
    allocation: Allocation
    array: Indexes | None = None
    told: tuple[tuple[str, str], ...] = ()
    """Further variables, as they were given."""
    submit_dir: str | None = ""
    """The folder of submission; empty for the one the script starts in, None where nobody knows it."""
    stands_in: bool = False
    """Whether the script may call `srun`."""
    redirections: tuple[str, ...] = ()


def command_of(
    interpreter: Interpreter, text: str, before: Iterable[str], title: str, arguments: Sequence[str] = ()
) -> list[str]:
    """The command that runs a script, with lines of sh before it."""
    lines = [*before]
    lines += [""] if lines else []
    if interpreter.is_shell:
        shown = [f"# -- {title} --", *text.split("\n")[1:]]
        return [*interpreter.words, "-c", "\n".join([*lines, *shown]), title, *arguments]
    mark = "JOBMAN_SCRIPT"
    while mark in text:
        mark += "_"
    kept = '"${JOBMAN_SCRATCH:-/tmp}/script.$$"'
    lines += [f"cat >{kept} <<'{mark}'", *text.removesuffix("\n").split("\n"), mark]
    lines += [f'exec {shlex.join(interpreter.words)} {kept} "$@"', ""]
    return ["/bin/sh", "-c", "\n".join(lines), title, *arguments]


def slurm_lines(facts: Facts) -> Iterator[str]:
    """What a script of Slurm is told."""
    yield "# What Slurm tells a script; where it runs on Slurm, what Slurm says holds."
    yield 'jobman_slurm="${SLURM_JOB_ID-}"'
    if facts.form == "script":
        yield from _as_one_copy(facts)
    if facts.stands_in:
        yield from _stand_in()
    yield from _about_the_job(facts)
    yield from _about_the_array(facts.array)
    yield from _about_the_tasks(facts)
    yield from (f"exec {each}" for each in facts.redirections)


def _as_one_copy(facts: Facts) -> Iterator[str]:
    """To Slurm such a script is a step of one task with many cores, and the steps it starts share them."""
    if facts.stands_in:
        yield "export SLURM_OVERLAP=1"
    yield "unset SLURM_STEP_ID SLURM_STEPID SLURM_CPU_BIND SLURM_CPU_BIND_LIST SLURM_CPU_BIND_TYPE"
    yield "unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE"
    yield "unset SLURM_NPROCS"


def _stand_in() -> Iterator[str]:
    yield 'if [ -z "$jobman_slurm" ]; then'
    yield '    jobman_bin="${JOBMAN_SCRATCH:-/tmp}/bin.$$"'
    yield '    mkdir -p "$jobman_bin"'
    yield "    cat >\"$jobman_bin/srun\" <<'JOBMAN_SRUN'"
    yield from resources.files(__package__).joinpath("srun.sh").read_text("utf-8").splitlines()
    yield "JOBMAN_SRUN"
    yield '    chmod +x "$jobman_bin/srun"'
    yield '    PATH="$jobman_bin:$PATH"'
    yield "    export PATH"
    yield "fi"


def _about_the_job(facts: Facts) -> Iterator[str]:
    yield _unless("SLURM_JOB_ID", "$JOBMAN_JOB_ID")
    yield _unless("SLURM_JOBID", "$SLURM_JOB_ID")
    yield f"export SLURM_JOB_NAME={shlex.quote(facts.name)}"
    if facts.submit_dir is not None:
        yield _unless("SLURM_SUBMIT_DIR", _inside(facts.submit_dir) or "$PWD")
    yield _unless("SLURM_JOB_USER", "$(id -un)")
    yield _unless("SLURM_RESTART_COUNT", "$((JOBMAN_ATTEMPT - 1))")
    for name, value in facts.told:
        yield _unless(name, _inside(value))


def _about_the_array(array: Indexes | None) -> Iterator[str]:
    """Set on Slurm, too: there the array counts replicas, and the script's own numbers may be others."""
    if array is None:
        return
    before = 0
    for number, (first, step, count) in enumerate(array.runs):
        word = "elif" if number else "if"
        value = f"{first} + (JOBMAN_REPLICA - {before}) * {step}"
        before += count
        yield f'{word} [ "$JOBMAN_REPLICA" -lt {before} ]; then SLURM_ARRAY_TASK_ID=$(({value}))'
    numbers = array.numbers
    yield "fi"
    yield (
        f"export SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT={len(numbers)} "
        f"SLURM_ARRAY_TASK_MIN={numbers[0]} SLURM_ARRAY_TASK_MAX={numbers[-1]}"
    )
    yield f"export SLURM_ARRAY_TASK_STEP={array.runs[0][1] if len(array.runs) == 1 else 1}"
    yield _unless("SLURM_ARRAY_JOB_ID", "$SLURM_JOB_ID")


def _about_the_tasks(facts: Facts) -> Iterator[str]:
    """A script of one node sees the numbers it asked for: to the engine it is one copy with many cores."""
    allocation = facts.allocation
    by_node = allocation.ntasks_per_node or -(-allocation.tasks // (allocation.node_count or 1))
    if facts.form == "copies":
        yield _unless("SLURM_PROCID", "$JOBMAN_RANK")
        yield _unless("SLURM_NTASKS", "$JOBMAN_SIZE")
        yield _unless("SLURM_NODEID", "$JOBMAN_NODE_RANK")
        yield _unless("SLURM_LOCALID", f"$((JOBMAN_RANK % {by_node}))")
    else:
        tell = _now if facts.form == "script" else _unless
        yield tell("SLURM_NTASKS", str(allocation.tasks))
        yield tell("SLURM_CPUS_ON_NODE", str(_cores_of_first(allocation)))
        yield from (_unless(name, "0") for name in ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"))
    nodes = str(allocation.node_count or 1) if facts.form == "group" else "$JOBMAN_NNODES"
    yield _unless("SLURM_NPROCS", "$SLURM_NTASKS")
    yield from (_unless(name, nodes) for name in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"))
    yield from (_unless(name, "$JOBMAN_NODELIST") for name in ("SLURM_JOB_NODELIST", "SLURM_NODELIST"))
    yield from _as_asked(facts)


def _as_asked(facts: Facts) -> Iterator[str]:
    """What Slurm tells only where it was asked for."""
    allocation = facts.allocation
    tell = _now if facts.form == "script" else _unless
    by_task = {
        "SLURM_CPUS_PER_TASK": allocation.cpus_per_task,
        "SLURM_NTASKS_PER_NODE": allocation.ntasks_per_node,
    }
    yield from (tell(name, str(number)) for name, number in by_task.items() if number is not None)
    amounts = {
        "SLURM_MEM_PER_NODE": allocation.mem,
        "SLURM_MEM_PER_CPU": allocation.mem_per_cpu,
        "SLURM_GPUS": allocation.gpus,
        "SLURM_GPUS_PER_NODE": allocation.gpus_per_node,
        "SLURM_GPUS_PER_TASK": allocation.gpus_per_task,
        "SLURM_GPUS_ON_NODE": allocation.gpu_total // (allocation.node_count or 1) or None,
    }
    told = " ".join(f"{name}={number}" for name, number in amounts.items() if number is not None)
    if told:
        # `srun` takes these as options, and refuses two that say the same in different ways.
        yield f'[ -n "$jobman_slurm" ] || export {told}'


def _cores_of_first(allocation: Allocation) -> int:
    return -(-allocation.core_count // (allocation.node_count or 1))


def _unless(name: str, value: str) -> str:
    """A variable that is set unless it is."""
    return f'export {name}="${{{name}:-{value}}}"'


def _now(name: str, value: str) -> str:
    return f'export {name}="{value}"'


def _inside(text: str) -> str:
    """A text as it stands inside double quotes and braces."""
    return re.sub(r'([$`"\\}])', r"\\\1", text)
