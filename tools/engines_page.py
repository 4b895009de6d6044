"""The page of engines: how each realises what a document asks for, and whether the suite saw it at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jobman.engines.matrix import MATRIX
from jobman.plan.features import CATALOGUE
from tests.conformance.differences import DIFFERENCES
from tests.conformance.engines import ENGINES
from tests.conformance.evidence import scenarios, seen
from tools.tables import SECTIONS, cell, way

_REAL = {None: "this machine", "kubernetes": "a real cluster", "slurm": "a real Slurm", "flux": "a real Flux"}
_SEEN, _UNSEEN = " ✔", ""
_HOW = ("native", "emulated", "refused")
_INTRODUCTION = """\
How each engine realises what a document can ask for: `native` by its own means, `emulated` by other means
to the same end, `refused` not at all. ✔ says that the conformance suite has a scenario which uses it and
comes out on the real engine as on every other; what is refused is asked for there, too, and refused by its
name. The page is made from the tables that the engines keep to, and from the scenarios.
"""
_ON_DIFFERENCES = """\
Scenarios that cannot come out there as they do elsewhere, and why. Where a value asks for too much, the
scenario runs and ends with a refusal in these words.
"""


def engines_page() -> Iterator[str]:
    """The lines of the page."""
    yield "# Engines"
    yield ""
    yield from _INTRODUCTION.splitlines()
    yield ""
    yield from _summary()
    for section, title in SECTIONS.items():
        yield from _section(section, title)
    yield from _differences()


def _summary() -> Iterator[str]:
    yield f"| engine | {' | '.join(_HOW)} | ✔ | runs on | scenarios that differ |"
    yield "| --- |" + " --- |" * (len(_HOW) + 3)
    for name in sorted(ENGINES, key=lambda each: list(MATRIX).index(ENGINES[each].table)):
        opening = ENGINES[name]
        table = MATRIX[opening.table]
        counts: Counter[str] = Counter(support.how for support in table.values())
        numbers = " | ".join(str(counts[how]) for how in _HOW)
        offered = counts["native"] + counts["emulated"]
        differ = len(DIFFERENCES.get(name, {}))
        found = f"{len(_at_work(name))} of {offered}"
        yield f"| {opening.table} | {numbers} | {found} | {_REAL[opening.component]} | {differ or 'none'} |"
    yield ""
    yield f"The suite has {len({scenario.name for scenario in scenarios()})} scenarios."


def _at_work(name: str) -> frozenset[str]:
    return seen(name) & {
        feature for feature, support in MATRIX[ENGINES[name].table].items() if support.how != "refused"
    }


def _section(section: int, title: str) -> Iterator[str]:
    found = {opening.table: _at_work(name) for name, opening in ENGINES.items()}
    yield f"\n## {title} (section {section} of the [reference](jobspec.md))\n"
    yield f"| feature | {' | '.join(MATRIX)} |"
    yield "| --- |" + " --- |" * len(MATRIX)
    for feature in CATALOGUE:
        if feature.section == section:
            cells = (
                way(table[feature.id], _SEEN if feature.id in found.get(name, ()) else _UNSEEN)
                for name, table in MATRIX.items()
            )
            yield f"| `{feature.id}` | {' | '.join(cells)} |"


def _differences() -> Iterator[str]:
    yield "\n## Where an engine is another world\n"
    yield from _ON_DIFFERENCES.splitlines()
    for name, known in DIFFERENCES.items():
        if not known:
            continue
        yield f"\n### {ENGINES[name].table}\n"
        yield "| scenarios | why |"
        yield "| --- | --- |"
        reasons = Counter(difference.why or f"refused: “{difference.says}”" for difference in known.values())
        for reason, count in reasons.items():
            yield f"| {count} | {cell(reason)} |"
