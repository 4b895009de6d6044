"""The JSON schema: valid in itself, good documents pass it, and it refuses what a schema can refuse."""

# ruff: noqa: E501 - a document stands in one line

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from yaml.nodes import MappingNode, ScalarNode

from jobman.spec.codes import CODES
from jobman.spec.problems import Problems
from jobman.spec.schema import ID, json_schema, record_classes
from jobman.spec.source import Source, decode_source
from jobman.spec.yaml import compose, scalar_value

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
SEEDS = sorted(
    path.with_name(path.name.replace(".expected.json", ".yaml"))
    for path in FIXTURES.glob("seeds/*.expected.json")
)
REFERENCE = re.findall(
    r"^```yaml\n(.*?)^```$", (ROOT / "docs" / "jobspec.md").read_text(encoding="utf-8"), re.M | re.S
)
BAD = sorted(FIXTURES.glob("bad/*.yaml"))
SCHEMA = json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def data_of(node):
    """A prepared node as the data an editor would see."""
    if isinstance(node, ScalarNode):
        return scalar_value(node)
    if isinstance(node, MappingNode):
        return {key.value: data_of(value) for key, value in node.value}
    return [data_of(item) for item in node.value]


def documents(source):
    """The data of each document; None where it is not YAML."""
    problems = Problems()
    nodes, _ = compose(source, problems)
    return None if problems.has_errors else [data_of(node) for node in nodes]


def complaints(data):
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(data)]


# -- the schema itself --------------------------------------------------------------------------------------


def test_the_schema_is_a_schema_of_draft_2020_12():
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_has_an_id_and_a_title():
    assert (SCHEMA["$id"], SCHEMA["title"]) == (ID, "JobSpec, version 1")


def schemas(node):
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from schemas(value)
    elif isinstance(node, list):
        for value in node:
            yield from schemas(value)


def test_every_reference_leads_somewhere():
    references = {node["$ref"] for node in schemas(SCHEMA) if "$ref" in node}
    assert {name.removeprefix("#/$defs/") for name in references} <= set(SCHEMA["$defs"])


def test_every_definition_is_referred_to():
    references = {node["$ref"].removeprefix("#/$defs/") for node in schemas(SCHEMA) if "$ref" in node}
    assert set(SCHEMA["$defs"]) == references


def test_every_pattern_can_be_read_by_an_editor():
    for node in schemas(SCHEMA):
        if isinstance(node.get("pattern"), str):
            re.compile(node["pattern"])
            assert "(?P" not in node["pattern"]
            assert "\\Z" not in node["pattern"]


def records():
    yield "Document", SCHEMA
    yield from ((name, each) for name, each in SCHEMA["$defs"].items() if name != "Requires")


@pytest.mark.parametrize(("name", "record"), list(records()), ids=[name for name, _ in records()])
def test_every_key_has_a_description_and_no_other_is_allowed(name, record):
    assert record["additionalProperties"] is False
    silent = [key for key, value in record["properties"].items() if not value.get("description")]
    assert silent == ([] if name not in ("Stage", "Write") else ["name"])


def test_the_schema_has_every_record_of_the_language():
    from jobman.spec.model import Document

    names = {cls.__name__ for cls in record_classes(Document)} - {"Document"}
    assert names <= set(SCHEMA["$defs"])


# -- good documents -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*EXAMPLES, *SEEDS], ids=lambda path: path.stem)
def test_a_good_document_is_valid(path):
    source = Source(path.name, path.read_text(encoding="utf-8"))
    assert [complaints(data) for data in documents(source)] == [[] for _ in documents(source)]


@pytest.mark.parametrize("text", REFERENCE, ids=range(1, len(REFERENCE) + 1))
def test_an_example_of_the_reference_is_valid(text):
    assert [complaints(data) for data in documents(Source("reference", text))] == [[]]


RIGHT = {
    "numbers with a fraction of zero": "version: 1.0\ntasks: [{command: a, replicas: 2.0, resources: {type: node, count: 1}}]",
    "numbers as arguments": "version: 1\ntasks: [{command: [sleep, 5, true], resources: {type: node, count: 1}}]",
    "a name of digits": "version: 1\nname: 2024\ntasks: [{command: a, resources: {type: node, count: 1}}]",
    "parameters": 'version: 1\nparameters: {n: 1}\ntasks: [{command: a, replicas: "{{n}}", resources: {type: node, count: "{{n}}"}}]',
    "a count as a text": 'version: 1\ntasks: [{command: a, resources: {type: node, count: "3"}}]',
    "a command of a number": "version: 1\ntasks: [{command: 5, resources: {type: node, count: 1}}]",
    "a duration with spaces around": 'version: 1\nattributes: {duration: " 5m "}\ntasks: [{command: a, resources: {type: node, count: 1}}]',
    "no version": "tasks: [{command: a, resources: {type: node, count: 1}}]",
    "a plural": "version: 1\ntasks: [{command: a, resources: {type: nodes, count: 1}}]",
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_the_reader_accepts_the_schema_accepts(name):
    from jobman.spec.load import load_jobs
    from jobman.spec.site import Site

    problems = Problems()
    load_jobs(Source("job.yaml", RIGHT[name]), Site(), problems)
    assert not problems.has_errors
    assert complaints(documents(Source("job.yaml", RIGHT[name]))[0]) == []


# -- wrong documents ----------------------------------------------------------------------------------------


# What a schema can see: the form of one value, or of one mapping. References, sums, circles and words inside a
# text are for the reader alone. Warnings are no errors, so the schema lets them pass.
CATCHABLE = {
    "JS101": "unknown keys",
    "JS102": "keys one level too deep",
    "JS103": "another kind of value",
    "JS104": "keys without a value",
    "JS105": "missing keys",
    "JS106": "keys one level too high",
    "JS107": "keys of an earlier draft",
    "JS111": "another version",
    "JS112": "a list at the top level",
    "JS113": "no mapping at all",
    "JS114": "nothing to run",
    "JS201": "patterns",
    "JS203": "empty texts",
    "JS204": "ranges",
    "JS205": "yes and no",
    "JS206": "durations",
    "JS207": "durations as mappings",
    "JS208": "durations of zero",
    "JS209": "sizes",
    "JS210": "moments",
    "JS212": "words from a list",
    "JS213": "empty lists",
    "JS221": "empty commands",
    "JS231": "ranges of numbers",
    "JS311": "nothing to do",
    "JS312": "two things to do",
    "JS314": "replicas and matrix",
    "JS401": "lists of shapes",
    "JS402": "a bare shape among the named ones",
    "JS406": "counts",
    "JS601": "lists of facts",
    "JS603": "unknown steps",
    "JS604": "steps without a kind",
    "JS701": "rules for nothing",
    "JS702": "success of nothing",
    "JS703": "one probe per check",
    "JS704": "one origin per entry",
}
# Wrong documents that pass all the same, because what is wrong is beyond a schema.
BEYOND = {
    "JS201-name-with-braces": "braces may be a parameter",
    "JS206-ascending": "the order of the units",
    "JS206-hundred-years": "the sum of the units",
    "JS209-too-large": "the product of number and unit",
    "JS221-empty-command": "a text of spaces alone",
    "JS231-falling-range": "the ends of a range compared",
    "JS406-size-of-cores": "a size is right for another type",
}


def errors_of(path):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return {
        problem["code"]
        for problem in expected
        if problem.get("severity", CODES[problem["code"]].severity) == "error"
    }


def catchable():
    for path in BAD:
        source = decode_source(path.name, path.read_bytes(), Problems())
        if source is None or not errors_of(path) & set(CATCHABLE):
            continue
        if path.stem in BEYOND or documents(source) is None:
            continue
        yield pytest.param(source, id=path.stem)


@pytest.mark.parametrize("source", list(catchable()))
def test_a_wrong_document_that_a_schema_can_catch_is_not_valid(source):
    assert [data for data in documents(source) if complaints(data)] != []


def test_every_code_of_the_table_is_in_the_catalogue_and_has_a_wrong_document():
    tried = set().union(*(errors_of(path) for path in BAD))
    assert set(CATCHABLE) - set(CODES) == set()
    assert set(CATCHABLE) - tried == set()


def test_a_document_with_warnings_alone_is_valid():
    for path in BAD:
        source = decode_source(path.name, path.read_bytes(), Problems())
        if source is None or errors_of(path) or documents(source) is None:
            continue
        assert [complaints(data) for data in documents(source)] == [[] for _ in documents(source)], path.stem


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("version: 2\ntasks: [{command: a}]", "$.version"),
        ("version: 1\ntasks: [{comand: a}]", "$.tasks[0]"),
        ("version: 1\ntasks: [{command: a, replicas: 0}]", "$.tasks[0].replicas"),
        ("version: 1\ntasks: [{command: a, restart: sometimes}]", "$.tasks[0].restart"),
        ("version: 1\nname: my job\ntasks: [{command: a}]", "$.name"),
        ("version: 1\nlabels: {-x: a}\ntasks: [{command: a}]", "$.labels"),
    ],
)
def test_a_complaint_is_at_the_place_of_the_mistake(text, where):
    assert where in [line.partition(": ")[0] for line in complaints(documents(Source("job.yaml", text))[0])]
