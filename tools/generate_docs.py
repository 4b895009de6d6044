"""Writes the pages that are made from the code: messages, features, engines, the schema and a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from jobman.api import load
from jobman.convert.codes import CONVERSION_CODES
from jobman.engines.matrix import MATRIX
from jobman.plan.drawing import svg
from jobman.plan.features import CATALOGUE
from jobman.spec.codes import CODES
from jobman.spec.codes.catalogue import Code
from jobman.spec.schema import json_schema
from tools.engines_page import engines_page
from tools.tables import SECTIONS, cell, way

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_FAMILIES = {
    "JS0": "The file and its YAML",
    "JS1": "The structure of the document",
    "JS2": "Single values",
    "JS3": "Names and the graph",
    "JS4": "Shapes and flavors",
    "JS5": "Attributes",
    "JS6": "Requires and steps",
    "JS7": "Policies",
    "JS8": "Parameters and settings",
    "JS9": "Queues, accounts and the scheduler",
    "JC1": "Scripts that cannot be converted",
    "JC2": "What a conversion leaves out",
}


def pages() -> dict[str, str]:
    """Every generated page by its name."""
    return {
        "messages.md": "\n".join(_messages()) + "\n",
        "features.md": "\n".join(_features()) + "\n",
        "engines.md": "\n".join(engines_page()) + "\n",
        "jobspec.schema.json": json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n",
        "showcase.svg": svg(load(ROOT / "examples" / "showcase.yaml").plan()),
    }


def _messages() -> Iterator[str]:
    yield "# Messages"
    yield ""
    yield (
        "Every message has a code that keeps its number for ever. "
        "`jobman help CODE` prints an entry of this page."
    )
    yield "Words in braces are filled in. `--strict` turns warnings into errors."
    for prefix, title in _FAMILIES.items():
        yield f"\n## {prefix}xx: {title}"
        for code, entry in sorted((CODES | CONVERSION_CODES).items()):
            if code.startswith(prefix):
                yield from _message(entry)


def _message(entry: Code) -> Iterator[str]:
    yield f"\n### {entry.id}: {entry.title}"
    yield f"\n{entry.page}"
    yield f"\n- {entry.severity}: {_verbatim(entry.message)}"
    yield f"- help: {_verbatim(entry.advice)}"


def _verbatim(template: str) -> str:
    return template.replace("{{", "{").replace("}}", "}")


def _features() -> Iterator[str]:
    yield "# Features"
    yield ""
    yield "What a document can ask for, and how each engine realises it: `native` by its own means,"
    yield "`emulated` by other means to the same end, `refused` not at all. A plan lists the features it"
    yield "uses, and a document that asks for what an engine refuses is refused by feature name."
    yield "`jobman features` prints this table, `jobman explain FILE` the features of a document."
    for section, title in SECTIONS.items():
        yield f"\n## {title} (section {section} of the [reference](jobspec.md))\n"
        yield f"| feature | what it is | {' | '.join(MATRIX)} |"
        yield "| --- | --- |" + " --- |" * len(MATRIX)
        for feature in CATALOGUE:
            if feature.section == section:
                cells = (cell(feature.title), *(way(engine[feature.id]) for engine in MATRIX.values()))
                yield f"| `{feature.id}` | {' | '.join(cells)} |"


def main() -> None:
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
        sys.stderr.write(f"docs/{name}\n")


if __name__ == "__main__":
    main()
