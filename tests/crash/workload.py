"""Jobs of many kinds, each with the end that it must come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.crash.ledger import Ledger


class Kind(NamedTuple):
    """A kind of job, and what is to become of it. Exit codes are those of all attempts, by replica."""

    name: str
    make: Callable[[Ledger], dict[str, Any]]
    state: str
    codes: dict[str, list[int]]
    lines: dict[str, list[str]] = {}
    """What each replica writes, over all its attempts."""
    cancel: bool = False
    order: tuple[str, ...] = ()
    """Tasks that run one after the other."""


def plain(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("echo one; sleep 0.1; echo two; end 0")]}


def failing(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("echo one >&2; end 3")]}


def replicas(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("echo $JOBMAN_REPLICA; sleep 0.05; end $JOBMAN_REPLICA", replicas=3)]}


def flaky(ledger: Ledger) -> dict[str, Any]:
    script = 'echo "attempt $JOBMAN_ATTEMPT"; [ $JOBMAN_ATTEMPT -ge 3 ] || end 75; end 0'
    retries = {"limit": 2, "delay": "0.1s", "on": {"exit_codes": [75]}}
    return {"tasks": [ledger.task(script, retries=retries)]}


def hopeless(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("end 9", retries={"limit": 2, "on": {"exit_codes": [75]}})]}


def chain(ledger: Ledger) -> dict[str, Any]:
    first = ledger.task("sleep 0.05; end 0", name="a")
    second = ledger.task("echo b; end 0", name="b", replicas=2, depends_on=["a"])
    return {"tasks": [first, second, ledger.task("end 4", name="c", depends_on=["b"])]}


def group(ledger: Ledger) -> dict[str, Any]:
    server = ledger.task("exec sleep 600", name="server", service=True)
    work = ledger.task("sleep 0.1; end 0", name="work", depends_on=[{"name": "server", "when": "started"}])
    return {"groups": [{"name": "pair", "tasks": [server, work]}]}


def endless(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("echo one; exec sleep 600", attributes={"duration": "1s"})]}


def untidy(ledger: Ledger) -> dict[str, Any]:
    tidy = ledger.task("echo tidy; end 0", name="tidy", when="always")
    return {"tasks": [ledger.task("end 6"), tidy]}


def regretted(ledger: Ledger) -> dict[str, Any]:
    return {"tasks": [ledger.task("exec sleep 600"), ledger.task("end 0", name="tidy", when="always")]}


TERM = 128 + 15
KINDS = (
    Kind("plain", plain, "succeeded", {"main.0": [0]}, {"main.0": ["one", "two"]}),
    Kind("failing", failing, "failed", {"main.0": [3]}, {"main.0": ["one"]}),
    Kind(
        "replicas",
        replicas,
        "failed",
        {"main.0": [0], "main.1": [1], "main.2": [2]},
        {"main.0": ["0"], "main.1": ["1"], "main.2": ["2"]},
    ),
    Kind(
        "flaky",
        flaky,
        "succeeded",
        {"main.0": [75, 75, 0]},
        {"main.0": ["attempt 1", "attempt 2", "attempt 3"]},
    ),
    Kind("hopeless", hopeless, "failed", {"main.0": [9]}),
    Kind(
        "chain",
        chain,
        "failed",
        {"a.0": [0], "b.0": [0], "b.1": [0], "c.0": [4]},
        {"b.0": ["b"], "b.1": ["b"]},
        order=("a", "b", "c"),
    ),
    Kind("group", group, "succeeded", {"pair.0/server.0": [TERM], "pair.0/work.0": [0]}),
    Kind("endless", endless, "failed", {"main.0": [TERM]}, {"main.0": ["one"]}),
    Kind(
        "untidy",
        untidy,
        "failed",
        {"main.0": [6], "tidy.0": [0]},
        {"tidy.0": ["tidy"]},
        order=("main", "tidy"),
    ),
    Kind("regretted", regretted, "cancelled", {"main.0": [TERM], "tidy.0": [0]}, cancel=True),
)
WEIGHTS = {"plain": 8, "group": 1, "endless": 1, "regretted": 1}
