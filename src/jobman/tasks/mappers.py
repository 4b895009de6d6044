"""Mappers that tasks name, in the place of the table: a Python entry point, or a service that answers HTTP.

The settings name them, `mappers: {pricing: https://mapper.site/map, local: python:NAME}`, so that no task
makes a broker talk to whom its site does not know. Both get the type, version and parameters of a task, and
give an image with resources and environment, or nothing where they know of none. What they said is kept for a
while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from importlib.metadata import entry_points
from typing import Any
from urllib.parse import urlsplit

import msgspec

from jobman.tasks.addresses import parse
from jobman.tasks.mapper import Executor, Unmappable
from jobman.tasks.submissions import Refusal
from jobman.tasks.wire import JSON

GROUP = "jobman.mappers"
_PYTHON = "python:"
_SECONDS = 5.0
_KEPT = 60.0
_MOST_KEPT = 10_000


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a mapper is asked."""

    type: str
    version: str | None = None
    parameters: dict[str, str] = {}


Ask = Callable[[Question], Awaitable[Executor | None]]


class Mappers:
    """Those that the settings name."""

    def __init__(
        self, named: Mapping[str, str] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Raises ValueError where one is neither an address nor an entry point that is installed."""
        self._asks = {name: _ask(name, place) for name, place in (named or {}).items()}
        self._clock = clock
        self._kept: dict[tuple[str, bytes], tuple[float, Executor]] = {}

    async def map(self, name: str, question: Question) -> Executor:
        """The image for a task; raises Unmappable, or Refusal where nobody answers."""
        ask = self._asks.get(name)
        if ask is None:
            known = ", ".join(sorted(self._asks)) or "none"
            raise Refusal("unmappable", f"there is no mapper `{name}`", f"the known mappers are: {known}")
        key = name, msgspec.msgpack.encode(question)
        at, kept = self._kept.get(key, (0.0, None))
        if kept is not None and self._clock() - at < _KEPT:
            return kept
        found = await self._asked(name, ask, question)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[key] = self._clock(), found
        return found

    async def _asked(self, name: str, ask: Ask, question: Question) -> Executor:
        version = "" if question.version is None else f", version {question.version}"
        try:
            found = await ask(question)
        except (Unmappable, Refusal):
            raise
        except Exception as error:
            words = f"the mapper `{name}` fails: {str(error) or type(error).__name__}"
            raise Refusal("mapper", words, "submit again later, or name another mapper", _SECONDS) from error
        if found is None:
            words = f"the mapper `{name}` knows nobody who executes `{question.type}`{version}"
            raise Unmappable(words, "name another mapper, or none for the table of the site")
        return found


def _ask(name: str, place: str) -> Ask:
    if place.startswith(("http://", "https://")):
        return _service(place)
    if place.startswith(_PYTHON):
        return _function(name, place.removeprefix(_PYTHON))
    raise ValueError(f"the mapper `{name}` is an address, or {_PYTHON}NAME of an entry point in {GROUP}")


def _function(name: str, entry: str) -> Ask:
    found = entry_points(group=GROUP, name=entry)
    if not found:
        known = ", ".join(sorted(each.name for each in entry_points(group=GROUP))) or "none"
        words = f"the mapper `{name}`: no entry point `{entry}` in {GROUP} is installed"
        raise ValueError(f"{words}; there are: {known}")
    function: Callable[[Question], Any] = next(iter(found)).load()

    async def ask(question: Question) -> Executor | None:
        return _executor(await asyncio.to_thread(function, question))

    return ask


def _service(url: str) -> Ask:
    address, path = parse(url), urlsplit(url).path or "/"

    async def ask(question: Question) -> Executor | None:
        connection = address.connection({"content-type": JSON, "accept": JSON})
        try:
            async with asyncio.timeout(_SECONDS):
                answer = await connection.ask("POST", path, msgspec.json.encode(question))
        except TimeoutError:
            raise TimeoutError(f"no answer within {_SECONDS:g} s") from None
        finally:
            connection.close()
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        if answer.status != HTTPStatus.OK:
            raise ValueError(f"it answers {answer.status}")
        return _executor(msgspec.json.decode(answer.body))

    return ask


def _executor(said: Any) -> Executor | None:
    """What a mapper said, or an error where that is not an image."""
    return said if said is None or isinstance(said, Executor) else msgspec.convert(said, Executor)
