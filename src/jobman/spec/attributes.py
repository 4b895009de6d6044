"""Attributes: how things are run, and the flags handed to one engine as they are."""

from __future__ import annotations

from typing import Annotated, Any

from jobman.spec.kinds import Duration, Flag, Items, Names, VerbatimMapping
from jobman.spec.names import FREE, PATH, VARIABLE, WORD
from jobman.spec.records import Key, Of, Record


class Flags(Record, frozen=True, kw_only=True):
    """Options handed to one engine as they are."""

    noun = "`flags`"
    habits = {"k8s": "kubernetes", "sbatch": "slurm"}
    slurm: Annotated[
        tuple[str, ...] | None, Key(Items(WORD, "a list of options"), "options of sbatch and srun")
    ] = None
    flux: Annotated[tuple[str, ...] | None, Key(Items(WORD, "a list of options"), "options of flux")] = None
    kubernetes: Annotated[dict[str, Any] | None, Key(VerbatimMapping("a mapping"), "fields of the pod")] = (
        None
    )


class Attributes(Record, frozen=True, kw_only=True):
    """How things are run."""

    noun = "`attributes`"
    habits = {
        "env": "environment",
        "time": "duration",
        "timeout": "duration",
        "walltime": "duration",
        "time_limit": "duration",
        "timelimit": "duration",
        "workdir": "cwd",
        "working_dir": "cwd",
        "working_directory": "cwd",
        "chdir": "cwd",
        "output": "stdout",
        "error": "stderr",
        "stream": "watch",
    }
    duration: Annotated[float | None, Key(Duration(), "the longest it may run")] = None
    environment: Annotated[
        dict[str, str] | None, Key(Names(VARIABLE, FREE, "a mapping of variables"), "variables of the copies")
    ] = None
    cwd: Annotated[str | None, Key(PATH, "where the command runs")] = None
    watch: Annotated[bool | None, Key(Flag(), "stream the output; later tasks wait for its end")] = None
    stdout: Annotated[str | None, Key(PATH, "file for the output")] = None
    stderr: Annotated[str | None, Key(PATH, "file for the errors")] = None
    flags: Annotated[Flags | None, Key(Of(Flags), "options handed to one engine as they are")] = None
