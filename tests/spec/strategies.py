"""Random documents: what they mean, and the many ways to write it down.

A document is built as plain data in which a few values keep their meaning apart from their form: seconds,
facts and shapes. `spoken` picks a form for each; `texts` picks the YAML.
"""

import json
import re
from typing import Any

from hypothesis import strategies as st

from jobman.spec.shapes import Part

WORDS = st.from_regex(r"[a-z][a-z0-9]{0,7}", fullmatch=True)
VARIABLES = st.from_regex(r"[A-Z][A-Z0-9_]{0,7}", fullmatch=True).filter(
    lambda name: not name.startswith("JOBMAN_")
)
ARGUMENTS = st.text(
    st.characters(
        codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters="{\ufeff\u2028\u2029\ufffe\uffff"
    ),
    max_size=12,
)
FACT_KEYS = st.lists(WORDS, min_size=1, max_size=4).map(tuple)


class Seconds(int):
    """A duration, apart from its unit."""


class Facts(dict[str, str]):
    """`requires` with dotted keys, apart from how they are nested."""


class Tree(dict[str, Any]):
    """A shape, apart from whether it is named."""


# -- meanings -----------------------------------------------------------------------------------------------


def commands():
    return st.lists(ARGUMENTS, min_size=1, max_size=4).map(lambda words: ["echo", *words])


def seconds():
    return st.one_of(
        st.integers(1, 100),
        st.integers(1, 100).map(lambda n: n * 60),
        st.integers(1, 100).map(lambda n: n * 3600),
    ).map(Seconds)


@st.composite
def facts(draw):
    """Facts of which none stands inside another."""
    found = Facts()
    for path in draw(st.lists(FACT_KEYS, min_size=1, max_size=4)):
        names = [tuple(key.split(".")) for key in found]
        if all(path[: len(name)] != name and name[: len(path)] != path for name in names):
            found[".".join(path)] = draw(WORDS)
    return found


@st.composite
def trees(draw):
    """A node, with or without what is in it."""
    inner = [
        {"type": kind, "count": draw(st.integers(1, 64))}
        for kind in draw(st.sets(st.sampled_from(["core", "gpu"])))
    ]
    if draw(st.booleans()):
        inner.append({"type": "memory", "count": draw(st.integers(1, 512)) * 2**30})
    if inner and draw(st.booleans()):
        inner = [{"type": "slot", "count": draw(st.integers(1, 8)), "with": inner}]
    tree = Tree(type="node", count=draw(st.integers(1, 16)))
    if inner:
        tree["with"] = inner
    if draw(st.booleans()):
        tree["exclusive"] = True
    return tree


def attributes(*, duration=True):
    optional = {
        "environment": st.dictionaries(VARIABLES, ARGUMENTS, min_size=1, max_size=3),
        "cwd": WORDS.map(lambda word: f"/{word}"),
        "stdout": WORDS,
    }
    if duration:
        optional["duration"] = seconds()
    return st.fixed_dictionaries({}, optional=optional)


def policies():
    return {
        "retries": st.integers(0, 5),
        "grace": seconds(),
        "identity": WORDS,
        "priority": WORDS,
        "gates": st.lists(WORDS, min_size=1, max_size=3, unique=True),
        "secrets": st.lists(WORDS, min_size=1, max_size=3, unique=True),
        "ports": st.lists(st.integers(1, 65535), min_size=1, max_size=3, unique=True),
        "security": st.fixed_dictionaries(
            {}, optional={"uid": st.integers(0, 9999), "read_only_root": st.booleans()}
        ),
        "volumes": st.lists(WORDS, min_size=1, max_size=3, unique=True).map(
            lambda names: [{"name": name, "kind": "scratch", "to": f"/{name}"} for name in names]
        ),
    }


def _tasks(*, resources):
    required = {"command": commands()} | ({"resources": trees()} if resources else {})
    optional = {
        "replicas": st.integers(1, 9),
        "requires": facts(),
        "attributes": attributes(duration=False),
        **policies(),
    }
    return st.fixed_dictionaries(required, optional=optional)


@st.composite
def documents(draw):
    """A valid document; its tasks and groups have names of their own and wait only for earlier ones."""
    document = draw(
        st.fixed_dictionaries(
            {"version": st.just(1)},
            optional={
                "name": WORDS,
                "requires": facts(),
                "attributes": attributes(),
                "queue": WORDS,
                **policies(),
            },
        )
    )
    tasks = draw(st.lists(_tasks(resources=True), min_size=1, max_size=3))
    for number, task in enumerate(tasks):
        task["name"] = f"task{number}"
        if number and draw(st.booleans()):
            task["depends_on"] = [f"task{draw(st.integers(0, number - 1))}"]
    document["tasks"] = tasks
    if draw(st.booleans()):
        document["groups"] = [draw(_groups(number)) for number in range(draw(st.integers(1, 2)))]
    return document


@st.composite
def _groups(draw, number):
    group = draw(
        st.fixed_dictionaries(
            {"resources": trees(), "tasks": st.lists(_tasks(resources=False), min_size=1, max_size=2)},
            optional={"requires": facts(), "attributes": attributes(duration=False), **policies()},
        )
    )
    return {"name": f"group{number}", **group}


# -- forms --------------------------------------------------------------------------------------------------


@st.composite
def spoken(draw, document):
    """The document as plain data, with a form picked for every value that has several."""
    shapes: dict[str, Any] = {}

    def speak(value):
        if isinstance(value, Seconds):
            return draw(st.sampled_from(_durations(int(value))))
        if isinstance(value, Facts):
            return _nested(value, draw)
        if isinstance(value, Tree):
            plain = speak(dict(value))
            if draw(st.booleans()):
                return plain
            name = f"shape{len(shapes)}"
            shapes[name] = plain
            return name
        if isinstance(value, dict):
            inner = {key: speak(item) for key, item in value.items()}
            if inner.get("type") == "memory":
                inner["count"] = draw(st.sampled_from(_sizes(value["count"])))
            return inner
        return [speak(item) for item in value] if isinstance(value, list) else value

    plain = speak(document)
    return plain | ({"resources": shapes} if shapes else {})


def _durations(number):
    forms = [number, f"{number}s", f"{number * 1000}ms"]
    if number % 60 == 0:
        forms.append(f"{number // 60}m")
    if number > 60:
        forms.append(f"{number // 60}m{number % 60}s")
    return forms


def _sizes(number):
    return [number, f"{number // 2**20}Mi", f"{number // 2**30}Gi"]


def _nested(facts, draw):
    """Each fact with dots, or taken apart at one of them."""
    nested = {}
    for key, value in facts.items():
        path = key.split(".")
        cut = draw(st.integers(1, len(path)))
        head, rest = ".".join(path[:cut]), ".".join(path[cut:])
        if not rest:
            nested[head] = value
        elif isinstance(nested.setdefault(head, {}), dict):
            nested[head][rest] = value
    return nested


PLAIN_TEXT = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
NOT_A_TEXT = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


@st.composite
def texts(draw, data):
    """The data as YAML: the order of keys, flow or block, quotes, comments and anchors are random."""
    return _Writer(draw).document(data)


class _Writer:
    def __init__(self, draw):
        self.draw = draw
        self.anchors = {}
        self.count = 0

    def document(self, data):
        return "".join(f"{line}\n" for line in self.block(data, 0))

    def coin(self):
        return self.draw(st.booleans())

    def pairs(self, mapping):
        return (
            self.draw(st.permutations(list(mapping.items()))) if len(mapping) < 8 else list(mapping.items())
        )

    def scalar(self, value):
        if not isinstance(value, str):
            return json.dumps(value)
        forms = [json.dumps(value, ensure_ascii=max(value, default="") < "\ud800" and self.coin())]
        if PLAIN_TEXT.fullmatch(value) and value.lower() not in NOT_A_TEXT:
            forms.append(value)
        if value.isprintable():
            forms.append("'" + value.replace("'", "''") + "'")
        return self.draw(st.sampled_from(forms))

    def flow(self, value):
        if isinstance(value, dict):
            return (
                "{"
                + ", ".join(f"{self.scalar(key)}: {self.flow(item)}" for key, item in self.pairs(value))
                + "}"
            )
        if isinstance(value, list):
            return "[" + ", ".join(self.flow(item) for item in value) + "]"
        return self.scalar(value)

    def block(self, value, indent):
        """The lines of a collection at an indentation."""
        space = " " * indent
        if isinstance(value, dict):
            for key, item in self.pairs(value):
                yield from self.entry(f"{space}{self.scalar(key)}:", item, indent)
        else:
            for item in value:
                yield from self.entry(f"{space}-", item, indent)

    def entry(self, head, item, indent):
        comment = "  # why not" if self.draw(st.integers(0, 9)) == 0 else ""
        known = json.dumps(item, sort_keys=True)
        if not isinstance(item, dict | list):
            yield f"{head} {self.scalar(item)}{comment}"
        elif known in self.anchors and self.coin():
            yield f"{head} *{self.anchors[known]}{comment}"
        else:
            anchor = f" &a{self.count}" if known not in self.anchors and self.coin() else ""
            self.count += 1
            if not item or self.coin():
                yield f"{head}{anchor} {self.flow(item)}{comment}"
            else:
                yield f"{head}{anchor}{comment}"
                yield from self.block(item, indent + self.draw(st.sampled_from([2, 4])))
            if anchor:
                self.anchors[known] = anchor.strip(" &")


# -- shapes in normal form ----------------------------------------------------------------------------------

AMOUNTS = st.dictionaries(st.sampled_from(["core", "gpu", "memory"]), st.integers(1, 8), max_size=3)


@st.composite
def parts(draw, *, nodes=None):
    """A part as the reader makes it: what is beside the slots only where there are slots."""
    has_nodes = draw(st.booleans()) if nodes is None else nodes
    slots = draw(st.integers(0, 3))
    return Part(
        nodes=draw(st.integers(1, 4)) if has_nodes else None,
        slots=slots,
        each=draw(AMOUNTS),
        beside=draw(AMOUNTS) if slots and has_nodes else {},
        exclusive=has_nodes and draw(st.booleans()),
    )


def alternatives(*, nodes=None):
    return st.lists(parts(nodes=nodes), min_size=1, max_size=3).map(tuple)


# -- expressions --------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "gpu", "big-node"])
NORMAL_FORMS = st.lists(
    st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    min_size=1,
    max_size=4,
    unique_by=lambda names: tuple(sorted(names)),
).map(tuple)
EXPRESSIONS = st.recursive(
    NAMES,
    lambda inner: st.tuples(inner, st.sampled_from("|&"), inner).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=5,
)
