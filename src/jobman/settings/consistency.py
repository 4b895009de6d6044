"""What must agree between values of the settings, whichever files they came from: names, circles, kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from jobman.settings.model import type_of
from jobman.spec.problems import Problem, Problems
from jobman.spec.reading import Reading, child
from jobman.spec.resources import TYPE_HABITS, TYPES
from jobman.spec.suggest import did_you_mean, listing

if TYPE_CHECKING:
    from jobman.settings.accounts import Account
    from jobman.settings.load import Settings
    from jobman.settings.queues import Limits, Queue

DEFAULT_QUEUES = ("interactive", "batch")
"""The queues of settings that have none."""
DEFAULT_ACCOUNT = "default"
"""The account of whoever is in no other; it is there without being written."""
COUNTED = tuple(name for name in TYPES if name != "slot")
"""Kinds of resources that somebody can hold."""
_LIMITS = {"queues": ("limits", "each_user", "each_account"), "accounts": ("limits", "each_user")}


def problems_between(settings: Settings, problems: Problems) -> list[Problem]:
    """All problems of a file that was just laid, those with other files included; none where all is well."""
    _check_queues(settings)
    _check_accounts(settings)
    _check_kinds(settings)
    books = {id(book): book for book in (problems, *(each.problems for each in settings.readings.values()))}
    wrong = [book for book in books.values() if book.has_errors]
    return [problem for book in wrong for problem in book]


# -- queues --------------------------------------------------------------------------------------------------


def _check_queues(settings: Settings) -> None:
    known: Mapping[str, Queue] = settings.values.get("queues", {})
    for queue in known.values():
        reading = settings.readings[id(queue)]
        for number, name in enumerate(queue.borrow):
            place = child(queue.node, "borrow", number)
            if name == queue.name:
                reading.report("JS902", place, name=name)
            elif name not in known:
                _report_unknown("JS901", place, name, known, "queues", reading)
    wanted = settings.values.get("scheduler", {}).get("default_queue")
    if wanted is not None and wanted not in (known or DEFAULT_QUEUES):
        record = settings.records["scheduler.default_queue"]
        place = child(record.node, "default_queue")
        _report_unknown(
            "JS901", place, wanted, known or DEFAULT_QUEUES, "queues", settings.readings[id(record)]
        )


def _report_unknown(
    code: str, place: Any, name: str, known: Mapping[str, Any] | tuple[str, ...], what: str, reading: Reading
) -> None:
    names = list(known)
    otherwise = f"there are the {what} {listing(names)}" if names else f"add it under `{what}`"
    reading.report(code, place, name=name, hint=did_you_mean(reading.closest(name, names), otherwise))


# -- accounts ------------------------------------------------------------------------------------------------


def _check_accounts(settings: Settings) -> None:
    known: Mapping[str, Account] = settings.values.get("accounts", {})
    for account in known.values():
        parent = account.parent
        if parent is not None and parent not in known and parent != DEFAULT_ACCOUNT:
            place = child(account.node, "parent")
            _report_unknown("JS906", place, parent, known, "accounts", settings.readings[id(account)])
    for circle in _circles({name: account.parent for name, account in known.items()}):
        way = "" if len(circle) == 1 else ": " + " below ".join(f"`{name}`" for name in (*circle, circle[0]))
        first = known[circle[0]]
        settings.readings[id(first)].report("JS907", child(first.node, "parent"), name=first.name, way=way)


def _circles(parents: Mapping[str, str | None]) -> Iterator[list[str]]:
    """Each circle once, from the account in it that was written first."""
    done: set[str] = set()
    for start in parents:
        path: list[str] = []
        name: str | None = start
        while name is not None and name in parents and name not in done and name not in path:
            path.append(name)
            name = parents[name]
        if name is not None and name in path:
            circle = path[path.index(name) :]
            first = circle.index(next(each for each in parents if each in circle))
            yield circle[first:] + circle[:first]
        done.update(path)


# -- kinds of resources --------------------------------------------------------------------------------------


def _check_kinds(settings: Settings) -> None:
    known = {*COUNTED, *settings.values.get("resource_types", ()), *_flavor_types(settings)}
    for family, fields in _LIMITS.items():
        for item in settings.values.get(family, {}).values():
            for field in fields:
                _check_kinds_of(
                    getattr(item, field), child(item.node, field), known, settings.readings[id(item)]
                )


def _check_kinds_of(limits: Limits | None, node: Any, known: set[str], reading: Reading) -> None:
    for kind in limits.resources if limits is not None else ():
        if kind not in known:
            meant = reading.closest(kind, sorted(known), TYPE_HABITS)
            otherwise = f"limits count {listing(sorted(known))}"
            place = child(node, "resources", kind)
            reading.report("JS410", place, type=kind, hint=did_you_mean(meant, otherwise))


def _flavor_types(settings: Settings) -> Iterator[str]:
    for flavor in settings.values.get("flavors", {}).values():
        if flavor.resources is not None:
            yield from (type_of(name) for name in flavor.resources.requests)
