"""The drawing of a plan: what stands where, and that the pictures can be read by those who draw them."""

import re
from itertools import combinations
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.plan.drawing import layout, mermaid, svg
from jobman.plan.drawing.captions import COMMAND_SIZE, FACTS_SIZE, INSET, NAME_SIZE
from jobman.plan.drawing.model import MOST_UNITS, TITLE_BAR
from jobman.plan.drawing.text import fit, text_width
from jobman.plan.model import VERSION, Edge, Plan, Unit, digest, plan_from_json
from jobman.spec.shapes import Part

SVG = "{http://www.w3.org/2000/svg}"
CONDITIONS = ("success", "failure", "any", "started", "ready")
ODD_TEXTS = [
    "<script>&amp;\"quoted\" 'too'",
    "\x00\x1b[31m\x7f\u202e",
    "漢字 é 😀",
    "\ud800\uffff",
    "]]>",
    "-- \n --",
    "",
]


def task(path, **keys):
    parent, _, name = path.rpartition("/")
    return Unit(id=path, name=name, parent=parent or None, **{"command": ("run", name), **keys})


def group(path, **keys):
    return task(path, kind="group", command=(), **keys)


def plan(*units, edges=(), **keys):
    return Plan(version=VERSION, units=units, edges=tuple(Edge(*edge) for edge in edges), **keys)


def boxes(drawn):
    return {box.unit.id if box.unit else None: box for box in layout(drawn).boxes}


def columns(drawn):
    """The ids of the units from left to right, those below each other together."""
    found: dict[int, list[str]] = {}
    for unit_id, box in boxes(drawn).items():
        found.setdefault(round(box.x + box.width / 2), []).append(unit_id)
    return [found[x] for x in sorted(found)]


def elements(drawn, css):
    root = ElementTree.fromstring(svg(drawn))
    return [each for each in root.iter() if css in each.get("class", "").split()]


def texts(drawn):
    return [each.text or "" for each in ElementTree.fromstring(svg(drawn)).iter(f"{SVG}text")]


DIAMOND = plan(
    *map(task, ("fetch", "left", "right", "join")),
    edges=[("left", "fetch"), ("right", "fetch"), ("join", "left"), ("join", "right")],
)
NESTED = plan(
    task("prepare"),
    group("outer"),
    task("outer/first"),
    group("outer/inner"),
    task("outer/inner/deep"),
    task("final"),
    edges=[("outer/inner", "outer/first"), ("outer/inner/deep", "prepare", "any"), ("final", "outer")],
)
NESTED_TEXT = msgspec.structs.replace(NESTED, digest=digest(NESTED)).to_json()


class TestColumns:
    def test_a_diamond_has_three_columns_in_the_order_written(self):
        assert columns(DIAMOND) == [["fetch"], ["left", "right"], ["join"]]

    def test_the_longest_path_counts(self):
        drawn = plan(*map(task, "abc"), edges=[("b", "a"), ("c", "b"), ("c", "a")])
        assert columns(drawn) == [["a"], ["b"], ["c"]]

    def test_an_edge_between_inner_tasks_orders_the_groups_around_them(self):
        drawn = boxes(plan(group("g"), task("g/a"), group("h"), task("h/b"), edges=[("g/a", "h/b")]))
        assert drawn["h"].x + drawn["h"].width < drawn["g"].x

    @pytest.mark.parametrize("keys", [{"local": True}, {"watch": True}], ids=["local", "watch"])
    def test_what_holds_back_the_others_stands_before_them(self, keys):
        assert columns(plan(task("a"), task("b", **keys), task("c"))) == [["a", "b"], ["c"]]

    def test_a_service_holds_nothing_back(self):
        assert columns(plan(task("a", watch=True, service=True), task("b"))) == [["a", "b"]]

    def test_a_cleanup_without_edges_stands_behind_all_before_it(self):
        drawn = plan(task("a"), task("b"), task("tidy", when="always"), edges=[("b", "a")])
        assert columns(drawn) == [["a"], ["b"], ["tidy"]]

    def test_groups_that_wait_for_parts_of_each_other_are_drawn_as_written(self):
        knot = plan(task("b"), group("a"), task("a/late"), edges=[("b", "a", "started"), ("a/late", "b")])
        assert len(layout(knot).arrows) == 2
        assert_sound(knot)

    def test_many_tasks_without_edges_stand_in_rows(self):
        drawing = layout(plan(*(task(f"t{number}") for number in range(30))))
        assert 1 < drawing.width / drawing.height < 4


class TestBoxes:
    def test_groups_contain_their_tasks_below_their_title(self):
        drawn = boxes(NESTED)
        assert drawn["outer/inner/deep"].y >= drawn["outer/inner"].y + TITLE_BAR
        assert_sound(NESTED)

    def test_what_matters_is_written_below_the_name(self):
        shape = (
            (Part(nodes=2, slots=2, each={"core": 4, "gpu": 1}),),
            (Part(slots=1, each={"core": 1}),),
        )
        unit = task("train", replicas=20, alternatives=shape, command=("python", "train.py", "--all"))
        (box,) = layout(plan(unit)).boxes
        assert box.caption.facts.startswith("×20 · 4 copies · 2 nodes · 16 cores · 4 GPU")
        assert box.caption.command == "python train.py --all"

    def test_one_of_each_is_not_spelled_as_many(self):
        unit = task("a", alternatives=((Part(nodes=1, each={"core": 1, "gpu": 1}),),))
        assert layout(plan(unit)).boxes[0].caption.facts == "1 node · 1 core · 1 GPU"

    def test_a_long_command_ends_in_an_ellipsis(self):
        (box,) = layout(plan(task("a", command=("echo", "word " * 100_000)))).boxes
        assert re.fullmatch(r"echo word .*…", box.caption.command)

    @given(st.text(), st.floats(20, 300), st.sampled_from(["", "bold", "mono"]))
    def test_a_text_is_cut_to_its_room(self, text, width, style):
        cut = fit(text, width, 12.0, style)
        assert text_width(cut, 12.0, style) <= width
        assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))


class TestLimits:
    def test_ten_thousand_tasks_are_drawn_up_to_a_limit(self):
        names = [f"t{number}" for number in range(10_000)]
        chain = plan(*map(task, names), edges=list(zip(names[1:], names, strict=False)))
        drawing = layout(chain)
        assert len(drawing.boxes) == MOST_UNITS + 1
        assert drawing.boxes[-1].caption.name == f"… and {10_000 - MOST_UNITS} more"
        assert [arrow.unit for arrow in drawing.arrows] == [*names[1:MOST_UNITS], None]
        assert f"… and {10_000 - MOST_UNITS} more" in mermaid(chain)

    def test_a_group_left_out_takes_its_tasks_along(self):
        early = [task(f"t{number}") for number in range(MOST_UNITS)]
        drawn = plan(*early, group("g"), task("g/a"), task("g/b"), edges=[("g/b", "g/a"), ("g/a", "t0")])
        drawing = layout(drawn)
        assert len(drawing.boxes) == MOST_UNITS + 1
        assert [(arrow.after, arrow.unit) for arrow in drawing.arrows] == [("t0", None)]
        assert mermaid(drawn).count("-->") == 1

    @pytest.mark.slow
    def test_ten_thousand_tasks_in_groups_are_all_drawn(self):
        groups = [f"g{number}" for number in range(50)]
        tasks = [task(f"{name}/t{number}") for name in groups for number in range(199)]
        assert len(elements(plan(*map(group, groups), *tasks), "task")) == 50 * 199

    def test_groups_nest_deeper_than_calls_may(self):
        paths = ["/".join(["g"] * depth) for depth in range(1, 1_100)]
        drawn = plan(*map(group, paths), task(f"{paths[-1]}/t"))
        assert len(elements(drawn, "group")) == len(paths)
        assert mermaid(drawn).count("subgraph") == len(paths)


class TestSvg:
    def test_every_unit_and_every_edge_is_drawn_once(self):
        units = [each.get("data-unit") for each in elements(NESTED, "task") + elements(NESTED, "group")]
        edges = [(each.get("data-unit"), each.get("data-after")) for each in elements(NESTED, "edge")]
        assert sorted(units) == sorted(unit.id for unit in NESTED.units)
        assert edges == [(edge.unit, edge.after) for edge in NESTED.edges]

    def test_the_same_plan_gives_the_same_picture(self):
        again = plan_from_json(NESTED_TEXT)
        assert svg(again) == svg(NESTED)
        assert mermaid(again) == mermaid(NESTED)

    def test_the_picture_has_the_job_as_its_title(self):
        root = ElementTree.fromstring(svg(plan(task("a"), name="pi")))
        assert root[0].tag == f"{SVG}title"
        assert root[0].text == "pi"

    def test_it_knows_light_and_dark_and_refers_to_nothing_outside(self):
        text = svg(NESTED)
        assert "prefers-color-scheme:dark" in text
        assert "href" not in text
        assert "url(" not in text

    @pytest.mark.parametrize("odd", ODD_TEXTS)
    def test_odd_texts_neither_break_nor_leave_the_picture(self, odd):
        drawn = plan(Unit(id=f"{odd}1", name=odd, command=(odd, odd)), name=odd)
        text = svg(drawn)
        text.encode()
        assert len(ElementTree.fromstring(text).findall(f".//{SVG}g[@data-unit]")) == 1
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)

    def test_markup_in_names_is_text(self):
        assert "<b>&amp;" in texts(plan(task("<b>&amp;", command=("x",))))

    @pytest.mark.parametrize("when", CONDITIONS[1:])
    def test_a_condition_is_written_on_its_arrow(self, when):
        drawn = plan(task("a"), task("b"), edges=[("b", "a", when)])
        assert when in texts(drawn)
        assert len(elements(drawn, "early")) == (2 if when in ("started", "ready") else 0)

    def test_success_goes_without_saying(self):
        assert not elements(DIAMOND, "label")

    @pytest.mark.parametrize(
        ("keys", "style"),
        [({"service": True}, "service"), ({"local": True}, "local"), ({"when": "failure"}, "cleanup")],
    )
    def test_the_legend_explains_the_styles_that_occur(self, keys, style):
        legend = elements(plan(task("a", **keys), task("b")), "legend")
        assert [each.get("class") for each in legend] == [f"legend {style}"]

    def test_plain_tasks_need_no_legend(self):
        assert not elements(DIAMOND, "legend")

    def test_labels_do_not_hide_each_other(self):
        names = [f"t{number}" for number in range(12)]
        edges = [(name, "a", CONDITIONS[1 + number % 4]) for number, name in enumerate(names)]
        drawing = layout(plan(task("a"), *map(task, names), edges=edges))
        labels = [arrow.label for arrow in drawing.arrows if arrow.label]
        assert len(labels) == len(edges)
        for one, other in combinations(labels, 2):
            assert abs(one.y - other.y) >= 16 or abs(one.x - other.x) >= 20

    def test_a_plan_without_units_is_an_empty_picture(self):
        assert not elements(plan(), "box")


class TestMermaid:
    def test_groups_are_subgraphs_and_conditions_labels(self):
        assert mermaid(NESTED).splitlines() == [
            "flowchart LR",
            '  u0["prepare<br>run prepare"]',
            '  subgraph u1 ["outer"]',
            '    u2["first<br>run first"]',
            '    subgraph u3 ["inner"]',
            '      u4["deep<br>run deep"]',
            "    end",
            "  end",
            '  u5["final<br>run final"]',
            "  u2 --> u3",
            "  u0 -->|any| u4",
            "  u1 --> u5",
        ]

    def test_kinds_of_tasks_have_classes(self):
        lines = mermaid(plan(task("a", service=True), task("b", local=True, when="always"))).splitlines()
        assert {"  class u0 service", "  class u1 local", "  class u1 cleanup"} < set(lines)

    def test_early_conditions_are_dotted(self):
        assert "u0 -.->|ready| u1" in mermaid(plan(task("a"), task("b"), edges=[("b", "a", "ready")]))

    @pytest.mark.parametrize("odd", ODD_TEXTS)
    def test_odd_texts_stay_in_their_labels(self, odd):
        lines = mermaid(plan(Unit(id="a", name=odd, command=(odd,)))).splitlines()
        assert len(lines) == 2
        assert re.fullmatch(r'  u0\["(?:<br>|&(?!\w)|[^"<>&])*"\]', lines[1])


@st.composite
def plans(draw):
    """Groups in groups, tasks of every kind, and edges wherever the language could have some."""
    units: list[Unit] = []
    for number in range(draw(st.integers(1, 14))):
        scopes = [None, *(unit.id for unit in units if unit.kind == "group")]
        parent = draw(st.sampled_from(scopes))
        path = f"{parent}/u{number}" if parent else f"u{number}"
        when = draw(st.sampled_from(["success"] * 4 + ["failure", "always"]))
        if draw(st.integers(0, 3)) == 0:
            units.append(group(path, when=when))
        else:
            kind = draw(st.sampled_from([{}, {}, {}, {"local": True}, {"service": True}, {"watch": True}]))
            words = draw(st.lists(st.text(max_size=12), max_size=3))
            replicas = draw(st.sampled_from([1, 1, 7]))
            units.append(task(path, when=when, replicas=replicas, **{**kind, "command": tuple(words)}))
    pairs = [
        (one.id, other.id)
        for one, other in combinations(units, 2)
        if not f"{other.id}/".startswith(f"{one.id}/")
    ]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    edges = [(unit, after, draw(st.sampled_from(CONDITIONS))) for after, unit in chosen]
    return plan(*units, edges=edges)


@given(plans())
def test_any_plan_is_drawn_soundly(drawn):
    assert_sound(drawn)
    ElementTree.fromstring(svg(drawn))
    assert svg(drawn) == svg(drawn)
    assert mermaid(drawn).count("subgraph") == sum(unit.kind == "group" for unit in drawn.units)


def assert_sound(drawn):
    drawing = layout(drawn)
    found = boxes(drawn)
    assert list(found) == [unit.id for unit in drawn.units]
    arrows = [(arrow.unit, arrow.after, arrow.when) for arrow in drawing.arrows]
    assert arrows == [(edge.unit, edge.after, edge.when) for edge in drawn.edges]
    for box in drawing.boxes:
        assert_inside(box, found, drawing)
        assert_fits(box)
    for one, other in combinations(drawing.boxes, 2):
        assert one.parent != other.parent or apart(one, other)
    for arrow in drawing.arrows:
        assert_runs_between_boxes(arrow, drawing.boxes)


def assert_inside(box, found, drawing):
    around = found.get(box.parent)
    left, top = (around.x, around.y + TITLE_BAR) if around else (0, 0)
    right, bottom = (around.x + around.width, around.y + around.height) if around else drawing[:2]
    assert left < box.x < box.x + box.width < right
    assert top < box.y < box.y + box.height < bottom


def assert_fits(box):
    name = text_width(box.caption.name, NAME_SIZE, "bold")
    facts = text_width(box.caption.facts, FACTS_SIZE)
    command = text_width(box.caption.command, COMMAND_SIZE, "mono")
    widest = name + facts if box.unit.kind == "group" else max(name, facts, command)
    assert widest + 2 * INSET <= box.width + 0.01


def apart(one, other):
    return (
        one.x + one.width < other.x
        or other.x + other.width < one.x
        or one.y + one.height < other.y
        or other.y + other.height < one.y
    )


def assert_runs_between_boxes(arrow, drawn):
    """A level piece of an arrow crosses no box but the ends and the groups around them."""
    for box in drawn:
        path = f"{box.unit.id}/"
        if not f"{arrow.after}/".startswith(path) and not f"{arrow.unit}/".startswith(path):
            for run in arrow.runs:
                below_or_above = not box.y < run.y < box.y + box.height
                assert below_or_above or run.end <= box.x or run.start >= box.x + box.width
