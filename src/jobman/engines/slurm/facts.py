"""Facts that nodes must have, as features of Slurm's nodes."""

from __future__ import annotations

from collections.abc import Mapping

_ALWAYS = {"os.name=linux", "kubernetes.io/os=linux"}
"""What is true of every node that Slurm runs on."""


def constraint(requires: Mapping[str, str], names: Mapping[str, str]) -> str:
    """All of them at once; names of the site before what can be guessed."""
    wanted = (feature(key, value, names) for key, value in requires.items())
    return "&".join(dict.fromkeys(word for word in wanted if word))


def feature(key: str, value: str, names: Mapping[str, str]) -> str:
    """What a fact is called: as the site says, else by its value, or by its key where that is only a yes."""
    if f"{key}={value}" in _ALWAYS and f"{key}={value}" not in names:
        return ""
    for known in (f"{key}={value}", key if value == "yes" else ""):
        if known in names:
            return names[known]
    if key in names:
        return f"{names[key]}{value}"
    if value in ("yes", "no"):
        word = key.rpartition(".")[2]
        return word if value == "yes" else f"no-{word}"
    return value
