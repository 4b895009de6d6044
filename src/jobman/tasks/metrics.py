"""Numbers for Prometheus, in its text format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from jobman.tasks.batches import Batch, Status
from jobman.tasks.broker import Broker
from jobman.tasks.journal import Journal
from jobman.tasks.stats import Outstanding, histories, oldest, seconds_of, waiting
from jobman.tasks.tallies import BOUNDS, Tally

Labels = Mapping[str, str]
_Owned = dict[tuple[str, str], list[Batch]]
"""Batches with tasks that have not ended, by tenant and image."""


class Family(NamedTuple):
    """One metric, with a number for each set of labels."""

    name: str
    kind: str
    help: str
    samples: Iterable[tuple[str, Labels, float]]
    """What is added to the name, labels and number."""


def metrics_of(
    broker: Broker, now: float, journal: Journal, open_pulls: int, work: Mapping[str, Outstanding]
) -> str:
    """All metrics of a broker, as text."""
    families = [
        *_queues(broker, now),
        *_ended(broker),
        *_estimates(broker),
        *_agents(broker),
        *_scaling(work),
    ]
    families += [
        _single("jobman_pulls_open", "gauge", "Agents that wait for work.", open_pulls),
        _single("jobman_journal_commits_total", "counter", "Transactions written.", journal.commits),
        _single(
            "jobman_journal_commit_seconds_total",
            "counter",
            "Seconds that transactions took.",
            journal.commit_seconds,
        ),
        _single("jobman_journal_failures_total", "counter", "Transactions that failed.", journal.failures),
        _single("jobman_journal_waiting", "gauge", "Requests that wait to be written.", journal.waiting),
    ]
    return "".join(line for family in families for line in _lines(family))


def _queues(broker: Broker, now: float) -> Iterator[Family]:
    owned: _Owned = {key: [] for key in broker.tallies.all}
    for batch in broker.batches.values():
        if batch.left:
            owned[batch.tenant, batch.image].append(batch)

    def family(name: str, words: str, of: Callable[[list[Batch]], float]) -> Family:
        return Family(name, "gauge", words, [("", _labels(key), of(some)) for key, some in owned.items()])

    yield family("jobman_tasks_queued", "Tasks that wait.", lambda some: sum(map(waiting, some)))
    yield family(
        "jobman_tasks_running",
        "Tasks that are with agents.",
        lambda some: sum(batch.count(Status.GIVEN) for batch in some),
    )
    yield family(
        "jobman_outstanding_seconds",
        "Estimated seconds of tasks that have not ended.",
        lambda some: sum(map(seconds_of, some)),
    )
    yield family(
        "jobman_tasks_oldest_seconds",
        "Seconds since the oldest task that waits was submitted.",
        lambda some: oldest(some, now),
    )
    yield Family(
        "jobman_queued_bytes",
        "gauge",
        "Bytes of payloads of tasks that have not ended.",
        [("", {"tenant": tenant}, usage.bytes) for tenant, usage in broker.usage.items()],
    )


def _ended(broker: Broker) -> Iterator[Family]:
    tallies = broker.tallies.all

    def family(name: str, kind: str, words: str, of: Callable[[Tally], float]) -> Family:
        return Family(name, kind, words, [("", _labels(key), of(tally)) for key, tally in tallies.items()])

    yield family("jobman_tasks_submitted_total", "counter", "Tasks accepted.", lambda tally: tally.submitted)
    yield Family(
        "jobman_tasks_ended_total",
        "counter",
        "Tasks that ended, by how.",
        [
            ("", {**_labels(key), "status": status.name.lower()}, count)
            for key, tally in tallies.items()
            for status, count in tally.ended.items()
        ],
    )
    yield family(
        "jobman_tasks_ended_per_second", "gauge", "Tasks that end, lately.", lambda tally: tally.rate
    )
    yield Family(
        "jobman_task_runtime_seconds",
        "histogram",
        "How long workers took for a task.",
        [sample for key, tally in tallies.items() for sample in _histogram(_labels(key), tally)],
    )


def _histogram(labels: Labels, tally: Tally) -> Iterator[tuple[str, Labels, float]]:
    counts = list(accumulate(tally.runtimes))
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
        yield "_bucket", {**labels, "le": bound}, count
    yield "_sum", labels, tally.seconds
    yield "_count", labels, counts[-1]


def _estimates(broker: Broker) -> Iterator[Family]:
    known = [
        ({"type": type_, "version": version or "", "image": image}, history)
        for (type_, version, image), history in histories(broker)
    ]
    yield Family(
        "jobman_estimate_error",
        "gauge",
        "How far estimates are off in the mean, as a part of what tasks take.",
        [("", labels, history.errors.relative) for labels, history in known],
    )
    yield Family(
        "jobman_estimate_bias",
        "gauge",
        "What tasks take beside their estimate.",
        [("", labels, history.errors.bias) for labels, history in known],
    )
    yield Family(
        "jobman_estimate_seconds",
        "gauge",
        "Seconds that the next task is thought to take.",
        [("", labels, history.mean) for labels, history in known],
    )


def _agents(broker: Broker) -> Iterator[Family]:
    columns: dict[str, list[float]] = {}
    for agent in broker.leases.agents.values():
        sums = columns.setdefault(agent.image, [0, 0, 0.0])
        for place, more in enumerate((1, agent.slots, max(0.0, agent.credit))):
            sums[place] += more
    for place, (name, words) in enumerate(
        (
            ("jobman_agents", "Agents that are there."),
            ("jobman_agent_slots", "Tasks that they can execute at once."),
            ("jobman_agent_credit_seconds", "Seconds of work that they wanted when they asked last."),
        )
    ):
        samples = [("", {"image": image}, sums[place]) for image, sums in columns.items()]
        yield Family(name, "gauge", words, samples)


def _scaling(work: Mapping[str, Outstanding]) -> Iterator[Family]:
    def family(name: str, words: str, of: Callable[[Outstanding], float]) -> Family:
        samples = [("", {"image": image}, of(each)) for image, each in work.items()]
        return Family(name, "gauge", words, samples)

    yield family(
        "jobman_workable_seconds",
        "Outstanding seconds, as far as quotas let workers have them.",
        lambda each: each.workable,
    )
    yield family("jobman_slots_busy", "Slots of agents that have tasks.", lambda each: each.busy)
    yield family("jobman_workers_wanted", "Workers that the work asks for.", lambda each: each.wanted)


def _single(name: str, kind: str, words: str, value: float) -> Family:
    return Family(name, kind, words, [("", {}, value)])


def _labels(key: tuple[str, str]) -> dict[str, str]:
    return {"tenant": key[0], "image": key[1]}


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}\n"
    for more, labels, value in family.samples:
        inner = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        braces = f"{{{inner}}}" if inner else ""
        yield f"{family.name}{more}{braces} {value:.17g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
