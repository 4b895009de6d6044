"""The Slurm cluster that jobs are submitted to, as the settings write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from jobman.settings.containers import CONTAINER
from jobman.spec.kinds import Duration, Items, Names, Text
from jobman.spec.names import FREE, NAME, TYPE, WORD
from jobman.spec.records import Element, Key, Of

_FOLDER = Text("a folder's path", r"(?:~|\$[A-Z_]+)?/[^\0]{0,4095}", "it starts with `/`, `~/` or a variable")
_OPTIONS = Names(NAME, FREE, "a mapping of options")
FACT = Text("a fact", r"[^\s\0]{1,250}", "`key=value`, or the key alone for a value of yes")


class Batch(Element, frozen=True, kw_only=True):
    """What the settings say of a manager of batch jobs, whichever it is."""

    account: Annotated[str | None, Key(WORD, "who pays where the document does not say")] = None
    queues: Annotated[
        dict[str, str], Key(Names(NAME, WORD, "a mapping of queues"), "what a queue is called there")
    ] = {}
    facts: Annotated[
        dict[str, str],
        Key(Names(FACT, FREE, "a mapping of names"), "what a fact of `requires` is called there"),
    ] = {}
    default_time: Annotated[float | None, Key(Duration(), "the limit of what has no `duration`")] = None
    scratch: Annotated[str | None, Key(_FOLDER, "where nodes have room for scratch files")] = None
    folder: Annotated[str | None, Key(_FOLDER, "where jobs leave word, seen by all nodes")] = None
    prologue: Annotated[
        tuple[str, ...], Key(Items(FREE, "a list of lines"), "lines that every script begins with")
    ] = ()
    container: Annotated[
        tuple[str, ...],
        Key(CONTAINER, "what runs an image: a program that is known, or words with `{image}`"),
    ] = ()


class Slurm(Batch, frozen=True, kw_only=True):
    noun = "the `slurm` section"
    habits = {"partitions": "queues", "features": "facts", "constraints": "facts", "modules": "prologue"}
    partition: Annotated[str | None, Key(WORD, "where the document names no queue")] = None
    qos: Annotated[str | None, Key(WORD, "the quality of service")] = None
    reservation: Annotated[str | None, Key(WORD, "the reservation that jobs run in")] = None
    priorities: Annotated[
        dict[str, str], Key(Names(NAME, WORD, "a mapping of QOS"), "the QOS of each priority class")
    ] = {}
    resources: Annotated[
        dict[str, str],
        Key(Names(TYPE, WORD, "a mapping of names"), "what a type is called: `gres/NAME` or `license/NAME`"),
    ] = {}


SLURM = Of(Slurm)


class BatchSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site with a manager of batch jobs."""

    account: str | None = None
    queues: dict[str, str] = {}
    facts: dict[str, str] = {}
    default_time: float | None = None
    scratch: str | None = None
    folder: str | None = None
    prologue: tuple[str, ...] = ()
    container: tuple[str, ...] = ()


class SlurmSite(BatchSite, frozen=True, kw_only=True):
    """What the settings say of a Slurm cluster; None leaves it to Slurm."""

    partition: str | None = None
    qos: str | None = None
    reservation: str | None = None
    priorities: dict[str, str] = {}
    resources: dict[str, str] = {}


def slurm_of(values: Mapping[str, Any]) -> SlurmSite:
    """The section of settings as they were read."""
    return msgspec.convert(values.get("slurm", {}), SlurmSite)
