"""What runs an image on the nodes of a batch system, as the settings write it."""

from __future__ import annotations

import re
from typing import Any

from yaml.nodes import Node, ScalarNode

from jobman.spec.kinds import Choice, Forms, Items
from jobman.spec.names import FREE
from jobman.spec.reading import BAD, Reading
from jobman.spec.suggest import closest, did_you_mean, listing
from jobman.spec.yaml import is_null

RUNTIMES = ("apptainer", "singularity", "podman", "docker")
"""Programs whose words need not be written."""
PLACES = ("image", "cwd", "scratch", "name", "environment", "init")
"""What words may ask for, in braces."""
_PLACE = re.compile(r"(?<!\{)\{([a-z_]*)\}(?!\})")
_ALONE = ("environment", "init")


class _Words(Items):
    """Words before a command."""

    def read(self, node: Node, reading: Reading) -> Any:
        words = super().read(node, reading)
        if words is BAD or not (wrong := _mistake(words)):
            return words
        text, rule = wrong
        reading.report("JS201", node, noun=self.noun, text=text, rule=rule)
        return BAD


def _mistake(words: tuple[str, ...]) -> tuple[str, str] | None:
    found = [place for word in words for place in _PLACE.findall(word)]
    for place in found:
        if place not in PLACES:
            return f"{{{place}}}", f"there are {', '.join(f'{{{each}}}' for each in PLACES)}"
    for word in words:
        for place in _ALONE:
            if f"{{{place}}}" in word and word != f"{{{place}}}":
                return word, f"`{{{place}}}` is a word of its own"
    return None if "image" in found else (" ".join(words), "`{image}` stands where the image does")


class _Program(Choice):
    """A program whose words we know."""

    def read(self, node: Node, reading: Reading) -> Any:
        word = reading.text(node) if isinstance(node, ScalarNode) else ""
        if word in self.words or is_null(node):
            return super().read(node, reading)
        others = f"one of {listing(self.words, 30)}, or all words that run it, `{{image}}` among them"
        hint = did_you_mean(closest(word, self.words), f"write {others}")
        reading.report("JS212", node, text=word, noun=self.noun, hint=hint)
        return BAD


class _Container(Forms):
    """A program that is known becomes a list of its name alone."""

    def read(self, node: Node, reading: Reading) -> Any:
        found = super().read(node, reading)
        return (found,) if isinstance(found, str) else found


CONTAINER = _Container(
    "a program that runs images, or a list of words",
    scalar=_Program(RUNTIMES, "program that runs images"),
    items=_Words(FREE, "a list of words that run an image", least=1),
)
