"""Resource expressions: `a|b` is an ordered preference, `a&b` both at once; `&` binds tighter."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from yaml.nodes import Node, ScalarNode

from jobman.spec.kinds import Kind, Schema
from jobman.spec.reading import BAD, Reading
from jobman.spec.yaml import is_null

MAX_LENGTH = 4096
MAX_ALTERNATIVES = 64
_TOKEN = re.compile(r"\s*(?:([A-Za-z0-9][A-Za-z0-9._-]*)|([|&()]))")

Names = tuple[str, ...]


class Expression(msgspec.Struct, frozen=True):
    """An expression in normal form: alternatives in order, each a tuple of names needed at once."""

    alternatives: tuple[Names, ...]
    text: str
    node: Any = None

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for names in self.alternatives for name in names))


class ExpressionError(ValueError):
    """What is wrong with an expression, and at which character."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def parse(text: str) -> tuple[Names, ...]:
    """The normal form of an expression."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"it is longer than {MAX_LENGTH:,} characters", 0)
    parser = _ExpressionParser(_tokens(text), len(text))
    alternatives = parser.either()
    parser.expect_end()
    return _distinct(alternatives)


def normal_text(alternatives: tuple[Names, ...]) -> str:
    """The shortest expression of a normal form."""
    return "|".join("&".join(names) for names in alternatives)


def _tokens(text: str) -> list[tuple[str, int]]:
    tokens: list[tuple[str, int]] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if not match:
            start = len(text) - len(text[position:].lstrip())
            raise ExpressionError(f"`{text[start]}` has no meaning here", start)
        tokens.append((match[1] or match[2], match.start(1) if match[1] else match.start(2)))
        position = match.end()
    return tokens


class _ExpressionParser:
    """Recursive descent straight into the normal form, so that it can be bounded while it grows."""

    def __init__(self, tokens: list[tuple[str, int]], length: int) -> None:
        self.tokens = tokens
        self.length = length
        self.next = 0
        self.depth = 0

    def either(self) -> list[Names]:
        alternatives = self.both()
        while self._accept("|"):
            alternatives = alternatives + self.both()
            self._bound(len(alternatives))
        return alternatives

    def both(self) -> list[Names]:
        alternatives = self.atom()
        while self._accept("&"):
            others = self.atom()
            self._bound(len(alternatives) * len(others))
            alternatives = [left + right for left in alternatives for right in others]
        return alternatives

    def atom(self) -> list[Names]:
        token, position = self._peek()
        if token == "(":
            return self._parenthesis(position)
        if token in ("|", "&", ")", ""):
            where = f"before `{token}`" if token else "at the end"
            raise ExpressionError(f"a name is missing {where}", position)
        self.next += 1
        return [(token,)]

    def _parenthesis(self, position: int) -> list[Names]:
        self.next += 1
        self.depth += 1
        if self.depth > 50:
            raise ExpressionError("the parentheses are nested too deeply", position)
        inner = self.either()
        if not self._accept(")"):
            raise ExpressionError("this parenthesis is never closed", position)
        self.depth -= 1
        return inner

    def expect_end(self) -> None:
        token, position = self._peek()
        if token:
            raise ExpressionError(f"expected `|` or `&` before `{token}`", position)

    def _bound(self, count: int) -> None:
        if count > MAX_ALTERNATIVES:
            raise ExpressionError(f"it has more than {MAX_ALTERNATIVES} alternatives", 0)

    def _accept(self, token: str) -> bool:
        if self._peek()[0] != token:
            return False
        self.next += 1
        return True

    def _peek(self) -> tuple[str, int]:
        return self.tokens[self.next] if self.next < len(self.tokens) else ("", self.length)


def _distinct(alternatives: list[Names]) -> tuple[Names, ...]:
    """Without alternatives that were offered before."""
    return tuple({tuple(sorted(names)): names for names in reversed(alternatives)}.values())[::-1]


class ExpressionKind(Kind):
    """A scalar that names shapes and flavors."""

    noun = "a shape"

    def read(self, node: Node, reading: Reading) -> Any:
        if not isinstance(node, ScalarNode) or is_null(node):
            return self.refuse(node, reading)
        text = reading.text(node).strip()
        try:
            return Expression(parse(text), text, node)
        except ExpressionError as error:
            reading.report("JS404", node, offset=error.position, text=text[:60], reason=str(error))
            return BAD

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}
