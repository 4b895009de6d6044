"""Sparing coercion: a value that has its type already is taken as it is.

Recent releases of the command line's library have pydantic look at every value, even to make a text of a
text. Importing that takes longer than most commands, so it is done only where a value needs it, or is wrong.
"""

from __future__ import annotations

from typing import Any


def spare(command: Any) -> Any:
    """The command, with its options, arguments and subcommands made sparing."""
    every = command.get_params
    command.get_params = lambda context: [_spared(parameter) for parameter in every(context)]
    for inner in getattr(command, "commands", {}).values():
        spare(inner)
    return command


def _spared(parameter: Any) -> Any:
    known = getattr(parameter, "get_runtime_param", None)
    if known is not None and not isinstance(known, Sparing):
        parameter.get_runtime_param = Sparing(parameter)
    return parameter


class Sparing:
    """Stands for the coercion of one parameter."""

    def __init__(self, parameter: Any) -> None:
        self._full = parameter.get_runtime_param
        self._type = parameter.type_descriptor.annotation
        known = parameter.type_descriptor.parameter_info
        self._least, self._most = known.min, known.max

    def __call__(self) -> Sparing:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self._type is str or self._type == list[str] or isinstance(value, int):
            return value
        if self._type is int and self._is_fine(value):
            return int(value)
        return self._full().coerce(value, param=param, ctx=ctx)

    def _is_fine(self, text: str) -> bool:
        """Whether a number is one, and in its bounds; what is wrong with another is told by the library."""
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            return False
        return (self._least or 0) <= int(text) <= (int(text) if self._most is None else self._most)
