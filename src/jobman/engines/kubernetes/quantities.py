"""Amounts as Kubernetes writes them, such as `500m` and `2Gi`: read and written without losing a digit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

Quantity = str | int | float
"""As an object has it; a number in the JSON is allowed where it was written as one."""
Amounts = dict[str, Fraction]
"""How much of each resource."""

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_WRITTEN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,3}))?", re.ASCII)
_BYTES = ("memory", "storage", "hugepages-")


@lru_cache(4096)
def parse_quantity(written: Quantity) -> Fraction:
    """The exact amount; the same few are read for thousands of pods. Raises ValueError for what is none."""
    match = _WRITTEN.fullmatch(str(written))
    if match is None:
        raise ValueError(f"{written!r} is not a quantity; write a number such as 2, 500m, 1.5 or 4Gi")
    number, suffix, exponent = match.groups()
    if suffix in _BINARY:
        return Fraction(number) * _power(2, _BINARY[suffix])
    return Fraction(number) * _power(10, int(exponent) if exponent else _DECIMAL[suffix or ""])


def parse_amounts(written: Mapping[str, Quantity]) -> Amounts:
    """What a mapping of requests, limits or a node's capacity comes to."""
    return {name: parse_quantity(quantity) for name, quantity in written.items()}


def total(many: Iterable[Mapping[str, Fraction]]) -> Amounts:
    """The sum, resource by resource."""
    summed: Amounts = {}
    for amounts in many:
        for name, amount in amounts.items():
            summed[name] = summed.get(name, Fraction(0)) + amount
    return summed


def largest(many: Iterable[Mapping[str, Fraction]]) -> Amounts:
    """The most of each resource that any of them has."""
    most: Amounts = {}
    for amounts in many:
        for name, amount in amounts.items():
            most[name] = max(most.get(name, amount), amount)
    return most


def in_bytes(resource: str) -> bool:
    """Whether a resource is counted in bytes, by its name, also as quotas spell it."""
    name = resource.removeprefix("requests.").removeprefix("limits.")
    return name.startswith(_BYTES) or name.endswith("-storage")


def format_quantity(amount: Fraction, *, binary: bool = False) -> str:
    """The shortest exact way to write an amount; what is finer than a nano is rounded up."""
    if amount == 0:
        return "0"
    if binary and amount.denominator == 1:
        for suffix, power in reversed(_BINARY.items()):
            if amount % 2**power == 0:
                return f"{amount // 2**power}{suffix}"
        return str(amount)
    for suffix, power in reversed(_DECIMAL.items()):
        scaled = amount / _power(10, power)
        if scaled.denominator == 1:
            return f"{scaled}{suffix}"
    return f"{-(-amount * 10**9 // 1)}n"


def spoken(resource: str, amount: Fraction) -> str:
    """An amount as people read it, with three digits and never too large: 23.5Gi, 0.5, 8."""
    if in_bytes(resource):
        for suffix, power in reversed(_BINARY.items()):
            if abs(amount) >= 2**power:
                return f"{_three_digits(amount / 2**power)}{suffix}"
    return _three_digits(amount)


def named(resource: str, amount: Fraction) -> str:
    """An amount with the name of what it is of."""
    name = resource.removeprefix("requests.").removeprefix("limits.")
    if name == "cpu":
        return f"{spoken(name, amount)} {'core' if amount == 1 else 'cores'}"
    return f"{spoken(name, amount)} {'of ' if in_bytes(name) else ''}{name}"


def _three_digits(amount: Fraction) -> str:
    decimals = 3 if amount < 1 else 2 if amount < 10 else 1 if amount < 100 else 0
    return f"{float(Fraction(int(amount * 10**decimals), 10**decimals)):.15g}"


def _power(base: int, exponent: int) -> Fraction:
    return Fraction(base**exponent) if exponent >= 0 else Fraction(1, base**-exponent)
