"""Calls of Python functions as tasks: a function, its arguments and what it returns go over in pickles."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from jobman.tasks.worker import told


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A function and its arguments, apart: many calls are of one function."""

    function: bytes
    arguments: bytes


def pack(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """A call as the payload of a task."""
    return msgspec.msgpack.encode(Call(pickled(function), _dumps((args, kwargs))))


def unpack(result: bytes) -> Any:
    """What a call returned; what it raised comes back as an exception that is raised here."""
    has_returned, value = pickle.loads(result)
    if has_returned:
        return value
    raise value


def call(payload: bytes) -> bytes:
    """Execute a call: the function of the worker."""
    found = msgspec.msgpack.decode(payload, type=Call)
    try:
        args, kwargs = pickle.loads(found.arguments)
        return _dumps((True, _function(found.function)(*args, **kwargs)))
    except Exception as error:
        return _told(error)


def _told(error: Exception) -> bytes:
    where = told(error)
    error.add_note(f"in a worker: {where}")
    try:
        content = _dumps((False, error))
        pickle.loads(content)
    except Exception:
        # One that does not travel is told in words.
        return _dumps((False, RuntimeError(where)))
    return content


@lru_cache(maxsize=64)
def _function(content: bytes) -> Callable[..., Any]:
    found: Callable[..., Any] = pickle.loads(content)
    return found


def pickled(function: Callable[..., Any]) -> bytes:
    """A function, also a lambda or one of the program's main module."""
    return _dumps(function)


def _dumps(value: object) -> bytes:
    import cloudpickle  # type: ignore[import-untyped]

    content: bytes = cloudpickle.dumps(value)
    return content
