"""The users' reference of the language agrees with the language: its examples, its tables, its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, NamedTuple

import msgspec
import pytest
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from jobman import spec
from jobman.spec import policies
from jobman.spec.expressions import MAX_ALTERNATIVES, MAX_LENGTH
from jobman.spec.kinds import Choice, Duration, Forms, Items, Kind, Names
from jobman.spec.lifecycle import SIGNALS
from jobman.spec.load import load_jobs
from jobman.spec.model import DOCUMENT, MATRIX_USERS, Document
from jobman.spec.problems import Problem, Problems
from jobman.spec.quantities import format_duration
from jobman.spec.ranges import MAX_REPLICAS
from jobman.spec.records import Element, Key, Of, Record, keys_of, own_keys_of
from jobman.spec.resolve import MAX_UNITS, Job
from jobman.spec.resources import SHAPE, Resources
from jobman.spec.shapes import Part
from jobman.spec.site import Profile, Site
from jobman.spec.source import MAX_BYTES, Source
from jobman.spec.steps import Stage, Step, Write
from jobman.spec.volumes import VOLUME_KINDS
from jobman.spec.yaml import MAX_DEPTH, MAX_NODES

PAGE = Path(__file__).parents[2] / "docs" / "jobspec.md"
TEXT = PAGE.read_text(encoding="utf-8")
SITE = Site(
    flavors={"small": Part(nodes=1, each={"core": 2})},
    resource_types=("rack",),
    user={"name": "ada"},
    profiles={name: Profile(name=name) for name in ("site-tools", "gpu-tools")},
    queues=("interactive", "batch"),
    priorities=("normal", "high"),
)
MODULES = [module.name for module in walk_packages(spec.__path__, "jobman.spec.")]
_FENCE = re.compile(r"(?:^<!-- (?P<code>JS\d+) -->\n)?^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)
_TABLE = re.compile(r"^<!-- (?P<title>[^\n]+) -->\n\n\|[^\n]*\n\| ---[^\n]*\n(?P<rows>(?:\|[^\n]*\n)+)", re.M)


# -- the page ----------------------------------------------------------------------------------------------


class Block(NamedTuple):
    info: str
    code: str | None
    text: str
    line: int


BLOCKS = [
    Block(m["info"], m["code"], m["text"], TEXT.count("\n", 0, m.start("info")) + 1)
    for m in _FENCE.finditer(TEXT)
]
RIGHT = [block for block in BLOCKS if block.info == "yaml"]
WRONG = [block for block in BLOCKS if block.info == "yaml wrong"]
PROSE = _FENCE.sub("", TEXT)
IN_BACKTICKS = set(re.findall(r"`([^`\n]+)`", PROSE))


def line_of(block: Block) -> str:
    return f"line {block.line}"


def load(block: Block) -> tuple[list[Job | None], list[Problem]]:
    problems = Problems()
    jobs = load_jobs(Source(f"docs/jobspec.md, block in line {block.line}", block.text), SITE, problems)
    return jobs, list(problems)


def tables(title: str) -> list[list[str]]:
    """The rows of every table under a comment, each as its cells."""
    rows: list[list[str]] = []
    for table in _TABLE.finditer(TEXT):
        if table["title"] == title:
            rows += [
                [cell.strip() for cell in row.strip("|").split(" |")] for row in table["rows"].splitlines()
            ]
    return rows


def code_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# -- the language ------------------------------------------------------------------------------------------


STEPS = {"stage": Of(Stage), "write": Of(Write)}


class Owned(NamedTuple):
    """A key and the class that declares it: a policy belongs to `Policies`, wherever it is written."""

    owner: type[Record]
    name: str

    def __str__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"


def declared(cls: type[Record], name: str) -> Owned:
    parts = cls.includes if issubclass(cls, Element) else ()
    return Owned(next((part for part in parts if name in own_keys_of(part)), cls), name)


def inner_kinds(kind: Kind) -> list[Kind]:
    """The kinds a kind of several values is made of."""
    if isinstance(kind, Resources):
        return [SHAPE]
    if isinstance(kind, Step):
        return list(STEPS.values())
    if isinstance(kind, Forms):
        return [form for form in kind._forms.values() if form is not None]
    if isinstance(kind, Items):
        return [kind.item]
    return [kind.value] if isinstance(kind, Names) else []


def records_in(kind: Kind) -> Iterator[type[Record]]:
    if isinstance(kind, Of):
        yield kind.cls
    for inner in inner_kinds(kind):
        yield from records_in(inner)


def every_record() -> list[type[Record]]:
    found: list[type[Record]] = [Document]
    for cls in found:
        for _, key in keys_of(cls).values():
            found += [inner for inner in dict.fromkeys(records_in(key.kind)) if inner not in found]
    return found


RECORDS = every_record()
KEYS: dict[Owned, Key] = {
    declared(cls, name): key for cls in RECORDS for name, (_, key) in keys_of(cls).items()
}
OWNERS = list(dict.fromkeys(owned.owner for owned in KEYS))


def forms_of(kind: Kind) -> set[str]:
    """The ways in which one value may be written, where there are several."""
    if isinstance(kind, Resources):
        return {"scalar", "mapping"}
    if isinstance(kind, Forms):
        return {FORM_NAMES[node] for node, form in kind._forms.items() if form is not None}
    if isinstance(kind, Items):
        return {f"{form} in a list" for form in forms_of(kind.item)} | (
            {"list", "scalar"} if kind.single else set()
        )
    return set()


FORM_NAMES: dict[type[Node], str] = {ScalarNode: "scalar", SequenceNode: "list", MappingNode: "mapping"}


class Uses:
    """The keys that the examples use, and the forms their values have."""

    def __init__(self) -> None:
        self.forms: dict[Owned, set[str]] = {}

    def read(self, kind: Kind, node: Node) -> None:
        if isinstance(kind, Step) and isinstance(node, MappingNode):
            names = {key.value: value.value for key, value in node.value}
            self.read(STEPS[names["name"]], node)
        elif isinstance(kind, Of) and isinstance(node, MappingNode):
            self._read_record(kind.cls, node)
        elif isinstance(kind, Names) and isinstance(node, MappingNode):
            self._read_all(kind.value, [value for _, value in node.value])
        elif isinstance(kind, Items):
            self._read_all(kind.item, node.value if isinstance(node, SequenceNode) else [node])
        elif isinstance(kind, Resources):
            self.read(SHAPE, node)
        elif isinstance(kind, Forms) and (form := kind._forms[type(node)]) is not None:
            self.read(form, node)

    def _read_all(self, kind: Kind, nodes: list[Node]) -> None:
        for node in nodes:
            self.read(kind, node)

    def _read_record(self, cls: type[Record], node: MappingNode) -> None:
        for key, value in node.value:
            if key.value not in keys_of(cls):
                continue
            owned = declared(cls, key.value)
            kind = KEYS[owned].kind
            self.forms.setdefault(owned, set()).update(written_forms(kind, value))
            self.read(kind, value)


def written_forms(kind: Kind, node: Node) -> set[str]:
    """The form of a value; of a list of things with forms, theirs too."""
    forms = {FORM_NAMES[type(node)]}
    if isinstance(kind, Items) and isinstance(node, SequenceNode):
        forms.update(f"{FORM_NAMES[type(item)]} in a list" for item in node.value)
    return forms


@pytest.fixture(scope="module")
def uses() -> Uses:
    found = Uses()
    for block in RIGHT:
        for job in load(block)[0]:
            if job is not None:
                found.read(DOCUMENT, job.document.node)
    return found


# -- examples ----------------------------------------------------------------------------------------------


def test_the_page_has_examples_of_both_kinds_and_no_others():
    assert {block.info for block in BLOCKS} == {"yaml", "yaml wrong"}


@pytest.mark.parametrize("block", RIGHT, ids=line_of)
def test_an_example_checks_without_error_and_warning(block):
    assert block.text.startswith("version: 1\n")
    assert [f"{p.place}: {p.code} {p.message}" for p in load(block)[1]] == []


@pytest.mark.parametrize("block", WRONG, ids=line_of)
def test_a_wrong_example_gives_its_message_first(block):
    assert [problem.code for problem in load(block)[1]][:1] == [block.code]


def test_every_key_stands_in_an_example(uses):
    assert [str(owned) for owned in KEYS if owned not in uses.forms] == []


def test_every_form_of_a_value_stands_in_an_example(uses):
    missing = {
        str(owned): sorted(lacking)
        for owned, key in KEYS.items()
        if (lacking := forms_of(key.kind) - uses.forms.get(owned, set()))
    }
    assert missing == {}


# -- tables ------------------------------------------------------------------------------------------------


def test_the_walk_from_the_document_meets_every_record_of_the_language():
    declared_there = {
        cls
        for module in map(import_module, MODULES)
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Record) and cls.__module__ == module.__name__
    }
    declared_there -= {Record, Element, policies.Inherited}  # Two bases, and the inherited part of Policies.
    assert {cls.__name__ for cls in declared_there} == {cls.__name__ for cls in [*RECORDS, *OWNERS]}


def test_every_key_is_named_in_the_text():
    assert [str(owned) for owned in KEYS if owned.name not in IN_BACKTICKS] == []


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_a_table_lists_the_keys_of_its_record(owner):
    listed = [code_in(row[0])[0] for row in tables(f"keys: {owner.__name__}")]
    assert sorted(listed) == sorted(own_keys_of(owner))


def test_no_table_is_of_an_unknown_record():
    titles = {table["title"] for table in _TABLE.finditer(TEXT)}
    assert titles == {"volume kinds"} | {f"keys: {owner.__name__}" for owner in OWNERS}


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_a_table_gives_the_defaults_of_its_record(owner):
    shown = {code_in(row[0])[0]: row[2] for row in tables(f"keys: {owner.__name__}")}
    assert shown == {name: default_of(owner, field, key) for name, (field, key) in own_keys_of(owner).items()}


def default_of(cls: type[Record], field: str, key: Key) -> str:
    if key.required:
        return "required"
    value: Any = next(f.default for f in msgspec.structs.fields(cls) if f.name == field)
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(key.kind, Duration) and value is not None:
        return f"`{format_duration(value)}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    return "—" if value is msgspec.NODEFAULT or value in (None, "", (), {}) else f"`{value}`"


def test_the_table_of_volume_kinds_says_what_each_needs_and_may_have():
    shown = {code_in(row[0])[0]: (code_in(row[2]), code_in(row[3])) for row in tables("volume kinds")}
    assert shown == {
        kind: tuple([name.rstrip("_") for name in names] for names in both)
        for kind, both in VOLUME_KINDS.items()
    }


# -- words and numbers -------------------------------------------------------------------------------------


def words_in(kind: Kind) -> Iterator[str]:
    if isinstance(kind, Choice):
        yield from kind.words
    for inner in inner_kinds(kind):
        yield from words_in(inner)


def test_every_word_that_a_key_takes_is_named_in_the_text():
    signals = set(SIGNALS)
    missing = {
        str(owned): lacking
        for owned, key in KEYS.items()
        if (lacking := [word for word in words_in(key.kind) if word not in IN_BACKTICKS | signals])
    }
    assert missing == {}


@pytest.mark.parametrize("kind", ["INHERITED", "MERGED_BY_NAME", "OWN"])
def test_the_text_says_of_each_policy_whether_it_is_inherited(kind):
    start = {
        "OWN": "**Policies of the thing",
        "INHERITED": "**Settings that",
        "MERGED_BY_NAME": "and the lists",
    }
    paragraph = PROSE[PROSE.index(start[kind]) :].split(".")[0]
    if kind == "INHERITED":
        paragraph = paragraph.split("and the lists")[0]
    assert sorted(code_in(paragraph)) == sorted(getattr(policies, kind))


def test_the_text_says_where_an_axis_of_a_matrix_can_be_used():
    sentence = PROSE[PROSE.index("and as `{{axis}}` in") :].split(".")[0]
    assert code_in(sentence)[1:] == list(MATRIX_USERS)


@pytest.mark.parametrize(
    ("what", "limit"),
    [
        ("size of a file", f"{MAX_BYTES // 2**20} MiB"),
        ("nesting", f"{MAX_DEPTH} levels"),
        ("YAML values", f"{MAX_NODES:,}"),
        ("replicas", f"{MAX_REPLICAS:,}"),
        ("tasks and groups", f"{MAX_UNITS:,}"),
        ("alternatives", f"{MAX_ALTERNATIVES}"),
        ("characters of a resource expression", f"{MAX_LENGTH:,}"),
    ],
)
def test_the_limits_are_those_of_the_code(what, limit):
    assert re.search(rf"^\| {what}[^|]*\| {re.escape(limit)} \|$", TEXT, re.M)
