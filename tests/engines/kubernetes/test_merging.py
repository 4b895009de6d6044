"""The output of all pods of a job, merged and followed."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from jobman.engines.kubernetes.errors import ApiError, Expired, Forbidden, NotFound, TooEarly, Unreachable
from jobman.engines.kubernetes.kinds import JOBS
from jobman.engines.kubernetes.merging import following, merged, until_over
from jobman.engines.kubernetes.objects import (
    Change,
    Condition,
    Container,
    ContainerState,
    ContainerStatus,
    Job,
    JobStatus,
    Meta,
    Owner,
    Pod,
    PodSpec,
    PodStatus,
    Running,
    Status,
    Terminated,
    Waiting,
)
from jobman.engines.kubernetes.outputs import Line, outputs_of, parse_stamp
from jobman.engines.kubernetes.reading import AT_ONCE
from tests.engines.kubernetes.cluster import a_job, a_namespace, kubectl, on_a_real_cluster, talk
from tests.engines.kubernetes.recorded import recorded

RUNS = ContainerState(running=Running())
ENDED = ContainerState(terminated=Terminated(exit_code=0))
CRASHED = ContainerState(terminated=Terminated(exit_code=1))
WAITS = ContainerState(waiting=Waiting(reason="CrashLoopBackOff"))


def pod(name: str = "a", *, index: int = 0, state: ContainerState = ENDED, age: int = 0, **status) -> Pod:
    labels = {"jobman.io/task": "train", "batch.kubernetes.io/job-completion-index": str(index)}
    return Pod(
        metadata=Meta(
            name=name,
            uid=name,
            labels=labels,
            owner_references=[Owner(uid="job", controller=True)],
            creation_timestamp=datetime(2026, 1, 1, 0, 0, age, tzinfo=UTC),
        ),
        spec=PodSpec(containers=[Container(name="main")]),
        status=PodStatus(
            phase="Running", container_statuses=[ContainerStatus(name="main", state=state, **status)]
        ),
    )


def job(name: str, *, over: bool) -> Job:
    conditions = [Condition(type="Complete", status="True")] if over else []
    return Job(metadata=Meta(name=name), status=JobStatus(conditions=conditions))


def refusal(kind: type[ApiError]) -> ApiError:
    return kind(400, Status(message="No."))


def at(second: float, text: str) -> bytes:
    moment = f"2026-01-01T00:00:{second:012.9f}Z"
    return f"{moment} {text}\n".encode()


class Listed:
    def __init__(self, items):
        self.items = list(items)
        self.resource_version = "1"


class World:
    """A cluster that says what a test lets it say."""

    def __init__(self, *pods: Pod, jobs: tuple[Job, ...] = ()) -> None:
        self.pods = {one.metadata.name: one for one in pods}
        self.jobs = {one.metadata.name: one for one in jobs}
        self.written: dict[tuple[str, bool], list[Any]] = {}
        """Parts of each output, and errors in between; the next request begins behind an error."""
        self.changes: asyncio.Queue[Any] = asyncio.Queue()
        self.asked: list[dict[str, Any]] = []
        self.open = 0

    def writes(self, name: str, *parts, previous: bool = False) -> None:
        self.written[name, previous] = list(parts)

    def shows(self, one: Pod, kind: str = "ADDED") -> None:
        self.pods[one.metadata.name] = one
        self.changes.put_nowait(Change(type=kind, object=one))

    async def list(self, kind, namespace=None, *, labels=""):
        return Listed((self.jobs if kind is JOBS else self.pods).values())

    async def watch(self, kind, since, namespace=None, *, labels=""):
        while True:
            change = await self.changes.get()
            if isinstance(change, Exception):
                raise change
            yield change

    async def logs(self, pod, namespace=None, **query) -> AsyncGenerator[bytes, None]:
        self.asked.append({"pod": pod, **query})
        parts = self.written.get((pod, query["previous"]), [])
        if query["tail"] is not None:
            parts = parts[len(parts) - query["tail"] :]
        self.open += 1
        try:
            for number, part in enumerate(parts):
                if isinstance(part, Exception):
                    del self.written[pod, query["previous"]][: number + 1]
                    raise part
                if isinstance(part, asyncio.Event):
                    if not query["follow"]:
                        return
                    await part.wait()
                    continue
                yield part
        finally:
            self.open -= 1


async def told(lines: AsyncGenerator[Line, None]) -> list[tuple[str, str]]:
    return [(line.output.label, line.text) async for line in lines]


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 20))


async def the_end(event: asyncio.Event) -> None:
    await event.wait()


async def happens(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


# -- what was written ----------------------------------------------------------------------------------------


def test_lines_of_several_pods_come_in_order_of_time_with_their_names():
    world = World(pod("a"), pod("b", index=1))
    world.writes("a", at(1, "one"), at(3, "three"))
    world.writes("b", at(2, "two"), at(4, "four"))
    assert run(told(merged(world, list(world.pods.values())))) == [
        ("train.0", "one"),
        ("train.1", "two"),
        ("train.0", "three"),
        ("train.1", "four"),
    ]


def test_lines_are_put_together_from_parts_of_any_size():
    world = World(pod())
    whole = at(1, "héllo wörld") + at(2, "") + at(3, "no end").rstrip(b"\n")
    world.writes("a", *(whole[place : place + 3] for place in range(0, len(whole), 3)))
    assert [text for _, text in run(told(merged(world, [pod()])))] == ["héllo wörld", "", "no end"]


def test_letters_that_are_none_are_shown_and_lose_nothing():
    world = World(pod())
    world.writes("a", at(1, "x").replace(b"x", b"\xff!"))
    assert run(told(merged(world, [pod()]))) == [("train.0", "�!")]


def test_a_program_whose_lines_go_back_in_time_is_told_as_it_wrote():
    world = World(pod())
    world.writes("a", at(2, "out"), at(1, "err"), at(2, "out again"))
    assert [text for _, text in run(told(merged(world, [pod()])))] == ["out", "err", "out again"]


def test_only_the_last_lines_of_all_are_told_with_a_tail():
    world = World(pod("a"), pod("b", index=1))
    world.writes("a", at(1, "one"), at(3, "three"), at(5, "five"))
    world.writes("b", at(2, "two"), at(4, "four"))
    lines = merged(world, list(world.pods.values()), tail=2)
    assert [text for _, text in run(told(lines))] == ["four", "five"]
    assert {asked["tail"] for asked in world.asked} == {2}


def test_only_what_is_wanted_is_read():
    world = World(pod("a"), pod("b", index=1))
    world.writes("b", at(1, "mine"))
    lines = merged(world, list(world.pods.values()), wanted=lambda output: output.replica == 1)
    assert run(told(lines)) == [("train.1", "mine")]
    assert [asked["pod"] for asked in world.asked] == ["b"]


def test_earlier_attempts_are_told_too_in_pods_and_in_place():
    first = pod("a", state=CRASHED)
    second = pod("b", age=9, state=RUNS, restart_count=1, last_state=CRASHED)
    world = World(first, second)
    world.writes("a", at(1, "first"))
    world.writes("b", at(11, "second"), previous=True)
    world.writes("b", at(12, "third"))
    assert run(told(merged(world, [second, first]))) == [
        ("train.0", "first"),
        ("train.0#2", "second"),
        ("train.0#3", "third"),
    ]


def test_a_container_between_two_starts_is_read_once():
    waiting = pod(state=WAITS, restart_count=3, last_state=CRASHED)
    world = World(waiting)
    world.writes("a", at(1, "going down"))
    assert run(told(merged(world, [waiting]))) == [("train.0#4", "going down")]


@pytest.mark.parametrize("error", [NotFound, TooEarly])
def test_what_is_not_there_or_not_yet_is_no_trouble(error):
    world = World(pod("a"), pod("b", index=1))
    world.writes("a", refusal(error))
    world.writes("b", at(1, "here"))
    assert run(told(merged(world, list(world.pods.values())))) == [("train.1", "here")]


def test_an_output_that_cannot_be_read_is_said_and_the_others_are_heard():
    world = World(pod("a"), pod("b", index=1))
    world.writes("a", Unreachable("The node is away."))
    world.writes("b", at(1, "here"))

    async def scenario() -> list[Line]:
        return [line async for line in merged(world, list(world.pods.values()))]

    lines = run(scenario())
    assert [line.text for line in lines if line.is_note] == [
        "the output of a cannot be read: The node is away."
    ]
    assert [line.text for line in lines if not line.is_note] == ["here"]


def test_who_may_not_read_output_is_told_so_once():
    world = World(pod())
    world.writes("a", refusal(Forbidden))
    with pytest.raises(Forbidden):
        run(told(merged(world, [pod()])))


def test_no_more_than_so_many_outputs_are_read_at_once():
    pods = [pod(f"p{number}", index=number, age=number % 60) for number in range(AT_ONCE * 2 + 5)]
    world = World(*pods)
    most = 0

    async def scenario() -> int:
        nonlocal most
        count = 0
        for one in pods:
            world.writes(one.metadata.name, at(1, "x"))
        async for _ in merged(world, pods):
            most = max(most, world.open)
            count += 1
        return count

    assert run(scenario()) == len(pods)
    assert most <= AT_ONCE


def test_who_stops_listening_leaves_nothing_open():
    world = World(pod("a"), pod("b", index=1))
    for name in world.pods:
        world.writes(name, at(1, "one"), at(2, "two"))

    async def scenario() -> None:
        lines = merged(world, list(world.pods.values()))
        await anext(lines)
        await lines.aclose()

    run(scenario())
    assert world.open == 0


# -- what comes ----------------------------------------------------------------------------------------------


def test_what_was_written_comes_in_order_and_then_what_is_written():
    async def scenario():
        more, over = asyncio.Event(), asyncio.Event()
        world = World(pod("a", state=RUNS), pod("b", index=1))
        world.writes("a", at(1, "one"), at(3, "three"), more, at(5, "five"))
        world.writes("b", at(2, "two"))
        lines = following(world, "x", until=the_end(over))
        before = [(await anext(lines)).text for _ in range(3)]
        world.shows(pod("a"), "MODIFIED")
        more.set()
        after = (await anext(lines)).text
        over.set()
        return before, after, await told(lines)

    assert run(scenario()) == (["one", "two", "three"], "five", [])


def test_what_has_ended_is_asked_for_once():
    async def scenario():
        over = asyncio.Event()
        over.set()
        world = World(pod("a"), pod("b", index=1, state=CRASHED))
        world.writes("a", at(1, "one"))
        world.writes("b", at(2, "two"))
        lines = await told(following(world, "x", until=the_end(over)))
        return [text for _, text in lines], [asked["pod"] for asked in world.asked]

    assert run(scenario()) == (["one", "two"], ["a", "b"])


def test_who_reads_slowly_misses_nothing(monkeypatch):
    monkeypatch.setattr("jobman.engines.kubernetes.merging._WAITING_LINES", 2)
    monkeypatch.setattr("jobman.engines.kubernetes.merging._LAST_WORDS", 0.01)

    async def scenario():
        over = asyncio.Event()
        world = World()
        lines = following(world, "x", until=the_end(over))
        texts = [str(number) for number in range(30)]
        world.writes("a", *(at(number, text) for number, text in enumerate(texts)))
        world.shows(pod())
        found = [(await anext(lines)).text]
        over.set()
        await asyncio.sleep(0.05)
        async for line in lines:
            found.append(line.text)
            await asyncio.sleep(0.002)
        return found == texts

    assert run(scenario())


def test_pods_that_appear_later_are_followed():
    async def scenario():
        over = asyncio.Event()
        world = World()
        lines = following(world, "x", until=the_end(over))
        world.writes("b", at(1, "hello"))
        world.shows(pod("b", state=ContainerState(waiting=Waiting(reason="ContainerCreating"))))
        world.shows(pod("b", state=RUNS), "MODIFIED")
        first = (await anext(lines)).text
        world.shows(pod("b"), "MODIFIED")
        over.set()
        return first, await told(lines)

    assert run(scenario()) == ("hello", [])


def test_a_pod_that_came_and_went_unseen_is_told_at_the_end():
    async def scenario():
        over = asyncio.Event()
        world = World()
        lines = following(world, "x", until=the_end(over))
        waiting = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0)
        world.pods["late"] = pod("late")
        world.writes("late", at(1, "I was here"))
        over.set()
        return (await waiting).text, await told(lines)

    assert run(scenario()) == ("I was here", [])


def test_a_container_that_is_started_again_is_followed_again_and_no_line_comes_twice():
    async def scenario():
        over, crash = asyncio.Event(), asyncio.Event()
        world = World(pod(state=RUNS))
        world.writes("a", at(1, "one"), crash)
        lines = following(world, "x", until=the_end(over))
        first = await anext(lines)
        waiting = asyncio.ensure_future(anext(lines))
        await happens(lambda: len(world.asked) == 2)
        world.writes("a", at(1, "one"), previous=True)
        world.writes("a", at(2, "two"))
        crash.set()
        world.shows(pod(state=RUNS, restart_count=1, last_state=CRASHED), "MODIFIED")
        second = await waiting
        world.shows(pod(state=ENDED, restart_count=1, last_state=CRASHED), "MODIFIED")
        over.set()
        return first.text, (second.output.label, second.text), await told(lines)

    assert run(scenario()) == ("one", ("train.0#2", "two"), [])


def test_a_connection_that_breaks_goes_on_behind_the_last_line(monkeypatch):
    monkeypatch.setattr("jobman.engines.kubernetes.reading._PAUSE", 0)

    async def scenario():
        over, more = asyncio.Event(), asyncio.Event()
        world = World(pod(state=RUNS))
        world.writes(
            "a", at(1.25, "one"), more, Unreachable("broke"), at(1, "zero"), at(1.25, "one"), at(1.5, "two")
        )
        lines = following(world, "x", until=the_end(over))
        first = (await anext(lines)).text
        more.set()
        second = (await anext(lines)).text
        world.shows(pod(), "MODIFIED")
        over.set()
        return first, second, await told(lines), world.asked[-1]["since_time"]

    assert run(scenario()) == ("one", "two", [], "2026-01-01T00:00:01Z")


def test_an_output_that_keeps_breaking_is_given_up_with_a_note(monkeypatch):
    monkeypatch.setattr("jobman.engines.kubernetes.reading._PAUSE", 0)

    async def scenario():
        over = asyncio.Event()
        world = World(pod(state=RUNS))
        world.writes("a", *[Unreachable("The node is away.")] * 20)
        lines = following(world, "x", until=the_end(over))
        notes = [await anext(lines), await anext(lines)]
        over.set()
        return [line.is_note for line in notes], await told(lines)

    assert run(scenario()) == ([True, True], [])


def test_nothing_old_is_told_with_a_tail_of_none():
    async def scenario():
        over = asyncio.Event()
        world = World(pod(state=RUNS))
        world.writes("a", at(1, "old"))
        lines = following(world, "x", until=the_end(over), tail=0)
        waiting = asyncio.ensure_future(anext(lines, None))
        await happens(lambda: len(world.asked) == 2)
        world.shows(pod(), "MODIFIED")
        over.set()
        return await waiting, {asked["tail"] for asked in world.asked}

    assert run(scenario()) == (None, {0})


def test_a_watch_whose_version_is_forgotten_lists_anew():
    async def scenario():
        over = asyncio.Event()
        world = World()
        lines = following(world, "x", until=the_end(over))
        waiting = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0)
        world.pods["a"] = pod()
        world.writes("a", at(1, "hello"))
        world.changes.put_nowait(refusal(Expired))
        line = await waiting
        over.set()
        return line.text, await told(lines)

    assert run(scenario()) == ("hello", [])


def test_a_refusal_to_watch_is_told_to_who_listens():
    async def scenario():
        world = World()
        world.changes.put_nowait(refusal(Forbidden))
        return await told(following(world, "x", until=the_end(asyncio.Event())))

    with pytest.raises(Forbidden):
        run(scenario())


def test_who_stops_following_leaves_no_task_behind():
    async def scenario():
        world = World(pod(state=RUNS))
        world.writes("a", at(1, "one"), asyncio.Event())
        before = asyncio.all_tasks()
        lines = following(world, "x", until=the_end(asyncio.Event()))
        await anext(lines)
        await lines.aclose()
        return world.open, asyncio.all_tasks() - before

    assert run(scenario()) == (0, set())


def test_a_job_is_over_when_all_of_its_parts_are_or_were_deleted():
    async def scenario():
        world = World(jobs=(job("a", over=True), job("b", over=False), job("c", over=False)))
        waiting = asyncio.ensure_future(until_over(world, "x"))
        world.changes.put_nowait(Change(type="MODIFIED", object=job("b", over=True)))
        await asyncio.sleep(0.01)
        before = waiting.done()
        world.changes.put_nowait(Change(type="DELETED", object=job("c", over=False)))
        await waiting
        return before

    assert run(scenario()) is False


def test_a_job_that_is_over_already_is_not_waited_for():
    run(until_over(World(jobs=(job("a", over=True),)), "x"))


# -- whose output there is -----------------------------------------------------------------------------------


def test_steps_and_helpers_are_named_and_the_command_is_not():
    labels = [output.label for output in outputs_of(recorded("sidecar").pods)]
    assert labels == ["main.0:proxy", "main.0"]


def test_copies_of_a_replica_are_numbered():
    (output,) = outputs_of(recorded("copies").pods)
    assert (output.replica, output.copy, output.label) == (3, 1, "main.3/1")


def test_attempts_are_told_apart_by_their_number():
    labels = [output.label for output in outputs_of(recorded("retried").pods)]
    assert labels == ["main.0", "main.0#2", "main.0#3"]


def test_a_pod_that_has_not_started_has_no_output():
    assert outputs_of(recorded("no-image").pods) == []
    assert outputs_of(recorded("gated").pods) == []


def test_times_are_read_to_the_nanosecond():
    assert parse_stamp("1970-01-01T00:00:01.000000002Z") == 1_000_000_002
    assert parse_stamp("1970-01-01T01:00:01.5+01:00") == 1_500_000_000
    assert parse_stamp("1970-01-01T00:00:01Z") == 1_000_000_000
    assert parse_stamp("failed") is None


# -- on a real cluster ---------------------------------------------------------------------------------------


@on_a_real_cluster
@pytest.mark.slow
def test_a_real_job_is_followed_over_attempts_and_replicas_to_its_end():
    script = "for i in 1 2 3; do echo $JOB_COMPLETION_INDEX.$i; sleep 0.3; done; exit $JOB_COMPLETION_INDEX"
    with a_namespace() as namespace:
        written = a_job(
            "talker",
            namespace,
            script,
            completions=2,
            parallelism=2,
            completionMode="Indexed",
            backoffLimit=1,
        )
        written["spec"]["template"]["metadata"] = {
            "labels": {"jobman.io/job": "talker", "jobman.io/task": "talk"}
        }

        async def work(api) -> list[tuple[str, str]]:
            await api.create(written)
            labels = "jobman.io/job=talker"
            until = until_over(api, labels, namespace)
            return await told(following(api, labels, namespace, until=until))

        lines = talk(work)
    expected = {
        label: [f"{index}.{number}" for number in (1, 2, 3)]
        for label, index in {"talk.0": 0, "talk.1": 1, "talk.1#2": 1}.items()
    }
    assert {label: [text for one, text in lines if one == label] for label, _ in lines} == expected


@on_a_real_cluster
@pytest.mark.slow
def test_what_real_pods_wrote_is_merged_after_their_end():
    with a_namespace() as namespace:
        script = "echo first; sleep 1; echo last"
        written = a_job("over", namespace, script, completions=2, parallelism=2, completionMode="Indexed")
        written["spec"]["template"]["metadata"] = {
            "labels": {"jobman.io/job": "over", "jobman.io/task": "say"}
        }

        async def work(api) -> list[Line]:
            from jobman.engines.kubernetes.kinds import PODS

            await api.create(written)
            await until_over(api, "jobman.io/job=over", namespace)
            pods = (await api.list(PODS, namespace, labels="jobman.io/job=over")).items
            return [line async for line in merged(api, pods)]

        lines = talk(work)
        alone = kubectl("logs", "-n", namespace, "-l", "batch.kubernetes.io/job-completion-index=1")
    assert sorted(line.at for line in lines) == [line.at for line in lines]
    assert "".join(f"{line.text}\n" for line in lines if line.output.replica == 1) == alone
    assert len(lines) == 4


def test_copies_of_a_replica_of_several_jobs_are_numbered_through():
    of_the_second_job = pod(index=1)
    of_the_second_job.metadata.labels.update({"jobman.io/replica": "0", "jobman.io/first": "2"})
    (output,) = outputs_of([of_the_second_job])
    assert output.copy == 3
