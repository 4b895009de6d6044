"""Settings of the scheduler: what is written is meant, and nothing that is written breaks the reader."""

import msgspec
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.accounts import AccountTree
from jobman.sched.scheduling import scheduling
from jobman.settings import settings_from_text
from jobman.settings.accounts import Account
from jobman.settings.queues import Queue
from jobman.settings.scheduler import Scheduler
from jobman.spec.problems import SpecError
from jobman.spec.quantities import format_duration
from jobman.spec.records import keys_of

NAMES = ("a", "b", "c", "d", "e")
WHOLE = st.integers(0, 1000)
SECONDS = st.integers(1, 10**6).map(float)


def some(**fields):
    """A mapping with some of the keys."""
    return st.fixed_dictionaries({}, optional=fields)


LIMITS = some(
    jobs=WHOLE,
    waiting=WHOLE,
    longest=SECONDS,
    budget=WHOLE,
    resources=some(cores=WHOLE, gpus=WHOLE, nodes=WHOLE, memory=st.integers(1, 2**40)),
)
QUEUES = st.lists(
    some(
        depth=st.just("all") | WHOLE,
        share=st.integers(1, 100).map(lambda part: f"{part}%"),
        factor=st.floats(0, 1),
        limits=LIMITS,
        each_user=LIMITS,
        state=st.sampled_from(("open", "draining", "closed")),
        order=st.sampled_from(("priority", "shortest-first")),
    ),
    max_size=4,
)


def read(data):
    """The settings, and the codes of what is wrong with them; each problem has an advice."""
    try:
        return settings_from_text(yaml.safe_dump(data, allow_unicode=True)), set()
    except SpecError as error:
        return None, {problem.code for problem in error.problems if problem.advice}


def written(queues):
    """Settings with these queues, durations as people write them."""
    named = [{"name": name, **queue} for name, queue in zip(NAMES, queues, strict=False)]
    for queue in named:
        for limits in (queue.get("limits", {}), queue.get("each_user", {})):
            if "longest" in limits:
                limits["longest"] = format_duration(limits["longest"])
    return named


@given(QUEUES)
def test_every_value_of_a_queue_arrives(queues):
    wanted = msgspec.json.decode(msgspec.json.encode(queues))
    found = scheduling(settings_from_text(yaml.safe_dump({"queues": written(queues)}))).queues
    for queue, given_ in zip(found, wanted, strict=False):
        limits = given_.get("limits", {})
        assert queue.depth == (None if given_.get("depth", "all") == "all" else given_["depth"])
        assert queue.shortest_first == (given_.get("order") == "shortest-first")
        assert (queue.limits.jobs, queue.limits.longest) == (limits.get("jobs"), limits.get("longest"))
        amounts = limits.get("resources", {})
        assert queue.limits.amounts.get("core") == amounts.get("cores")
        assert queue.limits.amounts.get("memory") == amounts.get("memory")
        assert queue.state == given_.get("state", "open")


@given(QUEUES)
def test_what_is_shown_means_the_same(queues):
    settings = settings_from_text(yaml.safe_dump({"queues": written(queues)}))
    again = settings_from_text(yaml.safe_dump(msgspec.to_builtins(settings.as_data())))
    assert scheduling(again) == scheduling(settings)


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.none() | st.sampled_from(NAMES)), unique_by=lambda a: a[0])
)
def test_accounts_that_are_admitted_make_a_tree_and_others_are_told(pairs):
    accounts = [{"name": name, **({"parent": parent} if parent else {})} for name, parent in pairs]
    settings, codes = read({"accounts": accounts})
    assert codes <= {"JS906", "JS907"}
    assert (settings is not None) is _is_tree(dict(pairs))
    if settings is not None:
        found = AccountTree(scheduling(settings).accounts)
        assert set(found.order) == {name for name, _ in pairs} | {"default"}


def _is_tree(parents):
    """Whether the way up from everybody ends at the top."""
    for start in parents:
        seen, name = set(), start
        while name is not None:
            if name in seen or name not in parents:
                return False
            seen.add(name)
            name = parents[name]
    return True


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(sorted({*keys_of(Queue), *keys_of(Account), *keys_of(Scheduler)} - {"name"}))


@given(st.sampled_from(("queues", "accounts", "scheduler")), st.dictionaries(KEYS, VALUES, max_size=4))
def test_whatever_is_written_is_read_or_told(section, values):
    item = values if section == "scheduler" else [{"name": "a", **values}]
    settings, codes = read({section: item})
    assert codes or scheduling(settings).queues
