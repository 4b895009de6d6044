"""Objects as a text that people read and `kubectl create -f` takes."""

from __future__ import annotations

import re
from typing import Any

import yaml

from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.target import Compiled

_PLAIN = re.compile(r"[A-Za-z/][\w ./@=+-]*", re.ASCII)
_BREAKS = re.compile(r"[\x85\u2028\u2029\ufeff]")
"""What readers of YAML do not agree on inside a block."""
_TRUTHS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


class _Dumper(yaml.CSafeDumper):
    """Nothing is folded, and equal parts are written out."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _represent_text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    """Texts that some reader could take for a number or a truth are quoted, whatever YAML it speaks."""
    is_plain = bool(_PLAIN.fullmatch(text)) and text.lower() not in _TRUTHS
    is_block = "\n" in text and not _BREAKS.search(text)
    style = "|" if is_block else None if is_plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def to_yaml(compiled: Compiled) -> str:
    """One document for each object, with a line before it that says whose it is."""
    return "".join(document(unit, written) for unit, written in compiled.objects())


def document(unit: str | None, written: Written) -> str:
    """One object as a document of its own; without a unit it is the job's."""
    return titled("the job" if unit is None else f"task {unit}", written)


def titled(title: str, written: Written) -> str:
    """One object as a document, below a line that says what it is."""
    text = yaml.dump(written, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    return f"---\n# {title}\n{text}"
