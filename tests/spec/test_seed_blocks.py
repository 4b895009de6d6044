"""The blocks of the language's source document, each rewritten: what they mean, or what is wrong with them.

A good block has its plan beside it (`.expected.json`). A broken one has its problems (`.problems.json`),
complete and in file order, and a corrected twin (`.fixed.yaml`) with a plan of its own.
"""

import json
from pathlib import Path

import msgspec
import pytest

from jobman.spec.load import load_jobs
from jobman.spec.problems import Problems
from jobman.spec.shapes import copies, totals
from jobman.spec.site import Site
from jobman.spec.source import Source

SEEDS = Path(__file__).parents[1] / "fixtures" / "seeds"
BLOCKS = 18
PLANS = sorted(path.name.removesuffix(".expected.json") for path in SEEDS.glob("*.expected.json"))
BROKEN = sorted(path.name.removesuffix(".problems.json") for path in SEEDS.glob("*.problems.json"))


def load(name):
    problems = Problems()
    text = (SEEDS / f"{name}.yaml").read_text(encoding="utf-8")
    return load_jobs(Source(f"{name}.yaml", text), Site(), problems), problems


def expected(file):
    return json.loads((SEEDS / file).read_text(encoding="utf-8"))


def written(problem):
    place = problem.place
    return {
        "code": problem.code,
        "severity": problem.severity,
        "line": place.line,
        "column": place.column,
        "message": problem.message,
        "advice": problem.advice,
    }


def attribute(name):
    def value(unit):
        traced = unit.context.attributes.get(name)
        return traced.value if traced else None

    return value


def demanded(unit):
    """The facts all nodes of the unit must have, whichever alternative is taken."""
    parts = [part.requires for parts in unit.alternatives for part in parts]
    assert all(facts == parts[0] for facts in parts)
    return parts[0] if parts else {}


FACTS = {
    "id": lambda unit: unit.id,
    "kind": lambda unit: unit.kind,
    "replicas": lambda unit: unit.replicas,
    "copies": lambda unit: [copies(parts) for parts in unit.alternatives],
    "nodes": lambda unit: [totals(parts).nodes for parts in unit.alternatives],
    "amounts": lambda unit: [totals(parts).amounts for parts in unit.alternatives],
    "depends_on": lambda unit: [[link.unit.id, link.when] for link in unit.dependencies],
    "requires": demanded,
    "duration": attribute("duration"),
    "cwd": attribute("cwd"),
    "watch": attribute("watch"),
    "environment": lambda unit: {name: traced.value for name, traced in unit.context.environment.items()},
    "command": lambda unit: list(unit.written.command) if unit.written.command else None,
    "steps": lambda unit: [
        {key: value for key, value in msgspec.to_builtins(step).items() if value is not None}
        for step in unit.written.steps
    ],
    "local": lambda unit: unit.written.local,
}
JOB_FACTS = {
    "duration": FACTS["duration"],
    "environment": FACTS["environment"],
    "requires": lambda root: {name: traced.value for name, traced in root.context.requires.items()},
}


def test_every_block_of_the_source_document_has_its_fixture():
    blocks = [path.stem for path in SEEDS.glob("*.yaml") if not path.stem.endswith(".fixed")]
    assert sorted(name[:2] for name in blocks) == [f"{number:02}" for number in range(1, BLOCKS + 1)]


def test_every_block_is_either_good_or_has_a_corrected_twin():
    blocks = {path.stem for path in SEEDS.glob("*.yaml")}
    assert blocks == {*PLANS, *BROKEN}
    assert {f"{name}.fixed" for name in BROKEN} == {name for name in PLANS if name.endswith(".fixed")}


@pytest.mark.parametrize("name", PLANS)
def test_a_good_block_has_no_problem(name):
    _, problems = load(name)
    assert [written(problem) for problem in problems] == []


@pytest.mark.parametrize("name", PLANS)
def test_a_good_block_means_what_it_says(name):
    (job,), _ = load(name)
    plan = expected(f"{name}.expected.json")
    assert [unit.id for unit in job.units] == [facts["id"] for facts in plan["units"]]
    found = [
        {key: FACTS[key](unit) for key in facts} for unit, facts in zip(job.units, plan["units"], strict=True)
    ]
    assert found == plan["units"]
    assert {key: JOB_FACTS[key](job.root) for key in plan.get("job", {})} == plan.get("job", {})


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_block_gets_exactly_the_messages_its_author_needs(name):
    _, problems = load(name)
    assert [written(problem) for problem in problems] == expected(f"{name}.problems.json")
