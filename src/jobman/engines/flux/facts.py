"""Facts that nodes must have, as properties of Flux's resources."""

from __future__ import annotations

from collections.abc import Mapping


def constraint(requires: Mapping[str, str], names: Mapping[str, str]) -> str:
    """All of them at once; names of the site before what can be guessed."""
    return "&".join(dict.fromkeys(prop(key, value, names) for key, value in requires.items()))


def prop(key: str, value: str, names: Mapping[str, str]) -> str:
    """What a fact is called: as the site says, else by its value, or by its key where that is yes or no."""
    for known in (f"{key}={value}", key if value == "yes" else ""):
        if known in names:
            return names[known]
    if key in names:
        return f"^{names[key]}" if value == "no" else f"{names[key]}{value}"
    if value in ("yes", "no"):
        word = key.rpartition(".")[2]
        return word if value == "yes" else f"^{word}"
    return value
