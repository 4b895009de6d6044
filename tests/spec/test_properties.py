"""Laws of the language: nothing makes the reader raise, every problem is complete, values keep their laws."""

import string
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from jobman.spec.access import Secret, Security
from jobman.spec.codes import CODES
from jobman.spec.contexts import Context, Origin, merge_inherited, merge_named
from jobman.spec.expressions import ExpressionError, normal_text, parse
from jobman.spec.load import load_jobs
from jobman.spec.model import DOCUMENT, Document
from jobman.spec.networks import Port
from jobman.spec.problems import Problems
from jobman.spec.quantities import MAX_SECONDS, format_duration, format_size, parse_duration, parse_size
from jobman.spec.reading import Reading
from jobman.spec.shapes import Part, add, copies, misfit, totals
from jobman.spec.shaping import merge_requires
from jobman.spec.site import Site
from jobman.spec.source import Source, decode_source
from jobman.spec.suggest import closest, distance
from jobman.spec.yaml import compose
from tests.spec import strategies as some

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.yaml"))]
WORDS = ["tasks", "command", "resources", "{{a}}", "version: 1\n", "&a ", "*a", "<<: "]
YAMLISH = st.lists(st.sampled_from([*" \n:-[]{},&*!|>'\"%@`#?<~\t\\", *"abctnr01", *WORDS]), max_size=60).map(
    "".join
)


def problems_of(text, name="f.yaml"):
    problems = Problems()
    jobs = load_jobs(Source(name, text), Site(), problems)
    return jobs, problems.in_order()


def assert_complete(problems, text):
    """A known code, words, and a place inside the file."""
    lines = Source("", text).lines
    for problem in problems:
        assert problem.code in CODES
        assert problem.message
        assert problem.advice
        assert "Node(" not in problem.message
        place = problem.place
        assert place is not None
        assert 1 <= place.line <= len(lines)
        assert place.line <= place.end_line
        assert 1 <= place.column <= len(lines[place.line - 1]) + 1
        assert place.column <= place.end_column


# -- nothing raises -----------------------------------------------------------------------------------------


@given(st.text(st.characters(codec="utf-8"), max_size=200))
@example("\x85\x08")
def test_no_text_makes_the_reader_raise(text):
    jobs, problems = problems_of(text)
    assert_complete(problems, text)
    assert jobs or problems


@given(YAMLISH)
@example("n:\nt")
@settings(max_examples=300)
def test_no_text_that_looks_like_yaml_makes_the_reader_raise(text):
    _, problems = problems_of(text)
    assert_complete(problems, text)


@st.composite
def changed_examples(draw):
    text = draw(st.sampled_from(EXAMPLES))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 20)))
        text = text[:start] + draw(YAMLISH) + text[end:]
    return text


@given(changed_examples())
@example(EXAMPLES[0] + "\nlabels: {a: b\n")
@settings(max_examples=300, deadline=None)
def test_no_change_to_a_good_document_makes_the_reader_raise(text):
    _, problems = problems_of(text)
    assert_complete(problems, text)


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_raise(data):
    problems = Problems()
    source = decode_source("f.yaml", data, problems)
    assert (source is None) is bool(len(problems))
    assert all(problem.advice and problem.place for problem in problems)


KEYS = [
    "version",
    "name",
    "tasks",
    "groups",
    "command",
    "resources",
    "type",
    "count",
    "with",
    "attributes",
    "duration",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.sampled_from([*KEYS, "a", "{{a}}", "5m", "1:30", "", "node", "group"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(sorted(DOCUMENT._make_table()) + KEYS), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(st.data(), VALUES)
@settings(max_examples=300)
def test_no_data_makes_the_reader_raise(data, value):
    text = some._Writer(data.draw).flow(value).replace("NaN", ".nan").replace("Infinity", ".inf") + "\n"
    _, problems = problems_of(text)
    assert_complete(problems, text)


@pytest.mark.slow
@given(st.data(), some.documents())
@settings(max_examples=150, deadline=None)
def test_a_valid_document_has_no_error_however_it_is_written(data, document):
    text = data.draw(some.texts(data.draw(some.spoken(document))))
    jobs, problems = problems_of(text)
    assert [(each.code, each.message) for each in problems if each.severity == "error"] == []
    assert len(jobs) == 1


# -- inheritance --------------------------------------------------------------------------------------------

HERE = Origin("task")
SECRETS = st.lists(some.NAMES, max_size=3, unique=True).flatmap(
    lambda names: st.tuples(
        *(st.builds(Secret, name=st.just(name), key=st.none() | some.NAMES) for name in names)
    )
)
PORTS = st.lists(st.integers(1, 5), max_size=3, unique=True).map(
    lambda ports: tuple(Port(port=each) for each in ports)
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "secrets": SECRETS,
        "ports": PORTS,
        "grace": st.floats(0, 100),
        "identity": some.NAMES,
        "security": st.builds(Security, uid=st.none() | st.integers(0, 3), gid=st.none() | st.integers(0, 3)),
    },
)


def values(settings):
    return {key: traced.value for key, traced in settings.items()}


@given(SECRETS, SECRETS, SECRETS)
def test_merging_by_name_is_associative(a, b, c):
    assert merge_named(merge_named(a, b), c) == merge_named(a, merge_named(b, c))


@given(SECRETS, SECRETS)
def test_merging_by_name_keeps_every_name_once_and_the_nearest_value(outer, inner):
    merged = merge_named(outer, inner)
    names = [each.name for each in merged]
    assert sorted(names) == sorted({each.name for each in (*outer, *inner)})
    assert set(inner) <= set(merged)
    assert merge_named(outer, ()) == outer
    assert merge_named((), inner) == inner


@given(SETTINGS, SETTINGS, SETTINGS)
def test_merging_level_by_level_equals_merging_all_at_once(a, b, c):
    step_by_step = merge_inherited(merge_inherited(merge_inherited({}, a, HERE), b, HERE), c, HERE)
    inner = values(merge_inherited(merge_inherited({}, b, HERE), c, HERE))
    at_once = merge_inherited(merge_inherited({}, a, HERE), inner, HERE)
    assert values(step_by_step) == values(at_once)


@given(SETTINGS, SETTINGS)
def test_the_nearest_setting_wins(outer, inner):
    merged = values(merge_inherited(merge_inherited({}, outer, HERE), inner, HERE))
    for key in ("grace", "identity"):
        assert merged.get(key) == inner.get(key, outer.get(key))
    if "security" in inner and inner["security"].uid is not None:
        assert merged["security"].uid == inner["security"].uid


FACTS = st.dictionaries(some.NAMES, st.sampled_from("xyz"), max_size=4)


@given(FACTS, FACTS, FACTS, FACTS)
def test_facts_merge_from_the_document_to_the_task(document, group, shape, task):
    alternatives = ((Part(nodes=1, requires=shape),),)
    at_once = merge_requires(alternatives, {**document, **group}, task)
    step_by_step = merge_requires(
        merge_requires(merge_requires(alternatives, group, {}), document, {}), {}, task
    )
    assert at_once[0][0].requires == {**document, **group, **shape, **task} == step_by_step[0][0].requires


@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"duration": some.seconds(), "cwd": some.WORDS}),
        min_size=1,
        max_size=4,
    )
)
def test_the_nearest_attribute_wins_key_by_key(levels):
    context = Context()
    for level in levels:
        context = context.inside(_document_with(level), HERE)
    expected = {key: value for level in levels for key, value in level.items()}
    assert values(context.attributes) == expected


def _document_with(attributes):
    problems = Problems()
    text = (
        f"version: 1\nattributes: {{{', '.join(f'{key}: {value}' for key, value in attributes.items())}}}\n"
    )
    (node,), source = compose(Source("f", text), problems)
    document = DOCUMENT.read(node, Reading(source, problems))
    assert isinstance(document, Document)
    return document


# -- shapes -------------------------------------------------------------------------------------------------


@given(some.alternatives(), some.alternatives(), some.alternatives())
def test_adding_shapes_is_associative(a, b, c):
    assert add([add([a, b]), c]) == add([a, add([b, c])]) == add([a, b, c])


@given(some.alternatives())
def test_nothing_is_the_identity_of_adding(a):
    assert add([add([a]), ()]) == add([(), a]) == add([a])


@given(some.alternatives(), some.alternatives())
def test_adding_preserves_totals(a, b):
    total, left, right = totals(add([a, b])), totals(a), totals(b)
    assert total.nodes == left.nodes + right.nodes
    assert total.copies == left.copies + right.copies == copies(add([a, b]))
    names = {*left.amounts, *right.amounts}
    assert total.amounts == {name: left.amounts.get(name, 0) + right.amounts.get(name, 0) for name in names}


def test_adding_shapes_with_levels_is_associative():
    rack = (Part(nodes=4, within=(("rack", 2),)),)
    assert add([add([rack, rack]), rack]) == add([rack, add([rack, rack])]) == add([rack, rack, rack])


def test_adding_slots_in_sockets_preserves_totals():
    sockets = (Part(slots=4, each={"core": 1}, beside={"socket": 2}),)
    assert totals(add([sockets, sockets])).amounts == {"core": 8, "socket": 4}


LOPSIDED = (
    Part(nodes=1, each={"core": 2, "gpu": 3}),
    Part(nodes=1, slots=2, each={"core": 1, "gpu": 1, "memory": 1}),
)


@given(some.alternatives(nodes=True))
@example(LOPSIDED)
def test_a_shape_with_nodes_fits_into_itself(a):
    assert misfit(a, a) is None


@given(some.alternatives(nodes=True), some.alternatives(nodes=True), some.alternatives(nodes=True))
@settings(max_examples=400)
def test_what_fits_still_fits_into_more(child, parent, more):
    assume(misfit(child, parent) is None)
    assert misfit(child, add([parent, more])) is None


@given(st.integers(1, 5), st.integers(1, 5), st.sampled_from(["core", "gpu", "memory", "nodes"]))
def test_a_child_larger_in_any_type_does_not_fit(size, extra, kind):
    def shape(amount):
        if kind == "nodes":
            return (Part(nodes=amount),)
        return (Part(nodes=1, each={"core": 3, "gpu": 3, "memory": 3} | {kind: amount}),)

    assert misfit(shape(size + extra), shape(size)) is not None
    assert misfit(shape(size), shape(size + extra)) is None


@given(some.parts(nodes=False), some.parts(nodes=False))
@example(Part(slots=1, each={"core": 1}), Part(slots=1, each={"core": 1}))
def test_slots_of_two_parts_do_not_share_the_same_room(one, other):
    both = totals((one, other)).amounts
    room = {
        name: max(totals((one,)).amounts.get(name, 0), totals((other,)).amounts.get(name, 0)) for name in both
    }
    assume(any(both[name] > room[name] for name in both))
    assert misfit((one, other), (Part(nodes=1, each=room),)) is not None


# -- expressions --------------------------------------------------------------------------------------------


@given(some.NORMAL_FORMS)
def test_a_normal_form_is_read_back_as_itself(form):
    assert parse(normal_text(form)) == form


@given(some.EXPRESSIONS)
def test_parentheses_and_spaces_are_neutral(text):
    form = parse(text)
    assert parse(f" ( {text} ) ") == form == parse(text.replace(" ", ""))
    assert parse(normal_text(form)) == form


@given(some.NAMES, some.EXPRESSIONS, some.EXPRESSIONS)
def test_both_distributes_over_either_in_order(a, b, c):
    assert parse(f"{a}&({b}|{c})") == parse(f"{a}&{b}|{a}&{c}")
    assert parse(f"({b}|{c})&{a}") == parse(f"{b}&{a}|{c}&{a}")


def test_the_left_side_of_both_is_the_stronger_preference():
    assert parse("(a|b)&(c|d)") == (("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"))


@given(st.text(st.sampled_from([*"ab|&() .-", "é"]), max_size=20))
def test_a_wrong_expression_says_where(text):
    try:
        parse(text)
    except ExpressionError as error:
        problem = error
    else:
        return
    assert str(problem)
    assert 0 <= problem.position <= len(text)


# -- quantities ---------------------------------------------------------------------------------------------


@given(st.integers(1, int(MAX_SECONDS * 1000)))
def test_a_duration_is_read_back_as_it_was_printed(milliseconds):
    assert parse_duration(format_duration(milliseconds / 1000)) == milliseconds / 1000


@given(st.integers(1, 2**63 - 1))
@example(4 * 2**30)
def test_a_size_is_read_back_as_it_was_printed(size):
    assert parse_size(format_size(size)) == size


@given(st.text(st.sampled_from("0123456789.dhmsKMGTPEik:- "), max_size=12))
def test_no_quantity_makes_the_reader_raise(text):
    seconds, size = parse_duration(text), parse_size(text)
    assert seconds is None or 0 <= seconds <= MAX_SECONDS
    assert size is None or 0 <= size < 2**63


# -- suggestions --------------------------------------------------------------------------------------------

SMALL_WORDS = st.text(st.sampled_from("abc"), max_size=4)


@given(SMALL_WORDS, SMALL_WORDS)
def test_the_distance_of_two_words_is_symmetric_and_zero_only_for_equal_words(a, b):
    assert distance(a, b) == distance(b, a)
    assert (distance(a, b) == 0) is (a == b)


@given(SMALL_WORDS, SMALL_WORDS, st.integers(0, 3))
def test_a_limit_changes_no_distance_below_it(a, b, limit):
    exact = distance(a, b)
    limited = distance(a, b, limit)
    assert limited == exact if exact <= limit else limited > limit


@given(st.text(string.ascii_lowercase, min_size=4, max_size=8), st.data())
def test_one_slip_is_found(word, data):
    position = data.draw(st.integers(0, len(word) - 2))
    slips = [
        word[:position] + word[position + 1 :],
        word[:position] + "x" + word[position:],
        word[:position] + word[position + 1] + word[position] + word[position + 2 :],
    ]
    for slip in slips:
        assert distance(slip, word) <= 1
        assert closest(slip, [word]) == word
