"""Lists of jobs hold what fits, newest first, and pages stay true while jobs are added."""

import re
import threading
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.control.store import listing
from jobman.control.store.errors import BadCursor
from jobman.control.store.rows import searched
from jobman.control.store.views import JobFilter
from tests.control.store.builders import NOON, changes, job, replica

NAMES = (
    "train",
    "train-2",
    "Train",
    "tr_in",
    "tr%in",
    "a[b]",
    "straße",
    "x",
    "sweep.10",
    "\U0010ffff",
    "a\\b",
    "träne",
    "nächte",
)
OWNERS = ("ada", "bob")
STATES = ("waiting", "running", "succeeded", "failed", "cancelled")
QUEUES = (None, "gpu", "cpu")
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"team": "vision"},
    {"team": "speech", "stage": ""},
    {"stage": "dev"},
)


def jobs():
    """Jobs of every kind; the clock was once set back while they came in."""
    return [
        job(
            number,
            name=NAMES[number * 7 % len(NAMES)],
            owner=OWNERS[number % 3 == 0],
            state=STATES[number * 3 % len(STATES)],
            queue=QUEUES[number % len(QUEUES)],
            flavor=("small", "large")[number % 2],
            labels=LABELS[number * 5 % len(LABELS)],
            submitted_at=NOON + (number if number < 40 else number - 25),
        )
        for number in range(1, 61)
    ]


def fits(wanted, job):
    """The meaning of a filter, without a database."""
    pattern = (
        None
        if wanted.name is None
        else "".join({"*": ".*", "?": "."}.get(c) or re.escape(c) for c in wanted.name)
    )
    return all(
        (
            wanted.owner in (None, job.owner),
            not wanted.states or job.state in wanted.states,
            pattern is None or re.fullmatch(pattern, job.name, re.DOTALL),
            all(
                name in job.labels and value in (None, job.labels[name])
                for name, value in wanted.labels.items()
            ),
            wanted.queue in (None, job.queue),
            wanted.flavor in (None, job.flavor),
            wanted.since is None or job.submitted_at >= wanted.since,
            wanted.until is None or job.submitted_at < wanted.until,
            wanted.text is None or wanted.text.casefold() in searched(job),
        )
    )


moments = st.integers(-2, 45).map(lambda seconds: NOON + seconds)
patterns = (
    st.sampled_from(NAMES)
    | st.sampled_from(("tr_i*", "tr%*", "*%*", "*_*", "a[*", "a\\*", "*[b]", "?r*", "train?*", "*"))
    | st.text("*?train%_[]\\.2", max_size=6)
)
conditions = {
    "owner": st.sampled_from((*OWNERS, "eve")),
    "states": st.frozensets(st.sampled_from(STATES)),
    "name": patterns,
    "labels": st.dictionaries(
        st.sampled_from(("team", "stage")), st.sampled_from((None, "vision", "", "dev")), max_size=2
    ),
    "queue": st.sampled_from(("gpu", "none")),
    "flavor": st.sampled_from(("small", "huge")),
    "since": moments,
    "until": moments,
    "text": st.sampled_from(("TRAIN", "strasse", "team=v", "%", "_", "0", "")),
}


@st.composite
def filters(draw):
    """Few conditions at a time: many together would leave nothing to be listed."""
    names = draw(st.lists(st.sampled_from(sorted(conditions)), unique=True, max_size=3))
    return JobFilter(**{name: draw(conditions[name]) for name in names})


def listed(store, wanted, limit):
    """All pages of a list."""
    found, cursor = [], None
    while True:
        page = store.jobs(wanted, cursor, limit)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found
        assert len(page.items) == limit


@pytest.fixture
def filled(store):
    store.write(changes(*jobs()))
    return store


@given(wanted=filters(), few=st.sampled_from((0, 5, 500)), limit=st.sampled_from((1, 7, 100)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_list_holds_exactly_what_fits(filled, wanted, few, limit):
    expected = [job.id for job in reversed(jobs()) if fits(wanted, job)]
    with patch.object(listing, "_FEW", few):
        assert [job.id for job in listed(filled, wanted, limit)] == expected


@pytest.mark.parametrize("few", [0, 500])
@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("train", {"train"}),
        ("tr*", {"train", "train-2", "tr_in", "tr%in", "träne"}),
        ("tr?in", {"train", "tr_in", "tr%in"}),
        ("tr_*", {"tr_in"}),
        ("tr%*", {"tr%in"}),
        ("a[*", {"a[b]"}),
        ("?[b]", {"a[b]"}),
        ("a\\*", {"a\\b"}),
        ("\U0010ffff*", {"\U0010ffff"}),
        ("*", set(NAMES)),
        ("", set()),
    ],
)
def test_a_pattern_means_what_it_says(filled, pattern, names, few):
    with patch.object(listing, "_FEW", few):
        assert {one.name for one in filled.jobs(JobFilter(name=pattern)).items} == names


def test_a_list_of_everything_is_newest_first(filled):
    assert [job.number for job in filled.jobs().items] == list(range(60, 0, -1))


def test_pages_stay_true_while_jobs_are_added(filled):
    wanted = JobFilter(owner="ada")
    first = filled.jobs(wanted, limit=10)
    filled.write(changes(job(61), job(62)))
    second = filled.jobs(wanted, first.cursor, limit=10)
    ours = [one.number for one in reversed(jobs()) if one.owner == "ada"]
    assert [one.number for one in (*first.items, *second.items)] == ours[:20]


def test_the_last_page_has_no_cursor_even_if_it_is_full(filled):
    assert filled.jobs(limit=60).cursor is None
    assert filled.jobs(limit=59).cursor is not None


def test_an_empty_store_has_an_empty_list(store):
    assert store.jobs().items == []
    assert store.jobs(JobFilter(states=frozenset(STATES), text="x")).items == []


@pytest.mark.parametrize("cursor", ["", "x", "!!", "W10", "WyJhIl0", "WzEsMl0", "ü", "AAAA"])
def test_a_cursor_nobody_gave_out_is_refused(store, cursor):
    with pytest.raises(BadCursor, match="not a cursor"):
        store.jobs(cursor=cursor)


def test_nul_in_a_filter_finds_nothing_and_breaks_nothing(filled):
    assert filled.jobs(JobFilter(name="a\0*", owner="\0", text="\0")).items == []
    assert filled.find(None, "\0") == []


def test_a_job_is_found_by_its_id(store):
    store.write(changes(job(1, id="3fa0"), job(2, id="3fa01"), job(3, name="3fa0")))
    assert ids(store.find(None, "3fa0")) == ["3fa0"]


def test_a_job_is_found_by_a_prefix_of_its_id(store):
    store.write(changes(job(1, id="3fa01"), job(2, id="3fb01"), job(3, id="\U0010ffff1")))
    assert ids(store.find(None, "3fa")) == ["3fa01"]
    assert ids(store.find(None, "\U0010ffff")) == ["\U0010ffff1"]
    assert store.find(None, "") == []
    assert store.find(None, "4") == []


def test_a_prefix_of_several_ids_names_them_newest_first(store):
    store.write(changes(*(job(n, id=f"3fa{n:02}") for n in range(1, 15))))
    assert ids(store.find(None, "3fa"))[:2] == ["3fa14", "3fa13"]


def test_a_name_means_the_newest_job_of_that_name(store):
    store.write(changes(job(1), job(2), job(3, name="other")))
    assert ids(store.find(None, "train")) == ["0002-job"]


def test_a_name_is_meant_where_a_prefix_is_ambiguous(store):
    store.write(changes(job(1, id="cafe1"), job(2, id="cafe2"), job(3, name="cafe")))
    assert ids(store.find(None, "cafe")) == ["0003-job"]


def test_a_name_that_is_also_the_start_of_another_id_is_ambiguous(store):
    store.write(changes(job(1, id="cafe1"), job(2, name="cafe")))
    assert ids(store.find(None, "cafe")) == ["cafe1", "0002-job"]


def test_jobs_of_others_are_not_found(store):
    store.write(
        changes(job(1, id="3fa01", owner="bob"), job(2, id="3fa02", name="x"), job(3, name="x", owner="bob"))
    )
    assert store.find("ada", "3fa01") == []
    assert ids(store.find("ada", "3fa")) == ["3fa02"]
    assert ids(store.find("ada", "x")) == ["3fa02"]
    assert ids(store.find(None, "3fa01")) == ["3fa01"]


def ids(found):
    return [job.id for job in found]


def test_readers_see_whole_transactions_while_others_write(store):
    """Each transaction brings all jobs and their replicas to one turn: no reader may ever see two."""
    ours = [job(n) for n in range(1, 21)]
    store.write(changes(*ours, *(replica(one, state="waiting") for one in ours)))
    stop = threading.Event()
    seen: list[set[str]] = []

    def read():
        while not stop.is_set():
            found = store.unfinished()
            seen.append({one.state for one in (*found.jobs, *found.replicas)})

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(40):
        state = f"turn {turn}"
        moved = [msgspec.structs.replace(one, state=state) for one in ours]
        store.write(changes(*moved, *(replica(one, state=state) for one in ours), new=False))
    stop.set()
    for reader in readers:
        reader.join()
    assert seen
    assert [states for states in seen if len(states) != 1] == []
